use super::*;
use expect_test::expect;

const TABLES: &str = "/lakehouse/namespaces/n/tables";

async fn a_table_is_created_loaded_and_listed(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let reply = server.post(TABLES, new_table("t")).await;
    let etag = reply.header("etag").unwrap().to_owned();
    let created = reply.expect(200);
    let location = created["metadata"]["location"].as_str().unwrap();
    assert!(location.starts_with("s3://lake/wh/n/t-"), "{location}");
    let file = created["metadata-location"].as_str().unwrap();
    assert!(file.starts_with(&format!("{location}/metadata/00000-")) && file.ends_with(".metadata.json"), "{file}");
    assert_eq!(server.keys("wh/").await, [file.strip_prefix("s3://lake/").unwrap()]);

    let loaded = server.get(&format!("{TABLES}/t")).await;
    assert_eq!(loaded.header("etag"), Some(etag.as_str()));
    assert_eq!(loaded.expect(200), created);
    let warehouse = crate::catalog::warehouses::named(&server.app, WAREHOUSE).await.unwrap();
    let stored = crate::catalog::files::read(&warehouse, file).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&stored).unwrap(), created["metadata"]);
    let listed = server.get(TABLES).await.expect(200);
    assert_eq!(listed, json!({"identifiers": [{"namespace": ["n"], "name": "t"}], "next-page-token": null}));
    assert_eq!(server.send("HEAD", &format!("{TABLES}/t"), &[], "").await.expect(204), Value::Null);
    assert_eq!(server.send("HEAD", &format!("{TABLES}/u"), &[], "").await.expect(404), Value::Null);
}

async fn a_table_is_read_again_by_a_server_that_never_saw_it(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let reply = server.post(TABLES, new_table("t")).await;
    let etag = reply.header("etag").unwrap().to_owned();
    let created = reply.expect(200);
    server.app.catalog.documents.forget(created["metadata-location"].as_str().unwrap());
    let loaded = server.get(&format!("{TABLES}/t")).await;
    assert_eq!(loaded.header("etag"), Some(etag.as_str()));
    assert_eq!(loaded.expect(200), created);
}

async fn names_are_taken_once_and_need_a_namespace(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let reply = server.post(TABLES, new_table("t")).await;
    expect!["409 AlreadyExistsException Table already exists: n.t"].assert_eq(&reply.error());
    server.create_table("n", "T").await;
    let reply = server.post("/namespaces/no/tables", new_table("t")).await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&reply.error());
    let reply = server.get("/namespaces/no/tables").await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&reply.error());
    for path in ["/namespaces/no/tables/t", "/namespaces/n/tables/u", "/namespaces/n%1Ft/tables/files"] {
        let get = server.get(path).await;
        assert!(get.error().starts_with("404 NoSuchTableException Table does not exist: "), "{path}");
        let delete = server.delete(path).await;
        assert!(delete.error().starts_with("404 NoSuchTableException Table does not exist: "), "{path}");
        assert_eq!(server.send("HEAD", path, &[], "").await.status, 404);
    }
}

async fn racing_creates_have_one_winner_and_leave_one_file(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let creates = (0..16).map(|_| server.post(TABLES, new_table("t")));
    let replies = futures_util::future::join_all(creates).await;
    let (won, lost): (Vec<_>, Vec<_>) = replies.into_iter().partition(|reply| reply.status == 200);
    assert_eq!(won.len(), 1);
    for reply in lost {
        assert_eq!(reply.error(), "409 AlreadyExistsException Table already exists: n.t");
    }
    assert_eq!(server.keys("wh/").await.len(), 1);
}

async fn requested_locations_must_be_inside_the_warehouse_and_free(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let create = |name: &str, location: &str| {
        let mut table = new_table(name);
        table["location"] = json!(location);
        server.post(TABLES, table)
    };
    let created = create("t", "s3://lake/wh/my/place//").await.expect(200);
    assert_eq!(created["metadata"]["location"], "s3://lake/wh/my/place");
    for location in [
        "file:/tmp/t",
        "/tmp/t",
        "s3a://lake/wh/x",
        "s3://other/wh/x",
        "s3://lake/wh",
        "s3://lake/whale",
        "s3://lake/wh/a/../../b",
        "s3://lake/wh/my/place",
        "s3://lake/wh/my/place/below",
        "s3://lake/wh/my",
    ] {
        let reply = create("u", location).await;
        assert!(reply.error().starts_with("400 BadRequestException location "), "{location}: {}", reply.error());
    }
    create("u", "s3://lake/wh/my/places").await.expect(200);
    assert_eq!(server.keys("wh/").await.len(), 2);
    let mut table = new_table("v");
    table["properties"] = json!({"write.data.path": "s3://lake/wh/my/place/data"});
    assert!(server.post(TABLES, table).await.error().starts_with("400 BadRequestException "));
}

async fn tables_go_where_their_namespace_says(db: Db) {
    let server = Server::start(db).await;
    for (levels, location, expected) in [
        (json!(["a"]), json!("s3://lake/wh/home/"), "s3://lake/wh/home/t-"),
        (json!(["b"]), json!("s3://elsewhere/home"), "s3://lake/wh/b/t-"),
        (json!(["a", "c"]), Value::Null, "s3://lake/wh/a/c/t-"),
    ] {
        let properties = if location.is_null() { json!({}) } else { json!({"location": location}) };
        server.post("/namespaces", json!({"namespace": levels, "properties": properties})).await.expect(200);
        let path: Vec<&str> = levels.as_array().unwrap().iter().map(|level| level.as_str().unwrap()).collect();
        let created = server.create_table(&path.join("%1F"), "t").await;
        let location = created["metadata"]["location"].as_str().unwrap();
        assert!(location.starts_with(expected) && !location.ends_with('/'), "{location}");
    }
}

async fn a_new_table_is_compressed_when_it_says_so(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let create = |codec: &str| {
        let mut table = new_table("t");
        table["properties"] = json!({"write.metadata.compression-codec": codec, "a": "b"});
        server.post(TABLES, table)
    };
    let refused = create("lz4").await;
    assert!(refused.error().starts_with("400 BadRequestException "), "{}", refused.error());
    let created = create("gzip").await.expect(200);
    assert!(created["metadata-location"].as_str().unwrap().ends_with(".gz.metadata.json"));
    let properties = &created["metadata"]["properties"];
    assert_eq!((&properties["a"], &properties["write.parquet.compression-codec"]), (&json!("b"), &json!("zstd")));
    server.app.catalog.documents.forget(created["metadata-location"].as_str().unwrap());
    assert_eq!(server.get(&format!("{TABLES}/t")).await.expect(200)["metadata"], created["metadata"]);
}

async fn dropping_keeps_files_and_frees_the_name(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let mut uuids = std::collections::HashSet::new();
    for round in 1..=3 {
        let created = server.create_table("n", "t").await;
        assert!(uuids.insert(created["metadata"]["table-uuid"].as_str().unwrap().to_owned()));
        let reply = server.delete(&format!("{TABLES}/t?purgeRequested=False")).await;
        assert_eq!((reply.status.as_u16(), &reply.body), (204, &Value::Null));
        assert_eq!(server.keys("wh/").await.len(), round);
    }
    assert_eq!(server.get(&format!("{TABLES}/t")).await.status, 404);
    assert_eq!(server.delete(&format!("{TABLES}/t?purgeRequested=perhaps")).await.status, 400);
}

async fn renaming_moves_the_name_and_nothing_else(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.post("/namespaces", json!({"namespace": ["n", "m"]})).await.expect(200);
    let created = server.create_table("n", "t").await;
    server.create_table("n", "u").await;
    let files = server.keys("wh/").await;
    let rename = |from: &str, levels: Value, to: &str| {
        let body = json!({
            "source": {"namespace": ["n"], "name": from},
            "destination": {"namespace": levels, "name": to},
        });
        server.post("/lakehouse/tables/rename", body)
    };
    let taken = rename("t", json!(["n"]), "u").await;
    expect!["409 AlreadyExistsException Cannot rename n.t to n.u. Table already exists"].assert_eq(&taken.error());
    let itself = rename("t", json!(["n"]), "t").await;
    expect!["409 AlreadyExistsException Cannot rename n.t to n.t. Table already exists"].assert_eq(&itself.error());
    let nowhere = rename("t", json!(["no"]), "t").await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: no"].assert_eq(&nowhere.error());
    for to in ["v", "missing"] {
        let missing = rename("missing", json!(["n"]), to).await;
        expect!["404 NoSuchTableException Table does not exist: n.missing"].assert_eq(&missing.error());
    }

    assert_eq!(rename("t", json!(["n", "m"]), "v").await.expect(204), Value::Null);
    assert_eq!(server.get("/namespaces/n%1Fm/tables/v").await.expect(200), created);
    assert_eq!(server.get(&format!("{TABLES}/t")).await.status, 404);
    assert_eq!(server.keys("wh/").await, files);
    let again = server.create_table("n", "t").await;
    assert_ne!(again["metadata"]["location"], created["metadata"]["location"]);
}

async fn racing_renames_have_one_winner(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    for n in 0..8 {
        server.create_table("n", &format!("t{n}")).await;
    }
    let renames = (0..8).map(|n| {
        let body = json!({
            "source": {"namespace": ["n"], "name": format!("t{n}")},
            "destination": {"namespace": ["n"], "name": "free"},
        });
        server.post("/tables/rename", body)
    });
    let mut statuses: Vec<u16> =
        futures_util::future::join_all(renames).await.iter().map(|reply| reply.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 409, 409, 409, 409, 409, 409, 409]);
}

async fn a_copy_that_is_current_is_not_sent_again(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let path = format!("{TABLES}/t");
    let all = server.get(&format!("{path}?snapshots=all")).await;
    let refs = server.get(&format!("{path}?snapshots=refs")).await;
    let (all, refs) = (all.header("etag").unwrap().to_owned(), refs.header("etag").unwrap().to_owned());
    assert_ne!(all, refs);
    let load = |query: &'static str, tag: &str| {
        let headers = [("if-none-match".to_owned(), tag.to_owned())];
        let path = format!("{path}{query}");
        let server = &server;
        async move {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            server.send("GET", &path, &headers, "").await
        }
    };
    let reply = load("", &all).await;
    assert_eq!((reply.status.as_u16(), &reply.body, reply.header("etag")), (304, &Value::Null, Some(all.as_str())));
    assert_eq!(load("?snapshots=REFS", &refs).await.status, 304);
    assert_eq!(load("", all.strip_prefix("W/").unwrap()).await.status, 304);
    assert_eq!(load("", "*").await.status, 304);
    assert_eq!(load("", &refs).await.status, 200);
    assert_eq!(server.get(&format!("{path}?snapshots=some")).await.status, 400);

    let update = json!({"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]});
    let committed = server.post(&path, update).await;
    assert_eq!(load("", &all).await.status, 200);
    assert_eq!(load("", committed.header("etag").unwrap()).await.status, 304);
}

async fn a_full_disk_refuses_and_changes_nothing(db: Db) {
    let server = Server::start_with(db, |settings| settings.disk_reserve_bytes = u64::MAX).await;
    server.post("/namespaces", json!({"namespace": ["n"]})).await.expect(200);
    let reply = server.post(TABLES, new_table("t")).await;
    expect!["503 ServiceUnavailableException the object store has no space left"].assert_eq(&reply.error());
    assert_eq!(reply.header("retry-after"), None);
    server.get(&format!("{TABLES}/t")).await.expect(404);
    server.delete("/namespaces/n").await.expect(204);
}

async fn a_missing_metadata_file_is_said_and_the_table_can_go(db: Db) {
    use object_store::ObjectStoreExt;
    let server = Server::with_namespace(db, "n").await;
    let created = server.create_table("n", "t").await;
    let file = created["metadata-location"].as_str().unwrap();
    let key = object_store::path::Path::parse(file.strip_prefix("s3://lake/").unwrap()).unwrap();
    server.objects().delete(&key).await.unwrap();
    server.app.catalog.documents.forget(file);
    let reply = server.get(&format!("{TABLES}/t")).await;
    assert_eq!(reply.error(), format!("404 NotFoundException Failed to open input stream for file: {file}"));
    server.delete(&format!("{TABLES}/t?purgeRequested=true")).await.expect(204);
}

/// A table whose metadata is large enough to be worth compressing.
async fn create_large(server: &Server) {
    let mut table = new_table("t");
    table["properties"] = json!({"comment": "x y ".repeat(10_000)});
    server.post(TABLES, table).await.expect(200);
}

async fn large_metadata_is_compressed_for_those_who_take_it(db: Db) {
    use std::io::Read;
    let server = Server::with_namespace(db, "n").await;
    create_large(&server).await;
    let path = format!("{TABLES}/t");
    let delegation = ("x-iceberg-access-delegation", "vended-credentials");
    for query in ["", "?snapshots=refs"] {
        let plain = server.get(&format!("{path}{query}")).await;
        assert_eq!(plain.header("content-encoding"), None);
        for headers in [vec![("accept-encoding", "gzip")], vec![("accept-encoding", "br, gzip"), delegation]] {
            let reply = server.send("GET", &format!("{path}{query}"), &headers, "").await;
            assert_eq!(reply.header("content-encoding"), Some("gzip"));
            assert_eq!(reply.header("vary"), Some("accept-encoding"));
            let mut json = String::new();
            flate2::read::GzDecoder::new(reply.bytes.as_ref()).read_to_string(&mut json).unwrap();
            let json: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["metadata"], plain.body["metadata"]);
            assert_eq!(json["config"]["s3.session-token"].is_string(), headers.contains(&delegation));
            assert!(reply.bytes.len() < 10_000);
        }
    }
}

async fn old_metadata_without_a_uuid_has_the_same_at_every_load(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let created = server.create_table("n", "t").await;
    let file = created["metadata-location"].as_str().unwrap();
    let mut old: Value =
        serde_json::from_str(include_str!("../../../tests/data/metadata/table-v1-valid.json")).unwrap();
    old.as_object_mut().unwrap().remove("table-uuid");
    let key = object_store::path::Path::parse(file.strip_prefix("s3://lake/").unwrap()).unwrap();
    {
        use object_store::ObjectStoreExt;
        server.objects().put(&key, old.to_string().into()).await.unwrap();
    }
    let mut loads = Vec::new();
    for _ in 0..2 {
        server.app.catalog.documents.forget(file);
        loads.push(server.get(&format!("{TABLES}/t")).await.expect(200)["metadata"]["table-uuid"].clone());
    }
    assert_eq!(loads, [created["metadata"]["table-uuid"].clone(), created["metadata"]["table-uuid"].clone()]);
}

async fn pages_of_tables_end_without_an_empty_one(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    for n in 0..5 {
        server.create_table("n", &format!("t{n}")).await;
    }
    let (mut names, mut token) = (Vec::new(), Some(String::new()));
    let mut pages = 0;
    while let Some(current) = token {
        let page = server.get(&format!("{TABLES}?pageSize=2&pageToken={current}")).await.expect(200);
        names.extend(page["identifiers"].as_array().unwrap().iter().map(|ident| ident["name"].clone()));
        token = page["next-page-token"].as_str().map(str::to_owned);
        pages += 1;
    }
    assert_eq!((pages, json!(names)), (3, json!(["t0", "t1", "t2", "t3", "t4"])));
    let all = server.get(&format!("{TABLES}?pageSize=2")).await.expect(200);
    assert_eq!(all["identifiers"].as_array().unwrap().len(), 5);
}

/// Members whose names are anybody's.
const MAPS: [&str; 4] = ["properties", "config", "summary", "refs"];

/// Checks that an answer has the members of another server's, of the same types. `optional`: those it may lack.
fn check_shape(place: &str, ours: &Value, theirs: &Value, optional: &[&str]) {
    assert_eq!(std::mem::discriminant(ours), std::mem::discriminant(theirs), "{place}: {ours}");
    if let (Some(ours), Some(theirs)) = (ours.as_object(), theirs.as_object()) {
        let is_map = MAPS.contains(&place);
        for (name, theirs) in theirs {
            match ours.get(name) {
                Some(ours) => check_shape(name, ours, theirs, optional),
                None if is_map || optional.contains(&name.as_str()) => {}
                None => panic!("{place} has no {name}"),
            }
        }
        for value in ours.values().filter(|_| is_map) {
            check_shape("", value, theirs.values().next().unwrap_or(value), optional);
        }
    }
    let first = |value: &Value| value.as_array().and_then(|list| list.first().cloned());
    if let (Some(ours), Some(theirs)) = (first(ours), first(theirs)) {
        check_shape(place, &ours, &theirs, optional);
    }
}

async fn answers_have_the_shape_that_clients_read(db: Db) {
    let theirs = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let created = theirs(include_str!("../../../tests/data/answers/rest-create-table-response.json"));
    let loaded = theirs(include_str!("../../../tests/data/answers/rest-load-table-response.json"));
    let server = Server::with_namespace(db, "n").await;
    let mut table = new_table("t");
    table["schema"]["fields"][0]["required"] = json!(true);
    table["schema"]["identifier-field-ids"] = json!([1]);
    table["properties"] = json!({"format-version": "1"});
    let answer = server.post(TABLES, table).await.expect(200);
    check_shape("", &answer, &created, &["current-snapshot-id"]);

    let list = format!("{}/metadata/snap-1.avro", answer["metadata"]["location"].as_str().unwrap());
    let snapshot = json!({
        "snapshot-id": 1, "timestamp-ms": now_ms(), "manifest-list": list, "schema-id": 0,
        "summary": {"operation": "append"},
    });
    let updates = json!([
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1},
    ]);
    server.post(&format!("{TABLES}/t"), json!({"updates": updates})).await.expect(200);
    check_shape("", &server.get(&format!("{TABLES}/t")).await.expect(200), &loaded, &[]);
}

on_both! {
    a_table_is_created_loaded_and_listed,
    answers_have_the_shape_that_clients_read,
    a_table_is_read_again_by_a_server_that_never_saw_it,
    names_are_taken_once_and_need_a_namespace,
    racing_creates_have_one_winner_and_leave_one_file,
    requested_locations_must_be_inside_the_warehouse_and_free,
    tables_go_where_their_namespace_says,
    a_new_table_is_compressed_when_it_says_so,
    dropping_keeps_files_and_frees_the_name,
    renaming_moves_the_name_and_nothing_else,
    racing_renames_have_one_winner,
    a_copy_that_is_current_is_not_sent_again,
    a_full_disk_refuses_and_changes_nothing,
    a_missing_metadata_file_is_said_and_the_table_can_go,
    large_metadata_is_compressed_for_those_who_take_it,
    old_metadata_without_a_uuid_has_the_same_at_every_load,
    pages_of_tables_end_without_an_empty_one,
}
