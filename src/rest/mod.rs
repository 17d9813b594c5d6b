//! The Iceberg REST protocol: one file a resource, handlers named after the specification's operations.
//!
//! A request is parsed from its raw path into an operation (`route.rs`), authenticated, and answered by that
//! operation's handler, which translates between the protocol and the use case of the same name in `catalog/`.

mod answer;
mod body;
mod config;
mod credentials;
mod error;
mod namespaces;
mod openapi;
mod page;
mod path;
mod route;
mod tables;
mod tokens;

pub use openapi::openapi;

use crate::{
    app::{App, now_ms},
    auth::Caller,
    catalog::{self, warehouses},
};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use error::{Error, Result};
use http::{HeaderMap, Method, header, request::Parts};
use route::{Operation, Route, Unrouted};
use std::sync::Arc;

/// What was asked and by whom, for logs and metrics; an extension of every answer.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The specification's operation id; `unknown` when nothing is served there.
    pub operation: &'static str,
    /// `None` when nobody was authenticated.
    pub principal: Option<Arc<str>>,
}

/// Everything under `/v1`. The paths are taken apart by [`route::parse`]: axum's own extractors would decode them first.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/v1", any(answer_request))
        .route("/v1/", any(answer_request))
        .route("/v1/{*rest}", any(answer_request))
        .with_state(app)
}

async fn answer_request(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let mut answered = Answered { operation: "unknown", principal: None };
    let result = match route::parse(&parts.method, parts.uri.path()) {
        Ok(route) => {
            answered.operation = route.endpoint.name;
            serve(&app, route, &parts, body, &mut answered).await
        }
        Err(unrouted) => Err(refuse(unrouted, &parts)),
    };
    let mut response = result.unwrap_or_else(IntoResponse::into_response);
    if parts.method == Method::HEAD {
        response = error::without_body(response);
    }
    response.extensions_mut().insert(answered);
    response
}

fn refuse(unrouted: Unrouted, parts: &Parts) -> Error {
    let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
    match unrouted {
        Unrouted::NoRoute => Error::NoRoute { method, path },
        Unrouted::WrongMethod { allowed } => Error::WrongMethod { method, path, allowed },
        Unrouted::BadName(error) => Error::Catalog(error),
    }
}

async fn serve(app: &App, route: Route, parts: &Parts, body: Body, answered: &mut Answered) -> Result<Response> {
    if route.operation == Operation::GetToken {
        return Ok(tokens::get_token(app, &parts.headers, body).await);
    }
    let caller = &authenticate(app, &parts.headers).await?;
    answered.principal = Some(Arc::clone(&caller.principal));
    let query = parts.uri.query().unwrap_or_default();
    if route.operation == Operation::GetConfig {
        return config::get_config(app, caller, query).await;
    }
    let warehouse = &warehouses::open(app, caller, route.warehouse.as_deref()).await?;
    let headers = &parts.headers;
    let read_body = || body::read(headers, body, app.settings.body_bytes_max);
    match &route.operation {
        Operation::GetConfig | Operation::GetToken => Err(Error::Catalog(catalog::Error::internal("answered above"))),
        Operation::ListNamespaces => namespaces::list_namespaces(app, caller, warehouse, query).await,
        Operation::CreateNamespace => namespaces::create_namespace(app, caller, warehouse, &read_body().await?).await,
        Operation::LoadNamespaceMetadata(namespace) => {
            namespaces::load_namespace_metadata(app, caller, warehouse, namespace).await
        }
        Operation::NamespaceExists(namespace) => namespaces::namespace_exists(app, caller, warehouse, namespace).await,
        Operation::DropNamespace(namespace) => namespaces::drop_namespace(app, caller, warehouse, namespace).await,
        Operation::UpdateProperties(namespace) => {
            namespaces::update_properties(app, caller, warehouse, namespace, &read_body().await?).await
        }
        Operation::ListTables(namespace) => tables::list_tables(app, caller, warehouse, namespace, query).await,
        Operation::CreateTable(namespace) => {
            tables::create_table(app, caller, warehouse, namespace, headers, &read_body().await?).await
        }
        Operation::LoadTable(ident) => tables::load_table(app, caller, warehouse, ident, headers, query).await,
        Operation::UpdateTable(ident) => tables::update_table(app, caller, warehouse, ident, &read_body().await?).await,
        Operation::DropTable(ident) => tables::drop_table(app, caller, warehouse, ident, query).await,
        Operation::TableExists(ident) => tables::table_exists(app, caller, warehouse, ident).await,
        Operation::LoadCredentials(ident) => credentials::load_credentials(app, caller, warehouse, ident).await,
        Operation::RenameTable => tables::rename_table(app, caller, warehouse, &read_body().await?).await,
    }
}

/// Who sends the request. A vended key is no bearer, so it never passes.
async fn authenticate(app: &App, headers: &HeaderMap) -> Result<Caller> {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let token = token.ok_or(catalog::Error::Unauthenticated)?;
    let caller = app.auth.verify_bearer(token, now_ms()).await.map_err(catalog::Error::from)?;
    Ok(caller)
}

#[cfg(test)]
mod tests;
