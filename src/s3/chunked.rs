//! Decodes `aws-chunked` bodies incrementally, without copying object bytes.

use super::sigv4::ChunkSigner;
use bytes::Bytes;

/// Which signatures a body carries.
pub enum Signing {
    Unsigned,
    Chunks(ChunkSigner),
    /// The trailer is signed too.
    ChunksAndTrailer(ChunkSigner),
}

/// A checksum header that may trail: `x-amz-checksum-…`. Only names S3 knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrailerName {
    name: &'static str,
    digest_bytes: usize,
}

impl TrailerName {
    /// From the value of `x-amz-trailer`, in any case.
    ///
    /// # Errors
    /// `UnsupportedTrailer`.
    pub fn parse(_value: &[u8]) -> Result<TrailerName, Error> {
        todo!()
    }
    /// Lower case, `x-amz-checksum-` included.
    pub fn as_str(&self) -> &'static str {
        self.name
    }
}

/// The checksum that followed the body: well-formed base64 of the right length, not yet compared with the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    pub name: TrailerName,
    pub value: String,
}

/// `Display` is AWS's message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Ended early, or the framing is broken.
    #[error("The request body terminated unexpectedly")]
    Truncated,
    /// More or fewer object bytes than `x-amz-decoded-content-length` says.
    #[error("You did not provide the number of bytes specified by the Content-Length HTTP header")]
    LengthMismatch,
    #[error("Only the last chunk is allowed to have a size less than 8192 bytes")]
    ChunkTooSmall { chunk: u64, bytes: u64 },
    #[error(
        "The request signature we calculated does not match the signature you provided. Check your key and signing \
         method."
    )]
    SignatureDoesNotMatch,
    #[error("The request contained trailing data that was not well-formed or did not conform to our published schema.")]
    MalformedTrailer,
    #[error("The value specified in the x-amz-trailer header is not supported")]
    UnsupportedTrailer,
    #[error("Value for {name} trailing header is invalid.")]
    InvalidTrailerValue { name: &'static str },
}

pub struct Decoder {}

impl Decoder {
    /// `decoded_bytes`: exactly how many object bytes the body holds. `trailer`: the checksum announced.
    pub fn new(_signing: Signing, _decoded_bytes: u64, _trailer: Option<TrailerName>) -> Decoder {
        todo!()
    }
    /// The next slice of object bytes, taken from the front of `input`; `None` once `input` is used up.
    ///
    /// # Errors
    /// Any; the decoder is of no use afterwards.
    pub fn decode(&mut self, _input: &mut Bytes) -> Result<Option<Bytes>, Error> {
        todo!()
    }
    /// After the last input: whether all of the body was there and right.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn finish(self) -> Result<Option<Trailer>, Error> {
        todo!()
    }
}
