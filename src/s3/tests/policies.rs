//! Policies of buckets: kept, and what they let callers do.

use super::*;

fn policy(statements: &[(&str, &str, &str, &str)]) -> String {
    let statement = |(effect, principal, action, resource): &(&str, &str, &str, &str)| {
        format!(
            r#"{{"Effect":"{effect}","Principal":{principal},"Action":"{action}","Resource":"arn:aws:s3:::{resource}"}}"#
        )
    };
    let statements: Vec<String> = statements.iter().map(statement).collect();
    format!(r#"{{"Version":"2012-10-17","Statement":[{}]}}"#, statements.join(","))
}

impl World {
    async fn put_policy(&self, statements: &[(&str, &str, &str, &str)]) -> Reply {
        self.send(Ask::put("/lake?policy").body(policy(statements))).await
    }
}

const ANYBODY: &str = r#""*""#;

#[tokio::test]
async fn a_policy_is_shown_as_it_was_put_and_says_whether_it_is_public() {
    let world = World::new().await;
    for target in ["/lake?policy", "/lake?policyStatus"] {
        world.send(Ask::get(target)).await.expect_error(StatusCode::NOT_FOUND, "NoSuchBucketPolicy");
    }
    let statements = [("Allow", r#"{"AWS":"tester"}"#, "s3:GetObject", "lake/*")];
    world.put_policy(&statements).await.expect_status(StatusCode::NO_CONTENT);
    let shown = world.send(Ask::get("/lake?policy")).await.expect_status(StatusCode::OK);
    assert_eq!((shown.header("content-type"), &*shown.body), ("application/json", policy(&statements).as_bytes()));
    let status = async || {
        let reply = world.send(Ask::get("/lake?policyStatus")).await;
        reply.document("PolicyStatus").child_text("IsPublic").map(str::to_owned)
    };
    assert_eq!(status().await.as_deref(), Some("false"));
    world.put_policy(&[("Allow", ANYBODY, "s3:GetObject", "lake/*")]).await.expect_status(StatusCode::NO_CONTENT);
    assert_eq!(status().await.as_deref(), Some("true"));
    for bad in [
        ("Allow", r#""stranger""#, "s3:GetObject", "lake/*"),
        ("Allow", ANYBODY, "s3:GetObject", "other/*"),
        ("Allow", ANYBODY, "s3:Nothing", "lake/*"),
    ] {
        world.put_policy(&[bad]).await.expect_error(StatusCode::BAD_REQUEST, "MalformedPolicy");
    }
    assert_eq!(status().await.as_deref(), Some("true"));
    world.send(Ask::delete("/lake?policy")).await.expect_status(StatusCode::NO_CONTENT);
    world.send(Ask::get("/lake?policy")).await.expect_error(StatusCode::NOT_FOUND, "NoSuchBucketPolicy");
}

#[tokio::test]
async fn without_a_key_only_what_a_policy_allows_everybody() {
    let world = World::new().await;
    world.put("open/k", "hello").await;
    world.put("k", "secret").await;
    let refused = async |ask: Ask| {
        let target = format!("{} {}", ask.method, ask.target);
        assert_eq!(world.send_anonymous(ask).await.error(), "403 AccessDenied: Access Denied.", "{target}");
    };
    refused(Ask::get("/lake/open/k")).await;
    world
        .put_policy(&[
            ("Allow", ANYBODY, "s3:GetObject", "lake/open/*"),
            ("Allow", ANYBODY, "s3:PutObject", "lake/drop/*"),
            ("Allow", ANYBODY, "s3:*", "lake"),
        ])
        .await
        .expect_status(StatusCode::NO_CONTENT);
    assert_eq!(world.send_anonymous(Ask::get("/lake/open/k")).await.body, "hello");
    let put = world.send_anonymous(Ask::put("/lake/drop/k").body("x")).await.expect_status(StatusCode::OK);
    assert_eq!(put.answered.principal, None);
    world.send_anonymous(Ask::get("/lake?list-type=2")).await.expect_status(StatusCode::OK);
    let dressed = world.send_anonymous(Ask::get("/lake/open/k?response-content-type=a/b")).await;
    dressed.expect_error(StatusCode::BAD_REQUEST, "InvalidRequest");
    refused(Ask::get("/lake/k")).await;
    refused(Ask::put("/lake/open/k").body("x")).await;
    refused(Ask::delete("/lake/open/k")).await;
    refused(Ask::put("/lake/drop/c").header("x-amz-copy-source", "lake/k")).await;
    refused(Ask::get("/")).await;
    refused(Ask::put("/lake?policy").body("{}")).await;
    refused(Ask::delete("/lake?policy")).await;
    refused(Ask::put("/lake?cors").body("<CORSConfiguration/>")).await;
    refused(Ask::put("/other")).await;
    refused(Ask::get("/lake?inventory")).await;
    let document = "<Delete><Object><Key>k</Key></Object></Delete>";
    refused(Ask::post("/lake?delete").header("content-md5", md5_base64(document.as_bytes())).body(document)).await;
}

#[tokio::test]
async fn a_denial_counts_for_every_key_but_the_root_key() {
    let deny = [("Deny", ANYBODY, "s3:DeleteObject", "lake/kept/*"), ("Deny", ANYBODY, "s3:PutBucketPolicy", "lake")];
    let user = World::user().await;
    user.put("kept/k", "x").await;
    user.put("k", "x").await;
    user.put_policy(&deny).await.expect_status(StatusCode::NO_CONTENT);
    user.send(Ask::delete("/lake/kept/k")).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    user.send(Ask::delete("/lake/k")).await.expect_status(StatusCode::NO_CONTENT);
    user.put_policy(&[]).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    let document = "<Delete><Object><Key>kept/k</Key></Object><Object><Key>l</Key></Object></Delete>";
    let some = Ask::post("/lake?delete").header("content-md5", md5_base64(document.as_bytes())).body(document);
    assert_eq!(texts(&user.send(some).await.document("DeleteResult"), "Error/Key"), ["kept/k"]);

    let root = World::new().await;
    root.put("kept/k", "x").await;
    root.put_policy(&deny).await.expect_status(StatusCode::NO_CONTENT);
    root.send(Ask::delete("/lake/kept/k")).await.expect_status(StatusCode::NO_CONTENT);
    root.send(Ask::delete("/lake?policy")).await.expect_status(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_policy_gives_a_vended_key_nothing() {
    let world = World::scoped("t/1/", Access::ReadWrite).await;
    let bucket = crate::store::BucketName::parse(BUCKET).expect("a valid name");
    let everything = policy(&[("Allow", ANYBODY, "s3:*", "lake/*")]);
    let name = crate::store::SettingName::Policy;
    world.front.store.put_setting(&bucket, name, everything).await.expect("the bucket is there");
    world.put("t/1/k", "x").await;
    world.get("t/2/k").await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
}

#[tokio::test]
async fn public_access_can_be_kept_out_whatever_a_policy_says() {
    let world = World::new().await;
    world.put("k", "x").await;
    let block = |flag: &str| {
        let document =
            format!("<PublicAccessBlockConfiguration><{flag}>true</{flag}></PublicAccessBlockConfiguration>");
        world.send(Ask::put("/lake?publicAccessBlock").body(document))
    };
    let public = [("Allow", ANYBODY, "s3:GetObject", "lake/*")];
    block("BlockPublicPolicy").await.expect_status(StatusCode::OK);
    world.put_policy(&public).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    world.send(Ask::delete("/lake?publicAccessBlock")).await.expect_status(StatusCode::NO_CONTENT);
    world.put_policy(&public).await.expect_status(StatusCode::NO_CONTENT);
    world.send_anonymous(Ask::get("/lake/k")).await.expect_status(StatusCode::OK);
    block("RestrictPublicBuckets").await.expect_status(StatusCode::OK);
    world.send_anonymous(Ask::get("/lake/k")).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
}

#[tokio::test]
async fn a_session_s_policy_narrows_what_its_key_may() {
    use crate::auth::policy::{Place, Policy};
    let document = br#"{"Statement":[{"Effect":"Allow","Action":["s3:GetObject","s3:PutObject"],"Resource":"arn:aws:s3:::lake/in/*"},
        {"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake","Condition":{"StringLike":{"s3:prefix":"in/*"}}}]}"#;
    let session = Policy::parse(document, Place::Session).expect("a valid policy");
    let world = World::with(Authority::Session(Arc::new(session)), Limits::default()).await;
    world.put("in/k", "x").await;
    assert_eq!(world.get("in/k").await.body, "x");
    world.send(Ask::get("/lake?list-type=2&prefix=in/")).await.expect_status(StatusCode::OK);
    for ask in [
        Ask::get("/lake/out/k"),
        Ask::put("/lake/out/k").body("x"),
        Ask::delete("/lake/in/k"),
        Ask::get("/lake?list-type=2"),
        Ask::get("/lake?list-type=2&prefix=out/"),
        Ask::get("/"),
        Ask::put("/other"),
        Ask::get("/lake?policy"),
        Ask::put("/lake/in/c").header("x-amz-copy-source", "lake/out/k"),
    ] {
        world.send(ask).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    }
}
