//! `POST /v1/oauth/tokens`: bearer tokens for access keys (RFC 6749 client credentials, RFC 8693 token exchange).
//!
//! Errors have OAuth's own shape (RFC 6749, section 5.2). An old `Bearer` header is ignored: clients send it along.

use super::{answer, body, error, path};
use crate::{
    app::{App, now_ms},
    auth,
    telemetry::Chain,
};
use axum::{body::Body, response::Response};
use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use utoipa::ToSchema;

/// Where tokens are asked for. Anyone may post here and take long over it, so these requests take no place among those
/// at work: only their small forms are waited for, and issuing takes next to nothing.
pub const PATH: &str = "/v1/oauth/tokens";

/// Forms are small, and anyone may send one. Bytes.
const FORM_BYTES_MAX: usize = 16 << 10;

const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT_TYPE: &str = "urn:ietf:params:oauth:token-type:jwt";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// Scopes that mean what every token may do anyway: the protocol's default, and DuckDB's.
const SCOPES: [&str; 2] = ["catalog", "PRINCIPAL_ROLE:ALL"];

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Serialize, ToSchema)]
pub struct OAuthToken<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: u64,
    issued_token_type: &'static str,
    scope: &'a str,
}

#[derive(Serialize, ToSchema)]
pub struct OAuthError<'a> {
    error: &'static str,
    error_description: &'a str,
}

/// Why there is no token.
#[derive(Debug)]
enum Refusal {
    InvalidRequest(String),
    InvalidClient,
    InvalidGrant,
    UnsupportedGrantType(String),
    InvalidScope(String),
    Unavailable(auth::Error),
    Body(error::Error),
}

/// An access key's id and secret, as the client gave them.
struct Credentials {
    id: String,
    secret: SecretString,
}

pub async fn get_token(app: &App, headers: &HeaderMap, body: Body) -> Response {
    let answered = match token(app, headers, body).await {
        Ok((token, scope)) => {
            let body = OAuthToken {
                access_token: token.access_token.expose_secret(),
                token_type: "bearer",
                expires_in: token.expires_in_s,
                issued_token_type: ACCESS_TOKEN_TYPE,
                scope: &scope,
            };
            answer::json(StatusCode::OK, &body)
        }
        Err(refusal) => refusal.answer(),
    };
    let (mut parts, body) = answered.into_parts();
    parts.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    parts.headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    Response::from_parts(parts, body)
}

async fn token(app: &App, headers: &HeaderMap, body: Body) -> Result<(auth::Token, String), Refusal> {
    let form = form(headers, body).await?;
    let grant_type = form.value("grant_type")?.ok_or_else(|| missing("grant_type"))?;
    let scope = scope(form.value("scope")?)?;
    let credentials = credentials(headers, &form)?;
    let token = match (grant_type.as_str(), credentials) {
        ("client_credentials", Some(credentials)) => issue(app, &credentials).await?,
        ("client_credentials", None) => return Err(Refusal::InvalidClient),
        // An exchange by a client that shows its own credentials: the old token may have expired.
        (TOKEN_EXCHANGE, Some(credentials)) => issue(app, &credentials).await?,
        (TOKEN_EXCHANGE, None) => exchange(app, &form).await?,
        _ => return Err(Refusal::UnsupportedGrantType(grant_type)),
    };
    Ok((token, scope))
}

/// The secret as sent, and where that is wrong, form-decoded as RFC 6749 (section 2.3.1) wants it to be encoded.
async fn issue(app: &App, credentials: &Credentials) -> Result<auth::Token, Refusal> {
    let Credentials { id, secret } = credentials;
    match app.auth.issue(id, secret, now_ms()).await {
        Ok(token) => return Ok(token),
        Err(auth::Error::Unauthenticated(_)) => {}
        Err(error) => return Err(Refusal::Unavailable(error)),
    }
    let decoded = path::decode(id).ok().zip(path::decode(secret.expose_secret()).ok());
    let Some((id, decoded)) = decoded.filter(|(_, decoded)| decoded != secret.expose_secret()) else {
        return Err(Refusal::InvalidClient);
    };
    app.auth.issue(&id, &decoded.into(), now_ms()).await.map_err(|error| match error {
        auth::Error::Unauthenticated(_) => Refusal::InvalidClient,
        error @ auth::Error::Database(_) => Refusal::Unavailable(error),
    })
}

async fn exchange(app: &App, form: &Form) -> Result<auth::Token, Refusal> {
    let subject = form.value("subject_token")?.ok_or_else(|| missing("subject_token"))?;
    for name in ["subject_token_type", "requested_token_type"] {
        match form.value(name)? {
            None if name == "subject_token_type" => return Err(missing(name)),
            Some(kind) if kind != ACCESS_TOKEN_TYPE && kind != JWT_TYPE => {
                return Err(Refusal::InvalidRequest(format!("{name} is not supported: {kind}")));
            }
            _ => {}
        }
    }
    app.auth.exchange(&subject, now_ms()).await.map_err(|error| match error {
        auth::Error::Unauthenticated(_) => Refusal::InvalidGrant,
        error @ auth::Error::Database(_) => Refusal::Unavailable(error),
    })
}

fn missing(name: &str) -> Refusal {
    Refusal::InvalidRequest(format!("{name} is missing"))
}

/// The scope to answer: what was asked for, or the protocol's default.
fn scope(asked: Option<String>) -> Result<String, Refusal> {
    let asked = asked.unwrap_or_default();
    let unknown = asked.split(' ').find(|scope| !scope.is_empty() && !SCOPES.contains(scope));
    match unknown {
        Some(unknown) => Err(Refusal::InvalidScope(format!("scope is not supported: {unknown}"))),
        None if asked.trim().is_empty() => Ok(SCOPES[0].to_owned()),
        None => Ok(asked),
    }
}

/// Id and secret from the Basic header, or else from the form.
fn credentials(headers: &HeaderMap, form: &Form) -> Result<Option<Credentials>, Refusal> {
    if let Some(encoded) = headers.get(header::AUTHORIZATION).and_then(basic) {
        let text = BASE64.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        // A secret may hold colons, an id may not.
        let pair = text.as_deref().and_then(|text| text.split_once(':'));
        let (id, secret) = pair.ok_or(Refusal::InvalidClient)?;
        return Ok(Some(Credentials { id: id.to_owned(), secret: secret.into() }));
    }
    let id = form.value("client_id")?;
    let secret = form.value("client_secret")?;
    Ok(id.zip(secret).map(|(id, secret)| Credentials { id, secret: secret.into() }))
}

/// What follows `Basic` in an `Authorization` header, if it is one.
fn basic(value: &HeaderValue) -> Option<&str> {
    let (scheme, rest) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("basic").then_some(rest.trim())
}

/// A form as it was sent.
struct Form(String);

impl Form {
    fn value(&self, name: &str) -> Result<Option<String>, Refusal> {
        let value = path::parameter(&self.0, name);
        value.map_err(|_| Refusal::InvalidRequest(format!("{name} is not UTF-8")))
    }
}

async fn form(headers: &HeaderMap, body: Body) -> Result<Form, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.is_empty() && !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(Refusal::InvalidRequest(format!("the body is {kind}, not a form")));
    }
    let bytes = body::read(headers, body, FORM_BYTES_MAX).await.map_err(Refusal::Body)?;
    let form = String::from_utf8(bytes.into());
    form.map(Form).map_err(|_| Refusal::InvalidRequest("the form is not UTF-8".to_owned()))
}

impl Refusal {
    fn answer(self) -> Response {
        let bad_request = StatusCode::BAD_REQUEST;
        let (status, error, description) = match self {
            Refusal::InvalidRequest(text) => (bad_request, "invalid_request", text),
            Refusal::UnsupportedGrantType(grant) => {
                (bad_request, "unsupported_grant_type", format!("grant_type is not supported: {grant}"))
            }
            Refusal::InvalidScope(text) => (bad_request, "invalid_scope", text),
            Refusal::InvalidGrant => (bad_request, "invalid_grant", "the subject token is not valid".to_owned()),
            Refusal::InvalidClient => {
                (StatusCode::UNAUTHORIZED, "invalid_client", "the client's credentials are not valid".to_owned())
            }
            Refusal::Body(error) => (error.status().0, "invalid_request", error.to_string()),
            Refusal::Unavailable(error) => {
                tracing::error!(error = %Chain(&error), "a token could not be issued");
                let text = "the server cannot check credentials at the moment".to_owned();
                (StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", text)
            }
        };
        let mut response = answer::json(status, &OAuthError { error, error_description: &description });
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Basic realm=\"tidewater\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
