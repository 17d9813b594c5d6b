//! What a create-table request becomes: fresh ids, bound spec and order, version-checked types.

use super::{
    Error, Result,
    builder::Builder,
    commit::FORMAT_VERSION_DEFAULT,
    json::Reader,
    location,
    metadata::TableMetadata,
    partition::UnboundSpec,
    properties,
    schema::Schema,
    sort::SortOrder,
    update::{LAST_ADDED, Update},
};
use std::collections::BTreeMap;

/// What the reference catalogs give every new table unless the request says otherwise.
const PARQUET_COMPRESSION: (&str, &str) = ("write.parquet.compression-codec", "zstd");

/// `CreateTableRequest` of the REST specification, parsed.
#[derive(Debug, Clone)]
pub struct CreateTable {
    pub name: String,
    pub location: Option<String>,
    pub stage_create: bool,
    pub properties: Vec<(String, String)>,
    schema: Schema,
    spec: Option<UnboundSpec>,
    write_order: Option<SortOrder>,
}

impl CreateTable {
    /// # Errors
    /// `Error::Invalid` for malformed JSON, wrong types and missing fields. Unknown fields are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Reader::whole(bytes, |reader| {
            let (mut name, mut table_location, mut stage_create, mut table_properties) = (None, None, None, None);
            let (mut schema, mut spec, mut write_order) = (None, None, None);
            reader.members(|reader, key| {
                match key {
                    "name" => name = Some(reader.string(key)?.into_owned()),
                    "location" => {
                        table_location = reader.optional(|reader| location::stripped(&reader.string(key)?))?;
                    }
                    "stage-create" => stage_create = reader.optional(|reader| reader.boolean(key))?,
                    "properties" => table_properties = reader.optional(|reader| reader.string_map(key))?,
                    "schema" => schema = Some(Schema::read(reader)?),
                    "partition-spec" => spec = reader.optional(UnboundSpec::read)?,
                    "write-order" => write_order = reader.optional(SortOrder::read)?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })?;
            let missing = |field: &str| Error::Invalid(format!("missing field: {field}"));
            Ok(CreateTable {
                name: name.ok_or_else(|| missing("name"))?,
                location: table_location,
                stage_create: stage_create.unwrap_or(false),
                properties: table_properties.unwrap_or_default(),
                schema: schema.ok_or_else(|| missing("schema"))?,
                spec,
                write_order,
            })
        })
    }

    /// Builds the first metadata of a table at `location`. Field ids are counted from 1, partition field ids from 1000,
    /// whatever the request says; sources of the spec and the order follow. `now_ms` is in milliseconds since 1970.
    ///
    /// # Errors
    /// `Error::Invalid` when schema, spec, order or properties break a rule.
    pub fn metadata(&self, location: &str, uuid: uuid::Uuid, now_ms: i64) -> Result<TableMetadata> {
        let (schema, new_of_old) = self.schema.clone().with_fresh_ids(0)?;
        let spec = self.spec.clone().unwrap_or_else(UnboundSpec::unpartitioned).renumbered(&new_of_old)?;
        let order = self.write_order.clone().unwrap_or_else(SortOrder::unsorted).renumbered(&new_of_old)?;
        let (format_version, stored) = self.stored_properties()?;
        properties::check_new(&stored, &schema.columns(), format_version)?;

        let mut builder = Builder::empty(format_version, now_ms);
        for update in [
            Update::AddSchema(schema),
            Update::SetCurrentSchema(LAST_ADDED),
            Update::AddSpec(spec),
            Update::SetDefaultSpec(LAST_ADDED),
            Update::AddSortOrder(order),
            Update::SetDefaultSortOrder(LAST_ADDED),
            Update::SetLocation(location::stripped(location)?),
            Update::SetProperties(stored.into_iter().collect()),
        ] {
            builder.apply(&update)?;
        }
        builder.finish_new(uuid)
    }

    /// The format version asked for, and the properties without those that are never stored.
    fn stored_properties(&self) -> Result<(u8, BTreeMap<String, String>)> {
        let (key, value) = PARQUET_COMPRESSION;
        let mut stored = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        stored.extend(self.properties.iter().cloned());
        let format_version = match stored.get(properties::FORMAT_VERSION) {
            Some(value) => properties::requested_format_version(value)?,
            None => FORMAT_VERSION_DEFAULT,
        };
        stored.retain(|key, _| !properties::is_reserved(key));
        Ok((format_version, stored))
    }
}
