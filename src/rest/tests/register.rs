use super::*;
use crate::{
    catalog::{
        files,
        publish::faults::{Fault, Statement},
    },
    db::{
        self,
        tables::{Create, Kind, NewTable, TableRow},
    },
    iceberg::metadata::TableMetadata,
    jobs::reap,
};
use expect_test::expect;
use futures_util::future::join_all;
use object_store::{ObjectStoreExt, path::Path};
use std::{fs, io::Write};

const REGISTER: &str = "/lakehouse/namespaces/n/register";
const TABLES: &str = "/lakehouse/namespaces/n/tables";
/// What the reference writer never leaves out.
const CONTAINERS: [&str; 10] = [
    "schemas",
    "partition-specs",
    "sort-orders",
    "properties",
    "refs",
    "snapshots",
    "statistics",
    "partition-statistics",
    "snapshot-log",
    "metadata-log",
];
const HOUR_MS: i64 = 3_600_000;

fn key(file: &str) -> Path {
    Path::parse(file.strip_prefix("s3://lake/").unwrap()).unwrap()
}

async fn put(server: &Server, file: &str, bytes: impl Into<Vec<u8>>) {
    server.objects().put(&key(file), bytes.into().into()).await.unwrap();
}

/// Metadata of another writer, as a table at `location` would have it.
fn metadata(name: &str, location: &str) -> Value {
    let path = format!("{}/tests/data/metadata/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut metadata: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    metadata["location"] = json!(location);
    metadata
}

/// A valid file of a table at `location`, put there; answers where it is.
async fn put_file(server: &Server, location: &str, name: &str) -> String {
    let file = format!("{location}/metadata/{name}");
    put(server, &file, metadata("table-v2-valid.json", location).to_string()).await;
    file
}

async fn register(server: &Server, name: &str, file: &str) -> Reply {
    server.post(REGISTER, json!({"name": name, "metadata-location": file})).await
}

async fn overwrite(server: &Server, name: &str, file: &str) -> Reply {
    server.post(REGISTER, json!({"name": name, "metadata-location": file, "overwrite": true})).await
}

async fn row(server: &Server, name: &str) -> Option<TableRow> {
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    db::tables::load(&server.app.db, warehouse.id, &path::table("n", name).unwrap()).await.unwrap()
}

async fn history(server: &Server, row: &TableRow) -> Vec<String> {
    let history = db::tables::history(&server.app.db, row.id).await.unwrap();
    history.into_iter().map(|entry| entry.metadata_location).collect()
}

/// A row of the other kind.
async fn make_view(server: &Server, name: &str) {
    let warehouse = warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let location = format!("s3://lake/wh/views/{name}");
    let metadata_location = format!("{location}/metadata/v.metadata.json");
    let new = NewTable { kind: Kind::View, uuid: Uuid::now_v7(), format_version: 1, location, metadata_location };
    let made = db::tables::create(&server.app.db, warehouse.id, &path::table("n", name).unwrap(), &new, now_ms()).await;
    assert!(matches!(made, Ok(Create::Done(_))));
}

fn set(key: &str, value: &str) -> Value {
    json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {key: value}}]})
}

/// The same metadata with every container that readers rely on.
fn as_we_write_it(metadata: &Value) -> Value {
    let metadata = TableMetadata::parse(metadata.to_string().as_bytes()).unwrap();
    serde_json::from_slice(&metadata.to_json()).unwrap()
}

async fn files_of_all_writers_become_tables_as_they_are(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let mut count = 0;
    for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/metadata")).unwrap() {
        let file_name = entry.unwrap().file_name().into_string().unwrap();
        if !file_name.ends_with(".json") || file_name.contains("-bad-") || file_name.contains("fixed-decimal") {
            continue;
        }
        let name = file_name.strip_suffix(".json").unwrap();
        let location = format!("s3://lake/wh/adopted/{name}");
        let file = format!("{location}/metadata/00007-{name}.metadata.json");
        let sent = metadata(&file_name, &location);
        put(&server, &file, sent.to_string()).await;
        let before = server.keys("").await;

        let reply = register(&server, name, &file).await;
        let tag = reply.header("etag").map(str::to_owned);
        assert!(tag.is_some());
        let registered = reply.expect(200);
        assert_eq!(registered["metadata-location"], file, "{name}");
        assert_eq!(registered["metadata"], as_we_write_it(&sent), "{name}");
        for container in CONTAINERS {
            assert!(registered["metadata"][container].is_array() || registered["metadata"][container].is_object());
        }
        assert_eq!(registered["config"]["s3.endpoint"], server.app.settings.s3_url);
        assert_eq!(server.keys("").await, before, "{name}: nothing was written");
        let loaded = Server::replica_of(&server).await.get(&format!("{TABLES}/{name}")).await;
        assert_eq!(loaded.header("etag"), tag.as_deref(), "{name}: tags are the same everywhere");
        assert_eq!(loaded.expect(200), registered, "{name}");

        let committed = server.post(&format!("{TABLES}/{name}"), set("a", "b")).await.expect(200);
        let log = committed["metadata"]["metadata-log"].as_array().unwrap();
        assert_eq!(log.last().unwrap()["metadata-file"], file, "{name}");
        assert!(committed["metadata-location"].as_str().unwrap().contains("/metadata/00008-"), "{name}");
        assert_eq!(committed["metadata"]["table-uuid"], registered["metadata"]["table-uuid"]);
        count += 1;
    }
    assert_eq!(count, 17);
}

async fn a_file_without_a_uuid_gets_one_for_good(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let mut old = metadata("table-v1-valid.json", "s3://lake/wh/old");
    old.as_object_mut().unwrap().remove("table-uuid");
    let file = "s3://lake/wh/old/metadata/v3.metadata.json";
    put(&server, file, old.to_string()).await;
    let uuid = register(&server, "t", file).await.expect(200)["metadata"]["table-uuid"].clone();
    assert!(uuid.is_string());
    let loaded = Server::replica_of(&server).await.get(&format!("{TABLES}/t")).await.expect(200);
    assert_eq!(loaded["metadata"]["table-uuid"], uuid);
    assert_eq!(overwrite(&server, "t", file).await.expect(200)["metadata"]["table-uuid"], uuid);
    let committed = server.post(&format!("{TABLES}/t"), set("a", "b")).await.expect(200);
    assert_eq!(committed["metadata"]["table-uuid"], uuid);
    // The number starts anew where the name before has none.
    assert!(committed["metadata-location"].as_str().unwrap().contains("/metadata/00000-"));
}

async fn compressed_files_are_told_by_content(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let mut number = 0;
    for suffix in [".metadata.json", ".gz.metadata.json", ".metadata.json.gz"] {
        for is_compressed in [false, true] {
            number += 1;
            let location = format!("s3://lake/wh/t{number}");
            let plain = metadata("table-v2-minimal.json", &location).to_string().into_bytes();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(&plain).unwrap();
            let bytes = if is_compressed { encoder.finish().unwrap() } else { plain.clone() };
            let file = format!("{location}/metadata/v1{suffix}");
            put(&server, &file, bytes).await;
            let registered = register(&server, &format!("t{number}"), &file).await.expect(200);
            assert_eq!(registered["metadata"], as_we_write_it(&serde_json::from_slice(&plain).unwrap()), "{file}");
            let loaded = Server::replica_of(&server).await.get(&format!("{TABLES}/t{number}")).await.expect(200);
            assert_eq!(loaded, registered);
        }
    }
}

async fn files_that_are_no_valid_metadata_are_refused(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let at = "s3://lake/wh/bad";
    let text = |name: &str| metadata(name, at).to_string().into_bytes();
    let with = |member: &str, value: Value| {
        let mut changed = metadata("table-v2-valid.json", at);
        changed[member] = value;
        changed.to_string().into_bytes()
    };
    let spec_on = |id: i32| json!([{"spec-id": 0, "fields": [{"source-id": id, "field-id": 1000, "name": "p", "transform": "day"}]}]);
    let order_on = |id: i32| {
        json!([{"order-id": 3, "fields": [
        {"source-id": id, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}])
    };
    let valid = text("table-v2-valid.json");
    for (bytes, expected) in [
        (text("table-v2-bad-current-schema-missing.json"), "current schema"),
        (text("table-v2-bad-no-sort-orders.json"), "missing field: sort-orders"),
        (text("table-bad-unsupported-version.json"), "unsupported format version: v"),
        (Vec::new(), "malformed JSON"),
        (b"not json".to_vec(), "malformed JSON"),
        (b"\xff\xfe".to_vec(), "not UTF-8"),
        (valid[..valid.len() / 2].to_vec(), "malformed JSON"),
        (b"\x1f\x8b\x08 and no more".to_vec(), "does not decompress"),
        ("[".repeat(1 << 16).into_bytes(), "nests deeper"),
        (with("format-version", json!(4)), "unsupported format version: v4"),
        (with("table-uuid", json!(null)), "missing field: table-uuid"),
        (with("last-updated-ms", json!(1)), "must ascend"),
        (with("default-spec-id", json!(9)), "default partition spec not found"),
        (with("default-sort-order-id", json!(9)), "default sort order not found"),
        (with("partition-specs", spec_on(77)), "cannot find source column 77"),
        (with("sort-orders", order_on(77)), "cannot find source column 77 of the sort order"),
        (with("last-sequence-number", json!(0)), "over the last sequence number"),
        (with("refs", json!({"main": {"snapshot-id": 1, "type": "branch"}})), "unknown snapshot"),
        (br#"{"view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385", "format-version": 1}"#.to_vec(), "missing field: "),
    ] {
        let file = format!("{at}/metadata/00000-x.metadata.json");
        put(&server, &file, bytes).await;
        let reply = register(&server, "t", &file).await;
        let error = reply.error();
        assert!(error.starts_with(&format!("400 BadRequestException cannot register {file}: ")), "{error}");
        assert!(error.contains(expected), "{expected}: {error}");
        server.objects().delete(&key(&file)).await.unwrap();
    }
    assert_eq!(server.get(TABLES).await.expect(200)["identifiers"], json!([]));
}

async fn names_and_files_must_be_there_and_free(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let file = put_file(&server, "s3://lake/wh/a", "v1.metadata.json").await;
    server.create_table("n", "t").await;
    make_view(&server, "v").await;
    let taken = register(&server, "t", &file).await;
    expect!["409 AlreadyExistsException Table already exists: n.t"].assert_eq(&taken.error());
    for reply in [register(&server, "v", &file).await, overwrite(&server, "v", &file).await] {
        expect!["409 AlreadyExistsException View with same name already exists: n.v"].assert_eq(&reply.error());
    }
    let body = json!({"name": "t", "metadata-location": file});
    let nowhere = server.post("/lakehouse/namespaces/no/register", body).await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&nowhere.error());
    let missing = register(&server, "u", "s3://lake/wh/a/metadata/v2.metadata.json").await;
    expect![[r#"
        400 BadRequestException cannot register s3://lake/wh/a/metadata/v2.metadata.json: there is no such file"#]]
    .assert_eq(&missing.error());
    for body in [
        json!({"name": "u"}),
        json!({"metadata-location": file}),
        json!({"name": "", "metadata-location": file}),
        json!({"name": "u", "metadata-location": 1}),
        json!({"name": "u", "metadata-location": file, "overwrite": "yes"}),
    ] {
        assert_eq!(server.post(REGISTER, body.clone()).await.status, 400, "{body}");
    }
    assert!(row(&server, "u").await.is_none());
    let with_null = json!({"name": "u", "metadata-location": file, "overwrite": null, "x-unknown": 1});
    server.post(REGISTER, with_null).await.expect(200);
}

async fn files_out_of_place_are_refused(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let neighbour = server.create_table("n", "neighbour").await;
    let place = neighbour["metadata"]["location"].as_str().unwrap().to_owned();
    let refused_with = async |status: &str, file: &str, expected: &str| {
        let reply = register(&server, "t", file).await;
        let error = reply.error();
        assert!(error.starts_with(status) && error.contains(expected), "{file}: {error}");
    };
    let refused = async |file: &str, expected: &str| refused_with("400 BadRequestException ", file, expected).await;
    let forbidden = async |file: &str, expected: &str| refused_with("403 ForbiddenException ", file, expected).await;
    // Where the file is.
    for file in ["s3://lake/outside/v1.metadata.json", "s3://lake/whale/v1.metadata.json"] {
        put(&server, file, metadata("table-v2-valid.json", "s3://lake/outside").to_string()).await;
        forbidden(file, "not inside the warehouse").await;
    }
    for file in [
        "s3://other/wh/a/v1.metadata.json",
        "s3a://lake/wh/a/v1.metadata.json",
        "file:/tmp/a/v1.metadata.json",
        "s3://lake/wh/a/../../x/v1.metadata.json",
        "s3://lake/wh//a/v1.metadata.json",
    ] {
        forbidden(file, "not inside the warehouse").await;
    }
    refused("s3://lake/wh/a/data.parquet", "the name does not end in").await;
    refused("s3://lake/wh/a/metadata.json", "the name does not end in").await;

    // What it says: another place than its own, a neighbour's, none of ours.
    let stray = "s3://lake/wh/stray/metadata/v1.metadata.json";
    for (location, expected) in [
        ("s3://lake/wh/elsewhere", "not inside the location it names"),
        ("s3://lake/wh/stray/metadata/deeper", "not inside the location it names"),
        (place.as_str(), "not inside the location it names"),
        ("s3://lake/wh", "location is not inside the warehouse's"),
        ("s3://lake/other", "location is not inside the warehouse's"),
        ("s3://lake2/wh/stray", "location is not inside the warehouse's"),
        ("file:/tmp/stray", "location is not an s3:// location"),
        ("s3://lake/wh/n/../stray", "location has an empty, dotted or unprintable segment"),
    ] {
        put(&server, stray, metadata("table-v2-valid.json", location).to_string()).await;
        refused(stray, expected).await;
    }
    let mut far = metadata("table-v2-valid.json", "s3://lake/wh/stray");
    far["properties"] = json!({"write.data.path": format!("{place}/data")});
    put(&server, stray, far.to_string()).await;
    refused(stray, "not inside the location").await;

    // A neighbour's own file, and one put beside it; a folder around the neighbour's.
    forbidden(neighbour["metadata-location"].as_str().unwrap(), "lies inside another table's or view's location").await;
    let planted = format!("{place}/metadata/planted.metadata.json");
    put(&server, &planted, b"not even JSON".to_vec()).await;
    forbidden(&planted, "lies inside another table's or view's location").await;
    let above = place.rsplit_once('/').unwrap().0;
    let around = put_file(&server, above, "v1.metadata.json").await;
    refused(&around, "location is, holds or lies within another table's").await;
    assert_eq!(server.get(TABLES).await.expect(200)["identifiers"].as_array().unwrap().len(), 1);
    server.get(&format!("{TABLES}/neighbour")).await.expect(200);
}

async fn one_file_is_one_table(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let file = put_file(&server, "s3://lake/wh/a", "v1.metadata.json").await;
    let names = (0..8).map(|n| format!("t{n}")).collect::<Vec<_>>();
    let replies = join_all(names.iter().map(|name| register(&server, name, &file))).await;
    let (won, lost): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 200);
    assert_eq!(won.len(), 1);
    for reply in lost {
        // Whether it was seen before the file was read, or by the insert.
        assert!(matches!(reply.status.as_u16(), 400 | 403), "{}", reply.error());
    }
    assert_eq!(server.keys("wh/").await.len(), 1, "who lost left the file");
}

async fn of_racing_registrations_of_a_name_one_wins_and_no_file_goes(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let mut files = Vec::new();
    for n in 0..8 {
        files.push(put_file(&server, &format!("s3://lake/wh/a{n}"), "v1.metadata.json").await);
    }
    let servers = join_all((0..8).map(|_| Server::replica_of(&server))).await;
    let races = servers.iter().zip(&files).map(|(server, file)| register(server, "t", file));
    let (won, lost): (Vec<_>, Vec<_>) = join_all(races).await.into_iter().partition(|reply| reply.status == 200);
    assert_eq!(won.len(), 1);
    for reply in lost {
        expect!["409 AlreadyExistsException Table already exists: n.t"].assert_eq(&reply.error());
    }
    assert_eq!(server.keys("wh/").await.len(), 8);
}

async fn overwriting_moves_the_pointer_of_the_same_row(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = server.create_table("n", "t").await;
    let before = row(&server, "t").await.unwrap();
    let loaded = server.get(&format!("{TABLES}/t")).await;
    let first_tag = loaded.header("etag").unwrap().to_owned();

    // Another file in the same place, of another uuid.
    let file = put_file(&server, &before.location, "00005-restored.metadata.json").await;
    let reply = overwrite(&server, "t", &file).await;
    assert_ne!(reply.header("etag"), Some(first_tag.as_str()));
    let registered = reply.expect(200);
    assert_eq!(registered["metadata-location"], file);
    assert_ne!(registered["metadata"]["table-uuid"], created["metadata"]["table-uuid"]);
    let after = row(&server, "t").await.unwrap();
    assert_eq!((after.id, after.revision), (before.id, before.revision + 1));
    assert_eq!(after.uuid.to_string(), registered["metadata"]["table-uuid"]);
    assert_eq!(after.previous_location.as_deref(), Some(before.metadata_location.as_str()));
    assert_eq!(history(&server, &after).await, [before.metadata_location.clone(), file.clone()]);
    let stale = server.send("GET", &format!("{TABLES}/t"), &[("if-none-match", &first_tag)], "").await;
    assert_eq!(stale.expect(200)["metadata-location"], file);

    // Back to the first file, which the history has had already; then into another place, and back again.
    let back = overwrite(&server, "t", &before.metadata_location).await.expect(200);
    assert_eq!(back["metadata"], created["metadata"]);
    let elsewhere = put_file(&server, "s3://lake/wh/new/place", "v1.metadata.json").await;
    overwrite(&server, "t", &elsewhere).await.expect(200);
    let moved = row(&server, "t").await.unwrap();
    assert_eq!((moved.id, moved.location.as_str()), (before.id, "s3://lake/wh/new/place"));
    overwrite(&server, "t", &file).await.expect(200);
    let row = row(&server, "t").await.unwrap();
    let first = &before.metadata_location;
    assert_eq!(history(&server, &row).await, [first, &file, first, &elsewhere, &file].map(String::clone));
    let committed = server.post(&format!("{TABLES}/t"), set("a", "b")).await.expect(200);
    assert!(committed["metadata-location"].as_str().unwrap().contains("/metadata/00006-"));
    // Where no table has the name, it is made.
    let fresh = put_file(&server, "s3://lake/wh/fresh", "v1.metadata.json").await;
    overwrite(&server, "u", &fresh).await.expect(200);
}

async fn a_file_registered_again_with_other_content_is_read_again(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let location = "s3://lake/wh/a";
    let file = put_file(&server, location, "v1.metadata.json").await;
    let registered = register(&server, "t", &file).await;
    let tag = registered.header("etag").unwrap().to_owned();
    server.get(&format!("{TABLES}/t")).await.expect(200);
    let mut changed = metadata("table-v2-valid.json", location);
    changed["properties"] = json!({"a": "b"});
    put(&server, &file, changed.to_string()).await;
    let again = overwrite(&server, "t", &file).await;
    assert_ne!(again.header("etag"), Some(tag.as_str()));
    assert_eq!(again.expect(200)["metadata"], as_we_write_it(&changed));
    let loaded = server.send("GET", &format!("{TABLES}/t"), &[("if-none-match", &tag)], "").await;
    assert_eq!(loaded.expect(200)["metadata"], as_we_write_it(&changed));
}

async fn overwriting_onto_a_neighbour_is_refused(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let neighbour = server.create_table("n", "neighbour").await;
    server.create_table("n", "t").await;
    let before = row(&server, "t").await.unwrap();
    let reply = overwrite(&server, "t", neighbour["metadata-location"].as_str().unwrap()).await;
    assert!(reply.error().contains("lies inside another table's or view's location"), "{}", reply.error());
    let place = neighbour["metadata"]["location"].as_str().unwrap();
    let above = put_file(&server, place.rsplit_once('/').unwrap().0, "v1.metadata.json").await;
    let reply = overwrite(&server, "t", &above).await;
    assert!(reply.error().contains("location is, holds or lies within another table's"), "{}", reply.error());
    assert_eq!(row(&server, "t").await.unwrap(), before);
}

async fn readers_of_an_overwritten_table_never_miss_it(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let place = row(&server, "t").await.unwrap().location;
    let mut files = Vec::new();
    for n in 0..8 {
        files.push(put_file(&server, &place, &format!("{n:05}-x.metadata.json")).await);
    }
    let other = Server::replica_of(&server).await;
    let reads = async {
        for _ in 0..40 {
            other.get(&format!("{TABLES}/t")).await.expect(200);
            server.get(&format!("{TABLES}/t")).await.expect(200);
        }
    };
    let writes = async {
        for file in &files {
            overwrite(&server, "t", file).await.expect(200);
            server.post(&format!("{TABLES}/t"), set("a", file)).await.expect(200);
        }
    };
    tokio::join!(reads, writes);
    let row = row(&server, "t").await.unwrap();
    assert_eq!(history(&server, &row).await.len(), 1 + 2 * files.len());
}

async fn overwrites_of_replicas_all_land(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let before = row(&server, "t").await.unwrap();
    let mut races = Vec::new();
    for n in 0..4 {
        let file = put_file(&server, &before.location, &format!("{n:05}-x.metadata.json")).await;
        let other = Server::replica_of(&server).await;
        races.push(tokio::spawn(async move { overwrite(&other, "t", &file).await.expect(200) }));
    }
    for result in join_all(races).await {
        result.unwrap();
    }
    let row = row(&server, "t").await.unwrap();
    assert_eq!((row.id, history(&server, &row).await.len()), (before.id, 5));
}

async fn a_registration_whose_answer_was_lost_is_settled_and_its_file_stays(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let faults = &server.app.catalog.faults;
    let file = put_file(&server, "s3://lake/wh/a", "v1.metadata.json").await;
    let newer = put_file(&server, "s3://lake/wh/a", "v2.metadata.json").await;

    for (fault, status) in [(Fault::NoConnection, 503), (Fault::StatementLost, 503)] {
        faults.plan([(Statement::Create, fault)]);
        assert_eq!(register(&server, "t", &file).await.status, status, "{fault:?}");
        assert!(row(&server, "t").await.is_none());
    }
    faults.plan([(Statement::Create, Fault::AnswerLost), (Statement::Settle, Fault::StatementLost)]);
    register(&server, "t", &file).await.expect(200);
    let first = row(&server, "t").await.unwrap();

    faults.plan([(Statement::Replace, Fault::NoConnection)]);
    assert_eq!(overwrite(&server, "t", &newer).await.status, 503);
    faults.plan([(Statement::Replace, Fault::AnswerLost)]);
    overwrite(&server, "t", &newer).await.expect(200);
    // Lost on its way to a file that the history has: it must not count as done for that.
    faults.plan([(Statement::Replace, Fault::StatementLost)]);
    let back = overwrite(&server, "t", &file).await.expect(200);
    assert_eq!(back["metadata-location"], file);
    assert_eq!(row(&server, "t").await.unwrap().metadata_location, file);
    assert_eq!(history(&server, &first).await, [&file, &newer, &file].map(String::clone));

    let unsettled = std::iter::repeat_n((Statement::Settle, Fault::StatementLost), 6);
    faults.plan([(Statement::Replace, Fault::AnswerLost)].into_iter().chain(unsettled));
    let unknown = overwrite(&server, "t", &newer).await;
    assert!(unknown.error().starts_with("500 CommitStateUnknownException "), "{}", unknown.error());
    assert_eq!(server.keys("wh/").await.len(), 2, "no registered file was deleted");
}

async fn a_lost_registration_is_not_taken_for_that_of_an_earlier_table(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let file = put_file(&server, "s3://lake/wh/a", "v1.metadata.json").await;
    register(&server, "t", &file).await.expect(200);
    server.post(&format!("{TABLES}/t/unregister"), json!({})).await.expect(200);
    server.app.catalog.faults.plan([(Statement::Create, Fault::StatementLost)]);
    assert_eq!(register(&server, "t", &file).await.status, 503);
    assert!(row(&server, "t").await.is_none());
    register(&server, "t", &file).await.expect(200);
}

async fn keys_come_with_a_registration_that_asks_for_them(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let file = put_file(&server, "s3://lake/wh/a", "v1.metadata.json").await;
    let body = json!({"name": "t", "metadata-location": file}).to_string();
    let headers = [("x-iceberg-access-delegation", "vended-credentials")];
    let reply = server.send("POST", REGISTER, &headers, body).await;
    assert_eq!((reply.header("etag"), reply.header("cache-control")), (None, Some("no-store")));
    let registered = reply.expect(200);
    assert_eq!(registered["storage-credentials"][0]["prefix"], "s3://lake/wh/a/");
    assert!(registered["config"]["s3.session-token"].is_string());
    let refresh = registered["config"]["client.refresh-credentials-endpoint"].as_str().unwrap();
    assert_eq!(refresh, "/v1/lakehouse/namespaces/n/tables/t/credentials");
}

async fn unregistering_forgets_the_table_and_leaves_its_files(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let committed = server.post(&format!("{TABLES}/t"), set("a", "b")).await.expect(200);
    let files = server.keys("").await;
    let before = row(&server, "t").await.unwrap();

    let gone = server.send("POST", &format!("{TABLES}/t/unregister"), &[], "").await.expect(200);
    assert_eq!(gone.as_object().unwrap().keys().collect::<Vec<_>>(), ["metadata-location", "metadata"]);
    assert_eq!(gone, committed);
    for path in [format!("{TABLES}/t"), format!("{TABLES}/t/credentials")] {
        assert_eq!(server.get(&path).await.status, 404, "{path}");
    }
    let late = server.post(&format!("{TABLES}/t"), set("c", "d")).await;
    expect!["404 NoSuchTableException Table does not exist: n.t"].assert_eq(&late.error());
    let again = server.post(&format!("{TABLES}/t/unregister"), json!({})).await;
    expect!["404 NoSuchTableException Table does not exist: n.t"].assert_eq(&again.error());
    assert_eq!(reap::run(&server.app, now_ms() + 2 * HOUR_MS).await.unwrap(), 0);
    assert_eq!(server.keys("").await, files);

    // It comes back as another row, with all it had.
    let back = register(&server, "back", gone["metadata-location"].as_str().unwrap()).await.expect(200);
    assert_eq!(back["metadata"], committed["metadata"]);
    assert_ne!(row(&server, "back").await.unwrap().id, before.id);
    make_view(&server, "v").await;
    let view = server.post(&format!("{TABLES}/v/unregister"), json!({})).await;
    expect!["404 NoSuchTableException Table does not exist: n.v"].assert_eq(&view.error());
}

async fn a_commit_under_way_fails_once_its_table_is_unregistered(db: Db) {
    let server = Arc::new(Server::with_namespace(db, "n").await);
    let created = server.create_table("n", "t").await;
    let other = Server::replica_of(&server).await;
    server.app.catalog.faults.plan([(Statement::Swap, Fault::Held)]);
    let commit = {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.post(&format!("{TABLES}/t"), set("a", "b")).await })
    };
    // Its file is written, its swap is not sent.
    while server.keys("wh/").await.len() < 2 {
        tokio::task::yield_now().await;
    }
    let gone = other.post(&format!("{TABLES}/t/unregister"), json!({})).await.expect(200);
    assert_eq!(gone["metadata-location"], created["metadata-location"]);
    server.app.catalog.faults.release();
    let failed = commit.await.unwrap();
    expect!["404 NoSuchTableException Table does not exist: n.t"].assert_eq(&failed.error());
    assert_eq!(server.keys("wh/").await.len(), 1, "the commit's own file is gone, the table's is not");
}

async fn an_unregistration_holds_every_commit_that_was_acknowledged(db: Db) {
    let server = Arc::new(Server::with_namespace(db, "n").await);
    server.create_table("n", "t").await;
    let mut commits = Vec::new();
    for n in 0..8 {
        let server = if n % 2 == 0 { Arc::clone(&server) } else { Arc::new(Server::replica_of(&server).await) };
        commits.push(tokio::spawn(async move {
            server.post(&format!("{TABLES}/t"), set(&format!("k{n}"), "v")).await.status.as_u16()
        }));
    }
    let gone = Server::replica_of(&server).await.post(&format!("{TABLES}/t/unregister"), json!({})).await.expect(200);
    for (n, status) in join_all(commits).await.into_iter().enumerate() {
        let is_in = gone["metadata"]["properties"][format!("k{n}")] == "v";
        assert_eq!(status.unwrap(), if is_in { 200 } else { 404 }, "commit {n}");
    }
}

async fn a_commit_that_overtakes_an_unregistration_is_in_its_answer(db: Db) {
    let server = Arc::new(Server::with_namespace(db, "n").await);
    server.create_table("n", "t").await;
    server.app.catalog.faults.plan([(Statement::Unregister, Fault::Held)]);
    let path = format!("{TABLES}/t/unregister");
    let mut gone = Box::pin(server.post(&path, json!({})));
    // It has read the table by the time that it waits with its statement.
    while !server.app.catalog.faults.is_through() {
        assert!(futures_util::poll!(&mut gone).is_pending());
        tokio::task::yield_now().await;
    }
    let committed = Server::replica_of(&server).await.post(&format!("{TABLES}/t"), set("a", "b")).await.expect(200);
    server.app.catalog.faults.release();
    assert_eq!(gone.await.expect(200), committed);
    assert!(row(&server, "t").await.is_none());
}

async fn an_unregistration_whose_answer_was_lost_is_settled(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let faults = &server.app.catalog.faults;
    let created = server.create_table("n", "t").await;
    let unregister = async || server.post(&format!("{TABLES}/t/unregister"), json!({})).await;
    faults.plan([(Statement::Unregister, Fault::NoConnection)]);
    assert_eq!(unregister().await.status, 503);
    server.get(&format!("{TABLES}/t")).await.expect(200);
    faults.plan([(Statement::Unregister, Fault::StatementLost)]);
    assert_eq!(unregister().await.expect(200)["metadata"], created["metadata"]);
    let file = created["metadata-location"].as_str().unwrap();
    register(&server, "t", file).await.expect(200);
    faults.plan([(Statement::Unregister, Fault::AnswerLost)]);
    assert_eq!(unregister().await.expect(200)["metadata"], created["metadata"]);
    assert!(row(&server, "t").await.is_none());
    assert_eq!(server.keys("wh/").await.len(), 1);
}

async fn a_table_whose_file_is_gone_stays_until_it_is_dropped(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = server.create_table("n", "t").await;
    let file = created["metadata-location"].as_str().unwrap();
    server.objects().delete(&key(file)).await.unwrap();
    server.app.catalog.documents.forget(file);
    let reply = server.post(&format!("{TABLES}/t/unregister"), json!({})).await;
    assert_eq!(reply.error(), format!("404 NotFoundException Failed to open input stream for file: {file}"));
    assert!(row(&server, "t").await.is_some());
}

async fn the_reaper_leaves_registered_files_and_copies_of_ours(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let id = Uuid::now_v7();
    let foreign = put_file(&server, "s3://lake/wh/foreign", &format!("00003-{id}.metadata.json")).await;
    register(&server, "foreign", &foreign).await.expect(200);
    server.delete(&format!("{TABLES}/foreign")).await.expect(204);

    // Ours, copied with all its headers to where no table is; and one that the same server wrote for another warehouse.
    let created = server.create_table("n", "t").await;
    let file = created["metadata-location"].as_str().unwrap();
    let copy = format!("s3://lake/wh/backup/{}", file.rsplit_once('/').unwrap().1);
    server.objects().copy(&key(file), &key(&copy)).await.unwrap();
    add_warehouse(&server.app.db, "other", "s3://lake/other").await;
    let other = warehouses::named(&server.app, "other").await.unwrap();
    let restored = format!("s3://lake/wh/restored/00001-{id}.metadata.json");
    files::write(&other, &restored, bytes::Bytes::from_static(b"{}")).await.unwrap();

    let before = server.keys("").await;
    assert_eq!(before.len(), 4);
    assert_eq!(reap::run(&server.app, now_ms() + 2 * HOUR_MS).await.unwrap(), 0);
    assert_eq!(server.keys("").await, before);
}

on_both! {
    files_of_all_writers_become_tables_as_they_are,
    a_file_without_a_uuid_gets_one_for_good,
    compressed_files_are_told_by_content,
    files_that_are_no_valid_metadata_are_refused,
    names_and_files_must_be_there_and_free,
    files_out_of_place_are_refused,
    one_file_is_one_table,
    of_racing_registrations_of_a_name_one_wins_and_no_file_goes,
    overwriting_moves_the_pointer_of_the_same_row,
    a_file_registered_again_with_other_content_is_read_again,
    overwriting_onto_a_neighbour_is_refused,
    readers_of_an_overwritten_table_never_miss_it,
    overwrites_of_replicas_all_land,
    a_registration_whose_answer_was_lost_is_settled_and_its_file_stays,
    a_lost_registration_is_not_taken_for_that_of_an_earlier_table,
    keys_come_with_a_registration_that_asks_for_them,
    unregistering_forgets_the_table_and_leaves_its_files,
    a_commit_under_way_fails_once_its_table_is_unregistered,
    an_unregistration_holds_every_commit_that_was_acknowledged,
    a_commit_that_overtakes_an_unregistration_is_in_its_answer,
    an_unregistration_whose_answer_was_lost_is_settled,
    a_table_whose_file_is_gone_stays_until_it_is_dropped,
    the_reaper_leaves_registered_files_and_copies_of_ours,
}
