//! Access to the storage as clients are told it: endpoint and region always, keys where they ask for delegation.

use super::{answer, error::Result, path};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        credentials::{self, Vended},
        warehouses::Warehouse,
    },
    iceberg::ident::TableIdent,
};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use secrecy::ExposeSecret;
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};

/// How a client reaches the storage (`client.*` and `s3.*` of the specification's load result).
const REFRESH: &str = "client.refresh-credentials-endpoint";

/// What every client of the storage must know, keys apart.
pub fn storage_config(app: &App) -> [(&'static str, String); 4] {
    [
        ("client.region", app.settings.region.clone()),
        ("s3.endpoint", app.settings.s3_url.clone()),
        ("s3.path-style-access", "true".to_owned()),
        // PyIceberg's name of the region.
        ("s3.region", app.settings.region.clone()),
    ]
}

/// Whether the client asks for keys (`X-Iceberg-Access-Delegation`); ways of delegation we do not have are ignored.
pub fn wants_keys(headers: &HeaderMap) -> bool {
    let values = headers.get_all("x-iceberg-access-delegation").iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|way| way.trim().eq_ignore_ascii_case("vended-credentials"))
}

/// Storage settings of one table: `config` of a load result, and `config` of a storage credential.
pub struct StorageConfig {
    base: [(&'static str, String); 4],
    vended: Option<(Vended, String)>,
}

impl StorageConfig {
    pub fn without_keys(app: &App) -> StorageConfig {
        StorageConfig { base: storage_config(app), vended: None }
    }

    /// With keys, and the route that renews them.
    pub fn with_keys(app: &App, warehouse: &Warehouse, ident: &TableIdent, vended: Vended) -> StorageConfig {
        let refresh = format!(
            "/v1/{}/namespaces/{}/tables/{}/credentials",
            path::encode_prefix(&warehouse.name),
            path::encode_namespace(&ident.namespace),
            path::encode(&ident.name),
        );
        StorageConfig { base: storage_config(app), vended: Some((vended, refresh)) }
    }

    /// The one storage credential, if there is one.
    pub fn credential(&self) -> Option<StorageCredential<'_>> {
        self.vended.as_ref().map(|(vended, _)| StorageCredential { prefix: &vended.prefix, config: self })
    }
}

impl Serialize for StorageConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.base {
            map.serialize_entry(name, value)?;
        }
        if let Some((Vended { keys, .. }, refresh)) = &self.vended {
            map.serialize_entry(REFRESH, refresh)?;
            map.serialize_entry("s3.access-key-id", &keys.access_key_id)?;
            map.serialize_entry("s3.secret-access-key", keys.secret_access_key.expose_secret())?;
            map.serialize_entry("s3.session-token", keys.session_token.expose_secret())?;
            map.serialize_entry("s3.session-token-expires-at-ms", &keys.expires_at_ms.to_string())?;
        }
        map.end()
    }
}

/// `StorageCredential` of the specification.
#[derive(Serialize)]
pub struct StorageCredential<'a> {
    prefix: &'a str,
    config: &'a StorageConfig,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct LoadCredentialsResponse<'a> {
    #[serde(serialize_with = "one")]
    storage_credentials: Option<StorageCredential<'a>>,
}

/// A list of the one element there is, or none.
fn one<T: Serialize, S: Serializer>(element: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    if let Some(element) = element {
        list.serialize_element(element)?;
    }
    list.end()
}

pub async fn load_credentials(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    ident: &TableIdent,
    query: &str,
) -> Result<Response> {
    path::referenced_by(query)?;
    let vended = credentials::load(app, caller, warehouse, ident).await?;
    let config = StorageConfig::with_keys(app, warehouse, ident, vended);
    let mut response =
        answer::json(StatusCode::OK, &LoadCredentialsResponse { storage_credentials: config.credential() });
    answer::forbid_storing(&mut response);
    Ok(response)
}
