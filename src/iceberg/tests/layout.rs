//! Partition specs and sort orders.

use super::*;
use expect_test::expect;

fn add_spec(fields: &str) -> String {
    format!(
        r#"{{"action":"add-spec","spec":{{"spec-id":7,"fields":[{fields}]}}}},{{"action":"set-default-spec","spec-id":-1}}"#
    )
}

fn field(source: i32, name: &str, transform: &str) -> String {
    format!(r#"{{"source-id":{source},"name":"{name}","transform":"{transform}"}}"#)
}

fn numbered(source: i32, id: i32, name: &str, transform: &str) -> String {
    format!(r#"{{"source-id":{source},"field-id":{id},"name":"{name}","transform":"{transform}"}}"#)
}

fn add_order(fields: &str) -> String {
    format!(
        r#"{{"action":"add-sort-order","sort-order":{{"order-id":7,"fields":[{fields}]}}}},{{"action":"set-default-sort-order","sort-order-id":-1}}"#
    )
}

fn ascending(source: i32, transform: &str) -> String {
    format!(r#"{{"source-id":{source},"transform":"{transform}","direction":"asc","null-order":"nulls-first"}}"#)
}

#[test]
fn new_partition_fields_are_numbered_on() {
    let base = table(2);
    check(
        &base,
        &add_spec(&field(3, "d_day", "day")),
        expect![[r#"
            default-spec-id: 1
            partition-specs: + [{"spec-id":1,"fields":[{"source-id":3,"field-id":1000,"name":"d_day","transform":"day"}]}]
            last-partition-id: 1000
        "#]],
    );
    let base = committed(&base, &add_spec(&field(3, "d_day", "day")));
    check(
        &base,
        &add_spec(&[field(3, "d_day", "day"), field(1, "id_bucket", "bucket[16]")].join(",")),
        expect![[r#"
            default-spec-id: 2
            partition-specs: + [{"spec-id":2,"fields":[{"source-id":3,"field-id":1000,"name":"d_day","transform":"day"},{"source-id":1,"field-id":1001,"name":"id_bucket","transform":"bucket[16]"}]}]
            last-partition-id: 1001
        "#]],
    );
    check(
        &base,
        &add_spec(&field(3, "renamed", "day")),
        expect![[r#"
            default-spec-id: 2
            partition-specs: + [{"spec-id":2,"fields":[{"source-id":3,"field-id":1000,"name":"renamed","transform":"day"}]}]
        "#]],
    );
    check(
        &base,
        &add_spec(&numbered(1, 1005, "id_bucket", "bucket[16]")),
        expect![[r#"
            default-spec-id: 2
            partition-specs: + [{"spec-id":2,"fields":[{"source-id":1,"field-id":1005,"name":"id_bucket","transform":"bucket[16]"}]}]
            last-partition-id: 1005
        "#]],
    );
}

#[test]
fn fields_have_ids_all_or_none() {
    let mixed = [numbered(3, 1000, "d_day", "day"), field(1, "id_bucket", "bucket[16]")].join(",");
    check(
        &table(2),
        &add_spec(&mixed),
        expect![[r#"
        invalid: either all partition fields have a field-id, or none
    "#]],
    );
}

#[test]
fn an_equal_spec_is_found_again() {
    let base = committed(&table(2), &add_spec(&field(3, "d_day", "day")));
    check(
        &base,
        &add_spec(""),
        expect![[r#"
        default-spec-id: 0
    "#]],
    );
    check(
        &base,
        &add_spec(&numbered(3, 1007, "d_day", "DAY")),
        expect![[r#"
        no change
    "#]],
    );
}

#[test]
fn unknown_ids_and_nothing_added_are_refused() {
    check(
        &table(2),
        r#"{"action":"set-default-spec","spec-id":-1}"#,
        expect![[r#"
        invalid: cannot set last added partition spec: no partition spec has been added
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"set-default-spec","spec-id":99}"#,
        expect![[r#"
        invalid: cannot set default partition spec to unknown spec: 99
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"set-default-sort-order","sort-order-id":-1}"#,
        expect![[r#"
        invalid: cannot set last added sort order: no sort order has been added
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"set-default-sort-order","sort-order-id":99}"#,
        expect![[r#"
        invalid: cannot set default sort order to unknown order: 99
    "#]],
    );
}

#[test]
fn partition_sources_must_suit() {
    let base = table(2);
    check(
        &base,
        &add_spec(&field(99, "p", "identity")),
        expect![[r#"
        invalid: cannot find source column 99 of partition field p
    "#]],
    );
    check(
        &base,
        &add_spec(&field(5, "p", "identity")),
        expect![[r#"
        invalid: cannot partition by a column that is not primitive: point
    "#]],
    );
    check(
        &base,
        &add_spec(&field(8, "p", "identity")),
        expect![[r#"
        invalid: cannot partition by a column inside a list or map: tags.element
    "#]],
    );
    check(
        &base,
        &add_spec(&field(4, "p", "bucket[4]")),
        expect![[r#"
        invalid: cannot partition float column f by bucket[4]
    "#]],
    );
    check(
        &base,
        &add_spec(&field(3, "p", "hour")),
        expect![[r#"
        invalid: cannot partition date column d by hour
    "#]],
    );
    check(
        &base,
        &add_spec(&field(2, "p", "zorder")),
        expect![[r#"
        invalid: cannot partition by unknown transform: zorder of p
    "#]],
    );
    check(
        &base,
        &add_spec(&field(2, "p", "truncate[0]")),
        expect![[r#"
        invalid: cannot partition by unknown transform: truncate[0] of p
    "#]],
    );
    check(
        &base,
        &add_spec(r#"{"source-ids":[1,2],"name":"p","transform":"bucket[4]"}"#),
        expect![[r#"
        invalid: cannot partition by several columns: p
    "#]],
    );
    check(
        &base,
        &add_spec(r#"{"source-id":1,"source-ids":[2],"name":"p","transform":"bucket[4]"}"#),
        expect![[r#"
        invalid: only one of source-id and source-ids may be given
    "#]],
    );
    check(
        &base,
        &add_spec(r#"{"name":"p","transform":"bucket[4]"}"#),
        expect![[r#"
        invalid: missing field: source-id
    "#]],
    );
    check(
        &base,
        &add_spec(&field(7, "x_bucket", "bucket[4]")),
        expect![[r#"
            default-spec-id: 1
            partition-specs: + [{"spec-id":1,"fields":[{"source-id":7,"field-id":1000,"name":"x_bucket","transform":"bucket[4]"}]}]
            last-partition-id: 1000
        "#]],
    );
    check(
        &base,
        &add_spec(&field(99, "p", "void")),
        expect![[r#"
            default-spec-id: 1
            partition-specs: + [{"spec-id":1,"fields":[{"source-id":99,"field-id":1000,"name":"p","transform":"void"}]}]
            last-partition-id: 1000
        "#]],
    );
}

#[test]
fn partition_names_must_be_their_own() {
    let base = table(2);
    check(
        &base,
        &add_spec(&field(2, "", "identity")),
        expect![[r#"
        invalid: a partition field name must not be empty
    "#]],
    );
    check(
        &base,
        &add_spec(&[field(1, "p", "identity"), field(2, "p", "identity")].join(",")),
        expect![[r#"
        invalid: partition name is used twice: p
    "#]],
    );
    check(
        &base,
        &add_spec(&field(2, "id", "identity")),
        expect![[r#"
        invalid: partition name is the name of another column: id
    "#]],
    );
    check(
        &base,
        &add_spec(&field(2, "point.x", "identity")),
        expect![[r#"
        invalid: partition name is the name of another column: point.x
    "#]],
    );
    check(
        &base,
        &add_spec(&field(2, "s", "identity")),
        expect![[r#"
            default-spec-id: 1
            partition-specs: + [{"spec-id":1,"fields":[{"source-id":2,"field-id":1000,"name":"s","transform":"identity"}]}]
            last-partition-id: 1000
        "#]],
    );
    check(
        &base,
        &add_spec(&[field(2, "a", "identity"), field(2, "b", "identity")].join(",")),
        expect![[r#"
        invalid: partition field repeats another: b
    "#]],
    );
}

#[test]
fn partition_field_ids_keep_their_meaning() {
    let base = committed(&table(2), &add_spec(&field(3, "d_day", "day")));
    check(
        &base,
        &add_spec(&numbered(1, 1000, "id", "identity")),
        expect![[r#"
        invalid: partition field id 1000 of id is taken by a different field
    "#]],
    );
    check(
        &base,
        &add_spec(&[numbered(1, 1001, "a", "identity"), numbered(2, 1001, "b", "identity")].join(",")),
        expect![[r#"
            invalid: partition field id is used twice: 1001
        "#]],
    );
    check(
        &base,
        &add_spec(&numbered(1, 999, "a", "identity")),
        expect![[r#"
        invalid: partition field ids start at 1000: a has 999
    "#]],
    );
    check(
        &base,
        &add_spec(&numbered(3, 1000, "d_day", "void")),
        expect![[r#"
            default-spec-id: 2
            partition-specs: + [{"spec-id":2,"fields":[{"source-id":3,"field-id":1000,"name":"d_day","transform":"void"}]}]
        "#]],
    );
}

#[test]
fn v1_specs_count_from_1000_and_keep_dropped_fields_as_void() {
    let base = committed(&table(1), &add_spec(&field(3, "d_day", "day")));
    check(
        &table(1),
        &add_spec(&numbered(3, 1001, "d_day", "day")),
        expect![[r#"
        invalid: partition field ids must count up from 1000 in v1
    "#]],
    );
    check(
        &base,
        &add_spec(&[field(3, "d_day", "void"), field(1, "id_bucket", "bucket[16]")].join(",")),
        expect![[r#"
            partition-spec: [{"source-id":3,"field-id":1000,"name":"d_day","transform":"void"},{"source-id":1,"field-id":1001,"name":"id_bucket","transform":"bucket[16]"}]
            default-spec-id: 2
            partition-specs: + [{"spec-id":2,"fields":[{"source-id":3,"field-id":1000,"name":"d_day","transform":"void"},{"source-id":1,"field-id":1001,"name":"id_bucket","transform":"bucket[16]"}]}]
            last-partition-id: 1001
        "#]],
    );
    check(
        &base,
        &add_spec(&[numbered(3, 1000, "d_day", "void"), numbered(1, 1001, "b", "bucket[16]")].join(",")),
        expect![[r#"
            partition-spec: [{"source-id":3,"field-id":1000,"name":"d_day","transform":"void"},{"source-id":1,"field-id":1001,"name":"b","transform":"bucket[16]"}]
            default-spec-id: 2
            partition-specs: + [{"spec-id":2,"fields":[{"source-id":3,"field-id":1000,"name":"d_day","transform":"void"},{"source-id":1,"field-id":1001,"name":"b","transform":"bucket[16]"}]}]
            last-partition-id: 1001
        "#]],
    );
}

#[test]
fn the_default_spec_outlives_its_column_only_as_void() {
    let base = committed(&table(2), &add_spec(&field(3, "d_day", "day")));
    let dropped = r#"{"action":"add-schema","schema":{"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}},
        {"action":"set-current-schema","schema-id":-1}"#;
    check(
        &base,
        dropped,
        expect![[r#"
        invalid: cannot find source column 3 of partition field d_day
    "#]],
    );
    check(
        &base,
        &format!("{},{dropped}", add_spec("")),
        expect![[r#"
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}]
            default-spec-id: 0
        "#]],
    );
    check(
        &base,
        &format!("{dropped},{}", add_spec("")),
        expect![[r#"
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}]
            default-spec-id: 0
        "#]],
    );
}

#[test]
fn the_default_spec_is_not_removed() {
    let base = committed(&table(2), &add_spec(&field(3, "d_day", "day")));
    check(
        &base,
        r#"{"action":"remove-partition-specs","spec-ids":[1]}"#,
        expect![[r#"
        invalid: cannot remove the default partition spec
    "#]],
    );
    check(
        &base,
        r#"{"action":"remove-partition-specs","spec-ids":[0,9]}"#,
        expect![[r#"
        partition-specs: [{"spec-id":1,"fields":[{"source-id":3,"field-id":1000,"name":"d_day","transform":"day"}]}]
    "#]],
    );
    let removed = committed(&base, r#"{"action":"remove-partition-specs","spec-ids":[0]}"#);
    check(
        &removed,
        &add_spec(&field(1, "b", "bucket[2]")),
        expect![[r#"
            default-spec-id: 2
            partition-specs: + [{"spec-id":2,"fields":[{"source-id":1,"field-id":1001,"name":"b","transform":"bucket[2]"}]}]
            last-partition-id: 1001
        "#]],
    );
}

#[test]
fn sort_orders_count_from_1_and_are_found_again() {
    let base = committed(&table(2), &add_order(&ascending(1, "identity")));
    check(
        &table(2),
        &add_order(&ascending(1, "identity")),
        expect![[r#"
            default-sort-order-id: 1
            sort-orders: + [{"order-id":1,"fields":[{"transform":"identity","source-id":1,"direction":"asc","null-order":"nulls-first"}]}]
        "#]],
    );
    check(
        &base,
        &add_order(&ascending(1, "IDENTITY").replace("asc", "ASC")),
        expect![[r#"
        no change
    "#]],
    );
    check(
        &base,
        &add_order(&ascending(2, "truncate[3]").replace("asc", "desc").replace("first", "last")),
        expect![[r#"
            default-sort-order-id: 2
            sort-orders: + [{"order-id":2,"fields":[{"transform":"truncate[3]","source-id":2,"direction":"desc","null-order":"nulls-last"}]}]
        "#]],
    );
    check(
        &base,
        &add_order(""),
        expect![[r#"
        default-sort-order-id: 0
    "#]],
    );
}

#[test]
fn sort_sources_must_suit() {
    let base = table(2);
    check(
        &base,
        &add_order(&ascending(99, "identity")),
        expect![[r#"
        invalid: cannot find source column 99 of the sort order
    "#]],
    );
    check(
        &base,
        &add_order(&ascending(5, "identity")),
        expect![[r#"
        invalid: cannot sort column point by identity
    "#]],
    );
    check(
        &base,
        &add_order(&ascending(2, "zorder")),
        expect![[r#"
        invalid: cannot sort by unknown transform: zorder
    "#]],
    );
    check(
        &base,
        &add_order(&ascending(2, "identity").replace("\"source-id\":2", "\"source-ids\":[1,2]")),
        expect![[r#"
            invalid: cannot sort by several columns at once: identity
        "#]],
    );
    check(
        &base,
        &add_order(&ascending(2, "identity").replace("asc", "up")),
        expect![[r#"
        invalid: unknown sort direction: up
    "#]],
    );
    check(
        &base,
        &add_order(&ascending(2, "identity").replace("nulls-first", "nulls")),
        expect![[r#"
        invalid: unknown null order: nulls
    "#]],
    );
    check(
        &base,
        &add_order(&ascending(2, "identity")).replace("\"order-id\":7", "\"order-id\":0"),
        expect![[r#"
        invalid: sort order id 0 is reserved for the unsorted order
    "#]],
    );
}

#[test]
fn a_column_of_the_default_sort_order_stays() {
    let base = committed(&table(2), &add_order(&ascending(2, "identity")));
    let dropped = r#"{"action":"add-schema","schema":{"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}},
        {"action":"set-current-schema","schema-id":-1}"#;
    check(
        &base,
        dropped,
        expect![[r#"
        invalid: cannot find source column 2 of the sort order
    "#]],
    );
}

#[test]
fn stored_specs_and_orders_may_be_beyond_us() {
    let text = String::from_utf8(table(3).to_json()).unwrap();
    let text = text
        .replace(
            r#""partition-specs":[{"spec-id":0,"fields":[]}]"#,
            r#""partition-specs":[{"spec-id":0,"fields":[]},{"spec-id":1,"fields":[
                {"source-ids":[1,2],"field-id":1000,"name":"z","transform":"zorder[8]"},
                {"source-ids":[2],"field-id":1001,"name":"s","transform":"identity"},
                {"source-id":77,"field-id":1002,"name":"gone","transform":"day"}]}]"#,
        )
        .replace(r#""last-partition-id":999"#, r#""last-partition-id":1002"#);
    let base = TableMetadata::parse(text.as_bytes()).unwrap();
    expect![[r#"[{"spec-id":0,"fields":[]},{"spec-id":1,"fields":[{"source-ids":[1,2],"field-id":1000,"name":"z","transform":"zorder[8]"},{"source-id":2,"field-id":1001,"name":"s","transform":"identity"},{"source-id":77,"field-id":1002,"name":"gone","transform":"day"}]}]"#]].assert_eq(&json(&base)["partition-specs"].to_string());
    check(
        &base,
        r#"{"action":"set-default-spec","spec-id":1}"#,
        expect![[r#"
            invalid: cannot find source column 77 of partition field gone
        "#]],
    );
    let default = text.replacen(r#""default-spec-id":0"#, r#""default-spec-id":1"#, 1);
    let broken = TableMetadata::parse(default.as_bytes()).unwrap();
    check(
        &broken,
        r#"{"action":"set-properties","updates":{"write.parquet.compression-codec":"none"}}"#,
        expect![[r#"
            properties: {"write.parquet.compression-codec":"none"}
        "#]],
    );
    let known = default.replacen(r#""source-id":77"#, r#""source-id":3"#, 1);
    let known = TableMetadata::parse(known.as_bytes()).unwrap();
    let schema = r#"{"action":"add-schema","schema":{"fields":[
        {"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"s","required":false,"type":"string"},
        {"id":3,"name":"d","required":false,"type":"date"}]}},{"action":"set-current-schema","schema-id":-1}"#;
    check(
        &known,
        schema,
        expect![[r#"
        current-schema-id: 1
        schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"s","required":false,"type":"string"},{"id":3,"name":"d","required":false,"type":"date"}]}]
    "#]],
    );
    check(
        &base,
        &add_spec(&field(2, "s_identity", "identity")),
        expect![[r#"
            default-spec-id: 2
            partition-specs: + [{"spec-id":2,"fields":[{"source-id":2,"field-id":1001,"name":"s_identity","transform":"identity"}]}]
        "#]],
    );
}
