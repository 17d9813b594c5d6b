//! Schemas, partition specs and sort orders: adding, choosing, removing.

use super::{Builder, LAST_ADDED, NO_ID, NewId, UNSORTED_ID, reused_or_next};
use crate::iceberg::{
    Error, Result, ensure,
    partition::{PartitionField, PartitionSpec, UnboundSpec},
    schema::Schema,
    schema_rules,
    sort::SortOrder,
    transform::Transform,
};
use std::{collections::HashSet, sync::Arc};

/// The first id of a sort order with fields.
const SORT_ORDER_ID_FIRST: i32 = 1;

impl Builder {
    /// Field ids are kept to the letter: files may already be written with them. The schema id is ours to give.
    pub(super) fn add_schema(&mut self, schema: &Schema) -> Result<()> {
        let metadata = &self.metadata;
        schema_rules::check_new(schema, metadata.format_version)?;
        let id = reused_or_next(metadata.schemas(), 0, Schema::id, |known| known.is_same(schema))?;
        let last_column_id = metadata.last_column_id.max(schema.highest_field_id());
        if last_column_id > metadata.last_column_id {
            self.change().last_column_id = last_column_id;
        }
        let id = match id {
            NewId::Known(id) => id,
            NewId::Next(id) => {
                self.check_evolution(schema)?;
                self.change().schemas.push(Arc::new(schema.clone().with_id(id)));
                id
            }
        };
        self.last_added_schema = Some(id);
        Ok(())
    }

    /// Holds a schema against the current one where the current snapshot's rows were written with it. Replacing a table
    /// removes `main` first and starts afresh.
    fn check_evolution(&self, schema: &Schema) -> Result<()> {
        let metadata = &self.metadata;
        match metadata.current_schema().filter(|_| metadata.current_snapshot_id.is_some()) {
            Some(current) => schema_rules::check_evolution(current, schema, &metadata.specs, metadata.format_version),
            None => Ok(()),
        }
    }

    pub(super) fn set_current_schema(&mut self, id: i32) -> Result<()> {
        let id = resolve(id, self.last_added_schema, "schema")?;
        ensure(self.metadata.schema(id).is_some(), || format!("cannot set current schema to unknown schema: {id}"))?;
        if self.metadata.current_schema_id != id {
            self.change_layout().current_schema_id = id;
        }
        Ok(())
    }

    pub(super) fn remove_schemas(&mut self, ids: &[i32]) -> Result<()> {
        let ids: HashSet<_> = ids.iter().copied().collect();
        ensure(!ids.contains(&self.metadata.current_schema_id), || "cannot remove the current schema".to_owned())?;
        if self.metadata.schemas().any(|schema| ids.contains(&schema.id())) {
            self.change().schemas.retain(|schema| !ids.contains(&schema.id()));
            self.removed_schemas.extend(ids);
        }
        Ok(())
    }

    /// A snapshot that stays needs its schema to be read.
    pub(super) fn check_removed_schemas(&self) -> Result<()> {
        if self.removed_schemas.is_empty() {
            return Ok(());
        }
        for snapshot in &*self.metadata.snapshots {
            let removed = snapshot.schema_id.filter(|id| self.removed_schemas.contains(id));
            let is_missing = removed.is_some_and(|id| self.metadata.schema(id).is_none());
            ensure(!is_missing, || {
                format!("cannot remove schema {}: snapshot {} uses it", removed.unwrap_or(NO_ID), snapshot.id)
            })?;
        }
        Ok(())
    }

    pub(super) fn add_spec(&mut self, spec: &UnboundSpec) -> Result<()> {
        let spec = self.bind_spec(spec)?;
        let specs = &self.metadata.specs;
        let id = match reused_or_next(specs.iter(), 0, |spec| spec.id, |known| known.is_compatible(&spec))? {
            NewId::Known(id) => id,
            NewId::Next(id) => {
                self.check_spec(&spec)?;
                let metadata = self.change();
                metadata.last_partition_id = metadata.last_partition_id.max(spec.last_field_id());
                Arc::make_mut(&mut metadata.specs).push(spec.with_id(id));
                id
            }
        };
        self.last_added_spec = Some(id);
        Ok(())
    }

    /// Gives ids to fields that came without: V1 counts them within the spec; later versions give an equal field the
    /// id it has in another spec, and others the next free one.
    fn bind_spec(&self, spec: &UnboundSpec) -> Result<PartitionSpec> {
        let metadata = &self.metadata;
        if metadata.format_version == 1 && !spec.has_ids() {
            return Ok(spec.clone().numbered());
        }
        let mut last = metadata.last_partition_id;
        let known = |field: &PartitionField| {
            let fields = metadata.specs.iter().flat_map(|spec| &spec.fields);
            fields.filter(|known| known.is_equivalent(field)).map(|known| known.field_id).max()
        };
        let spec = spec.clone().bind(0, |field| {
            known(field).unwrap_or_else(|| {
                last = last.saturating_add(1);
                last
            })
        });
        ensure(last < i32::MAX, || "partition field ids are exhausted".to_owned())?;
        Ok(spec)
    }

    fn check_spec(&self, spec: &PartitionSpec) -> Result<()> {
        let metadata = &self.metadata;
        let schema = self.schema_to_bind("a partition spec")?;
        spec.check_transforms()?;
        spec.check_binding(schema)?;
        spec.check_fields(schema)?;
        if metadata.format_version == 1 {
            return ensure(spec.has_sequential_ids(), || {
                "partition field ids must count up from 1000 in v1".to_owned()
            });
        }
        spec.fields.iter().try_for_each(|field| self.check_field_id(field))
    }

    /// The current schema, or for a new table that has none yet the one this request added last: DuckDB makes it
    /// current at the very end. What is current then is checked again in [`Self::check_defaults`].
    fn schema_to_bind(&self, what: &str) -> Result<&Schema> {
        let metadata = &self.metadata;
        let added = || metadata.schema(self.last_added_schema?);
        let schema = metadata.current_schema().or_else(added);
        schema.ok_or_else(|| Error::Invalid(format!("cannot add {what} before a schema is added")))
    }

    /// An id that manifests already know as one kind of value must not come to mean another.
    fn check_field_id(&self, field: &PartitionField) -> Result<()> {
        let fields = self.metadata.specs.iter().flat_map(|spec| &spec.fields);
        let mut known = fields.filter(|known| known.field_id == field.field_id).peekable();
        let is_free = known.peek().is_none();
        let agrees = |known: &PartitionField| {
            known.is_equivalent(field)
                || known.source == field.source
                    && (known.transform == Transform::Void || field.transform == Transform::Void)
        };
        ensure(is_free || known.any(agrees), || {
            format!("partition field id {} of {} is taken by a different field", field.field_id, field.name)
        })
    }

    pub(super) fn set_default_spec(&mut self, id: i32) -> Result<()> {
        let id = resolve(id, self.last_added_spec, "partition spec")?;
        ensure(self.metadata.specs.iter().any(|spec| spec.id == id), || {
            format!("cannot set default partition spec to unknown spec: {id}")
        })?;
        if self.metadata.default_spec_id != id {
            self.change_layout().default_spec_id = id;
        }
        Ok(())
    }

    pub(super) fn remove_specs(&mut self, ids: &[i32]) -> Result<()> {
        let ids: HashSet<_> = ids.iter().copied().collect();
        ensure(!ids.contains(&self.metadata.default_spec_id), || {
            "cannot remove the default partition spec".to_owned()
        })?;
        if self.metadata.specs.iter().any(|spec| ids.contains(&spec.id)) {
            Arc::make_mut(&mut self.change().specs).retain(|spec| !ids.contains(&spec.id));
        }
        Ok(())
    }

    pub(super) fn add_sort_order(&mut self, order: &SortOrder) -> Result<()> {
        let orders = &self.metadata.sort_orders;
        let id = reused_or_next(orders.iter(), SORT_ORDER_ID_FIRST, |order| order.id, |known| known.is_same(order))?;
        let id = match id {
            NewId::Known(id) => id,
            NewId::Next(id) => {
                let schema = self.schema_to_bind("a sort order")?;
                order.check_transforms()?;
                order.check_binding(schema)?;
                let id = if order.fields.is_empty() { UNSORTED_ID } else { id };
                Arc::make_mut(&mut self.change().sort_orders).push(order.clone().with_id(id));
                id
            }
        };
        self.last_added_sort_order = Some(id);
        Ok(())
    }

    pub(super) fn set_default_sort_order(&mut self, id: i32) -> Result<()> {
        let id = resolve(id, self.last_added_sort_order, "sort order")?;
        ensure(self.metadata.sort_orders.iter().any(|order| order.id == id), || {
            format!("cannot set default sort order to unknown order: {id}")
        })?;
        if self.metadata.default_sort_order_id != id {
            self.change_layout().default_sort_order_id = id;
        }
        Ok(())
    }

    /// The defaults must suit the current schema once the request is through, whatever came first. A request that
    /// leaves them alone may find them as others left them.
    pub(super) fn check_defaults(&self) -> Result<()> {
        if self.is_layout_changed { self.metadata.check_defaults() } else { Ok(()) }
    }
}

/// An id as the request means it.
pub(in crate::iceberg) fn resolve(id: i32, last_added: Option<i32>, what: &str) -> Result<i32> {
    if id != LAST_ADDED {
        return Ok(id);
    }
    last_added.ok_or_else(|| Error::Invalid(format!("cannot set last added {what}: no {what} has been added")))
}
