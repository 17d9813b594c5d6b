//! The index's tables, its format's version, and how its connections are set up.
//!
//! Listed rows (`objects`) are narrow: bytes, part lists and checksums of blocks are never in them. A body is bytes
//! kept here, or a file, or (neither) the parts `body_parts` names; copies share a body by counting references.

use crate::store::{Error, Result};
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use std::{path::Path, time::Duration};

const INDEX_FILE: &str = "index.db";

/// What each format adds to the one before it, the first to nothing. A store of an older format is brought up to date
/// when it is opened, one of a newer format is refused. A step that has been released is never changed.
const STEPS: [&str; 4] = [TABLES, ANSWERS, SCRUB, BUCKET_SETTINGS];

/// Nobody else writes, so waiting happens only while a connection recovers or checkpoints.
const BUSY_MS: u64 = 10_000;
const STATEMENTS_CACHED_MAX: usize = 64;

/// The log is folded into the index past this many pages: each time costs two syncs and writes each page once.
const CHECKPOINT_PAGES: i64 = 4_000;
/// What the log keeps of its size once folded. Bytes.
const LOG_BYTES_KEPT: i64 = 64 << 20;
const WRITER_CACHE_KIB: i64 = 8 << 10;
const READER_CACHE_KIB: i64 = 2 << 10;

const TABLES: &str = "
create table buckets (
    id integer primary key,
    name text not null unique,
    created_ms integer not null
) strict;

create table objects (
    bucket integer not null,
    key text not null,
    size integer not null,
    etag text not null,
    modified_ms integer not null,
    headers text,
    checksum text,
    parts integer,
    body integer not null,
    primary key (bucket, key)
) strict, without rowid;

create table bodies (
    id integer primary key,
    refs integer not null,
    size integer not null,
    file text,
    bytes blob
) strict;
create unique index bodies_by_file on bodies (file) where file is not null;
create index bodies_dead on bodies (id) where refs = 0;

create table body_parts (
    body integer not null,
    start integer not null,
    number integer not null,
    size integer not null,
    piece integer not null,
    etag text not null,
    checksum text,
    primary key (body, start, number)
) strict, without rowid;

create table uploads (
    bucket integer not null,
    key text not null,
    id text not null,
    started_ms integer not null,
    headers text,
    checksum text,
    primary key (bucket, key, id)
) strict, without rowid;

create table parts (
    upload text not null,
    number integer not null,
    body integer not null,
    size integer not null,
    etag text not null,
    modified_ms integer not null,
    checksum text,
    primary key (upload, number)
) strict, without rowid;
";

/// Ids ascend with time. An attempt is a digest of who wrote what where.
const ANSWERS: &str = "
create table answers (
    id integer primary key,
    attempt blob not null unique,
    etag text not null,
    modified_ms integer not null
) strict;
";

/// What is wrong with which body, until it is gone; and the one round of the scrub that is on, or was the last.
const SCRUB: &str = "
create table damaged (
    body integer primary key,
    what text not null,
    found_ms integer not null
) strict;
create trigger damage_ends after delete on bodies begin
    delete from damaged where body = old.id;
end;
create table scrub (
    id integer primary key check (id = 1),
    body integer not null,
    started_ms integer not null,
    finished_ms integer,
    bodies integer not null,
    bytes integer not null
) strict;
";

const BUCKET_SETTINGS: &str = "
create table bucket_settings (
    bucket integer not null,
    name text not null,
    document text not null,
    primary key (bucket, name)
) strict, without rowid;
";

/// The one connection that writes; makes the tables in a new index. Blocking.
pub fn open_writer(folder: &Path) -> Result<Connection> {
    let connection = connect(folder, OpenFlags::SQLITE_OPEN_CREATE)?;
    let found: u32 = connection.query_row("pragma user_version", [], |row| row.get(0))?;
    let Some(missing) = STEPS.get(found as usize..) else {
        return Err(Error::Folder(format!(
            "it has format {found}, written by a newer release; this one knows {}",
            STEPS.len()
        )));
    };
    // Pages that hold a small object of the common sizes whole, beside their row.
    connection.pragma_update(None, "page_size", 8192)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    if !missing.is_empty() {
        let steps = missing.concat();
        connection.execute_batch(&format!("begin; {steps} pragma user_version = {}; commit;", STEPS.len()))?;
    }
    Ok(connection)
}

/// A connection that only reads an index that is open for writing. Blocking.
pub fn open_reader(folder: &Path) -> Result<Connection> {
    let connection = connect(folder, OpenFlags::empty())?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    Ok(connection)
}

/// A connection of another process than the one that may have the index open, or of none: it reads, and leaves the log
/// as it is. Blocking.
///
/// # Errors
/// `Error::Folder` where there is no index, or one of another format.
pub fn open_beside(folder: &Path) -> Result<Connection> {
    if !folder.join(INDEX_FILE).is_file() {
        return Err(Error::Folder(format!("{} holds no {INDEX_FILE}", folder.display())));
    }
    let connection = open_reader(folder)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let found: u32 = connection.query_row("pragma user_version", [], |row| row.get(0))?;
    if found as usize != STEPS.len() {
        return Err(Error::Folder(format!(
            "it has format {found}, this release's is {}: a start of the server brings an older one up to date",
            STEPS.len()
        )));
    }
    Ok(connection)
}

fn connect(folder: &Path, flags: OpenFlags) -> Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(folder.join(INDEX_FILE), flags)?;
    connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED_MAX);
    Ok(connection)
}
