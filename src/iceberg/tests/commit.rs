//! Commits as a whole, and the updates on plain fields.

use super::*;
use expect_test::expect;

#[test]
fn malformed_commits_are_refused() {
    let bodies: [&[u8]; 14] = [
        b"",
        b"null",
        b"[]",
        b"{",
        b"{\"updates\":{}}",
        b"{\"updates\":[7]}",
        b"{\"updates\":[{}]}",
        b"{\"updates\":[{\"action\":\"frobnicate\"}]}",
        b"{\"updates\":[{\"action\":null}]}",
        b"{\"updates\":[{\"action\":\"enable-row-lineage\"}]}",
        b"{\"updates\":[{\"action\":\"add-view-version\",\"view-version\":{}}]}",
        b"{\"updates\":[{\"action\":\"set-current-view-version\",\"view-version-id\":-1}]}",
        b"{\"identifier\":{\"namespace\":[],\"name\":\"t\"}}",
        b"\xff",
    ];
    let mut reasons = String::new();
    for body in bodies {
        let error = Commit::parse(body).unwrap_err();
        reasons.push_str(&format!("{}\n    {error}\n", String::from_utf8_lossy(body)));
    }
    expect![[r#"

            malformed JSON at byte 0: expected a value
        null
            malformed JSON: expected an object, found null
        []
            malformed JSON: expected an object, found an array
        {
            malformed JSON at byte 1: expected a key
        {"updates":{}}
            malformed JSON: expected an array, found an object
        {"updates":[7]}
            malformed JSON: expected an object, found a number
        {"updates":[{}]}
            missing field: action
        {"updates":[{"action":"frobnicate"}]}
            unknown update: frobnicate
        {"updates":[{"action":null}]}
            missing field: action
        {"updates":[{"action":"enable-row-lineage"}]}
            unknown update: enable-row-lineage
        {"updates":[{"action":"add-view-version","view-version":{}}]}
            update is for views only: add-view-version
        {"updates":[{"action":"set-current-view-version","view-version-id":-1}]}
            update is for views only: set-current-view-version
        {"identifier":{"namespace":[],"name":"t"}}
            a namespace needs at least one level
        �
            malformed JSON: not UTF-8
    "#]]
    .assert_eq(&reasons);
}

#[test]
fn requirements_updates_and_identifier_may_be_left_out() {
    for body in ["{}", r#"{"requirements":null,"updates":null,"identifier":null,"later":[1]}"#] {
        let commit = Commit::parse(body.as_bytes()).unwrap();
        assert!(commit.identifier.is_none() && !commit.is_create());
        assert_eq!(commit.apply(&table(2), BASE_LOCATION, NOW_MS), Ok(None));
    }
    let body = r#"{"identifier":{"namespace":["a","b"],"name":"t"},"requirements":[{"type":"assert-create"}]}"#;
    let commit = Commit::parse(body.as_bytes()).unwrap();
    assert_eq!(commit.identifier.as_ref().unwrap().to_string(), "a.b.t");
    assert!(commit.is_create());
}

#[test]
fn one_bad_update_leaves_nothing_of_the_request() {
    let good = r#"{"action":"set-properties","updates":{"a":"b"}}"#;
    check(
        &table(2),
        &format!(r#"{good},{{"action":"set-current-schema","schema-id":99}}"#),
        expect![[r#"
        invalid: cannot set current schema to unknown schema: 99
    "#]],
    );
    check(
        &table(2),
        &format!(r#"{good},{{"action":"frobnicate"}}"#),
        expect![[r#"
        invalid: unknown update: frobnicate
    "#]],
    );
}

#[test]
fn actions_match_in_any_case() {
    check(
        &table(2),
        r#"{"action":"Set-Properties","updates":{"a":"b"}}"#,
        expect![[r#"
        properties: {"a":"b","write.parquet.compression-codec":"zstd"}
    "#]],
    );
}

#[test]
fn what_changes_nothing_makes_no_version() {
    let base = committed(&table_with_snapshots(3), r#"{"action":"set-properties","updates":{"a":"b"}}"#);
    let key = r#"{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"AA=="}}"#;
    let base = committed(&base, key);
    let schema = base.current_schema().unwrap().json().to_owned();
    let updates = [
        r#"{"action":"assign-uuid","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"}"#,
        r#"{"action":"upgrade-format-version","format-version":3}"#,
        r#"{"action":"set-properties","updates":{"a":"b"}}"#,
        r#"{"action":"set-properties","updates":{}}"#,
        r#"{"action":"remove-properties","removals":["gone"]}"#,
        r#"{"action":"set-location","location":"s3://b/w/t/"}"#,
        r#"{"action":"set-current-schema","schema-id":0}"#,
        r#"{"action":"set-default-spec","spec-id":0}"#,
        r#"{"action":"set-default-sort-order","sort-order-id":0}"#,
        r#"{"action":"add-spec","spec":{"spec-id":7,"fields":[]}},{"action":"set-default-spec","spec-id":-1}"#,
        r#"{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1}"#,
        r#"{"action":"set-snapshot-ref","ref-name":"main","type":"BRANCH","snapshot-id":2}"#,
        r#"{"action":"remove-snapshot-ref","ref-name":"gone"}"#,
        r#"{"action":"remove-snapshots","snapshot-ids":[77,78]}"#,
        r#"{"action":"remove-statistics","snapshot-id":1}"#,
        r#"{"action":"remove-partition-statistics","snapshot-id":1}"#,
        r#"{"action":"remove-schemas","schema-ids":[9]}"#,
        r#"{"action":"remove-partition-specs","spec-ids":[9]}"#,
        key,
        r#"{"action":"remove-encryption-key","key-id":"gone"}"#,
    ];
    for update in updates {
        assert_eq!(commit(&base, &request(update)), Ok(None), "{update}");
    }
    let same =
        format!(r#"{{"action":"add-schema","schema":{schema}}},{{"action":"set-current-schema","schema-id":-1}}"#);
    assert_eq!(commit(&base, &request(&same)), Ok(None));
}

#[test]
fn uuid_is_set_once() {
    check(
        &table(2),
        r#"{"action":"assign-uuid","uuid":"00000000-0000-0000-0000-000000000000"}"#,
        expect![[r#"
        invalid: cannot reassign uuid: 9c12d441-03fe-4693-9a96-a0705ddf69c1 to 00000000-0000-0000-0000-000000000000
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"assign-uuid","uuid":"x"}"#,
        expect![[r#"
        invalid: uuid is not a UUID: x
    "#]],
    );
}

#[test]
fn format_version_only_rises() {
    check(
        &table(1),
        r#"{"action":"upgrade-format-version","format-version":2}"#,
        expect![[r#"
        format-version: 2
        last-sequence-number: 0
        schema: gone
        partition-spec: gone
    "#]],
    );
    check(
        &table(1),
        r#"{"action":"upgrade-format-version","format-version":3}"#,
        expect![[r#"
        format-version: 3
        last-sequence-number: 0
        next-row-id: 0
        schema: gone
        partition-spec: gone
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"upgrade-format-version","format-version":3}"#,
        expect![[r#"
        format-version: 3
        next-row-id: 0
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"upgrade-format-version","format-version":1}"#,
        expect![[r#"
        invalid: cannot downgrade v2 table to v1
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"upgrade-format-version","format-version":4}"#,
        expect![[r#"
        invalid: cannot upgrade table to unsupported format version: v4 (supported: v3)
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"upgrade-format-version","format-version":-1}"#,
        expect![[r#"
        invalid: cannot upgrade table to unsupported format version: v-1 (supported: v3)
    "#]],
    );
}

#[test]
fn minus_one_goes_with_the_upgrade_to_v3() {
    let text = String::from_utf8(table(2).to_json()).unwrap().replacen('{', r#"{"current-snapshot-id":-1,"#, 1);
    let base = TableMetadata::parse(text.as_bytes()).unwrap();
    check(
        &base,
        r#"{"action":"upgrade-format-version","format-version":3}"#,
        expect![[r#"
        format-version: 3
        next-row-id: 0
        current-snapshot-id: gone
    "#]],
    );
}

#[test]
fn a_v1_table_without_uuid_cannot_be_upgraded() {
    let text = String::from_utf8(table(1).to_json()).unwrap().replacen("table-uuid", "x", 1);
    let base = TableMetadata::parse(text.as_bytes()).unwrap();
    check(
        &base,
        r#"{"action":"upgrade-format-version","format-version":2}"#,
        expect![[r#"
        invalid: a table of format version 2 needs a uuid
    "#]],
    );
    check(
        &base,
        r#"{"action":"assign-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"},
           {"action":"upgrade-format-version","format-version":2}"#,
        expect![[r#"
            format-version: 2
            table-uuid: "9c12d441-03fe-4693-9a96-a0705ddf69c1"
            last-sequence-number: 0
            schema: gone
            partition-spec: gone
        "#]],
    );
}

#[test]
fn properties_are_set_and_removed() {
    let base = committed(&table(2), r#"{"action":"set-properties","updates":{"a":"1","b":"2"}}"#);
    check(
        &base,
        r#"{"action":"set-properties","updates":{"b":"3","c":"é\u0041"}}"#,
        expect![[r#"
        properties: {"a":"1","b":"3","c":"éA","write.parquet.compression-codec":"zstd"}
    "#]],
    );
    check(
        &base,
        r#"{"action":"set-properties","updated":{"b":"3"}}"#,
        expect![[r#"
        properties: {"a":"1","b":"3","write.parquet.compression-codec":"zstd"}
    "#]],
    );
    check(
        &base,
        r#"{"action":"remove-properties","removals":["a","gone"]}"#,
        expect![[r#"
        properties: {"b":"2","write.parquet.compression-codec":"zstd"}
    "#]],
    );
    check(
        &base,
        r#"{"action":"remove-properties","removed":["a"]}"#,
        expect![[r#"
        properties: {"b":"2","write.parquet.compression-codec":"zstd"}
    "#]],
    );
    check(
        &base,
        r#"{"action":"set-properties"}"#,
        expect![[r#"
        invalid: missing field: updates
    "#]],
    );
    check(
        &base,
        r#"{"action":"set-properties","updates":{"a":1}}"#,
        expect![[r#"
        invalid: updates: the value of a must be a string
    "#]],
    );
    check(
        &base,
        r#"{"action":"set-properties","updates":{"a":null}}"#,
        expect![[r#"
        invalid: updates: the value of a must be a string
    "#]],
    );
}

#[test]
fn reserved_properties_are_dropped() {
    let reserved = [
        "format-version",
        "uuid",
        "snapshot-count",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "current-schema",
        "default-partition-spec",
        "default-sort-order",
    ];
    let reserved = reserved.map(|name| format!(r#""{name}":"3""#)).join(",");
    check(
        &table(2),
        &format!(r#"{{"action":"set-properties","updates":{{{reserved}}}}}"#),
        expect![[r#"
        no change
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"set-properties","updates":{"current-schema":"x","a":"b"}}"#,
        expect![[r#"
        properties: {"a":"b","write.parquet.compression-codec":"zstd"}
    "#]],
    );
}

#[test]
fn properties_the_next_commit_would_trip_over_are_refused() {
    let set = |key: &str, value: &str| format!(r#"{{"action":"set-properties","updates":{{"{key}":"{value}"}}}}"#);
    check(
        &table(2),
        &set("write.metadata.compression-codec", "zstd"),
        expect![[r#"
        invalid: invalid value for write.metadata.compression-codec: zstd is neither none nor gzip
    "#]],
    );
    check(
        &table(2),
        &set("write.metadata.compression-codec", "GZIP"),
        expect![[r#"
        properties: {"write.metadata.compression-codec":"GZIP","write.parquet.compression-codec":"zstd"}
    "#]],
    );
    check(
        &table(2),
        &set("write.metadata.previous-versions-max", "many"),
        expect![[r#"
        invalid: invalid value for write.metadata.previous-versions-max: many is no integer
    "#]],
    );
}

#[test]
fn metadata_codec_follows_the_property() {
    use crate::iceberg::MetadataCodec;
    let with = |codec: &str| {
        let update = r#"{"action":"set-properties","updates":{"write.metadata.compression-codec":"CODEC"}}"#;
        committed(&table(2), &update.replace("CODEC", codec)).metadata_codec()
    };
    assert_eq!(table(2).metadata_codec(), MetadataCodec::None);
    assert_eq!(
        [with("GZIP"), with("gzip"), with("none")],
        [MetadataCodec::Gzip, MetadataCodec::Gzip, MetadataCodec::None]
    );
}

#[test]
fn locations_lose_their_trailing_slashes() {
    check(
        &table(2),
        r#"{"action":"set-location","location":"s3://b//w/u//"}"#,
        expect![[r#"
        location: "s3://b//w/u"
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"set-location","location":"/"}"#,
        expect![[r#"
        invalid: a table location must not be empty
    "#]],
    );
}

#[test]
fn the_previous_file_joins_the_metadata_log() {
    let base = table(2);
    let next = committed(&base, r#"{"action":"set-properties","updates":{"a":"b"}}"#);
    let log = &json(&next)["metadata-log"];
    assert_eq!(log[0]["metadata-file"], BASE_LOCATION);
    assert_eq!(log[0]["timestamp-ms"], base.last_updated_ms());
    assert_eq!(next.last_updated_ms(), NOW_MS);
}

/// Files in the log after so many commits under a property value, and which ones fell out at the last.
fn log_after(commits: usize, previous_versions_max: &str) -> (usize, Vec<String>) {
    let set = r#"{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"MAX"}}"#;
    let mut base = table(2);
    let mut removed = Vec::new();
    for number in 0..commits {
        let update = match number {
            0 => set.replace("MAX", previous_versions_max),
            _ => format!(r#"{{"action":"set-properties","updates":{{"n":"{number}"}}}}"#),
        };
        let commit = Commit::parse(request(&update).as_bytes()).unwrap();
        let next = commit.apply(&base, &format!("s3://b/{number}.json"), NOW_MS).unwrap().unwrap();
        removed = next.removed_from_log(&base).into_iter().map(str::to_owned).collect();
        base = next;
    }
    (base.metadata_log().len(), removed)
}

#[test]
fn the_metadata_log_keeps_the_newest() {
    assert_eq!(log_after(6, "2"), (2, vec!["s3://b/3.json".to_owned()]));
    assert_eq!(log_after(6, "4"), (4, vec!["s3://b/1.json".to_owned()]));
    assert_eq!(log_after(3, "0"), (1, vec!["s3://b/1.json".to_owned()]));
    assert_eq!(log_after(3, "-5"), (1, vec!["s3://b/1.json".to_owned()]));
    assert_eq!(log_after(102, "100"), (100, vec!["s3://b/1.json".to_owned()]));
    assert_eq!(log_after(4, "100"), (4, vec![]));
}

#[test]
fn a_lower_bound_counts_at_once() {
    let mut base = table(2);
    for number in 0..5 {
        base = committed(&base, &format!(r#"{{"action":"set-properties","updates":{{"n":"{number}"}}}}"#));
    }
    let next =
        committed(&base, r#"{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"2"}}"#);
    assert_eq!((base.metadata_log().len(), next.metadata_log().len()), (5, 2));
}

#[test]
fn time_never_runs_backwards() {
    let update = request(r#"{"action":"set-properties","updates":{"a":"b"}}"#);
    let base = table(2);
    let next = Commit::parse(update.as_bytes()).unwrap().apply(&base, BASE_LOCATION, 5).unwrap().unwrap();
    assert_eq!(next.last_updated_ms(), base.last_updated_ms());
}

#[test]
fn statistics_are_one_a_snapshot() {
    let set = |id: i64, size: i64| {
        format!(
            r#"{{"action":"set-statistics","statistics":{{"snapshot-id":{id},"statistics-path":"s3://b/{id}.stats",
            "file-size-in-bytes":{size},"file-footer-size-in-bytes":42,"x":[1],"blob-metadata":[{{"type":"t","snapshot-id":{id},
            "sequence-number":1,"fields":[1],"properties":{{"ndv":"7"}}}}]}}}}"#
        )
    };
    let base = committed(&table_with_snapshots(2), &format!("{},{}", set(1, 100), set(2, 100)));
    check(
        &table_with_snapshots(2),
        &set(1, 100),
        expect![[r#"
        statistics: [{"snapshot-id":1,"statistics-path":"s3://b/1.stats","file-size-in-bytes":100,"file-footer-size-in-bytes":42,"x":[1],"blob-metadata":[{"type":"t","snapshot-id":1,"sequence-number":1,"fields":[1],"properties":{"ndv":"7"}}]}]
    "#]],
    );
    check(
        &base,
        &set(1, 200),
        expect![[r#"
        statistics: [{"snapshot-id":2,"statistics-path":"s3://b/2.stats","file-size-in-bytes":100,"file-footer-size-in-bytes":42,"x":[1],"blob-metadata":[{"type":"t","snapshot-id":2,"sequence-number":1,"fields":[1],"properties":{"ndv":"7"}}]},{"snapshot-id":1,"statistics-path":"s3://b/1.stats","file-size-in-bytes":200,"file-footer-size-in-bytes":42,"x":[1],"blob-metadata":[{"type":"t","snapshot-id":1,"sequence-number":1,"fields":[1],"properties":{"ndv":"7"}}]}]
    "#]],
    );
    check(
        &base,
        &set(1, 100),
        expect![[r#"
        no change
    "#]],
    );
    check(
        &base,
        r#"{"action":"remove-statistics","snapshot-id":2}"#,
        expect![[r#"
        statistics: [{"snapshot-id":1,"statistics-path":"s3://b/1.stats","file-size-in-bytes":100,"file-footer-size-in-bytes":42,"x":[1],"blob-metadata":[{"type":"t","snapshot-id":1,"sequence-number":1,"fields":[1],"properties":{"ndv":"7"}}]}]
    "#]],
    );
    let bad = [
        r#"{"action":"set-statistics","snapshot-id":1}"#,
        r#"{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1}}"#,
        r#"{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[{}]}}"#,
        r#"{"action":"set-statistics","statistics":{"statistics-path":"p"}}"#,
    ];
    for update in bad {
        assert!(matches!(commit(&base, &request(update)), Err(Error::Invalid(_))), "{update}");
    }
}

#[test]
fn partition_statistics_are_one_a_snapshot() {
    let set = |size: i64| {
        format!(
            r#"{{"action":"set-partition-statistics","partition-statistics":{{"snapshot-id":1,"statistics-path":"s3://b/1.parquet","file-size-in-bytes":{size}}}}}"#
        )
    };
    let base = committed(&table_with_snapshots(2), &set(1));
    check(
        &base,
        &set(2),
        expect![[r#"
        partition-statistics: [{"snapshot-id":1,"statistics-path":"s3://b/1.parquet","file-size-in-bytes":2}]
    "#]],
    );
    check(
        &base,
        r#"{"action":"remove-partition-statistics","snapshot-id":1}"#,
        expect![[r#"
        partition-statistics: []
    "#]],
    );
    check(
        &base,
        &set(2).replace("file-size-in-bytes", "size"),
        expect![[r#"
            invalid: missing field: file-size-in-bytes
        "#]],
    );
}

#[test]
fn encryption_keys_come_with_v3() {
    let add = r#"{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"AA==","encrypted-by-id":"m","properties":{"p":"q"}}}"#;
    check(
        &table(2),
        add,
        expect![[r#"
        invalid: encryption keys are not supported until v3, the table is v2
    "#]],
    );
    check(
        &table(3),
        add,
        expect![[r#"
        encryption-keys: [{"key-id":"k","encrypted-key-metadata":"AA==","encrypted-by-id":"m","properties":{"p":"q"}}]
    "#]],
    );
    let base = committed(&table(3), add);
    check(
        &base,
        r#"{"action":"remove-encryption-key","key-id":"k"}"#,
        expect![[r#"
        encryption-keys: gone
    "#]],
    );
    check(
        &base,
        &add.replace("AA==", "%"),
        expect![[r#"
        invalid: encrypted-key-metadata must be base64
    "#]],
    );
}
