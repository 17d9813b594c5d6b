//! Functions of a namespace: one document each, as it was sent.

use super::{
    Db, Page, namespaces,
    statement::{Violation, values, violation},
};
use crate::iceberg::ident::{Namespace, TableIdent};
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    Created,
    Replaced,
    NoNamespace,
    /// Another function has the name: its uuid is not this one's.
    Taken,
}

/// Creates the function, or replaces its document when the uuid is the same.
pub async fn put(
    db: &Db,
    warehouse: Uuid,
    ident: &TableIdent,
    function_uuid: Uuid,
    metadata: &str,
) -> Result<Put, sqlx::Error> {
    let new = Uuid::now_v7();
    let put: Result<Option<(Uuid,)>, _> = db
        .write_one(
            "insert into functions (id, namespace_id, name, function_uuid, metadata)
             select $1, id, $4, $5, $6 from namespaces where warehouse_id = $2 and path_key = $3
             on conflict (namespace_id, name) do update set metadata = excluded.metadata
                 where functions.function_uuid = excluded.function_uuid
             returning id",
            &values![new, warehouse, namespaces::path_key(&ident.namespace), &ident.name, function_uuid, metadata],
        )
        .await;
    match put {
        Ok(Some((id,))) if id == new => Ok(Put::Created),
        Ok(Some(_)) => Ok(Put::Replaced),
        Ok(None) if namespaces::id(db, warehouse, &ident.namespace).await?.is_some() => Ok(Put::Taken),
        Ok(None) => Ok(Put::NoNamespace),
        // The namespace was dropped between finding it and pointing at it.
        Err(error) if violation(&error) == Some(Violation::ForeignKey) => Ok(Put::NoNamespace),
        Err(error) => Err(error),
    }
}

/// The document.
pub async fn load(db: &Db, warehouse: Uuid, ident: &TableIdent) -> Result<Option<String>, sqlx::Error> {
    let found: Option<(String,)> = db
        .read()
        .optional(
            "select metadata from functions where name = $3
                 and namespace_id = (select id from namespaces where warehouse_id = $1 and path_key = $2)",
            &values![warehouse, namespaces::path_key(&ident.namespace), &ident.name],
        )
        .await?;
    Ok(found.map(|(metadata,)| metadata))
}

/// Names in order; `None` when the namespace is missing.
pub async fn list(
    db: &Db,
    warehouse: Uuid,
    namespace: &Namespace,
    page: &Page,
) -> Result<Option<Vec<String>>, sqlx::Error> {
    let rows: Vec<(String,)> = db
        .read()
        .all(
            "select name from functions
             where namespace_id = (select id from namespaces where warehouse_id = $1 and path_key = $2) and name > $3
             order by name limit $4",
            &values![warehouse, namespaces::path_key(namespace), page.after(), page.limit()],
        )
        .await?;
    let names = rows.into_iter().map(|(name,)| name).collect::<Vec<_>>();
    // Nothing found says nothing about the namespace.
    Ok((!names.is_empty() || namespaces::id(db, warehouse, namespace).await?.is_some()).then_some(names))
}

/// `false` when there was none.
pub async fn delete(db: &Db, warehouse: Uuid, ident: &TableIdent) -> Result<bool, sqlx::Error> {
    let gone: Option<(Uuid,)> = db
        .write_one(
            "delete from functions where name = $3
                 and namespace_id = (select id from namespaces where warehouse_id = $1 and path_key = $2)
             returning id",
            &values![warehouse, namespaces::path_key(&ident.namespace), &ident.name],
        )
        .await?;
    Ok(gone.is_some())
}
