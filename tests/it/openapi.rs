//! The published document of our HTTP API.

use crate::{catalog::Catalog, database::Database, server::Server};
use std::{collections::BTreeSet, fs, path::Path, process::Command};

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

/// Operations of the specification, one a line.
const SPECIFIED: usize = 35;

#[tokio::test]
async fn every_operation_of_the_specification_is_described_or_said_not_to_be_served() {
    let server = Server::start(Database::Sqlite).await;
    let document = Catalog::anonymous(&server).get("/docs/openapi.json").await.ok();
    let specified = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/rest-operations.tsv"));
    let specified = specified.expect("test data");
    assert_eq!(specified.lines().count(), SPECIFIED);
    for line in specified.lines() {
        let [operation, method, path] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let described = &document["paths"][path][method.to_lowercase()]["operationId"];
        match NOT_SERVED.iter().find(|(name, _)| *name == operation) {
            None => assert_eq!(described, operation, "{method} {path} is neither described nor left out"),
            Some((_, reason)) => assert!(described.is_null(), "{operation} is described, though {reason}"),
        }
    }
}

#[tokio::test]
async fn the_document_is_valid_where_its_generator_does_not_care() {
    let server = Server::start(Database::Sqlite).await;
    let document = Catalog::anonymous(&server).get("/docs/openapi.json").await.ok();
    let mut names = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name), "{name} stands twice");
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{name} {status}");
                let is_bare = method == "head" || ["204", "304"].contains(&status.as_str());
                let may_be_bare = is_bare || status == "201";
                assert!(may_be_bare || response["content"].is_object(), "{name} {status} has a body of some shape");
                assert!(!is_bare || response["content"].is_null(), "{name} {status} has no body");
            }
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let named: Vec<&str> =
                parameters.filter(|one| one["in"] == "path").filter_map(|one| one["name"].as_str()).collect();
            let in_path: Vec<&str> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(named, in_path, "{name}");
        }
    }
    for probe in ["live", "ready"] {
        assert!(names.contains(probe));
    }
}

/// People read the document with what the server has: nothing is asked of anyone else.
#[tokio::test]
async fn the_page_that_shows_it_asks_nobody_else() {
    let server = Server::start(Database::Sqlite).await;
    let catalog = Catalog::anonymous(&server);
    let page = catalog.get("/docs/").await;
    assert_eq!(page.status, 200);
    let held_to = page.header("content-security-policy").expect("browsers are held to it");
    assert!(held_to.starts_with("default-src 'self' ") && !held_to.contains("http"), "{held_to}");
    let text = page.text();
    let assets = text.split(" src=\"").chain(text.split(" href=\"")).filter_map(|rest| rest.split('"').next());
    let assets: Vec<&str> = assets.filter(|asset| !asset.contains('<')).collect();
    assert!(assets.len() >= 5, "{text}");
    for asset in assets {
        assert!(!asset.contains("//"), "{asset}");
        let answer = catalog.get(&format!("/docs/{}", asset.trim_start_matches("./"))).await;
        assert_eq!(answer.status, 200, "{asset}");
        if asset.ends_with(".css") {
            assert!(!answer.text().contains("url(http") && !answer.text().contains("@import"), "{asset}");
        }
    }
    // The page's own default is to have the document judged by a public server.
    let initializer = catalog.get("/docs/swagger-initializer.js").await.text();
    assert!(initializer.contains("\"validatorUrl\": \"none\""), "{initializer}");
    assert!(initializer.contains("\"/docs/openapi.json\"") && !initializer.contains("http"), "{initializer}");
}
