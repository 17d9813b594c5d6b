//! Postgres: a bounded pool, and changes as transactions that are tried again when the database asks for it.

use super::{change::Change, statement::Arms};
use sqlx::{
    Connection, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use std::{str::FromStr, time::Duration};

/// How long a request waits for a free connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection idle for longer is asked whether it still lives before it is used.
const IDLE_UNCHECKED_MAX: Duration = Duration::from_secs(1);
/// Each of our statements is prepared once a connection; there are fewer than this.
const STATEMENTS_CACHED_MAX: usize = 200;
/// How often a change runs when Postgres aborts it for others' sake.
const ATTEMPTS_MAX: u32 = 5;

pub async fn open(url: &str, connections_max: u32) -> Result<PgPool, sqlx::Error> {
    connect(PgConnectOptions::from_str(url)?, connections_max).await
}

pub async fn connect(options: PgConnectOptions, connections_max: u32) -> Result<PgPool, sqlx::Error> {
    let options = options.application_name("tidewater").statement_cache_capacity(STATEMENTS_CACHED_MAX);
    PgPoolOptions::new()
        .max_connections(connections_max)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .before_acquire(|connection, pooled| {
            Box::pin(async move { Ok(pooled.idle_for < IDLE_UNCHECKED_MAX || connection.ping().await.is_ok()) })
        })
        .connect_with(options)
        .await
}

/// Runs a change in a transaction, again when Postgres aborted it (which it does only before anything happened).
pub async fn write<C: Change>(pool: &PgPool, change: &C) -> Result<C::Answer, sqlx::Error> {
    let mut attempt = 1;
    loop {
        let mut connection = pool.acquire().await?;
        match attempt_once(&mut connection, change).await {
            Err(error) if attempt < ATTEMPTS_MAX && was_aborted(&error) => attempt += 1,
            outcome => return outcome,
        }
    }
}

async fn attempt_once<C: Change>(connection: &mut PgConnection, change: &C) -> Result<C::Answer, sqlx::Error> {
    if change.is_single_statement() {
        return change.apply(&mut Arms::Postgres(connection)).await;
    }
    // A statement must see what others committed while an earlier one waited for a lock.
    let mut transaction = connection.begin_with("begin isolation level read committed").await?;
    match change.apply(&mut Arms::Postgres(&mut transaction)).await {
        Ok(answer) if change.took_effect(&answer) => transaction.commit().await.map(|()| answer),
        Ok(answer) => transaction.rollback().await.map(|()| answer),
        Err(error) => {
            // The first error is the one to tell; a connection that cannot roll back is not reused by the pool.
            transaction.rollback().await.ok();
            Err(error)
        }
    }
}

/// Serialization failure or deadlock: the transaction is certainly rolled back.
fn was_aborted(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("40001" | "40P01"))
}
