//! Versions of a view, the queries they hold, and the log of which was current when (view specification, "Versions",
//! "Representations" and "Version log").

use super::super::{
    Error, Result, ensure,
    json::{
        Extras, Members, Reader,
        write::{self, Object},
    },
};
use std::collections::{BTreeMap, BTreeSet};

/// One state of a view. Versions do not change once they are made.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewVersion {
    pub id: i32,
    pub schema_id: i32,
    /// When it was made, as its maker says. Milliseconds since 1970.
    pub timestamp_ms: i64,
    pub representations: Vec<Representation>,
    summary: BTreeMap<String, String>,
    default_catalog: Option<String>,
    default_namespace: Vec<String>,
    extras: Extras,
}

/// One way to express what the view shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Representation {
    Sql {
        sql: String,
        dialect: String,
        extras: Extras,
    },
    /// Of a type that this version does not know: kept as it came.
    Other {
        kind: String,
        json: Box<str>,
    },
}

/// When a version became the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub timestamp_ms: i64,
    pub version_id: i32,
    extras: Extras,
}

impl ViewVersion {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut members = Members::read(reader)?;
        Ok(ViewVersion {
            id: members.required("version-id", Reader::int32)?,
            schema_id: members.required("schema-id", Reader::int32)?,
            timestamp_ms: members.required("timestamp-ms", Reader::int64)?,
            representations: members.required("representations", |reader, _| reader.list(Representation::read))?,
            summary: members.required("summary", Reader::string_map)?.into_iter().collect(),
            default_catalog: members.optional("default-catalog", Reader::text)?,
            default_namespace: members.required("default-namespace", Reader::string_list)?,
            extras: members.extras(),
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        object.int("version-id", self.id);
        object.int("timestamp-ms", self.timestamp_ms);
        object.int("schema-id", self.schema_id);
        let mut summary = Object::begin(object.key("summary"));
        self.summary.iter().for_each(|(key, value)| summary.string(key, value));
        summary.end();
        if let Some(catalog) = &self.default_catalog {
            object.string("default-catalog", catalog);
        }
        object.array("default-namespace", &self.default_namespace, |out, level| write::string(out, level));
        object.array("representations", &self.representations, |out, representation| representation.write(out));
        object.extras(&self.extras);
        object.end();
    }

    pub(super) fn with_ids(self, id: i32, schema_id: i32) -> Self {
        ViewVersion { id, schema_id, ..self }
    }

    /// Whether both say the same, whatever their ids and the times they were made.
    pub(super) fn is_same(&self, other: &ViewVersion) -> bool {
        let ViewVersion { id: _, timestamp_ms: _, schema_id, representations, summary, .. } = self;
        *schema_id == other.schema_id
            && *representations == other.representations
            && *summary == other.summary
            && self.default_catalog == other.default_catalog
            && self.default_namespace == other.default_namespace
            && self.extras == other.extras
    }

    /// Dialects of its queries, in lower case: they are told apart without regard to case.
    pub fn dialects(&self) -> BTreeSet<String> {
        self.representations.iter().filter_map(Representation::dialect).collect()
    }

    /// Checks what a version must satisfy, new or stored.
    ///
    /// # Errors
    /// `Error::IllegalArgument` for two queries in one dialect. The text is matched by clients' test suites.
    pub(super) fn check(&self) -> Result<()> {
        let mut seen = BTreeSet::new();
        for dialect in self.representations.iter().filter_map(Representation::dialect) {
            if let Some(dialect) = seen.replace(dialect) {
                let message = format!("Invalid view version: Cannot add multiple queries for dialect {dialect}");
                return Err(Error::IllegalArgument(message));
            }
        }
        Ok(())
    }

    /// Checks a version being added.
    ///
    /// # Errors
    /// As [`Self::check`]; `Error::Invalid` when it has no query, or a representation nobody specified.
    pub(super) fn check_new(&self) -> Result<()> {
        ensure(!self.representations.is_empty(), || "a view version needs a representation".to_owned())?;
        for representation in &self.representations {
            if let Representation::Other { kind, .. } = representation {
                return Err(Error::Invalid(format!("unknown type of view representation: {kind}")));
            }
        }
        self.check()
    }
}

impl Representation {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let start = reader.start();
        let mut members = Members::read(reader)?;
        let kind = members.required("type", Reader::text)?;
        if !kind.eq_ignore_ascii_case("sql") {
            return Ok(Representation::Other { kind, json: reader.since(start).into() });
        }
        Ok(Representation::Sql {
            sql: members.required("sql", Reader::text)?,
            dialect: members.required("dialect", Reader::text)?,
            extras: members.extras(),
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Representation::Other { json, .. } => out.extend_from_slice(json.as_bytes()),
            Representation::Sql { sql, dialect, extras } => {
                let mut object = Object::begin(out);
                object.string("type", "sql");
                object.string("sql", sql);
                object.string("dialect", dialect);
                object.extras(extras);
                object.end();
            }
        }
    }

    /// In lower case; `None` for what is no SQL.
    fn dialect(&self) -> Option<String> {
        match self {
            Representation::Sql { dialect, .. } => Some(dialect.to_lowercase()),
            Representation::Other { .. } => None,
        }
    }
}

impl LogEntry {
    pub(super) fn new(timestamp_ms: i64, version_id: i32) -> Self {
        LogEntry { timestamp_ms, version_id, extras: Extras::default() }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut members = Members::read(reader)?;
        Ok(LogEntry {
            timestamp_ms: members.required("timestamp-ms", Reader::int64)?,
            version_id: members.required("version-id", Reader::int32)?,
            extras: members.extras(),
        })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        object.int("timestamp-ms", self.timestamp_ms);
        object.int("version-id", self.version_id);
        object.extras(&self.extras);
        object.end();
    }
}
