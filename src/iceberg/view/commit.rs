//! A commit to a view, a "replace": requirements checked against a base, updates applied in order.
//!
//! Applying is pure, so a commit that lost a race is simply applied again to the newer base.

use super::{
    super::{
        Error, Result, ensure,
        ident::TableIdent,
        json::{Members, Reader},
    },
    ViewMetadata,
    builder::Builder,
    update::ViewUpdate,
};

/// Updates in a commit: each may have to look through what the others added.
pub const UPDATES_MAX: usize = 1_000;

/// `CommitViewRequest` of the REST specification: requirements and updates, parsed.
#[derive(Debug, Clone)]
pub struct ViewCommit {
    pub identifier: Option<TableIdent>,
    requirements: Vec<Requirement>,
    updates: Vec<ViewUpdate>,
}

/// What must hold of a view for a commit to apply (REST specification, `ViewRequirement`).
#[derive(Debug, Clone)]
enum Requirement {
    Uuid(String),
}

impl ViewCommit {
    /// # Errors
    /// `Error::Invalid` for malformed JSON, and for updates and requirements that are unknown or for tables.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Reader::whole(bytes, |reader| {
            let (mut identifier, mut requirements, mut updates) = (None, None, None);
            reader.members(|reader, key| {
                match key {
                    "identifier" => identifier = reader.optional(TableIdent::read)?,
                    "requirements" => requirements = reader.optional(|reader| reader.list(Requirement::read))?,
                    "updates" => updates = reader.optional(|reader| reader.list(ViewUpdate::read))?,
                    _ => drop(reader.skip()?),
                }
                Ok(())
            })?;
            let updates = updates.unwrap_or_default();
            ensure(updates.len() <= UPDATES_MAX, || format!("a commit to a view has at most {UPDATES_MAX} updates"))?;
            Ok(ViewCommit { identifier, requirements: requirements.unwrap_or_default(), updates })
        })
    }

    /// The metadata after this commit, or `None` when nothing changes. `now_ms` is the time in milliseconds since 1970.
    ///
    /// # Errors
    /// `Error::Conflict` when a requirement fails, `Error::Invalid` when an update breaks a rule.
    pub fn apply(&self, base: &ViewMetadata, now_ms: i64) -> Result<Option<ViewMetadata>> {
        self.requirements.iter().try_for_each(|requirement| requirement.check(base))?;
        let mut builder = Builder::new(base, now_ms);
        self.updates.iter().try_for_each(|update| builder.apply(update))?;
        builder.finish()
    }
}

impl Requirement {
    fn read(reader: &mut Reader<'_>) -> Result<Self> {
        let mut members = Members::read(reader)?;
        let kind = members.required("type", Reader::text)?;
        match kind.to_ascii_lowercase().as_str() {
            "assert-view-uuid" => members.required("uuid", Reader::text).map(Requirement::Uuid),
            _ => Err(Error::Invalid(format!("not a requirement on a view: {kind}"))),
        }
    }

    /// The text is matched by clients' test suites.
    fn check(&self, base: &ViewMetadata) -> Result<()> {
        let Requirement::Uuid(expected) = self;
        let uuid = base.uuid().to_string();
        if uuid.eq_ignore_ascii_case(expected) {
            return Ok(());
        }
        Err(Error::Conflict(format!("Requirement failed: view UUID does not match: expected {uuid} != {expected}")))
    }
}
