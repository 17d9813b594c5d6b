//! What holds for every route: authentication, shapes of errors, bodies, prefixes, `/v1/config`.

use super::*;
use crate::rest::route::ENDPOINTS;
use expect_test::expect;

async fn every_route_but_tokens_wants_a_valid_bearer(db: Db) {
    let server = Server::start(db).await;
    for endpoint in ENDPOINTS {
        if endpoint.name == "getToken" {
            continue;
        }
        let path = endpoint.template.replace("{prefix}", WAREHOUSE).replace(['{', '}'], "");
        for given in
            [None, Some("Bearer nonsense"), Some("Bearer None"), Some("Basic QUtJQVRFU1Q6eA=="), Some("Bearer")]
        {
            let mut request = http::Request::builder().method(&endpoint.method).uri(&path);
            if let Some(given) = given {
                request = request.header("authorization", given);
            }
            let reply = server.raw(request.body(Body::empty()).unwrap()).await;
            assert_eq!(reply.status, 401, "{}", endpoint.name);
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            if endpoint.method == Method::HEAD {
                assert_eq!(reply.body, Value::Null);
            } else {
                assert_eq!(reply.error(), "401 NotAuthorizedException Not authorized");
            }
        }
    }
}

async fn what_is_not_served_is_refused_in_the_same_shape(db: Db) {
    let server = Server::start(db).await;
    let reply = server.get("/lakehouse/namespaces/a/materials").await;
    expect!["404 NotFoundException no such route: GET /v1/lakehouse/namespaces/a/materials"].assert_eq(&reply.error());
    let reply = server.send("PUT", "/config", &[], "").await;
    expect!["405 UnsupportedOperationException /v1/config does not take PUT"].assert_eq(&reply.error());
    assert_eq!(reply.header("allow"), Some("GET"));
    let reply = server.get("/namespaces/%FF").await;
    expect!["400 BadRequestException not UTF-8 when percent-decoded: %FF"].assert_eq(&reply.error());
    let reply = server.get("/nowhere/namespaces").await;
    expect!["404 NoSuchWarehouseException Warehouse does not exist: nowhere"].assert_eq(&reply.error());
    assert_eq!(server.get("/namespaces//tables").await.status, 400);
}

async fn answers_say_what_was_asked_and_by_whom(db: Db) {
    let server = Server::start(db).await;
    let answered = server.get("/namespaces").await.answered.unwrap();
    assert_eq!(answered.operation, "listNamespaces");
    assert!(answered.principal.is_some());
    let answered = server.get("/x").await.answered.unwrap();
    assert_eq!((answered.operation, answered.principal), ("unknown", None));
}

async fn malformed_bodies_are_refused_and_the_server_lives(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    let deep = format!("{{\"namespace\":[\"x\"],\"properties\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_table = format!("{{\"name\":\"t\",\"schema\":{}", "{\"a\":".repeat(100_000));
    for (path, body) in [
        ("/namespaces", ""),
        ("/namespaces", "{"),
        ("/namespaces", "[]"),
        ("/namespaces", "null"),
        ("/namespaces", "{\"namespace\":\"x\"}"),
        ("/namespaces", "{\"namespace\":[]}"),
        ("/namespaces", "{\"namespace\":[\"\"]}"),
        ("/namespaces", "{\"namespace\":[\"x\"],\"properties\":{\"a\":1}}"),
        ("/namespaces", "{\"namespace\":[\"x\"],\"properties\":{\"a\":\"\\u0000\"}}"),
        ("/namespaces", &deep),
        ("/namespaces/n/tables", &deep_table),
        ("/namespaces/n/tables", "{\"name\":\"t\"}"),
        ("/namespaces/n/tables", "{\"name\":1,\"schema\":{}}"),
        ("/namespaces/n/tables/t", "nonsense"),
        ("/namespaces/n/properties", "{\"removals\":{}}"),
        ("/tables/rename", "{\"source\":{\"namespace\":[\"n\"],\"name\":\"t\"}}"),
    ] {
        let reply = server.send("POST", path, &[], body.to_owned()).await;
        assert!(reply.error().starts_with("400 BadRequestException "), "{path} {}", &body[..body.len().min(60)]);
    }
    assert_eq!(server.get("/namespaces").await.expect(200)["namespaces"], json!([["n"]]));
    assert_eq!(server.get("/namespaces/n/tables").await.expect(200)["identifiers"], json!([]));
}

async fn bodies_are_bounded_whether_or_not_they_say_their_length(db: Db) {
    let server = Server::start_with(db, |settings| settings.body_bytes_max = 1_000).await;
    let body = format!("{{\"namespace\":[\"x\"],\"x\":\"{}\"}}", "y".repeat(1_000));
    let told = server.send("POST", "/namespaces", &[("content-length", "1030")], body.clone()).await;
    expect!["413 BadRequestException the request's body is larger than 1000 bytes"].assert_eq(&told.error());
    let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(bytes::Bytes::from_static(b"        ")));
    let untold = server.send("POST", "/namespaces", &[], Body::from_stream(endless)).await;
    assert_eq!(untold.status, 413);
    let broken = futures_util::stream::iter([Err::<bytes::Bytes, _>(std::io::Error::other("gone"))]);
    let broken = server.send("POST", "/namespaces", &[], Body::from_stream(broken)).await;
    expect!["400 BadRequestException the request's body broke off"].assert_eq(&broken.error());
}

async fn unknown_fields_and_content_types_are_no_matter(db: Db) {
    let server = Server::start(db).await;
    let body = json!({"namespace": ["a"], "comment": {"x": [1]}, "properties": null}).to_string();
    server.send("POST", "/namespaces", &[("content-type", "text/plain")], body).await.expect(200);
}

async fn config_names_the_prefix_and_exactly_what_is_served(db: Db) {
    let server = Server::start(db).await;
    add_warehouse(&server.app.db, "team a/prod", "s3://lake/prod").await;
    let config = server.get("/config").await.expect(200);
    assert_eq!(config["overrides"], json!({"prefix": "lakehouse"}));
    assert_eq!(config["defaults"]["s3.path-style-access"], "true");
    assert_eq!(config["defaults"]["s3.endpoint"], json!(server.app.settings.s3_url));
    assert_eq!(config["endpoints"].as_array().unwrap().len(), ENDPOINTS.len());
    assert!(config["endpoints"].as_array().unwrap().contains(&json!("HEAD /v1/{prefix}/namespaces/{namespace}")));
    assert_eq!(server.get("/config?warehouse=").await.expect(200), config);
    assert_eq!(server.get("/config?warehouse=s3://lake/wh/").await.expect(200), config);
    assert_eq!(server.get("/config?warehouse=lakehouse").await.expect(200), config);

    let other = server.get("/config?warehouse=team%20a%2Fprod").await.expect(200);
    let prefix = other["overrides"]["prefix"].as_str().unwrap();
    server.post(&format!("/{prefix}/namespaces"), json!({"namespace": ["only-here"]})).await.expect(200);
    assert_eq!(server.get(&format!("/{prefix}/namespaces")).await.expect(200)["namespaces"], json!([["only-here"]]));
    assert_eq!(server.get("/namespaces").await.expect(200)["namespaces"], json!([]));

    let reply = server.get("/config?warehouse=nope").await;
    expect!["404 NoSuchWarehouseException Warehouse does not exist: nope"].assert_eq(&reply.error());
    assert_eq!(server.get("/config?warehouse=s3://nope").await.status, 404);
}

on_both! {
    every_route_but_tokens_wants_a_valid_bearer,
    what_is_not_served_is_refused_in_the_same_shape,
    answers_say_what_was_asked_and_by_whom,
    malformed_bodies_are_refused_and_the_server_lives,
    bodies_are_bounded_whether_or_not_they_say_their_length,
    unknown_fields_and_content_types_are_no_matter,
    config_names_the_prefix_and_exactly_what_is_served,
}
