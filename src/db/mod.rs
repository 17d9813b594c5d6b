//! Every SQL statement of the catalog, for SQLite and Postgres 15+.
//!
//! Expected outcomes are values, surprises are `sqlx::Error`. Constraints decide races. Times are milliseconds since
//! the epoch, ids UUIDv7, names compare byte for byte. Text with a NUL is refused (`sqlx::Error::InvalidArgument`)
//! before SQL sees it; callers refuse it earlier, in words for their client.
//!
//! A statement's text stands once (`statement.rs`); what is written together is a `Change` (`change.rs`), which joins a
//! group on SQLite (`sqlite.rs`) and is a transaction on Postgres (`postgres.rs`). What a name means and who may use it
//! is decided in `catalog`.

mod change;
pub mod functions;
pub mod idempotency;
pub mod jobs;
pub mod keys;
mod locations;
pub mod namespaces;
mod pointers;
mod postgres;
pub mod reports;
mod sqlite;
mod statement;
pub mod tables;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod warehouses;

pub use change::To;

use pointers::Pointers;
use secrecy::ExposeSecret;
use sqlx::{PgPool, SqlitePool, migrate::Migrator};
use statement::{Arms, values};
use std::{path::PathBuf, sync::Arc};

/// An older release starts on a newer schema: migrations only ever add what it can ignore.
static SQLITE: Migrator = forgiving(sqlx::migrate!("migrations/sqlite"));
static POSTGRES: Migrator = forgiving(sqlx::migrate!("migrations/postgres"));

const fn forgiving(mut migrator: Migrator) -> Migrator {
    migrator.ignore_missing = true;
    migrator
}

/// Where the catalog's database is.
#[derive(Debug, Clone)]
pub enum DatabaseSettings {
    Sqlite { file: PathBuf },
    Postgres { url: secrecy::SecretString, connections_max: u32 },
}

/// An open catalog database. Cheap to clone.
#[derive(Clone)]
pub enum Db {
    /// This process alone owns the file.
    Sqlite(Arc<sqlite::Sqlite>),
    Postgres(PgPool),
}

/// One page of a listing in name order: names after `after`, at most `limit` (`None`: all).
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub after: Option<String>,
    pub limit: Option<u32>,
}

impl Page {
    /// Names are never empty, so all of them come after the empty one.
    fn after(&self) -> &str {
        self.after.as_deref().unwrap_or_default()
    }

    fn limit(&self) -> i64 {
        self.limit.map_or(i64::MAX, i64::from)
    }
}

/// How busy a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolState {
    /// Open connections; on SQLite the readers'.
    pub connections: u32,
    pub connections_idle: usize,
    /// Changes that wait for SQLite's writer; 0 on Postgres.
    pub changes_waiting: usize,
}

impl Db {
    /// Opens without migrating.
    pub async fn open(settings: &DatabaseSettings) -> Result<Db, sqlx::Error> {
        match settings {
            DatabaseSettings::Sqlite { file } => Ok(Db::Sqlite(Arc::new(sqlite::Sqlite::open(file).await?))),
            DatabaseSettings::Postgres { url, connections_max } => {
                Ok(Db::Postgres(postgres::open(url.expose_secret(), *connections_max).await?))
            }
        }
    }

    /// Brings the schema up to date; several replicas may call it at once.
    pub async fn migrate(&self) -> Result<(), sqlx::migrate::MigrateError> {
        match self {
            Db::Sqlite(sqlite) => {
                use sqlx::Connection;
                let mut connection = sqlite.connect().await?;
                // Holds the file's write lock: migrations run in savepoints of this transaction.
                let mut transaction = connection.begin_with("begin immediate").await?;
                SQLITE.run_direct(None, &mut *transaction, false).await?;
                transaction.commit().await?;
                Ok(connection.close().await?)
            }
            Db::Postgres(pool) => {
                // An advisory lock of the session guards this; closing the session gives it back after an error.
                let mut connection = pool.acquire().await?;
                connection.close_on_drop();
                POSTGRES.run_direct(None, &mut *connection, false).await
            }
        }
    }

    /// A statement that touches the database, for readiness.
    pub async fn ping(&self) -> Result<(), sqlx::Error> {
        if let Db::Sqlite(sqlite) = self {
            sqlite.check_writer()?;
        }
        self.read().optional::<(i64,)>("select cast(1 as bigint)", &values![]).await.map(drop)
    }

    pub async fn close(&self) {
        match self {
            Db::Sqlite(sqlite) => sqlite.close().await,
            Db::Postgres(pool) => pool.close().await,
        }
    }

    pub fn pool_state(&self) -> PoolState {
        match self {
            Db::Sqlite(sqlite) => PoolState {
                connections: sqlite.readers().size(),
                connections_idle: sqlite.readers().num_idle(),
                changes_waiting: sqlite.queue_len(),
            },
            Db::Postgres(pool) => {
                PoolState { connections: pool.size(), connections_idle: pool.num_idle(), changes_waiting: 0 }
            }
        }
    }

    /// Where a statement that only reads runs.
    fn read(&self) -> Arms<&SqlitePool, &PgPool> {
        match self {
            Db::Sqlite(sqlite) => Arms::Sqlite(sqlite.readers()),
            Db::Postgres(pool) => Arms::Postgres(pool),
        }
    }

    /// The map of pointers, for the database that has one.
    fn pointers(&self) -> Option<&Pointers> {
        match self {
            Db::Sqlite(sqlite) => Some(sqlite.pointers()),
            Db::Postgres(_) => None,
        }
    }
}
