//! What `tidewater connect` prints, run against the server it describes. Spark and PyIceberg: `tests/engines`.

use crate::{catalog::Catalog, database::Database, server::Server};
use std::process::Command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn printed_curl_snippet_lists_the_namespaces() {
    let server = Server::start(Database::Sqlite).await;
    Catalog::login(&server).await.create_namespace("harbour").await;
    let printed = server.command("connect").arg("curl").output().unwrap();
    assert!(printed.status.success(), "{printed:?}");
    let snippet = String::from_utf8(printed.stdout).unwrap();
    let run = Command::new("bash").args(["-euo", "pipefail", "-c", &snippet]).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stdout).contains("harbour"), "{run:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_engine_is_given_a_storage_key() {
    let server = Server::start(Database::Sqlite).await;
    for engine in ["spark", "trino", "flink", "pyiceberg", "duckdb", "curl"] {
        let printed = server.command("connect").arg(engine).output().unwrap();
        let text = String::from_utf8(printed.stdout).unwrap();
        assert!(printed.status.success() && text.contains(&server.catalog_url()), "{engine}: {text}");
        for word in ["access-key", "access_key", "secret-access", "session-token"] {
            assert!(!text.contains(word), "{engine}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_key_logs_in_until_it_is_deleted() {
    let server = Server::start(Database::Sqlite).await;
    let keys = |arguments: &[&str]| {
        let output = server.command("keys").args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let made = keys(&["create", "etl"]);
    let value = |label: &str| {
        let rest = made.lines().find_map(|line| line.strip_prefix(label));
        rest.and_then(|rest| rest.split_whitespace().next())
            .unwrap_or_else(|| panic!("no {label} in {made}"))
            .to_owned()
    };
    let (id, secret) = (value("access key id"), value("secret access key"));
    let catalog = Catalog::anonymous(&server);
    let form = [("grant_type", "client_credentials"), ("client_id", id.as_str()), ("client_secret", &secret)];
    let token = catalog.token(&form).await.ok()["access_token"].as_str().unwrap().to_owned();
    catalog.with_token(&token).get("/v1/namespaces").await.ok();
    assert!(keys(&["list"]).contains(&id));
    assert!(!keys(&["list"]).contains(&secret));

    keys(&["delete", &id]);
    assert_eq!(catalog.token(&form).await.status, 401);
    assert_eq!(catalog.with_token(&token).get("/v1/namespaces").await.status, 401);
}
