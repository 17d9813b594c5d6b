//! The chain of signatures through an `aws-chunked` body: each covers the one before.
//!
//! See "Signature Calculations for the Authorization Header: Transferring Payload in Multiple Chunks" and "… Including
//! Trailing Headers" in the S3 API reference.

use super::{Scope, Signature, SigningKey, Timestamp, key};

/// The SHA-256 of nothing: the place of a chunk's own headers, which do not exist.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Computes the signature that the next chunk, or the trailer, must carry.
#[derive(Clone)]
pub struct ChunkSigner {
    key: SigningKey,
    /// Timestamp and scope, a line each.
    context: String,
    previous: Signature,
}

impl ChunkSigner {
    pub(super) fn new(key: SigningKey, timestamp: Timestamp, scope: &Scope, seed: Signature) -> ChunkSigner {
        ChunkSigner { key, context: format!("{}\n{scope}\n", timestamp.as_str()), previous: seed }
    }

    /// The signature of the next chunk, given the SHA-256 of its bytes.
    pub fn chunk(&mut self, sha256: &[u8]) -> Signature {
        self.next("AWS4-HMAC-SHA256-PAYLOAD", &[EMPTY_SHA256.as_bytes(), b"\n", &key::hex(sha256)])
    }

    /// The signature of the trailer, given the SHA-256 of its lines (`name:value\n` each).
    pub fn trailer(&mut self, sha256: &[u8]) -> Signature {
        self.next("AWS4-HMAC-SHA256-TRAILER", &[&key::hex(sha256)])
    }

    fn next(&mut self, algorithm: &str, digests: &[&[u8]]) -> Signature {
        let mut string_to_sign = Vec::with_capacity(320);
        string_to_sign.extend_from_slice(algorithm.as_bytes());
        string_to_sign.push(b'\n');
        string_to_sign.extend_from_slice(self.context.as_bytes());
        string_to_sign.extend_from_slice(&self.previous);
        string_to_sign.push(b'\n');
        for part in digests {
            string_to_sign.extend_from_slice(part);
        }
        self.previous = self.key.sign(&string_to_sign);
        self.previous
    }
}

impl std::fmt::Debug for ChunkSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkSigner").finish_non_exhaustive()
    }
}
