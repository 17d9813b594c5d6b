//! Warehouses: a name, the storage location its tables live under, and where that storage is.

use super::{Db, statement::values};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct WarehouseRow {
    pub id: Uuid,
    pub name: String,
    /// `s3://bucket` or `s3://bucket/prefix`, without a trailing slash.
    pub location: String,
    /// JSON; `None`: the embedded store.
    pub storage: Option<String>,
    pub sealed_secret: Option<Vec<u8>>,
}

/// What became of a warehouse to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    Done,
    /// The name is taken.
    Exists,
    /// The location is another warehouse's, inside it or around it.
    Overlaps,
}

/// What became of a warehouse to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delete {
    Done,
    Missing,
    /// It has namespaces.
    NotEmpty,
}

pub async fn create(db: &Db, warehouse: &WarehouseRow) -> Result<Create, sqlx::Error> {
    // With a slash at their ends, one of two locations begins with the other exactly where they overlap.
    let made: Option<(Uuid,)> = db
        .write_one(
            "insert into warehouses (id, name, location, storage, sealed_secret)
             select $1, $2, $3, $4, $5 where not exists (
                 select 1 from warehouses where name <> $2
                 and (substr(location || '/', 1, length($3) + 1) = $3 || '/'
                      or substr($3 || '/', 1, length(location) + 1) = location || '/'))
             on conflict (name) do nothing returning id",
            &values![
                warehouse.id,
                &warehouse.name,
                &warehouse.location,
                warehouse.storage.as_deref(),
                warehouse.sealed_secret.as_deref()
            ],
        )
        .await?;
    match made {
        Some(_) => Ok(Create::Done),
        None if load(db, &warehouse.name).await?.is_some() => Ok(Create::Exists),
        None => Ok(Create::Overlaps),
    }
}

/// `false` when there is no such warehouse.
pub async fn set_storage(
    db: &Db,
    name: &str,
    storage: Option<&str>,
    sealed_secret: Option<&[u8]>,
) -> Result<bool, sqlx::Error> {
    let set: Option<(Uuid,)> = db
        .write_one(
            "update warehouses set storage = $2, sealed_secret = $3 where name = $1 returning id",
            &values![name, storage, sealed_secret],
        )
        .await?;
    Ok(set.is_some())
}

pub async fn delete(db: &Db, name: &str) -> Result<Delete, sqlx::Error> {
    let deleted: Option<(Uuid,)> = db
        .write_one(
            "delete from warehouses where name = $1
             and not exists (select 1 from namespaces where warehouse_id = warehouses.id) returning id",
            &values![name],
        )
        .await?;
    match deleted {
        Some(_) => Ok(Delete::Done),
        None if load(db, name).await?.is_some() => Ok(Delete::NotEmpty),
        None => Ok(Delete::Missing),
    }
}

pub async fn load(db: &Db, name: &str) -> Result<Option<WarehouseRow>, sqlx::Error> {
    let text = "select id, name, location, storage, sealed_secret from warehouses where name = $1";
    db.read().optional(text, &values![name]).await
}

/// In name order.
pub async fn list(db: &Db) -> Result<Vec<WarehouseRow>, sqlx::Error> {
    db.read().all("select id, name, location, storage, sealed_secret from warehouses order by name", &values![]).await
}
