//! Creating tables: in one request, and staged then completed.

use super::*;
use expect_test::expect;

/// The file of a table created by a request, or the error.
fn check_create(body: &str, expected: Expect) {
    let text = match create(body) {
        Ok(metadata) => {
            assert_eq!(TableMetadata::parse(&metadata.to_json()).as_ref(), Ok(&metadata));
            let json = json(&metadata);
            json.as_object().unwrap().iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
        }
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&text);
}

fn create(body: &str) -> Result<TableMetadata> {
    CreateTable::parse(body.as_bytes())?.metadata("s3://b/w/t/", UUID, NOW_MS)
}

fn body(fields: &str, rest: &str) -> String {
    format!(r#"{{"name":"t","schema":{{"type":"struct","fields":[{fields}]}}{rest}}}"#)
}

const ID: &str = r#"{"id":10,"name":"id","required":true,"type":"long"}"#;
const DAY: &str = r#"{"id":20,"name":"day","required":false,"type":"date"}"#;

#[test]
fn a_plain_request_makes_a_v2_table() {
    check_create(
        &body(ID, ""),
        expect![[r#"
        format-version: 2
        table-uuid: "9c12d441-03fe-4693-9a96-a0705ddf69c1"
        location: "s3://b/w/t"
        last-sequence-number: 0
        last-updated-ms: 1700000000000
        last-column-id: 1
        current-schema-id: 0
        schemas: [{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}]
        default-spec-id: 0
        partition-specs: [{"spec-id":0,"fields":[]}]
        last-partition-id: 999
        default-sort-order-id: 0
        sort-orders: [{"order-id":0,"fields":[]}]
        properties: {"write.parquet.compression-codec":"zstd"}
        refs: {}
        snapshots: []
        statistics: []
        partition-statistics: []
        snapshot-log: []
        metadata-log: []
    "#]],
    );
}

#[test]
fn ids_are_counted_afresh_and_followed() {
    let request = format!(
        r#"{{"name":"t","location":null,"stage-create":true,"later":1,
        "schema":{{"type":"struct","schema-id":7,"identifier-field-ids":[10],"fields":[{ID},{DAY}]}},
        "partition-spec":{{"spec-id":9,"fields":[
            {{"source-id":20,"field-id":2000,"name":"day_month","transform":"month"}},
            {{"source-id":10,"field-id":2001,"name":"id_bucket","transform":"bucket[8]"}}]}},
        "write-order":{{"order-id":3,"fields":[{{"source-id":20,"transform":"identity","direction":"desc","null-order":"nulls-last"}}]}},
        "properties":{{"format-version":"1","write.parquet.compression-codec":"snappy","uuid":"x","a":"b"}}}}"#
    );
    check_create(
        &request,
        expect![[r#"
        format-version: 1
        table-uuid: "9c12d441-03fe-4693-9a96-a0705ddf69c1"
        location: "s3://b/w/t"
        last-updated-ms: 1700000000000
        last-column-id: 2
        schema: {"type":"struct","schema-id":0,"identifier-field-ids":[1],"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"day","required":false,"type":"date"}]}
        current-schema-id: 0
        schemas: [{"type":"struct","schema-id":0,"identifier-field-ids":[1],"fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"day","required":false,"type":"date"}]}]
        partition-spec: [{"source-id":2,"field-id":1000,"name":"day_month","transform":"month"},{"source-id":1,"field-id":1001,"name":"id_bucket","transform":"bucket[8]"}]
        default-spec-id: 0
        partition-specs: [{"spec-id":0,"fields":[{"source-id":2,"field-id":1000,"name":"day_month","transform":"month"},{"source-id":1,"field-id":1001,"name":"id_bucket","transform":"bucket[8]"}]}]
        last-partition-id: 1001
        default-sort-order-id: 1
        sort-orders: [{"order-id":1,"fields":[{"transform":"identity","source-id":2,"direction":"desc","null-order":"nulls-last"}]}]
        properties: {"a":"b","write.parquet.compression-codec":"snappy"}
        refs: {}
        snapshots: []
        statistics: []
        partition-statistics: []
        snapshot-log: []
        metadata-log: []
    "#]],
    );
    let request = CreateTable::parse(request.as_bytes()).unwrap();
    assert!(request.stage_create && request.location.is_none() && request.name == "t");
}

#[test]
fn all_fields_of_a_struct_come_before_what_is_in_them() {
    let fields = r#"
        {"id":1,"name":"id","required":true,"type":"int"},
        {"id":2,"name":"data","required":false,"type":"string"},
        {"id":3,"name":"list","required":false,"type":{"type":"list","element-id":4,"element-required":false,"element":"int"}},
        {"id":5,"name":"map","required":false,"type":{"type":"map","key-id":6,"key":"int","value-id":7,"value-required":false,"value":"int"}},
        {"id":8,"name":"struct","required":false,"type":{"type":"struct","fields":[{"id":9,"name":"x","required":false,"type":"int"}]}}"#;
    let metadata = create(&body(fields, "")).unwrap();
    let schema = metadata.current_schema().unwrap();
    let ids: Vec<_> =
        schema.columns().iter().map(|column| format!("{} {}", column.id, schema.columns().path(column))).collect();
    assert_eq!(
        ids,
        ["1 id", "2 data", "3 list", "6 list.element", "4 map", "7 map.key", "8 map.value", "5 struct", "9 struct.x"]
    );
    assert_eq!(json(&metadata)["last-column-id"], 9);
}

#[test]
fn the_format_version_is_a_property_that_is_not_stored() {
    for version in ["1", "2", "3"] {
        let rest = format!(r#","properties":{{"format-version":"{version}"}}"#);
        let metadata = create(&body(ID, &rest)).unwrap();
        assert_eq!(metadata.format_version().to_string(), version);
        assert_eq!(metadata.property("format-version"), None);
    }
    for version in ["0", "4", "two", ""] {
        let rest = format!(r#","properties":{{"format-version":"{version}"}}"#);
        let error = create(&body(ID, &rest)).unwrap_err();
        assert_eq!(error.to_string(), format!("unsupported format version: {version}"));
    }
}

#[test]
fn nulls_stand_for_what_is_left_out() {
    let rest = r#","location":null,"partition-spec":null,"write-order":null,"properties":null,"stage-create":null"#;
    assert_eq!(create(&body(ID, rest)), create(&body(ID, "")));
}

#[test]
fn requests_that_make_no_table_are_refused() {
    check_create(
        "{}",
        expect![[r#"
        missing field: name
    "#]],
    );
    check_create(
        "null",
        expect![[r#"
            malformed JSON: expected an object, found null
        "#]],
    );
    check_create(
        r#"{"name":"t"}"#,
        expect![[r#"
        missing field: schema
    "#]],
    );
    check_create(
        r#"{"name":7,"schema":{"fields":[]}}"#,
        expect![[r#"
        name must be a string
    "#]],
    );
    check_create(
        &body(ID, r#","properties":{"a":1}"#),
        expect![[r#"
        properties: the value of a must be a string
    "#]],
    );
    check_create(
        &body(ID, r#","location":"""#),
        expect![[r#"
        a table location must not be empty
    "#]],
    );
    check_create(
        &body(ID, r#","location":"#),
        expect![[r#"
        malformed JSON at byte 113: expected a value
    "#]],
    );
    check_create(
        &body(&format!("{ID},{ID}"), ""),
        expect![[r#"
        field id 10 occurs twice
    "#]],
    );
    check_create(
        &body(ID, r#","partition-spec":{"fields":[{"source-id":99,"name":"p","transform":"identity"}]}"#),
        expect![[r#"
            cannot find source column: 99
        "#]],
    );
    check_create(
        &body(ID, r#","partition-spec":{"fields":[{"source-id":10,"name":"p","transform":"day"}]}"#),
        expect![[r#"
            cannot partition long column id by day
        "#]],
    );
    check_create(
        &body(
            ID,
            r#","write-order":{"order-id":1,"fields":[{"source-id":99,"transform":"identity","direction":"asc","null-order":"nulls-first"}]}"#,
        ),
        expect![[r#"
            cannot find source column: 99
        "#]],
    );
    check_create(
        &body(r#"{"id":1,"name":"v","required":false,"type":"variant"}"#, ""),
        expect![[r#"
        Invalid schema for v2:
        - Invalid type for v: variant is not supported until v3
    "#]],
    );
    check_create(
        &body(ID, r#","properties":{"commit.retry.num-retries":"-1"}"#),
        expect![[r#"
        table property commit.retry.num-retries must have a non-negative integer value, but is -1
    "#]],
    );
    check_create(
        &body(ID, r#","properties":{"write.metadata.metrics.column.nope":"full"}"#),
        expect![[r#"
        write.metadata.metrics.column.nope names a column that does not exist: nope
    "#]],
    );
    check_create(
        &body(ID, r#","properties":{"encryption.key-id":"k"}"#),
        expect![[r#"
        encryption.key-id needs format version 3, not 2
    "#]],
    );
    check_create(
        &body(ID, r#","properties":{"write.metadata.compression-codec":"lz4"}"#),
        expect![[r#"
        invalid value for write.metadata.compression-codec: lz4 is neither none nor gzip
    "#]],
    );
}

#[test]
fn properties_of_new_tables_are_taken_when_they_fit() {
    let rest = r#","properties":{"format-version":"3","commit.retry.num-retries":"4","write.metadata.metrics.column.id":"full","encryption.key-id":"k"}"#;
    assert!(create(&body(ID, rest)).is_ok());
}

#[test]
fn reserved_properties_are_never_stored() {
    let reserved: Vec<String> =
        crate::iceberg::properties::RESERVED.iter().map(|key| format!(r#""{key}":"2""#)).collect();
    assert_eq!(reserved.len(), 9);
    let metadata = create(&body(ID, &format!(r#","properties":{{"a":"b",{}}}"#, reserved.join(",")))).unwrap();
    assert_eq!(json(&metadata)["properties"].to_string(), r#"{"a":"b","write.parquet.compression-codec":"zstd"}"#);
}

#[test]
fn unknown_fields_of_schema_spec_and_order_are_stored() {
    let request = r#"{"name":"t","schema":{"x-schema":1,"fields":[{"id":10,"name":"id","required":true,"type":"long","x-field":2}]},
        "partition-spec":{"x-spec":3,"fields":[{"source-id":10,"name":"p","transform":"bucket[8]","x-partition":4}]},
        "write-order":{"order-id":1,"x-order":5,"fields":[{"source-id":10,"transform":"identity","direction":"asc","null-order":"nulls-first","x-sort":6}]}}"#;
    let written = String::from_utf8(create(request).unwrap().to_json()).unwrap();
    for field in
        [r#""x-schema":1"#, r#""x-field":2"#, r#""x-spec":3"#, r#""x-partition":4"#, r#""x-order":5"#, r#""x-sort":6"#]
    {
        assert!(written.contains(field), "lost {field}");
    }
}

/// The request that completes a staged table, as clients build it from what staging answered.
fn completion(staged: &TableMetadata, more: &str) -> String {
    let json = json(staged);
    format!(
        r#"{{"requirements":[{{"type":"assert-create"}}],"updates":[
        {{"action":"assign-uuid","uuid":{}}},{{"action":"upgrade-format-version","format-version":{}}},
        {{"action":"add-schema","schema":{},"last-column-id":{}}},{{"action":"set-current-schema","schema-id":-1}},
        {{"action":"add-spec","spec":{}}},{{"action":"set-default-spec","spec-id":-1}},
        {{"action":"add-sort-order","sort-order":{}}},{{"action":"set-default-sort-order","sort-order-id":-1}},
        {{"action":"set-location","location":{}}},{{"action":"set-properties","updates":{}}}{more}]}}"#,
        json["table-uuid"],
        json["format-version"],
        json["schemas"][0],
        json["last-column-id"],
        json["partition-specs"][0],
        json["sort-orders"][0],
        json["location"],
        json["properties"]
    )
}

#[test]
fn a_completed_table_is_the_staged_one() {
    for version in 1..=3 {
        let request = format!(
            r#"{{"name":"t","schema":{{"fields":[{ID},{DAY}]}},"partition-spec":{{"fields":[{{"source-id":20,"name":"d","transform":"day"}}]}},
            "write-order":{{"order-id":1,"fields":[{{"source-id":10,"transform":"identity","direction":"asc","null-order":"nulls-first"}}]}},
            "properties":{{"format-version":"{version}","a":"b"}}}}"#
        );
        let staged = create(&request).unwrap();
        let commit = Commit::parse(completion(&staged, "").as_bytes()).unwrap();
        assert!(commit.is_create());
        assert_eq!(commit.create(Uuid::nil(), NOW_MS).as_ref(), Ok(&staged), "v{version}");
        let with_data =
            Commit::parse(completion(&staged, &format!(",{}", append(version, 1, None))).as_bytes()).unwrap();
        let created = with_data.create(Uuid::nil(), NOW_MS).unwrap();
        assert_eq!(created.current_snapshot_id(), Some(1));
        assert_eq!(created.metadata_log(), Vec::<&str>::new());
        assert_eq!(TableMetadata::parse(&created.to_json()), Ok(created));
    }
}

/// A completion with some updates changed, and what becomes of it.
fn check_completion(change: impl Fn(String) -> String, expected: Expect) {
    let body = change(completion(&create(&body(ID, "")).unwrap(), ""));
    let text = match Commit::parse(body.as_bytes()).and_then(|commit| commit.create(Uuid::nil(), NOW_MS)) {
        Ok(metadata) => format!("created v{} {}\n", metadata.format_version(), metadata.uuid().unwrap()),
        Err(error) => format!("{error}\n"),
    };
    expected.assert_eq(&text);
}

/// As DuckDB sends it.
#[test]
fn the_current_schema_may_be_set_last() {
    let last = |body: String| {
        let mut json: Value = serde_json::from_str(&body).unwrap();
        let updates = json["updates"].as_array_mut().unwrap();
        let at = updates.iter().position(|update| update["action"] == "set-current-schema").unwrap();
        let update = updates.remove(at);
        updates.push(update);
        json.to_string()
    };
    check_completion(
        last,
        expect![[r#"
        created v2 9c12d441-03fe-4693-9a96-a0705ddf69c1
    "#]],
    );
}

#[test]
fn half_a_table_is_refused() {
    let without = |action: &'static str| {
        move |body: String| {
            let mut json: Value = serde_json::from_str(&body).unwrap();
            json["updates"].as_array_mut().unwrap().retain(|update| update["action"] != action);
            json.to_string()
        }
    };
    check_completion(
        |body| body,
        expect![[r#"
        created v2 9c12d441-03fe-4693-9a96-a0705ddf69c1
    "#]],
    );
    check_completion(
        without("assign-uuid"),
        expect![[r#"
        created v2 00000000-0000-0000-0000-000000000000
    "#]],
    );
    check_completion(
        without("upgrade-format-version"),
        expect![[r#"
        created v2 9c12d441-03fe-4693-9a96-a0705ddf69c1
    "#]],
    );
    check_completion(
        without("add-schema"),
        expect![[r#"
        cannot set last added schema: no schema has been added
    "#]],
    );
    check_completion(
        without("set-current-schema"),
        expect![[r#"
        a new table needs a current schema
    "#]],
    );
    check_completion(
        without("add-spec"),
        expect![[r#"
        cannot set last added partition spec: no partition spec has been added
    "#]],
    );
    check_completion(
        without("set-default-spec"),
        expect![[r#"
        a new table needs a default partition spec
    "#]],
    );
    check_completion(
        without("set-default-sort-order"),
        expect![[r#"
        a new table needs a default sort order
    "#]],
    );
    check_completion(
        without("set-location"),
        expect![[r#"
        a new table needs a location
    "#]],
    );
    check_completion(
        without("set-properties"),
        expect![[r#"
        created v2 9c12d441-03fe-4693-9a96-a0705ddf69c1
    "#]],
    );
}

#[test]
fn only_assert_create_goes_with_a_create() {
    let more = r#"{"type":"assert-create"},{"type":"assert-current-schema-id","current-schema-id":0}"#;
    check_completion(
        |body| body.replace(r#"{"type":"assert-create"}"#, more),
        expect![[r#"
        no other requirement may stand beside assert-create
    "#]],
    );
    check_completion(
        |body| body.replace(r#""format-version":2"#, r#""format-version":4"#),
        expect![[r#"
        unsupported format version: v4
    "#]],
    );
    check_completion(
        |body| {
            body.replacen(
                r#"{"action":"assign-uuid""#,
                r#"{"action":"set-current-schema","schema-id":0},{"action":"assign-uuid""#,
                1,
            )
        },
        expect![[r#"
            cannot set current schema to unknown schema: 0
        "#]],
    );
}

#[test]
fn a_snapshot_needs_a_table_to_be_in() {
    let first = |body: String| {
        body.replacen(r#"{"action":"assign-uuid""#, &format!(r#"{},{{"action":"assign-uuid""#, append(2, 1, None)), 1)
    };
    check_completion(
        first,
        expect![[r#"
        cannot add a snapshot before a schema is added
    "#]],
    );
}

#[test]
fn a_table_that_exists_is_not_created() {
    let staged = create(&body(ID, "")).unwrap();
    let error = commit(&staged, &completion(&staged, "")).unwrap_err();
    assert_eq!(error, Error::Conflict("Requirement failed: table already exists".to_owned()));
}
