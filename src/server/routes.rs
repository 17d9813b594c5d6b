//! What the listeners serve.

use super::{health, shape};
use crate::{api, app::App, rest, s3};
use axum::{Router, extract::Request, response::Response};
use http::StatusCode;
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
        .fallback(no_route)
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
        base_host: base_host(&app.settings.s3_url),
        limits: s3::Limits::default(),
    }
}

/// The host whose subdomains are buckets: that of the told S3 address, unless it is a bare IP address.
fn base_host(s3_url: &str) -> Option<String> {
    let url = reqwest::Url::parse(s3_url).ok()?;
    url.domain().map(str::to_owned)
}

async fn no_route(request: Request) -> Response {
    let message = format!("no such route: {} {}", request.method(), request.uri().path());
    shape::iceberg(StatusCode::NOT_FOUND, "NotFoundException", &message)
}
