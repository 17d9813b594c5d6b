//! Tables and views: one row each, and the pointer to the current metadata file.
//!
//! [`swap`] is the only statement that makes a commit visible. It compares the revision and the location it was built
//! on, raises the revision and records the new location in the table's commit history, in one transaction; so a
//! pointer moves only from the file its requirements were checked against, and history is a chain.

use super::{Db, Page, jobs::NewJob};
use crate::iceberg::ident::{Namespace, TableIdent};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Table,
    View,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    pub id: Uuid,
    pub namespace_id: Uuid,
    pub name: String,
    pub kind: Kind,
    /// The table's uuid of its metadata.
    pub uuid: Uuid,
    pub format_version: u8,
    /// The table's base location, no trailing slash; no two tables' locations are equal or nested.
    pub location: String,
    pub metadata_location: String,
    pub previous_location: Option<String>,
    /// Raised by one with every change of the pointer.
    pub revision: i64,
}

#[derive(Debug, Clone)]
pub struct NewTable {
    pub kind: Kind,
    pub uuid: Uuid,
    pub format_version: u8,
    pub location: String,
    pub metadata_location: String,
}

#[derive(Debug)]
pub enum Create {
    Done(TableRow),
    /// The name is taken, by a table or by a view.
    Exists(Kind),
    NoNamespace,
    /// The location equals, contains or lies within another table's.
    LocationTaken,
}

/// A move of one pointer from the row it was built on.
#[derive(Debug, Clone)]
pub struct Swap<'a> {
    pub base: &'a TableRow,
    pub metadata_location: &'a str,
    pub location: &'a str,
    pub format_version: u8,
    pub now_ms: i64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Swapped {
    /// The new revision.
    Done(i64),
    /// Another commit, a drop or a rename-and-recreate came first.
    Lost,
    /// The new location collides with another table's.
    LocationTaken,
}

/// How a swap whose answer was lost ended. Asking fences the row: a swap still under way fails.
#[derive(Debug, PartialEq, Eq)]
pub enum Settled {
    Landed,
    Lost,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Rename {
    Done,
    NoSource,
    NoNamespace,
    Exists(Kind),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryRow {
    pub revision: i64,
    pub metadata_location: String,
    pub committed_at_ms: i64,
}

pub async fn create(
    _db: &Db,
    _warehouse: Uuid,
    _ident: &TableIdent,
    _new: &NewTable,
    _now_ms: i64,
) -> Result<Create, sqlx::Error> {
    todo!()
}
/// The row of either kind; the hot read. On SQLite a map that every write keeps true may answer it.
pub async fn load(_db: &Db, _warehouse: Uuid, _ident: &TableIdent) -> Result<Option<TableRow>, sqlx::Error> {
    todo!()
}
pub async fn load_by_id(_db: &Db, _id: Uuid) -> Result<Option<TableRow>, sqlx::Error> {
    todo!()
}
/// Names in order; `None` when the namespace is missing.
pub async fn list(
    _db: &Db,
    _warehouse: Uuid,
    _namespace: &Namespace,
    _kind: Kind,
    _page: &Page,
) -> Result<Option<Vec<String>>, sqlx::Error> {
    todo!()
}
pub async fn swap(_db: &Db, _swap: &Swap<'_>) -> Result<Swapped, sqlx::Error> {
    todo!()
}
pub async fn settle(_db: &Db, _table: Uuid, _metadata_location: &str) -> Result<Settled, sqlx::Error> {
    todo!()
}
/// Whether a location may still be named: it is some table's pointer or in some table's history.
pub async fn is_recorded(_db: &Db, _metadata_location: &str) -> Result<bool, sqlx::Error> {
    todo!()
}
/// Oldest first.
pub async fn history(_db: &Db, _table: Uuid) -> Result<Vec<HistoryRow>, sqlx::Error> {
    todo!()
}
/// Removes the row and, in the same transaction, enqueues `job` (a purge). `None` when there was no such table.
pub async fn drop(
    _db: &Db,
    _warehouse: Uuid,
    _ident: &TableIdent,
    _kind: Kind,
    _job: Option<&NewJob>,
) -> Result<Option<TableRow>, sqlx::Error> {
    todo!()
}
pub async fn rename(
    _db: &Db,
    _warehouse: Uuid,
    _from: &TableIdent,
    _to: &TableIdent,
    _kind: Kind,
) -> Result<Rename, sqlx::Error> {
    todo!()
}
/// Whether any table of the warehouse other than `except` has a location equal to, above or below `location`.
pub async fn location_taken(
    _db: &Db,
    _warehouse: Uuid,
    _location: &str,
    _except: Option<Uuid>,
) -> Result<bool, sqlx::Error> {
    todo!()
}
