//! Commits to several tables at once: all of them are published, or none.
//!
//! As a commit to one table (`commit.rs`), with one transaction in place of one swap: files are written first, the
//! transaction alone makes them visible, a crash before it leaves files that no row names. Whatever lost the race is
//! built again on what won, all tables with it, as long as requirements hold.

use super::{
    Error, Result, authorise,
    commit::{ATTEMPTS_MAX, CommitTurn, delete_after_commit, pause, take_turn},
    create::{self, touches_another},
    document::{Document, off_thread},
    files, idempotency,
    idempotency::{Key, Record},
    location, publish,
    publish::Transacted as Outcome,
    tables::{self, Table},
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    db::tables::{NewTable, Refusal, Step, Swap},
    iceberg::{commit::Commit, ident::TableIdent, metadata::TableMetadata},
};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{collections::BTreeMap, sync::Arc};
use uuid::Uuid;

/// Tables in one transaction.
pub const TABLES_MAX: usize = 1_000;
/// Metadata files read or written at once.
const FILES_AT_ONCE: usize = 8;

/// One table and the commits to it, in their order.
type Change = (TableIdent, Arc<Vec<Commit>>);

/// What a table is to become.
enum Next {
    Swap {
        base: Table,
        metadata: Box<TableMetadata>,
    },
    Create(Box<TableMetadata>),
    /// Its requirements were checked against this version, and nothing changes.
    Hold(Table),
}

/// The same with its new file written.
enum Written {
    Swap { base: Table, document: Arc<Document> },
    Create { new: NewTable, document: Arc<Document> },
    Hold(Table),
}

/// How an attempt ended that did not fail.
enum Attempt {
    Done,
    Lost,
}

/// Applies all changes. An answer means that they are durable and visible. Several changes to one table are applied in
/// their order and published as one version.
///
/// # Errors
/// As [`super::commit::commit`], for the first table that something is wrong with; `Error::Invalid` for no changes, for
/// more than [`TABLES_MAX`], and for changes that name no table. After `Error::CommitStateUnknown` all of them are
/// published, or none.
pub async fn commit(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    commits: Vec<Commit>,
    key: Option<&Key>,
) -> Result<()> {
    authorise(caller)?;
    let changes = Arc::new(by_table(commits)?);
    let mut turns = Vec::with_capacity(changes.len());
    // In the order of names, as everyone: nobody waits in a circle.
    for (ident, _) in changes.iter() {
        turns.push(take_turn(app, warehouse, ident).await?);
    }
    let turns = Arc::new(turns);
    let result = attempts(app, warehouse, &changes, key, &turns).await;
    let outcome = super::commit::outcome(result.as_ref().map(|()| "committed"));
    metrics::counter!("tidewater_transactions_total", "outcome" => outcome).increment(1);
    result
}

fn by_table(commits: Vec<Commit>) -> Result<Vec<Change>> {
    let invalid = |text: String| Err(Error::Invalid(text));
    let mut tables = BTreeMap::<TableIdent, Vec<Commit>>::new();
    for commit in commits {
        let Some(ident) = commit.identifier.clone() else {
            return invalid("every change of a transaction needs an identifier".to_owned());
        };
        tables.entry(ident).or_default().push(commit);
    }
    if tables.is_empty() {
        return invalid("a transaction needs at least one change".to_owned());
    }
    if tables.len() > TABLES_MAX {
        return invalid(format!("a transaction has at most {TABLES_MAX} tables"));
    }
    for (ident, commits) in &tables {
        if commits.iter().skip(1).any(Commit::is_create) {
            return invalid(format!("a later change to {ident} requires that it does not exist"));
        }
    }
    Ok(tables.into_iter().map(|(ident, commits)| (ident, Arc::new(commits))).collect())
}

async fn attempts(
    app: &App,
    warehouse: &Arc<Warehouse>,
    changes: &Arc<Vec<Change>>,
    key: Option<&Key>,
    turns: &Arc<Vec<CommitTurn>>,
) -> Result<()> {
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 {
            metrics::counter!("tidewater_commit_retries_total").increment(1);
            tokio::time::sleep(pause(attempt)).await;
            idempotency::check_unanswered(app, key).await?;
        }
        let build =
            |(ident, commits): &Change| next(app.clone(), Arc::clone(warehouse), ident.clone(), Arc::clone(commits));
        let builds: Vec<_> = changes.iter().map(build).collect();
        let nexts: Vec<Next> = stream::iter(builds).buffered(FILES_AT_ONCE).try_collect().await?;
        // A task of its own: a client that hangs up cannot stop it halfway, and the turns last until it has ended.
        let task = write_and_publish(
            app.clone(),
            Arc::clone(warehouse),
            Arc::clone(changes),
            nexts,
            key.cloned(),
            Arc::clone(turns),
        );
        let attempted = tokio::spawn(task).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a transaction broke off");
            Err(unknown(changes))
        });
        match attempted? {
            Attempt::Done => return Ok(()),
            Attempt::Lost => {}
        }
    }
    Err(Error::CommitFailed(format!("the transaction lost the race {ATTEMPTS_MAX} times")))
}

fn unknown(changes: &[Change]) -> Error {
    let names: Vec<String> = changes.iter().map(|(ident, _)| ident.to_string()).collect();
    Error::TransactionStateUnknown(names.join(", "))
}

/// What one table is to become, from its newest version.
async fn next(app: App, warehouse: Arc<Warehouse>, ident: TableIdent, commits: Arc<Vec<Commit>>) -> Result<Next> {
    if commits.first().is_some_and(Commit::is_create) {
        create::check_free_to_complete(&app, &warehouse, &ident).await?;
        let metadata = match commits.as_slice() {
            [first, further @ ..] => first.create_then(further, Uuid::new_v4(), now_ms())?,
            [] => return Err(Error::internal("a table without a change")),
        };
        location::check(&warehouse.location, None, &metadata)?;
        return Ok(Next::Create(Box::new(metadata)));
    }
    let base = tables::read(&app, &warehouse, &ident).await?;
    let document = Arc::clone(&base.document);
    let applied = off_thread(document.json.len(), move || {
        let now_ms = now_ms().max(document.metadata.last_updated_ms());
        Commit::apply_all(commits.iter(), &document.metadata, &document.location, now_ms)
    });
    let Some(metadata) = applied.await?? else { return Ok(Next::Hold(base)) };
    location::check(&warehouse.location, Some(&*base.document.metadata), &metadata)?;
    Ok(Next::Swap { base, metadata: Box::new(metadata) })
}

async fn write_and_publish(
    app: App,
    warehouse: Arc<Warehouse>,
    changes: Arc<Vec<Change>>,
    nexts: Vec<Next>,
    key: Option<Key>,
    _turns: Arc<Vec<CommitTurn>>,
) -> Result<Attempt> {
    let writes: Vec<_> = nexts.into_iter().map(|next| write(&warehouse, next)).collect();
    let results: Vec<Result<Written>> = stream::iter(writes).buffered(FILES_AT_ONCE).collect().await;
    let (written, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    let written: Vec<Written> = written.into_iter().flatten().collect();
    if let Some(Err(error)) = failed.into_iter().next() {
        discard(&warehouse, &written).await;
        return Err(error);
    }
    let steps: Vec<Step<'_>> = changes.iter().zip(&written).map(|((ident, _), written)| written.step(ident)).collect();
    let record = key.map(|key| Record { key, status: 204, location: None, detail: None });
    let outcome = publish::transact(&app, &warehouse, &steps, record.as_ref()).await;
    if matches!(outcome, Outcome::Refused(..) | Outcome::NotSent(_) | Outcome::Answered) {
        discard(&warehouse, &written).await;
    }
    match outcome {
        Outcome::Done => {
            finish(&app, &warehouse, &written).await;
            Ok(Attempt::Done)
        }
        Outcome::Refused(at, refusal) => refused(&changes, &written, at, refusal),
        Outcome::NotSent(error) => Err(Error::read(error)),
        Outcome::Answered => Err(Error::AnsweredBefore),
        Outcome::Unknown => Err(unknown(&changes)),
    }
}

fn refused(changes: &[Change], written: &[Written], at: usize, refusal: Refusal) -> Result<Attempt> {
    let Some(((ident, _), written)) = changes.get(at).zip(written.get(at)) else { return Ok(Attempt::Lost) };
    match refusal {
        Refusal::Lost => Ok(Attempt::Lost),
        Refusal::LocationTaken => Err(touches_another(written.document().metadata.location())),
        Refusal::Exists(kind) => Err(create::exists_already(ident, kind)),
        Refusal::NoNamespace => Err(Error::NoSuchNamespace(ident.namespace.clone())),
    }
}

async fn write(warehouse: &Warehouse, next: Next) -> Result<Written> {
    let (base, metadata) = match next {
        Next::Hold(table) => return Ok(Written::Hold(table)),
        Next::Swap { base, metadata } => (Some(base), metadata),
        Next::Create(metadata) => (None, metadata),
    };
    let previous = base.as_ref().map(|base| base.row.metadata_location.as_str());
    let file = files::next_name(&*metadata, previous, Uuid::now_v7())?;
    let metadata: Arc<TableMetadata> = Arc::from(metadata);
    let size = base.as_ref().map_or(0, |base| base.document.json.len());
    let json = off_thread(size, {
        let metadata = Arc::clone(&metadata);
        move || Bytes::from(metadata.to_json())
    })
    .await?;
    files::write(warehouse, &file, json.clone()).await?;
    let document = Arc::new(Document::new(file, json, metadata));
    match base {
        Some(base) => Ok(Written::Swap { base, document }),
        None => Ok(Written::Create { new: create::new_row(&document)?, document }),
    }
}

impl Written {
    fn document(&self) -> &Arc<Document> {
        match self {
            Written::Swap { document, .. } | Written::Create { document, .. } => document,
            Written::Hold(table) => &table.document,
        }
    }

    fn step<'a>(&'a self, ident: &'a TableIdent) -> Step<'a> {
        match self {
            Written::Swap { base, document } => Step::Swap(Swap {
                base: &base.row,
                metadata_location: &document.location,
                location: document.metadata.location(),
                format_version: document.metadata.format_version(),
                now_ms: now_ms(),
            }),
            Written::Create { new, .. } => Step::Create { ident, new },
            Written::Hold(table) => Step::Hold(&table.row),
        }
    }
}

/// Deletes files that certainly nobody names.
async fn discard(warehouse: &Warehouse, written: &[Written]) {
    let new = written.iter().filter(|written| !matches!(written, Written::Hold(_)));
    stream::iter(new)
        .for_each_concurrent(FILES_AT_ONCE, |written| files::discard(warehouse, &written.document().location))
        .await;
}

/// Fills the cache with what was published, and deletes what tables no longer want kept.
async fn finish(app: &App, warehouse: &Warehouse, written: &[Written]) {
    for written in written {
        match written {
            Written::Swap { base, document } => {
                app.catalog.documents.keep(document);
                app.catalog.documents.forget(&base.document.location);
                delete_after_commit(warehouse, &base.document, &document.metadata).await;
            }
            Written::Create { document, .. } => app.catalog.documents.keep(document),
            Written::Hold(_) => {}
        }
    }
}
