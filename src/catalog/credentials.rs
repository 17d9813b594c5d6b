//! Vended credentials: short-lived keys limited to one table's folder.

use super::{
    Result, authorise,
    storage::{Delegation, Storage},
    tables,
    warehouses::Warehouse,
};
use crate::{
    app::{App, now_ms},
    auth::{
        Caller, VendedKeys,
        grants::{Access, Scope},
    },
    iceberg::ident::TableIdent,
};
use secrecy::SecretString;
use uuid::Uuid;

/// Keys and the place they open.
pub struct Vended {
    /// `s3://bucket/…/`, with the trailing slash.
    pub prefix: String,
    pub keys: Keys,
}

/// Keys of the storage.
pub struct Keys {
    pub access_key_id: String,
    pub secret_access_key: SecretString,
    /// With the keys of a session; those that a storage has for ever come without.
    pub session_token: Option<SecretString>,
    pub expires_at_ms: Option<i64>,
}

impl From<VendedKeys> for Keys {
    fn from(keys: VendedKeys) -> Keys {
        Keys {
            access_key_id: keys.access_key_id,
            secret_access_key: keys.secret_access_key,
            session_token: Some(keys.session_token),
            expires_at_ms: Some(keys.expires_at_ms),
        }
    }
}

/// Fresh keys for a table; `None` where the storage of its warehouse has none to give.
///
/// # Errors
/// `Error::NoSuchTable`; as [`vend`].
pub async fn load(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<Option<Vended>> {
    authorise(caller)?;
    let row = tables::row(app, warehouse, ident).await?;
    vend(app, caller, warehouse, &row.location, row.uuid).await
}

/// Keys for the folder `location`, for a caller that was allowed to see the table there, staged or stored. Stores
/// nothing. Keys of the embedded store end when a table with another uuid takes the place. `None` where clients are to
/// have their requests signed.
///
/// # Errors
/// On another store: `Error::Forbidden` for a place that no keys can be limited to, `Error::Unavailable`.
pub async fn vend(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    location: &str,
    table: Uuid,
) -> Result<Option<Vended>> {
    let scope = scope(warehouse, location, table, Access::ReadWrite);
    let place = scope.prefixes.concat();
    let keys = match &warehouse.storage {
        Storage::Embedded => app.auth.vend(caller, scope, now_ms()).into(),
        Storage::S3(external) => match external.profile.delegation {
            Delegation::RemoteSigning => return Ok(None),
            Delegation::StaticKeys => {
                let (id, secret) = external.static_keys();
                let (access_key_id, secret_access_key) = (id.to_owned(), secret.clone());
                Keys { access_key_id, secret_access_key, session_token: None, expires_at_ms: None }
            }
            Delegation::SessionKeys => external.session(&place, Access::ReadWrite, &caller.principal).await?.keys(),
        },
    };
    Ok(Some(Vended { prefix: format!("s3://{place}"), keys }))
}

/// The objects of a table at `location`.
pub(super) fn scope(warehouse: &Warehouse, location: &str, table: Uuid, access: Access) -> Scope {
    let place = location.strip_prefix("s3://").unwrap_or(location);
    Scope { warehouse: warehouse.name.clone(), prefixes: vec![format!("{place}/")], access, table }
}

/// A statement of ours that the caller may reach a table's folder: what a client passes on with requests to be signed,
/// for when there is no table of that name (`signing::For::Table`). Opens nothing by itself on another store.
pub fn place_token(app: &App, caller: &Caller, warehouse: &Warehouse, location: &str, table: Uuid) -> SecretString {
    app.auth.vend(caller, scope(warehouse, location, table, Access::ReadWrite), now_ms()).session_token
}
