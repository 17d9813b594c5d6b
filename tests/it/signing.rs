//! Clients without keys: the catalog signs their requests, one by one, to their table's objects and no others.

use crate::{
    catalog::{Answer, Catalog, send},
    database::Database,
    s3::{BUCKET, REGION, S3},
    server::Server,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use md5::{Digest, Md5};
use reqwest::Method;
use serde_json::{Value, json};

on_both_databases! {
    signed_requests_reach_the_tables_objects,
    nothing_else_is_signed,
    staged_and_dropped_tables_are_signed_for_by_their_place,
    the_older_route_finds_the_table_by_its_place,
    a_signature_breaks_no_metadata,
}

const WANTED: (&str, &str) = ("x-iceberg-access-delegation", "remote-signing");

/// A client that holds nothing but its bearer token.
struct Client {
    catalog: Catalog,
    s3_url: String,
    /// Relative to the catalog's address, as the table's `config` names it.
    endpoint: String,
}

impl Client {
    async fn load(server: &Server, catalog: &Catalog, table: &str) -> (Client, String) {
        let path = format!("/v1/namespaces/ns/tables/{table}");
        let loaded = send(catalog.request(Method::GET, &path).header(WANTED.0, WANTED.1)).await;
        assert_eq!((loaded.header("etag"), loaded.header("cache-control")), (None, Some("no-store")));
        Client::of(server, catalog, &loaded.ok())
    }

    /// And the table's folder as a key.
    fn of(server: &Server, catalog: &Catalog, loaded: &Value) -> (Client, String) {
        let config = &loaded["config"];
        assert_eq!(config["s3.remote-signing-enabled"], "true", "{loaded}");
        assert_eq!(config["s3.signer.uri"], server.catalog_url());
        assert_eq!(config["s3.endpoint"], server.s3_url());
        assert_eq!(config.get("s3.secret-access-key"), None);
        assert_eq!(loaded.get("storage-credentials"), None);
        assert!(loaded["remote-signing-config"]["properties"].is_object());
        let endpoint = config["s3.signer.endpoint"].as_str().unwrap().to_owned();
        let folder = loaded["metadata"]["location"].as_str().unwrap();
        let folder = folder.strip_prefix(&format!("s3://{BUCKET}/")).unwrap().to_owned();
        (Client { catalog: catalog.clone(), s3_url: server.s3_url(), endpoint }, folder)
    }

    fn request(&self, method: &str, target: &str, headers: &Value, body: Option<&str>) -> Value {
        let uri = format!("{}/{target}", self.s3_url);
        let mut request = json!({"region": REGION, "uri": uri, "method": method, "headers": headers});
        if let Some(body) = body {
            request["body"] = json!(body);
        }
        request
    }

    async fn sign(&self, method: &str, target: &str) -> Answer {
        let request = self.request(method, target, &json!({}), None);
        self.catalog.post(&format!("/{}", self.endpoint), &request).await
    }

    /// Signs and sends.
    async fn ask(&self, method: &str, target: &str, body: &str) -> Answer {
        let headers = json!({"Range": ["bytes=0-99"], "amz-sdk-invocation-id": ["1"], "x-amz-meta-a": ["b"]});
        let request = self.request(method, target, &headers, None);
        let signed = self.catalog.post(&format!("/{}", self.endpoint), &request).await.ok();
        self.send(&signed, method, body).await
    }

    async fn send(&self, signed: &Value, method: &str, body: &str) -> Answer {
        let client = reqwest::Client::new();
        let mut request = client.request(method.parse().unwrap(), signed["uri"].as_str().unwrap());
        for (name, values) in signed["headers"].as_object().unwrap() {
            request = request.header(name, values[0].as_str().unwrap());
        }
        send(request.header("x-amz-meta-a", "b").header("range", "bytes=0-1").body(body.to_owned())).await
    }
}

async fn setup(database: Database) -> (Server, Catalog) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    catalog.create_table("ns", "u").await;
    (server, catalog)
}

async fn signed_requests_reach_the_tables_objects(database: Database) {
    let (server, catalog) = setup(database).await;
    let (client, folder) = Client::load(&server, &catalog, "t").await;
    let object = format!("{BUCKET}/{folder}/data/a%20b.parquet");
    assert_eq!(client.ask("PUT", &object, "rows").await.status, 200);
    let got = client.ask("GET", &object, "").await;
    assert_eq!((got.status, got.text()), (206, "ro".to_owned()), "the range is not part of the signature");
    assert_eq!(client.ask("HEAD", &object, "").await.status, 206);
    let listed = client.ask("GET", &format!("{BUCKET}?list-type=2&prefix={folder}/data/"), "").await;
    assert!(listed.text().contains("a b.parquet"), "{}", listed.text());
    let begun = client.ask("POST", &format!("{object}?uploads"), "").await;
    assert_eq!(begun.status, 200, "{}", begun.text());
    assert_eq!(client.ask("DELETE", &object, "").await.status, 204);
    // Only what may be sent again without a second look may be cached.
    for (method, cache) in [("GET", "private"), ("HEAD", "private"), ("PUT", "no-cache"), ("DELETE", "no-cache")] {
        assert_eq!(client.sign(method, &object).await.header("cache-control"), Some(cache), "{method}");
    }
}

async fn nothing_else_is_signed(database: Database) {
    let (server, catalog) = setup(database).await;
    let (client, folder) = Client::load(&server, &catalog, "t").await;
    let (_, other) = Client::load(&server, &catalog, "u").await;
    for (method, target) in [
        ("GET", format!("{BUCKET}/{other}/data/f")),
        ("PUT", format!("{BUCKET}/{other}/data/f")),
        ("GET", format!("{BUCKET}/{folder}-sibling/f")),
        ("GET", format!("{BUCKET}/{folder}")),
        ("GET", format!("other-bucket/{folder}/data/f")),
        ("GET", format!("{BUCKET}?list-type=2")),
        ("GET", format!("{BUCKET}?list-type=2&prefix={folder}")),
        ("GET", BUCKET.to_owned()),
        ("PUT", "new-bucket".to_owned()),
        ("DELETE", BUCKET.to_owned()),
        ("GET", String::new()),
        ("PUT", format!("{BUCKET}/{folder}/data/f?acl")),
        ("OPTIONS", format!("{BUCKET}/{folder}/data/f")),
    ] {
        client.sign(method, &target).await.error(403, "ForbiddenException");
    }
    let object = format!("{BUCKET}/{folder}/data/f");
    let elsewhere =
        json!({"region": REGION, "uri": format!("http://elsewhere:1/{object}"), "method": "GET", "headers": {}});
    let endpoint = format!("/{}", client.endpoint);
    catalog.post(&endpoint, &elsewhere).await.error(403, "ForbiddenException");
    let copy =
        client.request("PUT", &object, &json!({"x-amz-copy-source": [format!("{BUCKET}/{other}/data/f")]}), None);
    catalog.post(&endpoint, &copy).await.error(403, "ForbiddenException");
    let document = |keys: &[&str]| {
        let objects: String = keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
        format!("<Delete>{objects}</Delete>")
    };
    let (mine, theirs) = (format!("{folder}/data/f"), format!("{other}/data/f"));
    let both = document(&[&mine, &theirs]);
    let shown = client.request("POST", &format!("{BUCKET}?delete"), &json!({}), Some(&both));
    catalog.post(&endpoint, &shown).await.error(403, "ForbiddenException");
    // Not shown the document, the catalog signs; the store looks at it.
    let root = S3::root(&server);
    assert_eq!(root.put(BUCKET, &theirs, "theirs").await.status, 200);
    let hidden = client.request("POST", &format!("{BUCKET}?delete"), &json!({"x-amz-meta-a": ["b"]}), None);
    let signed = catalog.post(&endpoint, &hidden).await.ok();
    let outcome = client.send(&signed, "POST", &both).await;
    assert!(outcome.status != 200 || outcome.text().contains("<Code>AccessDenied</Code>"), "{}", outcome.text());
    assert_eq!(root.get(BUCKET, &theirs).await.text(), "theirs");
    assert_eq!(root.put(BUCKET, &mine, "mine").await.status, 200);
    let document = document(&[&mine]);
    let md5 = [STANDARD.encode(Md5::digest(document.as_bytes()))];
    let hidden =
        client.request("POST", &format!("{BUCKET}?delete"), &json!({"content-md5": md5, "x-amz-meta-a": ["b"]}), None);
    let mut signed = catalog.post(&endpoint, &hidden).await.ok();
    signed["headers"]["content-md5"] = json!(md5);
    assert_eq!(client.send(&signed, "POST", &document).await.status, 200);
    assert_eq!(root.get(BUCKET, &mine).await.status, 404);
    for bad in [
        json!({}),
        json!([]),
        json!({"region": REGION, "uri": "::", "method": "GET", "headers": {}}),
        json!({"region": REGION, "uri": format!("{}/{object}", server.s3_url()), "method": "G T", "headers": {}}),
        json!({"region": REGION, "uri": format!("{}/{object}", server.s3_url()), "method": "GET", "headers": {"a b": ["c"]}}),
        json!({"region": "a\nb", "uri": format!("{}/{object}", server.s3_url()), "method": "GET", "headers": {}}),
        json!({"region": REGION, "uri": format!("{}/{object}", server.s3_url()), "method": "GET", "headers": {}, "provider": "gcs"}),
    ] {
        catalog.post(&endpoint, &bad).await.error(400, "BadRequestException");
    }
    let anonymous = Catalog::anonymous(&server);
    anonymous
        .post(&endpoint, &client.request("GET", &object, &json!({}), None))
        .await
        .error(401, "NotAuthorizedException");
    let missing = client.request("GET", &object, &json!({}), None);
    let path = "/v1/namespaces/ns/tables/none/sign";
    catalog.post(path, &missing).await.error(404, "NoSuchTableException");
}

async fn staged_and_dropped_tables_are_signed_for_by_their_place(database: Database) {
    let (server, catalog) = setup(database).await;
    let fields = json!([{"id": 1, "name": "id", "required": true, "type": "long"}]);
    let body =
        json!({"name": "s", "schema": {"type": "struct", "schema-id": 0, "fields": fields}, "stage-create": true});
    let staged = send(catalog.request(Method::POST, "/v1/namespaces/ns/tables").header(WANTED.0, WANTED.1).json(&body));
    let (client, folder) = Client::of(&server, &catalog, &staged.await.ok());
    let object = format!("{BUCKET}/{folder}/data/f");
    assert_eq!(client.ask("PUT", &object, "rows").await.status, 200);
    client.sign("PUT", &format!("{BUCKET}/elsewhere")).await.error(403, "ForbiddenException");

    // The place may be passed on with the request instead of the address.
    let (path, place) = client.endpoint.split_once("?place=").unwrap();
    let mut request = client.request("GET", &object, &json!({}), None);
    catalog.post(&format!("/{path}"), &request).await.error(404, "NoSuchTableException");
    request["properties"] = json!({"place": place});
    catalog.post(&format!("/{path}"), &request).await.ok();
    for forged in [format!("{place}A"), "x".to_owned()] {
        request["properties"] = json!({"place": forged});
        catalog.post(&format!("/{path}"), &request).await.error(404, "NoSuchTableException");
    }

    let (client, folder) = Client::load(&server, &catalog, "t").await;
    let drop = catalog.request(Method::DELETE, "/v1/namespaces/ns/tables/t");
    assert_eq!(send(drop).await.status, 204);
    assert_eq!(client.ask("DELETE", &format!("{BUCKET}/{folder}/data/f"), "").await.status, 204);
    // What was given to one caller is nothing in another's hands.
    let made = catalog.post("/api/v1/keys", &json!({"principal": "other"})).await.ok();
    let other = Catalog::anonymous(&server);
    let token = other
        .token(&[
            ("grant_type", "client_credentials"),
            ("client_id", made["access-key-id"].as_str().unwrap()),
            ("client_secret", made["secret-access-key"].as_str().unwrap()),
        ])
        .await
        .ok();
    let other = Client { catalog: other.with_token(token["access_token"].as_str().unwrap()), ..client };
    other.sign("GET", &format!("{BUCKET}/{folder}/data/f")).await.error(404, "NoSuchTableException");
}

async fn the_older_route_finds_the_table_by_its_place(database: Database) {
    let (server, catalog) = setup(database).await;
    let (client, folder) = Client::load(&server, &catalog, "t").await;
    let client = Client { endpoint: "v1/aws/s3/sign".to_owned(), ..client };
    let object = format!("{BUCKET}/{folder}/data/f");
    assert_eq!(client.ask("PUT", &object, "rows").await.status, 200);
    assert_eq!(client.ask("GET", &object, "").await.text(), "ro");
    for target in [format!("{BUCKET}/{folder}"), format!("{BUCKET}/nobody/f"), BUCKET.to_owned()] {
        client.sign("GET", &target).await.error(403, "ForbiddenException");
    }
}

async fn a_signature_breaks_no_metadata(database: Database) {
    let (server, catalog) = setup(database).await;
    let (client, _) = Client::load(&server, &catalog, "t").await;
    let loaded = catalog.load_table("ns", "t").await.ok();
    let file = loaded["metadata-location"].as_str().unwrap().strip_prefix("s3://").unwrap().to_owned();
    for method in ["PUT", "DELETE"] {
        client.ask(method, &file, "rubbish").await.s3_error(403, "AccessDenied");
    }
    assert_eq!(client.ask("GET", &file, "").await.status, 206);
    assert_eq!(catalog.load_table("ns", "t").await.ok(), loaded);
}
