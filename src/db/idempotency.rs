//! Answers to requests that are to be answered once, kept for a while by the key their client chose.
//!
//! A record is written in the transaction of the change it answers for (`Db::recording`), so it is there exactly when
//! the change is. Keys belong to a principal: nobody learns another's answers.

use super::{
    Db,
    statement::{Tx, values},
};
use std::sync::Arc;
use uuid::Uuid;

/// Details longer than this are not kept; whoever needs one does without. Bytes.
pub const DETAIL_BYTES_MAX: usize = 64 << 10;

/// What a request is known by, and when it may be forgotten.
#[derive(Debug, Clone)]
pub struct Key {
    pub principal: Arc<str>,
    pub id: Uuid,
    /// Of everything the answer depends on: method, target and body.
    pub request_sha256: [u8; 32],
    pub now_ms: i64,
    pub expires_at_ms: i64,
}

/// The answer to keep.
#[derive(Debug, Clone)]
pub struct Record {
    pub key: Key,
    pub status: u16,
    /// The metadata file that the answer is about, where it is about one.
    pub location: Option<String>,
    /// What else is needed to give the answer again: JSON.
    pub detail: Option<String>,
}

/// An answer that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub request_sha256: Vec<u8>,
    pub status: u16,
    pub location: Option<String>,
    pub detail: Option<String>,
}

/// The request was answered since it was last looked up: by another replica, under the same key.
#[derive(Debug, thiserror::Error)]
#[error("the request was answered already")]
struct Answered;

/// Whether a change failed, whole, because its request was answered before.
pub fn is_answered(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Decode(source) if source.is::<Answered>())
}

type KeptRow = (Vec<u8>, i64, Option<String>, Option<String>);

pub async fn find(db: &Db, principal: &str, id: Uuid, now_ms: i64) -> Result<Option<Kept>, sqlx::Error> {
    let row: Option<KeptRow> = db
        .read()
        .optional(
            "select request_sha256, status, location, detail from idempotency_keys
             where principal = $1 and id = $2 and expires_at_ms > $3",
            &values![principal, id, now_ms],
        )
        .await?;
    Ok(row.map(|(request_sha256, status, location, detail)| Kept {
        request_sha256,
        status: u16::try_from(status).unwrap_or(500),
        location,
        detail,
    }))
}

const INSERT: &str = "insert into idempotency_keys
        (principal, id, request_sha256, status, location, detail, expires_at_ms)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict (principal, id) do update set request_sha256 = $3, status = $4, location = $5, detail = $6,
        expires_at_ms = $7
    where idempotency_keys.expires_at_ms <= $8
    returning id";

fn insert_values(record: &Record) -> [super::statement::Value<'_>; 8] {
    let Record { key, status, location, detail } = record;
    values![
        &*key.principal,
        key.id,
        key.request_sha256.as_slice(),
        i64::from(*status),
        location.as_deref(),
        detail.as_deref(),
        key.expires_at_ms,
        key.now_ms
    ]
}

/// Keeps an answer that comes with no change. `false` when one is kept under the key already.
pub async fn keep(db: &Db, record: &Record) -> Result<bool, sqlx::Error> {
    let made: Option<(Uuid,)> = db.write_one(INSERT, &insert_values(record)).await?;
    Ok(made.is_some())
}

/// # Errors
/// One that [`is_answered`] knows, when an answer is kept under the key already.
pub(super) async fn insert_in(tx: &mut Tx<'_>, record: &Record) -> Result<(), sqlx::Error> {
    let made: Option<(Uuid,)> = tx.on().optional(INSERT, &insert_values(record)).await?;
    made.map(drop).ok_or_else(|| sqlx::Error::Decode(Box::new(Answered)))
}

/// Forgets up to `limit` answers whose time has passed; how many it were.
pub async fn forget_expired(db: &Db, now_ms: i64, limit: i64) -> Result<u64, sqlx::Error> {
    db.write(Forget { now_ms, limit }).await
}

struct Forget {
    now_ms: i64,
    limit: i64,
}

impl super::change::Change for Forget {
    type Answer = u64;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<u64, sqlx::Error> {
        tx.on()
            .execute(
                "delete from idempotency_keys where (principal, id) in
                     (select principal, id from idempotency_keys where expires_at_ms <= $1
                      order by expires_at_ms limit $2)",
                &values![self.now_ms, self.limit],
            )
            .await
    }

    fn is_single_statement(&self) -> bool {
        true
    }
}
