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
    let many: Vec<Value> = (0..=1_000).map(|at| set(&format!("t{at}"), "k", "1")).collect();
    let reply = server.post(COMMIT, transaction(&many)).await;
    assert_eq!(reply.error(), "400 BadRequestException a transaction has at most 1000 tables");
    assert_eq!(table(&server, "a").await, before);
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

async fn a_commit_in_between_makes_it_start_over(db: Db) {
    let server = Arc::new(server(db, &["a", "b"]).await);
    server.app.catalog.faults.plan([(Statement::Transaction, Fault::Held)]);
    let held = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.post(COMMIT, transaction(&[set("a", "k", "1"), set("b", "k", "1")])).await }
    });
    while server.keys("wh/").await.len() < 4 {
        tokio::task::yield_now().await;
    }
    // As another replica would: past this process's line.
    let row = |name: &str| {
        let ident = crate::iceberg::ident::TableIdent::new(
            crate::iceberg::ident::Namespace::new(vec!["n".into()]).unwrap(),
            name.to_owned(),
        );
        let server = Arc::clone(&server);
        async move {
            let warehouse = crate::catalog::warehouses::named(&server.app, WAREHOUSE).await.unwrap();
            crate::db::tables::load(&server.app.db, warehouse.id, &ident.unwrap()).await.unwrap().unwrap()
        }
    };
    let base = row("b").await;
    crate::db::tables::settle(&server.app.db, base.id, "s3://lake/nothing").await.unwrap();
    server.app.catalog.faults.release();
    held.await.unwrap().expect(204);
    assert_eq!((property(&server, "a", "k").await, property(&server, "b", "k").await), (json!("1"), json!("1")));
    assert_eq!(row("a").await.revision, 2, "the first attempt changed nothing");
    assert_eq!(server.keys("wh/").await.len(), 4, "its files are gone");
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
    a_commit_in_between_makes_it_start_over,
    crossing_transactions_and_commits_all_land,
}
