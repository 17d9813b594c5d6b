//! The Iceberg REST protocol: one file a resource, handlers named after the specification's operations.
//!
//! A request is parsed from its raw path into an operation (`route.rs`), authenticated, and answered by that
//! operation's handler, which translates between the protocol and the use case of the same name in `catalog/`.

mod answer;
mod body;
mod config;
mod credentials;
mod error;
mod functions;
mod idempotency;
mod metrics;
mod namespaces;
mod openapi;
mod page;
mod path;
mod register;
mod route;
mod signing;
mod tables;
mod tokens;
mod transactions;
mod views;

pub use error::catalog_status;
pub use openapi::{failure, openapi, reason};
pub use tokens::PATH as TOKENS_PATH;

use crate::{
    app::{App, now_ms},
    auth::Caller,
    catalog::{
        self,
        idempotency::Key,
        warehouses::{self, Warehouse},
    },
};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use bytes::Bytes;
use error::{Error, Result};
use http::{HeaderMap, Method, header, request::Parts};
use route::{Named, Operation, Route, Unrouted};
use std::sync::Arc;

/// What was asked and by whom, for logs and metrics; an extension of every answer.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The specification's operation id; `unknown` when nothing is served there.
    pub operation: &'static str,
    /// `None` when nobody was authenticated.
    pub principal: Option<Arc<str>>,
}

/// Everything under `/v1`. The paths are taken apart by `route.rs`: axum's own extractors would decode them first.
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
    let query = parts.uri.query().unwrap_or_default();
    match route.operation {
        Operation::GetToken => Ok(tokens::get_token(app, &parts.headers, body).await),
        Operation::GetConfig => {
            let caller = authenticate(app, &parts.headers, answered).await?;
            config::get_config(app, &caller, query).await
        }
        Operation::On(named) => {
            let caller = authenticate(app, &parts.headers, answered).await?;
            let warehouse = warehouses::open(app, &caller, route.warehouse.as_deref()).await?;
            serve_named(app, &caller, &warehouse, &named, parts, body).await
        }
    }
}

async fn serve_named(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    named: &Named,
    parts: &Parts,
    body: Body,
) -> Result<Response> {
    let (headers, query) = (&parts.headers, parts.uri.query().unwrap_or_default());
    match named {
        Named::ListNamespaces => namespaces::list_namespaces(app, caller, warehouse, query).await,
        Named::LoadNamespaceMetadata(namespace) => {
            namespaces::load_namespace_metadata(app, caller, warehouse, namespace).await
        }
        Named::NamespaceExists(namespace) => namespaces::namespace_exists(app, caller, warehouse, namespace).await,
        Named::ListTables(namespace) => tables::list_tables(app, caller, warehouse, namespace, query).await,
        Named::LoadTable(ident) => tables::load_table(app, caller, warehouse, ident, headers, query).await,
        Named::TableExists(ident) => tables::table_exists(app, caller, warehouse, ident).await,
        Named::LoadCredentials(ident) => credentials::load_credentials(app, caller, warehouse, ident, query).await,
        Named::ListViews(namespace) => views::list_views(app, caller, warehouse, namespace, query).await,
        Named::LoadView(ident) => views::load_view(app, caller, warehouse, ident, query).await,
        Named::ViewExists(ident) => views::view_exists(app, caller, warehouse, ident).await,
        Named::SignRequest(ident) => {
            let body = body::read(headers, body, app.settings.body_bytes_max).await?;
            signing::sign_request(app, caller, warehouse, ident, query, &body).await
        }
        Named::SignS3Request => {
            let body = body::read(headers, body, app.settings.body_bytes_max).await?;
            signing::sign_s3_request(app, caller, warehouse, &body).await
        }
        Named::ListFunctions(namespace) => functions::list_functions(app, caller, warehouse, namespace, query).await,
        Named::LoadFunction(ident) => functions::load_function(app, caller, warehouse, ident).await,
        Named::ReportMetrics(ident) => {
            let bytes_max = app.settings.body_bytes_max.min(metrics::BODY_BYTES_MAX);
            let body = body::read(headers, body, bytes_max).await?;
            metrics::report_metrics(app, caller, warehouse, ident, body).await
        }
        Named::CreateNamespace
        | Named::DropNamespace(_)
        | Named::UpdateProperties(_)
        | Named::CreateTable(_)
        | Named::UpdateTable(_)
        | Named::DropTable(_)
        | Named::RegisterTable(_)
        | Named::UnregisterTable(_)
        | Named::RenameTable
        | Named::CreateView(_)
        | Named::ReplaceView(_)
        | Named::DropView(_)
        | Named::RenameView
        | Named::RegisterView(_)
        | Named::CommitTransaction => {
            let body = body::read(headers, body, app.settings.body_bytes_max).await?;
            idempotency::once(app, caller, warehouse, named, parts, body).await
        }
    }
}

/// What changes something. With a key the change is recorded as its request's answer.
async fn change(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    named: &Named,
    parts: &Parts,
    body: Bytes,
    key: Option<&Key>,
) -> Result<Response> {
    let query = parts.uri.query().unwrap_or_default();
    match named {
        Named::CreateNamespace => namespaces::create_namespace(app, caller, warehouse, &body, key).await,
        Named::DropNamespace(namespace) => namespaces::drop_namespace(app, caller, warehouse, namespace, key).await,
        Named::UpdateProperties(namespace) => {
            namespaces::update_properties(app, caller, warehouse, namespace, &body, key).await
        }
        Named::CreateTable(namespace) => {
            tables::create_table(app, caller, warehouse, namespace, &parts.headers, body, key).await
        }
        Named::UpdateTable(ident) => tables::update_table(app, caller, warehouse, ident, body, key).await,
        Named::DropTable(ident) => tables::drop_table(app, caller, warehouse, ident, query, key).await,
        Named::RegisterTable(namespace) => {
            register::register_table(app, caller, warehouse, namespace, &parts.headers, &body, key).await
        }
        Named::UnregisterTable(ident) => register::unregister_table(app, caller, warehouse, ident, key).await,
        Named::RenameTable => tables::rename_table(app, caller, warehouse, &body, key).await,
        Named::CommitTransaction => transactions::commit_transaction(app, caller, warehouse, body, key).await,
        Named::CreateView(namespace) => views::create_view(app, caller, warehouse, namespace, body, key).await,
        Named::ReplaceView(ident) => views::replace_view(app, caller, warehouse, ident, body, key).await,
        Named::DropView(ident) => views::drop_view(app, caller, warehouse, ident, key).await,
        Named::RenameView => views::rename_view(app, caller, warehouse, &body, key).await,
        Named::RegisterView(namespace) => views::register_view(app, caller, warehouse, namespace, &body, key).await,
        Named::ListNamespaces
        | Named::LoadNamespaceMetadata(_)
        | Named::NamespaceExists(_)
        | Named::ListTables(_)
        | Named::LoadTable(_)
        | Named::TableExists(_)
        | Named::ListViews(_)
        | Named::LoadView(_)
        | Named::ViewExists(_)
        | Named::LoadCredentials(_)
        | Named::SignRequest(_)
        | Named::SignS3Request
        | Named::ReportMetrics(_)
        | Named::ListFunctions(_)
        | Named::LoadFunction(_) => Err(catalog::Error::internal("an operation that changes nothing").into()),
    }
}

/// Who sends the request. A vended key is no bearer, so it never passes.
async fn authenticate(app: &App, headers: &HeaderMap, answered: &mut Answered) -> Result<Caller> {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    let token = token.ok_or(catalog::Error::Unauthenticated)?;
    let caller = app.auth.verify_bearer(token, now_ms()).await.map_err(catalog::Error::from)?;
    answered.principal = Some(Arc::clone(&caller.principal));
    Ok(caller)
}

#[cfg(test)]
mod tests;
