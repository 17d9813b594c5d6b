//! The published document of our HTTP API.

use crate::{catalog::Catalog, database::Database, server::Server};
use std::{fs, path::Path, process::Command};

#[test]
fn document_in_the_repository_is_what_the_program_prints() {
    let printed = Command::new(env!("CARGO_BIN_EXE_tidewater")).arg("openapi").output().expect("the program runs");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/tidewater.yaml");
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let same = kept == String::from_utf8_lossy(&printed.stdout);
    assert!(same, "run: tidewater openapi > openapi/tidewater.yaml");
}

/// Operations of the specification that are not served, and why.
const NOT_SERVED: &[(&str, &str)] = &[
    ("planTableScan", PLANNING),
    ("fetchPlanningResult", PLANNING),
    ("cancelPlanning", PLANNING),
    ("fetchScanTasks", PLANNING),
];
const PLANNING: &str = "scans are planned by clients: no endpoint for it is advertised";

#[tokio::test]
async fn every_operation_of_the_specification_is_described_or_said_not_to_be_served() {
    let server = Server::start(Database::Sqlite).await;
    let catalog = Catalog::anonymous(&server);
    let document = catalog.get("/docs/openapi.json").await.ok();
    let specified = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rest-operations.tsv"));
    for line in specified.expect("test data").lines() {
        let [operation, method, path] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let described = &document["paths"][path][method.to_lowercase()]["operationId"];
        match NOT_SERVED.iter().find(|(name, _)| *name == operation) {
            None => assert_eq!(described, operation, "{method} {path} is neither described nor left out"),
            Some((_, reason)) => assert!(described.is_null(), "{operation} is described, though {reason}"),
        }
    }
    // People read it with what the server has: nothing is loaded from elsewhere.
    let page = catalog.get("/docs/").await;
    assert_eq!(page.status, 200);
    let text = page.text();
    assert!(text.contains("<script") && !text.contains("src=\"http") && !text.contains("href=\"http"), "{text}");
    for asset in text.split("src=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()) {
        let asset = asset.trim_start_matches("./").trim_start_matches("/docs/");
        assert_eq!(catalog.get(&format!("/docs/{asset}")).await.status, 200, "{asset}");
    }
}
