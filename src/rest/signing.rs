//! Remote signing, for clients that hold no keys: `…/tables/{table}/sign`, and the address that clients before Iceberg
//! 1.11 ask when they are told none.

use super::{
    answer,
    body::parse,
    credentials::PLACE,
    error::{Error, Result},
    path,
};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        signing::{self, For, Request, Signed},
        warehouses::Warehouse,
    },
    iceberg::ident::TableIdent,
};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, sync::Arc};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
pub struct RemoteSignRequest {
    region: String,
    uri: String,
    method: String,
    headers: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    properties: Option<BTreeMap<String, String>>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    provider: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct RemoteSignResult<'a> {
    uri: &'a str,
    headers: BTreeMap<&'a str, [&'a str; 1]>,
}

pub async fn sign_request(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    query: &str,
    body: &[u8],
) -> Result<Response> {
    let mut asked: RemoteSignRequest = parse(body)?;
    let passed_on = asked.properties.as_mut().and_then(|properties| properties.remove(PLACE));
    let scope = path::parameter(query, PLACE)?.or(passed_on);
    answer(app, caller, warehouse, For::Table { ident, scope }, asked).await
}

pub async fn sign_s3_request(app: &App, caller: &Caller, warehouse: &Arc<Warehouse>, body: &[u8]) -> Result<Response> {
    answer(app, caller, warehouse, For::Place, parse(body)?).await
}

async fn answer(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    table: For<'_>,
    asked: RemoteSignRequest,
) -> Result<Response> {
    let uri = asked.uri.clone();
    let Signed { headers, may_be_cached } = signing::sign(app, caller, warehouse, table, request(asked)?).await?;
    let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), [value.to_str().ok()?])));
    let mut response = answer::json(StatusCode::OK, &RemoteSignResult { uri: &uri, headers: headers.collect() });
    let cache = HeaderValue::from_static(if may_be_cached { "private" } else { "no-cache" });
    response.headers_mut().insert(header::CACHE_CONTROL, cache);
    Ok(response)
}

fn request(asked: RemoteSignRequest) -> Result<Request> {
    if let Some(provider) = asked.provider.filter(|provider| !provider.eq_ignore_ascii_case("s3")) {
        return Err(Error::invalid(format!("provider is not supported: {provider}")));
    }
    let method = Method::from_bytes(asked.method.as_bytes());
    let method = method.map_err(|_| Error::invalid(format!("not a method: {}", asked.method)))?;
    let uri = asked.uri.parse::<Uri>().map_err(|error| Error::invalid(format!("not a URI: {error}: {}", asked.uri)))?;
    let mut headers = HeaderMap::new();
    for (name, values) in &asked.headers {
        let bad = || Error::invalid(format!("not a header: {name}"));
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        for value in values {
            headers.append(header.clone(), HeaderValue::from_str(value).map_err(|_| bad())?);
        }
    }
    Ok(Request { region: asked.region, method, uri, headers, body: asked.body })
}
