use super::*;
use expect_test::expect;

async fn names_are_split_before_they_are_decoded(db: Db) {
    let server = Server::start(db).await;
    for (levels, k) in [(json!(["a"]), "1"), (json!(["a", "b"]), "2"), (json!(["a.b"]), "3")] {
        server.post("/namespaces", json!({"namespace": levels, "properties": {"k": k}})).await.expect(200);
    }
    for (path, k, folder) in [("a", "1", "a"), ("a%1Fb", "2", "a/b"), ("a%1fb", "2", "a/b"), ("a.b", "3", "a.b")] {
        let body = server.get(&format!("/lakehouse/namespaces/{path}")).await.expect(200);
        assert_eq!(body["properties"], json!({"k": k, "location": format!("{LOCATION}/{folder}")}), "{path}");
    }
    server.post("/namespaces", json!({"namespace": ["sp ace/sla+sh%é"]})).await.expect(200);
    for path in ["sp%20ace%2Fsla%2Bsh%25%C3%A9", "sp+ace%2Fsla%2Bsh%25%C3%A9"] {
        let body = server.get(&format!("/namespaces/{path}")).await.expect(200);
        let location = format!("{LOCATION}/sp_ace_sla_sh__");
        assert_eq!(body, json!({"namespace": ["sp ace/sla+sh%é"], "properties": {"location": location}}));
    }
    server.post("/namespaces/a%1Fb/tables", new_table("t")).await.expect(200);
    assert_eq!(server.get("/namespaces/a.b/tables").await.expect(200)["identifiers"], json!([]));
    let listed = server.get("/namespaces/a%1Fb/tables").await.expect(200);
    assert_eq!(listed["identifiers"], json!([{"namespace": ["a", "b"], "name": "t"}]));
}

async fn names_are_told_apart_by_case(db: Db) {
    let server = Server::with_namespace(db, "CustomerDB").await;
    server.create_table("CustomerDB", "Orders").await;
    let folded = server.get("/namespaces/customerdb/tables/orders").await;
    expect!["404 NoSuchTableException Table does not exist: customerdb.orders"].assert_eq(&folded.error());
    server.get("/namespaces/CustomerDB/tables/orders").await.expect(404);
    server.create_table("CustomerDB", "orders").await;
    assert_eq!(server.get("/namespaces").await.expect(200)["namespaces"], json!([["CustomerDB"]]));
    let listed = server.get("/namespaces/CustomerDB/tables").await.expect(200);
    let named = |name| json!({"namespace": ["CustomerDB"], "name": name});
    assert_eq!(listed["identifiers"], json!([named("Orders"), named("orders")]));
}

async fn listings_show_one_level(db: Db) {
    let server = Server::start(db).await;
    for levels in [json!(["a"]), json!(["a", "b"]), json!(["a", "b", "c"]), json!(["d"])] {
        server.post("/namespaces", json!({"namespace": levels})).await.expect(200);
    }
    for (query, expected) in [
        ("", json!([["a"], ["d"]])),
        ("?parent=", json!([["a"], ["d"]])),
        ("?parent=a", json!([["a", "b"]])),
        ("?parent=a%1Fb", json!([["a", "b", "c"]])),
        ("?parent=d", json!([])),
    ] {
        let body = server.get(&format!("/namespaces{query}")).await.expect(200);
        assert_eq!(body, json!({"namespaces": expected, "next-page-token": null}), "{query}");
    }
    let reply = server.get("/namespaces?parent=nope").await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: nope"].assert_eq(&reply.error());
}

async fn pages_end_without_an_empty_one(db: Db) {
    let server = Server::start(db).await;
    for n in 0..4 {
        server.post("/namespaces", json!({"namespace": [format!("n{n}")]})).await.expect(200);
    }
    assert_eq!(server.get("/namespaces?pageSize=2").await.expect(200)["namespaces"].as_array().unwrap().len(), 4);
    let first = server.get("/namespaces?pageToken=&pageSize=2").await.expect(200);
    assert_eq!(first["namespaces"], json!([["n0"], ["n1"]]));
    let token = first["next-page-token"].as_str().unwrap();
    let second = server.get(&format!("/namespaces?pageToken={token}&pageSize=2")).await.expect(200);
    assert_eq!(second, json!({"namespaces": [["n2"], ["n3"]], "next-page-token": null}));
    for query in ["pageToken=&pageSize=0", "pageToken=&pageSize=-1", "pageToken=&pageSize=abc", "pageToken=!"] {
        assert!(server.get(&format!("/namespaces?{query}")).await.error().starts_with("400 BadRequestException"));
    }
}

async fn creating_needs_a_parent_and_a_free_name(db: Db) {
    let server = Server::start(db).await;
    let reply = server.post("/namespaces", json!({"namespace": ["x", "y"]})).await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: x"].assert_eq(&reply.error());
    assert_eq!(server.get("/namespaces").await.expect(200)["namespaces"], json!([]));
    let created = server.post("/namespaces", json!({"namespace": ["a"], "properties": {"owner": "me"}})).await;
    assert_eq!(
        created.expect(200),
        json!({"namespace": ["a"], "properties": {"owner": "me", "location": format!("{LOCATION}/a")}})
    );
    let own = json!({"namespace": ["c"], "properties": {"location": "s3://elsewhere/c"}});
    assert_eq!(server.post("/namespaces", own.clone()).await.expect(200), own, "a location of its own is kept");
    let reply = server.post("/namespaces", json!({"namespace": ["a"]})).await;
    expect!["409 AlreadyExistsException Namespace already exists: a"].assert_eq(&reply.error());
}

async fn racing_creates_have_one_winner(db: Db) {
    let server = Server::start(db).await;
    let creates = (0..16).map(|_| server.post("/namespaces", json!({"namespace": ["a"]})));
    let mut statuses: Vec<u16> =
        futures_util::future::join_all(creates).await.iter().map(|reply| reply.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!((statuses[0], statuses[1], statuses[15]), (200, 409, 409));
}

async fn properties_are_set_removed_and_reported(db: Db) {
    let server = Server::start(db).await;
    server.post("/namespaces", json!({"namespace": ["a"], "properties": {"k": "1"}})).await.expect(200);
    let path = "/namespaces/a/properties";
    let body = server.post(path, json!({"removals": ["k", "gone"], "updates": {"n": "1"}})).await.expect(200);
    assert_eq!(body, json!({"updated": ["n"], "removed": ["k"], "missing": ["gone"]}));
    let reply = server.post(path, json!({"removals": ["n"], "updates": {"n": "2"}})).await;
    expect!["422 UnprocessableEntityException a property is both removed and updated: n"].assert_eq(&reply.error());
    assert_eq!(
        server.get("/namespaces/a").await.expect(200)["properties"],
        json!({"n": "1", "location": format!("{LOCATION}/a")})
    );
    assert_eq!(server.post(path, json!({})).await.expect(200), json!({"updated": [], "removed": [], "missing": []}));
    let reply = server.post("/namespaces/b/properties", json!({"updates": {"n": "2"}})).await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: b"].assert_eq(&reply.error());
}

async fn only_empty_namespaces_are_dropped(db: Db) {
    let server = Server::start(db).await;
    server.post("/namespaces", json!({"namespace": ["a"]})).await.expect(200);
    server.post("/namespaces", json!({"namespace": ["a", "b"]})).await.expect(200);
    server.create_table("a%1Fb", "t").await;
    for path in ["/namespaces/a", "/namespaces/a%1Fb"] {
        let reply = server.delete(path).await;
        assert!(reply.error().starts_with("409 NamespaceNotEmptyException Namespace is not empty: a"));
    }
    server.delete("/namespaces/a%1Fb/tables/t").await.expect(204);
    server.delete("/namespaces/a%1Fb").await.expect(204);
    let reply = server.delete("/namespaces/a").await;
    assert_eq!((reply.status.as_u16(), &reply.body, reply.header("content-type")), (204, &Value::Null, None));
    let reply = server.delete("/namespaces/a").await;
    expect!["404 NoSuchNamespaceException Namespace does not exist: a"].assert_eq(&reply.error());
}

async fn existence_is_told_without_a_body(db: Db) {
    let server = Server::with_namespace(db, "a").await;
    let there = server.send("HEAD", "/namespaces/a", &[], "").await;
    assert_eq!((there.status.as_u16(), there.body), (204, Value::Null));
    let missing = server.send("HEAD", "/namespaces/b", &[], "").await;
    assert_eq!((missing.status.as_u16(), missing.body), (404, Value::Null));
}

on_both! {
    names_are_split_before_they_are_decoded,
    names_are_told_apart_by_case,
    listings_show_one_level,
    pages_end_without_an_empty_one,
    creating_needs_a_parent_and_a_free_name,
    racing_creates_have_one_winner,
    properties_are_set_removed_and_reported,
    only_empty_namespaces_are_dropped,
    existence_is_told_without_a_body,
}
