//! The master key: 32 random bytes from which every other key of the server is derived.
//!
//! Kept in `<data>/keys/master` (mode 0600, folder 0700), or given by the setting `master_key` where several replicas
//! must agree. Losing it makes stored access keys unusable; it can be replaced only together with them.

use super::{StartError, key_file};
use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey},
    hkdf, hmac, rand,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use secrecy::{ExposeSecret, SecretBox, SecretString, zeroize::Zeroize};
use std::path::Path;

/// Bytes of the master key and of every key derived from it.
pub const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;
/// First byte of a sealed secret: which layout follows.
const SEALED_VERSION: u8 = 1;

pub struct MasterKey(SecretBox<[u8; KEY_BYTES]>);

impl MasterKey {
    /// Reads `<folder>/master`, making folder and key where they are missing. Of several processes that start at
    /// once, all come back with the same key.
    ///
    /// # Errors
    /// When the file cannot be read or made, or holds anything but 32 bytes.
    pub fn load_or_make(folder: &Path) -> Result<MasterKey, StartError> {
        let mut fresh = [0; KEY_BYTES];
        rand::fill(&mut fresh).expect("AWS-LC's generator aborts the process rather than fail");
        let path = folder.join("master");
        let stored = key_file::load_or_make(&path, &fresh);
        fresh.zeroize();
        let mut stored = stored?;
        let bytes = <[u8; KEY_BYTES]>::try_from(stored.as_slice());
        stored.zeroize();
        match bytes {
            Ok(bytes) => Ok(MasterKey(SecretBox::new(Box::new(bytes)))),
            Err(_) => Err(StartError::Malformed { path, expected: "exactly 32 bytes" }),
        }
    }

    /// Parses the setting: 32 bytes as 64 hexadecimal digits or as base64. `None` when it is neither.
    pub fn parse(text: &SecretString) -> Option<MasterKey> {
        let text = text.expose_secret().trim();
        let decoded = if text.len() == 2 * KEY_BYTES { hex::decode(text).ok() } else { STANDARD.decode(text).ok() };
        let mut decoded = decoded?;
        let bytes = <[u8; KEY_BYTES]>::try_from(decoded.as_slice()).ok();
        decoded.zeroize();
        Some(MasterKey(SecretBox::new(Box::new(bytes?))))
    }

    /// A key for one purpose; different purposes give unrelated keys.
    pub fn derive(&self, purpose: &str) -> SecretBox<[u8; KEY_BYTES]> {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"tidewater").extract(self.0.expose_secret());
        let mut key = Box::new([0; KEY_BYTES]);
        prk.expand(&[purpose.as_bytes()], hkdf::HKDF_SHA256)
            .and_then(|okm| okm.fill(key.as_mut_slice()))
            .expect("HKDF-SHA256 yields up to 255 blocks of 32 bytes");
        SecretBox::new(key)
    }

    pub fn derive_hmac(&self, purpose: &str) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.derive(purpose).expose_secret())
    }

    pub fn derive_seal(&self, purpose: &str) -> Seal {
        let key = self.derive(purpose);
        Seal(RandomizedNonceKey::new(&AES_256_GCM, key.expose_secret()).expect("the key has AES-256's length"))
    }
}

/// Seals small secrets with AES-256-GCM so that they can lie in a database.
pub struct Seal(RandomizedNonceKey);

impl Seal {
    /// Version byte, nonce, ciphertext and tag. `owner` must be given again to open it.
    pub fn seal(&self, owner: &str, secret: &SecretString) -> Vec<u8> {
        let mut text = secret.expose_secret().as_bytes().to_vec();
        let nonce = self
            .0
            .seal_in_place_append_tag(Aad::from(owner.as_bytes()), &mut text)
            .expect("the text is far below AES-GCM's limit of 64 GiB");
        let mut sealed = Vec::with_capacity(1 + NONCE_BYTES + text.len());
        sealed.push(SEALED_VERSION);
        sealed.extend_from_slice(nonce.as_ref());
        sealed.extend_from_slice(&text);
        sealed
    }

    /// `None` when it was sealed under another master key, for another owner, or is damaged.
    pub fn open(&self, owner: &str, sealed: &[u8]) -> Option<SecretString> {
        let (version, rest) = sealed.split_first()?;
        if *version != SEALED_VERSION {
            return None;
        }
        let (nonce, text) = rest.split_at_checked(NONCE_BYTES)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(owner.as_bytes()), &mut text).ok()?;
        let secret = std::str::from_utf8(plain).ok().map(SecretString::from);
        text.zeroize();
        secret
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn key(byte: u8) -> MasterKey {
        MasterKey(SecretBox::new(Box::new([byte; KEY_BYTES])))
    }

    #[test]
    fn made_once_with_private_modes_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let first = MasterKey::load_or_make(&keys).unwrap();
        let second = MasterKey::load_or_make(&keys).unwrap();
        assert_eq!(first.0.expose_secret(), second.0.expose_secret());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&keys), 0o700);
        assert_eq!(mode(&keys.join("master")), 0o600);
        assert_eq!(std::fs::read_dir(&keys).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn truncated_file_stops_the_start() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("master"), [1; 31]).unwrap();
        let error = MasterKey::load_or_make(folder.path()).err().unwrap();
        assert!(error.to_string().contains("32 bytes"), "{error}");
    }

    #[test]
    fn setting_is_hex_or_base64_of_32_bytes() {
        let hex = MasterKey::parse(&"07".repeat(32).into()).unwrap();
        let base64 = MasterKey::parse(&STANDARD.encode([7; 32]).into()).unwrap();
        assert_eq!(hex.0.expose_secret(), &[7; 32]);
        assert_eq!(base64.0.expose_secret(), &[7; 32]);
        for bad in ["", "07", "zz", &STANDARD.encode([7; 31]), &"x".repeat(64)] {
            assert!(MasterKey::parse(&bad.to_owned().into()).is_none(), "{bad}");
        }
    }

    #[test]
    fn purposes_and_masters_give_different_keys() {
        let one = key(1).derive("bearer");
        assert_ne!(one.expose_secret(), key(1).derive("seal").expose_secret());
        assert_ne!(one.expose_secret(), key(2).derive("bearer").expose_secret());
        assert_eq!(one.expose_secret(), key(1).derive("bearer").expose_secret());
    }

    #[test]
    fn sealed_opens_only_for_its_owner_and_master_and_undamaged() {
        let seal = key(1).derive_seal("access-keys");
        let secret = SecretString::from("s3cr3t");
        let sealed = seal.seal("TWA", &secret);
        assert_eq!(seal.open("TWA", &sealed).unwrap().expose_secret(), "s3cr3t");
        assert!(seal.open("TWB", &sealed).is_none());
        assert!(key(2).derive_seal("access-keys").open("TWA", &sealed).is_none());
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(seal.open("TWA", &damaged).is_none(), "byte {at}");
            assert!(seal.open("TWA", &sealed[..at]).is_none(), "length {at}");
        }
        assert_ne!(sealed, seal.seal("TWA", &secret), "each sealing takes a fresh nonce");
    }
}
