//! Sort orders (table specification, "Sorting" and appendix C).

use super::{
    Error, Result, ensure,
    json::{Extras, Reader, write},
    partition::Source,
    schema::Schema,
    transform::Transform,
};
use std::collections::HashMap;

/// Reserved for the order without fields.
pub const UNSORTED_ID: i32 = 0;

#[derive(Debug, Clone, PartialEq)]
pub struct SortOrder {
    pub id: i32,
    pub fields: Vec<SortField>,
    extras: Extras,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SortField {
    pub transform: Transform,
    pub source: Source,
    pub direction: Direction,
    pub null_order: NullOrder,
    extras: Extras,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ascending,
    Descending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullOrder {
    First,
    Last,
}

impl SortOrder {
    pub(super) fn unsorted() -> Self {
        SortOrder { id: UNSORTED_ID, fields: Vec::new(), extras: Extras::default() }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut id, mut fields) = (None, None);
        let mut extras = Extras::default();
        reader.members(|reader, key| {
            match key {
                "order-id" => id = reader.optional(|reader| reader.int32(key))?,
                "fields" => fields = Some(reader.list(SortField::read)?),
                _ => extras.keep(key, reader.skip()?),
            }
            Ok(())
        })?;
        let missing = |field: &str| Error::Invalid(format!("sort order without {field}"));
        let (id, fields) = (id.ok_or_else(|| missing("order-id"))?, fields.ok_or_else(|| missing("fields"))?);
        ensure(id != UNSORTED_ID || fields.is_empty(), || {
            format!("sort order id {UNSORTED_ID} is reserved for the unsorted order")
        })?;
        Ok(SortOrder { id, fields, extras })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = write::Object::begin(out);
        object.int("order-id", self.id);
        object.array("fields", &self.fields, |out, field| field.write(out));
        object.extras(&self.extras);
        object.end();
    }

    pub(super) fn with_id(mut self, id: i32) -> Self {
        self.id = id;
        self
    }

    /// The order under new column ids.
    pub(super) fn renumbered(mut self, new_of_old: &HashMap<i32, i32>) -> Result<Self> {
        for field in &mut self.fields {
            field.source = field.source.renumbered(new_of_old)?;
        }
        Ok(self)
    }

    /// Whether both sort alike, whatever their ids.
    pub fn is_same(&self, other: &SortOrder) -> bool {
        self.fields == other.fields
    }

    /// Checks that a new order uses only transforms that can be computed.
    ///
    /// # Errors
    /// `Error::Invalid` naming the transform.
    pub(super) fn check_transforms(&self) -> Result<()> {
        self.fields.iter().try_for_each(|SortField { transform, source, .. }| {
            ensure(!matches!(transform, Transform::Unknown(_)), || {
                format!("cannot sort by unknown transform: {transform}")
            })?;
            ensure(matches!(source, Source::Column(_)), || {
                format!("cannot sort by several columns at once: {transform}")
            })
        })
    }

    /// Checks that rows of a schema can be sorted so; an unknown transform is taken to suit any column.
    ///
    /// # Errors
    /// `Error::Invalid` naming the source column.
    pub(super) fn check_binding(&self, schema: &Schema) -> Result<()> {
        let columns = schema.columns();
        for SortField { transform, source, .. } in &self.fields {
            let sources = match source {
                Source::Column(source) => std::slice::from_ref(source),
                Source::Columns(sources) => sources,
            };
            for source in sources {
                let column = columns
                    .find(*source)
                    .ok_or_else(|| Error::Invalid(format!("cannot find source column {source} of the sort order")))?;
                let is_fit = matches!(transform, Transform::Unknown(_))
                    || column.r#type.primitive().is_some_and(|primitive| transform.fits(primitive));
                ensure(is_fit, || format!("cannot sort column {} by {transform}", columns.path(column)))?;
            }
        }
        Ok(())
    }
}

impl SortField {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut source_id, mut source_ids, mut transform, mut direction, mut null_order) =
            (None, None, None, None, None);
        let mut extras = Extras::default();
        reader.members(|reader, key| {
            match key {
                "source-id" => source_id = reader.optional(|reader| reader.int32(key))?,
                "source-ids" => source_ids = reader.optional(|reader| reader.int32_list(key))?,
                "transform" => transform = Some(Transform::parse(&reader.string(key)?)),
                "direction" => direction = Some(Direction::parse(&reader.string(key)?)?),
                "null-order" => null_order = Some(NullOrder::parse(&reader.string(key)?)?),
                _ => extras.keep(key, reader.skip()?),
            }
            Ok(())
        })?;
        let missing = |field: &str| Error::Invalid(format!("sort field without {field}"));
        Ok(SortField {
            source: Source::of(source_id, source_ids)?,
            transform: transform.ok_or_else(|| missing("transform"))?,
            direction: direction.ok_or_else(|| missing("direction"))?,
            null_order: null_order.ok_or_else(|| missing("null-order"))?,
            extras,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = write::Object::begin(out);
        object.string("transform", &self.transform.to_string());
        self.source.write(&mut object);
        object.string("direction", self.direction.as_str());
        object.string("null-order", self.null_order.as_str());
        object.extras(&self.extras);
        object.end();
    }
}

impl Direction {
    fn parse(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "asc" => Ok(Direction::Ascending),
            "desc" => Ok(Direction::Descending),
            _ => Err(Error::Invalid(format!("unknown sort direction: {text}"))),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Direction::Ascending => "asc",
            Direction::Descending => "desc",
        }
    }
}

impl NullOrder {
    fn parse(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "nulls-first" => Ok(NullOrder::First),
            "nulls-last" => Ok(NullOrder::Last),
            _ => Err(Error::Invalid(format!("unknown null order: {text}"))),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            NullOrder::First => "nulls-first",
            NullOrder::Last => "nulls-last",
        }
    }
}
