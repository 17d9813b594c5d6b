//! Table metadata, formats V1 to V3: parsed, validated, and written back with every unknown field in place.
//!
//! The content of one metadata file as a value. Its lists are shared between versions, so that a clone costs little
//! and a commit copies only what it touches. Reading is in `parse`, writing in `write`, changing in `builder`.

mod parse;
mod write;

pub(super) use parse::{CLOCK_SKEW_MS, check_unique};

use super::{
    Result,
    json::Extras,
    partition::PartitionSpec,
    properties::{self, MetadataCodec},
    schema::Schema,
    snapshot::{MetadataLogEntry, Snapshot, SnapshotLogEntry, SnapshotRef},
    sort::SortOrder,
    statistics::{EncryptionKey, StatisticsFile},
};
use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

/// The newest format version we read and write.
pub const FORMAT_VERSION_MAX: u8 = 3;

/// The content of one metadata file.
#[derive(Debug, Clone, PartialEq)]
pub struct TableMetadata {
    pub(super) format_version: u8,
    pub(super) uuid: Option<uuid::Uuid>,
    pub(super) location: String,
    pub(super) last_sequence_number: i64,
    pub(super) last_updated_ms: i64,
    pub(super) last_column_id: i32,
    pub(super) current_schema_id: i32,
    pub(super) schemas: Vec<Arc<Schema>>,
    pub(super) default_spec_id: i32,
    pub(super) specs: Arc<Vec<PartitionSpec>>,
    pub(super) last_partition_id: i32,
    pub(super) default_sort_order_id: i32,
    pub(super) sort_orders: Arc<Vec<SortOrder>>,
    pub(super) properties: Arc<BTreeMap<String, String>>,
    pub(super) current_snapshot_id: Option<i64>,
    /// Whether the file said -1 for "no current snapshot", as the reference writer does below V3.
    pub(super) writes_minus_one: bool,
    pub(super) refs: Arc<BTreeMap<String, SnapshotRef>>,
    pub(super) snapshots: Arc<Vec<Snapshot>>,
    pub(super) snapshot_log: Arc<Vec<SnapshotLogEntry>>,
    pub(super) metadata_log: Arc<Vec<MetadataLogEntry>>,
    pub(super) statistics: Arc<Vec<StatisticsFile>>,
    pub(super) partition_statistics: Arc<Vec<StatisticsFile>>,
    pub(super) next_row_id: i64,
    pub(super) encryption_keys: Arc<Vec<EncryptionKey>>,
    pub(super) extras: Extras,
}

impl TableMetadata {
    pub fn format_version(&self) -> u8 {
        self.format_version
    }

    /// `None` only for V1 files that never had one.
    pub fn uuid(&self) -> Option<uuid::Uuid> {
        self.uuid
    }

    /// The metadata with `uuid` where the file had none. A V1 table without one needs the same at every load.
    #[must_use]
    pub fn or_uuid(mut self, uuid: uuid::Uuid) -> Self {
        self.uuid.get_or_insert(uuid);
        self
    }

    /// The table's base location, without a trailing slash.
    pub fn location(&self) -> &str {
        &self.location
    }

    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        self.properties.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// How this table's metadata files are compressed.
    pub fn metadata_codec(&self) -> MetadataCodec {
        MetadataCodec::of(&self.properties).unwrap_or(MetadataCodec::None)
    }

    /// Whether data files are this table's alone, and go with it (`gc.enabled`; what is not true counts as false).
    pub fn collects_garbage(&self) -> bool {
        self.property(properties::GC_ENABLED).is_none_or(|value| value.eq_ignore_ascii_case("true"))
    }

    pub fn last_updated_ms(&self) -> i64 {
        self.last_updated_ms
    }

    pub fn last_sequence_number(&self) -> i64 {
        self.last_sequence_number
    }

    /// Every location the metadata records for files of the table: `location`, `write.data.path`, `write.metadata.path`, ….
    pub fn recorded_locations(&self) -> Vec<&str> {
        let paths = properties::PATHS.into_iter().filter_map(|key| self.property(key));
        std::iter::once(self.location()).chain(paths).collect()
    }

    pub fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.schemas.iter().map(|schema| &**schema)
    }

    pub fn schema(&self, id: i32) -> Option<&Schema> {
        self.schemas().find(|schema| schema.id() == id)
    }

    pub fn current_schema_id(&self) -> i32 {
        self.current_schema_id
    }

    /// The current schema; `None` never happens in parsed or committed metadata.
    pub fn current_schema(&self) -> Option<&Schema> {
        self.schema(self.current_schema_id)
    }

    pub fn specs(&self) -> &[PartitionSpec] {
        &self.specs
    }

    /// The default spec; `None` never happens in parsed or committed metadata.
    pub fn default_spec(&self) -> Option<&PartitionSpec> {
        self.specs.iter().find(|spec| spec.id == self.default_spec_id)
    }

    pub fn sort_orders(&self) -> &[SortOrder] {
        &self.sort_orders
    }

    /// The default sort order; `None` never happens in parsed or committed metadata.
    pub fn default_sort_order(&self) -> Option<&SortOrder> {
        self.sort_orders.iter().find(|order| order.id == self.default_sort_order_id)
    }

    /// Checks that rows of the current schema can be partitioned and sorted as the defaults say. Stored files are served
    /// either way; one that enters the catalog is held to it.
    ///
    /// # Errors
    /// `Error::Invalid` naming the source column.
    pub fn check_defaults(&self) -> Result<()> {
        let Some(schema) = self.current_schema() else { return Ok(()) };
        self.default_spec().map_or(Ok(()), |spec| spec.check_binding(schema))?;
        self.default_sort_order().map_or(Ok(()), |order| order.check_binding(schema))
    }

    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    pub fn snapshot(&self, id: i64) -> Option<&Snapshot> {
        self.snapshots.iter().find(|snapshot| snapshot.id == id)
    }

    pub fn current_snapshot_id(&self) -> Option<i64> {
        self.current_snapshot_id
    }

    /// Branches and tags by name, in the order of their names.
    pub fn refs(&self) -> impl Iterator<Item = (&str, &SnapshotRef)> {
        self.refs.iter().map(|(name, reference)| (name.as_str(), reference))
    }

    /// When which snapshot became current, oldest first.
    pub fn snapshot_log(&self) -> &[SnapshotLogEntry] {
        &self.snapshot_log
    }

    /// Metadata files of earlier versions, oldest first (`metadata-log`).
    pub fn metadata_log(&self) -> Vec<&str> {
        self.metadata_log.iter().map(|entry| entry.file.as_str()).collect()
    }

    /// Metadata files `base` remembers that this version does not: what a table with
    /// `write.metadata.delete-after-commit.enabled` deletes once this version is published.
    pub fn removed_from_log<'b>(&self, base: &'b TableMetadata) -> Vec<&'b str> {
        let kept: HashSet<_> = self.metadata_log().into_iter().collect();
        base.metadata_log().into_iter().filter(|file| !kept.contains(file)).collect()
    }

    /// Manifest lists of all snapshots (V1 snapshots may list manifests instead: see [`Self::inline_manifests`]).
    pub fn manifest_lists(&self) -> Vec<&str> {
        self.snapshots.iter().filter_map(|snapshot| snapshot.manifest_list.as_deref()).collect()
    }

    pub fn inline_manifests(&self) -> Vec<&str> {
        self.snapshots.iter().flat_map(|snapshot| &snapshot.manifests).map(|manifest| &**manifest).collect()
    }

    /// Statistics and partition statistics files.
    pub fn statistics_files(&self) -> Vec<&str> {
        self.statistics.iter().chain(&*self.partition_statistics).map(|file| file.path.as_str()).collect()
    }
}
