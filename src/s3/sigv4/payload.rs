//! What a request says about its body: the value of `x-amz-content-sha256`.

use super::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// The body's SHA-256, hexadecimal as sent.
    Sha256([u8; 64]),
    /// `UNSIGNED-PAYLOAD`
    Unsigned,
    /// `STREAMING-UNSIGNED-PAYLOAD-TRAILER`
    ChunkedUnsignedTrailer,
    /// `STREAMING-AWS4-HMAC-SHA256-PAYLOAD`
    ChunkedSigned,
    /// `STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER`
    ChunkedSignedTrailer,
}

impl Payload {
    /// # Errors
    /// `InvalidContentSha256`; `PayloadUnsupported` for the ECDSA kinds.
    pub fn parse(_value: &[u8]) -> Result<Payload, Error> {
        todo!()
    }
    /// The SHA-256 of bytes at hand.
    pub fn of_bytes(_bytes: &[u8]) -> Payload {
        todo!()
    }
    /// As in the header.
    pub fn as_str(&self) -> &str {
        todo!()
    }
    /// Whether the body is `aws-chunked`: allowed for PutObject and UploadPart only.
    pub fn is_chunked(&self) -> bool {
        matches!(self, Self::ChunkedUnsignedTrailer | Self::ChunkedSigned | Self::ChunkedSignedTrailer)
    }
}
