//! What races leave behind: the whole history of a table, checked to be a chain.

use crate::{
    catalog::Catalog,
    s3::{BUCKET, S3},
    server::Server,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, future::Future, sync::Arc};
use tokio::sync::Barrier;

/// More than any test commits to one table, so that the metadata log still names the first file: it keeps 100 by
/// default.
const VERSIONS_KEPT: usize = 10_000;

/// Starts all at the same moment and waits for all.
pub async fn at_once<T, F>(count: usize, work: impl Fn(usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(count));
    let tasks: Vec<_> = (0..count)
        .map(|at| {
            let (barrier, work) = (Arc::clone(&barrier), work(at));
            tokio::spawn(async move {
                barrier.wait().await;
                work.await
            })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("a writer ends well"));
    }
    results
}

/// A table that keeps its whole history in the metadata log; answers its first metadata file.
pub async fn create_table(catalog: &Catalog, table: &str) -> String {
    let fields = json!([{"id": 1, "name": "id", "required": true, "type": "long"}]);
    let properties = json!({"write.metadata.previous-versions-max": VERSIONS_KEPT.to_string()});
    let schema = json!({"type": "struct", "schema-id": 0, "fields": fields});
    let body = json!({"name": table, "schema": schema, "properties": properties});
    location(&catalog.post("/v1/namespaces/ns/tables", &body).await.ok())
}

/// The metadata files of a table from its first, `created`, to its current: each was built on the one before, and its
/// folder holds no other.
pub async fn chain(server: &Server, catalog: &Catalog, table: &str, created: &str) -> Vec<String> {
    let loaded = catalog.load_table("ns", table).await.ok();
    let mut chain = log(&loaded["metadata"]);
    chain.push(location(&loaded));
    assert_eq!(chain[0], created, "the history starts with the creation");
    let s3 = S3::root(server);
    for pair in chain.windows(2) {
        let file = s3.get(BUCKET, &key(&pair[1])).await;
        assert_eq!(log(&file.json()).last(), Some(&pair[0]), "each file was built on the one before");
    }
    let folder = key(created).rsplit_once('/').unwrap().0.to_owned() + "/";
    let files: BTreeSet<String> = s3.keys(BUCKET, &folder).await.into_iter().collect();
    assert_eq!(files, chain.iter().map(|file| key(file)).collect(), "commits that lost left no file");
    chain
}

pub fn location(answer: &Value) -> String {
    answer["metadata-location"].as_str().expect("a metadata location").to_owned()
}

pub fn log(metadata: &Value) -> Vec<String> {
    let entries = metadata["metadata-log"].as_array().expect("a metadata log");
    entries.iter().map(|entry| entry["metadata-file"].as_str().unwrap().to_owned()).collect()
}

pub fn key(location: &str) -> String {
    location.strip_prefix(&format!("s3://{BUCKET}/")).expect("a file in the warehouse").to_owned()
}
