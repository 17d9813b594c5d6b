//! Session keys: made on the S3 listener, with their maker's rights or fewer, ended with its key.

use crate::{
    catalog::Answer,
    database::Database,
    s3::{BUCKET, REGION, S3, elements},
    server::Server,
};
use http::{HeaderMap, HeaderValue};
use reqwest::Method;
use tidewater::{
    app::now_ms,
    s3::sigv4::{Payload, Signer},
};

on_both_databases! {
    a_session_has_its_maker_s_rights_narrowed_by_its_policy,
    a_session_that_is_asked_for_wrongly_is_refused,
}

const ROLE: [(&str, &str); 4] = [
    ("Action", "AssumeRole"),
    ("Version", "2011-06-15"),
    ("RoleArn", "arn:aws:iam::123456789012:role/any"),
    ("RoleSessionName", "tester"),
];

/// Posts a form signed for the token service.
async fn ask(s3: &S3, parameters: &[(&str, &str)]) -> Answer {
    let form = parameters.iter().map(|(name, value)| {
        let encode = |text: &str| tidewater::s3::sigv4::encode_component(text.as_bytes());
        format!("{}={}", encode(name), encode(value))
    });
    let form = form.collect::<Vec<_>>().join("&");
    let mut headers = HeaderMap::new();
    let host = s3.url.trim_start_matches("http://");
    headers.insert("host", HeaderValue::from_str(host).expect("an address is a header value"));
    headers.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded"));
    let signer = Signer {
        access_key_id: &s3.access_key_id,
        secret: &s3.secret,
        security_token: s3.session_token.as_deref(),
        region: REGION,
        service: "sts",
    };
    let payload = Payload::of_bytes(form.as_bytes());
    signer.sign("POST", "/", "", &mut headers, &payload, now_ms()).expect("keys are header values");
    crate::catalog::send(s3.http.post(format!("{}/", s3.url)).headers(headers).body(form)).await
}

fn session(root: &S3, answer: &Answer) -> S3 {
    let xml = answer.text();
    assert_eq!(answer.status, 200, "{xml}");
    let text = |name| elements(&xml, name).next().unwrap_or_else(|| panic!("no {name} in {xml}")).to_owned();
    S3 {
        access_key_id: text("AccessKeyId"),
        secret: text("SecretAccessKey"),
        session_token: Some(text("SessionToken")),
        ..root.clone()
    }
}

async fn a_session_has_its_maker_s_rights_narrowed_by_its_policy(database: Database) {
    let server = Server::start(database).await;
    let root = S3::root(&server);
    assert_eq!(root.put(BUCKET, "in/k", "bytes").await.status, 200);
    let whole = session(&root, &ask(&root, &ROLE).await);
    assert_eq!(whole.get(BUCKET, "in/k").await.body, "bytes");
    assert_eq!(whole.delete(BUCKET, "other").await.status, 204);

    let policy = format!(
        r#"{{"Version":"2012-10-17","Statement":[{{"Effect":"Allow","Action":"s3:GetObject","Resource":"arn:aws:s3:::{BUCKET}/in/*"}}]}}"#
    );
    let asked = [&ROLE[..], &[("Policy", policy.as_str()), ("DurationSeconds", "900")]].concat();
    let narrowed = session(&root, &ask(&root, &asked).await);
    assert_eq!(narrowed.get(BUCKET, "in/k").await.body, "bytes");
    narrowed.put(BUCKET, "in/k", "other").await.s3_error(403, "AccessDenied");
    narrowed.get(BUCKET, "out/k").await.s3_error(403, "AccessDenied");
    narrowed.list(BUCKET, "").await.s3_error(403, "AccessDenied");
    let late = S3 { skew_ms: 901_000, ..narrowed.clone() };
    late.get(BUCKET, "in/k").await.s3_error(403, "RequestTimeTooSkewed");
    // Another secret, another token: neither is worth anything alone.
    let mixed = S3 { session_token: whole.session_token.clone(), ..narrowed.clone() };
    mixed.get(BUCKET, "in/k").await.s3_error(400, "InvalidToken");
    let without = S3 { session_token: None, ..narrowed };
    without.get(BUCKET, "in/k").await.s3_error(403, "InvalidAccessKeyId");
}

async fn a_session_that_is_asked_for_wrongly_is_refused(database: Database) {
    let server = Server::start(database).await;
    let root = S3::root(&server);
    let with = |name: &'static str, value: &'static str| {
        let others = ROLE.into_iter().filter(move |(known, _)| *known != name);
        others.chain([(name, value)]).collect::<Vec<_>>()
    };
    for (parameters, status, code) in [
        (with("DurationSeconds", "899"), 400, "ValidationError"),
        (with("DurationSeconds", "43201"), 400, "ValidationError"),
        (with("RoleArn", "short"), 400, "ValidationError"),
        (with("RoleSessionName", "a b"), 400, "ValidationError"),
        (with("Policy", "{}"), 400, "MalformedPolicyDocument"),
        (with("Action", "GetFederationToken"), 400, "InvalidAction"),
        (with("Version", "2010-01-01"), 400, "InvalidAction"),
        (with("Action", "AssumeRoleWithWebIdentity"), 501, "NotImplemented"),
    ] {
        ask(&root, &parameters).await.s3_error(status, code);
    }
    let wrong = S3 { secret: "wrong".to_owned(), ..root.clone() };
    ask(&wrong, &ROLE).await.s3_error(403, "SignatureDoesNotMatch");
    let made = session(&root, &ask(&root, &ROLE).await);
    ask(&made, &ROLE).await.s3_error(403, "AccessDenied");
    let request = root.http.post(format!("{}/", root.url)).header("content-type", "application/x-www-form-urlencoded");
    crate::catalog::send(request.body("Action=AssumeRole&Version=2011-06-15"))
        .await
        .s3_error(403, "MissingAuthenticationToken");
    root.send(Method::POST, "/", &[], &[], "x").await.s3_error(405, "MethodNotAllowed");
}
