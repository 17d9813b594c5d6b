//! Statistics files and encryption keys: entries of which only the identity matters to a catalog.
//!
//! Each keeps the text it came as.

use super::{Error, Result, ensure, json::Reader};
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

    /// Reads an entry that enters a table: what readers require must be there.
    pub(super) fn read_new(reader: &mut Reader<'_>, is_table_wide: bool) -> Result<Self> {
        let file = Self::read(reader)?;
        let mut required = vec!["file-size-in-bytes"];
        if is_table_wide {
            required.extend(["file-footer-size-in-bytes", "blob-metadata"]);
        }
        Reader::only(&file.json, |reader| {
            reader.members(|reader, key| {
                required.retain(|field| *field != key);
                match key {
                    "file-size-in-bytes" | "file-footer-size-in-bytes" => drop(reader.int64(key)?),
                    "blob-metadata" => reader.elements(check_blob)?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })
        })?;
        match required.first() {
            Some(field) => Err(Error::Invalid(format!("statistics file without {field}"))),
            None => Ok(file),
        }
    }

    pub(super) fn json(&self) -> &str {
        &self.json
    }
}

fn check_blob(reader: &mut Reader<'_>) -> Result<()> {
    let mut required = vec!["type", "snapshot-id", "sequence-number", "fields"];
    reader.members(|reader, key| {
        required.retain(|field| *field != key);
        match key {
            "type" => drop(reader.string(key)?),
            "snapshot-id" | "sequence-number" => drop(reader.int64(key)?),
            "fields" => drop(reader.int32_list(key)?),
            "properties" => drop(reader.optional(|reader| reader.string_map(key))?),
            _ => drop(reader.skip()?),
        }
        Ok(())
    })?;
    match required.first() {
        Some(field) => Err(Error::Invalid(format!("statistics blob without {field}"))),
        None => Ok(()),
    }
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
        let (mut key_id, mut metadata) = (None, None);
        reader.members(|reader, key| {
            match key {
                "key-id" => key_id = Some(reader.string(key)?.into_owned()),
                "encrypted-key-metadata" => metadata = Some(reader.string(key)?.into_owned()),
                "encrypted-by-id" => drop(reader.optional(|reader| reader.string(key).map(drop))?),
                "properties" => drop(reader.optional(|reader| reader.string_map(key))?),
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        let missing = |field: &str| Error::Invalid(format!("encryption key without {field}"));
        let metadata = metadata.ok_or_else(|| missing("encrypted-key-metadata"))?;
        ensure(STANDARD.decode(&metadata).is_ok(), || "encrypted-key-metadata must be base64".to_owned())?;
        Ok(EncryptionKey { key_id: key_id.ok_or_else(|| missing("key-id"))?, json: reader.since(start).into() })
    }

    pub(super) fn json(&self) -> &str {
        &self.json
    }
}
