//! Lifecycles applied to real versions and uploads, at moments the tests name.

use super::*;

const DAY_MS: i64 = 86_400_000;

impl Fixture {
    async fn put_at(&self, key: &str, bytes: &[u8], tags: Tags, now_ms: i64) -> Option<VersionId> {
        let sealed = self.sealed(bytes).await.unwrap();
        let kept = Kept { tags, ..Kept::default() };
        self.store.publish(&self.bucket, &object_key(key), sealed, kept, Condition::None, now_ms).await.unwrap().version
    }

    async fn delete_at(&self, key: &str, now_ms: i64) {
        let deletion = Deletion { now_ms, ..Deletion::default() };
        self.store.delete_version(&self.bucket, &object_key(key), deletion).await.unwrap();
    }

    async fn live_by(&self, rules: Vec<LifecycleRule>) {
        self.store.set_lifecycle(&self.bucket, Some(Lifecycle { rules })).await.unwrap();
    }

    /// A whole round.
    async fn apply(&self, now_ms: i64) -> LifecycleReport {
        let (mut total, mut round) = (LifecycleReport::default(), LifecycleRound::default());
        for _ in 0..1000 {
            let (report, next) = self.store.apply_lifecycle(round, now_ms).await.unwrap();
            total += report;
            match next {
                Some(next) => round = next,
                None => return total,
            }
        }
        panic!("the round does not end");
    }

    /// `key size` or `key marker`, newest first.
    async fn shape(&self) -> Vec<String> {
        let list = ListQuery { limit: 1000, ..ListQuery::default() };
        let query = VersionsQuery { list, after_version: None };
        let page = self.store.list_versions(&self.bucket, query).await.unwrap();
        let shape = page.entries.iter().map(|entry| match entry {
            VersionEntry::Object { info, .. } => format!("{} {}", info.key.as_str(), info.size),
            VersionEntry::Marker { key, .. } => format!("{} marker", key.as_str()),
            VersionEntry::CommonPrefix(prefix) => prefix.clone(),
        });
        shape.collect()
    }
}

fn rule(prefix: &str) -> LifecycleRule {
    let filter = LifecycleFilter { prefix: Some(prefix.to_owned()), ..LifecycleFilter::default() };
    LifecycleRule { id: prefix.to_owned(), enabled: true, filter, ..LifecycleRule::default() }
}

#[tokio::test]
async fn objects_expire_by_age_prefix_tag_and_size() {
    let fixture = Fixture::new().await;
    let tagged = vec![("keep".to_owned(), "no".to_owned())];
    for (key, size, tags, day) in [
        ("log/old", MEDIUM, vec![], 1),
        ("log/new", 1, vec![], 9),
        ("data/old", 1, vec![], 1),
        ("data/tagged", 1, tagged.clone(), 1),
        ("data/large", 2000, vec![], 1),
    ] {
        fixture.put_at(key, &pattern(size, 1), tags, day * DAY_MS).await;
    }
    let by_tag = LifecycleFilter { tags: tagged, ..LifecycleFilter::default() };
    let by_size = LifecycleFilter { larger_than: Some(1000), smaller_than: Some(3000), ..LifecycleFilter::default() };
    let expires = |rule: LifecycleRule| LifecycleRule { expiration: Some(Expiration::Days(5)), ..rule };
    let off = LifecycleRule { enabled: false, ..expires(rule("data/")) };
    fixture
        .live_by(vec![
            expires(rule("log/")),
            expires(LifecycleRule { filter: by_tag, ..rule("tag") }),
            expires(LifecycleRule { filter: by_size, ..rule("size") }),
            off,
        ])
        .await;
    assert_eq!(fixture.apply(6 * DAY_MS - 1).await, LifecycleReport::default());
    assert_eq!(fixture.apply(6 * DAY_MS).await, LifecycleReport { expired: 3, ..LifecycleReport::default() });
    assert_eq!(fixture.keys().await, ["data/old", "log/new"]);
    fixture.wait_for_files(0).await;
    assert_eq!(fixture.apply(6 * DAY_MS).await, LifecycleReport::default());
    fixture.live_by(vec![LifecycleRule { expiration: Some(Expiration::AtMs(20 * DAY_MS)), ..rule("") }]).await;
    assert_eq!(fixture.apply(20 * DAY_MS).await.expired, 2);
    assert!(fixture.keys().await.is_empty());
}

#[tokio::test]
async fn versions_end_in_steps_expired_hidden_removed_and_their_marker_last() {
    let fixture = Fixture::new().await;
    fixture.store.set_versioning(&fixture.bucket, Versioning::Enabled).await.unwrap();
    for day in 1..=4 {
        fixture.put_at("k", &vec![0; day as usize], vec![], day * DAY_MS).await;
    }
    fixture.put_at("stays", b"x", vec![], 100 * DAY_MS).await;
    let noncurrent = Some(NoncurrentExpiration { days: 3, kept: 1 });
    fixture.live_by(vec![LifecycleRule { expiration: Some(Expiration::Days(10)), noncurrent, ..rule("") }]).await;

    assert_eq!(fixture.apply(5 * DAY_MS).await.removed, 1);
    assert_eq!(fixture.shape().await, ["k 4", "k 3", "k 2", "stays 1"]);
    assert_eq!(fixture.apply(13 * DAY_MS).await.removed, 1, "of the two old ones the newer is kept");
    assert_eq!(fixture.shape().await, ["k 4", "k 3", "stays 1"]);
    assert_eq!(fixture.apply(14 * DAY_MS).await.expired, 1);
    assert_eq!(fixture.shape().await, ["k marker", "k 4", "k 3", "stays 1"]);
    assert_eq!(fixture.apply(17 * DAY_MS).await, LifecycleReport { removed: 1, ..LifecycleReport::default() });
    assert_eq!(fixture.shape().await, ["k marker", "k 4", "stays 1"]);

    let noncurrent = Some(NoncurrentExpiration { days: 3, kept: 0 });
    fixture.live_by(vec![LifecycleRule { noncurrent, expiration: Some(Expiration::Markers), ..rule("") }]).await;
    assert_eq!(fixture.apply(17 * DAY_MS).await.removed, 1);
    assert_eq!(fixture.shape().await, ["k marker", "stays 1"]);
    assert_eq!(fixture.apply(17 * DAY_MS).await.removed, 1, "the marker hides nothing any more");
    assert_eq!(fixture.shape().await, ["stays 1"]);
}

#[tokio::test]
async fn pages_end_anywhere_among_the_versions_of_a_key() {
    let fixture = Fixture::new().await;
    fixture.store.set_versioning(&fixture.bucket, Versioning::Enabled).await.unwrap();
    // More than a step looks at, over a border within a key.
    for key in ["a", "b", "c"] {
        for _ in 0..400 {
            fixture.put_at(key, b"x", vec![], DAY_MS).await;
        }
    }
    let noncurrent = Some(NoncurrentExpiration { days: 1, kept: 10 });
    fixture.live_by(vec![LifecycleRule { noncurrent, ..rule("") }]).await;
    assert_eq!(fixture.apply(2 * DAY_MS).await.removed, 3 * (400 - 11));
    assert_eq!(fixture.shape().await.len(), 3 * 11);
}

#[tokio::test]
async fn a_locked_version_outlives_its_lifecycle() {
    let fixture = Fixture::new().await;
    let (store, key) = (&fixture.store, object_key("k"));
    let bucket = bucket_name("locking");
    store.create_locking_bucket(&bucket, vec![], 1).await.unwrap();
    let retention = Some(Retention { mode: RetentionMode::Governance, until_ms: 50 * DAY_MS });
    for (retention, day) in [(retention, 1), (None, 2)] {
        let kept = Kept { lock: ObjectLock { retention, legal_hold: None }, ..Kept::default() };
        let sealed = fixture.sealed(b"x").await.unwrap();
        store.publish(&bucket, &key, sealed, kept, Condition::None, day * DAY_MS).await.unwrap();
    }
    let noncurrent = Some(NoncurrentExpiration { days: 1, kept: 0 });
    let rules = vec![LifecycleRule { noncurrent, ..rule("") }];
    store.set_lifecycle(&bucket, Some(Lifecycle { rules })).await.unwrap();
    assert_eq!(fixture.apply(40 * DAY_MS).await, LifecycleReport::default());
    assert_eq!(fixture.apply(50 * DAY_MS).await.removed, 1);
}

#[tokio::test]
async fn uploads_are_aborted_after_a_week_in_every_bucket() {
    let fixture = Fixture::new().await;
    let (store, bucket) = (&fixture.store, &fixture.bucket);
    for (key, day) in [("a", 1), ("b", 3), ("slow/c", 1), ("quick/d", 3)] {
        let id = store.create_upload(bucket, &object_key(key), NewUpload::default(), day * DAY_MS).await.unwrap();
        let sealed = fixture.sealed(&pattern(MEDIUM, 1)).await.unwrap();
        store.publish_part(bucket, &object_key(key), &id, 1, sealed, 1).await.unwrap();
    }
    assert_eq!(fixture.apply(8 * DAY_MS - 1).await.aborted, 0);
    let days = |days, prefix| LifecycleRule { upload_days: Some(days), ..rule(prefix) };
    fixture.live_by(vec![days(30, "slow/"), days(1, "quick/")]).await;
    assert_eq!(fixture.apply(8 * DAY_MS).await.aborted, 2);
    store.set_lifecycle(bucket, None).await.unwrap();
    assert_eq!(fixture.apply(8 * DAY_MS).await.aborted, 1, "with no rule the week counts again");
    let left = store.list_uploads(bucket, "", None, 10).await.unwrap().0;
    assert_eq!(left.iter().map(|upload| upload.key.as_str()).collect::<Vec<_>>(), ["b"]);
    fixture.wait_for_files(1).await;
}

#[tokio::test]
async fn what_changed_since_it_was_seen_stays() {
    let fixture = Fixture::new().await;
    fixture.put_at("k", b"old", vec![], DAY_MS).await;
    fixture.live_by(vec![LifecycleRule { expiration: Some(Expiration::Days(1)), ..rule("") }]).await;
    let (bucket, seen_at) = (fixture.bucket.clone(), 5 * DAY_MS);
    let look = {
        let bucket = bucket.clone();
        move |index: &_| index::lifecycle::due(index, &bucket, None, 10, seen_at)
    };
    let due = fixture.store.0.index.look_up(look).await.unwrap().due;
    assert_eq!(due.len(), 1);
    fixture.put_at("k", b"new", vec![], seen_at).await;
    let remove = move |write: &mut index::Write<'_>| index::lifecycle::remove(write, &bucket, &due, seen_at);
    assert_eq!(fixture.store.0.index.change(remove).await.unwrap(), LifecycleReport::default());
    assert_eq!(fixture.read("k").await.unwrap(), b"new");
    fixture.delete_at("k", seen_at).await;
}
