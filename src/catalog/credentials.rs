//! Vended credentials: short-lived keys limited to one table's folder.

use super::{Result, authorise, tables, warehouses::Warehouse};
use crate::{
    app::{App, now_ms},
    auth::{
        Caller, VendedKeys,
        grants::{Access, Scope},
    },
    iceberg::ident::TableIdent,
};
use uuid::Uuid;

/// Keys and the place they open.
pub struct Vended {
    /// `s3://bucket/…/`, with the trailing slash.
    pub prefix: String,
    pub keys: VendedKeys,
}

/// Fresh keys for a table.
///
/// # Errors
/// `Error::NoSuchTable`.
pub async fn load(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<Vended> {
    authorise(caller)?;
    let row = tables::row(app, warehouse, ident).await?;
    Ok(vend(app, caller, warehouse, &row.location, row.uuid))
}

/// Keys for the folder `location`, for a caller that was allowed to see the table there, staged or stored. Stores
/// nothing; the keys end when a table with another uuid takes the place.
pub fn vend(app: &App, caller: &Caller, warehouse: &Warehouse, location: &str, table: Uuid) -> Vended {
    vend_scope(app, caller, scope(warehouse, location, table, Access::ReadWrite))
}

/// The objects of a table at `location`.
pub(super) fn scope(warehouse: &Warehouse, location: &str, table: Uuid, access: Access) -> Scope {
    let place = location.strip_prefix("s3://").unwrap_or(location);
    Scope { warehouse: warehouse.name.clone(), prefixes: vec![format!("{place}/")], access, table }
}

pub(super) fn vend_scope(app: &App, caller: &Caller, scope: Scope) -> Vended {
    let prefix = scope.prefixes.first().map(|prefix| format!("s3://{prefix}")).unwrap_or_default();
    Vended { keys: app.auth.vend(caller, scope, now_ms()), prefix }
}
