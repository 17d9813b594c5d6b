//! Snapshots, the refs that name them, and the logs (table specification, "Snapshots" and "Snapshot References").
//!
//! A snapshot keeps the text it came as, beside the few values rules need: a table with 10,000 of them is read in one
//! pass and written by copying.

use super::{
    Error, Result, ensure,
    json::{Extras, Members, Reader, write},
};
use std::sync::Arc;

/// The branch whose head is the current snapshot.
pub const MAIN: &str = "main";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub id: i64,
    pub parent_id: Option<i64>,
    /// 0 where V1 left it out.
    pub sequence_number: i64,
    pub timestamp_ms: i64,
    pub manifest_list: Option<Box<str>>,
    /// Manifests named in place of a list: V1 only.
    pub manifests: Vec<Box<str>>,
    pub schema_id: Option<i32>,
    pub first_row_id: Option<i64>,
    pub added_rows: Option<i64>,
    json: Arc<str>,
}

impl Snapshot {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let start = reader.start();
        let (mut id, mut timestamp_ms) = (None, None);
        let (mut parent_id, mut sequence_number, mut schema_id) = (None, None, None);
        let (mut manifest_list, mut manifests) = (None, None);
        let (mut first_row_id, mut added_rows) = (None, None);
        reader.members(|reader, key| {
            match key {
                "snapshot-id" => id = Some(reader.int64(key)?),
                "parent-snapshot-id" => parent_id = reader.optional(|reader| reader.int64(key))?,
                "sequence-number" => sequence_number = reader.optional(|reader| reader.int64(key))?,
                "timestamp-ms" => timestamp_ms = Some(reader.int64(key)?),
                "manifest-list" => manifest_list = reader.optional(|reader| Ok(reader.string(key)?.into()))?,
                "manifests" => {
                    manifests = reader.optional(|reader| reader.list(|reader| Ok(reader.string(key)?.into())))?;
                }
                "schema-id" => schema_id = reader.optional(|reader| reader.int32(key))?,
                "first-row-id" => first_row_id = reader.optional(|reader| reader.int64(key))?,
                "added-rows" => added_rows = reader.optional(|reader| reader.int64(key))?,
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        let missing = |field: &str| Error::Invalid(format!("snapshot without {field}"));
        Ok(Snapshot {
            id: id.ok_or_else(|| missing("snapshot-id"))?,
            timestamp_ms: timestamp_ms.ok_or_else(|| missing("timestamp-ms"))?,
            parent_id,
            sequence_number: sequence_number.unwrap_or(0),
            manifest_list,
            manifests: manifests.unwrap_or_default(),
            schema_id,
            first_row_id,
            added_rows,
            json: reader.since(start).into(),
        })
    }

    /// The snapshot as it came.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Checks the shape a new snapshot must have in a format version. Its place in the table is the builder's matter.
    pub(super) fn check_new(&self, format_version: u8) -> Result<()> {
        let id = self.id;
        ensure(id >= 0, || format!("a snapshot id must not be negative: {id}"))?;
        let mut has_sequence_number = false;
        Reader::only(&self.json, |reader| {
            reader.members(|reader, key| {
                match key {
                    "summary" => drop(reader.optional(|reader| reader.string_map(key))?),
                    "sequence-number" => has_sequence_number = reader.optional(|reader| reader.int64(key))?.is_some(),
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })
        })?;
        let (has_list, has_manifests) = (self.manifest_list.is_some(), !self.manifests.is_empty());
        if format_version == 1 {
            ensure(self.sequence_number == 0, || format!("snapshot {id}: a sequence number must be 0 in v1"))?;
            ensure(!(has_list && has_manifests), || {
                format!("snapshot {id}: manifests must be omitted beside manifest-list")
            })?;
            return ensure(has_list || has_manifests, || format!("snapshot {id} without manifest-list"));
        }
        ensure(!has_manifests, || format!("snapshot {id}: manifests are not supported after v1"))?;
        ensure(has_list, || format!("snapshot {id} without manifest-list"))?;
        ensure(has_sequence_number, || format!("snapshot {id} without sequence-number"))
    }
}

/// A branch or tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRef {
    pub snapshot_id: i64,
    pub kind: RefKind,
    pub max_ref_age_ms: Option<i64>,
    extras: Extras,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    Branch { min_snapshots_to_keep: Option<i32>, max_snapshot_age_ms: Option<i64> },
    Tag,
}

impl SnapshotRef {
    /// A branch with no retention settings of its own.
    pub(super) fn branch(snapshot_id: i64) -> Self {
        let kind = RefKind::Branch { min_snapshots_to_keep: None, max_snapshot_age_ms: None };
        SnapshotRef { snapshot_id, kind, max_ref_age_ms: None, extras: Extras::default() }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        Self::from_members(Members::read(reader)?)
    }

    pub(super) fn from_members(mut members: Members<'_>) -> Result<Self> {
        let snapshot_id = members.required("snapshot-id", Reader::int64)?;
        let kind = members.required("type", |reader, key| Ok(reader.string(key)?.to_ascii_lowercase()))?;
        let max_ref_age_ms = members.optional("max-ref-age-ms", Reader::int64)?;
        let min_snapshots_to_keep = members.optional("min-snapshots-to-keep", Reader::int32)?;
        let max_snapshot_age_ms = members.optional("max-snapshot-age-ms", Reader::int64)?;
        let bounds = [max_ref_age_ms, min_snapshots_to_keep.map(i64::from), max_snapshot_age_ms];
        ensure(bounds.into_iter().flatten().all(|bound| bound > 0), || {
            "retention settings of a snapshot reference must be positive".to_owned()
        })?;
        let kind = match kind.as_str() {
            "branch" => RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms },
            "tag" if min_snapshots_to_keep.is_none() && max_snapshot_age_ms.is_none() => RefKind::Tag,
            "tag" => {
                let message = "tags do not support min-snapshots-to-keep and max-snapshot-age-ms";
                return Err(Error::Invalid(message.to_owned()));
            }
            other => return Err(Error::Invalid(format!("unknown snapshot reference type: {other}"))),
        };
        Ok(SnapshotRef { snapshot_id, kind, max_ref_age_ms, extras: members.extras() })
    }

    /// The same ref with another's unknown fields, unless it brings its own.
    pub(super) fn with_extras_of(&self, other: &SnapshotRef) -> Self {
        let extras = if self.extras.is_empty() { other.extras.clone() } else { self.extras.clone() };
        SnapshotRef { extras, ..self.clone() }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = write::Object::begin(out);
        object.int("snapshot-id", self.snapshot_id);
        object.string("type", self.kind.as_str());
        if let RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms } = self.kind {
            if let Some(count) = min_snapshots_to_keep {
                object.int("min-snapshots-to-keep", count);
            }
            if let Some(age) = max_snapshot_age_ms {
                object.int("max-snapshot-age-ms", age);
            }
        }
        if let Some(age) = self.max_ref_age_ms {
            object.int("max-ref-age-ms", age);
        }
        object.extras(&self.extras);
        object.end();
    }
}

impl RefKind {
    pub fn as_str(self) -> &'static str {
        match self {
            RefKind::Branch { .. } => "branch",
            RefKind::Tag => "tag",
        }
    }
}

/// When a snapshot became the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotLogEntry {
    pub timestamp_ms: i64,
    pub snapshot_id: i64,
    extras: Extras,
}

/// A metadata file of an earlier version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataLogEntry {
    pub timestamp_ms: i64,
    pub file: String,
    extras: Extras,
}

impl SnapshotLogEntry {
    pub(super) fn new(timestamp_ms: i64, snapshot_id: i64) -> Self {
        SnapshotLogEntry { timestamp_ms, snapshot_id, extras: Extras::default() }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut timestamp_ms, mut snapshot_id) = (None, None);
        let mut extras = Extras::default();
        reader.members(|reader, key| {
            match key {
                "timestamp-ms" => timestamp_ms = Some(reader.int64(key)?),
                "snapshot-id" => snapshot_id = Some(reader.int64(key)?),
                _ => extras.keep(key, reader.skip()?),
            }
            Ok(())
        })?;
        match (timestamp_ms, snapshot_id) {
            (Some(timestamp_ms), Some(snapshot_id)) => Ok(SnapshotLogEntry { timestamp_ms, snapshot_id, extras }),
            _ => Err(Error::Invalid("snapshot-log entry without timestamp-ms or snapshot-id".to_owned())),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = write::Object::begin(out);
        object.int("timestamp-ms", self.timestamp_ms);
        object.int("snapshot-id", self.snapshot_id);
        object.extras(&self.extras);
        object.end();
    }
}

impl MetadataLogEntry {
    pub(super) fn new(timestamp_ms: i64, file: String) -> Self {
        MetadataLogEntry { timestamp_ms, file, extras: Extras::default() }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut timestamp_ms, mut file) = (None, None);
        let mut extras = Extras::default();
        reader.members(|reader, key| {
            match key {
                "timestamp-ms" => timestamp_ms = Some(reader.int64(key)?),
                "metadata-file" => file = Some(reader.string(key)?.into_owned()),
                _ => extras.keep(key, reader.skip()?),
            }
            Ok(())
        })?;
        match (timestamp_ms, file) {
            (Some(timestamp_ms), Some(file)) => Ok(MetadataLogEntry { timestamp_ms, file, extras }),
            _ => Err(Error::Invalid("metadata-log entry without timestamp-ms or metadata-file".to_owned())),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = write::Object::begin(out);
        object.int("timestamp-ms", self.timestamp_ms);
        object.string("metadata-file", &self.file);
        object.extras(&self.extras);
        object.end();
    }
}
