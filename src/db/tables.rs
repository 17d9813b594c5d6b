//! Tables and views: one row each, and the pointer to the current metadata file.
//!
//! [`swap`] is the only statement that makes a commit visible. It compares the revision and the location it was built
//! on, raises the revision and records the new location in the table's commit history, in one transaction; so a
//! pointer moves only from the file its requirements were checked against, and history is a chain.

pub(in crate::db) mod history;
pub(in crate::db) mod occupy;
mod register;
mod transact;

pub use history::{
    HistoryRow, Named, Settled, Swap, Swapped, forget_history, history, is_recorded, named, settle, settle_create, swap,
};
pub use occupy::{Create, NewTable, Rename, create, drop, rename};
pub use register::{Replaced, replace, settle_register, settle_replace, settle_unregister, unregister};
pub use transact::{Refusal, Step, Transacted, settle_all, transact};

use super::{
    Db, Page, locations, namespaces,
    pointers::Lookup,
    statement::{Arms, values},
};
use crate::iceberg::ident::{Namespace, TableIdent};
use sqlx::{PgExecutor, SqliteExecutor};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Table,
    View,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Table => "table",
            Kind::View => "view",
        }
    }
}

impl TryFrom<String> for Kind {
    type Error = UnknownKind;

    fn try_from(kind: String) -> Result<Kind, UnknownKind> {
        match kind.as_str() {
            "table" => Ok(Kind::Table),
            "view" => Ok(Kind::View),
            _ => Err(UnknownKind(kind)),
        }
    }
}

/// A row of a newer release.
#[derive(Debug, thiserror::Error)]
#[error("unknown kind of table: {0}")]
pub struct UnknownKind(String);

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct TableRow {
    pub id: Uuid,
    pub namespace_id: Uuid,
    pub name: String,
    #[sqlx(try_from = "String")]
    pub kind: Kind,
    /// The table's uuid of its metadata.
    pub uuid: Uuid,
    #[sqlx(try_from = "i16")]
    pub format_version: u8,
    /// The table's base location, no trailing slash; no two tables' locations are equal or nested.
    pub location: String,
    pub metadata_location: String,
    pub previous_location: Option<String>,
    /// Raised by one with every change of the pointer.
    pub revision: i64,
}

/// The columns of a [`TableRow`].
macro_rules! columns {
    () => {
        "id, namespace_id, name, kind, uuid, format_version, location, metadata_location, previous_location, revision"
    };
}
use columns;

/// The row of either kind; the hot read. On SQLite a map that every write keeps true may answer it.
pub async fn load(db: &Db, warehouse: Uuid, ident: &TableIdent) -> Result<Option<TableRow>, sqlx::Error> {
    let Some(pointers) = db.pointers() else { return load_by_path(db, warehouse, ident).await };
    if let Some(row) = pointers.load(warehouse, ident) {
        return Ok(Some(row));
    }
    let namespace_id = match pointers.find_namespace(warehouse, &ident.namespace) {
        Lookup::Found(id) => id,
        Lookup::Missing(seen) => {
            let Some(id) = namespaces::id(db, warehouse, &ident.namespace).await? else { return Ok(None) };
            pointers.fill_namespace(seen, warehouse, &ident.namespace, id);
            id
        }
    };
    match pointers.find_table(namespace_id, &ident.name) {
        Lookup::Found(row) => Ok(Some(TableRow::clone(&row))),
        Lookup::Missing(seen) => {
            let row = load_by_name(db, namespace_id, &ident.name).await?;
            row.iter().for_each(|row| pointers.fill_table(seen, row));
            Ok(row)
        }
    }
}

async fn load_by_path(db: &Db, warehouse: Uuid, ident: &TableIdent) -> Result<Option<TableRow>, sqlx::Error> {
    db.read()
        .optional(
            concat!(
                "select ",
                columns!(),
                " from tables where name = $3
                  and namespace_id = (select id from namespaces where warehouse_id = $1 and path_key = $2)"
            ),
            &values![warehouse, namespaces::path_key(&ident.namespace), &ident.name],
        )
        .await
}

async fn load_by_name(db: &Db, namespace_id: Uuid, name: &str) -> Result<Option<TableRow>, sqlx::Error> {
    db.read()
        .optional(
            concat!("select ", columns!(), " from tables where namespace_id = $1 and name = $2"),
            &values![namespace_id, name],
        )
        .await
}

pub async fn load_by_id(db: &Db, id: Uuid) -> Result<Option<TableRow>, sqlx::Error> {
    db.read().optional(concat!("select ", columns!(), " from tables where id = $1"), &values![id]).await
}

/// The row of a warehouse whose location is `place` or lies above it.
///
/// # Errors
/// `sqlx::Error::InvalidArgument` for more than [`LOCATION_BYTES_MAX`] bytes.
pub async fn load_by_place(db: &Db, warehouse: Uuid, place: &str) -> Result<Option<TableRow>, sqlx::Error> {
    let key = locations::key(place)?;
    // No key is a prefix of another, so of all that could be one only the nearest is.
    let nearest: Option<TableRow> = db
        .read()
        .optional(
            concat!(
                "select ",
                columns!(),
                " from tables where location_key <= $1
                  and exists (select 1 from namespaces where namespaces.id = namespace_id and warehouse_id = $2)
                  order by location_key desc limit 1"
            ),
            &values![&key, warehouse],
        )
        .await?;
    Ok(nearest.filter(|row| locations::key(&row.location).is_ok_and(|above| key.starts_with(&above))))
}

/// Names in order; `None` when the namespace is missing.
pub async fn list(
    db: &Db,
    warehouse: Uuid,
    namespace: &Namespace,
    kind: Kind,
    page: &Page,
) -> Result<Option<Vec<String>>, sqlx::Error> {
    let rows: Vec<(String,)> = db
        .read()
        .all(
            "select name from tables
             where namespace_id = (select id from namespaces where warehouse_id = $1 and path_key = $2)
                 and kind = $3 and name > $4
             order by name limit $5",
            &values![warehouse, namespaces::path_key(namespace), kind.as_str(), page.after(), page.limit()],
        )
        .await?;
    let names = rows.into_iter().map(|(name,)| name).collect::<Vec<_>>();
    // Nothing found says nothing about the namespace.
    Ok((!names.is_empty() || namespaces::id(db, warehouse, namespace).await?.is_some()).then_some(names))
}

/// Whether any table other than `except`, in whatever warehouse, has a location equal to, above or below `location`.
/// A hint for early answers: [`create`] and [`swap`] decide.
///
/// # Errors
/// `sqlx::Error::InvalidArgument` for more than [`LOCATION_BYTES_MAX`] bytes.
pub async fn location_taken(db: &Db, location: &str, except: Except) -> Result<bool, sqlx::Error> {
    locations::taken(db.read(), &locations::key(location)?, except).await
}

pub use locations::{Except, LOCATION_BYTES_MAX};

/// Who holds a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Occupant {
    NoNamespace,
    Nobody { namespace_id: Uuid },
    Table(Kind),
}

async fn occupant<'e, S: SqliteExecutor<'e>, P: PgExecutor<'e>>(
    on: Arms<S, P>,
    warehouse: Uuid,
    ident: &TableIdent,
) -> Result<Occupant, sqlx::Error> {
    let found: Option<(Uuid, Option<String>)> = on
        .optional(
            "select namespaces.id, tables.kind from namespaces
             left join tables on tables.namespace_id = namespaces.id and tables.name = $3
             where namespaces.warehouse_id = $1 and namespaces.path_key = $2",
            &values![warehouse, namespaces::path_key(&ident.namespace), &ident.name],
        )
        .await?;
    match found {
        None => Ok(Occupant::NoNamespace),
        Some((namespace_id, None)) => Ok(Occupant::Nobody { namespace_id }),
        Some((_, Some(kind))) => {
            let kind = Kind::try_from(kind).map_err(|error| sqlx::Error::Decode(error.into()))?;
            Ok(Occupant::Table(kind))
        }
    }
}
