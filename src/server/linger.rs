//! Bodies that nobody reads to their end: how their senders still get the answer.
//!
//! A client that is refused in the middle of an upload goes on sending. Closing under its hands would reset the
//! connection and may destroy the answer on its way, so what is left is read and dropped for a while: beside the
//! request, which holds its place no longer, and within bounds of time.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Version, header};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

/// How much of a body is read and dropped. Bytes.
const BYTES_MAX: usize = 64 << 20;
/// How long that may take, in all and without a byte.
const TIME_MAX: Duration = Duration::from_secs(30);
const IDLE_MAX: Duration = Duration::from_secs(2);
/// A body of this length or less does not cost its connection. Bytes.
const KEPT_BYTES_MAX: u64 = 256 << 10;

/// A request's body; dropped before its end, the rest is read in the background.
pub struct Lingering {
    body: Option<Incoming>,
    ended: Arc<AtomicBool>,
    /// The client sends nothing before it is told to, which the first look at the body does.
    waits: bool,
}

/// What a connection's fate hangs on after the answer.
pub struct Unread {
    ended: Arc<AtomicBool>,
    /// What is left, if anything, is so little that the next request can wait for it.
    is_small: bool,
    version: Version,
}

/// Wraps a request's body.
pub fn watch(request: Request<Incoming>) -> (Request<Lingering>, Unread) {
    let (parts, body) = request.into_parts();
    let ended = Arc::new(AtomicBool::new(body.is_end_stream()));
    let waits = parts.headers.contains_key(header::EXPECT);
    let is_small = !waits && body.size_hint().upper().is_some_and(|bytes| bytes <= KEPT_BYTES_MAX);
    let unread = Unread { ended: Arc::clone(&ended), is_small, version: parts.version };
    (Request::from_parts(parts, Lingering { body: Some(body), ended, waits }), unread)
}

impl Unread {
    /// Tells the client when no other request will be read from its connection.
    pub fn mark(&self, answer: &mut HeaderMap) {
        if self.version <= Version::HTTP_11 && !self.is_small && !self.ended.load(Ordering::Relaxed) {
            answer.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

impl Body for Lingering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.waits = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(&mut *body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) || body.is_end_stream() {
            self.ended.store(matches!(polled, Poll::Ready(None | Some(Ok(_)))), Ordering::Relaxed);
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(body) = self.body.take() else { return };
        if !self.waits && !body.is_end_stream() {
            // A server that ends has no runtime left to linger on.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(tokio::time::timeout(TIME_MAX, read_to_end(body)));
            }
        }
    }
}

async fn read_to_end(mut body: Incoming) {
    let mut bytes = 0;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(IDLE_MAX, body.frame()).await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
        if bytes > BYTES_MAX {
            return;
        }
    }
}
