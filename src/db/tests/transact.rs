use super::{
    Create, fresh_file, ident, load, make, make_table, new_table, new_table_at, swap, warehouse_with_namespace,
};
use crate::db::{
    Db,
    tables::{self, Kind, NewTable, Refusal, Settled, Step, Swap, Swapped, TableRow, Transacted},
    testing::on_both,
};
use crate::iceberg::ident::TableIdent;
use std::sync::Arc;
use tokio::sync::Barrier;
use uuid::Uuid;

const NOW_MS: i64 = super::NOW_MS;

on_both!(
    all_steps_are_published_together,
    one_refused_step_undoes_all,
    a_held_table_must_be_as_it_was,
    places_collide_within_a_transaction_too,
    crossing_transactions_end_in_values_and_chains,
    settling_fences_every_table,
    what_became_of_the_others_is_known_when_one_was_dropped_since,
);

fn step<'a>(base: &'a TableRow, file: &'a str) -> Step<'a> {
    let location = base.location.as_str();
    Step::Swap(Swap { base, metadata_location: file, location, format_version: 3, now_ms: NOW_MS })
}

async fn transact(db: &Db, warehouse: Uuid, steps: &[Step<'_>]) -> Transacted {
    tables::transact(db, warehouse, steps, NOW_MS).await.expect("transacts")
}

async fn history(db: &Db, row: &TableRow) -> Vec<String> {
    let rows = tables::history(db, row.id).await.expect("a history");
    rows.into_iter().map(|row| row.metadata_location).collect()
}

async fn all_steps_are_published_together(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let (a, b) = (make_table(&db, warehouse, "n.a").await, make_table(&db, warehouse, "n.b").await);
    let (file_a, new_c) = (fresh_file(&a.location), new_table(Kind::Table));
    let name_c = ident("n.c");
    let steps = [Step::Create { ident: &name_c, new: &new_c }, step(&a, &file_a), Step::Hold(&b)];
    assert_eq!(transact(&db, warehouse, &steps).await, Transacted::Done);
    let moved = load(&db, warehouse, "n.a").await.expect("there");
    assert_eq!((moved.metadata_location.as_str(), moved.revision), (file_a.as_str(), 2));
    assert_eq!(moved.previous_location.as_deref(), Some(a.metadata_location.as_str()));
    assert_eq!(history(&db, &a).await, [a.metadata_location.clone(), file_a]);
    let created = load(&db, warehouse, "n.c").await.expect("created");
    assert_eq!((created.uuid, created.revision), (new_c.uuid, 1));
    assert_eq!(history(&db, &created).await, [new_c.metadata_location]);
    assert_eq!(load(&db, warehouse, "n.b").await, Some(b));
}

async fn one_refused_step_undoes_all(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let (a, b) = (make_table(&db, warehouse, "n.a").await, make_table(&db, warehouse, "n.b").await);
    make(&db, warehouse, "n.v", Kind::View).await;
    let (file_a, file_b) = (fresh_file(&a.location), fresh_file(&b.location));
    let stale = TableRow { revision: 7, ..b.clone() };
    let new = new_table(Kind::Table);
    let (free, view, nowhere) = (ident("n.free"), ident("n.v"), ident("m.t"));
    let near = new_table_at(&format!("{}/inside", b.location), Kind::Table);
    let create = |ident, new| Step::Create { ident, new };
    let cases: [(Step<'_>, Refusal); 5] = [
        (step(&stale, &file_b), Refusal::Lost),
        (create(&view, &new), Refusal::Exists(Kind::View)),
        (create(&nowhere, &new), Refusal::NoNamespace),
        (create(&free, &near), Refusal::LocationTaken),
        (Step::Hold(&stale), Refusal::Lost),
    ];
    for (bad, refusal) in cases {
        let steps = [step(&a, &file_a), bad];
        assert_eq!(transact(&db, warehouse, &steps).await, Transacted::Refused(1, refusal));
        assert_eq!(load(&db, warehouse, "n.a").await.as_ref(), Some(&a), "{refusal:?}");
        assert_eq!(history(&db, &a).await, std::slice::from_ref(&a.metadata_location), "{refusal:?}");
        assert_eq!(load(&db, warehouse, "n.free").await, None, "{refusal:?}");
    }
}

async fn a_held_table_must_be_as_it_was(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let (a, held) = (make_table(&db, warehouse, "n.a").await, make_table(&db, warehouse, "n.held").await);
    let moved = swap(&db, &held, &fresh_file(&held.location)).await.expect("swaps");
    assert_eq!(moved, Swapped::Done(2));
    let file = fresh_file(&a.location);
    let outcome = transact(&db, warehouse, &[step(&a, &file), Step::Hold(&held)]).await;
    assert_eq!(outcome, Transacted::Refused(1, Refusal::Lost));
    assert_eq!(load(&db, warehouse, "n.a").await, Some(a));
}

async fn places_collide_within_a_transaction_too(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let outer = new_table(Kind::Table);
    let inner = new_table_at(&format!("{}/inside", outer.location), Kind::Table);
    let names = [ident("n.a"), ident("n.b")];
    let steps = [Step::Create { ident: &names[0], new: &outer }, Step::Create { ident: &names[1], new: &inner }];
    assert_eq!(transact(&db, warehouse, &steps).await, Transacted::Refused(1, Refusal::LocationTaken));
    assert_eq!(load(&db, warehouse, "n.a").await, None);
}

/// Pairs of tables that share one, in both orders, with commits to single tables and creates of each other's names in
/// between: nothing waits in a circle, and each table's history is a chain of what was acknowledged.
async fn crossing_transactions_end_in_values_and_chains(db: Db) {
    const TABLES: usize = 4;
    const WRITERS: usize = 12;
    const ROUNDS: usize = 6;
    let warehouse = warehouse_with_namespace(&db).await;
    for at in 0..TABLES {
        make_table(&db, warehouse, &format!("n.t{at}")).await;
    }
    let barrier = Arc::new(Barrier::new(WRITERS));
    let writers = (0..WRITERS).map(|writer| {
        let (db, barrier) = (db.clone(), barrier.clone());
        tokio::spawn(async move {
            barrier.wait().await;
            let mut landed = Vec::new();
            for round in 0..ROUNDS {
                let (one, two) = (format!("n.t{}", writer % TABLES), format!("n.t{}", (writer + 1 + round) % TABLES));
                if one == two {
                    continue;
                }
                let rows = [load(&db, warehouse, &one).await.unwrap(), load(&db, warehouse, &two).await.unwrap()];
                let files = rows.each_ref().map(|row| fresh_file(&row.location));
                let names: [TableIdent; 2] =
                    [ident(&format!("n.new{}", (writer + round) % 3)), ident(&format!("n.new{}", (writer + 1) % 3))];
                let new: [NewTable; 2] = [new_table(Kind::Table), new_table(Kind::Table)];
                let mut steps = vec![step(&rows[0], &files[0]), step(&rows[1], &files[1])];
                if writer % 3 == 0 && names[0] != names[1] {
                    steps.extend(names.iter().zip(&new).map(|(ident, new)| Step::Create { ident, new }));
                }
                if let Transacted::Done = tables::transact(&db, warehouse, &steps, NOW_MS).await.expect("no deadlock") {
                    landed.extend(files);
                }
            }
            landed
        })
    });
    let mut landed = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        landed.extend(writer.await.expect("no panic"));
    }
    let mut recorded = Vec::new();
    for at in 0..TABLES {
        let row = load(&db, warehouse, &format!("n.t{at}")).await.expect("there");
        let history = history(&db, &row).await;
        assert_eq!(history.last(), Some(&row.metadata_location));
        assert_eq!(history.len() as i64, row.revision);
        recorded.extend(history.into_iter().skip(1));
    }
    landed.sort();
    recorded.sort();
    assert_eq!(recorded, landed, "every acknowledged swap once, and no other");
}

async fn settling_fences_every_table(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let (a, b) = (make_table(&db, warehouse, "n.a").await, make_table(&db, warehouse, "n.b").await);
    let (file_a, file_b, new) = (fresh_file(&a.location), fresh_file(&b.location), new_table(Kind::Table));
    let swapped = [(b.id, file_b.as_str()), (a.id, file_a.as_str())];
    let created = [(new.location.as_str(), new.metadata_location.as_str())];
    assert_eq!(tables::settle_all(&db, &swapped, &created).await.expect("settles"), Settled::Lost);
    // What was on its way comes too late.
    let name = ident("n.c");
    let steps = [step(&a, &file_a), step(&b, &file_b), Step::Create { ident: &name, new: &new }];
    assert!(matches!(transact(&db, warehouse, &steps).await, Transacted::Refused(_, Refusal::Lost)));
    let rows = [load(&db, warehouse, "n.a").await.expect("there"), load(&db, warehouse, "n.b").await.expect("there")];
    let steps = [step(&rows[0], &file_a), step(&rows[1], &file_b), Step::Create { ident: &name, new: &new }];
    assert_eq!(transact(&db, warehouse, &steps).await, Transacted::Done);
    assert_eq!(tables::settle_all(&db, &swapped, &created).await.expect("settles"), Settled::Landed);
    assert!(matches!(super::create(&db, warehouse, "n.c", &new).await, Create::Exists(Kind::Table)));
}

/// Nobody may take the others' files for lost: they are their tables'.
async fn what_became_of_the_others_is_known_when_one_was_dropped_since(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    let (a, b) = (make_table(&db, warehouse, "n.a").await, make_table(&db, warehouse, "n.b").await);
    let (file_a, file_b, new) = (fresh_file(&a.location), fresh_file(&b.location), new_table(Kind::Table));
    let name = ident("n.c");
    let steps = [step(&a, &file_a), step(&b, &file_b), Step::Create { ident: &name, new: &new }];
    assert_eq!(transact(&db, warehouse, &steps).await, Transacted::Done);
    let swapped = [(a.id, file_a.as_str()), (b.id, file_b.as_str())];
    let created = [(new.location.as_str(), new.metadata_location.as_str())];
    for dropped in ["n.c", "n.a"] {
        let row =
            tables::drop(&db, warehouse, &ident(dropped), Kind::Table, None).await.expect("drops").expect("was there");
        tables::forget_history(&db, row.id).await.expect("forgets");
        assert_eq!(tables::settle_all(&db, &swapped, &created).await.expect("settles"), Settled::Landed, "{dropped}");
    }
}
