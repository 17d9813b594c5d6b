//! Several tables in one transaction: all of their pointers move, all new names are taken, or nothing happens.
//!
//! Places are locked first, all together, then rows in the order of their ids, then names in their order: transactions
//! over crossing sets of tables wait for each other and never in a circle.

use super::{
    Create, Kind, NewTable, Settled, Swap, TableRow,
    history::{Move, Moved, Settle, SettleCreate},
    occupy::CreateTable,
};
use crate::{
    db::{
        Db, To,
        change::Change,
        locations,
        pointers::Pointers,
        statement::{Tx, Violation, values, violation},
    },
    iceberg::ident::TableIdent,
};
use uuid::Uuid;

/// One table's part.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    Swap(Swap<'a>),
    Create {
        ident: &'a TableIdent,
        new: &'a NewTable,
    },
    /// The table stays as it is and must still be so when the others change.
    Hold(&'a TableRow),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transacted {
    Done,
    /// Nothing happened, because of the step at this index.
    Refused(usize, Refusal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Another commit, a drop, a rename or a create came first.
    Lost,
    LocationTaken,
    Exists(Kind),
    NoNamespace,
}

/// Publishes all steps or none. No two may be about the same table.
///
/// # Errors
/// Any but a refused argument leaves open whether they were: [`settle_all`] answers that.
pub async fn transact(
    to: impl Into<To<'_>>,
    warehouse: Uuid,
    steps: &[Step<'_>],
    now_ms: i64,
) -> Result<Transacted, sqlx::Error> {
    let own = |step: &Step<'_>| match step {
        Step::Swap(swap) => Move::of(swap).map(Own::Move),
        Step::Create { ident, new } => CreateTable::of(warehouse, ident, new, now_ms).map(Own::Create),
        Step::Hold(row) => Ok(Own::Hold((*row).clone())),
    };
    let steps = steps.iter().map(own).collect::<Result<Vec<_>, _>>()?;
    let first_create = steps.iter().position(|step| matches!(step, Own::Create(_)));
    match to.into().write(Transaction { steps }).await {
        Ok(Answer::Done(_)) => Ok(Transacted::Done),
        Ok(Answer::Refused(step, refusal)) => Ok(Transacted::Refused(step, refusal)),
        // A namespace was dropped between finding it and pointing at it: the next look says which.
        Err(error) if violation(&error) == Some(Violation::ForeignKey) => {
            Ok(Transacted::Refused(first_create.unwrap_or_default(), Refusal::Lost))
        }
        Err(error) => Err(error),
    }
}

/// A step that owns what it binds.
enum Own {
    Move(Move),
    Create(CreateTable),
    Hold(TableRow),
}

impl Own {
    /// Rows come before names, and among each other in one order for everybody.
    fn place_in_line(&self) -> (Option<(String, &str)>, Uuid) {
        match self {
            Own::Move(swap) => (None, swap.id()),
            Own::Hold(row) => (None, row.id),
            Own::Create(create) => (Some(create.name()), Uuid::nil()),
        }
    }
}

struct Transaction {
    steps: Vec<Own>,
}

enum Answer {
    /// Rows for the map of pointers, where there is one.
    Done(Vec<TableRow>),
    Refused(usize, Refusal),
}

impl Change for Transaction {
    type Answer = Answer;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Answer, sqlx::Error> {
        let claims = self.steps.iter().filter_map(|step| match step {
            Own::Move(swap) => swap.claims(),
            Own::Create(create) => Some(create.claims()),
            Own::Hold(_) => None,
        });
        locations::lock_all(tx, claims).await?;
        let mut line: Vec<usize> = (0..self.steps.len()).collect();
        line.sort_by_cached_key(|&at| self.steps[at].place_in_line());
        let mut done = Vec::with_capacity(self.steps.len());
        for at in line {
            match step(&self.steps[at], tx).await? {
                Ok(row) => done.extend(row),
                Err(refusal) => return Ok(Answer::Refused(at, refusal)),
            }
        }
        Ok(Answer::Done(done))
    }

    fn took_effect(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Done(_))
    }

    fn publish(&self, answer: &Answer, pointers: &Pointers) {
        if let Answer::Done(done) = answer {
            done.iter().for_each(|row| pointers.put_table(row));
        }
    }
}

async fn step(step: &Own, tx: &mut Tx<'_>) -> Result<Result<Option<TableRow>, Refusal>, sqlx::Error> {
    Ok(match step {
        Own::Move(swap) => match swap.run(tx).await? {
            Moved::Done(_, row) => Ok(row),
            Moved::Lost => Err(Refusal::Lost),
            Moved::LocationTaken => Err(Refusal::LocationTaken),
        },
        Own::Create(create) => match create.run(tx).await? {
            Some(Create::Done(row)) => Ok(Some(row)),
            Some(Create::Exists(kind)) => Err(Refusal::Exists(kind)),
            Some(Create::NoNamespace) => Err(Refusal::NoNamespace),
            Some(Create::LocationTaken) => Err(Refusal::LocationTaken),
            None => Err(Refusal::Lost),
        },
        Own::Hold(row) => match hold(row, tx).await? {
            true => Ok(None),
            false => Err(Refusal::Lost),
        },
    })
}

/// Keeps a row as it is until the transaction ends; `false` when it is not.
async fn hold(row: &TableRow, tx: &mut Tx<'_>) -> Result<bool, sqlx::Error> {
    let held: Option<(Uuid,)> = tx
        .on()
        .optional(
            "update tables set revision = revision where id = $1 and revision = $2 and metadata_location = $3
             returning id",
            &values![row.id, row.revision, &row.metadata_location],
        )
        .await?;
    Ok(held.is_some())
}

/// Decides whether a transaction took effect, for good, as [`super::settle`] and [`super::settle_create`] do for one
/// table. `swapped` are rows' ids and `created` locations, each with the metadata file it was to get.
///
/// # Errors
/// `sqlx::Error::InvalidArgument` for locations of more than [`super::LOCATION_BYTES_MAX`] bytes.
pub async fn settle_all(db: &Db, swapped: &[(Uuid, &str)], created: &[(&str, &str)]) -> Result<Settled, sqlx::Error> {
    let swap =
        |(table, file): &(Uuid, &str)| Settle { table: *table, metadata_location: (*file).to_owned(), revision: 0 };
    let mut swaps: Vec<_> = swapped.iter().map(swap).collect();
    swaps.sort_by_key(|swap| swap.table);
    let create = |(place, file): &(&str, &str)| {
        Ok(SettleCreate { location_key: locations::key(place)?, metadata_location: (*file).to_owned() })
    };
    let creates = created.iter().map(create).collect::<Result<Vec<_>, sqlx::Error>>()?;
    let (landed, _) = db.write(SettleAll { swaps, creates }).await?;
    Ok(if landed { Settled::Landed } else { Settled::Lost })
}

struct SettleAll {
    swaps: Vec<Settle>,
    creates: Vec<SettleCreate>,
}

impl Change for SettleAll {
    /// And the rows that were fenced.
    type Answer = (bool, Vec<TableRow>);

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<(bool, Vec<TableRow>), sqlx::Error> {
        locations::lock_all(tx, self.creates.iter().map(|create| create.location_key.as_str())).await?;
        let (mut landed, mut rows) = (false, Vec::new());
        // One that landed speaks for all; another may have been dropped since, and its history forgotten.
        for swap in &self.swaps {
            let fenced = swap.apply(tx).await?;
            landed |= fenced.landed;
            rows.extend(fenced.row);
        }
        for create in &self.creates {
            landed |= create.ask(tx).await?;
        }
        Ok((landed, rows))
    }

    fn publish(&self, (_, rows): &(bool, Vec<TableRow>), pointers: &Pointers) {
        rows.iter().for_each(|row| pointers.put_table(row));
    }
}
