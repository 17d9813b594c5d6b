//! Deletes the files of a dropped table: those its metadata reaches, inside its own folder, and no others.
//!
//! Metadata is a client's word: whatever it, its manifests or its statistics name elsewhere stays, and nothing is
//! touched once another table lives in, above or below the folder. Never lists a folder. What names others goes after
//! them and the newest metadata file last, so a purge that was cut short starts over; files already gone are no error.
//! With `gc.enabled=false` data files may be others' too, and stay; manifests and metadata go, as the reference purge
//! does it.

use super::Error;
use crate::{
    app::App,
    catalog::{
        self, files, location,
        purge::Order,
        warehouses::{self, Warehouse},
    },
    db,
    iceberg::metadata::TableMetadata,
    planning::manifests,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use object_store::{ObjectStoreExt, path::Path};
use std::collections::HashSet;

/// Versions looked at for one that can be read.
const VERSIONS_TRIED_MAX: usize = 32;
/// Files deleted in one go.
const BATCH: usize = 1_000;
/// Largest manifest or manifest list read. Bytes.
const MANIFEST_BYTES_MAX: u64 = 256 << 20;

/// # Errors
/// When storage or database cannot be reached: start over.
pub async fn run(app: &App, order: &Order) -> Result<(), Error> {
    match delete_all(app, order).await {
        Err(Error::FolderTaken) => {
            tracing::warn!(location = order.location, "not purged to the end: another table uses the folder");
            Ok(())
        }
        outcome => outcome,
    }
}

async fn delete_all(app: &App, order: &Order) -> Result<(), Error> {
    let warehouse = warehouses::named(app, &order.warehouse).await?;
    let purge = Purge { app, order, warehouse: &warehouse };
    let metadata = match purge.metadata(&order.metadata_location).await? {
        Found::Metadata(metadata) => *metadata,
        // Gone already, by an earlier run or by the client: what it reached cannot be found any more.
        Found::Nothing => return purge.delete_metadata(None).await,
        Found::Damage(problem) => {
            tracing::error!(file = order.metadata_location, problem, "damaged metadata: purged by an earlier version");
            match purge.earlier_metadata().await? {
                Some(metadata) => metadata,
                None => return purge.delete_metadata(None).await,
            }
        }
    };
    let manifest_lists = distinct(metadata.manifest_lists());
    let mut all_manifests: Vec<String> = metadata.inline_manifests().into_iter().map(str::to_owned).collect();
    for list in &manifest_lists {
        all_manifests.extend(purge.manifests_of(list).await?);
    }
    let all_manifests = distinct(all_manifests.iter().map(String::as_str));
    if metadata.collects_garbage() {
        for manifest in &all_manifests {
            purge.delete(purge.files_of(manifest).await?).await?;
        }
    }
    purge.delete(all_manifests).await?;
    purge.delete(manifest_lists).await?;
    purge.delete(distinct(metadata.statistics_files())).await?;
    purge.delete_metadata(Some(&metadata)).await
}

fn distinct<'a>(files: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut seen = HashSet::new();
    files.into_iter().filter(|file| seen.insert(*file)).map(str::to_owned).collect()
}

struct Purge<'a> {
    app: &'a App,
    order: &'a Order,
    warehouse: &'a Warehouse,
}

/// What a metadata file holds.
enum Found {
    Metadata(Box<TableMetadata>),
    Nothing,
    Damage(String),
}

impl Purge<'_> {
    async fn metadata(&self, file: &str) -> Result<Found, Error> {
        let json = match files::read(self.warehouse, file).await {
            Ok(json) => json,
            Err(catalog::Error::MetadataMissing(_)) => return Ok(Found::Nothing),
            Err(catalog::Error::Internal(problem)) => return Ok(Found::Damage(problem.to_string())),
            Err(error) => return Err(error.into()),
        };
        Ok(match TableMetadata::parse(&json) {
            Ok(metadata) => Found::Metadata(Box::new(metadata)),
            Err(error) => Found::Damage(error.to_string()),
        })
    }

    /// The newest version that can be read, among the last [`VERSIONS_TRIED_MAX`].
    async fn earlier_metadata(&self) -> Result<Option<TableMetadata>, Error> {
        let history = db::tables::history(&self.app.db, self.order.table).await?;
        for row in history.iter().rev().take(VERSIONS_TRIED_MAX) {
            if let Found::Metadata(metadata) = self.metadata(&row.metadata_location).await? {
                return Ok(Some(*metadata));
            }
        }
        Ok(None)
    }

    /// Looked at before every batch: a table may be made in, above or below the folder while this runs.
    async fn check_folder(&self) -> Result<(), Error> {
        let taken = db::tables::location_taken(&self.app.db, &self.order.location, db::tables::Except::Nobody).await?;
        if taken { Err(Error::FolderTaken) } else { Ok(()) }
    }

    /// The object a location names, if it is inside the table's folder.
    fn object(&self, file: &str) -> Option<Path> {
        let file = match file.split_once("://") {
            // Hadoop's names for the same store.
            Some(("s3a" | "s3n", rest)) => &format!("s3://{rest}"),
            _ => file,
        };
        let inside = location::is_within(file, &self.order.location) && file != self.order.location;
        inside.then(|| self.warehouse.object(file)).flatten()
    }

    async fn manifests_of(&self, manifest_list: &str) -> Result<Vec<String>, Error> {
        let Some(bytes) = self.read(manifest_list).await? else { return Ok(Vec::new()) };
        match reading(move || manifests::manifest_list(&bytes)).await? {
            Ok(manifests) => Ok(manifests.into_iter().map(|manifest| manifest.path).collect()),
            Err(error) => {
                tracing::warn!(file = manifest_list, %error, "a manifest list cannot be read: its files stay");
                Ok(Vec::new())
            }
        }
    }

    async fn files_of(&self, manifest: &str) -> Result<Vec<String>, Error> {
        let Some(bytes) = self.read(manifest).await? else { return Ok(Vec::new()) };
        match reading(move || manifests::files(&bytes)).await? {
            Ok(files) => Ok(files),
            Err(error) => {
                tracing::warn!(file = manifest, %error, "a manifest cannot be read: its files stay");
                Ok(Vec::new())
            }
        }
    }

    /// `None` for files that are gone, lie elsewhere or are too large to be what they should be.
    async fn read(&self, file: &str) -> Result<Option<Bytes>, Error> {
        let Some(path) = self.object(file) else { return Ok(None) };
        let result = match self.warehouse.objects.get(&path).await {
            Ok(result) => result,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if result.meta.size > MANIFEST_BYTES_MAX {
            tracing::warn!(file, "larger than {MANIFEST_BYTES_MAX} bytes: the files it names stay");
            return Ok(None);
        }
        Ok(Some(result.bytes().await?))
    }

    /// Every metadata file the table ever had, oldest first; then the history that names them.
    async fn delete_metadata(&self, metadata: Option<&TableMetadata>) -> Result<(), Error> {
        let history = db::tables::history(&self.app.db, self.order.table).await?;
        let recorded = history.iter().map(|row| row.metadata_location.as_str());
        let logged = metadata.map(TableMetadata::metadata_log).unwrap_or_default();
        let current = self.order.metadata_location.as_str();
        let older = distinct(logged.into_iter().chain(recorded).filter(|file| *file != current));
        self.delete(older).await?;
        self.delete(vec![current.to_owned()]).await?;
        // The reaper takes what no history names: a folder that another table uses keeps its history.
        self.check_folder().await?;
        Ok(db::tables::forget_history(&self.app.db, self.order.table).await?)
    }

    async fn delete(&self, files: Vec<String>) -> Result<(), Error> {
        let paths: Vec<Path> = files.iter().filter_map(|file| self.object(file)).collect();
        for batch in paths.chunks(BATCH) {
            self.check_folder().await?;
            let batch = stream::iter(batch.to_vec()).map(Ok).boxed();
            let mut deleted = self.warehouse.objects.delete_stream(batch);
            while let Some(result) = deleted.next().await {
                match result {
                    Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}

/// Reads a manifest where it keeps nobody waiting: a large one takes seconds.
async fn reading<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    Ok(tokio::task::spawn_blocking(read).await?)
}
