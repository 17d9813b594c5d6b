//! Access keys: create, list, delete.

use super::{
    BODY_BYTES_MAX, answered, authenticate,
    error::{Error, ErrorResponse},
    read,
};
use crate::{
    app::{App, now_ms},
    auth::{self, PRINCIPAL_CHARS_MAX, root_key},
};
use axum::{
    Json,
    body::Body,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use http::{HeaderMap, StatusCode, header};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CreateKeyRequest {
    /// Whom the key speaks for; shown in logs. 1 to 128 characters, not `root`.
    principal: String,
    /// Seconds until it stops working; without it, never.
    #[schema(minimum = 1)]
    lifetime_s: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CreateKeyResponse {
    access_key_id: String,
    /// Shown this once.
    secret_access_key: String,
    principal: String,
    expires_at_ms: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListKeysResponse {
    keys: Vec<KeyInfo>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KeyInfo {
    access_key_id: String,
    principal: String,
    created_at_ms: i64,
    expires_at_ms: Option<i64>,
}

impl From<auth::KeyInfo> for KeyInfo {
    fn from(key: auth::KeyInfo) -> Self {
        KeyInfo {
            access_key_id: key.id,
            principal: key.principal,
            created_at_ms: key.created_at_ms,
            expires_at_ms: key.expires_at_ms,
        }
    }
}

/// Make an access key: an OAuth2 client on the catalog and a SigV4 key on S3.
#[utoipa::path(
    post, path = "/api/v1/keys", operation_id = "createKey", tag = "Access keys", security(("bearer" = [])),
    request_body = CreateKeyRequest,
    responses(
        (status = 201, body = CreateKeyResponse),
        (status = 400, body = ErrorResponse),
    )
)]
pub async fn create_key(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("createKey", None, Err::<(), _>(error)),
    };
    let created = match read(body, BODY_BYTES_MAX).await {
        Ok(body) => create(&app, &body).await,
        Err(error) => Err(error),
    };
    answered("createKey", Some(&caller), created)
}

async fn create(
    app: &App,
    body: &[u8],
) -> Result<(StatusCode, [(header::HeaderName, &'static str); 1], Json<CreateKeyResponse>), Error> {
    let request: CreateKeyRequest =
        serde_json::from_slice(body).map_err(|error| Error::Invalid(format!("bad request body: {error}")))?;
    let principal = request.principal.trim();
    let length = principal.chars().count();
    if !(1..=PRINCIPAL_CHARS_MAX).contains(&length) || principal.chars().any(char::is_control) {
        return Err(Error::Invalid(format!(
            "principal must have 1 to {PRINCIPAL_CHARS_MAX} characters, none of them control characters"
        )));
    }
    if principal == root_key::PRINCIPAL {
        return Err(Error::Invalid("there is one root key, and the settings or the first start make it".to_owned()));
    }
    let now_ms = now_ms();
    let expires_at_ms = request.lifetime_s.map(|lifetime_s| expiry(now_ms, lifetime_s)).transpose()?;
    let key = app.auth.create_key(principal, expires_at_ms, now_ms).await?;
    let created = CreateKeyResponse {
        access_key_id: key.id,
        secret_access_key: key.secret.expose_secret().to_owned(),
        principal: principal.to_owned(),
        expires_at_ms,
    };
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(created)))
}

fn expiry(now_ms: i64, lifetime_s: u64) -> Result<i64, Error> {
    let lifetime_ms = lifetime_s.checked_mul(1000).and_then(|ms| i64::try_from(ms).ok()).filter(|ms| *ms > 0);
    let expires_at_ms = lifetime_ms.and_then(|ms| now_ms.checked_add(ms));
    expires_at_ms.ok_or_else(|| Error::Invalid("lifetime-s must be at least 1 and end within time".to_owned()))
}

/// List all access keys, without their secrets.
#[utoipa::path(
    get, path = "/api/v1/keys", operation_id = "listKeys", tag = "Access keys", security(("bearer" = [])),
    responses((status = 200, body = ListKeysResponse))
)]
pub async fn list_keys(State(app): State<App>, headers: HeaderMap) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("listKeys", None, Err::<(), _>(error)),
    };
    let listed = app.auth.list_keys().await.map_err(Error::from);
    let listed = listed.map(|keys| Json(ListKeysResponse { keys: keys.into_iter().map(KeyInfo::from).collect() }));
    answered("listKeys", Some(&caller), listed)
}

/// Delete an access key. What was issued or vended on it ends with it, on other replicas within seconds.
#[utoipa::path(
    delete, path = "/api/v1/keys/{access-key-id}", operation_id = "deleteKey", tag = "Access keys",
    security(("bearer" = [])),
    params(("access-key-id" = String, Path, description = "The key's id")),
    responses(
        (status = 204, description = "Deleted"),
        (status = 400, body = ErrorResponse),
        (status = 404, body = ErrorResponse),
        (status = 409, body = ErrorResponse, description = "It is the root key"),
    )
)]
pub async fn delete_key(
    State(app): State<App>,
    headers: HeaderMap,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    let caller = match authenticate(&app, &headers).await {
        Ok(caller) => caller,
        Err(error) => return answered("deleteKey", None, Err::<(), _>(error)),
    };
    answered("deleteKey", Some(&caller), delete(&app, id).await)
}

async fn delete(app: &App, id: Result<Path<String>, PathRejection>) -> Result<StatusCode, Error> {
    let Path(id) = id.map_err(|_| Error::Invalid("the access key id in the path is not UTF-8".to_owned()))?;
    // No key has such an id, and not every database can be asked for one.
    if id.chars().any(char::is_control) {
        return Err(Error::NoSuchKey(id));
    }
    match app.auth.delete_key(&id).await? {
        auth::Delete::Done => Ok(StatusCode::NO_CONTENT),
        auth::Delete::Missing => Err(Error::NoSuchKey(id)),
        auth::Delete::Root => Err(Error::RootKey),
    }
}
