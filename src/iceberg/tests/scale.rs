//! Long histories and hostile sizes.

use super::*;

const SNAPSHOTS: usize = 10_000;

/// A V2 table with a long history, whose snapshots are written as no JSON writer would.
fn long_history() -> String {
    let snapshot = |id: usize| {
        format!(
            r#"{{ "summary" : {{"operation":"append", "n":"\u0041{}"}}, "snapshot-id":{id},"sequence-number":{id},"timestamp-ms":{},
            "manifest-list":"s3://b/w/t/metadata/snap-{id}.avro" ,"x":1.0000e0}}"#,
            "x".repeat(400),
            NOW_MS - 100_000 + id as i64
        )
    };
    let list = (1..=SNAPSHOTS).map(snapshot).collect::<Vec<_>>().join(",");
    let log: Vec<_> = (1..=SNAPSHOTS)
        .map(|id| format!(r#"{{"timestamp-ms":{},"snapshot-id":{id}}}"#, NOW_MS - 100_000 + id as i64))
        .collect();
    String::from_utf8(table(2).to_json())
        .unwrap()
        .replace(r#""last-sequence-number":0"#, &format!(r#""last-sequence-number":{SNAPSHOTS}"#))
        .replace(
            r#""refs":{}"#,
            &format!(
                r#""current-snapshot-id":{SNAPSHOTS},"refs":{{"main":{{"snapshot-id":{SNAPSHOTS},"type":"branch"}}}}"#
            ),
        )
        .replace(r#""snapshots":[]"#, &format!(r#""snapshots":[{list}]"#))
        .replace(r#""snapshot-log":[]"#, &format!(r#""snapshot-log":[{}]"#, log.join(",")))
        .replacen(r#""last-updated-ms":"#, r#""last-updated-ms":1700000000000,"was":"#, 1)
}

#[test]
fn a_commit_copies_the_text_of_snapshots_it_does_not_touch() {
    let text = long_history();
    let base = TableMetadata::parse(text.as_bytes()).unwrap();
    assert_eq!(base.snapshots().len(), SNAPSHOTS);
    let next = SNAPSHOTS as i64 + 1;
    let appended = committed(&base, &append(2, next, Some(next - 1)));
    // The bodies are the very memory the base holds: nothing was parsed, built or even copied.
    let bodies = base.snapshots().iter().zip(appended.snapshots());
    assert!(bodies.clone().all(|(old, new)| std::ptr::eq(old.json(), new.json())));
    // Escapes, blanks and odd numbers come out as they went in: no value was built from them.
    let start = text.find(r#""snapshots":["#).unwrap();
    let end = text.find(r#"],"statistics""#).unwrap();
    let written = String::from_utf8(appended.to_json()).unwrap();
    assert!(written.contains(&text[start..end]));
    assert_eq!(appended.snapshot_log().len(), SNAPSHOTS + 1);
    assert_eq!(appended.current_snapshot_id(), Some(next));
}

#[test]
fn lists_a_commit_does_not_touch_are_shared() {
    let base = TableMetadata::parse(long_history().as_bytes()).unwrap();
    let next = committed(&base, r#"{"action":"set-properties","updates":{"a":"b"}}"#);
    assert!(std::ptr::eq(base.snapshots(), next.snapshots()));
    assert!(std::ptr::eq(base.snapshot_log(), next.snapshot_log()));
    assert!(std::ptr::eq(base.current_schema().unwrap(), next.current_schema().unwrap()));
}

#[test]
fn most_of_a_long_history_goes_in_one_request() {
    let base = TableMetadata::parse(long_history().as_bytes()).unwrap();
    let known = (1..SNAPSHOTS).map(|id| id.to_string());
    let unknown = (0..50_000_u64).map(|id| (4_000_000_000_000_000_000 + id).to_string());
    let ids = known.chain(unknown).collect::<Vec<_>>().join(",");
    let next = committed(&base, &format!(r#"{{"action":"remove-snapshots","snapshot-ids":[{ids}]}}"#));
    assert_eq!((next.snapshots().len(), next.snapshot_log().len()), (1, 1));
}

#[test]
fn snapshots_removed_one_by_one_are_removed_together() {
    let base = TableMetadata::parse(long_history().as_bytes()).unwrap();
    let one = |id: usize| {
        format!(
            r#"{{"action":"remove-snapshots","snapshot-ids":[{id}]}},{{"action":"remove-statistics","snapshot-id":{id}}},
            {{"action":"remove-partition-statistics","snapshot-id":{id}}}"#
        )
    };
    let updates = (1..SNAPSHOTS).map(one).collect::<Vec<_>>().join(",");
    assert_eq!(committed(&base, &updates).snapshots().len(), 1);
}

#[test]
fn a_commit_has_a_bounded_number_of_updates() {
    let updates = |count: usize| vec![r#"{"action":"remove-encryption-key","key-id":"k"}"#; count].join(",");
    assert_eq!(commit(&table(3), &request(&updates(10_000))), Ok(None));
    let error = commit(&table(3), &request(&updates(10_001))).unwrap_err();
    assert_eq!(error.to_string(), "a commit has at most 10000 updates");
}

#[test]
fn a_long_name_over_many_columns_is_not_multiplied() {
    let name = "n".repeat(1 << 20);
    let fields: Vec<_> =
        (2..20_000).map(|id| format!(r#"{{"id":{id},"name":"c{id}","required":false,"type":"int"}}"#)).collect();
    let nested = format!(r#"{{"type":"struct","fields":[{}]}}"#, fields.join(","));
    let request = format!(
        r#"{{"name":"t","schema":{{"fields":[{{"id":1,"name":"{name}","required":false,"type":{nested}}}]}}}}"#
    );
    let metadata = CreateTable::parse(request.as_bytes()).unwrap().metadata("s3://b/t", UUID, NOW_MS).unwrap();
    // Copies of the name in each path would make 20 GB.
    assert_eq!(json(&metadata)["last-column-id"], 19_999);
}

#[test]
fn many_unknown_fields_cost_no_more_than_their_text() {
    let fields: Vec<_> = (0..200_000).map(|number| format!(r#""x{number}":1"#)).collect();
    let text = String::from_utf8(table(2).to_json()).unwrap().replacen('{', &format!("{{{},", fields.join(",")), 1);
    let metadata = TableMetadata::parse(text.as_bytes()).unwrap();
    assert!(String::from_utf8(metadata.to_json()).unwrap().contains(r#""x199999":1"#));
}
