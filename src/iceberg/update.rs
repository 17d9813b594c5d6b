//! The changes a commit makes (REST specification, `TableUpdate`): 23 actions, parsed. `builder` applies them.

use super::{
    Error, Result, ensure,
    json::{Members, Reader},
    location,
    partition::UnboundSpec,
    schema::Schema,
    snapshot::{Snapshot, SnapshotRef},
    sort::SortOrder,
    statistics::{EncryptionKey, StatisticsFile},
};
use uuid::Uuid;

/// Stands for the schema, spec or order added last in the same request.
pub const LAST_ADDED: i32 = -1;

/// Updates in a commit, joined removals counted as one: each may have to look through what the others added.
pub const UPDATES_MAX: usize = 10_000;

#[derive(Debug, Clone)]
pub enum Update {
    AssignUuid(Uuid),
    UpgradeFormatVersion(i32),
    AddSchema(Schema),
    SetCurrentSchema(i32),
    AddSpec(UnboundSpec),
    SetDefaultSpec(i32),
    AddSortOrder(SortOrder),
    SetDefaultSortOrder(i32),
    AddSnapshot(Snapshot),
    SetSnapshotRef(String, SnapshotRef),
    RemoveSnapshots(Vec<i64>),
    RemoveSnapshotRef(String),
    SetLocation(String),
    SetProperties(Vec<(String, String)>),
    RemoveProperties(Vec<String>),
    SetStatistics(StatisticsFile),
    RemoveStatistics(Vec<i64>),
    SetPartitionStatistics(StatisticsFile),
    RemovePartitionStatistics(Vec<i64>),
    RemoveSpecs(Vec<i32>),
    RemoveSchemas(Vec<i32>),
    AddEncryptionKey(EncryptionKey),
    RemoveEncryptionKey(String),
}

impl Update {
    /// # Errors
    /// `Error::Invalid` for unknown actions, actions on views, and fields that are missing or malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut members = Members::read(reader)?;
        let action = members.required("action", Reader::text)?;
        match action.to_ascii_lowercase().as_str() {
            "assign-uuid" => members.required("uuid", Reader::uuid).map(Update::AssignUuid),
            "upgrade-format-version" => {
                members.required("format-version", Reader::int32).map(Update::UpgradeFormatVersion)
            }
            "add-schema" => members.required("schema", |reader, _| Schema::read(reader)).map(Update::AddSchema),
            "set-current-schema" => members.required("schema-id", Reader::int32).map(Update::SetCurrentSchema),
            "remove-schemas" => members.required("schema-ids", Reader::int32_list).map(Update::RemoveSchemas),
            "add-spec" => members.required("spec", |reader, _| UnboundSpec::read(reader)).map(Update::AddSpec),
            "set-default-spec" => members.required("spec-id", Reader::int32).map(Update::SetDefaultSpec),
            "remove-partition-specs" => members.required("spec-ids", Reader::int32_list).map(Update::RemoveSpecs),
            "add-sort-order" => {
                members.required("sort-order", |reader, _| SortOrder::read(reader)).map(Update::AddSortOrder)
            }
            "set-default-sort-order" => {
                members.required("sort-order-id", Reader::int32).map(Update::SetDefaultSortOrder)
            }
            "set-location" => members
                .required("location", |reader, key| location::stripped(&reader.string(key)?))
                .map(Update::SetLocation),
            "set-properties" => {
                renamed(&mut members, ["updates", "updated"], Reader::string_map).map(Update::SetProperties)
            }
            "remove-properties" => {
                renamed(&mut members, ["removals", "removed"], Reader::string_list).map(Update::RemoveProperties)
            }
            "add-view-version" | "set-current-view-version" => {
                Err(Error::Invalid(format!("update is for views only: {action}")))
            }
            known => match Self::read_snapshot_action(known, &mut members) {
                Some(update) => update,
                None => Err(Error::Invalid(format!("unknown update: {action}"))),
            },
        }
    }

    /// Adds an update to a list. Older clients remove snapshots, and statistics with them, one update each, ten thousands
    /// in a request: those are joined, so that the table is gone through once. The order among them does not matter.
    ///
    /// # Errors
    /// `Error::Invalid` when there are more than [`UPDATES_MAX`] even so.
    pub fn push(updates: &mut Vec<Update>, update: Update) -> Result<()> {
        let Some(ids) = update.removed_ids() else { return Self::push_own(updates, update) };
        let kind = std::mem::discriminant(&update);
        for earlier in updates.iter_mut().rev() {
            let is_same = std::mem::discriminant(earlier) == kind;
            match earlier {
                Update::RemoveSnapshots(list)
                | Update::RemoveStatistics(list)
                | Update::RemovePartitionStatistics(list) => {
                    if is_same {
                        list.extend(ids);
                        return Ok(());
                    }
                }
                _ => break,
            }
        }
        Self::push_own(updates, update)
    }

    fn push_own(updates: &mut Vec<Update>, update: Update) -> Result<()> {
        ensure(updates.len() < UPDATES_MAX, || format!("a commit has at most {UPDATES_MAX} updates"))?;
        updates.push(update);
        Ok(())
    }

    fn removed_ids(&self) -> Option<&[i64]> {
        match self {
            Update::RemoveSnapshots(ids) | Update::RemoveStatistics(ids) | Update::RemovePartitionStatistics(ids) => {
                Some(ids)
            }
            _ => None,
        }
    }

    /// Actions on snapshots and on what hangs on them; `None` for others.
    fn read_snapshot_action(action: &str, members: &mut Members<'_>) -> Option<Result<Self>> {
        Some(match action {
            "add-snapshot" => members.required("snapshot", |reader, _| Snapshot::read(reader)).map(Update::AddSnapshot),
            "remove-snapshots" => members.required("snapshot-ids", Reader::int64_list).map(Update::RemoveSnapshots),
            "set-snapshot-ref" => read_set_ref(members),
            "remove-snapshot-ref" => members.required("ref-name", Reader::text).map(Update::RemoveSnapshotRef),
            "set-statistics" => {
                members.required("statistics", |reader, _| StatisticsFile::read_new(reader)).map(Update::SetStatistics)
            }
            "remove-statistics" => {
                members.required("snapshot-id", Reader::int64).map(|id| Update::RemoveStatistics(vec![id]))
            }
            "set-partition-statistics" => members
                .required("partition-statistics", |reader, _| StatisticsFile::read_new_partition(reader))
                .map(Update::SetPartitionStatistics),
            "remove-partition-statistics" => {
                members.required("snapshot-id", Reader::int64).map(|id| Update::RemovePartitionStatistics(vec![id]))
            }
            "add-encryption-key" => members
                .required("encryption-key", |reader, _| EncryptionKey::read_new(reader))
                .map(Update::AddEncryptionKey),
            "remove-encryption-key" => members.required("key-id", Reader::text).map(Update::RemoveEncryptionKey),
            _ => return None,
        })
    }
}

/// The fields of the ref stand beside `action` and `ref-name`.
fn read_set_ref(members: &mut Members<'_>) -> Result<Update> {
    let name = members.required("ref-name", Reader::text)?;
    let reference = SnapshotRef::from_members(std::mem::take(members))?;
    Ok(Update::SetSnapshotRef(name, reference))
}

/// A field under its name, or else under the one older clients use.
pub(super) fn renamed<'a, T>(
    members: &mut Members<'a>,
    [name, old]: [&str; 2],
    read: impl Fn(&mut Reader<'a>, &str) -> Result<T>,
) -> Result<T> {
    match members.optional(name, &read)? {
        Some(value) => Ok(value),
        None => members.optional(old, read)?.ok_or_else(|| Error::Invalid(format!("missing field: {name}"))),
    }
}
