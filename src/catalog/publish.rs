//! The statements that make a table or a commit visible, and how to learn what became of one whose answer was lost.
//!
//! A lost answer proves nothing: the statement may have landed, failed, or still be on its way. A client is told
//! "unknown" only when asking again failed too.

use super::files;
use crate::{
    app::{App, now_ms},
    catalog::warehouses::Warehouse,
    db::{
        self,
        idempotency::{Record, is_answered},
        tables::{Create, NewTable, Refusal, Replaced, Settled, Step, Swap, Swapped, TableRow},
    },
    iceberg::ident::TableIdent,
};
use std::time::Duration;
use uuid::Uuid;

/// How often an unknown outcome is asked for before the client is told that it is unknown.
const SETTLE_ATTEMPTS_MAX: u32 = 6;
/// Pause before the first question; each further one waits twice as long: some three seconds in all.
const SETTLE_PAUSE: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 50 });

/// How a swap ended.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The new revision, where it is known.
    Done(Option<i64>),
    Lost,
    LocationTaken,
    /// The request was answered before, by another replica: nothing happened now.
    Answered,
    /// The database was not reached: nothing happened.
    NotSent(sqlx::Error),
    /// Nobody can say. The file must stay.
    Unknown,
}

/// How a transaction over several tables ended.
#[derive(Debug)]
pub(super) enum Transacted {
    Done,
    /// Nothing happened, because of the step at this index.
    Refused(usize, Refusal),
    /// As of one table.
    Answered,
    NotSent(sqlx::Error),
    Unknown,
}

/// Swaps a pointer, and deletes the new file when it certainly lost.
pub(super) async fn swap(app: &App, warehouse: &Warehouse, swap: &Swap<'_>, record: Option<&Record>) -> Outcome {
    let outcome = match send_swap(app, swap, record).await {
        Ok(Swapped::Done(revision)) => Outcome::Done(Some(revision)),
        Ok(Swapped::Lost) => Outcome::Lost,
        Ok(Swapped::LocationTaken) => Outcome::LocationTaken,
        Err(error) if is_answered(&error) => Outcome::Answered,
        Err(error) if never_sent(&error) => Outcome::NotSent(error),
        Err(error) => {
            tracing::warn!(table = %swap.base.id, %error, "the outcome of a swap is not known yet");
            settle(app, swap).await
        }
    };
    if matches!(outcome, Outcome::Lost | Outcome::LocationTaken | Outcome::Answered | Outcome::NotSent(_)) {
        files::discard(warehouse, swap.metadata_location).await;
    }
    outcome
}

/// Publishes several tables or none.
pub(super) async fn transact(
    app: &App,
    warehouse: &Warehouse,
    steps: &[Step<'_>],
    record: Option<&Record>,
) -> Transacted {
    match send_transaction(app, warehouse.id, steps, record).await {
        Ok(db::tables::Transacted::Done) => Transacted::Done,
        Ok(db::tables::Transacted::Refused(step, refusal)) => Transacted::Refused(step, refusal),
        Err(error) if is_answered(&error) => Transacted::Answered,
        Err(error) if never_sent(&error) => Transacted::NotSent(error),
        Err(error) => {
            tracing::warn!(%error, "the outcome of a transaction is not known yet");
            settle_all(app, steps, error).await
        }
    }
}

/// As [`settle`], for all tables of a transaction.
async fn settle_all(app: &App, steps: &[Step<'_>], error: sqlx::Error) -> Transacted {
    let (mut swapped, mut created) = (Vec::new(), Vec::new());
    for step in steps {
        match step {
            Step::Swap(swap) => swapped.push((swap.base.id, swap.metadata_location)),
            Step::Create { new, .. } => created.push((new.location.as_str(), new.metadata_location.as_str())),
            Step::Hold(_) => {}
        }
    }
    if swapped.is_empty() && created.is_empty() {
        return Transacted::NotSent(error);
    }
    for attempt in 0..SETTLE_ATTEMPTS_MAX {
        settle_pause(attempt).await;
        match send_settle_all(app, &swapped, &created).await {
            Ok(Settled::Landed) => return Transacted::Done,
            Ok(Settled::Lost) => return Transacted::Refused(0, Refusal::Lost),
            Err(error) => tracing::warn!(%error, attempt, "a transaction could not be settled"),
        }
    }
    Transacted::Unknown
}

/// Asks what became of an insert whose answer was lost; `None` when nobody can say.
pub(super) async fn settle_create(app: &App, new: &NewTable) -> Option<Settled> {
    for attempt in 0..SETTLE_ATTEMPTS_MAX {
        settle_pause(attempt).await;
        match send_settle_create(app, new).await {
            Ok(settled) => return Some(settled),
            Err(error) => tracing::warn!(%error, attempt, "a create could not be settled"),
        }
    }
    None
}

/// Fences the row, so that a swap still under way fails, and asks its history.
async fn settle(app: &App, swap: &Swap<'_>) -> Outcome {
    for attempt in 0..SETTLE_ATTEMPTS_MAX {
        settle_pause(attempt).await;
        match send_settle(app, swap).await {
            Ok(Settled::Landed) => return Outcome::Done(None),
            Ok(Settled::Lost) => return Outcome::Lost,
            Err(error) => tracing::warn!(table = %swap.base.id, %error, attempt, "a swap could not be settled"),
        }
    }
    Outcome::Unknown
}

/// Asks what became of a statement on `ident` whose answer was lost with `error`; `None` when nobody can say.
pub(super) async fn ask_until_answered<T, F: Future<Output = Result<T, sqlx::Error>>>(
    app: &App,
    ident: &TableIdent,
    error: &sqlx::Error,
    question: impl Fn() -> F,
) -> Option<T> {
    tracing::warn!(table = %ident, %error, "the outcome of a statement is not known yet");
    for attempt in 0..SETTLE_ATTEMPTS_MAX {
        settle_pause(attempt).await;
        match send_question(app, question()).await {
            Ok(answer) => return Some(answer),
            Err(error) => tracing::warn!(table = %ident, %error, attempt, "a statement could not be settled"),
        }
    }
    None
}

/// Whether a failed statement certainly never reached the database: no connection was to be had, or an argument was
/// refused before.
pub(super) fn never_sent(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::InvalidArgument(_))
}

/// Whether a failed statement certainly changed nothing.
pub(super) fn changed_nothing(error: &sqlx::Error) -> bool {
    never_sent(error) || is_answered(error)
}

/// Waits before asking for an unknown outcome for the `attempt`th time, the first being 0.
async fn settle_pause(attempt: u32) {
    tokio::time::sleep(SETTLE_PAUSE * 2_u32.saturating_pow(attempt.min(SETTLE_ATTEMPTS_MAX))).await;
}

pub(super) async fn create(
    app: &App,
    warehouse: Uuid,
    ident: &TableIdent,
    new: &NewTable,
    now_ms: i64,
    record: Option<&Record>,
) -> Result<Create, sqlx::Error> {
    let statement = db::tables::create(app.db.recording(record), warehouse, ident, new, now_ms);
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Create, statement);
    statement.await
}

pub(super) async fn replace(
    app: &App,
    base: &TableRow,
    new: &NewTable,
    record: Option<&Record>,
) -> Result<Replaced, sqlx::Error> {
    let statement = db::tables::replace(app.db.recording(record), base, new, now_ms());
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Replace, statement);
    statement.await
}

pub(super) async fn unregister(app: &App, base: &TableRow, record: Option<&Record>) -> Result<bool, sqlx::Error> {
    let statement = db::tables::unregister(app.db.recording(record), base);
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Unregister, statement);
    statement.await
}

#[cfg_attr(not(test), expect(unused_variables, reason = "faults are put in by tests only"))]
async fn send_question<T>(
    app: &App,
    statement: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Settle, statement);
    statement.await
}

async fn send_swap(app: &App, swap: &Swap<'_>, record: Option<&Record>) -> Result<Swapped, sqlx::Error> {
    let statement = db::tables::swap(app.db.recording(record), swap);
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Swap, statement);
    statement.await
}

async fn send_transaction(
    app: &App,
    warehouse: Uuid,
    steps: &[Step<'_>],
    record: Option<&Record>,
) -> Result<db::tables::Transacted, sqlx::Error> {
    let statement = db::tables::transact(app.db.recording(record), warehouse, steps, now_ms());
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Transaction, statement);
    statement.await
}

async fn send_settle_all(
    app: &App,
    swapped: &[(Uuid, &str)],
    created: &[(&str, &str)],
) -> Result<Settled, sqlx::Error> {
    let statement = db::tables::settle_all(&app.db, swapped, created);
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Settle, statement);
    statement.await
}

async fn send_settle(app: &App, swap: &Swap<'_>) -> Result<Settled, sqlx::Error> {
    let statement = db::tables::settle(&app.db, swap.base.id, swap.metadata_location);
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Settle, statement);
    statement.await
}

async fn send_settle_create(app: &App, new: &NewTable) -> Result<Settled, sqlx::Error> {
    let statement = db::tables::settle_create(&app.db, &new.location, &new.metadata_location);
    #[cfg(test)]
    let statement = app.catalog.faults.around(faults::Statement::Settle, statement);
    statement.await
}

/// Faults that tests put between the catalog and its database.
#[cfg(test)]
pub(crate) mod faults {
    use std::{collections::VecDeque, sync::Mutex};
    use tokio::sync::Semaphore;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Statement {
        Create,
        Swap,
        Replace,
        Unregister,
        Transaction,
        Settle,
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Fault {
        /// The statement runs, and its answer is lost.
        AnswerLost,
        /// The statement is lost on its way, after it was sent.
        StatementLost,
        /// No connection was to be had.
        NoConnection,
        /// The statement runs once [`Faults::release`] was called.
        Held,
    }

    /// What is to happen to the next statements, in order; others are left alone.
    pub struct Faults {
        planned: Mutex<VecDeque<(Statement, Fault)>>,
        released: Semaphore,
    }

    impl Default for Faults {
        fn default() -> Self {
            Faults { planned: Mutex::default(), released: Semaphore::new(0) }
        }
    }

    impl Faults {
        pub fn plan(&self, faults: impl IntoIterator<Item = (Statement, Fault)>) {
            self.planned.lock().unwrap().extend(faults);
        }

        /// Whether all that was planned has met its statement.
        pub fn is_through(&self) -> bool {
            self.planned.lock().unwrap().is_empty()
        }

        /// Whether every fault that was planned has met its statement.
        pub fn are_met(&self) -> bool {
            self.planned.lock().unwrap().is_empty()
        }

        /// Lets one held statement go.
        pub fn release(&self) {
            self.released.add_permits(1);
        }

        pub async fn around<T>(
            &self,
            statement: Statement,
            run: impl Future<Output = Result<T, sqlx::Error>>,
        ) -> Result<T, sqlx::Error> {
            let planned = {
                let mut planned = self.planned.lock().unwrap();
                planned.front().is_some_and(|(on, _)| *on == statement).then(|| planned.pop_front()).flatten()
            };
            let broken = || sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
            match planned {
                None => run.await,
                Some((_, Fault::AnswerLost)) => run.await.and_then(|_| Err(broken())),
                Some((_, Fault::StatementLost)) => Err(broken()),
                Some((_, Fault::Held)) => {
                    self.released.acquire().await.unwrap().forget();
                    run.await
                }
                Some((_, Fault::NoConnection)) => Err(sqlx::Error::PoolTimedOut),
            }
        }
    }
}
