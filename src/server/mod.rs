//! The running server: opens what it stands on, listens, and stops gently.
//!
//! One process has three listeners: catalog (Iceberg REST, our API, health, docs), S3, and metrics. Told to stop, it
//! takes no new connection, lets requests under way finish within `drain_timeout_s`, then jobs, then closes store and
//! database. Everything acknowledged is on disk already: a stop that does not come this far loses nothing.

mod health;
pub(crate) mod linger;
mod listener;
mod metrics;
mod observe;
mod open;
mod routes;
mod shape;
mod welcome;

use crate::{
    app::{App, now_ms},
    config::{Settings, running},
    jobs,
    telemetry::metrics::Metrics,
};
use listener::{Bound, Limits, Listener, Service};
use std::{io::Write, sync::Arc, time::Duration};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use open::{open, open_database};
pub use routes::openapi;

/// How often recorded durations are folded into their buckets.
const FOLD_METRICS_EVERY: Duration = Duration::from_secs(5);
/// How often freed memory is given back, see [`give_memory_back`].
const GIVE_MEMORY_BACK_EVERY: Duration = Duration::from_secs(10);
/// How long jobs may take to notice that they should stop, once requests are done.
const JOBS_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Why the server does not start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address} ({flag}): {reason}")]
    Listen {
        flag: &'static str,
        address: std::net::SocketAddr,
        reason: String,
        #[source]
        error: std::io::Error,
    },
    #[error("data folder {} cannot be used", path.display())]
    Folder {
        path: std::path::PathBuf,
        #[source]
        error: std::io::Error,
    },
    #[error("data folder {} is in use by another process{}", path.display(), holder(pid))]
    FolderInUse { path: std::path::PathBuf, pid: Option<u32> },
    #[error("catalog database cannot be opened")]
    Database(#[source] sqlx::Error),
    #[error("catalog database cannot be migrated")]
    Migrate(#[source] sqlx::migrate::MigrateError),
    #[error(
        "warehouse {name} cannot be made: another one overlaps its location {location} (settings warehouse, bucket)"
    )]
    WarehouseOverlaps { name: String, location: String },
    #[error("object store cannot be opened")]
    Store(#[source] crate::store::Error),
    /// What a failed sync was to keep may be gone although the kernel says otherwise from then on: only a start that
    /// looks at the disk anew can tell.
    #[error("the store's disk failed: the log says how; a new start goes on with what is on the disk")]
    DiskFailed,
    #[error(transparent)]
    Auth(#[from] crate::auth::StartError),
    #[error("metrics cannot be started")]
    Metrics(#[source] metrics_exporter_prometheus::BuildError),
    #[error("signals cannot be received")]
    Signals(#[source] std::io::Error),
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or(String::new(), |pid| format!(" (process {pid})"))
}

/// Serves until told to stop by SIGTERM or SIGINT; a second signal ends it at once.
///
/// # Errors
/// What stands in the way of the start, each naming what to change; `Error::DiskFailed` when it cannot go on.
pub async fn serve(settings: Settings) -> Result<(), Error> {
    let signals = Signals::listen().map_err(Error::Signals)?;
    let running = Running::start(settings).await?;
    // Where nobody can be welcomed, the log still says it.
    if let Err(error) = std::io::stdout().write_all(welcome::text(&running.app).as_bytes()) {
        tracing::warn!(%error, catalog = running.app.settings.catalog_url, "ready, but standard output takes nothing");
    }
    tokio::select! {
        () = signals.first() => {}
        () = running.app.store.failed() => return Err(Error::DiskFailed),
    }
    tracing::info!("stopping: no new connections, requests under way finish");
    tokio::select! {
        () = running.stop() => tracing::info!("stopped"),
        () = signals.second() => tracing::warn!("stopped at once: a second signal came"),
    }
    Ok(())
}

/// A server that answers on its listeners.
pub struct Running {
    pub app: App,
    /// Keeps the data folder ours.
    _lock: Option<std::fs::File>,
    stop_listening: CancellationToken,
    stop_jobs: CancellationToken,
    listeners: Vec<JoinHandle<()>>,
    jobs: JoinHandle<()>,
    /// Folds metrics, gives memory back and checks what is stored, until it is aborted.
    upkeep: JoinHandle<()>,
}

impl Running {
    /// Binds the listeners, opens everything, and starts to answer.
    ///
    /// # Errors
    /// What stands in the way. Nothing is written before all listeners are bound.
    pub async fn start(settings: Settings) -> Result<Running, Error> {
        let metrics = Metrics::start().map_err(Error::Metrics)?;
        let catalog = Bound::bind("catalog", "--catalog-addr", settings.catalog_addr).await?;
        let s3 = Bound::bind("s3", "--s3-addr", settings.s3_addr).await?;
        let scrape = Bound::bind("metrics", "--metrics-addr", settings.metrics_addr).await?;
        let metrics_addr = scrape.address();
        let settings = Settings { metrics_addr, ..settings.listening_on(catalog.address(), s3.address()) };
        let limits = Limits::of(&settings);
        let (app, lock) = open(settings).await?;

        let (stop_listening, stop_jobs) = (CancellationToken::new(), CancellationToken::new());
        let drain = Duration::from_secs(app.settings.drain_timeout_s);
        let start = |bound: Bound, service: Service| {
            let listener = Listener::new(bound, service, limits.clone(), drain);
            tokio::spawn(listener.run(stop_listening.clone()))
        };
        let listeners = vec![
            start(catalog, Service::Catalog(routes::catalog(&app))),
            start(s3, Service::S3(Arc::new(routes::s3(&app)))),
            start(scrape, Service::Metrics(metrics::router(app.clone(), metrics.clone()))),
        ];
        let jobs = jobs::spawn(app.clone(), stop_jobs.clone());
        let (store, scrub_bytes_per_s) = (app.store.clone(), app.settings.scrub_bytes_per_s);
        let upkeep = tokio::spawn(async move {
            tokio::join!(fold_metrics(metrics), give_memory_back(), store.scrub(scrub_bytes_per_s, now_ms));
        });
        if let Err(error) = running::announce(&app.settings) {
            tracing::warn!(%error, "other commands need this server's addresses: the data folder takes no note of them");
        }
        Ok(Running { app, _lock: lock, stop_listening, stop_jobs, listeners, jobs, upkeep })
    }

    /// Stops gently, as the module's page says.
    pub async fn stop(self) {
        self.stop_listening.cancel();
        for listener in self.listeners {
            if let Err(error) = listener.await {
                tracing::error!(%error, "a listener broke");
            }
        }
        self.stop_jobs.cancel();
        if tokio::time::timeout(JOBS_STOP_TIMEOUT, self.jobs).await.is_err() {
            tracing::warn!("a job did not stop in time: its lease runs out and it starts again");
        }
        self.upkeep.abort();
        running::withdraw(&self.app.settings);
        self.app.store.close().await;
        self.app.db.close().await;
    }
}

/// Serves `router` behind the catalog listener's connection handling and layers until the process ends. Benchmarks
/// measure it as the floor: what the same HTTP stack gives when nothing stands behind it.
///
/// # Errors
/// `Error::Listen`, `Error::Metrics`.
pub async fn serve_router(
    address: std::net::SocketAddr,
    router: axum::Router,
    settings: &Settings,
) -> Result<(), Error> {
    let _metrics = Metrics::start().map_err(Error::Metrics)?;
    let bound = Bound::bind("catalog", "--catalog-addr", address).await?;
    let drain = Duration::from_secs(settings.drain_timeout_s);
    Listener::new(bound, Service::Catalog(router), Limits::of(settings), drain).run(CancellationToken::new()).await;
    Ok(())
}

async fn fold_metrics(metrics: Metrics) {
    let mut ticks = tokio::time::interval(FOLD_METRICS_EVERY);
    loop {
        ticks.tick().await;
        metrics.fold();
    }
}

/// The allocator hands freed pages to the system only while threads allocate or end: what large transfers freed last
/// would stay resident on a server that has become idle. A thread that ends makes it look.
async fn give_memory_back() {
    let mut ticks = tokio::time::interval(GIVE_MEMORY_BACK_EVERY);
    loop {
        ticks.tick().await;
        // Where no thread can be made, memory is not what is short.
        std::thread::Builder::new().name("memory".to_owned()).spawn(|| {}).ok();
    }
}

struct Signals(tokio::sync::watch::Receiver<u32>);

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (count, received) = tokio::sync::watch::channel(0);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => {},
                    _ = interrupt.recv() => {},
                }
                count.send_modify(|count| *count += 1);
            }
        });
        Ok(Signals(received))
    }

    async fn first(&self) {
        self.reach(1).await;
    }

    async fn second(&self) {
        self.reach(2).await;
    }

    async fn reach(&self, wanted: u32) {
        if self.0.clone().wait_for(|count| *count >= wanted).await.is_err() {
            // The task that counts is gone with its runtime: no signal will come.
            std::future::pending::<()>().await;
        }
    }
}
