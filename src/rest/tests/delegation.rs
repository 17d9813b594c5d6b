use super::*;
use crate::auth::grants::{Action, Resource, allows};
use std::collections::BTreeSet;

const TABLES: &str = "/lakehouse/namespaces/n%20m/tables";
const WANTED: (&str, &str) = ("x-iceberg-access-delegation", "remote-signing, vended-credentials, telepathy");
const KEYS: [&str; 5] = [
    "client.refresh-credentials-endpoint",
    "s3.access-key-id",
    "s3.secret-access-key",
    "s3.session-token",
    "s3.session-token-expires-at-ms",
];

fn names(config: &Value) -> BTreeSet<&str> {
    config.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Checks an answer with keys; gives back its storage credential's config.
async fn check_keys(server: &Server, body: &Value) -> Value {
    let config = &body["config"];
    let plain = ["client.region", "s3.endpoint", "s3.path-style-access", "s3.region"];
    assert_eq!(names(config), plain.into_iter().chain(KEYS).collect());
    assert!(config.as_object().unwrap().values().all(Value::is_string), "settings are strings");
    assert_eq!(config["s3.path-style-access"], "true");
    let credentials = body["storage-credentials"].as_array().unwrap();
    assert_eq!(credentials.len(), 1, "Java takes exactly one");
    let prefix = format!("{}/", body["metadata"]["location"].as_str().unwrap());
    assert_eq!(credentials[0], json!({"prefix": prefix, "config": config}));
    check_scope(server, config, &prefix).await;
    config.clone()
}

/// Checks that the keys open the table's folder and nothing beside it.
async fn check_scope(server: &Server, config: &Value, prefix: &str) {
    let identity = server
        .app
        .auth
        .signing_identity(config["s3.access-key-id"].as_str().unwrap(), config["s3.session-token"].as_str(), now_ms())
        .await
        .unwrap();
    assert_eq!(identity.secret.expose_secret(), config["s3.secret-access-key"].as_str().unwrap());
    let authority = &identity.caller.authority;
    let folder = prefix.strip_prefix("s3://lake/").unwrap();
    let may = |action, key: &str| allows(authority, action, Resource::Object { bucket: "lake", key });
    for action in [Action::GetObject, Action::PutObject, Action::DeleteObject, Action::ListObjects] {
        assert!(may(action, &format!("{folder}data/x")));
        assert!(!may(action, "wh/other"));
        assert!(!may(action, &format!("{}-sibling/x", folder.trim_end_matches('/'))));
    }
    let expires: i64 = config["s3.session-token-expires-at-ms"].as_str().unwrap().parse().unwrap();
    assert!(expires > now_ms());
}

async fn server(db: Db) -> Server {
    Server::with_namespace(db, "n m").await
}

async fn create_load_and_stage_vend_keys_to_those_who_ask(db: Db) {
    let server = server(db).await;
    let body = new_table("t+u").to_string();
    let reply = server.send("POST", TABLES, &[WANTED], body).await;
    assert_eq!((reply.header("etag"), reply.header("cache-control")), (None, Some("no-store")));
    check_keys(&server, &reply.expect(200)).await;

    let path = format!("{TABLES}/t%2Bu");
    let loaded = server.send("GET", &path, &[WANTED], "").await;
    assert_eq!((loaded.header("etag"), loaded.header("cache-control")), (None, Some("no-store")));
    let config = check_keys(&server, &loaded.expect(200)).await;
    assert_eq!(
        config["client.refresh-credentials-endpoint"],
        "/v1/lakehouse/namespaces/n%20m/tables/t%2Bu/credentials"
    );

    let staged = json!({"name": "s", "schema": schema(), "stage-create": true}).to_string();
    let staged = server.send("POST", TABLES, &[WANTED], staged).await.expect(200);
    check_keys(&server, &staged).await;
}

async fn nobody_else_gets_any_part_of_a_key(db: Db) {
    let server = server(db).await;
    let created = server.post(TABLES, new_table("t")).await.expect(200);
    let unknown = ("x-iceberg-access-delegation", "telepathy");
    let loaded = server.send("GET", &format!("{TABLES}/t"), &[unknown], "").await.expect(200);
    for body in [created, loaded] {
        assert!(KEYS.iter().all(|key| body["config"].get(key).is_none()));
        assert_eq!(body.get("storage-credentials"), None);
        assert_eq!(body["config"]["s3.endpoint"], json!(server.app.settings.s3_url));
    }
}

async fn an_answer_with_keys_is_never_not_modified(db: Db) {
    let server = server(db).await;
    server.post(TABLES, new_table("t")).await.expect(200);
    let path = format!("{TABLES}/t");
    let tag = server.get(&path).await.header("etag").unwrap().to_owned();
    server.send("GET", &path, &[("if-none-match", &tag)], "").await.expect(304);
    server.send("GET", &path, &[("if-none-match", &tag), WANTED], "").await.expect(200);
}

async fn keys_are_renewed_by_the_route_that_the_config_names(db: Db) {
    let server = server(db).await;
    server.post(TABLES, new_table("t")).await.expect(200);
    let loaded = server.send("GET", &format!("{TABLES}/t"), &[WANTED], "").await.expect(200);
    let route = loaded["config"]["client.refresh-credentials-endpoint"].as_str().unwrap();
    let reply = server.get(route.strip_prefix("/v1").unwrap()).await;
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let body = reply.expect(200);
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["storage-credentials"]);
    let credentials = body["storage-credentials"].as_array().unwrap();
    assert_eq!(credentials.len(), 1);
    let prefix = credentials[0]["prefix"].as_str().unwrap();
    assert_eq!(prefix, loaded["storage-credentials"][0]["prefix"].as_str().unwrap());
    check_scope(&server, &credentials[0]["config"], prefix).await;
    let missing = server.get(&format!("{TABLES}/missing/credentials")).await;
    assert!(missing.error().starts_with("404 NoSuchTableException "));
}

async fn vended_keys_open_no_catalog(db: Db) {
    let server = server(db).await;
    server.post(TABLES, new_table("t")).await.expect(200);
    let loaded = server.send("GET", &format!("{TABLES}/t"), &[WANTED], "").await.expect(200);
    let token = loaded["config"]["s3.session-token"].as_str().unwrap();
    let request = http::Request::get("/v1/config").header("authorization", format!("Bearer {token}"));
    let reply = server.raw(request.body(Body::empty()).unwrap()).await;
    assert_eq!(reply.error(), "401 NotAuthorizedException Not authorized");
}

on_both! {
    create_load_and_stage_vend_keys_to_those_who_ask,
    nobody_else_gets_any_part_of_a_key,
    an_answer_with_keys_is_never_not_modified,
    keys_are_renewed_by_the_route_that_the_config_names,
    vended_keys_open_no_catalog,
}
