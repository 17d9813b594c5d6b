//! Versions of objects as callers see them: ids, tags, markers, and the store's operations on one version.
//!
//! A bucket is born without versions: each key has one, [`VersionId::Null`]. Once versioning was enabled each write
//! makes a version of its own and a deletion without a version leaves a delete marker. While it is suspended, writes
//! and deletions make the version `null`, of which a key has at most one.

use super::{
    BucketName, Condition, Error, Governance, ListQuery, LockConfiguration, ObjectHeaders, ObjectInfo, ObjectKey,
    ObjectLock, Reading, Result, Retention, Store, Terms,
    index::{self, buckets, locate, objects, retries, versions},
    reading,
    types::Address,
};
use std::ops::Range;

/// Longest version id that is looked at. Bytes.
const VERSION_ID_BYTES_MAX: usize = 128;
const NULL: &str = "null";

/// Names one version of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum VersionId {
    /// Of what was written while its bucket did not keep versions.
    Null,
    Id(Box<str>),
}

/// Whether a bucket keeps versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Versioning {
    /// And never did.
    #[default]
    Never,
    Enabled,
    Suspended,
}

/// Names and values, in the order given.
pub type Tags = Vec<(String, String)>;

/// What is kept beside the bytes of a new version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    pub headers: ObjectHeaders,
    pub tags: Tags,
    pub lock: ObjectLock,
}

impl From<ObjectHeaders> for Kept {
    fn from(headers: ObjectHeaders) -> Kept {
        Kept { headers, ..Kept::default() }
    }
}

/// What to copy, and what becomes of it.
#[derive(Debug, Clone, Default)]
pub struct Copy {
    /// Of the source; its current one unless named.
    pub version: Option<VersionId>,
    /// In place of the source's.
    pub headers: Option<ObjectHeaders>,
    /// In place of the source's.
    pub tags: Option<Tags>,
    pub lock: ObjectLock,
    /// On what the copy replaces.
    pub terms: Terms,
    pub now_ms: i64,
}

/// What to delete, and when.
#[derive(Debug, Clone, Default)]
pub struct Deletion {
    /// To be removed for ever. Without it a bucket with versions gets a delete marker.
    pub version: Option<VersionId>,
    /// On the version named, or else on the current one.
    pub condition: Condition,
    pub governance: Governance,
    pub now_ms: i64,
}

/// What a deletion did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// Whether there was an object or a version to delete: deleting what is missing succeeds.
    pub existed: bool,
    /// The marker made, or the version named. `None` where the bucket never kept versions and none was named.
    pub version: Option<VersionId>,
    /// Whether a marker was made or removed.
    pub marker: bool,
}

/// Which versions of a bucket to list.
#[derive(Debug, Clone, Default)]
pub struct VersionsQuery {
    /// `after` is a key (or a whole common prefix) whose versions were all shown, unless `after_version` says otherwise.
    pub list: ListQuery,
    /// The version of the key `list.after` that was shown last.
    pub after_version: Option<VersionId>,
}

#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "pages are mostly versions: a box each would cost more than it saves")]
pub enum VersionEntry {
    /// Its `info.version` is always there.
    Object {
        info: ObjectInfo,
        latest: bool,
    },
    Marker {
        key: ObjectKey,
        version: VersionId,
        last_modified_ms: i64,
        latest: bool,
    },
    CommonPrefix(String),
}

#[derive(Debug, Clone)]
pub struct VersionsPage {
    pub entries: Vec<VersionEntry>,
    /// Where the next page starts: `ListQuery::after` and `VersionsQuery::after_version`. `None` at the end.
    pub next: Option<(String, Option<VersionId>)>,
}

/// How a bucket treats what is written to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BucketState {
    pub versioning: Versioning,
    /// `None` where versions cannot be locked.
    pub lock: Option<LockConfiguration>,
}

impl VersionId {
    /// `null`, or letters and digits. Whether there is such a version is another question.
    pub fn parse(text: &str) -> Option<Self> {
        let valid =
            (1..=VERSION_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        valid.then(|| Self::stored(Some(text.to_owned()).filter(|text| text != NULL)))
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Null => NULL,
            Self::Id(id) => id,
        }
    }

    /// From the index, where `null` is no text.
    pub(super) fn stored(id: Option<String>) -> Self {
        id.map_or(Self::Null, |id| Self::Id(id.into()))
    }

    /// As the index has it.
    pub(super) fn column(&self) -> Option<&str> {
        match self {
            Self::Null => None,
            Self::Id(id) => Some(id),
        }
    }
}

impl Store {
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn bucket_state(&self, bucket: &BucketName) -> Result<BucketState> {
        let bucket = bucket.clone();
        self.0.index.look_up(move |index| Ok(buckets::load(index, &bucket)?.state)).await
    }

    /// # Errors
    /// `Error::NoSuchBucket`; `Error::BucketLocks` when versions that can be locked would no longer be kept.
    pub async fn set_versioning(&self, bucket: &BucketName, versioning: Versioning) -> Result<()> {
        let bucket = bucket.clone();
        self.0.index.change(move |write| buckets::set_versioning(write, &bucket, versioning)).await
    }

    /// Lets versions of a bucket be locked, for ever.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`; `Error::VersioningNotEnabled`.
    pub async fn set_lock_configuration(&self, bucket: &BucketName, configuration: LockConfiguration) -> Result<()> {
        let bucket = bucket.clone();
        self.0.index.change(move |write| buckets::set_lock(write, &bucket, &configuration)).await
    }

    /// One version of an object, or its current one.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`, `Error::NoSuchKey`, `Error::Deleted`; of a named version `Error::NoSuchVersion`,
    /// `Error::DeleteMarker`.
    pub async fn head_version(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        version: Option<VersionId>,
    ) -> Result<ObjectInfo> {
        let address = Address::new(bucket, key);
        self.0.index.look_up(move |index| objects::head(index, &address, version.as_ref())).await
    }

    /// As [`Store::read`], of one version.
    ///
    /// # Errors
    /// As [`Store::head_version`]; here or in the stream `Error::Damaged`.
    pub async fn read_version(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        version: Option<VersionId>,
        pick: impl FnOnce(&ObjectInfo) -> Option<Range<u64>> + Send + 'static,
    ) -> Result<Reading> {
        reading::open(&self.0, Address::new(bucket, key), version, pick).await
    }

    /// Deletes the object, hides it behind a marker, or removes one version, as the bucket and `deletion` say.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`; with a condition `Error::PreconditionFailed`, `Error::NoSuchKey`; of a named version
    /// `Error::Locked`.
    pub async fn delete_version(&self, bucket: &BucketName, key: &ObjectKey, deletion: Deletion) -> Result<Deleted> {
        let address = Address::new(bucket, key);
        self.free(move |write| versions::delete(write, &address, &deletion)).await
    }

    /// Deletes many in one durable step; answers one result each, in order. One that is refused changes nothing for
    /// the others.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn delete_versions(
        &self,
        bucket: &BucketName,
        deletions: Vec<(ObjectKey, Deletion)>,
    ) -> Result<Vec<Result<Deleted>>> {
        let bucket = bucket.clone();
        let delete_all = move |write: &mut index::Write<'_>| {
            buckets::require(write.index, &bucket)?;
            let delete = |(key, deletion): &(ObjectKey, Deletion)| {
                match versions::delete(write, &Address::new(&bucket, key), deletion) {
                    // Decided before anything was changed.
                    refused @ Err(Error::PreconditionFailed | Error::NoSuchKey | Error::Locked) => Ok(refused),
                    deleted => deleted.map(Ok),
                }
            };
            deletions.iter().map(delete).collect()
        };
        self.free(delete_all).await
    }

    /// Copies as [`Store::copy`] does, from any version, with all that can be said about the copy.
    ///
    /// # Errors
    /// As [`Store::copy`]; of a named source as [`Store::head_version`]; `Error::LockNotEnabled`.
    pub async fn copy_version(
        &self,
        from: (&BucketName, &ObjectKey),
        to: (&BucketName, &ObjectKey),
        copy: Copy,
        check: impl FnOnce(&ObjectInfo) -> bool + Send + 'static,
    ) -> Result<ObjectInfo> {
        let (from, to) = (Address::new(from.0, from.1), Address::new(to.0, to.1));
        self.0.disk.require_room(0)?;
        let copy = move |write: &mut index::Write<'_>| {
            let (terms, now_ms) = (copy.terms.clone(), copy.now_ms);
            if terms.attempt().is_some() {
                let etag = objects::head(write.index, &from, copy.version.as_ref())?.etag;
                if let Some(made) = retries::done_before(write.index, &to, &terms, &etag, now_ms)? {
                    return Ok(made);
                }
            }
            let info = objects::copy(write, &from, &to, copy, check)?;
            retries::remember(write, &to, &terms, &info)?;
            Ok(info)
        };
        self.0.index.change(copy).await
    }

    /// Versions and markers, in key order, the newest of a key first.
    ///
    /// # Errors
    /// `Error::NoSuchBucket`.
    pub async fn list_versions(&self, bucket: &BucketName, query: VersionsQuery) -> Result<VersionsPage> {
        let bucket = bucket.clone();
        self.0.index.look_up(move |index| index::version_listing::list(index, &bucket, &query)).await
    }

    /// Replaces the tags of one version; answers which.
    ///
    /// # Errors
    /// As [`Store::head_version`].
    pub async fn set_tags(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        version: Option<VersionId>,
        tags: Tags,
    ) -> Result<Option<VersionId>> {
        let address = Address::new(bucket, key);
        let set = move |write: &mut index::Write<'_>| locate::set_tags(write, &address, version.as_ref(), &tags);
        self.0.index.change(set).await
    }

    /// Replaces or lifts the retention of one version.
    ///
    /// # Errors
    /// As [`Store::head_version`]; `Error::LockNotEnabled`; `Error::Locked` for what the present one forbids.
    pub async fn set_retention(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        version: Option<VersionId>,
        retention: Option<Retention>,
        governance: Governance,
        now_ms: i64,
    ) -> Result<()> {
        let address = Address::new(bucket, key);
        let retain = move |lock: &mut ObjectLock| lock.retain(retention, governance, now_ms);
        self.0.index.change(move |write| locate::change_lock(write, &address, version.as_ref(), retain)).await
    }

    /// Places or lifts a legal hold on one version.
    ///
    /// # Errors
    /// As [`Store::head_version`]; `Error::LockNotEnabled`.
    pub async fn set_legal_hold(
        &self,
        bucket: &BucketName,
        key: &ObjectKey,
        version: Option<VersionId>,
        held: bool,
    ) -> Result<()> {
        let address = Address::new(bucket, key);
        let hold = move |lock: &mut ObjectLock| {
            lock.legal_hold = Some(held);
            Ok(())
        };
        self.0.index.change(move |write| locate::change_lock(write, &address, version.as_ref(), hold)).await
    }
}
