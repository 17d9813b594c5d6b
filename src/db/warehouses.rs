//! Warehouses: a name and the storage location its tables live under.

use super::Db;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarehouseRow {
    pub id: Uuid,
    pub name: String,
    /// `s3://bucket` or `s3://bucket/prefix`, without a trailing slash.
    pub location: String,
}

/// `false` when the name is taken.
pub async fn create(_db: &Db, _warehouse: &WarehouseRow) -> Result<bool, sqlx::Error> {
    todo!()
}
pub async fn load(_db: &Db, _name: &str) -> Result<Option<WarehouseRow>, sqlx::Error> {
    todo!()
}
pub async fn list(_db: &Db) -> Result<Vec<WarehouseRow>, sqlx::Error> {
    todo!()
}
