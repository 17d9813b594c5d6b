//! What is fuzzed of views.

use super::targets::json_files;
use tidewater::iceberg::view::{ViewMetadata, commit::ViewCommit, create::CreateView};
use uuid::Uuid;

const NOW_MS: i64 = 1_900_000_000_000;

pub fn files() -> Vec<Vec<u8>> {
    json_files("tests/data/views")
}

/// Whatever is accepted is written so that it is accepted again, as the same.
pub fn metadata(input: &[u8]) -> Result<String, String> {
    match ViewMetadata::parse(input) {
        Err(error) => Ok(error.to_string()),
        Ok(metadata) => reads_back(&metadata),
    }
}

fn reads_back(metadata: &ViewMetadata) -> Result<String, String> {
    match ViewMetadata::parse(&metadata.to_json()) {
        Ok(again) if again == *metadata => {}
        Ok(_) => return Err("what was written reads back as something else".to_owned()),
        Err(error) => return Err(format!("what was written is refused: {error}")),
    }
    let current = metadata.current_version().ok_or("there is no current version")?;
    metadata.schema(current.schema_id).ok_or("there is no current schema")?;
    Ok("accepted".to_owned())
}

fn version(schema_id: i32) -> String {
    format!(
        r#"{{"version-id":3,"schema-id":{schema_id},"timestamp-ms":5,"summary":{{"engine-name":"e"}},"default-catalog":"c",
            "default-namespace":["n","m"],"representations":[{{"type":"sql","sql":"select 1","dialect":"spark-sql"}},
            {{"type":"sql","sql":"select 2","dialect":"trino"}}],"x":1}}"#
    )
}

const SCHEMA: &str = r#"{"type":"struct","schema-id":4,"fields":[
    {"id":1,"name":"x","required":false,"type":"long","doc":"d"},{"id":2,"name":"t","required":false,"type":"variant"}]}"#;

pub fn create_requests() -> Vec<Vec<u8>> {
    let version = version(4);
    let properties = r#"{"version.history.num-entries":"2","comment":"c"}"#;
    let request = format!(
        r#"{{"name":"v","location":"s3://b/w/v/","schema":{SCHEMA},"view-version":{version},"properties":{properties}}}"#
    );
    vec![request.into_bytes()]
}

pub fn create(input: &[u8]) -> Result<String, String> {
    match CreateView::parse(input).and_then(|request| request.metadata("s3://b/w/v", Uuid::nil())) {
        Err(error) => Ok(error.to_string()),
        Ok(metadata) => reads_back(&metadata),
    }
}

pub fn commit_requests() -> Vec<Vec<u8>> {
    let updates = [
        format!(r#"{{"action":"add-schema","schema":{SCHEMA}}}"#),
        format!(r#"{{"action":"add-view-version","view-version":{}}}"#, version(-1)),
        r#"{"action":"set-current-view-version","view-version-id":-1}"#.to_owned(),
        r#"{"action":"set-properties","updates":{"version.history.num-entries":"1","replace.drop-dialect.allowed":"true"}}"#
            .to_owned(),
        r#"{"action":"remove-properties","removals":["some-key"]}"#.to_owned(),
        r#"{"action":"set-location","location":"s3://b/w/other/"}"#.to_owned(),
        r#"{"action":"upgrade-format-version","format-version":1}"#.to_owned(),
        r#"{"action":"assign-uuid","uuid":"fa6506c3-7681-40c8-86dc-e36561f83385"}"#.to_owned(),
    ];
    let request = |updates: &str| {
        let required = r#"[{"type":"assert-view-uuid","uuid":"fa6506c3-7681-40c8-86dc-e36561f83385"}]"#;
        let identifier = r#"{"namespace":["n"],"name":"v"}"#;
        format!(r#"{{"identifier":{identifier},"requirements":{required},"updates":[{updates}]}}"#).into_bytes()
    };
    let mut requests: Vec<_> = updates.iter().map(|update| request(update)).collect();
    requests.push(request(&updates[..3].join(",")));
    requests.push(request(&updates.join(",")));
    requests
}

/// Applied to a view: what comes of it reads back, and the same commit again does too.
pub fn commit(input: &[u8]) -> Result<String, String> {
    let commit = match ViewCommit::parse(input) {
        Err(error) => return Ok(error.to_string()),
        Ok(commit) => commit,
    };
    let base = base();
    match commit.apply(&base, NOW_MS) {
        Err(error) => Ok(error.to_string()),
        Ok(None) => Ok("unchanged".to_owned()),
        Ok(Some(next)) => {
            reads_back(&next)?;
            if next.uuid() != base.uuid() {
                return Err("the view's uuid changed".to_owned());
            }
            if let Ok(Some(after)) = commit.apply(&next, NOW_MS) {
                reads_back(&after)?;
            }
            Ok("changed".to_owned())
        }
    }
}

/// Parsed once a thread.
fn base() -> ViewMetadata {
    thread_local! {
        static BASE: ViewMetadata = files()
            .into_iter()
            .find_map(|file| ViewMetadata::parse(&file).ok())
            .expect("a valid view among the test data");
    }
    BASE.with(Clone::clone)
}
