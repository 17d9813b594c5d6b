//! What a schema must satisfy to enter a table (table specification, "Schemas and Data Types", "Schema Evolution").
//!
//! Stored schemas are not held to this: tables written by others stay readable.

use super::{
    Error, Result, defaults, ensure,
    partition::{PartitionSpec, Source},
    schema::{Column, Columns, FIELD_ID_MAX, Schema, Type},
    types::Primitive,
};
use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hasher},
};

/// Checks a schema that is added to a table of a format version.
///
/// # Errors
/// `Error::Invalid` naming the column.
pub fn check_new(schema: &Schema, format_version: u8) -> Result<()> {
    let columns = schema.columns();
    check_ids(&columns)?;
    check_names(&columns)?;
    check_identifiers(schema, &columns)?;
    check_version(&columns, format_version)?;
    columns.iter().try_for_each(|column| check_defaults(&columns, column))
}

fn check_ids(columns: &Columns<'_>) -> Result<()> {
    let mut ids = HashSet::new();
    for column in columns.iter() {
        let id = column.id;
        ensure(ids.insert(id), || format!("field id {id} occurs twice: {}", columns.path(column)))?;
        ensure((0..=FIELD_ID_MAX).contains(&id), || {
            format!("field id {id} of {} is outside 0 to {FIELD_ID_MAX}", columns.path(column))
        })?;
    }
    Ok(())
}

/// No two columns may have one path: a column `a.b` beside a struct `a` with a field `b` is as bad as two of one name.
fn check_names(columns: &Columns<'_>) -> Result<()> {
    let mut hashers: Vec<DefaultHasher> = Vec::new();
    let mut seen: HashMap<u64, &Column<'_>> = HashMap::new();
    for column in columns.iter() {
        let mut hasher = match columns.parent_position(column).and_then(|position| hashers.get(position)) {
            Some(parent) => {
                let mut hasher = parent.clone();
                hasher.write(b".");
                hasher
            }
            None => DefaultHasher::new(),
        };
        hasher.write(column.name.as_bytes());
        if let Some(other) = seen.insert(hasher.finish(), column) {
            let (path, other) = (columns.path(column), columns.path(other));
            ensure(path != other, || format!("column name is used twice: {path}"))?;
        }
        hashers.push(hasher);
    }
    Ok(())
}

/// "Identifier Field IDs".
fn check_identifiers(schema: &Schema, columns: &Columns<'_>) -> Result<()> {
    for &id in schema.identifier_field_ids() {
        let column =
            columns.find(id).ok_or_else(|| Error::Invalid(format!("identifier field does not exist: {id}")))?;
        let refuse = |problem: &str| Error::Invalid(format!("identifier field {} {problem}", columns.path(column)));
        match column.r#type.primitive() {
            None | Some(Primitive::Variant) => return Err(refuse("must be primitive")),
            Some(Primitive::Float | Primitive::Double) => return Err(refuse("must not be float or double")),
            Some(Primitive::Unknown) => return Err(refuse("must have a known type")),
            Some(primitive) if primitive.is_geospatial() => return Err(refuse("must not be geospatial")),
            Some(_) => {}
        }
        ensure(column.required, || format!("identifier field {} must be required", columns.path(column)))?;
        ensure(
            columns.is_in_structs_only(column) && columns.ancestors(column).all(|ancestor| ancestor.required),
            || format!("identifier field {} must lie in required structs only", columns.path(column)),
        )?;
    }
    Ok(())
}

/// Types and defaults that came with later versions. The texts are matched by clients' test suites.
fn check_version(columns: &Columns<'_>, format_version: u8) -> Result<()> {
    const DEFAULTS_VERSION_MIN: u8 = 3;
    let mut problems = String::new();
    for column in columns.iter() {
        let version = column.r#type.primitive().map_or(1, Primitive::format_version_min);
        if let Some(primitive) = column.r#type.primitive().filter(|_| version > format_version) {
            let name = columns.path(column);
            problems.push_str(&format!("\n- Invalid type for {name}: {primitive} is not supported until v{version}"));
        }
        let default = column.field.and_then(|field| field.initial_default.as_deref());
        if let Some(default) = default.filter(|_| format_version < DEFAULTS_VERSION_MIN) {
            let name = columns.path(column);
            problems.push_str(&format!(
                "\n- Invalid initial default for {name}: non-null default ({default}) is not supported until \
                 v{DEFAULTS_VERSION_MIN}"
            ));
        }
    }
    ensure(problems.is_empty(), || format!("Invalid schema for v{format_version}:{problems}"))
}

fn check_defaults(columns: &Columns<'_>, column: &Column<'_>) -> Result<()> {
    let is_unknown = column.r#type.primitive() == Some(&Primitive::Unknown);
    ensure(!(is_unknown && column.required), || {
        format!("column of type unknown must be optional: {}", columns.path(column))
    })?;
    let Some(field) = column.field else { return Ok(()) };
    for (kind, default) in [("initial-default", &field.initial_default), ("write-default", &field.write_default)] {
        if let Some(default) = default {
            ensure(defaults::fits(&field.r#type, default), || {
                format!("{kind} of {} does not fit its type", columns.path(column))
            })?;
        }
    }
    Ok(())
}

/// Checks that a schema can follow the current one over data already written: types are only promoted, initial
/// defaults stay, and new required fields bring defaults for the rows that lack them.
///
/// # Errors
/// `Error::Invalid` naming the column.
pub fn check_evolution(old: &Schema, new: &Schema, specs: &[PartitionSpec], format_version: u8) -> Result<()> {
    let (old, new) = (old.columns(), new.columns());
    for column in new.iter() {
        match old.find(column.id) {
            Some(before) => {
                check_promotion(before, column, &new, specs, format_version)?;
                check_initial_default(before, column, &new)?;
            }
            None if format_version >= 3 => check_added(column, &old, &new)?,
            None => {}
        }
    }
    Ok(())
}

fn check_promotion(
    before: &Column<'_>,
    column: &Column<'_>,
    columns: &Columns<'_>,
    specs: &[PartitionSpec],
    format_version: u8,
) -> Result<()> {
    let is_allowed = match (before.r#type, column.r#type) {
        (Type::Primitive(old), Type::Primitive(new)) => {
            let is_partitioned = || {
                specs.iter().flat_map(|spec| &spec.fields).any(|field| {
                    field.source == Source::Column(column.id) && !field.transform.survives_date_promotion()
                })
            };
            let changes_values = *old == Primitive::Date && *new != Primitive::Date;
            old.promotes_to(new, format_version) && !(changes_values && is_partitioned())
        }
        (Type::Primitive(Primitive::Unknown), _) => format_version >= 3,
        (Type::Struct(_), Type::Struct(_)) | (Type::List(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) => true,
        _ => false,
    };
    ensure(is_allowed, || {
        let name = columns.path(column);
        format!("cannot change type of column {name}: {} to {}", before.r#type.kind(), column.r#type.kind())
    })
}

fn check_initial_default(before: &Column<'_>, column: &Column<'_>, columns: &Columns<'_>) -> Result<()> {
    let default = |column: &Column<'_>| column.field.and_then(|field| field.initial_default.clone());
    ensure(default(before) == default(column), || {
        format!("initial-default of column {} cannot change", columns.path(column))
    })
}

fn check_added(column: &Column<'_>, old: &Columns<'_>, new: &Columns<'_>) -> Result<()> {
    let Some(field) = column.field.filter(|field| field.required) else { return Ok(()) };
    // Fields of a struct that is new itself come with every value of it.
    let is_in_known_struct = new.parent(column).is_none_or(|parent| old.find(parent.id).is_some());
    let has_defaults = field.initial_default.is_some() && field.write_default.is_some();
    ensure(has_defaults || !is_in_known_struct, || {
        format!("new required column needs initial-default and write-default: {}", new.path(column))
    })
}
