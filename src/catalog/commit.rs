//! Commits to existing tables and views: requirements checked against the current version, updates applied, the
//! pointer swapped.
//!
//! The file is written first and the swap alone makes it visible. A crash before the swap leaves a file that no row
//! names (the reaper's, `jobs/reap.rs`); after it, a whole commit. A commit that lost the race is built again on what
//! won, as long as its requirements hold. Commits to one name take turns within this process.

use super::{
    Error, Result, authorise, create,
    document::{Document, off_thread},
    files, idempotency,
    idempotency::Key,
    location, publish,
    publish::Outcome,
    queue::{Turn, WAITING_MAX},
    relation::{self, Entry, Relation},
    tables::Table,
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    db::tables::{Swap, TableRow},
    iceberg::{commit::Commit, ident::TableIdent},
};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

/// How often a commit that lost the race is built anew. Only commits through other processes can win while this one
/// has its turn.
pub const ATTEMPTS_MAX: u32 = 16;
/// Longest pause before the first new attempt; it doubles up to [`PAUSE_MAX`]. The actual pause is random below it.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(640);

pub(super) type CommitTurn = Turn<(Uuid, TableIdent)>;

/// Applies a commit, or completes a staged create. An answer means that it is durable and visible.
///
/// # Errors
/// `Error::NoSuchTable`; `Error::CommitFailed` when a requirement does not hold or [`ATTEMPTS_MAX`] is reached;
/// `Error::Invalid` when an update breaks a rule; `Error::CommitStateUnknown`; otherwise nothing was changed. As
/// [`create::create`] for commits that create.
pub async fn commit(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    commit: Commit,
    key: Option<&Key>,
) -> Result<Table> {
    authorise(caller)?;
    let turn = take_turn(app, warehouse, ident).await?;
    let result = match commit.is_create() {
        true => create::complete(app, warehouse, ident, &commit, key).await.map(|table| (table, "committed")),
        false => update(app, warehouse, ident, Arc::new(commit), key, Arc::new(turn)).await,
    };
    counted(result)
}

/// Applies a commit to what exists. Counted by how it ended.
///
/// # Errors
/// As [`commit`], with [`Relation::missing`].
pub(super) async fn replace<R: Relation>(
    app: &App,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    commit: R::Commit,
    key: Option<&Key>,
) -> Result<Entry<R>> {
    let turn = take_turn(app, warehouse, ident).await?;
    counted(update(app, warehouse, ident, Arc::new(commit), key, Arc::new(turn)).await)
}

fn counted<T>(result: Result<(T, &'static str)>) -> Result<T> {
    let outcome = outcome(result.as_ref().map(|(_, outcome)| *outcome));
    metrics::counter!("tidewater_commits_total", "outcome" => outcome).increment(1);
    result.map(|(done, _)| done)
}

/// Waits until no other commit to what has the name is under way in this process.
///
/// # Errors
/// `Error::Busy`.
pub(super) async fn take_turn(app: &App, warehouse: &Warehouse, ident: &TableIdent) -> Result<CommitTurn> {
    let turn = app.catalog.commits.turn(&(warehouse.id, ident.clone())).await;
    turn.ok_or_else(|| Error::Busy(format!("{WAITING_MAX} commits are waiting for {ident}")))
}

async fn update<R: Relation>(
    app: &App,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    commit: Arc<R::Commit>,
    key: Option<&Key>,
    turn: Arc<CommitTurn>,
) -> Result<(Entry<R>, &'static str)> {
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 {
            metrics::counter!("tidewater_commit_retries_total").increment(1);
            tokio::time::sleep(pause(attempt)).await;
            idempotency::check_unanswered(app, key).await?;
        }
        let base = relation::read::<R>(app, warehouse, ident).await?;
        let Some(metadata) = apply(&commit, &base).await? else { return Ok((base, "unchanged")) };
        location::check(&warehouse.location, Some(&*base.document.metadata), &metadata)?;
        // A task of its own: a client that hangs up cannot stop it halfway, and the turn lasts until it has ended.
        let task = write_and_swap(app.clone(), ident.clone(), base, metadata, key.cloned(), Arc::clone(&turn));
        let swapped = tokio::spawn(task).await.unwrap_or_else(|error| {
            tracing::error!(name = %ident, %error, "a commit broke off");
            Err(Error::CommitStateUnknown(ident.clone()))
        });
        if let Some(entry) = swapped? {
            return Ok((entry, "committed"));
        }
    }
    Err(Error::CommitFailed(format!("commit to {ident} lost the race {ATTEMPTS_MAX} times")))
}

async fn apply<R: Relation>(commit: &Arc<R::Commit>, base: &Entry<R>) -> Result<Option<R>> {
    let (commit, document) = (Arc::clone(commit), Arc::clone(&base.document));
    let applied = off_thread(document.json.len(), move || R::apply(&commit, &document, now_ms())).await?;
    Ok(applied?)
}

/// `None`: another commit came first, and nothing is left of this attempt.
async fn write_and_swap<R: Relation>(
    app: App,
    ident: TableIdent,
    base: Entry<R>,
    metadata: R,
    key: Option<Key>,
    _turn: Arc<CommitTurn>,
) -> Result<Option<Entry<R>>> {
    let Entry { warehouse, row, document } = base;
    let file = files::next_name(&metadata, Some(&row.metadata_location), Uuid::now_v7())?;
    let metadata = Arc::new(metadata);
    let json = off_thread(document.json.len(), {
        let metadata = Arc::clone(&metadata);
        move || Bytes::from(metadata.to_json())
    })
    .await?;
    files::write(&warehouse, &file, json.clone()).await?;

    let swap = Swap {
        base: &row,
        metadata_location: &file,
        location: metadata.location(),
        format_version: metadata.format_version(),
        now_ms: now_ms(),
    };
    let record = idempotency::about(key.as_ref(), &file, row.uuid);
    let revision = match publish::swap(&app, &warehouse, &swap, record.as_ref()).await {
        Outcome::Done(revision) => revision,
        Outcome::Lost => return Ok(None),
        Outcome::LocationTaken => return Err(create::touches_another(metadata.location())),
        Outcome::Answered => return Err(Error::AnsweredBefore),
        Outcome::NotSent(error) => return Err(Error::read(error)),
        Outcome::Unknown => return Err(Error::CommitStateUnknown(ident)),
    };
    let superseded = document;
    let document = Arc::new(Document::new(file.clone(), json, Arc::clone(&metadata)));
    R::documents(&app.catalog).keep(&document);
    R::documents(&app.catalog).forget(&superseded.location);
    delete_after_commit(&warehouse, &superseded, &metadata).await;
    let row = TableRow {
        location: metadata.location().to_owned(),
        format_version: metadata.format_version(),
        previous_location: Some(row.metadata_location),
        metadata_location: file,
        // A settled swap raised it further; whoever commits next reads the row anew.
        revision: revision.unwrap_or(row.revision + 1),
        ..row
    };
    Ok(Some(Entry { warehouse, row, document }))
}

/// Deletes metadata files that are no longer wanted. Best effort: a crash leaves files that nothing names any more, as
/// where they are kept. Only files inside the table's own folder go.
pub(super) async fn delete_after_commit<R: Relation>(warehouse: &Warehouse, base: &Document<R>, metadata: &R) {
    for file in metadata.outdated_files(&base.metadata) {
        if location::is_within(file, metadata.location()) {
            files::discard(warehouse, file).await;
        }
    }
}

pub(super) fn pause(attempt: u32) -> Duration {
    let longest = PAUSE.saturating_mul(2_u32.saturating_pow(attempt - 1)).min(PAUSE_MAX);
    // The last bits of a fresh id are random.
    longest.mul_f64(f64::from(Uuid::new_v4().as_bytes()[15]) / 255.0)
}

/// How a commit ended, for the metrics.
pub(super) fn outcome(result: Result<&'static str, &Error>) -> &'static str {
    match result {
        Ok(outcome) => outcome,
        Err(Error::AnsweredBefore) => "unchanged",
        Err(Error::CommitFailed(_) | Error::NameTaken { .. }) => "conflict",
        Err(Error::CommitStateUnknown(_) | Error::TransactionStateUnknown(_) | Error::Internal(_)) => "unknown",
        Err(Error::Busy(_) | Error::StorageFull | Error::Unavailable(_)) => "unavailable",
        Err(_) => "refused",
    }
}
