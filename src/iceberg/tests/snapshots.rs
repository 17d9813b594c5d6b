//! Snapshots, refs and the snapshot log.

use super::*;
use expect_test::expect;

fn add(snapshot: &str) -> String {
    format!(r#"{{"action":"add-snapshot","snapshot":{snapshot}}}"#)
}

#[test]
fn an_append_moves_main() {
    check(
        &table(1),
        &append(1, 1, None),
        expect![[r#"
        current-snapshot-id: 1
        refs: {"main":{"snapshot-id":1,"type":"branch"}}
        snapshots: [{"snapshot-id":1,"timestamp-ms":1699992801000,"manifest-list":"s3://b/w/t/metadata/snap-1.avro","summary":{"operation":"append"},"schema-id":0}]
        snapshot-log: [{"timestamp-ms":1699992801000,"snapshot-id":1}]
    "#]],
    );
    check(
        &table_with_snapshots(2),
        &append(2, 3, Some(2)),
        expect![[r#"
            last-sequence-number: 3
            current-snapshot-id: 3
            refs: {"main":{"snapshot-id":3,"type":"branch"}}
            snapshots: + [{"snapshot-id":3,"parent-snapshot-id":2,"sequence-number":3,"timestamp-ms":1699992803000,"manifest-list":"s3://b/w/t/metadata/snap-3.avro","summary":{"operation":"append"},"schema-id":0}]
            snapshot-log: + [{"timestamp-ms":1699992803000,"snapshot-id":3}]
        "#]],
    );
    check(
        &table_with_snapshots(3),
        &append(3, 3, Some(2)),
        expect![[r#"
            last-sequence-number: 3
            current-snapshot-id: 3
            next-row-id: 30
            refs: {"main":{"snapshot-id":3,"type":"branch"}}
            snapshots: + [{"snapshot-id":3,"parent-snapshot-id":2,"sequence-number":3,"first-row-id":20,"added-rows":10,"timestamp-ms":1699992803000,"manifest-list":"s3://b/w/t/metadata/snap-3.avro","summary":{"operation":"append"},"schema-id":0}]
            snapshot-log: + [{"timestamp-ms":1699992803000,"snapshot-id":3}]
        "#]],
    );
}

#[test]
fn a_snapshot_alone_moves_nothing() {
    check(
        &table(2),
        &add(&snapshot(2, 1, None)),
        expect![[r#"
        last-sequence-number: 1
        snapshots: [{"snapshot-id":1,"sequence-number":1,"timestamp-ms":1699992801000,"manifest-list":"s3://b/w/t/metadata/snap-1.avro","summary":{"operation":"append"},"schema-id":0}]
    "#]],
    );
}

#[test]
fn stale_snapshots_are_conflicts() {
    check(
        &table_with_snapshots(2),
        &add(&snapshot(2, 3, Some(2)).replace("\"sequence-number\":3", "\"sequence-number\":2")),
        expect![[r#"
            conflict: Validation failed, please retry: cannot add snapshot with sequence number 2 older than last sequence number 2
        "#]],
    );
    check(
        &table_with_snapshots(3),
        &add(&snapshot(3, 3, Some(2)).replace("\"first-row-id\":20", "\"first-row-id\":19")),
        expect![[r#"
            conflict: Validation failed, please retry: cannot add a snapshot, first-row-id is behind table next-row-id: 19 < 20
        "#]],
    );
}

#[test]
fn a_new_line_of_snapshots_may_repeat_numbers() {
    let updates = r#"{"action":"remove-snapshot-ref","ref-name":"main"},"#.to_owned()
        + &append(2, 3, None).replace("\"sequence-number\":3", "\"sequence-number\":1");
    check(
        &table_with_snapshots(2),
        &updates,
        expect![[r#"
            current-snapshot-id: 3
            refs: {"main":{"snapshot-id":3,"type":"branch"}}
            snapshots: + [{"snapshot-id":3,"sequence-number":1,"timestamp-ms":1699992803000,"manifest-list":"s3://b/w/t/metadata/snap-3.avro","summary":{"operation":"append"},"schema-id":0}]
            snapshot-log: + [{"timestamp-ms":1699992803000,"snapshot-id":3}]
        "#]],
    );
}

#[test]
fn malformed_snapshots_are_refused() {
    let v2 = table_with_snapshots(2);
    let good = snapshot(2, 3, Some(2));
    check(
        &v2,
        &add(&snapshot(2, 2, Some(1))),
        expect![[r#"
        invalid: snapshot already exists for id: 2
    "#]],
    );
    check(
        &v2,
        &add(&good.replace("\"snapshot-id\":3,", "")),
        expect![[r#"
        invalid: snapshot without snapshot-id
    "#]],
    );
    check(
        &v2,
        &add(&good.replace("\"snapshot-id\":3,", "\"snapshot-id\":-1,")),
        expect![[r#"
        invalid: a snapshot id must not be negative: -1
    "#]],
    );
    check(
        &v2,
        &add(&good.replace("\"sequence-number\":3,", "")),
        expect![[r#"
        invalid: snapshot 3 without sequence-number
    "#]],
    );
    check(
        &v2,
        &add(&good.replace("\"sequence-number\":3,", "\"sequence-number\":null,")),
        expect![[r#"
        invalid: snapshot 3 without sequence-number
    "#]],
    );
    check(
        &v2,
        &add(&good.replace("manifest-list", "list")),
        expect![[r#"
        invalid: snapshot 3 without manifest-list
    "#]],
    );
    check(
        &v2,
        &add(&good.replace("\"schema-id\":0", "\"manifests\":[\"m\"]")),
        expect![[r#"
        invalid: snapshot 3: manifests are not supported after v1
    "#]],
    );
    check(
        &v2,
        &add(&good.replace("\"append\"", "7")),
        expect![[r#"
        invalid: summary: the value of operation must be a string
    "#]],
    );
    check(
        &v2,
        &add(&snapshot(2, 3, None).replace("\"sequence-number\":3", "\"sequence-number\":-3")),
        expect![[r#"
        invalid: a sequence number must not be negative: -3
    "#]],
    );
    check(
        &table(1),
        &add(&snapshot(2, 1, None)),
        expect![[r#"
        invalid: snapshot 1: a sequence number must be 0 in v1
    "#]],
    );
    check(
        &table(1),
        &add(&snapshot(1, 1, None).replace("manifest-list", "x")),
        expect![[r#"
        invalid: snapshot 1 without manifest-list
    "#]],
    );
    check(
        &table(1),
        &add(&snapshot(1, 1, None).replace("\"schema-id\":0", "\"manifests\":[\"m\"]")),
        expect![[r#"
        invalid: snapshot 1: manifests must be omitted beside manifest-list
    "#]],
    );
    let v3 = table(3);
    let good = snapshot(3, 1, None);
    check(
        &v3,
        &add(&snapshot(2, 1, None)),
        expect![[r#"
        invalid: cannot add a snapshot: first-row-id is null
    "#]],
    );
    check(
        &v3,
        &add(&good.replace("\"added-rows\":10,", "")),
        expect![[r#"
        invalid: cannot add a snapshot: added-rows is null
    "#]],
    );
    check(
        &v3,
        &add(&good.replace("\"added-rows\":10,", "\"added-rows\":-1,")),
        expect![[r#"
        invalid: added-rows must not be negative: -1
    "#]],
    );
    check(
        &v3,
        &add(&good.replace("\"first-row-id\":0", "\"first-row-id\":9223372036854775807")),
        expect![[r#"
        invalid: row ids are exhausted
    "#]],
    );
}

#[test]
fn what_a_summary_lacks_is_not_asked_for() {
    check(
        &table(2),
        &add(&snapshot(2, 1, None).replace(r#","summary":{"operation":"append"}"#, "")),
        expect![[r#"
        last-sequence-number: 1
        snapshots: [{"snapshot-id":1,"sequence-number":1,"timestamp-ms":1699992801000,"manifest-list":"s3://b/w/t/metadata/snap-1.avro","schema-id":0}]
    "#]],
    );
    let inline = snapshot(1, 1, None)
        .replace(r#""manifest-list":"s3://b/w/t/metadata/snap-1.avro""#, r#""manifests":["s3://m"]"#);
    check(
        &table(1),
        &add(&inline),
        expect![[r#"
        snapshots: [{"snapshot-id":1,"timestamp-ms":1699992801000,"manifests":["s3://m"],"summary":{"operation":"append"},"schema-id":0}]
    "#]],
    );
}

#[test]
fn row_ids_are_counted_on() {
    let ahead = append(3, 1, None).replace("\"first-row-id\":0", "\"first-row-id\":5");
    assert_eq!(json(&committed(&table(3), &ahead))["next-row-id"], 15);
    let upgraded = committed(&table_with_snapshots(2), r#"{"action":"upgrade-format-version","format-version":3}"#);
    assert_eq!(json(&upgraded)["next-row-id"], 0);
    let next = append(3, 3, Some(2)).replace("\"first-row-id\":20", "\"first-row-id\":0");
    let next = committed(&upgraded, &next);
    assert_eq!(json(&next)["next-row-id"], 10);
    assert!(json(&next)["snapshots"][0].get("first-row-id").is_none());
}

#[test]
fn refs_are_set_and_removed() {
    let base = table_with_snapshots(2);
    let set = |fields: &str| format!(r#"{{"action":"set-snapshot-ref",{fields}}}"#);
    check(
        &base,
        &set(r#""ref-name":"t","type":"Tag","snapshot-id":1,"max-ref-age-ms":5"#),
        expect![[r#"
        refs: {"main":{"snapshot-id":2,"type":"branch"},"t":{"snapshot-id":1,"type":"tag","max-ref-age-ms":5}}
    "#]],
    );
    check(
        &base,
        &set(
            r#""ref-name":"b","type":"branch","snapshot-id":1,"min-snapshots-to-keep":2,"max-snapshot-age-ms":3,"max-ref-age-ms":null"#,
        ),
        expect![[r#"
            refs: {"b":{"snapshot-id":1,"type":"branch","min-snapshots-to-keep":2,"max-snapshot-age-ms":3},"main":{"snapshot-id":2,"type":"branch"}}
        "#]],
    );
    check(
        &base,
        &set(r#""ref-name":"main","type":"branch","snapshot-id":2,"min-snapshots-to-keep":2"#),
        expect![[r#"
        refs: {"main":{"snapshot-id":2,"type":"branch","min-snapshots-to-keep":2}}
    "#]],
    );
    check(
        &base,
        &set(r#""ref-name":"main","type":"branch","snapshot-id":1"#),
        expect![[r#"
            current-snapshot-id: 1
            refs: {"main":{"snapshot-id":1,"type":"branch"}}
            snapshot-log: + [{"timestamp-ms":1700000000000,"snapshot-id":1}]
        "#]],
    );
    check(
        &base,
        r#"{"action":"remove-snapshot-ref","ref-name":"main"}"#,
        expect![[r#"
        refs: {}
        current-snapshot-id: gone
    "#]],
    );
}

#[test]
fn unknown_fields_of_a_ref_outlive_its_moves() {
    let set = |id: i64, more: &str| {
        format!(r#"{{"action":"set-snapshot-ref","ref-name":"b","type":"branch","snapshot-id":{id}{more}}}"#)
    };
    let base = committed(&table_with_snapshots(2), &set(1, r#","x":[1]"#));
    check(
        &base,
        &set(1, ""),
        expect![[r#"
        no change
    "#]],
    );
    check(
        &base,
        &set(2, ""),
        expect![[r#"
        refs: {"b":{"snapshot-id":2,"type":"branch","x":[1]},"main":{"snapshot-id":2,"type":"branch"}}
    "#]],
    );
    check(
        &base,
        &set(2, r#","x":[2]"#),
        expect![[r#"
        refs: {"b":{"snapshot-id":2,"type":"branch","x":[2]},"main":{"snapshot-id":2,"type":"branch"}}
    "#]],
    );
}

#[test]
fn refs_that_break_rules_are_refused() {
    let base = table_with_snapshots(2);
    let set = |fields: &str| format!(r#"{{"action":"set-snapshot-ref",{fields}}}"#);
    check(
        &base,
        &set(r#""ref-name":"main","type":"tag","snapshot-id":1"#),
        expect![[r#"
        invalid: main must be a branch
    "#]],
    );
    check(
        &base,
        &set(r#""ref-name":"b","type":"branch","snapshot-id":99"#),
        expect![[r#"
        invalid: cannot set b to unknown snapshot: 99
    "#]],
    );
    check(
        &base,
        &set(r#""ref-name":"b","type":"twig","snapshot-id":1"#),
        expect![[r#"
        invalid: unknown snapshot reference type: twig
    "#]],
    );
    check(
        &base,
        &set(r#""ref-name":"b","type":"branch""#),
        expect![[r#"
        invalid: missing field: snapshot-id
    "#]],
    );
    check(
        &base,
        &set(r#""ref-name":"t","type":"tag","snapshot-id":1,"max-snapshot-age-ms":3"#),
        expect![[r#"
        invalid: tags do not support min-snapshots-to-keep and max-snapshot-age-ms
    "#]],
    );
    check(
        &base,
        &set(r#""ref-name":"b","type":"branch","snapshot-id":1,"min-snapshots-to-keep":0"#),
        expect![[r#"
        invalid: retention settings of a snapshot reference must be positive
    "#]],
    );
    check(
        &base,
        &set(r#""ref-name":"b","type":"branch","snapshot-id":1,"max-ref-age-ms":-1"#),
        expect![[r#"
        invalid: retention settings of a snapshot reference must be positive
    "#]],
    );
}

/// The log after the updates, as `snapshot@time` with times relative to now.
fn check_log(base: &TableMetadata, updates: &str, expected: Expect) {
    let next = committed(base, updates);
    assert_eq!(TableMetadata::parse(&next.to_json()).as_ref(), Ok(&next), "does not read back");
    let entries =
        next.snapshot_log().iter().map(|entry| format!("{}@{} ", entry.snapshot_id, entry.timestamp_ms - NOW_MS));
    expected.assert_eq(&format!("{}current {:?}", entries.collect::<String>(), next.current_snapshot_id()));
}

#[test]
fn the_log_tells_when_a_snapshot_became_current() {
    let base = table_with_snapshots(2);
    check_log(&base, &append(2, 3, Some(2)), expect!["1@-7199000 2@-7198000 3@-7197000 current Some(3)"]);
    check_log(&base, &set_main(1), expect!["1@-7199000 2@-7198000 1@0 current Some(1)"]);
    check_log(
        &base,
        r#"{"action":"remove-snapshot-ref","ref-name":"main"}"#,
        expect!["1@-7199000 2@-7198000 current None"],
    );
}

#[test]
fn snapshots_passed_over_within_a_request_leave_no_entry() {
    let base = table_with_snapshots(2);
    check_log(
        &base,
        &format!("{},{}", append(2, 3, Some(2)), append(2, 4, Some(3))),
        expect!["1@-7199000 2@-7198000 4@-7196000 current Some(4)"],
    );
    check_log(
        &base,
        &format!("{},{}", append(2, 3, Some(2)), set_main(1)),
        expect!["1@-7199000 2@-7198000 1@0 current Some(1)"],
    );
    check_log(
        &base,
        &format!("{},{},{}", append(2, 3, Some(2)), set_main(1), set_main(3)),
        expect!["1@-7199000 2@-7198000 3@-7197000 1@0 3@0 current Some(3)"],
    );
}

#[test]
fn removing_a_snapshot_cuts_the_log_before_it() {
    let base = committed(&table_with_snapshots(2), &append(2, 3, Some(2)));
    let remove = |ids: &str| format!(r#"{{"action":"remove-snapshots","snapshot-ids":[{ids}]}}"#);
    check_log(&base, &remove("1"), expect!["2@-7198000 3@-7197000 current Some(3)"]);
    check_log(&base, &remove("2"), expect!["3@-7197000 current Some(3)"]);
    check_log(&base, &remove("3"), expect!["current None"]);
    check_log(&base, &remove("1,2,3,99"), expect!["current None"]);
    check_log(
        &base,
        &format!("{},{}", remove("1"), append(2, 4, Some(3))),
        expect!["2@-7198000 3@-7197000 4@-7196000 current Some(4)"],
    );
}

#[test]
fn a_clock_that_is_off_makes_no_file_readers_refuse() {
    let base = table_with_snapshots(2);
    let at = |offset_ms: i64| {
        let time = NOW_MS - 7_200_000 + 3000;
        append(2, 3, Some(2)).replace(&time.to_string(), &(NOW_MS + offset_ms).to_string())
    };
    check_log(&base, &at(-7_230_000), expect!["1@-7199000 2@-7198000 3@-7230000 current Some(3)"]);
    check_log(&base, &at(-9_000_000), expect!["1@-7199000 2@-7198000 3@-7198000 current Some(3)"]);
    check_log(&base, &at(600_000), expect!["1@-7199000 2@-7198000 3@600000 current Some(3)"]);
    assert_eq!(committed(&base, &at(600_000)).last_updated_ms(), NOW_MS + 600_000);
}

#[test]
fn removed_snapshots_take_refs_and_statistics_along() {
    let updates = r#"
        {"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1},
        {"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1}},
        {"action":"set-statistics","snapshot-id":1,"statistics":{"snapshot-id":1,"statistics-path":"s","file-size-in-bytes":1,
            "file-footer-size-in-bytes":1,"blob-metadata":[]}}"#;
    let base = committed(&table_with_snapshots(2), updates);
    check(
        &base,
        r#"{"action":"remove-snapshots","snapshot-ids":[1]}"#,
        expect![[r#"
        refs: {"main":{"snapshot-id":2,"type":"branch"}}
        snapshots: [{"snapshot-id":2,"parent-snapshot-id":1,"sequence-number":2,"timestamp-ms":1699992802000,"manifest-list":"s3://b/w/t/metadata/snap-2.avro","summary":{"operation":"append"},"schema-id":0}]
        statistics: []
        partition-statistics: []
        snapshot-log: [{"timestamp-ms":1699992802000,"snapshot-id":2}]
    "#]],
    );
    check(
        &base,
        r#"{"action":"remove-snapshots","snapshot-ids":[2]}"#,
        expect![[r#"
        refs: {"t":{"snapshot-id":1,"type":"tag"}}
        snapshots: [{"snapshot-id":1,"sequence-number":1,"timestamp-ms":1699992801000,"manifest-list":"s3://b/w/t/metadata/snap-1.avro","summary":{"operation":"append"},"schema-id":0}]
        snapshot-log: []
        current-snapshot-id: gone
    "#]],
    );
}

#[test]
fn the_first_snapshot_of_a_race_wins() {
    let body = |id: i64| {
        let requirement = r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}"#;
        format!(r#"{{"requirements":[{requirement}],"updates":[{}]}}"#, append(2, id, None))
    };
    let base = table(2);
    let won = commit(&base, &body(1)).unwrap().unwrap();
    assert!(matches!(commit(&won, &body(2)), Err(Error::Conflict(_))));
}

#[test]
fn unknown_fields_of_a_snapshot_and_its_text_are_stored() {
    let text = snapshot(2, 1, None).replacen('{', r#"{"key-id":"k", "x" : 1.50,"#, 1);
    let written = String::from_utf8(committed(&table(2), &add(&text)).to_json()).unwrap();
    assert!(written.contains(&text));
}
