//! A table with a long history under load: what its size costs loads and commits.

use crate::{
    catalog::{Repeat, committer},
    measure::{Figure, Load},
    target::Target,
};
use serde_json::{Value, json};

/// Some 7 MB of metadata.
const SNAPSHOTS: usize = 10_000;
const SNAPSHOTS_A_COMMIT: usize = 2_000;
const SUMMARY_BYTES: usize = 400;

const TABLE: &str = "/v1/namespaces/history/tables/long";

/// Makes the table; answers the bytes of a load's answer.
pub fn prepare(target: &Target) -> usize {
    target.create_namespace("history");
    target.create_table("history", "long");
    for first in (1..=SNAPSHOTS).step_by(SNAPSHOTS_A_COMMIT) {
        let last = first + SNAPSHOTS_A_COMMIT - 1;
        let mut updates: Vec<Value> = (first..=last).map(add_snapshot).collect();
        updates.push(
            json!({"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": last as i64}),
        );
        target.call("POST", TABLE, &json!({"requirements": [], "updates": updates}));
    }
    target.load_answer_bytes(TABLE)
}

fn add_snapshot(id: usize) -> Value {
    let mut snapshot = json!({
        "snapshot-id": id,
        "sequence-number": id,
        "timestamp-ms": 1_700_000_000_000_i64 + id as i64,
        "manifest-list": format!("s3://lakehouse-warehouse/history/long/metadata/snap-{id}-1-{id:032x}.avro"),
        "summary": {"operation": "append", "engine-notes": "x".repeat(SUMMARY_BYTES)},
        "schema-id": 0
    });
    if id > 1 {
        snapshot["parent-snapshot-id"] = json!(id - 1);
    }
    json!({"action": "add-snapshot", "snapshot": snapshot})
}

pub fn load_table(target: &Target, seconds: f64, clients: &[usize]) -> Vec<Figure> {
    let modes = [("loadTable, 10,000 snapshots", "all"), ("loadTable, 10,000 snapshots, refs only", "refs")];
    let figures = modes.iter().flat_map(|(operation, mode)| {
        let head = target.head("GET", &format!("{TABLE}?snapshots={mode}"), 0);
        clients.iter().map(move |&n| {
            let clients = (0..n).map(|_| Repeat::new(target.catalog, head.clone())).collect();
            Load { operation, seconds, steps_max: usize::MAX, server: Some(target.pid()) }.run(clients)
        })
    });
    figures.collect()
}

pub fn commit(target: &Target, seconds: f64) -> Figure {
    let clients = vec![committer(target, TABLE, 0)];
    let operation = "commit, 10,000 snapshots";
    Load { operation, seconds, steps_max: usize::MAX, server: Some(target.pid()) }.run(clients)
}
