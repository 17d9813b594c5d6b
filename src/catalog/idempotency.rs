//! Requests that are to be answered once, by a key their client chose.
//!
//! The answer is recorded in the transaction of the change itself, so a client that lost it and asks again gets it, and
//! nothing happens twice. Two at once wait for each other in this process; between replicas the record's own key
//! decides, and whoever comes second undoes its change and gives the first's answer.

pub use crate::db::idempotency::{DETAIL_BYTES_MAX, Kept, Key, Record};

use super::{
    Error, Result, authorise,
    queue::{Turn, WAITING_MAX},
};
use crate::{app::App, auth::Caller, db};
use std::sync::Arc;
use uuid::Uuid;

/// Answers forgotten in one statement.
const FORGOTTEN_AT_ONCE: i64 = 1_000;

/// Requests with one key of one principal, one at a time.
pub type Line = (Arc<str>, Uuid);

pub enum Begun {
    /// Not answered yet. Nobody else works on it in this process while this lives.
    Fresh(Turn<Line>),
    Answered(Kept),
}

/// # Errors
/// `Error::KeyReused`; `Error::Busy` when too many wait with the same key.
pub async fn begin(app: &App, caller: &Caller, key: &Key) -> Result<Begun> {
    authorise(caller)?;
    let turn = app.catalog.requests.turn(&(Arc::clone(&key.principal), key.id)).await;
    let turn = turn.ok_or_else(|| Error::Busy(format!("{WAITING_MAX} requests wait with the same Idempotency-Key")))?;
    Ok(find(app, key).await?.map_or(Begun::Fresh(turn), Begun::Answered))
}

/// The answer that was given before.
///
/// # Errors
/// `Error::KeyReused` when it was given to another request.
pub async fn find(app: &App, key: &Key) -> Result<Option<Kept>> {
    let kept = db::idempotency::find(&app.db, &key.principal, key.id, key.now_ms).await.map_err(Error::read)?;
    match kept {
        Some(kept) if kept.request_sha256 != key.request_sha256 => Err(Error::KeyReused(key.id)),
        kept => Ok(kept),
    }
}

/// Keeps an answer that came without a change, or whose change kept it already; answers one that was there before.
///
/// # Errors
/// When the database is away.
pub async fn keep(app: &App, record: &Record) -> Result<Option<Kept>> {
    let kept = find(app, &record.key).await?;
    if kept.is_some() || db::idempotency::keep(&app.db, record).await.map_err(Error::read)? {
        return Ok(kept);
    }
    find(app, &record.key).await
}

/// The record of a success that is about nothing but itself.
pub(super) fn answered(key: Option<&Key>, status: u16) -> Option<Record> {
    key.map(|key| Record { key: key.clone(), status, location: None, detail: None })
}

/// The record of a success that is about a version of a table or view. An old file may have no uuid: the row's is needed
/// to read it again.
pub(super) fn about(key: Option<&Key>, file: &str, uuid: Uuid) -> Option<Record> {
    let detail = serde_json::to_string(&uuid).ok();
    key.map(|key| Record { key: key.clone(), status: 200, location: Some(file.to_owned()), detail })
}

/// What such an answer was about.
#[derive(Debug, Clone)]
pub struct Version {
    /// Its metadata file.
    pub file: String,
    pub uuid: Uuid,
}

impl Version {
    /// `None` when the answer was about none.
    pub fn of(kept: &Kept) -> Option<Version> {
        let uuid = serde_json::from_str(kept.detail.as_deref()?).ok()?;
        Some(Version { file: kept.location.clone()?, uuid })
    }
}

/// Whoever won a race may have been the same request at another replica.
///
/// # Errors
/// `Error::AnsweredBefore`.
pub(super) async fn check_unanswered(app: &App, key: Option<&Key>) -> Result<()> {
    let Some(key) = key else { return Ok(()) };
    match find(app, key).await? {
        Some(_) => Err(Error::AnsweredBefore),
        None => Ok(()),
    }
}

/// Forgets answers whose time has passed.
///
/// # Errors
/// When the database is away.
pub async fn forget_expired(app: &App, now_ms: i64) -> Result<()> {
    let forget = || db::idempotency::forget_expired(&app.db, now_ms, FORGOTTEN_AT_ONCE);
    while forget().await.map_err(Error::read)? >= FORGOTTEN_AT_ONCE.unsigned_abs() {}
    Ok(())
}
