//! What the listeners serve.

use super::{health, shape};
use crate::{api, app::App, rest, s3, telemetry::Answered};
use axum::{
    Json, Router,
    extract::Request,
    middleware::map_response,
    response::{IntoResponse, Response as Answer},
    routing::get,
};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use utoipa::openapi::{OpenApi, RefOr, Response, path::Operation};
use utoipa_swagger_ui::{Config, SwaggerUi};

/// The catalog's listener: Iceberg REST, our own API, probes and docs.
pub fn catalog(app: &App) -> Router {
    // The page would have its document judged by a server elsewhere, which learned this one's address by it.
    let page = SwaggerUi::new("/docs").config(Config::default().validator_url("none"));
    let docs = Router::from(page.url("/docs/openapi.json", openapi())).layer(map_response(confine));
    Router::new()
        .merge(rest::router(app.clone()))
        .merge(api::router(app.clone()))
        .merge(health::router(app.clone()))
        .merge(docs)
        .route("/", get(index))
        .fallback(no_route)
        .method_not_allowed_fallback(wrong_method)
}

/// What the listener itself may answer to any request (`shape.rs`).
const BY_THE_LISTENER: [u16; 3] = [414, 431, 500];

/// The OpenAPI document of all that the catalog's listener serves.
pub fn openapi() -> OpenApi {
    let mut document = rest::openapi().merge_from(api::openapi()).merge_from(health::openapi());
    for item in document.paths.paths.values_mut() {
        let with_body = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        with_body.into_iter().flatten().for_each(|operation| complete(operation, rest::failure));
        item.head.iter_mut().for_each(|operation| complete(operation, |status| Response::new(rest::reason(status))));
    }
    document
}

/// Adds what is the same for every route, and the words that a document must have (OpenAPI 3.1, "Response Object").
fn complete(operation: &mut Operation, failure: fn(u16) -> Response) {
    let responses = &mut operation.responses.responses;
    for status in BY_THE_LISTENER {
        responses.entry(status.to_string()).or_insert_with(|| failure(status).into());
    }
    for (status, response) in responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description = status.parse().map(rest::reason).unwrap_or_default().to_owned();
        }
    }
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

/// Holds browsers to what this server has, whatever the page asks for.
async fn confine(mut response: Answer) -> Answer {
    const OURS: HeaderValue = HeaderValue::from_static("default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, OURS);
    response
}

/// For whoever opens the bare address.
async fn index() -> Answer {
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

async fn no_route(request: Request) -> Answer {
    let (method, path) = (request.method(), request.uri().path());
    let pointer = match path {
        "/health" | "/health/" => ": ask /health/live or /health/ready",
        "/metrics" => ": metrics are on an address of their own (--metrics-addr)",
        _ => "",
    };
    let message = format!("no such route: {method} {path}{pointer}");
    shape::iceberg(StatusCode::NOT_FOUND, "NotFoundException", &message)
}

async fn wrong_method(request: Request) -> Answer {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    shape::iceberg(StatusCode::METHOD_NOT_ALLOWED, "UnsupportedOperationException", &message)
}
