//! Tries out a store before tables are entrusted to it: each thing the catalog needs of it, once.

use super::s3::ExternalS3;
use crate::{
    auth::grants::Access,
    catalog::{Error, Result},
};
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, path::Path};
use uuid::Uuid;

const NAME: &str = "tidewater-probe";
/// What is passed on of a store's own words.
const REASON_CHARS_MAX: usize = 600;

/// Writes, reads, lists and deletes an object below `prefix`, and sees that "only if absent" is honoured: two commits
/// must never write one metadata file.
///
/// # Errors
/// `Error::Invalid` naming the step. What was written is deleted whatever fails later, unless deleting does.
pub async fn run(objects: &dyn ObjectStore, prefix: &str) -> Result<()> {
    let folder = format!("{}/{NAME}-{}", prefix.trim_end_matches('/'), Uuid::now_v7().simple());
    let folder = Path::parse(folder.trim_start_matches('/')).map_err(|error| Error::Invalid(error.to_string()))?;
    let path = folder.clone().join("object");
    let create = || {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        objects.put_opts(&path, PutPayload::from_static(NAME.as_bytes()), options)
    };
    create().await.map_err(|error| failed("writing an object", &error))?;
    let tried = async {
        match create().await {
            Err(object_store::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(failed("writing an object that exists, only if absent", &error)),
            Ok(_) => {
                return Err(Error::Invalid(
                    "the storage does not serve: it overwrites an object that was to be written only if absent \
                     (If-None-Match: *)"
                        .to_owned(),
                ));
            }
        }
        let read = async { objects.get(&path).await?.bytes().await };
        let read = read.await.map_err(|error| failed("reading an object", &error))?;
        if read != NAME.as_bytes() {
            return Err(Error::Invalid(
                "the storage does not serve: it answers other bytes than were written".to_owned(),
            ));
        }
        let listed: Vec<_> =
            objects.list(Some(&folder)).try_collect().await.map_err(|error| failed("listing objects", &error))?;
        if !listed.iter().any(|object| object.location == path) {
            return Err(Error::Invalid("the storage does not serve: it does not list what was written".to_owned()));
        }
        Ok(())
    };
    let tried = tried.await;
    let deleted = objects.delete(&path).await.map_err(|error| failed("deleting an object", &error));
    tried.and(deleted)
}

/// Asks for session keys as a table's would be.
///
/// # Errors
/// `Error::Invalid`.
pub async fn session(storage: &ExternalS3, bucket: &str, prefix: &str) -> Result<()> {
    let place = format!("{bucket}/{}/{NAME}/", prefix.trim_matches('/')).replace("//", "/");
    let asked = storage.session(&place, Access::Read, NAME).await;
    asked.map(drop).map_err(|error| match error {
        Error::Unavailable(source) => Error::Invalid(format!(
            "the storage does not serve: asking its STS for session keys failed: {source}; with the delegation \
             remote-signing none is needed"
        )),
        error => error,
    })
}

fn failed(step: &str, error: &object_store::Error) -> Error {
    // Some stores answer with all they computed.
    let reason: String = error.to_string().chars().take(REASON_CHARS_MAX).collect();
    Error::Invalid(format!("the storage does not serve: {step} failed: {reason}"))
}
