//! `GET /v1/config`: what a client must know before its first call.

use super::{answer, credentials::storage_config, error::Result, path, route::ENDPOINTS};
use crate::{app::App, auth::Caller, catalog::warehouses};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CatalogConfig<'a> {
    defaults: BTreeMap<&'static str, String>,
    overrides: BTreeMap<&'static str, String>,
    endpoints: &'a [String],
    /// How long a client may send a request again under the same `Idempotency-Key` (ISO 8601 duration).
    idempotency_key_lifetime: String,
}

/// # Errors
/// `catalog::Error::NoSuchWarehouse`.
pub async fn get_config(app: &App, caller: &Caller, query: &str) -> Result<Response> {
    let asked = path::parameter(query, "warehouse")?;
    let warehouse = warehouses::find(app, caller, asked.as_deref()).await?;
    let config = CatalogConfig {
        // Defaults only: whoever reaches the storage another way sets its own.
        defaults: storage_config(app, &warehouse).into_iter().collect(),
        overrides: BTreeMap::from([("prefix", path::encode_prefix(&warehouse.name))]),
        endpoints: &endpoints(),
        idempotency_key_lifetime: format!("PT{}S", app.settings.idempotency_lifetime_s),
    };
    Ok(answer::json(StatusCode::OK, &config))
}

/// What is served, as the specification spells it.
fn endpoints() -> Vec<String> {
    ENDPOINTS.iter().map(|endpoint| format!("{} {}", endpoint.method, endpoint.template)).collect()
}
