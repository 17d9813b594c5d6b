//! Stores reports of scans and commits soon after they came, and forgets the oldest.

use crate::{
    app::{App, now_ms},
    catalog::reports,
    telemetry::Chain,
};
use std::time::Duration;
use tokio::time::Instant;

/// How long the first report waits for others, to be stored with them.
const GATHER: Duration = Duration::from_millis(200);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// How often old reports are forgotten, whether any came or not.
const PRUNE_EVERY: Duration = Duration::from_secs(60);

/// Goes on until it is dropped, which loses nothing: what waits is still there.
pub async fn keep_forever(app: &App) {
    let mut prune_at = Instant::now();
    loop {
        if Instant::now() >= prune_at {
            prune(app).await;
            prune_at = Instant::now() + PRUNE_EVERY;
        }
        tokio::select! {
            () = app.catalog.reports.arrived() => {},
            () = tokio::time::sleep_until(prune_at) => continue,
        }
        tokio::time::sleep(GATHER).await;
        while let Err(error) = reports::store_waiting(app).await {
            tracing::warn!(error = %Chain(&error), "reports of scans and commits cannot be stored now");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Stores what came before the server was told to stop.
pub async fn store_last(app: &App) {
    if let Err(error) = reports::store_waiting(app).await {
        tracing::warn!(error = %Chain(&error), "the last reports of scans and commits are lost");
    }
}

async fn prune(app: &App) {
    match reports::prune(app, now_ms()).await {
        Ok(0) => {}
        Ok(count) => tracing::debug!(count, "old reports of scans and commits were forgotten"),
        Err(error) => tracing::warn!(error = %Chain(&error), "old reports could not be forgotten"),
    }
}
