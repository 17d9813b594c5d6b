//! Applies updates to a view's metadata, one after the other, then finishes what a change as a whole entails.
//!
//! Each update either holds to the rules or fails the whole commit; the base is never touched. Lost dialects, the log
//! and versions that have had their time are the end result's matter: [`Builder::finish`].

use super::{
    super::{
        Error, Result,
        builder::{NewId, resolve, reused_or_next},
        ensure,
        schema::Schema,
        schema_rules,
    },
    DROP_DIALECT_ALLOWED, FORMAT_VERSION, HISTORY_SIZE, HISTORY_SIZE_DEFAULT, SCHEMA_RULES_VERSION, ViewMetadata,
    check_property,
    create::VERSION_ID_FIRST,
    update::ViewUpdate,
    version::{LogEntry, ViewVersion},
};
use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};
use uuid::Uuid;

pub struct Builder<'b> {
    base: &'b ViewMetadata,
    metadata: ViewMetadata,
    now_ms: i64,
    last_added_schema: Option<i32>,
    last_added_version: Option<i32>,
    /// Versions that this request brought, besides those that were there already.
    new_versions: BTreeSet<i32>,
}

impl<'b> Builder<'b> {
    /// `now_ms` is the time of the commit, in milliseconds since 1970.
    pub fn new(base: &'b ViewMetadata, now_ms: i64) -> Self {
        Builder {
            base,
            metadata: base.clone(),
            now_ms,
            last_added_schema: None,
            last_added_version: None,
            new_versions: BTreeSet::new(),
        }
    }

    /// # Errors
    /// `Error::Invalid` when the update breaks a rule.
    pub fn apply(&mut self, update: &ViewUpdate) -> Result<()> {
        match update {
            ViewUpdate::AssignUuid(uuid) => self.assign_uuid(*uuid),
            ViewUpdate::UpgradeFormatVersion(version) => upgrade_format_version(*version),
            ViewUpdate::AddSchema(schema) => self.add_schema(schema),
            ViewUpdate::SetLocation(location) => {
                self.metadata.location.clone_from(location);
                Ok(())
            }
            ViewUpdate::SetProperties(properties) => self.set_properties(properties),
            ViewUpdate::RemoveProperties(keys) => {
                keys.iter().for_each(|key| drop(self.metadata.properties.remove(key)));
                Ok(())
            }
            ViewUpdate::AddVersion(version) => self.add_version(version),
            ViewUpdate::SetCurrentVersion(id) => self.set_current_version(*id),
        }
    }

    /// The next metadata of the view; `None` when it is the same.
    ///
    /// # Errors
    /// `Error::Invalid` when the new current version lacks a dialect and the properties do not allow that.
    pub fn finish(mut self) -> Result<Option<ViewMetadata>> {
        if self.metadata == *self.base {
            return Ok(None);
        }
        self.check_dialects()?;
        self.log_current_version();
        self.expire_versions();
        Ok(Some(self.metadata))
    }

    fn assign_uuid(&self, uuid: Uuid) -> Result<()> {
        let assigned = self.metadata.uuid;
        ensure(assigned == uuid, || format!("cannot reassign uuid: {assigned} to {uuid}"))
    }

    /// Ids of fields are kept to the letter; the schema id is ours to give.
    fn add_schema(&mut self, schema: &Schema) -> Result<()> {
        schema_rules::check_new(schema, SCHEMA_RULES_VERSION)?;
        let id = match reused_or_next(self.metadata.schemas(), 0, Schema::id, |known| known.is_same(schema))? {
            NewId::Known(id) => id,
            NewId::Next(id) => {
                self.metadata.schemas.push(Arc::new(schema.clone().with_id(id)));
                id
            }
        };
        self.last_added_schema = Some(id);
        Ok(())
    }

    fn set_properties(&mut self, updates: &[(String, String)]) -> Result<()> {
        for (key, value) in updates {
            check_property(key, value)?;
            self.metadata.properties.insert(key.clone(), value.clone());
        }
        Ok(())
    }

    /// A version that says what one already says is that one; otherwise its id is ours to give.
    fn add_version(&mut self, version: &ViewVersion) -> Result<()> {
        version.check_new()?;
        let schema_id = resolve(version.schema_id, self.last_added_schema, "schema")?;
        ensure(self.metadata.schema(schema_id).is_some(), || {
            format!("cannot add a view version with unknown schema: {schema_id}")
        })?;
        let version = version.clone().with_ids(version.id, schema_id);
        let is_same = |known: &ViewVersion| known.is_same(&version);
        let id = match reused_or_next(self.metadata.versions(), VERSION_ID_FIRST, |known| known.id, is_same)? {
            NewId::Known(id) => id,
            NewId::Next(id) => {
                self.metadata.versions.push(Arc::new(version.with_ids(id, schema_id)));
                self.new_versions.insert(id);
                id
            }
        };
        self.last_added_version = Some(id);
        Ok(())
    }

    fn set_current_version(&mut self, id: i32) -> Result<()> {
        let id = resolve(id, self.last_added_version, "view version")?;
        ensure(self.metadata.version(id).is_some(), || {
            format!("cannot set current version to unknown view version: {id}")
        })?;
        self.metadata.current_version_id = id;
        Ok(())
    }

    /// Only the versions that were current before and are now count, not those in between.
    fn check_dialects(&self) -> Result<()> {
        let dialects = |metadata: &ViewMetadata| metadata.current_version().map(ViewVersion::dialects);
        let before = dialects(self.base).unwrap_or_default();
        let after = dialects(&self.metadata).unwrap_or_default();
        let is_allowed = before.is_subset(&after) || self.metadata.is_set(DROP_DIALECT_ALLOWED);
        ensure(is_allowed, || {
            format!(
                "cannot replace a view by one that lacks its dialects ({DROP_DIALECT_ALLOWED} is not true): it has \
                 {before:?}, the new version {after:?}"
            )
        })
    }

    fn log_current_version(&mut self) {
        let metadata = &mut self.metadata;
        let id = metadata.current_version_id;
        if id == self.base.current_version_id {
            return;
        }
        // A version made now says when; one that comes back comes back now.
        let is_new = self.new_versions.contains(&id);
        let made_at_ms = metadata.version(id).filter(|_| is_new).map(|version| version.timestamp_ms);
        metadata.log.push(LogEntry::new(made_at_ms.unwrap_or(self.now_ms), id));
    }

    /// Keeps the newest versions and the current one, and no log from before a version that goes.
    fn expire_versions(&mut self) {
        let metadata = &mut self.metadata;
        let current_id = metadata.current_version_id;
        self.new_versions.insert(current_id);
        let set = metadata.property(HISTORY_SIZE).and_then(|size| size.parse().ok()).filter(|&size: &usize| size > 0);
        let count_max = set.unwrap_or(HISTORY_SIZE_DEFAULT).max(self.new_versions.len());
        if metadata.versions.len() <= count_max {
            return;
        }
        let mut ids: Vec<i32> = metadata.versions().map(|version| version.id).filter(|&id| id != current_id).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let kept: HashSet<i32> = ids.into_iter().take(count_max - 1).chain([current_id]).collect();
        metadata.versions.retain(|version| kept.contains(&version.id));
        let cut = metadata.log.iter().rposition(|entry| !kept.contains(&entry.version_id));
        metadata.log.drain(..cut.map_or(0, |last_gone| last_gone + 1));
    }
}

fn upgrade_format_version(version: i32) -> Result<()> {
    if version == i32::from(FORMAT_VERSION) {
        return Ok(());
    }
    let problem = if version < i32::from(FORMAT_VERSION) { "downgrade" } else { "upgrade" };
    Err(Error::Invalid(format!("cannot {problem} v{FORMAT_VERSION} view to v{version}")))
}
