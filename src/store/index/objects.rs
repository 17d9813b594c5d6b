//! Rows of objects: what a key is now. What it was before is in [`super::versions`].

use super::{
    Write,
    bodies::{self, NewBody, Shape},
    buckets::{self, Bucket, BucketId},
    from_sql, locate, to_sql, versions,
};
use crate::store::{
    Condition, Copy, Error, ObjectHeaders, ObjectInfo, ObjectKey, Result, VersionId, reaper::BodyId, types::Address,
};
use rusqlite::{Connection, OptionalExtension, Row};

/// An object and where its bytes are.
pub struct Found {
    pub info: ObjectInfo,
    pub body: BodyId,
    pub shape: Shape,
}

/// What a write replaces or hides.
pub struct Current {
    pub age: i64,
    pub version: VersionId,
    pub body: BodyId,
    modified_ms: i64,
    size: u64,
    etag: String,
}

/// What conditions look at.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub etag: &'a str,
    pub size: u64,
    pub modified_ms: i64,
}

impl Current {
    pub fn facts(&self) -> Facts<'_> {
        Facts { etag: &self.etag, size: self.size, modified_ms: self.modified_ms }
    }
}

impl Condition {
    /// # Errors
    /// `Error::PreconditionFailed`; `Error::NoSuchKey` where an etag is asked for and there is no object.
    pub(super) fn check(&self, current: Option<Facts<'_>>) -> Result<()> {
        let holds = match (self, current) {
            (Self::None, _) | (Self::Absent, None) => true,
            (Self::Absent, Some(_)) => false,
            (Self::Etag(_), None) => return Err(Error::NoSuchKey),
            (Self::Etag(wanted), Some(Facts { etag, .. })) => wanted == etag,
            (Self::Fits(wanted), None) => match wanted.etag.as_deref() {
                Some("*") => false,
                Some(_) => return Err(Error::NoSuchKey),
                None => true,
            },
            (Self::Fits(wanted), Some(facts)) => {
                wanted.etag.as_deref().is_none_or(|etag| etag == "*" || etag == facts.etag)
                    && wanted.size.is_none_or(|size| size == facts.size)
                    && wanted.modified_s.is_none_or(|moment| moment == facts.modified_ms.div_euclid(1000))
            }
        };
        if holds { Ok(()) } else { Err(Error::PreconditionFailed) }
    }
}

/// Makes `body` the object `info` describes; answers it as it then is, with its version and lock.
pub fn publish(
    write: &mut Write<'_>,
    address: &Address,
    body: NewBody,
    info: ObjectInfo,
    condition: &Condition,
) -> Result<ObjectInfo> {
    let bucket = buckets::load(write.index, &address.bucket)?;
    let old = decide(write.index, bucket.id, &address.key, condition)?;
    let body = bodies::insert(write, info.size, body)?;
    replace(write, &bucket, info, body, old.as_ref())
}

/// What a write with this condition would replace.
///
/// # Errors
/// `Error::PreconditionFailed`, `Error::NoSuchKey`.
pub fn decide(index: &Connection, bucket: BucketId, key: &ObjectKey, condition: &Condition) -> Result<Option<Current>> {
    let current = current(index, bucket, key)?;
    condition.check(current.as_ref().map(Current::facts))?;
    Ok(current)
}

pub fn current(index: &Connection, bucket: BucketId, key: &ObjectKey) -> Result<Option<Current>> {
    let mut statement = index.prepare_cached(
        "select age, version, body, modified_ms, size, etag from objects where bucket = ?1 and key = ?2",
    )?;
    let current = statement.query_row((bucket, key.as_str()), |row| {
        Ok(Current {
            age: row.get(0)?,
            version: VersionId::stored(row.get(1)?),
            body: row.get(2)?,
            modified_ms: row.get(3)?,
            size: from_sql(row.get(4)?),
            etag: row.get(5)?,
        })
    });
    Ok(current.optional()?)
}

/// The one statement that makes an object visible; `body`'s reference becomes the object's.
///
/// # Errors
/// `Error::LockNotEnabled`.
pub fn replace(
    write: &mut Write<'_>,
    bucket: &Bucket,
    info: ObjectInfo,
    body: BodyId,
    old: Option<&Current>,
) -> Result<ObjectInfo> {
    let lock = info.lock.of_new_version(bucket.state.lock.as_ref(), info.last_modified_ms)?;
    let place = versions::make_room(write, bucket, &info.key, old, info.last_modified_ms)?;
    let info = ObjectInfo { version: place.version, lock, ..info };
    write
        .index
        .prepare_cached(
            "insert or replace into objects
                 (bucket, key, size, etag, modified_ms, headers, checksum, parts, body, age, version, tags, lock)
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute((
            bucket.id,
            info.key.as_str(),
            to_sql(info.size),
            &info.etag,
            info.last_modified_ms,
            super::encode(&info.headers)?,
            info.checksum.as_ref().map(super::encode_checksum),
            info.parts,
            body,
            place.age,
            info.version.as_ref().and_then(VersionId::column),
            super::encode(&info.tags)?,
            super::encode(&info.lock)?,
        ))?;
    Ok(info)
}

/// Makes `to` an object of the same bytes.
///
/// # Errors
/// `Error::PreconditionFailed` where `check` refuses the source.
pub fn copy(
    write: &mut Write<'_>,
    from: &Address,
    to: &Address,
    copy: Copy,
    check: impl FnOnce(&ObjectInfo) -> bool,
) -> Result<ObjectInfo> {
    let (source, body) = described(write.index, from, copy.version.as_ref())?;
    if !check(&source) {
        return Err(Error::PreconditionFailed);
    }
    let bucket = buckets::load(write.index, &to.bucket)?;
    let old = decide(write.index, bucket.id, &to.key, &copy.terms.condition)?;
    // Where a website redirects to is not copied along.
    let headers = copy.headers.unwrap_or(ObjectHeaders { website_redirect_location: None, ..source.headers });
    let info = ObjectInfo {
        key: to.key.clone(),
        last_modified_ms: copy.now_ms,
        headers,
        tags: copy.tags.unwrap_or(source.tags),
        lock: copy.lock,
        ..source
    };
    // Before the old body is released: it may be the same one.
    bodies::share(write, body)?;
    replace(write, &bucket, info, body, old.as_ref())
}

/// The current object, or one version.
pub fn head(index: &Connection, address: &Address, version: Option<&VersionId>) -> Result<ObjectInfo> {
    Ok(described(index, address, version)?.0)
}

pub fn described(index: &Connection, address: &Address, version: Option<&VersionId>) -> Result<(ObjectInfo, BodyId)> {
    let mut statement = index.prepare_cached(
        "select size, etag, modified_ms, headers, checksum, parts, version, tags, lock, versioning is not null, body
         from buckets as bucket join objects as object on object.bucket = bucket.id
         where bucket.name = ?1 and object.key = ?2",
    )?;
    let found = statement.query_row((address.bucket.as_str(), address.key.as_str()), |row| {
        let is_asked_for = is_version(row, 6, version)?;
        Ok((is_asked_for, info(row, address.key.clone()), row.get(10)?))
    });
    match found.optional()? {
        Some((true, info, body)) => Ok((info?, body)),
        _ => below(index, address, version),
    }
}

/// The object with its bytes, where they are kept here.
pub fn open(index: &Connection, address: &Address, version: Option<&VersionId>) -> Result<Found> {
    let mut statement = index.prepare_cached(
        "select object.size, etag, modified_ms, headers, checksum, parts, version, tags, lock,
                versioning is not null, body, body.file, body.bytes
         from buckets as bucket
         join objects as object on object.bucket = bucket.id
         join bodies as body on body.id = object.body
         where bucket.name = ?1 and object.key = ?2",
    )?;
    let found = statement.query_row((address.bucket.as_str(), address.key.as_str()), |row| {
        if !is_version(row, 6, version)? {
            return Ok(None);
        }
        Ok(Some((info(row, address.key.clone()), row.get(10)?, bodies::shape(row, 11, 12))))
    });
    match found.optional()?.flatten() {
        Some((info, body, shape)) => Ok(Found { info: info?, body, shape: shape? }),
        None => {
            let (info, body) = below(index, address, version)?;
            Ok(Found { info, body, shape: bodies::shape_of(index, body)? })
        }
    }
}

/// Whether the row is of the version asked for: the current one, or a named one.
fn is_version(row: &Row<'_>, column: usize, version: Option<&VersionId>) -> rusqlite::Result<bool> {
    let Some(version) = version else { return Ok(true) };
    let found = row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?;
    Ok(found == version.column())
}

/// A named version that is not the current object, or why there is none.
fn below(index: &Connection, address: &Address, version: Option<&VersionId>) -> Result<(ObjectInfo, BodyId)> {
    let bucket = buckets::load(index, &address.bucket)?;
    let Some(version) = version else { return locate::missing(index, bucket.id, &address.key) };
    let Some(located) = locate::version(index, bucket.id, &address.key, version)? else {
        return Err(Error::NoSuchVersion);
    };
    let Some(body) = located.body else {
        return Err(Error::DeleteMarker { version: version.clone(), last_modified_ms: located.modified_ms });
    };
    let mut statement = index.prepare_cached(
        "select size, etag, modified_ms, headers, checksum, parts, version, tags, lock, 1
         from versions where bucket = ?1 and key = ?2 and age = ?3",
    )?;
    let found = statement
        .query_row((bucket.id, address.key.as_str(), located.age), |row| Ok(info(row, address.key.clone())))?;
    Ok((found?, body))
}

/// From the columns size, etag, modified_ms, headers, checksum, parts, version, tags, lock, and whether the bucket
/// ever kept versions.
fn info(row: &Row<'_>, key: ObjectKey) -> Result<ObjectInfo> {
    let text = |column| row.get::<_, Option<String>>(column);
    let keeps_versions: bool = row.get(9)?;
    let version = text(6)?;
    Ok(ObjectInfo {
        key,
        size: from_sql(row.get(0)?),
        etag: row.get(1)?,
        last_modified_ms: row.get(2)?,
        headers: super::decode(text(3)?.as_deref())?,
        checksum: super::decode_checksum(text(4)?.as_deref())?,
        parts: row.get(5)?,
        version: keeps_versions.then(|| VersionId::stored(version)),
        tags: super::decode(text(7)?.as_deref())?,
        lock: super::decode(text(8)?.as_deref())?,
    })
}
