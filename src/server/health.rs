//! Whether the process lives, and whether it can do its work. Neither asks for a credential.

use crate::{
    app::App,
    telemetry::{Answered, Chain},
};
use axum::{Json, Router, extract::State, response::IntoResponse, response::Response};
use http::StatusCode;
use serde::Serialize;
use std::time::Duration;
use tokio::time::error::Elapsed;
use utoipa::{ToSchema, openapi::OpenApi};
use utoipa_axum::{router::OpenApiRouter, routes};

/// Where the probes are.
pub const HEALTH: &str = "/health/";
/// A part that does not answer within this is not ready.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Serialize, ToSchema)]
struct Live {
    status: &'static str,
}

#[derive(Serialize, ToSchema)]
struct Readiness {
    database: Part,
    store: Part,
    status: Status,
}

#[derive(Serialize, ToSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Part {
    Ready,
    Failed,
    /// No answer in time.
    Silent,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ready,
    Unavailable,
}

pub fn router(app: App) -> Router {
    described().split_for_parts().0.with_state(app)
}

/// The OpenAPI document of the probes.
pub fn openapi() -> OpenApi {
    described().split_for_parts().1
}

fn described() -> OpenApiRouter<App> {
    OpenApiRouter::default().routes(routes!(live)).routes(routes!(ready))
}

/// Whether the process lives.
#[utoipa::path(
    get, path = "/health/live", operation_id = "live", tag = "Health",
    responses((status = 200, body = Live))
)]
async fn live() -> Response {
    answered("live", Json(Live { status: "live" }).into_response())
}

/// Whether it can do its work.
#[utoipa::path(
    get, path = "/health/ready", operation_id = "ready", tag = "Health",
    responses((status = 200, body = Readiness), (status = 503, body = Readiness))
)]
async fn ready(State(app): State<App>) -> Response {
    let (database, store) = tokio::join!(
        tokio::time::timeout(READY_TIMEOUT, app.db.ping()),
        tokio::time::timeout(READY_TIMEOUT, app.store.list_buckets()),
    );
    let database = part("database", database);
    let store = part("store", store.map(|listed| listed.map(drop)));
    let is_ready = database == Part::Ready && store == Part::Ready;
    let (code, status) =
        if is_ready { (StatusCode::OK, Status::Ready) } else { (StatusCode::SERVICE_UNAVAILABLE, Status::Unavailable) };
    answered("ready", (code, Json(Readiness { database, store, status })).into_response())
}

fn part(name: &'static str, checked: Result<Result<(), impl std::error::Error>, Elapsed>) -> Part {
    match checked {
        Ok(Ok(())) => Part::Ready,
        Ok(Err(error)) => {
            tracing::warn!(part = name, error = %Chain(&error), "not ready");
            Part::Failed
        }
        Err(_) => {
            tracing::warn!(part = name, "not ready: no answer in time");
            Part::Silent
        }
    }
}

fn answered(operation: &'static str, mut response: Response) -> Response {
    response.extensions_mut().insert(Answered { operation, principal: None });
    response
}
