use super::*;
use crate::{
    catalog::publish::faults::{Fault, Statement},
    db,
    iceberg::ident::{Namespace, TableIdent},
};
use expect_test::expect;
use futures_util::future::join_all;

const TABLE: &str = "/lakehouse/namespaces/n/tables/t";

fn set(key: &str, value: &str) -> Value {
    json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {key: value}}]})
}

/// A commit of a first snapshot, as each of racing writers builds it.
fn first_snapshot(location: &str, id: i64) -> Value {
    json!({
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": null}],
        "updates": [
            {"action": "add-snapshot", "snapshot": {
                "snapshot-id": id, "sequence-number": 1, "timestamp-ms": now_ms(), "schema-id": 0,
                "manifest-list": format!("{location}/metadata/snap-{id}.avro"),
                "summary": {"operation": "append"},
            }},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id},
        ],
    })
}

async fn row(server: &Server) -> db::tables::TableRow {
    let warehouse = crate::catalog::warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let ident = TableIdent::new(Namespace::new(vec!["n".into()]).unwrap(), "t".into()).unwrap();
    db::tables::load(&server.app.db, warehouse.id, &ident).await.unwrap().unwrap()
}

/// Locations of the table's history, oldest first; checks that it is a chain of the stored files and nothing more.
async fn check_chain(server: &Server) -> Vec<String> {
    let row = row(server).await;
    let history = db::tables::history(&server.app.db, row.id).await.unwrap();
    let locations: Vec<String> = history.into_iter().map(|entry| entry.metadata_location).collect();
    assert_eq!(locations.last(), Some(&row.metadata_location));
    let warehouse = crate::catalog::warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    for (before, after) in locations.iter().zip(locations.iter().skip(1)) {
        let json = crate::catalog::files::read(&warehouse, after).await.unwrap();
        let metadata: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(metadata["metadata-log"].as_array().unwrap().last().unwrap()["metadata-file"], json!(before));
    }
    let mut keys: Vec<String> =
        locations.iter().map(|file| file.strip_prefix("s3://lake/").unwrap().to_owned()).collect();
    keys.sort();
    assert_eq!(server.keys("wh/").await, keys, "every file is in the history, and every entry has its file");
    locations
}

async fn server_with_table(db: Db) -> (Server, Value) {
    let server = Server::with_namespace(db, "n").await;
    let created = server.create_table("n", "t").await;
    (server, created)
}

async fn a_commit_answers_the_stored_bytes(db: Db) {
    let (server, created) = server_with_table(db).await;
    let body = server.post(TABLE, set("a", "b")).await.expect(200);
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["metadata-location", "metadata"]);
    assert_eq!(body["metadata"]["properties"]["a"], "b");
    assert_eq!(
        body["metadata"]["metadata-log"].as_array().unwrap().last().unwrap()["metadata-file"],
        created["metadata-location"]
    );
    let file = body["metadata-location"].as_str().unwrap();
    assert!(file.contains("/metadata/00001-"), "{file}");
    let loaded = server.get(TABLE).await.expect(200);
    assert_eq!(loaded["metadata"], body["metadata"]);
    assert_eq!(check_chain(&server).await.len(), 2);
}

async fn a_commit_that_changes_nothing_writes_nothing(db: Db) {
    let (server, created) = server_with_table(db).await;
    for body in [json!({}), json!({"requirements": [], "updates": []}), json!({"updates": null})] {
        let reply = server.post(TABLE, body).await.expect(200);
        assert_eq!(reply["metadata-location"], created["metadata-location"]);
    }
    let once = server.post(TABLE, set("a", "b")).await.expect(200);
    let twice = server.post(TABLE, set("a", "b")).await.expect(200);
    assert_eq!(once, twice);
    assert_eq!(check_chain(&server).await.len(), 2);
}

async fn refused_commits_change_nothing(db: Db) {
    let (server, _) = server_with_table(db).await;
    let location = row(&server).await.location;
    let uuid = json!({"type": "assert-table-uuid", "uuid": "00000000-0000-4000-8000-000000000000"});
    for (body, expected) in [
        (json!({"updates": [{"action": "frobnicate"}]}), "400 BadRequestException "),
        (json!({"requirements": [{"type": "assert-moon-phase"}], "updates": []}), "400 BadRequestException "),
        (json!({"updates": [{"action": "set-properties", "updates": {"a": "b"}}, {"action": "frobnicate"}]}), "400 "),
        (
            json!({"requirements": [uuid], "updates": []}),
            "409 CommitFailedException Requirement failed: UUID does not match",
        ),
        (
            json!({"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 1}]}),
            "409 CommitFailedException Requirement failed: current schema changed",
        ),
        (set("write.metadata.compression-codec", "zstd"), "400 BadRequestException "),
        (set("write.data.path", "s3://lake/wh/elsewhere"), "400 BadRequestException "),
        (set("write.metadata.path", "s3://other/x"), "400 BadRequestException "),
        (set("write.object-storage.path", &format!("{location}-sibling")), "400 BadRequestException "),
        (json!({"updates": [{"action": "set-location", "location": "s3://other/wh"}]}), "400 BadRequestException "),
        (json!({"updates": [{"action": "set-location", "location": "s3://lake/wh"}]}), "400 BadRequestException "),
        (
            json!({"identifier": {"namespace": ["n"], "name": "u"}, "updates": []}),
            "400 BadRequestException the commit's identifier is not that of its path: n.t",
        ),
    ] {
        let reply = server.post(TABLE, body.clone()).await;
        assert!(reply.error().starts_with(expected), "{body}: {}", reply.error());
    }
    let reply = server.post("/lakehouse/namespaces/n/tables/u", set("a", "b")).await;
    expect!["404 NoSuchTableException Table does not exist: n.u"].assert_eq(&reply.error());
    assert_eq!(check_chain(&server).await.len(), 1);
}

async fn a_table_may_move_within_the_warehouse_but_not_onto_another(db: Db) {
    let (server, _) = server_with_table(db).await;
    let other = server.create_table("n", "u").await;
    let moved = |location: &str| json!({"updates": [{"action": "set-location", "location": location}]});
    let taken = format!("{}/below", other["metadata"]["location"].as_str().unwrap());
    let reply = server.post(TABLE, moved(&taken)).await;
    assert!(reply.error().starts_with("400 BadRequestException location is, holds or lies within"));
    let body = server.post(TABLE, moved("s3://lake/wh/new/place")).await.expect(200);
    assert!(body["metadata-location"].as_str().unwrap().starts_with("s3://lake/wh/new/place/metadata/00001-"));
    assert_eq!(row(&server).await.location, "s3://lake/wh/new/place");
    server.post(TABLE, set("write.data.path", "s3://lake/wh/new/place/data")).await.expect(200);
}

async fn of_racing_first_snapshots_one_wins_and_the_rest_leave_nothing(db: Db) {
    let (server, created) = server_with_table(db).await;
    let location = created["metadata"]["location"].as_str().unwrap();
    let replies = join_all((1..=16).map(|id| server.post(TABLE, first_snapshot(location, id)))).await;
    let (won, lost): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 200);
    assert_eq!(won.len(), 1);
    for reply in lost {
        assert!(reply.error().starts_with("409 CommitFailedException Requirement failed: "), "{}", reply.error());
    }
    assert_eq!(check_chain(&server).await.len(), 2);
}

/// As a client's HTTP layer does when the answer was lost.
async fn a_commit_sent_twice_is_a_conflict_and_stays(db: Db) {
    let (server, created) = server_with_table(db).await;
    let location = created["metadata"]["location"].as_str().unwrap();
    let committed = server.post(TABLE, first_snapshot(location, 1)).await.expect(200);
    let again = server.post(TABLE, first_snapshot(location, 1)).await;
    assert!(again.error().starts_with("409 CommitFailedException Requirement failed: "), "{}", again.error());
    let loaded = server.get(TABLE).await.expect(200);
    assert_eq!(loaded["metadata"], committed["metadata"]);
    assert_eq!(check_chain(&server).await.len(), 2);
}

async fn commits_that_do_not_contradict_all_survive(db: Db) {
    let (server, _) = server_with_table(db).await;
    let server = Arc::new(server);
    let tasks = (0..16).map(|n| {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.post(TABLE, set(&format!("k{n}"), "v")).await.expect(200) })
    });
    for result in join_all(tasks).await {
        result.unwrap();
    }
    let properties = server.get(TABLE).await.expect(200)["metadata"]["properties"].clone();
    assert!((0..16).all(|n| properties[format!("k{n}")] == "v"), "{properties}");
    assert_eq!(check_chain(&server).await.len(), 17);
}

/// Commits of other replicas: past this process's queue, straight to the database.
async fn commit_elsewhere(server: &Server, key: &str) {
    let other = App::new(crate::app::Parts {
        settings: server.app.settings.clone(),
        db: server.app.db.clone(),
        auth: server.app.auth.clone(),
        store: server.app.store.clone(),
        catalog: Caches::new(1 << 20),
    });
    let request = http::Request::post(format!("/v1{TABLE}"))
        .header("authorization", format!("Bearer {}", server.token))
        .body(Body::from(set(key, "v").to_string()))
        .unwrap();
    assert_eq!(router(other).oneshot(request).await.unwrap().status(), 200);
}

async fn replicas_race_by_the_swap_alone(db: Db) {
    let (server, _) = server_with_table(db).await;
    let server = Arc::new(server);
    let tasks = (0..8).map(|n| {
        let server = Arc::clone(&server);
        tokio::spawn(async move { commit_elsewhere(&server, &format!("k{n}")).await })
    });
    for result in join_all(tasks).await {
        result.unwrap();
    }
    let properties = server.get(TABLE).await.expect(200)["metadata"]["properties"].clone();
    assert!((0..8).all(|n| properties[format!("k{n}")] == "v"), "{properties}");
    assert_eq!(check_chain(&server).await.len(), 9);
}

async fn a_swap_whose_answer_was_lost_is_a_success(db: Db) {
    let (server, _) = server_with_table(db).await;
    server.app.catalog.faults.plan([(Statement::Swap, Fault::AnswerLost)]);
    let body = server.post(TABLE, set("a", "b")).await.expect(200);
    assert_eq!(body["metadata"]["properties"]["a"], "b");
    assert_eq!(check_chain(&server).await.len(), 2);
    server.post(TABLE, set("c", "d")).await.expect(200);
    assert_eq!(check_chain(&server).await.len(), 3);
}

async fn a_swap_that_never_arrived_is_built_again(db: Db) {
    let (server, _) = server_with_table(db).await;
    server.app.catalog.faults.plan([(Statement::Swap, Fault::StatementLost)]);
    server.post(TABLE, set("a", "b")).await.expect(200);
    assert_eq!(check_chain(&server).await.len(), 2);
}

async fn an_outcome_that_nobody_can_tell_is_unknown_and_the_file_stays(db: Db) {
    let (server, created) = server_with_table(db).await;
    let faults = std::iter::repeat_n((Statement::Settle, Fault::StatementLost), 6);
    server.app.catalog.faults.plan([(Statement::Swap, Fault::AnswerLost)].into_iter().chain(faults));
    let reply = server.post(TABLE, set("a", "b")).await;
    expect!["500 CommitStateUnknownException the outcome of the commit is not known: n.t"].assert_eq(&reply.error());
    assert_eq!(reply.header("retry-after"), None);
    // It did happen, and whoever looks finds it whole.
    let loaded = server.get(TABLE).await.expect(200);
    assert_eq!(loaded["metadata"]["properties"]["a"], "b");
    assert_ne!(loaded["metadata-location"], created["metadata-location"]);
    assert_eq!(check_chain(&server).await.len(), 2);
}

async fn a_swap_that_was_never_sent_changed_nothing(db: Db) {
    let (server, _) = server_with_table(db).await;
    server.app.catalog.faults.plan([(Statement::Swap, Fault::NoConnection)]);
    let reply = server.post(TABLE, set("a", "b")).await;
    expect!["503 ServiceUnavailableException the catalog is not available at the moment"].assert_eq(&reply.error());
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert_eq!(check_chain(&server).await.len(), 1);
}

async fn a_create_whose_answer_was_lost_is_settled(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let create = || server.post("/namespaces/n/tables", new_table("t"));
    server.app.catalog.faults.plan([(Statement::Create, Fault::NoConnection)]);
    create().await.expect(503);
    server.app.catalog.faults.plan([(Statement::Create, Fault::StatementLost)]);
    create().await.expect(503);
    assert_eq!(server.keys("wh/").await, Vec::<String>::new());
    server.app.catalog.faults.plan([(Statement::Create, Fault::AnswerLost)]);
    create().await.expect(200);
    assert_eq!(check_chain(&server).await.len(), 1);

    server.delete(TABLE).await.expect(204);
    let faults = std::iter::repeat_n((Statement::Settle, Fault::StatementLost), 6);
    server.app.catalog.faults.plan([(Statement::Create, Fault::AnswerLost)].into_iter().chain(faults));
    assert!(create().await.error().starts_with("500 CommitStateUnknownException "));
    server.get(TABLE).await.expect(200);
}

async fn a_client_that_hangs_up_does_not_stop_a_commit(db: Db) {
    let (server, _) = server_with_table(db).await;
    server.app.catalog.faults.plan([(Statement::Swap, Fault::Held)]);
    let mut pending = Box::pin(server.post(TABLE, set("a", "b")));
    let writes = async {
        while server.keys("wh/").await.len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    // Polls the request until its file is there, then drops it.
    tokio::select! {
        reply = &mut pending => panic!("answered before its swap: {reply:?}"),
        () = writes => {},
    }
    drop(pending);
    server.app.catalog.faults.release();
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while server.get(TABLE).await.expect(200)["metadata"]["properties"]["a"] != "b" {
        assert!(tokio::time::Instant::now() < deadline, "the commit was cut off");
        tokio::task::yield_now().await;
    }
    assert_eq!(check_chain(&server).await.len(), 2);
}

async fn metadata_is_compressed_and_placed_as_the_table_says(db: Db) {
    let (server, created) = server_with_table(db).await;
    let location = created["metadata"]["location"].as_str().unwrap();
    let gzip = server.post(TABLE, set("write.metadata.compression-codec", "GZIP")).await.expect(200);
    let file = gzip["metadata-location"].as_str().unwrap();
    assert!(file.ends_with(".gz.metadata.json"), "{file}");
    let key = object_store::path::Path::parse(file.strip_prefix("s3://lake/").unwrap()).unwrap();
    let stored = {
        use object_store::ObjectStoreExt;
        server.objects().get(&key).await.unwrap()
    };
    // The content is gzip: told as an encoding, clients would undo it twice.
    assert_eq!(stored.attributes.get(&object_store::Attribute::ContentEncoding), None);
    assert_eq!(&stored.bytes().await.unwrap()[..2], [0x1f, 0x8b]);
    server.app.catalog.documents.forget(file);
    assert_eq!(server.get(TABLE).await.expect(200)["metadata"], gzip["metadata"]);

    server.post(TABLE, set("write.metadata.compression-codec", "none")).await.expect(200);
    let path = format!("{location}/elsewhere/");
    let body = server.post(TABLE, set("write.metadata.path", &path)).await.expect(200);
    assert!(body["metadata-location"].as_str().unwrap().starts_with(&format!("{path}00003-")));
    check_chain(&server).await;
}

async fn files_that_left_the_log_go_where_the_table_wants_it(db: Db) {
    let (server, created) = server_with_table(db).await;
    let update = json!({"updates": [{"action": "set-properties", "updates": {
        "write.metadata.previous-versions-max": "2",
        "write.metadata.delete-after-commit.enabled": "true",
    }}]});
    server.post(TABLE, update).await.expect(200);
    for n in 0..4 {
        server.post(TABLE, set("n", &n.to_string())).await.expect(200);
    }
    let body = server.get(TABLE).await.expect(200);
    assert_eq!(body["metadata"]["metadata-log"].as_array().unwrap().len(), 2);
    let keys = server.keys("wh/").await;
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert!(!keys.contains(&created["metadata-location"].as_str().unwrap().replace("s3://lake/", "")));
}

fn completion(staged: &Value) -> Value {
    let metadata = &staged["metadata"];
    json!({
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": schema(), "last-column-id": 2},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": metadata["location"]},
        ],
    })
}

async fn a_staged_table_is_nowhere_until_it_is_completed(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let mut table = new_table("t");
    table["stage-create"] = json!(true);
    let staged = server.post("/namespaces/n/tables", table.clone()).await.expect(200);
    assert_eq!(staged.get("metadata-location"), None);
    assert!(staged["config"]["s3.endpoint"].is_string());
    server.post("/namespaces/n/tables", table.clone()).await.expect(200);
    assert_eq!(server.keys("wh/").await, Vec::<String>::new());
    server.get(TABLE).await.expect(404);
    assert_eq!(server.get("/namespaces/n/tables").await.expect(200)["identifiers"], json!([]));

    let replies = join_all((0..8).map(|_| server.post(TABLE, completion(&staged)))).await;
    let (won, lost): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 200);
    assert_eq!(won.len(), 1);
    for reply in lost {
        expect!["409 CommitFailedException Requirement failed: table already exists"].assert_eq(&reply.error());
    }
    let loaded = server.get(TABLE).await.expect(200);
    assert_eq!(loaded["metadata"]["table-uuid"], staged["metadata"]["table-uuid"]);
    assert_eq!(loaded["metadata"]["location"], staged["metadata"]["location"]);
    assert_eq!(loaded["metadata"]["metadata-log"], json!([]));
    check_chain(&server).await;
    let reply = server.post("/namespaces/n/tables", table).await;
    expect!["409 AlreadyExistsException Table already exists: n.t"].assert_eq(&reply.error());
}

/// A replace as clients send it: another schema, the history kept, `main` taken away.
fn replacement(metadata: &Value, column: &str) -> Value {
    let schema = json!({"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": column, "required": false, "type": "long"},
    ]});
    json!({
        "requirements": [{"type": "assert-table-uuid", "uuid": metadata["table-uuid"]}],
        "updates": [
            {"action": "add-schema", "schema": schema, "last-column-id": 2},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "remove-snapshot-ref", "ref-name": "main"},
            {"action": "set-properties", "updates": {column: "replaced"}},
        ],
    })
}

async fn racing_replaces_both_succeed_and_keep_the_history(db: Db) {
    let (server, created) = server_with_table(db).await;
    let location = created["metadata"]["location"].as_str().unwrap();
    let first = server.post(TABLE, first_snapshot(location, 1)).await.expect(200);
    let (one, other) = (replacement(&first["metadata"], "x"), replacement(&first["metadata"], "y"));
    let replies = join_all([server.post(TABLE, one), server.post(TABLE, other)]).await;
    for reply in replies {
        reply.expect(200);
    }
    let metadata = server.get(TABLE).await.expect(200)["metadata"].clone();
    assert_eq!((&metadata["properties"]["x"], &metadata["properties"]["y"]), (&json!("replaced"), &json!("replaced")));
    assert_eq!(metadata["schemas"].as_array().unwrap().len(), 3);
    assert_eq!((&metadata["refs"], metadata["snapshots"].as_array().unwrap().len()), (&json!({}), 1));
    assert_eq!(metadata["snapshot-log"], first["metadata"]["snapshot-log"]);
    check_chain(&server).await;
}

async fn a_completion_is_held_to_the_rules_of_a_create(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let staged = json!({"metadata": {"table-uuid": Uuid::new_v4(), "location": "s3://elsewhere/x"}});
    let reply = server.post(TABLE, completion(&staged)).await;
    assert!(reply.error().starts_with("400 BadRequestException location "), "{}", reply.error());
    let staged = json!({"metadata": {"table-uuid": Uuid::new_v4(), "location": "s3://lake/wh/x"}});
    let reply = server.post("/namespaces/no/tables/t", completion(&staged)).await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&reply.error());
    let mut both = completion(&staged);
    both["requirements"] = json!([{"type": "assert-create"}, {"type": "assert-table-uuid", "uuid": Uuid::new_v4()}]);
    assert!(server.post(TABLE, both).await.error().starts_with("400 BadRequestException "));
    assert_eq!(server.keys("wh/").await, Vec::<String>::new());
}

async fn a_table_named_like_a_view_is_refused(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let warehouse = crate::catalog::warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let ident = TableIdent::new(Namespace::new(vec!["n".into()]).unwrap(), "t".into()).unwrap();
    let view = db::tables::NewTable {
        kind: db::tables::Kind::View,
        uuid: Uuid::new_v4(),
        format_version: 1,
        location: "s3://lake/wh/view".to_owned(),
        metadata_location: "s3://lake/wh/view/metadata/v.json".to_owned(),
    };
    db::tables::create(&server.app.db, warehouse.id, &ident, &view, now_ms()).await.unwrap();
    let taken = "409 AlreadyExistsException View with same name already exists: n.t";
    let mut table = new_table("t");
    assert_eq!(server.post("/namespaces/n/tables", table.clone()).await.error(), taken);
    table["stage-create"] = json!(true);
    assert_eq!(server.post("/namespaces/n/tables", table).await.error(), taken);
    let staged = json!({"metadata": {"table-uuid": Uuid::new_v4(), "location": "s3://lake/wh/x"}});
    assert_eq!(server.post(TABLE, completion(&staged)).await.error(), taken);
    assert!(server.get(TABLE).await.error().starts_with("404 NoSuchTableException"));
    assert!(server.delete(TABLE).await.error().starts_with("404 NoSuchTableException"));
    server.create_table("n", "u").await;
    let rename = json!({
        "source": {"namespace": ["n"], "name": "u"}, "destination": {"namespace": ["n"], "name": "t"},
    });
    let reply = server.post("/tables/rename", rename).await;
    expect!["409 AlreadyExistsException Cannot rename n.u to n.t. View already exists"].assert_eq(&reply.error());
}

on_both! {
    a_commit_answers_the_stored_bytes,
    a_commit_that_changes_nothing_writes_nothing,
    refused_commits_change_nothing,
    a_table_may_move_within_the_warehouse_but_not_onto_another,
    of_racing_first_snapshots_one_wins_and_the_rest_leave_nothing,
    a_commit_sent_twice_is_a_conflict_and_stays,
    commits_that_do_not_contradict_all_survive,
    replicas_race_by_the_swap_alone,
    a_swap_whose_answer_was_lost_is_a_success,
    a_swap_that_never_arrived_is_built_again,
    an_outcome_that_nobody_can_tell_is_unknown_and_the_file_stays,
    a_swap_that_was_never_sent_changed_nothing,
    a_create_whose_answer_was_lost_is_settled,
    a_client_that_hangs_up_does_not_stop_a_commit,
    metadata_is_compressed_and_placed_as_the_table_says,
    files_that_left_the_log_go_where_the_table_wants_it,
    a_staged_table_is_nowhere_until_it_is_completed,
    racing_replaces_both_succeed_and_keep_the_history,
    a_completion_is_held_to_the_rules_of_a_create,
    a_table_named_like_a_view_is_refused,
}
