//! Access keys: id, owner, and the secret sealed under the master key.

use super::{Db, statement::values};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
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
pub async fn create(db: &Db, key: &AccessKeyRow) -> Result<bool, sqlx::Error> {
    let made: Option<(String,)> = db
        .write_one(
            "insert into access_keys (id, principal, sealed_secret, created_at_ms, expires_at_ms)
             values ($1, $2, $3, $4, $5) on conflict (id) do nothing returning id",
            &values![&key.id, &key.principal, &key.sealed_secret, key.created_at_ms, key.expires_at_ms],
        )
        .await?;
    Ok(made.is_some())
}

/// Creates or replaces, for the root key given by settings.
pub async fn put(db: &Db, key: &AccessKeyRow) -> Result<(), sqlx::Error> {
    let put: Option<(String,)> = db
        .write_one(
            "insert into access_keys (id, principal, sealed_secret, created_at_ms, expires_at_ms)
             values ($1, $2, $3, $4, $5)
             on conflict (id) do update set principal = excluded.principal, sealed_secret = excluded.sealed_secret,
                 created_at_ms = excluded.created_at_ms, expires_at_ms = excluded.expires_at_ms
             returning id",
            &values![&key.id, &key.principal, &key.sealed_secret, key.created_at_ms, key.expires_at_ms],
        )
        .await?;
    put.map(drop).ok_or(sqlx::Error::RowNotFound)
}

pub async fn load(db: &Db, id: &str) -> Result<Option<AccessKeyRow>, sqlx::Error> {
    db.read()
        .optional(
            "select id, principal, sealed_secret, created_at_ms, expires_at_ms from access_keys where id = $1",
            &values![id],
        )
        .await
}

/// In the order of their ids.
pub async fn list(db: &Db) -> Result<Vec<AccessKeyRow>, sqlx::Error> {
    db.read()
        .all(
            "select id, principal, sealed_secret, created_at_ms, expires_at_ms from access_keys order by id",
            &values![],
        )
        .await
}

/// `false` when there was none.
pub async fn delete(db: &Db, id: &str) -> Result<bool, sqlx::Error> {
    let gone: Option<(String,)> =
        db.write_one("delete from access_keys where id = $1 returning id", &values![id]).await?;
    Ok(gone.is_some())
}
