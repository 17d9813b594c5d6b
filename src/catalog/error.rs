//! What can go wrong in a use case, by what a caller can do about it.

use crate::{
    auth,
    db::{idempotency, tables::Kind},
    iceberg::{
        self,
        ident::{Namespace, TableIdent},
    },
};

use uuid::Uuid;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// One variant for each thing a caller can do. Knows no HTTP: `rest/error.rs` gives each its status and type.
///
/// Some messages are matched by clients and by the compatibility kit, capital letters included; keep them to the letter.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Authenticate and come again. Why is not told.
    #[error("Not authorized")]
    Unauthenticated,
    #[error("not allowed: {0}")]
    Forbidden(String),
    #[error("Warehouse does not exist: {0}")]
    NoSuchWarehouse(String),
    #[error("Namespace does not exist: {0}")]
    NoSuchNamespace(Namespace),
    #[error("Table does not exist: {0}")]
    NoSuchTable(TableIdent),
    #[error("View does not exist: {0}")]
    NoSuchView(TableIdent),
    #[error("Function does not exist: {0}")]
    NoSuchFunction(TableIdent),
    /// The catalog names a metadata file that the storage does not have.
    #[error("Failed to open input stream for file: {0}")]
    MetadataMissing(String),
    #[error("Warehouse already exists: {0}")]
    WarehouseExists(String),
    #[error("Warehouse has namespaces: {0}")]
    WarehouseNotEmpty(String),
    #[error("Namespace already exists: {0}")]
    NamespaceExists(Namespace),
    #[error("Namespace is not empty: {0}")]
    NamespaceNotEmpty(Namespace),
    /// Another function has the name, told apart by its uuid.
    #[error("Function already exists with another function-uuid: {0}")]
    FunctionTaken(TableIdent),
    /// `kind` has the name that was asked for one of kind `wanted`.
    #[error("{}: {ident}", already_exists(*.wanted, *.kind))]
    NameTaken { ident: TableIdent, wanted: Kind, kind: Kind },
    #[error("Cannot rename {from} to {to}. {} already exists", capital(*.kind))]
    RenameTaken { from: TableIdent, to: TableIdent, kind: Kind },
    /// The request breaks a rule of the protocol or of ours; sending it again cannot help.
    #[error("{0}")]
    Invalid(String),
    /// The same, where clients tell illegal arguments from other bad requests.
    #[error("{0}")]
    IllegalArgument(String),
    #[error("a property is both removed and updated: {0}")]
    KeysOverlap(String),
    /// Load it again and build the commit on what it is now.
    #[error("{0}")]
    CommitFailed(String),
    /// The commit may or may not have happened: look before trying again, delete nothing.
    #[error("the outcome of the commit is not known: {0}")]
    CommitStateUnknown(TableIdent),
    /// As `CommitStateUnknown`, for all of these tables together.
    #[error("the outcome of the transaction is not known: {0}")]
    TransactionStateUnknown(String),
    /// A client's key for retries stands for another request.
    #[error("the Idempotency-Key was used for another request: {0}")]
    KeyReused(Uuid),
    /// The same request was answered since it was last looked up: look again. Nothing was done now.
    #[error("the request was answered already")]
    AnsweredBefore,
    /// Too much is going on; nothing was done.
    #[error("{0}")]
    Busy(String),
    /// Nothing was changed, and nothing will be until someone frees space.
    #[error("the object store has no space left")]
    StorageFull,
    /// Database or storage cannot be reached; nothing was done.
    #[error("the catalog is not available at the moment")]
    Unavailable(#[source] Source),
    /// A fault of ours or of what we stand on. The words of a source are for the log only.
    #[error("the catalog failed")]
    Internal(#[source] Source),
}

/// The cause of a fault, for the log.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

fn already_exists(wanted: Kind, kind: Kind) -> &'static str {
    match (wanted, kind) {
        (Kind::Table, Kind::Table) => "Table already exists",
        (Kind::Table, Kind::View) => "View with same name already exists",
        (Kind::View, Kind::View) => "View already exists",
        (Kind::View, Kind::Table) => "Table with same name already exists",
    }
}

fn capital(kind: Kind) -> &'static str {
    match kind {
        Kind::Table => "Table",
        Kind::View => "View",
    }
}

impl Error {
    /// A statement that changes nothing failed: whoever asked may ask again.
    pub fn read(error: sqlx::Error) -> Error {
        match error {
            sqlx::Error::InvalidArgument(message) => Error::Invalid(message),
            error if idempotency::is_answered(&error) => Error::AnsweredBefore,
            error if is_outage(&error) => Error::Unavailable(Box::new(error)),
            error => Error::Internal(Box::new(error)),
        }
    }

    /// A statement that changes something failed, and whether it did is not known.
    pub fn write(error: sqlx::Error) -> Error {
        match error {
            sqlx::Error::InvalidArgument(message) => Error::Invalid(message),
            error if idempotency::is_answered(&error) => Error::AnsweredBefore,
            error @ (sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed) => Error::Unavailable(Box::new(error)),
            error => Error::Internal(Box::new(error)),
        }
    }

    /// Reading or writing an object failed before anything was published.
    pub fn storage(error: object_store::Error) -> Error {
        if is_full(&error) { Error::StorageFull } else { Error::Unavailable(Box::new(error)) }
    }

    /// A fault described in our own words, for the log.
    pub fn internal(what: impl Into<String>) -> Error {
        Error::Internal(what.into().into())
    }
}

/// Whether the database could not be reached, as opposed to a statement it refused.
fn is_outage(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::Database(_)
    )
}

/// Whether the embedded store refused a write to keep its reserve free, wherever in the chain it says so.
fn is_full(error: &object_store::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if matches!(error.downcast_ref::<crate::store::Error>(), Some(crate::store::Error::Full)) {
            return true;
        }
        source = error.source();
    }
    false
}

impl From<iceberg::Error> for Error {
    fn from(error: iceberg::Error) -> Self {
        match error {
            iceberg::Error::Invalid(message) => Error::Invalid(message),
            iceberg::Error::IllegalArgument(message) => Error::IllegalArgument(message),
            iceberg::Error::Conflict(message) => Error::CommitFailed(message),
        }
    }
}

impl From<auth::Error> for Error {
    fn from(error: auth::Error) -> Self {
        match error {
            auth::Error::Unauthenticated(_) => Error::Unauthenticated,
            auth::Error::Database(error) => Error::read(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_is_told_apart_wherever_it_says_so() {
        let full = |source: Source| object_store::Error::Generic { store: "embedded", source };
        assert!(matches!(Error::storage(full(Box::new(crate::store::Error::Full))), Error::StorageFull));
        let wrapped = full(Box::new(full(Box::new(crate::store::Error::Full))));
        assert!(matches!(Error::storage(wrapped), Error::StorageFull));
        let other = full(Box::new(crate::store::Error::NoSuchBucket));
        assert!(matches!(Error::storage(other), Error::Unavailable(_)));
    }

    #[test]
    fn the_words_of_a_source_are_not_shown() {
        let error = || sqlx::Error::Io(std::io::Error::other("10.1.2.3: secret words"));
        for error in [Error::read(error()), Error::write(error())] {
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
