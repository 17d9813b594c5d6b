use super::*;
use base64::{Engine, engine::general_purpose::STANDARD};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const EXCHANGE: &str = "grant_type=urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

async fn token(server: &Server, headers: &[(&str, &str)], form: &str) -> Reply {
    let mut request = http::Request::builder().method("POST").uri("/v1/oauth/tokens");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let reply = server.raw(request.body(Body::from(form.to_owned())).unwrap()).await;
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    reply
}

fn basic(text: &str) -> String {
    format!("Basic {}", STANDARD.encode(text))
}

/// An OAuth error as `status error`.
fn refusal(reply: &Reply) -> String {
    assert!(reply.body["error_description"].is_string());
    assert_eq!(reply.body.as_object().unwrap().len(), 2);
    format!("{} {}", reply.status.as_u16(), reply.body["error"].as_str().unwrap())
}

async fn works(server: &Server, reply: Reply) {
    let body = reply.expect(200);
    assert_eq!(body["token_type"], "bearer");
    assert_eq!(body["issued_token_type"], ACCESS_TOKEN);
    assert!(body["expires_in"].is_u64());
    let request = http::Request::get("/v1/config")
        .header("authorization", format!("bearer {}", body["access_token"].as_str().unwrap()));
    server.raw(request.body(Body::empty()).unwrap()).await.expect(200);
}

async fn client_credentials_come_by_form_or_by_header(db: Db) {
    let server = Server::start(db).await;
    let form = "grant_type=client_credentials&client_id=AKIATEST&client_secret=s3cret%3Awith%2Bodd%25characters";
    let reply = token(&server, &[FORM], &format!("{form}&scope=catalog")).await;
    assert_eq!(reply.body["scope"], "catalog");
    works(&server, reply).await;
    works(&server, token(&server, &[], form).await).await;

    let raw = basic(&format!("{KEY}:{SECRET}"));
    let encoded = basic("AKIATEST:s3cret%3Awith%2Bodd%25characters");
    for header in [raw.as_str(), &encoded, raw.trim_end_matches('=')] {
        let reply = token(&server, &[FORM, ("authorization", header)], "grant_type=client_credentials").await;
        assert_eq!(reply.body["scope"], "catalog");
        works(&server, reply).await;
    }
    let duckdb = "grant_type=client_credentials&scope=PRINCIPAL_ROLE:ALL";
    works(&server, token(&server, &[FORM, ("authorization", &raw)], duckdb).await).await;
    let trino = [FORM, ("authorization", "Bearer an.old.one")];
    works(&server, token(&server, &trino, form).await).await;
}

async fn a_valid_token_is_exchanged_and_an_expired_one_with_credentials(db: Db) {
    let server = Server::start(db).await;
    let old = &server.token;
    let form = format!("{EXCHANGE}&subject_token={old}&subject_token_type={ACCESS_TOKEN}&scope=catalog");
    let header = format!("Bearer {old}");
    works(&server, token(&server, &[FORM, ("authorization", &header)], &form).await).await;

    let expired = form.replace(old.as_str(), "an.expired.token");
    assert_eq!(refusal(&token(&server, &[FORM], &expired).await), "400 invalid_grant");
    let raw = basic(&format!("{KEY}:{SECRET}"));
    works(&server, token(&server, &[FORM, ("authorization", &raw)], &expired).await).await;
}

async fn refusals_have_the_shape_of_oauth(db: Db) {
    let server = Server::start(db).await;
    let wrong = "grant_type=client_credentials&client_id=AKIATEST&client_secret=x";
    let right = "grant_type=client_credentials&client_id=AKIATEST&client_secret=s3cret%3Awith%2Bodd%25characters";
    let json = ("content-type", "application/json");
    let basic_wrong = basic("AKIATEST:nope");
    let basic_odd = basic("no colon");
    for (headers, form, expected) in [
        (vec![FORM], wrong.to_owned(), "401 invalid_client"),
        (vec![FORM], "grant_type=client_credentials".to_owned(), "401 invalid_client"),
        (vec![FORM], "grant_type=client_credentials&client_id=nobody&client_secret=x".to_owned(), "401 invalid_client"),
        (vec![FORM, ("authorization", &basic_wrong)], right.to_owned(), "401 invalid_client"),
        (vec![FORM, ("authorization", &basic_odd)], right.to_owned(), "401 invalid_client"),
        (vec![json], "{\"grant_type\":\"client_credentials\"}".to_owned(), "400 invalid_request"),
        (vec![FORM], "grant_type=password".to_owned(), "400 unsupported_grant_type"),
        (vec![FORM], String::new(), "400 invalid_request"),
        (vec![FORM], format!("{right}&scope=everything"), "400 invalid_scope"),
        (vec![FORM], EXCHANGE.to_owned(), "400 invalid_request"),
        (vec![FORM], format!("{EXCHANGE}&subject_token=x&subject_token_type=urn:x"), "400 invalid_request"),
        (vec![FORM], format!("grant_type={}", "x".repeat(100_000)), "413 invalid_request"),
    ] {
        let reply = token(&server, &headers, &form).await;
        assert_eq!(refusal(&reply), expected, "{}", &form[..form.len().min(80)]);
        assert_eq!(reply.header("www-authenticate").is_some(), reply.status == 401);
        assert!(!reply.body.to_string().contains("s3cret"));
    }
}

on_both! {
    client_credentials_come_by_form_or_by_header,
    a_valid_token_is_exchanged_and_an_expired_one_with_credentials,
    refusals_have_the_shape_of_oauth,
}
