//! Whether the process lives, and whether it can do its work. Neither asks for a credential.

use crate::{
    app::App,
    telemetry::{Answered, Chain},
};
use axum::{Json, Router, extract::State, response::IntoResponse, response::Response, routing::get};
use http::StatusCode;
use serde_json::json;
use std::time::Duration;

/// Where the probes are.
pub const HEALTH: &str = "/health/";
/// A part that does not answer within this is not ready.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

pub fn router(app: App) -> Router {
    Router::new().route("/health/live", get(live)).route("/health/ready", get(ready)).with_state(app)
}

async fn live() -> Response {
    answered("live", Json(json!({"status": "live"})).into_response())
}

async fn ready(State(app): State<App>) -> Response {
    let (database, store) = tokio::join!(
        tokio::time::timeout(READY_TIMEOUT, app.db.ping()),
        tokio::time::timeout(READY_TIMEOUT, app.store.list_buckets()),
    );
    let database = database.map(|pinged| pinged.map_err(|error| Chain(&error).to_string()));
    let store = store.map(|listed| listed.map(drop).map_err(|error| Chain(&error).to_string()));
    let mut parts = serde_json::Map::new();
    for (name, checked) in [("database", database), ("store", store)] {
        let said = match checked {
            Ok(Ok(())) => "ready",
            Ok(Err(error)) => {
                tracing::warn!(part = name, error, "not ready");
                "failed"
            }
            Err(_) => {
                tracing::warn!(part = name, "not ready: no answer in time");
                "silent"
            }
        };
        parts.insert(name.to_owned(), said.into());
    }
    let is_ready = parts.values().all(|said| said == "ready");
    let (code, status) =
        if is_ready { (StatusCode::OK, "ready") } else { (StatusCode::SERVICE_UNAVAILABLE, "unavailable") };
    parts.insert("status".to_owned(), status.into());
    answered("ready", (code, Json(parts)).into_response())
}

fn answered(operation: &'static str, mut response: Response) -> Response {
    response.extensions_mut().insert(Answered { operation, principal: None });
    response
}
