//! The model through its boundary: files in, requests in, files out. Only the functions here call it.

mod commit;
mod create;
mod damage;
mod files;
mod layout;
mod random;
mod requirements;
mod scale;
mod schemas;
mod snapshots;
mod views;

use super::{Error, Result, commit::Commit, create::CreateTable, metadata::TableMetadata};
use expect_test::Expect;
use serde_json::Value;
use uuid::Uuid;

const NOW_MS: i64 = 1_700_000_000_000;
const UUID: Uuid = Uuid::from_u128(0x9c12d441_03fe_4693_9a96_a0705ddf69c1);
const BASE_LOCATION: &str = "s3://b/w/t/metadata/00000-a.metadata.json";

/// A create request with a column of each kind the tests need.
const CREATE: &str = r#"{"name":"t","schema":{"type":"struct","schema-id":0,"fields":[
    {"id":1,"name":"id","required":true,"type":"long"},
    {"id":2,"name":"s","required":false,"type":"string"},
    {"id":3,"name":"d","required":false,"type":"date"},
    {"id":4,"name":"f","required":false,"type":"float"},
    {"id":5,"name":"point","required":false,"type":{"type":"struct","fields":[
        {"id":6,"name":"x","required":false,"type":"int"}]}},
    {"id":7,"name":"tags","required":false,"type":{"type":"list","element-id":8,"element-required":true,"element":"string"}}]},
  "properties":{"format-version":"VERSION"}}"#;

/// A table of a format version without snapshots, made a day ago.
fn table(format_version: u8) -> TableMetadata {
    let request = CREATE.replace("VERSION", &format_version.to_string());
    let request = CreateTable::parse(request.as_bytes()).unwrap();
    request.metadata("s3://b/w/t", UUID, NOW_MS - 86_400_000).unwrap()
}

/// A table with two snapshots, 1 and 2, on `main`.
fn table_with_snapshots(format_version: u8) -> TableMetadata {
    // In two commits: a snapshot that another follows in the same request leaves no log entry.
    let first = Commit::parse(request(&append(format_version, 1, None)).as_bytes()).unwrap();
    let second = Commit::parse(request(&append(format_version, 2, Some(1))).as_bytes()).unwrap();
    let base = first.apply(&table(format_version), BASE_LOCATION, NOW_MS - 3_600_000).unwrap().unwrap();
    second.apply(&base, BASE_LOCATION, NOW_MS - 1_800_000).unwrap().unwrap()
}

/// Updates that append a snapshot of 10 rows to `main`; snapshot n has sequence number n.
fn append(format_version: u8, id: i64, parent: Option<i64>) -> String {
    format!(r#"{{"action":"add-snapshot","snapshot":{}}},{}"#, snapshot(format_version, id, parent), set_main(id))
}

fn snapshot(format_version: u8, id: i64, parent: Option<i64>) -> String {
    let parent = parent.map(|id| format!(r#""parent-snapshot-id":{id},"#)).unwrap_or_default();
    let numbers = match format_version {
        1 => String::new(),
        2 => format!(r#""sequence-number":{id},"#),
        _ => format!(r#""sequence-number":{id},"first-row-id":{},"added-rows":10,"#, (id - 1) * 10),
    };
    format!(
        r#"{{"snapshot-id":{id},{parent}{numbers}"timestamp-ms":{},"manifest-list":"s3://b/w/t/metadata/snap-{id}.avro","summary":{{"operation":"append"}},"schema-id":0}}"#,
        NOW_MS - 7_200_000 + id * 1000
    )
}

fn set_main(id: i64) -> String {
    format!(r#"{{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":{id}}}"#)
}

/// A commit without requirements.
fn request(updates: &str) -> String {
    format!(r#"{{"requirements":[],"updates":[{updates}]}}"#)
}

fn commit(base: &TableMetadata, body: &str) -> Result<Option<TableMetadata>> {
    Commit::parse(body.as_bytes())?.apply(base, BASE_LOCATION, NOW_MS)
}

fn committed(base: &TableMetadata, updates: &str) -> TableMetadata {
    commit(base, &request(updates)).unwrap().unwrap_or_else(|| base.clone())
}

/// What the updates do to a table: the members of the file that differ, or the error. Members every commit changes are
/// left out.
fn check(base: &TableMetadata, updates: &str, expected: Expect) {
    expected.assert_eq(&outcome(base, commit(base, &request(updates))));
}

fn outcome(base: &TableMetadata, result: Result<Option<TableMetadata>>) -> String {
    match result {
        Err(Error::Invalid(message) | Error::IllegalArgument(message)) => format!("invalid: {message}\n"),
        Err(Error::Conflict(message)) => format!("conflict: {message}\n"),
        Ok(None) => "no change\n".to_owned(),
        Ok(Some(metadata)) => {
            assert_eq!(TableMetadata::parse(&metadata.to_json()).as_ref(), Ok(&metadata), "does not read back");
            difference(&json(base), &json(&metadata))
        }
    }
}

/// Members of the new file that differ from the old; `+` stands before what was appended to a list.
fn difference(old: &Value, new: &Value) -> String {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { unreachable!("files are objects") };
    let is_usual = |key: &str| key == "last-updated-ms" || key == "metadata-log";
    let changed = new.iter().filter(|(key, value)| old.get(*key) != Some(*value) && !is_usual(key));
    let line = |(key, value): (&String, &Value)| match (old.get(key).and_then(Value::as_array), value.as_array()) {
        (Some(old), Some(new)) if !old.is_empty() && new.starts_with(old) => {
            format!("{key}: + {}\n", Value::from(&new[old.len()..]))
        }
        _ => format!("{key}: {value}\n"),
    };
    let gone = old.keys().filter(|key| !new.contains_key(*key)).map(|key| format!("{key}: gone\n"));
    changed.map(line).chain(gone).collect()
}

fn json(metadata: &TableMetadata) -> Value {
    serde_json::from_slice(&metadata.to_json()).unwrap()
}
