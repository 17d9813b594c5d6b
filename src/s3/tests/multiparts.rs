//! Multipart uploads.

use super::*;

const MIB: usize = 1 << 20;

struct Uploading<'a> {
    world: &'a World,
    key: &'static str,
    id: String,
}

impl<'a> Uploading<'a> {
    async fn begin(world: &'a World, key: &'static str, headers: &[(&str, &str)]) -> Uploading<'a> {
        let ask = Ask::post(&format!("/lake/{key}?uploads"));
        let ask = headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value));
        let begun = world.send(ask).await;
        let id = begun.document("InitiateMultipartUploadResult").child_text("UploadId").expect("an id").to_owned();
        Uploading { world, key, id }
    }

    async fn try_part(&self, number: u32, body: impl Into<Bytes>, headers: &[(&str, &str)]) -> Reply {
        let ask = Ask::put(&format!("/lake/{}?partNumber={number}&uploadId={}", self.key, self.id)).body(body);
        self.world.send(headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value))).await
    }

    /// Uploads a part; its etag.
    async fn part(&self, number: u32, body: impl Into<Bytes>) -> String {
        let stored = self.try_part(number, body, &[]).await.expect_status(StatusCode::OK);
        stored.header("etag").to_owned()
    }

    async fn complete(&self, parts: &[(u32, &str)]) -> Reply {
        self.complete_with(parts, &[]).await
    }

    async fn complete_with(&self, parts: &[(u32, &str)], headers: &[(&str, &str)]) -> Reply {
        let parts: String = parts
            .iter()
            .map(|(number, etag)| {
                let etag = etag.replace('"', "&quot;");
                format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
            })
            .collect();
        self.complete_document(format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>"), headers).await
    }

    async fn complete_document(&self, document: String, headers: &[(&str, &str)]) -> Reply {
        let ask = Ask::post(&format!("/lake/{}?uploadId={}", self.key, self.id)).body(document);
        self.world.send(headers.iter().fold(ask, |ask, (name, value)| ask.header(name, value))).await
    }
}

#[tokio::test]
async fn parts_become_one_object_with_what_was_said_at_the_beginning() {
    let world = World::new().await;
    let headers = [("content-type", "text/x"), ("x-amz-meta-a", "1")];
    let upload = Uploading::begin(&world, "a+b", &headers).await;
    let first = upload.part(1, vec![1; 5 * MIB]).await;
    upload.part(3, "wrong").await;
    let third = upload.part(3, "end").await;
    let done = upload.complete(&[(1, &first), (3, &third)]).await;
    let document = done.document("CompleteMultipartUploadResult");
    assert_eq!(document.child_text("Key"), Some("a+b"));
    assert_eq!(document.child_text("Location"), Some("http://127.0.0.1:9000/lake/a%2Bb"));
    let etag = document.child_text("ETag").expect("an etag").to_owned();
    assert!(etag.ends_with("-2\""), "{etag}");
    let got = world.get("a+b").await;
    assert_eq!((got.body.len(), &got.body[5 * MIB..]), (5 * MIB + 3, &b"end"[..]));
    assert_eq!((got.header("content-type"), got.header("x-amz-meta-a")), ("text/x", "1"));
    assert_eq!(got.header("etag"), etag);
    // The answer was lost and the client asks again.
    let again = upload.complete(&[(1, &first), (3, &third)]).await.document("CompleteMultipartUploadResult");
    assert_eq!(again.child_text("ETag"), Some(&*etag));
    upload.try_part(1, "x", &[]).await.expect_error(StatusCode::NOT_FOUND, "NoSuchUpload");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn completions_sent_at_once_all_get_the_one_object() {
    let world = World::new().await;
    for _ in 0..5 {
        let upload = Uploading::begin(&world, "k", &[]).await;
        let etag = upload.part(1, "all").await;
        let list = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
        let list = format!("<CompleteMultipartUpload>{list}</CompleteMultipartUpload>");
        let ask = Ask::post(&format!("/lake/k?uploadId={}", upload.id)).body(list);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (front, request) = (world.front.clone(), ask.clone().signed(SECRET));
            tasks.spawn(async move { front.handle(request.map(Full::new)).await.status() });
        }
        assert_eq!(tasks.join_all().await, [StatusCode::OK; 8]);
        assert_eq!(world.get("k").await.body, "all");
    }
}

#[tokio::test]
async fn bad_lists_are_refused_and_leave_the_upload_as_it_was() {
    let world = World::new().await;
    let upload = Uploading::begin(&world, "k", &[]).await;
    let first = upload.part(1, vec![1; MIB]).await;
    let second = upload.part(2, "end").await;
    let (one, two) = ((1, first.as_str()), (2, second.as_str()));
    for (parts, code) in [
        (&[two, one][..], "InvalidPartOrder"),
        (&[one, one], "InvalidPartOrder"),
        (&[(7, &second)], "InvalidPart"),
        (&[(1, &second)], "InvalidPart"),
        (&[one, two], "EntityTooSmall"),
        (&[], "MalformedXML"),
        (&[(0, &first)], "InvalidArgument"),
        (&[(10_001, &first)], "InvalidArgument"),
    ] {
        upload.complete(parts).await.expect_error(StatusCode::BAD_REQUEST, code);
    }
    for document in [
        "",
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>",
        "<CompleteMultipartUpload><Part><ETag>x</ETag></Part></CompleteMultipartUpload>",
    ] {
        let refused = upload.complete_document(document.to_owned(), &[]).await;
        refused.expect_error(StatusCode::BAD_REQUEST, "MalformedXML");
    }
    world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    for (size, answer) in [
        ("-1", "400 InvalidRequest: Value for x-amz-mp-object-size header is less than zero: '-1'"),
        ("x", "400 InvalidRequest: Value for x-amz-mp-object-size header is invalid: 'x'"),
        (
            "4",
            "400 InvalidRequest: The provided 'x-amz-mp-object-size' header value 4 does not match what was computed: 3",
        ),
    ] {
        assert_eq!(upload.complete_with(&[two], &[("x-amz-mp-object-size", size)]).await.error(), answer);
    }
    upload.complete_with(&[two], &[("x-amz-mp-object-size", "3")]).await.expect_status(StatusCode::OK);
    assert_eq!(world.get("k").await.body, "end");
}

#[tokio::test]
async fn an_upload_that_is_not_there_is_said_so() {
    let world = World::new().await;
    let upload = Uploading { world: &world, key: "k", id: "none".to_owned() };
    let large = upload.try_part(1, vec![0; 2 * MIB], &[]).await.expect_error(StatusCode::NOT_FOUND, "NoSuchUpload");
    assert_eq!(large.answered.bytes_in, 0, "refused before its bytes are read");
    upload
        .complete(&[(1, "5d41402abc4b2a76b9719d911017c592")])
        .await
        .expect_error(StatusCode::NOT_FOUND, "NoSuchUpload");
    for ask in [Ask::delete("/lake/k?uploadId=none"), Ask::get("/lake/k?uploadId=none")] {
        world.send(ask).await.expect_error(StatusCode::NOT_FOUND, "NoSuchUpload");
    }
    let elsewhere = world.send(Ask::post("/nobucket/k?uploads")).await;
    elsewhere.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
    let real = Uploading::begin(&world, "k", &[]).await;
    let other_key = Uploading { world: &world, key: "l", id: real.id.clone() };
    other_key.try_part(1, "x", &[]).await.expect_error(StatusCode::NOT_FOUND, "NoSuchUpload");
}

#[tokio::test]
async fn completion_obeys_its_condition() {
    let world = World::new().await;
    let upload = Uploading::begin(&world, "k", &[]).await;
    let part = upload.part(1, "new").await;
    world.put("k", "hello").await;
    let parts = [(1, part.as_str())];
    let kept = upload.complete_with(&parts, &[("if-none-match", "*")]).await;
    kept.expect_error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
    let other = upload.complete_with(&parts, &[("if-match", "\"x\"")]).await;
    other.expect_error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
    assert_eq!(world.get("k").await.body, "hello");
    let right = [("if-match", "\"5d41402abc4b2a76b9719d911017c592\"")];
    upload.complete_with(&parts, &right).await.expect_status(StatusCode::OK);
    assert_eq!(world.get("k").await.body, "new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_many_racing_completions_makes_the_object() {
    let world = World::new().await;
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..16u8 {
        let upload = Uploading::begin(&world, "k", &[]).await;
        let etag = upload.part(1, vec![writer; 100]).await;
        let part = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
        let list = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
        let ask = Ask::post(&format!("/lake/k?uploadId={}", upload.id)).header("if-none-match", "*").body(list);
        let (front, request) = (world.front.clone(), ask.signed(SECRET));
        tasks.spawn(async move { (writer, front.handle(request.map(Full::new)).await.status()) });
    }
    let ended = tasks.join_all().await;
    let (won, lost): (Vec<_>, Vec<_>) = ended.into_iter().partition(|(_, status)| *status == StatusCode::OK);
    assert!(lost.iter().all(|(_, status)| *status == StatusCode::PRECONDITION_FAILED), "{lost:?}");
    assert_eq!(won.len(), 1, "{won:?}");
    assert_eq!(world.get("k").await.body, vec![won[0].0; 100]);
}

#[tokio::test]
async fn parts_and_uploads_are_listed_until_aborted() {
    let world = World::new().await;
    let upload = Uploading::begin(&world, "p/k", &[("x-amz-checksum-algorithm", "CRC32")]).await;
    let crc32 = [("x-amz-checksum-crc32", "NhCmhg==")];
    for number in [1, 5, 9] {
        upload.try_part(number, "hello", &crc32).await.expect_status(StatusCode::OK);
    }
    let page = |query: &str| format!("/lake/p/k?uploadId={}{query}", upload.id);
    let first = world.send(Ask::get(&page("&max-parts=2"))).await.document("ListPartsResult");
    assert_eq!(texts(&first, "Part/PartNumber"), ["1", "5"]);
    assert_eq!(texts(&first, "Part/ChecksumCRC32"), ["NhCmhg==", "NhCmhg=="]);
    assert_eq!(texts(&first, "ChecksumType"), ["COMPOSITE"]);
    assert_eq!((texts(&first, "IsTruncated"), texts(&first, "NextPartNumberMarker")), (vec!["true"], vec!["5"]));
    let second = world.send(Ask::get(&page("&max-parts=2&part-number-marker=5"))).await;
    let second = second.document("ListPartsResult");
    assert_eq!((texts(&second, "Part/PartNumber"), texts(&second, "IsTruncated")), (vec!["9"], vec!["false"]));

    let uploads = world.send(Ask::get("/lake?uploads")).await.document("ListMultipartUploadsResult");
    assert_eq!(texts(&uploads, "Upload/UploadId"), [&*upload.id]);
    assert!(texts(&world.send(Ask::get("/lake")).await.document("ListBucketResult"), "Contents").is_empty());
    world.send(Ask::delete(&page(""))).await.expect_status(StatusCode::NO_CONTENT);
    world.send(Ask::delete(&page(""))).await.expect_error(StatusCode::NOT_FOUND, "NoSuchUpload");
    let uploads = world.send(Ask::get("/lake?uploads")).await.document("ListMultipartUploadsResult");
    assert!(texts(&uploads, "Upload").is_empty());
}

#[tokio::test]
async fn uploads_are_listed_in_groups_and_pages() {
    let world = World::new().await;
    for key in ["a", "a", "f/1", "f/2", "g", "s/1"] {
        Uploading::begin(&world, key, &[]).await;
    }
    let list = |query: String| {
        let world = &world;
        async move { world.send(Ask::get(&format!("/lake?uploads&{query}"))).await.document("ListMultipartUploadsResult") }
    };
    for max in 1..=6 {
        let (mut keys, mut groups, mut marker) = (Vec::new(), Vec::new(), String::new());
        for _ in 0..6 {
            let page = list(format!("delimiter=/&max-uploads={max}{marker}")).await;
            keys.extend(texts(&page, "Upload/Key").into_iter().map(str::to_owned));
            groups.extend(texts(&page, "CommonPrefixes/Prefix").into_iter().map(str::to_owned));
            if texts(&page, "IsTruncated") == ["false"] {
                break;
            }
            let next = |name| page.child_text(name).unwrap_or_default().to_owned();
            marker = format!("&key-marker={}&upload-id-marker={}", next("NextKeyMarker"), next("NextUploadIdMarker"));
        }
        assert_eq!(keys, ["a", "a", "g"], "{max}");
        assert_eq!(groups, ["f/", "s/"], "{max}");
    }
    assert_eq!(texts(&list("key-marker=a".into()).await, "Upload/Key"), ["f/1", "f/2", "g", "s/1"]);
    assert_eq!(texts(&list("prefix=f/".into()).await, "Upload/Key"), ["f/1", "f/2"]);
    assert_eq!(texts(&list("upload-id-marker=zzz".into()).await, "Upload/Key").len(), 6);
    assert_eq!(texts(&list("max-uploads=0".into()).await, "IsTruncated"), ["false"]);
}

/// More uploads in one group than one request looks at: see `STORE_PAGES_MAX`.
#[tokio::test]
async fn a_listing_of_uploads_that_is_cut_short_says_so_and_goes_on() {
    let world = World::new().await;
    for number in 0..25 {
        world.send(Ask::post(&format!("/lake/f/{number:02}?uploads"))).await.expect_status(StatusCode::OK);
    }
    Uploading::begin(&world, "g", &[]).await;
    let (mut pages, mut groups, mut keys, mut marker) = (0, Vec::new(), Vec::new(), String::new());
    loop {
        let ask = Ask::get(&format!("/lake?uploads&delimiter=/{marker}"));
        let page = world.send(ask).await.document("ListMultipartUploadsResult");
        pages += 1;
        groups.extend(texts(&page, "CommonPrefixes/Prefix").into_iter().map(str::to_owned));
        keys.extend(texts(&page, "Upload/Key").into_iter().map(str::to_owned));
        if texts(&page, "IsTruncated") == ["false"] {
            break;
        }
        assert!(pages < 10, "it does not end");
        let next = |name| page.child_text(name).unwrap_or_default().to_owned();
        marker = format!("&key-marker={}&upload-id-marker={}", next("NextKeyMarker"), next("NextUploadIdMarker"));
    }
    groups.dedup();
    assert_eq!((groups, keys), (vec!["f/".to_owned()], vec!["g".to_owned()]));
    assert_eq!(pages, 3, "ten uploads a request, twenty-six in all");
}

#[tokio::test]
async fn checksums_are_agreed_on_at_the_beginning() {
    let world = World::new().await;
    let begin = |headers: &[(&str, &str)]| {
        let ask = headers.iter().fold(Ask::post("/lake/k?uploads"), |ask, (name, value)| ask.header(name, value));
        world.send(ask)
    };
    let (algorithm, kind) = ("x-amz-checksum-algorithm", "x-amz-checksum-type");
    for (headers, answered) in [
        (&[(algorithm, "CRC32")][..], ("CRC32", "COMPOSITE")),
        (&[(algorithm, "crc32c"), (kind, "FULL_OBJECT")], ("CRC32C", "FULL_OBJECT")),
        (&[(algorithm, "SHA256")], ("SHA256", "COMPOSITE")),
        (&[(algorithm, "CRC64NVME")], ("CRC64NVME", "FULL_OBJECT")),
        (&[], ("", "")),
    ] {
        let begun = begin(headers).await.expect_status(StatusCode::OK);
        assert_eq!((begun.header(algorithm), begun.header(kind)), answered);
    }
    for (headers, message) in [
        (
            &[(algorithm, "CRC64NVME"), (kind, "COMPOSITE")][..],
            "The COMPOSITE checksum type cannot be used with the crc64nvme checksum algorithm.",
        ),
        (
            &[(algorithm, "SHA1"), (kind, "FULL_OBJECT")],
            "The FULL_OBJECT checksum type cannot be used with the sha1 checksum algorithm.",
        ),
        (
            &[(kind, "FULL_OBJECT")],
            "The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.",
        ),
        (&[(algorithm, "CRC32"), (kind, "x")], "Value for x-amz-checksum-type header is invalid."),
    ] {
        assert_eq!(begin(headers).await.error(), format!("400 InvalidRequest: {message}"));
    }
    begin(&[(algorithm, "x")]).await.expect_error(StatusCode::BAD_REQUEST, "InvalidRequest");
}

#[tokio::test]
async fn parts_keep_to_the_checksum_agreed_on() {
    let world = World::new().await;
    let composite = Uploading::begin(&world, "c", &[("x-amz-checksum-algorithm", "CRC32")]).await;
    let mismatch =
        "400 InvalidRequest: Checksum Type mismatch occurred, expected checksum Type: CRC32, actual checksum Type:";
    assert_eq!(composite.try_part(1, "hello", &[]).await.error(), format!("{mismatch} null"));
    let sha1 = [("x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00=")];
    assert_eq!(composite.try_part(1, "hello", &sha1).await.error(), format!("{mismatch} SHA1"));
    let wrong = composite.try_part(1, "hello", &[("x-amz-checksum-crc32", "AAAAAA==")]).await;
    wrong.expect_error(StatusCode::BAD_REQUEST, "BadDigest");
    let stored = composite.try_part(1, "hello", &[("x-amz-checksum-crc32", "NhCmhg==")]).await;
    assert_eq!(stored.header("x-amz-checksum-crc32"), "NhCmhg==");
    let etag = stored.header("etag").to_owned();
    let listed = |checksum: &str| {
        let part = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag>{checksum}</Part>");
        format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>")
    };
    for (checksum, headers, answer) in [
        (
            "",
            &[][..],
            "400 InvalidRequest: The upload was created using a crc32 checksum. The complete request must include the checksum for each part. It was missing for part 1 in the request.",
        ),
        (
            "<ChecksumSHA1>qvTGHdzF6KLavt4PO0gs2a6pQ00=</ChecksumSHA1>",
            &[],
            "400 BadDigest: The sha1 you specified for part 1 did not match what we received.",
        ),
        (
            "<ChecksumCRC32>x</ChecksumCRC32>",
            &[],
            "400 InvalidArgument: Invalid Base64 or multiple checksums present in request",
        ),
        (
            "<ChecksumCRC32>NhCmhg==</ChecksumCRC32>",
            &[("x-amz-checksum-type", "FULL_OBJECT")],
            "400 InvalidRequest: The upload was created using the COMPOSITE checksum mode. The complete request must use the same checksum mode.",
        ),
    ] {
        assert_eq!(composite.complete_document(listed(checksum), headers).await.error(), answer);
    }
    let done = composite.complete_document(listed("<ChecksumCRC32>NhCmhg==</ChecksumCRC32>"), &[]).await;
    let done = done.document("CompleteMultipartUploadResult");
    assert_eq!(texts(&done, "ChecksumType"), ["COMPOSITE"]);
    assert!(texts(&done, "ChecksumCRC32")[0].ends_with("-1"));
}

#[tokio::test]
async fn an_upload_without_an_algorithm_takes_parts_with_any_and_gets_the_default() {
    let world = World::new().await;
    let upload = Uploading::begin(&world, "k", &[]).await;
    let stored = upload.try_part(1, "hello", &[("x-amz-checksum-crc32", "NhCmhg==")]).await;
    assert_eq!(stored.header("x-amz-checksum-crc32"), "NhCmhg==");
    let wrong = upload.try_part(2, "hello", &[("x-amz-checksum-crc32", "AAAAAA==")]).await;
    wrong.expect_error(StatusCode::BAD_REQUEST, "BadDigest");
    let done = upload.complete(&[(1, stored.header("etag"))]).await.document("CompleteMultipartUploadResult");
    assert_eq!(texts(&done, "ChecksumCRC64NVME"), ["M3eFcAZSQlc="]);
    let got = world.send(Ask::head("/lake/k").header("x-amz-checksum-mode", "ENABLED")).await;
    assert_eq!(got.header("x-amz-checksum-crc64nvme"), "M3eFcAZSQlc=");
    assert_eq!(got.header("x-amz-checksum-type"), "FULL_OBJECT");
}

#[tokio::test]
async fn parts_arrive_without_content_length_and_with_unsigned_trailers() {
    let world = World::new().await;
    let upload = Uploading::begin(&world, "k", &[]).await;
    let target = format!("/lake/k?partNumber=1&uploadId={}", upload.id);
    let ask = Ask::put(&target).chunked(5).header("x-amz-trailer", "x-amz-checksum-crc32");
    let request = ask.body("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n").signed(SECRET);
    assert!(!request.headers().contains_key("content-length"));
    let stored = world.send_raw(request).await.expect_status(StatusCode::OK);
    upload.complete(&[(1, stored.header("etag"))]).await.expect_status(StatusCode::OK);
    assert_eq!(world.get("k").await.body, "hello");
}

#[tokio::test]
async fn parts_of_an_object_are_read_by_their_number() {
    let world = World::new().await;
    let upload = Uploading::begin(&world, "k", &[]).await;
    let first = upload.part(2, vec![1; 5 * MIB]).await;
    let second = upload.part(5, "tail").await;
    upload.complete(&[(2, &first), (5, &second)]).await.expect_status(StatusCode::OK);
    let ask = |number: u32| {
        world.send(Ask::get(&format!("/lake/k?partNumber={number}")).header("x-amz-checksum-mode", "ENABLED"))
    };
    let tail = ask(2).await.expect_status(StatusCode::PARTIAL_CONTENT);
    assert_eq!((&*tail.body, tail.header("content-range")), (&b"tail"[..], "bytes 5242880-5242883/5242884"));
    assert_eq!((tail.header("x-amz-mp-parts-count"), tail.header("x-amz-checksum-crc64nvme")), ("2", ""));
    let head = world.send(Ask::head("/lake/k?partNumber=1")).await.expect_status(StatusCode::PARTIAL_CONTENT);
    assert_eq!((head.header("content-length"), head.header("content-range")), ("5242880", "bytes 0-5242879/5242884"));
    ask(3).await.expect_error(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidPartNumber");
    let attributes = async |name: &str, value: &str| {
        let ask = Ask::get("/lake/k?attributes").header("x-amz-object-attributes", "ObjectParts").header(name, value);
        world.send(ask).await.document("GetObjectAttributesResponse")
    };
    let page = attributes("x-amz-max-parts", "1").await;
    assert_eq!(texts(&page, "ObjectParts/Part/PartNumber"), ["2"]);
    assert_eq!(texts(&page, "ObjectParts/IsTruncated"), ["true"]);
    assert_eq!(
        (texts(&page, "ObjectParts/NextPartNumberMarker"), texts(&page, "ObjectParts/PartsCount")),
        (vec!["2"], vec!["2"])
    );
    let page = attributes("x-amz-part-number-marker", "2").await;
    assert_eq!(
        (texts(&page, "ObjectParts/Part/Size"), texts(&page, "ObjectParts/IsTruncated")),
        (vec!["4"], vec!["false"])
    );
}

#[tokio::test]
async fn an_abort_may_say_when_the_upload_began() {
    let world = World::new().await;
    let upload = Uploading::begin(&world, "k", &[]).await;
    let abort = |date: &str| {
        let ask = Ask::delete(&format!("/lake/k?uploadId={}", upload.id));
        world.send(ask.header("x-amz-if-match-initiated-time", date))
    };
    let other = abort("Tue, 01 Dec 2015 16:00:00 GMT").await;
    other.expect_error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
    // A time to come says nothing.
    abort("Fri, 01 Dec 2220 16:00:00 GMT").await.expect_status(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn without_an_algorithm_parts_show_no_checksum_and_that_of_the_whole_is_not_compared() {
    let world = World::new().await;
    let upload = Uploading::begin(&world, "k", &[]).await;
    let part = upload.part(1, "123456789").await;
    let listed = world.send(Ask::get(&format!("/lake/k?uploadId={}", upload.id))).await.document("ListPartsResult");
    assert_eq!(listed.child_text("ChecksumType"), Some("null"));
    assert!(texts(&listed, "Part/ChecksumCRC64NVME").is_empty());
    let done = upload.complete_with(&[(1, &part)], &[("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=")]).await;
    assert_eq!(done.document("CompleteMultipartUploadResult").child_text("ChecksumCRC64NVME"), Some("rosUhgp5mIg="));
}

#[tokio::test]
async fn a_listing_of_uploads_does_not_go_on_behind_a_stranger() {
    let world = World::new().await;
    let (one, other) = (Uploading::begin(&world, "a", &[]).await, Uploading::begin(&world, "b", &[]).await);
    let behind = |id: &str| world.send(Ask::get(&format!("/lake?uploads&key-marker=a&upload-id-marker={id}")));
    let listed = behind(&one.id).await.document("ListMultipartUploadsResult");
    assert_eq!(texts(&listed, "Upload/UploadId"), [other.id.as_str()]);
    for stranger in ["rubbish", &other.id] {
        behind(stranger).await.expect_error(StatusCode::BAD_REQUEST, "InvalidArgument");
    }
}
