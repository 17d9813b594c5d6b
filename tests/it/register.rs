//! Tables that come with their files and leave without them.

use crate::{
    catalog::{Catalog, send},
    database::Database,
    s3::{BUCKET, S3},
    server::{Server, until},
};
use reqwest::Method;
use serde_json::{Value, json};

on_both_databases! {
    a_table_leaves_and_comes_back_with_all_it_had,
    a_file_of_another_writer_becomes_a_table,
    a_pointer_goes_back_to_an_earlier_file,
    refused_registrations_change_nothing,
}

const REGISTER: &str = "/v1/namespaces/ns/register";

async fn register(catalog: &Catalog, body: Value) -> crate::catalog::Answer {
    catalog.post(REGISTER, &body).await
}

/// Metadata of a V2 table without snapshots at `location`.
pub fn metadata(location: &str) -> Value {
    json!({
        "format-version": 2, "table-uuid": uuid::Uuid::new_v4().to_string(), "location": location,
        "last-sequence-number": 0, "last-updated-ms": 1_700_000_000_000_i64, "last-column-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields":
            [{"id": 1, "name": "id", "required": true, "type": "long"}]}],
        "current-schema-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0,
        "last-partition-id": 999, "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
        "x-tide": {"height": 1.25},
    })
}

pub fn key(location: &str) -> &str {
    location.strip_prefix(&format!("s3://{BUCKET}/")).expect("a place in the warehouse")
}

/// Puts metadata of a table at `<warehouse>/<folder>`; answers where the file is.
async fn put_file(s3: &S3, folder: &str, name: &str) -> String {
    let location = format!("s3://{BUCKET}/{folder}");
    let file = format!("{location}/metadata/{name}");
    assert_eq!(s3.put(BUCKET, key(&file), metadata(&location).to_string()).await.status, 200);
    file
}

async fn a_table_leaves_and_comes_back_with_all_it_had(database: Database) {
    let mut server = Server::start(database).await;
    let (catalog, s3) = (Catalog::login(&server).await, S3::root(&server));
    catalog.create_namespace("ns").await;
    let created = catalog.create_table("ns", "t").await;
    let committed = catalog.set_property("ns", "t", "key", "value").await.ok();
    let data = format!("{}/data/a.parquet", key(created["metadata"]["location"].as_str().unwrap()));
    assert_eq!(s3.put(BUCKET, &data, "bytes").await.status, 200);

    let path = "/v1/namespaces/ns/tables/t/unregister";
    let gone = send(catalog.request(Method::POST, path)).await.ok();
    assert_eq!(gone, committed);
    catalog.load_table("ns", "t").await.error(404, "NoSuchTableException");
    catalog.set_property("ns", "t", "late", "x").await.error(404, "NoSuchTableException");
    catalog.post(path, &json!({})).await.error(404, "NoSuchTableException");
    server.kill();
    server.restart().await;

    let catalog = Catalog::login(&server).await;
    let body = json!({"name": "back", "metadata-location": gone["metadata-location"]});
    let back = register(&catalog, body).await;
    assert!(back.header("etag").is_some());
    assert_eq!(back.ok()["metadata"], committed["metadata"]);
    assert_eq!(s3.get(BUCKET, &data).await.body, "bytes");
    let again = catalog.set_property("ns", "back", "key", "other").await.ok();
    let log = again["metadata"]["metadata-log"].as_array().unwrap();
    assert_eq!(log.last().unwrap()["metadata-file"], gone["metadata-location"]);
    assert_eq!(log.len(), 2, "the log goes on where it was");
}

async fn a_file_of_another_writer_becomes_a_table(database: Database) {
    let mut server = Server::start(database).await;
    let (catalog, s3) = (Catalog::login(&server).await, S3::root(&server));
    catalog.create_namespace("ns").await;
    let file = put_file(&s3, "adopted", "v3.metadata.json").await;
    let registered = register(&catalog, json!({"name": "t", "metadata-location": file})).await.ok();
    assert_eq!((&registered["metadata-location"], &registered["metadata"]["snapshots"]), (&json!(file), &json!([])));
    assert_eq!(registered["metadata"]["x-tide"], json!({"height": 1.25}));
    server.kill();
    server.restart().await;
    let catalog = Catalog::login(&server).await;
    let loaded = catalog.load_table("ns", "t").await.ok();
    assert_eq!(loaded, registered);

    let delegated = catalog.request(Method::GET, "/v1/namespaces/ns/tables/t/credentials");
    let credentials = send(delegated).await.ok();
    let vended = S3::vended(&server, &credentials["storage-credentials"][0]["config"]);
    assert_eq!(vended.put(BUCKET, "adopted/data/a", "bytes").await.status, 200);
    catalog.set_property("ns", "t", "a", "b").await.ok();
    send(catalog.request(Method::DELETE, "/v1/namespaces/ns/tables/t?purgeRequested=true")).await.ok();
    until(async || s3.get(BUCKET, key(&file)).await.status == 404).await;
    assert_eq!(s3.get(BUCKET, "adopted/data/a").await.status, 200, "nothing reaches it");
}

async fn a_pointer_goes_back_to_an_earlier_file(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let first = catalog.create_table("ns", "t").await;
    catalog.set_property("ns", "t", "mistake", "yes").await.ok();
    let body = json!({"name": "t", "metadata-location": first["metadata-location"]});
    register(&catalog, body.clone()).await.error(409, "AlreadyExistsException");
    let mut body = body;
    body["overwrite"] = json!(true);
    let restored = register(&catalog, body).await.ok();
    assert_eq!(restored["metadata"], first["metadata"]);
    let loaded = catalog.load_table("ns", "t").await.ok();
    assert_eq!(loaded["metadata-location"], first["metadata-location"]);
    let committed = catalog.set_property("ns", "t", "a", "b").await.ok();
    assert_eq!(committed["metadata"]["properties"]["mistake"], Value::Null);
}

async fn refused_registrations_change_nothing(database: Database) {
    let server = Server::start(database).await;
    let (catalog, s3) = (Catalog::login(&server).await, S3::root(&server));
    catalog.create_namespace("ns").await;
    let created = catalog.create_table("ns", "t").await;
    let file = put_file(&s3, "adopted", "v1.metadata.json").await;
    let taken = register(&catalog, json!({"name": "t", "metadata-location": file})).await;
    assert_eq!(taken.error(409, "AlreadyExistsException"), "Table already exists: ns.t");
    let neighbours = json!({"name": "u", "metadata-location": created["metadata-location"]});
    register(&catalog, neighbours).await.error(403, "ForbiddenException");
    let missing = json!({"name": "u", "metadata-location": format!("{file}.gz")});
    let missing = register(&catalog, missing).await.error(400, "BadRequestException");
    assert_eq!(missing, format!("cannot register {file}.gz: there is no such file"));
    for place in ["s3://other/a/metadata/v1.metadata.json", "file:///etc/passwd.metadata.json"] {
        let outside = json!({"name": "u", "metadata-location": place});
        register(&catalog, outside).await.error(403, "ForbiddenException");
    }
    let body = json!({"name": "u", "metadata-location": file});
    catalog.post("/v1/namespaces/no/register", &body).await.error(404, "NoSuchNamespaceException");
    assert_eq!(s3.put(BUCKET, "adopted/metadata/v2.metadata.json", "not json").await.status, 200);
    for body in [
        json!({"name": "u", "metadata-location": file.replace("v1", "v2")}),
        json!({"name": "u", "metadata-location": "file:///etc/passwd"}),
        json!({"name": "u\u{0}", "metadata-location": file}),
        json!({"name": "u", "metadata-location": format!("{file}\u{0}")}),
        json!({"name": "u", "metadata-location": 1}),
        json!({"name": "u"}),
        json!([]),
    ] {
        register(&catalog, body).await.error(400, "BadRequestException");
    }
    Catalog::anonymous(&server).post(REGISTER, &json!({})).await.error(401, "NotAuthorizedException");
    let tables = catalog.get("/v1/namespaces/ns/tables").await.ok();
    assert_eq!(tables["identifiers"], json!([{"namespace": ["ns"], "name": "t"}]));
    register(&catalog, json!({"name": "u", "metadata-location": file})).await.ok();
}

#[tokio::test]
async fn a_file_of_a_hundred_thousand_snapshots_becomes_a_table() {
    const SNAPSHOTS: i64 = 100_000;
    let server = Server::start(Database::Sqlite).await;
    let (catalog, s3) = (Catalog::login(&server).await, S3::root(&server));
    catalog.create_namespace("ns").await;
    let location = format!("s3://{BUCKET}/large");
    let mut large = metadata(&location);
    let snapshot = |n: i64| {
        json!({"snapshot-id": n, "sequence-number": n, "timestamp-ms": 1_700_000_000_000 + n, "schema-id": 0,
               "manifest-list": format!("{location}/metadata/snap-{n}-{}.avro", "x".repeat(60)),
               "summary": {"operation": "append", "added-records": "1000000", "engine-name": "tide", "engine-version": "1"}})
    };
    large["snapshots"] = (1..=SNAPSHOTS).map(snapshot).collect();
    large["last-sequence-number"] = json!(SNAPSHOTS);
    large["current-snapshot-id"] = json!(SNAPSHOTS);
    let file = format!("{location}/metadata/v1.metadata.json");
    assert_eq!(s3.put(BUCKET, key(&file), large.to_string()).await.status, 200);
    let registered = register(&catalog, json!({"name": "t", "metadata-location": file})).await.ok();
    assert_eq!(registered["metadata"]["snapshots"].as_array().map(Vec::len), Some(100_000));
    let refs = catalog.get("/v1/namespaces/ns/tables/t?snapshots=refs").await.ok();
    assert_eq!(refs["metadata"]["snapshots"], json!([snapshot(SNAPSHOTS)]));
    let removed = json!([{"action": "remove-snapshots", "snapshot-ids": (1..SNAPSHOTS).collect::<Vec<_>>()}]);
    let committed = catalog.commit("ns", "t", json!([]), removed).await.ok();
    assert_eq!(committed["metadata"]["snapshots"].as_array().map(Vec::len), Some(1));
}
