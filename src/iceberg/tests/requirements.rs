//! Requirements: what they check, and the texts clients' test suites match.

use super::*;
use expect_test::expect;

/// Each requirement on a V2 table with snapshots 1 and 2 on `main` and a tag `t`.
fn check_requirements(requirements: &[&str], expected: Expect) {
    let tag = r#"{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":1}"#;
    let base = committed(&table_with_snapshots(2), tag);
    let lines = requirements.iter().map(|requirement| {
        let body = format!(
            r#"{{"requirements":[{requirement}],"updates":[{{"action":"set-properties","updates":{{"a":"b"}}}}]}}"#
        );
        match commit(&base, &body) {
            Ok(_) => format!("{requirement}\n    holds\n"),
            Err(Error::Conflict(message)) => format!("{requirement}\n    conflict: {message}\n"),
            Err(Error::Invalid(message) | Error::IllegalArgument(message)) => {
                format!("{requirement}\n    invalid: {message}\n")
            }
        }
    });
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn requirements_hold_or_say_what_changed() {
    check_requirements(
        &[
            r#"{"type":"assert-table-uuid","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"}"#,
            r#"{"type":"assert-table-uuid","uuid":"00000000-0000-0000-0000-000000000000"}"#,
            r#"{"type":"assert-create"}"#,
            r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":2}"#,
            r#"{"type":"Assert-Ref-Snapshot-Id","ref":"main","snapshot-id":1}"#,
            r#"{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}"#,
            r#"{"type":"assert-ref-snapshot-id","ref":"t"}"#,
            r#"{"type":"assert-ref-snapshot-id","ref":"t","snapshot-id":2}"#,
            r#"{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":1}"#,
            r#"{"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":null}"#,
            r#"{"type":"assert-last-assigned-field-id","last-assigned-field-id":8}"#,
            r#"{"type":"assert-last-assigned-field-id","last-assigned-field-id":7}"#,
            r#"{"type":"assert-current-schema-id","current-schema-id":0}"#,
            r#"{"type":"assert-current-schema-id","current-schema-id":1}"#,
            r#"{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":999}"#,
            r#"{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":1000}"#,
            r#"{"type":"assert-default-spec-id","default-spec-id":0}"#,
            r#"{"type":"assert-default-spec-id","default-spec-id":1}"#,
            r#"{"type":"assert-default-sort-order-id","default-sort-order-id":0}"#,
            r#"{"type":"assert-default-sort-order-id","default-sort-order-id":1}"#,
        ],
        expect![[r#"
            {"type":"assert-table-uuid","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"}
                holds
            {"type":"assert-table-uuid","uuid":"00000000-0000-0000-0000-000000000000"}
                conflict: Requirement failed: UUID does not match: expected 9c12d441-03fe-4693-9a96-a0705ddf69c1 != 00000000-0000-0000-0000-000000000000
            {"type":"assert-create"}
                conflict: Requirement failed: table already exists
            {"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":2}
                holds
            {"type":"Assert-Ref-Snapshot-Id","ref":"main","snapshot-id":1}
                conflict: Requirement failed: branch main has changed: expected id 1 != 2
            {"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}
                conflict: Requirement failed: branch main was created concurrently
            {"type":"assert-ref-snapshot-id","ref":"t"}
                conflict: Requirement failed: tag t was created concurrently
            {"type":"assert-ref-snapshot-id","ref":"t","snapshot-id":2}
                conflict: Requirement failed: tag t has changed: expected id 2 != 1
            {"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":1}
                conflict: Requirement failed: branch or tag b is missing, expected 1
            {"type":"assert-ref-snapshot-id","ref":"b","snapshot-id":null}
                holds
            {"type":"assert-last-assigned-field-id","last-assigned-field-id":8}
                holds
            {"type":"assert-last-assigned-field-id","last-assigned-field-id":7}
                conflict: Requirement failed: last assigned field id changed: expected id 7 != 8
            {"type":"assert-current-schema-id","current-schema-id":0}
                holds
            {"type":"assert-current-schema-id","current-schema-id":1}
                conflict: Requirement failed: current schema changed: expected id 1 != 0
            {"type":"assert-last-assigned-partition-id","last-assigned-partition-id":999}
                holds
            {"type":"assert-last-assigned-partition-id","last-assigned-partition-id":1000}
                conflict: Requirement failed: last assigned partition id changed: expected id 1000 != 999
            {"type":"assert-default-spec-id","default-spec-id":0}
                holds
            {"type":"assert-default-spec-id","default-spec-id":1}
                conflict: Requirement failed: default partition spec changed: expected id 1 != 0
            {"type":"assert-default-sort-order-id","default-sort-order-id":0}
                holds
            {"type":"assert-default-sort-order-id","default-sort-order-id":1}
                conflict: Requirement failed: default sort order changed: expected id 1 != 0
        "#]],
    );
}

#[test]
fn what_is_no_requirement_of_tables_is_refused() {
    check_requirements(
        &[
            r#"{"type":"assert-moon-phase"}"#,
            r#"{"type":"assert-view-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}"#,
            r#"{"uuid":"x"}"#,
            r#"{"type":7}"#,
            r#"{"type":"assert-table-uuid"}"#,
            r#"{"type":"assert-table-uuid","uuid":null}"#,
            r#"{"type":"assert-current-schema-id","current-schema-id":"0"}"#,
            r#""assert-create""#,
        ],
        expect![[r#"
            {"type":"assert-moon-phase"}
                invalid: unknown requirement: assert-moon-phase
            {"type":"assert-view-uuid","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}
                invalid: requirement is for views only: assert-view-uuid
            {"uuid":"x"}
                invalid: missing field: type
            {"type":7}
                invalid: type must be a string
            {"type":"assert-table-uuid"}
                invalid: missing field: uuid
            {"type":"assert-table-uuid","uuid":null}
                invalid: missing field: uuid
            {"type":"assert-current-schema-id","current-schema-id":"0"}
                invalid: current-schema-id must be a 32-bit integer
            "assert-create"
                invalid: malformed JSON: expected an object, found a string
        "#]],
    );
}

#[test]
fn no_current_snapshot_satisfies_null_in_each_spelling() {
    let body = r#"{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}]}"#;
    for spelling in ["", r#""current-snapshot-id":-1,"#, r#""current-snapshot-id":null,"#] {
        let text = String::from_utf8(table(2).to_json()).unwrap().replacen('{', &format!("{{{spelling}"), 1);
        let base = TableMetadata::parse(text.as_bytes()).unwrap();
        assert_eq!(commit(&base, body), Ok(None), "{spelling}");
    }
}

#[test]
fn a_failed_requirement_comes_before_a_broken_rule() {
    let body = r#"{"requirements":[{"type":"assert-current-schema-id","current-schema-id":7}],
        "updates":[{"action":"set-current-schema","schema-id":99}]}"#;
    assert!(matches!(commit(&table(2), body), Err(Error::Conflict(_))));
}
