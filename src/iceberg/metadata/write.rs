//! Writes metadata files: the reference writer's field order, containers always present, unknown fields last.

use super::TableMetadata;
use crate::iceberg::json::write::Object;
use std::collections::HashSet;

/// Bytes of a file besides its snapshots, roughly: saves growing the buffer.
const HEAD_BYTES: usize = 8 << 10;

impl TableMetadata {
    /// The JSON to store and to answer: canonical field order, unknown fields kept.
    pub fn to_json(&self) -> Vec<u8> {
        self.write(None)
    }

    /// The same JSON with only those snapshots that a branch or tag points at (REST specification, `snapshots=refs`).
    pub fn to_json_refs(&self) -> Vec<u8> {
        self.write(Some(&self.refs.values().map(|reference| reference.snapshot_id).collect()))
    }

    fn write(&self, only: Option<&HashSet<i64>>) -> Vec<u8> {
        let snapshot_bytes: usize = self.snapshots.iter().map(|snapshot| snapshot.json().len() + 1).sum();
        let mut out = Vec::with_capacity(HEAD_BYTES + snapshot_bytes + 80 * self.snapshot_log.len());
        let mut object = Object::begin(&mut out);
        self.write_head(&mut object);
        self.write_schema(&mut object);
        self.write_layout(&mut object);
        self.write_properties(&mut object);
        self.write_state(&mut object);
        let snapshots = self.snapshots.iter().filter(|snapshot| only.is_none_or(|only| only.contains(&snapshot.id)));
        object.array("snapshots", snapshots, |out, snapshot| out.extend_from_slice(snapshot.json().as_bytes()));
        for (key, files) in [("statistics", &self.statistics), ("partition-statistics", &self.partition_statistics)] {
            object.array(key, &**files, |out, file| out.extend_from_slice(file.json().as_bytes()));
        }
        object.array("snapshot-log", &*self.snapshot_log, |out, entry| entry.write(out));
        object.array("metadata-log", &*self.metadata_log, |out, entry| entry.write(out));
        object.extras(&self.extras);
        object.end();
        out
    }

    fn write_head(&self, object: &mut Object<'_>) {
        object.int("format-version", self.format_version);
        if let Some(uuid) = self.uuid {
            object.string("table-uuid", &uuid.to_string());
        }
        object.string("location", &self.location);
        if self.format_version > 1 {
            object.int("last-sequence-number", self.last_sequence_number);
        }
        object.int("last-updated-ms", self.last_updated_ms);
        object.int("last-column-id", self.last_column_id);
    }

    fn write_schema(&self, object: &mut Object<'_>) {
        if let Some(schema) = self.current_schema().filter(|_| self.format_version == 1) {
            object.raw("schema", schema.json());
        }
        object.int("current-schema-id", self.current_schema_id);
        object.array("schemas", &self.schemas, |out, schema| out.extend_from_slice(schema.json().as_bytes()));
    }

    fn write_layout(&self, object: &mut Object<'_>) {
        if let Some(spec) = self.default_spec().filter(|_| self.format_version == 1) {
            spec.write_fields(object.key("partition-spec"));
        }
        object.int("default-spec-id", self.default_spec_id);
        object.array("partition-specs", &*self.specs, |out, spec| spec.write(out));
        object.int("last-partition-id", self.last_partition_id);
        object.int("default-sort-order-id", self.default_sort_order_id);
        object.array("sort-orders", &*self.sort_orders, |out, order| order.write(out));
    }

    fn write_properties(&self, object: &mut Object<'_>) {
        let mut properties = Object::begin(object.key("properties"));
        for (key, value) in &*self.properties {
            properties.string(key, value);
        }
        properties.end();
    }

    fn write_state(&self, object: &mut Object<'_>) {
        match self.current_snapshot_id {
            Some(id) => object.int("current-snapshot-id", id),
            None if self.writes_minus_one => object.int("current-snapshot-id", -1),
            None => {}
        }
        if self.format_version >= 3 {
            object.int("next-row-id", self.next_row_id);
        }
        if !self.encryption_keys.is_empty() {
            object.array("encryption-keys", &*self.encryption_keys, |out, key| {
                out.extend_from_slice(key.json().as_bytes());
            });
        }
        let mut refs = Object::begin(object.key("refs"));
        for (name, reference) in &*self.refs {
            reference.write(refs.key(name));
        }
        refs.end();
    }
}
