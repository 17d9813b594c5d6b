//! The two databases a server can stand on.

use sqlx::{Connection, Executor, PgConnection};

const POSTGRES_URL: &str = "TIDEWATER_TEST_POSTGRES_URL";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
}

/// Makes two tests of each function named: `on_sqlite::name` and `on_postgres::name`. The function takes a [`Database`].
macro_rules! on_both_databases {
    ($($name:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::database::Database::Sqlite).await;
            })+
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name($crate::database::Database::Postgres).await;
            })+
        }
    };
}

/// A database of its own in the test's Postgres, dropped with this value.
pub struct PostgresDatabase {
    server_url: String,
    name: String,
}

impl PostgresDatabase {
    pub async fn create() -> PostgresDatabase {
        let server_url = std::env::var(POSTGRES_URL).unwrap_or_else(|_| {
            panic!("{POSTGRES_URL} is not set: run `make test ARGS=cargo`, which starts a Postgres")
        });
        let name = format!("it_{}", uuid::Uuid::now_v7().simple());
        run(&server_url, &format!("create database {name}")).await;
        PostgresDatabase { server_url, name }
    }

    /// Ends every connection to this database and lets nobody in: what a lost database looks like.
    pub async fn cut_off(&self) {
        run(&self.server_url, &format!("alter database {} with allow_connections false", self.name)).await;
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname";
        run(&self.server_url, &format!("{end} = '{}'", self.name)).await;
    }

    pub async fn bring_back(&self) {
        run(&self.server_url, &format!("alter database {} with allow_connections true", self.name)).await;
    }

    /// With the server's own parameters, naming this database.
    pub fn url(&self) -> String {
        let (address, parameters) = match self.server_url.split_once('?') {
            Some((address, parameters)) => (address, format!("?{parameters}")),
            None => (self.server_url.as_str(), String::new()),
        };
        let (server, _) = address.rsplit_once('/').expect("a Postgres URL names a database");
        format!("{server}/{}{parameters}", self.name)
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        let (server_url, name) = (self.server_url.clone(), self.name.clone());
        // Drop is not async, and this thread may be a runtime's.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(run(&server_url, &format!("drop database if exists {name} with (force)")));
        });
        if dropped.join().is_err() {
            eprintln!("could not drop the test's database");
        }
    }
}

async fn run(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("the test's Postgres answers");
    connection.execute(sqlx::AssertSqlSafe(statement.to_owned())).await.expect("the test's user may create databases");
    connection.close().await.ok();
}
