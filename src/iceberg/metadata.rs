//! Table metadata, formats V1 to V3: parsed, validated, and written back with every unknown field in place.

use super::Result;

/// The content of one metadata file.
#[derive(Debug, Clone, PartialEq)]
pub struct TableMetadata {
    // Fields are the model's own; other modules use the accessors below.
    _private: (),
}

impl TableMetadata {
    /// Parses a metadata file (plain JSON; the caller has undone any gzip).
    ///
    /// # Errors
    /// `Error::Invalid` naming the rule broken (table specification, "Table Metadata Fields").
    pub fn parse(_bytes: &[u8]) -> Result<Self> {
        todo!()
    }

    /// The JSON to store and to answer: canonical field order, unknown fields kept.
    pub fn to_json(&self) -> Vec<u8> {
        todo!()
    }

    pub fn format_version(&self) -> u8 {
        todo!()
    }

    /// `None` only for V1 files that never had one.
    pub fn uuid(&self) -> Option<uuid::Uuid> {
        todo!()
    }

    /// The table's base location, without a trailing slash.
    pub fn location(&self) -> &str {
        todo!()
    }

    pub fn property(&self, _key: &str) -> Option<&str> {
        todo!()
    }

    pub fn last_updated_ms(&self) -> i64 {
        todo!()
    }

    /// Every location the metadata records for files of the table: `location`, `write.data.path`, `write.metadata.path`, ….
    pub fn recorded_locations(&self) -> Vec<&str> {
        todo!()
    }

    /// Metadata files of earlier versions, oldest first (`metadata-log`).
    pub fn metadata_log(&self) -> Vec<&str> {
        todo!()
    }

    /// Manifest lists of all snapshots (V1 snapshots may list manifests instead: see [`Self::inline_manifests`]).
    pub fn manifest_lists(&self) -> Vec<&str> {
        todo!()
    }

    pub fn inline_manifests(&self) -> Vec<&str> {
        todo!()
    }

    /// Statistics and partition statistics files.
    pub fn statistics_files(&self) -> Vec<&str> {
        todo!()
    }
}
