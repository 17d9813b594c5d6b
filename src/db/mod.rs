//! Every SQL statement of the catalog, for SQLite and Postgres 15+.
//!
//! Expected outcomes are values, surprises are `sqlx::Error`. Constraints decide races. Times are milliseconds since
//! the epoch, ids UUIDv7, names compare byte for byte.

pub mod jobs;
pub mod keys;
pub mod namespaces;
pub mod tables;
pub mod warehouses;

use std::path::PathBuf;

/// Where the catalog's database is.
#[derive(Debug, Clone)]
pub enum DatabaseSettings {
    Sqlite { file: PathBuf },
    Postgres { url: secrecy::SecretString, connections_max: u32 },
}

/// An open catalog database. Cheap to clone.
#[derive(Clone)]
pub enum Db {
    Sqlite(()),
    Postgres(()),
}

/// One page of a listing in name order: names after `after`, at most `limit` (`None`: all).
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub after: Option<String>,
    pub limit: Option<u32>,
}

impl Db {
    /// Opens without migrating.
    pub async fn open(_settings: &DatabaseSettings) -> Result<Db, sqlx::Error> {
        todo!()
    }
    /// Brings the schema up to date; several replicas may call it at once.
    pub async fn migrate(&self) -> Result<(), sqlx::migrate::MigrateError> {
        todo!()
    }
    /// A statement that touches the database, for readiness.
    pub async fn ping(&self) -> Result<(), sqlx::Error> {
        todo!()
    }
    pub async fn close(&self) {
        todo!()
    }
}
