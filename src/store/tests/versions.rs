//! Versions: what is kept, what is current, what a deletion leaves, and stores made before there were versions.

use super::*;

impl Fixture {
    async fn versioned() -> Self {
        let fixture = Self::new().await;
        fixture.set_versioning(Versioning::Enabled).await;
        fixture
    }

    async fn set_versioning(&self, versioning: Versioning) {
        self.store.set_versioning(&self.bucket, versioning).await.unwrap();
    }

    /// The version that a put made.
    async fn version(&self, key: &str, bytes: &[u8]) -> VersionId {
        self.put(key, bytes).await.unwrap().version.unwrap()
    }

    async fn read_version(&self, key: &str, version: &VersionId) -> Result<Vec<u8>> {
        let pick = |info: &ObjectInfo| Some(0..info.size);
        let reading = self.store.read_version(&self.bucket, &object_key(key), Some(version.clone()), pick).await?;
        assert_eq!(reading.info.version.as_ref(), Some(version));
        collect(reading).await
    }

    async fn delete_version(&self, key: &str, version: Option<&VersionId>) -> Result<Deleted> {
        let deletion = Deletion { version: version.cloned(), now_ms: 9, ..Deletion::default() };
        self.store.delete_version(&self.bucket, &object_key(key), deletion).await
    }

    /// `key version [size or marker] [*]`, a star on the latest, all pages of `limit`.
    async fn all_versions(&self, query: ListQuery) -> Vec<String> {
        let mut shown = Vec::new();
        let mut query = VersionsQuery { list: query, after_version: None };
        for _ in 0..1000 {
            let limit = query.list.limit;
            let page = self.store.list_versions(&self.bucket, query.clone()).await.unwrap();
            assert!(page.entries.len() <= limit);
            shown.extend(page.entries.iter().map(show));
            let Some((after, after_version)) = page.next else { return shown };
            (query.list.after, query.after_version) = (Some(after), after_version);
        }
        panic!("the listing does not end");
    }

    async fn versions(&self) -> Vec<String> {
        self.all_versions(ListQuery { limit: 1000, ..ListQuery::default() }).await
    }
}

fn show(entry: &VersionEntry) -> String {
    let star = |latest: bool| if latest { " *" } else { "" };
    match entry {
        VersionEntry::Object { info, latest } => {
            let version = info.version.as_ref().unwrap().as_str();
            format!("{} {version} {}{}", info.key.as_str(), info.size, star(*latest))
        }
        VersionEntry::Marker { key, version, latest, .. } => {
            format!("{} {} marker{}", key.as_str(), version.as_str(), star(*latest))
        }
        VersionEntry::CommonPrefix(prefix) => format!("{prefix}…"),
    }
}

#[tokio::test]
async fn each_write_makes_a_version_and_old_ones_are_read_as_they_were() {
    let fixture = Fixture::versioned().await;
    let mut made = Vec::new();
    for (n, size) in [10, MEDIUM, LARGE, 0].into_iter().enumerate() {
        let bytes = pattern(size, n as u64);
        made.push((fixture.version("key", &bytes).await, bytes));
    }
    for (version, bytes) in &made {
        assert!(fixture.read_version("key", version).await.unwrap() == *bytes);
        let head = fixture.store.head_version(&fixture.bucket, &object_key("key"), Some(version.clone())).await;
        assert_eq!(head.unwrap().size, bytes.len() as u64);
    }
    assert!(fixture.read("key").await.unwrap() == made[3].1);
    let shown: Vec<String> = made
        .iter()
        .rev()
        .enumerate()
        .map(|(n, (version, bytes))| {
            format!("key {} {}{}", version.as_str(), bytes.len(), if n == 0 { " *" } else { "" })
        })
        .collect();
    assert_eq!(fixture.versions().await, shown, "made in one millisecond, they are in order all the same");
    let fixture = fixture.reopen().await;
    assert!(fixture.read_version("key", &made[1].0).await.unwrap() == made[1].1);
    fixture.wait_for_files(2).await;
}

#[tokio::test]
async fn a_deletion_leaves_a_marker_and_removing_that_brings_the_object_back() {
    let fixture = Fixture::versioned().await;
    let first = fixture.version("key", b"one").await;
    let second = fixture.version("key", &pattern(MEDIUM, 1)).await;
    let deleted = fixture.delete_version("key", None).await.unwrap();
    assert!(deleted.existed && deleted.marker);
    let marker = deleted.version.unwrap();
    assert!(fixture.keys().await.is_empty());
    assert!(matches!(fixture.read("key").await, Err(Error::Deleted { version }) if version == marker));
    let of_marker = fixture.read_version("key", &marker).await;
    assert!(matches!(of_marker, Err(Error::DeleteMarker { version, last_modified_ms: 9 }) if version == marker));
    assert_eq!(fixture.read_version("key", &first).await.unwrap(), b"one");

    let again = fixture.delete_version("key", None).await.unwrap();
    assert!(!again.existed && again.marker && again.version.as_ref() != Some(&marker));
    let removed = fixture.delete_version("key", again.version.as_ref()).await.unwrap();
    assert!(removed.existed && removed.marker);
    assert!(fixture.keys().await.is_empty(), "the earlier marker still hides the object");
    fixture.delete_version("key", Some(&marker)).await.unwrap();
    assert!(fixture.read("key").await.unwrap() == pattern(MEDIUM, 1));

    let removed = fixture.delete_version("key", Some(&second)).await.unwrap();
    assert_eq!(removed, Deleted { existed: true, version: Some(second.clone()), marker: false });
    fixture.wait_for_files(0).await;
    assert_eq!(fixture.read("key").await.unwrap(), b"one");
    assert!(!fixture.delete_version("key", Some(&second)).await.unwrap().existed);
    assert!(matches!(fixture.read_version("key", &second).await, Err(Error::NoSuchVersion)));
    fixture.delete_version("key", Some(&first)).await.unwrap();
    assert!(matches!(fixture.read("key").await, Err(Error::NoSuchKey)));
    assert!(fixture.versions().await.is_empty());
}

#[tokio::test]
async fn a_suspended_bucket_keeps_one_null_version_and_all_others() {
    let fixture = Fixture::new().await;
    fixture.put("key", &pattern(MEDIUM, 1)).await.unwrap();
    fixture.set_versioning(Versioning::Enabled).await;
    let kept = fixture.version("key", b"kept").await;
    let null = VersionId::Null;
    assert!(fixture.read_version("key", &null).await.unwrap() == pattern(MEDIUM, 1), "written before versioning");

    fixture.set_versioning(Versioning::Suspended).await;
    assert_eq!(fixture.version("key", b"null").await, null);
    fixture.wait_for_files(0).await;
    assert_eq!(fixture.version("key", b"null 2").await, null);
    assert_eq!(fixture.versions().await, ["key null 6 *".to_owned(), format!("key {} 4", kept.as_str())]);

    for _ in 0..2 {
        let deleted = fixture.delete_version("key", None).await.unwrap();
        assert_eq!((deleted.version.as_ref(), deleted.marker), (Some(&null), true));
        assert_eq!(fixture.versions().await, ["key null marker *".to_owned(), format!("key {} 4", kept.as_str())]);
    }
    assert!(matches!(fixture.read_version("key", &null).await, Err(Error::DeleteMarker { .. })));
    fixture.set_versioning(Versioning::Enabled).await;
    let newest = fixture.version("key", b"newest").await;
    fixture.set_versioning(Versioning::Suspended).await;
    assert_eq!(fixture.version("key", b"x").await, null);
    let shown = ["key null 1 *".to_owned(), format!("key {} 6", newest.as_str()), format!("key {} 4", kept.as_str())];
    assert_eq!(fixture.versions().await, shown, "the null marker in the middle went");
    fixture.delete_version("key", Some(&null)).await.unwrap();
    assert_eq!(fixture.read("key").await.unwrap(), b"newest");
}

#[tokio::test]
async fn conditions_are_decided_on_the_current_version() {
    let fixture = Fixture::versioned().await;
    let first = fixture.put("key", b"a").await.unwrap();
    let second = fixture.put("key", b"b").await.unwrap();
    let if_etag = |etag: &str| Condition::Etag(etag.to_owned());
    assert!(matches!(fixture.put_if("key", b"c", if_etag(&first.etag)).await, Err(Error::PreconditionFailed)));
    assert!(matches!(fixture.put_if("key", b"c", Condition::Absent).await, Err(Error::PreconditionFailed)));
    assert!(matches!(fixture.delete_if("key", if_etag(&first.etag)).await, Err(Error::PreconditionFailed)));
    assert_eq!(fixture.versions().await.len(), 2, "what is refused makes neither version nor marker");
    assert!(fixture.delete_if("key", if_etag(&second.etag)).await.unwrap());
    assert!(matches!(fixture.put_if("key", b"c", if_etag(&second.etag)).await, Err(Error::NoSuchKey)));
    assert!(matches!(fixture.delete_if("key", if_etag(&second.etag)).await, Err(Error::NoSuchKey)));
    let any = Expected { size: Some(1), ..Expected::default() };
    assert!(!fixture.delete_if("key", Condition::Fits(any)).await.unwrap());
    assert_eq!(fixture.versions().await.len(), 3);
    fixture.put_if("key", b"c", Condition::Absent).await.unwrap();
    let old = Deletion { version: first.version, condition: if_etag(&second.etag), ..Deletion::default() };
    let refused = fixture.store.delete_version(&fixture.bucket, &object_key("key"), old).await;
    assert!(matches!(refused, Err(Error::PreconditionFailed)), "of a named version its own etag counts");
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_writers_all_get_a_version_and_conditional_ones_have_one_winner() {
    let fixture = Arc::new(Fixture::versioned().await);
    for condition in [Condition::None, Condition::Absent] {
        let key = if condition == Condition::None { "all" } else { "one" };
        let writers: Vec<_> = (0..16)
            .map(|n: u8| {
                let (fixture, condition) = (fixture.clone(), condition.clone());
                tokio::spawn(async move { fixture.put_if(key, &[n], condition).await.is_ok() })
            })
            .collect();
        let mut won = 0;
        for writer in writers {
            won += usize::from(writer.await.unwrap());
        }
        let query = ListQuery { prefix: key.to_owned(), limit: 1000, ..ListQuery::default() };
        let listed = fixture.all_versions(query).await;
        assert_eq!((won, listed.len()), if condition == Condition::None { (16, 16) } else { (1, 1) });
        assert_eq!(listed.iter().filter(|line| line.ends_with('*')).count(), 1);
    }
}

#[tokio::test]
async fn copies_and_completed_uploads_are_versions_too() {
    let fixture = Fixture::versioned().await;
    let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
    let old = fixture.version("key", &pattern(LARGE, 1)).await;
    fixture.put("key", b"new").await.unwrap();
    let copy = Copy { version: Some(old.clone()), now_ms: 5, ..Copy::default() };
    let restored = store.copy_version((bucket, &key), (bucket, &key), copy, |_| true).await.unwrap();
    assert!(restored.version.is_some() && restored.version != Some(old.clone()));
    assert!(fixture.read("key").await.unwrap() == pattern(LARGE, 1));
    assert_eq!((fixture.versions().await.len(), fixture.files().len()), (3, 1), "bytes are shared");
    fixture.delete_version("key", Some(&old)).await.unwrap();
    assert!(fixture.read("key").await.unwrap() == pattern(LARGE, 1));

    let id = store.create_upload(bucket, &key, NewUpload::default(), 1).await.unwrap();
    let sealed = fixture.sealed(b"part").await.unwrap();
    let part = store.publish_part(bucket, &key, &id, 1, sealed, 1).await.unwrap();
    let parts = vec![CompletedPart { number: 1, etag: part.etag, checksum: None }];
    let completed = store.complete_upload(bucket, &key, &id, parts, None, Condition::None, 1).await.unwrap();
    assert_eq!(fixture.read_version("key", &completed.version.unwrap()).await.unwrap(), b"part");
    let gone = Copy { version: Some(old), ..Copy::default() };
    let copied = store.copy_version((bucket, &key), (bucket, &key), gone, |_| true).await;
    assert!(matches!(copied, Err(Error::NoSuchVersion)));
}

#[tokio::test]
async fn listings_page_through_versions_of_any_size() {
    let fixture = Fixture::versioned().await;
    for (key, writes) in [("a", 3), ("a/b", 1), ("a/c", 2), ("b", 2), ("c/d", 1), ("e", 1)] {
        for n in 0..writes {
            fixture.put(key, &vec![0; n + 1]).await.unwrap();
        }
    }
    fixture.delete_version("b", None).await.unwrap();
    fixture.delete_version("c/d", None).await.unwrap();
    fixture.delete_version("never", None).await.unwrap();
    let query = |prefix: &str, delimiter: Option<&str>, limit| ListQuery {
        prefix: prefix.to_owned(),
        delimiter: delimiter.map(str::to_owned),
        after: None,
        limit,
    };
    for (prefix, delimiter) in
        [("", None), ("", Some("/")), ("a", None), ("a", Some("/")), ("a/", Some("/")), ("x", None)]
    {
        let whole = fixture.all_versions(query(prefix, delimiter, 1000)).await;
        for limit in [1, 2, 3] {
            assert_eq!(fixture.all_versions(query(prefix, delimiter, limit)).await, whole, "{prefix} {delimiter:?}");
        }
    }
    let grouped = fixture.all_versions(query("", Some("/"), 1000)).await;
    let names: Vec<String> = grouped
        .iter()
        .map(|line| {
            let mut words = line.split(' ');
            let (key, last) = (words.next().unwrap_or_default(), words.skip(1).collect::<Vec<_>>().join(" "));
            format!("{key} {last}")
        })
        .collect();
    assert_eq!(names, ["a 3 *", "a 2", "a 1", "a/… ", "b marker *", "b 2", "b 1", "c/… ", "e 1 *", "never marker *"]);
}

#[tokio::test]
async fn a_page_goes_on_where_it_was_when_its_last_version_is_gone() {
    let fixture = Fixture::versioned().await;
    let mut made = Vec::new();
    for n in 0..4 {
        made.push(fixture.version("key", &vec![0; n]).await);
    }
    let list = |after_version: Option<VersionId>| {
        let list = ListQuery { after: Some("key".to_owned()), limit: 10, ..ListQuery::default() };
        let listing = fixture.store.list_versions(&fixture.bucket, VersionsQuery { list, after_version });
        async { listing.await.unwrap().entries.iter().map(show).collect::<Vec<_>>() }
    };
    fixture.delete_version("key", Some(&made[2])).await.unwrap();
    let rest = [format!("key {} 1", made[1].as_str()), format!("key {} 0", made[0].as_str())];
    assert_eq!(list(Some(made[2].clone())).await, rest);
    // The newest of before is gone, and a marker that came after it is no longer hidden by anything.
    let marker = fixture.delete_version("key", None).await.unwrap().version.unwrap();
    let newest = fixture.version("key", b"x").await;
    fixture.delete_version("key", Some(&newest)).await.unwrap();
    assert_eq!(list(Some(newest)).await[0], format!("key {} marker *", marker.as_str()));
    assert!(list(None).await.is_empty(), "without a version the key was shown whole");
    assert_eq!(list(VersionId::parse("01BX5ZZKBKACTAV9WEVGEMMVRZ")).await.len(), 0);
}

#[tokio::test]
async fn a_bucket_goes_only_without_versions() {
    let fixture = Fixture::versioned().await;
    let (store, bucket) = (&fixture.store, &fixture.bucket);
    let version = fixture.version("key", b"a").await;
    assert!(matches!(store.delete_bucket(bucket).await, Err(Error::BucketHasVersions)));
    let marker = fixture.delete_version("key", None).await.unwrap().version;
    assert!(matches!(store.delete_bucket(bucket).await, Err(Error::BucketHasVersions)));
    fixture.delete_version("key", Some(&version)).await.unwrap();
    assert!(matches!(store.delete_bucket(bucket).await, Err(Error::BucketHasVersions)), "a marker is one");
    fixture.delete_version("key", marker.as_ref()).await.unwrap();
    store.delete_bucket(bucket).await.unwrap();
}

#[tokio::test]
async fn tags_belong_to_one_version() {
    let fixture = Fixture::versioned().await;
    let (store, bucket, key) = (&fixture.store, &fixture.bucket, object_key("key"));
    let tags = |value: &str| vec![("k".to_owned(), value.to_owned())];
    let sealed = fixture.sealed(b"a").await.unwrap();
    let kept = Kept { tags: tags("first"), ..Kept::default() };
    let first = store.publish(bucket, &key, sealed, kept, Condition::None, 1).await.unwrap().version;
    let second = Some(fixture.version("key", b"b").await);
    let found = |version: &Option<VersionId>| {
        let head = store.head_version(bucket, &key, version.clone());
        async { head.await.unwrap().tags }
    };
    assert_eq!((found(&first).await, found(&second).await), (tags("first"), vec![]));
    assert_eq!(store.set_tags(bucket, &key, None, tags("current")).await.unwrap(), second);
    assert_eq!(store.set_tags(bucket, &key, first.clone(), tags("changed")).await.unwrap(), first);
    assert_eq!((found(&first).await, found(&second).await), (tags("changed"), tags("current")));
    let copy = Copy { version: first.clone(), ..Copy::default() };
    let copied = store.copy_version((bucket, &key), (bucket, &object_key("to")), copy.clone(), |_| true).await.unwrap();
    assert_eq!(copied.tags, tags("changed"));
    let replaced = Copy { tags: Some(vec![]), ..copy };
    let copied = store.copy_version((bucket, &key), (bucket, &object_key("to")), replaced, |_| true).await.unwrap();
    assert!(copied.tags.is_empty());
    let marker = fixture.delete_version("key", None).await.unwrap().version;
    assert!(matches!(store.set_tags(bucket, &key, None, tags("x")).await, Err(Error::Deleted { .. })));
    assert!(matches!(store.set_tags(bucket, &key, marker, tags("x")).await, Err(Error::DeleteMarker { .. })));
    let none = store.set_tags(bucket, &object_key("none"), None, tags("x")).await;
    assert!(matches!(none, Err(Error::NoSuchKey)));
    assert_eq!((found(&first).await, found(&second).await), (tags("changed"), tags("current")));
}

#[tokio::test]
async fn a_locked_version_stays_whatever_is_written_over_it() {
    let fixture = Fixture::new().await;
    let (store, locking, key) = (&fixture.store, bucket_name("locking"), object_key("key"));
    store.create_locking_bucket(&locking, vec![], 1).await.unwrap();
    assert!(matches!(store.set_versioning(&locking, Versioning::Suspended).await, Err(Error::BucketLocks)));
    let lock = |mode| ObjectLock { retention: Some(Retention { mode, until_ms: 100 }), legal_hold: None };
    let put = |bucket: &BucketName, lock: ObjectLock| {
        let (bucket, kept, key) = (bucket.clone(), Kept { lock, ..Kept::default() }, key.clone());
        let fixture = &fixture;
        async move {
            let sealed = fixture.sealed(&pattern(MEDIUM, 1)).await.unwrap();
            fixture.store.publish(&bucket, &key, sealed, kept, Condition::None, 1).await
        }
    };
    let refused = put(&fixture.bucket, lock(RetentionMode::Governance)).await;
    assert!(matches!(refused, Err(Error::LockNotEnabled)));
    fixture.wait_for_files(0).await;

    let locked = put(&locking, lock(RetentionMode::Compliance)).await.unwrap().version;
    put(&locking, ObjectLock::default()).await.unwrap();
    let remove = |governance, now_ms| {
        let deletion = Deletion { version: locked.clone(), governance, now_ms, ..Deletion::default() };
        store.delete_versions(&locking, vec![(key.clone(), deletion)])
    };
    let refused = remove(Governance::Bypassed, 99).await.unwrap();
    assert!(matches!(refused[..], [Err(Error::Locked)]));
    let marker = Deletion { now_ms: 50, ..Deletion::default() };
    assert!(store.delete_version(&locking, &key, marker).await.unwrap().marker, "hiding it is no removal");

    let retain = |until_ms, governance| {
        let retention = Some(Retention { mode: RetentionMode::Compliance, until_ms });
        store.set_retention(&locking, &key, locked.clone(), retention, governance, 50)
    };
    assert!(matches!(retain(99, Governance::Bypassed).await, Err(Error::Locked)));
    retain(200, Governance::Obeyed).await.unwrap();
    assert!(matches!(remove(Governance::Obeyed, 199).await.unwrap()[..], [Err(Error::Locked)]));
    store.set_legal_hold(&locking, &key, locked.clone(), true).await.unwrap();
    assert!(matches!(remove(Governance::Obeyed, 200).await.unwrap()[..], [Err(Error::Locked)]));
    store.set_legal_hold(&locking, &key, locked.clone(), false).await.unwrap();
    assert!(matches!(remove(Governance::Obeyed, 200).await.unwrap()[..], [Ok(Deleted { existed: true, .. })]));

    let default = Some(DefaultRetention { mode: RetentionMode::Governance, period: RetentionPeriod::Days(1) });
    store.set_lock_configuration(&locking, LockConfiguration { default }).await.unwrap();
    let by_default = put(&locking, ObjectLock::default()).await.unwrap();
    let retention = Retention { mode: RetentionMode::Governance, until_ms: 86_400_001 };
    assert_eq!(by_default.lock.retention, Some(retention));
    let plain = store.set_lock_configuration(&fixture.bucket, LockConfiguration::default()).await;
    assert!(matches!(plain, Err(Error::VersioningNotEnabled)));
}

#[tokio::test]
async fn a_store_from_before_versions_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    index::make_first_format(folder.path(), "bucket", &[("a", b"first"), ("b", b"other")]);
    let store = Store::open(folder.path(), settings()).await.unwrap();
    let fixture = Fixture { store, bucket: bucket_name("bucket"), folder, faults: Arc::default() };
    assert_eq!(fixture.keys().await, ["a", "b"]);
    assert_eq!(fixture.read("a").await.unwrap(), b"first");
    assert_eq!(fixture.versions().await, ["a null 5 *", "b null 5 *"]);
    assert_eq!(fixture.put("b", b"over").await.unwrap().version, None);
    fixture.set_versioning(Versioning::Enabled).await;
    let newer = fixture.version("a", b"newer").await;
    let shown = [format!("a {} 5 *", newer.as_str()), "a null 5".to_owned(), "b null 4 *".to_owned()];
    assert_eq!(fixture.versions().await, shown);
    assert_eq!(fixture.read_version("a", &VersionId::Null).await.unwrap(), b"first");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.read("a").await.unwrap(), b"newer");
}

/// The pages of SQLite a listing reads do not grow with what lies below the current versions.
#[tokio::test]
async fn listing_costs_nothing_for_versions_below() {
    let fixture = Fixture::versioned().await;
    for key in ["a", "b", "c"] {
        for _ in 0..1000 {
            fixture.put(key, b"x").await.unwrap();
        }
    }
    assert_eq!(fixture.keys().await, ["a", "b", "c"]);
    let rows = fixture
        .store
        .0
        .index
        .look_up(|index| Ok(index.query_row("select count(*) from objects", [], |row| row.get::<_, i64>(0))?));
    assert_eq!(rows.await.unwrap(), 3, "what a listing scans");
    let query = ListQuery { limit: 2, delimiter: Some("/".to_owned()), ..ListQuery::default() };
    let page = fixture.store.list_versions(&fixture.bucket, VersionsQuery { list: query, after_version: None }).await;
    assert_eq!(page.unwrap().entries.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn damage_to_an_old_version_is_listed_as_that_version() {
    let fixture = Fixture::versioned().await;
    let old = fixture.version("key", &pattern(LARGE, 1)).await;
    fixture.put("key", b"new").await.unwrap();
    let file = fixture.files().pop().unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    fixture.store.scrub_now().await.unwrap();
    let (damages, count) = fixture.store.damages().await.unwrap();
    let named: Vec<_> = damages.iter().map(|damage| (damage.key.as_str(), damage.version.as_str())).collect();
    assert_eq!((named, count), (vec![("key", old.as_str())], 1));
    assert!(matches!(fixture.read_version("key", &old).await, Err(Error::Damaged(_))));
    assert_eq!(fixture.read("key").await.unwrap(), b"new");
}

#[tokio::test]
async fn a_conditional_write_sent_again_makes_no_second_version() {
    let fixture = Fixture::versioned().await;
    let (bucket, key) = (&fixture.bucket, object_key("key"));
    let attempt = Attempt { caller: "c".to_owned(), id: "1".to_owned() };
    let put = || async {
        let sealed = fixture.sealed(b"x").await.unwrap();
        let terms = Terms::new(Condition::Absent, Some(attempt.clone()));
        fixture.store.publish(bucket, &key, sealed, Kept::default(), terms, 7).await
    };
    let first = put().await.unwrap().version;
    assert_eq!(put().await.unwrap().version, first);
    assert_eq!(fixture.versions().await.len(), 1);
    fixture.delete_version("key", None).await.unwrap();
    assert_ne!(put().await.unwrap().version, first, "behind a marker it is judged anew");
}
