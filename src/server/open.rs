//! Opens what a server stands on: the data folder, the database, the keys, the store, the first warehouse.

use super::Error;
use crate::{
    app::{App, Parts, now_ms},
    auth::{Auth, AuthSettings, MasterKey, NewKey},
    catalog::Caches,
    config::Settings,
    db::{
        self, DatabaseSettings, Db,
        warehouses::{Create, WarehouseRow},
    },
    store::{self, Store, StoreSettings},
};
use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    os::unix::fs::DirBuilderExt,
    path::Path,
};

/// Opens everything and brings it up to date. The file keeps the folder ours for as long as it is open; with Postgres
/// there is nothing in the folder that two processes could disturb but the store, which has a lock of its own.
///
/// # Errors
/// What stands in the way.
pub async fn open(settings: Settings) -> Result<(App, Option<File>), Error> {
    let (db, lock) = open_database(&settings).await?;
    let auth = Auth::open(auth_settings(&settings), db.clone(), now_ms()).await?;
    let store_settings = StoreSettings {
        small_object_bytes_max: settings.small_object_bytes_max,
        reserve_bytes: settings.disk_reserve_bytes,
    };
    let store = Store::open(&settings.data.join("store"), store_settings).await.map_err(Error::Store)?;
    let catalog = Caches::new(settings.metadata_cache_bytes);
    let app = App::new(Parts { settings, db, auth, store, catalog });
    make_first_warehouse(&app).await?;
    Ok((app, lock))
}

/// Opens the catalog database, migrated.
///
/// # Errors
/// When the folder is another process's, or the database cannot be opened or migrated.
pub async fn open_database(settings: &Settings) -> Result<(Db, Option<File>), Error> {
    let folder_error = |error| Error::Folder { path: settings.data.clone(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(&settings.data).map_err(folder_error)?;
    let (database, lock) = match &settings.database_url {
        Some(url) => {
            let connections_max = settings.database_connections_max;
            (DatabaseSettings::Postgres { url: url.clone(), connections_max }, None)
        }
        None => (DatabaseSettings::Sqlite { file: settings.data.join("catalog.db") }, Some(lock(&settings.data)?)),
    };
    let db = Db::open(&database).await.map_err(Error::Database)?;
    db.migrate().await.map_err(Error::Migrate)?;
    Ok((db, lock))
}

/// Takes the folder for this process and writes its id down for whoever comes second.
fn lock(folder: &Path) -> Result<File, Error> {
    let folder_error = |error| Error::Folder { path: folder.to_owned(), error };
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(folder.join("lock"));
    let mut file = options.map_err(folder_error)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // Whoever holds it may be about to write: then the process goes unnamed.
            file.take(32).read_to_string(&mut pid).ok();
            return Err(Error::FolderInUse { path: folder.to_owned(), pid: pid.trim().parse().ok() });
        }
        Err(TryLockError::Error(error)) => return Err(folder_error(error)),
    }
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(folder_error)?;
    Ok(file)
}

fn auth_settings(settings: &Settings) -> AuthSettings {
    let root_key = settings.root_access_key_id.clone().zip(settings.root_secret_access_key.clone());
    AuthSettings {
        keys_folder: settings.keys_folder(),
        master_key: settings.master_key.as_ref().and_then(MasterKey::parse),
        root_key: root_key.map(|(id, secret)| NewKey { id, secret }),
        token_lifetime_s: settings.token_lifetime_s,
        vended_lifetime_s: settings.vended_lifetime_s,
    }
}

/// Makes the warehouse that the settings name, and its bucket, where they are missing. A crash in between leaves a
/// bucket, which the next start uses.
async fn make_first_warehouse(app: &App) -> Result<(), Error> {
    let settings = &app.settings;
    if db::warehouses::load(&app.db, &settings.warehouse).await.map_err(Error::Database)?.is_some() {
        return Ok(());
    }
    match app.store.create_bucket(&settings.bucket, now_ms()).await {
        Ok(()) | Err(store::Error::BucketExists) => {}
        Err(error) => return Err(Error::Store(error)),
    }
    let row = WarehouseRow {
        id: uuid::Uuid::now_v7(),
        name: settings.warehouse.clone(),
        location: format!("s3://{}", settings.bucket.as_str()),
        storage: None,
        sealed_secret: None,
    };
    match db::warehouses::create(&app.db, &row).await.map_err(Error::Database)? {
        // Another replica may have been faster: then its row stands.
        Create::Done | Create::Exists => Ok(()),
        Create::Overlaps => Err(Error::WarehouseOverlaps { name: row.name, location: row.location }),
    }
}
