//! Who may reach objects: signatures, clocks, and the limits of vended keys.

use crate::{
    catalog::Catalog,
    database::Database,
    s3::{BUCKET, S3},
    server::{Server, until},
};
use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};

on_both_databases! {
    wrong_signatures_are_refused,
    skewed_clock_is_refused,
    presigned_url_works_until_it_expires,
    vended_keys_reach_their_table_only,
    vended_keys_end_when_another_table_takes_the_place,
    vended_keys_cannot_break_their_own_table,
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
    assert!(matches!(made_up_token.get(BUCKET, "kept").await.status, 400));

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

/// Loads a table with keys to it.
async fn load_with_keys(server: &Server, catalog: &Catalog, table: &str) -> (Value, S3) {
    let path = format!("/v1/namespaces/ns/tables/{table}");
    let load = catalog.request(Method::GET, &path).header("x-iceberg-access-delegation", "vended-credentials");
    let loaded = crate::catalog::send(load).await.ok();
    let keys = S3::vended(server, &loaded["config"]);
    (loaded, keys)
}

async fn create_at(catalog: &Catalog, table: &str, location: &str, stage: bool) -> Value {
    let fields = json!([{"id": 1, "name": "id", "required": true, "type": "long"}]);
    let schema = json!({"type": "struct", "schema-id": 0, "fields": fields});
    let body = json!({"name": table, "location": location, "schema": schema, "stage-create": stage});
    let create = catalog
        .request(Method::POST, "/v1/namespaces/ns/tables")
        .header("x-iceberg-access-delegation", "vended-credentials")
        .json(&body);
    crate::catalog::send(create).await.ok()
}

async fn vended_keys_end_when_another_table_takes_the_place(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let root = S3::root(&server);
    let folder = |name: &str| format!("s3://{BUCKET}/ns/{name}");

    // Moved away; until someone else comes, its old files are still its own.
    create_at(&catalog, "moved", &folder("a"), false).await;
    let (_, keys) = load_with_keys(&server, &catalog, "moved").await;
    let away = json!([{"action": "set-location", "location": folder("b")}]);
    catalog.commit("ns", "moved", json!([]), away).await.ok();
    assert_eq!(keys.put(BUCKET, "ns/a/data/old", "mine").await.status, 200);
    let (_, fresh) = load_with_keys(&server, &catalog, "moved").await;
    assert_eq!(fresh.put(BUCKET, "ns/b/data/new", "mine").await.status, 200);

    // Dropped: its client may clean up, unless the place has a new owner.
    create_at(&catalog, "dropped", &folder("c"), false).await;
    let (_, cleaner) = load_with_keys(&server, &catalog, "dropped").await;
    let (_, late) = load_with_keys(&server, &catalog, "dropped").await;
    assert_eq!(
        crate::catalog::send(catalog.request(Method::DELETE, "/v1/namespaces/ns/tables/dropped")).await.status,
        204
    );
    assert_eq!(cleaner.delete(BUCKET, "ns/c/data/f").await.status, 204);

    // Staged around places that tables will take.
    let staged = create_at(&catalog, "staged", &folder("around"), true).await;
    let around = S3::vended(&server, &staged["config"]);
    let unused = create_at(&catalog, "staged", &folder("around"), true).await;
    let unused = S3::vended(&server, &unused["config"]);
    assert_eq!(around.put(BUCKET, "ns/around/data/f", "staged").await.status, 200);

    create_at(&catalog, "on-a", &folder("a"), false).await;
    create_at(&catalog, "on-c", &folder("c/deeper"), false).await;
    create_at(&catalog, "inside", &folder("around/inside"), false).await;
    for key in ["ns/a/data/g", "ns/c/deeper/data/g", "ns/around/inside/data/g"] {
        assert_eq!(root.put(BUCKET, key, "theirs").await.status, 200);
    }
    late.get(BUCKET, "ns/c/deeper/data/g").await.s3_error(403, "AccessDenied");
    unused.get(BUCKET, "ns/around/inside/data/g").await.s3_error(403, "AccessDenied");
    unused.put(BUCKET, "ns/around/inside/data/g", "mine now").await.s3_error(403, "AccessDenied");
    // Keys in use are told within a moment.
    until(async || keys.get(BUCKET, "ns/a/data/g").await.status == 403).await;
    until(async || around.list(BUCKET, "ns/around/").await.status == 403).await;
    assert_eq!(root.get(BUCKET, "ns/around/inside/data/g").await.body, "theirs");
    // Those of the table that lives go on.
    assert_eq!(fresh.put(BUCKET, "ns/b/data/newer", "mine").await.status, 200);
    let (_, owner) = load_with_keys(&server, &catalog, "on-a").await;
    assert_eq!(owner.get(BUCKET, "ns/a/data/g").await.body, "theirs");
}

async fn vended_keys_cannot_break_their_own_table(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    let earlier = catalog.load_table("ns", "t").await.ok();
    catalog.set_property("ns", "t", "k", "v").await.ok();
    let (loaded, keys) = load_with_keys(&server, &catalog, "t").await;
    let file = |loaded: &Value| {
        let location = loaded["metadata-location"].as_str().unwrap();
        location.strip_prefix(&format!("s3://{BUCKET}/")).unwrap().to_owned()
    };
    let (current, earlier, mine) = (file(&loaded), file(&earlier), key_prefix(&loaded));
    let before = keys.get(BUCKET, &current).await.body;

    for key in [&current, &earlier] {
        keys.put(BUCKET, key, "rubbish").await.s3_error(403, "AccessDenied");
        assert_eq!(keys.put(BUCKET, &format!("{mine}/data/f"), "x").await.status, 200);
        let source = format!("{BUCKET}/{mine}/data/f");
        let path = format!("/{BUCKET}/{key}");
        keys.send(Method::PUT, &path, &[], &[("x-amz-copy-source", &source)], Bytes::new())
            .await
            .s3_error(403, "AccessDenied");
        keys.send(Method::POST, &path, &[("uploads", "")], &[], Bytes::new()).await.s3_error(403, "AccessDenied");
    }
    keys.delete(BUCKET, &current).await.s3_error(403, "AccessDenied");
    let outcome = keys.delete_many(BUCKET, &[&current, &format!("{mine}/data/f")]).await;
    assert_eq!(outcome.status, 200, "{}", outcome.text());
    assert!(outcome.text().contains("<Code>AccessDenied</Code>"), "{}", outcome.text());
    assert_eq!(keys.get(BUCKET, &format!("{mine}/data/f")).await.status, 404);
    assert_eq!(keys.get(BUCKET, &current).await.body, before);
    // What no table names is a client's to write and to delete; so is a file the table has left behind.
    let other = format!("{mine}/metadata/00009-mine.metadata.json");
    assert_eq!(keys.put(BUCKET, &other, "{}").await.status, 200);
    assert_eq!(keys.delete(BUCKET, &other).await.status, 204);
    assert_eq!(keys.delete(BUCKET, &earlier).await.status, 204);
    catalog.load_table("ns", "t").await.ok();
    // Once it is dropped its client deletes what is left.
    assert_eq!(crate::catalog::send(catalog.request(Method::DELETE, "/v1/namespaces/ns/tables/t")).await.status, 204);
    assert_eq!(keys.delete(BUCKET, &current).await.status, 204);
}

/// The key under which a table lives, without bucket or trailing slash.
fn key_prefix(loaded: &Value) -> String {
    let location = loaded["metadata"]["location"].as_str().unwrap();
    location.strip_prefix(&format!("s3://{BUCKET}/")).unwrap().to_owned()
}
