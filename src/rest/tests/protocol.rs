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

async fn a_compressed_body_is_refused_and_not_misread(db: Db) {
    let server = Server::start(db).await;
    let send = |encoding: &'static str| {
        let server = &server;
        let body = json!({"namespace": [format!("n{}", encoding.len())]}).to_string();
        async move { server.send("POST", "/namespaces", &[("content-encoding", encoding)], body).await }
    };
    for encoding in ["gzip", "zstd, gzip", "identity, gzip"] {
        let reply = send(encoding).await;
        let expected = "415 BadRequestException the request's body is encoded, which is not supported: ";
        assert_eq!(reply.error(), format!("{expected}{encoding}"));
    }
    assert_eq!(server.get("/namespaces").await.expect(200)["namespaces"], json!([]));
    for encoding in ["", "Identity"] {
        send(encoding).await.expect(200);
    }
}

/// Operations of the specification (`rest-catalog-open-api.yaml`, without the deprecated ones) as method and path.
const SPECIFIED: &str = "\
    GET config, POST oauth/tokens, GET namespaces, POST namespaces, GET namespaces/n, HEAD namespaces/n, \
    DELETE namespaces/n, POST namespaces/n/properties, GET namespaces/n/tables, POST namespaces/n/tables, \
    GET namespaces/n/functions, GET namespaces/n/functions/f, POST namespaces/n/register, \
    POST namespaces/n/register-view, GET namespaces/n/tables/t, POST namespaces/n/tables/t, \
    DELETE namespaces/n/tables/t, HEAD namespaces/n/tables/t, POST namespaces/n/tables/t/unregister, \
    GET namespaces/n/tables/t/credentials, POST namespaces/n/tables/t/sign, POST namespaces/n/tables/t/metrics, \
    POST namespaces/n/tables/t/plan, GET namespaces/n/tables/t/plan/p, DELETE namespaces/n/tables/t/plan/p, \
    POST namespaces/n/tables/t/tasks, POST tables/rename, POST transactions/commit, GET namespaces/n/views, \
    POST namespaces/n/views, GET namespaces/n/views/v, POST namespaces/n/views/v, DELETE namespaces/n/views/v, \
    HEAD namespaces/n/views/v, POST views/rename";

async fn every_operation_is_listed_and_served_or_neither(db: Db) {
    let server = Server::with_namespace(db, "n").await;
    server.create_table("n", "t").await;
    let config = server.get("/config").await.expect(200);
    let listed: Vec<&str> = config["endpoints"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    for (method, path) in SPECIFIED.split(", ").map(|line| line.split_once(' ').unwrap()) {
        let parsed = crate::rest::route::parse(&method.parse().unwrap(), &format!("/v1/{path}"));
        let is_listed = parsed.is_ok_and(|route| {
            listed.contains(&format!("{} {}", route.endpoint.method, route.endpoint.template).as_str())
        });
        let reply = server.send(method, &format!("/{path}"), &[], "").await;
        let is_served = match (reply.status.as_u16(), method) {
            (404 | 405, "HEAD") | (405 | 501, _) => false,
            (404, _) => !reply.error().contains("no such route"),
            _ => true,
        };
        if method == "HEAD" && is_listed {
            continue; // Its 404 has no body to tell a missing name from a missing route.
        }
        assert_eq!(is_served, is_listed, "{method} {path}: {}", reply.status);
    }
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
    a_compressed_body_is_refused_and_not_misread,
    every_operation_is_listed_and_served_or_neither,
    unknown_fields_and_content_types_are_no_matter,
    config_names_the_prefix_and_exactly_what_is_served,
}
