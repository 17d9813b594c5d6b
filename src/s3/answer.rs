//! Bodies of answers, and what the server may log and count about an answer.

use super::error::Error;
use crate::{store, telemetry::Chain};
use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// About one answer: for logs and counters, in the answer's extensions. Holds no secret.
#[derive(Debug, Clone)]
pub struct Answered {
    /// As in the S3 API reference; `Unknown` where the request names none.
    pub operation: &'static str,
    /// Who asked, once authenticated.
    pub principal: Option<Arc<str>>,
    pub request_id: Arc<str>,
    /// AWS's error code, unless the answer is a success.
    pub code: Option<&'static str>,
    /// Bytes of objects taken from the request.
    pub bytes_in: u64,
    /// Bytes of the answer's body as its head promises them.
    pub bytes_out: u64,
}

/// A stream that ended before all bytes its head promised: the connection must break.
#[derive(Debug, thiserror::Error)]
#[error("the answer's body broke off")]
pub struct Broken;

/// The body of an answer: nothing, bytes at hand, or an object's stream.
pub struct S3Body {
    /// Sent first: a small object is answered whole from here.
    first: Option<Bytes>,
    rest: Option<BoxStream<'static, store::Result<Bytes>>>,
    /// Bytes not yet handed on. The stream must yield exactly these.
    remaining: u64,
    request_id: Option<Arc<str>>,
}

impl S3Body {
    pub fn empty() -> S3Body {
        S3Body { first: None, rest: None, remaining: 0, request_id: None }
    }

    pub fn full(bytes: impl Into<Bytes>) -> S3Body {
        let bytes = bytes.into();
        S3Body { remaining: bytes.len() as u64, first: Some(bytes), rest: None, request_id: None }
    }

    /// A stream of exactly `length` bytes. Waits for its first piece, so that the head leaves together with it and an
    /// object that cannot be read at all is answered with an error.
    ///
    /// # Errors
    /// That of the stream's first piece.
    pub async fn stream(
        mut stream: BoxStream<'static, store::Result<Bytes>>,
        length: u64,
        request_id: Arc<str>,
    ) -> store::Result<S3Body> {
        if length == 0 {
            return Ok(S3Body::empty());
        }
        let first = stream.next().await.transpose()?.unwrap_or_default();
        let rest = if first.len() as u64 == length { None } else { Some(stream) };
        Ok(S3Body { first: Some(first), rest, remaining: length, request_id: Some(request_id) })
    }

    pub fn length(&self) -> u64 {
        self.remaining
    }

    /// Hands on a piece, or breaks when it is more than was promised.
    fn hand_on(&mut self, piece: Bytes) -> Result<Frame<Bytes>, Broken> {
        match self.remaining.checked_sub(piece.len() as u64) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(Frame::data(piece))
            }
            None => Err(self.break_off(None)),
        }
    }

    fn break_off(&mut self, error: Option<&store::Error>) -> Broken {
        let request_id = self.request_id.as_deref().unwrap_or_default();
        match error {
            Some(error) => tracing::error!(request_id, error = %Chain(error), "object stream broke off"),
            None => tracing::error!(request_id, "object stream has another length than its record"),
        }
        self.rest = None;
        self.remaining = 0;
        Broken
    }
}

impl http_body::Body for S3Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(self.hand_on(first)));
        }
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        match rest.poll_next_unpin(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(piece))) => Poll::Ready(Some(self.hand_on(piece))),
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(self.break_off(Some(&error))))),
            Poll::Ready(None) if self.remaining > 0 => Poll::Ready(Some(Err(self.break_off(None)))),
            Poll::Ready(None) => {
                self.rest = None;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

/// An answer without a body.
pub fn empty(status: StatusCode) -> Response<S3Body> {
    let mut response = Response::new(S3Body::empty());
    *response.status_mut() = status;
    response
}

/// An answer that is a document.
pub fn document(document: String) -> Response<S3Body> {
    let mut response = Response::new(S3Body::full(document));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}

/// Where an error's answer goes.
pub(super) struct Asked<'a> {
    pub path: &'a str,
    pub is_head: bool,
    pub request_id: &'a Arc<str>,
}

/// The answer to a request that failed. There is no body on HEAD and on 304.
pub(super) fn failure(error: &Error, asked: &Asked<'_>) -> Response<S3Body> {
    let described = error.describe();
    let mut response = if asked.is_head || described.status == StatusCode::NOT_MODIFIED {
        empty(described.status)
    } else {
        document(described.document(asked.path, asked.request_id))
    };
    *response.status_mut() = described.status;
    let headers = response.headers_mut();
    match error {
        Error::InvalidRange { size, .. } => {
            super::headers::put(headers, header::CONTENT_RANGE, &format!("bytes */{size}"));
        }
        Error::Version(error) => error.write_headers(headers),
        Error::MethodNotAllowed { allowed, .. } => super::headers::put(headers, header::ALLOW, allowed),
        Error::NotModified { etag, last_modified_ms } => {
            super::headers::put(headers, header::ETAG, &super::headers::quoted(etag));
            let date = super::conditions::http_date(*last_modified_ms);
            super::headers::put(headers, header::LAST_MODIFIED, &date);
        }
        _ => {}
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use http_body_util::BodyExt;

    fn pieces(pieces: Vec<store::Result<Bytes>>) -> BoxStream<'static, store::Result<Bytes>> {
        stream::iter(pieces).boxed()
    }

    #[tokio::test]
    async fn streams_yield_exactly_what_was_promised_or_break() {
        let bytes = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        let damaged = || Err(store::Error::Damaged("block 2".into()));
        let whole = S3Body::stream(pieces(vec![bytes("ab"), bytes("c")]), 3, "id".into()).await.expect("readable");
        assert_eq!(whole.length(), 3);
        assert_eq!(whole.collect().await.expect("whole").to_bytes(), "abc");
        for bad in
            [vec![bytes("ab"), damaged()], vec![bytes("ab")], vec![bytes("ab"), bytes("cd")], vec![bytes("abcd")]]
        {
            let body = S3Body::stream(pieces(bad), 3, "id".into()).await.expect("the first piece is readable");
            assert!(body.collect().await.is_err());
        }
        assert!(S3Body::stream(pieces(vec![damaged()]), 3, "id".into()).await.is_err());
    }
}
