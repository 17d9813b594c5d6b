//! `/metrics` on a listener of its own: it asks for no credential, so it does not share an address with what does.

use super::shape;
use crate::{
    app::App,
    telemetry::{
        Answered,
        metrics::{Metrics, record_database},
    },
};
use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header};

/// Prometheus' text format.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub fn router(app: App, metrics: Metrics) -> Router {
    let scrape = move || async move { scrape(&app, &metrics) };
    Router::new()
        .route("/metrics", get(scrape))
        .fallback(async || shape::iceberg(StatusCode::NOT_FOUND, "NotFoundException", "only /metrics is served here"))
}

fn scrape(app: &App, metrics: &Metrics) -> Response {
    let pool = app.db.pool_state();
    record_database(pool.connections, pool.connections_idle, pool.changes_waiting);
    let mut response = ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.render()).into_response();
    response.extensions_mut().insert(Answered { operation: "metrics", principal: None });
    response
}
