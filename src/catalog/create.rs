//! Making tables and views: at once; tables also staged, and by the commit that completes a staged one.
//!
//! The metadata file comes first, then the row; only the row makes a table or view. A crash in between leaves a file that no
//! row names, which the reaper (`jobs/reap.rs`) takes. Staging stores nothing.

use super::{
    Error, Result, authorise,
    document::Document,
    files,
    idempotency::{self, Key, Record},
    location, publish,
    relation::{Entry, Relation},
    tables::Table,
    views::View,
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    db::{
        self,
        idempotency::is_answered,
        tables::{Create, Except, Kind, NewTable, Settled, TableRow},
    },
    iceberg::{
        self,
        commit::Commit,
        create::CreateTable,
        ident::{Namespace, TableIdent},
        view::create::CreateView,
    },
};
use bytes::Bytes;
use std::sync::Arc;
use uuid::Uuid;

/// Default locations tried before giving up.
const LOCATIONS_MAX: usize = 4;

pub enum Created {
    Stored(Table),
    Staged(Staged),
}

/// A table that exists in an answer only, until a commit completes it.
pub struct Staged {
    pub location: String,
    pub uuid: Uuid,
    pub json: Bytes,
}

/// What became of an attempt to make metadata a table or view.
enum Published<R> {
    Done(Entry<R>),
    Exists(Kind),
    NoNamespace,
    LocationTaken,
}

/// # Errors
/// `Error::NameTaken`, `Error::NoSuchNamespace`; `Error::Invalid` for schemas, properties and locations that break a
/// rule, and for locations that touch another table's or view's.
pub async fn create(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    request: CreateTable,
    key: Option<&Key>,
) -> Result<Created> {
    authorise(caller)?;
    let ident = TableIdent::new(namespace.clone(), request.name.clone())?;
    let places = Places::free(app, warehouse, &ident, Kind::Table, request.location.as_deref()).await?;
    if request.stage_create {
        return stage(app, warehouse, &places, &request).await.map(Created::Staged);
    }
    let build = |place: &str, uuid| request.metadata(place, uuid, now_ms());
    store_somewhere(app, warehouse, &places, build, key).await.map(Created::Stored)
}

/// # Errors
/// As [`create`].
pub async fn create_view(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    request: CreateView,
    key: Option<&Key>,
) -> Result<View> {
    authorise(caller)?;
    let ident = TableIdent::new(namespace.clone(), request.name.clone())?;
    let places = Places::free(app, warehouse, &ident, Kind::View, request.location.as_deref()).await?;
    let build = |place: &str, uuid| request.metadata(place, uuid);
    store_somewhere(app, warehouse, &places, build, key).await
}

async fn stage(app: &App, warehouse: &Warehouse, places: &Places, request: &CreateTable) -> Result<Staged> {
    for attempt in 0..LOCATIONS_MAX {
        let uuid = Uuid::new_v4();
        let location = places.nth(attempt, warehouse, uuid);
        let metadata = request.metadata(&location, uuid, now_ms())?;
        location::check(&warehouse.location, None, &metadata)?;
        if !db::tables::location_taken(&app.db, &location, Except::Nobody).await.map_err(Error::read)? {
            return Ok(Staged { location, uuid, json: metadata.to_json().into() });
        }
        places.check_others(&location)?;
    }
    Err(places.exhausted())
}

/// Stores what `build` makes, at the first place that is free.
async fn store_somewhere<R: Relation>(
    app: &App,
    warehouse: &Arc<Warehouse>,
    places: &Places,
    build: impl Fn(&str, Uuid) -> iceberg::Result<R>,
    key: Option<&Key>,
) -> Result<Entry<R>> {
    let ident = &places.ident;
    for attempt in 0..LOCATIONS_MAX {
        let uuid = Uuid::new_v4();
        let location = places.nth(attempt, warehouse, uuid);
        let metadata = build(&location, uuid)?;
        location::check(&warehouse.location, None, &metadata)?;
        match store(app, warehouse, ident, metadata, key).await? {
            Published::Done(entry) => return Ok(entry),
            Published::Exists(kind) => return Err(Error::NameTaken { ident: ident.clone(), wanted: R::KIND, kind }),
            Published::NoNamespace => return Err(Error::NoSuchNamespace(ident.namespace.clone())),
            Published::LocationTaken => places.check_others(&location)?,
        }
    }
    Err(places.exhausted())
}

/// Where something new may go: the place that was asked for, or default ones until one is free.
struct Places {
    ident: TableIdent,
    requested: Option<String>,
    namespace_location: Option<String>,
}

impl Places {
    /// For a name that is free.
    ///
    /// # Errors
    /// As [`check_free`]; `Error::Invalid` for a place that nothing may be at.
    async fn free(
        app: &App,
        warehouse: &Warehouse,
        ident: &TableIdent,
        kind: Kind,
        requested: Option<&str>,
    ) -> Result<Places> {
        let namespace_location = check_free(app, warehouse, ident, kind).await?;
        let requested = requested.map(|place| location::requested(place, &warehouse.location)).transpose()?;
        Ok(Places { ident: ident.clone(), requested, namespace_location })
    }

    /// The place to try for the `attempt`th time, the first being 0, for metadata with this uuid.
    fn nth(&self, attempt: usize, warehouse: &Warehouse, uuid: Uuid) -> String {
        match &self.requested {
            Some(place) => place.clone(),
            None if attempt == 0 => {
                location::default_for(&warehouse.location, self.namespace_location.as_deref(), &self.ident, uuid)
            }
            None => location::by_id(&warehouse.location, uuid),
        }
    }

    /// Whether there are others besides `place`, which is taken.
    fn check_others(&self, place: &str) -> Result<()> {
        if self.requested.is_some() { Err(touches_another(place)) } else { Ok(()) }
    }

    fn exhausted(&self) -> Error {
        Error::internal(format!("no free location found for {} in {LOCATIONS_MAX} attempts", self.ident))
    }
}

/// Makes a table from a commit that requires that there is none.
///
/// # Errors
/// As [`create`], but `Error::CommitFailed` when a table has the name.
pub(super) async fn complete(
    app: &App,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    commit: &Commit,
    key: Option<&Key>,
) -> Result<Table> {
    check_free_to_complete(app, warehouse, ident).await?;
    let metadata = commit.create(Uuid::new_v4(), now_ms())?;
    location::check(&warehouse.location, None, &metadata)?;
    let place = metadata.location().to_owned();
    match store(app, warehouse, ident, metadata, key).await? {
        Published::Done(table) => Ok(table),
        Published::Exists(kind) => Err(exists_already(ident, kind)),
        Published::NoNamespace => Err(Error::NoSuchNamespace(ident.namespace.clone())),
        Published::LocationTaken => Err(touches_another(&place)),
    }
}

/// Says no early to a commit that completes a staged table; the insert decides.
///
/// # Errors
/// As [`exists_already`] makes them; `Error::NoSuchNamespace`.
pub(super) async fn check_free_to_complete(app: &App, warehouse: &Warehouse, ident: &TableIdent) -> Result<()> {
    match check_free(app, warehouse, ident, Kind::Table).await {
        Err(Error::NameTaken { kind, .. }) => Err(exists_already(ident, kind)),
        checked => checked.map(drop),
    }
}

/// The answer to a commit that requires that there is no such table.
pub(super) fn exists_already(ident: &TableIdent, kind: Kind) -> Error {
    match kind {
        Kind::Table => Error::CommitFailed("Requirement failed: table already exists".to_owned()),
        Kind::View => Error::NameTaken { ident: ident.clone(), wanted: Kind::Table, kind },
    }
}

pub(super) fn touches_another(place: &str) -> Error {
    Error::Invalid(format!("location is, holds or lies within another table's or view's: {place}"))
}

/// Says no early, before a file is written; the insert decides. Answers the namespace's `location` property.
async fn check_free(app: &App, warehouse: &Warehouse, ident: &TableIdent, wanted: Kind) -> Result<Option<String>> {
    let row = db::tables::load(&app.db, warehouse.id, ident).await.map_err(Error::read)?;
    if let Some(row) = row {
        return Err(Error::NameTaken { ident: ident.clone(), wanted, kind: row.kind });
    }
    let namespace = db::namespaces::load(&app.db, warehouse.id, &ident.namespace).await.map_err(Error::read)?;
    let mut namespace = namespace.ok_or_else(|| Error::NoSuchNamespace(ident.namespace.clone()))?;
    Ok(namespace.properties.remove(location::NAMESPACE_LOCATION))
}

/// Writes the file and inserts the row, in a task of its own that outlives the client's connection.
async fn store<R: Relation>(
    app: &App,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    metadata: R,
    key: Option<&Key>,
) -> Result<Published<R>> {
    let task = write_and_insert(app.clone(), Arc::clone(warehouse), ident.clone(), metadata, key.cloned());
    tokio::spawn(task).await.unwrap_or_else(|error| {
        tracing::error!(name = %ident, %error, "a create broke off");
        Err(Error::CommitStateUnknown(ident.clone()))
    })
}

async fn write_and_insert<R: Relation>(
    app: App,
    warehouse: Arc<Warehouse>,
    ident: TableIdent,
    metadata: R,
    key: Option<Key>,
) -> Result<Published<R>> {
    let file = files::next_name(&metadata, None, Uuid::now_v7())?;
    let metadata = Arc::new(metadata);
    let document = Document::new(file, Bytes::from(metadata.to_json()), metadata);
    let new = new_row(&document)?;
    files::write(&warehouse, &document.location, document.json.clone()).await?;
    let record = idempotency::about(key.as_ref(), &new.metadata_location, new.uuid);
    // A crash before the insert leaves a file that no row names; after it, a whole table or view.
    let refused = match insert(&app, &warehouse, &ident, &new, record.as_ref()).await? {
        Create::Done(row) => {
            let document = Arc::new(document);
            R::documents(&app.catalog).keep(&document);
            return Ok(Published::Done(Entry { warehouse, row, document }));
        }
        Create::Exists(kind) => Published::Exists(kind),
        Create::NoNamespace => Published::NoNamespace,
        Create::LocationTaken => Published::LocationTaken,
    };
    Ok(refused)
}

/// The row of a table or view whose first version is `document`.
///
/// # Errors
/// `Error::Invalid` when it has no uuid.
pub(super) fn new_row<R: Relation>(document: &Document<R>) -> Result<NewTable> {
    let metadata = &document.metadata;
    Ok(NewTable {
        kind: R::KIND,
        uuid: metadata.uuid().ok_or_else(|| Error::Invalid("a new table needs a uuid".to_owned()))?,
        format_version: metadata.format_version(),
        location: metadata.location().to_owned(),
        metadata_location: document.location.clone(),
    })
}

/// Inserts the row; when the answer is lost, asks what became of it. A file that certainly nobody names is deleted.
///
/// # Errors
/// `Error::Unavailable` when nothing was done, `Error::CommitStateUnknown` when the database stays away.
async fn insert(
    app: &App,
    warehouse: &Warehouse,
    ident: &TableIdent,
    new: &NewTable,
    record: Option<&Record>,
) -> Result<Create> {
    let error = match publish::create(app, warehouse.id, ident, new, now_ms(), record).await {
        Ok(Create::Done(row)) => return Ok(Create::Done(row)),
        Ok(refused) => {
            files::discard(warehouse, &new.metadata_location).await;
            return Ok(refused);
        }
        Err(error) => error,
    };
    if is_answered(&error) {
        files::discard(warehouse, &new.metadata_location).await;
        return Err(Error::AnsweredBefore);
    }
    if !publish::never_sent(&error) {
        tracing::warn!(name = %ident, %error, "the outcome of a create is not known yet");
        match publish::settle_create(app, new).await {
            Some(Settled::Landed) => return landed(app, warehouse, ident, new).await,
            Some(Settled::Lost) => {}
            None => return Err(Error::CommitStateUnknown(ident.clone())),
        }
    }
    files::discard(warehouse, &new.metadata_location).await;
    Err(Error::read(error))
}

/// The row that an insert of ours made. Whoever has moved its pointer, its name or itself since built on it.
async fn landed(app: &App, warehouse: &Warehouse, ident: &TableIdent, new: &NewTable) -> Result<Create> {
    let row = db::tables::load(&app.db, warehouse.id, ident).await.map_err(Error::write)?;
    let row = row.filter(|row: &TableRow| row.location == new.location);
    row.map(Create::Done).ok_or_else(|| Error::CommitStateUnknown(ident.clone()))
}
