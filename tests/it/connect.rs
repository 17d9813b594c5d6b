//! The commands that talk to a running server, and what `tidewater connect` prints, run against the server it describes.
//! Spark and PyIceberg: `tests/engines`.

use crate::{
    catalog::Catalog,
    database::Database,
    server::{Server, Setup, until},
};
use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    process::{Command, Output, Stdio},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn printed_curl_snippet_lists_the_namespaces() {
    let server = Server::start(Database::Sqlite).await;
    Catalog::login(&server).await.create_namespace("harbour").await;
    let listed = pasted(server.command("connect").arg("curl").output().unwrap());
    assert!(listed.contains("harbour") && listed.ends_with('\n'), "{listed:?}");
}

/// What a printed snippet prints in its turn.
fn pasted(printed: Output) -> String {
    let snippet = said(printed);
    let run = Command::new("bash").args(["-euo", "pipefail", "-c", &snippet]).output().unwrap();
    said(run)
}

fn said(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_find_the_server_by_its_folder_alone() {
    let setup = Setup::on(Database::Sqlite).await.flag("warehouse", "quay side").flag("region", "eu-1");
    let mut server = setup.flag("s3-url", "https://s3.example").start().await;
    let on_folder = |arguments: &[&str]| {
        let (command, arguments) = arguments.split_first().unwrap();
        server.command_on_folder(command).args(arguments).output().unwrap()
    };
    // It is ready a moment before it says where it is.
    until(async || on_folder(&["health"]).status.success()).await;
    assert_eq!(said(on_folder(&["health"])), "ready\n");
    assert!(said(on_folder(&["keys", "list"])).contains("root"));
    assert!(pasted(on_folder(&["connect", "curl"])).starts_with("{\"namespaces\":[]"));
    let trino = said(on_folder(&["connect", "trino"]));
    for told in [server.catalog_url(), "quay side".into(), "https://s3.example".into(), "s3.region=eu-1".into()] {
        assert!(trino.contains(&told), "no {told} in\n{trino}");
    }

    server.terminate();
    server.wait_for_exit().await;
    assert!(!server.data().join("running.toml").exists());
    let health = server.command("health").output().unwrap();
    assert_eq!(health.status.code(), Some(1));
    let words = String::from_utf8(health.stderr).unwrap();
    assert!(words.starts_with("tidewater: not ready: no server answers at"), "{words}");
    assert!(words.contains(&server.catalog_url()) && words.lines().count() == 1, "{words}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_names_another_program_at_the_address() {
    let server = Server::start(Database::Sqlite).await;
    let metrics = server.metrics_url();
    let address = metrics.strip_prefix("http://").unwrap();
    let health = server.command_on_folder("health").args(["--catalog-addr", address]).output().unwrap();
    assert_eq!(health.status.code(), Some(1));
    let words = String::from_utf8(health.stderr).unwrap();
    assert!(words.contains("answers 404") && words.contains("Tidewater"), "{words}");
}

/// Commands that print.
const PRINTING: [&[&str]; 4] = [&["connect", "curl"], &["openapi"], &["keys", "list"], &["health"]];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_output_is_an_error_and_a_closed_one_the_end() {
    let server = Server::start(Database::Sqlite).await;
    let run = |arguments: &[&str], out: Stdio| {
        server.command(arguments[0]).args(&arguments[1..]).stdout(out).output().unwrap()
    };
    for arguments in PRINTING {
        let full = run(arguments, File::options().write(true).open("/dev/full").unwrap().into());
        let words = String::from_utf8(full.stderr).unwrap();
        assert_eq!(full.status.code(), Some(1), "{arguments:?}: {words}");
        assert!(words.contains("standard output cannot be written to: No space left"), "{arguments:?}: {words}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = run(arguments, writer.into());
        assert_eq!((closed.status.code(), closed.stderr), (Some(0), Vec::new()), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_serves_though_nobody_reads_its_welcome() {
    let setup = Setup::on(Database::Sqlite).await;
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut server = setup.command("serve").stdout(full).stderr(Stdio::null()).spawn().unwrap();
    until(async || setup.command("health").output().unwrap().status.success()).await;
    assert!(server.try_wait().unwrap().is_none());
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_in_a_file_is_its_owners_only() {
    let server = Server::start(Database::Sqlite).await;
    let folder = tempfile::tempdir().unwrap();
    let (fresh, old) = (folder.path().join("spark.conf"), folder.path().join("old.conf"));
    fs::write(&old, "x".repeat(10_000)).unwrap();
    fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
    let arguments = ["spark", "--format", "conf"];
    let printed = said(server.command("connect").args(arguments).output().unwrap());
    for file in [fresh, old] {
        let quiet = server.command("connect").args(arguments).arg("--output").arg(&file).output().unwrap();
        assert_eq!(said(quiet), "");
        assert_eq!(fs::read_to_string(&file).unwrap(), printed);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
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
    let keys = |arguments: &[&str]| said(server.command("keys").args(arguments).output().unwrap());
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
