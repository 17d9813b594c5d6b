//! Errors as the Iceberg REST protocol writes them: one status and one type for each.

use crate::{
    catalog::{self, tables::Kind},
    telemetry::Chain,
};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request is not answered with what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
    #[error("no such route: {method} {path}")]
    NoRoute { method: Method, path: String },
    #[error("{path} does not take {method}")]
    WrongMethod { method: Method, path: String, allowed: Vec<&'static Method> },
    #[error("the request's body is larger than {bytes_max} bytes")]
    BodyTooLarge { bytes_max: usize },
    #[error("the request's body did not arrive in time")]
    BodyTooSlow,
    #[error("the request's body is encoded, which is not supported: {0}")]
    BodyEncoded(String),
    #[error("the request's body broke off")]
    BodyBroken,
}

impl From<crate::iceberg::Error> for Error {
    fn from(error: crate::iceberg::Error) -> Self {
        Error::Catalog(error.into())
    }
}

/// The wrapper that every client expects (`IcebergErrorResponse`).
#[derive(Serialize)]
struct Wrapper<'a> {
    error: Model<'a>,
}

#[derive(Serialize)]
struct Model<'a> {
    message: &'a str,
    r#type: &'a str,
    code: u16,
}

/// A refusal as it is kept.
#[derive(Serialize, Deserialize)]
struct Detail<'a> {
    message: Cow<'a, str>,
    r#type: Cow<'a, str>,
}

/// A refusal that was given before, once more.
pub fn again(status: u16, detail: Option<String>) -> Response {
    let detail = detail.as_deref().and_then(|detail| serde_json::from_str::<Detail<'_>>(detail).ok());
    let detail = detail.unwrap_or_else(|| Detail {
        message: "the request was refused before, for reasons too long to keep".into(),
        r#type: "BadRequestException".into(),
    });
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let error = Model { message: &detail.message, r#type: &detail.r#type, code: status.as_u16() };
    super::answer::json(status, &Wrapper { error })
}

impl Error {
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::Catalog(catalog::Error::Invalid(message.into()))
    }

    /// The status and the name of the exception that clients know it by.
    pub fn status(&self) -> (StatusCode, &'static str) {
        match self {
            Error::Catalog(error) => catalog_status(error),
            Error::NoRoute { .. } => (StatusCode::NOT_FOUND, "NotFoundException"),
            Error::WrongMethod { .. } => (StatusCode::METHOD_NOT_ALLOWED, "UnsupportedOperationException"),
            Error::BodyTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "BadRequestException"),
            Error::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, "BadRequestException"),
            Error::BodyEncoded(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "BadRequestException"),
            Error::BodyBroken => (StatusCode::BAD_REQUEST, "BadRequestException"),
        }
    }

    /// What [`again`] needs to give this answer once more. JSON.
    pub fn detail(&self) -> String {
        let detail = Detail { message: self.to_string().into(), r#type: self.status().1.into() };
        // Two strings always serialise.
        serde_json::to_string(&detail).unwrap_or_default()
    }

    /// Whether the client should simply send the same again, because nothing was done.
    fn may_retry(&self) -> bool {
        matches!(
            self,
            Error::Catalog(catalog::Error::Busy(_) | catalog::Error::Unavailable(_) | catalog::Error::AnsweredBefore)
        )
    }
}

/// The one place where an error of the catalog gets its status and the name of its exception, for our own API too.
pub fn catalog_status(error: &catalog::Error) -> (StatusCode, &'static str) {
    use catalog::Error;
    match error {
        Error::Unauthenticated => (StatusCode::UNAUTHORIZED, "NotAuthorizedException"),
        Error::Forbidden(_) => (StatusCode::FORBIDDEN, "ForbiddenException"),
        Error::NoSuchWarehouse(_) => (StatusCode::NOT_FOUND, "NoSuchWarehouseException"),
        Error::NoSuchNamespace(_) => (StatusCode::NOT_FOUND, "NoSuchNamespaceException"),
        Error::NoSuchView(_) => (StatusCode::NOT_FOUND, "NoSuchViewException"),
        Error::NoSuchTable(_) => (StatusCode::NOT_FOUND, "NoSuchTableException"),
        Error::NoSuchFunction(_) => (StatusCode::NOT_FOUND, "NoSuchFunctionException"),
        Error::MetadataMissing(_) => (StatusCode::NOT_FOUND, "NotFoundException"),
        Error::WarehouseNotEmpty(_) => (StatusCode::CONFLICT, "WarehouseNotEmptyException"),
        Error::WarehouseExists(_)
        | Error::NamespaceExists(_)
        | Error::FunctionTaken(_)
        | Error::NameTaken { kind: Kind::Table | Kind::View, .. }
        | Error::RenameTaken { kind: Kind::Table | Kind::View, .. } => (StatusCode::CONFLICT, "AlreadyExistsException"),
        Error::NamespaceNotEmpty(_) => (StatusCode::CONFLICT, "NamespaceNotEmptyException"),
        Error::Invalid(_) => (StatusCode::BAD_REQUEST, "BadRequestException"),
        Error::IllegalArgument(_) => (StatusCode::BAD_REQUEST, "IllegalArgumentException"),
        Error::KeysOverlap(_) => (StatusCode::UNPROCESSABLE_ENTITY, "UnprocessableEntityException"),
        Error::CommitFailed(_) => (StatusCode::CONFLICT, "CommitFailedException"),
        Error::KeyReused(_) => (StatusCode::UNPROCESSABLE_ENTITY, "UnprocessableEntityException"),
        // Answered again by whoever sees it; should nobody, the client may ask once more.
        Error::AnsweredBefore => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailableException"),
        Error::CommitStateUnknown(_) | Error::TransactionStateUnknown(_) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "CommitStateUnknownException")
        }
        Error::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "SlowDownException"),
        Error::StorageFull | Error::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailableException"),
        Error::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let (status, kind) = self.status();
        let message = self.to_string();
        if status.is_server_error() {
            tracing::error!(%status, error = %Chain(&self), "request failed");
        }
        let body = Wrapper { error: Model { message: &message, r#type: kind, code: status.as_u16() } };
        let mut response = super::answer::json(status, &body);
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.may_retry() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if let Error::WrongMethod { allowed, .. } = &self {
            let allowed: Vec<&str> = allowed.iter().map(|method| method.as_str()).collect();
            headers.extend(HeaderValue::from_str(&allowed.join(", ")).map(|value| (header::ALLOW, value)));
        }
        response
    }
}

/// The answer to a HEAD request: the same without a body.
pub fn without_body(response: Response) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::empty())
}
