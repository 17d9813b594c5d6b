//! Files that break a rule, are cut short, or nest too deep.

use super::files::{file, with};
use super::*;
use expect_test::expect;

#[test]
fn required_members_are_required() {
    let mut reasons = String::new();
    let json: Value = serde_json::from_str(&file("table-v2-valid.json")).unwrap();
    for member in json.as_object().unwrap().keys() {
        let reason = match TableMetadata::parse(with(member, "").as_bytes()) {
            Ok(_) => "optional".to_owned(),
            Err(error) => error.to_string(),
        };
        reasons.push_str(&format!("{member}: {reason}\n"));
    }
    expect![[r#"
        format-version: missing field: format-version
        table-uuid: missing field: table-uuid
        location: missing field: location
        last-sequence-number: missing field: last-sequence-number
        last-updated-ms: missing field: last-updated-ms
        last-column-id: missing field: last-column-id
        current-schema-id: missing field: current-schema-id
        schemas: missing field: schemas
        default-spec-id: missing field: default-spec-id
        partition-specs: missing field: partition-specs
        last-partition-id: missing field: last-partition-id
        default-sort-order-id: missing field: default-sort-order-id
        sort-orders: missing field: sort-orders
        properties: optional
        current-snapshot-id: optional
        snapshots: snapshot reference main points at an unknown snapshot: 3055729675574597004
        snapshot-log: optional
        metadata-log: optional
    "#]]
    .assert_eq(&reasons);
}

#[test]
fn rules_between_members_are_checked() {
    let cases = [
        ("format-version", "0"),
        ("format-version", "4"),
        ("format-version", "\"2\""),
        ("format-version", "2.0"),
        ("table-uuid", "\"not-a-uuid\""),
        ("location", "\"\""),
        ("location", "7"),
        ("last-sequence-number", "0"),
        ("last-updated-ms", "1"),
        ("current-schema-id", "7"),
        ("default-spec-id", "7"),
        ("default-sort-order-id", "7"),
        ("schemas", "[]"),
        ("schemas", r#"[{"schema-id":1,"fields":[]},{"schema-id":1,"fields":[]}]"#),
        ("schemas", "{}"),
        ("partition-specs", "[]"),
        ("partition-specs", r#"[{"spec-id":0,"fields":[]},{"spec-id":0,"fields":[]}]"#),
        ("sort-orders", "[]"),
        ("sort-orders", r#"[{"order-id":3,"fields":[]},{"order-id":3,"fields":[]}]"#),
        (
            "sort-orders",
            r#"[{"order-id":0,"fields":[{"transform":"identity","source-id":2,"direction":"asc","null-order":"nulls-first"}]}]"#,
        ),
        ("current-snapshot-id", "1"),
        ("snapshots", "[]"),
        ("snapshots", r#"[{"snapshot-id":1,"timestamp-ms":1},{"snapshot-id":1,"timestamp-ms":1}]"#),
        ("snapshots", r#"[{"timestamp-ms":1}]"#),
        ("refs", r#"{"b":{"snapshot-id":7,"type":"branch"}}"#),
        ("refs", r#"{"main":{"snapshot-id":3051729675574597004,"type":"branch"}}"#),
        ("refs", r#"{"main":{"snapshot-id":3055729675574597004,"type":"tag"}}"#),
        ("refs", r#"{"t":{"snapshot-id":3055729675574597004,"type":"tag","min-snapshots-to-keep":1}}"#),
        ("refs", r#"{"b":{"snapshot-id":3055729675574597004,"type":"branch","max-ref-age-ms":0}}"#),
        ("refs", r#"{"b":{"snapshot-id":3055729675574597004,"type":"twig"}}"#),
        (
            "snapshot-log",
            r#"[{"timestamp-ms":1515100955770,"snapshot-id":1},{"timestamp-ms":1515100895769,"snapshot-id":1}]"#,
        ),
        ("snapshot-log", r#"[{"timestamp-ms":1602638633591,"snapshot-id":1}]"#),
        ("metadata-log", r#"[{"timestamp-ms":1602638633591,"metadata-file":"s3://b/1"}]"#),
        ("metadata-log", r#"[{"metadata-file":"s3://b/1"}]"#),
        ("properties", r#"{"a":1}"#),
        ("statistics", r#"[{"snapshot-id":1}]"#),
        (
            "encryption-keys",
            r#"[{"key-id":"k","encrypted-key-metadata":"AA=="},{"key-id":"k","encrypted-key-metadata":"AA=="}]"#,
        ),
        ("encryption-keys", r#"[{"key-id":"k","encrypted-key-metadata":"not base64"}]"#),
    ];
    let mut reasons = String::new();
    for (member, text) in cases {
        let reason = match TableMetadata::parse(with(member, text).as_bytes()) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => error.to_string(),
        };
        reasons.push_str(&format!("{member} {text}\n    {reason}\n"));
    }
    expect![[r#"
        format-version 0
            unsupported format version: v0
        format-version 4
            unsupported format version: v4
        format-version "2"
            format-version must be a 32-bit integer
        format-version 2.0
            format-version must be a 32-bit integer
        table-uuid "not-a-uuid"
            table-uuid is not a UUID: not-a-uuid
        location ""
            a table location must not be empty
        location 7
            location must be a string
        last-sequence-number 0
            snapshot 3055729675574597004 has sequence number 1, over the last sequence number 0
        last-updated-ms 1
            snapshot-log and last-updated-ms must ascend: 1 follows 1555100955770
        current-schema-id 7
            current schema not found: 7
        default-spec-id 7
            default partition spec not found: 7
        default-sort-order-id 7
            default sort order not found: 7
        schemas []
            current schema not found: 1
        schemas [{"schema-id":1,"fields":[]},{"schema-id":1,"fields":[]}]
            schema id occurs twice: 1
        schemas {}
            malformed JSON: expected an array, found an object
        partition-specs []
            default partition spec not found: 0
        partition-specs [{"spec-id":0,"fields":[]},{"spec-id":0,"fields":[]}]
            partition spec id occurs twice: 0
        sort-orders []
            default sort order not found: 3
        sort-orders [{"order-id":3,"fields":[]},{"order-id":3,"fields":[]}]
            sort order id occurs twice: 3
        sort-orders [{"order-id":0,"fields":[{"transform":"identity","source-id":2,"direction":"asc","null-order":"nulls-first"}]}]
            sort order id 0 is reserved for the unsorted order
        current-snapshot-id 1
            snapshot reference main points at an unknown snapshot: 1
        snapshots []
            snapshot reference main points at an unknown snapshot: 3055729675574597004
        snapshots [{"snapshot-id":1,"timestamp-ms":1},{"snapshot-id":1,"timestamp-ms":1}]
            snapshot id occurs twice: 1
        snapshots [{"timestamp-ms":1}]
            snapshot without snapshot-id
        refs {"b":{"snapshot-id":7,"type":"branch"}}
            snapshot reference b points at an unknown snapshot: 7
        refs {"main":{"snapshot-id":3051729675574597004,"type":"branch"}}
            current snapshot does not match the main branch: 3055729675574597004 != 3051729675574597004
        refs {"main":{"snapshot-id":3055729675574597004,"type":"tag"}}
            main must be a branch
        refs {"t":{"snapshot-id":3055729675574597004,"type":"tag","min-snapshots-to-keep":1}}
            tags do not support min-snapshots-to-keep and max-snapshot-age-ms
        refs {"b":{"snapshot-id":3055729675574597004,"type":"branch","max-ref-age-ms":0}}
            retention settings of a snapshot reference must be positive
        refs {"b":{"snapshot-id":3055729675574597004,"type":"twig"}}
            unknown snapshot reference type: twig
        snapshot-log [{"timestamp-ms":1515100955770,"snapshot-id":1},{"timestamp-ms":1515100895769,"snapshot-id":1}]
            snapshot-log and last-updated-ms must ascend: 1515100895769 follows 1515100955770
        snapshot-log [{"timestamp-ms":1602638633591,"snapshot-id":1}]
            snapshot-log and last-updated-ms must ascend: 1602638573590 follows 1602638633591
        metadata-log [{"timestamp-ms":1602638633591,"metadata-file":"s3://b/1"}]
            metadata-log and last-updated-ms must ascend: 1602638573590 follows 1602638633591
        metadata-log [{"metadata-file":"s3://b/1"}]
            metadata-log entry without timestamp-ms or metadata-file
        properties {"a":1}
            properties: the value of a must be a string
        statistics [{"snapshot-id":1}]
            statistics file without statistics-path
        encryption-keys [{"key-id":"k","encrypted-key-metadata":"AA=="},{"key-id":"k","encrypted-key-metadata":"AA=="}]
            encryption key id occurs twice: k
        encryption-keys [{"key-id":"k","encrypted-key-metadata":"not base64"}]
            accepted
    "#]].assert_eq(&reasons);
}

#[test]
fn v3_files_count_row_ids() {
    let json: Value = serde_json::from_str(&file("table-v3-pyiceberg.json")).unwrap();
    for (next_row_id, reason) in [
        (None, "missing field: next-row-id"),
        (Some(Value::Null), "missing field: next-row-id"),
        (Some(Value::from("1")), "next-row-id must be a 64-bit integer"),
    ] {
        let mut json = json.clone();
        json.as_object_mut().unwrap().remove("next-row-id");
        json.as_object_mut().unwrap().extend(next_row_id.map(|value| ("next-row-id".to_owned(), value)));
        let error = TableMetadata::parse(json.to_string().as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), reason);
    }
}

#[test]
fn damaged_files_never_panic() {
    for name in ["table-v1-compat-real-writer.json", "table-v3-pyiceberg.json", "table-v3-encryption-keys.json"] {
        let text = file(name).trim_end().to_owned();
        for end in 0..text.len() {
            assert!(TableMetadata::parse(&text.as_bytes()[..end]).is_err(), "{name} cut at {end}");
        }
        for at in 0..text.len() {
            for byte in [b'"', b'0', b'}', b'[', 0xFF, 0] {
                let mut damaged = text.clone().into_bytes();
                damaged[at] = byte;
                let _outcome = TableMetadata::parse(&damaged);
            }
        }
    }
}

#[test]
fn deep_nesting_is_refused() {
    let nested = (0..40).fold("\"int\"".to_owned(), |inner, id| {
        format!(r#"{{"type":"struct","fields":[{{"id":{},"name":"a","required":false,"type":{inner}}}]}}"#, id + 10)
    });
    let schema = format!(r#"[{{"schema-id":1,"fields":[{{"id":1,"name":"x","required":true,"type":{nested}}}]}}]"#);
    let error = TableMetadata::parse(with("schemas", &schema).as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "JSON nests deeper than 100 levels");
    let garbage = "[".repeat(1_000_000);
    assert!(TableMetadata::parse(with("x", &garbage).as_bytes()).is_err());
    assert!(CreateTable::parse(garbage.as_bytes()).is_err() && Commit::parse(garbage.as_bytes()).is_err());
}
