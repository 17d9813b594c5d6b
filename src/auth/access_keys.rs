//! Access keys: made here, their secrets sealed in the database, and looked up through a small cache.
//!
//! What the cache shows is at most [`FRESH_MS`] old; a key deleted through this process is gone at once.

use super::master_key::Seal;
use crate::db::{
    Db,
    keys::{self, AccessKeyRow},
};
use aws_lc_rs::rand;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use quick_cache::sync::Cache;
use secrecy::SecretString;
use std::sync::{Arc, Mutex, PoisonError};

/// How long a key read from the database is believed. Milliseconds.
pub const FRESH_MS: i64 = 5_000;
/// Ids remembered at most, known and unknown ones together.
const CACHED_MAX: usize = 10_000;
/// Nothing longer is looked up. Bytes.
const ID_BYTES_MAX: usize = 128;
/// Characters of a fresh id behind `TW`, five random bits each.
const ID_CHARS: usize = 18;
const ID_ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Random bytes of a fresh secret: 40 characters of base64.
const SECRET_BYTES: usize = 30;

/// A usable access key.
pub struct AccessKey {
    pub id: Arc<str>,
    pub principal: Arc<str>,
    pub secret: SecretString,
    expires_at_ms: Option<i64>,
}

/// A fresh id and secret.
pub struct NewKey {
    pub id: String,
    pub secret: SecretString,
}

impl NewKey {
    pub fn make() -> NewKey {
        let id_bytes: [u8; ID_CHARS] = random();
        let secret_bytes: [u8; SECRET_BYTES] = random();
        let letters = id_bytes.iter().map(|byte| char::from(ID_ALPHABET[usize::from(byte % 32)]));
        let id = "TW".chars().chain(letters).collect();
        NewKey { id, secret: URL_SAFE_NO_PAD.encode(secret_bytes).into() }
    }
}

fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    rand::fill(&mut bytes).expect("AWS-LC's generator aborts the process rather than fail");
    bytes
}

#[derive(Clone)]
struct Cached {
    /// `None`: there was no such key.
    key: Option<Arc<AccessKey>>,
    read_at_ms: i64,
}

pub struct AccessKeys {
    db: Db,
    seal: Seal,
    cache: Cache<Arc<str>, Cached>,
    /// Raised by every change made here: a read that began before it is not remembered after it.
    changes: Mutex<u64>,
}

impl AccessKeys {
    pub fn new(db: Db, seal: Seal) -> AccessKeys {
        AccessKeys { db, seal, cache: Cache::new(CACHED_MAX), changes: Mutex::new(0) }
    }

    /// The key, unless it is unknown or its time has passed.
    pub async fn find(&self, id: &str, now_ms: i64) -> Result<Option<Arc<AccessKey>>, sqlx::Error> {
        if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains('\0') {
            return Ok(None);
        }
        let key = match self.cache.get(id) {
            Some(cached) if (0..FRESH_MS).contains(&(now_ms - cached.read_at_ms)) => cached.key,
            _ => self.read(id, now_ms).await?,
        };
        Ok(key.filter(|key| key.expires_at_ms.is_none_or(|expires_at_ms| now_ms < expires_at_ms)))
    }

    async fn read(&self, id: &str, now_ms: i64) -> Result<Option<Arc<AccessKey>>, sqlx::Error> {
        let changes_before = *self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let row = keys::load(&self.db, id).await?;
        let key = row.and_then(|row| self.open(row)).map(Arc::new);
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if *changes == changes_before {
            self.cache.insert(id.into(), Cached { key: key.clone(), read_at_ms: now_ms });
        }
        Ok(key)
    }

    fn open(&self, row: AccessKeyRow) -> Option<AccessKey> {
        let Some(secret) = self.seal.open(&row.id, &row.sealed_secret) else {
            tracing::error!(access_key_id = row.id, "access key was sealed under another master key, or is damaged");
            return None;
        };
        Some(AccessKey { id: row.id.into(), principal: row.principal.into(), secret, expires_at_ms: row.expires_at_ms })
    }

    /// Stores a key under `id`; `false` when the id is taken.
    pub async fn create(
        &self,
        new: &NewKey,
        principal: &str,
        expires_at_ms: Option<i64>,
        now_ms: i64,
    ) -> Result<bool, sqlx::Error> {
        let created = keys::create(&self.db, &self.row(new, principal, expires_at_ms, now_ms)).await?;
        self.forget(&new.id);
        Ok(created)
    }

    /// Stores a key under `id`, in place of the one that is there.
    pub async fn put(&self, new: &NewKey, principal: &str, now_ms: i64) -> Result<(), sqlx::Error> {
        keys::put(&self.db, &self.row(new, principal, None, now_ms)).await?;
        self.forget(&new.id);
        Ok(())
    }

    fn row(&self, new: &NewKey, principal: &str, expires_at_ms: Option<i64>, now_ms: i64) -> AccessKeyRow {
        AccessKeyRow {
            id: new.id.clone(),
            principal: principal.to_owned(),
            sealed_secret: self.seal.seal(&new.id, &new.secret),
            created_at_ms: now_ms,
            expires_at_ms,
        }
    }

    /// All keys, sealed, in id order.
    pub async fn list(&self) -> Result<Vec<AccessKeyRow>, sqlx::Error> {
        keys::list(&self.db).await
    }

    /// `false` when there was none. Refused in this process from the moment this returns.
    pub async fn delete(&self, id: &str) -> Result<bool, sqlx::Error> {
        let deleted = keys::delete(&self.db, id).await;
        self.forget(id);
        deleted
    }

    fn forget(&self, id: &str) {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        *changes += 1;
        self.cache.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    #[test]
    fn fresh_keys_have_their_shape_and_differ() {
        let (one, two) = (NewKey::make(), NewKey::make());
        assert_eq!(one.id.len(), 20);
        assert!(one.id.starts_with("TW"));
        assert!(one.id.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()));
        assert_eq!(one.secret.expose_secret().len(), 40);
        assert_ne!(one.id, two.id);
        assert_ne!(one.secret.expose_secret(), two.secret.expose_secret());
    }
}
