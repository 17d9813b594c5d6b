//! Signing keys and signatures.

/// 64 lower-case hexadecimal digits.
pub type Signature = [u8; 64];

/// A key derived for one secret, day, region and service. Good for any number of requests of that day.
#[derive(Clone)]
pub struct SigningKey(aws_lc_rs::hmac::Key);

impl SigningKey {
    /// `date` as `yyyyMMdd`.
    pub fn derive(_secret: &str, _date: &str, _region: &str, _service: &str) -> SigningKey {
        todo!()
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").finish_non_exhaustive()
    }
}
