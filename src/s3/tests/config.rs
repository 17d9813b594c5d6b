//! What buckets are configured with, and browsers of other origins.

use super::*;

const CORS: &str = "<CORSConfiguration><CORSRule><AllowedOrigin>http://app.example</AllowedOrigin>\
    <AllowedMethod>GET</AllowedMethod><AllowedHeader>x-amz-*</AllowedHeader><ExposeHeader>ETag</ExposeHeader>\
    </CORSRule></CORSConfiguration>";

async fn preflight(world: &World, bucket: &str, origin: &str, method: &str) -> Reply {
    let request = Request::options(format!("/{bucket}/k"))
        .header("host", HOST)
        .header("origin", origin)
        .header("access-control-request-method", method)
        .body(Bytes::new());
    world.send_raw(request.expect("a request")).await
}

#[tokio::test]
async fn a_bucket_s_rules_answer_browsers_of_other_origins() {
    let world = World::new().await;
    world.put("k", "hello").await;
    let asking = || Ask::get("/lake/k").header("origin", "http://app.example");
    assert_eq!(world.send(asking()).await.header("access-control-allow-origin"), "");
    let refused = preflight(&world, "lake", "http://app.example", "GET").await;
    assert_eq!(refused.error(), "403 AccessForbidden: CORSResponse: CORS is not enabled for this bucket.");

    world.send(Ask::put("/lake?cors").body(CORS)).await.expect_status(StatusCode::OK);
    let shown = world.send(Ask::get("/lake?cors")).await.document("CORSConfiguration");
    assert_eq!(texts(&shown, "CORSRule/AllowedOrigin"), ["http://app.example"]);
    let granted = preflight(&world, "lake", "http://app.example", "GET").await.expect_status(StatusCode::OK);
    assert_eq!(granted.header("access-control-allow-origin"), "http://app.example");
    let refused = preflight(&world, "lake", "http://other.example", "GET").await;
    refused.expect_error(StatusCode::FORBIDDEN, "AccessForbidden");
    preflight(&world, "nobucket", "http://x", "GET").await.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");

    let got = world.send(asking()).await.expect_status(StatusCode::OK);
    assert_eq!((&*got.body, got.header("access-control-expose-headers")), (&b"hello"[..], "ETag"));
    // An error is for the browser's page to see, too.
    let missing = Ask::get("/lake/none").header("origin", "http://app.example");
    let missing = world.send(missing).await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    assert_eq!(missing.header("access-control-allow-origin"), "http://app.example");
    let other = world.send(Ask::get("/lake/k").header("origin", "http://other.example")).await;
    assert_eq!((other.status, other.header("access-control-allow-origin")), (StatusCode::OK, ""));

    world.send(Ask::delete("/lake?cors")).await.expect_status(StatusCode::NO_CONTENT);
    world.send(Ask::get("/lake?cors")).await.expect_error(StatusCode::NOT_FOUND, "NoSuchCORSConfiguration");
}

#[tokio::test]
async fn a_setting_that_is_not_valid_changes_nothing() {
    let world = World::new().await;
    world.send(Ask::put("/lake?cors").body(CORS)).await.expect_status(StatusCode::OK);
    for (target, document) in [
        ("/lake?cors", "<CORSConfiguration/>"),
        ("/lake?tagging", "<Tagging/>"),
        ("/lake?ownershipControls", "<OwnershipControls><Rule/></OwnershipControls>"),
        (
            "/lake?publicAccessBlock",
            "<PublicAccessBlockConfiguration><BlockPublicAcls>x</BlockPublicAcls></PublicAccessBlockConfiguration>",
        ),
    ] {
        let refused = world.send(Ask::put(target).body(document)).await;
        refused.expect_error(StatusCode::BAD_REQUEST, "MalformedXML");
    }
    let altered = Ask::put("/lake?cors").header("content-md5", md5_base64(b"other")).body(CORS);
    world.send(altered).await.expect_error(StatusCode::BAD_REQUEST, "BadDigest");
    world.send(Ask::get("/lake?cors")).await.expect_status(StatusCode::OK);
    world.send(Ask::put("/nobucket?cors").body(CORS)).await.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
}

#[tokio::test]
async fn tags_of_a_bucket_are_kept_and_can_come_with_it() {
    let world = World::new().await;
    world.send(Ask::get("/lake?tagging")).await.expect_error(StatusCode::NOT_FOUND, "NoSuchTagSet");
    let tags = "<Tagging><TagSet><Tag><Key>team</Key><Value>a b</Value></Tag></TagSet></Tagging>";
    world.send(Ask::put("/lake?tagging").body(tags)).await.expect_status(StatusCode::NO_CONTENT);
    let shown = world.send(Ask::get("/lake?tagging")).await.document("Tagging");
    assert_eq!(texts(&shown, "TagSet/Tag/Value"), ["a b"]);
    world.send(Ask::delete("/lake?tagging")).await.expect_status(StatusCode::NO_CONTENT);
    world.send(Ask::get("/lake?tagging")).await.expect_error(StatusCode::NOT_FOUND, "NoSuchTagSet");
    let made =
        "<CreateBucketConfiguration><Tags><Tag><Key>k</Key><Value>v</Value></Tag></Tags></CreateBucketConfiguration>";
    world.send(Ask::put("/made").body(made)).await.expect_status(StatusCode::OK);
    assert_eq!(texts(&world.send(Ask::get("/made?tagging")).await.document("Tagging"), "TagSet/Tag/Key"), ["k"]);
}

#[tokio::test]
async fn who_owns_objects_is_the_bucket_s_owner_until_it_is_set() {
    let world = World::new().await;
    let shown = async || {
        let reply = world.send(Ask::get("/lake?ownershipControls")).await;
        reply
            .document("OwnershipControls")
            .child("Rule")
            .and_then(|rule| rule.child_text("ObjectOwnership").map(str::to_owned))
    };
    assert_eq!(shown().await.as_deref(), Some("BucketOwnerEnforced"));
    let document =
        "<OwnershipControls><Rule><ObjectOwnership>ObjectWriter</ObjectOwnership></Rule></OwnershipControls>";
    world.send(Ask::put("/lake?ownershipControls").body(document)).await.expect_status(StatusCode::OK);
    assert_eq!(shown().await.as_deref(), Some("ObjectWriter"));
    world.send(Ask::delete("/lake?ownershipControls")).await.expect_status(StatusCode::NO_CONTENT);
    let gone = world.send(Ask::get("/lake?ownershipControls")).await;
    gone.expect_error(StatusCode::NOT_FOUND, "OwnershipControlsNotFoundError");
    let acl =
        Ask::put("/made").header("x-amz-object-ownership", "BucketOwnerEnforced").header("x-amz-acl", "public-read");
    world.send(acl).await.expect_error(StatusCode::BAD_REQUEST, "InvalidBucketAclWithObjectOwnership");
}

#[tokio::test]
async fn what_cannot_be_set_answers_as_a_bucket_that_never_was() {
    let world = World::new().await;
    for (target, code) in [
        ("/lake?encryption", "ServerSideEncryptionConfigurationNotFoundError"),
        ("/lake?replication", "ReplicationConfigurationNotFoundError"),
        ("/lake?website", "NoSuchWebsiteConfiguration"),
        ("/lake?publicAccessBlock", "NoSuchPublicAccessBlockConfiguration"),
    ] {
        world.send(Ask::get(target)).await.expect_error(StatusCode::NOT_FOUND, code);
    }
    for (target, root) in [
        ("/lake?logging", "BucketLoggingStatus"),
        ("/lake?notification", "NotificationConfiguration"),
        ("/lake?accelerate", "AccelerateConfiguration"),
        ("/lake?requestPayment", "RequestPaymentConfiguration"),
        ("/lake?acl", "AccessControlPolicy"),
    ] {
        world.send(Ask::get(target)).await.document(root);
    }
    for target in ["/lake?encryption", "/lake?replication", "/lake?website", "/lake?logging", "/lake?notification"] {
        world.send(Ask::put(target).body("<x/>")).await.expect_error(StatusCode::NOT_IMPLEMENTED, "NotImplemented");
    }
}

#[tokio::test]
async fn only_a_list_that_grants_nothing_new_is_taken() {
    let world = World::new().await;
    let shown = world.send(Ask::get("/lake?acl")).await;
    shown.document("AccessControlPolicy");
    world.send(Ask::put("/lake?acl").body(shown.body)).await.expect_status(StatusCode::OK);
    world.send(Ask::put("/lake?acl").header("x-amz-acl", "private")).await.expect_status(StatusCode::OK);
    let public = world.send(Ask::put("/lake?acl").header("x-amz-acl", "public-read")).await;
    public.expect_error(StatusCode::BAD_REQUEST, "AccessControlListNotSupported");
    let grant = "<Grant><Grantee><ID>other</ID></Grantee><Permission>READ</Permission></Grant>";
    let document = format!("<AccessControlPolicy><AccessControlList>{grant}</AccessControlList></AccessControlPolicy>");
    let other = world.send(Ask::put("/lake?acl").body(document)).await;
    other.expect_error(StatusCode::BAD_REQUEST, "AccessControlListNotSupported");
}

#[tokio::test]
async fn a_vended_key_configures_nothing() {
    let world = World::scoped("t/1/", Access::ReadWrite).await;
    for ask in
        [Ask::get("/lake?cors"), Ask::put("/lake?cors").body(CORS), Ask::delete("/lake?tagging"), Ask::get("/lake?acl")]
    {
        world.send(ask).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    }
}
