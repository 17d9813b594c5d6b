//! The token endpoint, and what a request without a good token gets.

use crate::{
    catalog::{Answer, Catalog, send},
    database::Database,
    server::{ROOT_ID, ROOT_SECRET, Server, Setup, until},
};
use reqwest::Method;
use serde_json::json;

on_both_databases! {
    client_credentials_by_form_and_by_basic_header,
    wrong_credentials_get_oauths_own_error,
    good_token_is_exchanged_for_another,
    token_requests_that_make_no_sense_are_refused,
    every_route_but_the_open_ones_needs_a_token,
    bad_and_expired_tokens_get_the_same_answer,
}

const FORM: &[(&str, &str)] = &[
    ("grant_type", "client_credentials"),
    ("client_id", ROOT_ID),
    ("client_secret", ROOT_SECRET),
    ("scope", "catalog"),
];
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

async fn client_credentials_by_form_and_by_basic_header(database: Database) {
    let server = Server::start(database).await;
    let anonymous = Catalog::anonymous(&server);
    let by_form = anonymous.token(FORM).await;
    let basic = anonymous
        .request(Method::POST, "/v1/oauth/tokens")
        .basic_auth(ROOT_ID, Some(ROOT_SECRET))
        .form(&[("grant_type", "client_credentials"), ("scope", "PRINCIPAL_ROLE:ALL")]);
    for answer in [by_form, send(basic).await] {
        let token = answer.ok();
        assert_eq!(token["token_type"].as_str().map(str::to_lowercase).as_deref(), Some("bearer"), "{token}");
        assert!(token["expires_in"].as_u64().is_some_and(|seconds| seconds > 0), "{token}");
        assert_eq!(token["issued_token_type"], ACCESS_TOKEN);
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        anonymous.with_token(token["access_token"].as_str().unwrap()).get("/v1/namespaces").await.ok();
    }
    // Trino sends its old bearer along.
    let with_old = send(anonymous.with_token("stale").request(Method::POST, "/v1/oauth/tokens").form(FORM)).await;
    with_old.ok();
}

async fn wrong_credentials_get_oauths_own_error(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::anonymous(&server);
    let with = |id: &'static str, secret: &'static str| {
        [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)]
    };
    let wrong_secret = catalog.token(&with(ROOT_ID, "wrong")).await;
    let unknown_id = catalog.token(&with("NOBODY", ROOT_SECRET)).await;
    oauth_error(&wrong_secret, 401, "invalid_client");
    oauth_error(&unknown_id, 401, "invalid_client");
    assert_eq!(wrong_secret.body, unknown_id.body, "which of the two was wrong is not told");
}

async fn good_token_is_exchanged_for_another(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::login(&server).await;
    let exchange = |token: String| {
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange".to_owned()),
            ("scope", "catalog".to_owned()),
            ("subject_token", token),
            ("subject_token_type", ACCESS_TOKEN.to_owned()),
        ];
        send(catalog.request(Method::POST, "/v1/oauth/tokens").form(&form))
    };
    let fresh = exchange(catalog.bearer().to_owned()).await.ok();
    assert_eq!(fresh["issued_token_type"], ACCESS_TOKEN);
    catalog.with_token(fresh["access_token"].as_str().unwrap()).get("/v1/namespaces").await.ok();
    let refused = exchange("not-a-token".to_owned()).await;
    assert!(matches!(refused.status, 400 | 401), "{}", refused.text());
    assert!(refused.json()["error"].is_string(), "{}", refused.text());
}

async fn token_requests_that_make_no_sense_are_refused(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::anonymous(&server);
    oauth_error(&catalog.token(&[("grant_type", "password")]).await, 400, "unsupported_grant_type");
    oauth_error(&catalog.token(&[("client_id", ROOT_ID)]).await, 400, "invalid_request");
    oauth_error(&catalog.token(&[("grant_type", "client_credentials")]).await, 401, "invalid_client");
    let json = send(catalog.request(Method::POST, "/v1/oauth/tokens").json(&json!({"grant_type": "x"}))).await;
    oauth_error(&json, 400, "invalid_request");
}

async fn every_route_but_the_open_ones_needs_a_token(database: Database) {
    let server = Server::start(database).await;
    let catalog = Catalog::anonymous(&server);
    for (method, path) in [
        (Method::GET, "/v1/config?warehouse=lakehouse"),
        (Method::GET, "/v1/namespaces"),
        (Method::POST, "/v1/namespaces"),
        (Method::DELETE, "/v1/namespaces/ns"),
        (Method::GET, "/v1/namespaces/ns/tables"),
        (Method::POST, "/v1/namespaces/ns/tables"),
        (Method::GET, "/v1/namespaces/ns/tables/t"),
        (Method::POST, "/v1/namespaces/ns/tables/t"),
        (Method::POST, "/v1/tables/rename"),
        (Method::GET, "/v1/lakehouse/namespaces"),
    ] {
        send(catalog.request(method, path)).await.error(401, "NotAuthorizedException");
    }
    assert_eq!(catalog.head("/v1/namespaces/ns").await.status, 401);
}

async fn bad_and_expired_tokens_get_the_same_answer(database: Database) {
    let server = Setup::on(database).await.flag("token-lifetime-s", 1).start().await;
    let catalog = Catalog::login(&server).await;
    until(async || catalog.get("/v1/namespaces").await.status == 401).await;
    let expired = catalog.get("/v1/namespaces").await;
    let tampered = catalog.with_token(&format!("{}x", catalog.bearer())).get("/v1/namespaces").await;
    let garbage = catalog.with_token("None").get("/v1/namespaces").await;
    for answer in [&expired, &tampered, &garbage] {
        answer.error(401, "NotAuthorizedException");
        assert!(answer.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")));
        assert_eq!(answer.body, expired.body, "why is not told");
    }
}

/// OAuth's error body (RFC 6749, section 5.2), not the catalog's.
#[track_caller]
fn oauth_error(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.json()["error"], code, "{}", answer.text());
}
