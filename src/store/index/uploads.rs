//! Rows of multipart uploads that are open, and of their parts.

use super::{
    Write,
    bodies::{self, NewBody},
    buckets::{self, BucketId},
    from_sql, objects, to_sql,
};
use crate::store::{
    BucketName, Error, NewUpload, ObjectHeaders, ObjectKey, OpenUploadInfo, PartInfo, Result, UploadChecksum,
    reaper::BodyId, types::Address,
};
use rusqlite::{Connection, OptionalExtension, Row};
use std::collections::BTreeMap;

/// Parts and uploads on a page.
const LIMIT_MAX: usize = 1000;

/// Open uploads, and whether more follow.
pub type Page = (Vec<OpenUploadInfo>, bool);

/// An open upload of one key.
#[derive(Debug, Clone)]
pub struct UploadAddress {
    pub object: Address,
    pub id: String,
}

pub struct OpenUpload {
    pub headers: ObjectHeaders,
    pub checksum: Option<UploadChecksum>,
}

pub struct Part {
    pub info: PartInfo,
    pub body: BodyId,
}

pub fn create(write: &Write<'_>, upload: &UploadAddress, new: &NewUpload, now_ms: i64) -> Result<()> {
    let bucket = buckets::require(write.index, &upload.object.bucket)?;
    let checksum = new.checksum.as_ref().map(super::encode_upload_checksum);
    write
        .index
        .prepare_cached(
            "insert into uploads (bucket, key, id, started_ms, headers, checksum) values (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute((
            bucket,
            upload.object.key.as_str(),
            &upload.id,
            now_ms,
            objects::encode_headers(&new.headers)?,
            checksum,
        ))?;
    Ok(())
}

/// # Errors
/// `Error::NoSuchBucket`, `Error::NoSuchUpload` (also where the id belongs to another key).
pub fn load(index: &Connection, upload: &UploadAddress) -> Result<OpenUpload> {
    let bucket = buckets::require(index, &upload.object.bucket)?;
    let (headers, checksum): (Option<String>, Option<String>) = index
        .prepare_cached("select headers, checksum from uploads where bucket = ?1 and key = ?2 and id = ?3")?
        .query_row((bucket, upload.object.key.as_str(), &upload.id), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or(Error::NoSuchUpload)?;
    Ok(OpenUpload {
        headers: objects::decode_headers(headers.as_deref())?,
        checksum: checksum.as_deref().map(super::decode_upload_checksum).transpose()?,
    })
}

/// A part sent again replaces the earlier one.
pub fn put_part(write: &mut Write<'_>, upload: &UploadAddress, body: NewBody, part: &PartInfo) -> Result<()> {
    let algorithm = load(write.index, upload)?.checksum.map(|checksum| checksum.algorithm);
    if algorithm.is_some() && algorithm != part.checksum.as_ref().map(|checksum| checksum.algorithm) {
        return Err(Error::BadDigest);
    }
    let old: Option<BodyId> = write
        .index
        .prepare_cached("select body from parts where upload = ?1 and number = ?2")?
        .query_row((&upload.id, part.number), |row| row.get(0))
        .optional()?;
    let body = bodies::insert(write, part.size, body)?;
    write
        .index
        .prepare_cached(
            "insert or replace into parts (upload, number, body, size, etag, modified_ms, checksum)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            &upload.id,
            part.number,
            body,
            to_sql(part.size),
            &part.etag,
            part.last_modified_ms,
            part.checksum.as_ref().map(super::encode_checksum),
        ))?;
    old.map_or(Ok(()), |old| bodies::release(write, old))
}

/// All parts that arrived, by number.
pub fn parts(index: &Connection, upload: &UploadAddress) -> Result<BTreeMap<u32, Part>> {
    let mut statement = index.prepare_cached(
        "select number, size, etag, modified_ms, checksum, body from parts where upload = ?1 order by number",
    )?;
    let mut rows = statement.query([&upload.id])?;
    let mut parts = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let info = part_info(row)?;
        parts.insert(info.number, Part { info, body: row.get(5)? });
    }
    Ok(parts)
}

/// Up to `limit` parts after number `after`, and whether more follow.
pub fn list_parts(
    index: &Connection,
    upload: &UploadAddress,
    after: u32,
    limit: usize,
) -> Result<(Vec<PartInfo>, bool)> {
    load(index, upload)?;
    let limit = limit.min(LIMIT_MAX);
    let mut statement = index.prepare_cached(
        "select number, size, etag, modified_ms, checksum from parts
         where upload = ?1 and number > ?2 order by number limit ?3",
    )?;
    let mut rows = statement.query((&upload.id, after, to_sql(limit as u64 + 1)))?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        if parts.len() == limit {
            return Ok((parts, limit > 0));
        }
        parts.push(part_info(row)?);
    }
    Ok((parts, false))
}

/// Open uploads under a prefix, after a (key, id), in key then id order, and whether more follow.
pub fn list(
    index: &Connection,
    bucket: &BucketName,
    prefix: &str,
    after: Option<(String, String)>,
    limit: usize,
) -> Result<Page> {
    let bucket = buckets::require(index, bucket)?;
    let limit = limit.min(LIMIT_MAX);
    let (key, id) =
        after.filter(|(key, _)| key.as_str() >= prefix).unwrap_or_else(|| (prefix.to_owned(), String::new()));
    let mut statement = index.prepare_cached(
        "select key, id, started_ms, checksum from uploads where bucket = ?1 and (key, id) > (?2, ?3) order by key, id limit ?4",
    )?;
    let mut rows = statement.query((bucket, key, id, to_sql(limit as u64 + 1)))?;
    let mut uploads = Vec::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        if !key.starts_with(prefix) {
            break;
        }
        if uploads.len() == limit {
            return Ok((uploads, limit > 0));
        }
        uploads.push(OpenUploadInfo {
            key: ObjectKey::stored(key),
            id: row.get(1)?,
            started_ms: row.get(2)?,
            checksum: row.get::<_, Option<String>>(3)?.as_deref().map(super::decode_upload_checksum).transpose()?,
        });
    }
    Ok((uploads, false))
}

/// Whether an upload of this id is open, and for which key.
pub fn key_of(index: &Connection, bucket: &BucketName, id: &str) -> Result<Option<ObjectKey>> {
    let bucket = buckets::require(index, bucket)?;
    let mut statement = index.prepare_cached("select key from uploads where bucket = ?1 and id = ?2")?;
    Ok(statement.query_row((bucket, id), |row| row.get(0)).optional()?.map(ObjectKey::stored))
}

/// When the upload began, in milliseconds.
pub fn started_ms(index: &Connection, upload: &UploadAddress) -> Result<i64> {
    let bucket = buckets::require(index, &upload.object.bucket)?;
    index
        .prepare_cached("select started_ms from uploads where bucket = ?1 and key = ?2 and id = ?3")?
        .query_row((bucket, upload.object.key.as_str(), &upload.id), |row| row.get(0))
        .optional()?
        .ok_or(Error::NoSuchUpload)
}

/// Drops the upload and whatever parts it has.
pub fn abort(write: &mut Write<'_>, upload: &UploadAddress) -> Result<()> {
    load(write.index, upload)?;
    let bodies = parts(write.index, upload)?.into_values().map(|part| part.body).collect::<Vec<_>>();
    close(write, upload)?;
    bodies.into_iter().try_for_each(|body| bodies::release(write, body))
}

/// Drops the rows of the upload and its parts, leaving the parts' bodies to the caller.
pub fn close(write: &Write<'_>, upload: &UploadAddress) -> Result<()> {
    write.index.prepare_cached("delete from parts where upload = ?1")?.execute([&upload.id])?;
    let bucket = buckets::require(write.index, &upload.object.bucket)?;
    write.index.prepare_cached("delete from uploads where bucket = ?1 and key = ?2 and id = ?3")?.execute((
        bucket,
        upload.object.key.as_str(),
        &upload.id,
    ))?;
    Ok(())
}

/// Drops every upload of a bucket.
pub fn drop_all(write: &mut Write<'_>, bucket: BucketId) -> Result<()> {
    let bodies = write
        .index
        .prepare_cached("select body from parts where upload in (select id from uploads where bucket = ?1)")?
        .query_map([bucket], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<BodyId>>>()?;
    write
        .index
        .prepare_cached("delete from parts where upload in (select id from uploads where bucket = ?1)")?
        .execute([bucket])?;
    write.index.prepare_cached("delete from uploads where bucket = ?1")?.execute([bucket])?;
    bodies.into_iter().try_for_each(|body| bodies::release(write, body))
}

/// From the columns number, size, etag, modified_ms, checksum.
fn part_info(row: &Row<'_>) -> Result<PartInfo> {
    Ok(PartInfo {
        number: row.get(0)?,
        size: from_sql(row.get(1)?),
        etag: row.get(2)?,
        last_modified_ms: row.get(3)?,
        checksum: super::decode_checksum(row.get::<_, Option<String>>(4)?.as_deref())?,
    })
}
