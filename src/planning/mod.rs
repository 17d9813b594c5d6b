//! Reads manifests: for purge now, for scan planning later.

mod avro;
pub mod manifests;
