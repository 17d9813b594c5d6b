//! Versions, tags and locks on the wire.

use super::*;

const ENABLED: &str = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
const SUSPENDED: &str = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
const HOUR_MS: i64 = 3_600_000;

impl World {
    async fn versioned() -> World {
        let world = World::new().await;
        world.set_versioning(ENABLED).await.expect_status(StatusCode::OK);
        world
    }

    /// A world with a second bucket, `/locking`, whose versions can be locked.
    async fn locking() -> World {
        let world = World::new().await;
        let ask = Ask::put("/locking").header("x-amz-bucket-object-lock-enabled", "true");
        world.send(ask).await.expect_status(StatusCode::OK);
        world
    }

    async fn set_versioning(&self, document: &str) -> Reply {
        self.send(Ask::put("/lake?versioning").body(document.to_owned())).await
    }

    /// The version that a PUT made.
    async fn version(&self, key: &str, body: &str) -> String {
        self.put(key, body.to_owned()).await.header("x-amz-version-id").to_owned()
    }

    async fn versions(&self, query: &str) -> Element {
        self.send(Ask::get(&format!("/lake?versions{query}"))).await.document("ListVersionsResult")
    }
}

fn in_an_hour() -> String {
    crate::s3::list::timestamp(now_ms() + HOUR_MS)
}

#[tokio::test]
async fn versioning_is_switched_on_and_suspended_and_told() {
    let world = World::new().await;
    let status = || async { world.send(Ask::get("/lake?versioning")).await.document("VersioningConfiguration") };
    assert_eq!(status().await.child_text("Status"), None);
    for (document, shown) in [(ENABLED, "Enabled"), (SUSPENDED, "Suspended"), (ENABLED, "Enabled")] {
        world.set_versioning(document).await.expect_status(StatusCode::OK);
        assert_eq!(status().await.child_text("Status"), Some(shown));
    }
    for (document, code) in [
        ("<VersioningConfiguration><Status>On</Status></VersioningConfiguration>", "MalformedXML"),
        ("<VersioningConfiguration/>", "IllegalVersioningConfigurationException"),
        ("<Versioning/>", "MalformedXML"),
        ("", "MalformedXML"),
    ] {
        world.set_versioning(document).await.expect_error(StatusCode::BAD_REQUEST, code);
    }
    let mfa =
        "<VersioningConfiguration><Status>Enabled</Status><MfaDelete>Enabled</MfaDelete></VersioningConfiguration>";
    world.set_versioning(mfa).await.expect_error(StatusCode::NOT_IMPLEMENTED, "NotImplemented");
    let missing = world.send(Ask::put("/nobucket?versioning").body(ENABLED)).await;
    missing.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
}

#[tokio::test]
async fn each_version_is_named_and_can_be_asked_for() {
    let world = World::versioned().await;
    let (first, second) = (world.version("k", "one").await, world.version("k", "second").await);
    assert!(first != second && first.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let current = world.get("k").await;
    assert_eq!((current.header("x-amz-version-id"), &*current.body), (&*second, &b"second"[..]));
    let old = world.get(&format!("k?versionId={first}")).await;
    assert_eq!((old.header("x-amz-version-id"), &*old.body), (&*first, &b"one"[..]));
    let head = world.send(Ask::head(&format!("/lake/k?versionId={first}"))).await;
    assert_eq!((head.header("x-amz-version-id"), head.header("content-length")), (&*first, "3"));
    let ask =
        Ask::get(&format!("/lake/k?attributes&versionId={first}")).header("x-amz-object-attributes", "ObjectSize");
    let attributes = world.send(ask).await;
    assert_eq!(attributes.header("x-amz-version-id"), first);
    assert_eq!(attributes.document("GetObjectAttributesResponse").child_text("ObjectSize"), Some("3"));
    for (id, status, code) in [
        ("01BX5ZZKBKACTAV9WEVGEMMVRZ", 404, "NoSuchVersion"),
        ("null", 404, "NoSuchVersion"),
        ("not_one", 400, "InvalidArgument"),
        ("", 400, "InvalidArgument"),
    ] {
        let missing = world.get(&format!("k?versionId={id}")).await;
        missing.expect_error(StatusCode::from_u16(status).expect("a status"), code);
    }
    world.get(&format!("other?versionId={first}")).await.expect_error(StatusCode::NOT_FOUND, "NoSuchVersion");
}

#[tokio::test]
async fn without_versioning_nothing_is_said_of_versions() {
    let world = World::new().await;
    for reply in [world.put("k", "x").await, world.get("k").await, world.get("k?versionId=null").await] {
        assert_eq!(reply.header("x-amz-version-id"), "");
    }
    let deleted = world.send(Ask::delete("/lake/k")).await.expect_status(StatusCode::NO_CONTENT);
    assert_eq!((deleted.header("x-amz-version-id"), deleted.header("x-amz-delete-marker")), ("", ""));
    world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    world.put("k", "x").await;
    let named = world.send(Ask::delete("/lake/k?versionId=null")).await.expect_status(StatusCode::NO_CONTENT);
    assert_eq!(named.header("x-amz-version-id"), "null");
    world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
}

#[tokio::test]
async fn a_suspended_bucket_writes_the_version_null() {
    let world = World::versioned().await;
    let kept = world.version("k", "kept").await;
    world.set_versioning(SUSPENDED).await.expect_status(StatusCode::OK);
    assert_eq!(world.version("k", "null").await, "", "as S3 does, it is not named where it is made");
    assert_eq!(world.get("k").await.header("x-amz-version-id"), "null");
    let deleted = world.send(Ask::delete("/lake/k")).await.expect_status(StatusCode::NO_CONTENT);
    assert_eq!((deleted.header("x-amz-version-id"), deleted.header("x-amz-delete-marker")), ("null", "true"));
    let listed = world.versions("").await;
    assert_eq!(texts(&listed, "Version/VersionId"), [&*kept]);
    assert_eq!(texts(&listed, "DeleteMarker/VersionId"), ["null"]);
}

#[tokio::test]
async fn deletions_leave_markers_that_answer_as_such() {
    let world = World::versioned().await;
    let version = world.version("k", "x").await;
    let deleted = world.send(Ask::delete("/lake/k")).await.expect_status(StatusCode::NO_CONTENT);
    let marker = deleted.header("x-amz-version-id").to_owned();
    assert_eq!(deleted.header("x-amz-delete-marker"), "true");
    for ask in [Ask::get("/lake/k"), Ask::get("/lake/k?tagging")] {
        let hidden = world.send(ask).await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
        assert_eq!((hidden.header("x-amz-delete-marker"), hidden.header("x-amz-version-id")), ("true", &*marker));
    }
    let named = world.get(&format!("k?versionId={marker}")).await;
    let named = named.expect_error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed");
    assert_eq!((named.header("x-amz-delete-marker"), named.header("allow")), ("true", "DELETE"));
    assert_ne!(named.header("last-modified"), "");
    let copy = Ask::put("/lake/to").header("x-amz-copy-source", format!("lake/k?versionId={marker}"));
    world.send(copy).await.expect_error(StatusCode::BAD_REQUEST, "InvalidRequest");
    let removed = world.send(Ask::delete(&format!("/lake/k?versionId={marker}"))).await;
    assert_eq!((removed.header("x-amz-version-id"), removed.header("x-amz-delete-marker")), (&*marker, "true"));
    assert_eq!(world.get("k").await.body, "x");
    let removed = world.send(Ask::delete(&format!("/lake/k?versionId={version}"))).await;
    assert_eq!((removed.header("x-amz-version-id"), removed.header("x-amz-delete-marker")), (&*version, ""));
    let again = world.send(Ask::delete(&format!("/lake/k?versionId={version}"))).await;
    again.expect_status(StatusCode::NO_CONTENT);
    let plain = world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    assert_eq!(plain.header("x-amz-delete-marker"), "");
}

#[tokio::test]
async fn many_versions_are_deleted_at_once() {
    let world = World::versioned().await;
    let (a, b) = (world.version("a", "x").await, world.version("b", "x").await);
    let delete = |objects: String| {
        let document = format!("<Delete>{objects}</Delete>");
        let ask = Ask::post("/lake?delete").header("content-md5", md5_base64(document.as_bytes())).body(document);
        async { world.send(ask).await.document("DeleteResult") }
    };
    let object =
        |key: &str, version: &str| format!("<Object><Key>{key}</Key><VersionId>{version}</VersionId></Object>");
    let plain = "<Object><Key>b</Key></Object><Object><Key>never</Key></Object>";
    let result = delete(format!("{}{plain}{}", object("a", &a), object("c", "not_one"))).await;
    assert_eq!(texts(&result, "Deleted/Key"), ["a", "b", "never"]);
    assert_eq!(texts(&result, "Deleted/VersionId"), [&*a]);
    assert_eq!(texts(&result, "Deleted/DeleteMarker"), ["false", "true", "true"]);
    assert_eq!(texts(&result, "Error/Code"), ["NoSuchVersion"]);
    let markers = texts(&result, "Deleted/DeleteMarkerVersionId");
    let listed = world.versions("").await;
    assert_eq!(texts(&listed, "Version/VersionId"), [&*b]);
    assert_eq!(texts(&listed, "DeleteMarker/VersionId"), markers);
    assert_eq!(texts(&listed, "DeleteMarker/IsLatest"), ["true", "true"]);
    let result = delete(object("b", markers[0])).await;
    assert_eq!(texts(&result, "Deleted/DeleteMarkerVersionId"), [markers[0]]);
    assert_eq!(world.get("b").await.body, "x");
}

#[tokio::test]
async fn versions_are_listed_by_pages_of_one() {
    let world = World::versioned().await;
    let mut made = Vec::new();
    for key in ["a%20b", "a%20b", "c/d"] {
        made.push(world.version(key, "x").await);
    }
    let mut query = "&max-keys=1&encoding-type=url".to_owned();
    let mut shown = Vec::new();
    for _ in 0..3 {
        let page = world.versions(&query).await;
        assert_eq!(texts(&page, "Version").len(), 1);
        shown.push((texts(&page, "Version/Key")[0].to_owned(), texts(&page, "Version/VersionId")[0].to_owned()));
        let next = |name| page.child_text(name).unwrap_or_default().to_owned();
        let (key, version) = (next("NextKeyMarker"), next("NextVersionIdMarker"));
        query = format!("&max-keys=1&encoding-type=url&key-marker={key}&version-id-marker={version}");
        if page.child_text("IsTruncated") == Some("false") {
            break;
        }
    }
    let expected =
        [("a%20b", &made[1]), ("a%20b", &made[0]), ("c/d", &made[2])].map(|(key, id)| (key.to_owned(), id.clone()));
    assert_eq!(shown, expected);
    let grouped = world.versions("&delimiter=/&prefix=c").await;
    assert_eq!(texts(&grouped, "CommonPrefixes/Prefix"), ["c/"]);
    let nothing = world.versions("&max-keys=0").await;
    assert_eq!((nothing.child_text("IsTruncated"), texts(&nothing, "Version").len()), (Some("false"), 0));
    for bad in ["&version-id-marker=abc", "&key-marker=k&version-id-marker=a_b"] {
        let refused = world.send(Ask::get(&format!("/lake?versions{bad}"))).await;
        refused.expect_error(StatusCode::BAD_REQUEST, "InvalidArgument");
    }
}

#[tokio::test]
async fn copies_name_what_was_copied_and_what_was_made() {
    let world = World::versioned().await;
    let old = world.version("k%3Fx", "old").await;
    world.version("k%3Fx", "new").await;
    let copy =
        |to: &str| Ask::put(&format!("/lake/{to}")).header("x-amz-copy-source", format!("lake/k%3Fx?versionId={old}"));
    let copied = world.send(copy("to")).await.expect_status(StatusCode::OK);
    assert_eq!(copied.header("x-amz-copy-source-version-id"), old);
    let got = world.get("to").await;
    assert_eq!((&*got.body, got.header("x-amz-version-id")), (&b"old"[..], copied.header("x-amz-version-id")));
    world.send(copy("k%3Fx")).await.expect_status(StatusCode::OK);
    assert_eq!(world.get("k%3Fx").await.body, "old", "an old version copied onto its object is that object again");

    let upload = world.send(Ask::post("/lake/m?uploads")).await.document("InitiateMultipartUploadResult");
    let id = upload.child_text("UploadId").expect("an id");
    let part = world.send(copy(&format!("m?partNumber=1&uploadId={id}"))).await;
    assert_eq!(part.header("x-amz-copy-source-version-id"), old);
    let etag = part.document("CopyPartResult").child_text("ETag").expect("an etag").to_owned();
    let list = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part></CompleteMultipartUpload>"
    );
    let done = world.send(Ask::post(&format!("/lake/m?uploadId={id}")).body(list)).await.expect_status(StatusCode::OK);
    world.put("m", "newer").await;
    let version = done.header("x-amz-version-id");
    for query in ["", "&partNumber=1"] {
        let got = world.get(&format!("m?versionId={version}{query}")).await;
        assert_eq!((&*got.body, got.header("x-amz-version-id")), (&b"old"[..], version), "{query}");
    }
    let ask = Ask::get(&format!("/lake/m?attributes&versionId={version}"));
    let attributes = world.send(ask.header("x-amz-object-attributes", "ObjectParts")).await;
    assert_eq!(texts(&attributes.document("GetObjectAttributesResponse"), "ObjectParts/PartsCount"), ["1"]);
}

#[tokio::test]
async fn a_bucket_with_versions_says_so_when_it_is_deleted() {
    let world = World::versioned().await;
    world.version("k", "x").await;
    world.send(Ask::delete("/lake/k")).await.expect_status(StatusCode::NO_CONTENT);
    let refused = world.send(Ask::delete("/lake")).await;
    let message =
        "409 BucketNotEmpty: The bucket you tried to delete is not empty. You must delete all versions in the bucket.";
    assert_eq!(refused.error(), message);
}

#[tokio::test]
async fn tags_are_set_read_counted_and_removed() {
    let world = World::versioned().await;
    let put = Ask::put("/lake/k").header("x-amz-tagging", "a=1&b%20c=%C3%BC").body("x");
    let version = world.send(put).await.header("x-amz-version-id").to_owned();
    assert_eq!(world.get("k").await.header("x-amz-tagging-count"), "2");
    let tags = |query: &str| {
        let ask = Ask::get(&format!("/lake/k?tagging{query}"));
        async {
            let tagging = world.send(ask).await.document("Tagging");
            let pairs = texts(&tagging, "TagSet/Tag/Key").into_iter().zip(texts(&tagging, "TagSet/Tag/Value"));
            pairs.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
        }
    };
    assert_eq!(tags("").await, ["a=1", "b c=ü"]);
    world.version("k", "newer").await;
    assert!(tags("").await.is_empty());
    let named = format!("&versionId={version}");
    assert_eq!(tags(&named).await, ["a=1", "b c=ü"]);
    let document = "<Tagging><TagSet><Tag><Key>z</Key><Value/></Tag></TagSet></Tagging>";
    let set = world.send(Ask::put(&format!("/lake/k?tagging{named}")).body(document)).await;
    assert_eq!(set.expect_status(StatusCode::OK).header("x-amz-version-id"), version);
    assert_eq!(tags(&named).await, ["z="]);
    let removed = world.send(Ask::delete(&format!("/lake/k?tagging{named}"))).await;
    removed.expect_status(StatusCode::NO_CONTENT);
    assert!(tags(&named).await.is_empty());
    assert_eq!(world.get(&format!("k?versionId={version}")).await.header("x-amz-tagging-count"), "");

    let copy = |directive: &str| {
        Ask::put("/lake/to").header("x-amz-copy-source", "lake/from").header("x-amz-tagging-directive", directive)
    };
    world.send(Ask::put("/lake/from").header("x-amz-tagging", "f=1").body("x")).await.expect_status(StatusCode::OK);
    world.send(copy("COPY").header("x-amz-tagging", "ignored=1")).await.expect_status(StatusCode::OK);
    assert_eq!(texts(&world.get("to?tagging").await.document("Tagging"), "TagSet/Tag/Key"), ["f"]);
    world.send(copy("REPLACE").header("x-amz-tagging", "g=1&h=2")).await.expect_status(StatusCode::OK);
    assert_eq!(texts(&world.get("to?tagging").await.document("Tagging"), "TagSet/Tag/Key"), ["g", "h"]);
}

#[tokio::test]
async fn bad_tags_and_tags_of_nothing_are_refused() {
    let world = World::new().await;
    let put = |text: &str| world.send(Ask::put("/lake/k").header("x-amz-tagging", text).body("x"));
    put("a=1&a=2").await.expect_error(StatusCode::BAD_REQUEST, "InvalidArgument");
    put("a!=1").await.expect_error(StatusCode::BAD_REQUEST, "InvalidTag");
    world.get("k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    let set = |target: &str, document: &str| world.send(Ask::put(target).body(document.to_owned()));
    let tag = "<Tagging><TagSet><Tag><Key>z</Key><Value/></Tag></TagSet></Tagging>";
    set("/lake/k?tagging", tag).await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    set("/nobucket/k?tagging", tag).await.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
    put("").await.expect_status(StatusCode::OK);
    set("/lake/k?tagging", "<Tagging/>").await.expect_error(StatusCode::BAD_REQUEST, "MalformedXML");
    set("/lake/k?tagging&versionId=abc", tag).await.expect_error(StatusCode::NOT_FOUND, "NoSuchVersion");
    set("/lake/k?tagging", tag).await.expect_status(StatusCode::OK);
}

#[tokio::test]
async fn an_upload_keeps_tags_and_lock_for_its_object() {
    let world = World::locking().await;
    let ask = Ask::post("/locking/m?uploads")
        .header("x-amz-tagging", "a=1")
        .header("x-amz-object-lock-mode", "GOVERNANCE")
        .header("x-amz-object-lock-retain-until-date", in_an_hour());
    let upload = world.send(ask).await.document("InitiateMultipartUploadResult");
    let id = upload.child_text("UploadId").expect("an id");
    let part = world.send(Ask::put(&format!("/locking/m?partNumber=1&uploadId={id}")).body("x")).await;
    let list = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part></CompleteMultipartUpload>",
        part.header("etag")
    );
    world.send(Ask::post(&format!("/locking/m?uploadId={id}")).body(list)).await.expect_status(StatusCode::OK);
    let head = world.send(Ask::head("/locking/m")).await;
    assert_eq!((head.header("x-amz-tagging-count"), head.header("x-amz-object-lock-mode")), ("1", "GOVERNANCE"));
}

#[tokio::test]
async fn retention_and_holds_are_set_told_and_obeyed() {
    let world = World::locking().await;
    let until = in_an_hour();
    let put = Ask::put("/locking/k").header("x-amz-object-lock-mode", "GOVERNANCE");
    let put = put.header("x-amz-object-lock-retain-until-date", &until).header("x-amz-object-lock-legal-hold", "ON");
    let version = world.send(put.body("x")).await.header("x-amz-version-id").to_owned();
    let head = world.send(Ask::head("/locking/k")).await;
    assert_eq!(head.header("x-amz-object-lock-mode"), "GOVERNANCE");
    assert_eq!(head.header("x-amz-object-lock-retain-until-date"), until);
    assert_eq!(head.header("x-amz-object-lock-legal-hold"), "ON");
    let retention = world.send(Ask::get("/locking/k?retention")).await.document("Retention");
    assert_eq!(
        (retention.child_text("Mode"), retention.child_text("RetainUntilDate")),
        (Some("GOVERNANCE"), Some(&*until))
    );

    let delete = || Ask::delete(&format!("/locking/k?versionId={version}"));
    let bypassing = || delete().header("x-amz-bypass-governance-retention", "true");
    world.send(bypassing()).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    let hold = |status: &str| {
        let document = format!("<LegalHold><Status>{status}</Status></LegalHold>");
        world.send(Ask::put(&format!("/locking/k?legal-hold&versionId={version}")).body(document))
    };
    hold("off").await.expect_error(StatusCode::BAD_REQUEST, "MalformedXML");
    hold("OFF").await.expect_status(StatusCode::OK);
    let shown = world.send(Ask::get("/locking/k?legal-hold")).await.document("LegalHold");
    assert_eq!(shown.child_text("Status"), Some("OFF"));

    let retain = |mode: &str, ms: i64| {
        let until = crate::s3::list::timestamp(now_ms() + ms);
        let document = format!("<Retention><Mode>{mode}</Mode><RetainUntilDate>{until}</RetainUntilDate></Retention>");
        Ask::put(&format!("/locking/k?retention&versionId={version}")).body(document)
    };
    world.send(retain("GOVERNANCE", HOUR_MS / 2)).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    world.send(retain("GOVERNANCE", -1000)).await.expect_error(StatusCode::BAD_REQUEST, "InvalidArgument");
    world.send(retain("WORM", HOUR_MS)).await.expect_error(StatusCode::BAD_REQUEST, "MalformedXML");
    world.send(retain("GOVERNANCE", 2 * HOUR_MS)).await.expect_status(StatusCode::OK);
    world.send(delete()).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    world.send(Ask::delete("/locking/k")).await.expect_status(StatusCode::NO_CONTENT);
    world.send(bypassing()).await.expect_status(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_lock_configuration_locks_by_default() {
    let world = World::locking().await;
    let configure = |bucket: &str, inside: &str| {
        let document = format!("<ObjectLockConfiguration>{inside}</ObjectLockConfiguration>");
        world.send(Ask::put(&format!("/{bucket}?object-lock")).body(document))
    };
    let rule = |inside: &str| {
        format!(
            "<ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention>{inside}</DefaultRetention></Rule>"
        )
    };
    for (inside, code) in [
        (String::new(), "MalformedXML"),
        (rule("<Days>1</Days>"), "MalformedXML"),
        (rule("<Mode>COMPLIANCE</Mode><Days>1</Days><Years>1</Years>"), "MalformedXML"),
        (rule("<Mode>COMPLIANCE</Mode><Days>0</Days>"), "InvalidArgument"),
        (rule("<Mode>COMPLIANCE</Mode><Days>36501</Days>"), "InvalidArgument"),
        (rule("<Mode>COMPLIANCE</Mode><Years>-1</Years>"), "InvalidArgument"),
    ] {
        configure("locking", &inside).await.expect_error(StatusCode::BAD_REQUEST, code);
    }
    configure("locking", &rule("<Mode>COMPLIANCE</Mode><Days>2</Days>")).await.expect_status(StatusCode::OK);
    let told = world.send(Ask::get("/locking?object-lock")).await.document("ObjectLockConfiguration");
    assert_eq!(texts(&told, "Rule/DefaultRetention/Days"), ["2"]);
    let version = world.send(Ask::put("/locking/k").body("x")).await.header("x-amz-version-id").to_owned();
    assert_eq!(world.send(Ask::head("/locking/k")).await.header("x-amz-object-lock-mode"), "COMPLIANCE");
    let delete = Ask::delete(&format!("/locking/k?versionId={version}"));
    let refused = world.send(delete.header("x-amz-bypass-governance-retention", "true")).await;
    assert_eq!(refused.error(), "403 AccessDenied: Access Denied because object protected by object lock.");
    let suspended = world.send(Ask::put("/locking?versioning").body(SUSPENDED)).await;
    suspended.expect_error(StatusCode::CONFLICT, "InvalidBucketState");
    configure("lake", &rule("<Mode>COMPLIANCE</Mode><Days>2</Days>"))
        .await
        .expect_error(StatusCode::CONFLICT, "InvalidBucketState");
}

#[tokio::test]
async fn a_bucket_without_locks_takes_none() {
    let world = World::new().await;
    let put = || Ask::put("/lake/k").body("x");
    for ask in [
        put().header("x-amz-object-lock-legal-hold", "ON"),
        put()
            .header("x-amz-object-lock-mode", "COMPLIANCE")
            .header("x-amz-object-lock-retain-until-date", in_an_hour()),
        Ask::post("/lake/k?uploads").header("x-amz-object-lock-legal-hold", "ON"),
    ] {
        assert_eq!(world.send(ask).await.error(), "400 InvalidRequest: Bucket is missing ObjectLockConfiguration");
    }
    world.send(put()).await.expect_status(StatusCode::OK);
    for ask in [
        Ask::get("/lake/k?retention"),
        Ask::get("/lake/k?legal-hold"),
        Ask::put("/lake/k?legal-hold").body("<LegalHold><Status>ON</Status></LegalHold>"),
    ] {
        assert_eq!(world.send(ask).await.error(), "400 InvalidRequest: Bucket is missing Object Lock Configuration");
    }
    let none = world.send(Ask::get("/lake?object-lock")).await;
    none.expect_error(StatusCode::NOT_FOUND, "ObjectLockConfigurationNotFoundError");
    for (name, value) in [
        ("x-amz-object-lock-mode", "COMPLIANCE"),
        ("x-amz-object-lock-retain-until-date", "2099-01-01T00:00:00Z"),
        ("x-amz-object-lock-legal-hold", "MAYBE"),
    ] {
        world.send(put().header(name, value)).await.expect_error(StatusCode::BAD_REQUEST, "InvalidArgument");
    }
}

#[tokio::test]
async fn a_key_for_one_prefix_neither_sets_up_buckets_nor_locks() {
    let world = World::scoped("t/", Access::ReadWrite).await;
    for ask in [
        Ask::put("/lake?versioning").body(ENABLED),
        Ask::put("/lake?object-lock").body("<ObjectLockConfiguration/>"),
        Ask::get("/lake?object-lock"),
        Ask::put("/lake/t/k?legal-hold").body("<LegalHold><Status>ON</Status></LegalHold>"),
        Ask::put("/lake/u/k?tagging").body("<Tagging><TagSet/></Tagging>"),
        Ask::get("/lake/u/k?tagging"),
    ] {
        world.send(ask).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    }
    world.send(Ask::put("/lake/t/k").header("x-amz-tagging", "a=1").body("x")).await.expect_status(StatusCode::OK);
    world.send(Ask::get("/lake/t/k?tagging")).await.expect_status(StatusCode::OK);
}

#[tokio::test]
async fn a_lifecycle_is_set_told_and_removed() {
    let world = World::new().await;
    let none = || async {
        let told = world.send(Ask::get("/lake?lifecycle")).await;
        told.expect_error(StatusCode::NOT_FOUND, "NoSuchLifecycleConfiguration");
    };
    none().await;
    let document = "<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix>p/</Prefix></Filter><Status>Enabled</Status>\
                    <Expiration><Days>3</Days></Expiration></Rule></LifecycleConfiguration>";
    world.send(Ask::put("/lake?lifecycle").body(document)).await.expect_status(StatusCode::OK);
    let told = world.send(Ask::get("/lake?lifecycle")).await.document("LifecycleConfiguration");
    assert_eq!(texts(&told, "Rule/Expiration/Days"), ["3"]);
    let bad = world.send(Ask::put("/lake?lifecycle").body("<LifecycleConfiguration/>")).await;
    bad.expect_error(StatusCode::BAD_REQUEST, "MalformedXML");
    world.send(Ask::delete("/lake?lifecycle")).await.expect_status(StatusCode::NO_CONTENT);
    none().await;
    let missing = world.send(Ask::put("/nobucket?lifecycle").body(document)).await;
    missing.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
}
