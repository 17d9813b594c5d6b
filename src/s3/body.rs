//! Reads a request's body: unwraps `aws-chunked`, checks lengths, hashes and signatures, and never waits forever.
//!
//! Bytes are handed on before all of them are known to be right: nothing may be published before
//! [`RequestBody::finish`] succeeded. Checksums in trailers are only parsed; the caller compares them.

use super::{
    chunked,
    sigv4::{ChunkSigner, Payload},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

pub use chunked::{Trailer, TrailerName};

/// `Display` is AWS's message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Chunked(#[from] chunked::Error),
    /// The connection broke, or sent fewer bytes than `Content-Length`.
    #[error("The request body terminated unexpectedly")]
    Aborted,
    /// `Content-Length`, or `x-amz-decoded-content-length` of a chunked body, is missing or not a number.
    #[error("You must provide the Content-Length HTTP header.")]
    MissingContentLength,
    #[error("The provided 'x-amz-content-sha256' header does not match what was computed.")]
    ContentSha256Mismatch { claimed: String, computed: String },
    #[error("Your proposed upload exceeds the maximum allowed object size.")]
    EntityTooLarge { proposed_bytes: u64, max_bytes: u64 },
    #[error("Your socket connection to the server was not read from or written to within the timeout period.")]
    Timeout,
}

impl Error {
    /// AWS's error code.
    pub fn code(&self) -> &'static str {
        todo!()
    }
    pub fn status(&self) -> StatusCode {
        todo!()
    }
    /// The elements AWS adds to this error's XML body, in order.
    pub fn details(&self) -> Vec<(&'static str, String)> {
        todo!()
    }
}

/// How a body is to be read, from the request's headers.
pub struct BodyPlan {}

impl BodyPlan {
    /// `signer` is needed when the payload is signed in chunks. `bytes_max` bounds the decoded bytes.
    ///
    /// # Errors
    /// `MissingContentLength`, `EntityTooLarge`, `Chunked(UnsupportedTrailer)`.
    pub fn new(
        _headers: &HeaderMap,
        _payload: &Payload,
        _signer: Option<ChunkSigner>,
        _bytes_max: u64,
    ) -> Result<BodyPlan, Error> {
        todo!()
    }
    /// How many bytes the object will have: `x-amz-decoded-content-length` or `Content-Length`.
    pub fn length(&self) -> Option<u64> {
        todo!()
    }
    /// The checksum announced in `x-amz-trailer`.
    pub fn trailer(&self) -> Option<TrailerName> {
        todo!()
    }
}

/// A body being read.
pub struct RequestBody<B> {
    _body: B,
}

impl<B> RequestBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    pub fn new(_body: B, _plan: BodyPlan) -> RequestBody<B> {
        todo!()
    }
    /// The next bytes of the object, never empty; `None` at the end or after an error.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        todo!()
    }
    /// Once [`RequestBody::next`] answered `None`: whether the body was whole and right.
    ///
    /// # Errors
    /// `ContentSha256Mismatch`, `Aborted`, `Chunked`.
    pub fn finish(self) -> Result<Option<Trailer>, Error> {
        todo!()
    }
    /// The whole body at once; for documents, not objects. Holds at most the plan's `bytes_max`.
    ///
    /// # Errors
    /// As `next` and `finish`.
    pub async fn collect(self) -> Result<(Bytes, Option<Trailer>), Error> {
        todo!()
    }
}
