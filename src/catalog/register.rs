//! Tables and views from metadata files that are there already, and for tables the way back: forgotten, with every file
//! left in place.
//!
//! The file becomes the pointer's as it is: nothing is written, no uuid or log is touched, and no manifest is read. So
//! a crash leaves the name as it was or as it should be. The file is a client's word: it must lie inside the location
//! it names, and that location inside the warehouse, apart from every other table's and view's. A registered file is
//! never deleted here, however a registration ends.

use super::{
    Error, Result, authorise,
    commit::{ATTEMPTS_MAX, take_turn},
    create::{new_row, touches_another},
    document::{self, Document},
    files,
    idempotency::{self, Key, Record, Version},
    location, publish,
    relation::{Entry, Relation},
    tables::{self, Table},
    views::View,
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    db::{
        self,
        tables::{Create, Except, NewTable, Replaced, Settled, TableRow},
    },
    iceberg::ident::TableIdent,
};
use std::sync::Arc;
use uuid::Uuid;

/// What a registration does with a table that has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the registration is refused.
    Keep,
    /// Its pointer moves to the file; its row, and with it its identity here, stays. Its uuid becomes the file's.
    Repoint,
}

/// A registration under way.
struct Registration<R> {
    app: App,
    warehouse: Arc<Warehouse>,
    ident: TableIdent,
    existing: Existing,
    document: Arc<Document<R>>,
    new: NewTable,
    record: Option<Record>,
}

/// How one attempt to publish ended.
enum Attempt {
    Done(TableRow),
    /// The name changed hands since we looked.
    Again,
}

/// Makes the metadata file at `file` the current one of a table of that name.
///
/// # Errors
/// `Error::NameTaken`, also by a view whatever `existing` says; `Error::NoSuchNamespace`; `Error::Forbidden` for
/// files outside the warehouse or in another's location; `Error::Invalid` for those that are not there, are no valid
/// metadata, lie outside the location they name, or name a place outside the warehouse or another table's; `Error::CommitFailed` when the table does not keep still.
pub async fn register(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    file: &str,
    existing: Existing,
    key: Option<&Key>,
) -> Result<Table> {
    authorise(caller)?;
    adopt(app, warehouse, ident, file, existing, key).await
}

/// Makes the metadata file at `file` the current one of a view of that name.
///
/// # Errors
/// As [`register`], for a name that must be free.
pub async fn register_view(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    file: &str,
    key: Option<&Key>,
) -> Result<View> {
    authorise(caller)?;
    adopt(app, warehouse, ident, file, Existing::Keep, key).await
}

async fn adopt<R: Relation>(
    app: &App,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    file: &str,
    existing: Existing,
    key: Option<&Key>,
) -> Result<Entry<R>> {
    let row = occupant::<R>(app, warehouse, ident, existing).await?;
    let document = candidate(app, warehouse, row.as_ref(), file).await?;
    let new = new_row::<R>(&document)?;
    let record = idempotency::about(key, &new.metadata_location, new.uuid);
    // Only now: commits need not wait for a large file to be read.
    let turn = take_turn(app, warehouse, ident).await?;
    let (app, warehouse, ident) = (app.clone(), Arc::clone(warehouse), ident.clone());
    let registration = Registration { app, warehouse, existing, document, new, record, ident: ident.clone() };
    // A task of its own: a client that hangs up cannot stop it halfway, and the turn lasts until it has ended.
    let task = async move {
        let _turn = turn;
        registration.publish().await
    };
    tokio::spawn(task).await.unwrap_or_else(|error| {
        tracing::error!(name = %ident, %error, "a registration broke off");
        Err(Error::CommitStateUnknown(ident))
    })
}

/// Who has the name, where the registration may go on; says no early, before a file is read.
async fn occupant<R: Relation>(
    app: &App,
    warehouse: &Warehouse,
    ident: &TableIdent,
    existing: Existing,
) -> Result<Option<TableRow>> {
    let row = db::tables::load(&app.db, warehouse.id, ident).await.map_err(Error::read)?;
    match row {
        Some(row) if row.kind == R::KIND && existing == Existing::Repoint => Ok(Some(row)),
        Some(row) => Err(Error::NameTaken { ident: ident.clone(), wanted: R::KIND, kind: row.kind }),
        None => {
            let namespace = db::namespaces::load(&app.db, warehouse.id, &ident.namespace).await.map_err(Error::read)?;
            namespace.map(|_| None).ok_or_else(|| Error::NoSuchNamespace(ident.namespace.clone()))
        }
    }
}

/// Reads and checks the file. `row` is what is pointed at it, if something of the name is there.
async fn candidate<R: Relation>(
    app: &App,
    warehouse: &Warehouse,
    row: Option<&TableRow>,
    file: &str,
) -> Result<Arc<Document<R>>> {
    let refused = |problem: String| Error::Invalid(format!("cannot register {file}: {problem}"));
    let forbidden = |problem: String| Error::Forbidden(format!("cannot register {file}: {problem}"));
    if !files::is_metadata_name(file) {
        return Err(refused("the name does not end in .metadata.json, .gz.metadata.json or .metadata.json.gz".into()));
    }
    if !location::is_within(file, &warehouse.location) || warehouse.object(file).is_none() {
        return Err(forbidden(format!("it is not inside the warehouse's {}/", warehouse.location)));
    }
    // Before it is read: what lies in another's folder is nobody else's business.
    let itself = row.map_or(Except::Nobody, |row| Except::Row(row.id));
    let is_anothers = db::tables::location_taken(&app.db, file, itself).await.map_err(Error::read)?;
    if is_anothers {
        return Err(forbidden("it lies inside another table's or view's location".into()));
    }
    let (bytes, writer) = files::fetch(warehouse, file).await.map_err(|error| match error {
        Error::Internal(problem) => refused(problem.to_string()),
        Error::MetadataMissing(_) => refused("there is no such file".to_owned()),
        error => error,
    })?;
    let json = files::decode(bytes).map_err(refused)?;
    let uuid = row.map_or_else(Uuid::new_v4, |row| row.uuid);
    let document = document::parse::<R>(file.to_owned(), json, writer, uuid).await?;
    let document = document.map_err(|error| refused(error.to_string()))?;
    let metadata = &document.metadata;
    metadata.check_entering().map_err(|error| refused(error.to_string()))?;
    location::check(&warehouse.location, None, &**metadata)?;
    if !location::is_within(file, metadata.location()) {
        return Err(refused(format!("it is not inside the location it names, {}", metadata.location())));
    }
    Ok(Arc::new(document))
}

impl<R: Relation> Registration<R> {
    async fn publish(self) -> Result<Entry<R>> {
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 {
                idempotency::check_unanswered(&self.app, self.record.as_ref().map(|record| &record.key)).await?;
            }
            let row = match occupant::<R>(&self.app, &self.warehouse, &self.ident, self.existing).await? {
                None => self.create().await?,
                Some(base) => self.replace(&base).await?,
            };
            if let Attempt::Done(row) = row {
                // In place of what was known of the file: it is not ours, and may have been another when last read.
                R::documents(&self.app.catalog).keep(&self.document);
                return Ok(Entry { warehouse: self.warehouse, row, document: self.document });
            }
        }
        Err(Error::CommitFailed(format!("registration of {} lost the race {ATTEMPTS_MAX} times", self.ident)))
    }

    async fn create(&self) -> Result<Attempt> {
        let Registration { app, warehouse, ident, new, record, .. } = self;
        let error = match publish::create(app, warehouse.id, ident, new, now_ms(), record.as_ref()).await {
            Ok(Create::Done(row)) => return Ok(Attempt::Done(row)),
            Ok(Create::Exists(kind)) if kind == R::KIND && self.existing == Existing::Repoint => {
                return Ok(Attempt::Again);
            }
            Ok(Create::Exists(kind)) => return Err(Error::NameTaken { ident: ident.clone(), wanted: R::KIND, kind }),
            Ok(Create::NoNamespace) => return Err(Error::NoSuchNamespace(ident.namespace.clone())),
            Ok(Create::LocationTaken) => return Err(touches_another(&new.location)),
            Err(error) => error,
        };
        if publish::changed_nothing(&error) {
            return Err(Error::read(error));
        }
        let question = || db::tables::settle_register(&app.db, warehouse.id, ident, new);
        match publish::ask_until_answered(app, ident, &error, question).await {
            Some(Some(row)) => Ok(Attempt::Done(row)),
            Some(None) => Err(Error::read(error)),
            None => Err(Error::CommitStateUnknown(ident.clone())),
        }
    }

    async fn replace(&self, base: &TableRow) -> Result<Attempt> {
        let Registration { app, ident, new, record, .. } = self;
        let error = match publish::replace(app, base, new, record.as_ref()).await {
            Ok(Replaced::Done(row)) => return Ok(Attempt::Done(row)),
            Ok(Replaced::Lost) => return Ok(Attempt::Again),
            Ok(Replaced::LocationTaken) => return Err(touches_another(&new.location)),
            Err(error) => error,
        };
        if publish::changed_nothing(&error) {
            return Err(Error::read(error));
        }
        let question = || db::tables::settle_replace(&app.db, base, &new.metadata_location);
        match publish::ask_until_answered(app, ident, &error, question).await {
            // Whoever has moved its pointer since built on it.
            Some(Settled::Landed) => self.landed(base).await.map(Attempt::Done),
            Some(Settled::Lost) => Ok(Attempt::Again),
            None => Err(Error::CommitStateUnknown(ident.clone())),
        }
    }

    async fn landed(&self, base: &TableRow) -> Result<TableRow> {
        let row = db::tables::load_by_id(&self.app.db, base.id).await.map_err(Error::write)?;
        row.ok_or_else(|| Error::CommitStateUnknown(self.ident.clone()))
    }
}

/// Forgets a table and leaves every file of it. What is answered is its last version: it holds every commit that was
/// acknowledged, and those still under way fail.
///
/// # Errors
/// `Error::NoSuchTable`; `Error::MetadataMissing`, and the table stays; `Error::CommitFailed` when it does not keep
/// still; `Error::CommitStateUnknown`.
pub async fn unregister(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    key: Option<&Key>,
) -> Result<Arc<Document>> {
    authorise(caller)?;
    let _turn = take_turn(app, warehouse, ident).await?;
    for _ in 0..ATTEMPTS_MAX {
        let Table { row, document, .. } = tables::read(app, warehouse, ident).await?;
        let record = idempotency::about(key, &row.metadata_location, row.uuid);
        if forget(app, ident, &row, record.as_ref()).await? {
            return Ok(document);
        }
        idempotency::check_unanswered(app, key).await?;
    }
    Err(Error::CommitFailed(format!("unregistration of {ident} lost the race {ATTEMPTS_MAX} times")))
}

/// What an unregistration answered before: the file and the uuid that its record names.
///
/// # Errors
/// `Error::MetadataMissing` when the file is gone by now.
pub async fn unregistered(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    version: Option<Version>,
) -> Result<Arc<Document>> {
    authorise(caller)?;
    let Some(Version { file, uuid }) = version else {
        return Err(Error::internal("the record of an unregistration names no version"));
    };
    app.catalog.documents.read_file(warehouse, &file, uuid).await
}

/// `false` when something came first.
async fn forget(app: &App, ident: &TableIdent, row: &TableRow, record: Option<&Record>) -> Result<bool> {
    let error = match publish::unregister(app, row, record).await {
        Ok(gone) => return Ok(gone),
        Err(error) if publish::changed_nothing(&error) => return Err(Error::read(error)),
        Err(error) => error,
    };
    let question = || db::tables::settle_unregister(&app.db, row);
    match publish::ask_until_answered(app, ident, &error, question).await {
        Some(settled) => Ok(settled == Settled::Landed),
        None => Err(Error::CommitStateUnknown(ident.clone())),
    }
}
