//! Tables that come with their files, and tables that leave theirs.

use super::{
    body::parse,
    error::Result,
    tables::{LoadResult, show_stored},
};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        document::Document,
        idempotency::{Key, Version},
        register::{self, Existing},
        tables,
        warehouses::Warehouse,
    },
    iceberg::ident::{Namespace, TableIdent},
};
use axum::response::Response;
use http::HeaderMap;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RegisterTableRequest {
    name: String,
    metadata_location: String,
    #[serde(default)]
    overwrite: Option<bool>,
}

pub async fn register_table(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    headers: &HeaderMap,
    body: &[u8],
    key: Option<&Key>,
) -> Result<Response> {
    let request: RegisterTableRequest = parse(body)?;
    let ident = TableIdent::new(namespace.clone(), request.name)?;
    let existing = if request.overwrite == Some(true) { Existing::Repoint } else { Existing::Keep };
    let file = &request.metadata_location;
    let table = register::register(app, caller, warehouse, &ident, file, existing, key).await?;
    Ok(show_stored(app, caller, warehouse, &ident, headers, &table.document).await)
}

/// The answer to a registration that was answered before.
pub async fn register_table_again(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    headers: &HeaderMap,
    body: &[u8],
    version: Option<Version>,
) -> Result<Response> {
    let request: RegisterTableRequest = parse(body)?;
    let ident = TableIdent::new(namespace.clone(), request.name)?;
    let document = tables::version(app, caller, warehouse, &ident, version).await?;
    Ok(show_stored(app, caller, warehouse, &ident, headers, &document).await)
}

pub async fn unregister_table(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    key: Option<&Key>,
) -> Result<Response> {
    let document = register::unregister(app, caller, warehouse, ident, key).await?;
    Ok(show_unregistered(&document))
}

/// The answer to an unregistration that was answered before.
pub async fn unregister_table_again(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    version: Option<Version>,
) -> Result<Response> {
    let document = register::unregistered(app, caller, warehouse, version).await?;
    Ok(show_unregistered(&document))
}

fn show_unregistered(document: &Document) -> Response {
    LoadResult::new(Some(&document.location), None).around(document.json.clone())
}
