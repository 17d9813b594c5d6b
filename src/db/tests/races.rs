use super::{
    create, fresh_file, ident, load, make_namespace, make_table, namespace, new_table, swap, warehouse,
    warehouse_with_namespace,
};
use crate::db::{
    Db,
    change::Change,
    namespaces::{self, Properties},
    statement::{Arms, Tx, values},
    tables::{
        self, Create, Kind, Rename, Settled, Swap, Swapped,
        history::{Move, Moved},
        occupy::CreateTable,
    },
    testing::{self, on_both},
};
use std::sync::Arc;
use tokio::sync::Barrier;
use uuid::Uuid;

on_both!(
    racing_swaps_make_a_chain,
    one_of_many_creates_gets_the_name,
    crossing_renames_end_in_values,
    renames_onto_one_name_let_one_through,
    creates_and_a_drop_of_their_namespace_end_in_values,
    children_and_a_drop_of_their_parent_end_in_values,
    settling_during_swaps_never_contradicts_them,
);

/// Starts `count` tasks at once and collects what they came to.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    count: usize,
    task: impl Fn(usize) -> F,
) -> Vec<T> {
    let barrier = Arc::new(Barrier::new(count));
    let tasks = (0..count).map(|number| {
        let (barrier, task) = (barrier.clone(), task(number));
        tokio::spawn(async move {
            barrier.wait().await;
            task.await
        })
    });
    let mut outcomes = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        outcomes.push(task.await.expect("no panic"));
    }
    outcomes
}

async fn racing_swaps_make_a_chain(db: Db) {
    const WRITERS: usize = 16;
    const COMMITS: usize = 8;
    let warehouse = warehouse_with_namespace(&db).await;
    let first = make_table(&db, warehouse, "n.t").await;
    let done = at_once(WRITERS, |_| {
        let db = db.clone();
        async move {
            let (mut done, mut tries) = (Vec::new(), 0);
            while done.len() < COMMITS {
                // Each lost race is another's commit, so even the unluckiest stays below this.
                tries += 1;
                assert!(tries <= WRITERS * COMMITS, "swaps are lost to nobody");
                let base = load(&db, warehouse, "n.t").await.expect("there");
                let file = fresh_file(&base.location);
                if let Swapped::Done(revision) = swap(&db, &base, &file).await.unwrap() {
                    assert_eq!(revision, base.revision + 1);
                    done.push((revision, base.metadata_location, file));
                }
            }
            done
        }
    });
    let mut done = done.await.concat();
    done.sort();
    let history = tables::history(&db, first.id).await.unwrap();
    let recorded = history.iter().map(|row| (row.revision, row.metadata_location.clone())).collect::<Vec<_>>();
    let mut acknowledged = vec![(1, first.metadata_location.clone())];
    acknowledged.extend(done.iter().map(|(revision, _, file)| (*revision, file.clone())));
    assert_eq!(recorded, acknowledged, "every acknowledged commit once, and no other");
    for (before, (_, base, _)) in acknowledged.iter().zip(&done) {
        assert_eq!(&before.1, base, "each was built on the one before");
    }
    let last = load(&db, warehouse, "n.t").await.expect("there");
    assert_eq!(Some(&(last.revision, last.metadata_location)), recorded.last());
}

async fn one_of_many_creates_gets_the_name(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let outcomes = at_once(16, |number| {
        let db = db.clone();
        let kind = if number % 2 == 0 { Kind::Table } else { Kind::View };
        async move { create(&db, warehouse, "n.t", &new_table(kind)).await }
    });
    let (won, lost) = outcomes.await.into_iter().partition::<Vec<_>, _>(|made| matches!(made, Create::Done(_)));
    let [Create::Done(row)] = won.as_slice() else { panic!("{won:?}") };
    assert!(lost.iter().all(|lost| *lost == Create::Exists(row.kind)), "{lost:?}");
    assert_eq!(load(&db, warehouse, "n.t").await.as_ref(), Some(row));
}

/// Two tables swap names through each other's way, again and again; whatever happens is an answer, and both survive.
async fn crossing_renames_end_in_values(db: Db) {
    let warehouse = warehouse(&db).await;
    make_namespace(&db, warehouse, "n").await;
    make_namespace(&db, warehouse, "m").await;
    let ids = [make_table(&db, warehouse, "n.a").await.id, make_table(&db, warehouse, "m.b").await.id];
    let outcomes = at_once(8, |number| {
        let db = db.clone();
        async move {
            let names = ["n.a", "m.b", "n.c"];
            let mut outcomes = Vec::new();
            for round in 0..12 {
                let (from, to) = (names[(number + round) % 3], names[(number + 2 * round + 1) % 3]);
                outcomes.push(tables::rename(&db, warehouse, &ident(from), &ident(to), Kind::Table).await.unwrap());
            }
            outcomes
        }
    });
    let outcomes = outcomes.await.concat();
    assert!(outcomes.contains(&Rename::Done), "{outcomes:?}");
    assert!(!outcomes.contains(&Rename::NoNamespace), "{outcomes:?}");
    let mut found = Vec::new();
    for name in ["n.a", "m.b", "n.c"] {
        found.extend(load(&db, warehouse, name).await.map(|row| row.id));
    }
    found.sort();
    assert_eq!(found, ids);
}

async fn renames_onto_one_name_let_one_through(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    for number in 0..8 {
        make_table(&db, warehouse, &format!("n.t{number}")).await;
    }
    let outcomes = at_once(8, |number| {
        let db = db.clone();
        let from = ident(&format!("n.t{number}"));
        async move { tables::rename(&db, warehouse, &from, &ident("n.target"), Kind::Table).await.unwrap() }
    });
    let outcomes = outcomes.await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Rename::Done).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Rename::Exists(Kind::Table)).count(), 7, "{outcomes:?}");
}

async fn creates_and_a_drop_of_their_namespace_end_in_values(db: Db) {
    let warehouse = warehouse(&db).await;
    for round in 0..10 {
        let path = format!("n{round}");
        make_namespace(&db, warehouse, &path).await;
        let outcomes = at_once(6, |number| {
            let (db, path) = (db.clone(), path.clone());
            async move {
                if number == 3 {
                    let dropped = namespaces::drop(&db, warehouse, &namespace(&path)).await.unwrap();
                    assert_ne!(dropped, namespaces::Drop::Missing);
                    return dropped == namespaces::Drop::Done;
                }
                let made = create(&db, warehouse, &format!("{path}.t{number}"), &new_table(Kind::Table)).await;
                assert!(matches!(made, Create::Done(_) | Create::NoNamespace), "{made:?}");
                matches!(made, Create::Done(_))
            }
        });
        let mut outcomes = outcomes.await;
        let dropped = outcomes.remove(3);
        assert_ne!(dropped, outcomes.contains(&true), "round {round}: a table or the drop, not both, not neither");
    }
}

async fn children_and_a_drop_of_their_parent_end_in_values(db: Db) {
    let warehouse = warehouse(&db).await;
    for round in 0..10 {
        let path = format!("n{round}");
        make_namespace(&db, warehouse, &path).await;
        let outcomes = at_once(6, |number| {
            let (db, path) = (db.clone(), path.clone());
            async move {
                if number == 3 {
                    return namespaces::drop(&db, warehouse, &namespace(&path)).await.unwrap()
                        == namespaces::Drop::Done;
                }
                let child = namespace(&format!("{path}.c{number}"));
                let made = namespaces::create(&db, warehouse, &child, &Properties::new()).await.unwrap();
                assert!(matches!(made, namespaces::Create::Done(_) | namespaces::Create::NoParent), "{made:?}");
                matches!(made, namespaces::Create::Done(_))
            }
        });
        let mut outcomes = outcomes.await;
        let dropped = outcomes.remove(3);
        assert_ne!(dropped, outcomes.contains(&true), "round {round}: a child or the drop, not both, not neither");
    }
}

/// Whoever asks gets the truth of the moment he asked, and that truth lasts.
async fn settling_during_swaps_never_contradicts_them(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let id = make_table(&db, warehouse, "n.t").await.id;
    for round in 0..20 {
        let base = load(&db, warehouse, "n.t").await.expect("there");
        let file = fresh_file(&base.location);
        let outcomes = at_once(2, |number| {
            let (db, base, file) = (db.clone(), base.clone(), file.clone());
            async move {
                if number == 0 {
                    return matches!(swap(&db, &base, &file).await.unwrap(), Swapped::Done(_));
                }
                tables::settle(&db, id, &file).await.unwrap() == Settled::Landed
            }
        });
        let outcomes = outcomes.await;
        assert_eq!(outcomes[0], outcomes[1], "round {round}");
        assert_eq!(tables::is_recorded(&db, &file).await.unwrap(), outcomes[0], "round {round}");
    }
}

fn move_to(base: &tables::TableRow, file: &str) -> Move {
    Move::of(&Swap { base, metadata_location: file, location: &base.location, format_version: 2, now_ms: 0 }).unwrap()
}

/// Opens a transaction that swapped the pointer and has not committed.
pub(super) async fn open_swap(
    db: &Db,
    base: &tables::TableRow,
    file: &str,
) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let Db::Postgres(pool) = db else { panic!("Postgres") };
    let mut transaction = pool.begin().await.unwrap();
    let moved = move_to(base, file).apply(&mut Arms::Postgres(&mut transaction)).await.unwrap();
    assert!(matches!(moved, Moved::Done(..)));
    transaction
}

/// Waits until somebody waits for the transaction's lock.
pub(super) async fn wait_until_blocked(db: &Db) {
    let Db::Postgres(pool) = db else { panic!("Postgres") };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let blocked =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    while sqlx::query_scalar::<_, i64>(blocked).fetch_one(pool).await.unwrap() == 0 {
        assert!(std::time::Instant::now() < deadline, "nobody waits");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settling_waits_for_a_swap_under_way_and_sees_it() {
    testing::postgres(|db| async move {
        let warehouse = warehouse_with_namespace(&db).await;
        let base = make_table(&db, warehouse, "n.t").await;
        for lands in [false, true] {
            let file = fresh_file(&base.location);
            let transaction = open_swap(&db, &load(&db, warehouse, "n.t").await.expect("there"), &file).await;
            let (settler, asked) = (db.clone(), file.clone());
            let settling = tokio::spawn(async move { tables::settle(&settler, base.id, &asked).await });
            wait_until_blocked(&db).await;
            if lands {
                transaction.commit().await.unwrap();
            } else {
                transaction.rollback().await.unwrap();
            }
            let expected = if lands { Settled::Landed } else { Settled::Lost };
            assert_eq!(settling.await.unwrap().unwrap(), expected);
        }
    })
    .await;
}

/// The swap has begun its transaction, has not reached the row, and somebody settles: it must lose.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_that_comes_after_settling_loses() {
    testing::postgres(|db| async move {
        let warehouse = warehouse_with_namespace(&db).await;
        let base = make_table(&db, warehouse, "n.t").await;
        let Db::Postgres(pool) = &db else { panic!("Postgres") };
        let mut late = pool.begin().await.unwrap();
        sqlx::query("select 1 from tables").execute(&mut *late).await.unwrap();
        let file = fresh_file(&base.location);
        assert_eq!(tables::settle(&db, base.id, &file).await.unwrap(), Settled::Lost);
        let moved = move_to(&base, &file).apply(&mut Arms::Postgres(&mut late)).await.unwrap();
        assert!(matches!(moved, Moved::Lost));
        late.commit().await.unwrap();
        assert!(!tables::is_recorded(&db, &file).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settling_a_create_waits_for_one_under_way() {
    testing::postgres(|db| async move {
        let warehouse = warehouse_with_namespace(&db).await;
        let Db::Postgres(pool) = &db else { panic!("Postgres") };
        let new = new_table(Kind::Table);
        let mut transaction = pool.begin().await.unwrap();
        let create = CreateTable::of(warehouse, &ident("n.t"), &new, 0).unwrap();
        let made = create.apply(&mut Arms::Postgres(&mut transaction)).await.unwrap();
        assert!(matches!(made, Some(Create::Done(_))));
        let (settler, asked) = (db.clone(), new.clone());
        let settling =
            tokio::spawn(
                async move { tables::settle_create(&settler, &asked.location, &asked.metadata_location).await },
            );
        wait_until_blocked(&db).await;
        transaction.commit().await.unwrap();
        assert_eq!(settling.await.unwrap().unwrap(), Settled::Landed);
    })
    .await;
}

/// Postgres's way of saying "try again" reaches no caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_is_tried_again() {
    struct Both([Uuid; 2]);
    impl Change for Both {
        type Answer = ();
        async fn apply(&self, tx: &mut Tx<'_>) -> Result<(), sqlx::Error> {
            for id in self.0 {
                let text = "update warehouses set location = location || '/x' where id = $1";
                tx.on().execute(text, &values![id]).await?;
                tx.on().execute("select pg_sleep(0.01)", &values![]).await?;
            }
            Ok(())
        }
    }
    testing::postgres(|db| async move {
        let (a, b) = (warehouse(&db).await, warehouse(&db).await);
        let outcomes = at_once(2, |number| {
            let db = db.clone();
            async move { db.write(Both(if number == 0 { [a, b] } else { [b, a] })).await }
        });
        for outcome in outcomes.await {
            outcome.unwrap();
        }
        for row in crate::db::warehouses::list(&db).await.unwrap() {
            assert!(
                row.location.ends_with("/x/x") && !row.location.contains("/x/x/x"),
                "each ran whole, once: {row:?}"
            );
        }
    })
    .await;
}
