//! Uploads by a browser's form.

use super::*;
use crate::s3::sigv4::{SigningKey, Timestamp};
use base64::{Engine, prelude::BASE64_STANDARD};

const SIZES: &str = r#"["content-length-range",2,10]"#;
const WITHIN: &str = r#"["starts-with","$key","in/"]"#;

/// A form signed for `conditions`, and for any value of the fields `covered`, with `fields` before its file.
fn form(conditions: &[&str], covered: &[&str], fields: &[(&str, &str)], file: &str) -> Ask {
    let now = Timestamp::from_ms(now_ms());
    let signing = ["x-amz-algorithm", "x-amz-credential", "x-amz-date"];
    let any = signing.iter().chain(covered).map(|name| format!(r#"["starts-with","${name}",""]"#));
    let conditions: Vec<String> = any.chain(conditions.iter().map(|condition| (*condition).to_owned())).collect();
    let policy = format!(r#"{{"expiration":"2100-01-01T00:00:00.000Z","conditions":[{}]}}"#, conditions.join(","));
    let policy = BASE64_STANDARD.encode(policy);
    let key = SigningKey::derive(SECRET, now.date(), REGION, SERVICE_S3);
    let signature = String::from_utf8(key.sign(policy.as_bytes()).to_vec()).expect("digits");
    let credential = format!("{ACCESS_KEY}/{}/{REGION}/s3/aws4_request", now.date());
    let signing = [
        ("x-amz-algorithm", "AWS4-HMAC-SHA256"),
        ("x-amz-credential", &credential),
        ("X-Amz-Date", now.as_str()),
        ("policy", &policy),
        ("x-amz-signature", &signature),
    ];
    unsigned_form(&[fields, &signing].concat(), file)
}

/// The same, with every field covered.
fn fitting_form(fields: &[(&str, &str)], file: &str) -> Ask {
    let covered: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    form(&[WITHIN, SIZES], &covered, fields, file)
}

fn unsigned_form(fields: &[(&str, &str)], file: &str) -> Ask {
    let part = |(name, value): &(&str, &str)| {
        format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let fields: String = fields.iter().map(part).collect();
    let body = format!(
        "{fields}--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a b.txt\"\r\n\r\n{file}\r\n--XX--\r\n"
    );
    Ask::post("/lake").header("content-type", "multipart/form-data; boundary=XX").body(body)
}

#[tokio::test]
async fn a_signed_form_is_an_upload() {
    let world = World::new().await;
    let fields = [("key", "in/${filename}"), ("Content-Type", "text/x"), ("x-amz-meta-a", "1")];
    let posted = world.send_anonymous(fitting_form(&fields, "hello")).await;
    let posted = posted.expect_status(StatusCode::NO_CONTENT);
    assert_eq!(posted.header("location"), "http://127.0.0.1:9000/lake/in/a%20b.txt");
    assert_eq!((posted.answered.operation, posted.answered.bytes_in), ("PostObject", 5));
    assert_eq!(posted.answered.principal.as_deref(), Some("tester"));
    let got = world.get("in/a%20b.txt").await;
    assert_eq!((&*got.body, got.header("content-type"), got.header("x-amz-meta-a")), (&b"hello"[..], "text/x", "1"));
    assert_eq!(got.header("etag"), posted.header("etag"));
}

#[tokio::test]
async fn a_form_says_how_its_browser_goes_on() {
    let world = World::new().await;
    let post = async |field: (&str, &str)| world.send_anonymous(fitting_form(&[("key", "in/k"), field], "hello")).await;
    let made = post(("success_action_status", "201")).await.expect_status(StatusCode::CREATED);
    let document = xml::parse(&made.body, "PostResponse").expect("a document");
    assert_eq!((document.child_text("Bucket"), document.child_text("Key")), (Some("lake"), Some("in/k")));
    post(("success_action_status", "200")).await.expect_status(StatusCode::OK);
    post(("success_action_status", "999")).await.expect_status(StatusCode::NO_CONTENT);
    let redirected = post(("success_action_redirect", "http://app.example/done?a=1")).await;
    let redirected = redirected.expect_status(StatusCode::SEE_OTHER);
    let expected = "http://app.example/done?a=1&bucket=lake&key=in%2Fk&etag=%225d41402abc4b2a76b9719d911017c592%22";
    assert_eq!(redirected.header("location"), expected);
    post(("success_action_redirect", "javascript:x")).await.expect_status(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_form_that_is_not_as_its_policy_says_stores_nothing() {
    let world = World::new().await;
    let out = world.send_anonymous(fitting_form(&[("key", "out/k")], "hello")).await;
    out.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    let extra = form(&[WITHIN], &[], &[("key", "in/k"), ("x-amz-meta-b", "1")], "hello");
    world.send_anonymous(extra).await.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    let post = async |crc: &str, file: &str| {
        world.send_anonymous(fitting_form(&[("key", "in/k"), ("x-amz-checksum-crc32", crc)], file)).await
    };
    post("AAAAAA==", "hello").await.expect_error(StatusCode::BAD_REQUEST, "BadDigest");
    let crc = "NhCmhg==";
    post(crc, "h").await.expect_error(StatusCode::BAD_REQUEST, "EntityTooSmall");
    post(crc, "hello hello hello").await.expect_error(StatusCode::BAD_REQUEST, "EntityTooLarge");
    world.get("in/k").await.expect_error(StatusCode::NOT_FOUND, "NoSuchKey");
    post(crc, "hello").await.expect_status(StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_form_must_be_signed_whole() {
    let world = World::new().await;
    let anonymous = world.send_anonymous(unsigned_form(&[("key", "in/k")], "hello")).await;
    anonymous.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
    let half = world.send_anonymous(unsigned_form(&[("key", "in/k"), ("policy", "e30=")], "hello")).await;
    half.expect_error(StatusCode::BAD_REQUEST, "InvalidArgument");
    let mut forged = fitting_form(&[("key", "in/k")], "hello");
    let text = String::from_utf8(forged.body.to_vec()).expect("text");
    forged.body = text.replace("name=\"policy\"\r\n\r\ney", "name=\"policy\"\r\n\r\neX").into();
    world.send_anonymous(forged).await.expect_error(StatusCode::FORBIDDEN, "SignatureDoesNotMatch");
    let json = Ask::post("/lake").header("content-type", "application/json").body("{}");
    world.send_anonymous(json).await.expect_error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
}

#[tokio::test]
async fn a_form_reaches_no_further_than_its_signer() {
    let world = World::scoped("t/1/", Access::ReadWrite).await;
    let within = world.send_anonymous(form(&[], &["key"], &[("key", "t/1/k")], "x")).await;
    within.expect_status(StatusCode::NO_CONTENT);
    let beyond = world.send_anonymous(form(&[], &["key"], &[("key", "t/2/k")], "x")).await;
    beyond.expect_error(StatusCode::FORBIDDEN, "AccessDenied");
}
