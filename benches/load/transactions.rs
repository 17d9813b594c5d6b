//! Ten tables changed at once, against ten commits one after the other.

use crate::{
    catalog::expect_success,
    http::{Body, Connection},
    measure::{Client, Figure, Load},
    target::Target,
};
use serde_json::{Value, json};

const TABLES: usize = 10;

fn name(table: usize) -> String {
    format!("sales_{table}")
}

/// A property of one table, each time another value.
fn change(count: u64) -> Value {
    json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"count": count.to_string()}}]})
}

struct Together<'a>(&'a Target, Connection, u64);

impl Client for Together<'_> {
    fn step(&mut self) -> Result<u64, String> {
        self.2 += 1;
        let one = |table| {
            let mut change = change(self.2);
            change["identifier"] = json!({"namespace": ["ten"], "name": name(table)});
            change
        };
        let body = json!({"table-changes": (0..TABLES).map(one).collect::<Vec<_>>()}).to_string();
        let head = self.0.head("POST", "/v1/transactions/commit", body.len());
        expect_success(self.1.send(&head, body.as_bytes(), Body::Discard)).map(|_| 0)
    }
}

struct OneByOne<'a>(&'a Target, Connection, u64);

impl Client for OneByOne<'_> {
    fn step(&mut self) -> Result<u64, String> {
        self.2 += 1;
        for table in 0..TABLES {
            let body = change(self.2).to_string();
            let head = self.0.head("POST", &format!("/v1/namespaces/ten/tables/{}", name(table)), body.len());
            expect_success(self.1.send(&head, body.as_bytes(), Body::Discard))?;
        }
        Ok(0)
    }
}

pub fn ten_tables(target: &Target, seconds: f64) -> Vec<Figure> {
    target.create_namespace("ten");
    for table in 0..TABLES {
        target.create_table("ten", &name(table));
    }
    let connection = || Connection::open(target.catalog).expect("a connection");
    let load = |operation| Load { operation, seconds, steps_max: usize::MAX, server: Some(target.pid()) };
    vec![
        load("transaction over 10 tables").run(vec![Together(target, connection(), 0)]),
        load("10 commits, one after the other").run(vec![OneByOne(target, connection(), 0)]),
    ]
}
