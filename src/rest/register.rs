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
        document::Snapshots,
        register::{self, Existing},
        warehouses::Warehouse,
    },
    iceberg::ident::{Namespace, TableIdent},
};
use axum::response::Response;
use http::HeaderMap;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RegisterTableRequest {
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
) -> Result<Response> {
    let request: RegisterTableRequest = parse(body)?;
    let ident = TableIdent::new(namespace.clone(), request.name)?;
    let existing = if request.overwrite == Some(true) { Existing::Repoint } else { Existing::Keep };
    let table = register::register(app, caller, warehouse, &ident, &request.metadata_location, existing).await?;
    let config = storage_config(app, caller, warehouse, &ident, (&table.row.location, table.row.uuid), headers);
    let document = &table.document;
    let mut response = LoadResult::new(Some(&document.location), Some(&config)).around(document.json.clone());
    match config.credential() {
        Some(_) => answer::forbid_storing(&mut response),
        None => set_etag(&mut response, document, Snapshots::All),
    }
    Ok(response)
}

pub async fn unregister_table(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
) -> Result<Response> {
    let table = register::unregister(app, caller, warehouse, ident).await?;
    Ok(LoadResult::new(Some(&table.document.location), None).around(table.document.json.clone()))
}
