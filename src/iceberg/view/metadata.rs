//! The content of one view metadata file: parsed, validated, written (view specification, "View Metadata").

use super::{
    super::{
        Result, ensure,
        json::{Extras, Members, Reader, write::Object},
        location,
        metadata::check_unique,
        properties::{GC_ENABLED, MetadataCodec, PATHS},
        schema::Schema,
    },
    FORMAT_VERSION,
    version::{LogEntry, ViewVersion},
};
use std::{collections::BTreeMap, sync::Arc};
use uuid::Uuid;

/// The content of one metadata file of a view.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewMetadata {
    pub(super) uuid: Uuid,
    pub(super) location: String,
    pub(super) schemas: Vec<Arc<Schema>>,
    pub(super) current_version_id: i32,
    pub(super) versions: Vec<Arc<ViewVersion>>,
    pub(super) log: Vec<LogEntry>,
    pub(super) properties: BTreeMap<String, String>,
    pub(super) extras: Extras,
}

impl ViewMetadata {
    /// Parses a metadata file (plain JSON; the caller has undone any gzip).
    ///
    /// # Errors
    /// `Error::Invalid` naming the rule broken (view specification, "View Metadata").
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let metadata = Reader::whole(bytes, Self::read)?;
        metadata.check()?;
        Ok(metadata)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut members = Members::read(reader)?;
        let format_version = members.required("format-version", Reader::int32)?;
        ensure(format_version == i32::from(FORMAT_VERSION), || {
            format!("unsupported view format version: v{format_version} (supported: v{FORMAT_VERSION})")
        })?;
        // A draft of the specification had it: it would go stale beside the current version's own.
        members.remove(&["current-schema-id"]);
        let properties = members.optional("properties", Reader::string_map)?.unwrap_or_default();
        Ok(ViewMetadata {
            uuid: members.required("view-uuid", Reader::uuid)?,
            location: members.required("location", |reader, key| location::stripped(&reader.string(key)?))?,
            schemas: members
                .required("schemas", |reader, _| reader.list(|reader| Schema::read(reader).map(Arc::new)))?,
            current_version_id: members.required("current-version-id", Reader::int32)?,
            versions: members
                .required("versions", |reader, _| reader.list(|reader| ViewVersion::read(reader).map(Arc::new)))?,
            log: members.required("version-log", |reader, _| reader.list(LogEntry::read))?,
            properties: properties.into_iter().collect(),
            extras: members.extras(),
        })
    }

    /// The rules that hold between fields.
    fn check(&self) -> Result<()> {
        check_unique("schema", self.schemas().map(Schema::id))?;
        check_unique("view version", self.versions().map(|version| version.id))?;
        let current = self.version(self.current_version_id);
        ensure(current.is_some(), || format!("current view version not found: {}", self.current_version_id))?;
        let schema_id = current.map(|version| version.schema_id).unwrap_or_default();
        ensure(self.schema(schema_id).is_some(), || format!("current schema not found: {schema_id}"))?;
        self.versions().try_for_each(ViewVersion::check)
    }

    /// The JSON to store and to answer: the reference writer's field order, unknown fields last.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut object = Object::begin(&mut out);
        object.string("view-uuid", &self.uuid.to_string());
        object.int("format-version", FORMAT_VERSION);
        object.string("location", &self.location);
        let mut properties = Object::begin(object.key("properties"));
        self.properties.iter().for_each(|(key, value)| properties.string(key, value));
        properties.end();
        object.array("schemas", self.schemas(), |out, schema| out.extend_from_slice(schema.json().as_bytes()));
        object.int("current-version-id", self.current_version_id);
        object.array("versions", self.versions(), |out, version| version.write(out));
        object.array("version-log", &self.log, |out, entry| entry.write(out));
        object.extras(&self.extras);
        object.end();
        out
    }

    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// The view's base location, without a trailing slash.
    pub fn location(&self) -> &str {
        &self.location
    }

    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    /// Whether its file goes with it (`gc.enabled`; what is not true counts as false).
    pub fn collects_garbage(&self) -> bool {
        self.property(GC_ENABLED).is_none_or(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether a property is set to true, in whatever case.
    pub(super) fn is_set(&self, key: &str) -> bool {
        self.property(key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// How this view's metadata files are compressed: views default to gzip.
    pub fn metadata_codec(&self) -> MetadataCodec {
        MetadataCodec::of(&self.properties).unwrap_or(MetadataCodec::Gzip)
    }

    /// Every location the metadata records for files of the view: `location`, `write.metadata.path`, ….
    pub fn recorded_locations(&self) -> Vec<&str> {
        let paths = PATHS.into_iter().filter_map(|key| self.property(key));
        std::iter::once(self.location()).chain(paths).collect()
    }

    pub fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.schemas.iter().map(|schema| &**schema)
    }

    pub fn schema(&self, id: i32) -> Option<&Schema> {
        self.schemas().find(|schema| schema.id() == id)
    }

    pub fn versions(&self) -> impl Iterator<Item = &ViewVersion> {
        self.versions.iter().map(|version| &**version)
    }

    pub fn version(&self, id: i32) -> Option<&ViewVersion> {
        self.versions().find(|version| version.id == id)
    }

    /// The current version; `None` never happens in parsed or committed metadata.
    pub fn current_version(&self) -> Option<&ViewVersion> {
        self.version(self.current_version_id)
    }

    /// When which version became current, oldest first.
    pub fn version_log(&self) -> &[LogEntry] {
        &self.log
    }
}
