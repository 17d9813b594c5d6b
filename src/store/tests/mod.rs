//! The store through its own door: what it promises its callers, with and without a failing disk.

mod bucket_store;
mod crash;
mod faults;
mod flips;
mod lifecycle;
mod listing;
mod model;
mod multipart;
mod objects;
mod recovery;
mod retries;
mod scrub;
mod settings;
mod versions;

use super::*;
use bytes::Bytes;
use futures_util::TryStreamExt;
use tempfile::TempDir;

/// More than a batch, so that writes, reads and sums cross every border.
const LARGE: usize = (1 << 20) + 70_001;
/// More than stays beside the index, less than a block more.
const MEDIUM: usize = (64 << 10) + 1;

fn settings() -> StoreSettings {
    StoreSettings { reserve_bytes: 0, ..StoreSettings::default() }
}

/// A store in a folder of its own, with one bucket.
struct Fixture {
    store: Store,
    bucket: BucketName,
    folder: TempDir,
    faults: Arc<Faults>,
}

impl Fixture {
    async fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap()).await
    }

    async fn within(folder: TempDir) -> Self {
        let faults = Arc::new(Faults::default());
        let store = Store::open_with(folder.path(), settings(), Some(faults.clone())).await.unwrap();
        let bucket = bucket_name("bucket");
        store.create_bucket(&bucket, 1).await.unwrap();
        Self { store, bucket, folder, faults }
    }

    /// Closes and opens again.
    async fn reopen(self) -> Self {
        self.store.close().await;
        let Self { bucket, folder, faults, .. } = self;
        faults.clear();
        let store = Store::open_with(folder.path(), settings(), Some(faults.clone())).await.unwrap();
        Self { store, bucket, folder, faults }
    }

    async fn sealed(&self, bytes: &[u8]) -> Result<Sealed> {
        let mut upload = self.store.begin(None);
        for chunk in bytes.chunks(100_000) {
            upload.write(Bytes::copy_from_slice(chunk)).await?;
        }
        upload.seal().await
    }

    async fn put(&self, key: &str, bytes: &[u8]) -> Result<ObjectInfo> {
        self.put_if(key, bytes, Condition::None).await
    }

    async fn put_if(&self, key: &str, bytes: &[u8], condition: Condition) -> Result<ObjectInfo> {
        let sealed = self.sealed(bytes).await?;
        self.store.publish(&self.bucket, &object_key(key), sealed, ObjectHeaders::default(), condition, 7).await
    }

    async fn read(&self, key: &str) -> Result<Vec<u8>> {
        self.read_range(key, 0..u64::MAX).await
    }

    async fn read_range(&self, key: &str, range: Range<u64>) -> Result<Vec<u8>> {
        collect(self.store.read(&self.bucket, &object_key(key), move |_| Some(range)).await?).await
    }

    async fn delete(&self, key: &str) -> Result<bool> {
        self.delete_if(key, Condition::None).await
    }

    /// Whether there was one.
    async fn delete_if(&self, key: &str, condition: Condition) -> Result<bool> {
        let deletion = Deletion { condition, now_ms: 7, ..Deletion::default() };
        Ok(self.store.delete_version(&self.bucket, &object_key(key), deletion).await?.existed)
    }

    async fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let mut after = None;
        loop {
            let query = ListQuery { after, limit: 1000, ..ListQuery::default() };
            let page = self.store.list(&self.bucket, query).await.unwrap();
            keys.extend(page.entries.iter().map(entry_name));
            match page.next {
                Some(next) => after = Some(next),
                None => return keys,
            }
        }
    }

    /// The large files there are, names with their folder.
    fn files(&self) -> Vec<String> {
        files(self.folder.path())
    }

    /// Waits for the reaper.
    async fn wait_for_files(&self, count: usize) {
        wait_until(|| self.files().len() == count).await;
    }
}

/// A folder for a store of many: in memory where there is enough, since nothing is synced there for nothing.
fn scratch() -> TempDir {
    const MEMORY: &str = "/dev/shm";
    const ENOUGH_BYTES: u64 = 1 << 30;
    let is_enough = rustix::fs::statvfs(MEMORY).is_ok_and(|disk| disk.f_bavail * disk.f_frsize >= ENOUGH_BYTES);
    if is_enough { tempfile::tempdir_in(MEMORY).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for fan in std::fs::read_dir(folder.join("files")).unwrap() {
        for file in std::fs::read_dir(fan.unwrap().path()).unwrap() {
            files.push(file.unwrap().path().to_str().unwrap().to_owned());
        }
    }
    files
}

fn entry_name(entry: &ListEntry) -> String {
    match entry {
        ListEntry::Object(object) => object.key.as_str().to_owned(),
        ListEntry::CommonPrefix(prefix) => prefix.clone(),
    }
}

async fn collect(reading: Reading) -> Result<Vec<u8>> {
    let range = reading.range.clone();
    let bytes = reading.stream.try_fold(Vec::new(), |mut all, chunk| async move {
        all.extend_from_slice(&chunk);
        Ok(all)
    });
    let bytes = bytes.await?;
    assert_eq!(bytes.len() as u64, range.end - range.start, "the stream yields the range it promised");
    Ok(bytes)
}

fn bucket_name(name: &str) -> BucketName {
    BucketName::parse(name).unwrap()
}

fn object_key(key: &str) -> ObjectKey {
    ObjectKey::parse(key).unwrap()
}

/// Bytes that differ from block to block.
fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed | 1);
    let mut bytes: Vec<u8> = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A small generator (xorshift) whose seed a failing test prints.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

async fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !holds() {
        assert!(std::time::Instant::now() < deadline, "waited too long");
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
}

/// Opens a folder whose former store was dropped: its threads may take a moment to let go.
async fn open_when_free(folder: &Path) -> Store {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        match Store::open(folder, settings()).await {
            Err(Error::Folder(_)) if std::time::Instant::now() < deadline => tokio::task::yield_now().await,
            opened => return opened.unwrap(),
        }
    }
}
