//! Rows of the parts that an object was completed from.

use super::{from_sql, objects, to_sql};
use crate::store::{ObjectInfo, ObjectPart, Result, types::Address};
use rusqlite::{Connection, Row};

/// Parts on a page.
const LIMIT_MAX: usize = 1000;

/// The object, up to `limit` of its parts behind number `after`, and whether more follow. An object that was not made of
/// parts has none.
pub fn list(
    index: &Connection,
    address: &Address,
    after: u32,
    limit: usize,
) -> Result<(ObjectInfo, Vec<ObjectPart>, bool)> {
    let (info, body) = objects::described(index, address)?;
    let limit = limit.min(LIMIT_MAX);
    let mut statement = index.prepare_cached(
        "select number, start, size, checksum from body_parts where body = ?1 and number > ?2
         order by start, number limit ?3",
    )?;
    let mut rows = statement.query((body, after, to_sql(limit as u64 + 1)))?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        if parts.len() == limit {
            return Ok((info, parts, true));
        }
        parts.push(part(row)?);
    }
    Ok((info, parts, false))
}

/// The object, and its part at a place counted from 1.
pub fn at(index: &Connection, address: &Address, ordinal: u32) -> Result<(ObjectInfo, Option<ObjectPart>)> {
    let (info, body) = objects::described(index, address)?;
    let mut statement = index.prepare_cached(
        "select number, start, size, checksum from body_parts where body = ?1
         order by start, number limit 1 offset ?2",
    )?;
    let mut rows = statement.query((body, i64::from(ordinal) - 1))?;
    let part = rows.next()?.map(part).transpose()?;
    Ok((info, part))
}

/// From the columns number, start, size, checksum.
fn part(row: &Row<'_>) -> Result<ObjectPart> {
    Ok(ObjectPart {
        number: row.get(0)?,
        start: from_sql(row.get(1)?),
        size: from_sql(row.get(2)?),
        checksum: super::decode_checksum(row.get::<_, Option<String>>(3)?.as_deref())?,
    })
}
