//! Warehouses: where tables live, and the object store behind that place.

use super::{
    Error, Result, authorise, location,
    storage::{self, NewStorage, Storage},
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    config::is_warehouse_name,
    db::{
        self,
        warehouses::{Create, Delete, WarehouseRow},
    },
};
use object_store::{ObjectStore, path::Path};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};
use uuid::Uuid;

/// How long a warehouse is believed to be as it was read. Milliseconds.
const FRESH_MS: i64 = 5_000;

/// A warehouse and its storage.
#[derive(Debug)]
pub struct Warehouse {
    pub id: Uuid,
    pub name: String,
    /// `s3://bucket` or `s3://bucket/prefix`, without a trailing slash.
    pub location: String,
    pub storage: Storage,
    bucket: String,
    /// The bucket's objects.
    pub(crate) objects: Arc<dyn ObjectStore>,
}

/// Warehouses by name. Bounded by how many there are: names that do not exist are not kept. What a replica changes is
/// seen within [`FRESH_MS`].
#[derive(Default)]
pub(crate) struct Warehouses(RwLock<HashMap<String, Kept>>);

#[derive(Clone)]
struct Kept {
    warehouse: Arc<Warehouse>,
    row: Arc<WarehouseRow>,
    read_at_ms: i64,
}

impl Warehouse {
    /// The object that an `s3://` location of this warehouse's bucket names; `None` for every other place, and for keys
    /// that no object has or no `object_store` path can spell.
    pub(crate) fn object(&self, location: &str) -> Option<Path> {
        let (bucket, key) = location::split(location)?;
        let path = Path::parse(key).ok()?;
        let is_key = (1..=location::OBJECT_KEY_BYTES_MAX).contains(&key.len());
        // Parsing cuts slashes at the ends, and such a key is another object.
        (bucket == self.bucket && is_key && path.as_ref() == key).then_some(path)
    }
}

/// The warehouse that a request names, or the default one.
///
/// # Errors
/// `Error::NoSuchWarehouse`.
pub async fn open(app: &App, caller: &Caller, name: Option<&str>) -> Result<Arc<Warehouse>> {
    authorise(caller)?;
    named(app, name.unwrap_or(&app.settings.warehouse)).await
}

/// # Errors
/// `Error::NoSuchWarehouse`.
pub(crate) async fn named(app: &App, name: &str) -> Result<Arc<Warehouse>> {
    let now_ms = now_ms();
    let kept = app.catalog.warehouses.kept(name);
    if let Some(kept) = &kept
        && (0..FRESH_MS).contains(&now_ms.saturating_sub(kept.read_at_ms))
    {
        return Ok(Arc::clone(&kept.warehouse));
    }
    let row = db::warehouses::load(&app.db, name).await.map_err(Error::read)?;
    let Some(row) = row else {
        app.catalog.warehouses.forget(name);
        return Err(Error::NoSuchWarehouse(name.to_owned()));
    };
    // Opened anew only where it changed: connections and sessions are worth keeping.
    let warehouse = match kept {
        Some(kept) if *kept.row == row => kept.warehouse,
        _ => Arc::new(from_row(app, row.clone())?),
    };
    app.catalog.warehouses.keep(Kept { warehouse: Arc::clone(&warehouse), row: Arc::new(row), read_at_ms: now_ms });
    Ok(warehouse)
}

/// Makes a warehouse once its storage has been tried.
///
/// # Errors
/// `Error::WarehouseExists`; `Error::Invalid` for a name or location that cannot be, a location that overlaps another
/// warehouse's, or a storage that does not serve, naming the step that failed.
pub async fn create(
    app: &App,
    caller: &Caller,
    name: &str,
    location: &str,
    storage: NewStorage,
) -> Result<Arc<Warehouse>> {
    authorise(caller)?;
    if !is_warehouse_name(name) {
        return Err(Error::Invalid(format!("not a name of a warehouse: {name}")));
    }
    let location = location::of_warehouse(location)?;
    let overlaps = |location: &str| Error::Invalid(format!("another warehouse is in, on or around {location}"));
    // Asked first to spare a trial; the statement that makes the warehouse decides.
    let others = db::warehouses::list(&app.db).await.map_err(Error::read)?;
    if others.iter().any(|row| row.name == name) {
        return Err(Error::WarehouseExists(name.to_owned()));
    }
    let is_in = location::is_within;
    if others.iter().any(|row| is_in(&row.location, &location) || is_in(&location, &row.location)) {
        return Err(overlaps(&location));
    }
    storage::validate(app, &storage, &location).await?;
    let (profile, sealed_secret) = storage.columns(app, name)?;
    let row = WarehouseRow { id: Uuid::now_v7(), name: name.to_owned(), location, storage: profile, sealed_secret };
    match db::warehouses::create(&app.db, &row).await.map_err(Error::write)? {
        Create::Done => named(app, name).await,
        Create::Exists => Err(Error::WarehouseExists(name.to_owned())),
        Create::Overlaps => Err(overlaps(&row.location)),
    }
}

/// Gives a warehouse another way to the same objects: other keys, another endpoint.
///
/// # Errors
/// `Error::NoSuchWarehouse`; `Error::Invalid` as in [`create`], then nothing has changed.
pub async fn set_storage(app: &App, caller: &Caller, name: &str, storage: NewStorage) -> Result<Arc<Warehouse>> {
    authorise(caller)?;
    let location = named(app, name).await?.location.clone();
    storage::validate(app, &storage, &location).await?;
    let (profile, sealed_secret) = storage.columns(app, name)?;
    let set = db::warehouses::set_storage(&app.db, name, profile.as_deref(), sealed_secret.as_deref()).await;
    app.catalog.warehouses.forget(name);
    if set.map_err(Error::write)? { named(app, name).await } else { Err(Error::NoSuchWarehouse(name.to_owned())) }
}

/// Deletes a warehouse that has no namespaces; its objects stay.
///
/// # Errors
/// `Error::NoSuchWarehouse`, `Error::WarehouseNotEmpty`; `Error::Invalid` for the default one, which the next start would
/// make again.
pub async fn delete(app: &App, caller: &Caller, name: &str) -> Result<()> {
    authorise(caller)?;
    if name == app.settings.warehouse {
        return Err(Error::Invalid(format!("the default warehouse cannot be deleted: {name}")));
    }
    let deleted = db::warehouses::delete(&app.db, name).await;
    app.catalog.warehouses.forget(name);
    match deleted.map_err(Error::write)? {
        Delete::Done => Ok(()),
        Delete::Missing => Err(Error::NoSuchWarehouse(name.to_owned())),
        Delete::NotEmpty => Err(Error::WarehouseNotEmpty(name.to_owned())),
    }
}

/// All warehouses, in name order.
pub async fn list(app: &App, caller: &Caller) -> Result<Vec<Warehouse>> {
    authorise(caller)?;
    all(app).await
}

/// All warehouses, for background work.
pub(crate) async fn all(app: &App) -> Result<Vec<Warehouse>> {
    let rows = db::warehouses::list(&app.db).await.map_err(Error::read)?;
    rows.into_iter().map(|row| from_row(app, row)).collect()
}

/// The warehouse a client configures itself for: by name, or by its location. Absent or empty: the default one.
///
/// # Errors
/// `Error::NoSuchWarehouse`.
pub async fn find(app: &App, caller: &Caller, asked: Option<&str>) -> Result<Arc<Warehouse>> {
    match open(app, caller, asked.filter(|asked| !asked.is_empty())).await {
        Err(Error::NoSuchWarehouse(name)) if name.contains("://") => {
            let place = name.trim_end_matches('/');
            let rows = db::warehouses::list(&app.db).await.map_err(Error::read)?;
            match rows.into_iter().find(|row| row.location == place) {
                Some(row) => Ok(Arc::new(from_row(app, row)?)),
                None => Err(Error::NoSuchWarehouse(name)),
            }
        }
        found => found,
    }
}

fn from_row(app: &App, row: WarehouseRow) -> Result<Warehouse> {
    let (storage, bucket, objects) = storage::open(app, &row)?;
    Ok(Warehouse { id: row.id, name: row.name, location: row.location, storage, bucket, objects })
}

impl Warehouses {
    fn kept(&self, name: &str) -> Option<Kept> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn keep(&self, kept: Kept) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(kept.row.name.clone(), kept);
    }

    fn forget(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}
