//! Table operations of the specification.

use super::{
    answer,
    body::parse,
    credentials::{Delegation, StorageConfig},
    error::{Error, Result},
    page::Window,
    path,
};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        commit, create,
        create::Created,
        credentials,
        deflated::Deflated,
        document::{Document, Snapshots, off_thread},
        idempotency::{Key, Version},
        tables::{self, Files},
        warehouses::Warehouse,
    },
    iceberg::{
        commit::Commit,
        create::CreateTable,
        ident::{Namespace, TableIdent},
    },
    telemetry::Chain,
};
use aws_lc_rs::digest;
use axum::{body::Body, response::Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;
use uuid::Uuid;

/// Smaller metadata is not worth compressing. Bytes.
const GZIP_BYTES_MIN: usize = 16 << 10;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ListTablesResponse<'a> {
    identifiers: Vec<Identifier<'a>>,
    next_page_token: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Identifier<'a> {
    namespace: &'a [String],
    name: &'a str,
}

#[derive(Deserialize, ToSchema)]
pub struct RenameTableRequest {
    source: OwnedIdentifier,
    destination: OwnedIdentifier,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = Identifier)]
pub struct OwnedIdentifier {
    namespace: Vec<String>,
    name: String,
}

pub async fn list_tables(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    query: &str,
) -> Result<Response> {
    let window = Window::parse(query, app.settings.page_size_max)?;
    let mut names = tables::list(app, caller, warehouse, namespace, &window.page()).await?;
    let next_page_token = window.cut(&mut names);
    Ok(show_names(namespace, &names, next_page_token))
}

/// `ListTablesResponse` of the specification, also of views.
pub(super) fn show_names(namespace: &Namespace, names: &[String], next_page_token: Option<String>) -> Response {
    let identifiers = names.iter().map(|name| Identifier { namespace: namespace.levels(), name }).collect();
    answer::json(StatusCode::OK, &ListTablesResponse { identifiers, next_page_token })
}

pub async fn create_table(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    headers: &HeaderMap,
    body: Bytes,
    key: Option<&Key>,
) -> Result<Response> {
    let request = off_thread(body.len(), move || CreateTable::parse(&body)).await??;
    let ident = TableIdent::new(namespace.clone(), request.name.clone())?;
    let created = create::create(app, caller, warehouse, namespace, request, key).await?;
    Ok(show_created(app, caller, warehouse, &ident, headers, &created).await)
}

/// Whether a request to create a table only stages it.
pub fn is_staged(body: &[u8]) -> bool {
    CreateTable::parse(body).is_ok_and(|request| request.stage_create)
}

/// The answer to a create that was answered before.
pub async fn create_table_again(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    namespace: &Namespace,
    headers: &HeaderMap,
    body: &Bytes,
    version: Option<Version>,
) -> Result<Response> {
    let ident = TableIdent::new(namespace.clone(), CreateTable::parse(body)?.name)?;
    let document = tables::version(app, caller, warehouse, &ident, version).await?;
    Ok(show_stored(app, caller, warehouse, &ident, headers, &document).await)
}

async fn show_created(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    ident: &TableIdent,
    headers: &HeaderMap,
    created: &Created,
) -> Response {
    let staged = match created {
        Created::Stored(table) => return show_stored(app, caller, warehouse, ident, headers, &table.document).await,
        Created::Staged(staged) => staged,
    };
    let config = created_config(app, caller, warehouse, ident, (&staged.location, staged.uuid), headers).await;
    let mut response = LoadResult::new(None, Some(&config)).around(staged.json.clone());
    if config.expires() {
        answer::forbid_storing(&mut response);
    }
    response
}

/// `LoadTableResult` for whoever made this version of a table.
pub(super) async fn show_stored(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    ident: &TableIdent,
    headers: &HeaderMap,
    document: &Document,
) -> Response {
    // Old files without one get their table's when they are read; keys for no table open nothing.
    let uuid = document.metadata.uuid().unwrap_or_default();
    let place = (document.metadata.location(), uuid);
    let config = created_config(app, caller, warehouse, ident, place, headers).await;
    let mut response = LoadResult::new(Some(&document.location), Some(&config)).around(document.json.clone());
    match config.expires() {
        true => answer::forbid_storing(&mut response),
        false => set_etag(&mut response, document, Snapshots::All),
    }
    response
}

pub async fn load_table(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    headers: &HeaderMap,
    query: &str,
) -> Result<Response> {
    let snapshots = snapshots(query)?;
    path::referenced_by(query)?;
    let table = tables::load(app, caller, warehouse, ident).await?;
    let place = (table.row.location.as_str(), table.row.uuid);
    let config = storage_config(app, caller, warehouse, ident, place, headers).await?;
    let document = &table.document;
    // A client that keeps its copy also keeps its keys: answers with keys are never "not modified".
    let has_keys = config.expires();
    if !has_keys && matches(headers, &etag(document, snapshots)) {
        return Ok(not_modified(document, snapshots));
    }
    let result = LoadResult::new(Some(&document.location), Some(&config));
    let is_compressed = document.json.len() >= GZIP_BYTES_MIN && accepts_gzip(headers);
    let mut response = if is_compressed {
        result.gzip(&document.deflated(snapshots).await?)
    } else {
        result.around(document.json(snapshots))
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if has_keys {
        answer::forbid_storing(&mut response);
    } else {
        set_etag(&mut response, document, snapshots);
    }
    Ok(response)
}

pub async fn update_table(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    body: Bytes,
    key: Option<&Key>,
) -> Result<Response> {
    let commit = off_thread(body.len(), move || Commit::parse(&body)).await??;
    if commit.identifier.as_ref().is_some_and(|named| named != ident) {
        return Err(Error::invalid(format!("the commit's identifier is not that of its path: {ident}")));
    }
    let table = commit::commit(app, caller, warehouse, ident, commit, key).await?;
    Ok(show_committed(&table.document))
}

/// The answer to a commit that was answered before.
pub async fn update_table_again(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    version: Option<Version>,
) -> Result<Response> {
    Ok(show_committed(&*tables::version(app, caller, warehouse, ident, version).await?))
}

fn show_committed(document: &Document) -> Response {
    let mut response = LoadResult::new(Some(&document.location), None).around(document.json.clone());
    set_etag(&mut response, document, Snapshots::All);
    response
}

pub async fn drop_table(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    query: &str,
    key: Option<&Key>,
) -> Result<Response> {
    let files = match path::parameter(query, "purgeRequested")? {
        Some(purge) if purge.eq_ignore_ascii_case("true") => Files::Purge,
        None => Files::Keep,
        Some(purge) if purge.is_empty() || purge.eq_ignore_ascii_case("false") => Files::Keep,
        Some(other) => return Err(Error::invalid(format!("purgeRequested is neither true nor false: {other}"))),
    };
    tables::drop(app, caller, warehouse, ident, files, key).await?;
    Ok(answer::no_content())
}

pub async fn table_exists(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<Response> {
    tables::exists(app, caller, warehouse, ident).await?;
    Ok(answer::no_content())
}

pub async fn rename_table(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    body: &[u8],
    key: Option<&Key>,
) -> Result<Response> {
    let (from, to) = parse_rename(body)?;
    tables::rename(app, caller, warehouse, &from, &to, key).await?;
    Ok(answer::no_content())
}

/// Source and destination of a `RenameTableRequest` of the specification, also of views.
pub(super) fn parse_rename(body: &[u8]) -> Result<(TableIdent, TableIdent)> {
    let RenameTableRequest { source, destination } = parse(body)?;
    let from = TableIdent::new(Namespace::new(source.namespace)?, source.name)?;
    let to = TableIdent::new(Namespace::new(destination.namespace)?, destination.name)?;
    Ok((from, to))
}

async fn storage_config(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    ident: &TableIdent,
    (location, table): (&str, Uuid),
    headers: &HeaderMap,
) -> Result<StorageConfig> {
    let asked = Delegation::asked(headers);
    if asked == Delegation::Nothing {
        return Ok(StorageConfig::without_keys(app, warehouse));
    }
    if asked == Delegation::Keys
        && let Some(vended) = credentials::vend(app, caller, warehouse, location, table).await?
    {
        return Ok(StorageConfig::with_keys(app, warehouse, ident, vended));
    }
    let place = credentials::place_token(app, caller, warehouse, location, table);
    Ok(StorageConfig::with_signing(app, warehouse, ident, &place))
}

/// The same for a table that was just made: it is there, whether or not its storage has keys to give at the moment.
async fn created_config(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    ident: &TableIdent,
    place: (&str, Uuid),
    headers: &HeaderMap,
) -> StorageConfig {
    match storage_config(app, caller, warehouse, ident, place, headers).await {
        Ok(config) => config,
        Err(error) => {
            tracing::warn!(table = %ident, error = %Chain(&error), "a new table is answered without keys");
            StorageConfig::without_keys(app, warehouse)
        }
    }
}

/// `LoadTableResult`, or without config `CommitTableResponse` and `LoadViewResult`: what stands before and after the
/// metadata's own bytes.
pub(super) struct LoadResult {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl LoadResult {
    pub(super) fn new(metadata_location: Option<&str>, config: Option<&StorageConfig>) -> LoadResult {
        let mut before = Vec::with_capacity(256);
        before.push(b'{');
        if let Some(location) = metadata_location {
            before.extend_from_slice(b"\"metadata-location\":");
            append(&mut before, &location);
            before.push(b',');
        }
        before.extend_from_slice(b"\"metadata\":");
        let mut after = Vec::with_capacity(1_024);
        if let Some(config) = config {
            after.extend_from_slice(b",\"config\":");
            append(&mut after, config);
            if let Some(credential) = config.credential() {
                after.extend_from_slice(b",\"storage-credentials\":");
                append(&mut after, &[credential]);
            }
            if let Some(signing) = config.remote_signing() {
                after.extend_from_slice(b",\"remote-signing-config\":");
                append(&mut after, &signing);
            }
        }
        after.push(b'}');
        LoadResult { before, after }
    }

    pub(super) fn around(self, metadata: Bytes) -> Response {
        answer::json_pieces([self.before.into(), metadata, self.after.into()])
    }

    fn gzip(self, metadata: &Deflated) -> Response {
        let mut response = answer::json_pieces(metadata.gzip(&self.before, &self.after));
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    }
}

fn append(json: &mut Vec<u8>, value: &impl Serialize) {
    // Writing strings and maps of strings to memory does not fail.
    let written = serde_json::to_writer(&mut *json, value);
    debug_assert!(written.is_ok());
}

fn snapshots(query: &str) -> Result<Snapshots> {
    match path::parameter(query, "snapshots")? {
        None => Ok(Snapshots::All),
        Some(mode) if mode.is_empty() || mode.eq_ignore_ascii_case("all") => Ok(Snapshots::All),
        Some(mode) if mode.eq_ignore_ascii_case("refs") => Ok(Snapshots::Refs),
        Some(mode) => Err(Error::invalid(format!("snapshots is neither all nor refs: {mode}"))),
    }
}

/// The tag of one version of one table in one form: from its location and content, so that every replica gives the same.
/// Weak, since the same version also goes out compressed.
fn etag(document: &Document, snapshots: Snapshots) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(document.location.as_bytes());
    context.update(&document.checksum().to_be_bytes());
    let digest = context.finish();
    let mode = match snapshots {
        Snapshots::All => "all",
        Snapshots::Refs => "refs",
    };
    let digest = digest.as_ref().get(..16).unwrap_or_default();
    format!("W/\"{}-{mode}\"", hex::encode(digest))
}

/// Whether the client takes gzip (RFC 9110, section 12.5.3); `*` is not taken for it.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

pub(super) fn set_etag(response: &mut Response, document: &Document, snapshots: Snapshots) {
    let tag = HeaderValue::from_str(&etag(document, snapshots)).map(|tag| (header::ETAG, tag));
    response.headers_mut().extend(tag);
}

/// Whether `If-None-Match` names the tag (RFC 9110, section 13.1.2; weak comparison).
fn matches(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|given| {
        let given = given.trim();
        let opaque = given.strip_prefix("W/").unwrap_or(given).trim_matches('"');
        given == "*" || opaque == etag.trim_start_matches("W/").trim_matches('"')
    })
}

fn not_modified(document: &Document, snapshots: Snapshots) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    set_etag(&mut response, document, snapshots);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_compared_as_opaque_text() {
        let tag = "W/\"abc-all\"";
        for (given, expected) in [
            ("\"abc-all\"", true),
            ("abc-all", true),
            ("W/\"abc-all\"", true),
            ("\"x\", \"abc-all\"", true),
            ("*", true),
            ("\"abc-refs\"", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::IF_NONE_MATCH, given.parse().unwrap())]);
            assert_eq!(matches(&headers, tag), expected, "{given}");
        }
        assert!(!matches(&HeaderMap::new(), tag));
    }

    #[test]
    fn gzip_goes_to_those_who_take_it() {
        for (given, expected) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("x-gzip, gzip, deflate", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
            ("identity", false),
            ("*", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, given.parse().unwrap())]);
            assert_eq!(accepts_gzip(&headers), expected, "{given}");
        }
    }

    #[test]
    fn files_are_reached_as_clients_ask() {
        for (given, expected) in [
            ("vended-credentials", Delegation::Keys),
            ("remote-signing, vended-credentials", Delegation::Keys),
            ("remote-signing,Vended-Credentials", Delegation::Keys),
            ("telepathy, Remote-Signing", Delegation::Signing),
            ("telepathy", Delegation::Nothing),
            ("", Delegation::Nothing),
        ] {
            let headers = HeaderMap::from_iter([(
                http::HeaderName::from_static("x-iceberg-access-delegation"),
                given.parse().unwrap(),
            )]);
            assert_eq!(Delegation::asked(&headers), expected, "{given}");
        }
    }
}
