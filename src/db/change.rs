//! Changes: what is written together, on either database.
//!
//! A change runs whole or not at all, and is answered only once it is durable. On SQLite it joins the writer's current
//! group (`sqlite.rs`); on Postgres it is a transaction of its own, or a single statement that needs none.

use super::{
    Db,
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

    /// Keeps the pointer map true; called after the commit and before the answer (SQLite only).
    fn publish(&self, _answer: &Self::Answer, _pointers: &Pointers) {}
}

impl Db {
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
        let values = values.iter().cloned().map(Value::into_owned).collect();
        self.write(Single { text: text.into(), values, row: std::marker::PhantomData }).await
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
}
