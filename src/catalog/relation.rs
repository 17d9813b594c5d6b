//! What tables and views have in common: a row that points at a metadata file, and a name in a namespace.
//!
//! Making, committing to and finding either is the same work; [`Relation`] says where they differ. Callers are
//! authorised where the use cases begin, in `tables.rs` and `views.rs` and beside them.

use super::{
    Caches, Error, Result,
    document::{Document, Documents},
    idempotency::{self, Key, Version},
    warehouses::Warehouse,
};
use crate::{
    app::App,
    db::{
        self, Page,
        tables::{Kind, Rename, TableRow},
    },
    iceberg::{
        self, MetadataCodec,
        commit::Commit,
        ident::{Namespace, TableIdent},
        metadata::TableMetadata,
        view::{self, ViewMetadata, commit::ViewCommit},
    },
};
use std::sync::Arc;
use uuid::Uuid;

/// The content of a metadata file: a table's or a view's.
pub trait Relation: Sized + std::fmt::Debug + Send + Sync + 'static {
    const KIND: Kind;
    /// A request to change it.
    type Commit: Send + Sync + 'static;

    /// # Errors
    /// `iceberg::Error::Invalid` naming the rule broken.
    fn parse(json: &[u8]) -> iceberg::Result<Self>;
    fn to_json(&self) -> Vec<u8>;
    /// `None` only for table files of format V1 that never had one.
    fn uuid(&self) -> Option<Uuid>;
    /// The same with `uuid` where the file had none.
    #[must_use]
    fn or_uuid(self, uuid: Uuid) -> Self;
    fn format_version(&self) -> u8;
    /// Checks what files that enter the catalog are held to, while stored ones are served either way.
    ///
    /// # Errors
    /// `iceberg::Error::Invalid` naming the rule broken.
    fn check_entering(&self) -> iceberg::Result<()>;
    /// The base location, without a trailing slash.
    fn location(&self) -> &str;
    /// Every place it names for files of its own, the base location first.
    fn recorded_locations(&self) -> Vec<&str>;
    fn property(&self, key: &str) -> Option<&str>;
    fn metadata_codec(&self) -> MetadataCodec;

    /// What a commit makes of `base`; `None` when nothing changes. `now_ms` is in milliseconds since 1970.
    ///
    /// # Errors
    /// `iceberg::Error::Conflict` when a requirement fails, `iceberg::Error::Invalid` when an update breaks a rule.
    fn apply(commit: &Self::Commit, base: &Document<Self>, now_ms: i64) -> iceberg::Result<Option<Self>>;
    /// Metadata files that `base` kept and this version, once published, does not.
    fn outdated_files<'b>(&self, base: &'b Self) -> Vec<&'b str>;

    /// Those read lately.
    fn documents(caches: &Caches) -> &Documents<Self>;
    /// The error that says that there is none of this name.
    fn missing(ident: &TableIdent) -> Error;
}

impl Relation for TableMetadata {
    const KIND: Kind = Kind::Table;
    type Commit = Commit;

    fn parse(json: &[u8]) -> iceberg::Result<Self> {
        TableMetadata::parse(json)
    }

    fn to_json(&self) -> Vec<u8> {
        self.to_json()
    }

    fn uuid(&self) -> Option<Uuid> {
        self.uuid()
    }

    fn or_uuid(self, uuid: Uuid) -> Self {
        self.or_uuid(uuid)
    }

    fn format_version(&self) -> u8 {
        self.format_version()
    }

    fn check_entering(&self) -> iceberg::Result<()> {
        self.check_defaults()
    }

    fn location(&self) -> &str {
        self.location()
    }

    fn recorded_locations(&self) -> Vec<&str> {
        self.recorded_locations()
    }

    fn property(&self, key: &str) -> Option<&str> {
        self.property(key)
    }

    fn metadata_codec(&self) -> MetadataCodec {
        self.metadata_codec()
    }

    fn apply(commit: &Commit, base: &Document, now_ms: i64) -> iceberg::Result<Option<Self>> {
        commit.apply(&base.metadata, &base.location, now_ms.max(base.metadata.last_updated_ms()))
    }

    fn outdated_files<'b>(&self, base: &'b Self) -> Vec<&'b str> {
        let wanted = self.property("write.metadata.delete-after-commit.enabled");
        match wanted.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            true => self.removed_from_log(base),
            false => Vec::new(),
        }
    }

    fn documents(caches: &Caches) -> &Documents<Self> {
        &caches.documents
    }

    fn missing(ident: &TableIdent) -> Error {
        Error::NoSuchTable(ident.clone())
    }
}

impl Relation for ViewMetadata {
    const KIND: Kind = Kind::View;
    type Commit = ViewCommit;

    fn parse(json: &[u8]) -> iceberg::Result<Self> {
        ViewMetadata::parse(json)
    }

    fn to_json(&self) -> Vec<u8> {
        self.to_json()
    }

    fn uuid(&self) -> Option<Uuid> {
        Some(self.uuid())
    }

    fn or_uuid(self, _: Uuid) -> Self {
        self
    }

    fn format_version(&self) -> u8 {
        view::FORMAT_VERSION
    }

    /// Reading a view is as strict.
    fn check_entering(&self) -> iceberg::Result<()> {
        Ok(())
    }

    fn location(&self) -> &str {
        self.location()
    }

    fn recorded_locations(&self) -> Vec<&str> {
        self.recorded_locations()
    }

    fn property(&self, key: &str) -> Option<&str> {
        self.property(key)
    }

    fn metadata_codec(&self) -> MetadataCodec {
        self.metadata_codec()
    }

    fn apply(commit: &ViewCommit, base: &Document<Self>, now_ms: i64) -> iceberg::Result<Option<Self>> {
        commit.apply(&base.metadata, now_ms)
    }

    /// A view's metadata names no earlier file.
    fn outdated_files<'b>(&self, _: &'b Self) -> Vec<&'b str> {
        Vec::new()
    }

    fn documents(caches: &Caches) -> &Documents<Self> {
        &caches.views
    }

    fn missing(ident: &TableIdent) -> Error {
        Error::NoSuchView(ident.clone())
    }
}

/// A table or view at one version.
#[derive(Debug, Clone)]
pub struct Entry<R> {
    pub warehouse: Arc<Warehouse>,
    pub row: TableRow,
    pub document: Arc<Document<R>>,
}

/// The row of one of this kind, not of the other.
///
/// # Errors
/// [`Relation::missing`], also when the namespace is missing or the name is of the other kind.
pub(super) async fn row<R: Relation>(app: &App, warehouse: &Warehouse, ident: &TableIdent) -> Result<TableRow> {
    let row = db::tables::load(&app.db, warehouse.id, ident).await.map_err(Error::read)?;
    row.filter(|row| row.kind == R::KIND).ok_or_else(|| R::missing(ident))
}

/// # Errors
/// As [`row`]; `Error::MetadataMissing`.
pub(super) async fn read<R: Relation>(app: &App, warehouse: &Arc<Warehouse>, ident: &TableIdent) -> Result<Entry<R>> {
    let row = row::<R>(app, warehouse, ident).await?;
    let document = R::documents(&app.catalog).read(warehouse, &row).await?;
    Ok(Entry { warehouse: Arc::clone(warehouse), row, document })
}

/// A version that an answer was about, whatever became of the name since; the current one where the answer was about
/// none, or where the file is gone.
///
/// # Errors
/// As [`read`].
pub(super) async fn read_version<R: Relation>(
    app: &App,
    warehouse: &Arc<Warehouse>,
    ident: &TableIdent,
    version: Option<Version>,
) -> Result<Arc<Document<R>>> {
    if let Some(Version { file, uuid }) = version {
        match R::documents(&app.catalog).read_file(warehouse, &file, uuid).await {
            Err(Error::MetadataMissing(_)) => {}
            read => return read,
        }
    }
    Ok(read::<R>(app, warehouse, ident).await?.document)
}

/// Names in order.
///
/// # Errors
/// `Error::NoSuchNamespace`.
pub(super) async fn list<R: Relation>(
    app: &App,
    warehouse: &Warehouse,
    namespace: &Namespace,
    page: &Page,
) -> Result<Vec<String>> {
    let names = db::tables::list(&app.db, warehouse.id, namespace, R::KIND, page).await.map_err(Error::read)?;
    names.ok_or_else(|| Error::NoSuchNamespace(namespace.clone()))
}

/// Moves a name; files, uuid and locations stay.
///
/// # Errors
/// [`Relation::missing`] of the source, `Error::NoSuchNamespace` of the target, `Error::RenameTaken`, also onto itself.
pub(super) async fn rename<R: Relation>(
    app: &App,
    warehouse: &Warehouse,
    from: &TableIdent,
    to: &TableIdent,
    key: Option<&Key>,
) -> Result<()> {
    let taken = |kind| Error::RenameTaken { from: from.clone(), to: to.clone(), kind };
    if from == to {
        row::<R>(app, warehouse, from).await?;
        return Err(taken(R::KIND));
    }
    let record = idempotency::answered(key, 204);
    let db = app.db.recording(record.as_ref());
    match db::tables::rename(db, warehouse.id, from, to, R::KIND).await.map_err(Error::write)? {
        Rename::Done => Ok(()),
        Rename::NoSource => Err(R::missing(from)),
        Rename::NoNamespace => Err(Error::NoSuchNamespace(to.namespace.clone())),
        Rename::Exists(kind) => Err(taken(kind)),
    }
}
