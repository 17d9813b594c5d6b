//! Where a warehouse's objects are: in the store inside this process, or in another S3 store.
//!
//! What clients are told of it (endpoint, region, how they get in) comes from here too. The secret of another store is
//! kept sealed under the master key and leaves the server only where the warehouse says so.

mod probe;
mod s3;

use super::{Error, Result, location};
use crate::{app::App, db::warehouses::WarehouseRow, store::BucketName};
use object_store::ObjectStore;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use s3::ExternalS3;

/// Another store's address and how to get in, without its secret. Kept in the warehouse's row as JSON of this very
/// shape: a field may be added, none renamed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Profile {
    S3(S3Profile),
}

/// An S3 store: AIStor, MinIO, AWS, Ceph, R2 and others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct S3Profile {
    /// `http://…` or `https://…` without a path, as this server and its clients reach it; `None`: AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    pub region: String,
    /// Whether buckets are named by path; on AWS they need not be.
    pub path_style_access: bool,
    pub access_key_id: String,
    pub delegation: Delegation,
    /// Where sessions are asked for; `None`: at the endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sts_endpoint: Option<String>,
    /// The role a session takes on; AWS needs one, MinIO takes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
}

/// How clients that hold no keys of the store get to a table's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delegation {
    /// With keys of a session limited to the table, from the store's STS.
    SessionKeys,
    /// With requests that the catalog signs; for stores without an STS.
    RemoteSigning,
    /// With the store's own keys, which open all that they open: for clients that are trusted with it.
    StaticKeys,
}

/// Where the objects of a warehouse to be are.
pub enum NewStorage {
    Embedded,
    S3(S3Profile, SecretString),
}

/// A warehouse's storage, open.
#[derive(Debug)]
pub enum Storage {
    Embedded,
    S3(ExternalS3),
}

impl NewStorage {
    /// What is kept of it: the profile, and the secret sealed for the warehouse `name`.
    pub(super) fn columns(&self, app: &App, name: &str) -> Result<(Option<String>, Option<Vec<u8>>)> {
        let NewStorage::S3(profile, secret) = self else { return Ok((None, None)) };
        let profile = serde_json::to_string(&Profile::S3(profile.clone()));
        let profile = profile.map_err(|error| Error::Internal(Box::new(error)))?;
        Ok((Some(profile), Some(app.auth.seal(&owner(name), secret))))
    }
}

/// What a sealed secret is bound to: moved to another row it does not open.
fn owner(warehouse: &str) -> String {
    format!("warehouse {warehouse}")
}

/// Opens the storage that a row describes; reaches for nothing.
///
/// # Errors
/// `Error::Internal` when the row cannot be understood, or was sealed under another master key.
pub(super) fn open(app: &App, row: &WarehouseRow) -> Result<(Storage, String, Arc<dyn ObjectStore>)> {
    let damaged = |what: &str| Error::internal(format!("warehouse {}: {what}", row.name));
    let bucket = location::split(&row.location).map(|(bucket, _)| bucket);
    let bucket = bucket.ok_or_else(|| damaged("its location names no bucket"))?;
    let Some(profile) = &row.storage else {
        let name = BucketName::parse(bucket).ok_or_else(|| damaged("its location names no bucket"))?;
        return Ok((Storage::Embedded, bucket.to_owned(), app.store.bucket(name)));
    };
    let Profile::S3(profile) = serde_json::from_str(profile).map_err(|error| damaged(&error.to_string()))?;
    let secret = row.sealed_secret.as_deref().and_then(|sealed| app.auth.unseal(&owner(&row.name), sealed));
    let secret = secret.ok_or_else(|| damaged("its secret was sealed under another master key"))?;
    let (external, objects) = ExternalS3::open(profile, secret, bucket)?;
    Ok((Storage::S3(external), bucket.to_owned(), objects))
}

/// Checks that `storage` serves as a warehouse at `location`, by using it.
///
/// # Errors
/// `Error::Invalid` naming the step that failed.
pub(super) async fn validate(app: &App, storage: &NewStorage, location: &str) -> Result<()> {
    let (bucket, prefix) = location::split(location).unwrap_or_default();
    match storage {
        NewStorage::Embedded => {
            let name =
                BucketName::parse(bucket).ok_or_else(|| Error::Invalid(format!("not a bucket's name: {bucket}")))?;
            match app.store.create_bucket(&name, crate::app::now_ms()).await {
                Ok(()) | Err(crate::store::Error::BucketExists) => Ok(()),
                Err(crate::store::Error::Full) => Err(Error::StorageFull),
                Err(error) => Err(Error::Unavailable(Box::new(error))),
            }
        }
        NewStorage::S3(profile, secret) => {
            s3::check(profile)?;
            let (external, objects) = ExternalS3::open(profile.clone(), secret.clone(), bucket)?;
            probe::run(&*objects, prefix).await?;
            if profile.delegation == Delegation::SessionKeys {
                probe::session(&external, bucket, prefix).await?;
            }
            Ok(())
        }
    }
}
