//! Warehouses: a name and the storage location its tables live under.

use super::{Db, statement::values};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct WarehouseRow {
    pub id: Uuid,
    pub name: String,
    /// `s3://bucket` or `s3://bucket/prefix`, without a trailing slash.
    pub location: String,
}

/// `false` when the name is taken.
pub async fn create(db: &Db, warehouse: &WarehouseRow) -> Result<bool, sqlx::Error> {
    let made: Option<(Uuid,)> = db
        .write_one(
            "insert into warehouses (id, name, location) values ($1, $2, $3) on conflict (name) do nothing returning id",
            &values![warehouse.id, &warehouse.name, &warehouse.location],
        )
        .await?;
    Ok(made.is_some())
}

pub async fn load(db: &Db, name: &str) -> Result<Option<WarehouseRow>, sqlx::Error> {
    db.read().optional("select id, name, location from warehouses where name = $1", &values![name]).await
}

/// In name order.
pub async fn list(db: &Db) -> Result<Vec<WarehouseRow>, sqlx::Error> {
    db.read().all("select id, name, location from warehouses order by name", &values![]).await
}
