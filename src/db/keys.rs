//! Access keys: id, owner, and the secret sealed under the master key.

use super::Db;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessKeyRow {
    /// The access key id clients send; unique.
    pub id: String,
    pub principal: String,
    /// AES-256-GCM under the master key; opaque here.
    pub sealed_secret: Vec<u8>,
    pub created_at_ms: i64,
    pub expires_at_ms: Option<i64>,
}

/// `false` when the id is taken.
pub async fn create(_db: &Db, _key: &AccessKeyRow) -> Result<bool, sqlx::Error> {
    todo!()
}
/// Creates or replaces, for the root key given by settings.
pub async fn put(_db: &Db, _key: &AccessKeyRow) -> Result<(), sqlx::Error> {
    todo!()
}
pub async fn load(_db: &Db, _id: &str) -> Result<Option<AccessKeyRow>, sqlx::Error> {
    todo!()
}
pub async fn list(_db: &Db) -> Result<Vec<AccessKeyRow>, sqlx::Error> {
    todo!()
}
/// `false` when there was none.
pub async fn delete(_db: &Db, _id: &str) -> Result<bool, sqlx::Error> {
    todo!()
}
