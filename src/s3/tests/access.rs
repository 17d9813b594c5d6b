//! Who may do what: signatures, vended keys and their prefixes.

use super::*;

#[tokio::test]
async fn a_request_without_a_good_signature_is_refused() {
    let world = World::new().await;
    world.put("k", "hello").await;
    let anonymous = Request::get("/lake/k").header("host", HOST).body(Bytes::new()).expect("a request");
    let refused = world.send_raw(anonymous).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    assert_eq!(refused.answered.principal, None);
    assert_eq!(refused.answered.code, Some("AccessDenied"));
    let forged = world.send_raw(Ask::get("/lake/k").signed("another secret")).await;
    forged.expect_error(StatusCode::FORBIDDEN, "SignatureDoesNotMatch");
    let mut altered = Ask::get("/lake/k").signed(SECRET);
    *altered.uri_mut() = "/lake/l".parse().expect("a path");
    world.send_raw(altered).await.expect_error(StatusCode::FORBIDDEN, "SignatureDoesNotMatch");
    let head = world.send_raw(Ask::head("/lake/k").signed("another secret")).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::FORBIDDEN, 0));
}

#[tokio::test]
async fn unknown_and_expired_keys_are_told_apart() {
    let world = World::new().await;
    let mut unknown = Ask::get("/lake/k").signed(SECRET);
    let authorization = unknown.headers()["authorization"].to_str().expect("text").replace(ACCESS_KEY, "AKIANOBODY");
    unknown.headers_mut().insert("authorization", authorization.parse().expect("a header"));
    world.send_raw(unknown).await.expect_error(StatusCode::FORBIDDEN, "InvalidAccessKeyId");
    let mut unknown = Ask::get("/lake/k").header("x-amz-security-token", "rubbish").signed(SECRET);
    let authorization = unknown.headers()["authorization"].to_str().expect("text").replace(ACCESS_KEY, "AKIANOBODY");
    unknown.headers_mut().insert("authorization", authorization.parse().expect("a header"));
    world.send_raw(unknown).await.expect_error(StatusCode::BAD_REQUEST, "InvalidToken");
    let expired = world.send(Ask::get("/lake/k").header("x-amz-security-token", "expired")).await;
    expired.expect_error(StatusCode::BAD_REQUEST, "ExpiredToken");
}

#[tokio::test]
async fn a_presigned_url_reads_without_headers() {
    let world = World::new().await;
    world.put("a%20b", "hello").await;
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static(HOST));
    let signer =
        Signer { access_key_id: ACCESS_KEY, secret: SECRET, security_token: None, region: REGION, service: SERVICE_S3 };
    let query = signer.presign("GET", "/lake/a%20b", "response-content-type=text/y", &headers, 60, now_ms());
    let ask = |method: &str| {
        let request = Request::builder().method(method).uri(format!("/lake/a%20b?{query}")).header("host", HOST);
        world.send_raw(request.body(Bytes::new()).expect("a request"))
    };
    let got = ask("GET").await.expect_status(StatusCode::OK);
    assert_eq!((&*got.body, got.header("content-type")), (&b"hello"[..], "text/y"));
    assert_eq!(ask("HEAD").await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn another_region_is_refused() {
    let mut world = World::new().await;
    std::sync::Arc::get_mut(&mut world.front).expect("nobody else holds it").region = "eu-west-1".to_owned();
    let refused = world.send(Ask::get("/lake/k")).await;
    refused.expect_error(StatusCode::BAD_REQUEST, "AuthorizationHeaderMalformed");
}

#[tokio::test]
async fn a_vended_key_reaches_its_prefix_and_nothing_else() {
    let world = World::scoped("t/1/", Access::ReadWrite).await;
    world.put("t/1/k", "x").await;
    world.put("t/1/l", "x").await;
    assert_eq!(world.get("t/1/k").await.body, "x");
    world.get("t/1/none").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    world.send(Ask::get("/lake?prefix=t/1/")).await.expect_status(StatusCode::OK);
    world.send(Ask::get("/lake?list-type=2&prefix=t/1/data")).await.expect_status(StatusCode::OK);
    world.send(Ask::head("/lake")).await.expect_status(StatusCode::OK);
    let copy = Ask::put("/lake/t/1/c").header("x-amz-copy-source", "lake/t/1/k");
    world.send(copy).await.expect_status(StatusCode::OK);
    for ask in [
        Ask::get("/lake/t/2/k"),
        Ask::get("/lake/t/12/k"),
        Ask::put("/lake/t/2/k").body("x"),
        Ask::delete("/lake/t/2/k"),
        Ask::post("/lake/t/2/k?uploads"),
        Ask::get("/lake/t/2/k?uploadId=u"),
        Ask::delete("/lake/t/2/k?uploadId=u"),
        Ask::post("/lake/t/2/k?uploadId=u"),
        Ask::put("/lake/t/2/k?uploadId=u&partNumber=1").body("x"),
        Ask::get("/lake/t/2/k?attributes"),
        Ask::get("/lake"),
        Ask::get("/lake?prefix=t/1"),
        Ask::get("/lake?list-type=2&prefix=t/"),
        Ask::get("/lake?versions&prefix=t/"),
        Ask::get("/lake?uploads"),
        Ask::get("/"),
        Ask::put("/other"),
        Ask::delete("/lake"),
        Ask::get("/nobucket/k"),
        Ask::get("/nobucket?location"),
        Ask::put("/lake/t/2/k").header("x-amz-copy-source", "lake/t/1/k"),
        Ask::put("/lake/t/1/d").header("x-amz-copy-source", "lake/t/2/k"),
    ] {
        let target = format!("{} {}", ask.method, ask.target);
        let refused = world.send(ask).await;
        assert_eq!(refused.error(), "403 AccessDenied: Access Denied.", "{target}");
    }
}

#[tokio::test]
async fn a_reader_s_key_writes_nothing() {
    let world = World::scoped("t/1/", Access::Read).await;
    world.get("t/1/k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    for ask in [
        Ask::put("/lake/t/1/k").body("x"),
        Ask::delete("/lake/t/1/k"),
        Ask::post("/lake/t/1/k?uploads"),
        Ask::put("/lake/t/1/k").header("x-amz-copy-source", "lake/t/1/l"),
    ] {
        world.send(ask).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    }
}

#[tokio::test]
async fn of_many_keys_only_those_in_reach_are_deleted() {
    let world = World::scoped("t/1/", Access::ReadWrite).await;
    world.put("t/1/k", "x").await;
    let delete = |keys: &[&str]| {
        let objects: String = keys.iter().map(|key| format!("<Object><Key>{key}</Key></Object>")).collect();
        let body = format!("<Delete>{objects}</Delete>");
        world.send(Ask::post("/lake?delete").header("content-md5", md5_base64(body.as_bytes())).body(body))
    };
    let some = delete(&["t/1/k", "t/2/k"]).await.document("DeleteResult");
    assert_eq!(texts(&some, "Deleted/Key"), ["t/1/k"]);
    assert_eq!((texts(&some, "Error/Key"), texts(&some, "Error/Code")), (vec!["t/2/k"], vec!["AccessDenied"]));
    world.get("t/1/k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    delete(&["t/2/k"]).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
}

#[tokio::test]
async fn an_expected_owner_must_be_the_owner() {
    let world = World::new().await;
    world.put("k", "x").await;
    let expecting = |owner: &str| world.send(Ask::get("/lake/k").header("x-amz-expected-bucket-owner", owner));
    expecting(ACCESS_KEY).await.expect_status(StatusCode::OK);
    expecting("123456789012").await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
}
