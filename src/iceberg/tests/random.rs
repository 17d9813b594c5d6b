//! Random sequences of updates: whatever is accepted leaves a table that reads back and holds to the rules.

use super::*;
use crate::iceberg::statistics::StatisticsFile;
use proptest::prelude::*;
use std::collections::HashSet;

fn updates() -> impl Strategy<Value = String> {
    let id = 0..6_i64;
    let name = prop::sample::select(vec!["main", "b", "t"]);
    let column = |id: i32, r#type: &str| format!(r#"{{"id":{id},"name":"c{id}","required":false,"type":"{type}"}}"#);
    prop_oneof![
        4 => (id.clone(), prop::option::of(id.clone()), 0..40_i64, 0..60_i64, -200_000..200_000_i64).prop_map(|(id, parent, number, row, offset)| {
            let parent = parent.map(|parent| format!(r#""parent-snapshot-id":{parent},"#)).unwrap_or_default();
            format!(
                r#"{{"action":"add-snapshot","snapshot":{{"snapshot-id":{id},{parent}"sequence-number":{number},"first-row-id":{row},
                "added-rows":3,"timestamp-ms":{},"manifest-list":"s3://b/{id}.avro","summary":{{"operation":"append"}},"schema-id":{}}}}}"#,
                NOW_MS + offset, id % 3
            )
        }),
        4 => (name.clone(), id.clone(), any::<bool>()).prop_map(|(name, id, tag)| {
            let kind = if tag && name != "main" { "tag" } else { "branch" };
            format!(r#"{{"action":"set-snapshot-ref","ref-name":"{name}","type":"{kind}","snapshot-id":{id}}}"#)
        }),
        1 => name.prop_map(|name| format!(r#"{{"action":"remove-snapshot-ref","ref-name":"{name}"}}"#)),
        1 => prop::collection::vec(id, 1..3).prop_map(|ids| format!(r#"{{"action":"remove-snapshots","snapshot-ids":{ids:?}}}"#)),
        2 => (1..12_i32, prop::sample::select(vec![
            "int", "long", "string", "date", "timestamp", "timestamp_ns", "variant", "unknown", "geometry(OGC:CRS84)",
        ])).prop_map(move |(id, r#type)| {
            format!(
                r#"{{"action":"add-schema","schema":{{"fields":[{},{}]}}}},{{"action":"set-current-schema","schema-id":-1}}"#,
                column(1, "long"), column(id + 1, r#type)
            )
        }),
        1 => (-1..4_i32).prop_map(|id| format!(r#"{{"action":"set-current-schema","schema-id":{id}}}"#)),
        1 => (0..4_i32).prop_map(|id| format!(r#"{{"action":"remove-schemas","schema-ids":[{id}]}}"#)),
        2 => (1..12_i32, prop::sample::select(vec!["identity", "bucket[4]", "day", "void"]), prop::option::of(1000..1004_i32)).prop_map(|(id, transform, field_id)| {
            let field_id = field_id.map(|id| format!(r#""field-id":{id},"#)).unwrap_or_default();
            format!(
                r#"{{"action":"add-spec","spec":{{"fields":[{{"source-id":{id},{field_id}"name":"p{id}","transform":"{transform}"}}]}}}},
                {{"action":"set-default-spec","spec-id":-1}}"#
            )
        }),
        1 => (-1..4_i32).prop_map(|id| format!(r#"{{"action":"set-default-spec","spec-id":{id}}}"#)),
        1 => (0..4_i32).prop_map(|id| format!(r#"{{"action":"remove-partition-specs","spec-ids":[{id}]}}"#)),
        1 => (1..12_i32).prop_map(|id| format!(
            r#"{{"action":"add-sort-order","sort-order":{{"order-id":1,"fields":[{{"source-id":{id},"transform":"identity",
            "direction":"asc","null-order":"nulls-first"}}]}}}},{{"action":"set-default-sort-order","sort-order-id":-1}}"#
        )),
        1 => (1..4_i32).prop_map(|version| format!(r#"{{"action":"upgrade-format-version","format-version":{version}}}"#)),
        1 => (0..3_i64).prop_map(|id| format!(
            r#"{{"action":"set-partition-statistics","partition-statistics":{{"snapshot-id":{id},"statistics-path":"p","file-size-in-bytes":1}}}}"#
        )),
        1 => (0..3_i64, any::<bool>()).prop_map(|(id, set)| if set { format!(
            r#"{{"action":"set-statistics","snapshot-id":{id},"statistics":{{"snapshot-id":{id},"statistics-path":"s",
            "file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]}}}}"#
        ) } else {
            format!(r#"{{"action":"remove-statistics","snapshot-id":{id}}}"#)
        }),
        1 => (0..3_i64).prop_map(|id| format!(r#"{{"action":"remove-partition-statistics","snapshot-id":{id}}}"#)),
        1 => (0..3_i64, any::<bool>()).prop_map(|(id, add)| if add { format!(
            r#"{{"action":"add-encryption-key","encryption-key":{{"key-id":"k{id}","encrypted-key-metadata":"aGVsbG8="}}}}"#
        ) } else {
            format!(r#"{{"action":"remove-encryption-key","key-id":"k{id}"}}"#)
        }),
        1 => prop::sample::select(vec![
            r#"{"action":"set-location","location":"s3://b/w/u"}"#,
            r#"{"action":"remove-properties","removals":["write.metadata.previous-versions-max","owner"]}"#,
            r#"{"action":"assign-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}"#,
            r#"{"action":"assign-uuid","uuid":"00000000-0000-0000-0000-000000000001"}"#,
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["1", "2", "x"]).prop_map(|value| format!(
            r#"{{"action":"set-properties","updates":{{"write.metadata.previous-versions-max":"{value}"}}}}"#
        )),
    ]
}

/// What every table satisfies, however it came about.
fn hold(base: &TableMetadata, next: &TableMetadata) -> Result<(), TestCaseError> {
    prop_assert_eq!(&TableMetadata::parse(&next.to_json()).expect("reads back"), next);
    prop_assert_eq!(next.uuid(), base.uuid());
    prop_assert!(next.format_version() >= base.format_version());
    prop_assert!(next.last_updated_ms() >= base.last_updated_ms());
    prop_assert!(next.last_sequence_number >= base.last_sequence_number);
    prop_assert!(next.last_column_id >= base.last_column_id && next.last_partition_id >= base.last_partition_id);
    prop_assert!(next.next_row_id >= base.next_row_id);
    let schema = next.current_schema().expect("current schema");
    // Files of other writers may count too low already.
    let counts =
        |table: &TableMetadata| table.schemas().all(|schema| schema.highest_field_id() <= table.last_column_id);
    prop_assert!(counts(next) || !counts(base));
    prop_assert!(next.default_spec().expect("default spec").check_binding(schema).is_ok());
    prop_assert!(next.default_sort_order().expect("default order").check_binding(schema).is_ok());
    prop_assert!(next.specs().iter().all(|spec| spec.last_field_id() <= next.last_partition_id));
    let ids: HashSet<_> = next.snapshots().iter().map(|snapshot| snapshot.id).collect();
    prop_assert!(next.refs().all(|(_, reference)| ids.contains(&reference.snapshot_id)));
    prop_assert_eq!(next.refs.get("main").map(|main| main.snapshot_id), next.current_snapshot_id());
    prop_assert!(next.snapshot_log().iter().all(|entry| ids.contains(&entry.snapshot_id)));
    let has_one_each = |files: &[StatisticsFile]| {
        files.iter().map(|file| file.snapshot_id).collect::<HashSet<_>>().len() == files.len()
    };
    prop_assert!(has_one_each(&next.statistics) && has_one_each(&next.partition_statistics));
    prop_assert!(next.snapshots().iter().all(|snapshot| snapshot.sequence_number <= next.last_sequence_number));
    if next.format_version() < 3 {
        let written = String::from_utf8(next.to_json()).expect("text");
        prop_assert!(!["timestamp_ns", "variant", "unknown", "geometry"].iter().any(|newer| written.contains(newer)));
    }
    // Other writers may keep no log.
    if let Some(current) = next.current_snapshot_id().filter(|_| !next.snapshot_log().is_empty()) {
        prop_assert_eq!(next.snapshot_log().last().map(|entry| entry.snapshot_id), Some(current));
    }
    prop_assert_eq!(next.metadata_log().last().copied(), Some(BASE_LOCATION));
    Ok(())
}

proptest! {
    #[test]
    fn accepted_updates_leave_a_sound_table(
        version in 1..=3_u8,
        file in prop::option::of(prop::sample::select(vec![
            "table-v1-valid.json", "table-v2-valid.json", "table-v2-partition-evolution.json", "table-v2-two-statistics.json",
            "table-v3-pyiceberg.json", "table-v3-partition-statistics.json",
        ])),
        commits in prop::collection::vec(prop::collection::vec(updates(), 1..4), 1..12),
    ) {
        let mut base = match file {
            None => table(version),
            Some(file) => TableMetadata::parse(super::files::file(file).as_bytes()).expect("a good file"),
        };
        for commit_updates in commits {
            let body = request(&commit_updates.join(","));
            if let Ok(Some(next)) = commit(&base, &body) {
                hold(&base, &next)?;
                base = next;
            }
        }
    }
}
