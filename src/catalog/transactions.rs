//! Commits to several tables at once: all of them are published, or none.
//!
//! As a commit to one table (`commit.rs`), with one transaction in place of one swap: files are written first, the
//! transaction alone makes them visible, a crash before it leaves files that no row names. When it loses the race, only
//! the tables that others changed meanwhile are built again, as long as requirements hold; the others keep their files.

use super::{
    Error, Result, authorise,
    commit::{ATTEMPTS_MAX, CommitTurn, delete_after_commit, outcome, pause, take_turn},
    create::{self, touches_another},
    document::{Document, off_thread},
    files,
    idempotency::{self, Key, Record},
    location, publish,
    publish::Transacted as Outcome,
    tables::{self, Table},
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    db::tables::{NewTable, Refusal, Step, Swap, TableRow},
    iceberg::{commit::Commit, ident::TableIdent, metadata::TableMetadata},
};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::{collections::BTreeMap, sync::Arc};
use uuid::Uuid;

/// Current metadata of all tables in one transaction: the whole of it is in memory at once. Bytes of JSON. A single
/// table may have more.
const METADATA_BYTES_MAX: usize = if cfg!(test) { 1 << 20 } else { 256 << 20 };
/// Metadata files read, written or deleted at once.
const FILES_AT_ONCE: usize = 8;
/// Tables named in an error.
const NAMES_SHOWN_MAX: usize = 10;

/// One table in a transaction.
struct Part {
    ident: TableIdent,
    /// In their order.
    commits: Arc<Vec<Commit>>,
    /// Nothing until an attempt gets that far.
    written: Option<Written>,
}

/// What a table is to become.
enum Next {
    Swap {
        base: Table,
        metadata: Box<TableMetadata>,
    },
    Create(Box<TableMetadata>),
    /// Its requirements were checked against this version, and nothing changes.
    Hold(Table),
    /// What an earlier attempt wrote, the table's file being the same; `None` where there is no table yet.
    AsWritten(Option<TableRow>),
}

/// The same with its new file on disk, which nobody names until the transaction does.
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
/// changes that name no table or do not go together, and for tables that are too large together.
/// After `Error::TransactionStateUnknown` all of them are published, or none.
pub async fn commit(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    commits: Vec<Commit>,
    key: Option<&Key>,
) -> Result<()> {
    authorise(caller)?;
    let parts = by_table(commits)?;
    let mut turns = Vec::with_capacity(parts.len());
    // In the order of names, as everyone: nobody waits in a circle.
    for part in &parts {
        turns.push(take_turn(app, warehouse, &part.ident).await?);
    }
    let names = shown(&parts);
    // A task of its own: a client that hangs up cannot stop it halfway, and the turns last until it has ended.
    let task = run(app.clone(), Arc::clone(warehouse), parts, key.cloned(), turns);
    let result = tokio::spawn(task).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a transaction broke off");
        Err(Error::TransactionStateUnknown(names))
    });
    let outcome = outcome(result.as_ref().map(|()| "committed"));
    metrics::counter!("tidewater_transactions_total", "outcome" => outcome).increment(1);
    result
}

fn by_table(commits: Vec<Commit>) -> Result<Vec<Part>> {
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
    for (ident, commits) in &tables {
        Commit::check_together(commits).map_err(|problem| Error::Invalid(format!("changes to {ident}: {problem}")))?;
    }
    let part = |(ident, commits)| Part { ident, commits: Arc::new(commits), written: None };
    Ok(tables.into_iter().map(part).collect())
}

/// The names of the tables, for an error.
fn shown(parts: &[Part]) -> String {
    let names: Vec<String> = parts.iter().take(NAMES_SHOWN_MAX).map(|part| part.ident.to_string()).collect();
    match parts.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

async fn run(
    app: App,
    warehouse: Arc<Warehouse>,
    mut parts: Vec<Part>,
    key: Option<Key>,
    _turns: Vec<CommitTurn>,
) -> Result<()> {
    let result = attempts(&app, &warehouse, &mut parts, key).await;
    match &result {
        Ok(()) => finish(&app, &warehouse, &parts).await,
        // Nobody can say whether the files are named: they stay.
        Err(Error::TransactionStateUnknown(_)) => {}
        Err(_) => discard(&warehouse, &parts).await,
    }
    result
}

async fn attempts(app: &App, warehouse: &Arc<Warehouse>, parts: &mut [Part], key: Option<Key>) -> Result<()> {
    let record = idempotency::answered(key.as_ref(), 204);
    for attempt in 0..ATTEMPTS_MAX {
        if attempt > 0 {
            metrics::counter!("tidewater_commit_retries_total").increment(1);
            tokio::time::sleep(pause(attempt)).await;
            idempotency::check_unanswered(app, key.as_ref()).await?;
        }
        build(app, warehouse, parts).await?;
        match publish(app, warehouse, parts, record.as_ref()).await? {
            Attempt::Done => return Ok(()),
            Attempt::Lost => {}
        }
    }
    Err(Error::CommitFailed(format!("the transaction lost the race {ATTEMPTS_MAX} times")))
}

/// Brings every part up to its table's current version. Nothing is written before all requirements hold.
async fn build(app: &App, warehouse: &Arc<Warehouse>, parts: &mut [Part]) -> Result<()> {
    let mut builds = Vec::with_capacity(parts.len());
    for part in parts.iter() {
        builds.push(part.next(app, warehouse));
    }
    let mut builds = stream::iter(builds).buffered(FILES_AT_ONCE);
    let (mut nexts, mut bytes) = (Vec::new(), 0_usize);
    while let Some(next) = builds.try_next().await? {
        bytes = bytes.saturating_add(next.base_bytes());
        nexts.push(next);
        if bytes > METADATA_BYTES_MAX && nexts.len() > 1 {
            let problem = format!("the tables of a transaction have at most {METADATA_BYTES_MAX} bytes of metadata");
            return Err(Error::Invalid(problem));
        }
    }
    drop(builds);
    let mut writes = Vec::with_capacity(parts.len());
    for (part, next) in parts.iter_mut().zip(nexts) {
        writes.push(part.write(warehouse, next));
    }
    // To the last one, whatever fails: a file that was written is then known.
    let written: Vec<Result<()>> = stream::iter(writes).buffered(FILES_AT_ONCE).collect().await;
    written.into_iter().collect()
}

async fn publish(app: &App, warehouse: &Warehouse, parts: &[Part], record: Option<&Record>) -> Result<Attempt> {
    let steps: Option<Vec<Step<'_>>> = parts.iter().map(Part::step).collect();
    let steps = steps.ok_or_else(|| Error::internal("a part of a transaction was not written"))?;
    match publish::transact(app, warehouse, &steps, record).await {
        Outcome::Done => Ok(Attempt::Done),
        Outcome::Refused(at, refusal) => parts.get(at).map_or(Ok(Attempt::Lost), |part| part.refused(refusal)),
        Outcome::NotSent(error) => Err(Error::read(error)),
        Outcome::Answered => Err(Error::AnsweredBefore),
        Outcome::Unknown => Err(Error::TransactionStateUnknown(shown(parts))),
    }
}

impl Part {
    /// What the table is to become, from its newest version.
    async fn next(&self, app: &App, warehouse: &Arc<Warehouse>) -> Result<Next> {
        if self.commits.first().is_some_and(Commit::is_create) {
            return self.next_create(app, warehouse).await;
        }
        let base = tables::read(app, warehouse, &self.ident).await?;
        if let Some(Written::Swap { base: earlier, .. } | Written::Hold(earlier)) = &self.written
            && (earlier.row.id, &earlier.row.metadata_location) == (base.row.id, &base.row.metadata_location)
        {
            return Ok(Next::AsWritten(Some(base.row)));
        }
        let (commits, document) = (Arc::clone(&self.commits), Arc::clone(&base.document));
        let applied = off_thread(document.json.len(), move || {
            let now_ms = now_ms().max(document.metadata.last_updated_ms());
            Commit::apply_all(commits.iter(), &document.metadata, &document.location, now_ms)
        });
        let Some(metadata) = applied.await?? else { return Ok(Next::Hold(base)) };
        location::check(&warehouse.location, Some(&*base.document.metadata), &metadata)?;
        Ok(Next::Swap { base, metadata: Box::new(metadata) })
    }

    async fn next_create(&self, app: &App, warehouse: &Warehouse) -> Result<Next> {
        create::check_free_to_complete(app, warehouse, &self.ident).await?;
        if self.written.is_some() {
            return Ok(Next::AsWritten(None));
        }
        let metadata = match self.commits.as_slice() {
            [first, further @ ..] => first.create_then(further, Uuid::new_v4(), now_ms())?,
            [] => return Err(Error::internal("a table without a change")),
        };
        location::check(&warehouse.location, None, &metadata)?;
        Ok(Next::Create(Box::new(metadata)))
    }

    /// Writes the file of what the table is to become, and deletes the one of an earlier attempt.
    async fn write(&mut self, warehouse: &Warehouse, next: Next) -> Result<()> {
        let (base, metadata) = match next {
            Next::AsWritten(row) => {
                // A fence may have raised its revision.
                if let (Some(Written::Swap { base, .. } | Written::Hold(base)), Some(row)) = (&mut self.written, row) {
                    base.row = row;
                }
                return Ok(());
            }
            Next::Hold(base) => (Some(base), None),
            Next::Swap { base, metadata } => (Some(base), Some(metadata)),
            Next::Create(metadata) => (None, Some(metadata)),
        };
        if let Some(earlier) = self.written.take() {
            earlier.discard(warehouse).await;
        }
        let document = match metadata {
            Some(metadata) => Some(write(warehouse, base.as_ref(), *metadata).await?),
            None => None,
        };
        self.written = match (base, document) {
            (Some(base), Some(document)) => Some(Written::Swap { base, document }),
            (None, Some(document)) => Some(Written::Create { new: create::new_row(&document)?, document }),
            (base, None) => base.map(Written::Hold),
        };
        Ok(())
    }

    fn step(&self) -> Option<Step<'_>> {
        Some(match self.written.as_ref()? {
            Written::Swap { base, document } => Step::Swap(Swap {
                base: &base.row,
                metadata_location: &document.location,
                location: document.metadata.location(),
                format_version: document.metadata.format_version(),
                now_ms: now_ms(),
            }),
            Written::Create { new, .. } => Step::Create { ident: &self.ident, new },
            Written::Hold(base) => Step::Hold(&base.row),
        })
    }

    fn refused(&self, refusal: Refusal) -> Result<Attempt> {
        let document = self.written.as_ref().and_then(Written::document);
        let place = document.map_or("", |document| document.metadata.location());
        match refusal {
            Refusal::Lost => Ok(Attempt::Lost),
            Refusal::LocationTaken => Err(touches_another(place)),
            Refusal::Exists(kind) => Err(create::exists_already(&self.ident, kind)),
            Refusal::NoNamespace => Err(Error::NoSuchNamespace(self.ident.namespace.clone())),
        }
    }
}

impl Next {
    /// What its table's current metadata takes. Bytes of JSON.
    fn base_bytes(&self) -> usize {
        match self {
            Next::Swap { base, .. } | Next::Hold(base) => base.document.json.len(),
            // What an earlier attempt wrote was counted then, as far as tables did not change since.
            Next::Create(_) | Next::AsWritten(_) => 0,
        }
    }
}

async fn write(warehouse: &Warehouse, base: Option<&Table>, metadata: TableMetadata) -> Result<Arc<Document>> {
    let file = files::next_name(&metadata, base.map(|base| base.row.metadata_location.as_str()), Uuid::now_v7())?;
    let metadata = Arc::new(metadata);
    let json = off_thread(base.map_or(0, |base| base.document.json.len()), {
        let metadata = Arc::clone(&metadata);
        move || Bytes::from(metadata.to_json())
    })
    .await?;
    files::write(warehouse, &file, json.clone()).await?;
    Ok(Arc::new(Document::new(file, json, metadata)))
}

impl Written {
    /// The new version, where there is one.
    fn document(&self) -> Option<&Arc<Document>> {
        match self {
            Written::Swap { document, .. } | Written::Create { document, .. } => Some(document),
            Written::Hold(_) => None,
        }
    }

    /// Deletes a file that certainly nobody names.
    async fn discard(&self, warehouse: &Warehouse) {
        if let Some(document) = self.document() {
            files::discard(warehouse, &document.location).await;
        }
    }
}

/// Deletes files that certainly nobody names.
async fn discard(warehouse: &Warehouse, parts: &[Part]) {
    let written = parts.iter().filter_map(|part| part.written.as_ref());
    stream::iter(written).for_each_concurrent(FILES_AT_ONCE, |written| written.discard(warehouse)).await;
}

/// Fills the cache with what was published, and deletes what tables no longer want kept.
async fn finish(app: &App, warehouse: &Warehouse, parts: &[Part]) {
    let documents = &app.catalog.documents;
    let written = parts.iter().filter_map(|part| part.written.as_ref());
    for document in written.clone().filter_map(Written::document) {
        documents.keep(document);
    }
    stream::iter(written)
        .for_each_concurrent(FILES_AT_ONCE, |written| async move {
            if let Written::Swap { base, document } = written {
                documents.forget(&base.document.location);
                delete_after_commit(warehouse, &base.document, &document.metadata).await;
            }
        })
        .await;
}
