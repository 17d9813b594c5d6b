//! Not tests but measurements, to be run by name:
//! `cargo test --release --lib db::tests::throughput -- --ignored --nocapture --test-threads 1`.

use super::{fresh_file, ident, load, make_table, swap, warehouse_with_namespace};
use crate::db::{Db, tables, tables::Swapped, testing};
use std::time::{Duration, Instant};

const MEASURED: Duration = Duration::from_secs(2);

/// Each client swaps a table of its own as fast as it is answered.
async fn swaps_per_second(db: Db) {
    let warehouse = warehouse_with_namespace(&db).await;
    for clients in [1_usize, 8, 64] {
        let mut bases = Vec::new();
        for number in 0..clients {
            bases.push(make_table(&db, warehouse, &format!("n.c{clients}-{number}")).await);
        }
        let start = Instant::now();
        let tasks = bases.into_iter().map(|mut base| {
            let db = db.clone();
            tokio::spawn(async move {
                let mut done = 0_u32;
                while start.elapsed() < MEASURED {
                    let file = fresh_file(&base.location);
                    let Swapped::Done(revision) = swap(&db, &base, &file).await.unwrap() else { panic!("alone") };
                    (base.metadata_location, base.revision) = (file, revision);
                    done += 1;
                }
                done
            })
        });
        let mut done = 0;
        for task in tasks.collect::<Vec<_>>() {
            done += task.await.unwrap();
        }
        println!("{clients} clients: {:.0} swaps a second", f64::from(done) / start.elapsed().as_secs_f64());
    }
}

async fn loads_per_second(db: Db) {
    const LOADS: u32 = 20_000;
    let warehouse = warehouse_with_namespace(&db).await;
    make_table(&db, warehouse, "n.t").await;
    load(&db, warehouse, "n.t").await;
    let ident = ident("n.t");
    let start = Instant::now();
    for _ in 0..LOADS {
        tables::load(&db, warehouse, &ident).await.unwrap().expect("there");
    }
    println!("{:?} a load", start.elapsed() / LOADS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn sqlite() {
    testing::sqlite(swaps_per_second).await;
    testing::sqlite(loads_per_second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn postgres() {
    testing::postgres(swaps_per_second).await;
    testing::postgres(loads_per_second).await;
}
