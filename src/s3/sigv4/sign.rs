//! The signing side: headers and presigned URLs.

use super::{ChunkSigner, Payload};
use http::HeaderMap;

/// Credentials and the scope they sign for.
#[derive(Clone, Copy)]
pub struct Signer<'a> {
    pub access_key_id: &'a str,
    pub secret: &'a str,
    pub security_token: Option<&'a str>,
    pub region: &'a str,
    pub service: &'a str,
}

impl Signer<'_> {
    /// Adds `x-amz-date`, `x-amz-content-sha256`, `x-amz-security-token` and `authorization` to `headers`, which must hold
    /// `host`. Path and query are percent-encoded as they will be sent. Answers the start of the chunk signatures.
    pub fn sign(
        &self,
        _method: &str,
        _path: &str,
        _query: &str,
        _headers: &mut HeaderMap,
        _payload: &Payload,
        _now_ms: i64,
    ) -> ChunkSigner {
        todo!()
    }

    /// The query string (without `?`) of a presigned URL, `query` included. `headers` must hold `host` and whatever else
    /// the client will have to send. Lifetime in seconds, 1 to 604,800.
    pub fn presign(
        &self,
        _method: &str,
        _path: &str,
        _query: &str,
        _headers: &HeaderMap,
        _expires_s: u32,
        _now_ms: i64,
    ) -> String {
        todo!()
    }
}
