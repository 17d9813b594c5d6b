//! Namespace operations of the specification.

use super::{answer, body::parse, error::Result, page::Window, path};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        idempotency::Key,
        namespaces::{self, Properties},
        warehouses::Warehouse,
    },
    iceberg::ident::Namespace,
};
use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListNamespacesResponse<'a> {
    namespaces: Vec<Vec<&'a str>>,
    next_page_token: Option<String>,
}

#[derive(Deserialize, ToSchema)]
pub struct CreateNamespaceRequest {
    namespace: Vec<String>,
    #[serde(default)]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    properties: Option<Properties>,
}

/// `properties` is never null: that would mean that the server has none.
#[derive(Serialize, ToSchema)]
pub struct NamespaceResponse<'a> {
    namespace: &'a [String],
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    properties: &'a Properties,
}

#[derive(Deserialize, ToSchema)]
pub struct UpdatePropertiesRequest {
    #[serde(default)]
    removals: Option<Vec<String>>,
    #[serde(default)]
    #[schema(value_type = Option<std::collections::BTreeMap<String, String>>)]
    updates: Option<Properties>,
}

#[derive(Serialize, ToSchema)]
pub struct UpdatePropertiesResponse<'a> {
    updated: &'a [String],
    removed: &'a [String],
    missing: &'a [String],
}

pub async fn list_namespaces(app: &App, caller: &Caller, warehouse: &Warehouse, query: &str) -> Result<Response> {
    let window = Window::parse(query, app.settings.page_size_max)?;
    let parent = path::raw_parameter(query, "parent").filter(|parent| !parent.is_empty());
    let parent = parent.map(path::namespace).transpose()?;
    let mut names = namespaces::list(app, caller, warehouse, parent.as_ref(), &window.page()).await?;
    let next_page_token = window.cut(&mut names);
    let above = parent.as_ref().map(Namespace::levels).unwrap_or_default();
    let whole = |name| above.iter().map(String::as_str).chain([name]).collect();
    let namespaces = names.iter().map(|name| whole(name.as_str())).collect();
    Ok(answer::json(StatusCode::OK, &ListNamespacesResponse { namespaces, next_page_token }))
}

pub async fn create_namespace(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    body: &[u8],
    key: Option<&Key>,
) -> Result<Response> {
    let request: CreateNamespaceRequest = parse(body)?;
    let namespace = Namespace::new(request.namespace)?;
    let properties = request.properties.unwrap_or_default();
    let row = namespaces::create(app, caller, warehouse, &namespace, &properties, key).await?;
    let response = NamespaceResponse { namespace: row.namespace.levels(), properties: &row.properties };
    Ok(answer::json(StatusCode::OK, &response))
}

/// As it is now, or as it was made when it is gone.
pub async fn create_namespace_again(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    body: &[u8],
) -> Result<Response> {
    let request: CreateNamespaceRequest = parse(body)?;
    let namespace = Namespace::new(request.namespace)?;
    let given = request.properties.unwrap_or_default();
    let properties = namespaces::created(app, caller, warehouse, &namespace, given).await?;
    let response = NamespaceResponse { namespace: namespace.levels(), properties: &properties };
    Ok(answer::json(StatusCode::OK, &response))
}

pub async fn load_namespace_metadata(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
) -> Result<Response> {
    let row = namespaces::load(app, caller, warehouse, namespace).await?;
    let response = NamespaceResponse { namespace: row.namespace.levels(), properties: &row.properties };
    Ok(answer::json(StatusCode::OK, &response))
}

pub async fn namespace_exists(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
) -> Result<Response> {
    namespaces::load(app, caller, warehouse, namespace).await?;
    Ok(answer::no_content())
}

pub async fn drop_namespace(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    key: Option<&Key>,
) -> Result<Response> {
    namespaces::drop(app, caller, warehouse, namespace, key).await?;
    Ok(answer::no_content())
}

pub async fn update_properties(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    body: &[u8],
    key: Option<&Key>,
) -> Result<Response> {
    let request: UpdatePropertiesRequest = parse(body)?;
    let removals = request.removals.unwrap_or_default();
    let updates = request.updates.unwrap_or_default();
    let changed = namespaces::update_properties(app, caller, warehouse, namespace, &removals, &updates, key).await?;
    let response =
        UpdatePropertiesResponse { updated: &changed.updated, removed: &changed.removed, missing: &changed.missing };
    Ok(answer::json(StatusCode::OK, &response))
}

/// What was kept of the answer, or what it says when everything asked for was there.
pub fn update_properties_again(body: &[u8], kept: Option<String>) -> Result<Response> {
    if let Some(kept) = kept.and_then(|kept| serde_json::value::RawValue::from_string(kept).ok()) {
        return Ok(answer::json(StatusCode::OK, &kept));
    }
    let request: UpdatePropertiesRequest = parse(body)?;
    let updated: Vec<String> = request.updates.unwrap_or_default().into_keys().collect();
    let removed = request.removals.unwrap_or_default();
    Ok(answer::json(StatusCode::OK, &UpdatePropertiesResponse { updated: &updated, removed: &removed, missing: &[] }))
}
