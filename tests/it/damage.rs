//! A disk that gives back other bytes than it was given: readers are told, the operator is told, and nothing else stops.

use crate::{
    database::Database,
    s3::{BUCKET, S3},
    server::{Server, Setup, until},
};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

const LARGE_BYTES: usize = 3 << 20;

/// The files of large objects.
fn files(folder: &Path) -> Vec<PathBuf> {
    let fans = std::fs::read_dir(folder.join("store/files")).expect("the store's files");
    let entries = fans.flat_map(|fan| std::fs::read_dir(fan.expect("a folder").path()).expect("a folder"));
    entries.map(|entry| entry.expect("a file").path()).collect()
}

fn flip(file: &Path, position: usize) {
    let mut bytes = std::fs::read(file).expect("the file");
    bytes[position] ^= 1;
    std::fs::write(file, bytes).expect("the file can be written");
}

fn run(mut command: Command, action: &str) -> (bool, String) {
    let Output { status, stdout, stderr } = command.arg(action).output().expect("the program runs");
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[tokio::test]
async fn a_damaged_object_breaks_its_reader_and_is_listed() {
    // Nothing is checked but what readers stumble over.
    let mut server = Setup::on(Database::Sqlite).await.flag("scrub-bytes-per-s", 0).start().await;
    let s3 = S3::root(&server);
    let bytes: Vec<u8> = (0..LARGE_BYTES).map(|n| (n / 7) as u8).collect();
    assert_eq!(s3.put(BUCKET, "large", bytes.clone()).await.status, 200);
    assert_eq!(s3.put(BUCKET, "other", "other").await.status, 200);
    let (sound, said) = run(server.command_on_folder("store"), "verify");
    assert!(sound && said.contains(" 0 damaged"), "{said}");

    // In the first megabyte: the answer is an error; behind it: it breaks off.
    for (position, status) in [(100, 500), (2 << 20, 200)] {
        until(async || files(&server.data()).len() == 1).await;
        let file = &files(&server.data())[0];
        flip(file, position);
        let request = s3.request(reqwest::Method::GET, &format!("/{BUCKET}/large"), &[], &[], "");
        let answer = request.send().await.expect("a head");
        assert_eq!(answer.status(), status);
        let body = answer.bytes().await;
        match body {
            Ok(body) => assert!(status == 500 && body.len() < 2000, "an error's document"),
            Err(_) => assert_eq!(status, 200, "the body breaks off"),
        }
        assert_eq!(s3.get(BUCKET, "other").await.body, "other");
        until(async || !run(server.command_on_folder("store"), "damages").0).await;
        for action in ["verify", "damages"] {
            let (sound, said) = run(server.command_on_folder("store"), action);
            assert!(
                !sound && said.contains(&format!("{BUCKET} \"large\" version null: its bytes")),
                "{action}: {said}"
            );
        }
        let metrics = reqwest::get(format!("{}/metrics", server.metrics_url())).await.expect("metrics");
        let metrics = metrics.text().await.expect("text");
        assert!(metrics.contains("tidewater_store_damage_found_total"), "{metrics}");
        assert!(metrics.contains("tidewater_store_damaged_reads_total"), "{metrics}");
        flip(file, position);
        assert!(s3.get(BUCKET, "large").await.body == bytes);
        // Overwritten, it is on no list.
        assert_eq!(s3.put(BUCKET, "large", bytes.clone()).await.status, 200);
        until(async || run(server.command_on_folder("store"), "damages").0).await;
    }
    server.terminate();
    server.wait_for_exit().await;
    let (_, said) = run(server.command_on_folder("store"), "stats");
    assert!(said.contains("objects       2 of ") && said.contains("damaged       0 bodies"), "{said}");
}

#[tokio::test]
async fn the_background_check_finds_what_nobody_reads() {
    let mut server = Server::start(Database::Sqlite).await;
    let s3 = S3::root(&server);
    assert_eq!(s3.put(BUCKET, "large", vec![1; LARGE_BYTES]).await.status, 200);
    server.kill();
    // A pass that is due begins with the server.
    let [file] = &files(&server.data())[..] else { panic!("one file") };
    flip(file, LARGE_BYTES - 1);
    server.restart().await;
    until(async || !run(server.command_on_folder("store"), "damages").0).await;
    assert!(server.log().contains("stored bytes are damaged"), "the operator is told:\n{}", server.log());
}
