//! Warehouses on another S3 store: a second server plays it.

use crate::{
    catalog::{Answer, Catalog, send},
    database::Database,
    history::{at_once, chain, create_table},
    s3::{BUCKET, REGION, S3, elements},
    server::{ROOT_ID, ROOT_SECRET, Server, Setup, until},
};
use reqwest::Method;
use serde_json::{Value, json};

on_both_databases! {
    tables_live_on_another_store,
    requests_to_another_store_are_signed_for_one_table,
    session_keys_open_one_table,
    static_keys_are_handed_out_where_told,
    a_storage_that_does_not_serve_is_refused_by_the_step,
    warehouses_are_made_changed_and_deleted,
    a_store_that_is_away_is_no_loss,
}

const WAREHOUSES: &str = "/api/v1/warehouses";

fn storage(store: &Server, delegation: &str) -> Value {
    json!({
        "type": "s3", "endpoint": store.s3_url(), "region": REGION, "access-key-id": ROOT_ID,
        "secret-access-key": ROOT_SECRET, "delegation": delegation,
    })
}

fn warehouse(name: &str, store: &Server, delegation: &str) -> Value {
    json!({"name": name, "location": format!("s3://{BUCKET}/{name}"), "storage": storage(store, delegation)})
}

/// A store, and a catalog whose default warehouse is there. The catalog's own store stays empty.
async fn catalog_on_another_store(database: Database, delegation: &str) -> (Server, Server, Catalog) {
    let store = Server::start(Database::Sqlite).await;
    let server = Setup::on(database).await.flag("bucket", "own-bucket").flag("warehouse", "own").start().await;
    let catalog = Catalog::login(&server).await;
    catalog.post(WAREHOUSES, &warehouse("ext", &store, delegation)).await.ok();
    catalog.post("/v1/ext/namespaces", &json!({"namespace": ["ns"], "properties": {}})).await.ok();
    (store, server, catalog)
}

async fn make_table(catalog: &Catalog, table: &str, wanted: &str) -> Value {
    let fields = json!([{"id": 1, "name": "id", "required": true, "type": "long"}]);
    let body = json!({"name": table, "schema": {"type": "struct", "schema-id": 0, "fields": fields}});
    let request = catalog.request(Method::POST, "/v1/ext/namespaces/ns/tables").json(&body);
    send(request.header("x-iceberg-access-delegation", wanted)).await.ok()
}

/// The key of a place in the store's bucket.
fn key(location: &Value) -> String {
    let location = location.as_str().expect("a location");
    location.strip_prefix(&format!("s3://{BUCKET}/")).expect("a place in the other store").to_owned()
}

async fn tables_live_on_another_store(database: Database) {
    let (store, server, catalog) = catalog_on_another_store(database, "remote-signing").await;
    let created = make_table(&catalog, "t", "").await;
    let config = &created["config"];
    assert_eq!(config["s3.endpoint"], store.s3_url());
    assert_eq!(config["s3.path-style-access"], "true");
    assert_eq!(config.get("s3.secret-access-key"), None);
    let defaults = catalog.get("/v1/config?warehouse=ext").await.ok();
    assert_eq!(defaults["defaults"]["s3.endpoint"], store.s3_url());

    let path = "/v1/ext/namespaces/ns/tables/t";
    let updates = json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]});
    let committed = catalog.post(path, &updates).await.ok();
    assert_eq!(catalog.get(path).await.ok()["metadata"], committed["metadata"]);
    let (at_store, own) = (S3::root(&store), S3::root(&server));
    let file = at_store.get(BUCKET, &key(&committed["metadata-location"])).await;
    assert_eq!(file.json(), committed["metadata"]);
    assert!(own.keys("own-bucket", "").await.is_empty(), "nothing lies in the catalog's own store");

    let folder = key(&created["metadata"]["location"]);
    send(catalog.request(Method::DELETE, &format!("{path}?purgeRequested=true"))).await.ok();
    until(async || at_store.keys(BUCKET, &folder).await.is_empty()).await;
}

async fn requests_to_another_store_are_signed_for_one_table(database: Database) {
    let (store, _server, catalog) = catalog_on_another_store(database, "remote-signing").await;
    // Keys are asked for; this storage has none to give, and says how else.
    let created = make_table(&catalog, "t", "vended-credentials").await;
    let other = make_table(&catalog, "u", "vended-credentials").await;
    let config = &created["config"];
    assert_eq!(config["s3.remote-signing-enabled"], "true");
    assert_eq!(config.get("s3.secret-access-key"), None);
    let credentials = catalog.get("/v1/ext/namespaces/ns/tables/t/credentials").await.ok();
    assert_eq!(credentials, json!({"storage-credentials": []}));
    let endpoint = config["s3.signer.endpoint"].as_str().unwrap();
    let sign = async |method: &str, key: &str, body: Option<&str>| -> Answer {
        let uri = format!("{}/{BUCKET}{key}", store.s3_url());
        let mut request = json!({"region": "elsewhere", "uri": uri, "method": method, "headers": {}});
        if let Some(body) = body {
            request["body"] = json!(body);
        }
        catalog.post(&format!("/{endpoint}"), &request).await
    };
    let folder = key(&created["metadata"]["location"]);
    let object = format!("/{folder}/data/a.parquet");
    for (method, status) in [("PUT", 200), ("GET", 200), ("DELETE", 204)] {
        let signed = sign(method, &object, None).await.ok();
        let client = reqwest::Client::new();
        let mut request = client.request(method.parse().unwrap(), signed["uri"].as_str().unwrap());
        for (name, values) in signed["headers"].as_object().unwrap() {
            request = request.header(name, values[0].as_str().unwrap());
        }
        assert_eq!(send(request.body(if method == "PUT" { "rows" } else { "" })).await.status, status, "{method}");
    }

    let metadata = format!("/{}", key(&created["metadata-location"]));
    let elsewhere = format!("/{}/data/a.parquet", key(&other["metadata"]["location"]));
    let beside = format!("/{folder}2/a");
    for (method, key, body) in [
        ("GET", elsewhere.as_str(), None),
        ("PUT", beside.as_str(), None),
        ("PUT", metadata.as_str(), None),
        ("DELETE", metadata.as_str(), None),
        ("POST", "?delete", None),
        ("POST", "?delete", Some("<Delete><Object><Key>other</Key></Object></Delete>")),
        ("GET", "?list-type=2&prefix=", None),
        ("DELETE", "", None),
    ] {
        sign(method, key, body).await.error(403, "ForbiddenException");
    }
    for (method, key) in [
        ("GET", format!("/{folder}/../x")),
        ("GET", format!("/{folder}/%2e%2e/x")),
        ("DELETE", format!("/{folder}/x?versionId=null")),
        ("GET", format!("?list-type=2&prefix={folder}%2F&prefix=")),
    ] {
        sign(method, &key, None).await.error(403, "ForbiddenException");
    }
    let deletion = format!("<Delete><Object><Key>{folder}/data/x</Key></Object></Delete>");
    let uri = format!("{}/{BUCKET}?delete", store.s3_url());
    let headers = json!({"x-amz-content-sha256": ["UNSIGNED-PAYLOAD"]});
    let unsigned = json!({"region": REGION, "uri": uri, "method": "POST", "headers": headers, "body": deletion});
    catalog.post(&format!("/{endpoint}"), &unsigned).await.error(403, "ForbiddenException");
    sign("POST", "?delete", Some(&deletion)).await.ok();
    sign("GET", &metadata, None).await.ok();
}

async fn session_keys_open_one_table(database: Database) {
    let (store, server, catalog) = catalog_on_another_store(database, "session-keys").await;
    let created = make_table(&catalog, "t", "vended-credentials").await;
    let other = make_table(&catalog, "u", "vended-credentials").await;
    let config = &created["config"];
    assert_ne!(config["s3.access-key-id"], ROOT_ID);
    assert!(config["s3.session-token-expires-at-ms"].is_string());
    let keys = S3 { url: store.s3_url(), ..S3::vended(&server, config) };
    let folder = key(&created["metadata"]["location"]);
    let object = format!("{folder}/data/a.parquet");
    assert_eq!(keys.put(BUCKET, &object, "rows").await.status, 200);
    assert_eq!(keys.get(BUCKET, &object).await.body, "rows");
    let listed = keys.list(BUCKET, &format!("{folder}/data/")).await;
    assert_eq!(elements(&listed.text(), "Key").collect::<Vec<_>>(), [object.as_str()]);
    assert_eq!(keys.delete(BUCKET, &object).await.status, 204);

    let elsewhere = key(&other["metadata"]["location"]);
    keys.put(BUCKET, &format!("{elsewhere}/data/a"), "x").await.s3_error(403, "AccessDenied");
    keys.get(BUCKET, &key(&other["metadata-location"])).await.s3_error(403, "AccessDenied");
    keys.list(BUCKET, "").await.s3_error(403, "AccessDenied");
    keys.put(BUCKET, &key(&created["metadata-location"]), "x").await.s3_error(403, "AccessDenied");
    assert_eq!(keys.get(BUCKET, &key(&created["metadata-location"])).await.status, 200);

    let path = "/v1/ext/namespaces/ns/tables/t/credentials";
    let renewed = catalog.get(path).await.ok();
    let prefix = renewed["storage-credentials"][0]["prefix"].as_str().unwrap();
    assert_eq!(prefix, format!("s3://{BUCKET}/{folder}/"));
}

async fn static_keys_are_handed_out_where_told(database: Database) {
    let (store, _server, catalog) = catalog_on_another_store(database, "static-keys").await;
    let created = make_table(&catalog, "t", "vended-credentials").await;
    let config = &created["config"];
    assert_eq!((&config["s3.access-key-id"], &config["s3.secret-access-key"]), (&json!(ROOT_ID), &json!(ROOT_SECRET)));
    assert_eq!((config.get("s3.session-token"), config.get("s3.session-token-expires-at-ms")), (None, None));
    assert_eq!(config["s3.endpoint"], store.s3_url());
}

async fn a_storage_that_does_not_serve_is_refused_by_the_step(database: Database) {
    let store = Server::start(Database::Sqlite).await;
    let server = Setup::on(database).await.flag("bucket", "own-bucket").start().await;
    let catalog = Catalog::login(&server).await;
    let with = |name: &str, value: Value| {
        let mut body = warehouse("ext", &store, "remote-signing");
        body["storage"][name] = value;
        body
    };
    let elsewhere = |location: &str| {
        let mut body = warehouse("ext", &store, "remote-signing");
        body["location"] = json!(location);
        body
    };
    for (body, named) in [
        (with("secret-access-key", json!("wrong-secret")), "writing an object failed"),
        (with("access-key-id", json!("NOBODY")), "writing an object failed"),
        (elsewhere("s3://no-such-bucket/x"), "writing an object failed"),
        (with("endpoint", json!("http://127.0.0.1:1")), "writing an object failed"),
        (with("endpoint", json!(format!("{}/path", store.s3_url()))), "not an endpoint"),
        (with("endpoint", json!("ftp://127.0.0.1")), "not an endpoint"),
        (with("region", json!("")), "region"),
        (with("delegation", json!("all")), "bad request body"),
        (with("unknown", json!(1)), "bad request body"),
        (elsewhere("gs://bucket"), "s3://bucket"),
        (elsewhere("s3://lakehouse-warehouse/a//b"), "empty or dotted segment"),
        (elsewhere("s3://lakehouse-warehouse/*"), "prefix"),
        (elsewhere("s3://own-bucket/x"), "another warehouse"),
        (json!({"name": "..", "location": "s3://b-ucket"}), "not a name"),
        (json!({"name": "ext", "location": "s3://B"}), "bucket"),
    ] {
        let message = catalog.post(WAREHOUSES, &body).await.error(400, "BadRequestException");
        assert!(message.contains(named), "{body}: {message}");
        assert!(!message.contains(ROOT_SECRET), "{message}");
    }
    let listed = catalog.get(WAREHOUSES).await.ok();
    assert_eq!(listed["warehouses"].as_array().map(Vec::len), Some(1), "{listed}");
    assert!(S3::root(&store).keys(BUCKET, "").await.is_empty(), "a trial leaves nothing behind");
    catalog.with_token("none").post(WAREHOUSES, &json!({})).await.error(401, "NotAuthorizedException");
}

async fn warehouses_are_made_changed_and_deleted(database: Database) {
    let (store, mut server, catalog) = catalog_on_another_store(database, "remote-signing").await;
    let embedded = json!({"name": "team a/prod", "location": "s3://team-bucket/prod"});
    catalog.post(WAREHOUSES, &embedded).await.ok();
    catalog.post(WAREHOUSES, &embedded).await.error(409, "AlreadyExistsException");
    let names = |listed: &Value| -> Vec<String> {
        let all = listed["warehouses"].as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let listed = catalog.get(WAREHOUSES).await;
    assert_eq!(names(&listed.ok()), ["ext", "own", "team a/prod"]);
    assert!(!listed.text().contains(ROOT_SECRET));
    let shown = catalog.get(&format!("{WAREHOUSES}/ext")).await.ok();
    assert_eq!((&shown["storage"]["endpoint"], &shown["storage"]["type"]), (&json!(store.s3_url()), &json!("s3")));

    catalog.get(&format!("{WAREHOUSES}/none")).await.error(404, "NoSuchWarehouseException");
    let remove = async |name: &str| send(catalog.request(Method::DELETE, &format!("{WAREHOUSES}/{name}"))).await;
    remove("ext").await.error(409, "WarehouseNotEmptyException");
    remove("own").await.error(400, "BadRequestException");
    remove("none").await.error(404, "NoSuchWarehouseException");
    remove("team%20a%2Fprod").await.ok();
    catalog.get("/v1/config?warehouse=team%20a%2Fprod").await.error(404, "NoSuchWarehouseException");

    let put =
        async |body: &Value| send(catalog.request(Method::PUT, &format!("{WAREHOUSES}/ext/storage")).json(body)).await;
    let mut wrong = storage(&store, "static-keys");
    wrong["secret-access-key"] = json!("wrong-secret");
    put(&wrong).await.error(400, "BadRequestException");
    assert_eq!(catalog.get(&format!("{WAREHOUSES}/ext")).await.ok(), shown, "a refused change changes nothing");
    let changed = put(&storage(&store, "static-keys")).await.ok();
    assert_eq!(changed["storage"]["delegation"], "static-keys");
    server.kill();
    server.restart().await;
    let catalog = Catalog::login(&server).await;
    assert_eq!(catalog.get(&format!("{WAREHOUSES}/ext")).await.ok(), changed);
    make_table(&catalog, "t", "").await;
}

async fn a_store_that_is_away_is_no_loss(database: Database) {
    let (mut store, mut server, catalog) = catalog_on_another_store(database, "remote-signing").await;
    make_table(&catalog, "t", "").await;
    store.kill();
    let path = "/v1/ext/namespaces/ns/tables/t";
    let updates = json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]});
    catalog.post(path, &updates).await.error(503, "ServiceUnavailableException");
    server.kill();
    server.restart().await;
    let catalog = Catalog::login(&server).await;
    catalog.get(path).await.error(503, "ServiceUnavailableException");
    store.restart().await;
    assert_eq!(catalog.get(path).await.ok()["metadata"]["properties"].get("a"), None);
    assert_eq!(catalog.post(path, &updates).await.ok()["metadata"]["properties"]["a"], "b");
}

/// Two processes on one database, the files in a third one's store: every acknowledged commit is in one chain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_through_two_processes_make_one_chain() {
    const WRITERS: usize = 8;
    const COMMITS: usize = 10;
    let store = Server::start(Database::Sqlite).await;
    let master_key = "7".repeat(64);
    let first = Setup::on(Database::Postgres).await.flag("bucket", "own-bucket").flag("warehouse", "own");
    let first = first.variable("TIDEWATER_MASTER_KEY", &master_key).start().await;
    Catalog::login(&first).await.post(WAREHOUSES, &warehouse("shared", &store, "remote-signing")).await.ok();
    let one = Setup::replica_of(&first).flag("warehouse", "shared").start().await;
    let two = Setup::replica_of(&first).flag("warehouse", "shared").start().await;
    let catalogs = [Catalog::login(&one).await, Catalog::login(&two).await];
    catalogs[0].create_namespace("ns").await;
    let created = create_table(&catalogs[0], "t").await;

    let acknowledged = at_once(WRITERS, |writer| {
        let catalog = catalogs[writer % 2].clone();
        async move {
            let mut files = Vec::new();
            while files.len() < COMMITS {
                let name = format!("w{writer}-{}", files.len());
                let answer = catalog.set_property("ns", "t", &name, "x").await;
                match answer.status {
                    200 => files.push(answer.json()["metadata-location"].as_str().unwrap().to_owned()),
                    // The other process was faster, often: the client tries again.
                    409 => drop(answer.error(409, "CommitFailedException")),
                    status => panic!("{status} {}", answer.text()),
                }
            }
            files
        }
    })
    .await;
    let acknowledged: Vec<String> = acknowledged.into_iter().flatten().collect();
    let chain = chain(&store, &catalogs[1], "t", &created).await;
    assert_eq!(chain.len(), 1 + WRITERS * COMMITS);
    assert!(acknowledged.iter().all(|file| chain.contains(file)));
    let properties = catalogs[0].load_table("ns", "t").await.ok()["metadata"]["properties"].clone();
    let written = properties.as_object().unwrap().keys().filter(|name| name.starts_with('w') && name.contains('-'));
    assert_eq!(written.filter(|name| !name.starts_with("write")).count(), WRITERS * COMMITS);
}
