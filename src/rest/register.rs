//! Tables that come with their files, and tables that leave theirs.

use super::{
    answer,
    body::parse,
    error::Result,
    tables::{LoadResult, set_etag, storage_config},
};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        document::{Document, Snapshots},
        idempotency::Key,
        register::{self, Existing},
        tables::{self, Table},
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
    Ok(show_registered(app, caller, &ident, headers, &table))
}

/// The answer to a registration that was answered before.
pub async fn register_table_again(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    headers: &HeaderMap,
    body: &[u8],
    metadata_location: Option<String>,
) -> Result<Response> {
    let request: RegisterTableRequest = parse(body)?;
    let ident = TableIdent::new(namespace.clone(), request.name)?;
    let table = tables::version(app, caller, warehouse, &ident, metadata_location).await?;
    Ok(show_registered(app, caller, &ident, headers, &table))
}

fn show_registered(app: &App, caller: &Caller, ident: &TableIdent, headers: &HeaderMap, table: &Table) -> Response {
    let Table { warehouse, row, document } = table;
    let config = storage_config(app, caller, warehouse, ident, (&row.location, row.uuid), headers);
    let mut response = LoadResult::new(Some(&document.location), Some(&config)).around(document.json.clone());
    match config.credential() {
        Some(_) => answer::forbid_storing(&mut response),
        None => set_etag(&mut response, document, Snapshots::All),
    }
    response
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
    metadata_location: Option<String>,
    uuid: Option<String>,
) -> Result<Response> {
    let file = metadata_location.as_deref();
    let document = register::unregistered(app, caller, warehouse, file, uuid.as_deref()).await?;
    Ok(show_unregistered(&document))
}

fn show_unregistered(document: &Document) -> Response {
    LoadResult::new(Some(&document.location), None).around(document.json.clone())
}
