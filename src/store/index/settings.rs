//! Rows of what buckets are configured with: documents under names, opaque here.

use super::{
    Write,
    buckets::{self, BucketId},
};
use crate::store::{BucketName, Result};
use rusqlite::Connection;

/// Bucket, name and document of every setting.
pub fn all(index: &Connection) -> Result<Vec<(BucketName, String, String)>> {
    let mut statement = index.prepare(
        "select buckets.name, bucket_settings.name, document from bucket_settings
         join buckets on buckets.id = bucket_settings.bucket",
    )?;
    let rows = statement.query_map([], |row| Ok((BucketName::stored(row.get(0)?), row.get(1)?, row.get(2)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Name and document of a bucket's settings; none where there is no such bucket.
pub fn of(index: &Connection, bucket: &BucketName) -> Result<Vec<(String, String)>> {
    let mut statement = index.prepare_cached(
        "select name, document from bucket_settings where bucket = (select id from buckets where name = ?1)",
    )?;
    let rows = statement.query_map([bucket.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// # Errors
/// `Error::NoSuchBucket`.
pub fn put(write: &Write<'_>, bucket: &BucketName, name: &str, document: &str) -> Result<()> {
    let bucket = buckets::require(write.index, bucket)?;
    write
        .index
        .prepare_cached("insert or replace into bucket_settings (bucket, name, document) values (?1, ?2, ?3)")?
        .execute((bucket, name, document))?;
    Ok(())
}

/// # Errors
/// `Error::NoSuchBucket`.
pub fn delete(write: &Write<'_>, bucket: &BucketName, name: &str) -> Result<()> {
    let bucket = buckets::require(write.index, bucket)?;
    write
        .index
        .prepare_cached("delete from bucket_settings where bucket = ?1 and name = ?2")?
        .execute((bucket, name))?;
    Ok(())
}

/// Drops every setting of a bucket.
pub fn drop_all(write: &Write<'_>, bucket: BucketId) -> Result<()> {
    write.index.prepare_cached("delete from bucket_settings where bucket = ?1")?.execute([bucket])?;
    Ok(())
}
