//! The published document of our HTTP API.

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
