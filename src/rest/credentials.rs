//! Access to the storage as clients are told it: endpoint and region always, keys where they ask for delegation.

use super::{answer, error::Result, path};
use crate::{
    app::App,
    auth::Caller,
    catalog::{
        credentials::{self, Vended},
        storage::Storage,
        warehouses::Warehouse,
    },
    iceberg::ident::TableIdent,
};
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How a client reaches the storage (`client.*` and `s3.*` of the specification's load result).
const REFRESH: &str = "client.refresh-credentials-endpoint";
/// What a signer client passes on, in the address or among a request's properties: a table's place.
pub const PLACE: &str = "place";

/// What every client of the storage must know, keys apart.
type Base = Vec<(&'static str, String)>;

pub fn storage_config(app: &App, warehouse: &Warehouse) -> Base {
    let (region, endpoint, path_style) = match &warehouse.storage {
        Storage::Embedded => (&app.settings.region, Some(&app.settings.s3_url), true),
        Storage::S3(external) => {
            let profile = &external.profile;
            (&profile.region, profile.endpoint.as_ref(), profile.path_style_access)
        }
    };
    let mut config = vec![("client.region", region.clone())];
    config.extend(endpoint.map(|endpoint| ("s3.endpoint", endpoint.clone())));
    config.push(("s3.path-style-access", path_style.to_string()));
    // PyIceberg's name of the region.
    config.push(("s3.region", region.clone()));
    config
}

/// How a client wants to reach a table's files (`X-Iceberg-Access-Delegation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegation {
    /// With keys of its own.
    Nothing,
    Keys,
    /// With requests that the catalog signs.
    Signing,
}

impl Delegation {
    /// What the client asks for; ways that we do not have are ignored, and keys come before signatures.
    pub fn asked(headers: &HeaderMap) -> Delegation {
        let values = headers.get_all("x-iceberg-access-delegation").iter().filter_map(|value| value.to_str().ok());
        let ways: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        let asks = |way: &str| ways.iter().any(|asked| asked.eq_ignore_ascii_case(way));
        match (asks("vended-credentials"), asks("remote-signing")) {
            (true, _) => Delegation::Keys,
            (false, true) => Delegation::Signing,
            (false, false) => Delegation::Nothing,
        }
    }
}

/// Storage settings of one table: `config` of a load result, and `config` of a storage credential.
pub struct StorageConfig {
    base: Base,
    granted: Granted,
}

enum Granted {
    Nothing,
    /// Keys, and the route that renews them.
    Keys(Vended, String),
    Signing(Signing),
}

/// Where requests are signed.
struct Signing {
    catalog_url: String,
    /// Relative to the catalog's address, and naming the table's place for when there is no table.
    endpoint: String,
    place: String,
}

impl StorageConfig {
    pub fn without_keys(app: &App, warehouse: &Warehouse) -> StorageConfig {
        StorageConfig { base: storage_config(app, warehouse), granted: Granted::Nothing }
    }

    /// With keys, and the route that renews them.
    pub fn with_keys(app: &App, warehouse: &Warehouse, ident: &TableIdent, vended: Vended) -> StorageConfig {
        let refresh = format!("/{}/credentials", table_path(warehouse, ident));
        StorageConfig { base: storage_config(app, warehouse), granted: Granted::Keys(vended, refresh) }
    }

    /// With the route that signs; `place` is the table's [`credentials::place_token`].
    pub fn with_signing(app: &App, warehouse: &Warehouse, ident: &TableIdent, place: &SecretString) -> StorageConfig {
        let place = place.expose_secret().to_owned();
        let endpoint = format!("{}/sign?{PLACE}={place}", table_path(warehouse, ident));
        let signing = Signing { catalog_url: app.settings.catalog_url.clone(), endpoint, place };
        StorageConfig { base: storage_config(app, warehouse), granted: Granted::Signing(signing) }
    }

    /// Whether the answer ends with what it grants, and must not be kept.
    pub fn expires(&self) -> bool {
        !matches!(self.granted, Granted::Nothing)
    }

    /// `remote-signing-config` of the specification: what a signer client passes on with every request.
    pub fn remote_signing(&self) -> Option<RemoteSigningConfig<'_>> {
        match &self.granted {
            Granted::Signing(signing) => Some(RemoteSigningConfig { properties: [(PLACE, &*signing.place)].into() }),
            Granted::Nothing | Granted::Keys(..) => None,
        }
    }

    /// The one storage credential, if there is one.
    pub fn credential(&self) -> Option<StorageCredential<'_>> {
        match &self.granted {
            Granted::Keys(vended, _) => Some(StorageCredential { prefix: &vended.prefix, config: self }),
            Granted::Nothing | Granted::Signing(_) => None,
        }
    }
}

impl Serialize for StorageConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.base {
            map.serialize_entry(name, value)?;
        }
        match &self.granted {
            Granted::Nothing => {}
            Granted::Keys(Vended { keys, .. }, refresh) => {
                map.serialize_entry(REFRESH, refresh)?;
                map.serialize_entry("s3.access-key-id", &keys.access_key_id)?;
                map.serialize_entry("s3.secret-access-key", keys.secret_access_key.expose_secret())?;
                if let Some(token) = &keys.session_token {
                    map.serialize_entry("s3.session-token", token.expose_secret())?;
                }
                if let Some(expires_at_ms) = keys.expires_at_ms {
                    map.serialize_entry("s3.session-token-expires-at-ms", &expires_at_ms.to_string())?;
                }
            }
            Granted::Signing(signing) => {
                map.serialize_entry("s3.remote-signing-enabled", "true")?;
                // The second pair of names is that of Iceberg 1.11.
                for name in ["s3.signer.uri", "signer.uri"] {
                    map.serialize_entry(name, &signing.catalog_url)?;
                }
                for name in ["s3.signer.endpoint", "signer.endpoint"] {
                    map.serialize_entry(name, &signing.endpoint)?;
                }
            }
        }
        map.end()
    }
}

/// A table's routes, relative to the catalog's address.
fn table_path(warehouse: &Warehouse, ident: &TableIdent) -> String {
    format!(
        "v1/{}/namespaces/{}/tables/{}",
        path::encode_prefix(&warehouse.name),
        path::encode_namespace(&ident.namespace),
        path::encode(&ident.name),
    )
}

/// `RemoteSigningConfig` of the specification.
#[derive(Serialize, ToSchema)]
pub struct RemoteSigningConfig<'a> {
    properties: BTreeMap<&'static str, &'a str>,
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
    let config = match credentials::load(app, caller, warehouse, ident).await? {
        Some(vended) => StorageConfig::with_keys(app, warehouse, ident, vended),
        None => StorageConfig::without_keys(app, warehouse),
    };
    let mut response =
        answer::json(StatusCode::OK, &LoadCredentialsResponse { storage_credentials: config.credential() });
    answer::forbid_storing(&mut response);
    Ok(response)
}
