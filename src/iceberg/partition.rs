//! Partition specs (table specification, "Partitioning" and appendix C).
//!
//! Stored specs may name dropped columns and unknown transforms; a spec that enters a table must bind to its current
//! schema.

use super::{
    Error, Result, ensure,
    json::{Extras, Reader, write},
    schema::{Columns, Schema},
    transform::Transform,
};
use std::collections::{HashMap, HashSet};

/// The first partition field id; tables count from one below it.
pub const FIELD_ID_FIRST: i32 = 1000;

#[derive(Debug, Clone, PartialEq)]
pub struct PartitionSpec {
    pub id: i32,
    pub fields: Vec<PartitionField>,
    extras: Extras,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PartitionField {
    pub source: Source,
    pub field_id: i32,
    pub name: String,
    pub transform: Transform,
    extras: Extras,
}

/// What a transform is applied to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Column(i32),
    /// Several columns, for transforms with several arguments: kept, not bound.
    Columns(Vec<i32>),
}

impl Source {
    /// Exactly one of `source-id` and `source-ids` names the source.
    pub(super) fn of(id: Option<i32>, ids: Option<Vec<i32>>) -> Result<Self> {
        match (id, ids) {
            (Some(id), None) => Ok(Source::Column(id)),
            (id, Some(ids)) => match *ids.as_slice() {
                [only] if id.is_none_or(|id| id == only) => Ok(Source::Column(only)),
                [_, _, ..] if id.is_none() => Ok(Source::Columns(ids)),
                [] => Err(Error::Invalid("source-ids must not be empty".to_owned())),
                _ => Err(Error::Invalid("only one of source-id and source-ids may be given".to_owned())),
            },
            (None, None) => Err(Error::Invalid("missing field: source-id".to_owned())),
        }
    }

    pub(super) fn write(&self, object: &mut write::Object<'_>) {
        match self {
            Source::Column(id) => object.int("source-id", *id),
            Source::Columns(ids) => object.array("source-ids", ids, |out, &id| write::int(out, id.into())),
        }
    }

    /// The same source under new column ids.
    pub(super) fn renumbered(&self, new_of_old: &HashMap<i32, i32>) -> Result<Self> {
        let renumber = |id: &i32| {
            new_of_old.get(id).copied().ok_or_else(|| Error::Invalid(format!("cannot find source column: {id}")))
        };
        match self {
            Source::Column(id) => renumber(id).map(Source::Column),
            Source::Columns(ids) => ids.iter().map(renumber).collect::<Result<_>>().map(Source::Columns),
        }
    }
}

/// A spec of a request: its fields may not have ids yet.
#[derive(Debug, Clone)]
pub(super) struct UnboundSpec {
    fields: Vec<(Option<i32>, PartitionField)>,
    extras: Extras,
}

impl UnboundSpec {
    /// Reads a request's spec.
    ///
    /// # Errors
    /// `Error::Invalid` when only some of the fields have ids.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (_, fields, extras) = read_spec(reader)?;
        let with_ids = fields.iter().filter(|(id, _)| id.is_some()).count();
        ensure(with_ids == 0 || with_ids == fields.len(), || {
            "either all partition fields have a field-id, or none".to_owned()
        })?;
        Ok(UnboundSpec { fields, extras })
    }

    /// A spec without fields.
    pub fn unpartitioned() -> Self {
        UnboundSpec { fields: Vec::new(), extras: Extras::default() }
    }

    /// Whether the client chose the field ids.
    pub fn has_ids(&self) -> bool {
        self.fields.iter().any(|(id, _)| id.is_some())
    }

    /// The spec, each field with the id it came with or else the one `assign` gives it.
    pub fn bind(self, id: i32, mut assign: impl FnMut(&PartitionField) -> i32) -> PartitionSpec {
        let bind = |(field_id, mut field): (Option<i32>, PartitionField)| {
            field.field_id = field_id.unwrap_or_else(|| assign(&field));
            field
        };
        PartitionSpec { id, fields: self.fields.into_iter().map(bind).collect(), extras: self.extras }
    }

    /// The spec as V1 has it: fields without ids are counted from [`FIELD_ID_FIRST`].
    pub fn numbered(self) -> PartitionSpec {
        PartitionSpec { id: 0, fields: number(self.fields), extras: self.extras }
    }

    /// The spec under new column ids, its fields without ids of their own.
    pub fn renumbered(mut self, new_of_old: &HashMap<i32, i32>) -> Result<Self> {
        for (id, field) in &mut self.fields {
            *id = None;
            field.source = field.source.renumbered(new_of_old)?;
        }
        Ok(self)
    }
}

impl PartitionSpec {
    pub(super) fn new(id: i32, fields: Vec<PartitionField>) -> Self {
        PartitionSpec { id, fields, extras: Extras::default() }
    }

    /// Reads a stored spec. Fields without ids, as V1 has them, are numbered from [`FIELD_ID_FIRST`].
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (id, fields, extras) = read_spec(reader)?;
        let id = id.ok_or_else(|| Error::Invalid("partition spec without spec-id".to_owned()))?;
        Ok(PartitionSpec { id, fields: number(fields), extras })
    }

    /// Reads the bare field list of V1.
    pub(super) fn read_fields(reader: &mut Reader<'_>) -> Result<Vec<PartitionField>> {
        reader.list(PartitionField::read).map(number)
    }

    pub(super) fn with_id(mut self, id: i32) -> Self {
        self.id = id;
        self
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = write::Object::begin(out);
        object.int("spec-id", self.id);
        self.write_fields(object.key("fields"));
        object.extras(&self.extras);
        object.end();
    }

    pub(super) fn write_fields(&self, out: &mut Vec<u8>) {
        write::array(out, &self.fields, |out, field| field.write(out));
    }

    /// Whether both partition alike: same sources, transforms and names in order ("Partitioning").
    pub fn is_compatible(&self, other: &PartitionSpec) -> bool {
        let alike = |(a, b): (&PartitionField, &PartitionField)| a.is_equivalent(b) && a.name == b.name;
        self.fields.len() == other.fields.len() && self.fields.iter().zip(&other.fields).all(alike)
    }

    /// The highest field id; one below [`FIELD_ID_FIRST`] when there is none.
    pub fn last_field_id(&self) -> i32 {
        self.fields.iter().map(|field| field.field_id).max().unwrap_or(FIELD_ID_FIRST - 1)
    }

    pub(super) fn has_sequential_ids(&self) -> bool {
        self.fields.iter().zip(FIELD_ID_FIRST..).all(|(field, id)| field.field_id == id)
    }

    /// Checks that the spec can partition tables of a schema: sources exist, lie in structs only, and suit the
    /// transforms. `void` suits anything, also a column that is gone.
    ///
    /// # Errors
    /// `Error::Invalid` naming the field.
    pub(super) fn check_binding(&self, schema: &Schema) -> Result<()> {
        let columns = schema.columns();
        self.fields.iter().try_for_each(|field| field.check_binding(&columns))
    }

    /// Checks that a new spec uses only transforms that can be computed: writers must not use others ("Partitioning").
    ///
    /// # Errors
    /// `Error::Invalid` naming the field.
    pub(super) fn check_transforms(&self) -> Result<()> {
        self.fields.iter().try_for_each(|PartitionField { name, transform, source, .. }| {
            ensure(!matches!(transform, Transform::Unknown(_)), || {
                format!("cannot partition by unknown transform: {transform} of {name}")
            })?;
            ensure(matches!(source, Source::Column(_)), || format!("cannot partition by several columns: {name}"))
        })
    }

    /// Checks names and ids within the spec, as a new spec must have them.
    ///
    /// # Errors
    /// `Error::Invalid` naming the field.
    pub(super) fn check_fields(&self, schema: &Schema) -> Result<()> {
        let columns = schema.columns();
        let (mut names, mut ids) = (HashSet::new(), HashSet::new());
        for (position, field) in self.fields.iter().enumerate() {
            let name = &field.name;
            ensure(!name.is_empty(), || "a partition field name must not be empty".to_owned())?;
            ensure(names.insert(name), || format!("partition name is used twice: {name}"))?;
            ensure(ids.insert(field.field_id), || format!("partition field id is used twice: {}", field.field_id))?;
            ensure(field.field_id >= FIELD_ID_FIRST, || {
                format!("partition field ids start at {FIELD_ID_FIRST}: {name} has {}", field.field_id)
            })?;
            let is_redundant = field.transform != Transform::Void
                && self.fields.iter().take(position).any(|other| other.is_equivalent(field));
            ensure(!is_redundant, || format!("partition field repeats another: {name}"))?;
            let column = columns.find_path(name);
            ensure(column.is_none_or(|column| field.source == Source::Column(column.id)), || {
                format!("partition name is the name of another column: {name}")
            })?;
        }
        Ok(())
    }
}

impl PartitionField {
    /// Whether both give the same values: same source and transform.
    pub fn is_equivalent(&self, other: &PartitionField) -> bool {
        self.source == other.source && self.transform == other.transform
    }

    fn check_binding(&self, columns: &Columns<'_>) -> Result<()> {
        match &self.source {
            _ if self.transform == Transform::Void => Ok(()),
            Source::Column(source) => self.check_source(*source, columns),
            Source::Columns(sources) => sources.iter().try_for_each(|source| self.check_source(*source, columns)),
        }
    }

    fn check_source(&self, source: i32, columns: &Columns<'_>) -> Result<()> {
        let (name, transform) = (&self.name, &self.transform);
        let column = columns
            .find(source)
            .ok_or_else(|| Error::Invalid(format!("cannot find source column {source} of partition field {name}")))?;
        if matches!(transform, Transform::Unknown(_)) {
            return Ok(());
        }
        let primitive = column.r#type.primitive().ok_or_else(|| {
            Error::Invalid(format!("cannot partition by a column that is not primitive: {}", columns.path(column)))
        })?;
        ensure(columns.is_in_structs_only(column), || {
            format!("cannot partition by a column inside a list or map: {}", columns.path(column))
        })?;
        ensure(transform.fits(primitive), || {
            format!("cannot partition {primitive} column {} by {transform}", columns.path(column))
        })
    }

    fn read(reader: &mut Reader<'_>) -> Result<(Option<i32>, Self)> {
        let (mut source_id, mut source_ids, mut field_id, mut name, mut transform) = (None, None, None, None, None);
        let mut extras = Extras::default();
        reader.members(|reader, key| {
            match key {
                "source-id" => source_id = reader.optional(|reader| reader.int32(key))?,
                "source-ids" => source_ids = reader.optional(|reader| reader.int32_list(key))?,
                "field-id" => field_id = reader.optional(|reader| reader.int32(key))?,
                "name" => name = Some(reader.string(key)?.into_owned()),
                "transform" => transform = Some(Transform::parse(&reader.string(key)?)),
                _ => extras.keep(key, reader.skip()?),
            }
            Ok(())
        })?;
        let missing = |field: &str| Error::Invalid(format!("partition field without {field}"));
        let field = PartitionField {
            source: Source::of(source_id, source_ids)?,
            field_id: field_id.unwrap_or(0),
            name: name.ok_or_else(|| missing("name"))?,
            transform: transform.ok_or_else(|| missing("transform"))?,
            extras,
        };
        Ok((field_id, field))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = write::Object::begin(out);
        self.source.write(&mut object);
        object.int("field-id", self.field_id);
        object.string("name", &self.name);
        object.string("transform", &self.transform.to_string());
        object.extras(&self.extras);
        object.end();
    }
}

type SpecParts = (Option<i32>, Vec<(Option<i32>, PartitionField)>, Extras);

fn read_spec(reader: &mut Reader<'_>) -> Result<SpecParts> {
    let (mut id, mut fields) = (None, None);
    let mut extras = Extras::default();
    reader.members(|reader, key| {
        match key {
            "spec-id" => id = reader.optional(|reader| reader.int32(key))?,
            "fields" => fields = Some(reader.list(PartitionField::read)?),
            _ => extras.keep(key, reader.skip()?),
        }
        Ok(())
    })?;
    let fields = fields.ok_or_else(|| Error::Invalid("partition spec without fields".to_owned()))?;
    Ok((id, fields, extras))
}

fn number(fields: Vec<(Option<i32>, PartitionField)>) -> Vec<PartitionField> {
    let number = |((id, mut field), position): ((Option<i32>, PartitionField), i32)| {
        field.field_id = id.unwrap_or(position);
        field
    };
    fields.into_iter().zip(FIELD_ID_FIRST..).map(number).collect()
}
