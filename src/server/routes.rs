//! What the listeners serve.

use super::{health, shape};
use crate::{api, app::App, rest, s3, telemetry::Answered};
use axum::{
    Json, Router,
    extract::Request,
    response::{IntoResponse, Response},
    routing::get,
};
use http::StatusCode;
use serde_json::json;
use utoipa::openapi::OpenApi;
use utoipa_swagger_ui::SwaggerUi;

/// The catalog's listener: Iceberg REST, our own API, probes and docs.
pub fn catalog(app: &App) -> Router {
    let docs = SwaggerUi::new("/docs").url("/docs/openapi.json", openapi());
    Router::new()
        .merge(rest::router(app.clone()))
        .merge(api::router(app.clone()))
        .merge(health::router(app.clone()))
        .merge(docs)
        .route("/", get(index))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
}

/// The OpenAPI document of all that the catalog's listener serves.
pub fn openapi() -> OpenApi {
    rest::openapi().merge_from(api::openapi())
}

/// The S3 listener's front.
pub fn s3(app: &App) -> s3::Front {
    s3::Front {
        store: app.store.clone(),
        credentials: s3::Credentials::Auth(app.auth.clone()),
        region: app.settings.region.clone(),
        base_host: app.settings.s3_base_host(),
        limits: s3::Limits::default(),
    }
}

/// For whoever opens the bare address.
async fn index() -> Response {
    let places = json!({
        "name": "Tidewater",
        "catalog": "/v1/config",
        "api": "/api/v1/keys",
        "docs": "/docs",
        "openapi": "/docs/openapi.json",
        "health": ["/health/live", "/health/ready"],
    });
    let mut response = Json(places).into_response();
    response.extensions_mut().insert(Answered { operation: "index", principal: None });
    response
}

async fn no_route(request: Request) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let pointer = match path {
        "/health" | "/health/" => ": ask /health/live or /health/ready",
        "/metrics" => ": metrics are on an address of their own (--metrics-addr)",
        _ => "",
    };
    let message = format!("no such route: {method} {path}{pointer}");
    shape::iceberg(StatusCode::NOT_FOUND, "NotFoundException", &message)
}

async fn wrong_method(request: Request) -> Response {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    shape::iceberg(StatusCode::METHOD_NOT_ALLOWED, "UnsupportedOperationException", &message)
}
