//! Catalog operations under load: load, commit, create, list.

use crate::{
    http::{Body, Connection},
    measure::{Client, Figure, Load},
    target::{Target, new_table},
};
use serde_json::json;
use std::net::SocketAddr;

/// Sends the same request again and again.
pub struct Repeat {
    connection: Connection,
    head: Vec<u8>,
}

impl Repeat {
    pub fn new(addr: SocketAddr, head: Vec<u8>) -> Repeat {
        Repeat { connection: Connection::open(addr).expect("a connection"), head }
    }
}

impl Client for Repeat {
    fn step(&mut self) -> Result<u64, String> {
        expect_success(self.connection.send(&self.head, b"", Body::Discard))
    }
}

pub fn expect_success(answer: std::io::Result<crate::http::Answer>) -> Result<u64, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status < 300 {
        return Ok(answer.body_bytes);
    }
    Err(format!("status {}: {}", answer.status, String::from_utf8_lossy(&answer.body)))
}

/// Commits a property to one table, each time another value.
pub struct Committer<'a> {
    target: &'a Target,
    connection: Connection,
    path: String,
    client: usize,
    count: u64,
}

impl Client for Committer<'_> {
    fn step(&mut self) -> Result<u64, String> {
        self.count += 1;
        let body = json!({
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {format!("writer-{}", self.client): self.count.to_string()}}]
        })
        .to_string();
        let head = self.target.head("POST", &self.path, body.len());
        expect_success(self.connection.send(&head, body.as_bytes(), Body::Discard)).map(|_| 0)
    }
}

struct Creator<'a> {
    target: &'a Target,
    connection: Connection,
    namespace: String,
    client: usize,
    count: u64,
}

impl Client for Creator<'_> {
    fn step(&mut self) -> Result<u64, String> {
        self.count += 1;
        let body = new_table(&format!("t_{}_{:06}", self.client, self.count)).to_string();
        let head = self.target.head("POST", &format!("/v1/namespaces/{}/tables", self.namespace), body.len());
        expect_success(self.connection.send(&head, body.as_bytes(), Body::Discard)).map(|_| 0)
    }
}

fn load<'a>(target: &Target, operation: &'a str, seconds: f64) -> Load<'a> {
    Load { operation, seconds, steps_max: usize::MAX, server: Some(target.pid()) }
}

pub fn load_table(target: &Target, seconds: f64, clients: &[usize]) -> Vec<Figure> {
    target.create_namespace("load");
    target.create_table("load", "sales");
    let head = target.head("GET", "/v1/namespaces/load/tables/sales", 0);
    clients
        .iter()
        .map(|&n| {
            let clients = (0..n).map(|_| Repeat::new(target.catalog, head.clone())).collect();
            load(target, "loadTable", seconds).run(clients)
        })
        .collect()
}

pub fn commit_one_table(target: &Target, seconds: f64, clients: &[usize]) -> Vec<Figure> {
    target.create_namespace("one");
    clients
        .iter()
        .map(|&n| {
            let table = format!("sales_{n}");
            target.create_table("one", &table);
            let clients =
                (0..n).map(|client| committer(target, &format!("/v1/namespaces/one/tables/{table}"), client)).collect();
            load(target, "commit, one table", seconds).run(clients)
        })
        .collect()
}

pub fn commit_many_tables(target: &Target, seconds: f64, clients: &[usize]) -> Vec<Figure> {
    target.create_namespace("many");
    clients
        .iter()
        .map(|&n| {
            let paths: Vec<String> = (0..n)
                .map(|client| {
                    let table = format!("sales_{n}_{client}");
                    target.create_table("many", &table);
                    format!("/v1/namespaces/many/tables/{table}")
                })
                .collect();
            let clients = paths.iter().enumerate().map(|(client, path)| committer(target, path, client)).collect();
            load(target, "commit, a table each", seconds).run(clients)
        })
        .collect()
}

pub fn committer<'a>(target: &'a Target, path: &str, client: usize) -> Committer<'a> {
    let connection = Connection::open(target.catalog).expect("a connection");
    Committer { target, connection, path: path.to_owned(), client, count: 0 }
}

pub fn create_table(target: &Target, seconds: f64, clients: &[usize]) -> Vec<Figure> {
    clients
        .iter()
        .map(|&n| {
            let namespace = format!("create_{n}");
            target.create_namespace(&namespace);
            load(target, "createTable", seconds).run(creators(target, &namespace, n))
        })
        .collect()
}

/// Lists all 10,000 tables of a namespace in one answer.
pub fn list_tables(target: &Target, seconds: f64, clients: &[usize]) -> Vec<Figure> {
    const TABLES: usize = 10_000;
    const MAKERS: usize = 16;
    target.create_namespace("list");
    let fill = Load { operation: "fill", seconds: 600.0, steps_max: TABLES / MAKERS, server: None };
    fill.run(creators(target, "list", MAKERS));
    let head = target.head("GET", "/v1/namespaces/list/tables", 0);
    clients
        .iter()
        .map(|&n| {
            let clients = (0..n).map(|_| Repeat::new(target.catalog, head.clone())).collect();
            load(target, "listTables, 10,000 in one answer", seconds).run(clients)
        })
        .collect()
}

fn creators<'a>(target: &'a Target, namespace: &str, count: usize) -> Vec<Creator<'a>> {
    (0..count)
        .map(|client| Creator {
            target,
            connection: Connection::open(target.catalog).expect("a connection"),
            namespace: namespace.to_owned(),
            client,
            count: 0,
        })
        .collect()
}
