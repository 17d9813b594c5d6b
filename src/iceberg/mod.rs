//! The Iceberg model of tables and views: identifiers, metadata, requirements, updates and how a commit applies.
//!
//! Pure: values in, values out. No I/O, no clock, no randomness: callers pass the time and fresh UUIDs.
//! Whatever a client stores comes back as meant, unknown fields of every object included. Reading a file is lenient
//! where the reference readers are; what a request adds is held to the specification.

mod builder;
pub mod commit;
pub mod create;
mod defaults;
pub mod function;
pub mod ident;
mod json;
mod location;
pub mod metadata;
pub mod partition;
mod properties;
pub mod report;
mod requirement;
pub mod schema;
mod schema_rules;
pub mod snapshot;
pub mod sort;
pub mod statistics;
pub mod transform;
pub mod types;
mod update;
pub mod view;

#[cfg(test)]
mod tests;

pub use properties::MetadataCodec;

/// Why a request cannot be applied to a table or view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The request or the metadata breaks a rule of the specification (400).
    #[error("{0}")]
    Invalid(String),
    /// The same, for the one rule that clients know as an illegal argument (400).
    #[error("{0}")]
    IllegalArgument(String),
    /// A requirement of a commit does not hold, or the commit was built on state that has moved on (409).
    #[error("{0}")]
    Conflict(String),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Returns from a rule check: `Ok` when `holds`, else the rule that is broken.
fn ensure(holds: bool, broken: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::Invalid(broken())) }
}
