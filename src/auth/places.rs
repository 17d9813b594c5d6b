//! What vended keys may still reach: the live side of a statement that nothing stores.
//!
//! A key opens a place for one table: while the table is staged, while it lives, and after it was dropped, so that its
//! client can clean up. Once another table has the place, or part of it, the key is worth nothing.

use super::grants::Scope;
use crate::db::{
    Db,
    tables::{self, Except, Named},
};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

/// How long a place once seen to be the table's is believed to be. Milliseconds.
pub const HELD_FRESH_MS: i64 = 1_000;

/// Part of every metadata file's name; nothing else is looked up.
const METADATA_NAME: &str = ".metadata.json";

/// When a key's place was last seen to be its table's, shared by everything that uses the key.
#[derive(Debug, Clone)]
pub struct Held(Arc<AtomicI64>);

impl Default for Held {
    fn default() -> Held {
        Held(Arc::new(AtomicI64::new(i64::MIN)))
    }
}

impl Held {
    /// Whether no other table is in, on or around the places of `scope`.
    pub async fn check(&self, db: &Db, scope: &Scope, now_ms: i64) -> Result<bool, sqlx::Error> {
        let age_ms = now_ms.saturating_sub(self.0.load(Ordering::Relaxed));
        if (0..HELD_FRESH_MS).contains(&age_ms) {
            return Ok(true);
        }
        for prefix in &scope.prefixes {
            if tables::location_taken(db, &format!("s3://{prefix}"), Except::Table(scope.table)).await? {
                return Ok(false);
            }
        }
        self.0.store(now_ms, Ordering::Relaxed);
        Ok(true)
    }
}

/// Whether an object is a metadata file that a living table names or named.
pub async fn metadata_named(db: &Db, bucket: &str, key: &str) -> Result<Option<Named>, sqlx::Error> {
    if !key.contains(METADATA_NAME) || key.contains('\0') {
        return Ok(None);
    }
    tables::named(db, &format!("s3://{bucket}/{key}")).await
}
