//! Remote signing: one request to the storage signed for a client that holds no keys.
//!
//! For the embedded store a request is signed with a key that is vended for the occasion and opens the table's folder
//! only, so the store judges it once more when it comes: what is refused here is what the store would refuse, said
//! earlier. Another store may be asked with keys that open more, so for it this is the only judgement.

use super::{
    Error, Result, authorise,
    credentials::{self, Keys},
    storage::{self, ExternalS3, Storage},
    strict, tables,
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::{
        Caller, Named,
        grants::{self, Access, Action, Authority, Resource, Scope},
    },
    db,
    iceberg::ident::TableIdent,
    s3::{
        intent::{self, Intent},
        sigv4::{Payload, SERVICE_S3, Signer},
    },
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use secrecy::ExposeSecret;
use std::sync::Arc;

const DATE: &str = "x-amz-date";
const TOKEN: &str = "x-amz-security-token";
const CONTENT_SHA256: &str = "x-amz-content-sha256";
const COPY_SOURCE: &str = "x-amz-copy-source";
/// What a signature adds to a request.
const ADDED: [&str; 4] = ["authorization", CONTENT_SHA256, DATE, TOKEN];

/// A request to be signed.
pub struct Request {
    pub region: String,
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    /// The body of a DeleteObjects, from clients that show it.
    pub body: Option<String>,
}

/// What signing adds to it.
pub struct Signed {
    pub headers: HeaderMap,
    /// Whether the same signature may be sent again with the same method and address.
    pub may_be_cached: bool,
}

/// Which table a request is signed for.
pub enum For<'a> {
    /// The table of this name. While it is staged and after it was dropped there is none; then `scope`, a session token
    /// that was given to the same caller with the table, says where it was.
    Table { ident: &'a TableIdent, scope: Option<String> },
    /// The one whose place the request is about.
    Place,
}

/// # Errors
/// `Error::NoSuchTable`; `Error::Forbidden` for what is not about the table's own objects; `Error::Invalid`.
pub async fn sign(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    table: For<'_>,
    request: Request,
) -> Result<Signed> {
    authorise(caller)?;
    let address = match &warehouse.storage {
        Storage::Embedded => app.settings.s3_url.clone(),
        Storage::S3(external) => external.address(),
    };
    check_endpoint(&address, &request.uri)?;
    let intent = intent(&address, &request)?;
    let access = if intent.only_reads() { Access::Read } else { Access::ReadWrite };
    let scope = match table {
        For::Table { ident, scope } => scope_of(app, caller, warehouse, ident, scope, access).await?,
        For::Place => scope_of_place(app, warehouse, &intent, access).await?,
    };
    check_scope(&scope, &intent)?;
    match &warehouse.storage {
        Storage::Embedded => {
            let keys = app.auth.vend(caller, scope, now_ms()).into();
            add_signature(&keys, request, access == Access::Read)
        }
        Storage::S3(external) => {
            strict::check(&request.uri, &request.headers, request.body.as_deref(), &intent)?;
            judge(app, &scope, &intent).await?;
            let keys = keys_of(external, caller, &scope).await?;
            add_signature(&keys, Request { region: external.profile.region.clone(), ..request }, false)
        }
    }
}

/// What the embedded store would look at when the request comes: whether another table has taken the place, and whether
/// a metadata file that a table names would be overwritten or deleted.
async fn judge(app: &App, scope: &Scope, intent: &Intent) -> Result<()> {
    for prefix in &scope.prefixes {
        let except = db::tables::Except::Table(scope.table);
        if db::tables::location_taken(&app.db, &format!("s3://{prefix}"), except).await.map_err(Error::read)? {
            return Err(Error::Forbidden("another table holds the place".to_owned()));
        }
    }
    for touch in &intent.touches {
        let place = format!("s3://{}/{}", touch.bucket, touch.key);
        let named = match touch.action {
            Action::PutObject | Action::DeleteObject => {
                db::tables::named(&app.db, &place).await.map_err(Error::read)?
            }
            _ => None,
        };
        match (named, touch.action) {
            (None, _) | (Some(Named::Earlier), Action::DeleteObject) => {}
            (Some(_), _) => return Err(Error::Forbidden(format!("the catalog names this file: {place}"))),
        }
    }
    Ok(())
}

/// The keys of a session that opens the table's folder where the store gives such, else the store's own.
async fn keys_of(external: &ExternalS3, caller: &Caller, scope: &Scope) -> Result<Keys> {
    if external.profile.delegation == storage::Delegation::SessionKeys {
        let session = external.session(&scope.prefixes.concat(), scope.access, &caller.principal).await?;
        return Ok(session.keys());
    }
    let (id, secret) = external.static_keys();
    let (access_key_id, secret_access_key) = (id.to_owned(), secret.clone());
    Ok(Keys { access_key_id, secret_access_key, session_token: None, expires_at_ms: None })
}

/// Only requests to the warehouse's own store are signed.
fn check_endpoint(address: &str, uri: &Uri) -> Result<()> {
    let ours: Uri = address.parse().map_err(|_| Error::internal("the storage's address is no URI"))?;
    let port = |uri: &Uri| uri.port_u16().or(if uri.scheme_str() == Some("https") { Some(443) } else { Some(80) });
    let is_ours = match (uri.host(), ours.host()) {
        (Some(host), Some(our_host)) => {
            let (host, our_host) = (host.to_ascii_lowercase(), our_host.to_ascii_lowercase());
            host == our_host || host.strip_suffix(&our_host).is_some_and(|bucket| bucket.ends_with('.'))
        }
        _ => false,
    };
    if is_ours && uri.scheme() == ours.scheme() && port(uri) == port(&ours) {
        return Ok(());
    }
    Err(Error::Forbidden(format!("only requests to {address} are signed")))
}

fn intent(address: &str, request: &Request) -> Result<Intent> {
    let base_host = reqwest::Url::parse(address).ok().and_then(|url| url.domain().map(str::to_owned));
    let intent = Intent::of(&intent::Request {
        method: &request.method,
        uri: &request.uri,
        copy_source: request.headers.get(COPY_SOURCE).and_then(|value| value.to_str().ok()),
        document: request.body.as_deref().map(str::as_bytes),
        base_host: base_host.as_deref(),
    });
    intent.ok_or_else(|| Error::Forbidden("only requests for objects of a table are signed".to_owned()))
}

async fn scope_of(
    app: &App,
    caller: &Caller,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    token: Option<String>,
    access: Access,
) -> Result<Scope> {
    match tables::row(app, warehouse, ident).await {
        Ok(row) => Ok(credentials::scope(warehouse, &row.location, row.uuid, access)),
        Err(Error::NoSuchTable(ident)) => {
            let scope = token.and_then(|token| app.auth.scope(caller, &token, now_ms()));
            let scope = scope.filter(|scope| scope.warehouse == warehouse.name && scope.access == Access::ReadWrite);
            scope.map(|scope| Scope { access, ..scope }).ok_or(Error::NoSuchTable(ident))
        }
        Err(error) => Err(error),
    }
}

async fn scope_of_place(app: &App, warehouse: &Arc<Warehouse>, intent: &Intent, access: Access) -> Result<Scope> {
    let forbidden = || Error::Forbidden("the request is about no table's objects".to_owned());
    let touch = intent.touches.first().ok_or_else(forbidden)?;
    let place = format!("s3://{}/{}", touch.bucket, touch.key.trim_end_matches('/'));
    let row = db::tables::load_by_place(&app.db, warehouse.id, &place).await.map_err(Error::read)?;
    let row = row.ok_or_else(forbidden)?;
    Ok(credentials::scope(warehouse, &row.location, row.uuid, access))
}

fn check_scope(scope: &Scope, intent: &Intent) -> Result<()> {
    let authority = Authority::Scoped(Arc::new(scope.clone()));
    for touch in &intent.touches {
        let resource = Resource::Object { bucket: &touch.bucket, key: &touch.key };
        if !grants::allows(&authority, touch.action, resource) {
            let place = format!("s3://{}/{}", touch.bucket, touch.key);
            return Err(Error::Forbidden(format!("{} is not about the table's objects: {place}", intent.operation)));
        }
    }
    Ok(())
}

/// Host and `x-amz-` headers are signed, as S3 wants them to be, and `Content-MD5`: nothing that a client may change
/// between one request and the next to the same address.
fn add_signature(keys: &Keys, request: Request, may_be_cached: bool) -> Result<Signed> {
    let Request { region, method, uri, headers: sent, body } = request;
    let mut headers = HeaderMap::new();
    let host = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    headers.insert(header::HOST, HeaderValue::from_str(host).map_err(invalid)?);
    for (name, value) in &sent {
        if is_signed(name) {
            headers.append(name, value.clone());
        }
    }
    let payload = match (headers.get(CONTENT_SHA256), &body) {
        (Some(given), _) => Payload::parse(given.as_bytes()).map_err(invalid)?,
        (None, Some(body)) => Payload::of_bytes(body.as_bytes()),
        (None, None) => Payload::Unsigned,
    };
    let signer = Signer {
        access_key_id: &keys.access_key_id,
        secret: keys.secret_access_key.expose_secret(),
        security_token: keys.session_token.as_ref().map(|token| token.expose_secret()),
        region: &region,
        service: SERVICE_S3,
    };
    let query = uri.query().unwrap_or_default();
    signer.sign(method.as_str(), uri.path(), query, &mut headers, &payload, now_ms()).map_err(invalid)?;
    // Some clients send what comes back beside what they had, others in its place: only what is new comes back.
    let is_new = |name: &str| ADDED.contains(&name) && (name != CONTENT_SHA256 || !sent.contains_key(name));
    let added =
        headers.into_iter().filter_map(|(name, value)| name.filter(|name| is_new(name.as_str())).zip(Some(value)));
    Ok(Signed { headers: added.collect(), may_be_cached })
}

fn is_signed(name: &HeaderName) -> bool {
    let name = name.as_str();
    name == "content-md5" || name.starts_with("x-amz-") && name != DATE && name != TOKEN
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::Invalid(format!("the request cannot be signed: {error}"))
}
