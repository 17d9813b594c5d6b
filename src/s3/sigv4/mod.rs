//! AWS Signature Version 4 as S3 does it: checking what clients signed, and signing.
//!
//! Pure: no I/O and no clock. Requests are canonicalised from their raw path, query and header bytes, so what is
//! verified is what was received. Looking up the secret that belongs to an access key id is the caller's; so is reading
//! the body (`s3::body`), whose chunk signatures are chained by [`ChunkSigner`].

mod authorization;
mod canonical;
mod chunks;
mod error;
mod key;
mod payload;
mod sign;
#[cfg(test)]
mod tests;
mod timestamp;

pub use authorization::{Authorization, Lifetime, Scope};
pub use canonical::{encode_component, encode_path};
pub use chunks::ChunkSigner;
pub use error::{CredentialFault, Error, HeaderFault, Mismatch, QueryFault};
pub use key::{Signature, SigningKey};
pub(in crate::s3) use key::{hex, hex_str, same_signature};
pub use payload::Payload;
pub use sign::Signer;
pub use timestamp::Timestamp;

use http::HeaderMap;

/// The service name in the scope of S3's signatures.
pub const SERVICE_S3: &str = "s3";

/// What a signature covers, exactly as received: nothing decoded, nothing normalised.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub method: &'a str,
    /// Percent-encoded as sent.
    pub path: &'a str,
    /// Percent-encoded as sent, without the `?`; empty when there is none.
    pub query: &'a str,
    pub headers: &'a HeaderMap,
    /// HTTP/2's `:authority`; stands in for a `Host` header that is not there.
    pub authority: Option<&'a str>,
}

impl<'a> Request<'a> {
    pub fn of(parts: &'a http::request::Parts) -> Request<'a> {
        Request {
            method: parts.method.as_str(),
            path: parts.uri.path(),
            query: parts.uri.query().unwrap_or(""),
            headers: &parts.headers,
            authority: parts.uri.authority().map(http::uri::Authority::as_str),
        }
    }
}
