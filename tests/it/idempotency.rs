//! Requests that carry an `Idempotency-Key`, through the real server: done once, however often they are sent.

use crate::{
    catalog::{Answer, Catalog, send, try_send},
    database::Database,
    history::{at_once, chain, create_table, location},
    server::Server,
    transactions::{change, snapshot, snapshots, transaction},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use uuid::Uuid;

on_both_databases! {
    an_answer_that_nobody_heard_is_given_when_the_request_comes_again,
    of_many_at_once_under_one_key_one_is_done_and_all_are_answered,
    a_key_stands_for_its_request_across_restarts,
    every_request_is_done_once_however_often_the_server_is_killed,
}

const TABLE: &str = "/v1/namespaces/ns/tables/t0";
const COMMIT: &str = "/v1/transactions/commit";

/// A request that can be sent again.
#[derive(Clone)]
struct Keyed {
    key: Uuid,
    path: &'static str,
    body: Value,
}

impl Keyed {
    fn new(path: &'static str, body: Value) -> Keyed {
        Keyed { key: Uuid::now_v7(), path, body }
    }

    /// Adds a snapshot to one table, or to two.
    fn adding(id: u64, is_transaction: bool) -> Keyed {
        let updates = json!([snapshot(id)]);
        match is_transaction {
            false => Keyed::new(TABLE, json!({"requirements": [], "updates": updates})),
            true => {
                Keyed::new(COMMIT, transaction(["t0", "t1"].map(|table| change(table, json!([]), updates.clone()))))
            }
        }
    }

    fn of(&self, catalog: &Catalog) -> reqwest::RequestBuilder {
        catalog.request(Method::POST, self.path).header("idempotency-key", self.key.to_string()).json(&self.body)
    }

    async fn send(&self, catalog: &Catalog) -> Answer {
        send(self.of(catalog)).await
    }
}

/// A server with two tables that keep their whole history, and their first files.
async fn with_tables(database: Database) -> (Server, Catalog, [String; 2]) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    let created = [create_table(&catalog, "t0").await, create_table(&catalog, "t1").await];
    (server, catalog, created)
}

async fn an_answer_that_nobody_heard_is_given_when_the_request_comes_again(database: Database) {
    let (server, catalog, created) = with_tables(database).await;
    for (at, is_transaction) in [(1, false), (2, true)] {
        let request = Keyed::adding(at, is_transaction);
        send_and_hang_up(&server, &catalog, &request).await;
        // Whoever has no key is told that the snapshot is there already.
        let unkeyed = catalog.post(request.path, &request.body).await;
        unkeyed.error(400, "BadRequestException");
        request.send(&catalog).await.ok();
        request.send(&catalog).await.ok();
    }
    assert_eq!(chain(&server, &catalog, "t0", &created[0]).await.len(), 3);
    assert_eq!(chain(&server, &catalog, "t1", &created[1]).await.len(), 2);
}

/// Sends a request and closes the connection when the answer begins, without reading it.
async fn send_and_hang_up(server: &Server, catalog: &Catalog, request: &Keyed) {
    let request = request.of(catalog).build().expect("a request");
    let body = request.body().and_then(reqwest::Body::as_bytes).expect("a body in memory");
    let mut head = format!("POST {} HTTP/1.1\r\nhost: catalog\r\n", request.url().path());
    for (name, value) in request.headers() {
        head += &format!("{name}: {}\r\n", value.to_str().expect("plain headers"));
    }
    head += &format!("content-length: {}\r\n\r\n", body.len());
    let mut connection = TcpStream::connect(server.catalog_address()).await.expect("connects");
    connection.write_all(&[head.as_bytes(), body].concat()).await.expect("sends");
    connection.read_u8().await.expect("answers");
}

async fn of_many_at_once_under_one_key_one_is_done_and_all_are_answered(database: Database) {
    const CLIENTS: usize = 16;
    let (server, catalog, created) = with_tables(database).await;
    let fields = json!([{"id": 1, "name": "id", "required": true, "type": "long"}]);
    let create = json!({"name": "new", "schema": {"type": "struct", "schema-id": 0, "fields": fields}});
    for request in [
        Keyed::adding(1, false),
        Keyed::adding(2, true),
        Keyed::new("/v1/namespaces/ns/tables", create),
        Keyed::new("/v1/namespaces", json!({"namespace": ["other"], "properties": {"a": "b"}})),
    ] {
        let answers = at_once(CLIENTS, |_| {
            let (catalog, request) = (catalog.clone(), request.clone());
            async move { request.send(&catalog).await }
        })
        .await;
        let first = answers[0].ok();
        assert!(answers.iter().all(|answer| answer.ok() == first), "{}", request.path);
    }
    assert_eq!(chain(&server, &catalog, "t0", &created[0]).await.len(), 3);
    assert_eq!(chain(&server, &catalog, "t1", &created[1]).await.len(), 2);
    let new = location(&catalog.load_table("ns", "new").await.ok());
    assert_eq!(chain(&server, &catalog, "new", &new).await.len(), 1);
}

async fn a_key_stands_for_its_request_across_restarts(database: Database) {
    let (mut server, catalog, created) = with_tables(database).await;
    let lifetime = catalog.get("/v1/config").await.ok()["idempotency-key-lifetime"].clone();
    assert_eq!(lifetime, "PT1800S");
    let done = Keyed::adding(1, false);
    let first = done.send(&catalog).await.ok();
    let refused = Keyed { key: Uuid::now_v7(), ..done.clone() };
    let refusal = refused.send(&catalog).await.error(400, "BadRequestException");
    let together = Keyed::adding(2, true);
    together.send(&catalog).await.ok();
    server.kill();
    server.restart().await;
    let catalog = Catalog::login(&server).await;
    assert_eq!(done.send(&catalog).await.ok(), first);
    assert_eq!(refused.send(&catalog).await.error(400, "BadRequestException"), refusal);
    together.send(&catalog).await.ok();
    for other in
        [Keyed::adding(3, false), Keyed::adding(4, true), Keyed::new("/v1/namespaces", json!({"namespace": ["x"]}))]
    {
        let reused = Keyed { key: done.key, ..other };
        let message = reused.send(&catalog).await.error(422, "UnprocessableEntityException");
        assert_eq!(message, format!("the Idempotency-Key was used for another request: {}", done.key));
    }
    assert_eq!(chain(&server, &catalog, "t0", &created[0]).await.len(), 3);
    catalog.get("/v1/namespaces/x").await.error(404, "NoSuchNamespaceException");
}

/// Each request is sent until it is answered, through as many lives of the server as it takes.
async fn every_request_is_done_once_however_often_the_server_is_killed(database: Database) {
    const ROUNDS: usize = 8;
    const WRITERS: usize = 6;
    const LIFE: Duration = Duration::from_millis(150);
    let (mut server, _, created) = with_tables(database).await;
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    for _ in 0..ROUNDS {
        let catalog = Catalog::login(&server).await;
        let running = writers.drain(..).map(|writer| tokio::spawn(writer.write_until_killed(catalog.clone())));
        let running: Vec<_> = running.collect();
        tokio::time::sleep(LIFE).await;
        server.kill();
        for writer in running {
            writers.push(writer.await.expect("the load ends with the server"));
        }
        server.restart().await;
    }
    let catalog = Catalog::login(&server).await;
    let (mut alone, mut together) = (BTreeSet::new(), BTreeSet::new());
    for writer in &mut writers {
        writer.finish(&catalog).await;
        let ids = if writer.is_transaction() { &mut together } else { &mut alone };
        ids.extend((0..writer.done).map(|count| writer.id(count)));
    }
    eprintln!("{} commits and {} transactions acknowledged in {ROUNDS} rounds", alone.len(), together.len());
    assert!(alone.len() > ROUNDS && together.len() > ROUNDS, "hardly a load");
    let found = |metadata: Value| snapshots(&metadata["metadata"]);
    assert_eq!(found(catalog.load_table("ns", "t0").await.ok()), &alone | &together);
    assert_eq!(found(catalog.load_table("ns", "t1").await.ok()), together);
    for (table, created) in created.iter().enumerate() {
        let loaded = catalog.load_table("ns", &format!("t{table}")).await.ok();
        let versions = loaded["metadata"]["metadata-log"].as_array().expect("a metadata log");
        assert_eq!(versions[0]["metadata-file"], created.as_str());
        assert_eq!(versions.len(), found(loaded.clone()).len(), "t{table}: each request made one version");
    }
}

/// Sends one request after the other, each until it is answered.
struct Writer {
    number: usize,
    done: u64,
    under_way: Keyed,
}

impl Writer {
    fn new(number: usize) -> Writer {
        let mut writer = Writer { number, done: 0, under_way: Keyed::adding(0, false) };
        writer.under_way = writer.next();
        writer
    }

    fn is_transaction(&self) -> bool {
        self.number % 2 == 1
    }

    fn id(&self, count: u64) -> u64 {
        1 + count * 100 + self.number as u64
    }

    fn next(&self) -> Keyed {
        Keyed::adding(self.id(self.done), self.is_transaction())
    }

    async fn write_until_killed(mut self, catalog: Catalog) -> Writer {
        while let Ok(answer) = try_send(self.under_way.of(&catalog)).await {
            answer.ok();
            self.done += 1;
            self.under_way = self.next();
        }
        self
    }

    async fn finish(&mut self, catalog: &Catalog) {
        self.under_way.send(catalog).await.ok();
        self.done += 1;
    }
}
