//! Views through the same boundary: files in, requests in, files out.

use super::{super::view::*, *};
use crate::iceberg::view::{commit::ViewCommit, create::CreateView};
use expect_test::expect;

const MADE_MS: i64 = NOW_MS - 86_400_000;

fn file(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/views");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn schema(name: &str) -> String {
    format!(
        r#"{{"type":"struct","schema-id":7,"fields":[{{"id":3,"name":"{name}","required":false,"type":"long","doc":"d"}}]}}"#
    )
}

/// A version as clients send it, with ids that are not theirs to choose.
fn version(schema_id: i32, queries: &[(&str, &str)]) -> String {
    let queries: Vec<String> = queries
        .iter()
        .map(|(dialect, sql)| format!(r#"{{"type":"sql","sql":"{sql}","dialect":"{dialect}"}}"#))
        .collect();
    format!(
        r#"{{"version-id":9,"timestamp-ms":{MADE_MS},"schema-id":{schema_id},"summary":{{"engine-name":"e"}},
            "default-catalog":"c","default-namespace":["n"],"representations":[{}]}}"#,
        queries.join(",")
    )
}

fn create(properties: &str, version: &str) -> Result<ViewMetadata> {
    let request = format!(
        r#"{{"name":"v","schema":{},"view-version":{version},"properties":{properties},"unknown":1}}"#,
        schema("a")
    );
    CreateView::parse(request.as_bytes())?.metadata("s3://b/w/v/", UUID)
}

/// A view in two dialects.
fn view(properties: &str) -> ViewMetadata {
    create(properties, &version(5, &[("spark", "select 1"), ("trino", "select 1")])).unwrap()
}

fn commit(base: &ViewMetadata, body: &str) -> Result<Option<ViewMetadata>> {
    ViewCommit::parse(body.as_bytes())?.apply(base, NOW_MS)
}

fn committed(base: &ViewMetadata, updates: &str) -> ViewMetadata {
    commit(base, &request(updates)).unwrap().unwrap_or_else(|| base.clone())
}

/// What the updates do to a view: the members of the file that differ, or the error.
fn check(base: &ViewMetadata, updates: &str, expected: Expect) {
    expected.assert_eq(&outcome(base, commit(base, &request(updates))));
}

fn outcome(base: &ViewMetadata, result: Result<Option<ViewMetadata>>) -> String {
    match result {
        Err(Error::Invalid(message)) => format!("invalid: {message}\n"),
        Err(Error::IllegalArgument(message)) => format!("illegal argument: {message}\n"),
        Err(Error::Conflict(message)) => format!("conflict: {message}\n"),
        Ok(None) => "no change\n".to_owned(),
        Ok(Some(metadata)) => {
            assert_eq!(ViewMetadata::parse(&metadata.to_json()).as_ref(), Ok(&metadata), "does not read back");
            difference(&json(base), &json(&metadata))
        }
    }
}

fn json(metadata: &ViewMetadata) -> Value {
    serde_json::from_slice(&metadata.to_json()).unwrap()
}

fn add_version(schema_id: i32, queries: &[(&str, &str)]) -> String {
    format!(r#"{{"action":"add-view-version","view-version":{}}}"#, version(schema_id, queries))
}

fn set_current(id: i32) -> String {
    format!(r#"{{"action":"set-current-view-version","view-version-id":{id}}}"#)
}

fn set_property(key: &str, value: &str) -> String {
    format!(r#"{{"action":"set-properties","updates":{{"{key}":"{value}"}}}}"#)
}

/// Replaces the query in both dialects.
fn replace(sql: &str) -> String {
    format!("{},{}", add_version(0, &[("spark", sql), ("trino", sql)]), set_current(-1))
}

fn version_ids(metadata: &ViewMetadata) -> Vec<i32> {
    metadata.versions().map(|version| version.id).collect()
}

fn logged_ids(metadata: &ViewMetadata) -> Vec<i32> {
    metadata.version_log().iter().map(|entry| entry.version_id).collect()
}

#[test]
fn a_new_view_has_version_1_schema_0_and_what_its_creator_said() {
    let lines: String =
        json(&view(r#"{"b":"2","a":"1"}"#)).as_object().unwrap().iter().map(|(k, v)| format!("{k}: {v}\n")).collect();
    expect![[r#"
        view-uuid: "9c12d441-03fe-4693-9a96-a0705ddf69c1"
        format-version: 1
        location: "s3://b/w/v"
        properties: {"a":"1","b":"2"}
        schemas: [{"type":"struct","schema-id":0,"fields":[{"id":3,"name":"a","required":false,"type":"long","doc":"d"}]}]
        current-version-id: 1
        versions: [{"version-id":1,"timestamp-ms":1699913600000,"schema-id":0,"summary":{"engine-name":"e"},"default-catalog":"c","default-namespace":["n"],"representations":[{"type":"sql","sql":"select 1","dialect":"spark"},{"type":"sql","sql":"select 1","dialect":"trino"}]}]
        version-log: [{"timestamp-ms":1699913600000,"version-id":1}]
    "#]]
    .assert_eq(&lines);
}

#[test]
fn broken_new_views_are_refused() {
    let good = version(0, &[("spark", "select 1")]);
    let without = |member: &str| good.replacen(&format!("\"{member}\""), "\"x\"", 1);
    let mut lines = String::new();
    let mut refused = |what: &str, properties: &str, version: &str| match create(properties, version) {
        Ok(_) => lines.push_str(&format!("{what}: accepted\n")),
        Err(error) => lines.push_str(&format!("{what}: {error}\n")),
    };
    for member in [
        "version-id",
        "timestamp-ms",
        "schema-id",
        "summary",
        "default-catalog",
        "default-namespace",
        "representations",
    ] {
        refused(member, "{}", &without(member));
    }
    refused("no query", "{}", &version(0, &[]));
    refused("one dialect twice", "{}", &version(0, &[("Trino", "select 1"), ("tRINO", "select 2")]));
    refused("unknown representation", "{}", &good.replace("\"type\":\"sql\"", "\"type\":\"dag\""));
    refused("no dialect", "{}", &good.replace("\"dialect\"", "\"x\""));
    refused("a summary of numbers", "{}", &good.replace("\"e\"", "1"));
    refused("no history", r#"{"version.history.num-entries":"0"}"#, &good);
    refused("history of text", r#"{"version.history.num-entries":"x"}"#, &good);
    refused("unknown codec", r#"{"write.metadata.compression-codec":"zip"}"#, &good);
    expect![[r#"
        version-id: missing field: version-id
        timestamp-ms: missing field: timestamp-ms
        schema-id: missing field: schema-id
        summary: missing field: summary
        default-catalog: accepted
        default-namespace: missing field: default-namespace
        representations: missing field: representations
        no query: a view version needs a representation
        one dialect twice: Invalid view version: Cannot add multiple queries for dialect trino
        unknown representation: unknown type of view representation: dag
        no dialect: missing field: dialect
        a summary of numbers: summary: the value of engine-name must be a string
        no history: invalid value for version.history.num-entries: 0 is no positive integer
        history of text: invalid value for version.history.num-entries: x is no positive integer
        unknown codec: invalid value for write.metadata.compression-codec: zip is neither none nor gzip
    "#]]
    .assert_eq(&lines);
    let two_columns =
        r#"{"id":3,"name":"b","required":false,"type":"int"},{"id":3,"name":"c","required":false,"type":"int"}"#;
    let request = format!(
        r#"{{"name":"v","schema":{{"type":"struct","fields":[{two_columns}]}},"view-version":{good},"properties":{{}}}}"#
    );
    let error = CreateView::parse(request.as_bytes()).unwrap().metadata("s3://b/w/v", UUID).unwrap_err();
    assert_eq!(error.to_string(), "field id 3 occurs twice: c");
}

#[test]
fn a_replace_adds_a_schema_and_a_version_and_logs_it() {
    let add_schema = format!(r#"{{"action":"add-schema","schema":{}}}"#, schema("b"));
    let updates =
        [add_schema, add_version(-1, &[("spark", "select 2"), ("trino", "select 2")]), set_current(-1)].join(",");
    check(
        &view("{}"),
        &updates,
        expect![[r#"
            schemas: + [{"type":"struct","schema-id":1,"fields":[{"id":3,"name":"b","required":false,"type":"long","doc":"d"}]}]
            current-version-id: 2
            versions: + [{"version-id":2,"timestamp-ms":1699913600000,"schema-id":1,"summary":{"engine-name":"e"},"default-catalog":"c","default-namespace":["n"],"representations":[{"type":"sql","sql":"select 2","dialect":"spark"},{"type":"sql","sql":"select 2","dialect":"trino"}]}]
            version-log: + [{"timestamp-ms":1699913600000,"version-id":2}]
        "#]],
    );
}

#[test]
fn properties_and_location_change_without_a_version() {
    check(
        &view(r#"{"a":"1","gone":"x"}"#),
        r#"{"action":"SET-properties","updates":{"b":"2"}},{"action":"remove-properties","removals":["gone","never"]},
           {"action":"set-location","location":"s3://b/w/other/"}"#,
        expect![[r#"
            location: "s3://b/w/other"
            properties: {"a":"1","b":"2"}
        "#]],
    );
}

#[test]
fn what_changes_nothing_makes_no_new_file() {
    let base = view(r#"{"a":"1"}"#);
    let nothing = [
        String::new(),
        set_property("a", "1"),
        r#"{"action":"remove-properties","removals":["b"]}"#.to_owned(),
        r#"{"action":"set-location","location":"s3://b/w/v"}"#.to_owned(),
        r#"{"action":"upgrade-format-version","format-version":1}"#.to_owned(),
        format!(r#"{{"action":"assign-uuid","uuid":"{UUID}"}}"#),
        format!(r#"{{"action":"add-schema","schema":{}}}"#, schema("a")),
        replace("select 1"),
        set_current(1),
    ];
    nothing.iter().for_each(|updates| check(&base, updates, expect!["no change\n"]));
}

#[test]
fn equal_versions_are_one_and_others_get_the_next_id() {
    let second = committed(&view("{}"), &replace("select 2"));
    let back = committed(&second, &replace("select 1"));
    assert_eq!((version_ids(&back), logged_ids(&back)), (vec![1, 2], vec![1, 2, 1]));
    let third = committed(&back, &replace("select 3"));
    assert_eq!((version_ids(&third), logged_ids(&third)), (vec![1, 2, 3], vec![1, 2, 1, 3]));
    for other in [
        version(0, &[("spark", "select 1"), ("trino", "select 1")]).replace("\"e\"", "\"f\""),
        version(0, &[("spark", "select 1"), ("trino", "select 1")]).replace("[\"n\"]", "[]"),
        version(0, &[("spark", "select 1"), ("trino", "select 1")]).replace("\"c\"", "null"),
    ] {
        let added = format!(r#"{{"action":"add-view-version","view-version":{other}}}"#);
        assert_eq!(version_ids(&committed(&view("{}"), &added)), [1, 2], "{other}");
    }
}

#[test]
fn a_version_made_now_is_logged_with_its_time_and_one_that_returns_with_the_present() {
    let times = |metadata: &ViewMetadata| -> Vec<i64> {
        metadata.version_log().iter().map(|entry| entry.timestamp_ms).collect()
    };
    let second = committed(&view("{}"), &replace("select 2"));
    assert_eq!(times(&second), [MADE_MS, MADE_MS]);
    assert_eq!(times(&committed(&second, &set_current(1))), [MADE_MS, MADE_MS, NOW_MS]);
    // The same content again brings the old version back.
    assert_eq!(times(&committed(&second, &replace("select 1"))), [MADE_MS, MADE_MS, NOW_MS]);
    let there_and_back = [replace("select 3"), set_current(2)].join(",");
    assert_eq!(times(&committed(&second, &there_and_back)), [MADE_MS, MADE_MS]);
}

#[test]
fn minus_one_means_what_this_request_added_last() {
    let base = committed(&view("{}"), &replace("select 2"));
    check(
        &base,
        &set_current(-1),
        expect![[r#"
        invalid: cannot set last added view version: no view version has been added
    "#]],
    );
    check(
        &base,
        &add_version(-1, &[("spark", "s"), ("trino", "s")]),
        expect![[r#"
        invalid: cannot set last added schema: no schema has been added
    "#]],
    );
    check(
        &base,
        &set_current(3),
        expect![[r#"
        invalid: cannot set current version to unknown view version: 3
    "#]],
    );
    check(
        &base,
        &add_version(3, &[("spark", "s")]),
        expect![[r#"
        invalid: cannot add a view version with unknown schema: 3
    "#]],
    );
}

#[test]
fn a_dialect_is_lost_only_where_the_view_allows_it() {
    let spark = add_version(0, &[("SPARK", "select 2")]);
    let lose = [spark.clone(), set_current(-1)].join(",");
    let no_more = [r#"{"action":"remove-properties","removals":["replace.drop-dialect.allowed"]}"#, &lose].join(",");
    for (properties, updates) in [
        ("{}", &lose),
        (r#"{"replace.drop-dialect.allowed":"false"}"#, &lose),
        (r#"{"replace.drop-dialect.allowed":"true"}"#, &no_more),
    ] {
        check(
            &view(properties),
            updates,
            expect![[r#"
            invalid: cannot replace a view by one that lacks its dialects (replace.drop-dialect.allowed is not true): it has {"spark", "trino"}, the new version {"spark"}
        "#]],
        );
    }
    let allowed = [set_property("replace.drop-dialect.allowed", "True"), lose.clone()].join(",");
    assert_eq!(version_ids(&committed(&view("{}"), &allowed)), [1, 2]);
    // What is current only in between, or not at all, loses nothing.
    let in_between = [lose, add_version(0, &[("trino", "x"), ("Spark", "x"), ("flink", "x")]), set_current(-1)];
    assert_eq!(version_ids(&committed(&view("{}"), &in_between.join(","))), [1, 2, 3]);
    assert_eq!(version_ids(&committed(&view("{}"), &spark)), [1, 2]);
}

#[test]
fn old_versions_go_and_the_log_before_them() {
    let mut metadata = view(r#"{"version.history.num-entries":"2"}"#);
    for n in 2..=5 {
        metadata = committed(&metadata, &replace(&format!("select {n}")));
    }
    assert_eq!((version_ids(&metadata), logged_ids(&metadata)), (vec![4, 5], vec![4, 5]));

    let mut metadata = view("{}");
    for n in 2..=12 {
        metadata = committed(&metadata, &replace(&format!("select {n}")));
    }
    assert_eq!((version_ids(&metadata), logged_ids(&metadata)), ((3..=12).collect(), (3..=12).collect()));
}

#[test]
fn the_current_version_stays_however_old_and_so_does_what_a_request_adds() {
    let base = view(r#"{"version.history.num-entries":"1"}"#);
    let adds: Vec<String> = (2..=4).map(|n| add_version(0, &[("spark", &n.to_string())])).collect();
    let next = committed(&base, &adds.join(","));
    assert_eq!((version_ids(&next), logged_ids(&next)), (vec![1, 2, 3, 4], vec![1]));
    let next = committed(&next, &set_property("a", "b"));
    assert_eq!((version_ids(&next), logged_ids(&next)), (vec![1], vec![1]));
}

#[test]
fn log_entries_before_a_lost_version_go_too() {
    let mut metadata = view(r#"{"version.history.num-entries":"2"}"#);
    metadata = committed(&metadata, &replace("select 2"));
    metadata = committed(&metadata, &set_current(1));
    // Of 1, 2, 1, 3 the entry of 2 goes, and with it the 1 before it.
    metadata = committed(&metadata, &replace("select 3"));
    assert_eq!((version_ids(&metadata), logged_ids(&metadata)), (vec![2, 3], vec![3]));
}

#[test]
fn updates_and_requirements_of_tables_and_of_nobody_are_refused() {
    for action in ["set-current-schema", "add-snapshot", "remove-schemas", "enable-row-lineage", ""] {
        let result = commit(&view("{}"), &request(&format!(r#"{{"action":"{action}"}}"#)));
        assert_eq!(result.unwrap_err().to_string(), format!("not an update of a view: {action}"));
    }
    for kind in ["assert-create", "assert-table-uuid", "assert-nothing"] {
        let body = format!(r#"{{"requirements":[{{"type":"{kind}","uuid":"{UUID}"}}],"updates":[]}}"#);
        let error = commit(&view("{}"), &body).unwrap_err();
        assert_eq!(error.to_string(), format!("not a requirement on a view: {kind}"));
    }
    for (update, problem) in [
        (r#"{"action":"upgrade-format-version","format-version":2}"#, "cannot upgrade v1 view to v2"),
        (r#"{"action":"upgrade-format-version","format-version":0}"#, "cannot downgrade v1 view to v0"),
        (r#"{"action":"add-view-version"}"#, "missing field: view-version"),
        (r#"{"action":"set-current-view-version"}"#, "missing field: view-version-id"),
        (r#"{"view-version-id":1}"#, "missing field: action"),
    ] {
        assert_eq!(commit(&view("{}"), &request(update)).unwrap_err().to_string(), problem);
    }
    let reassigned = r#"{"action":"assign-uuid","uuid":"00000000-0000-0000-0000-000000000000"}"#;
    assert!(commit(&view("{}"), &request(reassigned)).unwrap_err().to_string().starts_with("cannot reassign uuid"));
    let many = vec![set_property("a", "b"); 1_001].join(",");
    assert!(commit(&view("{}"), &request(&many)).is_err());
}

#[test]
fn the_uuid_must_be_the_one_required() {
    let body = |uuid: &str| {
        let requirements = format!(r#"[{{"type":"assert-view-uuid","uuid":"{uuid}"}}]"#);
        format!(r#"{{"requirements":{requirements},"updates":[{}]}}"#, set_property("a", "b"))
    };
    assert!(commit(&view("{}"), &body(&UUID.to_string().to_uppercase())).unwrap().is_some());
    let other = "00000000-0000-0000-0000-000000000000";
    assert_eq!(
        commit(&view("{}"), &body(other)).unwrap_err(),
        Error::Conflict(format!("Requirement failed: view UUID does not match: expected {UUID} != {other}"))
    );
}

#[test]
fn a_commit_may_leave_out_everything() {
    for body in ["{}", r#"{"requirements":null,"updates":null}"#, r#"{"updates":[],"x":1}"#] {
        assert_eq!(commit(&view("{}"), body), Ok(None), "{body}");
    }
    for body in ["", "[]", r#"{"updates":{}}"#, r#"{"updates":[1]}"#] {
        assert!(commit(&view("{}"), body).is_err(), "{body}");
    }
}

#[test]
fn unknown_fields_of_every_object_survive_a_commit() {
    let text = r#"{"view-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","format-version":1,"x-top":{"n":1.50},
        "location":"s3://b/w/v","current-version-id":1,"properties":{},
        "schemas":[{"type":"struct","schema-id":1,"x-schema":1e400,"fields":[
            {"id":1,"name":"x","required":false,"type":"long","x-field":[true,null]}]}],
        "versions":[{"version-id":1,"schema-id":1,"timestamp-ms":5,"summary":{},"x-version":2,"default-namespace":[],
            "representations":[{"type":"sql","sql":"select 1","dialect":"d","x-query":3},{"type":"dag","x-dag":[ 4 ]}]}],
        "version-log":[{"timestamp-ms":5,"version-id":1,"x-log":5}]}"#;
    let base = ViewMetadata::parse(text.as_bytes()).unwrap();
    let next =
        committed(&base, &[set_property("a", "b"), add_version(1, &[("d", "select 2")]), set_current(-1)].join(","));
    let written = String::from_utf8(next.to_json()).unwrap();
    for unknown in [
        r#""x-top":{"n":1.50}"#,
        r#""x-schema":1e400"#,
        r#""x-field":[true,null]"#,
        r#""x-version":2"#,
        r#""x-query":3"#,
        r#"{"type":"dag","x-dag":[ 4 ]}"#,
        r#""x-log":5"#,
    ] {
        assert!(written.contains(unknown), "{unknown} is not in {written}");
    }
}

#[test]
fn files_of_the_reference_implementation_are_read_or_refused_as_it_does() {
    let text = file("view-v1-valid.json");
    let metadata = ViewMetadata::parse(text.as_bytes()).unwrap();
    // The one member left out was taken out of the specification before it was released.
    expect![[r#"
        current-schema-id: gone
    "#]]
    .assert_eq(&difference(&serde_json::from_str(&text).unwrap(), &json(&metadata)));
    assert_eq!(ViewMetadata::parse(&metadata.to_json()), Ok(metadata));
    for (name, problem) in [
        ("view-v1-bad-current-version.json", "current view version not found: 1234"),
        (
            "view-v1-bad-two-sqls-one-dialect.json",
            "Invalid view version: Cannot add multiple queries for dialect spark-sql",
        ),
    ] {
        assert_eq!(ViewMetadata::parse(file(name).as_bytes()).unwrap_err().to_string(), problem);
    }
}

#[test]
fn damaged_files_are_refused() {
    let good = file("view-v1-valid.json");
    let value: Value = serde_json::from_str(&good).unwrap();
    let mut lines = String::new();
    for member in value.as_object().unwrap().keys() {
        let mut damaged = value.clone();
        damaged.as_object_mut().unwrap().remove(member);
        match ViewMetadata::parse(damaged.to_string().as_bytes()) {
            Ok(_) => lines.push_str(&format!("{member}: optional\n")),
            Err(error) => lines.push_str(&format!("{member}: {error}\n")),
        }
    }
    for (member, value) in [
        ("format-version", "2"),
        ("format-version", "0"),
        ("view-uuid", "\"x\""),
        ("location", "\"/\""),
        ("schemas", "[]"),
        ("versions", "[]"),
        ("properties", "{\"a\":1}"),
    ] {
        let mut damaged: Value = serde_json::from_str(&good).unwrap();
        damaged[member] = serde_json::from_str(value).unwrap();
        let error = ViewMetadata::parse(damaged.to_string().as_bytes()).expect_err(member);
        lines.push_str(&format!("{member} {value}: {error}\n"));
    }
    expect![[r#"
        view-uuid: missing field: view-uuid
        format-version: missing field: format-version
        location: missing field: location
        properties: optional
        current-schema-id: optional
        schemas: missing field: schemas
        current-version-id: missing field: current-version-id
        versions: missing field: versions
        version-log: missing field: version-log
        format-version 2: unsupported view format version: v2 (supported: v1)
        format-version 0: unsupported view format version: v0 (supported: v1)
        view-uuid "x": view-uuid is not a UUID: x
        location "/": a table location must not be empty
        schemas []: current schema not found: 0
        versions []: current view version not found: 2
        properties {"a":1}: properties: the value of a must be a string
    "#]]
    .assert_eq(&lines);
    let mut twice = value;
    let versions = twice["versions"].as_array_mut().unwrap();
    versions.push(versions[0].clone());
    assert!(ViewMetadata::parse(twice.to_string().as_bytes()).is_err());
    for cut in (0..good.len()).step_by(7) {
        assert!(ViewMetadata::parse(&good.as_bytes()[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn views_are_compressed_unless_they_say_otherwise() {
    use crate::iceberg::MetadataCodec;
    assert_eq!(view("{}").metadata_codec(), MetadataCodec::Gzip);
    assert_eq!(view(r#"{"write.metadata.compression-codec":"none"}"#).metadata_codec(), MetadataCodec::None);
}
