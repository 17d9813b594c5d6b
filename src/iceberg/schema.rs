//! Schemas: named, numbered columns (table specification, "Schemas and Data Types" and appendix C).
//!
//! A schema is rendered once, when it is made, and that text is what metadata files get: metadata with many schemas is
//! written by copying. Whether a schema may enter a table is decided in `schema_rules`.

use super::{
    Error, Result, ensure,
    json::{Extras, Reader, write},
    types::Primitive,
};
use std::{collections::HashMap, sync::Arc};

/// Highest field id of a table; the ids above are reserved for metadata columns ("Reserved Field IDs").
pub const FIELD_ID_MAX: i32 = i32::MAX - 200;

#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    id: i32,
    fields: Vec<Field>,
    identifier_field_ids: Vec<i32>,
    extras: Extras,
    json: Arc<str>,
}

/// A field of a struct; at the top level, a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub id: i32,
    pub name: String,
    pub required: bool,
    pub r#type: Type,
    pub doc: Option<String>,
    /// JSON of a default value that is not null.
    pub initial_default: Option<Box<str>>,
    /// JSON of a default value that is not null.
    pub write_default: Option<Box<str>>,
    extras: Extras,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    Primitive(Primitive),
    Struct(Struct),
    List(Box<List>),
    Map(Box<Map>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Struct {
    pub fields: Vec<Field>,
    extras: Extras,
}

#[derive(Debug, Clone, PartialEq)]
pub struct List {
    pub element_id: i32,
    pub element_required: bool,
    pub element: Type,
    extras: Extras,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    pub key_id: i32,
    pub key: Type,
    pub value_id: i32,
    pub value_required: bool,
    pub value: Type,
    extras: Extras,
}

impl Schema {
    fn new(id: i32, fields: Vec<Field>, identifier_field_ids: Vec<i32>, extras: Extras) -> Self {
        let mut schema = Schema { id, fields, identifier_field_ids, extras, json: "".into() };
        schema.json = schema.render().into();
        schema
    }

    /// Reads a schema; one without an id gets 0, as in V1.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut id, mut fields, mut identifier_field_ids) = (None, None, None);
        let mut extras = Extras::default();
        reader.members(|reader, key| {
            match key {
                "schema-id" => id = reader.optional(|reader| reader.int32(key))?,
                "fields" => fields = Some(reader.list(Field::read)?),
                "identifier-field-ids" => {
                    identifier_field_ids = reader.optional(|reader| reader.int32_list(key))?;
                }
                "type" => {
                    let kind = reader.string(key)?;
                    ensure(kind == "struct", || format!("a schema is a struct, not {kind}"))?;
                }
                _ => extras.keep(key, reader.skip()?),
            }
            Ok(())
        })?;
        let fields = fields.ok_or_else(|| missing("schema", "fields"))?;
        Ok(Schema::new(id.unwrap_or(0), fields, identifier_field_ids.unwrap_or_default(), extras))
    }

    pub fn id(&self) -> i32 {
        self.id
    }

    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub fn identifier_field_ids(&self) -> &[i32] {
        &self.identifier_field_ids
    }

    /// The schema as metadata files hold it.
    pub fn json(&self) -> &str {
        &self.json
    }

    pub(super) fn with_id(self, id: i32) -> Self {
        if id == self.id {
            return self;
        }
        Schema::new(id, self.fields, self.identifier_field_ids, self.extras)
    }

    /// Whether both describe the same columns, whatever their schema ids.
    pub fn is_same(&self, other: &Schema) -> bool {
        let sorted = |ids: &[i32]| {
            let mut ids = ids.to_vec();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        self.fields == other.fields
            && sorted(&self.identifier_field_ids) == sorted(&other.identifier_field_ids)
            && self.extras == other.extras
    }

    /// Highest id of any field, list elements, map keys and values included; 0 when there is none.
    pub fn highest_field_id(&self) -> i32 {
        self.columns().iter().map(|column| column.id).max().unwrap_or(0)
    }

    /// The schema with field ids counted from 1: all fields of a struct first, then into each in turn. Also the new id
    /// of each old one.
    ///
    /// # Errors
    /// `Error::Invalid` when an id occurs twice or an identifier field does not exist.
    pub(super) fn with_fresh_ids(self, id: i32) -> Result<(Self, HashMap<i32, i32>)> {
        let mut fresh = FreshIds::default();
        let mut fields = self.fields;
        fresh.assign_fields(&mut fields)?;
        let renumber = |old: &i32| {
            fresh
                .new_of_old
                .get(old)
                .copied()
                .ok_or_else(|| Error::Invalid(format!("identifier field {old} not found")))
        };
        let identifier_field_ids = self.identifier_field_ids.iter().map(renumber).collect::<Result<_>>()?;
        Ok((Schema::new(id, fields, identifier_field_ids, self.extras), fresh.new_of_old))
    }

    /// Every field with an id, parents before children.
    pub fn columns(&self) -> Columns<'_> {
        let mut columns = Columns { list: Vec::new(), by_id: HashMap::new() };
        columns.add_fields(&self.fields, None);
        columns
    }

    fn render(&self) -> String {
        let mut out = Vec::new();
        let mut object = write::Object::begin(&mut out);
        object.string("type", "struct");
        object.int("schema-id", self.id);
        if !self.identifier_field_ids.is_empty() {
            object.array("identifier-field-ids", &self.identifier_field_ids, |out, &id| write::int(out, id.into()));
        }
        object.array("fields", &self.fields, |out, field| field.write(out));
        object.extras(&self.extras);
        object.end();
        write::into_text(out)
    }
}

impl Field {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut id, mut name, mut required, mut r#type, mut doc) = (None, None, None, None, None);
        let (mut initial_default, mut write_default) = (None, None);
        let mut extras = Extras::default();
        reader.members(|reader, key| {
            match key {
                "id" => id = Some(reader.int32(key)?),
                "name" => name = Some(reader.string(key)?.into_owned()),
                "required" => required = Some(reader.boolean(key)?),
                "type" => r#type = Some(Type::read(reader)?),
                "doc" => doc = reader.optional(|reader| Ok(reader.string(key)?.into_owned()))?,
                "initial-default" => initial_default = reader.optional(|reader| Ok(reader.skip()?.into()))?,
                "write-default" => write_default = reader.optional(|reader| Ok(reader.skip()?.into()))?,
                _ => extras.keep(key, reader.skip()?),
            }
            Ok(())
        })?;
        Ok(Field {
            id: id.ok_or_else(|| missing("field", "id"))?,
            name: name.ok_or_else(|| missing("field", "name"))?,
            required: required.ok_or_else(|| missing("field", "required"))?,
            r#type: r#type.ok_or_else(|| missing("field", "type"))?,
            doc,
            initial_default,
            write_default,
            extras,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = write::Object::begin(out);
        object.int("id", self.id);
        object.string("name", &self.name);
        object.boolean("required", self.required);
        self.r#type.write(object.key("type"));
        if let Some(doc) = &self.doc {
            object.string("doc", doc);
        }
        for (key, default) in [("initial-default", &self.initial_default), ("write-default", &self.write_default)] {
            if let Some(default) = default {
                object.raw(key, default);
            }
        }
        object.extras(&self.extras);
        object.end();
    }
}

impl Type {
    pub fn primitive(&self) -> Option<&Primitive> {
        match self {
            Type::Primitive(primitive) => Some(primitive),
            _ => None,
        }
    }

    /// How messages name the type.
    pub(super) fn kind(&self) -> String {
        match self {
            Type::Primitive(primitive) => primitive.to_string(),
            Type::Struct(_) => "struct".to_owned(),
            Type::List(_) => "list".to_owned(),
            Type::Map(_) => "map".to_owned(),
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        if reader.is_object() {
            return Nested::read(reader);
        }
        Primitive::parse(&reader.string("type")?).map(Type::Primitive)
    }

    fn write(&self, out: &mut Vec<u8>) {
        let (kind, extras) = match self {
            Type::Primitive(primitive) => return write::string(out, &primitive.to_string()),
            Type::Struct(nested) => ("struct", &nested.extras),
            Type::List(nested) => ("list", &nested.extras),
            Type::Map(nested) => ("map", &nested.extras),
        };
        let mut object = write::Object::begin(out);
        object.string("type", kind);
        match self {
            Type::Primitive(_) => {}
            Type::Struct(nested) => object.array("fields", &nested.fields, |out, field| field.write(out)),
            Type::List(list) => {
                object.int("element-id", list.element_id);
                list.element.write(object.key("element"));
                object.boolean("element-required", list.element_required);
            }
            Type::Map(map) => {
                object.int("key-id", map.key_id);
                map.key.write(object.key("key"));
                object.int("value-id", map.value_id);
                map.value.write(object.key("value"));
                object.boolean("value-required", map.value_required);
            }
        }
        object.extras(extras);
        object.end();
    }
}

/// The members of any nested type: which ones are meant is known only once `type` was seen.
#[derive(Default)]
struct Nested {
    kind: Option<String>,
    fields: Option<Vec<Field>>,
    element_id: Option<i32>,
    element_required: Option<bool>,
    element: Option<Type>,
    key_id: Option<i32>,
    key: Option<Type>,
    value_id: Option<i32>,
    value_required: Option<bool>,
    value: Option<Type>,
    extras: Extras,
}

impl Nested {
    fn read(reader: &mut Reader<'_>) -> Result<Type> {
        let mut nested = Nested::default();
        reader.members(|reader, key| {
            match key {
                "type" => nested.kind = Some(reader.string(key)?.into_owned()),
                "fields" => nested.fields = Some(reader.list(Field::read)?),
                "element-id" => nested.element_id = Some(reader.int32(key)?),
                "element-required" => nested.element_required = Some(reader.boolean(key)?),
                "element" => nested.element = Some(Type::read(reader)?),
                "key-id" => nested.key_id = Some(reader.int32(key)?),
                "key" => nested.key = Some(Type::read(reader)?),
                "value-id" => nested.value_id = Some(reader.int32(key)?),
                "value-required" => nested.value_required = Some(reader.boolean(key)?),
                "value" => nested.value = Some(Type::read(reader)?),
                _ => nested.extras.keep(key, reader.skip()?),
            }
            Ok(())
        })?;
        nested.into_type()
    }

    fn into_type(self) -> Result<Type> {
        match self.kind.as_deref() {
            Some("struct") => Ok(Type::Struct(Struct {
                fields: self.fields.ok_or_else(|| missing("struct", "fields"))?,
                extras: self.extras,
            })),
            Some("list") => Ok(Type::List(Box::new(List {
                element_id: self.element_id.ok_or_else(|| missing("list", "element-id"))?,
                element_required: self.element_required.ok_or_else(|| missing("list", "element-required"))?,
                element: self.element.ok_or_else(|| missing("list", "element"))?,
                extras: self.extras,
            }))),
            Some("map") => Ok(Type::Map(Box::new(Map {
                key_id: self.key_id.ok_or_else(|| missing("map", "key-id"))?,
                key: self.key.ok_or_else(|| missing("map", "key"))?,
                value_id: self.value_id.ok_or_else(|| missing("map", "value-id"))?,
                value_required: self.value_required.ok_or_else(|| missing("map", "value-required"))?,
                value: self.value.ok_or_else(|| missing("map", "value"))?,
                extras: self.extras,
            }))),
            Some(other) => Err(Error::Invalid(format!("unknown type: {other}"))),
            None => Err(missing("nested type", "type")),
        }
    }
}

/// What a field is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Struct,
    List,
    Map,
}

/// Anything with a field id: a field, a list element, a map key or value.
#[derive(Debug, Clone)]
pub struct Column<'a> {
    pub id: i32,
    /// Its own name; list elements, map keys and values are `element`, `key` and `value`. See [`Columns::path`].
    pub name: &'a str,
    pub required: bool,
    pub r#type: &'a Type,
    pub place: Place,
    /// The field, for those that are one.
    pub field: Option<&'a Field>,
    parent: Option<usize>,
}

/// The columns of a schema, parents before children, found by id. Of equal ids the first is found.
///
/// Paths are built only where one is shown: a long name over many fields must not be copied into each.
#[derive(Debug)]
pub struct Columns<'a> {
    list: Vec<Column<'a>>,
    by_id: HashMap<i32, usize>,
}

impl<'a> Columns<'a> {
    pub fn iter(&self) -> impl Iterator<Item = &Column<'a>> {
        self.list.iter()
    }

    pub fn find(&self, id: i32) -> Option<&Column<'a>> {
        self.by_id.get(&id).and_then(|&position| self.list.get(position))
    }

    pub fn parent(&self, column: &Column<'a>) -> Option<&Column<'a>> {
        column.parent.and_then(|position| self.list.get(position))
    }

    /// Where in [`Columns::iter`] the column's parent is.
    pub(super) fn parent_position(&self, column: &Column<'a>) -> Option<usize> {
        column.parent
    }

    /// The columns a column lies in, innermost first.
    pub fn ancestors(&self, column: &Column<'a>) -> impl Iterator<Item = &Column<'a>> {
        std::iter::successors(self.parent(column), |column| self.parent(column))
    }

    /// Whether no list or map lies between the column and the top.
    pub fn is_in_structs_only(&self, column: &Column<'a>) -> bool {
        column.place == Place::Struct && self.ancestors(column).all(|ancestor| ancestor.place == Place::Struct)
    }

    /// Names from the top down, joined with dots.
    pub fn path(&self, column: &Column<'a>) -> String {
        let mut names: Vec<_> = self.ancestors(column).map(|ancestor| ancestor.name).collect();
        names.reverse();
        names.push(column.name);
        names.join(".")
    }

    /// A column whose path is `path`.
    pub fn find_path(&self, path: &str) -> Option<&Column<'a>> {
        self.list.iter().find(|column| {
            let mut rest = path.strip_suffix(column.name);
            for ancestor in self.ancestors(column) {
                rest = rest.and_then(|rest| rest.strip_suffix('.')?.strip_suffix(ancestor.name));
            }
            rest == Some("")
        })
    }

    fn add(&mut self, column: Column<'a>) -> usize {
        let position = self.list.len();
        self.by_id.entry(column.id).or_insert(position);
        self.list.push(column);
        position
    }

    fn add_fields(&mut self, fields: &'a [Field], parent: Option<usize>) {
        for field in fields {
            let position = self.add(Column {
                id: field.id,
                name: &field.name,
                required: field.required,
                r#type: &field.r#type,
                place: Place::Struct,
                field: Some(field),
                parent,
            });
            self.add_nested(&field.r#type, position);
        }
    }

    fn add_nested(&mut self, r#type: &'a Type, parent: usize) {
        let part = |id, name, required, r#type, place| Column {
            id,
            name,
            required,
            r#type,
            place,
            field: None,
            parent: Some(parent),
        };
        match r#type {
            Type::Primitive(_) => {}
            Type::Struct(nested) => self.add_fields(&nested.fields, Some(parent)),
            Type::List(list) => {
                let element = part(list.element_id, "element", list.element_required, &list.element, Place::List);
                let element = self.add(element);
                self.add_nested(&list.element, element);
            }
            Type::Map(map) => {
                let key = self.add(part(map.key_id, "key", true, &map.key, Place::Map));
                self.add_nested(&map.key, key);
                let value = self.add(part(map.value_id, "value", map.value_required, &map.value, Place::Map));
                self.add_nested(&map.value, value);
            }
        }
    }
}

#[derive(Default)]
struct FreshIds {
    last: i32,
    new_of_old: HashMap<i32, i32>,
}

impl FreshIds {
    fn assign(&mut self, id: &mut i32) -> Result<()> {
        self.last += 1;
        let old = std::mem::replace(id, self.last);
        let twice = self.new_of_old.insert(old, self.last).is_some();
        ensure(!twice, || format!("field id {old} occurs twice"))
    }

    fn assign_fields(&mut self, fields: &mut [Field]) -> Result<()> {
        fields.iter_mut().try_for_each(|field| self.assign(&mut field.id))?;
        fields.iter_mut().try_for_each(|field| self.assign_nested(&mut field.r#type))
    }

    fn assign_nested(&mut self, r#type: &mut Type) -> Result<()> {
        match r#type {
            Type::Primitive(_) => Ok(()),
            Type::Struct(nested) => self.assign_fields(&mut nested.fields),
            Type::List(list) => {
                self.assign(&mut list.element_id)?;
                self.assign_nested(&mut list.element)
            }
            Type::Map(map) => {
                self.assign(&mut map.key_id)?;
                self.assign(&mut map.value_id)?;
                self.assign_nested(&mut map.key)?;
                self.assign_nested(&mut map.value)
            }
        }
    }
}

fn missing(object: &str, field: &str) -> Error {
    Error::Invalid(format!("{object} without {field}"))
}
