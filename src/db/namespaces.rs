//! Namespaces of a warehouse: a tree of names with properties.

use super::{Db, Page};
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

#[derive(Debug)]
pub enum Create {
    Done(NamespaceRow),
    Exists,
    NoParent,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Drop {
    Done,
    Missing,
    NotEmpty,
}

/// What an update of properties did; keys in name order.
#[derive(Debug, PartialEq, Eq)]
pub struct Changed {
    pub updated: Vec<String>,
    pub removed: Vec<String>,
    pub missing: Vec<String>,
}

pub async fn create(
    _db: &Db,
    _warehouse: Uuid,
    _namespace: &Namespace,
    _properties: &Properties,
) -> Result<Create, sqlx::Error> {
    todo!()
}
pub async fn load(_db: &Db, _warehouse: Uuid, _namespace: &Namespace) -> Result<Option<NamespaceRow>, sqlx::Error> {
    todo!()
}
/// Names of the direct children of `parent` (top level when `None`); `None` when the parent is missing.
pub async fn list(
    _db: &Db,
    _warehouse: Uuid,
    _parent: Option<&Namespace>,
    _page: &Page,
) -> Result<Option<Vec<String>>, sqlx::Error> {
    todo!()
}
/// `None` when the namespace is missing.
pub async fn update_properties(
    _db: &Db,
    _warehouse: Uuid,
    _namespace: &Namespace,
    _removals: &[String],
    _updates: &Properties,
) -> Result<Option<Changed>, sqlx::Error> {
    todo!()
}
pub async fn drop(_db: &Db, _warehouse: Uuid, _namespace: &Namespace) -> Result<Drop, sqlx::Error> {
    todo!()
}
