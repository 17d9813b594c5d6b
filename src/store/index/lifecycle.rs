//! What is due by a bucket's lifecycle: found by a scan of a bounded page, and removed once it is seen to be so still.

use super::{
    Write,
    buckets::{self, BucketId},
    from_sql,
    locate::{self, Table},
    objects, to_sql,
    uploads::{self, UploadAddress},
    versions,
};
use crate::store::{
    BucketName, Deletion, Error, Governance, LifecycleReport, ObjectKey, Result, VersionId,
    lifecycle::{Candidate, CandidateObject, Fate, Standing},
    types::Address,
};
use rusqlite::Connection;

/// Where a scan has come: behind this age of this key.
#[derive(Debug, Clone)]
pub struct Position {
    key: String,
    age: i64,
    modified_ms: i64,
    /// Versions of the key seen so far.
    seen: u32,
}

/// A version that is due.
#[derive(Debug, Clone)]
pub struct Due {
    key: ObjectKey,
    age: i64,
    version: VersionId,
    modified_ms: i64,
    fate: Fate,
}

pub struct Page {
    pub due: Vec<Due>,
    /// `None` at the end of the bucket.
    pub next: Option<Position>,
}

/// Looks at up to `limit` versions behind a position. Nothing is due where the bucket or its rules are gone.
pub fn due(
    index: &Connection,
    bucket: &BucketName,
    position: Option<Position>,
    limit: usize,
    now_ms: i64,
) -> Result<Page> {
    // One snapshot for all statements of the page.
    let index = index.unchecked_transaction()?;
    let mut page = Page { due: Vec::new(), next: None };
    let (Some(id), Some(lifecycle)) = (buckets::id(&index, bucket)?, buckets::lifecycle_if_there(&index, bucket)?)
    else {
        return Ok(page);
    };
    let mut statement = index.prepare_cached(
        "select key, age, version, modified_ms, body is not null, size, tags from objects
         where bucket = ?1 and (key, age) > (?2, ?3)
         union all
         select key, age, version, modified_ms, body is not null, size, tags from versions
         where bucket = ?1 and (key, age) > (?2, ?3)
         order by 1, 2 limit ?4",
    )?;
    let (key, age) = position.as_ref().map_or(("", i64::MIN), |position| (&position.key, position.age));
    let mut rows = statement.query((id, key, age, to_sql(limit as u64)))?;
    let mut above = position.clone();
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        looked_at += 1;
        let key: String = row.get(0)?;
        let (age, modified_ms) = (row.get(1)?, row.get(3)?);
        let tags = super::decode(row.get::<_, Option<String>>(6)?.as_deref())?;
        let size = from_sql(row.get(5)?);
        let object = row.get::<_, bool>(4)?.then_some(CandidateObject { size, tags: &tags });
        let above_it = above.take().filter(|above| above.key == key);
        let standing = match &above_it {
            Some(above) => Standing::Noncurrent { newer: above.seen - 1, since_ms: above.modified_ms },
            None => Standing::Newest { alone: !has_older(&index, id, &key, age)? },
        };
        let fate = lifecycle.fate(&Candidate { key: &key, modified_ms, object, standing }, now_ms);
        if fate != Fate::Stays {
            let (key, version) = (ObjectKey::stored(key.clone()), VersionId::stored(row.get(2)?));
            page.due.push(Due { key, age, version, modified_ms, fate });
        }
        above =
            Some(Position { key, age, modified_ms, seen: above_it.map_or(0, |above| above.seen).saturating_add(1) });
    }
    drop(rows);
    drop(statement);
    index.finish()?;
    if looked_at == limit {
        page.next = above;
    }
    Ok(page)
}

fn has_older(index: &Connection, bucket: BucketId, key: &str, age: i64) -> Result<bool> {
    let mut statement =
        index.prepare_cached("select exists (select 1 from versions where bucket = ?1 and key = ?2 and age > ?3)")?;
    Ok(statement.query_row((bucket, key, age), |row| row.get(0))?)
}

/// Removes what is due and still stands as it was seen. What is locked stays.
pub fn remove(write: &mut Write<'_>, bucket: &BucketName, due: &[Due], now_ms: i64) -> Result<LifecycleReport> {
    let mut report = LifecycleReport::default();
    let Some(id) = buckets::id(write.index, bucket)? else { return Ok(report) };
    for version in due {
        match version.fate {
            Fate::Stays => {}
            Fate::Expires => report.expired += u64::from(expire(write, bucket, id, version, now_ms)?),
            Fate::Removed => report.removed += u64::from(remove_version(write, id, version, now_ms)?),
        }
    }
    Ok(report)
}

/// Whether it was still the current object.
fn expire(write: &mut Write<'_>, bucket: &BucketName, id: BucketId, due: &Due, now_ms: i64) -> Result<bool> {
    let current = objects::current(write.index, id, &due.key)?;
    let same = current.is_some_and(|current| {
        (current.age, &current.version, current.facts().modified_ms) == (due.age, &due.version, due.modified_ms)
    });
    if same {
        versions::delete(write, &Address::new(bucket, &due.key), &Deletion { now_ms, ..Deletion::default() })?;
    }
    Ok(same)
}

/// Whether it still stood where it was seen, below another version or as a marker alone, and nothing keeps it.
fn remove_version(write: &mut Write<'_>, bucket: BucketId, due: &Due, now_ms: i64) -> Result<bool> {
    let Some(found) = locate::version(write.index, bucket, &due.key, &due.version)? else { return Ok(false) };
    if found.table == Table::Objects || (found.age, found.modified_ms) != (due.age, due.modified_ms) {
        return Ok(false);
    }
    let has_object = objects::current(write.index, bucket, &due.key)?.is_some();
    let is_newest =
        !has_object && versions::newest(write.index, bucket, &due.key)?.is_some_and(|(age, _)| age == due.age);
    if is_newest && has_older(write.index, bucket, due.key.as_str(), due.age)? {
        return Ok(false);
    }
    if found.lock.check_removal(Governance::Obeyed, now_ms).is_err() {
        return Ok(false);
    }
    versions::remove_located(write, bucket, &due.key, &found)?;
    Ok(true)
}

/// Aborts those that are still open; answers how many.
pub fn abort(write: &mut Write<'_>, due: &[UploadAddress]) -> Result<u64> {
    let mut aborted = 0;
    for upload in due {
        match uploads::abort(write, upload) {
            Ok(()) => aborted += 1,
            Err(Error::NoSuchUpload | Error::NoSuchBucket) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(aborted)
}
