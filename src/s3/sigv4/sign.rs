//! The signing side: headers and presigned URLs.

use super::{
    ChunkSigner, Payload, Request, Scope, Signature, SigningKey, Timestamp,
    canonical::{self, encode_component},
    key,
};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::fmt::Write;

/// Headers that proxies and HTTP stacks add, change or drop on the way: never signed.
const UNSIGNED: [&str; 7] =
    ["accept-encoding", "authorization", "connection", "expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"];

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
    /// `host`, and signs all of them but those that change on the way. Path and query are percent-encoded as they will be
    /// sent. Answers the start of the chunk signatures, for bodies that carry them.
    ///
    /// # Errors
    /// `InvalidHeaderValue` when a key id, token or region holds bytes that no header can.
    pub fn sign(
        &self,
        method: &str,
        path: &str,
        query: &str,
        headers: &mut HeaderMap,
        payload: &Payload,
        now_ms: i64,
    ) -> Result<ChunkSigner, header::InvalidHeaderValue> {
        let timestamp = Timestamp::from_ms(now_ms);
        headers.insert("x-amz-date", HeaderValue::from_str(timestamp.as_str())?);
        headers.insert("x-amz-content-sha256", HeaderValue::from_str(payload.as_str())?);
        if let Some(token) = self.security_token {
            let mut token = HeaderValue::from_str(token)?;
            token.set_sensitive(true);
            headers.insert("x-amz-security-token", token);
        }
        let signed_headers = signed_names(headers);
        let request = Request { method, path, query, headers, authority: None };
        let (signature, chunk_signer) = self.signature(&request, &signed_headers, payload, timestamp);
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{},SignedHeaders={signed_headers},Signature={}",
            self.access_key_id,
            self.scope(timestamp),
            key::hex_str(&signature)
        );
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&authorization)?);
        Ok(chunk_signer)
    }

    /// The query string (without `?`) of a presigned URL, `query` included. `headers` must hold `host` and whatever else
    /// the client will have to send. The lifetime is in seconds; servers take 1 to 604,800.
    pub fn presign(
        &self,
        method: &str,
        path: &str,
        query: &str,
        headers: &HeaderMap,
        expires_s: u32,
        now_ms: i64,
    ) -> String {
        let timestamp = Timestamp::from_ms(now_ms);
        let signed_headers = signed_names(headers);
        let credential = format!("{}/{}", self.access_key_id, self.scope(timestamp));
        let mut presigned = query.to_owned();
        let mut push = |name: &str, value: &str| {
            let separator = if presigned.is_empty() { "" } else { "&" };
            // Writing to a string does not fail.
            let _ = write!(presigned, "{separator}{name}={}", encode_component(value.as_bytes()));
        };
        push("X-Amz-Algorithm", "AWS4-HMAC-SHA256");
        push("X-Amz-Credential", &credential);
        push("X-Amz-Date", timestamp.as_str());
        push("X-Amz-Expires", &expires_s.to_string());
        if let Some(token) = self.security_token {
            push("X-Amz-Security-Token", token);
        }
        push("X-Amz-SignedHeaders", &signed_headers);
        let request = Request { method, path, query: &presigned, headers, authority: None };
        let (signature, _) = self.signature(&request, &signed_headers, &Payload::Unsigned, timestamp);
        presigned.push_str("&X-Amz-Signature=");
        presigned.push_str(key::hex_str(&signature));
        presigned
    }

    fn signature(
        &self,
        request: &Request<'_>,
        signed_headers: &str,
        payload: &Payload,
        timestamp: Timestamp,
    ) -> (Signature, ChunkSigner) {
        let key = SigningKey::derive(self.secret, timestamp.date(), self.region, self.service);
        let scope = self.scope(timestamp);
        let canonical_request = canonical::request(request, self.service, signed_headers, payload.as_str());
        let string_to_sign = canonical::string_to_sign(timestamp, &scope, &canonical_request);
        let signature = key.sign(string_to_sign.as_bytes());
        (signature, ChunkSigner::new(key, timestamp, &scope, signature))
    }

    fn scope(&self, timestamp: Timestamp) -> Scope {
        Scope { date: timestamp.date().to_owned(), region: self.region.to_owned(), service: self.service.to_owned() }
    }
}

fn signed_names(headers: &HeaderMap) -> String {
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).filter(|name| !UNSIGNED.contains(name)).collect();
    names.sort_unstable();
    names.join(";")
}
