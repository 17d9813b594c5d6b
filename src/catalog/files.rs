//! Metadata files in a warehouse's storage: named, written once, read, deleted.
//!
//! A file is created with "only if absent" under a name that was never used, so it is immutable and may be cached by
//! its location. Files of ours carry a mark that holds for their own place only, so that the reaper (`jobs/reap.rs`)
//! touches no one else's, nor copies of ours that somebody made.

use super::{Error, Result, location, relation::Relation, warehouses::Warehouse};
use crate::iceberg::MetadataCodec;
use aws_lc_rs::digest;
use bytes::Bytes;
use object_store::{Attribute, Attributes, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::io::{Read, Write};
use uuid::Uuid;

/// Largest metadata file read, before and after decompression. Bytes.
pub const FILE_BYTES_MAX: u64 = 512 << 20;

/// S3's longest key. Bytes.
const OBJECT_KEY_BYTES_MAX: usize = 1_024;

/// User metadata on every metadata file we write: see [`mark`].
pub(crate) const MARK: &str = "tidewater-written-by";

const METADATA_PATH: &str = "write.metadata.path";
const SUFFIX: &str = ".metadata.json";
const SUFFIX_GZIP: &str = ".gz.metadata.json";
/// How older writers end a compressed file's name.
const SUFFIX_GZIP_OLD: &str = ".metadata.json.gz";
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

/// Whether a name ends as metadata files' names do.
pub(crate) fn is_metadata_name(location: &str) -> bool {
    location.ends_with(SUFFIX) || location.ends_with(SUFFIX_GZIP_OLD)
}

/// The value of [`MARK`] on a file that this catalog wrote at `location`. Another catalog's warehouse has another id, so
/// one that starts anew on old files takes none of them for its own.
fn mark(warehouse: &Warehouse, location: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(warehouse.id.as_bytes());
    context.update(location.as_bytes());
    hex::encode(context.finish())
}

/// Whose a metadata file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writer {
    Us,
    Another,
}

/// Whose the file at `location` is, by its mark. A copy of one of ours keeps the mark, but lies elsewhere.
pub(crate) fn writer(warehouse: &Warehouse, location: &str, attributes: &Attributes) -> Writer {
    let found = attributes.get(&Attribute::Metadata(MARK.into()));
    let is_ours = found.is_some_and(|found| found.as_ref() == mark(warehouse, location));
    if is_ours { Writer::Us } else { Writer::Another }
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

/// Undoes gzip where the bytes are gzip, whatever their file's name says.
///
/// # Errors
/// What is wrong, when they do not decompress, or to more than [`FILE_BYTES_MAX`].
pub fn decode(bytes: Bytes) -> Result<Bytes, String> {
    if !bytes.starts_with(GZIP_MAGIC) {
        return Ok(bytes);
    }
    let mut json = Vec::with_capacity(bytes.len().saturating_mul(4));
    let read = flate2::read::MultiGzDecoder::new(bytes.as_ref()).take(FILE_BYTES_MAX + 1).read_to_end(&mut json);
    match read {
        Ok(length) if length as u64 <= FILE_BYTES_MAX => Ok(json.into()),
        Ok(_) => Err(format!("larger than {FILE_BYTES_MAX} bytes")),
        Err(error) => Err(format!("does not decompress: {error}")),
    }
}

/// The JSON of a metadata file that a table points at.
///
/// # Errors
/// As [`fetch`]; `Error::Internal` when it cannot be decoded.
pub(crate) async fn read(warehouse: &Warehouse, location: &str) -> Result<Bytes> {
    read_file(warehouse, location).await.map(|(json, _)| json)
}

/// The same, and whether we wrote it.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_file(warehouse: &Warehouse, location: &str) -> Result<(Bytes, Writer)> {
    let (bytes, writer) = fetch(warehouse, location).await?;
    match decode(bytes) {
        Ok(json) => Ok((json, writer)),
        Err(problem) => Err(Error::internal(format!("unreadable metadata file {location}: {problem}"))),
    }
}

/// The bytes of a metadata file as they are stored, and whether we wrote them.
///
/// # Errors
/// `Error::MetadataMissing` when there is no such file, `Error::Unavailable` when the storage cannot be reached,
/// `Error::Internal` when the file is larger than [`FILE_BYTES_MAX`].
pub(crate) async fn fetch(warehouse: &Warehouse, location: &str) -> Result<(Bytes, Writer)> {
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
    let writer = writer(warehouse, location, &result.attributes);
    Ok((result.bytes().await.map_err(Error::storage)?, writer))
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
    attributes.insert(Attribute::Metadata(MARK.into()), mark(warehouse, location).into());
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
        assert_eq!(decode(gzipped.clone()).unwrap(), json);
        assert_eq!(decode(json.clone()).unwrap(), json);
        assert!(decode(gzipped.slice(..gzipped.len() / 2)).is_err());
        assert_eq!(encode("x.metadata.json", json.clone()).unwrap(), json);
    }

    #[test]
    fn a_compressed_file_of_another_writer_is_the_plain_one() {
        let gzipped = include_bytes!("../../tests/data/compressed/table-v2-minimal.gz.metadata.json");
        let plain = include_bytes!("../../tests/data/metadata/table-v2-minimal.json");
        assert!(gzipped.starts_with(GZIP_MAGIC));
        for name in ["x.gz.metadata.json", "x.metadata.json.gz", "x.metadata.json"] {
            assert_eq!(decode(Bytes::from_static(gzipped)).unwrap(), &plain[..], "{name}");
        }
    }
}
