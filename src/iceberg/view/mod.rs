//! The view model (view specification): metadata of format version 1, and how requests change it.
//!
//! As the table model is: pure, and true to what clients stored, unknown fields of every object included. Schemas,
//! properties and the JSON reader are shared with it.

mod builder;
pub mod commit;
pub mod create;
mod metadata;
mod update;
mod version;

pub use metadata::ViewMetadata;
pub use version::{LogEntry, Representation, ViewVersion};

use super::{Result, ensure, properties};

/// The one format version there is.
pub const FORMAT_VERSION: u8 = 1;

/// How many versions of a view are kept, unless a request adds more.
const HISTORY_SIZE: &str = "version.history.num-entries";
const HISTORY_SIZE_DEFAULT: usize = 10;
/// Whether a replace may leave out a dialect that the version before had.
const DROP_DIALECT_ALLOWED: &str = "replace.drop-dialect.allowed";
/// Views may use every type there is: new schemas are held to the newest table format's rules.
const SCHEMA_RULES_VERSION: u8 = super::metadata::FORMAT_VERSION_MAX;

/// Checks a property being set, so that no later commit trips over it.
fn check_property(key: &str, value: &str) -> Result<()> {
    if key == HISTORY_SIZE {
        let is_positive = value.parse::<i32>().is_ok_and(|size| size > 0);
        return ensure(is_positive, || format!("invalid value for {key}: {value} is no positive integer"));
    }
    properties::check(key, value)
}
