//! The embedded object store: an index, small objects beside it, large ones in files of their own.
//!
//! Knows buckets, keys and bytes; knows nothing of HTTP, tables or who is asking. Acknowledged means on disk: when
//! [`Store::publish`] returns, bytes and record are synced. A crash leaves the old object or the new one, and at most
//! files that no record names, which the next start collects.

mod object_store;

use bytes::Bytes;
use std::{path::Path, sync::Arc};

/// Names a bucket: 3 to 63 characters by AWS's naming rules. Always valid.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BucketName(String);

/// Names an object: 1 to 1,024 bytes of UTF-8, kept to the letter (`a//b`, `..` and a leading slash are just bytes).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(String);

impl BucketName {
    pub fn parse(_name: &str) -> Option<Self> {
        todo!()
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ObjectKey {
    pub fn parse(_key: &str) -> Option<Self> {
        todo!()
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumAlgorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Sha1,
    Sha256,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumType {
    FullObject,
    Composite,
}

/// A checksum as S3 shows it: base64 of the digest, with `-N` behind it when composite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksum {
    pub algorithm: ChecksumAlgorithm,
    pub kind: ChecksumType,
    pub value: String,
}

/// What a client stores beside the bytes and gets back with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectHeaders {
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub content_disposition: Option<String>,
    pub content_language: Option<String>,
    pub cache_control: Option<String>,
    pub expires: Option<String>,
    /// `x-amz-meta-*`, names in lower case without the prefix, in the order sent.
    pub user_metadata: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub struct ObjectInfo {
    pub key: ObjectKey,
    pub size: u64,
    /// Without quotes.
    pub etag: String,
    pub last_modified_ms: i64,
    pub headers: ObjectHeaders,
    pub checksum: Option<Checksum>,
    /// Number of parts when made by a multipart upload.
    pub parts: Option<u32>,
}

/// When a write takes effect; checked in the transaction that publishes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    None,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match`: the current etag, without quotes.
    Etag(String),
}

/// Expected outcomes a caller can act on, and faults of the disk.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("bucket does not exist")]
    NoSuchBucket,
    #[error("bucket already exists")]
    BucketExists,
    #[error("bucket is not empty")]
    BucketNotEmpty,
    #[error("object does not exist")]
    NoSuchKey,
    #[error("multipart upload does not exist")]
    NoSuchUpload,
    #[error("a condition of the write does not hold")]
    PreconditionFailed,
    #[error("a part is missing or has another etag")]
    InvalidPart,
    #[error("parts are not in ascending order")]
    InvalidPartOrder,
    #[error("a part other than the last is smaller than 5 MiB")]
    EntityTooSmall,
    #[error("a checksum given does not match the bytes")]
    BadDigest,
    /// The disk is full up to its reserve: deletes still work.
    #[error("no space left for writes")]
    Full,
    /// Bytes on disk do not match their checksum; nothing of the bad block is served.
    #[error("stored bytes are damaged: {0}")]
    Damaged(String),
    #[error("the store failed")]
    Io(#[source] std::io::Error),
    #[error("the store's index failed: {0}")]
    Index(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// Objects up to this size are kept beside the index. Bytes.
    pub small_object_bytes_max: u64,
    /// Writes are refused when less than this is free. Bytes; the larger of it and 2 % of the disk counts.
    pub reserve_bytes: u64,
}

/// An open store. Cheap to clone. One process owns the folder (flock).
#[derive(Clone)]
pub struct Store(Arc<Inner>);
struct Inner {}

/// Bytes on their way in: nothing is visible until [`Store::publish`]. Dropping it removes what was written.
pub struct Upload {}

/// Bytes written and, where large, synced; not visible yet. Dropping it removes them.
pub struct Sealed {
    pub size: u64,
    pub md5: [u8; 16],
    /// The digest asked for at [`Store::begin`], raw bytes.
    pub checksum: Option<(ChecksumAlgorithm, Vec<u8>)>,
}

impl Upload {
    /// # Errors
    /// `Error::Full`, `Error::Io`.
    pub async fn write(&mut self, _bytes: Bytes) -> Result<()> {
        todo!()
    }
    /// Finishes digests; large bodies are synced (file and folder) when this returns.
    pub async fn seal(self) -> Result<Sealed> {
        todo!()
    }
}

#[derive(Debug, Clone)]
pub struct CompletedPart {
    pub number: u32,
    /// Without quotes.
    pub etag: String,
    pub checksum: Option<Checksum>,
}

#[derive(Debug, Clone)]
pub struct PartInfo {
    pub number: u32,
    pub size: u64,
    pub etag: String,
    pub last_modified_ms: i64,
    pub checksum: Option<Checksum>,
}

#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    pub prefix: String,
    /// `None` or empty: no grouping.
    pub delimiter: Option<String>,
    /// Entries strictly after this key (a key or a whole common prefix that was shown).
    pub after: Option<String>,
    /// 0 to 1,000.
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub enum ListEntry {
    Object(ObjectInfo),
    CommonPrefix(String),
}

#[derive(Debug, Clone)]
pub struct ListPage {
    pub entries: Vec<ListEntry>,
    /// Where the next page starts (`ListQuery::after`); `None` at the end.
    pub next: Option<String>,
}

/// An object being read: its info, and its bytes as a stream of verified blocks.
pub struct Reading {
    pub info: ObjectInfo,
    /// The byte range `stream` yields, resolved.
    pub range: std::ops::Range<u64>,
    pub stream: futures_util::stream::BoxStream<'static, Result<Bytes>>,
}

#[derive(Debug, Clone, Default)]
pub struct NewUpload {
    pub headers: ObjectHeaders,
    pub checksum: Option<(ChecksumAlgorithm, ChecksumType)>,
}

impl Store {
    /// Opens or makes the store under `folder`, recovers, and collects files that no record names.
    pub async fn open(_folder: &Path, _settings: StoreSettings) -> Result<Store> {
        todo!()
    }
    /// Checkpoints and closes the index. The folder may be opened again afterwards.
    pub async fn close(&self) {
        todo!()
    }

    pub async fn create_bucket(&self, _bucket: &BucketName, _now_ms: i64) -> Result<()> {
        todo!()
    }
    pub async fn delete_bucket(&self, _bucket: &BucketName) -> Result<()> {
        todo!()
    }
    pub async fn bucket_exists(&self, _bucket: &BucketName) -> Result<bool> {
        todo!()
    }
    /// Names and creation times (ms), in name order.
    pub async fn list_buckets(&self) -> Result<Vec<(BucketName, i64)>> {
        todo!()
    }

    /// Starts writing bytes; MD5 is always computed, `checksum` besides.
    pub fn begin(&self, _checksum: Option<ChecksumAlgorithm>) -> Upload {
        todo!()
    }
    /// Makes sealed bytes the object `key`, atomically and durably.
    pub async fn publish(
        &self,
        _bucket: &BucketName,
        _key: &ObjectKey,
        _sealed: Sealed,
        _headers: ObjectHeaders,
        _condition: Condition,
        _now_ms: i64,
    ) -> Result<ObjectInfo> {
        todo!()
    }
    pub async fn head(&self, _bucket: &BucketName, _key: &ObjectKey) -> Result<ObjectInfo> {
        todo!()
    }
    /// Opens the object as of now: later overwrites and deletes do not disturb the stream. `range` is applied by `pick`
    /// from the object's info so that conditions and ranges are decided on the same version that is read; `pick`
    /// returning `None` reads nothing (`stream` is empty, `range` 0..0).
    pub async fn read(
        &self,
        _bucket: &BucketName,
        _key: &ObjectKey,
        _pick: impl FnOnce(&ObjectInfo) -> Option<std::ops::Range<u64>> + Send + 'static,
    ) -> Result<Reading> {
        todo!()
    }
    /// Whether there was one: deleting a missing key succeeds.
    pub async fn delete(&self, _bucket: &BucketName, _key: &ObjectKey, _condition: Condition) -> Result<bool> {
        todo!()
    }
    /// Deletes many keys in one durable step; answers one result a key, in order.
    pub async fn delete_many(&self, _bucket: &BucketName, _keys: Vec<ObjectKey>) -> Result<Vec<bool>> {
        todo!()
    }
    /// Copies within the store without reading the bytes through the caller; `headers` `None` keeps the source's.
    pub async fn copy(
        &self,
        _from: (&BucketName, &ObjectKey),
        _to: (&BucketName, &ObjectKey),
        _headers: Option<ObjectHeaders>,
        _check: impl FnOnce(&ObjectInfo) -> bool + Send + 'static,
        _condition: Condition,
        _now_ms: i64,
    ) -> Result<ObjectInfo> {
        todo!()
    }
    pub async fn list(&self, _bucket: &BucketName, _query: ListQuery) -> Result<ListPage> {
        todo!()
    }

    pub async fn create_upload(
        &self,
        _bucket: &BucketName,
        _key: &ObjectKey,
        _new: NewUpload,
        _now_ms: i64,
    ) -> Result<String> {
        todo!()
    }
    /// The algorithm and type chosen at creation, for checking parts.
    pub async fn upload_checksum(
        &self,
        _bucket: &BucketName,
        _key: &ObjectKey,
        _upload_id: &str,
    ) -> Result<Option<(ChecksumAlgorithm, ChecksumType)>> {
        todo!()
    }
    /// Parts 1 to 10,000; a part sent again replaces the earlier one.
    pub async fn publish_part(
        &self,
        _bucket: &BucketName,
        _key: &ObjectKey,
        _upload_id: &str,
        _number: u32,
        _sealed: Sealed,
        _now_ms: i64,
    ) -> Result<PartInfo> {
        todo!()
    }
    /// Up to `limit` parts after number `after`, and whether more follow.
    pub async fn list_parts(
        &self,
        _bucket: &BucketName,
        _key: &ObjectKey,
        _upload_id: &str,
        _after: u32,
        _limit: usize,
    ) -> Result<(Vec<PartInfo>, bool)> {
        todo!()
    }
    /// Open uploads of a bucket under a prefix: key, upload id, initiated (ms); in key then id order.
    pub async fn list_uploads(
        &self,
        _bucket: &BucketName,
        _prefix: &str,
        _after: Option<(String, String)>,
        _limit: usize,
    ) -> Result<(Vec<(ObjectKey, String, i64)>, bool)> {
        todo!()
    }
    /// Publishes the object from its parts; copies no bytes. After a failure the upload is still there.
    #[allow(clippy::too_many_arguments)]
    pub async fn complete_upload(
        &self,
        _bucket: &BucketName,
        _key: &ObjectKey,
        _upload_id: &str,
        _parts: Vec<CompletedPart>,
        _checksum: Option<Checksum>,
        _condition: Condition,
        _now_ms: i64,
    ) -> Result<ObjectInfo> {
        todo!()
    }
    pub async fn abort_upload(&self, _bucket: &BucketName, _key: &ObjectKey, _upload_id: &str) -> Result<()> {
        todo!()
    }

    /// One bucket as an `object_store` for the catalog: same process, same durability.
    pub fn bucket(&self, _bucket: BucketName) -> Arc<dyn ::object_store::ObjectStore> {
        todo!()
    }
}
