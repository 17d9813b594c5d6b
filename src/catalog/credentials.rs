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
    let prefix = format!("{location}/");
    let objects = prefix.strip_prefix("s3://").unwrap_or(&prefix).to_owned();
    let scope = Scope { warehouse: warehouse.name.clone(), prefixes: vec![objects], access: Access::ReadWrite, table };
    Vended { keys: app.auth.vend(caller, scope, now_ms()), prefix }
}
