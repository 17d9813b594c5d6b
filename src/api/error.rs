//! Errors of our API, in the Iceberg protocol's wrapper so that one client reads both.

use crate::{auth, catalog, rest::catalog_status, telemetry::Chain};
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

/// Why a request is not answered with what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("credential is missing or not valid")]
    Unauthenticated,
    #[error("this credential does not open the API")]
    Forbidden,
    #[error("{0}")]
    Invalid(String),
    #[error("the request's body is larger than {0} bytes")]
    BodyTooLarge(usize),
    #[error("the request's body did not arrive in time")]
    BodyTooSlow,
    #[error("access key does not exist: {0}")]
    NoSuchKey(String),
    #[error("the root access key cannot be deleted: set another one and restart")]
    RootKey,
    #[error("catalog database failed")]
    Database(#[source] sqlx::Error),
    #[error("report {report} cannot be read")]
    Unreadable {
        report: uuid::Uuid,
        #[source]
        error: serde_json::Error,
    },
    #[error(transparent)]
    Catalog(#[from] catalog::Error),
}

impl From<auth::Error> for Error {
    fn from(error: auth::Error) -> Self {
        match error {
            auth::Error::Unauthenticated(_) => Error::Unauthenticated,
            auth::Error::Database(error) => Error::Database(error),
        }
    }
}

/// The wrapper of every error (`IcebergErrorResponse`).
#[derive(Serialize, ToSchema)]
#[schema(as = IcebergErrorResponse)]
pub struct ErrorResponse {
    #[schema(inline)]
    error: ErrorModel,
}

#[derive(Serialize, ToSchema)]
struct ErrorModel {
    message: String,
    r#type: &'static str,
    code: u16,
}

impl Error {
    fn status(&self) -> (StatusCode, &'static str) {
        match self {
            Error::Unauthenticated => (StatusCode::UNAUTHORIZED, "NotAuthorizedException"),
            Error::Forbidden => (StatusCode::FORBIDDEN, "ForbiddenException"),
            Error::Invalid(_) => (StatusCode::BAD_REQUEST, "BadRequestException"),
            Error::BodyTooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "BadRequestException"),
            Error::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, "BadRequestException"),
            Error::NoSuchKey(_) => (StatusCode::NOT_FOUND, "NotFoundException"),
            Error::RootKey => (StatusCode::CONFLICT, "ConflictException"),
            Error::Database(_) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailableException"),
            Error::Unreadable { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
            Error::Catalog(error) => catalog_status(error),
        }
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let (status, kind) = self.status();
        if status.is_server_error() {
            tracing::error!(%status, error = %Chain(&self), "request failed");
        }
        let error = ErrorModel { message: self.to_string(), r#type: kind, code: status.as_u16() };
        let mut response = (status, Json(ErrorResponse { error })).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
