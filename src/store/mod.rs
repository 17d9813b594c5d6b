//! The embedded object store: an index, small objects beside it, large ones in files of their own.
//!
//! Knows buckets, keys and bytes; knows nothing of HTTP, tables or who is asking. Acknowledged means on disk: when
//! [`Store::publish`] returns, bytes and record are synced. A crash leaves the old object or the new one, and at most
//! files that no record names, which the next start collects.

mod blocking;
mod checksum;
mod disk;
mod health;
mod index;
mod lock;
mod multipart;
mod names;
mod object_parts;
mod object_store;
mod reading;
mod reaper;
mod recover;
mod scrub;
mod settings;
#[cfg(test)]
mod tests;
mod types;
mod upload;
mod verify;

pub use checksum::Hasher;
pub use names::{BucketName, ObjectKey};
pub use settings::{BucketSettings, SettingName};
pub use types::{
    Attempt, Checksum, ChecksumAlgorithm, ChecksumType, CompletedPart, Condition, Error, ListEntry, ListPage,
    ListQuery, NewUpload, ObjectHeaders, ObjectInfo, ObjectPart, OpenUploadInfo, PartInfo, Reading, Result,
    StoreSettings, Terms, UploadChecksum,
};
pub use upload::{Sealed, Upload};
pub use verify::{Damage, Pass, Stats, Verification, damages, stats, verify};

use blocking::Blocking;
use disk::{Disk, Faults};
use health::Health;
use index::{Index, buckets, listing, objects, retries, uploads, uploads::UploadAddress};
use lock::FolderLock;
use multipart::{Completion, PART_BYTES_MIN};
use reaper::{Pins, Reaped, Reaper};
use scrub::Suspects;
use settings::SettingsCache;
use std::{
    ops::Range,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};
use types::Address;

/// An open store. Cheap to clone. One process owns the folder (flock).
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    index: Index,
    disk: Disk,
    pins: Arc<Pins>,
    reaper: Reaper,
    reaper_thread: Mutex<Option<JoinHandle<()>>>,
    blocking: Blocking,
    suspects: Suspects,
    health: Arc<Health>,
    settings: SettingsCache,
    /// Given up on closing; the threads hold it too, for as long as they may write.
    lock: Mutex<Option<Arc<FolderLock>>>,
    small_bytes_max: u64,
}

impl Store {
    /// Opens or makes the store under `folder`, recovers, and collects files that no record names.
    ///
    /// # Errors
    /// `Error::Folder` where another process has the folder or a newer release wrote it.
    pub async fn open(folder: &Path, settings: StoreSettings) -> Result<Store> {
        Self::open_with(folder, settings, None).await
    }

    async fn open_with(folder: &Path, settings: StoreSettings, faults: Option<Arc<Faults>>) -> Result<Store> {
        let folder = folder.to_owned();
        let opening = tokio::task::spawn_blocking(move || Inner::open(&folder, &settings, faults));
        blocking::joined(opening).await.map(|inner| Store(Arc::new(inner)))
    }

    /// Checkpoints and closes the index. The folder may be opened again afterwards; calls on this store fail.
    pub async fn close(&self) {
        let inner = &self.0;
        inner.health.close();
        inner.reaper.stop();
        let reaper = inner.reaper_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reaper) = reaper {
            let _ = tokio::task::spawn_blocking(move || reaper.join()).await;
        }
        inner.index.close().await;
        inner.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns once the disk has failed a sync: every later call fails, and the process should stop and start again.
    pub async fn failed(&self) {
        self.0.health.failed().await;
    }

    /// # Errors
    /// `Error::BucketExists`.
    pub async fn create_bucket(&self, bucket: &BucketName, now_ms: i64) -> Result<()> {
        let bucket = bucket.clone();
        self.0.disk.require_room(0)?;
        self.0.index.change(move |write| buckets::create(write, &bucket, now_ms)).await
    }

    /// Open uploads go with the bucket.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::BucketNotEmpty`.
    pub async fn delete_bucket(&self, bucket: &BucketName) -> Result<()> {
        let named = bucket.clone();
        self.change_settings(bucket, move |write| buckets::delete(write, &named)).await
    }

    pub async fn bucket_exists(&self, bucket: &BucketName) -> Result<bool> {
        let bucket = bucket.clone();
        self.0.index.look_up(move |index| buckets::exists(index, &bucket)).await
    }

    /// Names and creation times (ms), in name order.
    pub async fn list_buckets(&self) -> Result<Vec<(BucketName, i64)>> {
        self.0.index.look_up(buckets::list).await
    }

    /// Starts writing bytes; MD5 is always computed, `checksum` besides.
    pub fn begin(&self, checksum: Option<ChecksumAlgorithm>) -> Upload {
        Upload::new(self.0.clone(), checksum)
    }

    /// Makes sealed bytes the object `key`, atomically and durably. Where the terms name an attempt that has done so
    /// already, and nobody has replaced the object since, answers what it was answered then.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::PreconditionFailed`, `Error::NoSuchKey` (an etag asked for, no object there),
    /// `Error::Full`. In each of them nothing has changed.
    pub async fn publish(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        sealed: Sealed,
        headers: ObjectHeaders,
        terms: impl Into<Terms>,
        now_ms: i64,
    ) -> Result<ObjectInfo> {
        let terms = terms.into();
        let address = Address::new(bucket, key);
        let info = ObjectInfo {
            key: key.clone(),
            size: sealed.size,
            etag: hex::encode(sealed.md5),
            last_modified_ms: now_ms,
            headers,
            checksum: sealed.checksum.as_ref().map(|(algorithm, digest)| checksum::of_body(*algorithm, digest)),
            parts: None,
        };
        let publish = move |write: &mut index::Write<'_>| {
            if let Some(made) = retries::done_before(write.index, &address, &terms, &info.etag, now_ms)? {
                return Ok(made);
            }
            objects::publish(write, &address, sealed.body, &info, &terms.condition)?;
            retries::remember(write, &address, &terms, &info)?;
            Ok(info)
        };
        self.0.index.change(publish).await
    }

    /// Whether a conditional write of this attempt was done within the last minutes: its condition says nothing then.
    pub async fn was_done(&self, bucket: &BucketName, key: &ObjectKey, terms: &Terms, now_ms: i64) -> Result<bool> {
        let Some(attempt) = terms.attempt().cloned() else { return Ok(false) };
        let address = Address::new(bucket, key);
        self.0.index.look_up(move |index| retries::is_known(index, &address, &attempt, now_ms)).await
    }

    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchKey`.
    pub async fn head(&self, bucket: &BucketName, key: &ObjectKey) -> Result<ObjectInfo> {
        let address = Address::new(bucket, key);
        self.0.index.look_up(move |index| objects::head(index, &address)).await
    }

    /// Opens the object as of now: later overwrites and deletes do not disturb the stream. `range` is applied by `pick`
    /// from the object's info so that conditions and ranges are decided on the same version that is read; `pick`
    /// returning `None` reads nothing (`stream` is empty, `range` 0..0). `pick` runs on a thread shared by all readers.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchKey`; here or in the stream `Error::Damaged`.
    pub async fn read(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        pick: impl FnOnce(&ObjectInfo) -> Option<Range<u64>> + Send + 'static,
    ) -> Result<Reading> {
        reading::open(&self.0, Address::new(bucket, key), pick).await
    }

    /// Whether there was one: deleting a missing key succeeds.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`; with a condition `Error::PreconditionFailed`, `Error::NoSuchKey`.
    pub async fn delete(&self, bucket: &BucketName, key: &ObjectKey, condition: Condition) -> Result<bool> {
        let address = Address::new(bucket, key);
        self.free(move |write| objects::delete(write, &address, &condition)).await
    }

    /// Deletes many keys in one durable step; answers one result a key, in order.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn delete_many(&self, bucket: &BucketName, keys: Vec<ObjectKey>) -> Result<Vec<bool>> {
        let bucket = bucket.clone();
        let delete_all = move |write: &mut index::Write<'_>| {
            buckets::require(write.index, &bucket)?;
            let delete = |key: &ObjectKey| objects::delete(write, &Address::new(&bucket, key), &Condition::None);
            keys.iter().map(delete).collect()
        };
        self.free(delete_all).await
    }

    /// Copies within the store without reading the bytes through the caller; `headers` `None` keeps the source's. The
    /// copy shares the source's bytes, etag, checksum and parts. `check` decides on the source's version that is
    /// copied; it runs on the one thread that commits, so it must be quick. Asked again, as [`Store::publish`].
    ///
    /// # Errors
    /// `Error::PreconditionFailed` where `check` says no or the condition does not hold; otherwise as
    /// [`Store::publish`], and `Error::NoSuchKey` without a source.
    pub async fn copy(
        &self,
        from: (&BucketName, &ObjectKey),
        to: (&BucketName, &ObjectKey),
        headers: Option<ObjectHeaders>,
        check: impl FnOnce(&ObjectInfo) -> bool + Send + 'static,
        terms: impl Into<Terms>,
        now_ms: i64,
    ) -> Result<ObjectInfo> {
        let terms = terms.into();
        let (from, to) = (Address::new(from.0, from.1), Address::new(to.0, to.1));
        self.0.disk.require_room(0)?;
        let copy = move |write: &mut index::Write<'_>| {
            if terms.attempt().is_some() {
                let etag = objects::head(write.index, &from)?.etag;
                if let Some(made) = retries::done_before(write.index, &to, &terms, &etag, now_ms)? {
                    return Ok(made);
                }
            }
            let info = objects::copy(write, &from, &to, headers, check, &terms.condition, now_ms)?;
            retries::remember(write, &to, &terms, &info)?;
            Ok(info)
        };
        self.0.index.change(copy).await
    }

    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn list(&self, bucket: &BucketName, query: ListQuery) -> Result<ListPage> {
        let bucket = bucket.clone();
        self.0.index.look_up(move |index| listing::list(index, &bucket, &query)).await
    }

    /// Answers the upload's id.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn create_upload(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        new: NewUpload,
        now_ms: i64,
    ) -> Result<String> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let upload = upload_address(bucket, key, &id);
        self.0.disk.require_room(0)?;
        self.0.index.change(move |write| uploads::create(write, &upload, &new, now_ms)).await?;
        Ok(id)
    }

    /// The algorithm and type chosen at creation, for checking parts.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchUpload`.
    pub async fn upload_checksum(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        upload_id: &str,
    ) -> Result<Option<UploadChecksum>> {
        let upload = upload_address(bucket, key, upload_id);
        self.0.index.look_up(move |index| Ok(uploads::load(index, &upload)?.checksum)).await
    }

    /// Parts 1 to 10,000; a part sent again replaces the earlier one.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchUpload`, `Error::Full`; `Error::BadDigest` where the upload has a checksum
    /// algorithm and the part was not begun with it.
    pub async fn publish_part(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        upload_id: &str,
        number: u32,
        sealed: Sealed,
        now_ms: i64,
    ) -> Result<PartInfo> {
        let upload = upload_address(bucket, key, upload_id);
        let part = PartInfo {
            number,
            size: sealed.size,
            etag: hex::encode(sealed.md5),
            last_modified_ms: now_ms,
            checksum: sealed.checksum.as_ref().map(|(algorithm, digest)| checksum::of_body(*algorithm, digest)),
        };
        let publish = move |write: &mut index::Write<'_>| {
            uploads::put_part(write, &upload, sealed.body, &part)?;
            Ok(part)
        };
        self.0.index.change(publish).await
    }

    /// Up to `limit` parts (at most 1,000) after number `after`, and whether more follow.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchUpload`.
    pub async fn list_parts(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        upload_id: &str,
        after: u32,
        limit: usize,
    ) -> Result<(Vec<PartInfo>, bool)> {
        let upload = upload_address(bucket, key, upload_id);
        self.0.index.look_up(move |index| uploads::list_parts(index, &upload, after, limit)).await
    }

    /// Open uploads of a bucket under a prefix, in key then id order, at most 1,000.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn list_uploads(
        &self,
        bucket: &BucketName,
        prefix: &str,
        after: Option<(String, String)>,
        limit: usize,
    ) -> Result<(Vec<OpenUploadInfo>, bool)> {
        let (bucket, prefix) = (bucket.clone(), prefix.to_owned());
        self.0.index.look_up(move |index| uploads::list(index, &bucket, &prefix, after, limit)).await
    }

    /// Publishes the object from its parts; copies no bytes. After a failure the upload is still there.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchUpload`, `Error::InvalidPart` (also an empty list),
    /// `Error::InvalidPartOrder`, `Error::EntityTooSmall`, `Error::BadDigest`, and as [`Store::publish`].
    #[expect(clippy::too_many_arguments, reason = "the protocol's operation has as many")]
    pub async fn complete_upload(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        upload_id: &str,
        parts: Vec<CompletedPart>,
        checksum: Option<Checksum>,
        condition: Condition,
        now_ms: i64,
    ) -> Result<ObjectInfo> {
        let completion = Completion { parts, checksum, condition, part_bytes_min: PART_BYTES_MIN, now_ms };
        self.complete(upload_address(bucket, key, upload_id), completion).await
    }

    async fn complete(&self, upload: UploadAddress, completion: Completion) -> Result<ObjectInfo> {
        self.0.index.change(move |write| multipart::complete(write, &upload, &completion)).await
    }

    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchUpload`.
    pub async fn abort_upload(&self, bucket: &BucketName, key: &ObjectKey, upload_id: &str) -> Result<()> {
        let upload = upload_address(bucket, key, upload_id);
        self.free(move |write| uploads::abort(write, &upload)).await
    }

    /// Runs a change that frees space, which works on a full disk too.
    async fn free<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut index::Write<'_>) -> Result<T> + Clone + Send + 'static,
    ) -> Result<T> {
        match self.0.index.change(change.clone()).await {
            Err(Error::Full) => {
                let disk = self.0.disk.clone();
                let dropped = tokio::task::spawn_blocking(move || disk.drop_ballast());
                if dropped.await.is_ok_and(|dropped| dropped) {
                    self.0.index.change(change).await
                } else {
                    Err(Error::Full)
                }
            }
            outcome => outcome,
        }
    }

    /// One bucket as an `object_store` for the catalog: same process, same durability.
    pub fn bucket(&self, bucket: BucketName) -> Arc<dyn ::object_store::ObjectStore> {
        Arc::new(object_store::BucketStore::new(self.clone(), bucket))
    }
}

impl Inner {
    fn open(folder: &Path, settings: &StoreSettings, faults: Option<Arc<Faults>>) -> Result<Self> {
        disk::make_folder(folder)?;
        let lock = Arc::new(FolderLock::acquire(folder)?);
        let health = Arc::new(Health::new());
        let disk = Disk::open(folder, settings.reserve_bytes, health.clone(), faults)?;
        let (reaper, queue) = reaper::queue();
        let reaped = Reaped::default();
        let parts =
            index::Parts { health: health.clone(), reaper: reaper.clone(), reaped: reaped.clone(), lock: lock.clone() };
        let index = Index::open(folder, parts, |connection| recover::recover(connection, &disk))?;
        let bucket_settings = SettingsCache::load(folder)?;
        let pins = Pins::new(reaper.clone());
        let reaper_thread = reaper::start(queue, folder, disk.clone(), pins.clone(), reaped, lock.clone())?;
        Ok(Self {
            index,
            disk,
            pins,
            reaper,
            reaper_thread: Mutex::new(Some(reaper_thread)),
            blocking: Blocking::new(),
            suspects: Suspects::default(),
            health,
            settings: bucket_settings,
            lock: Mutex::new(Some(lock)),
            small_bytes_max: settings.small_object_bytes_max.min(upload::BATCH_BYTES as u64),
        })
    }
}

fn upload_address(bucket: &BucketName, key: &ObjectKey, id: &str) -> UploadAddress {
    UploadAddress { object: Address::new(bucket, key), id: id.to_owned() }
}

/// An error with what caused it, for the log.
fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |chain, cause| format!("{chain}: {cause}"))
}
