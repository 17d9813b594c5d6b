//! Names are taken, given up and changed. The unique constraint on (namespace, name) decides who gets one.

use super::{Kind, Occupant, TableRow, columns, history, occupant};
use crate::{
    db::{
        To,
        change::Change,
        jobs::{self, NewJob},
        locations, namespaces,
        pointers::Pointers,
        statement::{Tx, Violation, values, violation},
    },
    iceberg::ident::TableIdent,
};
use uuid::Uuid;

/// How often a change is tried whose reason to fail was gone when we looked for it.
const ATTEMPTS_MAX: u32 = 4;

#[derive(Debug, Clone)]
pub struct NewTable {
    pub kind: Kind,
    pub uuid: Uuid,
    pub format_version: u8,
    /// At most [`super::LOCATION_BYTES_MAX`] bytes, no trailing slash.
    pub location: String,
    /// At most [`super::LOCATION_BYTES_MAX`] bytes.
    pub metadata_location: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Create {
    Done(TableRow),
    /// The name is taken, by a table or by a view.
    Exists(Kind),
    NoNamespace,
    /// The location equals, contains or lies within another table's.
    LocationTaken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rename {
    Done,
    NoSource,
    NoNamespace,
    Exists(Kind),
}

/// Creates the row at revision 1 and its history. A taken name is reported before a taken location.
pub async fn create(
    to: impl Into<To<'_>>,
    warehouse: Uuid,
    ident: &TableIdent,
    new: &NewTable,
    now_ms: i64,
) -> Result<Create, sqlx::Error> {
    let to = to.into();
    for _ in 0..ATTEMPTS_MAX {
        match to.write(CreateTable::of(warehouse, ident, new, now_ms)?).await {
            Ok(Some(outcome)) => return Ok(outcome),
            Ok(None) => {}
            Err(error) => match violation(&error) {
                // The namespace was dropped between finding it and pointing at it.
                Some(Violation::ForeignKey) => return Ok(Create::NoNamespace),
                _ => return Err(error),
            },
        }
    }
    Err(kept_changing())
}

pub(in crate::db) struct CreateTable {
    id: Uuid,
    warehouse: Uuid,
    ident: TableIdent,
    new: NewTable,
    location_key: String,
    now_ms: i64,
}

impl Change for CreateTable {
    /// `None` when the name was taken and is free again: worth another try.
    type Answer = Option<Create>;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Option<Create>, sqlx::Error> {
        locations::lock(tx, self.claims()).await?;
        self.run(tx).await
    }

    fn took_effect(&self, answer: &Option<Create>) -> bool {
        matches!(answer, Some(Create::Done(_)))
    }

    fn publish(&self, answer: &Option<Create>, pointers: &Pointers) {
        if let Some(Create::Done(row)) = answer {
            pointers.put_table(row);
        }
    }
}

impl CreateTable {
    pub(in crate::db) fn of(
        warehouse: Uuid,
        ident: &TableIdent,
        new: &NewTable,
        now_ms: i64,
    ) -> Result<CreateTable, sqlx::Error> {
        locations::check_len(&new.metadata_location)?;
        let location_key = locations::key(&new.location)?;
        Ok(CreateTable { id: Uuid::now_v7(), warehouse, ident: ident.clone(), new: new.clone(), location_key, now_ms })
    }

    /// The location that must be locked before it runs.
    pub(super) fn claims(&self) -> &str {
        &self.location_key
    }

    /// The name it takes, for running several in one order.
    pub(super) fn name(&self) -> (String, &str) {
        (namespaces::path_key(&self.ident.namespace), &self.ident.name)
    }

    pub(super) async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Create>, sqlx::Error> {
        if locations::taken(tx.on(), &self.location_key, locations::Except::Nobody).await? {
            return Ok(Some(self.refused(tx).await?.unwrap_or(Create::LocationTaken)));
        }
        match self.insert(tx).await? {
            Some(row) => {
                history::record(tx, &row, self.now_ms).await?;
                Ok(Some(Create::Done(row)))
            }
            None => self.refused(tx).await,
        }
    }

    async fn insert(&self, tx: &mut Tx<'_>) -> Result<Option<TableRow>, sqlx::Error> {
        tx.on()
            .optional(
                concat!(
                    "insert into tables (id, namespace_id, name, kind, uuid, format_version, location, location_key,
                         metadata_location, revision)
                     select $1, id, $4, $5, $6, $7, $8, $9, $10, 1 from namespaces
                     where warehouse_id = $2 and path_key = $3
                     on conflict (namespace_id, name) do nothing
                     returning ",
                    columns!()
                ),
                &values![
                    self.id,
                    self.warehouse,
                    namespaces::path_key(&self.ident.namespace),
                    &self.ident.name,
                    self.new.kind.as_str(),
                    self.new.uuid,
                    i64::from(self.new.format_version),
                    &self.new.location,
                    &self.location_key,
                    &self.new.metadata_location
                ],
            )
            .await
    }

    /// What is wrong with the name; `None` when nothing is.
    async fn refused(&self, tx: &mut Tx<'_>) -> Result<Option<Create>, sqlx::Error> {
        Ok(match occupant(tx.on(), self.warehouse, &self.ident).await? {
            Occupant::NoNamespace => Some(Create::NoNamespace),
            Occupant::Table(kind) => Some(Create::Exists(kind)),
            Occupant::Nobody { .. } => None,
        })
    }
}

/// Removes the row and, in the same transaction, enqueues `job` (a purge). `None` when there was no such table.
/// The history stays until [`super::forget_history`].
pub async fn drop(
    to: impl Into<To<'_>>,
    warehouse: Uuid,
    ident: &TableIdent,
    kind: Kind,
    job: Option<&NewJob>,
) -> Result<Option<TableRow>, sqlx::Error> {
    let job = job.map(|job| (Uuid::now_v7(), job.clone()));
    to.into().write(DropTable { warehouse, ident: ident.clone(), kind, job }).await
}

struct DropTable {
    warehouse: Uuid,
    ident: TableIdent,
    kind: Kind,
    job: Option<(Uuid, NewJob)>,
}

impl Change for DropTable {
    type Answer = Option<TableRow>;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Option<TableRow>, sqlx::Error> {
        let dropped: Option<TableRow> = tx
            .on()
            .optional(
                concat!(
                    "delete from tables where name = $3 and kind = $4
                         and namespace_id = (select id from namespaces where warehouse_id = $1 and path_key = $2)
                     returning ",
                    columns!()
                ),
                &values![
                    self.warehouse,
                    namespaces::path_key(&self.ident.namespace),
                    &self.ident.name,
                    self.kind.as_str()
                ],
            )
            .await?;
        if let (Some(_), Some((id, job))) = (&dropped, &self.job) {
            jobs::enqueue_in(tx, *id, job).await?;
        }
        Ok(dropped)
    }

    fn is_single_statement(&self) -> bool {
        self.job.is_none()
    }

    fn took_effect(&self, answer: &Option<TableRow>) -> bool {
        answer.is_some()
    }

    fn publish(&self, answer: &Option<TableRow>, pointers: &Pointers) {
        answer.iter().for_each(|row| pointers.forget_table(row.namespace_id, &row.name));
    }
}

/// Gives a table another name, namespace or both. Onto itself it changes nothing.
pub async fn rename(
    to_db: impl Into<To<'_>>,
    warehouse: Uuid,
    from: &TableIdent,
    to: &TableIdent,
    kind: Kind,
) -> Result<Rename, sqlx::Error> {
    let to_db = to_db.into();
    for _ in 0..ATTEMPTS_MAX {
        let change = RenameTable { warehouse, from: from.clone(), to: to.clone(), kind };
        let error = match to_db.write(change).await {
            Ok(Renamed::Refused(refused)) => return Ok(refused),
            Ok(Renamed::Done { .. }) => return Ok(Rename::Done),
            Ok(Renamed::Raced) => continue,
            Err(error) => error,
        };
        match violation(&error) {
            Some(Violation::ForeignKey) => return Ok(Rename::NoNamespace),
            // Taken since we looked: the next look says by what.
            Some(Violation::Unique) => {}
            None => return Err(error),
        }
    }
    Err(kept_changing())
}

struct RenameTable {
    warehouse: Uuid,
    from: TableIdent,
    to: TableIdent,
    kind: Kind,
}

enum Renamed {
    Done {
        from: Box<TableRow>,
        to: Box<TableRow>,
    },
    Refused(Rename),
    /// The source was dropped or renamed since we looked.
    Raced,
}

impl Change for RenameTable {
    type Answer = Renamed;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Renamed, sqlx::Error> {
        let Some(from) = self.source(tx).await? else { return Ok(Renamed::Refused(Rename::NoSource)) };
        let namespace_id = match occupant(tx.on(), self.warehouse, &self.to).await? {
            Occupant::NoNamespace => return Ok(Renamed::Refused(Rename::NoNamespace)),
            Occupant::Table(kind) if self.from != self.to => return Ok(Renamed::Refused(Rename::Exists(kind))),
            Occupant::Table(_) => from.namespace_id,
            Occupant::Nobody { namespace_id } => namespace_id,
        };
        // The look above is for the answer's sake; that the source is still there and the target free is decided here.
        let to: Option<TableRow> = tx
            .on()
            .optional(
                concat!(
                    "update tables set namespace_id = $4, name = $5 where id = $1 and namespace_id = $2 and name = $3
                     returning ",
                    columns!()
                ),
                &values![from.id, from.namespace_id, &from.name, namespace_id, &self.to.name],
            )
            .await?;
        Ok(to.map_or(Renamed::Raced, |to| Renamed::Done { from: Box::new(from), to: Box::new(to) }))
    }

    fn took_effect(&self, answer: &Renamed) -> bool {
        matches!(answer, Renamed::Done { .. })
    }

    fn publish(&self, answer: &Renamed, pointers: &Pointers) {
        if let Renamed::Done { from, to } = answer {
            pointers.forget_table(from.namespace_id, &from.name);
            pointers.put_table(to);
        }
    }
}

impl RenameTable {
    async fn source(&self, tx: &mut Tx<'_>) -> Result<Option<TableRow>, sqlx::Error> {
        tx.on()
            .optional(
                concat!(
                    "select ",
                    columns!(),
                    " from tables where name = $3 and kind = $4
                      and namespace_id = (select id from namespaces where warehouse_id = $1 and path_key = $2)"
                ),
                &values![
                    self.warehouse,
                    namespaces::path_key(&self.from.namespace),
                    &self.from.name,
                    self.kind.as_str()
                ],
            )
            .await
    }
}

fn kept_changing() -> sqlx::Error {
    sqlx::Error::Protocol(format!("the name changed hands {ATTEMPTS_MAX} times while we looked"))
}
