//! Bodies of writes: framing, lengths, digests. Nothing is stored unless all of them are right.

use super::*;

/// Sends a PUT, says how it was answered, and checks that only a success stores anything.
async fn put(world: &World, ask: Ask) -> String {
    let key = ask.target.clone();
    let reply = world.send(ask).await;
    let stored = world.send(Ask::head(&key)).await.status;
    if reply.status == StatusCode::OK {
        assert_eq!(stored, StatusCode::OK);
        return "200".to_owned();
    }
    assert_eq!(stored, StatusCode::NOT_FOUND, "a refused write stores nothing");
    reply.error()
}

#[tokio::test]
async fn unsigned_chunks_with_a_trailing_checksum_are_unwrapped() {
    let world = World::new().await;
    for (key, name, value) in [
        ("a", "crc64nvme", "M3eFcAZSQlc="),
        ("b", "crc32", "NhCmhg=="),
        ("c", "crc32c", "mnG7TA=="),
        ("d", "sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00="),
        ("e", "sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="),
    ] {
        let trailer = format!("x-amz-checksum-{name}");
        let ask = Ask::put(&format!("/lake/{key}")).chunked(5).header("x-amz-trailer", &trailer);
        let ask = ask.body(format!("5\r\nhello\r\n0\r\n{trailer}:{value}\r\n\r\n"));
        assert_eq!(put(&world, ask).await, "200", "{name}");
        let got = world.send(Ask::get(&format!("/lake/{key}")).header("x-amz-checksum-mode", "ENABLED")).await;
        assert_eq!(got.body, "hello");
        assert_eq!(got.header(&trailer), value);
        assert_eq!(got.header("content-encoding"), "");
    }
}

#[tokio::test]
async fn a_trailer_is_not_needed() {
    let world = World::new().await;
    assert_eq!(put(&world, Ask::put("/lake/k").chunked(5).body("5\r\nhello\r\n0\r\n\r\n")).await, "200");
    let got = world.send(Ask::get("/lake/k").header("x-amz-checksum-mode", "ENABLED")).await;
    assert_eq!(got.header("x-amz-checksum-crc64nvme"), "M3eFcAZSQlc=");
    assert_eq!(put(&world, Ask::put("/lake/empty").chunked(0).body("0\r\n\r\n")).await, "200");
    assert_eq!(world.get("empty").await.body, "");
}

#[tokio::test]
async fn chunked_bodies_that_are_not_what_they_say_are_refused() {
    let world = World::new().await;
    let trailing = |value: &str| {
        let ask = Ask::put("/lake/k").chunked(5).header("x-amz-trailer", "x-amz-checksum-crc64nvme");
        ask.body(format!("5\r\nhello\r\n0\r\nx-amz-checksum-crc64nvme:{value}\r\n\r\n"))
    };
    for (ask, answer) in [
        (trailing("AAAAAAAAAAA="), "400 BadDigest: The CRC64NVME you specified did not match the calculated checksum."),
        (trailing("rubbish"), "400 InvalidRequest: Value for x-amz-checksum-crc64nvme trailing header is invalid."),
        (
            Ask::put("/lake/k").chunked(4).body("5\r\nhello\r\n0\r\n\r\n"),
            "400 IncompleteBody: You did not provide the number of bytes specified by the Content-Length HTTP header",
        ),
        (
            Ask::put("/lake/k").chunked(6).body("5\r\nhello\r\n0\r\n\r\n"),
            "400 IncompleteBody: You did not provide the number of bytes specified by the Content-Length HTTP header",
        ),
        (
            Ask::put("/lake/k").chunked(5).body("5\r\nhel"),
            "400 IncompleteBody: The request body terminated unexpectedly",
        ),
        (
            trailing("M3eFcAZSQlc=").header("x-amz-checksum-crc32", "NhCmhg=="),
            "400 InvalidRequest: Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        ),
        (
            trailing("M3eFcAZSQlc=").header("x-amz-sdk-checksum-algorithm", "SHA1"),
            "400 InvalidRequest: Value for x-amz-sdk-checksum-algorithm header is invalid.",
        ),
    ] {
        assert_eq!(put(&world, ask).await, answer);
    }
}

#[tokio::test]
async fn digests_in_headers_are_verified_before_anything_is_stored() {
    let world = World::new().await;
    let hello = || Ask::put("/lake/k").body("hello");
    for (name, value, answer) in [
        (
            "content-md5",
            "1B2M2Y8AsgTpgAmY7PhCfg==",
            "400 BadDigest: The Content-MD5 you specified did not match what we received.",
        ),
        ("content-md5", "rubbish", "400 InvalidDigest: The Content-Md5 you specified is not valid."),
        ("content-md5", "", "400 InvalidDigest: The Content-Md5 you specified is not valid."),
        ("content-md5", "aGVsbG8=", "400 InvalidDigest: The Content-Md5 you specified is not valid."),
        (
            "x-amz-checksum-crc32",
            "AAAAAA==",
            "400 BadDigest: The CRC32 you specified did not match the calculated checksum.",
        ),
        ("x-amz-checksum-sha256", "NhCmhg==", "400 InvalidRequest: Value for x-amz-checksum-sha256 header is invalid."),
    ] {
        assert_eq!(put(&world, hello().header(name, value)).await, answer, "{name} {value}");
    }
    let mut signed = hello();
    signed.payload = Payload::of_bytes(b"hallo");
    assert_eq!(
        put(&world, signed).await,
        "400 XAmzContentSHA256Mismatch: The provided 'x-amz-content-sha256' header does not match what was computed."
    );
    let mut signed = hello().header("content-md5", md5_base64(b"hello")).header("x-amz-checksum-crc32", "NhCmhg==");
    signed.payload = Payload::of_bytes(b"hello");
    assert_eq!(put(&world, signed).await, "200");
}

#[tokio::test]
async fn lengths_are_needed_and_bounded() {
    let limits = Limits { object_bytes_max: 10, ..Limits::default() };
    let world = World::with(Authority::Full, limits).await;
    assert_eq!(put(&world, Ask::put("/lake/k").body("0123456789")).await, "200");
    let large = world.send(Ask::put("/lake/l").body("0123456789a")).await;
    let large = large.expect_error(StatusCode::BAD_REQUEST, "EntityTooLarge");
    assert_eq!(large.answered.bytes_in, 0);
    let short = Ask::put("/lake/l").header("content-length", "9").body("01234567");
    assert_eq!(put(&world, short).await, "400 IncompleteBody: The request body terminated unexpectedly");
    let unknown = Ask::put("/lake/l").body("x").signed(SECRET);
    world.send_raw(unknown).await.expect_error(StatusCode::LENGTH_REQUIRED, "MissingContentLength");
}

#[tokio::test]
async fn metadata_is_bounded() {
    let world = World::new().await;
    let with = |bytes| Ask::put("/lake/k").header("x-amz-meta-ab", "v".repeat(bytes)).body("x");
    assert_eq!(
        put(&world, with(2047)).await,
        "400 MetadataTooLarge: Your metadata headers exceed the maximum allowed metadata size"
    );
    assert_eq!(put(&world, with(2046)).await, "200");
}

#[tokio::test]
async fn what_is_not_done_is_not_pretended() {
    let world = World::new().await;
    for (name, value, answer) in [
        (
            "x-amz-server-side-encryption",
            "AES256",
            "501 NotImplemented: A header you provided implies functionality that is not implemented.",
        ),
        ("x-amz-acl", "public-read", "400 AccessControlListNotSupported: The bucket does not allow ACLs."),
        ("x-amz-storage-class", "GLACIER", "400 InvalidStorageClass: The storage class you specified is not valid"),
        ("x-amz-object-lock-legal-hold", "ON", "400 InvalidRequest: Bucket is missing ObjectLockConfiguration"),
    ] {
        assert_eq!(put(&world, Ask::put("/lake/k").header(name, value).body("x")).await, answer, "{name}");
    }
    assert_eq!(put(&world, Ask::put("/lake/k").header("x-amz-acl", "private").body("x")).await, "200");
}

#[tokio::test]
async fn writes_to_a_bucket_that_is_not_there_fail() {
    let world = World::new().await;
    let small = world.send(Ask::put("/nobucket/k").body("x")).await;
    small.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
    let large = world.send(Ask::put("/nobucket/k").body(vec![0; 2 << 20])).await;
    let large = large.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
    assert_eq!(large.answered.bytes_in, 0, "refused before its bytes are read");
}
