use super::*;
use crate::{
    catalog::publish::faults::{Fault, Statement},
    jobs::run_next,
};
use expect_test::expect;
use futures_util::future::join_all;
use object_store::{ObjectStoreExt, path::Path};
use tokio_util::sync::CancellationToken;

const VIEWS: &str = "/lakehouse/namespaces/n/views";
const TABLES: &str = "/lakehouse/namespaces/n/tables";

fn version(dialects: &[&str], sql: &str) -> Value {
    let queries: Vec<Value> =
        dialects.iter().map(|dialect| json!({"type": "sql", "sql": sql, "dialect": dialect})).collect();
    json!({
        "version-id": 7, "schema-id": 3, "timestamp-ms": 1_700_000_000_000_i64, "summary": {"engine-name": "e"},
        "default-namespace": ["n"], "representations": queries,
    })
}

fn new_view(name: &str) -> Value {
    json!({"name": name, "schema": schema(), "view-version": version(&["spark"], "select 1"), "properties": {"a": "1"}})
}

fn with(mut body: Value, member: &str, value: Value) -> Value {
    body[member] = value;
    body
}

async fn create(server: &Server, name: &str) -> Value {
    server.post(VIEWS, new_view(name)).await.expect(200)
}

fn replace(sql: &str) -> Value {
    let version = with(version(&["spark"], sql), "schema-id", json!(0));
    json!({"updates": [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]})
}

fn set(key: &str, value: &str) -> Value {
    json!({"updates": [{"action": "set-properties", "updates": {key: value}}]})
}

fn rename(from: &str, levels: Value, to: &str) -> Value {
    json!({"source": {"namespace": ["n"], "name": from}, "destination": {"namespace": levels, "name": to}})
}

async fn run_jobs(server: &Server) {
    while run_next(&server.app, Uuid::now_v7(), &CancellationToken::new()).await.unwrap() {}
}

fn key(answer: &Value) -> String {
    answer["metadata-location"].as_str().unwrap().strip_prefix("s3://lake/").unwrap().to_owned()
}

async fn a_view_is_created_loaded_and_listed(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = create(&server, "v").await;
    let members: Vec<_> = created.as_object().unwrap().keys().collect();
    assert_eq!(members, ["metadata-location", "metadata"]);
    let metadata = &created["metadata"];
    let location = metadata["location"].as_str().unwrap();
    assert!(location.starts_with("s3://lake/wh/n/v-"), "{location}");
    assert_eq!(metadata["properties"], json!({"a": "1"}));
    assert_eq!((&metadata["current-version-id"], &metadata["versions"][0]["schema-id"]), (&json!(1), &json!(0)));
    let file = created["metadata-location"].as_str().unwrap();
    assert!(file.starts_with(&format!("{location}/metadata/00000-")), "{file}");
    assert!(file.ends_with(".gz.metadata.json"), "views are compressed by default: {file}");
    assert_eq!(server.keys("wh/").await, [key(&created)]);
    let warehouse = crate::catalog::warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let stored = crate::catalog::files::read(&warehouse, file).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&stored).unwrap(), created["metadata"]);

    assert_eq!(server.get(&format!("{VIEWS}/v")).await.expect(200), created);
    server.app.catalog.views.forget(file);
    assert_eq!(server.get(&format!("{VIEWS}/v?referenced-by=n%1Fw,n%1Fx")).await.expect(200), created);
    let listed = server.get(VIEWS).await.expect(200);
    assert_eq!(listed, json!({"identifiers": [{"namespace": ["n"], "name": "v"}], "next-page-token": null}));
    assert_eq!(server.get(TABLES).await.expect(200)["identifiers"], json!([]));
    assert_eq!(server.send("HEAD", &format!("{VIEWS}/v"), &[], "").await.expect(204), Value::Null);
    assert_eq!(server.send("HEAD", &format!("{VIEWS}/w"), &[], "").await.expect(404), Value::Null);
}

async fn what_is_missing_is_a_view_wherever_a_view_was_asked_for(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    create(&server, "v").await;
    for path in ["n/views/w", "no/views/v", "n/views/t", "n%1Fv/views/files"] {
        let path = format!("/namespaces/{path}");
        for reply in [server.get(&path).await, server.delete(&path).await, server.post(&path, set("a", "b")).await] {
            assert!(reply.error().starts_with("404 NoSuchViewException View does not exist: n"), "{}", reply.error());
        }
        assert_eq!(server.send("HEAD", &path, &[], "").await.status, 404);
    }
    let missing = server.get(&format!("{VIEWS}/t")).await;
    expect!["404 NoSuchViewException View does not exist: n.t"].assert_eq(&missing.error());
    let missing = server.get(&format!("{TABLES}/v")).await;
    expect!["404 NoSuchTableException Table does not exist: n.v"].assert_eq(&missing.error());
    assert_eq!(server.delete(&format!("{TABLES}/v?purgeRequested=true")).await.status, 404);
    for reply in [server.get("/namespaces/no/views").await, server.post("/namespaces/no/views", new_view("v")).await] {
        expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&reply.error());
    }
}

async fn tables_and_views_share_their_names(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    create(&server, "v").await;
    let reply = server.post(VIEWS, new_view("v")).await;
    expect!["409 AlreadyExistsException View already exists: n.v"].assert_eq(&reply.error());
    let reply = server.post(VIEWS, new_view("t")).await;
    expect!["409 AlreadyExistsException Table with same name already exists: n.t"].assert_eq(&reply.error());
    for body in [new_table("v"), with(new_table("v"), "stage-create", json!(true))] {
        let reply = server.post(TABLES, body).await;
        expect!["409 AlreadyExistsException View with same name already exists: n.v"].assert_eq(&reply.error());
    }
    let staged = server.post(TABLES, with(new_table("u"), "stage-create", json!(true))).await.expect(200);
    create(&server, "u").await;
    let metadata = &staged["metadata"];
    let complete = json!({"requirements": [{"type": "assert-create"}], "updates": [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "add-schema", "schema": schema()}, {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"fields": []}}, {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
    ]});
    let reply = server.post(&format!("{TABLES}/u"), complete).await;
    expect!["409 AlreadyExistsException View with same name already exists: n.u"].assert_eq(&reply.error());
    let reply = server.delete("/namespaces/n").await;
    expect!["409 NamespaceNotEmptyException Namespace is not empty: n"].assert_eq(&reply.error());
    assert_eq!(server.keys("wh/").await.len(), 3, "nothing refused left a file");
}

async fn racing_creates_of_tables_and_views_have_one_winner(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let creates = (0..12).map(|n| match n % 2 {
        0 => server.post(VIEWS, new_view("x")),
        _ => server.post(TABLES, new_table("x")),
    });
    let replies = join_all(creates).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    for lost in replies.iter().filter(|reply| reply.status != 200) {
        assert!(lost.error().starts_with("409 AlreadyExistsException "), "{}", lost.error());
    }
    assert_eq!(server.keys("wh/").await.len(), 1);
}

async fn renames_go_both_ways_and_clash_both_ways(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.post("/namespaces", json!({"namespace": ["n", "m"]})).await.expect(200);
    let created = create(&server, "v").await;
    create(&server, "w").await;
    server.create_table("n", "t").await;
    let send = |from: &str, levels: Value, to: &str| server.post("/lakehouse/views/rename", rename(from, levels, to));
    let reply = send("v", json!(["n"]), "w").await;
    expect!["409 AlreadyExistsException Cannot rename n.v to n.w. View already exists"].assert_eq(&reply.error());
    let reply = send("v", json!(["n"]), "t").await;
    expect!["409 AlreadyExistsException Cannot rename n.v to n.t. Table already exists"].assert_eq(&reply.error());
    let reply = send("v", json!(["n"]), "v").await;
    expect!["409 AlreadyExistsException Cannot rename n.v to n.v. View already exists"].assert_eq(&reply.error());
    let reply = send("v", json!(["no"]), "v").await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&reply.error());
    for missing in ["x", "t"] {
        let reply = send(missing, json!(["n"]), "y").await;
        assert_eq!(reply.error(), format!("404 NoSuchViewException View does not exist: n.{missing}"));
    }
    let reply = server.post("/lakehouse/tables/rename", rename("t", json!(["n"]), "v")).await;
    expect!["409 AlreadyExistsException Cannot rename n.t to n.v. View already exists"].assert_eq(&reply.error());
    let reply = server.post("/lakehouse/tables/rename", rename("v", json!(["n"]), "y")).await;
    expect!["404 NoSuchTableException Table does not exist: n.v"].assert_eq(&reply.error());

    assert_eq!(send("v", json!(["n", "m"]), "moved").await.expect(204), Value::Null);
    assert_eq!(server.get("/namespaces/n%1Fm/views/moved").await.expect(200), created);
    assert_eq!(server.get(&format!("{VIEWS}/v")).await.status, 404);
    assert_ne!(create(&server, "v").await["metadata"]["location"], created["metadata"]["location"]);
}

async fn a_replace_adds_a_version_and_keeps_the_older(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = create(&server, "v").await;
    let body = with(replace("select 2"), "identifier", json!({"namespace": ["n"], "name": "v"}));
    let required = json!([{"type": "assert-view-uuid", "uuid": created["metadata"]["view-uuid"]}]);
    let replaced = server.post(&format!("{VIEWS}/v"), with(body, "requirements", required)).await.expect(200);
    assert_eq!(replaced["metadata"]["current-version-id"], 2);
    assert_eq!(replaced["metadata"]["versions"].as_array().unwrap().len(), 2);
    assert_eq!(replaced["metadata"]["view-uuid"], created["metadata"]["view-uuid"]);
    assert!(replaced["metadata-location"].as_str().unwrap().contains("/metadata/00001-"));
    assert_eq!(server.get(&format!("{VIEWS}/v")).await.expect(200), replaced);
    assert_eq!(server.keys("wh/").await, [key(&created), key(&replaced)]);

    let unchanged = server.post(&format!("{VIEWS}/v"), replace("select 2")).await.expect(200);
    assert_eq!(unchanged, replaced, "what changes nothing makes no file");
    let set = server.post(&format!("{VIEWS}/v"), set("a", "2")).await.expect(200);
    assert_eq!(set["metadata"]["versions"], replaced["metadata"]["versions"], "properties make no version");
    assert_eq!(server.keys("wh/").await.len(), 3);
}

async fn racing_replaces_all_land(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = create(&server, "v").await;
    let required = json!([{"type": "assert-view-uuid", "uuid": created["metadata"]["view-uuid"]}]);
    let replaces = (2..10).map(|n| {
        let body = with(replace(&format!("select {n}")), "requirements", required.clone());
        server.post("/namespaces/n/views/v", body)
    });
    let mut made: Vec<i64> = Vec::new();
    for reply in join_all(replaces).await {
        made.push(reply.expect(200)["metadata"]["current-version-id"].as_i64().unwrap());
    }
    made.sort_unstable();
    assert_eq!(made, (2..10).collect::<Vec<_>>());
    let loaded = server.get("/namespaces/n/views/v").await.expect(200);
    assert_eq!(loaded["metadata"]["version-log"].as_array().unwrap().len(), 9);
}

async fn a_replace_that_lost_the_race_is_built_on_what_won(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    create(&server, "v").await;
    server.app.catalog.faults.plan([(Statement::Swap, Fault::Held)]);
    let path = format!("{VIEWS}/v");
    // The one held has its turn by name; the other commits under another name.
    let held = server.post(&path, replace("select 2"));
    let other = async {
        while !server.app.catalog.faults.are_met() {
            tokio::task::yield_now().await;
        }
        let body = rename("v", json!(["n"]), "w");
        server.post("/views/rename", body).await.expect(204);
        let second = server.post(&format!("{VIEWS}/w"), replace("select 3")).await.expect(200);
        assert_eq!(second["metadata"]["current-version-id"], 2);
        server.post("/views/rename", rename("w", json!(["n"]), "v")).await.expect(204);
        server.app.catalog.faults.release();
    };
    let (held, ()) = tokio::join!(held, other);
    let held = held.expect(200);
    let queries: Vec<_> = held["metadata"]["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["representations"][0]["sql"].as_str().unwrap())
        .collect();
    assert_eq!(queries, ["select 1", "select 3", "select 2"]);
    assert_eq!(server.keys("wh/").await.len(), 3, "the file that lost is gone");
}

async fn outcomes_that_were_lost_are_found_out(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.app.catalog.faults.plan([(Statement::Create, Fault::AnswerLost)]);
    create(&server, "v").await;
    let path = format!("{VIEWS}/v");
    server.app.catalog.faults.plan([(Statement::Swap, Fault::AnswerLost)]);
    let landed = server.post(&path, replace("select 2")).await.expect(200);
    assert_eq!(landed["metadata"]["current-version-id"], 2);
    server.app.catalog.faults.plan([(Statement::Swap, Fault::StatementLost)]);
    let again = server.post(&path, replace("select 3")).await.expect(200);
    assert_eq!(again["metadata"]["current-version-id"], 3);
    assert_eq!(server.keys("wh/").await.len(), 3);

    let lost = std::iter::repeat_n((Statement::Settle, Fault::StatementLost), 6);
    server.app.catalog.faults.plan([(Statement::Swap, Fault::AnswerLost)].into_iter().chain(lost));
    let unknown = server.post(&path, replace("select 4")).await;
    expect!["500 CommitStateUnknownException the outcome of the commit is not known: n.v"].assert_eq(&unknown.error());
    assert_eq!(server.get(&path).await.expect(200)["metadata"]["current-version-id"], 4, "it had landed");
}

async fn bad_requests_change_nothing(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let created = create(&server, "v").await;
    let files = server.keys("wh/").await;
    let path = format!("{VIEWS}/v");
    let two = json!([
        {"type": "sql", "sql": "select 1", "dialect": "Trino"}, {"type": "sql", "sql": "select 2", "dialect": "trino"},
    ]);
    let two_queries = with(new_view("x"), "view-version", with(version(&[], ""), "representations", two.clone()));
    let reply = server.post(VIEWS, two_queries).await;
    expect!["400 IllegalArgumentException Invalid view version: Cannot add multiple queries for dialect trino"]
        .assert_eq(&reply.error());
    for (body, problem) in [
        (json!({}), "missing field: name"),
        (json!([]), "malformed JSON: expected an object, found an array"),
        (json!({"name": "x", "schema": schema(), "properties": {}}), "missing field: view-version"),
        (with(new_view("x"), "name", json!("a\u{0}b")), "a table name must not hold control characters"),
        (with(new_view("x"), "properties", json!({"a": 1})), "properties: the value of a must be a string"),
        (
            with(new_view("x"), "location", json!("s3://lake/elsewhere")),
            "location is not inside the warehouse's s3://lake/wh/: s3://lake/elsewhere",
        ),
        (
            with(new_view("x"), "location", created["metadata"]["location"].clone()),
            "location is, holds or lies within another table's or view's: ",
        ),
        (
            with(new_view("x"), "properties", json!({"write.metadata.path": "s3://lake/wh/elsewhere"})),
            "s3://lake/wh/elsewhere is not inside the location s3://lake/wh/n/x-",
        ),
    ] {
        let error = server.post(VIEWS, body).await.error();
        assert!(error.starts_with(&format!("400 BadRequestException {problem}")), "{error}");
    }
    let table = server.get(&format!("{TABLES}/t")).await.expect(200);
    let update = |update: Value| json!({"updates": [update]});
    for (body, problem) in [
        (update(json!({"action": "add-snapshot", "snapshot": {}})), "not an update of a view: add-snapshot"),
        (json!({"requirements": [{"type": "assert-create"}]}), "not a requirement on a view: assert-create"),
        (update(json!({"action": "set-location", "location": "s3://lake/wh"})), "location is not inside"),
        (
            update(json!({"action": "set-location", "location": table["metadata"]["location"]})),
            "location is, holds or lies within another table's or view's: ",
        ),
        (set("write.metadata.path", "s3://lake/wh/elsewhere"), "s3://lake/wh/elsewhere is not inside the location "),
        (set("write.metadata.compression-codec", "zip"), "invalid value for write.metadata.compression-codec"),
        (
            with(replace("select 2"), "identifier", json!({"namespace": ["n"], "name": "w"})),
            "the commit's identifier is not that of its path: n.v",
        ),
        (
            update(json!({"action": "set-current-view-version", "view-version-id": 9})),
            "cannot set current version to unknown",
        ),
    ] {
        let error = server.post(&path, body).await.error();
        assert!(error.starts_with(&format!("400 BadRequestException {problem}")), "{error}");
    }
    let lossy = with(version(&["trino"], "select 2"), "schema-id", json!(0));
    let lossy = json!({"updates": [
        {"action": "add-view-version", "view-version": lossy},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]});
    let error = server.post(&path, lossy).await.error();
    assert!(
        error.starts_with("400 BadRequestException cannot replace a view by one that lacks its dialects"),
        "{error}"
    );
    let other = json!({"requirements": [{"type": "assert-view-uuid", "uuid": Uuid::nil()}], "updates": []});
    let error = server.post(&path, other).await.error();
    assert!(error.starts_with("409 CommitFailedException Requirement failed: view UUID does not match"), "{error}");
    for views in ["x", "n%1Fv,"] {
        for path in [&path, &format!("{TABLES}/t"), &format!("{TABLES}/t/credentials")] {
            assert_eq!(server.get(&format!("{path}?referenced-by={views}")).await.status, 400, "{path}");
        }
    }
    assert_eq!(server.get(&path).await.expect(200), created);
    assert_eq!(server.keys("wh/").await, files);
}

async fn table_updates_refuse_actions_on_views(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let reply = server.post(&format!("{TABLES}/t"), replace("select 1")).await;
    expect!["400 BadRequestException update is for views only: add-view-version"].assert_eq(&reply.error());
}

async fn places_and_codecs_are_the_views_own(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let asked = with(new_view("v"), "location", json!("s3://lake/wh/my/view//"));
    let asked = with(
        asked,
        "properties",
        json!({
            "write.metadata.path": "s3://lake/wh/my/view/m", "write.metadata.compression-codec": "none",
        }),
    );
    let created = server.post(VIEWS, asked).await.expect(200);
    assert_eq!(created["metadata"]["location"], "s3://lake/wh/my/view");
    let file = key(&created);
    assert!(file.starts_with("wh/my/view/m/00000-") && file.ends_with(".metadata.json"), "{file}");
    assert!(!file.ends_with(".gz.metadata.json"), "{file}");

    let moved = json!({"updates": [
        {"action": "set-location", "location": "s3://lake/wh/other"},
        {"action": "remove-properties", "removals": ["write.metadata.path", "write.metadata.compression-codec"]},
    ]});
    let moved = server.post(&format!("{VIEWS}/v"), moved).await.expect(200);
    assert!(key(&moved).starts_with("wh/other/metadata/00001-") && key(&moved).ends_with(".gz.metadata.json"));
    // The old place is free, the new one taken.
    server.post(VIEWS, with(new_view("w"), "location", json!("s3://lake/wh/my/view/m"))).await.expect(200);
    assert_eq!(server.post(TABLES, with(new_table("t"), "location", json!("s3://lake/wh/other"))).await.status, 400);
    server.post("/namespaces/n/properties", json!({"updates": {"location": "s3://lake/wh/home"}})).await.expect(200);
    assert!(key(&create(&server, "x").await).starts_with("wh/home/x-"));
}

async fn dropping_deletes_the_current_file_and_no_other(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = create(&server, "v").await;
    let replaced = server.post(&format!("{VIEWS}/v"), replace("select 2")).await.expect(200);
    let reply = server.delete(&format!("{VIEWS}/v")).await;
    assert_eq!((reply.status.as_u16(), &reply.body), (204, &Value::Null));
    assert_eq!(server.get(&format!("{VIEWS}/v")).await.status, 404);
    assert_eq!(server.keys("wh/").await, [key(&created), key(&replaced)], "the row goes first");
    run_jobs(&server).await;
    assert_eq!(server.keys("wh/").await, [key(&created)]);
    expect!["404 NoSuchViewException View does not exist: n.v"]
        .assert_eq(&server.delete(&format!("{VIEWS}/v")).await.error());
    create(&server, "v").await;
}

async fn files_of_views_that_keep_them_stay(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    for (name, value) in [("v", "false"), ("w", "no"), ("x", "TRUE")] {
        let body = with(new_view(name), "properties", json!({"gc.enabled": value}));
        let file = key(&server.post(VIEWS, body).await.expect(200));
        server.delete(&format!("{VIEWS}/{name}")).await.expect(204);
        run_jobs(&server).await;
        assert_eq!(server.keys("wh/").await.contains(&file), value != "TRUE", "{value}");
    }
}

async fn a_file_whose_folder_is_taken_again_stays(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = server.post(VIEWS, with(new_view("v"), "location", json!("s3://lake/wh/a/v"))).await.expect(200);
    server.delete(&format!("{VIEWS}/v")).await.expect(204);
    server.post(TABLES, with(new_table("t"), "location", json!("s3://lake/wh/a"))).await.expect(200);
    run_jobs(&server).await;
    assert!(server.keys("wh/").await.contains(&key(&created)));
}

async fn a_view_whose_file_is_gone_can_be_dropped(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = create(&server, "v").await;
    server.objects().delete(&file_name(&key(&created))).await.unwrap();
    server.app.catalog.views.forget(created["metadata-location"].as_str().unwrap());
    let error = server.get(&format!("{VIEWS}/v")).await.error();
    assert!(error.starts_with("404 NotFoundException Failed to open input stream for file: s3://lake/wh/"), "{error}");
    server.delete(&format!("{VIEWS}/v")).await.expect(204);
    run_jobs(&server).await;
    assert_eq!(server.get(VIEWS).await.expect(200)["identifiers"], json!([]));
}

async fn listings_come_in_pages(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "c").await;
    for name in ["a", "b", "d"] {
        create(&server, name).await;
    }
    let names = |page: &Value| -> Vec<String> {
        let list = page["identifiers"].as_array().unwrap();
        list.iter().map(|identifier| identifier["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get(&format!("{VIEWS}?pageToken=&pageSize=2")).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    let token = first["next-page-token"].as_str().unwrap();
    let second = server.get(&format!("{VIEWS}?pageToken={token}&pageSize=2")).await.expect(200);
    assert_eq!((names(&second), &second["next-page-token"]), (vec!["d".to_owned()], &Value::Null));
    assert_eq!(server.get(&format!("{VIEWS}?pageToken=!")).await.status, 400);
}

async fn unknown_fields_survive_replaces(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let mut body = with(new_view("v"), "view-version", with(version(&["spark"], "select 1"), "x-version", json!([1])));
    body["schema"]["fields"][0]["x-field"] = json!({"a": null});
    body["view-version"]["representations"][0]["x-query"] = json!(2);
    server.post(VIEWS, body).await.expect(200);
    server.post(&format!("{VIEWS}/v"), replace("select 2")).await.expect(200);
    let metadata = &server.get(&format!("{VIEWS}/v")).await.expect(200)["metadata"];
    assert_eq!(metadata["versions"][0]["x-version"], json!([1]));
    assert_eq!(metadata["versions"][0]["representations"][0]["x-query"], 2);
    assert_eq!(metadata["schemas"][0]["fields"][0]["x-field"], json!({"a": null}));
}

async fn changes_with_a_key_are_made_once(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let path = format!("{VIEWS}/v");
    for (method, path, body, status) in [
        ("POST", VIEWS, new_view("v"), 200),
        ("POST", &path, replace("select 2"), 200),
        ("POST", "/views/rename", rename("v", json!(["n"]), "w"), 204),
        ("DELETE", &format!("{VIEWS}/w"), Value::Null, 204),
        ("DELETE", &format!("{VIEWS}/w"), Value::Null, 404),
    ] {
        let id = Uuid::now_v7().to_string();
        let headers = [("idempotency-key", id.as_str())];
        let first = server.send(method, path, &headers, body.to_string()).await;
        assert_eq!(first.status, status, "{method} {path}: {}", first.body);
        let second = server.send(method, path, &headers, body.to_string()).await;
        assert_eq!((second.status, second.body), (first.status, first.body), "{method} {path}");
    }
    assert_eq!(server.keys("wh/").await.len(), 2);
}

const REGISTER: &str = "/lakehouse/namespaces/n/register-view";

fn file_name(key: &str) -> Path {
    Path::parse(key).unwrap()
}

/// Puts a file of the reference implementation as that of a view at `wh/<folder>`; answers where it is.
async fn put_file(server: &Server, name: &str, folder: &str) -> String {
    let path = format!("{}/tests/data/views/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut metadata: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    metadata["location"] = json!(format!("s3://lake/wh/{folder}"));
    metadata["x-tide"] = json!(1.50);
    let key = format!("wh/{folder}/metadata/v1.metadata.json");
    server.objects().put(&file_name(&key), metadata.to_string().into()).await.unwrap();
    format!("s3://lake/{key}")
}

async fn register(server: &Server, name: &str, file: &str) -> Reply {
    server.post(REGISTER, json!({"name": name, "metadata-location": file})).await
}

async fn a_file_of_another_writer_becomes_a_view(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let file = put_file(&server, "view-v1-valid.json", "a").await;
    let registered = register(&server, "v", &file).await.expect(200);
    assert_eq!(registered["metadata-location"], file);
    assert_eq!(registered["metadata"]["x-tide"], 1.50);
    assert_eq!(registered["metadata"]["versions"][0]["representations"][0]["dialect"], "spark-sql");
    assert_eq!(server.get(&format!("{VIEWS}/v")).await.expect(200), registered);
    assert_eq!(server.keys("wh/").await.len(), 1, "nothing is written");
    let replaced = server.post(&format!("{VIEWS}/v"), set("a", "b")).await.expect(200);
    assert!(key(&replaced).starts_with("wh/a/metadata/00000-"), "{replaced}");
    assert_eq!(replaced["metadata"]["x-tide"], 1.50);
}

async fn registrations_that_are_refused_change_nothing(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = create(&server, "v").await;
    server.create_table("n", "t").await;
    let good = put_file(&server, "view-v1-valid.json", "good").await;
    let two_queries = put_file(&server, "view-v1-bad-two-sqls-one-dialect.json", "two").await;
    let no_current = put_file(&server, "view-v1-bad-current-version.json", "none").await;
    let table = server.get(&format!("{TABLES}/t")).await.expect(200);
    let table_file = table["metadata-location"].as_str().unwrap().to_owned();
    server.send("POST", &format!("{TABLES}/t/unregister"), &[], "").await.expect(200);
    server.create_table("n", "t").await;
    let files = server.keys("wh/").await;
    for (name, file, expected) in [
        ("v", good.as_str(), "409 AlreadyExistsException View already exists: n.v"),
        ("t", &good, "409 AlreadyExistsException Table with same name already exists: n.t"),
        (
            "x",
            &two_queries,
            "400 BadRequestException cannot register s3://lake/wh/two/metadata/v1.metadata.json: Invalid view version: Cannot add multiple queries for dialect spark-sql",
        ),
        (
            "x",
            &no_current,
            "400 BadRequestException cannot register s3://lake/wh/none/metadata/v1.metadata.json: current view version not found: 1234",
        ),
        (
            "x",
            "s3://lake/wh/good/metadata/v2.metadata.json",
            "400 BadRequestException cannot register s3://lake/wh/good/metadata/v2.metadata.json: there is no such file",
        ),
        (
            "x",
            "s3://lake/other/v1.metadata.json",
            "403 ForbiddenException not allowed: cannot register s3://lake/other/v1.metadata.json: it is not inside the warehouse's s3://lake/wh/",
        ),
        ("x", &table_file, "400 BadRequestException cannot register "),
        ("x", created["metadata-location"].as_str().unwrap(), "403 ForbiddenException not allowed: cannot register "),
    ] {
        let error = register(&server, name, file).await.error();
        assert!(error.starts_with(expected), "{error}");
    }
    let nowhere = server.post("/namespaces/no/register-view", json!({"name": "x", "metadata-location": good})).await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&nowhere.error());
    assert_eq!(server.post(REGISTER, json!({"name": "x"})).await.status, 400);
    let reply = server.post("/namespaces/n/register", json!({"name": "v", "metadata-location": good})).await;
    expect!["409 AlreadyExistsException View with same name already exists: n.v"].assert_eq(&reply.error());
    let overwrite = json!({"name": "v", "metadata-location": table_file, "overwrite": true});
    let reply = server.post("/namespaces/n/register", overwrite).await;
    expect!["409 AlreadyExistsException View with same name already exists: n.v"].assert_eq(&reply.error());
    assert_eq!(server.get(VIEWS).await.expect(200)["identifiers"].as_array().unwrap().len(), 1);
    assert_eq!(server.keys("wh/").await, files);
}

async fn a_dropped_view_comes_back_by_its_file(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let body = with(new_view("v"), "properties", json!({"gc.enabled": "false"}));
    let created = server.post(VIEWS, body).await.expect(200);
    server.delete(&format!("{VIEWS}/v")).await.expect(204);
    run_jobs(&server).await;
    let file = created["metadata-location"].as_str().unwrap();
    let back = register(&server, "back", file).await.expect(200);
    assert_eq!(back, created);
    let next = server.post(&format!("{VIEWS}/back"), replace("select 2")).await.expect(200);
    assert!(next["metadata-location"].as_str().unwrap().contains("/metadata/00001-"));
}

/// The order to delete the file of a view that was dropped may come late.
async fn a_file_that_is_a_views_again_stays(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = create(&server, "v").await;
    server.delete(&format!("{VIEWS}/v")).await.expect(204);
    register(&server, "v", created["metadata-location"].as_str().unwrap()).await.expect(200);
    run_jobs(&server).await;
    assert_eq!(server.keys("wh/").await, [key(&created)]);
}

async fn a_registration_whose_answer_was_lost_is_found_out(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let file = put_file(&server, "view-v1-valid.json", "a").await;
    server.app.catalog.faults.plan([(Statement::Create, Fault::AnswerLost)]);
    let registered = register(&server, "v", &file).await.expect(200);
    assert_eq!(registered["metadata-location"], file);
    let id = Uuid::now_v7().to_string();
    let body =
        json!({"name": "w", "metadata-location": put_file(&server, "view-v1-valid.json", "b").await}).to_string();
    for _ in 0..2 {
        let reply = server.send("POST", REGISTER, &[("idempotency-key", &id)], body.clone()).await;
        assert_eq!(reply.expect(200)["metadata"]["location"], "s3://lake/wh/b");
    }
}

on_both! {
    a_view_is_created_loaded_and_listed,
    what_is_missing_is_a_view_wherever_a_view_was_asked_for,
    tables_and_views_share_their_names,
    racing_creates_of_tables_and_views_have_one_winner,
    renames_go_both_ways_and_clash_both_ways,
    a_replace_adds_a_version_and_keeps_the_older,
    racing_replaces_all_land,
    a_replace_that_lost_the_race_is_built_on_what_won,
    outcomes_that_were_lost_are_found_out,
    bad_requests_change_nothing,
    table_updates_refuse_actions_on_views,
    places_and_codecs_are_the_views_own,
    dropping_deletes_the_current_file_and_no_other,
    files_of_views_that_keep_them_stay,
    a_file_whose_folder_is_taken_again_stays,
    a_view_whose_file_is_gone_can_be_dropped,
    listings_come_in_pages,
    unknown_fields_survive_replaces,
    changes_with_a_key_are_made_once,
    a_file_of_another_writer_becomes_a_view,
    registrations_that_are_refused_change_nothing,
    a_dropped_view_comes_back_by_its_file,
    a_file_that_is_a_views_again_stays,
    a_registration_whose_answer_was_lost_is_found_out,
}
