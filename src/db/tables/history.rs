//! The pointer moves, and the history of every file it named.
//!
//! A row of the history outlives its table: only the job that dealt with a dropped table's files forgets it. So
//! "recorded nowhere" always means "published nowhere", and a swap can be settled after a drop.

use super::{TableRow, columns};
use crate::db::{
    Db, To,
    change::Change,
    locations,
    pointers::Pointers,
    statement::{Arms, Tx, values},
};
use uuid::Uuid;

/// A move of one pointer from the row it was built on.
#[derive(Debug, Clone)]
pub struct Swap<'a> {
    pub base: &'a TableRow,
    /// A file no other commit names; at most [`super::LOCATION_BYTES_MAX`] bytes.
    pub metadata_location: &'a str,
    /// At most [`super::LOCATION_BYTES_MAX`] bytes.
    pub location: &'a str,
    pub format_version: u8,
    pub now_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swapped {
    /// The new revision.
    Done(i64),
    /// Another commit, a drop or a rename-and-recreate came first.
    Lost,
    /// The new location collides with another table's.
    LocationTaken,
}

/// How a swap whose answer was lost ended. Asking fences the row: a swap still under way fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    Landed,
    Lost,
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct HistoryRow {
    pub revision: i64,
    pub metadata_location: String,
    pub committed_at_ms: i64,
}

/// Publishes a commit. A crash before leaves a file nobody names, a crash after leaves nothing to do.
///
/// # Errors
/// Any but a refused argument leaves open whether the pointer moved: [`settle`] answers that.
pub async fn swap(to: impl Into<To<'_>>, swap: &Swap<'_>) -> Result<Swapped, sqlx::Error> {
    match to.into().write(Move::of(swap)?).await? {
        Moved::Done(revision, _) => Ok(Swapped::Done(revision)),
        Moved::Lost => Ok(Swapped::Lost),
        Moved::LocationTaken => Ok(Swapped::LocationTaken),
    }
}

/// A [`Swap`] that owns what it binds.
pub(in crate::db) struct Move {
    id: Uuid,
    revision: i64,
    from: String,
    to: String,
    location: String,
    location_key: String,
    moves_location: bool,
    format_version: u8,
    now_ms: i64,
}

pub(in crate::db) enum Moved {
    /// The new revision, and on SQLite the row for the map.
    Done(i64, Option<TableRow>),
    Lost,
    LocationTaken,
}

impl Change for Move {
    type Answer = Moved;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Moved, sqlx::Error> {
        if let Some(key) = self.claims() {
            locations::lock(tx, key).await?;
        }
        self.run(tx).await
    }

    fn is_single_statement(&self) -> bool {
        !self.moves_location
    }

    fn took_effect(&self, answer: &Moved) -> bool {
        matches!(answer, Moved::Done(..))
    }

    fn publish(&self, answer: &Moved, pointers: &Pointers) {
        if let Moved::Done(_, Some(row)) = answer {
            pointers.put_table(row);
        }
    }
}

impl Move {
    pub(in crate::db) fn of(swap: &Swap<'_>) -> Result<Move, sqlx::Error> {
        locations::check_len(swap.metadata_location)?;
        let location_key = locations::key(swap.location)?;
        Ok(Move {
            id: swap.base.id,
            revision: swap.base.revision,
            from: swap.base.metadata_location.clone(),
            to: swap.metadata_location.to_owned(),
            moves_location: location_key != locations::key(&swap.base.location)?,
            location: swap.location.to_owned(),
            location_key,
            format_version: swap.format_version,
            now_ms: swap.now_ms,
        })
    }

    /// The row it moves.
    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    /// The location that must be locked before it runs.
    pub(super) fn claims(&self) -> Option<&str> {
        self.moves_location.then_some(&self.location_key)
    }

    pub(super) async fn run(&self, tx: &mut Tx<'_>) -> Result<Moved, sqlx::Error> {
        let except = locations::Except::Row(self.id);
        if self.moves_location && locations::taken(tx.on(), &self.location_key, except).await? {
            return Ok(Moved::LocationTaken);
        }
        match tx {
            Arms::Sqlite(_) => self.update_then_record(tx).await,
            Arms::Postgres(_) => self.update_and_record(tx).await,
        }
    }

    async fn update_then_record(&self, tx: &mut Tx<'_>) -> Result<Moved, sqlx::Error> {
        let moved: Option<TableRow> = tx
            .on()
            .optional(
                concat!(
                    "update tables set metadata_location = $4, previous_location = metadata_location,
                         revision = revision + 1, location = $5, location_key = $6, format_version = $7
                     where id = $1 and revision = $2 and metadata_location = $3
                     returning ",
                    columns!()
                ),
                &values![
                    self.id,
                    self.revision,
                    &self.from,
                    &self.to,
                    &self.location,
                    &self.location_key,
                    i64::from(self.format_version)
                ],
            )
            .await?;
        let Some(row) = moved else { return Ok(Moved::Lost) };
        record(tx, &row, self.now_ms).await?;
        Ok(Moved::Done(row.revision, Some(row)))
    }

    /// The same in one statement, which costs Postgres one round trip and no transaction around it.
    async fn update_and_record(&self, tx: &mut Tx<'_>) -> Result<Moved, sqlx::Error> {
        let moved: Option<(i64,)> = tx
            .on()
            .optional(
                "with moved as (
                     update tables set metadata_location = $4, previous_location = metadata_location,
                         revision = revision + 1, location = $5, location_key = $6, format_version = $7
                     where id = $1 and revision = $2 and metadata_location = $3
                     returning id, revision, metadata_location
                 )
                 insert into table_commits (table_id, revision, metadata_location, committed_at_ms)
                 select id, revision, metadata_location, $8 from moved returning revision",
                &values![
                    self.id,
                    self.revision,
                    &self.from,
                    &self.to,
                    &self.location,
                    &self.location_key,
                    i64::from(self.format_version),
                    self.now_ms
                ],
            )
            .await?;
        Ok(moved.map_or(Moved::Lost, |(revision,)| Moved::Done(revision, None)))
    }
}

/// Enters the pointer of a new or moved row into the history.
pub(super) async fn record(tx: &mut Tx<'_>, row: &TableRow, now_ms: i64) -> Result<(), sqlx::Error> {
    tx.on()
        .execute(
            "insert into table_commits (table_id, revision, metadata_location, committed_at_ms)
             values ($1, $2, $3, $4)",
            &values![row.id, row.revision, &row.metadata_location, now_ms],
        )
        .await
        .map(drop)
}

/// Decides whether a swap of `table` to this file took effect, for good.
pub async fn settle(db: &Db, table: Uuid, metadata_location: &str) -> Result<Settled, sqlx::Error> {
    settle_after(db, table, metadata_location, 0).await
}

/// The same for a file that the table may have had before: only entries after `revision` count.
pub(super) async fn settle_after(
    db: &Db,
    table: Uuid,
    metadata_location: &str,
    revision: i64,
) -> Result<Settled, sqlx::Error> {
    let change = Settle { table, metadata_location: metadata_location.to_owned(), revision };
    Ok(if db.write(change).await?.landed { Settled::Landed } else { Settled::Lost })
}

pub(super) struct Settle {
    pub table: Uuid,
    pub metadata_location: String,
    /// Only entries of the history after this one count.
    pub revision: i64,
}

pub(in crate::db) struct Fenced {
    /// `None` when the table is gone, and a late swap with it.
    pub row: Option<TableRow>,
    pub landed: bool,
}

impl Change for Settle {
    type Answer = Fenced;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Fenced, sqlx::Error> {
        // Waits for a swap that holds the row; one that comes later finds another revision. The question is a statement
        // of its own because it must see what that swap committed.
        let row: Option<TableRow> = tx
            .on()
            .optional(
                concat!("update tables set revision = revision + 1 where id = $1 returning ", columns!()),
                &values![self.table],
            )
            .await?;
        let landed: Option<(i64,)> = tx
            .on()
            .optional(
                "select revision from table_commits
                 where metadata_location = $2 and table_id = $1 and revision > $3 limit 1",
                &values![self.table, &self.metadata_location, self.revision],
            )
            .await?;
        Ok(Fenced { row, landed: landed.is_some() })
    }

    fn publish(&self, answer: &Fenced, pointers: &Pointers) {
        answer.row.iter().for_each(|row| pointers.put_table(row));
    }
}

/// Decides whether a create at `location` with this file took effect, for good: a create holds the lock of its location
/// until it is committed or gone.
///
/// # Errors
/// `sqlx::Error::InvalidArgument` for more than [`super::LOCATION_BYTES_MAX`] bytes.
pub async fn settle_create(db: &Db, location: &str, metadata_location: &str) -> Result<Settled, sqlx::Error> {
    let location_key = locations::key(location)?;
    let landed = db.write(SettleCreate { location_key, metadata_location: metadata_location.to_owned() }).await?;
    Ok(if landed { Settled::Landed } else { Settled::Lost })
}

pub(super) struct SettleCreate {
    pub location_key: String,
    pub metadata_location: String,
}

impl SettleCreate {
    /// Once the location is locked.
    pub async fn ask(&self, tx: &mut Tx<'_>) -> Result<bool, sqlx::Error> {
        let landed: Option<(i64,)> = tx
            .on()
            .optional(
                "select revision from table_commits where metadata_location = $1 limit 1",
                &values![&self.metadata_location],
            )
            .await?;
        Ok(landed.is_some())
    }
}

impl Change for SettleCreate {
    type Answer = bool;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<bool, sqlx::Error> {
        locations::lock(tx, &self.location_key).await?;
        self.ask(tx).await
    }
}

/// Whether a location may still be named: it is some table's pointer or in some table's history.
pub async fn is_recorded(db: &Db, metadata_location: &str) -> Result<bool, sqlx::Error> {
    // Whatever a pointer names is in the history.
    let found: Option<(i64,)> = db
        .read()
        .optional(
            "select revision from table_commits where metadata_location = $1 limit 1",
            &values![metadata_location],
        )
        .await?;
    Ok(found.is_some())
}

/// What a metadata file is to the table that lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The table is what this file says.
    Current,
    /// The table was.
    Earlier,
}

/// Whether a table that was not dropped names this file, or ever did.
pub async fn named(db: &Db, metadata_location: &str) -> Result<Option<Named>, sqlx::Error> {
    let current: Option<(i64,)> = db
        .read()
        .optional(
            "select cast(case when tables.metadata_location = $1 then 1 else 0 end as bigint) as is_current
             from table_commits join tables on tables.id = table_commits.table_id
             where table_commits.metadata_location = $1
             order by is_current desc limit 1",
            &values![metadata_location],
        )
        .await?;
    Ok(current.map(|(current,)| if current == 1 { Named::Current } else { Named::Earlier }))
}

/// Oldest first; also of a dropped table until it is forgotten.
pub async fn history(db: &Db, table: Uuid) -> Result<Vec<HistoryRow>, sqlx::Error> {
    db.read()
        .all(
            "select revision, metadata_location, committed_at_ms from table_commits where table_id = $1
             order by revision",
            &values![table],
        )
        .await
}

/// Forgets the history of a table that was dropped and whose files were dealt with; a living table's stays.
pub async fn forget_history(db: &Db, table: Uuid) -> Result<(), sqlx::Error> {
    db.write(Forget { table }).await
}

struct Forget {
    table: Uuid,
}

impl Change for Forget {
    type Answer = ();

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<(), sqlx::Error> {
        tx.on()
            .execute(
                "delete from table_commits
                 where table_id = $1 and not exists (select 1 from tables where tables.id = $1)",
                &values![self.table],
            )
            .await
            .map(drop)
    }

    fn is_single_statement(&self) -> bool {
        true
    }
}
