//! A wrong setting stops the start, and the message names it.

use crate::{database::Database, server::Setup};
use std::fs;

#[tokio::test]
async fn unknown_flag_is_named() {
    refused(Setup::on(Database::Sqlite).await.flag("no-such-thing", 1), "no-such-thing").await;
}

#[tokio::test]
async fn unknown_variable_is_named() {
    refused(Setup::on(Database::Sqlite).await.variable("TIDEWATER_NO_SUCH_THING", 1), "TIDEWATER_NO_SUCH_THING").await;
}

#[tokio::test]
async fn unknown_key_of_the_file_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "no-such-thing = 1\n").unwrap();
    refused(Setup::on(Database::Sqlite).await.flag("config", file.path().display()), "no-such-thing").await;
}

#[tokio::test]
async fn bad_values_are_refused_by_name() {
    for (name, value) in [
        ("token-lifetime-s", "soon"),
        ("token-lifetime-s", "-1"),
        ("page-size-max", "0"),
        ("catalog-url", "not a url"),
        ("log-format", "morse"),
        ("bucket", "My_Bucket"),
        ("warehouse", ".."),
        ("database-url", "mysql://127.0.0.1/x"),
    ] {
        refused(Setup::on(Database::Sqlite).await.flag(name, value), name).await;
    }
}

#[tokio::test]
async fn one_address_for_two_listeners_names_both_settings() {
    let setup = Setup::on(Database::Sqlite).await;
    let setup = setup.variable("TIDEWATER_S3_ADDR", "127.0.0.1:8181");
    let mut command = setup.command_on_folder("serve");
    let output = command.args(["--catalog-addr", "0.0.0.0:8181"]).output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains("flag --catalog-addr") && words.contains("variable TIDEWATER_S3_ADDR"), "{words}");
}

#[tokio::test]
async fn bad_variable_is_refused_by_name() {
    refused(Setup::on(Database::Sqlite).await.variable("TIDEWATER_PAGE_SIZE_MAX", "many"), "page").await;
}

#[tokio::test]
async fn settings_of_the_file_are_used() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, "warehouse = \"harbour\"\n").unwrap();
    let server = Setup::on(Database::Sqlite).await.flag("config", file.path().display()).start().await;
    let catalog = crate::catalog::Catalog::login(&server).await;
    catalog.get("/v1/config?warehouse=harbour").await.ok();
}

/// The start fails, says the setting's name, and leaves the folder alone.
async fn refused(setup: Setup, name: &str) {
    let (status, said) = setup.run_to_end().await;
    assert!(!status.success(), "started in spite of {name}:\n{said}");
    let said = said.to_lowercase().replace('_', "-");
    assert!(said.contains(&name.to_lowercase().replace('_', "-")), "no {name} in\n{said}");
}
