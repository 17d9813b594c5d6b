//! The pointer map, and the group commit it hangs on: SQLite only.

use super::{
    fresh_file, ident, load, make_namespace, make_table, namespace, swap, warehouse, warehouse_with_namespace,
};
use crate::db::{
    Db,
    change::Change,
    namespaces,
    pointers::{Lookup, Pointers},
    sqlite::Sqlite,
    statement::{Tx, values},
    tables::{self, Kind, Swapped, TableRow},
    testing,
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, Ordering},
};
use uuid::Uuid;

fn row(namespace_id: Uuid, revision: i64) -> TableRow {
    TableRow {
        id: Uuid::nil(),
        namespace_id,
        name: "t".into(),
        kind: Kind::Table,
        uuid: Uuid::nil(),
        format_version: 2,
        location: "s3://lake/t".into(),
        metadata_location: format!("s3://lake/t/metadata/{revision}"),
        previous_location: None,
        revision,
    }
}

fn sqlite_of(db: &Db) -> &Sqlite {
    match db {
        Db::Sqlite(sqlite) => sqlite,
        Db::Postgres(_) => panic!("a file"),
    }
}

/// The row the map holds, without asking the database.
fn held(db: &Db, warehouse: Uuid, path: &str) -> Option<TableRow> {
    sqlite_of(db).pointers().load(warehouse, &ident(path))
}

#[test]
fn a_fill_older_than_a_change_is_refused() {
    let (pointers, id) = (Pointers::new(), Uuid::now_v7());
    let Lookup::Missing(before) = pointers.find_table(id, "t") else { panic!("empty") };
    // What the reader read before the change came to the map:
    pointers.put_table(&row(id, 2));
    pointers.fill_table(before, &row(id, 1));
    let Lookup::Found(found) = pointers.find_table(id, "t") else { panic!("put") };
    assert_eq!(found.revision, 2);

    let Lookup::Missing(before) = pointers.find_table(Uuid::nil(), "t") else { panic!("empty") };
    pointers.forget_table(Uuid::nil(), "t");
    pointers.fill_table(before, &row(Uuid::nil(), 1));
    assert!(matches!(pointers.find_table(Uuid::nil(), "t"), Lookup::Missing(_)), "a dropped table does not rise again");

    let Lookup::Missing(now) = pointers.find_table(Uuid::nil(), "t") else { panic!("refused") };
    pointers.fill_table(now, &row(Uuid::nil(), 3));
    assert!(matches!(pointers.find_table(Uuid::nil(), "t"), Lookup::Found(_)), "an undisturbed fill is taken");
}

#[test]
fn the_map_is_bounded_in_bytes() {
    let (pointers, id) = (Pointers::new(), Uuid::now_v7());
    let big = "x".repeat(100_000);
    for number in 0..2_000 {
        pointers.put_table(&TableRow { name: format!("t{number}"), location: big.clone(), ..row(id, 1) });
    }
    let held = (0..2_000).filter(|number| matches!(pointers.find_table(id, &format!("t{number}")), Lookup::Found(_)));
    let held = held.count();
    assert!((50..500).contains(&held), "48 MiB hold at most 500 rows of 100 kB, not {held}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_change_shows_in_the_map_once_answered() {
    testing::sqlite(|db| async move {
        let warehouse = warehouse_with_namespace(&db).await;
        make_namespace(&db, warehouse, "m").await;
        let first = make_table(&db, warehouse, "n.t").await;
        load(&db, warehouse, "n.t").await; // the namespace's id is known from now on
        assert_eq!(held(&db, warehouse, "n.t").as_ref(), Some(&first));
        assert_eq!(swap(&db, &first, &fresh_file("s3://lake/t")).await.unwrap(), Swapped::Done(2));
        assert_eq!(held(&db, warehouse, "n.t").map(|row| row.revision), Some(2));
        tables::settle(&db, first.id, "s3://lake/none").await.unwrap();
        assert_eq!(held(&db, warehouse, "n.t").map(|row| row.revision), Some(3));
        tables::rename(&db, warehouse, &ident("n.t"), &ident("m.u"), Kind::Table).await.unwrap();
        assert_eq!(held(&db, warehouse, "n.t"), None);
        assert_eq!(load(&db, warehouse, "m.u").await.map(|row| row.revision), Some(3));
        let stored = tables::load_by_id(&db, first.id).await.unwrap();
        assert_eq!(held(&db, warehouse, "m.u"), stored);
        tables::drop(&db, warehouse, &ident("m.u"), Kind::Table, None).await.unwrap().expect("dropped");
        assert_eq!(held(&db, warehouse, "m.u"), None);
        assert_eq!(load(&db, warehouse, "m.u").await, None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_made_again_is_another() {
    testing::sqlite(|db| async move {
        let warehouse = warehouse_with_namespace(&db).await;
        for _ in 0..3 {
            let row = make_table(&db, warehouse, "n.t").await;
            assert_eq!(load(&db, warehouse, "n.t").await, Some(row));
            tables::drop(&db, warehouse, &ident("n.t"), Kind::Table, None).await.unwrap().expect("dropped");
            let dropped = namespaces::drop(&db, warehouse, &namespace("n")).await.unwrap();
            assert_eq!(dropped, namespaces::Drop::Done);
            assert_eq!(load(&db, warehouse, "n.t").await, None);
            make_namespace(&db, warehouse, "n").await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hit_asks_no_database() {
    testing::sqlite(|db| async move {
        let warehouse = warehouse_with_namespace(&db).await;
        let row = make_table(&db, warehouse, "n.t").await;
        load(&db, warehouse, "n.t").await;
        sqlite_of(&db).readers().close().await;
        assert_eq!(load(&db, warehouse, "n.t").await, Some(row));
        assert!(tables::load(&db, warehouse, &ident("n.other")).await.is_err(), "a miss would have asked");
    })
    .await;
}

/// Readers empty the map and fill it again while a writer commits: nobody sees a revision older than one answered.
/// Red when `Shards::fill` leaves out its look at the generation.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reader_never_sees_a_row_older_than_an_answered_commit() {
    testing::sqlite(|db| async move {
        let warehouse = warehouse_with_namespace(&db).await;
        let mut base = make_table(&db, warehouse, "n.t").await;
        let answered = Arc::new(AtomicI64::new(base.revision));
        let stop = Arc::new(AtomicBool::new(false));
        let readers = (0..4).map(|_| {
            let (db, answered, stop) = (db.clone(), answered.clone(), stop.clone());
            tokio::spawn(async move {
                let mut stale = 0;
                while !stop.load(Ordering::SeqCst) {
                    let at_least = answered.load(Ordering::SeqCst);
                    let row = load(&db, warehouse, "n.t").await.expect("there");
                    stale += i32::from(row.revision < at_least);
                    sqlite_of(&db).pointers().evict_table(row.namespace_id, "t");
                    tokio::task::yield_now().await;
                }
                stale
            })
        });
        let readers = readers.collect::<Vec<_>>();
        for _ in 0..600 {
            let file = fresh_file(&base.location);
            let Swapped::Done(revision) = swap(&db, &base, &file).await.unwrap() else { panic!("nobody else writes") };
            answered.store(revision, Ordering::SeqCst);
            base =
                TableRow { previous_location: Some(base.metadata_location), metadata_location: file, revision, ..base };
            assert_eq!(load(&db, warehouse, "n.t").await.map(|row| row.revision), Some(revision));
        }
        stop.store(true, Ordering::SeqCst);
        for reader in readers {
            assert_eq!(reader.await.unwrap(), 0, "stale reads");
        }
    })
    .await;
}

/// Inserts a warehouse, and may fail afterwards in one of two ways.
struct Insert {
    id: Uuid,
    then: Then,
}

enum Then {
    Succeed,
    /// The change fails, after it wrote.
    Fail,
    /// The whole group's commit fails: a foreign key is checked only there.
    FailCommit,
}

impl Change for Insert {
    type Answer = Uuid;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Uuid, sqlx::Error> {
        let values = values![self.id, self.id.to_string()];
        tx.on().execute("insert into warehouses (id, name, location) values ($1, $2, 's3://lake')", &values).await?;
        match self.then {
            Then::Succeed => {}
            Then::Fail => drop(tx.on().execute("insert into nowhere (id) values ($1)", &values[..1]).await?),
            Then::FailCommit => {
                tx.on().execute("pragma defer_foreign_keys = on", &[]).await?;
                let orphan = "insert into namespaces (id, warehouse_id, name, path_key, properties)
                    values ($1, $1, 'n', 'n', '{}')";
                tx.on().execute(orphan, &values![Uuid::now_v7()]).await?;
            }
        }
        Ok(self.id)
    }
}

/// Sends the changes so that they wait together while the writer is held up, and answers what each came to.
async fn in_one_group(db: &Db, changes: Vec<Then>) -> Vec<(Uuid, Result<Uuid, sqlx::Error>)> {
    // Another connection's write lock holds the writer up at its first change.
    let mut holder = sqlite_of(db).connect().await.unwrap();
    sqlx::query("begin immediate").execute(&mut holder).await.unwrap();
    let (count, mut tasks) = (changes.len(), Vec::new());
    for then in changes {
        let (db, id) = (db.clone(), Uuid::now_v7());
        tasks.push(tokio::spawn(async move { (id, db.write(Insert { id, then }).await) }));
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    // The writer holds the first; the others wait.
    while sqlite_of(db).queue_len() + 1 < count {
        assert!(std::time::Instant::now() < deadline, "the changes do not queue up");
        tokio::task::yield_now().await;
    }
    sqlx::query("rollback").execute(&mut holder).await.unwrap();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    outcomes
}

async fn is_there(db: &Db, id: Uuid) -> bool {
    crate::db::warehouses::load(db, &id.to_string()).await.unwrap().is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_change_takes_only_itself_back() {
    testing::sqlite(|db| async move {
        let outcomes = in_one_group(&db, vec![Then::Succeed, Then::Fail, Then::Succeed, Then::Fail]).await;
        for (index, (id, outcome)) in outcomes.iter().enumerate() {
            assert_eq!(outcome.is_ok(), index % 2 == 0, "{index}: {outcome:?}");
            assert_eq!(is_there(&db, *id).await, index % 2 == 0, "{index}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_commit_fails_every_member_and_the_writer_goes_on() {
    testing::sqlite(|db| async move {
        let outcomes = in_one_group(&db, vec![Then::Succeed, Then::FailCommit, Then::Succeed, Then::Fail]).await;
        for (id, outcome) in outcomes {
            let error = outcome.expect_err("the group was not committed");
            let source = std::error::Error::source(&error).map(ToString::to_string);
            assert!(matches!(&error, sqlx::Error::Io(_)), "{error:?} {source:?}");
            assert!(!is_there(&db, id).await);
        }
        let warehouse = warehouse(&db).await;
        make_namespace(&db, warehouse, "n").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_whose_caller_left_is_made() {
    testing::sqlite(|db| async move {
        let id = Uuid::now_v7();
        {
            let mut write = std::pin::pin!(db.write(Insert { id, then: Then::Succeed }));
            // One poll sends it; then the caller goes.
            assert!(futures_util::poll!(write.as_mut()).is_pending());
        }
        warehouse(&db).await; // queued behind it
        assert!(is_there(&db, id).await);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_finishes_what_is_queued() {
    testing::sqlite(|db| async move {
        let tasks = (0..50).map(|_| {
            let (db, id) = (db.clone(), Uuid::now_v7());
            tokio::spawn(async move { db.write(Insert { id, then: Then::Succeed }).await })
        });
        let tasks = tasks.collect::<Vec<_>>();
        tokio::task::yield_now().await;
        db.close().await;
        for task in tasks {
            let outcome = task.await.unwrap();
            assert!(matches!(outcome, Ok(_) | Err(sqlx::Error::PoolClosed)), "made or never queued: {outcome:?}");
        }
        assert!(matches!(crate::db::warehouses::list(&db).await, Err(sqlx::Error::PoolClosed)));
    })
    .await;
}
