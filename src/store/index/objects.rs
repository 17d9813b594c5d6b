//! Rows of objects: what a key is now.

use super::{
    Write,
    bodies::{self, NewBody, Shape},
    buckets::{self, BucketId},
    from_sql, to_sql,
};
use crate::store::{Condition, Error, ObjectHeaders, ObjectInfo, ObjectKey, Result, reaper::BodyId, types::Address};
use rusqlite::{Connection, OptionalExtension, Row};

/// An object and where its bytes are.
pub struct Found {
    pub info: ObjectInfo,
    pub body: BodyId,
    pub shape: Shape,
}

/// Makes `body` the object `info` describes.
pub fn publish(
    write: &mut Write<'_>,
    address: &Address,
    body: NewBody,
    info: &ObjectInfo,
    condition: &Condition,
) -> Result<()> {
    let bucket = buckets::require(write.index, &address.bucket)?;
    let old = decide(write.index, bucket, &address.key, condition)?;
    let body = bodies::insert(write, info.size, body)?;
    replace(write, bucket, info, body, old)
}

/// What a write with this condition would replace.
///
/// # Errors
/// `Error::PreconditionFailed`, `Error::NoSuchKey`.
pub fn decide(index: &Connection, bucket: BucketId, key: &ObjectKey, condition: &Condition) -> Result<Option<BodyId>> {
    let current: Option<(String, BodyId)> = index
        .prepare_cached("select etag, body from objects where bucket = ?1 and key = ?2")?
        .query_row((bucket, key.as_str()), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match (condition, &current) {
        (Condition::Absent, Some(_)) => Err(Error::PreconditionFailed),
        (Condition::Etag(_), None) => Err(Error::NoSuchKey),
        (Condition::Etag(wanted), Some((etag, _))) if wanted != etag => Err(Error::PreconditionFailed),
        _ => Ok(current.map(|(_, body)| body)),
    }
}

/// The one statement that makes an object visible; `body`'s reference becomes the object's.
pub fn replace(
    write: &mut Write<'_>,
    bucket: BucketId,
    info: &ObjectInfo,
    body: BodyId,
    old: Option<BodyId>,
) -> Result<()> {
    write
        .index
        .prepare_cached(
            "insert or replace into objects (bucket, key, size, etag, modified_ms, headers, checksum, parts, body)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute((
            bucket,
            info.key.as_str(),
            to_sql(info.size),
            &info.etag,
            info.last_modified_ms,
            encode_headers(&info.headers)?,
            info.checksum.as_ref().map(super::encode_checksum),
            info.parts,
            body,
        ))?;
    old.map_or(Ok(()), |old| bodies::release(write, old))
}

/// Whether there was one.
pub fn delete(write: &mut Write<'_>, address: &Address, condition: &Condition) -> Result<bool> {
    let bucket = buckets::require(write.index, &address.bucket)?;
    let Some(body) = decide(write.index, bucket, &address.key, condition)? else { return Ok(false) };
    write
        .index
        .prepare_cached("delete from objects where bucket = ?1 and key = ?2")?
        .execute((bucket, address.key.as_str()))?;
    bodies::release(write, body)?;
    Ok(true)
}

/// Makes `to` an object of the same bytes.
///
/// # Errors
/// `Error::PreconditionFailed` where `check` refuses the source.
pub fn copy(
    write: &mut Write<'_>,
    from: &Address,
    to: &Address,
    headers: Option<ObjectHeaders>,
    check: impl FnOnce(&ObjectInfo) -> bool,
    condition: &Condition,
    now_ms: i64,
) -> Result<ObjectInfo> {
    let (source, body) = described(write.index, from)?;
    if !check(&source) {
        return Err(Error::PreconditionFailed);
    }
    let bucket = buckets::require(write.index, &to.bucket)?;
    let old = decide(write.index, bucket, &to.key, condition)?;
    let headers = headers.unwrap_or(ObjectHeaders { website_redirect_location: None, ..source.headers });
    let info = ObjectInfo { key: to.key.clone(), last_modified_ms: now_ms, headers, ..source };
    // Before the old body is released: it may be the same one.
    bodies::share(write, body)?;
    replace(write, bucket, &info, body, old)?;
    Ok(info)
}

pub fn head(index: &Connection, address: &Address) -> Result<ObjectInfo> {
    Ok(described(index, address)?.0)
}

pub fn described(index: &Connection, address: &Address) -> Result<(ObjectInfo, BodyId)> {
    let mut statement = index.prepare_cached(
        "select size, etag, modified_ms, headers, checksum, parts, body from objects
         where bucket = (select id from buckets where name = ?1) and key = ?2",
    )?;
    let found = statement
        .query_row((address.bucket.as_str(), address.key.as_str()), |row| {
            Ok((info(row, address.key.clone()), row.get(6)?))
        })
        .optional()?;
    match found {
        Some((info, body)) => Ok((info?, body)),
        None => missing(index, address),
    }
}

/// The object with its bytes, where they are kept here.
pub fn open(index: &Connection, address: &Address) -> Result<Found> {
    let mut statement = index.prepare_cached(
        "select object.size, etag, modified_ms, headers, checksum, parts, body, body.file, body.bytes
         from objects as object join bodies as body on body.id = object.body
         where bucket = (select id from buckets where name = ?1) and key = ?2",
    )?;
    let found = statement
        .query_row((address.bucket.as_str(), address.key.as_str()), |row| {
            Ok((info(row, address.key.clone()), row.get(6)?, bodies::shape(row, 7, 8)))
        })
        .optional()?;
    match found {
        Some((info, body, shape)) => Ok(Found { info: info?, body, shape: shape? }),
        None => missing(index, address),
    }
}

fn missing<T>(index: &Connection, address: &Address) -> Result<T> {
    buckets::require(index, &address.bucket)?;
    Err(Error::NoSuchKey)
}

/// From the columns size, etag, modified_ms, headers, checksum, parts.
fn info(row: &Row<'_>, key: ObjectKey) -> Result<ObjectInfo> {
    Ok(ObjectInfo {
        key,
        size: from_sql(row.get(0)?),
        etag: row.get(1)?,
        last_modified_ms: row.get(2)?,
        headers: decode_headers(row.get::<_, Option<String>>(3)?.as_deref())?,
        checksum: super::decode_checksum(row.get::<_, Option<String>>(4)?.as_deref())?,
        parts: row.get(5)?,
    })
}

/// JSON; nothing where there are none.
pub fn encode_headers(headers: &ObjectHeaders) -> Result<Option<String>> {
    if *headers == ObjectHeaders::default() {
        return Ok(None);
    }
    serde_json::to_string(headers).map(Some).map_err(|error| Error::Index(error.to_string()))
}

pub fn decode_headers(text: Option<&str>) -> Result<ObjectHeaders> {
    text.map_or_else(|| Ok(ObjectHeaders::default()), serde_json::from_str)
        .map_err(|error| Error::Index(format!("headers in the index: {error}")))
}
