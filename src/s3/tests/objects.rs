//! Objects: what is put comes back, ranges, headers, names.

use super::*;

#[tokio::test]
async fn an_object_comes_back_with_what_was_kept_beside_it() {
    let world = World::new().await;
    let put = Ask::put("/lake/a%20b/%C3%BC").body("hello");
    let put = put.header("content-type", "text/x").header("cache-control", "max-age=1");
    let put = put.header("content-disposition", "inline").header("content-language", "de").header("expires", "soon");
    let put = put.header("x-amz-meta-Color", "blue").header("x-amz-meta-name", "ü");
    let stored = world.send(put).await.expect_status(StatusCode::OK);
    assert_eq!(stored.header("etag"), "\"5d41402abc4b2a76b9719d911017c592\"");
    assert_eq!(stored.header("x-amz-checksum-crc64nvme"), "M3eFcAZSQlc=");
    assert_eq!(stored.answered.operation, "PutObject");
    assert_eq!(stored.answered.principal.as_deref(), Some("tester"));
    assert_eq!(stored.answered.bytes_in, 5);

    let got = world.send(Ask::get("/lake/a%20b/%C3%BC")).await.expect_status(StatusCode::OK);
    assert_eq!(got.body, "hello");
    for (name, value) in [
        ("content-length", "5"),
        ("content-type", "text/x"),
        ("cache-control", "max-age=1"),
        ("content-disposition", "inline"),
        ("content-language", "de"),
        ("expires", "soon"),
        ("x-amz-meta-color", "blue"),
        ("x-amz-meta-name", "ü"),
        ("etag", "\"5d41402abc4b2a76b9719d911017c592\""),
        ("accept-ranges", "bytes"),
        ("server", "Tidewater"),
        ("x-amz-checksum-crc64nvme", ""),
    ] {
        assert_eq!(got.header(name), value, "{name}");
    }
    httpdate::parse_http_date(got.header("last-modified")).expect("an HTTP date");
    assert_eq!(got.answered.bytes_out, 5);

    let head = world.send(Ask::head("/lake/a%20b/%C3%BC")).await.expect_status(StatusCode::OK);
    assert!(head.body.is_empty());
    for name in got.headers.keys().filter(|name| *name != "x-amz-request-id") {
        assert_eq!(got.headers.get(name), head.headers.get(name), "{name}");
    }
}

#[tokio::test]
async fn content_type_defaults_and_aws_chunked_is_never_kept() {
    let world = World::new().await;
    world.put("k", "x").await;
    assert_eq!(world.get("k").await.header("content-type"), "binary/octet-stream");
    let put = Ask::put("/lake/z").header("content-encoding", "aws-chunked,gzip").body("x");
    world.send(put).await.expect_status(StatusCode::OK);
    assert_eq!(world.get("z").await.header("content-encoding"), "gzip");
}

#[tokio::test]
async fn ranges_are_answered_in_part() {
    let world = World::new().await;
    world.put("k", "0123456789").await;
    world.put("empty", "").await;
    for (key, range, status, content_range, body) in [
        ("k", "bytes=0-0", 206, "bytes 0-0/10", "0"),
        ("k", "bytes=5-", 206, "bytes 5-9/10", "56789"),
        ("k", "bytes=-3", 206, "bytes 7-9/10", "789"),
        ("k", "bytes=-300", 206, "bytes 0-9/10", "0123456789"),
        ("k", "bytes=8-300", 206, "bytes 8-9/10", "89"),
        ("k", "bytes=5-2", 200, "", "0123456789"),
        ("k", "bytes=0-0,2-3", 200, "", "0123456789"),
        ("empty", "bytes=-1", 200, "", ""),
        ("empty", "bytes=-524288", 200, "", ""),
    ] {
        let target = format!("/lake/{key}");
        let got = world.send(Ask::get(&target).header("range", range)).await;
        assert_eq!(got.status, status, "{range}");
        assert_eq!((got.header("content-range"), &*got.body), (content_range, body.as_bytes()), "{range}");
        assert_eq!(got.header("content-length"), body.len().to_string(), "{range}");
        let head = world.send(Ask::head(&target).header("range", range)).await;
        assert_eq!((head.status, head.header("content-range")), (got.status, content_range), "{range}");
        assert_eq!(head.header("content-length"), body.len().to_string(), "{range}");
    }
    for (key, range, content_range) in [
        ("k", "bytes=10-", "bytes */10"),
        ("k", "bytes=-0", "bytes */10"),
        ("empty", "bytes=0-", "bytes */0"),
        ("empty", "bytes=0-0", "bytes */0"),
    ] {
        let target = format!("/lake/{key}");
        let got = world.send(Ask::get(&target).header("range", range)).await;
        let got = got.expect_error(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
        assert_eq!(got.header("content-range"), content_range, "{range}");
        let head = world.send(Ask::head(&target).header("range", range)).await;
        assert_eq!((head.status, head.body.len()), (StatusCode::RANGE_NOT_SATISFIABLE, 0));
    }
}

#[tokio::test]
async fn large_objects_stream_both_ways() {
    let world = World::new().await;
    let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    world.put("big", bytes.clone()).await;
    let got = world.get("big").await.expect_status(StatusCode::OK);
    assert!(got.body == bytes, "the object comes back as it was");
    let got = world.send(Ask::get("/lake/big").header("range", "bytes=1000000-2000000")).await;
    assert!(got.body == bytes[1_000_000..=2_000_000], "the range comes back as it was");
}

#[tokio::test]
async fn the_answer_to_a_signed_read_can_be_dressed() {
    let world = World::new().await;
    world.put("k", "x").await;
    let target = "/lake/k?response-content-disposition=attachment%3B%20filename%3Da&response-content-type=text/y";
    for ask in [Ask::get(target), Ask::head(target)] {
        let got = world.send(ask).await.expect_status(StatusCode::OK);
        assert_eq!(got.header("content-disposition"), "attachment; filename=a");
        assert_eq!(got.header("content-type"), "text/y");
    }
    let split = world.send(Ask::get("/lake/k?response-content-type=a%0D%0Ab:%20c")).await;
    split.expect_error(StatusCode::BAD_REQUEST, "InvalidArgument");
}

#[tokio::test]
async fn the_checksum_is_shown_when_asked_for_and_only_with_the_whole_object() {
    let world = World::new().await;
    let put = Ask::put("/lake/k").header("x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE=").body("123456789");
    let stored = world.send(put).await.expect_status(StatusCode::OK);
    assert_eq!(stored.header("x-amz-checksum-sha1"), "98O8HYCOBHMq32eZZczDTKeuNEE=");
    assert_eq!(stored.header("x-amz-checksum-type"), "FULL_OBJECT");
    let shown = |reply: &Reply| {
        (reply.header("x-amz-checksum-sha1").to_owned(), reply.header("x-amz-checksum-type").to_owned())
    };
    let asking = Ask::get("/lake/k").header("x-amz-checksum-mode", "ENABLED");
    let got = world.send(asking.clone()).await;
    assert_eq!(shown(&got), ("98O8HYCOBHMq32eZZczDTKeuNEE=".into(), "FULL_OBJECT".into()));
    let part = world.send(asking.header("range", "bytes=0-3")).await.expect_status(StatusCode::PARTIAL_CONTENT);
    assert_eq!(shown(&part), (String::new(), String::new()));
    assert_eq!(shown(&world.get("k").await), (String::new(), String::new()));
}

#[tokio::test]
async fn keys_are_not_paths() {
    let world = World::new().await;
    let keys = ["f", "f/", "f/g", "f//g", "/f", "d/", "../x", "."];
    for key in keys {
        world.put(key, key).await;
    }
    for key in keys {
        assert_eq!(world.get(key).await.body, key);
    }
    world.send(Ask::delete("/lake/f")).await.expect_status(StatusCode::NO_CONTENT);
    world.get("f").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    for key in &keys[1..] {
        assert_eq!(world.get(key).await.body, *key);
    }
}

#[tokio::test]
async fn deleting_what_is_not_there_succeeds_without_a_body() {
    let world = World::new().await;
    let gone = world.send(Ask::delete("/lake/none")).await.expect_status(StatusCode::NO_CONTENT);
    assert!(gone.body.is_empty() && !gone.headers.contains_key("content-length"));
    world.send(Ask::delete("/nobucket/k")).await.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
}

#[tokio::test]
async fn an_object_is_its_own_first_part() {
    let world = World::new().await;
    world.put("k", "0123").await;
    world.put("empty", "").await;
    let part = world.send(Ask::get("/lake/k?partNumber=1")).await.expect_status(StatusCode::PARTIAL_CONTENT);
    assert_eq!((part.header("content-range"), &*part.body), ("bytes 0-3/4", &b"0123"[..]));
    world.send(Ask::head("/lake/empty?partNumber=1")).await.expect_status(StatusCode::OK);
    let second = world.send(Ask::get("/lake/k?partNumber=2")).await;
    second.expect_error(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidPartNumber");
    let both = world.send(Ask::get("/lake/k?partNumber=1").header("range", "bytes=0-1")).await;
    both.expect_error(StatusCode::BAD_REQUEST, "InvalidRequest");
}

#[tokio::test]
async fn attributes_are_those_asked_for() {
    let world = World::new().await;
    world.put("k", "hello").await;
    let ask = Ask::get("/lake/k?attributes").header("x-amz-object-attributes", "ETag, ObjectSize,Checksum");
    let got = world.send(ask).await;
    let document = got.document("GetObjectAttributesResponse");
    assert_eq!(document.child_text("ETag"), Some("5d41402abc4b2a76b9719d911017c592"));
    assert_eq!(document.child_text("ObjectSize"), Some("5"));
    assert_eq!(texts(&document, "Checksum/ChecksumCRC64NVME"), ["M3eFcAZSQlc="]);
    assert_eq!(document.child_text("StorageClass"), None);
    for (attributes, code) in [("", "InvalidRequest"), ("Nonsense", "InvalidArgument")] {
        let ask = Ask::get("/lake/k?attributes").header("x-amz-object-attributes", attributes);
        world.send(ask).await.expect_error(StatusCode::BAD_REQUEST, code);
    }
}
