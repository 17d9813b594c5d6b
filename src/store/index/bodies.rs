//! Rows of bodies: where an object's bytes are, and how many objects share them.

use super::{Write, from_sql, to_sql};
use crate::store::{
    Error, Result,
    disk::{FileName, FreshFile},
    reaper::BodyId,
};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};

/// A body about to get a row. Bytes and files both end in the sums of their blocks.
pub enum NewBody {
    Inline(Bytes),
    File(FreshFile),
}

/// A run of an object's bytes that lies in one place.
pub struct Piece {
    /// Where in the object it starts. Bytes.
    pub start: u64,
    pub size: u64,
    pub place: Place,
}

pub enum Place {
    Inline(Bytes),
    File(FileName),
}

/// What an object's body is made of.
pub enum Shape {
    One(Place),
    Parts,
}

/// With one reference, the caller's.
pub fn insert(write: &mut Write<'_>, size: u64, body: NewBody) -> Result<BodyId> {
    let (file, bytes) = match &body {
        NewBody::Inline(bytes) => (None, Some(&bytes[..])),
        NewBody::File(file) => (Some(file.name().as_str()), None),
    };
    let id = write
        .index
        .prepare_cached("insert into bodies (refs, size, file, bytes) values (1, ?1, ?2, ?3)")?
        .insert((to_sql(size), file, bytes))?;
    if let NewBody::File(file) = body {
        write.adopt(file);
    }
    Ok(id)
}

/// A body that is its parts, which [`add_part`] names.
pub fn insert_parts(write: &Write<'_>, size: u64) -> Result<BodyId> {
    Ok(write.index.prepare_cached("insert into bodies (refs, size) values (1, ?1)")?.insert([to_sql(size)])?)
}

/// The next part of `whole`; the part's reference to its body becomes the whole's.
pub fn add_part(write: &Write<'_>, whole: BodyId, start: u64, part: &super::uploads::Part) -> Result<()> {
    write
        .index
        .prepare_cached(
            "insert into body_parts (body, start, number, size, piece, etag, checksum) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            whole,
            to_sql(start),
            part.info.number,
            to_sql(part.info.size),
            part.body,
            &part.info.etag,
            part.info.checksum.as_ref().map(super::encode_checksum),
        ))?;
    Ok(())
}

pub fn share(write: &Write<'_>, body: BodyId) -> Result<()> {
    write.index.prepare_cached("update bodies set refs = refs + 1 where id = ?1")?.execute([body])?;
    Ok(())
}

/// Gives one reference back. Bytes in the index go with the last one; files are the reaper's.
pub fn release(write: &mut Write<'_>, body: BodyId) -> Result<()> {
    let (refs, inline): (i64, bool) = write
        .index
        .prepare_cached("update bodies set refs = refs - 1 where id = ?1 returning refs, bytes is not null")?
        .query_row([body], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if refs > 0 {
        return Ok(());
    }
    if inline {
        write.index.prepare_cached("delete from bodies where id = ?1")?.execute([body])?;
    } else {
        write.bury(body);
    }
    Ok(())
}

/// The files of a body, and of its parts.
pub fn files(index: &Connection, body: BodyId) -> Result<Vec<FileName>> {
    let mut statement = index.prepare_cached(
        "select file from bodies where id = ?1 and file is not null
         union all
         select bodies.file from body_parts join bodies on bodies.id = body_parts.piece
         where body_parts.body = ?1 and bodies.file is not null",
    )?;
    let names = statement.query_map([body], |row| row.get::<_, String>(0))?;
    names.map(|name| file_name(name?)).collect()
}

/// Drops the rows of a body without references, and of its parts.
pub fn forget(index: &Connection, body: BodyId) -> rusqlite::Result<()> {
    let mut dead = index.prepare_cached("select exists (select 1 from bodies where id = ?1 and refs = 0)")?;
    if !dead.query_row([body], |row| row.get(0))? {
        return Ok(());
    }
    index
        .prepare_cached("delete from bodies where id in (select piece from body_parts where body = ?1)")?
        .execute([body])?;
    index.prepare_cached("delete from body_parts where body = ?1")?.execute([body])?;
    index.prepare_cached("delete from bodies where id = ?1")?.execute([body])?;
    Ok(())
}

/// Bodies that an earlier run left to the reaper.
pub fn dead(index: &Connection) -> Result<Vec<BodyId>> {
    let mut statement = index.prepare("select id from bodies where refs = 0")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The files in one fan-out folder that some row names, in name order.
pub fn files_in(index: &Connection, folder: &str) -> Result<Vec<String>> {
    let mut statement = index.prepare_cached(
        "select file from bodies where file is not null and file >= ?1 || '/' and file < ?1 || '0' order by file",
    )?;
    let rows = statement.query_map([folder], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The part of a body that holds the byte at `position`, which the body has.
pub fn piece_at(index: &Connection, body: BodyId, position: u64) -> Result<Piece> {
    let mut statement = index.prepare_cached(
        "select part.start, part.size, piece.file, piece.bytes
         from body_parts as part join bodies as piece on piece.id = part.piece
         where part.body = ?1 and part.start <= ?2
         order by part.start desc, part.number desc limit 1",
    )?;
    let piece = statement
        .query_row((body, to_sql(position)), |row| Ok((from_sql(row.get(0)?), from_sql(row.get(1)?), shape(row, 2, 3))))
        .optional()?;
    match piece {
        Some((start, size, shape)) if position - start < size => match shape? {
            Shape::One(place) => Ok(Piece { start, size, place }),
            Shape::Parts => Err(Error::Index(format!("body {body} has a part made of parts"))),
        },
        _ => Err(Error::Index(format!("body {body} has no part at byte {position}"))),
    }
}

/// What a body is made of, with its bytes where they are kept here.
pub fn shape_of(index: &Connection, body: BodyId) -> Result<Shape> {
    let mut statement = index.prepare_cached("select file, bytes from bodies where id = ?1")?;
    statement.query_row([body], |row| Ok(shape(row, 0, 1)))?
}

/// Reads a body's shape from the columns of its file and bytes.
pub fn shape(row: &Row<'_>, file: usize, bytes: usize) -> Result<Shape> {
    if let Some(bytes) = row.get_ref(bytes)?.as_blob_or_null().map_err(|error| Error::Index(error.to_string()))? {
        return Ok(Shape::One(Place::Inline(Bytes::copy_from_slice(bytes))));
    }
    match row.get::<_, Option<String>>(file)? {
        Some(name) => Ok(Shape::One(Place::File(file_name(name)?))),
        None => Ok(Shape::Parts),
    }
}

fn file_name(name: String) -> Result<FileName> {
    FileName::parse(&name).ok_or_else(|| Error::Index(format!("the index names a file outside the store: {name}")))
}
