//! One statement text for two databases: values, rows and the two arms a statement runs on.
//!
//! Every statement of the catalog passes [`Arms::optional`], [`Arms::all`] or [`Arms::execute`] (or, where Postgres
//! needs its own form, [`checked`]), so none carries a NUL, which Postgres could not store.

use sqlx::{
    FromRow, PgConnection, PgExecutor, Postgres, Sqlite, SqliteConnection, SqliteExecutor, postgres::PgRow,
    sqlite::SqliteRow,
};
use std::borrow::Cow;
use uuid::Uuid;

/// Something that is either SQLite's or Postgres's: a pool to read from, or a connection inside a transaction.
pub enum Arms<S, P> {
    Sqlite(S),
    Postgres(P),
}

/// A connection on which one change runs; what it does stands or falls together.
pub type Tx<'c> = Arms<&'c mut SqliteConnection, &'c mut PgConnection>;

/// A statement's text: the same for both databases, or one for each.
#[derive(Clone, Copy)]
pub struct Text {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl From<&'static str> for Text {
    fn from(both: &'static str) -> Text {
        Text { sqlite: both, postgres: both }
    }
}

/// A value bound to a statement.
#[derive(Clone)]
pub enum Value<'a> {
    Text(Option<Cow<'a, str>>),
    Bytes(Option<Cow<'a, [u8]>>),
    Int(Option<i64>),
    Uuid(Option<Uuid>),
}

impl Value<'_> {
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Text(text) => Value::Text(text.map(|text| Cow::Owned(text.into_owned()))),
            Value::Bytes(bytes) => Value::Bytes(bytes.map(|bytes| Cow::Owned(bytes.into_owned()))),
            Value::Int(int) => Value::Int(int),
            Value::Uuid(uuid) => Value::Uuid(uuid),
        }
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Some(Cow::Borrowed(text)))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Value::Text(text.map(Cow::Borrowed))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Value::Text(Some(Cow::Borrowed(text)))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Some(Cow::Owned(text)))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Value::Bytes(Some(Cow::Borrowed(bytes)))
    }
}

impl<'a> From<Option<&'a [u8]>> for Value<'a> {
    fn from(bytes: Option<&'a [u8]>) -> Self {
        Value::Bytes(bytes.map(Cow::Borrowed))
    }
}

impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Value::Bytes(Some(Cow::Borrowed(bytes)))
    }
}

impl From<i64> for Value<'_> {
    fn from(int: i64) -> Self {
        Value::Int(Some(int))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(int: Option<i64>) -> Self {
        Value::Int(int)
    }
}

impl From<Uuid> for Value<'_> {
    fn from(uuid: Uuid) -> Self {
        Value::Uuid(Some(uuid))
    }
}

/// The values of a statement in the order of `$1`, `$2`, ….
macro_rules! values {
    ($($value:expr),* $(,)?) => { [$($crate::db::statement::Value::from($value)),*] };
}
pub(super) use values;

/// A row both databases can answer.
pub trait Row: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin {}
impl<R: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin> Row for R {}

impl Tx<'_> {
    /// Lends the connection to one statement.
    pub fn on(&mut self) -> Arms<&mut SqliteConnection, &mut PgConnection> {
        match self {
            Arms::Sqlite(connection) => Arms::Sqlite(connection),
            Arms::Postgres(connection) => Arms::Postgres(connection),
        }
    }
}

macro_rules! bind {
    ($query:expr, $values:expr) => {{
        let mut query = $query;
        for value in $values {
            query = match value {
                Value::Text(text) => query.bind(text.as_deref()),
                Value::Bytes(bytes) => query.bind(bytes.as_deref()),
                Value::Int(int) => query.bind(*int),
                Value::Uuid(uuid) => query.bind(*uuid),
            };
        }
        query
    }};
}

impl<'e, S: SqliteExecutor<'e>, P: PgExecutor<'e>> Arms<S, P> {
    /// The first row, if there is one.
    pub async fn optional<R: Row>(self, text: impl Into<Text>, values: &[Value<'_>]) -> Result<Option<R>, sqlx::Error> {
        let text = checked(text.into(), values)?;
        match self {
            // To the last row: SQLite checks foreign keys when a statement ends, and sqlx drops what a reset says.
            Arms::Sqlite(on) => {
                let rows = bind!(sqlx::query_as::<Sqlite, R>(text.sqlite), values).fetch_all(on).await?;
                Ok(rows.into_iter().next())
            }
            Arms::Postgres(on) => bind!(sqlx::query_as::<Postgres, R>(text.postgres), values).fetch_optional(on).await,
        }
    }

    pub async fn all<R: Row>(self, text: impl Into<Text>, values: &[Value<'_>]) -> Result<Vec<R>, sqlx::Error> {
        let text = checked(text.into(), values)?;
        match self {
            Arms::Sqlite(on) => bind!(sqlx::query_as::<Sqlite, R>(text.sqlite), values).fetch_all(on).await,
            Arms::Postgres(on) => bind!(sqlx::query_as::<Postgres, R>(text.postgres), values).fetch_all(on).await,
        }
    }

    /// How many rows the statement changed.
    pub async fn execute(self, text: impl Into<Text>, values: &[Value<'_>]) -> Result<u64, sqlx::Error> {
        let text = checked(text.into(), values)?;
        match self {
            Arms::Sqlite(on) => {
                Ok(bind!(sqlx::query::<Sqlite>(text.sqlite), values).execute(on).await?.rows_affected())
            }
            Arms::Postgres(on) => {
                Ok(bind!(sqlx::query::<Postgres>(text.postgres), values).execute(on).await?.rows_affected())
            }
        }
    }
}

/// Refuses a NUL, which Postgres cannot store, before either database sees it.
fn checked(text: Text, values: &[Value<'_>]) -> Result<Text, sqlx::Error> {
    let nul = values.iter().any(|value| matches!(value, Value::Text(Some(text)) if text.as_bytes().contains(&0)));
    if nul { Err(sqlx::Error::InvalidArgument("text has a NUL character".into())) } else { Ok(text) }
}

/// The constraint a statement ran into, where that is an expected outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    Unique,
    ForeignKey,
}

pub fn violation(error: &sqlx::Error) -> Option<Violation> {
    match error.as_database_error()?.kind() {
        sqlx::error::ErrorKind::UniqueViolation => Some(Violation::Unique),
        sqlx::error::ErrorKind::ForeignKeyViolation => Some(Violation::ForeignKey),
        _ => None,
    }
}
