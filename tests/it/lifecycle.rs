//! Starting, stopping, and what is there afterwards.

use crate::{
    catalog::Catalog,
    database::Database,
    s3::{BUCKET, S3},
    server::{ROOT_SECRET, Server, Setup, until},
};
use std::{fs, os::unix::fs::PermissionsExt};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

on_both_databases! {
    health_answers_without_a_token,
    terminated_server_exits_0,
    tables_and_objects_survive_a_kill,
    root_key_of_the_settings_is_used_again_after_a_restart,
}

async fn health_answers_without_a_token(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::anonymous(&server);
    assert_eq!(catalog.get("/health/live").await.status, 200);
    assert_eq!(catalog.get("/health/ready").await.status, 200);
}

async fn terminated_server_exits_0(database: Database) {
    let mut server = Server::start(database).await;
    server.terminate();
    assert_eq!(server.wait_for_exit().await.code(), Some(0));
}

async fn tables_and_objects_survive_a_kill(database: Database) {
    let mut server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    catalog.create_namespace("ns").await;
    catalog.create_table("ns", "t").await;
    let committed = catalog.set_property("ns", "t", "key", "value").await.ok();
    let s3 = S3::root(&server);
    let large = vec![7u8; 3 << 20];
    assert_eq!(s3.put(BUCKET, "small", "bytes").await.status, 200);
    assert_eq!(s3.put(BUCKET, "large", large.clone()).await.status, 200);

    server.kill();
    server.restart().await;

    let catalog = Catalog::login(&server).await;
    let loaded = catalog.load_table("ns", "t").await.ok();
    assert_eq!(loaded["metadata-location"], committed["metadata-location"]);
    assert_eq!(loaded["metadata"], committed["metadata"]);
    assert_eq!(s3.get(BUCKET, "small").await.body, "bytes");
    assert!(s3.get(BUCKET, "large").await.body == large, "the large object is whole");
}

async fn root_key_of_the_settings_is_used_again_after_a_restart(database: Database) {
    let mut server = Server::start(database).await;
    server.terminate();
    server.wait_for_exit().await;
    server.restart().await;
    Catalog::login(&server).await.get("/v1/namespaces").await.ok();
}

#[tokio::test]
async fn first_start_makes_a_private_root_key_and_says_where() {
    let server = Setup::on(Database::Sqlite).await.without_root_key().start().await;
    let file = server.data().join("keys/root");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // It is ready a moment before it says so.
    until(async || server.log().contains("tidewater connect")).await;
    assert!(server.log().contains(&file.display().to_string()), "{}", server.log());

    let text = fs::read_to_string(&file).unwrap();
    let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap();
    let (id, secret) = (line("TIDEWATER_ROOT_ACCESS_KEY_ID"), line("TIDEWATER_ROOT_SECRET_ACCESS_KEY"));
    assert!(!server.log().contains(secret));
    let form = [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)];
    Catalog::anonymous(&server).token(&form).await.ok();
}

#[tokio::test]
async fn all_that_is_written_is_the_owners_only_even_in_an_open_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    let server = Setup::on(Database::Sqlite).await.data(&data).start().await;
    until(async || data.join("running.toml").exists()).await;
    // With the files that only live while it runs: both databases' logs and indexes of logs.
    for name in ["catalog.db", "catalog.db-wal", "catalog.db-shm", "store/index.db", "store/index.db-wal", "lock"] {
        assert!(data.join(name).exists(), "{name}");
    }
    let s3 = S3::root(&server);
    assert_eq!(s3.put(BUCKET, "large", vec![7u8; 1 << 20]).await.status, 200);

    let (mut open, mut files, mut folders) = (Vec::new(), 0, vec![data.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::metadata(&path).unwrap();
            if metadata.permissions().mode() & 0o077 != 0 {
                open.push(path.clone());
            }
            match metadata.is_dir() {
                true => folders.push(path),
                false => files += 1,
            }
        }
    }
    assert!(open.is_empty() && files > 7, "{files} files, open: {open:?}");
}

#[tokio::test]
async fn welcome_names_addresses_and_warehouse() {
    let server = Server::start(Database::Sqlite).await;
    until(async || server.log().contains("tidewater connect")).await;
    let log = server.log();
    let next = format!("tidewater connect spark --data {}", server.data().display());
    for told in [server.catalog_url(), server.s3_url(), "lakehouse".to_owned(), next] {
        assert!(log.contains(&told), "no {told} in\n{log}");
    }
    assert!(!log.contains(ROOT_SECRET));
}

#[tokio::test]
async fn folder_in_use_is_refused_to_a_second_server() {
    let server = Server::start(Database::Sqlite).await;
    let data = server.data();
    let (status, said) = Setup::on(Database::Sqlite).await.data(&data).run_to_end().await;
    assert!(!status.success(), "{said}");
    assert!(said.contains(&data.display().to_string()) || said.contains("lock") || said.contains("use"), "{said}");
    assert_eq!(Catalog::anonymous(&server).get("/health/ready").await.status, 200);
}

#[tokio::test]
async fn request_in_flight_is_finished_after_sigterm() {
    let mut server = Server::start(Database::Sqlite).await;
    let s3 = S3::root(&server);
    let url = s3.presigned(reqwest::Method::PUT, BUCKET, "late", 60);
    let path = url.strip_prefix(&server.s3_url()).unwrap();
    let mut connection = TcpStream::connect(server.s3_address()).await.unwrap();
    let head = format!("PUT {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 10\r\n\r\n12345", server.s3_address());
    connection.write_all(head.as_bytes()).await.unwrap();
    // An answer on another connection means that the server has had the time to take up the first.
    assert_eq!(s3.get(BUCKET, "late").await.status, 404);

    server.terminate();
    until(async || TcpStream::connect(server.s3_address()).await.is_err()).await;
    connection.write_all(b"67890").await.unwrap();

    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(server.wait_for_exit().await.code(), Some(0));
    server.restart().await;
    assert_eq!(s3.get(BUCKET, "late").await.body, "1234567890");
}
