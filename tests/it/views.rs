//! Views on the real server: made, replaced by many at once, renamed, dropped, registered, and there after a kill.

use crate::{
    catalog::{Answer, Catalog, send},
    database::Database,
    s3::{BUCKET, S3},
    server::{Server, until},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Barrier;

on_both_databases! {
    a_view_outlives_the_server_with_all_it_was_given,
    replaces_at_the_same_moment_land_as_versions_2_and_3,
    names_of_tables_and_views_clash_both_ways,
    a_dropped_views_file_goes_and_a_kept_one_comes_back,
    listings_of_views_come_in_pages,
    bad_input_changes_nothing,
}

const VIEWS: &str = "/v1/namespaces/ns/views";

fn version(sql: &str) -> Value {
    json!({
        "version-id": 1, "schema-id": 0, "timestamp-ms": 1_700_000_000_000_i64,
        "summary": {"engine-name": "spark", "engine-version": "4.0"}, "default-namespace": ["ns"],
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
    })
}

fn new_view(name: &str) -> Value {
    let fields = json!([{"id": 1, "name": "id", "required": false, "type": "long", "doc": "the 🐚 of it"}]);
    let schema = json!({"type": "struct", "schema-id": 0, "fields": fields});
    json!({"name": name, "schema": schema, "view-version": version("select 1 as id"), "properties": {"comment": "c"}})
}

fn replace(uuid: &Value, sql: &str) -> Value {
    json!({"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], "updates": [
        {"action": "add-view-version", "view-version": version(sql)},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]})
}

fn rename(from: &str, to: &str) -> Value {
    json!({"source": {"namespace": ["ns"], "name": from}, "destination": {"namespace": ["ns"], "name": to}})
}

async fn start(database: Database) -> (Server, Catalog, S3) {
    let server = Server::start(database).await;
    let (catalog, s3) = (Catalog::login(&server).await, S3::root(&server));
    catalog.create_namespace("ns").await;
    (server, catalog, s3)
}

async fn create(catalog: &Catalog, name: &str) -> Value {
    catalog.post(VIEWS, &new_view(name)).await.ok()
}

async fn load(catalog: &Catalog, name: &str) -> Answer {
    catalog.get(&format!("{VIEWS}/{name}")).await
}

async fn drop_view(catalog: &Catalog, name: &str) -> Answer {
    send(catalog.request(Method::DELETE, &format!("{VIEWS}/{name}"))).await
}

fn key(answer: &Value) -> String {
    let location = answer["metadata-location"].as_str().expect("a metadata location");
    location.strip_prefix(&format!("s3://{BUCKET}/")).expect("a file in the warehouse").to_owned()
}

async fn a_view_outlives_the_server_with_all_it_was_given(database: Database) {
    let (mut server, catalog, _) = start(database).await;
    let config = catalog.get("/v1/config").await.ok();
    let served = config["endpoints"].as_array().unwrap();
    assert_eq!(served.iter().filter(|endpoint| endpoint.as_str().unwrap().contains("view")).count(), 8);

    let mut body = new_view("v");
    body["view-version"]["x-version"] = json!([1, null]);
    body["schema"]["fields"][0]["x-field"] = json!({"a": "ü"});
    let created = catalog.post(VIEWS, &body).await.ok();
    let replaced =
        catalog.post(&format!("{VIEWS}/v"), &replace(&created["metadata"]["view-uuid"], "select 2 as id")).await.ok();
    server.kill();
    server.restart().await;

    let catalog = Catalog::login(&server).await;
    let loaded = load(&catalog, "v").await.ok();
    assert_eq!(loaded, replaced);
    let metadata = &loaded["metadata"];
    assert_eq!(metadata["versions"][0]["x-version"], json!([1, null]));
    assert_eq!(metadata["schemas"][0]["fields"][0]["x-field"], json!({"a": "ü"}));
    assert_eq!(metadata["schemas"][0]["fields"][0]["doc"], "the 🐚 of it");
    assert_eq!(metadata["versions"][1]["summary"]["engine-version"], "4.0");
    assert_eq!(metadata["version-log"].as_array().unwrap().len(), 2);
    assert_eq!(catalog.head(&format!("{VIEWS}/v")).await.status, 204);
}

async fn replaces_at_the_same_moment_land_as_versions_2_and_3(database: Database) {
    let (_server, catalog, s3) = start(database).await;
    let created = create(&catalog, "v").await;
    let barrier = Arc::new(Barrier::new(2));
    let replaces = [2, 3].map(|n| {
        let (catalog, barrier) = (catalog.clone(), Arc::clone(&barrier));
        let body = replace(&created["metadata"]["view-uuid"], &format!("select {n} as id"));
        tokio::spawn(async move {
            barrier.wait().await;
            catalog.post(&format!("{VIEWS}/v"), &body).await.ok()
        })
    });
    let mut made = Vec::new();
    for replaced in replaces {
        made.push(replaced.await.expect("a writer ends well")["metadata"]["current-version-id"].as_i64().unwrap());
    }
    made.sort_unstable();
    assert_eq!(made, [2, 3]);
    let loaded = load(&catalog, "v").await.ok();
    let versions = loaded["metadata"]["versions"].as_array().unwrap();
    let ids: Vec<_> = versions.iter().map(|version| version["version-id"].as_i64().unwrap()).collect();
    assert_eq!((ids, &loaded["metadata"]["current-version-id"]), (vec![1, 2, 3], &json!(3)));
    let (folder, _) = key(&created).rsplit_once('/').map(|(folder, name)| (folder.to_owned(), name.len())).unwrap();
    assert_eq!(s3.keys(BUCKET, &format!("{folder}/")).await.len(), 3, "a commit that lost leaves no file");
}

async fn names_of_tables_and_views_clash_both_ways(database: Database) {
    let (_server, catalog, _) = start(database).await;
    catalog.create_table("ns", "t").await;
    let created = create(&catalog, "v").await;
    create(&catalog, "w").await;
    let taken = |answer: Answer| answer.error(409, "AlreadyExistsException");
    let schema = json!({"type": "struct", "fields": []});
    let table = catalog.post("/v1/namespaces/ns/tables", &json!({"name": "v", "schema": schema})).await;
    assert_eq!(taken(table), "View with same name already exists: ns.v");
    assert_eq!(taken(catalog.post(VIEWS, &new_view("t")).await), "Table with same name already exists: ns.t");
    assert_eq!(taken(catalog.post(VIEWS, &new_view("v")).await), "View already exists: ns.v");
    let message = taken(catalog.post("/v1/tables/rename", &rename("t", "v")).await);
    assert_eq!(message, "Cannot rename ns.t to ns.v. View already exists");
    let message = taken(catalog.post("/v1/views/rename", &rename("v", "t")).await);
    assert_eq!(message, "Cannot rename ns.v to ns.t. Table already exists");
    let message = taken(catalog.post("/v1/views/rename", &rename("v", "w")).await);
    assert_eq!(message, "Cannot rename ns.v to ns.w. View already exists");
    catalog.post("/v1/views/rename", &rename("t", "x")).await.error(404, "NoSuchViewException");
    catalog.post("/v1/tables/rename", &rename("v", "x")).await.error(404, "NoSuchTableException");
    load(&catalog, "t").await.error(404, "NoSuchViewException");
    catalog.load_table("ns", "v").await.error(404, "NoSuchTableException");

    catalog.post("/v1/views/rename", &rename("v", "x")).await.ok();
    assert_eq!(load(&catalog, "x").await.ok(), created);
    catalog.create_table("ns", "v").await;
}

async fn a_dropped_views_file_goes_and_a_kept_one_comes_back(database: Database) {
    let (_server, catalog, s3) = start(database).await;
    let mut kept = new_view("kept");
    kept["properties"] = json!({"gc.enabled": "false"});
    let kept = catalog.post(VIEWS, &kept).await.ok();
    let gone = create(&catalog, "gone").await;
    for name in ["kept", "gone"] {
        assert_eq!(drop_view(&catalog, name).await.status, 204);
        drop_view(&catalog, name).await.error(404, "NoSuchViewException");
    }
    until(async || s3.get(BUCKET, &key(&gone)).await.status == 404).await;
    let body = json!({"name": "back", "metadata-location": kept["metadata-location"]});
    assert_eq!(catalog.post("/v1/namespaces/ns/register-view", &body).await.ok(), kept);
    let replaced =
        catalog.post(&format!("{VIEWS}/back"), &replace(&kept["metadata"]["view-uuid"], "select 2 as id")).await.ok();
    assert_eq!(replaced["metadata"]["current-version-id"], 2);
}

async fn listings_of_views_come_in_pages(database: Database) {
    let (_server, catalog, _) = start(database).await;
    catalog.create_table("ns", "v2").await;
    for n in [0, 1, 3, 4, 5] {
        create(&catalog, &format!("v{n}")).await;
    }
    let (mut names, mut token, mut pages) = (Vec::new(), Some(String::new()), 0);
    while let Some(current) = token {
        let page = catalog.get(&format!("{VIEWS}?pageToken={current}&pageSize=2")).await.ok();
        names.extend(page["identifiers"].as_array().unwrap().iter().map(|identifier| identifier["name"].clone()));
        token = page["next-page-token"].as_str().map(str::to_owned);
        pages += 1;
    }
    assert_eq!((json!(names), pages), (json!(["v0", "v1", "v3", "v4", "v5"]), 3));
    catalog.get("/v1/namespaces/no/views").await.error(404, "NoSuchNamespaceException");
}

async fn bad_input_changes_nothing(database: Database) {
    let (_server, catalog, s3) = start(database).await;
    let created = create(&catalog, "v").await;
    let files = s3.keys(BUCKET, "").await;
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    for body in ["", "{", "[]", "null", "{\"name\":\"x\"}", deep.as_str(), "\u{0}", "{\"name\":\"\\ud800\"}"] {
        for path in [VIEWS, "/v1/namespaces/ns/register-view", "/v1/views/rename", "/v1/namespaces/ns/views/v"] {
            // A commit may leave everything out, and this one does.
            if path.ends_with("/v") && body.starts_with("{\"name") && !body.contains("ud800") {
                continue;
            }
            let answer = catalog.post_bytes(path, body.to_owned()).await;
            answer.error(400, "BadRequestException");
        }
    }
    let uuid = &created["metadata"]["view-uuid"];
    let mut lossy = replace(uuid, "select 2");
    lossy["updates"][0]["view-version"]["representations"][0]["dialect"] = json!("trino");
    let mut tables_own = replace(uuid, "select 2");
    tables_own["updates"][1] = json!({"action": "set-current-schema", "schema-id": 0});
    for body in [lossy, tables_own] {
        catalog.post(&format!("{VIEWS}/v"), &body).await.error(400, "BadRequestException");
    }
    let other = replace(&json!(uuid::Uuid::nil().to_string()), "select 2");
    catalog.post(&format!("{VIEWS}/v"), &other).await.error(409, "CommitFailedException");
    for parameter in ["referenced-by=v", "referenced-by=ns%1Fv,", "referenced-by=%FF"] {
        catalog.get(&format!("{VIEWS}/v?{parameter}")).await.error(400, "BadRequestException");
    }
    let twice = format!("{VIEWS}/v?referenced-by=ns%251Fouter%2Cns%251Finner");
    assert_eq!(catalog.get(&twice).await.ok(), created);
    assert_eq!(load(&catalog, "v").await.ok(), created);
    assert_eq!(s3.keys(BUCKET, "").await, files);
}
