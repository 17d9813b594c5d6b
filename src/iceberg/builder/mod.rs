//! Applies updates to metadata, one after the other, then finishes what a change as a whole entails.
//!
//! Each update either holds to the rules or fails the whole commit; the base is never touched. What only the end
//! result must satisfy (bound defaults, logs, schemas in use) is checked in [`Builder::finish`].

mod layout;
mod snapshots;

pub(super) use layout::resolve;

use super::{
    Error, Result, ensure,
    json::Extras,
    metadata::{FORMAT_VERSION_MAX, TableMetadata},
    partition::FIELD_ID_FIRST,
    properties,
    snapshot::MetadataLogEntry,
    sort::UNSORTED_ID,
    statistics::StatisticsFile,
    update::{LAST_ADDED, Update},
};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};
use uuid::Uuid;

/// Stands for "none yet" in a table being made.
const NO_ID: i32 = -1;

pub struct Builder {
    metadata: TableMetadata,
    now_ms: i64,
    is_changed: bool,
    /// Whether the current schema, the default spec or the default order is another.
    is_layout_changed: bool,
    last_added_schema: Option<i32>,
    last_added_spec: Option<i32>,
    last_added_sort_order: Option<i32>,
    removed_schemas: HashSet<i32>,
    /// Ids of all snapshots, collected when first asked for.
    snapshot_ids: Option<HashSet<i64>>,
    /// Snapshots this request added, with their times.
    added_snapshots: HashMap<i64, i64>,
    /// Snapshots this request added and made current.
    passed_currents: HashSet<i64>,
    is_snapshot_removed: bool,
}

impl Builder {
    /// Starts from a table. `now_ms` is the time of the commit, in milliseconds since 1970.
    pub fn new(base: &TableMetadata, now_ms: i64) -> Self {
        Builder {
            metadata: base.clone(),
            now_ms,
            is_changed: false,
            is_layout_changed: false,
            last_added_schema: None,
            last_added_spec: None,
            last_added_sort_order: None,
            removed_schemas: HashSet::new(),
            snapshot_ids: None,
            added_snapshots: HashMap::new(),
            passed_currents: HashSet::new(),
            is_snapshot_removed: false,
        }
    }

    /// Starts from nothing.
    pub fn empty(format_version: u8, now_ms: i64) -> Self {
        let nothing = TableMetadata {
            format_version,
            uuid: None,
            location: String::new(),
            last_sequence_number: 0,
            last_updated_ms: now_ms,
            last_column_id: 0,
            current_schema_id: NO_ID,
            schemas: Vec::new(),
            default_spec_id: NO_ID,
            specs: Arc::default(),
            last_partition_id: FIELD_ID_FIRST - 1,
            default_sort_order_id: NO_ID,
            sort_orders: Arc::default(),
            properties: Arc::default(),
            current_snapshot_id: None,
            writes_minus_one: false,
            refs: Arc::default(),
            snapshots: Arc::default(),
            snapshot_log: Arc::default(),
            metadata_log: Arc::default(),
            statistics: Arc::default(),
            partition_statistics: Arc::default(),
            next_row_id: 0,
            encryption_keys: Arc::default(),
            extras: Extras::default(),
        };
        Builder::new(&nothing, now_ms)
    }

    /// The table as it is so far.
    pub fn metadata(&self) -> &TableMetadata {
        &self.metadata
    }

    /// What follows is another commit's: "last added" means added by it.
    pub fn begin_commit(&mut self) {
        self.last_added_schema = None;
        self.last_added_spec = None;
        self.last_added_sort_order = None;
    }

    /// Applies one update.
    ///
    /// # Errors
    /// `Error::Invalid` when it breaks a rule, `Error::Conflict` when it was made on state that has moved on.
    pub fn apply(&mut self, update: &Update) -> Result<()> {
        match update {
            Update::AssignUuid(uuid) => self.assign_uuid(*uuid),
            Update::UpgradeFormatVersion(version) => self.upgrade_format_version(*version),
            Update::AddSchema(schema) => self.add_schema(schema),
            Update::SetCurrentSchema(id) => self.set_current_schema(*id),
            Update::AddSpec(spec) => self.add_spec(spec),
            Update::SetDefaultSpec(id) => self.set_default_spec(*id),
            Update::AddSortOrder(order) => self.add_sort_order(order),
            Update::SetDefaultSortOrder(id) => self.set_default_sort_order(*id),
            Update::AddSnapshot(snapshot) => self.add_snapshot(snapshot),
            Update::SetSnapshotRef(name, reference) => self.set_ref(name, reference),
            Update::RemoveSnapshots(ids) => self.remove_snapshots(ids),
            Update::RemoveSnapshotRef(name) => self.remove_ref(name),
            Update::SetLocation(location) => self.set_location(location),
            Update::SetProperties(properties) => self.set_properties(properties),
            Update::RemoveProperties(keys) => self.remove_properties(keys),
            Update::SetStatistics(file) => self.set_statistics(Statistics::Table, file),
            Update::RemoveStatistics(ids) => self.remove_statistics(Statistics::Table, ids),
            Update::SetPartitionStatistics(file) => self.set_statistics(Statistics::Partition, file),
            Update::RemovePartitionStatistics(ids) => self.remove_statistics(Statistics::Partition, ids),
            Update::RemoveSpecs(ids) => self.remove_specs(ids),
            Update::RemoveSchemas(ids) => self.remove_schemas(ids),
            Update::AddEncryptionKey(key) => self.add_encryption_key(key),
            Update::RemoveEncryptionKey(id) => self.remove_encryption_key(id),
        }
    }

    /// The next version of the table whose last file is `base_location`; `None` when nothing changed.
    ///
    /// # Errors
    /// `Error::Invalid` when the updates together break a rule.
    pub fn finish(mut self, base_location: &str) -> Result<Option<TableMetadata>> {
        if !self.is_changed {
            return Ok(None);
        }
        let base_updated_ms = self.metadata.last_updated_ms;
        self.settle()?;
        let log = Arc::make_mut(&mut self.metadata.metadata_log);
        log.push(MetadataLogEntry::new(base_updated_ms, base_location.to_owned()));
        let surplus = log.len().saturating_sub(properties::previous_versions_max(&self.metadata.properties));
        log.drain(..surplus);
        Ok(Some(self.metadata))
    }

    /// The first version of a table. `uuid` is used when none was assigned.
    ///
    /// # Errors
    /// `Error::Invalid` when something a table needs was not set.
    pub fn finish_new(mut self, uuid: Uuid) -> Result<TableMetadata> {
        let metadata = &self.metadata;
        ensure(metadata.current_schema_id != NO_ID, || "a new table needs a current schema".to_owned())?;
        ensure(metadata.default_spec_id != NO_ID, || "a new table needs a default partition spec".to_owned())?;
        ensure(metadata.default_sort_order_id != NO_ID, || "a new table needs a default sort order".to_owned())?;
        ensure(!metadata.location.is_empty(), || "a new table needs a location".to_owned())?;
        // Specs may have been added before the current schema was known.
        if let Some(schema) = metadata.current_schema() {
            metadata.specs.iter().try_for_each(|spec| spec.check_fields(schema))?;
        }
        self.metadata.uuid.get_or_insert(uuid);
        self.settle()?;
        Ok(self.metadata)
    }

    /// What must hold, and be brought about, once all updates are applied.
    fn settle(&mut self) -> Result<()> {
        self.check_defaults()?;
        self.check_removed_schemas()?;
        self.settle_snapshot_log();
        let metadata = &mut self.metadata;
        ensure(metadata.uuid.is_some() || metadata.format_version == 1, || {
            format!("a table of format version {} needs a uuid", metadata.format_version)
        })?;
        // Readers refuse files older than the last entry of their own log, so a writer's fast clock moves ours.
        let logged_ms = metadata.snapshot_log.last().map_or(i64::MIN, |entry| entry.timestamp_ms);
        metadata.last_updated_ms = metadata.last_updated_ms.max(self.now_ms).max(logged_ms);
        Ok(())
    }

    fn change(&mut self) -> &mut TableMetadata {
        self.is_changed = true;
        &mut self.metadata
    }

    fn change_layout(&mut self) -> &mut TableMetadata {
        self.is_layout_changed = true;
        self.change()
    }

    fn assign_uuid(&mut self, uuid: Uuid) -> Result<()> {
        match self.metadata.uuid {
            Some(assigned) => ensure(assigned == uuid, || format!("cannot reassign uuid: {assigned} to {uuid}")),
            None => {
                self.change().uuid = Some(uuid);
                Ok(())
            }
        }
    }

    fn upgrade_format_version(&mut self, version: i32) -> Result<()> {
        let current = self.metadata.format_version;
        let supported = u8::try_from(version).ok().filter(|version| *version <= FORMAT_VERSION_MAX);
        let version = supported.ok_or_else(|| {
            Error::Invalid(format!(
                "cannot upgrade table to unsupported format version: v{version} (supported: v{FORMAT_VERSION_MAX})"
            ))
        })?;
        ensure(version >= current, || format!("cannot downgrade v{current} table to v{version}"))?;
        if version > current {
            let metadata = self.change();
            metadata.format_version = version;
            metadata.writes_minus_one &= version < 3;
        }
        Ok(())
    }

    fn set_location(&mut self, location: &str) -> Result<()> {
        if self.metadata.location != location {
            location.clone_into(&mut self.change().location);
        }
        Ok(())
    }

    fn set_properties(&mut self, updates: &[(String, String)]) -> Result<()> {
        for (key, value) in updates.iter().filter(|(key, _)| !properties::is_reserved(key)) {
            properties::check(key, value)?;
            if self.metadata.property(key) != Some(value) {
                Arc::make_mut(&mut self.change().properties).insert(key.clone(), value.clone());
            }
        }
        Ok(())
    }

    fn remove_properties(&mut self, keys: &[String]) -> Result<()> {
        for key in keys {
            if self.metadata.property(key).is_some() {
                Arc::make_mut(&mut self.change().properties).remove(key);
            }
        }
        Ok(())
    }

    /// The list a statistics update is about.
    fn statistics(&mut self, kind: Statistics) -> &mut Arc<Vec<StatisticsFile>> {
        match kind {
            Statistics::Table => &mut self.metadata.statistics,
            Statistics::Partition => &mut self.metadata.partition_statistics,
        }
    }

    /// One file a snapshot and kind: a new one replaces the old.
    fn set_statistics(&mut self, kind: Statistics, file: &StatisticsFile) -> Result<()> {
        if !self.statistics(kind).contains(file) {
            let files = Arc::make_mut(self.statistics(kind));
            files.retain(|old| old.snapshot_id != file.snapshot_id);
            files.push(file.clone());
            self.is_changed = true;
        }
        Ok(())
    }

    fn remove_statistics(&mut self, kind: Statistics, snapshot_ids: &[i64]) -> Result<()> {
        self.remove_statistics_of(kind, &snapshot_ids.iter().copied().collect());
        Ok(())
    }

    fn remove_statistics_of(&mut self, kind: Statistics, snapshot_ids: &HashSet<i64>) {
        let files = self.statistics(kind);
        if files.iter().any(|file| snapshot_ids.contains(&file.snapshot_id)) {
            Arc::make_mut(files).retain(|file| !snapshot_ids.contains(&file.snapshot_id));
            self.is_changed = true;
        }
    }

    fn add_encryption_key(&mut self, key: &super::statistics::EncryptionKey) -> Result<()> {
        let version = self.metadata.format_version;
        ensure(version >= 3, || format!("encryption keys are not supported until v3, the table is v{version}"))?;
        if !self.metadata.encryption_keys.iter().any(|known| known.key_id == key.key_id) {
            Arc::make_mut(&mut self.change().encryption_keys).push(key.clone());
        }
        Ok(())
    }

    fn remove_encryption_key(&mut self, id: &str) -> Result<()> {
        if self.metadata.encryption_keys.iter().any(|key| key.key_id == id) {
            Arc::make_mut(&mut self.change().encryption_keys).retain(|key| key.key_id != id);
        }
        Ok(())
    }
}

/// The two kinds of statistics files a snapshot can have.
#[derive(Debug, Clone, Copy)]
enum Statistics {
    Table,
    Partition,
}

/// The id of an equal item already there, or else the next free one, counted from `first`.
pub(super) fn reused_or_next<'a, T: 'a>(
    items: impl Iterator<Item = &'a T>,
    first: i32,
    id: impl Fn(&T) -> i32,
    is_same: impl Fn(&T) -> bool,
) -> Result<NewId> {
    let mut next = first;
    for item in items {
        if is_same(item) {
            return Ok(NewId::Known(id(item)));
        }
        next = next.max(id(item).checked_add(1).ok_or_else(|| Error::Invalid("ids are exhausted".to_owned()))?);
    }
    Ok(NewId::Next(next))
}

pub(super) enum NewId {
    Known(i32),
    Next(i32),
}
