//! Pointers set to files that were there before, and taken away with every file left in place.
//!
//! [`replace`] is the swap of a table that is registered anew over itself: unlike a commit's, its file may be one that
//! the table had before, and its uuid may be another. The row, and with it the table's identity here, stays.

use super::{NewTable, Settled, TableRow, columns, history};
use crate::{
    db::{
        Db, To,
        change::Change,
        locations, namespaces,
        pointers::Pointers,
        statement::{Tx, values},
    },
    iceberg::ident::TableIdent,
};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    Done(TableRow),
    /// A commit, a drop or another registration came first.
    Lost,
    /// The new location collides with another table's.
    LocationTaken,
}

/// Points `base` at `new`'s file, raises the revision and records the file in the history, in one transaction.
///
/// # Errors
/// Any but a refused argument leaves open whether it happened: [`settle_replace`] answers that.
pub async fn replace(
    to: impl Into<To<'_>>,
    base: &TableRow,
    new: &NewTable,
    now_ms: i64,
) -> Result<Replaced, sqlx::Error> {
    locations::check_len(&new.metadata_location)?;
    let location_key = locations::key(&new.location)?;
    let moves_location = location_key != locations::key(&base.location)?;
    to.into().write(Replace { base: base.clone(), new: new.clone(), location_key, moves_location, now_ms }).await
}

struct Replace {
    base: TableRow,
    new: NewTable,
    location_key: String,
    moves_location: bool,
    now_ms: i64,
}

impl Change for Replace {
    type Answer = Replaced;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Replaced, sqlx::Error> {
        if self.moves_location {
            locations::lock(tx, &self.location_key).await?;
            if locations::taken(tx.on(), &self.location_key, locations::Except::Row(self.base.id)).await? {
                return Ok(Replaced::LocationTaken);
            }
        }
        let (base, new) = (&self.base, &self.new);
        let replaced: Option<TableRow> = tx
            .on()
            .optional(
                concat!(
                    "update tables set metadata_location = $4, previous_location = metadata_location,
                         revision = revision + 1, location = $5, location_key = $6, format_version = $7, uuid = $8
                     where id = $1 and revision = $2 and metadata_location = $3
                     returning ",
                    columns!()
                ),
                &values![
                    base.id,
                    base.revision,
                    &base.metadata_location,
                    &new.metadata_location,
                    &new.location,
                    &self.location_key,
                    i64::from(new.format_version),
                    new.uuid
                ],
            )
            .await?;
        let Some(row) = replaced else { return Ok(Replaced::Lost) };
        history::record(tx, &row, self.now_ms).await?;
        Ok(Replaced::Done(row))
    }

    fn took_effect(&self, answer: &Replaced) -> bool {
        matches!(answer, Replaced::Done(_))
    }

    fn publish(&self, answer: &Replaced, pointers: &Pointers) {
        if let Replaced::Done(row) = answer {
            pointers.put_table(row);
        }
    }
}

/// Decides whether a [`replace`] of `base` took effect, for good: one still under way fails.
pub async fn settle_replace(db: &Db, base: &TableRow, metadata_location: &str) -> Result<Settled, sqlx::Error> {
    history::settle_after(db, base.id, metadata_location, base.revision).await
}

/// The row that a create of `new` under this name made, if it did, for good: a create holds the lock of its location
/// until it is committed or gone. Unlike [`super::settle_create`] for files that a table dropped since may have had.
///
/// # Errors
/// `sqlx::Error::InvalidArgument` for a location of more than [`super::LOCATION_BYTES_MAX`] bytes.
pub async fn settle_register(
    db: &Db,
    warehouse: Uuid,
    ident: &TableIdent,
    new: &NewTable,
) -> Result<Option<TableRow>, sqlx::Error> {
    let location_key = locations::key(&new.location)?;
    let metadata_location = new.metadata_location.clone();
    db.write(SettleRegister { warehouse, ident: ident.clone(), location_key, metadata_location }).await
}

struct SettleRegister {
    warehouse: Uuid,
    ident: TableIdent,
    location_key: String,
    metadata_location: String,
}

impl Change for SettleRegister {
    type Answer = Option<TableRow>;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Option<TableRow>, sqlx::Error> {
        locations::lock(tx, &self.location_key).await?;
        tx.on()
            .optional(
                concat!(
                    "select ",
                    columns!(),
                    " from tables where location_key = $1 and name = $4
                      and namespace_id = (select id from namespaces where warehouse_id = $2 and path_key = $3)
                      and exists (select 1 from table_commits
                                  where table_id = tables.id and table_commits.metadata_location = $5)"
                ),
                &values![
                    &self.location_key,
                    self.warehouse,
                    namespaces::path_key(&self.ident.namespace),
                    &self.ident.name,
                    &self.metadata_location
                ],
            )
            .await
    }
}

/// Removes the row while it still is `base`, name included; `false` when anything came first. The history stays, so
/// that no file it names is ever taken for one that nobody wants.
///
/// # Errors
/// Any leaves open whether it happened: [`settle_unregister`] answers that.
pub async fn unregister(to: impl Into<To<'_>>, base: &TableRow) -> Result<bool, sqlx::Error> {
    to.into().write(Unregister { base: base.clone() }).await
}

struct Unregister {
    base: TableRow,
}

impl Change for Unregister {
    type Answer = bool;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<bool, sqlx::Error> {
        let base = &self.base;
        let gone = tx
            .on()
            .execute(
                "delete from tables where id = $1 and revision = $2 and metadata_location = $3
                     and namespace_id = $4 and name = $5",
                &values![base.id, base.revision, &base.metadata_location, base.namespace_id, &base.name],
            )
            .await?;
        Ok(gone > 0)
    }

    fn is_single_statement(&self) -> bool {
        true
    }

    fn took_effect(&self, gone: &bool) -> bool {
        *gone
    }

    fn publish(&self, gone: &bool, pointers: &Pointers) {
        if *gone {
            pointers.forget_table(self.base.namespace_id, &self.base.name);
        }
    }
}

/// Decides whether an [`unregister`] of `base` took effect, for good: one still under way fails. A row that somebody
/// else removed at the same version counts: what is known of the table is the same.
pub async fn settle_unregister(db: &Db, base: &TableRow) -> Result<Settled, sqlx::Error> {
    let fenced = db.write(SettleUnregister { table: base.id }).await?;
    let is_gone_as_it_was = fenced.row.is_none() && fenced.last_file.as_deref() == Some(&base.metadata_location);
    Ok(if is_gone_as_it_was { Settled::Landed } else { Settled::Lost })
}

struct SettleUnregister {
    table: Uuid,
}

struct Fenced {
    /// `None` when the table is gone.
    row: Option<TableRow>,
    /// What the pointer named last; also of a table that is gone.
    last_file: Option<String>,
}

impl Change for SettleUnregister {
    type Answer = Fenced;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Fenced, sqlx::Error> {
        let row = tx
            .on()
            .optional(
                concat!("update tables set revision = revision + 1 where id = $1 returning ", columns!()),
                &values![self.table],
            )
            .await?;
        let last: Option<(String,)> = tx
            .on()
            .optional(
                "select metadata_location from table_commits where table_id = $1 order by revision desc limit 1",
                &values![self.table],
            )
            .await?;
        Ok(Fenced { row, last_file: last.map(|(file,)| file) })
    }

    fn publish(&self, answer: &Fenced, pointers: &Pointers) {
        answer.row.iter().for_each(|row| pointers.put_table(row));
    }
}
