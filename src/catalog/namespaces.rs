//! Namespaces: created under an existing parent, dropped when empty.

pub use crate::db::namespaces::Properties;

use super::{
    Error, Result, authorise,
    idempotency::{self, Key},
    location,
    warehouses::Warehouse,
};
use crate::{
    app::App,
    auth::Caller,
    db::{
        self, Page,
        namespaces::{Changed, Create, Drop, NamespaceRow},
    },
    iceberg::ident::Namespace,
};

/// # Errors
/// `Error::NoSuchNamespace` of the parent: a tree is never made half; `Error::NamespaceExists`.
pub async fn create(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    properties: &Properties,
    key: Option<&Key>,
) -> Result<NamespaceRow> {
    authorise(caller)?;
    check(properties)?;
    let record = idempotency::answered(key, 200);
    match db::namespaces::create(app.db.recording(record.as_ref()), warehouse.id, namespace, properties)
        .await
        .map_err(Error::write)?
    {
        Create::Done(row) => Ok(show(row, warehouse)),
        Create::Exists => Err(Error::NamespaceExists(namespace.clone())),
        Create::NoParent => Err(Error::NoSuchNamespace(namespace.parent().unwrap_or_else(|| namespace.clone()))),
    }
}

/// # Errors
/// `Error::NoSuchNamespace`.
pub async fn load(app: &App, caller: &Caller, warehouse: &Warehouse, namespace: &Namespace) -> Result<NamespaceRow> {
    authorise(caller)?;
    let row = db::namespaces::load(&app.db, warehouse.id, namespace).await.map_err(Error::read)?;
    let row = row.ok_or_else(|| Error::NoSuchNamespace(namespace.clone()))?;
    Ok(show(row, warehouse))
}

/// What a creation answers when it is asked again: the properties as they are now, or as they were `given` where the
/// namespace is gone.
///
/// # Errors
/// When the database is away.
pub async fn created(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    given: Properties,
) -> Result<Properties> {
    match load(app, caller, warehouse, namespace).await {
        Ok(row) => Ok(row.properties),
        Err(Error::NoSuchNamespace(_)) => Ok(with_location(given, namespace, warehouse)),
        Err(error) => Err(error),
    }
}

fn show(row: NamespaceRow, warehouse: &Warehouse) -> NamespaceRow {
    let properties = with_location(row.properties, &row.namespace, warehouse);
    NamespaceRow { properties, ..row }
}

/// Shows where tables go by default. Trino needs to be told: without it, it creates a table at once instead of staging
/// it, and then refuses it because its folder is not empty.
fn with_location(mut properties: Properties, namespace: &Namespace, warehouse: &Warehouse) -> Properties {
    if !properties.contains_key(location::NAMESPACE_LOCATION)
        && let Some(place) = location::of_namespace(&warehouse.location, namespace)
    {
        properties.insert(location::NAMESPACE_LOCATION.to_owned(), place);
    }
    properties
}

/// Names of the direct children of `parent`, of the top level when `None`.
///
/// # Errors
/// `Error::NoSuchNamespace` of the parent.
pub async fn list(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    parent: Option<&Namespace>,
    page: &Page,
) -> Result<Vec<String>> {
    authorise(caller)?;
    let names = db::namespaces::list(&app.db, warehouse.id, parent, page).await.map_err(Error::read)?;
    match (names, parent) {
        (Some(names), _) => Ok(names),
        (None, Some(parent)) => Err(Error::NoSuchNamespace(parent.clone())),
        (None, None) => Ok(Vec::new()),
    }
}

/// # Errors
/// `Error::KeysOverlap` when a key is both removed and updated; `Error::NoSuchNamespace`.
pub async fn update_properties(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    removals: &[String],
    updates: &Properties,
    key: Option<&Key>,
) -> Result<Changed> {
    authorise(caller)?;
    if let Some(key) = removals.iter().find(|key| updates.contains_key(*key)) {
        return Err(Error::KeysOverlap(key.clone()));
    }
    check(updates)?;
    let record = idempotency::answered(key, 200);
    let to = app.db.recording(record.as_ref());
    let changed = db::namespaces::update_properties(to, warehouse.id, namespace, removals, updates).await;
    changed.map_err(Error::write)?.ok_or_else(|| Error::NoSuchNamespace(namespace.clone()))
}

/// # Errors
/// `Error::NamespaceNotEmpty` while it has tables, views or children; `Error::NoSuchNamespace`.
pub async fn drop(
    app: &App,
    caller: &Caller,
    warehouse: &Warehouse,
    namespace: &Namespace,
    key: Option<&Key>,
) -> Result<()> {
    authorise(caller)?;
    let record = idempotency::answered(key, 204);
    match db::namespaces::drop(app.db.recording(record.as_ref()), warehouse.id, namespace)
        .await
        .map_err(Error::write)?
    {
        Drop::Done => Ok(()),
        Drop::Missing => Err(Error::NoSuchNamespace(namespace.clone())),
        Drop::NotEmpty => Err(Error::NamespaceNotEmpty(namespace.clone())),
    }
}

/// A NUL cannot be stored in Postgres, so it is refused everywhere.
fn check(properties: &Properties) -> Result<()> {
    let bad = properties.iter().find(|(key, value)| key.contains('\0') || value.contains('\0'));
    bad.map_or(Ok(()), |(key, _)| {
        Err(Error::Invalid(format!("property holds a NUL character: {}", key.escape_default())))
    })
}
