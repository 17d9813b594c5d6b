//! Commits to several tables at once, through the real server.

use crate::{
    catalog::{Catalog, try_send},
    database::Database,
    server::Server,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::Mutex;

on_both_databases! {
    nothing_is_half_done_when_killed,
    a_replay_after_a_restart_gets_the_first_answer,
}

const ROUNDS: usize = 10;
const TABLES: usize = 4;
const WRITERS: usize = 6;
const LIFE: Duration = Duration::from_millis(150);

fn change(table: usize, writer: usize, value: u64) -> Value {
    json!({
        "identifier": {"namespace": ["ns"], "name": format!("t{table}")},
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {format!("writer-{writer}"): value.to_string()}}]
    })
}

/// Each writer changes the same two tables again and again: both always tell the same of it, and no less than was
/// acknowledged.
async fn nothing_is_half_done_when_killed(database: Database) {
    let mut server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    for table in 0..TABLES {
        catalog.create_table("ns", &format!("t{table}")).await;
    }
    let acknowledged: Arc<Mutex<[u64; WRITERS]>> = Arc::default();
    for _ in 0..ROUNDS {
        let catalog = Catalog::login(&server).await;
        let before = *acknowledged.lock().await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(catalog.clone(), writer, Arc::clone(&acknowledged))))
            .collect();
        tokio::time::sleep(LIFE).await;
        server.kill();
        for writer in writers {
            writer.await.expect("the load ends with the server");
        }
        server.restart().await;
        let acknowledged = *acknowledged.lock().await;
        assert_ne!(before, acknowledged, "hardly a load");
        check(&server, &acknowledged).await;
    }
}

/// The two tables of a writer; others have one of them.
fn tables(writer: usize) -> [usize; 2] {
    [writer % TABLES, (writer + 1 + writer / TABLES) % TABLES]
}

async fn write(catalog: Catalog, writer: usize, acknowledged: Arc<Mutex<[u64; WRITERS]>>) {
    let mut value = acknowledged.lock().await[writer];
    loop {
        value += 1;
        let changes = tables(writer).map(|table| change(table, writer, value));
        let body = json!({"table-changes": changes});
        let request = catalog.request(Method::POST, "/v1/transactions/commit").json(&body);
        let Ok(answer) = try_send(request).await else { return };
        assert_eq!(answer.status, 204, "{}", answer.text());
        acknowledged.lock().await[writer] = value;
    }
}

async fn check(server: &Server, acknowledged: &[u64; WRITERS]) {
    let catalog = Catalog::login(server).await;
    let mut properties = Vec::new();
    for table in 0..TABLES {
        let loaded = catalog.load_table("ns", &format!("t{table}")).await.ok();
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

async fn a_replay_after_a_restart_gets_the_first_answer(database: Database) {
    const KEY: &str = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    let mut server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t0").await;
    let commit = |catalog: &Catalog, value: u64| {
        let updates = change(0, 0, value)["updates"].clone();
        let body = json!({"requirements": [], "updates": updates});
        catalog.request(Method::POST, "/v1/namespaces/ns/tables/t0").header("idempotency-key", KEY).json(&body)
    };
    let first = crate::catalog::send(commit(&catalog, 1)).await.ok();
    server.kill();
    server.restart().await;
    let catalog = Catalog::login(&server).await;
    assert_eq!(crate::catalog::send(commit(&catalog, 1)).await.ok(), first);
    crate::catalog::send(commit(&catalog, 2)).await.error(422, "UnprocessableEntityException");
    assert_eq!(catalog.load_table("ns", "t0").await.ok()["metadata-location"], first["metadata-location"]);
}
