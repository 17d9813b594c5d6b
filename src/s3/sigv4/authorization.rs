//! Reading a request's authorization and checking it.

use super::{ChunkSigner, Error, Payload, Request, SigningKey, Timestamp};

/// Day (`yyyyMMdd`), region and service that a signing key is derived for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    pub date: String,
    pub region: String,
    pub service: String,
}

/// How long a signature is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// In a header: 15 minutes around its time.
    Skew,
    /// In a presigned URL: seconds from its time, 0 to 604,800.
    Seconds(u32),
}

/// A request's signature and what it claims, well-formed but not checked until [`Authorization::verify`].
#[derive(Clone)]
pub struct Authorization {
    pub access_key_id: String,
    pub scope: Scope,
    pub timestamp: Timestamp,
    pub lifetime: Lifetime,
    security_token: Option<String>,
    /// As sent: names joined by `;`.
    signed_headers: String,
    signature: String,
}

impl Authorization {
    /// From the `Authorization` header or the query; `None` when the request carries neither (it is anonymous).
    ///
    /// # Errors
    /// All that can be wrong before the secret is known, but not the time ([`Authorization::check_time`]).
    pub fn parse(_request: &Request<'_>, _service: &str) -> Result<Option<Authorization>, Error> {
        todo!()
    }
    /// # Errors
    /// `RequestTimeTooSkewed`; for a presigned URL `Expired`, `NotYetValid`.
    pub fn check_time(&self, _now_ms: i64) -> Result<(), Error> {
        todo!()
    }
    /// For callers that accept one region only.
    ///
    /// # Errors
    /// `HeaderMalformed` or `QueryMalformed` naming both regions.
    pub fn require_region(&self, _expected: &str) -> Result<(), Error> {
        todo!()
    }
    /// `x-amz-security-token`, from the header or the query.
    pub fn security_token(&self) -> Option<&str> {
        self.security_token.as_deref()
    }
    pub fn is_presigned(&self) -> bool {
        matches!(self.lifetime, Lifetime::Seconds(_))
    }
    /// What the request says about its body. A presigned URL that says nothing means `UNSIGNED-PAYLOAD`.
    ///
    /// # Errors
    /// `MissingContentSha256`, `InvalidContentSha256`, `PayloadUnsupported`.
    pub fn payload(&self, _request: &Request<'_>) -> Result<Payload, Error> {
        todo!()
    }
    /// Whether the signature is the one `key` makes of this request. Takes the same time wherever they differ.
    ///
    /// # Errors
    /// `HeadersNotSigned`, `SignatureDoesNotMatch`.
    pub fn verify(&self, _request: &Request<'_>, _key: &SigningKey, _payload: &Payload) -> Result<(), Error> {
        todo!()
    }
    /// Starts the chain of chunk signatures at this (verified) signature.
    pub fn chunk_signer(&self, _key: &SigningKey) -> ChunkSigner {
        todo!()
    }
}
