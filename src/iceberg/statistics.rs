//! Statistics files and encryption keys: entries of which only the identity matters to a catalog.
//!
//! Each keeps the text it came as.

use super::{
    Error, Result, ensure,
    json::{Members, Reader},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::sync::Arc;

/// A statistics or partition statistics file of one snapshot ("Table Statistics", "Partition Statistics").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatisticsFile {
    pub snapshot_id: i64,
    pub path: String,
    json: Arc<str>,
}

impl StatisticsFile {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let start = reader.start();
        let (mut snapshot_id, mut path) = (None, None);
        reader.members(|reader, key| {
            match key {
                "snapshot-id" => snapshot_id = Some(reader.int64(key)?),
                "statistics-path" => path = Some(reader.string(key)?.into_owned()),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        let missing = |field: &str| Error::Invalid(format!("statistics file without {field}"));
        Ok(StatisticsFile {
            snapshot_id: snapshot_id.ok_or_else(|| missing("snapshot-id"))?,
            path: path.ok_or_else(|| missing("statistics-path"))?,
            json: reader.since(start).into(),
        })
    }

    /// Reads a statistics file that enters a table: what readers require must be there.
    pub(super) fn read_new(reader: &mut Reader<'_>) -> Result<Self> {
        let file = Self::read(reader)?;
        let mut members = Reader::only(&file.json, Members::read)?;
        members.required("file-size-in-bytes", Reader::int64)?;
        members.required("file-footer-size-in-bytes", Reader::int64)?;
        members.required("blob-metadata", |reader, _| reader.elements(check_blob))?;
        Ok(file)
    }

    /// Reads a partition statistics file that enters a table.
    pub(super) fn read_new_partition(reader: &mut Reader<'_>) -> Result<Self> {
        let file = Self::read(reader)?;
        Reader::only(&file.json, Members::read)?.required("file-size-in-bytes", Reader::int64)?;
        Ok(file)
    }

    pub(super) fn json(&self) -> &str {
        &self.json
    }
}

fn check_blob(reader: &mut Reader<'_>) -> Result<()> {
    let mut members = Members::read(reader)?;
    members.required("type", Reader::string)?;
    members.required("snapshot-id", Reader::int64)?;
    members.required("sequence-number", Reader::int64)?;
    members.required("fields", Reader::int32_list)?;
    members.optional("properties", Reader::string_map)?;
    Ok(())
}

/// A wrapped key of an encrypted table ("Encryption Keys").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncryptionKey {
    pub key_id: String,
    json: Arc<str>,
}

impl EncryptionKey {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let start = reader.start();
        let mut key_id = None;
        reader.members(|reader, key| {
            match key {
                "key-id" => key_id = Some(reader.string(key)?.into_owned()),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        let key_id = key_id.ok_or_else(|| Error::Invalid("encryption key without key-id".to_owned()))?;
        Ok(EncryptionKey { key_id, json: reader.since(start).into() })
    }

    /// Reads a key that enters a table: what readers require must be there.
    pub(super) fn read_new(reader: &mut Reader<'_>) -> Result<Self> {
        let key = Self::read(reader)?;
        let mut members = Reader::only(&key.json, Members::read)?;
        let metadata = members.required("encrypted-key-metadata", Reader::string)?;
        ensure(STANDARD.decode(&*metadata).is_ok(), || "encrypted-key-metadata must be base64".to_owned())?;
        members.optional("encrypted-by-id", Reader::string)?;
        members.optional("properties", Reader::string_map)?;
        Ok(key)
    }

    pub(super) fn json(&self) -> &str {
        &self.json
    }
}
