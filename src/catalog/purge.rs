//! The order to purge a dropped table's files: recorded with the drop, carried out by `jobs/purge.rs`.

use super::warehouses::Warehouse;
use crate::db::{jobs::NewJob, tables::TableRow};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub const KIND: &str = "purge";

/// What to purge: a table as it was when it was dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub warehouse: String,
    pub table: Uuid,
    pub location: String,
    pub metadata_location: String,
}

impl Order {
    pub fn new(warehouse: &Warehouse, row: &TableRow) -> Order {
        Order {
            warehouse: warehouse.name.clone(),
            table: row.id,
            location: row.location.clone(),
            metadata_location: row.metadata_location.clone(),
        }
    }

    pub fn job(&self, now_ms: i64) -> NewJob {
        // Strings and a uuid always serialise.
        let payload = serde_json::to_string(self).unwrap_or_default();
        NewJob { kind: KIND.to_owned(), payload, not_before_ms: now_ms }
    }

    /// # Errors
    /// When `payload` is not what [`Order::job`] writes.
    pub fn parse(payload: &str) -> Result<Order, serde_json::Error> {
        serde_json::from_str(payload)
    }
}
