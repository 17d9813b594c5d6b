//! Commits to several tables at once, through the real server.

use crate::{
    catalog::{Answer, Catalog, try_send},
    database::Database,
    history::{at_once, chain, create_table, location},
    server::Server,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::Mutex;

on_both_databases! {
    beside_a_busy_writer_it_moves_all_tables_or_none,
    writers_of_crossing_tables_do_not_wait_in_a_circle,
    nothing_is_half_done_when_killed,
}

pub fn change(table: &str, requirements: Value, updates: Value) -> Value {
    json!({
        "identifier": {"namespace": ["ns"], "name": table}, "requirements": requirements, "updates": updates
    })
}

/// A snapshot of no branch: it conflicts with nothing but itself.
pub fn snapshot(id: u64) -> Value {
    json!({"action": "add-snapshot", "snapshot": {
        "snapshot-id": id, "sequence-number": 1, "timestamp-ms": 1_700_000_000_000_u64, "schema-id": 0,
        "manifest-list": format!("s3://lake/snap-{id}.avro"), "summary": {"operation": "append"},
    }})
}

pub fn transaction(changes: impl IntoIterator<Item = Value>) -> Value {
    json!({"table-changes": changes.into_iter().collect::<Vec<_>>()})
}

async fn commit(catalog: &Catalog, changes: impl IntoIterator<Item = Value>) -> Answer {
    catalog.post("/v1/transactions/commit", &transaction(changes)).await
}

/// Ids of a table's snapshots.
pub fn snapshots(metadata: &Value) -> BTreeSet<u64> {
    let snapshots = metadata["snapshots"].as_array().map(Vec::as_slice).unwrap_or_default();
    snapshots.iter().map(|snapshot| snapshot["snapshot-id"].as_u64().expect("an id")).collect()
}

/// Each transaction moves `main` of three tables from what it saw; somebody else moves one of them all the time.
async fn beside_a_busy_writer_it_moves_all_tables_or_none(database: Database) {
    const TABLES: [&str; 3] = ["m1", "m2", "m3"];
    const TRANSACTIONS: u64 = 60;
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    for table in TABLES.into_iter().chain(["other"]) {
        create_table(&catalog, table).await;
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let busy = tokio::spawn({
        let (catalog, is_over) = (catalog.clone(), Arc::clone(&is_over));
        async move {
            for id in 1_000_000.. {
                if is_over.load(Ordering::SeqCst) {
                    return id - 1_000_000;
                }
                // Not always in the way.
                let table = if id % 3 == 0 { "m2" } else { "other" };
                catalog.commit("ns", table, json!([]), json!([snapshot(id), main_at(id)])).await.ok();
            }
            0
        }
    });
    let (mut moved, mut refused) = (0, 0);
    for number in 1..=TRANSACTIONS {
        let mut changes = Vec::new();
        for table in TABLES {
            let current = catalog.load_table("ns", table).await.ok()["metadata"]["refs"]["main"]["snapshot-id"].clone();
            let requirements = json!([{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": current}]);
            let numbered = json!({"action": "set-properties", "updates": {"number": number.to_string()}});
            changes.push(change(table, requirements, json!([snapshot(number), main_at(number), numbered])));
        }
        let answer = commit(&catalog, changes).await;
        match answer.status {
            204 => moved += 1,
            _ => {
                answer.error(409, "CommitFailedException");
                refused += 1;
            }
        }
        for table in TABLES {
            let metadata = catalog.load_table("ns", table).await.ok()["metadata"].clone();
            assert_eq!(snapshots(&metadata).contains(&number), answer.status == 204, "{table} after {number}");
            let is_numbered = metadata["properties"]["number"] == json!(number.to_string());
            assert_eq!(is_numbered, answer.status == 204, "{table} after {number}");
        }
    }
    is_over.store(true, Ordering::SeqCst);
    let alone = busy.await.expect("the busy writer ends well");
    eprintln!("{moved} of {TRANSACTIONS} transactions moved three tables, {refused} none; {alone} commits beside them");
    assert!(moved > 0 && refused > 0, "always or never in the way");
}

fn main_at(id: u64) -> Value {
    json!({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id})
}

/// Every acknowledged transaction is in the history of each of its tables, once, and nothing else is.
async fn writers_of_crossing_tables_do_not_wait_in_a_circle(database: Database) {
    const WRITERS: usize = 16;
    const ROUNDS: usize = 8;
    const TABLES: usize = 5;
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let mut created = Vec::new();
    for table in 0..TABLES {
        created.push(create_table(&catalog, &format!("t{table}")).await);
    }
    let acknowledged = at_once(WRITERS, |writer| {
        let catalog = catalog.clone();
        async move {
            let mut acknowledged = Vec::new();
            for round in 0..ROUNDS {
                let id = u64::try_from(1 + writer * ROUNDS + round).expect("a small number");
                // In every direction around the circle; each fourth is of one table, by itself.
                let step = 1 + (writer + round) % (TABLES - 1);
                let tables: Vec<usize> = match id % 4 {
                    0 => vec![writer % TABLES],
                    count => (0..=count as usize).map(|at| (writer + at * step) % TABLES).collect(),
                };
                match tables.as_slice() {
                    [table] => {
                        let table = format!("t{table}");
                        catalog.commit("ns", &table, json!([]), json!([snapshot(id)])).await.ok();
                    }
                    tables => {
                        let named = tables.iter().map(|table| format!("t{table}"));
                        let changes = named.map(|table| change(&table, json!([]), json!([snapshot(id)])));
                        commit(&catalog, changes).await.ok();
                    }
                }
                acknowledged.extend(tables.into_iter().map(|table| (table, id)));
            }
            acknowledged
        }
    })
    .await;
    let acknowledged: BTreeSet<(usize, u64)> = acknowledged.into_iter().flatten().collect();
    for (table, created) in created.iter().enumerate() {
        let name = format!("t{table}");
        let expected: BTreeSet<u64> = acknowledged.iter().filter(|(of, _)| *of == table).map(|(_, id)| *id).collect();
        let metadata = catalog.load_table("ns", &name).await.ok()["metadata"].clone();
        assert_eq!(snapshots(&metadata), expected, "{name}");
        assert_eq!(chain(&server, &catalog, &name, created).await.len(), 1 + expected.len(), "{name}: each once");
    }
}

/// Each writer changes the same two tables again and again: both always tell the same of it, and no less than was
/// acknowledged.
async fn nothing_is_half_done_when_killed(database: Database) {
    const ROUNDS: usize = 10;
    const LIFE: Duration = Duration::from_millis(150);
    let mut server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    for table in 0..KILLED_TABLES {
        catalog.create_table("ns", &format!("t{table}")).await;
    }
    let acknowledged: Arc<Mutex<[u64; KILLED_WRITERS]>> = Arc::default();
    for _ in 0..ROUNDS {
        let catalog = Catalog::login(&server).await;
        let before = *acknowledged.lock().await;
        let writers: Vec<_> = (0..KILLED_WRITERS)
            .map(|writer| tokio::spawn(write_until_killed(catalog.clone(), writer, Arc::clone(&acknowledged))))
            .collect();
        tokio::time::sleep(LIFE).await;
        server.kill();
        for writer in writers {
            writer.await.expect("the load ends with the server");
        }
        server.restart().await;
        let acknowledged = *acknowledged.lock().await;
        assert_ne!(before, acknowledged, "hardly a load");
        check_both_tables(&server, &acknowledged).await;
    }
}

const KILLED_TABLES: usize = 4;
const KILLED_WRITERS: usize = 6;

/// The two tables of a writer; others have one of them.
fn tables(writer: usize) -> [usize; 2] {
    [writer % KILLED_TABLES, (writer + 1 + writer / KILLED_TABLES) % KILLED_TABLES]
}

async fn write_until_killed(catalog: Catalog, writer: usize, acknowledged: Arc<Mutex<[u64; KILLED_WRITERS]>>) {
    let mut value = acknowledged.lock().await[writer];
    loop {
        value += 1;
        let updates = json!([{"action": "set-properties", "updates": {format!("writer-{writer}"): value.to_string()}}]);
        let changes = tables(writer).map(|table| change(&format!("t{table}"), json!([]), updates.clone()));
        let request = catalog.request(Method::POST, "/v1/transactions/commit").json(&transaction(changes));
        let Ok(answer) = try_send(request).await else { return };
        assert_eq!(answer.status, 204, "{}", answer.text());
        acknowledged.lock().await[writer] = value;
    }
}

async fn check_both_tables(server: &Server, acknowledged: &[u64; KILLED_WRITERS]) {
    let catalog = Catalog::login(server).await;
    let mut properties = Vec::new();
    for table in 0..KILLED_TABLES {
        let loaded = catalog.load_table("ns", &format!("t{table}")).await.ok();
        assert!(!location(&loaded).is_empty());
        properties.push(loaded["metadata"]["properties"].clone());
    }
    for (writer, acknowledged) in acknowledged.iter().enumerate() {
        let [one, two] = tables(writer).map(|table| {
            let found = properties[table][format!("writer-{writer}")].as_str();
            found.map_or(0, |value| value.parse::<u64>().expect("a number"))
        });
        assert_eq!(one, two, "writer {writer}: one of two tables changed");
        assert!(one >= *acknowledged, "writer {writer}: {one} after {acknowledged} was acknowledged");
    }
}
