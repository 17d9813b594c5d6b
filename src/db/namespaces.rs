//! Namespaces of a warehouse: a tree of names with properties.
//!
//! A path resolves in one lookup by the hash of its levels. Foreign keys keep a namespace with children or tables.

use super::{
    Db, Page, To,
    change::Change,
    idempotency,
    pointers::Pointers,
    statement::{Tx, Violation, values, violation},
};
use crate::iceberg::ident::Namespace;
use std::collections::BTreeMap;
use uuid::Uuid;

pub type Properties = BTreeMap<String, String>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespaceRow {
    pub id: Uuid,
    pub namespace: Namespace,
    pub properties: Properties,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Create {
    Done(NamespaceRow),
    Exists,
    NoParent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drop {
    Done,
    Missing,
    NotEmpty,
}

/// What an update of properties did; keys in name order.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Changed {
    pub updated: Vec<String>,
    pub removed: Vec<String>,
    pub missing: Vec<String>,
}

pub async fn create(
    to: impl Into<To<'_>>,
    warehouse: Uuid,
    namespace: &Namespace,
    properties: &Properties,
) -> Result<Create, sqlx::Error> {
    let to = to.into();
    let row = NamespaceRow { id: Uuid::now_v7(), namespace: namespace.clone(), properties: properties.clone() };
    let Some(parent) = namespace.parent() else {
        return Ok(if create_top(to, warehouse, &row).await? { Create::Done(row) } else { Create::Exists });
    };
    match create_child(to, warehouse, &parent, &row).await {
        Ok(true) => Ok(Create::Done(row)),
        Ok(false) if id(to.db(), warehouse, &parent).await?.is_some() => Ok(Create::Exists),
        Ok(false) => Ok(Create::NoParent),
        // The parent was dropped between finding it and pointing at it.
        Err(error) if violation(&error) == Some(Violation::ForeignKey) => Ok(Create::NoParent),
        Err(error) => Err(error),
    }
}

async fn create_top(to: To<'_>, warehouse: Uuid, row: &NamespaceRow) -> Result<bool, sqlx::Error> {
    let made: Option<(Uuid,)> = to
        .write_one(
            "insert into namespaces (id, warehouse_id, name, path_key, properties) values ($1, $2, $3, $4, $5)
             on conflict (warehouse_id, path_key) do nothing returning id",
            &values![row.id, warehouse, name(&row.namespace), path_key(&row.namespace), to_json(&row.properties)?],
        )
        .await?;
    Ok(made.is_some())
}

async fn create_child(
    to: To<'_>,
    warehouse: Uuid,
    parent: &Namespace,
    row: &NamespaceRow,
) -> Result<bool, sqlx::Error> {
    let made: Option<(Uuid,)> = to
        .write_one(
            "insert into namespaces (id, warehouse_id, parent_id, name, path_key, properties)
             select $1, warehouse_id, id, $4, $5, $6 from namespaces where warehouse_id = $2 and path_key = $3
             on conflict (warehouse_id, path_key) do nothing returning id",
            &values![
                row.id,
                warehouse,
                path_key(parent),
                name(&row.namespace),
                path_key(&row.namespace),
                to_json(&row.properties)?
            ],
        )
        .await?;
    Ok(made.is_some())
}

pub async fn load(db: &Db, warehouse: Uuid, namespace: &Namespace) -> Result<Option<NamespaceRow>, sqlx::Error> {
    let row: Option<(Uuid, String)> = db
        .read()
        .optional(
            "select id, properties from namespaces where warehouse_id = $1 and path_key = $2",
            &values![warehouse, path_key(namespace)],
        )
        .await?;
    let Some((id, properties)) = row else { return Ok(None) };
    Ok(Some(NamespaceRow { id, namespace: namespace.clone(), properties: from_json(&properties)? }))
}

/// The id alone; `None` when the namespace is missing.
pub(super) async fn id(db: &Db, warehouse: Uuid, namespace: &Namespace) -> Result<Option<Uuid>, sqlx::Error> {
    let row: Option<(Uuid,)> = db
        .read()
        .optional(
            "select id from namespaces where warehouse_id = $1 and path_key = $2",
            &values![warehouse, path_key(namespace)],
        )
        .await?;
    Ok(row.map(|(id,)| id))
}

/// Names of the direct children of `parent` (top level when `None`), in order; `None` when the parent is missing.
pub async fn list(
    db: &Db,
    warehouse: Uuid,
    parent: Option<&Namespace>,
    page: &Page,
) -> Result<Option<Vec<String>>, sqlx::Error> {
    let Some(parent) = parent else { return list_top(db, warehouse, page).await.map(Some) };
    let rows: Vec<(String,)> = db
        .read()
        .all(
            "select name from namespaces
             where warehouse_id = $1 and name > $3
                 and parent_id = (select id from namespaces where warehouse_id = $1 and path_key = $2)
             order by name limit $4",
            &values![warehouse, path_key(parent), page.after(), page.limit()],
        )
        .await?;
    let names = rows.into_iter().map(|(name,)| name).collect::<Vec<_>>();
    // Nothing found says nothing about the parent.
    Ok((!names.is_empty() || id(db, warehouse, parent).await?.is_some()).then_some(names))
}

async fn list_top(db: &Db, warehouse: Uuid, page: &Page) -> Result<Vec<String>, sqlx::Error> {
    let rows: Vec<(String,)> = db
        .read()
        .all(
            "select name from namespaces where warehouse_id = $1 and parent_id is null and name > $2
             order by name limit $3",
            &values![warehouse, page.after(), page.limit()],
        )
        .await?;
    Ok(rows.into_iter().map(|(name,)| name).collect())
}

/// Removes, then sets. `None` when the namespace is missing.
pub async fn update_properties(
    to: impl Into<To<'_>>,
    warehouse: Uuid,
    namespace: &Namespace,
    removals: &[String],
    updates: &Properties,
) -> Result<Option<Changed>, sqlx::Error> {
    let mut removals = removals.to_vec();
    removals.sort();
    removals.dedup();
    to.into()
        .write(UpdateProperties { warehouse, path_key: path_key(namespace), removals, updates: updates.clone() })
        .await
}

struct UpdateProperties {
    warehouse: Uuid,
    path_key: String,
    removals: Vec<String>,
    updates: Properties,
}

impl Change for UpdateProperties {
    type Answer = Option<Changed>;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Option<Changed>, sqlx::Error> {
        // An update that changes nothing holds the row, on both databases, until the new value is in.
        let row: Option<(Uuid, String)> = tx
            .on()
            .optional(
                "update namespaces set properties = properties where warehouse_id = $1 and path_key = $2
                 returning id, properties",
                &values![self.warehouse, &self.path_key],
            )
            .await?;
        let Some((id, properties)) = row else { return Ok(None) };
        let mut properties = from_json(&properties)?;
        let (removed, missing) = self.removals.iter().cloned().partition(|key| properties.remove(key).is_some());
        properties.extend(self.updates.clone());
        let json = to_json(&properties)?;
        tx.on().execute("update namespaces set properties = $2 where id = $1", &values![id, json]).await?;
        Ok(Some(Changed { updated: self.updates.keys().cloned().collect(), removed, missing }))
    }

    fn took_effect(&self, answer: &Option<Changed>) -> bool {
        answer.is_some()
    }

    fn detail(&self, answer: &Option<Changed>) -> Option<String> {
        serde_json::to_string(answer.as_ref()?).ok().filter(|json| json.len() <= idempotency::DETAIL_BYTES_MAX)
    }
}

pub async fn drop(to: impl Into<To<'_>>, warehouse: Uuid, namespace: &Namespace) -> Result<Drop, sqlx::Error> {
    match to.into().write(DropNamespace { warehouse, namespace: namespace.clone() }).await {
        Err(error) if violation(&error) == Some(Violation::ForeignKey) => Ok(Drop::NotEmpty),
        outcome => outcome,
    }
}

struct DropNamespace {
    warehouse: Uuid,
    namespace: Namespace,
}

impl Change for DropNamespace {
    type Answer = Drop;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Drop, sqlx::Error> {
        let dropped = tx
            .on()
            .execute(
                "delete from namespaces where warehouse_id = $1 and path_key = $2",
                &values![self.warehouse, path_key(&self.namespace)],
            )
            .await?;
        Ok(if dropped == 0 { Drop::Missing } else { Drop::Done })
    }

    fn is_single_statement(&self) -> bool {
        true
    }

    fn took_effect(&self, answer: &Drop) -> bool {
        *answer == Drop::Done
    }

    fn publish(&self, answer: &Drop, pointers: &Pointers) {
        if *answer == Drop::Done {
            pointers.forget_namespace(self.warehouse, &self.namespace);
        }
    }
}

/// What a whole path is looked up by: SHA-256 in hex of its levels, a control character (which no name has) between.
pub(super) fn path_key(namespace: &Namespace) -> String {
    let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
    for (index, level) in namespace.levels().iter().enumerate() {
        if index > 0 {
            context.update(b"\x1f");
        }
        context.update(level.as_bytes());
    }
    hex::encode(context.finish())
}

/// The innermost level.
fn name(namespace: &Namespace) -> &str {
    namespace.levels().last().map(String::as_str).unwrap_or_default()
}

fn to_json(properties: &Properties) -> Result<String, sqlx::Error> {
    let has_nul = |text: &String| text.contains('\0');
    if properties.iter().any(|(key, value)| has_nul(key) || has_nul(value)) {
        return Err(sqlx::Error::InvalidArgument("a property has a NUL character".into()));
    }
    serde_json::to_string(properties).map_err(|error| sqlx::Error::Encode(error.into()))
}

fn from_json(properties: &str) -> Result<Properties, sqlx::Error> {
    serde_json::from_str(properties).map_err(|error| sqlx::Error::Decode(error.into()))
}
