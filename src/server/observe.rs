//! One line and a few numbers for every request, written when its answer's last byte is handed on, its client is gone,
//! or its handler failed. Paths are shown without their query, which can hold a signature.

use super::shape::Shape;
use crate::{
    rest, s3,
    telemetry::{
        self, RequestId,
        metrics::{self, Present},
    },
};
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Instant,
};
use tokio::sync::OwnedSemaphorePermit;

const AMZ_REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");
/// More of a path is not logged. Characters.
const PATH_CHARS_MAX: usize = 512;

/// Bytes of a request's line and headers, as HTTP/1.1 writes them.
pub fn head_bytes<B>(request: &Request<B>) -> usize {
    const BETWEEN_NAME_AND_VALUE: usize = ": \r\n".len();
    let headers = request.headers().iter();
    let headers: usize = headers.map(|(name, value)| name.as_str().len() + value.len() + BETWEEN_NAME_AND_VALUE).sum();
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    request.method().as_str().len() + target + headers
}

/// A request while it is answered. Dropped without an answer, it is logged as one whose client went away.
pub struct Observation(Record);

impl Observation {
    pub fn begin<B>(listener: &'static str, shape: Shape, request: &Request<B>) -> Observation {
        let length = request.headers().get(header::CONTENT_LENGTH);
        Observation(Record {
            listener,
            shape,
            request_id: RequestId::of(request.headers()),
            method: request.method().clone(),
            path: request.uri().path().chars().take(PATH_CHARS_MAX).collect(),
            began: Instant::now(),
            bytes_in: length.and_then(|length| length.to_str().ok()?.parse().ok()).unwrap_or(0),
            bytes_out: 0,
            operation: "unknown",
            principal: None,
            status: None,
            is_whole: false,
            _present: Present::request(listener),
            _permit: None,
        })
    }

    pub fn request_id(&self) -> &RequestId {
        &self.0.request_id
    }

    /// The request with its id for whoever answers it.
    pub fn mark<B>(&self, mut request: Request<B>) -> Request<B> {
        request.extensions_mut().insert(self.0.request_id.clone());
        request
    }

    /// Whatever is logged inside carries the request's id.
    pub fn span(&self) -> tracing::Span {
        tracing::error_span!("request", request_id = self.0.request_id.as_str())
    }

    /// The answer with the request's id, and the body that reports once it is through.
    pub fn answered(self, response: Response<Body>, permit: Option<OwnedSemaphorePermit>) -> Response<ObservedBody> {
        let Observation(mut record) = self;
        record.status = Some(response.status());
        record._permit = permit;
        record.read(&response);
        let (mut parts, body) = response.into_parts();
        parts.headers.insert(RequestId::HEADER, record.request_id.to_header());
        if record.shape == Shape::S3 {
            parts.headers.insert(AMZ_REQUEST_ID, record.request_id.to_header());
            parts.headers.entry(header::SERVER).or_insert(HeaderValue::from_static("Tidewater"));
        }
        record.is_whole = body.is_end_stream() || record.method == Method::HEAD;
        Response::from_parts(parts, ObservedBody { body, record })
    }
}

struct Record {
    listener: &'static str,
    shape: Shape,
    request_id: RequestId,
    method: Method,
    path: String,
    began: Instant,
    bytes_in: u64,
    bytes_out: u64,
    operation: &'static str,
    principal: Option<Arc<str>>,
    /// `None` until there is an answer.
    status: Option<StatusCode>,
    /// Whether all of the body was handed on.
    is_whole: bool,
    _present: Present,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Record {
    /// What the handler said about its answer.
    fn read(&mut self, response: &Response<Body>) {
        let extensions = response.extensions();
        if let Some(answered) = extensions.get::<telemetry::Answered>() {
            self.operation = answered.operation;
            self.principal = answered.principal.clone();
        } else if let Some(answered) = extensions.get::<rest::Answered>() {
            self.operation = answered.operation;
            self.principal = answered.principal.clone();
        } else if let Some(answered) = extensions.get::<s3::Answered>() {
            self.operation = answered.operation;
            self.principal = answered.principal.clone();
            self.bytes_in = answered.bytes_in;
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        // The number that nginx made known for a client that left before its answer.
        let status = self.status.map_or(499, |status| status.as_u16());
        metrics::record_request(self.listener, self.operation, status, took);
        if self.shape == Shape::S3 {
            metrics::record_s3_bytes(self.bytes_in, self.bytes_out);
        }
        let is_probe = self.listener == "metrics" || self.path.starts_with(super::health::HEALTH);
        if is_probe && self.is_whole {
            tracing::debug!(path = self.path, status, "request");
            return;
        }
        let duration_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        tracing::info!(
            request_id = self.request_id.as_str(),
            listener = self.listener,
            principal = self.principal.as_deref().unwrap_or("-"),
            operation = self.operation,
            method = self.method.as_str(),
            path = self.path,
            status,
            duration_ms,
            bytes_in = self.bytes_in,
            bytes_out = self.bytes_out,
            cut_off = !self.is_whole,
            "request"
        );
    }
}

/// An answer's body on its way out.
pub struct ObservedBody {
    body: Body,
    record: Record,
}

impl http_body::Body for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.record.bytes_out += frame.data_ref().map_or(0, |data| data.len() as u64);
                self.record.is_whole = self.body.is_end_stream();
            }
            Poll::Ready(None) => self.record.is_whole = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_counts_line_and_headers() {
        let request = Request::get("/a?b").header("host", "h").body(()).unwrap();
        assert_eq!(head_bytes(&request), "GET".len() + "/a?b".len() + "host: h\r\n".len());
    }
}
