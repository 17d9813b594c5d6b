//! Functions, which the specification only reads. Our own API stores them (`api/functions.rs`).

use super::{answer, error::Result, page::Window};
use crate::{
    app::App,
    auth::Caller,
    catalog::{functions, warehouses::Warehouse},
    iceberg::ident::{Namespace, TableIdent},
};
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

/// `identifiers` are `CatalogObjectIdentifier`s: levels and name in one list.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ListFunctionsResponse<'a> {
    identifiers: Vec<Vec<&'a str>>,
    next_page_token: Option<String>,
}

pub async fn list_functions(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    query: &str,
) -> Result<Response> {
    let window = Window::parse(query, app.settings.page_size_max)?;
    let mut names = functions::list(app, caller, warehouse, namespace, &window.page()).await?;
    let next_page_token = window.cut(&mut names);
    let whole = |name| namespace.levels().iter().map(String::as_str).chain([name]).collect();
    let identifiers = names.iter().map(|name| whole(name.as_str())).collect();
    Ok(answer::json(StatusCode::OK, &ListFunctionsResponse { identifiers, next_page_token }))
}

/// The document goes out to the letter; it is in no file, so `metadata-location` is left out.
pub async fn load_function(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<Response> {
    let metadata = functions::load(app, caller, warehouse, ident).await?;
    Ok(answer::json_pieces([Bytes::from_static(b"{\"metadata\":"), metadata.into(), Bytes::from_static(b"}")]))
}
