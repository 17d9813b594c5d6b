//! What clients must not send: answered in the protocol's own error shape, with nothing changed and the server alive.

use crate::{
    catalog::{Answer, Catalog, send},
    database::Database,
    server::{Server, Setup},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

on_both_databases! {
    malformed_json_is_400,
    wrong_types_are_400,
    unknown_updates_and_requirements_are_400,
    unknown_fields_are_kept,
    deep_nesting_is_400,
    huge_and_endless_bodies_are_413,
    names_that_cannot_be_are_400,
    access_keys_that_cannot_be_are_refused_in_shape,
}

const TABLE: &str = "/v1/namespaces/ns/tables/t";

/// A server with one table, and where the table's metadata is.
struct Fixture {
    server: Server,
    catalog: Catalog,
    metadata_location: Value,
}

impl Fixture {
    async fn on(setup: Setup) -> Fixture {
        let server = setup.start().await;
        let catalog = Catalog::login(&server).await;
        catalog.create_namespace("ns").await;
        let created = catalog.create_table("ns", "t").await;
        Fixture { server, catalog, metadata_location: created["metadata-location"].clone() }
    }

    /// The refused request changed nothing and the server goes on.
    async fn unharmed(&self) {
        let loaded = self.catalog.load_table("ns", "t").await.ok();
        assert_eq!(loaded["metadata-location"], self.metadata_location);
        let namespaces = self.catalog.get("/v1/namespaces").await.ok();
        assert_eq!(namespaces["namespaces"], json!([["ns"]]));
        let tables = self.catalog.get("/v1/namespaces/ns/tables").await.ok();
        assert_eq!(tables["identifiers"].as_array().map(Vec::len), Some(1), "{tables}");
        assert_eq!(Catalog::anonymous(&self.server).get("/health/ready").await.status, 200);
    }
}

async fn malformed_json_is_400(database: Database) {
    let fixture = Fixture::on(Setup::on(database).await).await;
    let bodies: [&[u8]; 9] = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\"text\"",
        b"{\"updates\":[}",
        b"{\"requirements\":[],\"updates\":[]} x",
        b"\xff\xfe",
        b"{'a':1}",
    ];
    for body in bodies {
        for path in [TABLE, "/v1/namespaces", "/v1/namespaces/ns/tables", "/v1/tables/rename"] {
            let answer = fixture.catalog.post_bytes(path, body.to_vec()).await;
            answer.error(400, "BadRequestException");
        }
    }
    fixture.unharmed().await;
}

async fn wrong_types_are_400(database: Database) {
    let fixture = Fixture::on(Setup::on(database).await).await;
    let refused = async |path: &str, body: Value| {
        let answer = fixture.catalog.post(path, &body).await;
        assert_eq!(answer.status, 400, "{body} got {}", answer.text());
        protocol_error(&answer);
    };
    for body in [
        json!({"requirements": {}, "updates": []}),
        json!({"requirements": [], "updates": "all"}),
        json!({"requirements": [7], "updates": []}),
        json!({"requirements": [], "updates": [{}]}),
        json!({"requirements": [], "updates": [{"action": 1}]}),
        json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": 1}}]}),
        json!({"requirements": [], "updates": [{"action": "set-properties", "updates": []}]}),
        json!({"requirements": [], "updates": [{"action": "set-current-schema", "schema-id": "zero"}]}),
        json!({"requirements": [], "updates": [{"action": "set-current-schema", "schema-id": 1.5}]}),
        json!({"requirements": [{"type": "assert-table-uuid", "uuid": 1}], "updates": []}),
    ] {
        refused(TABLE, body).await;
    }
    for body in
        [json!({"namespace": "x"}), json!({"namespace": [1]}), json!({"namespace": []}), json!({"properties": {}})]
    {
        refused("/v1/namespaces", body).await;
    }
    for body in [
        json!({"name": "u"}),
        json!({"name": 1, "schema": {"type": "struct", "fields": []}}),
        json!({"name": "u", "schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "required": true, "type": "no-such-type"}]}}),
        json!({"name": "u", "schema": {"type": "struct", "fields": 1}}),
        json!({"schema": {"type": "struct", "fields": []}}),
    ] {
        refused("/v1/namespaces/ns/tables", body).await;
    }
    fixture.unharmed().await;
}

async fn unknown_updates_and_requirements_are_400(database: Database) {
    let fixture = Fixture::on(Setup::on(database).await).await;
    let known = json!({"action": "set-properties", "updates": {"a": "b"}});
    let update = fixture.catalog.commit("ns", "t", json!([]), json!([known, {"action": "set-the-tide"}])).await;
    update.error(400, "BadRequestException");
    let requirement = fixture.catalog.commit("ns", "t", json!([{"type": "assert-low-tide"}]), json!([known])).await;
    requirement.error(400, "BadRequestException");
    fixture.unharmed().await;
}

async fn unknown_fields_are_kept(database: Database) {
    let fixture = Fixture::on(Setup::on(database).await).await;
    let snapshot = json!({
        "snapshot-id": 4_611_686_018_427_387_905_i64, "sequence-number": 1, "timestamp-ms": 1_900_000_000_000_i64,
        "manifest-list": "s3://lakehouse-warehouse/x.avro", "summary": {"operation": "append"}, "schema-id": 0,
        "x-tide": {"height": [1.25, null, "ü"], "deep": {"a": {"b": 1e300}}},
    });
    let main = json!({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot["snapshot-id"]});
    let updates = json!([{"action": "add-snapshot", "snapshot": snapshot, "x-ignored": true}, main]);
    fixture.catalog.commit("ns", "t", json!([]), updates).await.ok();
    fixture.catalog.set_property("ns", "t", "a", "b").await.ok();
    let loaded = fixture.catalog.load_table("ns", "t").await.ok();
    assert_eq!(loaded["metadata"]["snapshots"], json!([snapshot]));
}

async fn deep_nesting_is_400(database: Database) {
    let fixture = Fixture::on(Setup::on(database).await).await;
    let deep = |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    for body in [
        deep("[", "]", 100_000),
        deep("{\"a\":", "}", 100_000),
        format!("{{\"requirements\":[],\"updates\":[],\"x\":{}}}", deep("[", "]", 100_000)),
        format!(
            "{{\"requirements\":[],\"updates\":[{{\"action\":\"add-snapshot\",\"snapshot\":{}}}]}}",
            deep("[", "]", 5_000)
        ),
    ] {
        let answer = fixture.catalog.post_bytes(TABLE, body).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        protocol_error(&answer);
    }
    let list =
        |inner: &str| format!("{{\"type\":\"list\",\"element-id\":1,\"element-required\":true,\"element\":{inner}}}");
    let column = (0..5_000).fold("\"int\"".to_owned(), |inner, _| list(&inner));
    let schema = format!(
        "{{\"type\":\"struct\",\"fields\":[{{\"id\":1,\"name\":\"a\",\"required\":false,\"type\":{column}}}]}}"
    );
    let answer =
        fixture.catalog.post_bytes("/v1/namespaces/ns/tables", format!("{{\"name\":\"u\",\"schema\":{schema}}}")).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    protocol_error(&answer);
    fixture.unharmed().await;
}

async fn huge_and_endless_bodies_are_413(database: Database) {
    let fixture = Fixture::on(Setup::on(database).await.flag("body-bytes-max", 1 << 20)).await;
    let padding = "x".repeat(1 << 20);
    let body = json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": padding}}]});
    let huge = fixture.catalog.post(TABLE, &body).await;
    assert_eq!(huge.status, 413, "{}", huge.text());
    protocol_error(&huge);

    let answer = endless_post(&fixture).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    fixture.unharmed().await;
}

/// Posts chunks without announcing a length and without ever ending; answers what the server said to it.
async fn endless_post(fixture: &Fixture) -> String {
    /// 256 MiB, far above the limit and what is read of a refused body: a server that takes this much takes everything.
    const CHUNKS_MAX: usize = 4 << 10;
    let connection = TcpStream::connect(fixture.server.catalog_address()).await.unwrap();
    let (mut from_server, mut to_server) = connection.into_split();
    let head = format!(
        "POST {TABLE} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n",
        fixture.catalog.bearer()
    );
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(1 << 16));
    let sending = tokio::spawn(async move {
        to_server.write_all(head.as_bytes()).await?;
        for _ in 0..CHUNKS_MAX {
            to_server.write_all(chunk.as_bytes()).await?;
        }
        Ok::<_, std::io::Error>(())
    });
    let mut answer = Vec::new();
    // The server may reset the connection behind its answer.
    let _ = from_server.read_to_end(&mut answer).await;
    let sent_all = sending.await.unwrap().is_ok();
    assert!(!sent_all, "the server took {CHUNKS_MAX} chunks");
    String::from_utf8_lossy(&answer).into_owned()
}

async fn names_that_cannot_be_are_400(database: Database) {
    let fixture = Fixture::on(Setup::on(database).await).await;
    for body in [
        json!({"namespace": [""]}),
        json!({"namespace": ["a", ""]}),
        json!({"namespace": ["a\u{0}b"]}),
        json!({"namespace": ["x".repeat(5_000)]}),
        json!({"namespace": ["."]}),
        json!({"namespace": ["ns", ".."]}),
    ] {
        let answer = fixture.catalog.post("/v1/namespaces", &body).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        protocol_error(&answer);
    }
    let schema = json!({"type": "struct", "fields": []});
    for (name, location) in [(".", None), ("..", None), ("u", Some("a?b")), ("u", Some("a#b")), ("u", Some("a%2Fb"))] {
        let mut body = json!({"name": name, "schema": schema});
        if let Some(folder) = location {
            body["location"] = json!(format!("s3://lakehouse-warehouse/{folder}"));
        }
        fixture.catalog.post("/v1/namespaces/ns/tables", &body).await.error(400, "BadRequestException");
    }
    fixture.unharmed().await;
    let zero = fixture.catalog.set_property("ns", "t", "key", "a\u{0}b").await;
    assert!(zero.status == 400 || zero.status == 200, "{}", zero.text());
    let unknown = send(fixture.catalog.request(Method::GET, "/v1/no/such/route")).await;
    assert!(matches!(unknown.status, 400 | 404), "{}", unknown.text());
    protocol_error(&unknown);
}

async fn access_keys_that_cannot_be_are_refused_in_shape(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    let asked = async |method: Method, path: &str| send(catalog.request(method, path)).await;
    asked(Method::DELETE, "/api/v1/keys/%00").await.error(404, "NotFoundException");
    asked(Method::DELETE, "/api/v1/keys/a%0Ab").await.error(404, "NotFoundException");
    asked(Method::DELETE, "/api/v1/keys/%ff").await.error(400, "BadRequestException");
    asked(Method::DELETE, "/api/v1/keys/").await.error(404, "NotFoundException");
    asked(Method::GET, "/api/v1/no-such-thing").await.error(404, "NotFoundException");
    let wrong = asked(Method::PATCH, "/api/v1/keys").await;
    wrong.error(405, "UnsupportedOperationException");
    assert!(wrong.header("allow").is_some_and(|allowed| allowed.contains("POST")), "{wrong:?}");
}

#[tokio::test]
async fn bare_addresses_say_where_things_are() {
    let server = Server::start(Database::Sqlite).await;
    let catalog = Catalog::anonymous(&server);
    let index = catalog.get("/").await.ok();
    for place in ["/docs", "/health/ready", "/v1/config"] {
        assert!(index.to_string().contains(place), "{index}");
    }
    assert_eq!(catalog.get(index["docs"].as_str().unwrap()).await.status, 200);
    assert_eq!(catalog.get(index["openapi"].as_str().unwrap()).await.status, 200);
    for (path, pointer) in [("/health", "/health/ready"), ("/health/", "/health/ready"), ("/metrics", "--metrics-addr")]
    {
        let said = catalog.get(path).await.error(404, "NotFoundException");
        assert!(said.contains(pointer), "{said}");
    }
}

/// The protocol's error body, whatever its type says.
#[track_caller]
fn protocol_error(answer: &Answer) {
    let body = answer.json();
    let kind = body["error"]["type"].as_str().unwrap_or_else(|| panic!("no type in {body}"));
    answer.error(answer.status, kind);
}
