//! Table properties the model itself heeds.

use super::{Error, Result, ensure, schema::Columns};
use std::collections::BTreeMap;

/// Properties that describe the table and are never stored as properties.
pub const RESERVED: [&str; 9] = [
    "format-version",
    "uuid",
    "snapshot-count",
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "current-schema",
    "default-partition-spec",
    "default-sort-order",
];

/// Properties whose values are places where writers put files of the table.
pub const PATHS: [&str; 4] =
    ["write.data.path", "write.metadata.path", "write.folder-storage.path", "write.object-storage.path"];

pub const FORMAT_VERSION: &str = "format-version";
pub const GC_ENABLED: &str = "gc.enabled";
pub const PREVIOUS_VERSIONS_MAX: &str = "write.metadata.previous-versions-max";
const PREVIOUS_VERSIONS_MAX_DEFAULT: usize = 100;
const METADATA_COMPRESSION: &str = "write.metadata.compression-codec";
const COMMIT_RETRY: &str = "commit.retry.";
const METRICS_COLUMN: &str = "write.metadata.metrics.column.";

/// How a table's metadata files are compressed (`write.metadata.compression-codec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataCodec {
    None,
    Gzip,
}

impl MetadataCodec {
    fn parse(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "none" => Some(MetadataCodec::None),
            "gzip" => Some(MetadataCodec::Gzip),
            _ => None,
        }
    }

    /// The codec that is set, if one is; a stored value that is none of ours counts as unset.
    pub(super) fn of(properties: &BTreeMap<String, String>) -> Option<Self> {
        properties.get(METADATA_COMPRESSION).and_then(|value| Self::parse(value))
    }
}

pub fn is_reserved(key: &str) -> bool {
    RESERVED.contains(&key)
}

/// Earlier metadata files a table remembers: at least 1.
pub fn previous_versions_max(properties: &BTreeMap<String, String>) -> usize {
    let set = properties.get(PREVIOUS_VERSIONS_MAX).and_then(|value| value.parse::<i32>().ok());
    set.map_or(PREVIOUS_VERSIONS_MAX_DEFAULT, |count| usize::try_from(count).unwrap_or(0).max(1))
}

/// Checks a property being set, so that no later commit trips over it.
///
/// # Errors
/// `Error::Invalid` naming the property.
pub fn check(key: &str, value: &str) -> Result<()> {
    match key {
        METADATA_COMPRESSION => ensure(MetadataCodec::parse(value).is_some(), || {
            format!("invalid value for {key}: {value} is neither none nor gzip")
        }),
        PREVIOUS_VERSIONS_MAX => {
            ensure(value.parse::<i32>().is_ok(), || format!("invalid value for {key}: {value} is no integer"))
        }
        _ => Ok(()),
    }
}

/// Checks the properties of a new table.
///
/// # Errors
/// `Error::Invalid` naming the property.
pub fn check_new(properties: &BTreeMap<String, String>, columns: &Columns<'_>, format_version: u8) -> Result<()> {
    for (key, value) in properties {
        check(key, value)?;
        if key.starts_with(COMMIT_RETRY) {
            ensure(value.parse::<u32>().is_ok_and(|value| i32::try_from(value).is_ok()), || {
                format!("table property {key} must have a non-negative integer value, but is {value}")
            })?;
        }
        if let Some(column) = key.strip_prefix(METRICS_COLUMN) {
            ensure(columns.find_path(column).is_some(), || {
                format!("{key} names a column that does not exist: {column}")
            })?;
        }
        let is_encryption = key == "encryption.key-id" || key == "encryption.data-key-length";
        ensure(!is_encryption || format_version >= 3, || {
            format!("{key} needs format version 3, not {format_version}")
        })?;
    }
    Ok(())
}

/// The format version a new table asks for.
///
/// # Errors
/// `Error::Invalid` when it is not a version we support.
pub fn requested_format_version(value: &str) -> Result<u8> {
    let version =
        value.parse::<u8>().ok().filter(|version| (1..=super::metadata::FORMAT_VERSION_MAX).contains(version));
    version.ok_or_else(|| Error::Invalid(format!("unsupported format version: {value}")))
}
