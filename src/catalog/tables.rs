//! Tables as they are: load, list, drop, rename. Making and changing them is in `create.rs` and `commit.rs`.

pub use crate::db::tables::Kind;

use super::{
    Error, Result, authorise,
    document::Document,
    idempotency::{self, Key, Version},
    purge,
    relation::{self, Entry},
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    db::{self, Page, tables::TableRow},
    iceberg::{
        ident::{Namespace, TableIdent},
        metadata::TableMetadata,
    },
};
use std::sync::Arc;

/// A table at one version.
pub type Table = Entry<TableMetadata>;

/// What becomes of a dropped table's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    Keep,
    Purge,
}

/// # Errors
/// `Error::NoSuchTable`, also when the namespace is missing or a view has the name; `Error::MetadataMissing`.
pub async fn load(app: &App, caller: &Caller, warehouse: &Arc<Warehouse>, ident: &TableIdent) -> Result<Table> {
    authorise(caller)?;
    read(app, warehouse, ident).await
}

/// The version of a table that an answer was about, for giving it again, whatever became of the table since; the current
/// one where the answer was about none, or where the file is gone.
///
/// # Errors
/// As [`load`].
pub async fn version(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    version: Option<Version>,
) -> Result<Arc<Document<TableMetadata>>> {
    authorise(caller)?;
    relation::read_version(app, warehouse, ident, version).await
}

/// # Errors
/// `Error::NoSuchTable`, as [`load`].
pub async fn exists(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<()> {
    authorise(caller)?;
    row(app, warehouse, ident).await.map(|_| ())
}

/// Names in order.
///
/// # Errors
/// `Error::NoSuchNamespace`.
pub async fn list(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    page: &Page,
) -> Result<Vec<String>> {
    authorise(caller)?;
    relation::list::<TableMetadata>(app, warehouse, namespace, page).await
}

/// Forgets a table. With [`Files::Purge`] its files go afterwards: the row and the order to purge change in one
/// transaction, so a crash leaves either a whole table, or files with an order to delete them.
///
/// # Errors
/// `Error::NoSuchTable`.
pub async fn drop(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    files: Files,
    key: Option<&Key>,
) -> Result<()> {
    authorise(caller)?;
    let record = idempotency::answered(key, 204);
    let to = app.db.recording(record.as_ref());
    if files == Files::Keep {
        let dropped = db::tables::drop(to, warehouse.id, ident, Kind::Table, None).await.map_err(Error::write)?;
        return dropped.map(|_| ()).ok_or_else(|| Error::NoSuchTable(ident.clone()));
    }
    let row = row(app, warehouse, ident).await?;
    may_purge(app, warehouse, &row).await?;
    let job = purge::Order::new(warehouse, &row).job(now_ms());
    let dropped = db::tables::drop(to, warehouse.id, ident, Kind::Table, Some(&job)).await;
    let dropped = dropped.map_err(Error::write)?.ok_or_else(|| Error::NoSuchTable(ident.clone()))?;
    if dropped.metadata_location != row.metadata_location {
        // A commit came in between: the order names its predecessor. A crash here leaves what that commit added.
        let job = purge::Order::new(warehouse, &dropped).job(now_ms());
        db::jobs::enqueue(&app.db, &job).await.map_err(Error::write)?;
    }
    app.catalog.jobs_due.notify_one();
    Ok(())
}

/// Owners set `gc.enabled=false` where files may be others' too. A table whose metadata cannot be read may always go.
async fn may_purge(app: &App, warehouse: &Warehouse, row: &TableRow) -> Result<()> {
    match app.catalog.documents.read(warehouse, row).await {
        Ok(document) if !document.metadata.collects_garbage() => {
            Err(Error::Invalid("cannot purge: the table's property gc.enabled is not true".to_owned()))
        }
        Ok(_) | Err(Error::MetadataMissing(_) | Error::Internal(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Moves a name; files, uuid and locations stay.
///
/// # Errors
/// `Error::NoSuchTable` of the source, `Error::NoSuchNamespace` of the target, `Error::RenameTaken`, also onto itself.
pub async fn rename(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    from: &TableIdent,
    to: &TableIdent,
    key: Option<&Key>,
) -> Result<()> {
    authorise(caller)?;
    relation::rename::<TableMetadata>(app, warehouse, from, to, key).await
}

/// The row of a table, not of a view.
pub(super) async fn row(app: &App, warehouse: &Warehouse, ident: &TableIdent) -> Result<TableRow> {
    relation::row::<TableMetadata>(app, warehouse, ident).await
}

pub(super) async fn read(app: &App, warehouse: &Arc<Warehouse>, ident: &TableIdent) -> Result<Table> {
    relation::read(app, warehouse, ident).await
}
