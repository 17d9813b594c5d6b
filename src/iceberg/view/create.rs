//! What a create-view request becomes: the first version of a view.

use super::{
    super::{
        Error, Result,
        json::{Extras, Reader},
        location,
        schema::Schema,
        schema_rules,
    },
    SCHEMA_RULES_VERSION, ViewMetadata, check_property,
    version::{LogEntry, ViewVersion},
};
use std::sync::Arc;
use uuid::Uuid;

const SCHEMA_ID_FIRST: i32 = 0;
pub(super) const VERSION_ID_FIRST: i32 = 1;

/// `CreateViewRequest` of the REST specification, parsed.
#[derive(Debug, Clone)]
pub struct CreateView {
    pub name: String,
    pub location: Option<String>,
    schema: Schema,
    version: ViewVersion,
    properties: Vec<(String, String)>,
}

impl CreateView {
    /// # Errors
    /// `Error::Invalid` for malformed JSON, wrong types and missing fields. Unknown fields are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Reader::whole(bytes, |reader| {
            let (mut name, mut view_location, mut properties) = (None, None, None);
            let (mut schema, mut version) = (None, None);
            reader.members(|reader, key| {
                match key {
                    "name" => name = Some(reader.text(key)?),
                    "location" => {
                        view_location = reader.optional(|reader| location::stripped(&reader.string(key)?))?;
                    }
                    "schema" => schema = Some(Schema::read(reader)?),
                    "view-version" => version = Some(ViewVersion::read(reader)?),
                    "properties" => properties = reader.optional(|reader| reader.string_map(key))?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })?;
            let missing = |field: &str| Error::Invalid(format!("missing field: {field}"));
            Ok(CreateView {
                name: name.ok_or_else(|| missing("name"))?,
                location: view_location,
                schema: schema.ok_or_else(|| missing("schema"))?,
                version: version.ok_or_else(|| missing("view-version"))?,
                properties: properties.unwrap_or_default(),
            })
        })
    }

    /// Builds the first metadata of a view at `location`. The ids of schema and version are ours, whatever the request
    /// says; ids of fields stay as they are.
    ///
    /// # Errors
    /// `Error::Invalid` when schema, version or properties break a rule.
    pub fn metadata(&self, location: &str, uuid: Uuid) -> Result<ViewMetadata> {
        schema_rules::check_new(&self.schema, SCHEMA_RULES_VERSION)?;
        self.version.check_new()?;
        self.properties.iter().try_for_each(|(key, value)| check_property(key, value))?;
        let version = self.version.clone().with_ids(VERSION_ID_FIRST, SCHEMA_ID_FIRST);
        Ok(ViewMetadata {
            uuid,
            location: location::stripped(location)?,
            schemas: vec![Arc::new(self.schema.clone().with_id(SCHEMA_ID_FIRST))],
            current_version_id: version.id,
            log: vec![LogEntry::new(version.timestamp_ms, version.id)],
            versions: vec![Arc::new(version)],
            properties: self.properties.iter().cloned().collect(),
            extras: Extras::default(),
        })
    }
}
