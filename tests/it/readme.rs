//! The README says what the program does.

use std::fs;
use tidewater::config::definitions;

const OPEN: &str = "<!-- settings -->\n";
const CLOSE: &str = "<!-- /settings -->";

/// `UPDATE_EXPECT=1` writes the table.
#[test]
fn settings_table_is_the_programs_own() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let page = fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(OPEN).expect("the table has its mark");
    let (table, after) = rest.split_once(CLOSE).expect("the table has its end mark");
    let wanted = format!("\n{}\n", definitions::markdown());
    if table != wanted && std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(path, format!("{before}{OPEN}{wanted}{CLOSE}{after}")).unwrap();
        return;
    }
    assert_eq!(table, wanted, "UPDATE_EXPECT=1 writes it");
}
