//! What a create-table request becomes: fresh ids, bound spec and order, version-checked types.

use super::{Result, metadata::TableMetadata};

/// `CreateTableRequest` of the REST specification, parsed.
#[derive(Debug, Clone)]
pub struct CreateTable {
    pub name: String,
    pub location: Option<String>,
    pub stage_create: bool,
    pub properties: Vec<(String, String)>,
    // schema, partition spec, write order: the model's own
}

impl CreateTable {
    /// # Errors
    /// `Error::Invalid` for malformed JSON, wrong types and missing fields. Unknown fields are ignored.
    pub fn parse(_bytes: &[u8]) -> Result<Self> {
        todo!()
    }

    /// Builds the first metadata of a table at `location`.
    ///
    /// # Errors
    /// `Error::Invalid` when schema, spec, order or properties break a rule.
    pub fn metadata(&self, _location: &str, _uuid: uuid::Uuid, _now_ms: i64) -> Result<TableMetadata> {
        todo!()
    }
}
