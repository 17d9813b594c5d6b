//! Reports of scans and commits: taken at once, stored in groups, kept for a bounded time and up to a bounded count.
//!
//! A report that was acknowledged waits in memory, at most [`WAITING_MAX`] do; the job (`jobs/reports.rs`) stores them a
//! moment later, and whoever reads stores them first. So neither a commit nor a scan ever waits for a report, and a
//! crash loses at most the reports of its last moments. What does not fit is dropped and counted. Reports are clients'
//! words: they are bound as values and never logged.

use super::{Error, Result, authorise, tables, warehouses::Warehouse};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    db::{
        self,
        reports::{Kind, NewReport, Owner, Range},
    },
    iceberg::{
        ident::TableIdent,
        report::{Report, ReportKind},
    },
    telemetry::Chain,
};
use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;
use uuid::Uuid;

pub use db::reports::{Kind as ReportsKind, ReportRow};

/// Reports that wait to be stored at most; each has [`crate::iceberg::report::KEPT_BYTES_MAX`] bytes at most.
pub const WAITING_MAX: usize = 4_096;
/// Reports stored by one statement.
const GROUP_MAX: usize = 64;
/// Reports forgotten by one statement.
const FORGET_MAX: u32 = 500;
/// Owners whose bound is looked at in one round of [`prune`]; others wait for their next report.
const OWNERS_MAX: usize = 1_024;
/// A table may have this part of its warehouse's reports: one table does not push out all others.
const TABLE_SHARE: u32 = 10;

const MS_OF_A_DAY: i64 = 86_400_000;

/// Reports on their way into the database.
#[derive(Default)]
pub(crate) struct Inbox {
    waiting: Mutex<VecDeque<NewReport>>,
    /// Told when a report came.
    arrived: Notify,
    /// Held while reports are stored: who has it knows that all earlier ones are.
    storing: tokio::sync::Mutex<()>,
    /// Owners that got reports since the last [`prune`].
    grown: Mutex<HashSet<(Owner, Kind)>>,
}

impl Inbox {
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// `false` when it is full.
    fn push(&self, report: NewReport) -> bool {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= WAITING_MAX {
            return false;
        }
        waiting.push_back(report);
        drop(waiting);
        self.arrived.notify_one();
        true
    }

    fn take_group(&self) -> Vec<NewReport> {
        let mut waiting = lock(&self.waiting);
        let count = waiting.len().min(GROUP_MAX);
        waiting.drain(..count).collect()
    }

    /// Puts a group that could not be stored back to the front; answers how many found no room any more.
    fn put_back(&self, group: Vec<NewReport>) -> usize {
        let mut waiting = lock(&self.waiting);
        let room = WAITING_MAX.saturating_sub(waiting.len());
        let dropped = group.len().saturating_sub(room);
        group.into_iter().skip(dropped).rev().for_each(|report| waiting.push_front(report));
        dropped
    }

    fn note_grown(&self, group: &[NewReport]) {
        let mut grown = lock(&self.grown);
        for report in group {
            for owner in [Owner::Warehouse(report.warehouse), Owner::Table(report.table)] {
                if grown.len() < OWNERS_MAX {
                    grown.insert((owner, report.kind));
                }
            }
        }
    }
}

/// Whole even after a panic elsewhere: nothing in between its changes can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a report about a table. It is stored a moment later, or dropped and counted where too many wait.
///
/// # Errors
/// `Error::NoSuchTable`.
pub async fn record(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    ident: &TableIdent,
    report: Report,
) -> Result<()> {
    authorise(caller)?;
    let row = tables::row(app, warehouse, ident).await?;
    if app.settings.metrics_reports_days == 0 {
        return Ok(());
    }
    let now_ms = now_ms();
    let new = NewReport {
        id: db::reports::id_at(now_ms),
        warehouse: warehouse.id,
        table: row.id,
        kind: match report.kind {
            ReportKind::Scan => Kind::Scan,
            ReportKind::Commit => Kind::Commit,
        },
        received_at_ms: now_ms,
        principal: caller.principal.to_string(),
        // Strings always have a JSON form.
        namespace: serde_json::to_string(ident.namespace.levels()).unwrap_or_default(),
        name: ident.name.clone(),
        report: report.json,
    };
    let outcome = if app.catalog.reports.push(new) { "taken" } else { "dropped" };
    metrics::counter!("tidewater_metrics_reports_total", "outcome" => outcome).increment(1);
    Ok(())
}

/// Which reports a reader asks for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub table: Option<TableIdent>,
    /// Received at this time or later. Milliseconds since the epoch.
    pub from_ms: Option<i64>,
    /// Received before this time.
    pub until_ms: Option<i64>,
    /// Older than this report: where the page before ended.
    pub after: Option<Uuid>,
    pub limit: u32,
}

/// Newest first. Every report that this process acknowledged is among them, unless the database takes none now.
///
/// # Errors
/// `Error::NoSuchTable`.
pub async fn list(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    kind: Kind,
    filter: &Filter,
) -> Result<Vec<ReportRow>> {
    authorise(caller)?;
    let owner = match &filter.table {
        Some(ident) => Owner::Table(tables::row(app, warehouse, ident).await?.id),
        None => Owner::Warehouse(warehouse.id),
    };
    if let Err(error) = store_waiting(app).await {
        tracing::warn!(error = %Chain(&error), "waiting reports cannot be stored now");
    }
    let end = filter.until_ms.map_or(Uuid::max(), db::reports::id_before);
    let range = Range {
        first: filter.from_ms.map_or(Uuid::nil(), db::reports::id_before),
        end: filter.after.map_or(end, |after| after.min(end)),
        limit: filter.limit,
    };
    db::reports::list(&app.db, owner, kind, range).await.map_err(Error::read)
}

/// Stores what waits, in a task of its own that its caller's end does not stop halfway.
///
/// # Errors
/// When the database cannot be reached; what waits goes on waiting.
pub(crate) async fn store_waiting(app: &App) -> Result<()> {
    let stored = tokio::spawn(store_groups(app.clone())).await;
    stored.unwrap_or_else(|error| Err(Error::Internal(Box::new(error))))
}

async fn store_groups(app: App) -> Result<()> {
    let inbox = &app.catalog.reports;
    let _storing = inbox.storing.lock().await;
    // No more than may have waited when we began, so that a reader does not store for all who come after it.
    for _ in 0..WAITING_MAX.div_ceil(GROUP_MAX) {
        let group = inbox.take_group();
        if group.is_empty() {
            break;
        }
        if let Err(error) = db::reports::insert(&app.db, group.clone()).await {
            let dropped = inbox.put_back(group);
            metrics::counter!("tidewater_metrics_reports_total", "outcome" => "dropped").increment(dropped as u64);
            return Err(Error::write(error));
        }
        inbox.note_grown(&group);
    }
    Ok(())
}

/// Forgets reports that are too old, and the oldest of warehouses and tables that have too many; answers how many.
///
/// # Errors
/// When the database cannot be reached; the next round continues.
pub(crate) async fn prune(app: &App, now_ms: i64) -> Result<u64> {
    let age_ms = i64::from(app.settings.metrics_reports_days).saturating_mul(MS_OF_A_DAY);
    let mut count = 0;
    loop {
        let gone = db::reports::forget_before(&app.db, now_ms.saturating_sub(age_ms), FORGET_MAX).await;
        let gone = gone.map_err(Error::write)?;
        count += gone;
        if gone < u64::from(FORGET_MAX) {
            break;
        }
    }
    let grown = std::mem::take(&mut *lock(&app.catalog.reports.grown));
    for (owner, kind) in grown {
        count += prune_owner(app, owner, kind).await?;
    }
    Ok(count)
}

async fn prune_owner(app: &App, owner: Owner, kind: Kind) -> Result<u64> {
    let keep = match owner {
        Owner::Warehouse(_) => app.settings.metrics_reports_max,
        Owner::Table(_) => app.settings.metrics_reports_max.div_ceil(TABLE_SHARE),
    };
    let newest = db::reports::newest_beyond(&app.db, owner, kind, keep).await.map_err(Error::read)?;
    let Some(newest) = newest else { return Ok(0) };
    let mut count = 0;
    loop {
        let gone = db::reports::forget_through(&app.db, owner, kind, newest, FORGET_MAX).await.map_err(Error::write)?;
        count += gone;
        if gone < u64::from(FORGET_MAX) {
            return Ok(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(n: usize) -> NewReport {
        NewReport {
            id: Uuid::from_u128(n as u128),
            warehouse: Uuid::nil(),
            table: Uuid::nil(),
            kind: Kind::Scan,
            received_at_ms: 0,
            principal: String::new(),
            namespace: String::new(),
            name: String::new(),
            report: String::new(),
        }
    }

    #[test]
    fn a_full_inbox_takes_no_more_and_keeps_the_order() {
        let inbox = Inbox::default();
        assert!((0..WAITING_MAX).all(|n| inbox.push(report(n))));
        assert!(!inbox.push(report(WAITING_MAX)));
        let group = inbox.take_group();
        assert_eq!(group.len(), GROUP_MAX);
        assert!(inbox.push(report(WAITING_MAX)));
        assert_eq!(inbox.put_back(group), 1, "the oldest of the group found no room");
        let first = inbox.take_group().into_iter().map(|report| report.id.as_u128()).collect::<Vec<_>>();
        assert_eq!(first, (1..=GROUP_MAX as u128).collect::<Vec<_>>());
        assert!(!lock(&inbox.waiting).is_empty());
    }
}
