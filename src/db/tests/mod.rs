//! Every statement on both databases: one body, two tests.

mod basics;
mod idempotency;
mod locations;
mod namespaces;
mod opening;
mod pointers;
mod races;
mod register;
mod reports;
mod tables;
mod throughput;
mod transact;

use super::{
    Db, namespaces as ns,
    statement::values,
    tables::{Create, Kind, NewTable, Swap, Swapped, TableRow},
};
use crate::iceberg::ident::{Namespace, TableIdent};
use uuid::Uuid;

const NOW_MS: i64 = 1_700_000_000_000;

fn namespace(path: &str) -> Namespace {
    Namespace::new(path.split('.').map(str::to_owned).collect()).expect("a valid path")
}

/// `a.b.t`: table `t` in namespace `a.b`.
fn ident(path: &str) -> TableIdent {
    let (levels, name) = path.rsplit_once('.').expect("a namespace");
    TableIdent::new(namespace(levels), name.to_owned()).expect("a valid name")
}

/// A table to create under a location of its own.
fn new_table(kind: Kind) -> NewTable {
    new_table_at(&format!("s3://lake/{}", Uuid::now_v7()), kind)
}

fn new_table_at(location: &str, kind: Kind) -> NewTable {
    NewTable {
        kind,
        uuid: Uuid::now_v7(),
        format_version: 2,
        location: location.to_owned(),
        metadata_location: fresh_file(location),
    }
}

fn fresh_file(location: &str) -> String {
    format!("{location}/metadata/{}.metadata.json", Uuid::now_v7())
}

/// Made with the columns that every release knew, so that older schemas take it too.
async fn warehouse(db: &Db) -> Uuid {
    let id = Uuid::now_v7();
    let text = "insert into warehouses (id, name, location) values ($1, $2, $3) returning id";
    let values = values![id, format!("w-{id}"), format!("s3://lake-{}", id.simple())];
    let made: Option<(Uuid,)> = db.write_one(text, &values).await.expect("creates");
    assert_eq!(made, Some((id,)));
    id
}

/// A warehouse with namespace `n`.
async fn warehouse_with_namespace(db: &Db) -> Uuid {
    let id = warehouse(db).await;
    make_namespace(db, id, "n").await;
    id
}

async fn make_namespace(db: &Db, warehouse: Uuid, path: &str) {
    let made = ns::create(db, warehouse, &namespace(path), &ns::Properties::new()).await.expect("creates");
    assert!(matches!(made, ns::Create::Done(_)), "{path}: {made:?}");
}

async fn make_table(db: &Db, warehouse: Uuid, path: &str) -> TableRow {
    make(db, warehouse, path, Kind::Table).await
}

async fn make(db: &Db, warehouse: Uuid, path: &str, kind: Kind) -> TableRow {
    match create(db, warehouse, path, &new_table(kind)).await {
        Create::Done(row) => row,
        other => panic!("{path}: {other:?}"),
    }
}

async fn create(db: &Db, warehouse: Uuid, path: &str, new: &NewTable) -> Create {
    crate::db::tables::create(db, warehouse, &ident(path), new, NOW_MS).await.expect("creates")
}

async fn load(db: &Db, warehouse: Uuid, path: &str) -> Option<TableRow> {
    crate::db::tables::load(db, warehouse, &ident(path)).await.expect("loads")
}

/// Swaps to `file`, keeping the location.
async fn swap(db: &Db, base: &TableRow, file: &str) -> Result<Swapped, sqlx::Error> {
    let swap = Swap { base, metadata_location: file, location: &base.location, format_version: 3, now_ms: NOW_MS };
    crate::db::tables::swap(db, &swap).await
}
