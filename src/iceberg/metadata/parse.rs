//! Reads metadata files (table specification, "Table Metadata Fields").
//!
//! What the reference readers refuse is refused here, so that nothing is served that clients cannot load. What they
//! let pass in a stored file passes: old specs over dropped columns, unknown transforms, columns of odd types.

use super::{FORMAT_VERSION_MAX, TableMetadata};
use crate::iceberg::{
    Error, Result, ensure,
    json::{Extras, Members, Reader},
    location,
    partition::{FIELD_ID_FIRST, PartitionSpec},
    schema::Schema,
    snapshot::{MAIN, MetadataLogEntry, RefKind, Snapshot, SnapshotLogEntry, SnapshotRef},
    sort::{SortOrder, UNSORTED_ID},
    statistics::{EncryptionKey, StatisticsFile},
};
use std::{
    collections::{BTreeMap, HashSet},
    hash::Hash,
    sync::Arc,
};

/// How far clocks of writers may differ: logs may step back this much.
pub const CLOCK_SKEW_MS: i64 = 60_000;

impl TableMetadata {
    /// Parses a metadata file (plain JSON; the caller has undone any gzip).
    ///
    /// # Errors
    /// `Error::Invalid` naming the rule broken (table specification, "Table Metadata Fields").
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let file = Reader::whole(bytes, File::read)?;
        let metadata = file.into_metadata()?;
        metadata.check()?;
        Ok(metadata)
    }

    /// The rules that hold between fields.
    fn check(&self) -> Result<()> {
        ensure(self.default_spec().is_some(), || {
            format!("default partition spec not found: {}", self.default_spec_id)
        })?;
        ensure(self.default_sort_order().is_some(), || {
            format!("default sort order not found: {}", self.default_sort_order_id)
        })?;
        check_unique("schema", self.schemas().map(Schema::id))?;
        check_unique("partition spec", self.specs.iter().map(|spec| spec.id))?;
        check_unique("sort order", self.sort_orders.iter().map(|order| order.id))?;
        check_unique("encryption key", self.encryption_keys.iter().map(|key| key.key_id.as_str()))?;
        let snapshot_ids = check_unique("snapshot", self.snapshots.iter().map(|snapshot| snapshot.id))?;
        for snapshot in &*self.snapshots {
            ensure(snapshot.sequence_number <= self.last_sequence_number, || {
                format!(
                    "snapshot {} has sequence number {}, over the last sequence number {}",
                    snapshot.id, snapshot.sequence_number, self.last_sequence_number
                )
            })?;
        }
        self.check_refs(&snapshot_ids)?;
        self.check_logs()
    }

    fn check_refs(&self, snapshot_ids: &HashSet<i64>) -> Result<()> {
        for (name, reference) in &*self.refs {
            ensure(snapshot_ids.contains(&reference.snapshot_id), || {
                format!("snapshot reference {name} points at an unknown snapshot: {}", reference.snapshot_id)
            })?;
        }
        match (self.refs.get(MAIN), self.current_snapshot_id) {
            (Some(main), _) if main.kind == RefKind::Tag => Err(Error::Invalid("main must be a branch".to_owned())),
            (Some(main), current) => ensure(Some(main.snapshot_id) == current, || match current {
                Some(current) => {
                    format!("current snapshot does not match the main branch: {current} != {}", main.snapshot_id)
                }
                None => "the main branch is set, but there is no current snapshot".to_owned(),
            }),
            (None, _) => Ok(()),
        }
    }

    fn check_logs(&self) -> Result<()> {
        let snapshot_times = self.snapshot_log.iter().map(|entry| entry.timestamp_ms);
        let metadata_times = self.metadata_log.iter().map(|entry| entry.timestamp_ms);
        check_ascending("snapshot-log", snapshot_times.chain([self.last_updated_ms]))?;
        check_ascending("metadata-log", metadata_times.chain([self.last_updated_ms]))
    }
}

pub(in crate::iceberg) fn check_unique<T>(kind: &str, ids: impl Iterator<Item = T>) -> Result<HashSet<T>>
where
    T: Hash + Eq + std::fmt::Display + Copy,
{
    let mut seen = HashSet::new();
    for id in ids {
        ensure(seen.insert(id), || format!("{kind} id occurs twice: {id}"))?;
    }
    Ok(seen)
}

fn check_ascending(log: &str, times: impl Iterator<Item = i64>) -> Result<()> {
    let mut last = i64::MIN;
    for time in times {
        ensure(time >= last.saturating_sub(CLOCK_SKEW_MS), || {
            format!("{log} and last-updated-ms must ascend: {time} follows {last}")
        })?;
        last = time;
    }
    Ok(())
}

/// The members of a file: the long lists read in place, the others by version.
#[derive(Default)]
struct File<'a> {
    snapshots: Vec<Snapshot>,
    snapshot_log: Vec<SnapshotLogEntry>,
    members: Members<'a>,
}

impl<'a> File<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let mut file = File::default();
        reader.members(|reader, key| {
            match key {
                "snapshots" => {
                    file.snapshots = reader.optional(|reader| reader.list(Snapshot::read))?.unwrap_or_default();
                }
                "snapshot-log" => {
                    let log = reader.optional(|reader| reader.list(SnapshotLogEntry::read))?;
                    file.snapshot_log = log.unwrap_or_default();
                }
                _ => file.members.add(key, reader.skip()?),
            }
            Ok(())
        })?;
        Ok(file)
    }

    fn into_metadata(self) -> Result<TableMetadata> {
        let File { snapshots, snapshot_log, mut members } = self;
        let format_version = members.required("format-version", Reader::int32)?;
        let format_version = u8::try_from(format_version)
            .ok()
            .filter(|version| (1..=FORMAT_VERSION_MAX).contains(version))
            .ok_or_else(|| Error::Invalid(format!("unsupported format version: v{format_version}")))?;
        let uuid = members.optional("table-uuid", Reader::uuid)?;
        ensure(uuid.is_some() || format_version == 1, || "missing field: table-uuid".to_owned())?;
        let location = members.required("location", |reader, key| location::stripped(&reader.string(key)?))?;
        let last_sequence_number = match format_version {
            1 => 0,
            _ => members.required("last-sequence-number", Reader::int64)?,
        };
        let schemas = if format_version == 1 { Schemas::read_v1(&mut members)? } else { Schemas::read(&mut members)? };
        let specs = if format_version == 1 { Specs::read_v1(&mut members)? } else { Specs::read(&mut members)? };
        let orders = Orders::read(&mut members, format_version)?;
        let recorded = members.optional("current-snapshot-id", Reader::int64)?;
        let current_snapshot_id = recorded.filter(|&id| id >= 0);
        Ok(TableMetadata {
            format_version,
            uuid,
            location,
            last_sequence_number,
            last_updated_ms: members.required("last-updated-ms", Reader::int64)?,
            last_column_id: members.required("last-column-id", Reader::int32)?,
            current_schema_id: schemas.current_id,
            schemas: schemas.list,
            default_spec_id: specs.default_id,
            specs: Arc::new(specs.list),
            last_partition_id: specs.last_field_id,
            default_sort_order_id: orders.default_id,
            sort_orders: Arc::new(orders.list),
            properties: Arc::new(read_properties(&mut members)?),
            current_snapshot_id,
            writes_minus_one: format_version < 3 && recorded.is_some() && current_snapshot_id.is_none(),
            refs: Arc::new(read_refs(&mut members, current_snapshot_id)?),
            snapshots: Arc::new(snapshots),
            snapshot_log: Arc::new(snapshot_log),
            metadata_log: Arc::new(read_list(&mut members, "metadata-log", MetadataLogEntry::read)?),
            statistics: Arc::new(read_list(&mut members, "statistics", StatisticsFile::read)?),
            partition_statistics: Arc::new(read_list(&mut members, "partition-statistics", StatisticsFile::read)?),
            next_row_id: match format_version {
                3 => members.required("next-row-id", Reader::int64)?,
                _ => 0,
            },
            encryption_keys: Arc::new(read_list(&mut members, "encryption-keys", EncryptionKey::read)?),
            extras: rest(members),
        })
    }
}

/// What is left are unknown fields, besides known ones of other versions: a stale copy of those must not stay behind.
fn rest(mut members: Members<'_>) -> Extras {
    members.remove(&["schema", "partition-spec", "last-sequence-number", "next-row-id"]);
    members.extras()
}

fn read_list<'a, T>(
    members: &mut Members<'a>,
    key: &str,
    each: impl FnMut(&mut Reader<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    Ok(members.optional(key, |reader, _| reader.list(each))?.unwrap_or_default())
}

fn read_properties(members: &mut Members<'_>) -> Result<BTreeMap<String, String>> {
    Ok(members.optional("properties", Reader::string_map)?.unwrap_or_default().into_iter().collect())
}

/// A file with a current snapshot but no `main` means one ("refs": "there is always a main branch").
fn read_refs(members: &mut Members<'_>, current_snapshot_id: Option<i64>) -> Result<BTreeMap<String, SnapshotRef>> {
    let mut refs = BTreeMap::new();
    members.optional("refs", |reader, _| {
        reader.members(|reader, name| {
            refs.insert(name.to_owned(), SnapshotRef::read(reader)?);
            Ok(())
        })
    })?;
    if let Some(id) = current_snapshot_id {
        refs.entry(MAIN.to_owned()).or_insert_with(|| SnapshotRef::branch(id));
    }
    Ok(refs)
}

struct Schemas {
    list: Vec<Arc<Schema>>,
    current_id: i32,
}

impl Schemas {
    fn new(list: Vec<Schema>, current_id: i32) -> Result<Self> {
        let is_known = list.iter().any(|schema| schema.id() == current_id);
        ensure(is_known, || format!("current schema not found: {current_id}"))?;
        Ok(Schemas { list: list.into_iter().map(Arc::new).collect(), current_id })
    }

    fn read(members: &mut Members<'_>) -> Result<Self> {
        let list = members.required("schemas", |reader, _| reader.list(Schema::read))?;
        let current_id = members.required("current-schema-id", Reader::int32)?;
        Schemas::new(list, current_id)
    }

    /// V1 has `schema`, `schemas` or both; without an id the current one is the `schema`.
    fn read_v1(members: &mut Members<'_>) -> Result<Self> {
        let single = members.optional("schema", |reader, _| Schema::read(reader))?;
        let list = read_list(members, "schemas", Schema::read)?;
        let current_id = members.optional("current-schema-id", Reader::int32)?;
        let (list, current_id) = match (single, current_id) {
            (Some(schema), _) if list.is_empty() => {
                let id = schema.id();
                (vec![schema], id)
            }
            (_, Some(current_id)) => (list, current_id),
            (Some(schema), None) => {
                let listed = list.iter().find(|listed| listed.is_same(&schema)).map(Schema::id);
                (list, listed.unwrap_or_else(|| schema.id()))
            }
            (None, None) => return Err(Error::Invalid("missing field: schema".to_owned())),
        };
        Schemas::new(list, current_id)
    }
}

struct Specs {
    list: Vec<PartitionSpec>,
    default_id: i32,
    last_field_id: i32,
}

impl Specs {
    fn read(members: &mut Members<'_>) -> Result<Self> {
        let list = members.required("partition-specs", |reader, _| reader.list(PartitionSpec::read))?;
        Ok(Specs {
            list,
            default_id: members.required("default-spec-id", Reader::int32)?,
            last_field_id: members.required("last-partition-id", Reader::int32)?,
        })
    }

    /// V1 has `partition-spec`, `partition-specs` or both, and may leave out the ids.
    fn read_v1(members: &mut Members<'_>) -> Result<Self> {
        let single = members.optional("partition-spec", |reader, _| PartitionSpec::read_fields(reader))?;
        let mut list = read_list(members, "partition-specs", PartitionSpec::read)?;
        let default_id = members.optional("default-spec-id", Reader::int32)?;
        if list.is_empty() {
            let fields = single.ok_or_else(|| Error::Invalid("missing field: partition-spec".to_owned()))?;
            list.push(PartitionSpec::new(default_id.unwrap_or(0), fields));
        }
        let highest_id = list.iter().map(|spec| spec.id).max();
        let highest_field_id = list.iter().map(PartitionSpec::last_field_id).max();
        Ok(Specs {
            list,
            default_id: default_id.or(highest_id).unwrap_or(0),
            last_field_id: members
                .optional("last-partition-id", Reader::int32)?
                .or(highest_field_id)
                .unwrap_or(FIELD_ID_FIRST - 1),
        })
    }
}

struct Orders {
    list: Vec<SortOrder>,
    default_id: i32,
}

impl Orders {
    /// V1 may leave out both fields: then the table is unsorted.
    fn read(members: &mut Members<'_>, format_version: u8) -> Result<Self> {
        let list = members.optional("sort-orders", |reader, _| reader.list(SortOrder::read))?;
        let default_id = members.optional("default-sort-order-id", Reader::int32)?;
        let missing = |field: &str| Error::Invalid(format!("missing field: {field}"));
        match (list, default_id) {
            (Some(list), Some(default_id)) => Ok(Orders { list, default_id }),
            (Some(list), None) if format_version == 1 && !list.is_empty() => {
                Ok(Orders { list, default_id: UNSORTED_ID })
            }
            (_, default_id) if format_version == 1 => {
                Ok(Orders { list: vec![SortOrder::unsorted()], default_id: default_id.unwrap_or(UNSORTED_ID) })
            }
            (None, _) => Err(missing("sort-orders")),
            (Some(_), None) => Err(missing("default-sort-order-id")),
        }
    }
}
