//! `Idempotency-Key`: a request that carries one is answered once, however often it is sent.
//!
//! A success is recorded with the change itself (`catalog/idempotency.rs`); refusals that sending again cannot change
//! are recorded here. What a client may have lost is built again from the record: the body may show a newer state.

use super::{
    answer,
    error::{self, Error, Result},
    namespaces, register,
    route::Named,
    tables, views,
};
use crate::{
    app::{App, now_ms},
    auth::Caller,
    catalog::{
        self,
        idempotency::{self, Begun, DETAIL_BYTES_MAX, Kept, Key, Record, Version},
        warehouses::Warehouse,
    },
};
use aws_lc_rs::digest::{Context, SHA256};
use axum::response::Response;
use bytes::Bytes;
use http::{StatusCode, request::Parts};
use std::sync::Arc;
use uuid::Uuid;

const HEADER: &str = "idempotency-key";
/// A UUID as text (RFC 9562, section 4).
const KEY_CHARS: usize = 36;

/// What changes something, once.
pub async fn once(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    named: &Named,
    parts: &Parts,
    body: Bytes,
) -> Result<Response> {
    let change = |key| super::change(app, caller, warehouse, named, parts, body.clone(), key);
    let Some(key) = key(app, caller, parts, &body)? else { return change(None).await };
    let again = |kept| again(app, caller, warehouse, named, parts, &body, kept);
    let _turn = match idempotency::begin(app, caller, &key).await? {
        Begun::Answered(kept) => return again(kept).await,
        Begun::Fresh(turn) => turn,
    };
    let result = change(Some(&key)).await;
    let kept = match &result {
        Err(Error::Catalog(catalog::Error::AnsweredBefore)) => idempotency::find(app, &key).await?,
        // A staged table exists in its answer only: it is made anew.
        Ok(_) if is_staged(named, &body) => None,
        Ok(response) => keep(app, &key, response.status(), None).await,
        Err(error) if is_final(error) => keep(app, &key, error.status().0, Some(error.detail())).await,
        Err(_) => None,
    };
    match kept {
        Some(kept) if result.is_err() => again(kept).await,
        _ => result,
    }
}

/// The key of a request, if it has one.
///
/// # Errors
/// `catalog::Error::Invalid` when it is no UUID.
fn key(app: &App, caller: &Caller, parts: &Parts, body: &[u8]) -> Result<Option<Key>> {
    let mut values = parts.headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| text.len() == KEY_CHARS && values.next().is_none());
    let id = text.and_then(|text| Uuid::try_parse(text).ok());
    let id = id.ok_or_else(|| Error::invalid(format!("Idempotency-Key is not one UUID of {KEY_CHARS} characters")))?;
    let mut hash = Context::new(&SHA256);
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    for part in [parts.method.as_str().as_bytes(), b" ", target.as_bytes(), b"\n", body] {
        hash.update(part);
    }
    let mut request_sha256 = [0; 32];
    request_sha256.copy_from_slice(hash.finish().as_ref());
    let now_ms = now_ms();
    let lifetime_ms = i64::try_from(app.settings.idempotency_lifetime_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
    let expires_at_ms = now_ms.saturating_add(lifetime_ms);
    Ok(Some(Key { principal: Arc::clone(&caller.principal), id, request_sha256, now_ms, expires_at_ms }))
}

/// Whether the same request would be refused again whenever it is sent, as far as the protocol is concerned.
fn is_final(error: &Error) -> bool {
    let passing =
        [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
    let status = error.status().0;
    let is_about_the_key = matches!(error, Error::Catalog(catalog::Error::KeyReused(_)));
    status.is_client_error() && !passing.contains(&status) && !is_about_the_key
}

fn is_staged(named: &Named, body: &[u8]) -> bool {
    matches!(named, Named::CreateTable(_)) && tables::is_staged(body)
}

/// Answers what was kept before, if anything. An answer that cannot be kept is given all the same: sent again, the
/// request is refused again.
async fn keep(app: &App, key: &Key, status: StatusCode, detail: Option<String>) -> Option<Kept> {
    let detail = detail.filter(|detail| detail.len() <= DETAIL_BYTES_MAX);
    let record = Record { key: key.clone(), status: status.as_u16(), location: None, detail };
    idempotency::keep(app, &record).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the answer to a request with a key could not be kept");
        None
    })
}

/// The answer that was given before.
async fn again(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    named: &Named,
    parts: &Parts,
    body: &Bytes,
    kept: Kept,
) -> Result<Response> {
    metrics::counter!("tidewater_requests_answered_again_total").increment(1);
    let version = Version::of(&kept);
    let Kept { status, detail, .. } = kept;
    if status >= 400 {
        return Ok(error::again(status, detail));
    }
    match named {
        Named::CreateNamespace => namespaces::create_namespace_again(app, caller, warehouse, body).await,
        Named::UpdateProperties(_) => namespaces::update_properties_again(body, detail),
        Named::CreateTable(namespace) => {
            tables::create_table_again(app, caller, warehouse, namespace, &parts.headers, body, version).await
        }
        Named::UpdateTable(ident) => tables::update_table_again(app, caller, warehouse, ident, version).await,
        Named::RegisterTable(namespace) => {
            register::register_table_again(app, caller, warehouse, namespace, &parts.headers, body, version).await
        }
        Named::UnregisterTable(_) => register::unregister_table_again(app, caller, warehouse, version).await,
        Named::CreateView(namespace) => {
            views::create_view_again(app, caller, warehouse, namespace, body, version).await
        }
        Named::ReplaceView(ident) => views::show_version(app, caller, warehouse, ident, version).await,
        Named::RegisterView(namespace) => {
            views::register_view_again(app, caller, warehouse, namespace, body, version).await
        }
        Named::DropNamespace(_)
        | Named::DropTable(_)
        | Named::RenameTable
        | Named::CommitTransaction
        | Named::DropView(_)
        | Named::RenameView => Ok(answer::no_content()),
        _ => Err(catalog::Error::internal("an operation whose answer cannot be given again").into()),
    }
}
