//! The Iceberg table model: identifiers, metadata, requirements, updates and how a commit applies.
//!
//! Pure: values in, values out. No I/O, no clock, no randomness: callers pass the time and fresh UUIDs.

pub mod commit;
pub mod create;
pub mod ident;
pub mod metadata;

/// Why a request cannot be applied to a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request or the metadata breaks a rule of the specification (400).
    #[error("{0}")]
    Invalid(String),
    /// A requirement of a commit does not hold, or the commit was built on state that has moved on (409).
    #[error("{0}")]
    Conflict(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
