//! View operations of the specification.

use super::{
    answer,
    body::parse,
    error::{Error, Result},
    page::Window,
    path,
    tables::{LoadResult, parse_rename, show_names},
};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        create,
        document::{Document, off_thread},
        idempotency::{Key, Version},
        register, views,
        warehouses::Warehouse,
    },
    iceberg::{
        ident::{Namespace, TableIdent},
        view::{ViewMetadata, commit::ViewCommit, create::CreateView},
    },
};
use axum::response::Response;
use bytes::Bytes;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RegisterViewRequest {
    name: String,
    metadata_location: String,
}

pub async fn list_views(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    query: &str,
) -> Result<Response> {
    let window = Window::parse(query, app.settings.page_size_max)?;
    let mut names = views::list(app, caller, warehouse, namespace, &window.page()).await?;
    let next_page_token = window.cut(&mut names);
    Ok(show_names(namespace, &names, next_page_token))
}

pub async fn create_view(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    body: Bytes,
    key: Option<&Key>,
) -> Result<Response> {
    let request = off_thread(body.len(), move || CreateView::parse(&body)).await??;
    Ok(show(&create::create_view(app, caller, warehouse, namespace, request, key).await?.document))
}

/// The answer to a create that was answered before.
pub async fn create_view_again(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    body: &Bytes,
    version: Option<Version>,
) -> Result<Response> {
    let ident = TableIdent::new(namespace.clone(), CreateView::parse(body)?.name)?;
    show_version(app, caller, warehouse, &ident, version).await
}

pub async fn load_view(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    query: &str,
) -> Result<Response> {
    path::referenced_by(query)?;
    Ok(show(&views::load(app, caller, warehouse, ident).await?.document))
}

pub async fn replace_view(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    body: Bytes,
    key: Option<&Key>,
) -> Result<Response> {
    let commit = off_thread(body.len(), move || ViewCommit::parse(&body)).await??;
    if commit.identifier.as_ref().is_some_and(|named| named != ident) {
        return Err(Error::invalid(format!("the commit's identifier is not that of its path: {ident}")));
    }
    Ok(show(&views::replace(app, caller, warehouse, ident, commit, key).await?.document))
}

pub async fn drop_view(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    key: Option<&Key>,
) -> Result<Response> {
    views::drop(app, caller, warehouse, ident, key).await?;
    Ok(answer::no_content())
}

pub async fn view_exists(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<Response> {
    views::exists(app, caller, warehouse, ident).await?;
    Ok(answer::no_content())
}

pub async fn rename_view(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    body: &[u8],
    key: Option<&Key>,
) -> Result<Response> {
    let (from, to) = parse_rename(body)?;
    views::rename(app, caller, warehouse, &from, &to, key).await?;
    Ok(answer::no_content())
}

/// The answer to a commit that was answered before.
pub async fn show_version(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    version: Option<Version>,
) -> Result<Response> {
    Ok(show(&*views::version(app, caller, warehouse, ident, version).await?))
}

pub async fn register_view(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    body: &[u8],
    key: Option<&Key>,
) -> Result<Response> {
    let (ident, file) = parse_register(namespace, body)?;
    Ok(show(&register::register_view(app, caller, warehouse, &ident, &file, key).await?.document))
}

/// The answer to a registration that was answered before.
pub async fn register_view_again(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    body: &[u8],
    version: Option<Version>,
) -> Result<Response> {
    let (ident, _) = parse_register(namespace, body)?;
    show_version(app, caller, warehouse, &ident, version).await
}

fn parse_register(namespace: &Namespace, body: &[u8]) -> Result<(TableIdent, String)> {
    let RegisterViewRequest { name, metadata_location } = parse(body)?;
    Ok((TableIdent::new(namespace.clone(), name)?, metadata_location))
}

/// `LoadViewResult` of the specification.
fn show(document: &Document<ViewMetadata>) -> Response {
    LoadResult::new(Some(&document.location), None).around(document.json.clone())
}
