//! Our own HTTP API under `/api/v1`: warehouses, access keys, functions, reports, everything the Iceberg protocol has no route for.
//!
//! Same manners as the Iceberg protocol: a bearer token on every route, JSON both ways, errors in its wrapper.

mod error;
mod functions;
mod keys;
mod reports;
mod warehouses;

use crate::{
    app::{App, now_ms},
    auth::{
        Caller,
        grants::{Action, Resource},
    },
    catalog,
    iceberg::ident::{Namespace, TableIdent},
    telemetry::Answered,
};
use axum::{
    Router,
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use error::{Error, ErrorResponse};
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::time::Duration;
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::{
        self,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::{router::OpenApiRouter, routes};

/// Largest body of a request that does not say otherwise. Bytes.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How long it may take to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

pub fn router(app: App) -> Router {
    let (router, _) = described().split_for_parts();
    router.with_state(app)
}

/// What every route may answer besides what its handler names, and those that take a body.
const ANYWHERE: [u16; 3] = [401, 403, 503];
const WITH_BODY: [u16; 2] = [408, 413];

/// The OpenAPI document of these routes.
pub fn openapi() -> openapi::OpenApi {
    let mut document = described().split_for_parts().1;
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            let with_body = operation.request_body.as_ref().map_or(&[][..], |_| &WITH_BODY);
            for status in ANYWHERE.iter().chain(with_body) {
                let responses = &mut operation.responses.responses;
                responses.entry(status.to_string()).or_insert_with(|| failure().into());
            }
        }
    }
    document
}

fn failure() -> openapi::Response {
    let wrapper = openapi::Ref::from_schema_name(ErrorResponse::name());
    let content = openapi::Content::new(Some(openapi::RefOr::<openapi::Schema>::Ref(wrapper)));
    openapi::ResponseBuilder::new().content("application/json", content).build()
}

fn described() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(keys::list_keys, keys::create_key))
        .routes(routes!(keys::delete_key))
        .routes(routes!(functions::put_function, functions::delete_function))
        .routes(routes!(reports::list_scan_reports))
        .routes(routes!(reports::list_commit_reports))
        .routes(routes!(warehouses::list_warehouses, warehouses::create_warehouse))
        .routes(routes!(warehouses::load_warehouse, warehouses::delete_warehouse))
        .routes(routes!(warehouses::put_storage))
}

#[derive(OpenApi)]
#[openapi(info(title = "Tidewater"), modifiers(&BearerScheme))]
struct Document;

struct BearerScheme;

impl Modify for BearerScheme {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        document.components.get_or_insert_default().add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// The caller of a request, allowed to use this API.
async fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller, Error> {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let caller = app.auth.verify_bearer(token.ok_or(Error::Unauthenticated)?, now_ms()).await?;
    if caller.may(Action::Catalog, Resource::Server) { Ok(caller) } else { Err(Error::Forbidden) }
}

/// A namespace as it stands in a path or query once decoded: its levels, a unit separator (`%1F`) between.
fn namespace(text: &str) -> Result<Namespace, Error> {
    let levels = text.split('\u{1f}').map(str::to_owned).collect();
    Ok(Namespace::new(levels).map_err(catalog::Error::from)?)
}

fn ident(namespace_text: &str, name: &str) -> Result<TableIdent, Error> {
    Ok(TableIdent::new(namespace(namespace_text)?, name.to_owned()).map_err(catalog::Error::from)?)
}

/// The whole body of a request whose caller is known: nobody else's is waited for.
async fn read(body: Body, bytes_max: usize) -> Result<Bytes, Error> {
    let body = Limited::new(body, bytes_max).collect();
    let read = tokio::time::timeout(BODY_TIME_MAX, body).await.map_err(|_| Error::BodyTooSlow)?;
    match read {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::BodyTooLarge(bytes_max)),
        Err(_) => Err(Error::Invalid("the request's body broke off".to_owned())),
    }
}

/// An answer that says who asked for what.
fn answered(operation: &'static str, caller: Option<&Caller>, result: Result<impl IntoResponse, Error>) -> Response {
    let principal = caller.map(|caller| caller.principal.clone());
    let mut response = result.map_or_else(IntoResponse::into_response, IntoResponse::into_response);
    response.extensions_mut().insert(Answered { operation, principal });
    response
}
