//! Bounds are where they should be: large enough for real tables, and there.

use crate::{
    catalog::Catalog,
    database::Database,
    register::{key, metadata},
    s3::{BUCKET, S3},
    server::{Server, Setup, until},
    transactions::{change, transaction},
};
use serde_json::json;
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

on_both_databases! {
    commit_of_50_mib_works,
    requests_of_megabytes_are_answered,
    a_long_history_is_registered_read_and_shortened,
    pages_have_an_end_and_follow_each_other,
}

async fn commit_of_50_mib_works(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    let text = "0123456789abcdef".repeat(50 << 16);
    let answer = catalog.set_property("ns", "t", "big", &text).await.ok();
    assert_eq!(answer["metadata"]["properties"]["big"].as_str().map(str::len), Some(50 << 20));
    let loaded = catalog.load_table("ns", "t").await.ok();
    assert!(loaded["metadata"]["properties"]["big"] == text.as_str(), "the property came back as sent");
}

async fn requests_of_megabytes_are_answered(database: Database) {
    const COLUMNS: usize = 5_000;
    const TABLES: usize = 50;
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let doc = "d".repeat(500);
    let column = |id: usize| json!({"id": id, "name": format!("c{id}"), "required": false, "type": "long", "doc": doc});
    let fields: Vec<_> = (1..=COLUMNS).map(column).collect();
    let wide = json!({"name": "wide", "schema": {"type": "struct", "schema-id": 0, "fields": fields}});
    let created = catalog.post("/v1/namespaces/ns/tables", &wide).await.ok();
    assert_eq!(created["metadata"]["schemas"][0]["fields"].as_array().map(Vec::len), Some(COLUMNS));

    let names: Vec<_> = (0..TABLES).map(|number| format!("t{number}")).collect();
    for name in &names {
        catalog.create_table("ns", name).await;
    }
    let text = "x".repeat(100 << 10);
    let set = || json!([{"action": "set-properties", "updates": {"text": text}}]);
    let changes = names.iter().map(|name| change(name, json!([]), set()));
    catalog.post("/v1/transactions/commit", &transaction(changes)).await.ok();
    for name in &names {
        let loaded = catalog.load_table("ns", name).await.ok();
        assert!(loaded["metadata"]["properties"]["text"] == text.as_str(), "{name} was not changed");
    }
}

async fn a_long_history_is_registered_read_and_shortened(database: Database) {
    const SNAPSHOTS: usize = 50_000;
    let server = Server::start(database).await;
    let (catalog, s3) = (Catalog::login(&server).await, S3::root(&server));
    catalog.create_namespace("ns").await;
    let location = format!("s3://{BUCKET}/long");
    let snapshot = |id: usize| {
        json!({
            "snapshot-id": id, "sequence-number": id, "timestamp-ms": 1_600_000_000_000_usize + id, "schema-id": 0,
            "manifest-list": format!("{location}/metadata/snap-{id}.avro"),
            "summary": {"operation": "append", "total-records": "1", "written-by": "w".repeat(300)},
        })
    };
    let mut file = metadata(&location);
    file["snapshots"] = (1..=SNAPSHOTS).map(snapshot).collect();
    file["last-sequence-number"] = json!(SNAPSHOTS);
    file["current-snapshot-id"] = json!(SNAPSHOTS);
    file["refs"] = json!({"main": {"type": "branch", "snapshot-id": SNAPSHOTS}});
    let name = format!("{location}/metadata/00000-{}.metadata.json", uuid::Uuid::nil());
    let text = file.to_string();
    assert!(text.len() > 20 << 20, "{} bytes", text.len());
    assert_eq!(s3.put(BUCKET, key(&name), text).await.status, 200);
    catalog.post("/v1/namespaces/ns/register", &json!({"name": "t", "metadata-location": name})).await.ok();

    let count = |loaded: &serde_json::Value| loaded["metadata"]["snapshots"].as_array().map(Vec::len);
    let path = "/v1/namespaces/ns/tables/t";
    assert_eq!(count(&catalog.get(&format!("{path}?snapshots=all")).await.ok()), Some(SNAPSHOTS));
    assert_eq!(count(&catalog.get(&format!("{path}?snapshots=refs")).await.ok()), Some(1));
    // Beside its own, ids that the table never had, as many as make megabytes.
    let strangers = (0..200_000_u64).map(|number| 5_000_000_000_000_000_000 + number);
    let ids: Vec<u64> = (1..SNAPSHOTS as u64).chain(strangers).collect();
    let updates = json!([{"action": "remove-snapshots", "snapshot-ids": ids}]);
    let left = catalog.commit("ns", "t", json!([]), updates).await.ok();
    assert_eq!(count(&left), Some(1));
}

async fn pages_have_an_end_and_follow_each_other(database: Database) {
    let server = Setup::on(database).await.flag("page-size-max", 2).start().await;
    let catalog = Catalog::login(&server).await;
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        catalog.create_namespace(name).await;
    }
    let (mut seen, mut token) = (Vec::new(), String::new());
    for _ in 0..names.len() {
        let page = catalog.get(&format!("/v1/namespaces?pageSize=1000&pageToken={token}")).await.ok();
        let listed = page["namespaces"].as_array().cloned().unwrap_or_default();
        assert!(listed.len() <= 2, "{page}");
        seen.extend(listed);
        match page["next-page-token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(json!(seen), json!(names.map(|name| [name])));
}

#[tokio::test]
async fn header_beyond_the_bound_is_refused_and_the_server_lives() {
    let server = Setup::on(Database::Sqlite).await.flag("header-bytes-max", 16 << 10).start().await;
    let catalog = Catalog::login(&server).await;
    let long = "x".repeat(64 << 10);
    let request = catalog.request(reqwest::Method::GET, "/v1/namespaces").header("x-long", long);
    if let Ok(answer) = request.send().await {
        assert!(matches!(answer.status().as_u16(), 400 | 413 | 431), "{answer:?}");
    }
    catalog.get("/v1/namespaces").await.ok();
}

/// Sends a head as it is; the status line, and everything behind the answer's head.
async fn refusal(address: SocketAddr, head: &str) -> (String, String) {
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

/// What hyper refuses by itself has no body (`server/shape.rs`); what it lets through is refused in the protocol's shape.
#[tokio::test]
async fn heads_too_large_are_refused_in_the_listeners_shape() {
    let server = Setup::on(Database::Sqlite).await.flag("header-bytes-max", 16 << 10).start().await;
    let long = "x".repeat(20 << 10);
    let many: String = (0..250).map(|number| format!("x-{number}: {}\r\n", "v".repeat(80))).collect();
    let end = "Host: h\r\nConnection: close\r\n\r\n";
    for head in [format!("GET /v1/{long} HTTP/1.1\r\n{end}"), format!("GET /v1/config HTTP/1.1\r\n{many}{end}")] {
        let (status, body) = refusal(server.catalog_address(), &head).await;
        assert!(status.contains(" 431 "), "{status}");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&body["error"]["code"], &body["error"]["type"]), (&json!(431), &json!("BadRequestException")));
        let (status, body) = refusal(server.s3_address(), &head).await;
        assert!(
            status.contains(" 400 ") && body.contains("<Code>RequestHeaderSectionTooLarge</Code>"),
            "{status} {body}"
        );
    }
    let few: String = (0..250).map(|number| format!("x-{number}: v\r\n")).collect();
    let (status, _) = refusal(server.catalog_address(), &format!("GET /health/live HTTP/1.1\r\n{few}{end}")).await;
    assert!(status.contains(" 200 "), "{status}");
    let beyond = "x: v\r\n".repeat(300);
    let (status, body) = refusal(server.catalog_address(), &format!("GET / HTTP/1.1\r\n{beyond}{end}")).await;
    assert!(status.contains(" 431 ") && body.is_empty(), "{status} {body}");
    Catalog::login(&server).await.get("/v1/namespaces").await.ok();
}

/// Sends the head of a request and leaves its body open.
async fn open_request(address: SocketAddr, line: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!("{line} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 100\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn strangers_with_unfinished_bodies_keep_nobody_out() {
    const STRANGERS: usize = 8;
    let server = Setup::on(Database::Sqlite).await.flag("requests-max", 2).start().await;
    let catalog = Catalog::login(&server).await;
    let mut open = Vec::new();
    for _ in 0..STRANGERS {
        open.push(open_request(server.catalog_address(), "POST /v1/oauth/tokens").await);
        open.push(open_request(server.catalog_address(), "POST /v1/namespaces").await);
        open.push(open_request(server.catalog_address(), "POST /api/v1/keys").await);
        open.push(open_request(server.s3_address(), "PUT /lakehouse-warehouse/k").await);
    }
    let waiting = "tidewater_requests_in_flight{listener=\"catalog\"}";
    until(async || metric(&server, waiting).await >= STRANGERS as f64).await;
    catalog.get("/v1/namespaces").await.ok();
    Catalog::login(&server).await.get("/v1/namespaces").await.ok();
    let root = crate::s3::S3::root(&server);
    assert_eq!(root.put("lakehouse-warehouse", "k", "bytes").await.status, 200);
    assert!(metric(&server, waiting).await >= STRANGERS as f64, "answered only once the strangers were gone");
    drop(open);
}

async fn metric(server: &Server, name: &str) -> f64 {
    let text = reqwest::get(format!("{}/metrics", server.metrics_url())).await.unwrap().text().await.unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    value.parse().unwrap_or_default()
}

#[tokio::test]
async fn a_client_refused_amid_a_large_body_gets_its_answer() {
    const BYTES: usize = 32 << 20;
    let server = Server::start(Database::Sqlite).await;
    let address = server.catalog_address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/namespaces/ns/tables/t HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer expired\r\n\
         content-length: {BYTES}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; BYTES]).await.unwrap();
    let mut answer = vec![0; "HTTP/1.1 401".len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 401");
}
