//! Rows of buckets.

use super::{Write, settings, uploads};
use crate::store::{BucketName, Error, Result};
use rusqlite::{Connection, OptionalExtension};

pub type BucketId = i64;

pub fn create(write: &Write<'_>, bucket: &BucketName, now_ms: i64) -> Result<()> {
    let made = write
        .index
        .prepare_cached("insert into buckets (name, created_ms) values (?1, ?2) on conflict (name) do nothing")?
        .execute((bucket.as_str(), now_ms))?;
    if made == 0 { Err(Error::BucketExists) } else { Ok(()) }
}

/// Refuses a bucket with objects; its open uploads and settings go with it.
pub fn delete(write: &mut Write<'_>, bucket: &BucketName) -> Result<()> {
    let id = require(write.index, bucket)?;
    let occupied: bool = write
        .index
        .prepare_cached("select exists (select 1 from objects where bucket = ?1)")?
        .query_row([id], |row| row.get(0))?;
    if occupied {
        return Err(Error::BucketNotEmpty);
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
