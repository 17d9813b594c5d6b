//! What must hold of a table for a commit to apply (REST specification, `TableRequirement`).
//!
//! The texts of failures are matched by clients' test suites: they are part of the protocol.

use super::{
    Error, Result,
    json::{Members, Reader},
    metadata::TableMetadata,
};

#[derive(Debug, Clone)]
pub enum Requirement {
    Create,
    TableUuid(String),
    /// `snapshot_id` is `None` when the ref must not exist.
    RefSnapshotId {
        name: String,
        snapshot_id: Option<i64>,
    },
    LastAssignedFieldId(i32),
    CurrentSchemaId(i32),
    LastAssignedPartitionId(i32),
    DefaultSpecId(i32),
    DefaultSortOrderId(i32),
}

impl Requirement {
    /// # Errors
    /// `Error::Invalid` for unknown types, requirements on views, and missing fields.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut members = Members::read(reader)?;
        let text = members.required("type", |reader, key| Ok(reader.string(key)?.into_owned()))?;
        let string = |reader: &mut Reader<'_>, key: &str| Ok(reader.string(key)?.into_owned());
        match text.to_ascii_lowercase().as_str() {
            "assert-create" => Ok(Requirement::Create),
            "assert-table-uuid" => members.required("uuid", string).map(Requirement::TableUuid),
            "assert-ref-snapshot-id" => Ok(Requirement::RefSnapshotId {
                name: members.required("ref", string)?,
                snapshot_id: members.optional("snapshot-id", Reader::int64)?,
            }),
            "assert-last-assigned-field-id" => {
                members.required("last-assigned-field-id", Reader::int32).map(Requirement::LastAssignedFieldId)
            }
            "assert-current-schema-id" => {
                members.required("current-schema-id", Reader::int32).map(Requirement::CurrentSchemaId)
            }
            "assert-last-assigned-partition-id" => {
                members.required("last-assigned-partition-id", Reader::int32).map(Requirement::LastAssignedPartitionId)
            }
            "assert-default-spec-id" => {
                members.required("default-spec-id", Reader::int32).map(Requirement::DefaultSpecId)
            }
            "assert-default-sort-order-id" => {
                members.required("default-sort-order-id", Reader::int32).map(Requirement::DefaultSortOrderId)
            }
            "assert-view-uuid" => Err(Error::Invalid("requirement is for views only: assert-view-uuid".to_owned())),
            _ => Err(Error::Invalid(format!("unknown requirement: {text}"))),
        }
    }

    /// # Errors
    /// `Error::Conflict` when the table is not as required.
    pub fn check(&self, base: &TableMetadata) -> Result<()> {
        match self {
            Requirement::Create => Err(failed("table already exists".to_owned())),
            Requirement::TableUuid(expected) => {
                let uuid = base.uuid().map(|uuid| uuid.to_string()).unwrap_or_default();
                if uuid.eq_ignore_ascii_case(expected) {
                    return Ok(());
                }
                Err(failed(format!("UUID does not match: expected {uuid} != {expected}")))
            }
            Requirement::RefSnapshotId { name, snapshot_id } => check_ref(base, name, *snapshot_id),
            Requirement::LastAssignedFieldId(expected) => {
                check_id("last assigned field id", *expected, base.last_column_id)
            }
            Requirement::CurrentSchemaId(expected) => check_id("current schema", *expected, base.current_schema_id),
            Requirement::LastAssignedPartitionId(expected) => {
                check_id("last assigned partition id", *expected, base.last_partition_id)
            }
            Requirement::DefaultSpecId(expected) => check_id("default partition spec", *expected, base.default_spec_id),
            Requirement::DefaultSortOrderId(expected) => {
                check_id("default sort order", *expected, base.default_sort_order_id)
            }
        }
    }
}

fn check_id(what: &str, expected: i32, found: i32) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(failed(format!("{what} changed: expected id {expected} != {found}")))
}

fn check_ref(base: &TableMetadata, name: &str, expected: Option<i64>) -> Result<()> {
    match (base.refs.get(name), expected) {
        (None, None) => Ok(()),
        (Some(reference), Some(expected)) if reference.snapshot_id == expected => Ok(()),
        (Some(reference), None) => Err(failed(format!("{} {name} was created concurrently", reference.kind.as_str()))),
        (Some(reference), Some(expected)) => Err(failed(format!(
            "{} {name} has changed: expected id {expected} != {}",
            reference.kind.as_str(),
            reference.snapshot_id
        ))),
        (None, Some(expected)) => Err(failed(format!("branch or tag {name} is missing, expected {expected}"))),
    }
}

fn failed(problem: String) -> Error {
    Error::Conflict(format!("Requirement failed: {problem}"))
}
