//! What an operator sees, and what nobody may see there.

use crate::{
    catalog::{Catalog, send},
    database::Database,
    s3::{BUCKET, S3},
    server::{ROOT_ID, ROOT_SECRET, Server, Setup},
};
use reqwest::Method;
use serde_json::Value;

on_both_databases! {
    metrics_count_requests_commits_and_bytes,
    no_secret_reaches_a_log,
}

async fn metrics_count_requests_commits_and_bytes(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    catalog.set_property("ns", "t", "a", "b").await.ok();
    S3::root(&server).put(BUCKET, "k", "bytes").await;
    let metrics = reqwest::get(format!("{}/metrics", server.metrics_url())).await.unwrap().text().await.unwrap();
    for name in ["requests", "commits", "s3", "cache", "database"] {
        let counted = metrics.lines().any(|line| line.starts_with("tidewater_") && line.contains(name));
        assert!(counted, "nothing about {name} in\n{metrics}");
    }
    assert!(!metrics.contains(ROOT_SECRET));
    let on_catalog = Catalog::anonymous(&server).get("/metrics").await.status;
    assert!(matches!(on_catalog, 400 | 401 | 404), "metrics have a listener of their own: {on_catalog}");
}

async fn no_secret_reaches_a_log(database: Database) {
    let server = Setup::on(database).await.flag("log", "trace").start().await;
    let anonymous = Catalog::anonymous(&server);
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    let load = catalog
        .request(Method::GET, "/v1/namespaces/ns/tables/t")
        .header("x-iceberg-access-delegation", "vended-credentials");
    let config = send(load).await.ok()["config"].clone();
    let vended = S3::vended(&server, &config);
    let root = S3::root(&server);
    root.put(BUCKET, "k", "bytes").await;
    let presigned = root.presigned(Method::GET, BUCKET, "k", 60);
    reqwest::get(&presigned).await.unwrap();
    // Things that go wrong are logged in more words.
    S3 { secret: "wrong-secret-of-the-test".to_owned(), ..root.clone() }.get(BUCKET, "k").await;
    vended.get(BUCKET, "k").await;
    let form =
        [("grant_type", "client_credentials"), ("client_id", ROOT_ID), ("client_secret", "wrong-secret-of-the-test")];
    anonymous.token(&form).await;
    send(anonymous.request(Method::POST, "/v1/oauth/tokens").basic_auth(ROOT_ID, Some("wrong-secret-of-the-test")))
        .await;
    anonymous.with_token("wrong-secret-of-the-test").get("/v1/namespaces").await;
    catalog.post_bytes("/v1/oauth/tokens", format!("grant_type=x&client_secret={ROOT_SECRET}")).await;

    let log = server.log();
    let signature = presigned.split("X-Amz-Signature=").nth(1).unwrap().to_owned();
    let token = vended.session_token.clone().unwrap();
    let secrets = [ROOT_SECRET, catalog.bearer(), &vended.secret, &token, &signature, "wrong-secret-of-the-test"];
    for secret in secrets {
        let line = log.lines().find(|line| line.contains(secret));
        assert!(line.is_none(), "a secret is logged: {}", line.unwrap_or_default());
    }
    assert!(log.contains("/v1/namespaces"), "requests are logged:\n{log}");
}

#[tokio::test]
async fn request_id_is_echoed_and_logged() {
    let server = Setup::on(Database::Sqlite).await.flag("log-format", "json").start().await;
    let catalog = Catalog::login(&server).await;
    let answer = send(catalog.request(Method::GET, "/v1/namespaces").header("x-request-id", "tide-42")).await;
    assert_eq!(answer.header("x-request-id"), Some("tide-42"));
    let made = catalog.get("/v1/namespaces").await;
    assert!(made.header("x-request-id").is_some_and(|id| !id.is_empty()));
    let log = server.log();
    let line =
        log.lines().find(|line| line.contains("tide-42")).unwrap_or_else(|| panic!("no line of the request in\n{log}"));
    let line: Value = serde_json::from_str(line).expect("a line is JSON");
    let text = line.to_string();
    for told in ["listNamespaces", "200", "root"] {
        assert!(text.contains(told), "no {told} in {text}");
    }
}

#[tokio::test]
async fn hostile_request_id_is_replaced() {
    let server = Server::start(Database::Sqlite).await;
    let catalog = Catalog::login(&server).await;
    let hostile = "x".repeat(5_000);
    let answer = send(catalog.request(Method::GET, "/v1/namespaces").header("x-request-id", &hostile)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("x-request-id").is_some_and(|id| id.len() < 200));
}
