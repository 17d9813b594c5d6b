//! Answers the listeners give by themselves, in the shape their clients can read.
//!
//! Some never come here: hyper itself refuses a head it cannot parse (400), a request line beyond 65,534 bytes (414), and
//! more headers than the listener's bound or a head beyond its read buffer (431), before there is a request to hand on.
//! Its answers have no body, and it offers no hook to give them one; the connection closes after them.

use crate::telemetry::RequestId;
use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};

/// How a listener's protocol writes errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Iceberg,
    S3,
}

impl Shape {
    pub fn internal_error(self, request_id: &RequestId) -> Response<Body> {
        match self {
            Shape::Iceberg => {
                iceberg(StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError", "the server failed at this request")
            }
            Shape::S3 => s3(
                StatusCode::INTERNAL_SERVER_ERROR,
                "InternalError",
                "We encountered an internal error. Please try again.",
                request_id,
            ),
        }
    }

    pub fn head_too_large(self, request_id: &RequestId) -> Response<Body> {
        match self {
            Shape::Iceberg => iceberg(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "BadRequestException",
                "the request's head is larger than this server takes",
            ),
            Shape::S3 => s3(
                StatusCode::BAD_REQUEST,
                "RequestHeaderSectionTooLarge",
                "Your request header section exceeds the maximum allowed request header size.",
                request_id,
            ),
        }
    }
}

/// An error as the Iceberg REST protocol writes it (`IcebergErrorResponse`).
pub fn iceberg(status: StatusCode, kind: &str, message: &str) -> Response<Body> {
    let error = serde_json::json!({"error": {"message": message, "type": kind, "code": status.as_u16()}});
    answer(status, "application/json", error.to_string())
}

/// `code` and `message` need no escaping, nor does a request id.
fn s3(status: StatusCode, code: &str, message: &str, request_id: &RequestId) -> Response<Body> {
    let request_id = request_id.as_str();
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>{message}</Message>\
         <RequestId>{request_id}</RequestId></Error>"
    );
    answer(status, "application/xml", document)
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
