//! The database goes away under a running server, and comes back.

use crate::{
    catalog::Catalog,
    database::Database,
    s3::{BUCKET, S3},
    server::{Server, until},
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_database_the_server_says_so_and_recovers_by_itself() {
    let server = Server::start(Database::Postgres).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    let before = catalog.set_property("ns", "t", "key", "before").await.ok();
    S3::root(&server).put(BUCKET, "kept", "bytes").await;

    server.postgres().cut_off().await;
    catalog.load_table("ns", "t").await.error(503, "ServiceUnavailableException");
    catalog.get("/v1/namespaces").await.error(503, "ServiceUnavailableException");
    catalog.set_property("ns", "t", "key", "lost").await.error(503, "ServiceUnavailableException");
    let create = json!({"name": "u", "schema": {"type": "struct", "fields": []}});
    catalog.post("/v1/namespaces/ns/tables", &create).await.error(503, "ServiceUnavailableException");
    assert_eq!(catalog.get("/health/live").await.status, 200);
    assert_eq!(catalog.get("/health/ready").await.status, 503);
    // The store needs the database only for the key, which may be remembered for some seconds.
    let read = S3::root(&server).get(BUCKET, "kept").await;
    assert!(read.status == 200 || read.status == 503, "{} {}", read.status, read.text());

    server.postgres().bring_back().await;
    until(async || catalog.get("/health/ready").await.status == 200).await;
    let after = catalog.load_table("ns", "t").await.ok();
    assert_eq!(after["metadata-location"], before["metadata-location"], "a commit that was refused changed nothing");
    catalog.set_property("ns", "t", "key", "after").await.ok();
    catalog.post("/v1/namespaces/ns/tables", &create).await.ok();
    assert_eq!(S3::root(&server).get(BUCKET, "kept").await.body, "bytes");
}

/// Commits run while connections die under them: each is whole or absent, and an answer that says so is right.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_cut_off_from_its_database_is_whole_or_absent() {
    let server = Server::start(Database::Postgres).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    for round in 0..5 {
        let writer = tokio::spawn({
            let catalog = catalog.clone();
            async move {
                let (mut acknowledged, mut last) = (None, 200);
                for count in 0..u64::MAX {
                    let answer = catalog.set_property("ns", "t", "count", &format!("{round}-{count}")).await;
                    last = answer.status;
                    match last {
                        200 => acknowledged = Some(count),
                        500 => drop(answer.error(500, "CommitStateUnknownException")),
                        _ => drop(answer.error(503, "ServiceUnavailableException")),
                    }
                    if last != 200 {
                        break;
                    }
                }
                (acknowledged, last)
            }
        });
        server.postgres().cut_off().await;
        let (acknowledged, last) = writer.await.expect("the writer ends");
        server.postgres().bring_back().await;
        until(async || catalog.get("/health/ready").await.status == 200).await;

        let loaded = catalog.load_table("ns", "t").await.ok();
        let found = loaded["metadata"]["properties"]["count"].as_str().and_then(|text| text.split_once('-'));
        let found = found.filter(|(of, _)| *of == format!("{round}")).map(|(_, count)| count.parse::<u64>().unwrap());
        let next = acknowledged.map_or(0, |count| count + 1);
        let allowed = if last == 500 { vec![acknowledged, Some(next)] } else { vec![acknowledged] };
        assert!(allowed.contains(&found), "{found:?} found, {acknowledged:?} acknowledged, then a {last}");
    }
}
