//! Schemas: ids, names, types, defaults and how they may change.

use super::*;
use expect_test::expect;

/// Adds a schema of these fields and makes it current.
fn add(fields: &str) -> String {
    format!(
        r#"{{"action":"add-schema","schema":{{"type":"struct","schema-id":42,"fields":[{fields}]}},"last-column-id":3}},{{"action":"set-current-schema","schema-id":-1}}"#
    )
}

fn field(id: i32, name: &str, r#type: &str) -> String {
    format!(r#"{{"id":{id},"name":"{name}","required":false,"type":{}}}"#, quoted(r#type))
}

fn required(id: i32, name: &str, r#type: &str) -> String {
    field(id, name, r#type).replace("false", "true")
}

fn quoted(r#type: &str) -> String {
    if r#type.starts_with('{') { r#type.to_owned() } else { format!("\"{}\"", r#type) }
}

#[test]
fn field_ids_are_kept_to_the_letter() {
    let list = r#"{"type":"list","element-id":30,"element-required":false,"element":"int"}"#;
    let map = r#"{"type":"map","key-id":40,"key":"string","value-id":50,"value-required":true,"value":"int"}"#;
    check(
        &table(2),
        &add(&[field(1, "id", "long"), field(20, "n", list), field(21, "m", map)].join(",")),
        expect![[r#"
            last-column-id: 50
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"long"},{"id":20,"name":"n","required":false,"type":{"type":"list","element-id":30,"element":"int","element-required":false}},{"id":21,"name":"m","required":false,"type":{"type":"map","key-id":40,"key":"string","value-id":50,"value":"int","value-required":true}}]}]
        "#]],
    );
    check(
        &table(2),
        &add(&field(1, "id", "long")),
        expect![[r#"
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}]
        "#]],
    );
}

#[test]
fn an_equal_schema_is_found_again() {
    let base = committed(&table(2), &add(&field(1, "id", "long")));
    let first = base.schema(0).unwrap().json().replace("\"schema-id\":0", "\"schema-id\":9");
    check(
        &base,
        &format!(r#"{{"action":"add-schema","schema":{first}}},{{"action":"set-current-schema","schema-id":-1}}"#),
        expect![[r#"
            current-schema-id: 0
        "#]],
    );
    check(
        &base,
        &add(&field(1, "id", "long")),
        expect![[r#"
        no change
    "#]],
    );
    check(
        &base,
        &add(&field(1, "ID", "long")),
        expect![[r#"
            current-schema-id: 2
            schemas: + [{"type":"struct","schema-id":2,"fields":[{"id":1,"name":"ID","required":false,"type":"long"}]}]
        "#]],
    );
}

#[test]
fn identifier_fields_make_a_schema_another_one() {
    let base = table(2);
    let add = |ids: &str| {
        add(&[required(1, "a", "long"), required(2, "b", "long")].join(",")).replacen(
            "\"schema-id\":42",
            &format!("\"schema-id\":42,\"identifier-field-ids\":{ids}"),
            1,
        )
    };
    let base = committed(&base, &add("[1,2]"));
    check(
        &base,
        &add("[2,1]"),
        expect![[r#"
        no change
    "#]],
    );
    check(
        &base,
        &add("[1]"),
        expect![[r#"
            current-schema-id: 2
            schemas: + [{"type":"struct","schema-id":2,"identifier-field-ids":[1],"fields":[{"id":1,"name":"a","required":true,"type":"long"},{"id":2,"name":"b","required":true,"type":"long"}]}]
        "#]],
    );
    check(
        &base,
        &add("[]"),
        expect![[r#"
            current-schema-id: 2
            schemas: + [{"type":"struct","schema-id":2,"fields":[{"id":1,"name":"a","required":true,"type":"long"},{"id":2,"name":"b","required":true,"type":"long"}]}]
        "#]],
    );
}

#[test]
fn unknown_ids_and_nothing_added_are_refused() {
    check(
        &table(2),
        r#"{"action":"set-current-schema","schema-id":99}"#,
        expect![[r#"
        invalid: cannot set current schema to unknown schema: 99
    "#]],
    );
    check(
        &table(2),
        r#"{"action":"set-current-schema","schema-id":-1}"#,
        expect![[r#"
        invalid: cannot set last added schema: no schema has been added
    "#]],
    );
}

#[test]
fn malformed_schemas_are_refused() {
    let base = table(2);
    let schema = |text: &str| format!(r#"{{"action":"add-schema","schema":{text}}}"#);
    check(
        &base,
        &schema("[]"),
        expect![[r#"
            invalid: malformed JSON: expected an object, found an array
        "#]],
    );
    check(
        &base,
        &schema("{}"),
        expect![[r#"
        invalid: schema without fields
    "#]],
    );
    check(
        &base,
        &schema(r#"{"type":"list","fields":[]}"#),
        expect![[r#"
        invalid: a schema is a struct, not list
    "#]],
    );
    check(
        &base,
        &schema(r#"{"fields":[{"name":"a","required":false,"type":"int"}]}"#),
        expect![[r#"
        invalid: field without id
    "#]],
    );
    check(
        &base,
        &schema(r#"{"fields":[{"id":1,"name":"a","type":"int"}]}"#),
        expect![[r#"
        invalid: field without required
    "#]],
    );
    check(
        &base,
        &schema(r#"{"fields":[{"id":1,"name":"a","required":"no","type":"int"}]}"#),
        expect![[r#"
        invalid: required must be true or false
    "#]],
    );
    check(
        &base,
        &schema(r#"{"fields":[{"id":1,"name":"a","required":false,"type":7}]}"#),
        expect![[r#"
        invalid: type must be a string
    "#]],
    );
    check(
        &base,
        &schema(r#"{"fields":[{"id":1,"name":"a","required":false,"type":{"type":"set"}}]}"#),
        expect![[r#"
        invalid: unknown type: set
    "#]],
    );
    check(
        &base,
        &schema(r#"{"fields":[{"id":1,"name":"a","required":false,"type":{"type":"list","element":"int"}}]}"#),
        expect![[r#"
            invalid: list without element-id
        "#]],
    );
    check(
        &base,
        &add(&field(1, "a", "bigint")),
        expect![[r#"
        invalid: unknown type: bigint
    "#]],
    );
}

#[test]
fn ids_and_names_are_unique() {
    let base = table(2);
    let nested = |name: &str| format!(r#"{{"type":"struct","fields":[{}]}}"#, field(20, name, "int"));
    check(
        &base,
        &add(&[field(1, "a", "int"), field(1, "b", "int")].join(",")),
        expect![[r#"
        invalid: field id 1 occurs twice: b
    "#]],
    );
    check(
        &base,
        &add(&[field(20, "a", "int"), field(1, "b", &nested("c"))].join(",")),
        expect![[r#"
        invalid: field id 20 occurs twice: b.c
    "#]],
    );
    check(
        &base,
        &add(&[field(1, "a", "int"), field(2, "a", "int")].join(",")),
        expect![[r#"
        invalid: column name is used twice: a
    "#]],
    );
    check(
        &base,
        &add(&[field(1, "b.c", "int"), field(2, "b", &nested("c"))].join(",")),
        expect![[r#"
        invalid: column name is used twice: b.c
    "#]],
    );
    check(
        &base,
        &add(&field(2147483448, "a", "int")),
        expect![[r#"
        invalid: field id 2147483448 of a is outside 0 to 2147483447
    "#]],
    );
    check(
        &base,
        &add(&field(-5, "a", "int")),
        expect![[r#"
        invalid: field id -5 of a is outside 0 to 2147483447
    "#]],
    );
    check(
        &base,
        &add(&field(2147483447, "a", "int")),
        expect![[r#"
            last-column-id: 2147483447
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":2147483447,"name":"a","required":false,"type":"int"}]}]
        "#]],
    );
    check(
        &base,
        &add(&[field(9, "a", "int"), field(10, "A", "int"), field(11, "😀", &nested("a"))].join(",")),
        expect![[r#"
            last-column-id: 20
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":9,"name":"a","required":false,"type":"int"},{"id":10,"name":"A","required":false,"type":"int"},{"id":11,"name":"😀","required":false,"type":{"type":"struct","fields":[{"id":20,"name":"a","required":false,"type":"int"}]}}]}]
        "#]],
    );
}

#[test]
fn identifier_fields_name_rows() {
    let base = table(3);
    let check_identifier = |fields: &str, expected| {
        check(
            &base,
            &add(fields).replacen("\"schema-id\":42", "\"schema-id\":42,\"identifier-field-ids\":[9]", 1),
            expected,
        );
    };
    let nested = |of: &str| format!(r#"{{"type":"struct","fields":[{of}]}}"#);
    check_identifier(
        &required(8, "a", "int"),
        expect![[r#"
        invalid: identifier field does not exist: 9
    "#]],
    );
    check_identifier(
        &field(9, "a", "int"),
        expect![[r#"
        invalid: identifier field a must be required
    "#]],
    );
    check_identifier(
        &required(9, "a", "double"),
        expect![[r#"
        invalid: identifier field a must not be float or double
    "#]],
    );
    check_identifier(
        &required(9, "a", "variant"),
        expect![[r#"
        invalid: identifier field a must be primitive
    "#]],
    );
    check_identifier(
        &required(9, "a", "geometry"),
        expect![[r#"
        invalid: identifier field a must not be geospatial
    "#]],
    );
    check_identifier(
        &required(9, "a", &nested(&field(10, "b", "int"))),
        expect![[r#"
        invalid: identifier field a must be primitive
    "#]],
    );
    check_identifier(
        &field(10, "s", &nested(&required(9, "a", "int"))),
        expect![[r#"
        invalid: identifier field s.a must lie in required structs only
    "#]],
    );
    let list = r#"{"type":"list","element-id":9,"element-required":true,"element":"int"}"#;
    check_identifier(
        &required(10, "l", list),
        expect![[r#"
        invalid: identifier field l.element must lie in required structs only
    "#]],
    );
    check_identifier(
        &required(10, "s", &nested(&required(9, "a", "int"))),
        expect![[r#"
            last-column-id: 10
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"identifier-field-ids":[9],"fields":[{"id":10,"name":"s","required":true,"type":{"type":"struct","fields":[{"id":9,"name":"a","required":true,"type":"int"}]}}]}]
        "#]],
    );
}

#[test]
fn types_wait_for_their_version() {
    for name in ["variant", "unknown", "timestamp_ns", "timestamptz_ns", "geometry", "geography(srid:4326, karney)"] {
        assert!(commit(&table(2), &request(&add(&field(9, "v", name)))).is_err(), "{name}");
        assert!(commit(&table(3), &request(&add(&field(9, "v", name)))).is_ok(), "{name}");
    }
    check(
        &table(2),
        &add(&field(9, "data", "variant")),
        expect![[r#"
        invalid: Invalid schema for v2:
        - Invalid type for data: variant is not supported until v3
    "#]],
    );
    let nested =
        format!(r#"{{"type":"struct","fields":[{},{}]}}"#, field(10, "g", "geography"), field(11, "t", "timestamp_ns"));
    check(
        &table(1),
        &add(&field(9, "s", &nested)),
        expect![[r#"
        invalid: Invalid schema for v1:
        - Invalid type for s.g: geography is not supported until v3
        - Invalid type for s.t: timestamp_ns is not supported until v3
    "#]],
    );
    let upgrade = r#"{"action":"upgrade-format-version","format-version":3}"#;
    check(
        &table(2),
        &format!("{upgrade},{}", add(&field(9, "data", "variant"))),
        expect![[r#"
            format-version: 3
            last-column-id: 9
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":9,"name":"data","required":false,"type":"variant"}]}]
            next-row-id: 0
        "#]],
    );
    check(
        &table(2),
        &format!("{},{upgrade}", add(&field(9, "data", "variant"))),
        expect![[r#"
        invalid: Invalid schema for v2:
        - Invalid type for data: variant is not supported until v3
    "#]],
    );
    check(
        &table(3),
        &add(&required(9, "data", "unknown")),
        expect![[r#"
        invalid: column of type unknown must be optional: data
    "#]],
    );
}

#[test]
fn defaults_come_with_v3_and_suit_their_type() {
    let with = |field: String, defaults: &str| add(&field.replacen("\"name\"", &format!("{defaults},\"name\""), 1));
    let int = || field(9, "n", "int");
    check(
        &table(2),
        &with(int(), r#""initial-default":1,"write-default":1"#),
        expect![[r#"
        invalid: Invalid schema for v2:
        - Invalid initial default for n: non-null default (1) is not supported until v3
    "#]],
    );
    check(
        &table(2),
        &with(int(), r#""initial-default":null,"write-default":1"#),
        expect![[r#"
            last-column-id: 9
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":9,"name":"n","required":false,"type":"int","write-default":1}]}]
        "#]],
    );
    check(
        &table(3),
        &with(int(), r#""initial-default":1,"write-default":2"#),
        expect![[r#"
            last-column-id: 9
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":9,"name":"n","required":false,"type":"int","initial-default":1,"write-default":2}]}]
        "#]],
    );
    check(
        &table(3),
        &with(int(), r#""initial-default":"1""#),
        expect![[r#"
        invalid: initial-default of n does not fit its type
    "#]],
    );
    check(
        &table(3),
        &with(field(9, "v", "variant"), r#""write-default":1"#),
        expect![[r#"
        invalid: write-default of v does not fit its type
    "#]],
    );
    check(
        &table(3),
        &with(field(9, "d", "decimal(9,2)"), r#""initial-default":"1.50""#),
        expect![[r#"
            last-column-id: 9
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":9,"name":"d","required":false,"type":"decimal(9, 2)","initial-default":"1.50"}]}]
        "#]],
    );
}

#[test]
fn columns_change_only_as_their_values_allow() {
    let promote = |from: &str, to: &str, version| {
        let base = committed(&table(version), &add(&field(9, "n", from)));
        let base = committed(&base, &append(version, 1, None));
        commit(&base, &request(&add(&field(9, "n", to))))
    };
    assert!(promote("int", "long", 2).is_ok());
    assert!(promote("decimal(5, 2)", "decimal(9, 2)", 2).is_ok());
    assert!(promote("date", "timestamp", 3).is_ok());
    for (from, to, version) in
        [("int", "string", 2), ("long", "int", 2), ("date", "timestamp", 2), ("date", "timestamptz", 3)]
    {
        let error = promote(from, to, version).unwrap_err();
        assert_eq!(error.to_string(), format!("cannot change type of column n: {from} to {to}"));
    }
    let list = r#"{"type":"list","element-id":10,"element-required":false,"element":"int"}"#;
    assert_eq!(promote("int", list, 2).unwrap_err().to_string(), "cannot change type of column n: int to list");
    assert!(promote("unknown", list, 3).is_ok());
}

#[test]
fn a_partitioned_date_stays_one_where_the_transform_would_change() {
    for (transform, is_ok) in [("day", true), ("year", true), ("identity", false), ("bucket[4]", false)] {
        let spec = format!(
            r#"{{"action":"add-spec","spec":{{"fields":[{{"source-id":3,"name":"p","transform":"{transform}"}}]}}}}"#
        );
        let base = committed(&committed(&table(3), &spec), &append(3, 1, None));
        let result = commit(&base, &request(&add(&field(3, "d", "timestamp"))));
        assert_eq!(result.is_ok(), is_ok, "{transform}: {result:?}");
    }
}

#[test]
fn replacing_a_table_starts_its_columns_afresh() {
    let base = table_with_snapshots(2);
    check(
        &base,
        &add(&field(1, "id", "string")),
        expect![[r#"
        invalid: cannot change type of column id: long to string
    "#]],
    );
    let replace = format!(r#"{{"action":"remove-snapshot-ref","ref-name":"main"}},{}"#, add(&field(1, "id", "string")));
    check(
        &base,
        &replace,
        expect![[r#"
            current-schema-id: 1
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","required":false,"type":"string"}]}]
            refs: {}
            current-snapshot-id: gone
        "#]],
    );
}

#[test]
fn rows_already_written_keep_their_defaults() {
    let with =
        |id: i32, defaults: &str| required(id, "n", "int").replacen("\"name\"", &format!("{defaults}\"name\""), 1);
    let id = required(1, "id", "long");
    let base = table_with_snapshots(3);
    check(
        &base,
        &add(&format!("{id},{}", with(9, ""))),
        expect![[r#"
        invalid: new required column needs initial-default and write-default: n
    "#]],
    );
    check(
        &base,
        &add(&format!("{id},{}", with(9, r#""initial-default":1,"#))),
        expect![[r#"
        invalid: new required column needs initial-default and write-default: n
    "#]],
    );
    let base = committed(&base, &add(&format!("{id},{}", with(9, r#""initial-default":1,"write-default":1,"#))));
    check(
        &base,
        &add(&format!("{id},{}", with(9, r#""initial-default":2,"write-default":1,"#))),
        expect![[r#"
        invalid: initial-default of column n cannot change
    "#]],
    );
    check(
        &base,
        &add(&format!("{id},{}", with(9, r#""initial-default":1,"write-default":2,"#))),
        expect![[r#"
            current-schema-id: 2
            schemas: + [{"type":"struct","schema-id":2,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":9,"name":"n","required":true,"type":"int","initial-default":1,"write-default":2}]}]
        "#]],
    );
    let nested = format!(r#"{{"type":"struct","fields":[{}]}}"#, required(21, "x", "int"));
    check(
        &base,
        &add(&format!("{id},{},{}", with(9, r#""initial-default":1,"write-default":1,"#), field(20, "s", &nested))),
        expect![[r#"
            last-column-id: 21
            current-schema-id: 2
            schemas: + [{"type":"struct","schema-id":2,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":9,"name":"n","required":true,"type":"int","initial-default":1,"write-default":1},{"id":20,"name":"s","required":false,"type":{"type":"struct","fields":[{"id":21,"name":"x","required":true,"type":"int"}]}}]}]
        "#]],
    );
}

#[test]
fn schemas_in_use_are_not_removed() {
    let base = committed(&table_with_snapshots(2), &add(&field(1, "id", "long")));
    let base = committed(&base, &add(&field(1, "id2", "long")));
    check(
        &base,
        r#"{"action":"remove-schemas","schema-ids":[2]}"#,
        expect![[r#"
        invalid: cannot remove the current schema
    "#]],
    );
    check(
        &base,
        r#"{"action":"remove-schemas","schema-ids":[0]}"#,
        expect![[r#"
        invalid: cannot remove schema 0: snapshot 1 uses it
    "#]],
    );
    check(
        &base,
        r#"{"action":"remove-schemas","schema-ids":[1,99]}"#,
        expect![[r#"
        schemas: [{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"s","required":false,"type":"string"},{"id":3,"name":"d","required":false,"type":"date"},{"id":4,"name":"f","required":false,"type":"float"},{"id":5,"name":"point","required":false,"type":{"type":"struct","fields":[{"id":7,"name":"x","required":false,"type":"int"}]}},{"id":6,"name":"tags","required":false,"type":{"type":"list","element-id":8,"element":"string","element-required":true}}]},{"type":"struct","schema-id":2,"fields":[{"id":1,"name":"id2","required":false,"type":"long"}]}]
    "#]],
    );
    let expire = r#"{"action":"remove-schemas","schema-ids":[0]},{"action":"remove-snapshots","snapshot-ids":[1,2]}"#;
    let expired = commit(&base, &request(expire)).unwrap().unwrap();
    assert_eq!(expired.schemas().map(|schema| schema.id()).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_removed_highest_id_can_come_back() {
    let base = committed(&table(2), &add(&field(1, "id", "long")));
    let back = committed(
        &base,
        r#"{"action":"set-current-schema","schema-id":0},{"action":"remove-schemas","schema-ids":[1]}"#,
    );
    let again = committed(&back, &add(&field(1, "other", "long")));
    assert_eq!(again.current_schema_id(), 1);
}
