//! A table commit: requirements checked against a base, updates applied in order.
//!
//! Applying is pure, so a commit that lost a race is simply applied again to the newer base.

use super::{
    Error, Result,
    builder::Builder,
    ensure,
    ident::TableIdent,
    json::Reader,
    metadata::TableMetadata,
    requirement::Requirement,
    update::{UPDATES_MAX, Update},
};

/// The format version of a new table that names none.
pub(super) const FORMAT_VERSION_DEFAULT: u8 = 2;

/// Changes in one transaction.
pub const CHANGES_MAX: usize = 1_000;

/// `CommitTableRequest` of the REST specification: requirements and updates, parsed.
#[derive(Debug, Clone)]
pub struct Commit {
    pub identifier: Option<TableIdent>,
    requirements: Vec<Requirement>,
    updates: Vec<Update>,
}

impl Commit {
    /// # Errors
    /// `Error::Invalid` for malformed JSON and for unknown updates or requirements.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Reader::whole(bytes, Self::read)
    }

    /// `CommitTransactionRequest` of the REST specification: commits to several tables.
    ///
    /// # Errors
    /// As [`Commit::parse`]; `Error::Invalid` when `table-changes` is missing or has more than [`CHANGES_MAX`].
    pub fn parse_transaction(bytes: &[u8]) -> Result<Vec<Self>> {
        Reader::whole(bytes, |reader| {
            let mut changes = None;
            reader.members(|reader, key| {
                match key {
                    "table-changes" => changes = reader.optional(Self::read_changes)?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })?;
            changes.ok_or_else(|| Error::Invalid("missing field: table-changes".to_owned()))
        })
    }

    fn read_changes(reader: &mut Reader<'_>) -> Result<Vec<Self>> {
        let mut changes = Vec::new();
        reader.elements(|reader| {
            ensure(changes.len() < CHANGES_MAX, || format!("a transaction has at most {CHANGES_MAX} changes"))?;
            changes.push(Self::read(reader)?);
            Ok(())
        })?;
        Ok(changes)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let (mut identifier, mut requirements, mut updates) = (None, None, Vec::new());
        reader.members(|reader, key| {
            match key {
                "identifier" => identifier = reader.optional(TableIdent::read)?,
                "requirements" => {
                    requirements = reader.optional(|reader| reader.list(Requirement::read))?;
                }
                "updates" => {
                    let mut list = Vec::new();
                    reader
                        .optional(|reader| reader.elements(|reader| Update::push(&mut list, Update::read(reader)?)))?;
                    updates = list;
                }
                _ => drop(reader.skip()?),
            }
            Ok(())
        })?;
        Ok(Commit { identifier, requirements: requirements.unwrap_or_default(), updates })
    }

    /// Whether this completes a staged create (`assert-create` is required).
    pub fn is_create(&self) -> bool {
        self.requirements.iter().any(|requirement| matches!(requirement, Requirement::Create))
    }

    /// Whether several commits to one table can become one version of it.
    ///
    /// # Errors
    /// `Error::Invalid` when a later one requires that there is no table, or when there are more than `UPDATES_MAX`
    /// updates in all.
    pub fn check_together(commits: &[Commit]) -> Result<()> {
        let is_first_create = !commits.iter().skip(1).any(Commit::is_create);
        ensure(is_first_create, || "a later one requires that the table does not exist".to_owned())?;
        let updates: usize = commits.iter().map(|commit| commit.updates.len()).sum();
        ensure(updates <= UPDATES_MAX, || format!("more than {UPDATES_MAX} updates in one transaction"))
    }

    /// The metadata after this commit, or `None` when nothing changes. `base_location` is the metadata file of `base`
    /// and joins the metadata log. `now_ms` is the time in milliseconds since 1970.
    ///
    /// # Errors
    /// `Error::Conflict` when a requirement fails, `Error::Invalid` when an update breaks a rule.
    pub fn apply(&self, base: &TableMetadata, base_location: &str, now_ms: i64) -> Result<Option<TableMetadata>> {
        Commit::apply_all([self], base, base_location, now_ms)
    }

    /// The metadata after several commits to one table, each on top of the one before, as one new version.
    ///
    /// # Errors
    /// As [`Commit::apply`].
    pub fn apply_all<'c>(
        commits: impl IntoIterator<Item = &'c Commit>,
        base: &TableMetadata,
        base_location: &str,
        now_ms: i64,
    ) -> Result<Option<TableMetadata>> {
        let mut builder = Builder::new(base, now_ms);
        commits.into_iter().try_for_each(|commit| commit.run(&mut builder))?;
        builder.finish(base_location)
    }

    fn run(&self, builder: &mut Builder) -> Result<()> {
        self.requirements.iter().try_for_each(|requirement| requirement.check(builder.metadata()))?;
        builder.begin_commit();
        self.updates.iter().try_for_each(|update| builder.apply(update))
    }

    /// The first metadata of a table created by this commit. `uuid` is used when no `assign-uuid` is among the updates.
    ///
    /// # Errors
    /// `Error::Invalid` when other requirements stand beside `assert-create` or the updates do not make a whole table.
    pub fn create(&self, uuid: uuid::Uuid, now_ms: i64) -> Result<TableMetadata> {
        self.create_then([], uuid, now_ms)
    }

    /// As [`Commit::create`], with further commits on top in the first version.
    ///
    /// # Errors
    /// As [`Commit::create`] and [`Commit::apply`].
    pub fn create_then<'c>(
        &self,
        further: impl IntoIterator<Item = &'c Commit>,
        uuid: uuid::Uuid,
        now_ms: i64,
    ) -> Result<TableMetadata> {
        let is_create_only = self.requirements.iter().all(|requirement| matches!(requirement, Requirement::Create));
        ensure(is_create_only, || "no other requirement may stand beside assert-create".to_owned())?;
        // A table of an older version than the default was staged as that: it is not a downgrade.
        let staged = self.updates.iter().find_map(|update| match update {
            Update::UpgradeFormatVersion(version) => Some(*version),
            _ => None,
        });
        let format_version = match staged {
            None => FORMAT_VERSION_DEFAULT,
            Some(version) => u8::try_from(version)
                .ok()
                .filter(|version| (1..=super::metadata::FORMAT_VERSION_MAX).contains(version))
                .ok_or_else(|| Error::Invalid(format!("unsupported format version: v{version}")))?,
        };
        let mut builder = Builder::empty(format_version, now_ms);
        self.updates.iter().try_for_each(|update| builder.apply(update))?;
        further.into_iter().try_for_each(|commit| commit.run(&mut builder))?;
        builder.finish_new(uuid)
    }
}
