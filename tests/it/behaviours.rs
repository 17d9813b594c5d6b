//! Every behaviour in `behaviours.md` is held by a test, or there is a reason.

use crate::ledger;
use std::{fs, path::Path};

const BEHAVIOURS: u32 = 124;

#[test]
fn every_behaviour_is_held() {
    let wanted: Vec<String> = (1..=BEHAVIOURS).map(|number| number.to_string()).collect();
    let problems = ledger::problems(include_str!("behaviours.md"), &wanted);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Our own API, which Iceberg's clients never call, is left out.
#[test]
fn every_described_success_is_one_that_clients_know() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/tidewater.yaml");
    let document = fs::read_to_string(file).unwrap();
    let mut path = "";
    let mut successes = 0;
    for line in document.lines() {
        if line.starts_with("  /") {
            path = line.trim();
        }
        let status = line.trim().trim_end_matches(':').trim_matches(['\'', '"']);
        if path.starts_with("/v1/") && line.starts_with("        ") && status.len() == 3 && status.starts_with('2') {
            assert!(matches!(status, "200" | "204"), "{path} {status}");
            successes += 1;
        }
    }
    assert!(successes > 10, "{successes} successes found");
}
