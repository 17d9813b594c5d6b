//! The chain of signatures through an `aws-chunked` body: each covers the one before.

use super::{Signature, SigningKey};

/// Computes the signature that the next chunk, or the trailer, must carry.
#[derive(Clone)]
pub struct ChunkSigner {
    key: SigningKey,
    previous: Signature,
}

impl ChunkSigner {
    /// The signature of the next chunk, given the SHA-256 of its bytes.
    pub fn chunk(&mut self, _sha256: &[u8; 32]) -> Signature {
        todo!()
    }
    /// The signature of the trailer, given the SHA-256 of its lines (`name:value\n` each).
    pub fn trailer(&mut self, _sha256: &[u8; 32]) -> Signature {
        todo!()
    }
}
