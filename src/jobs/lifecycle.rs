//! Applies the lifecycles of the embedded store's buckets, round after round. The store belongs to this process alone, so
//! there is nothing to lease; a round that a stop cuts short is begun again.

use crate::{
    app::{App, now_ms},
    store::{self, LifecycleReport, LifecycleRound},
    telemetry::Chain,
};
use std::time::Duration;

/// Pause between rounds. What is due is due at midnight: this is how late it may be.
const ROUND_EVERY: Duration = Duration::from_secs(60 * 60);

/// Goes on until it is dropped.
pub async fn apply_forever(app: &App) {
    loop {
        match round(app, now_ms()).await {
            Ok(LifecycleReport { expired: 0, removed: 0, aborted: 0 }) => {}
            Ok(LifecycleReport { expired, removed, aborted }) => {
                tracing::info!(expired, removed, aborted, "buckets' lifecycles were applied");
            }
            Err(error) => tracing::warn!(error = %Chain(&error), "buckets' lifecycles were not applied to the end"),
        }
        tokio::time::sleep(ROUND_EVERY).await;
    }
}

async fn round(app: &App, now_ms: i64) -> store::Result<LifecycleReport> {
    let mut total = LifecycleReport::default();
    let mut round = Some(LifecycleRound::default());
    while let Some(here) = round {
        let (report, next) = app.store.apply_lifecycle(here, now_ms).await?;
        total += report;
        round = next;
    }
    Ok(total)
}
