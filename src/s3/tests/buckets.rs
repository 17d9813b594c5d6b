//! Buckets: making, finding, listing, removing.

use super::*;

#[tokio::test]
async fn a_bucket_is_made_once_found_and_removed_when_empty() {
    let world = World::new().await;
    let made = world.send(Ask::put("/new-one/")).await.expect_status(StatusCode::OK);
    assert_eq!(made.header("location"), "/new-one");
    world.send(Ask::put("/new-one")).await.expect_error(StatusCode::CONFLICT, "BucketAlreadyOwnedByYou");
    let head = world.send(Ask::head("/new-one")).await.expect_status(StatusCode::OK);
    assert_eq!(head.header("x-amz-bucket-region"), REGION);
    world.send(Ask::put("/new-one/k").body("x")).await.expect_status(StatusCode::OK);
    world.send(Ask::delete("/new-one")).await.expect_error(StatusCode::CONFLICT, "BucketNotEmpty");
    world.send(Ask::delete("/new-one/k")).await.expect_status(StatusCode::NO_CONTENT);
    world.send(Ask::delete("/new-one")).await.expect_status(StatusCode::NO_CONTENT);
    let gone = world.send(Ask::head("/new-one")).await.expect_status(StatusCode::NOT_FOUND);
    assert!(gone.body.is_empty());
    world.send(Ask::delete("/new-one")).await.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
}

#[tokio::test]
async fn a_bucket_is_made_here_and_as_asked_or_not_at_all() {
    let world = World::new().await;
    let configured = |body: &str| {
        let body = body.to_owned();
        world.send(Ask::put("/elsewhere").body(body))
    };
    for (body, code) in [
        (
            "<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>",
            "InvalidLocationConstraint",
        ),
        ("<Other/>", "MalformedXML"),
        ("<CreateBucketConfiguration>", "MalformedXML"),
    ] {
        configured(body).await.expect_error(StatusCode::BAD_REQUEST, code);
    }
    for (name, value, status, code) in [
        ("x-amz-acl", "public-read", 400, "AccessControlListNotSupported"),
        ("x-amz-object-ownership", "Nobody", 400, "InvalidArgument"),
    ] {
        let refused = world.send(Ask::put("/elsewhere").header(name, value)).await;
        refused.expect_error(StatusCode::from_u16(status).expect("a status"), code);
    }
    world.send(Ask::head("/elsewhere")).await.expect_status(StatusCode::NOT_FOUND);
    world.send(Ask::put("/Bad_Name")).await.expect_error(StatusCode::BAD_REQUEST, "InvalidBucketName");
    configured("<CreateBucketConfiguration xmlns=\"x\"><LocationConstraint/></CreateBucketConfiguration>")
        .await
        .expect_status(StatusCode::OK);
}

#[tokio::test]
async fn buckets_are_listed_in_order_and_by_pages() {
    let world = World::new().await;
    for name in ["/b-two", "/a-one", "/b-one"] {
        world.send(Ask::put(name)).await.expect_status(StatusCode::OK);
    }
    let world = &world;
    let list = |query: &str| {
        let target = format!("/{query}");
        async move { world.send(Ask::get(&target)).await.document("ListAllMyBucketsResult") }
    };
    let all = list("").await;
    assert_eq!(texts(&all, "Buckets/Bucket/Name"), ["a-one", "b-one", "b-two", "lake"]);
    assert_eq!(texts(&all, "Owner/ID"), [ACCESS_KEY]);
    let first = list("?prefix=b-&max-buckets=1").await;
    assert_eq!(texts(&first, "Buckets/Bucket/Name"), ["b-one"]);
    let token = first.child_text("ContinuationToken").expect("there is more");
    let second = list(&format!("?prefix=b-&max-buckets=1&continuation-token={token}")).await;
    assert_eq!(texts(&second, "Buckets/Bucket/Name"), ["b-two"]);
    assert_eq!(second.child_text("ContinuationToken"), None);
}

#[tokio::test]
async fn location_and_versioning_are_told() {
    let world = World::new().await;
    let location = world.send(Ask::get("/lake?location")).await.document("LocationConstraint");
    assert_eq!((location.text.as_str(), location.children.len()), ("", 0));
    let versioning = world.send(Ask::get("/lake?versioning")).await.document("VersioningConfiguration");
    assert!(versioning.children.is_empty());
    for query in ["location", "versioning", "uploads", "versions", "list-type=2"] {
        let missing = world.send(Ask::get(&format!("/nobucket?{query}"))).await;
        missing.expect_error(StatusCode::NOT_FOUND, "NoSuchBucket");
    }
}
