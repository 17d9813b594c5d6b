//! Functions: stored through our API, read through the Iceberg protocol.

use crate::{
    catalog::{Answer, Catalog, send},
    database::Database,
    server::Server,
};
use reqwest::Method;
use serde_json::{Value, json};

on_both_databases! {
    a_function_is_stored_read_replaced_and_deleted,
    bad_functions_are_refused_and_change_nothing,
    functions_survive_a_kill_and_keep_their_namespace,
}

const STORED: &str = "/api/v1/warehouses/lakehouse/namespaces/ns/functions";
const READ: &str = "/v1/lakehouse/namespaces/ns/functions";

async fn start(database: Database) -> (Server, Catalog) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    (server, catalog)
}

async fn put(catalog: &Catalog, path: &str, body: &Value) -> Answer {
    send(catalog.request(Method::PUT, path).json(body)).await
}

async fn delete(catalog: &Catalog, path: &str) -> Answer {
    send(catalog.request(Method::DELETE, path)).await
}

/// A table function with an overload, and a member that nobody knows.
fn document() -> Value {
    let version = |sql: &str| {
        json!({"version-id": 1, "timestamp-ms": 1_734_508_000_123_i64, "deterministic": true, "representations": [
            {"type": "sql", "dialect": "trino", "sql": sql}, {"type": "sql", "dialect": "spark", "sql": sql},
        ]})
    };
    let returned = json!({"type": "struct", "fields": [{"name": "name", "type": "string"}]});
    json!({
        "function-uuid": "8a7fa39a-6d8f-4a2f-9d8d-3f3a8f3c2a10", "format-version": 1, "secure": true,
        "definitions": [
            {"definition-id": "string", "parameters": [{"name": "c", "type": "string"}], "return-type": returned,
             "versions": [version("SELECT name FROM fruits WHERE color = c")], "current-version-id": 1,
             "function-type": "udtf"},
            {"definition-id": "", "parameters": [], "return-type": returned,
             "versions": [version("SELECT name FROM fruits")], "current-version-id": 1, "function-type": "udtf"},
        ],
        "definition-log": [{"timestamp-ms": 1_734_508_000_123_i64, "definition-versions": [
            {"definition-id": "string", "version-id": 1}]}],
        "x-tide": [1.25, null],
    })
}

async fn a_function_is_stored_read_replaced_and_deleted(database: Database) {
    let (_server, catalog) = start(database).await;
    let (mut document, path) = (document(), format!("{STORED}/fruits%2Fby%20color"));
    assert_eq!(put(&catalog, &path, &document).await.status, 201);
    let read = format!("{READ}/fruits%2Fby%20color");
    assert_eq!(catalog.get(&read).await.ok(), json!({"metadata": document}));
    let listed = catalog.get(READ).await.ok();
    assert_eq!(listed, json!({"identifiers": [["ns", "fruits/by color"]], "next-page-token": null}));

    document["doc"] = json!("fruits by their color");
    assert_eq!(put(&catalog, &path, &document).await.status, 204);
    assert_eq!(catalog.get(&read).await.ok()["metadata"], document);
    let mut other = document.clone();
    other["function-uuid"] = json!("42fd3f91-bc10-41c1-8a52-92b57dd0a9b2");
    put(&catalog, &path, &other).await.error(409, "AlreadyExistsException");

    let deleted = delete(&catalog, &path).await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    let missing = delete(&catalog, &path).await.error(404, "NoSuchFunctionException");
    assert_eq!(missing, "Function does not exist: ns.fruits/by color");
    catalog.get(&read).await.error(404, "NoSuchFunctionException");
    assert_eq!(put(&catalog, &path, &other).await.status, 201);
    let config = catalog.get("/v1/config").await.ok();
    for route in ["functions", "functions/{function}"] {
        let route = format!("GET /v1/{{prefix}}/namespaces/{{namespace}}/{route}");
        assert!(config["endpoints"].as_array().unwrap().contains(&json!(route)), "{route}");
    }
}

async fn bad_functions_are_refused_and_change_nothing(database: Database) {
    let (server, catalog) = start(database).await;
    let path = format!("{STORED}/f");
    for (pointer, value) in [
        ("/format-version", json!(2)),
        ("/function-uuid", json!("no uuid")),
        ("/definitions", json!(null)),
        ("/definitions/0/current-version-id", json!(7)),
        ("/definitions/0/return-type", json!("string")),
        ("/definitions/1/definition-id", json!("string")),
    ] {
        let mut bad = document();
        *bad.pointer_mut(pointer).unwrap() = value;
        put(&catalog, &path, &bad).await.error(400, "BadRequestException");
    }
    for body in ["", "{", "[]", "null", "\"\\ud800\""] {
        let answer = send(catalog.request(Method::PUT, &path).body(body)).await;
        answer.error(400, "BadRequestException");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    send(catalog.request(Method::PUT, &path).body(deep)).await.error(400, "BadRequestException");
    let mut large = document();
    large["doc"] = json!("x".repeat(1 << 20));
    put(&catalog, &path, &large).await.error(413, "BadRequestException");
    large["doc"] = json!("x".repeat(900 << 10));
    assert_eq!(put(&catalog, &format!("{STORED}/large"), &large).await.status, 201);

    for path in ["%FF", "a%00b"] {
        put(&catalog, &format!("{STORED}/{path}"), &document()).await.error(400, "BadRequestException");
        delete(&catalog, &format!("{STORED}/{path}")).await.error(400, "BadRequestException");
    }
    let no_namespace = "/api/v1/warehouses/lakehouse/namespaces/no/functions/f";
    put(&catalog, no_namespace, &document()).await.error(404, "NoSuchNamespaceException");
    delete(&catalog, no_namespace).await.error(404, "NoSuchNamespaceException");
    let no_warehouse = "/api/v1/warehouses/no/namespaces/ns/functions/f";
    put(&catalog, no_warehouse, &document()).await.error(404, "NoSuchWarehouseException");
    put(&Catalog::anonymous(&server), &path, &document()).await.error(401, "NotAuthorizedException");
    assert_eq!(catalog.get(READ).await.ok()["identifiers"], json!([["ns", "large"]]));
}

async fn functions_survive_a_kill_and_keep_their_namespace(database: Database) {
    let (mut server, catalog) = start(database).await;
    assert_eq!(put(&catalog, &format!("{STORED}/f"), &document()).await.status, 201);
    server.kill();
    server.restart().await;
    let catalog = Catalog::login(&server).await;
    delete(&catalog, "/v1/namespaces/ns").await.error(409, "NamespaceNotEmptyException");
    assert_eq!(catalog.get(&format!("{READ}/f")).await.ok()["metadata"], document());
    delete(&catalog, &format!("{STORED}/f")).await.ok();
    assert_eq!(delete(&catalog, "/v1/namespaces/ns").await.status, 204);
}
