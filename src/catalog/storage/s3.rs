//! An S3 store outside this process: its objects, session keys from its STS, and the keys that sign for it.

use super::{Delegation, S3Profile};
use crate::{
    app::now_ms,
    auth::grants::Access,
    catalog::{Error, Result, credentials::Keys},
    s3::sigv4::{Payload, Signer, encode_component},
};
use http::{HeaderMap, HeaderValue, header};
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, S3ConditionalPut},
};
use quick_cache::sync::Cache;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::{fmt, sync::Arc, time::Duration};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

const SERVICE_STS: &str = "sts";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const STS_TIMEOUT: Duration = Duration::from_secs(10);
/// A request waits at most this long, tries included; its client has a limit too.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
const RETRIES_MAX: usize = 4;
/// Seconds a session lasts; what AWS and MinIO give without further ado.
const SESSION_S: u32 = 3_600;
/// A session is given to one client after another while it has at least this long to live. Milliseconds.
const SESSION_LEFT_MS_MIN: i64 = 30 * 60 * 1_000;
const SESSIONS_MAX: usize = 1_000;
/// AWS's bound on a session's name.
const SESSION_NAME_CHARS_MAX: usize = 64;
/// What access policies read as patterns or variables.
const PATTERNS: [char; 3] = ['*', '?', '$'];

/// See the module.
pub struct ExternalS3 {
    pub profile: S3Profile,
    secret: SecretString,
    http: reqwest::Client,
    sessions: Cache<SessionKey, Arc<Session>>,
}

/// One session for each principal: the store's own log tells them apart.
type SessionKey = (String, Access, String);

/// Keys that end by themselves.
#[derive(Debug)]
pub struct Session {
    pub access_key_id: String,
    pub secret_access_key: SecretString,
    pub session_token: SecretString,
    pub expires_at_ms: i64,
}

impl Session {
    pub fn keys(&self) -> Keys {
        Keys {
            access_key_id: self.access_key_id.clone(),
            secret_access_key: self.secret_access_key.clone(),
            session_token: Some(self.session_token.clone()),
            expires_at_ms: Some(self.expires_at_ms),
        }
    }
}

impl fmt::Debug for ExternalS3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalS3").field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// # Errors
/// `Error::Invalid` for what no request could be sent to.
pub(super) fn check(profile: &S3Profile) -> Result<()> {
    for endpoint in [&profile.endpoint, &profile.sts_endpoint].into_iter().flatten() {
        let url = reqwest::Url::parse(endpoint).ok();
        let is_plain = url.is_some_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.path() == "/"
                && url.query().is_none()
                && url.username().is_empty()
        });
        if !is_plain || endpoint.ends_with('/') {
            return Err(Error::Invalid(format!(
                "not an endpoint (http:// or https://, host and port only): {endpoint}"
            )));
        }
    }
    let words = [("region", &profile.region), ("access-key-id", &profile.access_key_id)];
    for (name, word) in words {
        if word.is_empty() || word.len() > 128 || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Invalid(format!("{name} must have 1 to 128 printable characters")));
        }
    }
    if profile.endpoint.is_none() && profile.role_arn.is_none() && profile.delegation == Delegation::SessionKeys {
        return Err(Error::Invalid("session-keys on AWS need a role-arn".to_owned()));
    }
    if !profile.path_style_access && profile.endpoint.is_some() {
        return Err(Error::Invalid("path-style-access can be false on AWS only".to_owned()));
    }
    Ok(())
}

impl ExternalS3 {
    pub(super) fn open(
        profile: S3Profile,
        secret: SecretString,
        bucket: &str,
    ) -> Result<(ExternalS3, Arc<dyn ObjectStore>)> {
        let options = ClientOptions::new()
            .with_allow_http(true)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_timeout(REQUEST_TIMEOUT);
        let retry =
            RetryConfig { backoff: BackoffConfig::default(), max_retries: RETRIES_MAX, retry_timeout: RETRY_TIMEOUT };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&profile.region)
            .with_access_key_id(&profile.access_key_id)
            .with_secret_access_key(secret.expose_secret())
            .with_virtual_hosted_style_request(!profile.path_style_access)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_client_options(options)
            .with_retry(retry);
        if let Some(endpoint) = &profile.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let objects = builder.build().map_err(|error| Error::Internal(Box::new(error)))?;
        let http = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).timeout(STS_TIMEOUT).build();
        let http = http.map_err(|error| Error::Internal(Box::new(error)))?;
        let external = ExternalS3 { profile, secret, http, sessions: Cache::new(SESSIONS_MAX) };
        Ok((external, Arc::new(objects)))
    }

    /// The store's own keys.
    pub fn static_keys(&self) -> (&str, &SecretString) {
        (&self.profile.access_key_id, &self.secret)
    }

    /// Where clients send their requests, as they sign it.
    pub fn address(&self) -> String {
        let region = &self.profile.region;
        self.profile.endpoint.clone().unwrap_or_else(|| format!("https://s3.{region}.amazonaws.com"))
    }

    fn sts_address(&self) -> String {
        let region = &self.profile.region;
        let address = self.profile.sts_endpoint.as_ref().or(self.profile.endpoint.as_ref());
        address.cloned().unwrap_or_else(|| format!("https://sts.{region}.amazonaws.com"))
    }

    /// Keys for `place` (`bucket/…/`, with the trailing slash) and nothing else, for `principal`.
    ///
    /// # Errors
    /// `Error::Forbidden` for a place that an access policy would read as a pattern; `Error::Unavailable`.
    pub async fn session(&self, place: &str, access: Access, principal: &str) -> Result<Arc<Session>> {
        if place.contains(PATTERNS) {
            return Err(Error::Forbidden(format!("no keys can be limited to a place with *, ? or $ in it: {place}")));
        }
        let key = (place.to_owned(), access, session_name(principal));
        if let Some(session) = self.sessions.get(&key)
            && session.expires_at_ms - now_ms() > SESSION_LEFT_MS_MIN
        {
            return Ok(session);
        }
        let session = self.assume_role(&key).await.map_err(Error::Unavailable)?;
        let session = Arc::new(session);
        self.sessions.insert(key, Arc::clone(&session));
        Ok(session)
    }

    /// `AssumeRole` of the STS API, version 2011-06-15.
    async fn assume_role(&self, (place, access, name): &SessionKey) -> Result<Session, crate::catalog::error::Source> {
        let mut form = vec![
            ("Action", "AssumeRole".to_owned()),
            ("Version", "2011-06-15".to_owned()),
            ("DurationSeconds", SESSION_S.to_string()),
            ("RoleSessionName", name.clone()),
            ("Policy", policy(place, *access)),
        ];
        // MinIO ignores the role, others want to see one.
        let role = self.profile.role_arn.as_deref().unwrap_or("arn:aws:iam::000000000000:role/tidewater");
        form.push(("RoleArn", role.to_owned()));
        let pairs = form.iter().map(|(name, value)| format!("{name}={}", encode_component(value.as_bytes())));
        let body = pairs.collect::<Vec<_>>().join("&");

        let address = self.sts_address();
        let host = address.split_once("://").map_or("", |(_, host)| host);
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host)?);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let signer = Signer {
            access_key_id: &self.profile.access_key_id,
            secret: self.secret.expose_secret(),
            security_token: None,
            region: &self.profile.region,
            service: SERVICE_STS,
        };
        signer.sign("POST", "/", "", &mut headers, &Payload::of_bytes(body.as_bytes()), now_ms())?;
        let answer = self.http.post(format!("{address}/")).headers(headers).body(body).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            let reason = quick_xml::de::from_str::<ErrorResponse>(&text).ok().map(|answer| answer.error);
            let reason = reason.map_or_else(String::new, |error| format!(": {} {}", error.code, error.message));
            return Err(format!("{address} answered {status}{reason}").into());
        }
        let answer: AssumeRoleResponse = quick_xml::de::from_str(&text)?;
        let credentials = answer.result.credentials;
        let expires = OffsetDateTime::parse(&credentials.expiration, &Rfc3339)?;
        Ok(Session {
            access_key_id: credentials.access_key_id,
            secret_access_key: credentials.secret_access_key.into(),
            session_token: credentials.session_token.into(),
            expires_at_ms: i64::try_from(expires.unix_timestamp_nanos() / 1_000_000)?,
        })
    }
}

/// What a principal's session is called, in the characters AWS takes.
fn session_name(principal: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "+=,.@-_".contains(c) { c } else { '-' };
    let name: String = principal.chars().map(plain).take(SESSION_NAME_CHARS_MAX).collect();
    format!("{name:-<2}")
}

/// What a session may do: the objects below `place`, and their listing. Metadata files are written by the catalog alone.
/// AWS takes at most 2,048 characters, so nothing is said that need not be.
fn policy(place: &str, access: Access) -> String {
    let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
    let objects = format!("arn:aws:s3:::{bucket}/{prefix}*");
    let actions: &[&str] = match access {
        Access::Read => &["s3:GetObject"],
        Access::ReadWrite => &[
            "s3:GetObject",
            "s3:PutObject",
            "s3:DeleteObject",
            "s3:AbortMultipartUpload",
            "s3:ListMultipartUploadParts",
        ],
    };
    let mut statements = vec![
        serde_json::json!({"Effect": "Allow", "Action": actions, "Resource": objects}),
        serde_json::json!({
            "Effect": "Allow", "Action": "s3:ListBucket", "Resource": format!("arn:aws:s3:::{bucket}"),
            "Condition": {"StringLike": {"s3:prefix": format!("{prefix}*")}},
        }),
    ];
    if access == Access::ReadWrite {
        let metadata = format!("arn:aws:s3:::{bucket}/{prefix}metadata/*.metadata.json");
        statements.push(serde_json::json!({"Effect": "Deny", "Action": "s3:PutObject", "Resource": metadata}));
    }
    serde_json::json!({"Version": "2012-10-17", "Statement": statements}).to_string()
}

#[derive(Deserialize)]
struct AssumeRoleResponse {
    #[serde(rename = "AssumeRoleResult")]
    result: AssumeRoleResult,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssumeRoleResult {
    credentials: Credentials,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Credentials {
    access_key_id: String,
    secret_access_key: String,
    session_token: String,
    expiration: String,
}

#[derive(Deserialize)]
struct ErrorResponse {
    #[serde(rename = "Error")]
    error: StsError,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StsError {
    code: String,
    message: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_session_reaches_one_place_and_writes_no_metadata() {
        expect![[r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject","s3:PutObject","s3:DeleteObject","s3:AbortMultipartUpload","s3:ListMultipartUploadParts"],"Resource":"arn:aws:s3:::lake/wh/t/*"},{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake","Condition":{"StringLike":{"s3:prefix":"wh/t/*"}}},{"Effect":"Deny","Action":"s3:PutObject","Resource":"arn:aws:s3:::lake/wh/t/metadata/*.metadata.json"}]}"#]]
            .assert_eq(&policy("lake/wh/t/", Access::ReadWrite));
        expect![[r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["s3:GetObject"],"Resource":"arn:aws:s3:::lake/wh/t/*"},{"Effect":"Allow","Action":"s3:ListBucket","Resource":"arn:aws:s3:::lake","Condition":{"StringLike":{"s3:prefix":"wh/t/*"}}}]}"#]]
            .assert_eq(&policy("lake/wh/t/", Access::Read));
    }

    #[test]
    fn names_of_sessions_are_what_sts_takes() {
        for (principal, name) in [("root", "root"), ("a b/ü", "a-b--"), ("", "--"), ("x", "x-")] {
            assert_eq!(session_name(principal), name);
        }
        assert_eq!(session_name(&"n".repeat(200)).len(), 64);
    }

    #[test]
    fn answers_of_sts_are_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
            <AssumedRoleUser><Arn></Arn><AssumeRoleId></AssumeRoleId></AssumedRoleUser>
            <Credentials><AccessKeyId>A</AccessKeyId><SecretAccessKey>S</SecretAccessKey>
            <Expiration>2026-12-01T13:00:00Z</Expiration><SessionToken>T</SessionToken></Credentials>
            </AssumeRoleResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></AssumeRoleResponse>"#;
        let answer: AssumeRoleResponse = quick_xml::de::from_str(text).unwrap();
        assert_eq!(answer.result.credentials.session_token, "T");
    }
}
