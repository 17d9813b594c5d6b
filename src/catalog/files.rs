//! Metadata files in a warehouse's storage: named, written once, read, deleted.
//!
//! A file is created with "only if absent" under a name that was never used, so it is immutable and may be cached by
//! its location. Files of ours carry a mark, so that the reaper (`jobs/reap.rs`) touches no one else's.

use super::{Error, Result, location, relation::Relation, warehouses::Warehouse};
use crate::iceberg::MetadataCodec;
use bytes::Bytes;
use object_store::{Attribute, Attributes, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::io::{Read, Write};
use uuid::Uuid;

/// Largest metadata file read, before and after decompression. Bytes.
pub const FILE_BYTES_MAX: u64 = 512 << 20;

/// S3's longest key. Bytes.
const OBJECT_KEY_BYTES_MAX: usize = 1_024;

/// User metadata on every metadata file we write.
pub(crate) const MARK: &str = "tidewater-written-by";
/// Its value.
pub(crate) const MARK_VALUE: &str = "commit";

const METADATA_PATH: &str = "write.metadata.path";
const SUFFIX: &str = ".metadata.json";
const SUFFIX_GZIP: &str = ".gz.metadata.json";
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// The name of the file after `previous` (`None`: the first): `<folder>/%05d-<uuid>.metadata.json`.
///
/// # Errors
/// `Error::Invalid` when the name is too long to be an object's.
pub fn next_name(metadata: &impl Relation, previous: Option<&str>, id: Uuid) -> Result<String> {
    let folder = match metadata.property(METADATA_PATH).map(|path| path.trim_end_matches('/')) {
        Some(path) if location::is_within(path, metadata.location()) => path.to_owned(),
        _ => format!("{}/metadata", metadata.location()),
    };
    let number = previous.and_then(number).map_or(0, |number| number.saturating_add(1));
    let suffix = match metadata.metadata_codec() {
        MetadataCodec::None => SUFFIX,
        MetadataCodec::Gzip => SUFFIX_GZIP,
    };
    let name = format!("{folder}/{number:05}-{id}{suffix}");
    let key_bytes = location::split(&name).map_or(0, |(_, key)| key.len());
    if key_bytes > OBJECT_KEY_BYTES_MAX {
        return Err(Error::Invalid(format!("no metadata file can be written below {folder}: the key is too long")));
    }
    Ok(name)
}

/// The number a metadata file's name starts with.
fn number(location: &str) -> Option<u32> {
    let (_, name) = location.rsplit_once('/')?;
    name.split_once('-')?.0.parse().ok()
}

/// The id in a name that [`next_name`] could have made.
pub(crate) fn id_of(location: &str) -> Option<Uuid> {
    let name = location.rsplit('/').next()?;
    let name = name.strip_suffix(SUFFIX_GZIP).or_else(|| name.strip_suffix(SUFFIX))?;
    let (number, id) = name.split_once('-')?;
    if number.len() < 5 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Uuid::try_parse(id).ok()
}

/// The bytes to store for `json` under `location`: gzip when the name says so.
pub fn encode(location: &str, json: Bytes) -> Result<Bytes> {
    if !location.ends_with(SUFFIX_GZIP) {
        return Ok(json);
    }
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(json.len() / 8), flate2::Compression::fast());
    let written = encoder.write_all(&json).and_then(|()| encoder.finish());
    written.map(Bytes::from).map_err(|error| Error::Internal(Box::new(error)))
}

/// Undoes gzip where the bytes are gzip, whatever the name says.
///
/// # Errors
/// `Error::Internal` when they do not decompress, or to more than [`FILE_BYTES_MAX`].
pub fn decode(location: &str, bytes: Bytes) -> Result<Bytes> {
    if !bytes.starts_with(GZIP_MAGIC) {
        return Ok(bytes);
    }
    let mut json = Vec::with_capacity(bytes.len().saturating_mul(4));
    let read = flate2::read::MultiGzDecoder::new(bytes.as_ref()).take(FILE_BYTES_MAX + 1).read_to_end(&mut json);
    match read {
        Ok(length) if length as u64 <= FILE_BYTES_MAX => Ok(json.into()),
        Ok(_) => Err(Error::internal(format!("metadata file is larger than {FILE_BYTES_MAX} bytes: {location}"))),
        Err(error) => Err(Error::internal(format!("metadata file does not decompress: {location}: {error}"))),
    }
}

/// The JSON of a metadata file.
///
/// # Errors
/// `Error::MetadataMissing` when there is no such file, `Error::Unavailable` when the storage cannot be reached.
pub(crate) async fn read(warehouse: &Warehouse, location: &str) -> Result<Bytes> {
    let missing = || Error::MetadataMissing(location.to_owned());
    let path = warehouse.object(location).ok_or_else(missing)?;
    let result = match warehouse.objects.get(&path).await {
        Ok(result) => result,
        Err(object_store::Error::NotFound { .. }) => return Err(missing()),
        Err(error) => return Err(Error::storage(error)),
    };
    if result.meta.size > FILE_BYTES_MAX {
        return Err(Error::internal(format!("metadata file is larger than {FILE_BYTES_MAX} bytes: {location}")));
    }
    let bytes = result.bytes().await.map_err(Error::storage)?;
    decode(location, bytes)
}

/// Writes a new metadata file; when this returns it is on disk.
///
/// # Errors
/// `Error::StorageFull`, `Error::Unavailable`. A file may be left behind: nothing names it, and the reaper takes it.
pub(crate) async fn write(warehouse: &Warehouse, location: &str, json: Bytes) -> Result<()> {
    let Some(path) = warehouse.object(location) else {
        return Err(Error::Invalid(format!("metadata cannot be written to {location}")));
    };
    let bytes = encode(location, json)?;
    let mut attributes = Attributes::new();
    attributes.insert(Attribute::ContentType, "application/json".into());
    attributes.insert(Attribute::Metadata(MARK.into()), MARK_VALUE.into());
    let options = PutOptions { mode: PutMode::Create, attributes, ..PutOptions::default() };
    let written = warehouse.objects.put_opts(&path, PutPayload::from_bytes(bytes), options).await;
    written.map(|_| ()).map_err(Error::storage)
}

/// Deletes a metadata file that is known to be named by nobody. Best effort: what is left is the reaper's.
pub(crate) async fn discard(warehouse: &Warehouse, location: &str) {
    let Some(path) = warehouse.object(location) else { return };
    match warehouse.objects.delete(&path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
        Err(error) => tracing::warn!(%location, %error, "an unused metadata file could not be deleted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_from_the_previous_name() {
        assert_eq!(number("s3://b/t/metadata/00041-01890a5d-ac96-774b-bcce-b302099a8057.metadata.json"), Some(41));
        assert_eq!(number("s3://b/t/metadata/v3.metadata.json"), None);
        assert_eq!(number("s3://b/t/metadata/-x.metadata.json"), None);
        assert_eq!(number(""), None);
    }

    #[test]
    fn only_names_of_our_own_making_yield_an_id() {
        let id = Uuid::now_v7();
        for name in [format!("00001-{id}.metadata.json"), format!("123456-{id}.gz.metadata.json")] {
            assert_eq!(id_of(&format!("a/metadata/{name}")), Some(id));
        }
        for name in ["v1.metadata.json", "00001-x.metadata.json", "00001.metadata.json", "snap-1.avro"] {
            assert_eq!(id_of(name), None, "{name}");
        }
        assert_eq!(id_of(&format!("x-{id}.metadata.json")), None);
        assert_eq!(id_of(&format!("00001-{id}.json")), None);
    }

    #[test]
    fn gzip_is_told_by_content() {
        let json = Bytes::from_static(b"{\"a\":1}");
        let gzipped = encode("x.gz.metadata.json", json.clone()).unwrap();
        assert!(gzipped.starts_with(GZIP_MAGIC));
        assert_eq!(decode("x.gz.metadata.json", gzipped.clone()).unwrap(), json);
        assert_eq!(decode("x.metadata.json", gzipped.clone()).unwrap(), json);
        assert_eq!(decode("x.gz.metadata.json", json.clone()).unwrap(), json);
        assert!(decode("x", gzipped.slice(..gzipped.len() / 2)).is_err());
        assert_eq!(encode("x.metadata.json", json.clone()).unwrap(), json);
    }
}
