//! Leased background work: idempotent, safe to run twice, recorded in the database.
//!
//! One worker a process takes due jobs one after the other and renews its lease while it works; a worker that died
//! leaves a lease that runs out. What jobs do is in their own files; who orders them is in `catalog/`.
//!
//! A job that fails is tried again after a second, two, four, up to an hour; after `ATTEMPTS_MAX` attempts, about a
//! day, it is parked: kept in the database with its last error, logged, and counted by `tidewater_jobs_failed`. Each
//! start of a server gives parked jobs one attempt more.

pub mod dropped_views;
mod lifecycle;
pub mod purge;
pub mod reap;
mod reports;

use crate::{
    app::{App, now_ms},
    catalog::{self, views::DroppedView},
    db::{self, jobs::LeasedJob},
    telemetry::metrics,
};
use std::time::Duration;
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a worker may be silent before another takes its job.
const LEASE_MS: i64 = 60_000;
/// How often a working worker says so.
const RENEWAL: Duration = Duration::from_millis(20_000);
/// How often the worker looks for jobs that nobody told it of: other replicas', and those due later.
const POLL: Duration = Duration::from_secs(15);
/// How often the reaper goes round.
const REAP_EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// How often answers that were kept for retries are forgotten.
const FORGET_EVERY: Duration = Duration::from_secs(10 * 60);
/// Pause after the first failure; it doubles with each, up to [`RETRY_MS_MAX`].
const RETRY_MS: i64 = 1_000;
const RETRY_MS_MAX: i64 = 60 * 60 * 1_000;
/// Attempts before a job is parked.
const ATTEMPTS_MAX: i32 = 32;

/// Why a job did not finish; it is tried again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the job's order cannot be read: {0}")]
    Order(String),
    #[error(transparent)]
    Catalog(#[from] crate::catalog::Error),
    #[error("catalog database failed")]
    Database(#[from] sqlx::Error),
    #[error("object storage failed")]
    Storage(#[from] object_store::Error),
    #[error("another table uses the folder")]
    FolderTaken,
    #[error("no such kind of job: {0}")]
    UnknownKind(String),
    #[error("the reader of a manifest broke")]
    Reader(#[from] tokio::task::JoinError),
}

/// Starts the worker. It ends soon after `stop`: what it was doing is due again at once, here or elsewhere.
pub fn spawn(app: App, stop: CancellationToken) -> JoinHandle<()> {
    tokio::spawn(async move {
        tokio::select! {
            () = reap_forever(&app) => {},
            () = reports::keep_forever(&app) => {},
            () = forget_forever(&app) => {},
            () = lifecycle::apply_forever(&app) => {},
            () = work(&app, &stop) => {},
        }
        reports::store_last(&app).await;
    })
}

async fn reap_forever(app: &App) {
    loop {
        match reap::run(app, now_ms()).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "metadata files of commits that never happened were deleted"),
            Err(error) => tracing::warn!(%error, "the reaper did not finish its round"),
        }
        tokio::time::sleep(REAP_EVERY).await;
    }
}

async fn forget_forever(app: &App) {
    loop {
        if let Err(error) = catalog::idempotency::forget_expired(app, now_ms()).await {
            tracing::warn!(%error, "answers kept for retries could not be forgotten");
        }
        tokio::time::sleep(FORGET_EVERY).await;
    }
}

async fn work(app: &App, stop: &CancellationToken) {
    let holder = Uuid::now_v7();
    if let Err(error) = db::jobs::retry_parked(&app.db, now_ms(), ATTEMPTS_MAX - 1).await {
        tracing::warn!(%error, "jobs that failed too often stay parked until the next start");
    }
    while !stop.is_cancelled() {
        let worked = match run_next(app, holder, stop).await {
            Ok(worked) => worked,
            Err(error) => {
                tracing::warn!(%error, "jobs cannot be taken");
                false
            }
        };
        if !worked {
            report_parked(app).await;
            tokio::select! {
                () = stop.cancelled() => {},
                () = app.catalog.jobs_due.notified() => {},
                () = tokio::time::sleep(POLL) => {},
            }
        }
    }
}

/// Takes one due job and runs it; `false` when none is due.
///
/// # Errors
/// When the database cannot be asked for jobs or told how one went; the lease then runs out by itself.
pub async fn run_next(app: &App, holder: Uuid, stop: &CancellationToken) -> Result<bool, sqlx::Error> {
    let Some(job) = db::jobs::lease(&app.db, holder, now_ms(), LEASE_MS).await? else { return Ok(false) };
    if job.attempts > ATTEMPTS_MAX {
        // Nobody lived to say how the last attempt went.
        return park(app, &job, "its worker died at it").await;
    }
    let outcome = tokio::select! {
        outcome = run(app, &job) => outcome,
        () = renew_until_lost(app, &job) => {
            tracing::warn!(job = %job.id, kind = job.kind, "a job's lease was lost: someone else has it");
            return Ok(true);
        },
        () = stop.cancelled() => {
            db::jobs::release(&app.db, &job, now_ms()).await?;
            return Ok(false);
        },
    };
    match outcome {
        Ok(()) => db::jobs::complete(&app.db, &job).await?,
        Err(error) if job.attempts >= ATTEMPTS_MAX => park(app, &job, &error.to_string()).await?,
        Err(error) => {
            tracing::warn!(job = %job.id, kind = job.kind, attempts = job.attempts, %error, "a job failed");
            db::jobs::fail(&app.db, &job, &error.to_string(), now_ms() + retry_ms(job.attempts)).await?
        }
    };
    Ok(true)
}

async fn park(app: &App, job: &LeasedJob, error: &str) -> Result<bool, sqlx::Error> {
    let LeasedJob { id, kind, payload, attempts, .. } = job;
    tracing::error!(job = %id, kind, order = payload, attempts, error, "a job failed for good: parked until the next start");
    db::jobs::park(&app.db, job, error).await?;
    report_parked(app).await;
    Ok(true)
}

async fn report_parked(app: &App) {
    match db::jobs::parked(&app.db).await {
        Ok(count) => metrics::record_jobs_failed(count),
        Err(error) => tracing::debug!(%error, "parked jobs cannot be counted"),
    }
}

async fn run(app: &App, job: &LeasedJob) -> Result<(), Error> {
    match job.kind.as_str() {
        catalog::purge::KIND => {
            let order = catalog::purge::Order::parse(&job.payload).map_err(|error| Error::Order(error.to_string()))?;
            purge::run(app, &order).await
        }
        DroppedView::JOB => {
            let order = DroppedView::parse(&job.payload).map_err(|error| Error::Order(error.to_string()))?;
            dropped_views::run(app, &order).await
        }
        kind => Err(Error::UnknownKind(kind.to_owned())),
    }
}

/// Ends when the lease is lost; a database that does not answer may have lost it too, but only time tells.
async fn renew_until_lost(app: &App, job: &LeasedJob) {
    let mut held_until = Instant::now() + lease();
    loop {
        tokio::time::sleep(RENEWAL).await;
        match db::jobs::renew(&app.db, job, now_ms() + LEASE_MS).await {
            Ok(true) => held_until = Instant::now() + lease(),
            Ok(false) => return,
            Err(_) if Instant::now() >= held_until => return,
            Err(error) => tracing::warn!(job = %job.id, %error, "a job's lease could not be renewed"),
        }
    }
}

fn lease() -> Duration {
    Duration::from_millis(LEASE_MS.unsigned_abs())
}

fn retry_ms(attempts: i32) -> i64 {
    let doublings = u32::try_from(attempts.clamp(1, 32)).unwrap_or(1) - 1;
    RETRY_MS.saturating_mul(1_i64 << doublings).min(RETRY_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_between_attempts_grow_and_end() {
        assert_eq!(retry_ms(0), RETRY_MS);
        assert_eq!(retry_ms(1), RETRY_MS);
        assert_eq!(retry_ms(3), 4 * RETRY_MS);
        assert_eq!(retry_ms(i32::MAX), RETRY_MS_MAX);
    }
}
