use super::*;
use crate::catalog::publish::faults::{Fault, Statement};
use futures_util::future::join_all;

const COMMIT: &str = "/lakehouse/transactions/commit";

fn change(table: &str, requirements: Value, updates: Value) -> Value {
    let identifier = json!({"namespace": ["n"], "name": table});
    json!({"identifier": identifier, "requirements": requirements, "updates": updates})
}

fn set(table: &str, key: &str, value: &str) -> Value {
    change(table, json!([]), json!([{"action": "set-properties", "updates": {key: value}}]))
}

fn transaction(changes: &[Value]) -> Value {
    json!({"table-changes": changes})
}

/// Completes the staged create of a table.
async fn staged(server: &Server, table: &str) -> Value {
    let request = json!({"name": table, "schema": schema(), "stage-create": true});
    let metadata = server.post("/namespaces/n/tables", request).await.expect(200)["metadata"].clone();
    change(
        table,
        json!([{"type": "assert-create"}]),
        json!([
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
        ]),
    )
}

async fn server(db: Db, tables: &[&str]) -> Server {
    let server = Server::with_namespace(db, "n").await;
    for table in tables {
        server.create_table("n", table).await;
    }
    server
}

async fn table(server: &Server, name: &str) -> Value {
    server.get(&format!("/namespaces/n/tables/{name}")).await.expect(200)
}

async fn property(server: &Server, name: &str, key: &str) -> Value {
    table(server, name).await["metadata"]["properties"][key].clone()
}

async fn all_tables_change_or_none(db: Db) {
    let server = server(db, &["a", "b"]).await;
    let reply = server.post(COMMIT, transaction(&[set("a", "k", "1"), set("b", "k", "1")])).await;
    assert_eq!(reply.expect(204), Value::Null);
    assert_eq!((property(&server, "a", "k").await, property(&server, "b", "k").await), (json!("1"), json!("1")));

    let files = server.keys("wh/").await;
    let before = (table(&server, "a").await, table(&server, "b").await);
    let wrong = json!([{"type": "assert-table-uuid", "uuid": Uuid::nil()}]);
    let updates = json!([{"action": "set-properties", "updates": {"k": "2"}}]);
    let unmet = server.post(COMMIT, transaction(&[set("a", "k", "2"), change("b", wrong, updates)])).await;
    assert!(unmet.error().starts_with("409 CommitFailedException Requirement failed: UUID does not match"));
    let missing = server.post(COMMIT, transaction(&[set("a", "k", "2"), set("none", "k", "2")])).await;
    assert_eq!(missing.error(), "404 NoSuchTableException Table does not exist: n.none");
    let bad = json!([{"action": "set-current-schema", "schema-id": 9}]);
    server.post(COMMIT, transaction(&[set("a", "k", "2"), change("b", json!([]), bad)])).await.expect(400);
    assert_eq!((table(&server, "a").await, table(&server, "b").await), before);
    assert_eq!(server.keys("wh/").await, files, "refused transactions leave no files");
}

async fn staged_creates_are_completed_together(db: Db) {
    let server = server(db, &["a"]).await;
    let changes = [staged(&server, "new").await, set("a", "k", "1"), staged(&server, "other").await];
    server.post(COMMIT, transaction(&changes)).await.expect(204);
    assert_eq!(table(&server, "new").await["metadata"]["metadata-log"], json!([]));
    assert_eq!(table(&server, "other").await["metadata"]["table-uuid"], changes[2]["updates"][0]["uuid"]);
    let again = server.post(COMMIT, transaction(&[set("a", "k", "2"), changes[0].clone()])).await;
    assert_eq!(again.error(), "409 CommitFailedException Requirement failed: table already exists");
    assert_eq!(property(&server, "a", "k").await, "1");
    let mut homeless = staged(&server, "x").await;
    homeless["identifier"]["namespace"] = json!(["nowhere"]);
    let refused = server.post(COMMIT, transaction(&[set("a", "k", "2"), homeless])).await;
    assert_eq!(refused.error(), "404 NoSuchNamespaceException Namespace does not exist: nowhere");
    // Two tables at one place: whichever comes second is refused, and the first with it.
    let (one, mut two) = (staged(&server, "p").await, staged(&server, "q").await);
    two["updates"][8]["location"] = one["updates"][8]["location"].clone();
    server.post(COMMIT, transaction(&[one, two])).await.expect(400);
    server.get("/namespaces/n/tables/p").await.expect(404);
}

async fn changes_to_one_table_are_applied_in_order_as_one_version(db: Db) {
    let server = server(db, &["a", "b"]).await;
    let first = table(&server, "a").await["metadata-location"].clone();
    let changes = [set("a", "k", "1"), set("b", "k", "1"), set("a", "k", "2"), set("a", "l", "3")];
    server.post(COMMIT, transaction(&changes)).await.expect(204);
    let loaded = table(&server, "a").await;
    assert_eq!(loaded["metadata"]["properties"]["k"], "2");
    assert_eq!(loaded["metadata"]["properties"]["l"], "3");
    let log = loaded["metadata"]["metadata-log"].as_array().unwrap();
    assert_eq!(log.iter().map(|entry| &entry["metadata-file"]).collect::<Vec<_>>(), [&first]);
    // A later change sees what an earlier one did.
    let schema = json!([
        {"action": "add-schema", "schema": {"type": "struct", "fields": [
            {"id": 1, "name": "id", "required": false, "type": "long"}]}},
        {"action": "set-current-schema", "schema-id": -1},
    ]);
    let expects = json!([{"type": "assert-current-schema-id", "current-schema-id": 1}]);
    let changes = [change("a", json!([]), schema), change("a", expects, json!([]))];
    server.post(COMMIT, transaction(&changes)).await.expect(204);
    let (create, later) = (staged(&server, "new").await, set("new", "k", "1"));
    server.post(COMMIT, transaction(&[create.clone(), later])).await.expect(204);
    assert_eq!(property(&server, "new", "k").await, "1");
    server.post(COMMIT, transaction(&[set("a", "k", "3"), create.clone(), create])).await.expect(400);
}

async fn what_is_no_transaction_is_refused(db: Db) {
    let server = server(db, &["a"]).await;
    let before = table(&server, "a").await;
    let nameless = json!({"requirements": [], "updates": []});
    let unknown = change("a", json!([]), json!([{"action": "paint-it-black"}]));
    for body in [
        transaction(&[]),
        json!({}),
        json!({"table-changes": {}}),
        transaction(&[set("a", "k", "1"), nameless]),
        transaction(&[set("a", "k", "1"), unknown]),
        json!([]),
    ] {
        let reply = server.post(COMMIT, body.clone()).await;
        assert!(reply.error().starts_with("400 BadRequestException "), "{body}");
    }
    for table in ["a", "t"] {
        let many: Vec<Value> = (0..=1_000).map(|at| set(&table.repeat(1 + at % 2), "k", "1")).collect();
        let reply = server.post(COMMIT, transaction(&many)).await;
        assert_eq!(reply.error(), "400 BadRequestException a transaction has at most 1000 changes");
    }
    let half = vec![json!({"action": "set-properties", "updates": {"k": "1"}}); 5_001];
    let half = change("a", json!([]), half.into());
    let reply = server.post(COMMIT, transaction(&[half.clone(), half])).await;
    let expected = "400 BadRequestException changes to n.a: more than 10000 updates in one transaction";
    assert_eq!(reply.error(), expected);
    assert_eq!(table(&server, "a").await, before);
}

async fn tables_may_be_large_but_not_all_of_them_together(db: Db) {
    let server = server(db, &["a", "b"]).await;
    let large = "x".repeat(600 << 10);
    server.post(COMMIT, transaction(&[set("a", "k", &large), set("b", "k", &large)])).await.expect(204);
    let files = server.keys("wh/").await;
    let reply = server.post(COMMIT, transaction(&[set("a", "l", "1"), set("b", "l", "1")])).await;
    let expected = "400 BadRequestException the tables of a transaction have at most 1048576 bytes of metadata";
    assert_eq!(reply.error(), expected);
    assert_eq!(server.keys("wh/").await, files);
    server.post(COMMIT, transaction(&[set("a", "l", &large)])).await.expect(204);
    server.post(COMMIT, transaction(&[set("a", "l", "1")])).await.expect(204);
}

async fn lost_answers_are_settled(db: Db) {
    let server = server(db, &["a", "b"]).await;
    let both = |value: &str| transaction(&[set("a", "k", value), set("b", "k", value)]);
    server.app.catalog.faults.plan([(Statement::Transaction, Fault::AnswerLost)]);
    server.post(COMMIT, both("1")).await.expect(204);
    assert_eq!((property(&server, "a", "k").await, property(&server, "b", "k").await), (json!("1"), json!("1")));
    server.app.catalog.faults.plan([(Statement::Transaction, Fault::StatementLost)]);
    server.post(COMMIT, both("2")).await.expect(204);
    assert_eq!((property(&server, "a", "k").await, property(&server, "b", "k").await), (json!("2"), json!("2")));
    server.app.catalog.faults.plan([(Statement::Transaction, Fault::NoConnection)]);
    server.post(COMMIT, both("3")).await.expect(503);
    assert_eq!(property(&server, "a", "k").await, "2");
    let files = server.keys("wh/").await.len();

    let lost = std::iter::repeat_n((Statement::Settle, Fault::StatementLost), 6);
    server.app.catalog.faults.plan([(Statement::Transaction, Fault::AnswerLost)].into_iter().chain(lost));
    let reply = server.post(COMMIT, both("4")).await;
    let unknown = "500 CommitStateUnknownException the outcome of the transaction is not known: n.a, n.b";
    assert_eq!(reply.error(), unknown);
    // It did happen, and whoever looks finds it whole.
    assert_eq!((property(&server, "a", "k").await, property(&server, "b", "k").await), (json!("4"), json!("4")));
    assert_eq!(server.keys("wh/").await.len(), files + 2, "no file that may be named was deleted");
}

/// Sends a transaction whose statement is held, and answers once all of its files are there.
async fn held(server: &Arc<Server>, body: Value, files: usize) -> tokio::task::JoinHandle<Reply> {
    let before = server.keys("wh/").await.len();
    server.app.catalog.faults.plan([(Statement::Transaction, Fault::Held)]);
    let sent = tokio::spawn({
        let server = Arc::clone(server);
        async move { server.post(COMMIT, body).await }
    });
    while server.keys("wh/").await.len() < before + files {
        tokio::task::yield_now().await;
    }
    sent
}

/// The names of the table's files.
async fn files(server: &Server, table: &str) -> Vec<String> {
    let place = self::table(server, table).await["metadata"]["location"].as_str().unwrap().to_owned();
    server.keys(place.strip_prefix("s3://lake/").unwrap()).await
}

async fn only_what_lost_the_race_is_built_again(db: Db) {
    let server = Arc::new(server(db, &["a", "b", "c"]).await);
    let create = staged(&server, "new").await;
    let changes = [set("a", "k", "1"), set("b", "k", "1"), create, change("c", json!([]), json!([]))];
    let held = held(&server, transaction(&changes), 3).await;
    let (a, b) = (files(&server, "a").await, files(&server, "b").await);
    // Through another replica: past this process's line.
    let other = Server::replica_of(&server).await;
    other
        .post("/namespaces/n/tables/b", json!({"requirements": [], "updates": set("b", "l", "2")["updates"]}))
        .await
        .expect(200);
    server.app.catalog.faults.release();
    held.await.unwrap().expect(204);
    for name in ["a", "b", "new"] {
        let created = if name == "new" { Value::Null } else { json!("1") };
        assert_eq!(property(&server, name, "k").await, created, "{name}");
    }
    assert_eq!(property(&server, "b", "l").await, "2", "what came in between is kept");
    assert_eq!(files(&server, "a").await, a, "the file that was there is the table's");
    let b_now = files(&server, "b").await;
    assert_eq!(b_now.len(), 3);
    assert!(!b_now.contains(&b[1]), "what lost is gone");
    assert_eq!(server.keys("wh/").await.len(), 2 + 3 + 1 + 1);
}

async fn a_requirement_that_no_longer_holds_undoes_all(db: Db) {
    let server = Arc::new(server(db, &["a", "b"]).await);
    let uuid = table(&server, "b").await["metadata"]["table-uuid"].clone();
    let updates = json!([{"action": "set-properties", "updates": {"k": "1"}}]);
    let strict = change("b", json!([{"type": "assert-table-uuid", "uuid": uuid}]), updates);
    let changes = transaction(&[set("a", "k", "1"), strict, staged(&server, "new").await]);
    let held = held(&server, changes, 3).await;
    let other = Server::replica_of(&server).await;
    other.delete("/namespaces/n/tables/b").await.expect(204);
    other.create_table("n", "b").await;
    server.app.catalog.faults.release();
    let refused = held.await.unwrap();
    assert!(refused.error().starts_with("409 CommitFailedException Requirement failed: UUID does not match"));
    assert_eq!(property(&server, "a", "k").await, Value::Null);
    server.get("/namespaces/n/tables/new").await.expect(404);
    assert_eq!(server.keys("wh/").await.len(), 3, "a's first, and the first of either b");
}

async fn a_client_that_hangs_up_does_not_stop_it(db: Db) {
    let server = Arc::new(server(db, &["a", "b"]).await);
    let held = held(&server, transaction(&[set("a", "k", "1"), set("b", "k", "1")]), 2).await;
    held.abort();
    assert!(held.await.unwrap_err().is_cancelled());
    // It is built again even, with nobody there to hear of it.
    let other = Server::replica_of(&server).await;
    other
        .post("/namespaces/n/tables/b", json!({"requirements": [], "updates": set("b", "l", "2")["updates"]}))
        .await
        .expect(200);
    server.app.catalog.faults.release();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while property(&server, "b", "k").await != "1" {
        assert!(tokio::time::Instant::now() < deadline, "the transaction was cut off");
        tokio::task::yield_now().await;
    }
    assert_eq!((property(&server, "a", "k").await, property(&server, "b", "l").await), (json!("1"), json!("2")));
}

async fn crossing_transactions_and_commits_all_land(db: Db) {
    let server = Arc::new(server(db, &["a", "b", "c"]).await);
    let pairs = [["a", "b"], ["b", "a"], ["b", "c"], ["c", "a"]];
    let tasks = (0..16).map(|at| {
        let server = Arc::clone(&server);
        let [one, two] = pairs[at % pairs.len()];
        let key = format!("k{at}");
        tokio::spawn(async move {
            server.post(COMMIT, transaction(&[set(one, &key, "v"), set(two, &key, "v")])).await.expect(204);
            let path = format!("/namespaces/n/tables/{one}");
            let single = json!({"requirements": [], "updates": [
                {"action": "set-properties", "updates": {format!("single-{key}"): "v"}}]});
            server.post(&path, single).await.expect(200);
        })
    });
    for task in join_all(tasks.collect::<Vec<_>>()).await {
        task.unwrap();
    }
    let mut versions = 0;
    for name in ["a", "b", "c"] {
        let loaded = table(&server, name).await;
        versions += loaded["metadata"]["metadata-log"].as_array().unwrap().len() + 1;
        for (at, _) in (0..16).zip(pairs.iter().cycle()).filter(|(_, pair)| pair.contains(&name)) {
            assert_eq!(loaded["metadata"]["properties"][format!("k{at}")], "v", "{name} {at}");
        }
    }
    assert_eq!(versions, 3 + 16 * 2 + 16);
    assert_eq!(server.keys("wh/").await.len(), versions, "every file is a version");
}

on_both! {
    all_tables_change_or_none,
    staged_creates_are_completed_together,
    changes_to_one_table_are_applied_in_order_as_one_version,
    what_is_no_transaction_is_refused,
    lost_answers_are_settled,
    tables_may_be_large_but_not_all_of_them_together,
    only_what_lost_the_race_is_built_again,
    a_requirement_that_no_longer_holds_undoes_all,
    a_client_that_hangs_up_does_not_stop_it,
    crossing_transactions_and_commits_all_land,
}
