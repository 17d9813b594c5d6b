//! Rows as the check of stored bytes sees them: bodies one after the other, what was found wrong, and how far it came.

use super::{
    Write,
    bodies::{self, Place, Shape},
    from_sql, to_sql,
};
use crate::store::{
    Result,
    disk::FileName,
    reaper::BodyId,
    verify::{Damage, Pass, Stats},
};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

/// A body that something refers to.
pub struct Stored {
    pub id: BodyId,
    pub size: u64,
    pub content: Content,
    /// It was found to be damaged before.
    pub is_marked: bool,
}

pub enum Content {
    Inline(Bytes),
    File(FileName),
    /// Made of parts, which are bodies themselves; says what is wrong with how they fit together.
    Parts(Option<&'static str>),
}

/// The first one after `after`.
pub fn next_body(index: &Connection, after: BodyId) -> Result<Option<Stored>> {
    let id = index
        .prepare_cached("select id from bodies where id > ?1 and refs > 0 order by id limit 1")?
        .query_row([after], |row| row.get(0))
        .optional()?;
    id.map_or(Ok(None), |id| body(index, id))
}

/// `None` where nothing refers to it any more.
pub fn body(index: &Connection, id: BodyId) -> Result<Option<Stored>> {
    let mut statement = index.prepare_cached(
        "select size, file, bytes, exists (select 1 from damaged where body = id) from bodies
         where id = ?1 and refs > 0",
    )?;
    let found = statement
        .query_row([id], |row| Ok((from_sql(row.get(0)?), bodies::shape(row, 1, 2), row.get(3)?)))
        .optional()?;
    let Some((size, shape, is_marked)) = found else { return Ok(None) };
    let content = match shape? {
        Shape::One(Place::Inline(bytes)) => Content::Inline(bytes),
        Shape::One(Place::File(name)) => Content::File(name),
        Shape::Parts => Content::Parts(misfit(index, id, size)?),
    };
    Ok(Some(Stored { id, size, content, is_marked }))
}

/// What is wrong with the parts of a body: each has to be there, where the one before it ends.
fn misfit(index: &Connection, body: BodyId, size: u64) -> Result<Option<&'static str>> {
    let mut statement = index.prepare_cached(
        "select part.start, part.size, piece.size from body_parts as part
         left join bodies as piece on piece.id = part.piece
         where part.body = ?1 order by part.start, part.number",
    )?;
    let mut rows = statement.query([body])?;
    let mut end = 0;
    while let Some(row) = rows.next()? {
        let (start, length): (i64, i64) = (row.get(0)?, row.get(1)?);
        if row.get::<_, Option<i64>>(2)? != Some(length) {
            return Ok(Some("a part is missing or has another size"));
        }
        if from_sql(start) != end {
            return Ok(Some("a part is not where the one before it ends"));
        }
        end += from_sql(length);
    }
    Ok((end != size).then_some("its parts do not add up to its size"))
}

/// The bodies of the parts of a body.
pub fn pieces(index: &Connection, body: BodyId) -> Result<Vec<BodyId>> {
    let mut statement = index.prepare_cached("select piece from body_parts where body = ?1")?;
    let rows = statement.query_map([body], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub fn mark(write: &Write<'_>, body: BodyId, what: &str, now_ms: i64) -> Result<()> {
    write
        .index
        .prepare_cached(
            "insert into damaged (body, what, found_ms) select id, ?2, ?3 from bodies where id = ?1
             on conflict (body) do update set what = excluded.what",
        )?
        .execute((body, what, now_ms))?;
    Ok(())
}

pub fn clear(write: &Write<'_>, body: BodyId) -> Result<()> {
    write.index.prepare_cached("delete from damaged where body = ?1")?.execute([body])?;
    Ok(())
}

/// Up to `limit` damaged bodies and what is wrong with each, and how many there are.
pub fn marked(index: &Connection, limit: usize) -> Result<(BTreeMap<BodyId, String>, u64)> {
    let mut statement = index.prepare_cached(
        "select body, what from damaged join bodies on bodies.id = body where refs > 0 order by body limit ?1",
    )?;
    let rows = statement.query_map([to_sql(limit as u64)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let bodies = rows.collect::<rusqlite::Result<_>>()?;
    Ok((bodies, from_sql(count_marked(index)?)))
}

/// A body that was removed counts no more, though its row may wait for the next change.
fn count_marked(index: &Connection) -> Result<i64> {
    let count = "select count(*) from damaged join bodies on bodies.id = body where refs > 0";
    Ok(index.prepare_cached(count)?.query_row([], |row| row.get(0))?)
}

/// What clients call these bodies: up to `limit` objects and parts of uploads. Reads all rows of objects and versions.
pub fn owners(index: &Connection, damaged: &BTreeMap<BodyId, String>, limit: usize) -> Result<Vec<Damage>> {
    if damaged.is_empty() {
        return Ok(Vec::new());
    }
    let ids = serde_json::Value::from(damaged.keys().copied().collect::<Vec<_>>()).to_string();
    let mut statement = index.prepare_cached(
        "with wrong (body) as (select value from json_each(?1)),
         whole (body, wrong) as (
             select body, body from wrong
             union all select part.body, part.piece from body_parts as part where part.piece in (select body from wrong)
         )
         select bucket.name, object.key, coalesce(object.version, 'null'), whole.wrong, null, null
         from whole
         join (
             select bucket, key, version, body from objects union all select bucket, key, version, body from versions
         ) as object on object.body = whole.body
         join buckets as bucket on bucket.id = object.bucket
         union all
         select bucket.name, upload.key, 'null', part.body, upload.id, part.number
         from parts as part join uploads as upload on upload.id = part.upload
         join buckets as bucket on bucket.id = upload.bucket
         where part.body in (select body from wrong)
         limit ?2",
    )?;
    let rows = statement.query_map((ids, to_sql(limit as u64)), |row| {
        let (upload, part): (Option<String>, Option<u32>) = (row.get(4)?, row.get(5)?);
        Ok((
            row.get::<_, BodyId>(3)?,
            Damage {
                bucket: row.get(0)?,
                key: row.get(1)?,
                version: row.get(2)?,
                upload: upload.zip(part),
                what: String::new(),
            },
        ))
    })?;
    rows.map(|row| {
        let (body, damage) = row?;
        Ok(Damage { what: damaged.get(&body).cloned().unwrap_or_default(), ..damage })
    })
    .collect()
}

/// Objects whose record does not fit the body it names, up to `limit`. Reads all rows of objects and versions.
pub fn misfits(index: &Connection, limit: usize) -> Result<Vec<Damage>> {
    let mut statement = index.prepare(
        "select bucket.name, object.key, coalesce(object.version, 'null'), body.id is null
         from (
             select bucket, key, version, size, body from objects
             union all
             select bucket, key, version, size, body from versions where body is not null
         ) as object
         left join buckets as bucket on bucket.id = object.bucket
         left join bodies as body on body.id = object.body
         where body.id is null or body.size <> object.size
         limit ?1",
    )?;
    let rows = statement.query_map([to_sql(limit as u64)], |row| {
        let what = if row.get(3)? { "the index has no body for it" } else { "its size is not the size of its body" };
        Ok(Damage {
            bucket: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
            key: row.get(1)?,
            version: row.get(2)?,
            upload: None,
            what: what.to_owned(),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// What SQLite finds wrong with its own file, up to `limit` findings. Reads all of it.
pub fn integrity(index: &Connection, limit: usize) -> Result<Vec<String>> {
    let mut statement = index.prepare(&format!("pragma integrity_check({limit})"))?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let found = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(found.into_iter().filter(|line| line != "ok").collect())
}

pub fn load_pass(index: &Connection) -> Result<Pass> {
    let mut statement = index.prepare_cached("select body, started_ms, finished_ms, bodies, bytes from scrub")?;
    let pass = statement.query_row([], |row| {
        Ok(Pass {
            at: row.get(0)?,
            started_ms: row.get(1)?,
            finished_ms: row.get(2)?,
            bodies: from_sql(row.get(3)?),
            bytes: from_sql(row.get(4)?),
        })
    });
    Ok(pass.optional()?.unwrap_or_default())
}

pub fn save_pass(write: &Write<'_>, pass: &Pass) -> Result<()> {
    write
        .index
        .prepare_cached(
            "insert or replace into scrub (id, body, started_ms, finished_ms, bodies, bytes)
             values (1, ?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((pass.at, pass.started_ms, pass.finished_ms, to_sql(pass.bodies), to_sql(pass.bytes)))?;
    Ok(())
}

/// Counts rows; reads all of them.
pub fn stats(index: &Connection) -> Result<Stats> {
    let index = index.unchecked_transaction()?;
    let pair = |sum: &str| -> Result<(u64, u64)> {
        Ok(index.query_row(sum, [], |row| Ok((from_sql(row.get(0)?), from_sql(row.get(1)?))))?)
    };
    let (buckets, _) = pair("select count(*), 0 from buckets")?;
    let (objects, object_bytes) = pair("select count(*), coalesce(sum(size), 0) from objects")?;
    let (small, small_bytes) = pair("select count(*), coalesce(sum(size), 0) from bodies where bytes is not null")?;
    let (files, file_bytes) = pair("select count(*), coalesce(sum(size), 0) from bodies where file is not null")?;
    let (parts, part_bytes) = pair("select count(*), coalesce(sum(size), 0) from parts")?;
    let (uploads, _) = pair("select count(*), 0 from uploads")?;
    let (damaged, pass) = (from_sql(count_marked(&index)?), load_pass(&index)?);
    Ok(Stats {
        buckets,
        objects,
        object_bytes,
        small,
        small_bytes,
        files,
        file_bytes,
        uploads,
        parts,
        part_bytes,
        damaged,
        pass,
        ..Stats::default()
    })
}
