//! CopyObject and UploadPartCopy.

use super::*;

fn copy(source: &str, to: &str) -> Ask {
    Ask::put(&format!("/lake/{to}")).header("x-amz-copy-source", source)
}

/// A source with headers, metadata and ten bytes.
async fn with_source() -> World {
    let world = World::new().await;
    let put = Ask::put("/lake/a%20b").header("content-type", "text/x").header("x-amz-meta-a", "1").body("0123456789");
    world.send(put).await.expect_status(StatusCode::OK);
    world
}

#[tokio::test]
async fn a_copy_keeps_or_replaces_all_that_is_beside_the_bytes() {
    let world = with_source().await;
    let kept = copy("/lake/a%20b", "k").header("x-amz-meta-b", "2").header("content-type", "text/y");
    let result = world.send(kept).await.document("CopyObjectResult");
    let got = world.get("k").await;
    assert_eq!(result.child_text("ETag"), Some(got.header("etag")));
    assert_eq!(got.body, "0123456789");
    assert_eq!(
        (got.header("content-type"), got.header("x-amz-meta-a"), got.header("x-amz-meta-b")),
        ("text/x", "1", "")
    );

    let replaced = copy("lake/a%20b", "r").header("x-amz-metadata-directive", "REPLACE").header("x-amz-meta-b", "2");
    world.send(replaced).await.expect_status(StatusCode::OK);
    let got = world.get("r").await;
    assert_eq!(
        (got.header("content-type"), got.header("x-amz-meta-a"), got.header("x-amz-meta-b")),
        ("binary/octet-stream", "", "2")
    );
}

#[tokio::test]
async fn a_copy_can_have_another_checksum() {
    let world = with_source().await;
    let ask = copy("lake/a%20b", "k").header("x-amz-checksum-algorithm", "SHA256");
    let result = world.send(ask).await.document("CopyObjectResult");
    let sha256 = "hNiYd/DUBB77axaNkqwy/oG/Q2p4MyCwC9sLkbY8e4E=";
    let got = world.send(Ask::get("/lake/k").header("x-amz-checksum-mode", "ENABLED")).await;
    assert_eq!(result.child_text("ChecksumSHA256"), Some(got.header("x-amz-checksum-sha256")));
    assert_eq!(got.header("x-amz-meta-a"), "1");
    assert_eq!(got.header("x-amz-checksum-sha256").len(), sha256.len());
    let same = copy("lake/a%20b", "l").header("x-amz-checksum-algorithm", "CRC64NVME");
    world.send(same).await.expect_status(StatusCode::OK);
}

#[tokio::test]
async fn a_copy_onto_itself_must_change_something() {
    let world = with_source().await;
    let itself = world.send(copy("lake/a%20b", "a%20b")).await;
    itself.expect_error(StatusCode::BAD_REQUEST, "InvalidRequest");
    let ask = copy("lake/a%20b", "a%20b").header("x-amz-metadata-directive", "REPLACE").header("x-amz-meta-c", "3");
    world.send(ask).await.expect_status(StatusCode::OK);
    let got = world.get("a%20b").await;
    assert_eq!((&*got.body, got.header("x-amz-meta-c"), got.header("x-amz-meta-a")), (&b"0123456789"[..], "3", ""));
}

#[tokio::test]
async fn copies_that_cannot_be_are_refused() {
    let world = with_source().await;
    for (ask, status, code) in [
        (copy("lake/none", "k"), 404, "NoSuchKey"),
        (copy("nobucket/k", "k"), 404, "NoSuchBucket"),
        (copy("lake/%ZZ", "k"), 400, "InvalidArgument"),
        (copy("lake/a%20b?versionId=3HL4", "k"), 404, "NoSuchVersion"),
        (copy("lake/a%20b", "k").header("x-amz-metadata-directive", "x"), 400, "InvalidArgument"),
        (copy("lake/a%20b", "k").header("x-amz-tagging-directive", "x"), 400, "InvalidArgument"),
        (copy("lake/a%20b", "k").header("x-amz-checksum-algorithm", "x"), 400, "InvalidRequest"),
        (copy("lake/a%20b", "k").header("x-amz-copy-source-if-match", "\"x\""), 412, "PreconditionFailed"),
        (copy("lake/a%20b", "k").header("x-amz-copy-source-if-none-match", "*"), 412, "PreconditionFailed"),
        (copy("lake/a%20b", "k").header("if-match", "\"x\""), 404, "NoSuchKey"),
        (
            copy("lake/a%20b", "a%20b").header("x-amz-metadata-directive", "REPLACE").header("if-none-match", "*"),
            412,
            "PreconditionFailed",
        ),
        (copy("lake/a%20b", "k").header("x-amz-source-expected-bucket-owner", "nobody"), 403, "AccessDenied"),
        (
            copy("lake/a%20b", "k")
                .header("x-amz-metadata-directive", "REPLACE")
                .header("x-amz-meta-a", "v".repeat(2048)),
            400,
            "MetadataTooLarge",
        ),
        (Ask::put("/nobucket/k").header("x-amz-copy-source", "lake/a%20b"), 404, "NoSuchBucket"),
    ] {
        world.send(ask).await.expect_error(StatusCode::from_u16(status).expect("a status"), code);
    }
    world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
}

#[tokio::test]
async fn parts_are_copied_by_exact_ranges() {
    let world = with_source().await;
    let begun = world.send(Ask::post("/lake/k?uploads")).await.document("InitiateMultipartUploadResult");
    let id = begun.child_text("UploadId").expect("an id");
    let part = |range: Option<&str>| {
        let ask = copy("lake/a%20b", &format!("k?partNumber=1&uploadId={id}"));
        world.send(range.iter().fold(ask, |ask, range| ask.header("x-amz-copy-source-range", range)))
    };
    let malformed = "The x-amz-copy-source-range value must be of the form bytes=first-last where first and last are \
                     the zero-based offsets of the first and last bytes to copy";
    for range in ["0-9", "bytes=5-2", "bytes=garbage", "bytes=0-", "bytes=-5", "bytes=0-2,4-5", ""] {
        assert_eq!(part(Some(range)).await.error(), format!("400 InvalidArgument: {malformed}"), "{range}");
    }
    let long = part(Some("bytes=0-99")).await;
    assert_eq!(long.error(), "400 InvalidArgument: Range specified is not valid for source object of size: 10");
    let other = copy("lake/a%20b", "k?partNumber=1&uploadId=none");
    world.send(other).await.expect_error(StatusCode::NOT_FOUND, "NoSuchUpload");
    part(None).await.document("CopyPartResult");
    let copied = part(Some("bytes=2-4")).await.document("CopyPartResult");
    let etag = copied.child_text("ETag").expect("an etag");
    let list = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
    let list = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
    world.send(Ask::post(&format!("/lake/k?uploadId={id}")).body(list)).await.expect_status(StatusCode::OK);
    assert_eq!(world.get("k").await.body, "234");
}

#[tokio::test]
async fn where_a_website_redirects_to_stays_with_the_object_it_was_said_of() {
    let world = World::new().await;
    let put =
        |location: &str| world.send(Ask::put("/lake/k").header("x-amz-website-redirect-location", location).body("x"));
    put("ftp://x").await.expect_error(StatusCode::BAD_REQUEST, "InvalidRedirectLocation");
    put("/elsewhere").await.expect_status(StatusCode::OK);
    assert_eq!(world.get("k").await.header("x-amz-website-redirect-location"), "/elsewhere");
    world.send(Ask::put("/lake/c").header("x-amz-copy-source", "lake/k")).await.expect_status(StatusCode::OK);
    assert_eq!(world.get("c").await.header("x-amz-website-redirect-location"), "");
}
