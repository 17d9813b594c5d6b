//! A table commit: requirements checked against a base, updates applied in order.

use super::{Result, metadata::TableMetadata};

/// `CommitTableRequest` of the REST specification: requirements and updates, parsed.
#[derive(Debug, Clone)]
pub struct Commit {
    pub identifier: Option<super::ident::TableIdent>,
    // requirements, updates: the model's own
}

impl Commit {
    /// # Errors
    /// `Error::Invalid` for malformed JSON and for unknown updates or requirements.
    pub fn parse(_bytes: &[u8]) -> Result<Self> {
        todo!()
    }

    /// Whether this completes a staged create (`assert-create` is required).
    pub fn is_create(&self) -> bool {
        todo!()
    }

    /// The metadata after this commit, or `None` when nothing changes. `base_location` is the metadata file of `base`
    /// and joins the metadata log.
    ///
    /// # Errors
    /// `Error::Conflict` when a requirement fails, `Error::Invalid` when an update breaks a rule.
    pub fn apply(&self, _base: &TableMetadata, _base_location: &str, _now_ms: i64) -> Result<Option<TableMetadata>> {
        todo!()
    }

    /// The first metadata of a table created by this commit. `uuid` is used when no `assign-uuid` is among the updates.
    ///
    /// # Errors
    /// `Error::Invalid` when other requirements stand beside `assert-create` or the updates do not make a whole table.
    pub fn create(&self, _uuid: uuid::Uuid, _now_ms: i64) -> Result<TableMetadata> {
        todo!()
    }
}
