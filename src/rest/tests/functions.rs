use super::*;
use crate::{
    catalog::functions::{self, Stored},
    iceberg::function::FunctionMetadata,
};
use expect_test::expect;

const FUNCTIONS: &str = "/lakehouse/namespaces/n/functions";

fn document(uuid: &str, sql: &str) -> String {
    // A member that nobody knows, and a number that no machine can hold.
    format!(
        r#"{{"function-uuid": "{uuid}", "format-version": 1, "x-tide": 1.500000000000000000000000000001, "definitions": [{{
            "definition-id": "int", "parameters": [{{"name": "x", "type": "int"}}], "return-type": "int",
            "versions": [{{"version-id": 1, "timestamp-ms": 1, "representations":
                [{{"type": "sql", "dialect": "spark", "sql": "{sql}"}}]}}],
            "current-version-id": 1, "function-type": "udf"}}], "definition-log": []}}"#
    )
}

const UUID: &str = "42fd3f91-bc10-41c1-8a52-92b57dd0a9b2";
const OTHER_UUID: &str = "8a7fa39a-6d8f-4a2f-9d8d-3f3a8f3c2a10";

async fn put(server: &Server, namespace: &str, name: &str, document: &str) -> crate::catalog::Result<Stored> {
    let caller = server.app.auth.verify_bearer(&server.token, now_ms()).await.unwrap();
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let function = FunctionMetadata::parse(document.as_bytes()).unwrap();
    functions::put(&server.app, &caller, &warehouse, &path::table(namespace, name).unwrap(), &function).await
}

async fn delete(server: &Server, namespace: &str, name: &str) -> crate::catalog::Result<()> {
    let caller = server.app.auth.verify_bearer(&server.token, now_ms()).await.unwrap();
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    functions::delete(&server.app, &caller, &warehouse, &path::table(namespace, name).unwrap()).await
}

async fn a_function_is_stored_loaded_and_listed_to_the_letter(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.post("/namespaces", json!({"namespace": ["n", "m"]})).await.expect(200);
    let empty = server.get(FUNCTIONS).await.expect(200);
    assert_eq!(empty, json!({"identifiers": [], "next-page-token": null}));
    let first = document(UUID, "x + 2");
    assert_eq!(put(&server, "n%1Fm", "add one/2", &first).await.unwrap(), Stored::Created);
    let path = "/lakehouse/namespaces/n%1Fm/functions/add%20one%2F2";
    let loaded = server.send("GET", path, &[], "").await;
    assert_eq!(loaded.bytes, format!("{{\"metadata\":{first}}}").as_bytes());
    let listed = server.get("/lakehouse/namespaces/n%1Fm/functions").await.expect(200);
    assert_eq!(listed["identifiers"], json!([["n", "m", "add one/2"]]));
    assert_eq!(server.get(FUNCTIONS).await.expect(200)["identifiers"], json!([]));

    let second = document(UUID, "x + 1");
    assert_eq!(put(&server, "n%1Fm", "add one/2", &second).await.unwrap(), Stored::Replaced);
    assert_eq!(server.get(path).await.bytes, format!("{{\"metadata\":{second}}}").as_bytes());
}

async fn another_function_does_not_take_the_name(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let first = document(UUID, "x");
    put(&server, "n", "f", &first).await.unwrap();
    let taken = put(&server, "n", "f", &document(OTHER_UUID, "x")).await.unwrap_err();
    expect!["Function already exists with another function-uuid: n.f"].assert_eq(&taken.to_string());
    assert_eq!(server.get(&format!("{FUNCTIONS}/f")).await.bytes, format!("{{\"metadata\":{first}}}").as_bytes());
    put(&server, "n", "F", &document(OTHER_UUID, "x")).await.unwrap();
    // Tables and functions have names of their own.
    server.create_table("n", "f").await;
    delete(&server, "n", "f").await.unwrap();
    put(&server, "n", "f", &document(OTHER_UUID, "x")).await.unwrap();
}

async fn what_is_missing_is_said(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let missing = server.get(&format!("{FUNCTIONS}/t")).await;
    expect!["404 NoSuchFunctionException Function does not exist: n.t"].assert_eq(&missing.error());
    for path in ["/namespaces/no/functions/f", "/namespaces/no/functions"] {
        let missing = server.get(path).await;
        expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&missing.error());
    }
    let missing = put(&server, "no", "f", &document(UUID, "x")).await.unwrap_err();
    expect!["Namespace does not exist: no"].assert_eq(&missing.to_string());
    let missing = delete(&server, "n", "f").await.unwrap_err();
    expect!["Function does not exist: n.f"].assert_eq(&missing.to_string());
    let put = server.send("PUT", &format!("{FUNCTIONS}/f"), &[], document(UUID, "x")).await;
    assert_eq!((put.status.as_u16(), put.header("allow")), (405, Some("GET")));
}

async fn a_namespace_with_a_function_is_not_empty(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    put(&server, "n", "f", &document(UUID, "x")).await.unwrap();
    let refused = server.delete("/namespaces/n").await;
    expect!["409 NamespaceNotEmptyException Namespace is not empty: n"].assert_eq(&refused.error());
    delete(&server, "n", "f").await.unwrap();
    server.delete("/namespaces/n").await.expect(204);
}

async fn pages_of_functions_end_without_an_empty_one(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    for n in 0..4 {
        put(&server, "n", &format!("f{n}"), &document(UUID, "x")).await.unwrap();
    }
    let first = server.get(&format!("{FUNCTIONS}?pageToken=&pageSize=2")).await.expect(200);
    assert_eq!(first["identifiers"], json!([["n", "f0"], ["n", "f1"]]));
    let token = first["next-page-token"].as_str().unwrap();
    let second = server.get(&format!("{FUNCTIONS}?pageToken={token}&pageSize=2")).await.expect(200);
    assert_eq!(second, json!({"identifiers": [["n", "f2"], ["n", "f3"]], "next-page-token": null}));
    assert_eq!(server.get(&format!("{FUNCTIONS}?pageToken=&pageSize=0")).await.status, 400);
}

async fn of_racing_functions_one_takes_the_name(db: Db) {
    let server = Arc::new(Server::with_namespace(db, "n").await);
    let puts = (0..8).map(|_| {
        let server = Arc::clone(&server);
        let document = document(&Uuid::new_v4().to_string(), "x");
        tokio::spawn(async move { put(&server, "n", "f", &document).await.is_ok() })
    });
    let outcomes = futures_util::future::join_all(puts.collect::<Vec<_>>()).await;
    assert_eq!(outcomes.into_iter().filter(|outcome| *outcome.as_ref().unwrap()).count(), 1);
}

on_both! {
    a_function_is_stored_loaded_and_listed_to_the_letter,
    another_function_does_not_take_the_name,
    what_is_missing_is_said,
    a_namespace_with_a_function_is_not_empty,
    pages_of_functions_end_without_an_empty_one,
    of_racing_functions_one_takes_the_name,
}
