//! What a request says about its body: the value of `x-amz-content-sha256`.

use super::{Error, key};

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
    pub fn parse(value: &[u8]) -> Result<Payload, Error> {
        match value {
            b"UNSIGNED-PAYLOAD" => Ok(Self::Unsigned),
            b"STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Ok(Self::ChunkedUnsignedTrailer),
            b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => Ok(Self::ChunkedSigned),
            b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => Ok(Self::ChunkedSignedTrailer),
            b"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD" | b"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER" => {
                Err(Error::PayloadUnsupported { algorithm: String::from_utf8_lossy(value).into_owned() })
            }
            _ => match <[u8; 64]>::try_from(value) {
                Ok(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(Self::Sha256(digits)),
                _ => Err(Error::InvalidContentSha256 { value: String::from_utf8_lossy(value).into_owned() }),
            },
        }
    }

    /// The SHA-256 of bytes at hand.
    pub fn of_bytes(bytes: &[u8]) -> Payload {
        Self::Sha256(key::sha256_hex(bytes))
    }

    /// As in the header.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sha256(digits) => key::hex_str(digits),
            Self::Unsigned => "UNSIGNED-PAYLOAD",
            Self::ChunkedUnsignedTrailer => "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
            Self::ChunkedSigned => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            Self::ChunkedSignedTrailer => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        }
    }

    /// Whether the body is `aws-chunked`: allowed for PutObject and UploadPart only.
    pub fn is_chunked(&self) -> bool {
        matches!(self, Self::ChunkedUnsignedTrailer | Self::ChunkedSigned | Self::ChunkedSignedTrailer)
    }
}
