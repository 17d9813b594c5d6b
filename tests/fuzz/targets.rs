//! What is fuzzed: a name, inputs to start from, and what must hold of each input.

use super::{reports, s3, views};
use std::{fs, path::Path};
use tidewater::iceberg::{commit::Commit, create::CreateTable, metadata::TableMetadata};
use uuid::Uuid;

pub struct Target {
    pub name: &'static str,
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// How the input ended, for telling new ends from known ones.
    ///
    /// # Errors
    /// What should always hold and does not.
    pub run: fn(&[u8]) -> Result<String, String>,
}

pub const TARGETS: &[Target] = &[
    Target { name: "metadata", corpus: metadata_files, run: metadata },
    Target { name: "create", corpus: create_requests, run: create },
    Target { name: "commit", corpus: commit_requests, run: commit },
    Target { name: "view-metadata", corpus: views::files, run: views::metadata },
    Target { name: "create-view", corpus: views::create_requests, run: views::create },
    Target { name: "view-commit", corpus: views::commit_requests, run: views::commit },
    Target { name: "report", corpus: reports::requests, run: reports::parse },
    Target { name: "s3-authorization", corpus: s3::authorizations, run: s3::authorization },
    Target { name: "s3-chunked-body", corpus: s3::chunked_bodies, run: s3::chunked_body },
    Target { name: "s3-document", corpus: s3::documents, run: s3::document },
    Target { name: "s3-policy", corpus: s3::policies, run: s3::policy },
    Target { name: "s3-post-policy", corpus: s3::post_policies, run: s3::post_policy },
    Target { name: "s3-range", corpus: s3::ranges, run: s3::range },
    Target { name: "s3-request-line", corpus: s3::request_lines, run: s3::request_line },
];

const NOW_MS: i64 = 1_900_000_000_000;
const LOCATION: &str = "s3://b/w/t/metadata/00000-a.metadata.json";
const UUID: Uuid = Uuid::from_u128(7);

fn metadata_files() -> Vec<Vec<u8>> {
    json_files("tests/data/metadata")
}

/// Those short enough to be changed.
pub fn json_files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("test data").map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    let json = files.iter().filter(|file| file.to_string_lossy().ends_with(".json"));
    json.map(|file| fs::read(file).expect("readable")).filter(|text| text.len() < super::INPUT_BYTES_MAX).collect()
}

/// Whatever is accepted is written so that it is accepted again, as the same.
fn metadata(input: &[u8]) -> Result<String, String> {
    match TableMetadata::parse(input) {
        Err(error) => Ok(error.to_string()),
        Ok(metadata) => reads_back(&metadata),
    }
}

fn reads_back(metadata: &TableMetadata) -> Result<String, String> {
    let written = metadata.to_json();
    match TableMetadata::parse(&written) {
        Ok(again) if again == *metadata => {}
        Ok(_) => return Err("what was written reads back as something else".to_owned()),
        Err(error) => return Err(format!("what was written is refused: {error}")),
    }
    metadata.to_json_refs();
    Ok(format!("accepted, version {}", "i".repeat(metadata.format_version().into())))
}

fn create_requests() -> Vec<Vec<u8>> {
    let fields = r#"[{"id":1,"name":"id","required":true,"type":"long"},
        {"id":2,"name":"at","required":false,"type":"timestamptz"},
        {"id":3,"name":"point","required":false,"type":{"type":"struct","fields":[
            {"id":4,"name":"x","required":false,"type":"decimal(9, 2)"}]}},
        {"id":5,"name":"tags","required":false,
            "type":{"type":"list","element-id":6,"element-required":true,"element":"string"}},
        {"id":7,"name":"by","required":false,
            "type":{"type":"map","key-id":8,"key":"string","value-id":9,"value-required":false,"value":"VALUE"}}]"#;
    let request = |version: u8, value: &str| {
        format!(
            r#"{{"name":"t","location":"s3://b/w/t","schema":{{"type":"struct","schema-id":0,"identifier-field-ids":[1],
            "fields":{}}},"partition-spec":{{"spec-id":0,"fields":[
                {{"source-id":2,"field-id":1000,"name":"at_day","transform":"day"}},
                {{"source-id":1,"field-id":1001,"name":"id_bucket","transform":"bucket[16]"}}]}},
            "write-order":{{"order-id":1,"fields":[
                {{"source-id":1,"transform":"identity","direction":"asc","null-order":"nulls-first"}}]}},
            "stage-create":false,"properties":{{"format-version":"{version}","owner":"me"}}}}"#,
            fields.replace("VALUE", value)
        )
        .into_bytes()
    };
    vec![request(1, "date"), request(2, "binary"), request(3, "variant"), request(3, "geometry(OGC:CRS84)")]
}

fn create(input: &[u8]) -> Result<String, String> {
    let made = CreateTable::parse(input).and_then(|request| request.metadata("s3://b/w/t", UUID, NOW_MS));
    match made {
        Err(error) => Ok(error.to_string()),
        Ok(metadata) => reads_back(&metadata),
    }
}

fn commit_requests() -> Vec<Vec<u8>> {
    let snapshot = r#"{"snapshot-id":7,"parent-snapshot-id":3055729675574597004,"sequence-number":90,"first-row-id":900,
        "added-rows":3,"timestamp-ms":1800000000000,"manifest-list":"s3://b/w/t/metadata/snap-7.avro",
        "summary":{"operation":"append"},"schema-id":0}"#;
    let schema = r#"{"type":"struct","schema-id":9,"fields":[{"id":1,"name":"x","required":true,"type":"long"},
        {"id":90,"name":"new","required":false,"type":"string","write-default":"d"}]}"#;
    let statistics = r#"{"snapshot-id":3055729675574597004,"statistics-path":"s3://b/w/t/metadata/s.puffin",
        "file-size-in-bytes":9,"file-footer-size-in-bytes":4,"blob-metadata":[]}"#;
    let updates = [
        format!(r#"{{"action":"add-snapshot","snapshot":{snapshot}}}"#),
        r#"{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7}"#.to_owned(),
        r#"{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":3051729675574597004,"max-ref-age-ms":9}"#
            .to_owned(),
        r#"{"action":"remove-snapshot-ref","ref-name":"main"}"#.to_owned(),
        r#"{"action":"remove-snapshots","snapshot-ids":[3051729675574597004]}"#.to_owned(),
        format!(r#"{{"action":"add-schema","schema":{schema},"last-column-id":90}}"#),
        r#"{"action":"set-current-schema","schema-id":-1}"#.to_owned(),
        r#"{"action":"remove-schemas","schema-ids":[0]}"#.to_owned(),
        r#"{"action":"add-spec","spec":{"fields":[{"source-id":1,"name":"b","transform":"bucket[4]"}]}}"#.to_owned(),
        r#"{"action":"set-default-spec","spec-id":-1}"#.to_owned(),
        r#"{"action":"remove-partition-specs","spec-ids":[0]}"#.to_owned(),
        r#"{"action":"add-sort-order","sort-order":{"order-id":2,"fields":[
            {"source-id":1,"transform":"identity","direction":"desc","null-order":"nulls-last"}]}}"#
            .to_owned(),
        r#"{"action":"set-default-sort-order","sort-order-id":-1}"#.to_owned(),
        r#"{"action":"upgrade-format-version","format-version":3}"#.to_owned(),
        r#"{"action":"set-location","location":"s3://b/w/u"}"#.to_owned(),
        r#"{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"2"}}"#.to_owned(),
        r#"{"action":"remove-properties","removals":["owner"]}"#.to_owned(),
        format!(r#"{{"action":"set-statistics","snapshot-id":7,"statistics":{statistics}}}"#),
        r#"{"action":"remove-statistics","snapshot-id":7}"#.to_owned(),
        r#"{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"aGVsbG8="}}"#
            .to_owned(),
        r#"{"action":"remove-encryption-key","key-id":"k"}"#.to_owned(),
        format!(r#"{{"action":"assign-uuid","uuid":"{UUID}"}}"#),
    ];
    let requirements = r#"[{"type":"assert-table-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"},
        {"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":3055729675574597004},
        {"type":"assert-current-schema-id","current-schema-id":1},{"type":"assert-default-spec-id","default-spec-id":0}]"#;
    let request = |requirements: &str, updates: &str| {
        let identifier = r#"{"namespace":["n"],"name":"t"}"#;
        format!(r#"{{"identifier":{identifier},"requirements":{requirements},"updates":[{updates}]}}"#).into_bytes()
    };
    let mut requests: Vec<_> = updates.iter().map(|update| request("[]", update)).collect();
    requests.push(request("[]", &updates[..2].join(",")));
    requests.push(request("[]", &updates[5..7].join(",")));
    requests.push(request("[]", &updates.join(",")));
    requests.push(request(requirements, &updates[14]));
    requests.push(request(r#"[{"type":"assert-create"}]"#, &updates.join(",")));
    requests
}

/// Applied to a table of each version: what comes of it reads back, and the same commit again does too.
fn commit(input: &[u8]) -> Result<String, String> {
    let commit = match Commit::parse(input) {
        Err(error) => return Ok(error.to_string()),
        Ok(commit) => commit,
    };
    let mut ends = String::new();
    if commit.is_create() {
        match commit.create(UUID, NOW_MS) {
            Err(error) => return Ok(error.to_string()),
            Ok(metadata) => return reads_back(&metadata),
        }
    }
    for base in bases() {
        match commit.apply(&base, LOCATION, NOW_MS) {
            Err(error) => ends.push_str(&error.to_string()),
            Ok(None) => ends.push_str("unchanged"),
            Ok(Some(next)) => {
                reads_back(&next)?;
                if next.uuid() != base.uuid() && base.uuid().is_some() {
                    return Err("the table's uuid changed".to_owned());
                }
                if next.last_sequence_number() < base.last_sequence_number() {
                    return Err("the last sequence number fell".to_owned());
                }
                ends.push_str("changed");
                if let Ok(Some(after)) = commit.apply(&next, LOCATION, NOW_MS) {
                    reads_back(&after)?;
                }
            }
        }
    }
    Ok(ends)
}

/// One table of each format version, parsed once a thread.
fn bases() -> Vec<TableMetadata> {
    thread_local! {
        static BASES: Vec<TableMetadata> = ["table-v1-valid.json", "table-v2-valid.json", "table-v3-pyiceberg.json"]
            .map(|name| {
                let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/metadata").join(name);
                TableMetadata::parse(&fs::read(file).expect("test data")).expect("valid metadata")
            })
            .into();
    }
    BASES.with(Clone::clone)
}
