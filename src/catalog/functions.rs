//! Functions of a namespace: documents that engines load and our own API keeps.

use super::{Error, Result, authorise, warehouses::Warehouse};
use crate::{
    app::App,
    auth::Caller,
    db::{self, Page, functions::Put},
    iceberg::{
        function::FunctionMetadata,
        ident::{Namespace, TableIdent},
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    Created,
    Replaced,
}

/// Names in order.
///
/// # Errors
/// `Error::NoSuchNamespace`.
pub async fn list(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    page: &Page,
) -> Result<Vec<String>> {
    authorise(caller)?;
    let names = db::functions::list(&app.db, warehouse.id, namespace, page).await.map_err(Error::read)?;
    names.ok_or_else(|| Error::NoSuchNamespace(namespace.clone()))
}

/// The function's document, as it was sent.
///
/// # Errors
/// `Error::NoSuchFunction`, or `Error::NoSuchNamespace` when that is what is missing.
pub async fn load(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<String> {
    authorise(caller)?;
    match db::functions::load(&app.db, warehouse.id, ident).await.map_err(Error::read)? {
        Some(metadata) => Ok(metadata),
        None => Err(missing(app, warehouse, ident).await),
    }
}

/// Creates a function, or replaces the document of the one with the same uuid.
///
/// # Errors
/// `Error::NoSuchNamespace`; `Error::FunctionTaken`.
pub async fn put(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    ident: &TableIdent,
    function: &FunctionMetadata,
) -> Result<Stored> {
    authorise(caller)?;
    let put = db::functions::put(&app.db, warehouse.id, ident, function.uuid, &function.json).await;
    match put.map_err(Error::write)? {
        Put::Created => Ok(Stored::Created),
        Put::Replaced => Ok(Stored::Replaced),
        Put::NoNamespace => Err(Error::NoSuchNamespace(ident.namespace.clone())),
        Put::Taken => Err(Error::FunctionTaken(ident.clone())),
    }
}

/// # Errors
/// As [`load`].
pub async fn delete(app: &App, caller: &Caller, warehouse: &Warehouse, ident: &TableIdent) -> Result<()> {
    authorise(caller)?;
    match db::functions::delete(&app.db, warehouse.id, ident).await.map_err(Error::write)? {
        true => Ok(()),
        false => Err(missing(app, warehouse, ident).await),
    }
}

/// What is missing where no function was found.
async fn missing(app: &App, warehouse: &Warehouse, ident: &TableIdent) -> Error {
    match db::namespaces::load(&app.db, warehouse.id, &ident.namespace).await {
        Ok(Some(_)) => Error::NoSuchFunction(ident.clone()),
        Ok(None) => Error::NoSuchNamespace(ident.namespace.clone()),
        Err(error) => Error::read(error),
    }
}
