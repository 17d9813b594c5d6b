//! The changes a commit to a view makes (REST specification, `ViewUpdate`): 8 actions, parsed. `builder` applies them.

use super::{
    super::{
        Error, Result,
        json::{Members, Reader},
        location,
        schema::Schema,
        update::renamed,
    },
    version::ViewVersion,
};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub enum ViewUpdate {
    AssignUuid(Uuid),
    UpgradeFormatVersion(i32),
    AddSchema(Schema),
    SetLocation(String),
    SetProperties(Vec<(String, String)>),
    RemoveProperties(Vec<String>),
    AddVersion(ViewVersion),
    SetCurrentVersion(i32),
}

impl ViewUpdate {
    /// # Errors
    /// `Error::Invalid` for unknown actions, actions on tables, and fields that are missing or malformed.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut members = Members::read(reader)?;
        let action = members.required("action", Reader::text)?;
        match action.to_ascii_lowercase().as_str() {
            "assign-uuid" => members.required("uuid", Reader::uuid).map(ViewUpdate::AssignUuid),
            "upgrade-format-version" => {
                members.required("format-version", Reader::int32).map(ViewUpdate::UpgradeFormatVersion)
            }
            "add-schema" => members.required("schema", |reader, _| Schema::read(reader)).map(ViewUpdate::AddSchema),
            "set-location" => members
                .required("location", |reader, key| location::stripped(&reader.string(key)?))
                .map(ViewUpdate::SetLocation),
            "set-properties" => {
                renamed(&mut members, ["updates", "updated"], Reader::string_map).map(ViewUpdate::SetProperties)
            }
            "remove-properties" => {
                renamed(&mut members, ["removals", "removed"], Reader::string_list).map(ViewUpdate::RemoveProperties)
            }
            "add-view-version" => {
                members.required("view-version", |reader, _| ViewVersion::read(reader)).map(ViewUpdate::AddVersion)
            }
            "set-current-view-version" => {
                members.required("view-version-id", Reader::int32).map(ViewUpdate::SetCurrentVersion)
            }
            _ => Err(Error::Invalid(format!("not an update of a view: {action}"))),
        }
    }
}
