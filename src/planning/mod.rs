//! Reads manifests: for purge now, for scan planning later.

pub mod manifests;
