//! Rows of answers: conditional writes that were done, for clients whose answer was lost and who ask again.
//!
//! A row is written in the transaction that publishes, so there is one exactly when the write is there, after a crash
//! too. Only writes with a condition need one: any other may simply be done again.

use super::Write;
use crate::store::{
    Attempt, Error, ObjectInfo, Result,
    index::objects,
    types::{Address, Terms},
};
use rusqlite::{Connection, OptionalExtension};

/// SDKs give up within a few minutes (a handful of tries, each behind a timeout of a minute or so). Milliseconds.
pub const KEPT_MS: i64 = 15 * 60 * 1000;
/// About 8 MiB of the index; at 500 conditional writes a second the last two minutes of them.
pub const KEPT_MAX: i64 = 65_536;
/// Outdated rows dropped with each new one: more than one, so that they become fewer.
const DROPPED_A_WRITE: i64 = 4;

/// The object that this very write made earlier, where it is still what the key names.
///
/// `etag` is that of the bytes sent this time: other bytes are another write, whatever its id. Where the object has been
/// replaced since, the write is judged like a new one: its client has to look at what is there now.
pub fn done_before(
    index: &Connection,
    address: &Address,
    terms: &Terms,
    etag: &str,
    now_ms: i64,
) -> Result<Option<ObjectInfo>> {
    let Some(attempt) = terms.attempt() else { return Ok(None) };
    match find(index, address, attempt, now_ms)? {
        Some((made, modified_ms)) if made == etag => match objects::head(index, address, None) {
            Ok(info) if info.etag == made && info.last_modified_ms == modified_ms => Ok(Some(info)),
            Ok(_) | Err(Error::NoSuchKey | Error::Deleted { .. }) => Ok(None),
            Err(error) => Err(error),
        },
        _ => Ok(None),
    }
}

/// Whether a write with this id was done, whatever its bytes were.
pub fn is_known(index: &Connection, address: &Address, attempt: &Attempt, now_ms: i64) -> Result<bool> {
    Ok(find(index, address, attempt, now_ms)?.is_some())
}

/// Etag and time (ms) of what it made.
fn find(index: &Connection, address: &Address, attempt: &Attempt, now_ms: i64) -> Result<Option<(String, i64)>> {
    let mut statement =
        index.prepare_cached("select etag, modified_ms from answers where attempt = ?1 and modified_ms > ?2")?;
    let found = statement.query_row((attempt.digest(address), now_ms - KEPT_MS), |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

/// Writes down that the write made `info`, and drops what is too old or too much.
pub fn remember(write: &Write<'_>, address: &Address, terms: &Terms, info: &ObjectInfo) -> Result<()> {
    let Some(attempt) = terms.attempt() else { return Ok(()) };
    let index = write.index;
    let id = index
        .prepare_cached("insert or replace into answers (attempt, etag, modified_ms) values (?1, ?2, ?3)")?
        .insert((attempt.digest(address), &info.etag, info.last_modified_ms))?;
    index
        .prepare_cached(
            "delete from answers where id in (select id from answers order by id limit ?1)
             and (modified_ms <= ?2 or id <= ?3)",
        )?
        .execute((DROPPED_A_WRITE, info.last_modified_ms - KEPT_MS, id - KEPT_MAX))?;
    Ok(())
}
