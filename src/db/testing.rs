//! Runs a test's body on a fresh database of each kind.
//!
//! Postgres comes from `TIDEWATER_TEST_POSTGRES_URL`, a superuser's URL of a throw-away cluster. Each test gets a
//! database of its own, copied from a migrated template and dropped when the body ends, however it ends.

use super::{DatabaseSettings, Db};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, postgres::PgConnectOptions};
use std::{path::Path, str::FromStr};
use tokio::sync::OnceCell;
use uuid::Uuid;

const URL: &str = "TIDEWATER_TEST_POSTGRES_URL";
const CONNECTIONS_MAX: u32 = 20;

/// Makes two tests, `sqlite::name` and `postgres::name`, of each `async fn name(db: Db)`.
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::db::testing::sqlite(super::$name).await
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::db::testing::postgres(super::$name).await
            })*
        }
    };
}
pub(crate) use on_both;

/// Runs `body` on a migrated SQLite file.
pub(crate) async fn sqlite<F: Future<Output = ()> + Send + 'static>(body: impl FnOnce(Db) -> F) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let db = open_sqlite(&folder.path().join("catalog.db")).await;
    db.migrate().await.expect("migrations run");
    body(db.clone()).await;
    db.close().await;
}

pub(crate) async fn open_sqlite(file: &Path) -> Db {
    Db::open(&DatabaseSettings::Sqlite { file: file.to_owned() }).await.expect("the file opens")
}

/// Runs `body` on a migrated Postgres database.
pub(crate) async fn postgres<F: Future<Output = ()> + Send + 'static>(body: impl FnOnce(Db) -> F) {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let template = TEMPLATE.get_or_init(make_template).await;
    on_database(&format!("template {template}"), body).await;
}

/// Runs `body` on a Postgres database without a schema.
pub(crate) async fn postgres_empty<F: Future<Output = ()> + Send + 'static>(body: impl FnOnce(Db) -> F) {
    on_database("template template0", body).await;
}

async fn on_database<F: Future<Output = ()> + Send + 'static>(origin: &str, body: impl FnOnce(Db) -> F) {
    let name = format!("tidewater_{}", Uuid::now_v7().simple());
    let mut admin = admin().await;
    execute(&mut admin, format!("create database {name} {origin}")).await;
    let db = open_postgres(&name).await;
    // A task of its own, so that the database goes even when the body panics.
    let outcome = tokio::spawn(body(db.clone())).await;
    db.close().await;
    execute(&mut admin, format!("drop database {name} with (force)")).await;
    if let Err(error) = outcome {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// The migrated database that others are copied from: one for each state of the migrations, made once a cluster.
async fn make_template() -> String {
    let checksums = super::POSTGRES.iter().flat_map(|migration| migration.checksum.iter().copied());
    let checksums = checksums.collect::<Vec<u8>>();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &checksums);
    let name = format!("tidewater_template_{}", &hex::encode(digest)[..16]);
    let mut admin = admin().await;
    // Test binaries may start at once; the lock ends with the connection.
    execute(&mut admin, "select pg_advisory_lock(711)".to_owned()).await;
    let found: Option<(i32,)> = sqlx::query_as("select 1 from pg_database where datname = $1")
        .bind(&name)
        .fetch_optional(&mut admin)
        .await
        .expect("databases are listed");
    if found.is_none() {
        execute(&mut admin, format!("drop database if exists {name}_new with (force)")).await;
        execute(&mut admin, format!("create database {name}_new template template0")).await;
        let db = open_postgres(&format!("{name}_new")).await;
        db.migrate().await.expect("migrations run");
        db.close().await;
        execute(&mut admin, format!("alter database {name}_new rename to {name}")).await;
    }
    admin.close().await.expect("the connection closes");
    name
}

fn url() -> String {
    std::env::var(URL).unwrap_or_else(|_| {
        panic!(
            "{URL} is not set: tests on Postgres need a throw-away cluster. Run them as\n    \
             tests/support/postgres.sh run cargo test\nor start one that stays with\n    \
             export {URL}=$(tests/support/postgres.sh start /tmp/tidewater-postgres)"
        )
    })
}

async fn admin() -> PgConnection {
    PgConnection::connect(&url()).await.expect("the cluster answers")
}

async fn open_postgres(database: &str) -> Db {
    let options = PgConnectOptions::from_str(&url()).expect("a URL").database(database);
    Db::Postgres(super::postgres::connect(options, CONNECTIONS_MAX).await.expect("the database opens"))
}

async fn execute(connection: &mut PgConnection, statement: String) {
    connection.execute(AssertSqlSafe(statement)).await.expect("the statement runs");
}
