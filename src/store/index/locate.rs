//! Finds one version, whichever table it is in, and changes what is kept beside its bytes.

use super::{
    Write,
    buckets::{self, Bucket, BucketId},
    from_sql,
    objects::Facts,
    versions,
};
use crate::store::{Error, ObjectKey, ObjectLock, Result, Tags, VersionId, reaper::BodyId, types::Address};
use rusqlite::{Connection, OptionalExtension, Row};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Objects,
    Versions,
}

/// A version's row.
#[derive(Debug)]
pub struct Located {
    pub table: Table,
    pub age: i64,
    pub version: VersionId,
    /// `None` of a delete marker.
    pub body: Option<BodyId>,
    pub modified_ms: i64,
    pub lock: ObjectLock,
    size: u64,
    etag: String,
}

impl Located {
    /// What conditions look at; a marker has nothing of it.
    pub fn facts(&self) -> Option<Facts<'_>> {
        self.body.is_some().then_some(Facts { etag: &self.etag, size: self.size, modified_ms: self.modified_ms })
    }
}

/// A named version.
pub fn version(index: &Connection, bucket: BucketId, key: &ObjectKey, version: &VersionId) -> Result<Option<Located>> {
    match current(index, bucket, key)? {
        Some(current) if current.version == *version => Ok(Some(current)),
        _ => below(index, bucket, key, version),
    }
}

/// A named version, or the current one.
///
/// # Errors
/// `Error::NoSuchKey`, `Error::Deleted`; of a named one `Error::NoSuchVersion`, `Error::DeleteMarker`.
fn require(index: &Connection, bucket: &Bucket, key: &ObjectKey, named: Option<&VersionId>) -> Result<Located> {
    match named {
        None => current(index, bucket.id, key)?.map_or_else(|| missing(index, bucket.id, key), Ok),
        Some(named) => match version(index, bucket.id, key, named)? {
            None => Err(Error::NoSuchVersion),
            Some(Located { body: None, modified_ms, .. }) => {
                Err(Error::DeleteMarker { version: named.clone(), last_modified_ms: modified_ms })
            }
            Some(located) => Ok(located),
        },
    }
}

/// Why a key has no current object.
///
/// # Errors
/// `Error::Deleted` where a marker hides it, `Error::NoSuchKey` otherwise: always one of them.
pub fn missing<T>(index: &Connection, bucket: BucketId, key: &ObjectKey) -> Result<T> {
    let mut statement = index.prepare_cached(
        "select version from versions where bucket = ?1 and key = ?2 and body is null order by age limit 1",
    )?;
    let marker = statement.query_row((bucket, key.as_str()), |row| row.get(0)).optional()?;
    Err(marker.map_or(Error::NoSuchKey, |version| Error::Deleted { version: VersionId::stored(version) }))
}

/// Answers which version got the tags; `None` in a bucket that never kept versions.
pub fn set_tags(
    write: &Write<'_>,
    address: &Address,
    named: Option<&VersionId>,
    tags: &Tags,
) -> Result<Option<VersionId>> {
    let bucket = buckets::load(write.index, &address.bucket)?;
    let located = require(write.index, &bucket, &address.key, named)?;
    let statement = match located.table {
        Table::Objects => "update objects set tags = ?4 where bucket = ?1 and key = ?2 and age = ?3",
        Table::Versions => "update versions set tags = ?4 where bucket = ?1 and key = ?2 and age = ?3",
    };
    write.index.prepare_cached(statement)?.execute((
        bucket.id,
        address.key.as_str(),
        located.age,
        super::encode(tags)?,
    ))?;
    Ok(bucket.state.keeps_versions().then_some(located.version))
}

/// Lets `change` decide on the lock there is.
///
/// # Errors
/// `Error::LockNotEnabled`, and those of `change`.
pub fn change_lock(
    write: &Write<'_>,
    address: &Address,
    named: Option<&VersionId>,
    change: impl FnOnce(&mut ObjectLock) -> Result<()>,
) -> Result<()> {
    let bucket = buckets::load(write.index, &address.bucket)?;
    let mut located = require(write.index, &bucket, &address.key, named)?;
    if bucket.state.lock.is_none() {
        return Err(Error::LockNotEnabled);
    }
    change(&mut located.lock)?;
    let statement = match located.table {
        Table::Objects => "update objects set lock = ?4 where bucket = ?1 and key = ?2 and age = ?3",
        Table::Versions => "update versions set lock = ?4 where bucket = ?1 and key = ?2 and age = ?3",
    };
    write.index.prepare_cached(statement)?.execute((
        bucket.id,
        address.key.as_str(),
        located.age,
        super::encode(&located.lock)?,
    ))?;
    Ok(())
}

fn current(index: &Connection, bucket: BucketId, key: &ObjectKey) -> Result<Option<Located>> {
    let mut statement = index.prepare_cached(
        "select age, version, body, modified_ms, lock, size, etag from objects where bucket = ?1 and key = ?2",
    )?;
    let found = statement.query_row((bucket, key.as_str()), |row| Ok(located(row, Table::Objects))).optional()?;
    found.transpose()
}

fn below(index: &Connection, bucket: BucketId, key: &ObjectKey, version: &VersionId) -> Result<Option<Located>> {
    let found = match version {
        VersionId::Null => index
            .prepare_cached(
                "select age, version, body, modified_ms, lock, size, etag from versions
                 where bucket = ?1 and key = ?2 and version is null",
            )?
            .query_row((bucket, key.as_str()), |row| Ok(located(row, Table::Versions)))
            .optional()?,
        VersionId::Id(id) => {
            let Some(age) = versions::age_of(id) else { return Ok(None) };
            index
                .prepare_cached(
                    "select age, version, body, modified_ms, lock, size, etag from versions
                     where bucket = ?1 and key = ?2 and age = ?3 and version = ?4",
                )?
                .query_row((bucket, key.as_str(), age, id), |row| Ok(located(row, Table::Versions)))
                .optional()?
        }
    };
    found.transpose()
}

/// From the columns age, version, body, modified_ms, lock, size, etag.
fn located(row: &Row<'_>, table: Table) -> Result<Located> {
    Ok(Located {
        table,
        age: row.get(0)?,
        version: VersionId::stored(row.get(1)?),
        body: row.get(2)?,
        modified_ms: row.get(3)?,
        lock: super::decode(row.get::<_, Option<String>>(4)?.as_deref())?,
        size: from_sql(row.get(5)?),
        etag: row.get(6)?,
    })
}
