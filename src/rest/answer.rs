//! Bodies of answers: small JSON, and prepared pieces sent one after the other.

use axum::{body::Body, response::Response};
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use http_body::{Frame, SizeHint};
use serde::Serialize;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

/// Pieces that together are smaller than this are copied into one: one write is cheaper than three. Bytes.
const JOINED_BYTES_MAX: usize = 32 << 10;

/// An answer with a JSON body.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Our own types have string keys and no failing serialisers.
    let bytes = serde_json::to_vec(body).unwrap_or_else(|error| {
        tracing::error!(%error, "an answer could not be serialised");
        b"{}".to_vec()
    });
    json_bytes(status, Body::from(bytes))
}

/// An answer whose JSON is made of prepared pieces.
pub fn json_pieces(pieces: [Bytes; 3]) -> Response {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    if length > JOINED_BYTES_MAX {
        return json_bytes(StatusCode::OK, Body::new(Pieces { pieces, next: 0 }));
    }
    let mut joined = BytesMut::with_capacity(length);
    for piece in &pieces {
        joined.extend_from_slice(piece);
    }
    json_bytes(StatusCode::OK, Body::from(joined.freeze()))
}

fn json_bytes(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer without a body.
pub fn no_content() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Marks an answer that holds secrets.
pub fn forbid_storing(response: &mut Response) {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// A body of known length that copies nothing.
struct Pieces {
    pieces: [Bytes; 3],
    next: usize,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.next;
        self.next += 1;
        Poll::Ready(self.pieces.get_mut(next).map(|piece| Ok(Frame::data(std::mem::take(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.next >= self.pieces.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body::Body as _;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn pieces_arrive_in_order_with_a_known_length() {
        for middle in [1, JOINED_BYTES_MAX * 2] {
            let middle = "x".repeat(middle);
            let response =
                json_pieces([Bytes::from_static(b"["), Bytes::from(middle.clone()), Bytes::from_static(b"]")]);
            let body = response.into_body();
            assert_eq!(body.size_hint().exact(), Some(middle.len() as u64 + 2));
            assert_eq!(body.collect().await.unwrap().to_bytes(), format!("[{middle}]"));
        }
    }
}
