//! Views: load, list, drop, rename, and commits to them, called replaces. Making them is in `create.rs`, registering
//! their files in `register.rs`.

use super::{
    Error, Result, authorise, commit,
    document::Document,
    idempotency::{self, Key, Version},
    relation::{self, Entry},
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    db::{
        self, Page,
        jobs::NewJob,
        tables::{Kind, TableRow},
    },
    iceberg::{
        ident::{Namespace, TableIdent},
        view::{ViewMetadata, commit::ViewCommit},
    },
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

/// A view at one version.
pub type View = Entry<ViewMetadata>;

/// # Errors
/// `Error::NoSuchView`, also when the namespace is missing or a table has the name; `Error::MetadataMissing`.
pub async fn load(app: &App, caller: &Caller, warehouse: &Arc<Warehouse>, ident: &TableIdent) -> Result<View> {
    authorise(caller)?;
    relation::read(app, warehouse, ident).await
}

/// The version of a view that an answer was about, for giving it again, whatever became of the view since; the current
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
) -> Result<Arc<Document<ViewMetadata>>> {
    authorise(caller)?;
    relation::read_version(app, warehouse, ident, version).await
}

/// # Errors
/// `Error::NoSuchView`, as [`load`].
pub async fn exists(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<()> {
    authorise(caller)?;
    relation::row::<ViewMetadata>(app, warehouse, ident).await.map(|_| ())
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
    relation::list::<ViewMetadata>(app, warehouse, namespace, page).await
}

/// Applies a commit. An answer means that it is durable and visible.
///
/// # Errors
/// `Error::NoSuchView`; `Error::CommitFailed` when a requirement does not hold or the race was lost too often;
/// `Error::Invalid` when an update breaks a rule; `Error::CommitStateUnknown`; otherwise nothing was changed.
pub async fn replace(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    commit: ViewCommit,
    key: Option<&Key>,
) -> Result<View> {
    authorise(caller)?;
    commit::replace(app, warehouse, ident, commit, key).await
}

/// Moves a name; file, uuid and location stay.
///
/// # Errors
/// `Error::NoSuchView` of the source, `Error::NoSuchNamespace` of the target, `Error::RenameTaken`, also onto itself.
pub async fn rename(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    from: &TableIdent,
    to: &TableIdent,
    key: Option<&Key>,
) -> Result<()> {
    authorise(caller)?;
    relation::rename::<ViewMetadata>(app, warehouse, from, to, key).await
}

/// Forgets a view. Its current metadata file goes afterwards (`jobs/dropped_views.rs`): the row and the order to delete
/// the file change in one transaction, so a crash leaves either a whole view, or a file with an order to delete it.
///
/// # Errors
/// `Error::NoSuchView`.
pub async fn drop(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    key: Option<&Key>,
) -> Result<()> {
    authorise(caller)?;
    let row = relation::row::<ViewMetadata>(app, warehouse, ident).await?;
    let record = idempotency::answered(key, 204);
    let job = DroppedView::new(warehouse, &row).job(now_ms());
    let to = app.db.recording(record.as_ref());
    let dropped = db::tables::drop(to, warehouse.id, ident, Kind::View, Some(&job)).await.map_err(Error::write)?;
    let dropped = dropped.ok_or_else(|| Error::NoSuchView(ident.clone()))?;
    if dropped.id != row.id {
        // Another came to have the name in between: the order names its predecessor. A crash here leaves a file.
        let job = DroppedView::new(warehouse, &dropped).job(now_ms());
        db::jobs::enqueue(&app.db, &job).await.map_err(Error::write)?;
    }
    app.catalog.jobs_due.notify_one();
    Ok(())
}

/// The order to delete what a dropped view's pointer named last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedView {
    pub warehouse: String,
    pub view: Uuid,
}

impl DroppedView {
    /// The kind of job that carries it out.
    pub const JOB: &str = "dropped-view";

    fn new(warehouse: &Warehouse, row: &TableRow) -> DroppedView {
        DroppedView { warehouse: warehouse.name.clone(), view: row.id }
    }

    fn job(&self, now_ms: i64) -> NewJob {
        // Strings and a uuid always serialise.
        let payload = serde_json::to_string(self).unwrap_or_default();
        NewJob { kind: DroppedView::JOB.to_owned(), payload, not_before_ms: now_ms }
    }

    /// # Errors
    /// When `payload` is not what a drop writes.
    pub fn parse(payload: &str) -> Result<DroppedView, serde_json::Error> {
        serde_json::from_str(payload)
    }
}
