//! Every case in `cases.md`, and every file of another writer in `tests/data`, is held by a test, or there is a reason.

use crate::ledger;
use std::{fs, path::Path};

const CASES: u32 = 35;
const FOLDERS: [&str; 5] = ["metadata", "compressed", "views", "metrics", "answers"];

#[test]
fn every_case_and_every_file_is_held() {
    let mut wanted: Vec<String> = (1..=CASES).map(|number| format!("C{number:02}")).collect();
    for folder in FOLDERS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        wanted.extend(names.filter(|name| name != "README.md"));
    }
    let problems = ledger::problems(include_str!("cases.md"), &wanted);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
