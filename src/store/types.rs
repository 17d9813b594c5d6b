//! What the store takes and gives: descriptions of objects, conditions, listings, and the ways it can fail.

use super::{BucketName, ObjectKey};
use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumAlgorithm {
    Crc32,
    Crc32c,
    Crc64Nvme,
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Xxh3,
    Xxh64,
    Xxh128,
}

impl ChecksumAlgorithm {
    pub const ALL: [Self; 10] = [
        Self::Crc32,
        Self::Crc32c,
        Self::Crc64Nvme,
        Self::Md5,
        Self::Sha1,
        Self::Sha256,
        Self::Sha512,
        Self::Xxh3,
        Self::Xxh64,
        Self::Xxh128,
    ];

    /// Whether the checksum of a whole can be had from those of its parts.
    pub fn combines(self) -> bool {
        matches!(self, Self::Crc32 | Self::Crc32c | Self::Crc64Nvme)
    }
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
///
/// Kept in the index as JSON of this very shape: a field may be added, none renamed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectHeaders {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_disposition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Of this object alone: copies do not take it over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_redirect_location: Option<String>,
    /// `x-amz-meta-*`, names in lower case without the prefix, in the order sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_metadata: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub struct ObjectInfo {
    pub key: ObjectKey,
    pub size: u64,
    /// Without quotes.
    pub etag: String,
    pub last_modified_ms: i64,
    /// Empty in listings, which do not read them.
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
    /// `If-Match`: the current etag, without quotes. Where there is no object: [`Error::NoSuchKey`].
    Etag(String),
}

/// One call of one client: its repeated tries have the same attempt, another call has another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Who asks.
    pub caller: String,
    /// Chosen by the client, anew for each call.
    pub id: String,
}

impl Attempt {
    /// Of the call at one object: short, whatever the names are.
    pub(super) fn digest(&self, address: &Address) -> Vec<u8> {
        let mut digest = Context::new(&SHA256);
        for name in [&self.caller, &self.id, address.bucket.as_str(), address.key.as_str()] {
            digest.update(&(name.len() as u64).to_le_bytes());
            digest.update(name.as_bytes());
        }
        digest.finish().as_ref().to_vec()
    }
}

/// When a write takes effect, and how to know it again.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub(super) condition: Condition,
    attempt: Option<Attempt>,
}

impl Terms {
    pub fn new(condition: Condition, attempt: Option<Attempt>) -> Self {
        Self { condition, attempt }
    }

    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// `None` without a condition: such a write may be done again.
    pub fn attempt(&self) -> Option<&Attempt> {
        self.attempt.as_ref().filter(|_| self.condition != Condition::None)
    }
}

impl From<Condition> for Terms {
    fn from(condition: Condition) -> Self {
        Self::new(condition, None)
    }
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
    /// The folder cannot be opened: another process has it, or a newer release wrote it.
    #[error("store folder is not usable: {0}")]
    Folder(String),
    #[error("the store failed")]
    Io(#[source] io::Error),
    #[error("the store's index failed: {0}")]
    Index(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            Some(rusqlite::ErrorCode::SystemIoFailure) => Self::Io(io::Error::other(error)),
            _ => Self::Index(error.to_string()),
        }
    }
}

#[derive(Debug, Clone)]
pub struct StoreSettings {
    /// Objects up to this size are kept beside the index. Bytes, 0 to 524,288 (more counts as that).
    pub small_object_bytes_max: u64,
    /// Writes are refused when less than this is free. Bytes; the larger of it and 2 % of the disk counts, 0 switches
    /// the reserve off.
    pub reserve_bytes: u64,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { small_object_bytes_max: 64 << 10, reserve_bytes: 1 << 30 }
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
#[expect(clippy::large_enum_variant, reason = "pages are mostly objects: a box each would cost more than it saves")]
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
    pub checksum: Option<UploadChecksum>,
}

/// What checksum the parts of an upload are kept with, and how that of the whole is made of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadChecksum {
    pub algorithm: ChecksumAlgorithm,
    pub kind: ChecksumType,
    /// Whether the client asked for it, and so has to keep to it.
    pub asked: bool,
}

/// An upload that is neither completed nor aborted.
#[derive(Debug, Clone)]
pub struct OpenUploadInfo {
    pub key: ObjectKey,
    pub id: String,
    pub started_ms: i64,
    pub checksum: Option<UploadChecksum>,
}

/// A part of an object, and where in it that lies.
#[derive(Debug, Clone)]
pub struct ObjectPart {
    /// As uploaded: numbers ascend, perhaps with gaps.
    pub number: u32,
    /// Bytes of the object before it.
    pub start: u64,
    pub size: u64,
    pub checksum: Option<Checksum>,
}

/// One name: which object of which bucket.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub bucket: BucketName,
    pub key: ObjectKey,
}

impl Address {
    pub fn new(bucket: &BucketName, key: &ObjectKey) -> Self {
        Self { bucket: bucket.clone(), key: key.clone() }
    }
}
