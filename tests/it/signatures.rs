//! Who may reach objects: signatures, clocks, and the limits of vended keys.

use crate::{
    catalog::Catalog,
    database::Database,
    s3::{BUCKET, S3},
    server::Server,
};
use bytes::Bytes;
use reqwest::Method;
use serde_json::Value;

on_both_databases! {
    wrong_signatures_are_refused,
    skewed_clock_is_refused,
    presigned_url_works_until_it_expires,
    vended_keys_reach_their_table_only,
}

async fn wrong_signatures_are_refused(database: Database) {
    let server = Server::start(database).await;
    let root = S3::root(&server);
    assert_eq!(root.put(BUCKET, "kept", "before").await.status, 200);
    let wrong_secret = S3 { secret: "wrong".to_owned(), ..root.clone() };
    wrong_secret.get(BUCKET, "kept").await.s3_error(403, "SignatureDoesNotMatch");
    wrong_secret.put(BUCKET, "kept", "after").await.s3_error(403, "SignatureDoesNotMatch");
    wrong_secret.delete(BUCKET, "kept").await.s3_error(403, "SignatureDoesNotMatch");
    let unknown = S3 { access_key_id: "NOBODY".to_owned(), ..root.clone() };
    unknown.get(BUCKET, "kept").await.s3_error(403, "InvalidAccessKeyId");
    let made_up_token = S3 { session_token: Some("made-up".to_owned()), ..root.clone() };
    assert!(matches!(made_up_token.get(BUCKET, "kept").await.status, 400 | 403));

    let unsigned = reqwest::get(format!("{}/{BUCKET}/kept", server.s3_url())).await.unwrap();
    assert_eq!(unsigned.status(), 403);
    let presigned = root.presigned(Method::GET, BUCKET, "kept", 60).replace("kept", "kepu");
    assert_eq!(reqwest::get(presigned).await.unwrap().status(), 403);
    assert_eq!(root.get(BUCKET, "kept").await.body, "before");
}

async fn skewed_clock_is_refused(database: Database) {
    let server = Server::start(database).await;
    let root = S3::root(&server);
    for hours in [-2, 2] {
        let skewed = S3 { skew_ms: hours * 3_600_000, ..root.clone() };
        skewed.put(BUCKET, "new", "bytes").await.s3_error(403, "RequestTimeTooSkewed");
    }
    root.get(BUCKET, "new").await.s3_error(404, "NoSuchKey");
}

async fn presigned_url_works_until_it_expires(database: Database) {
    let server = Server::start(database).await;
    let root = S3::root(&server);
    let client = reqwest::Client::new();
    let put = client.put(root.presigned(Method::PUT, BUCKET, "a b+c/ü", 60)).body("bytes").send().await.unwrap();
    assert_eq!(put.status(), 200);
    let get = reqwest::get(root.presigned(Method::GET, BUCKET, "a b+c/ü", 60)).await.unwrap();
    assert_eq!(get.bytes().await.unwrap(), "bytes");
    let past = S3 { skew_ms: -120_000, ..root };
    let expired = reqwest::get(past.presigned(Method::GET, BUCKET, "a b+c/ü", 60)).await.unwrap();
    crate::catalog::Answer::of(expired).await.unwrap().s3_error(403, "AccessDenied");
}

async fn vended_keys_reach_their_table_only(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    catalog.create_table("ns", "u").await;
    let load = catalog
        .request(Method::GET, "/v1/namespaces/ns/tables/t")
        .header("x-iceberg-access-delegation", "vended-credentials");
    let loaded = crate::catalog::send(load).await.ok();
    let config = &loaded["config"];
    assert_eq!(config["s3.endpoint"], server.s3_url());
    assert_eq!(config["s3.path-style-access"], "true");
    assert_eq!(config["client.region"], "us-east-1");
    let credentials = loaded["storage-credentials"].as_array().cloned().unwrap_or_default();
    assert_eq!(credentials.len(), 1, "{loaded}");
    assert_eq!(credentials[0]["config"]["s3.access-key-id"], config["s3.access-key-id"]);

    let vended = S3::vended(&server, config);
    let mine = key_prefix(&loaded);
    let others = key_prefix(&catalog.load_table("ns", "u").await.ok());
    assert_eq!(vended.put(BUCKET, &format!("{mine}/data/f"), "rows").await.status, 200);
    assert_eq!(vended.get(BUCKET, &format!("{mine}/data/f")).await.body, "rows");
    let root = S3::root(&server);
    for key in [format!("{others}/data/f"), format!("{mine}-sibling/f"), "elsewhere".to_owned()] {
        assert_eq!(root.put(BUCKET, &key, "others").await.status, 200, "{key}");
        vended.get(BUCKET, &key).await.s3_error(403, "AccessDenied");
        vended.put(BUCKET, &key, "mine now").await.s3_error(403, "AccessDenied");
        vended.delete(BUCKET, &key).await.s3_error(403, "AccessDenied");
        assert_eq!(root.get(BUCKET, &key).await.body, "others");
    }
    vended.list(BUCKET, "").await.s3_error(403, "AccessDenied");
    vended.send(Method::GET, "/", &[], &[], Bytes::new()).await.s3_error(403, "AccessDenied");
    assert_eq!(vended.keys(BUCKET, &format!("{mine}/data/")).await, [format!("{mine}/data/f")]);
    let forged = S3 { session_token: vended.session_token.as_ref().map(|token| format!("{token}A")), ..vended.clone() };
    assert!(matches!(forged.get(BUCKET, &format!("{mine}/data/f")).await.status, 400 | 403));
    assert_eq!(vended.delete(BUCKET, &format!("{mine}/data/f")).await.status, 204);

    let refreshed = catalog.get("/v1/namespaces/ns/tables/t/credentials").await.ok();
    let refreshed = &refreshed["storage-credentials"][0]["config"];
    assert_eq!(S3::vended(&server, refreshed).put(BUCKET, &format!("{mine}/data/g"), "rows").await.status, 200);
}

/// The key under which a table lives, without bucket or trailing slash.
fn key_prefix(loaded: &Value) -> String {
    let location = loaded["metadata"]["location"].as_str().unwrap();
    location.strip_prefix(&format!("s3://{BUCKET}/")).unwrap().to_owned()
}
