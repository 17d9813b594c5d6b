use super::{warehouse, warehouse_with_namespace};
use crate::db::{
    Db, POSTGRES, SQLITE, tables,
    testing::{on_both, open_sqlite, postgres_empty},
};
use sqlx::migrate::Migrator;

on_both!(migrating_again_changes_nothing);

async fn migrating_again_changes_nothing(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    db.migrate().await.unwrap();
    super::make_table(&db, warehouse, "n.t").await;
}

async fn migrate_at_once(dbs: [Db; 4]) {
    let [db, ..] = dbs.clone();
    let migrations = dbs.map(|db| tokio::spawn(async move { db.migrate().await }));
    for migration in migrations {
        migration.await.unwrap().unwrap();
    }
    warehouse(&db).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_migrate_one_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.db");
    // Opened one after the other: what is tested is that they migrate at once.
    let dbs = [open_sqlite(&file).await, open_sqlite(&file).await, open_sqlite(&file).await, open_sqlite(&file).await];
    migrate_at_once(dbs.clone()).await;
    for db in dbs {
        db.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_replicas_migrate_one_postgres_at_once() {
    postgres_empty(|db| migrate_at_once([db.clone(), db.clone(), db.clone(), db])).await;
}

/// The schema as a release had it whose last migration was `version`.
async fn migrate_up_to(db: &Db, version: i64) {
    let older = |all: &Migrator| {
        Migrator::with_migrations(all.iter().filter(|migration| migration.version <= version).cloned().collect())
    };
    match db {
        Db::Sqlite(sqlite) => {
            let mut connection = sqlite.connect().await.unwrap();
            older(&SQLITE).run_direct(None, &mut connection, false).await.unwrap();
        }
        Db::Postgres(pool) => {
            let mut connection = pool.acquire().await.unwrap();
            older(&POSTGRES).run_direct(None, &mut *connection, false).await.unwrap();
        }
    }
}

async fn check_that_histories_survive(db: Db) {
    migrate_up_to(&db, 11).await;
    let warehouse = warehouse_with_namespace(&db).await;
    let row = super::make_table(&db, warehouse, "n.t").await;
    super::swap(&db, &row, &super::fresh_file(&row.location)).await.unwrap();
    let before = tables::history(&db, row.id).await.unwrap();
    assert_eq!(before.len(), 2);
    db.migrate().await.unwrap();
    assert_eq!(tables::history(&db, row.id).await.unwrap(), before);
    assert!(tables::is_recorded(&db, &row.metadata_location).await.unwrap());
    let row = super::load(&db, warehouse, "n.t").await.unwrap();
    super::swap(&db, &row, &super::fresh_file(&row.location)).await.unwrap();
    assert_eq!(tables::history(&db, row.id).await.unwrap().len(), 3);
}

#[tokio::test]
async fn histories_of_an_older_file_survive() {
    let folder = tempfile::tempdir().unwrap();
    let db = open_sqlite(&folder.path().join("catalog.db")).await;
    check_that_histories_survive(db.clone()).await;
    db.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_of_an_older_postgres_survive() {
    postgres_empty(check_that_histories_survive).await;
}

#[tokio::test]
async fn what_was_answered_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.db");
    let db = open_sqlite(&file).await;
    db.migrate().await.unwrap();
    let warehouse = warehouse_with_namespace(&db).await;
    let row = super::make_table(&db, warehouse, "n.t").await;
    db.close().await;
    let log = folder.path().join("catalog.db-wal");
    assert!(!log.exists() || log.metadata().unwrap().len() == 0, "closing moves the log into the file");
    let db = open_sqlite(&file).await;
    assert_eq!(super::load(&db, warehouse, "n.t").await, Some(row));
    db.close().await;
}

#[tokio::test]
async fn sqlite_syncs_every_commit() {
    let folder = tempfile::tempdir().unwrap();
    let db = open_sqlite(&folder.path().join("catalog.db")).await;
    let Db::Sqlite(sqlite) = &db else { panic!("a file") };
    let mut connection = sqlite.connect().await.unwrap();
    let pragma = async |connection: &mut sqlx::SqliteConnection, text: &'static str| {
        sqlx::query_scalar::<_, String>(text).fetch_one(connection).await.unwrap()
    };
    assert_eq!(pragma(&mut connection, "select journal_mode from pragma_journal_mode").await, "wal");
    assert_eq!(pragma(&mut connection, "select cast(synchronous as text) from pragma_synchronous").await, "2");
    assert_eq!(pragma(&mut connection, "select cast(foreign_keys as text) from pragma_foreign_keys").await, "1");
    let refused = sqlx::query("create table written_by_a_reader (id blob)").execute(sqlite.readers()).await;
    assert!(refused.is_err(), "readers only read");
    drop(connection);
    db.close().await;
}
