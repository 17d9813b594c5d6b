//! Warehouses: where tables live, and the object store behind that place.

use super::{Error, Result, authorise, location};
use crate::{
    app::App,
    auth::Caller,
    db::{self, warehouses::WarehouseRow},
    store::BucketName,
};
use object_store::{ObjectStore, path::Path};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};
use uuid::Uuid;

/// A warehouse and its storage. Rows of warehouses never change, so a loaded one may be kept.
#[derive(Debug)]
pub struct Warehouse {
    pub id: Uuid,
    pub name: String,
    /// `s3://bucket` or `s3://bucket/prefix`, without a trailing slash.
    pub location: String,
    bucket: String,
    /// The bucket's objects.
    pub(crate) objects: Arc<dyn ObjectStore>,
}

/// Warehouses by name. Bounded by how many there are: names that do not exist are not kept.
#[derive(Default)]
pub(crate) struct Warehouses(RwLock<HashMap<String, Arc<Warehouse>>>);

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
    if let Some(warehouse) = app.catalog.warehouses.kept(name) {
        return Ok(warehouse);
    }
    let row = db::warehouses::load(&app.db, name).await.map_err(Error::read)?;
    let row = row.ok_or_else(|| Error::NoSuchWarehouse(name.to_owned()))?;
    let warehouse = Arc::new(from_row(app, row)?);
    app.catalog.warehouses.keep(&warehouse);
    Ok(warehouse)
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
    let bucket = location::split(&row.location).and_then(|(bucket, _)| BucketName::parse(bucket));
    let Some(bucket) = bucket else {
        return Err(Error::internal(format!("warehouse {} has the location {}", row.name, row.location)));
    };
    Ok(Warehouse {
        id: row.id,
        name: row.name,
        location: row.location,
        bucket: bucket.as_str().to_owned(),
        objects: app.store.bucket(bucket),
    })
}

impl Warehouses {
    fn kept(&self, name: &str) -> Option<Arc<Warehouse>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn keep(&self, warehouse: &Arc<Warehouse>) {
        let mut kept = self.0.write().unwrap_or_else(PoisonError::into_inner);
        kept.insert(warehouse.name.clone(), Arc::clone(warehouse));
    }
}
