//! Rows of buckets.

use super::{Write, settings, uploads};
use crate::store::{BucketName, BucketState, Error, Lifecycle, LockConfiguration, Result, Versioning};
use rusqlite::{Connection, OptionalExtension};

pub type BucketId = i64;

const ENABLED: &str = "enabled";
const SUSPENDED: &str = "suspended";

/// A bucket, and how it treats what is written to it.
pub struct Bucket {
    pub id: BucketId,
    pub state: BucketState,
}

pub fn create(write: &Write<'_>, bucket: &BucketName, now_ms: i64) -> Result<()> {
    let made = write
        .index
        .prepare_cached("insert into buckets (name, created_ms) values (?1, ?2) on conflict (name) do nothing")?
        .execute((bucket.as_str(), now_ms))?;
    if made == 0 { Err(Error::BucketExists) } else { Ok(()) }
}

/// Refuses a bucket with objects or versions; its open uploads and settings go with it.
pub fn delete(write: &mut Write<'_>, bucket: &BucketName) -> Result<()> {
    let Bucket { id, state } = load(write.index, bucket)?;
    let occupied: bool = write
        .index
        .prepare_cached("select exists (select 1 from objects where bucket = ?1)")?
        .query_row([id], |row| row.get(0))?;
    if occupied {
        return Err(if state.keeps_versions() { Error::BucketHasVersions } else { Error::BucketNotEmpty });
    }
    let versions: bool = write
        .index
        .prepare_cached("select exists (select 1 from versions where bucket = ?1)")?
        .query_row([id], |row| row.get(0))?;
    if versions {
        return Err(Error::BucketHasVersions);
    }
    uploads::drop_all(write, id)?;
    settings::drop_all(write, id)?;
    write.index.prepare_cached("delete from buckets where id = ?1")?.execute([id])?;
    Ok(())
}

pub fn exists(index: &Connection, bucket: &BucketName) -> Result<bool> {
    Ok(id(index, bucket)?.is_some())
}

/// In name order.
pub fn list(index: &Connection) -> Result<Vec<(BucketName, i64)>> {
    let mut statement = index.prepare_cached("select name, created_ms from buckets order by name")?;
    let rows = statement.query_map([], |row| Ok((BucketName::stored(row.get(0)?), row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub fn id(index: &Connection, bucket: &BucketName) -> Result<Option<BucketId>> {
    let mut statement = index.prepare_cached("select id from buckets where name = ?1")?;
    Ok(statement.query_row([bucket.as_str()], |row| row.get(0)).optional()?)
}

/// # Errors
/// `Error::NoSuchBucket`.
pub fn require(index: &Connection, bucket: &BucketName) -> Result<BucketId> {
    id(index, bucket)?.ok_or(Error::NoSuchBucket)
}

/// # Errors
/// `Error::NoSuchBucket`.
pub fn load(index: &Connection, bucket: &BucketName) -> Result<Bucket> {
    let row: Option<(BucketId, Option<String>, Option<String>)> = index
        .prepare_cached("select id, versioning, object_lock from buckets where name = ?1")?
        .query_row([bucket.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let (id, versioning, lock) = row.ok_or(Error::NoSuchBucket)?;
    let lock: Option<LockConfiguration> = lock.as_deref().map(super::from_json).transpose()?;
    Ok(Bucket { id, state: BucketState { versioning: decode_versioning(versioning.as_deref())?, lock } })
}

/// # Errors
/// `Error::NoSuchBucket`; `Error::BucketLocks` when versions that can be locked would no longer be kept.
pub fn set_versioning(write: &Write<'_>, bucket: &BucketName, versioning: Versioning) -> Result<()> {
    let Bucket { id, state } = load(write.index, bucket)?;
    if state.lock.is_some() && versioning != Versioning::Enabled {
        return Err(Error::BucketLocks);
    }
    let column = match versioning {
        Versioning::Never => None,
        Versioning::Enabled => Some(ENABLED),
        Versioning::Suspended => Some(SUSPENDED),
    };
    write.index.prepare_cached("update buckets set versioning = ?2 where id = ?1")?.execute((id, column))?;
    Ok(())
}

/// # Errors
/// `Error::NoSuchBucket`, `Error::VersioningNotEnabled`.
pub fn set_lock(write: &Write<'_>, bucket: &BucketName, configuration: &LockConfiguration) -> Result<()> {
    let Bucket { id, state } = load(write.index, bucket)?;
    if state.versioning != Versioning::Enabled {
        return Err(Error::VersioningNotEnabled);
    }
    let configuration = super::to_json(configuration)?;
    write.index.prepare_cached("update buckets set object_lock = ?2 where id = ?1")?.execute((id, configuration))?;
    Ok(())
}

/// # Errors
/// `Error::NoSuchBucket`.
pub fn lifecycle(index: &Connection, bucket: &BucketName) -> Result<Option<Lifecycle>> {
    let column: Option<Option<String>> = index
        .prepare_cached("select lifecycle from buckets where name = ?1")?
        .query_row([bucket.as_str()], |row| row.get(0))
        .optional()?;
    column.ok_or(Error::NoSuchBucket)?.as_deref().map(super::from_json).transpose()
}

/// The rules of a bucket, none of them where it has none; `None` where there is no bucket.
pub fn lifecycle_if_there(index: &Connection, bucket: &BucketName) -> Result<Option<Lifecycle>> {
    match lifecycle(index, bucket) {
        Ok(lifecycle) => Ok(Some(lifecycle.unwrap_or_default())),
        Err(Error::NoSuchBucket) => Ok(None),
        Err(error) => Err(error),
    }
}

/// # Errors
/// `Error::NoSuchBucket`.
pub fn set_lifecycle(write: &Write<'_>, bucket: &BucketName, lifecycle: Option<&Lifecycle>) -> Result<()> {
    let id = require(write.index, bucket)?;
    let column = lifecycle.map(super::to_json).transpose()?;
    write.index.prepare_cached("update buckets set lifecycle = ?2 where id = ?1")?.execute((id, column))?;
    Ok(())
}

/// The bucket whose name follows.
pub fn next(index: &Connection, after: Option<&BucketName>) -> Result<Option<BucketName>> {
    let after = after.map_or("", BucketName::as_str);
    let mut statement = index.prepare_cached("select name from buckets where name > ?1 order by name limit 1")?;
    Ok(statement.query_row([after], |row| row.get(0)).optional()?.map(BucketName::stored))
}

fn decode_versioning(column: Option<&str>) -> Result<Versioning> {
    match column {
        None => Ok(Versioning::Never),
        Some(ENABLED) => Ok(Versioning::Enabled),
        Some(SUSPENDED) => Ok(Versioning::Suspended),
        Some(other) => Err(Error::Index(format!("unknown versioning in the index: {other}"))),
    }
}
