//! Changes: what is written together, on either database.
//!
//! A change runs whole or not at all, and is answered only once it is durable. On SQLite it joins the writer's current
//! group (`sqlite.rs`); on Postgres it is a transaction of its own, or a single statement that needs none.

use super::{
    Db,
    idempotency::{self, Record},
    pointers::Pointers,
    postgres,
    statement::{Row, Text, Tx, Value},
};

/// Statements that stand or fall together. Owns what it binds: on SQLite another task runs it.
pub trait Change: Send + Sync + 'static {
    type Answer: Send + 'static;

    /// Runs the statements. On Postgres it may run again after a serialization failure or a deadlock, so it depends on
    /// nothing but itself and the database.
    fn apply(&self, tx: &mut Tx<'_>) -> impl Future<Output = Result<Self::Answer, sqlx::Error>> + Send;

    /// Whether `apply` sends Postgres a single statement, which commits itself in one round trip.
    fn is_single_statement(&self) -> bool {
        false
    }

    /// Whether the answer means that something was changed. Where not, whatever the statements did is undone, and the
    /// request behind it leaves no record.
    fn took_effect(&self, _answer: &Self::Answer) -> bool {
        true
    }

    /// What the record of the request needs to know of the answer, beside that it was success. JSON.
    fn detail(&self, _answer: &Self::Answer) -> Option<String> {
        None
    }

    /// Keeps the pointer map true; called after the commit and before the answer (SQLite only).
    fn publish(&self, _answer: &Self::Answer, _pointers: &Pointers) {}
}

/// Where a change goes, together with the record of the request that asked for it, if that is to be answered once.
#[derive(Clone, Copy)]
pub struct To<'a> {
    db: &'a Db,
    record: Option<&'a Record>,
}

impl<'a> From<&'a Db> for To<'a> {
    fn from(db: &'a Db) -> To<'a> {
        To { db, record: None }
    }
}

impl Db {
    /// Changes made here are recorded, in their own transactions, as the answer to a request.
    pub fn recording<'a>(&'a self, record: Option<&'a Record>) -> To<'a> {
        To { db: self, record }
    }

    /// Runs a change and answers when it is durable. An error that is no constraint's may leave its outcome unknown.
    pub(super) async fn write<C: Change>(&self, change: C) -> Result<C::Answer, sqlx::Error> {
        match self {
            Db::Sqlite(sqlite) => sqlite.write(change).await,
            Db::Postgres(pool) => postgres::write(pool, &change).await,
        }
    }

    /// Writes with one statement and answers its first row.
    pub(super) async fn write_one<R: Row + 'static>(
        &self,
        text: impl Into<Text>,
        values: &[Value<'_>],
    ) -> Result<Option<R>, sqlx::Error> {
        To::from(self).write_one(text, values).await
    }
}

impl<'a> To<'a> {
    pub(super) fn db(self) -> &'a Db {
        self.db
    }

    /// As [`Db::write`].
    ///
    /// # Errors
    /// Besides, one that [`idempotency::is_answered`] knows.
    pub(super) async fn write<C: Change>(self, change: C) -> Result<C::Answer, sqlx::Error> {
        match self.record {
            None => self.db.write(change).await,
            Some(record) => self.db.write(Recorded { change, record: record.clone() }).await,
        }
    }

    pub(super) async fn write_one<R: Row + 'static>(
        self,
        text: impl Into<Text>,
        values: &[Value<'_>],
    ) -> Result<Option<R>, sqlx::Error> {
        let values = values.iter().cloned().map(Value::into_owned).collect();
        self.write(Single { text: text.into(), values, row: std::marker::PhantomData }).await
    }
}

/// A change and the record of its request: both or neither.
struct Recorded<C> {
    change: C,
    record: Record,
}

impl<C: Change> Change for Recorded<C> {
    type Answer = C::Answer;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<C::Answer, sqlx::Error> {
        let answer = self.change.apply(tx).await?;
        if self.change.took_effect(&answer) {
            match self.change.detail(&answer) {
                None => idempotency::insert_in(tx, &self.record).await?,
                detail => idempotency::insert_in(tx, &Record { detail, ..self.record.clone() }).await?,
            }
        }
        Ok(answer)
    }

    fn took_effect(&self, answer: &C::Answer) -> bool {
        self.change.took_effect(answer)
    }

    fn publish(&self, answer: &C::Answer, pointers: &Pointers) {
        self.change.publish(answer, pointers);
    }
}

struct Single<R> {
    text: Text,
    values: Vec<Value<'static>>,
    row: std::marker::PhantomData<fn() -> R>,
}

impl<R: Row + 'static> Change for Single<R> {
    type Answer = Option<R>;

    async fn apply(&self, tx: &mut Tx<'_>) -> Result<Option<R>, sqlx::Error> {
        tx.on().optional(self.text, &self.values).await
    }

    fn is_single_statement(&self) -> bool {
        true
    }

    fn took_effect(&self, answer: &Option<R>) -> bool {
        answer.is_some()
    }
}
