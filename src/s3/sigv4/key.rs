//! Signing keys and signatures.

use aws_lc_rs::{constant_time::verify_slices_are_equal, digest, hmac};

/// 64 lower-case hexadecimal digits.
pub type Signature = [u8; 64];

/// What ends every scope, and every chain of keys.
pub(super) const TERMINAL: &str = "aws4_request";

/// A key derived for one secret, day, region and service. Good for any number of requests of that day; deriving costs four
/// HMACs of short strings, some two microseconds.
#[derive(Clone)]
pub struct SigningKey(hmac::Key);

impl SigningKey {
    /// `date` as `yyyyMMdd`.
    pub fn derive(secret: &str, date: &str, region: &str, service: &str) -> SigningKey {
        let mut first = Vec::with_capacity(4 + secret.len());
        first.extend_from_slice(b"AWS4");
        first.extend_from_slice(secret.as_bytes());
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, &first);
        for part in [date, region, service, TERMINAL] {
            key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
        }
        SigningKey(key)
    }

    pub(in crate::s3) fn sign(&self, string_to_sign: &[u8]) -> Signature {
        hex(hmac::sign(&self.0, string_to_sign).as_ref())
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}

/// Compares in a time that tells nothing about where the two differ.
pub(in crate::s3) fn same_signature(computed: &Signature, provided: &[u8]) -> bool {
    verify_slices_are_equal(computed, provided).is_ok()
}

/// The SHA-256 of `bytes` in lower-case hexadecimal.
pub(in crate::s3) fn sha256_hex(bytes: &[u8]) -> Signature {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// The first 32 bytes in lower-case hexadecimal; missing ones are zero.
pub(in crate::s3) fn hex(digest: &[u8]) -> Signature {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = [b'0'; 64];
    for (pair, byte) in text.chunks_exact_mut(2).zip(digest) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    text
}

/// The digits as text.
pub(in crate::s3) fn hex_str(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}
