//! Reads a request's body: unwraps `aws-chunked`, checks lengths, hashes and signatures, and never waits forever.
//!
//! Bytes are handed on before all of them are known to be right: nothing may be published before
//! [`RequestBody::finish`] succeeded. Checksums in trailers are only parsed; the caller compares them.

use super::{
    chunked,
    sigv4::{ChunkSigner, Payload, hex, hex_str},
};
use aws_lc_rs::digest;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use std::time::Duration;

pub use chunked::{Trailer, TrailerName};

/// How long a client may take over the next bytes of a body.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

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
    #[error(
        "Anonymous requests don't support this x-amz-content-sha256 value. Please use UNSIGNED-PAYLOAD or \
         STREAMING-UNSIGNED-PAYLOAD-TRAILER."
    )]
    AnonymousSigned,
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
        match self {
            Self::Chunked(chunked::Error::Truncated | chunked::Error::LengthMismatch) | Self::Aborted => {
                "IncompleteBody"
            }
            Self::Chunked(chunked::Error::ChunkTooSmall { .. }) => "InvalidChunkSizeError",
            Self::Chunked(chunked::Error::SignatureDoesNotMatch) => "SignatureDoesNotMatch",
            Self::Chunked(chunked::Error::MalformedTrailer) => "MalformedTrailerError",
            Self::Chunked(chunked::Error::UnsupportedTrailer | chunked::Error::InvalidTrailerValue { .. })
            | Self::AnonymousSigned => "InvalidRequest",
            Self::MissingContentLength => "MissingContentLength",
            Self::ContentSha256Mismatch { .. } => "XAmzContentSHA256Mismatch",
            Self::EntityTooLarge { .. } => "EntityTooLarge",
            Self::Timeout => "RequestTimeout",
        }
    }

    pub fn status(&self) -> StatusCode {
        match self {
            Self::Chunked(chunked::Error::SignatureDoesNotMatch) => StatusCode::FORBIDDEN,
            Self::MissingContentLength => StatusCode::LENGTH_REQUIRED,
            Self::Chunked(_)
            | Self::Aborted
            | Self::AnonymousSigned
            | Self::ContentSha256Mismatch { .. }
            | Self::EntityTooLarge { .. }
            | Self::Timeout => StatusCode::BAD_REQUEST,
        }
    }

    /// The elements AWS adds to this error's XML body, in order.
    pub fn details(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Chunked(chunked::Error::ChunkTooSmall { chunk, bytes }) => {
                vec![("Chunk", chunk.to_string()), ("BadChunkSize", bytes.to_string())]
            }
            Self::ContentSha256Mismatch { claimed, computed } => {
                vec![("ClientComputedContentSHA256", claimed.clone()), ("S3ComputedContentSHA256", computed.clone())]
            }
            Self::EntityTooLarge { proposed_bytes, max_bytes } => {
                vec![("ProposedSize", proposed_bytes.to_string()), ("MaxSizeAllowed", max_bytes.to_string())]
            }
            Self::Chunked(_) | Self::Aborted | Self::MissingContentLength | Self::AnonymousSigned | Self::Timeout => {
                Vec::new()
            }
        }
    }
}

/// How a body is to be read, from the request's headers.
pub struct BodyPlan {
    decoding: Decoding,
    length: Option<u64>,
    trailer: Option<TrailerName>,
    bytes_max: u64,
    idle_timeout: Duration,
}

enum Decoding {
    /// With the SHA-256 the body must have, as the client spelled it, and the one it has so far.
    Plain {
        sha256: Option<([u8; 64], digest::Context)>,
    },
    Chunked {
        decoder: Box<chunked::Decoder>,
        input: Bytes,
    },
}

impl BodyPlan {
    /// `signer` continues the request's signature; without it the request is anonymous. `bytes_max` bounds the decoded
    /// bytes.
    ///
    /// # Errors
    /// `MissingContentLength`, `EntityTooLarge`, `AnonymousSigned`, `Chunked(UnsupportedTrailer)`.
    pub fn new(
        headers: &HeaderMap,
        payload: &Payload,
        signer: Option<ChunkSigner>,
        bytes_max: u64,
    ) -> Result<BodyPlan, Error> {
        let signed = |signing: fn(ChunkSigner) -> chunked::Signing| signer.map(signing).ok_or(Error::AnonymousSigned);
        let (signing, trails) = match payload {
            Payload::Sha256(claimed) => return Self::plain(headers, Some(*claimed), bytes_max),
            Payload::Unsigned => return Self::plain(headers, None, bytes_max),
            Payload::ChunkedUnsignedTrailer => (chunked::Signing::Unsigned, true),
            Payload::ChunkedSigned => (signed(chunked::Signing::Chunks)?, false),
            Payload::ChunkedSignedTrailer => (signed(chunked::Signing::ChunksAndTrailer)?, true),
        };
        let length = length(headers, "x-amz-decoded-content-length", bytes_max)?.ok_or(Error::MissingContentLength)?;
        let announced = headers.get("x-amz-trailer").filter(|_| trails);
        let trailer = announced.map(|value| TrailerName::parse(value.as_bytes())).transpose()?;
        let decoder = Box::new(chunked::Decoder::new(signing, length, trailer));
        let decoding = Decoding::Chunked { decoder, input: Bytes::new() };
        Ok(BodyPlan { decoding, length: Some(length), trailer, bytes_max, idle_timeout: IDLE_TIMEOUT })
    }

    fn plain(headers: &HeaderMap, claimed: Option<[u8; 64]>, bytes_max: u64) -> Result<BodyPlan, Error> {
        let length = length(headers, header::CONTENT_LENGTH.as_str(), bytes_max)?;
        let sha256 = claimed.map(|claimed| (claimed, digest::Context::new(&digest::SHA256)));
        let decoding = Decoding::Plain { sha256 };
        Ok(BodyPlan { decoding, length, trailer: None, bytes_max, idle_timeout: IDLE_TIMEOUT })
    }

    /// How many bytes the object will have: `x-amz-decoded-content-length` or `Content-Length`. `None` for a plain body of
    /// unknown length.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// For operations that refuse bodies of unknown length.
    ///
    /// # Errors
    /// `MissingContentLength`.
    pub fn require_length(&self) -> Result<u64, Error> {
        self.length.ok_or(Error::MissingContentLength)
    }

    /// The checksum announced in `x-amz-trailer`.
    pub fn trailer(&self) -> Option<TrailerName> {
        self.trailer
    }
}

/// A length from a header, within the bound.
fn length(headers: &HeaderMap, name: &str, bytes_max: u64) -> Result<Option<u64>, Error> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits.and_then(|digits| digits.parse().ok()).ok_or(Error::MissingContentLength)?;
    if length > bytes_max {
        return Err(Error::EntityTooLarge { proposed_bytes: length, max_bytes: bytes_max });
    }
    Ok(Some(length))
}

/// A body being read.
pub struct RequestBody<B> {
    body: B,
    decoding: Decoding,
    length: Option<u64>,
    bytes_max: u64,
    idle_timeout: Duration,
    received_bytes: u64,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Reading,
    /// The connection delivered all it had to.
    Ended,
    Failed,
}

impl<B> RequestBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    pub fn new(body: B, plan: BodyPlan) -> RequestBody<B> {
        RequestBody {
            body,
            decoding: plan.decoding,
            length: plan.length,
            bytes_max: plan.bytes_max,
            idle_timeout: plan.idle_timeout,
            received_bytes: 0,
            progress: Progress::Reading,
        }
    }

    /// The next bytes of the object, never empty; `None` at the end or after an error. Cancelling loses nothing.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        if self.progress != Progress::Reading {
            return None;
        }
        match self.advance().await {
            Ok(Some(bytes)) => Some(Ok(bytes)),
            Ok(None) => {
                self.progress = Progress::Ended;
                None
            }
            Err(error) => {
                self.progress = Progress::Failed;
                Some(Err(error))
            }
        }
    }

    /// Once [`RequestBody::next`] answered `None`: whether the body was whole and right.
    ///
    /// # Errors
    /// `ContentSha256Mismatch`, `Chunked`; `Aborted` when bytes are missing or were not read.
    pub fn finish(self) -> Result<Option<Trailer>, Error> {
        if self.progress != Progress::Ended {
            return Err(Error::Aborted);
        }
        match self.decoding {
            Decoding::Chunked { decoder, .. } => Ok(decoder.finish()?),
            Decoding::Plain { .. } if self.length.is_some_and(|length| length != self.received_bytes) => {
                Err(Error::Aborted)
            }
            Decoding::Plain { sha256: None } => Ok(None),
            Decoding::Plain { sha256: Some((claimed, context)) } => {
                let computed = hex(context.finish().as_ref());
                if computed.eq_ignore_ascii_case(&claimed) {
                    return Ok(None);
                }
                let [claimed, computed] = [claimed, computed].map(|digits| hex_str(&digits).to_owned());
                Err(Error::ContentSha256Mismatch { claimed, computed })
            }
        }
    }

    /// The whole body at once; for documents, not objects. Holds at most the plan's `bytes_max`, and a frame.
    ///
    /// # Errors
    /// As `next` and `finish`.
    pub async fn collect(mut self) -> Result<(Bytes, Option<Trailer>), Error> {
        let mut whole = BytesMut::new();
        while let Some(bytes) = self.next().await {
            whole.extend_from_slice(&bytes?);
        }
        Ok((whole.freeze(), self.finish()?))
    }

    async fn advance(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Decoding::Chunked { decoder, input } = &mut self.decoding
                && let Some(bytes) = decoder.decode(input)?
            {
                return Ok(Some(bytes));
            }
            let Some(data) = self.frame().await? else { return Ok(None) };
            match &mut self.decoding {
                // All of the earlier input is used up.
                Decoding::Chunked { input, .. } => *input = data,
                Decoding::Plain { .. } if data.is_empty() => {}
                Decoding::Plain { sha256 } => {
                    if let Some((_, context)) = sha256 {
                        context.update(&data);
                    }
                    self.received_bytes += u64::try_from(data.len()).unwrap_or(u64::MAX);
                    if self.received_bytes > self.bytes_max {
                        let proposed_bytes = self.received_bytes;
                        return Err(Error::EntityTooLarge { proposed_bytes, max_bytes: self.bytes_max });
                    }
                    return Ok(Some(data));
                }
            }
        }
    }

    /// The next data the connection delivers; trailers of HTTP itself are dropped.
    async fn frame(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = tokio::time::timeout(self.idle_timeout, self.body.frame()).await;
            match frame.map_err(|_| Error::Timeout)? {
                None => return Ok(None),
                Some(Err(_)) => return Err(Error::Aborted),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
