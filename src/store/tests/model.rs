//! Random operations of several clients against what a store is in memory: versions, tags, conditions, multipart, copies.
//!
//! Each client has a bucket of its own, so that it knows what is there, and switches its versioning as it goes; all
//! clients write at once, so that their changes share transactions. Between rounds the store is closed and opened, and
//! everything is compared. In one more bucket all of them raise one number by conditional writes: none may be lost.
//!
//! `SEED` replays the operations (not how the clients interleave); `MODEL_OPERATIONS` says how many there are.

use super::*;
use std::collections::BTreeMap;
use tokio::task::JoinSet;

const OPERATIONS: usize = 4_000;
const CLIENTS: usize = 16;
const ROUNDS: usize = 4;
/// Operations between two comparisons of all that a client has.
const COMPARED_EVERY: usize = 25;
const KEYS: [&str; 7] = ["a", "a/b", "a/b/c", "b", "é", "/x", "c/"];
/// Versions of a key beyond which its oldest are removed.
const VERSIONS_MAX: usize = 12;
const COUNTER: &str = "counter";

#[tokio::test(flavor = "multi_thread")]
async fn the_store_behaves_as_its_model_does() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("SEED").unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
    let operations = number("MODEL_OPERATIONS").map_or(OPERATIONS, |operations| operations as usize);
    println!("SEED={seed} MODEL_OPERATIONS={operations}");
    let mut fixture = Fixture::new().await;
    let mut clients: Vec<Client> = Vec::new();
    for number in 0..CLIENTS {
        clients.push(Client::new(&fixture.store, number, seed).await);
    }
    let mut raised = 0;
    for _ in 0..ROUNDS {
        let mut running = JoinSet::new();
        for mut client in clients.drain(..) {
            client.store = fixture.store.clone();
            let shared = fixture.bucket.clone();
            running.spawn(async move {
                for operation in 0..operations.div_ceil(CLIENTS * ROUNDS) {
                    client.operate().await;
                    if operation % COMPARED_EVERY == 0 {
                        client.compare().await;
                        client.raise_counter(&shared).await;
                    }
                }
                client.compare().await;
                client
            });
        }
        clients = running.join_all().await;
        raised = clients.iter().map(|client| client.raised).sum::<u64>();
        fixture = fixture.reopen().await;
        for client in &mut clients {
            client.store = fixture.store.clone();
            client.compare().await;
            client.read_everything().await;
        }
    }
    assert_eq!(fixture.read(COUNTER).await.unwrap(), raised.to_string().as_bytes(), "SEED={seed}");
    for client in &mut clients {
        client.remove_everything().await;
    }
    fixture.delete(COUNTER).await.unwrap();
    fixture.wait_for_files(0).await;
}

/// A version as the model has it; without a body it is a marker.
#[derive(Debug, Clone)]
struct Version {
    id: VersionId,
    body: Option<Arc<[u8]>>,
    etag: String,
    tags: Tags,
}

/// One client, its bucket, and what is in there, the newest version of each key first.
struct Client {
    store: Store,
    bucket: BucketName,
    random: Random,
    versioning: Versioning,
    keys: BTreeMap<String, Vec<Version>>,
    raised: u64,
    now_ms: i64,
}

impl Client {
    async fn new(store: &Store, number: usize, seed: u64) -> Self {
        let bucket = bucket_name(&format!("client-{number}"));
        store.create_bucket(&bucket, 1).await.unwrap();
        let mut random = Random((seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1);
        random.next();
        let (versioning, keys) = (Versioning::Never, BTreeMap::new());
        Self { store: store.clone(), bucket, random, versioning, keys, raised: 0, now_ms: 1 }
    }

    async fn operate(&mut self) {
        self.now_ms += self.random.below(3) as i64;
        let key = KEYS[self.random.below(KEYS.len())];
        match self.random.below(100) {
            0..28 => self.put(key).await,
            28..42 => self.delete_current(key).await,
            42..52 => self.delete_version(key).await,
            52..62 => self.copy(key).await,
            62..68 => self.multipart(key).await,
            68..76 => self.set_tags(key).await,
            76..97 => self.read(key).await,
            _ => self.switch_versioning().await,
        }
        while self.keys.get(key).is_some_and(|versions| versions.len() > VERSIONS_MAX) {
            let oldest = self.keys[key].last().map(|version| version.id.clone());
            self.remove(key, oldest.unwrap()).await;
        }
    }

    fn body(&mut self) -> Vec<u8> {
        // Mostly small: large ones are files, each with syncs of its own.
        let size = match self.random.below(200) {
            0 => LARGE,
            1..4 => MEDIUM,
            4..20 => 5000,
            n => n - 20,
        };
        pattern(size, self.random.next())
    }

    fn tags(&mut self) -> Tags {
        (0..self.random.below(3)).map(|n| (format!("k{n}"), self.random.below(100).to_string())).collect()
    }

    fn current(&self, key: &str) -> Option<&Version> {
        self.keys.get(key)?.first().filter(|version| version.body.is_some())
    }

    /// A condition, and what it says of what is there now.
    fn condition(&mut self, key: &str) -> (Condition, bool) {
        let etag = self.current(key).map(|version| version.etag.clone());
        match self.random.below(6) {
            0 => (Condition::Absent, etag.is_none()),
            1 => (Condition::Etag(etag.clone().unwrap_or_default()), etag.is_some()),
            2 => (Condition::Etag("other".to_owned()), false),
            _ => (Condition::None, true),
        }
    }

    /// What a new version does to those there are.
    fn add(&mut self, key: &str, made: Version) {
        let versions = self.keys.entry(key.to_owned()).or_default();
        match self.versioning {
            Versioning::Never => versions.clear(),
            Versioning::Enabled => {
                assert!(matches!(made.id, VersionId::Id(_)));
                assert!(versions.iter().all(|version| version.id != made.id), "an id names one version");
            }
            Versioning::Suspended => {
                assert_eq!(made.id, VersionId::Null);
                versions.retain(|version| version.id != VersionId::Null);
            }
        }
        versions.insert(0, made);
    }

    /// Notes what a write made.
    fn made(&mut self, key: &str, info: &ObjectInfo, body: Arc<[u8]>, tags: Tags) {
        assert_eq!(info.version.is_some(), self.versioning != Versioning::Never);
        let id = info.version.clone().unwrap_or(VersionId::Null);
        self.add(key, Version { id, body: Some(body), etag: info.etag.clone(), tags });
    }

    async fn sealed(&self, bytes: &[u8]) -> Sealed {
        let mut upload = self.store.begin(None);
        upload.write(Bytes::copy_from_slice(bytes)).await.unwrap();
        upload.seal().await.unwrap()
    }

    async fn put(&mut self, key: &str) {
        let (body, tags) = (self.body(), self.tags());
        let (condition, holds) = self.condition(key);
        let kept = Kept { tags: tags.clone(), ..Kept::default() };
        let sealed = self.sealed(&body).await;
        match self.store.publish(&self.bucket, &object_key(key), sealed, kept, condition, self.now_ms).await {
            Ok(info) => {
                assert!(holds, "{key}");
                self.made(key, &info, body.into(), tags);
            }
            Err(Error::PreconditionFailed | Error::NoSuchKey) => assert!(!holds, "{key}"),
            Err(error) => panic!("{error}"),
        }
    }

    async fn copy(&mut self, from: &str) {
        let to = KEYS[self.random.below(KEYS.len())];
        let (condition, holds) = self.condition(to);
        let tags = (self.random.below(2) == 0).then(|| self.tags());
        let source = self.any_version(from);
        let copy = Copy {
            version: source.clone().map(|version| version.id),
            tags: tags.clone(),
            terms: condition.into(),
            now_ms: self.now_ms,
            ..Copy::default()
        };
        let (from, target) = (object_key(from), object_key(to));
        let copied = self.store.copy_version((&self.bucket, &from), (&self.bucket, &target), copy, |_| true).await;
        match (copied, source) {
            (Ok(info), Some(Version { body: Some(body), tags: kept, .. })) => {
                assert!(holds, "{to}");
                self.made(to, &info, body, tags.unwrap_or(kept));
            }
            (Err(Error::PreconditionFailed | Error::NoSuchKey), Some(Version { body: Some(_), .. })) => {
                assert!(!holds, "{to}");
            }
            (Err(Error::DeleteMarker { .. }), Some(Version { body: None, .. })) | (Err(Error::NoSuchKey), None) => {}
            (copied, source) => panic!("{copied:?} {source:?}"),
        }
    }

    /// Any version of a key there is.
    fn any_version(&mut self, key: &str) -> Option<Version> {
        let versions = self.keys.get(key).filter(|versions| !versions.is_empty())?;
        Some(versions[self.random.below(versions.len())].clone())
    }

    async fn multipart(&mut self, key: &str) {
        let (tags, object) = (self.tags(), object_key(key));
        let new = NewUpload { kept: Kept { tags: tags.clone(), ..Kept::default() }, checksum: None };
        let id = self.store.create_upload(&self.bucket, &object, new, self.now_ms).await.unwrap();
        let (mut parts, mut whole) = (Vec::new(), Vec::new());
        for number in 1..=1 + self.random.below(4) as u32 {
            let bytes = self.body();
            let sealed = self.sealed(&bytes).await;
            let part = self.store.publish_part(&self.bucket, &object, &id, number, sealed, 1).await.unwrap();
            // Some parts are sent and not used.
            if number == 1 || self.random.below(4) > 0 {
                parts.push(CompletedPart { number, etag: part.etag, checksum: None });
                whole.extend(bytes);
            }
        }
        if self.random.below(4) == 0 {
            return self.store.abort_upload(&self.bucket, &object, &id).await.unwrap();
        }
        let (condition, holds) = self.condition(key);
        let completion = Completion { parts, checksum: None, condition, part_bytes_min: 0, now_ms: self.now_ms };
        match self.store.complete(upload_address(&self.bucket, &object, &id), completion).await {
            Ok(info) => {
                assert!(holds, "{key}");
                self.made(key, &info, whole.into(), tags);
            }
            Err(Error::PreconditionFailed | Error::NoSuchKey) => {
                assert!(!holds, "{key}");
                self.store.abort_upload(&self.bucket, &object, &id).await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn delete_current(&mut self, key: &str) {
        let (condition, holds) = self.condition(key);
        let existed = self.current(key).is_some();
        let deletion = Deletion { condition, now_ms: self.now_ms, ..Deletion::default() };
        let deleted = match self.store.delete_version(&self.bucket, &object_key(key), deletion).await {
            Ok(deleted) => deleted,
            Err(Error::PreconditionFailed | Error::NoSuchKey) => return assert!(!holds, "{key}"),
            Err(error) => panic!("{error}"),
        };
        assert!(holds, "{key}");
        assert_eq!((deleted.existed, deleted.marker), (existed, self.versioning != Versioning::Never), "{key}");
        match deleted.version {
            None => drop(self.keys.remove(key)),
            Some(id) => self.add(key, Version { id, body: None, etag: String::new(), tags: Tags::new() }),
        }
    }

    async fn delete_version(&mut self, key: &str) {
        match self.any_version(key) {
            Some(version) => self.remove(key, version.id).await,
            None => {
                let unknown = VersionId::parse("00000000000000010000000000000001");
                let deletion = Deletion { version: unknown, ..Deletion::default() };
                let deleted = self.store.delete_version(&self.bucket, &object_key(key), deletion).await.unwrap();
                assert!(!deleted.existed);
            }
        }
    }

    async fn remove(&mut self, key: &str, id: VersionId) {
        let deletion = Deletion { version: Some(id.clone()), now_ms: self.now_ms, ..Deletion::default() };
        let deleted = self.store.delete_version(&self.bucket, &object_key(key), deletion).await.unwrap();
        let versions = self.keys.get_mut(key).unwrap();
        let at = versions.iter().position(|version| version.id == id).unwrap();
        let gone = versions.remove(at);
        assert_eq!(deleted, Deleted { existed: true, version: Some(id), marker: gone.body.is_none() });
        if versions.is_empty() {
            self.keys.remove(key);
        }
    }

    async fn set_tags(&mut self, key: &str) {
        let tags = self.tags();
        let Some(version) = self.any_version(key) else {
            let none = self.store.set_tags(&self.bucket, &object_key(key), None, tags).await;
            return assert!(matches!(none, Err(Error::NoSuchKey)));
        };
        let set = self.store.set_tags(&self.bucket, &object_key(key), Some(version.id.clone()), tags.clone()).await;
        match set {
            Ok(_) => assert!(version.body.is_some()),
            Err(Error::DeleteMarker { .. }) => return assert!(version.body.is_none()),
            Err(error) => panic!("{error}"),
        }
        let versions = self.keys.get_mut(key).unwrap();
        versions.iter_mut().find(|known| known.id == version.id).unwrap().tags = tags;
    }

    /// The current object, or any version.
    async fn read(&mut self, key: &str) {
        if self.random.below(3) > 0 {
            let expected = self.current(key).cloned();
            let marked = self.keys.contains_key(key);
            return match (self.read_part(key, None, expected.as_ref()).await, expected) {
                (Ok(()), Some(_)) => {}
                (Err(Error::Deleted { .. }), None) => assert!(marked, "{key}"),
                (Err(Error::NoSuchKey), None) => assert!(!marked, "{key}"),
                (outcome, expected) => panic!("{key}: {outcome:?} {expected:?}"),
            };
        }
        let Some(version) = self.any_version(key) else { return };
        match self.read_part(key, Some(version.id.clone()), Some(&version)).await {
            Ok(()) => assert!(version.body.is_some()),
            Err(Error::DeleteMarker { .. }) => assert!(version.body.is_none()),
            Err(error) => panic!("{key} {version:?}: {error}"),
        }
    }

    /// Reads a random range and compares all that is told.
    async fn read_part(&mut self, key: &str, id: Option<VersionId>, expected: Option<&Version>) -> Result<()> {
        let whole = expected.and_then(|version| version.body.clone()).unwrap_or_default();
        let start = self.random.below(whole.len() + 1);
        let end = start + self.random.below(whole.len() - start + 1);
        let pick = move |_: &ObjectInfo| Some(start as u64..end as u64);
        let reading = self.store.read_version(&self.bucket, &object_key(key), id, pick).await?;
        let expected = expected.expect("the model has it too");
        assert_eq!((reading.info.size, &reading.info.etag), (whole.len() as u64, &expected.etag), "{key}");
        assert_eq!(reading.info.tags, expected.tags, "{key}");
        assert!(collect(reading).await? == whole[start..end], "{key} {start}..{end}");
        Ok(())
    }

    async fn switch_versioning(&mut self) {
        let wanted = if self.random.below(3) > 0 { Versioning::Enabled } else { Versioning::Suspended };
        self.store.set_versioning(&self.bucket, wanted).await.unwrap();
        self.versioning = wanted;
    }

    /// Raises the number that all clients share; whoever finds it changed lets it be.
    async fn raise_counter(&mut self, shared: &BucketName) {
        let key = object_key(COUNTER);
        let pick = |info: &ObjectInfo| Some(0..info.size);
        let (number, condition) = match self.store.read(shared, &key, pick).await {
            Ok(reading) => {
                let condition = Condition::Etag(reading.info.etag.clone());
                let text = String::from_utf8(collect(reading).await.unwrap()).unwrap();
                (text.parse::<u64>().unwrap(), condition)
            }
            Err(Error::NoSuchKey) => (0, Condition::Absent),
            Err(error) => panic!("{error}"),
        };
        let sealed = self.sealed((number + 1).to_string().as_bytes()).await;
        match self.store.publish(shared, &key, sealed, Kept::default(), condition, 1).await {
            Ok(_) => self.raised += 1,
            Err(Error::PreconditionFailed) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Both listings, by pages of a random size.
    async fn compare(&mut self) {
        let limit = 1 + self.random.below(9);
        let current = self.keys.keys().filter(|key| self.current(key).is_some());
        let (current, mut listed): (Vec<String>, Vec<String>) = (current.cloned().collect(), Vec::new());
        let mut query = ListQuery { limit, ..ListQuery::default() };
        loop {
            let page = self.store.list(&self.bucket, query.clone()).await.unwrap();
            listed.extend(page.entries.iter().map(entry_name));
            let Some(after) = page.next else { break };
            query.after = Some(after);
        }
        assert_eq!(listed, current);

        let mut query = VersionsQuery { list: ListQuery { limit, ..ListQuery::default() }, after_version: None };
        let mut listed = Vec::new();
        loop {
            let page = self.store.list_versions(&self.bucket, query.clone()).await.unwrap();
            listed.extend(page.entries);
            let Some((after, version)) = page.next else { break };
            (query.list.after, query.after_version) = (Some(after), version);
        }
        let shown = listed.into_iter().map(|entry| match entry {
            VersionEntry::Object { info, latest } => {
                (info.key.as_str().to_owned(), info.version.unwrap(), Some((info.size, info.etag)), latest)
            }
            VersionEntry::Marker { key, version, latest, .. } => (key.as_str().to_owned(), version, None, latest),
            VersionEntry::CommonPrefix(prefix) => panic!("{prefix}"),
        });
        let expected = self.keys.iter().flat_map(|(key, versions)| {
            versions.iter().enumerate().map(move |(at, version)| {
                let told = version.body.as_ref().map(|body| (body.len() as u64, version.etag.clone()));
                (key.clone(), version.id.clone(), told, at == 0)
            })
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    async fn read_everything(&mut self) {
        for (key, versions) in self.keys.clone() {
            for version in versions.iter().filter(|version| version.body.is_some()) {
                let pick = |info: &ObjectInfo| Some(0..info.size);
                let reading =
                    self.store.read_version(&self.bucket, &object_key(&key), Some(version.id.clone()), pick).await;
                assert!(collect(reading.unwrap()).await.unwrap() == **version.body.as_ref().unwrap(), "{key}");
            }
        }
    }

    async fn remove_everything(&mut self) {
        for (key, versions) in self.keys.clone() {
            for version in versions {
                self.remove(&key, version.id).await;
            }
        }
        self.store.delete_bucket(&self.bucket).await.unwrap();
    }
}
