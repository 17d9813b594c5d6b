//! Metadata documents: the JSON of one metadata file, and what it parses to, kept by location.
//!
//! A location's content never changes, so nothing here can go stale. A load answers the very bytes of our files; parsing
//! happens once, when a file is first read or by the commit that wrote it.

use super::{
    Error, Result,
    deflated::Deflated,
    files::{self, Writer},
    relation::Relation,
    warehouses::Warehouse,
};
use crate::{
    db::tables::TableRow,
    iceberg::{self, metadata::TableMetadata},
};
use bytes::Bytes;
use crc_fast::CrcAlgorithm::Crc64Nvme;
use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// Memory that a parsed document takes beside its JSON, in multiples of the JSON's size. An estimate on the high side.
const PARSED_TIMES: u64 = 4;
/// From here on a document is long, and takes this many times its JSON in all. Bytes.
const LONG_BYTES_MIN: u64 = 1 << 20;
const LONG_TIMES: u64 = 3;
/// Shards of the cache are no smaller than this, and no more than these. Bytes.
const SHARD_BYTES_MIN: u64 = 128 << 20;
const SHARDS_MAX: usize = 16;
/// What an entry takes besides. Bytes.
const ENTRY_BYTES: u64 = 1_024;
/// Documents larger than this are worked on away from the threads that serve connections. Bytes of JSON.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// One version of a table or view.
#[derive(Debug)]
pub struct Document<R = TableMetadata> {
    /// Where its metadata file is.
    pub location: String,
    /// The file's content without its compression; of a file that others wrote, as we would write it.
    pub json: Bytes,
    pub metadata: Arc<R>,
    checksum: OnceLock<u64>,
    json_refs: OnceLock<Bytes>,
    deflated: OnceLock<Deflated>,
    deflated_refs: OnceLock<Deflated>,
}

/// Which snapshots of a table are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snapshots {
    All,
    /// Those that a branch or tag points at (`snapshots=refs`).
    Refs,
}

impl<R> Document<R> {
    pub fn new(location: String, json: Bytes, metadata: Arc<R>) -> Document<R> {
        let (checksum, json_refs, deflated, deflated_refs) = Default::default();
        Document { location, json, metadata, checksum, json_refs, deflated, deflated_refs }
    }

    /// A checksum of the JSON. Files that are not ours can be registered, changed and registered again.
    pub fn checksum(&self) -> u64 {
        *self.checksum.get_or_init(|| crc_fast::checksum(Crc64Nvme, &self.json))
    }
}

impl Document {
    /// The metadata's JSON.
    pub fn json(&self, snapshots: Snapshots) -> Bytes {
        match snapshots {
            Snapshots::All => self.json.clone(),
            Snapshots::Refs => self.json_refs.get_or_init(|| self.metadata.to_json_refs().into()).clone(),
        }
    }

    /// The same, compressed. Made once; large ones away from the threads that serve connections.
    ///
    /// # Errors
    /// `Error::Internal` when that thread breaks down.
    pub async fn deflated(self: &Arc<Self>, snapshots: Snapshots) -> Result<Deflated> {
        if let Some(deflated) = self.deflated_copy(snapshots).get() {
            return Ok(deflated.clone());
        }
        let document = Arc::clone(self);
        off_thread(self.json.len(), move || {
            let make = || Deflated::new(&document.json(snapshots));
            document.deflated_copy(snapshots).get_or_init(make).clone()
        })
        .await
    }

    fn deflated_copy(&self, snapshots: Snapshots) -> &OnceLock<Deflated> {
        match snapshots {
            Snapshots::All => &self.deflated,
            Snapshots::Refs => &self.deflated_refs,
        }
    }
}

/// Documents by the location of their file, bounded in bytes.
pub struct Documents<R = TableMetadata>(Cache<String, Arc<Document<R>>, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl<R> Weighter<String, Arc<Document<R>>> for ByBytes {
    fn weight(&self, _location: &String, document: &Arc<Document<R>>) -> u64 {
        // The copies count from the start: an entry's weight must not change. Long is what has many snapshots, whose
        // text is kept as it is: parsed it takes little more.
        let bytes = document.json.len() as u64;
        let long = bytes.saturating_sub(LONG_BYTES_MIN);
        ENTRY_BYTES + (bytes - long) * (2 + PARSED_TIMES) + long * LONG_TIMES
    }
}

impl<R: Relation> Documents<R> {
    pub(crate) fn new(bytes_max: u64) -> Documents<R> {
        // Tables' metadata starts at about 2 KB; the estimate only sizes the map.
        let entries = usize::try_from(bytes_max / (16 << 10)).unwrap_or(usize::MAX).clamp(64, 1 << 20);
        // An entry must fit its shard: with the usual many of them, no large table would ever be kept.
        let shards = usize::try_from(bytes_max / SHARD_BYTES_MIN).unwrap_or(usize::MAX).clamp(1, SHARDS_MAX);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(entries)
            .weight_capacity(bytes_max)
            .shards(shards)
            .build()
            .expect("both capacities are given");
        Documents(Cache::with_options(options, ByBytes, DefaultHashBuilder::default(), DefaultLifecycle::default()))
    }

    /// The document a row points at, from memory or from its file; many who want the same wait for one reading.
    ///
    /// # Errors
    /// As [`files::read`]; `Error::Internal` when the file is not valid metadata.
    pub(crate) async fn read(&self, warehouse: &Warehouse, row: &TableRow) -> Result<Arc<Document<R>>> {
        self.read_file(warehouse, &row.metadata_location, row.uuid).await
    }

    /// The document of a file that a table or view of this uuid had.
    ///
    /// # Errors
    /// As [`Documents::read`].
    pub(crate) async fn read_file(
        &self,
        warehouse: &Warehouse,
        location: &str,
        uuid: Uuid,
    ) -> Result<Arc<Document<R>>> {
        if let Some(document) = self.0.get(location) {
            metrics::counter!("tidewater_metadata_cache_total", "result" => "hit").increment(1);
            return Ok(document);
        }
        metrics::counter!("tidewater_metadata_cache_total", "result" => "miss").increment(1);
        self.0.get_or_insert_async(location, read(warehouse, location, uuid)).await
    }

    /// Keeps what a commit has just written.
    pub(crate) fn keep(&self, document: &Arc<Document<R>>) {
        self.0.insert(document.location.clone(), Arc::clone(document));
    }

    pub(crate) fn forget(&self, location: &str) {
        self.0.remove(location);
    }
}

async fn read<R: Relation>(warehouse: &Warehouse, location: &str, uuid: Uuid) -> Result<Arc<Document<R>>> {
    let (json, writer) = files::read_file(warehouse, location).await?;
    let parsed = parse(location.to_owned(), json, writer, uuid).await?;
    parsed.map(Arc::new).map_err(|error| Error::internal(format!("unreadable metadata file {location}: {error}")))
}

/// A file's content as a document. What others wrote is shown as we would write it: readers rely on containers that
/// writers may leave out (table specification, "Table Metadata Fields"). An old file may have no uuid: then it gets
/// `uuid`, the table's own, the same at every load, until a commit writes it down.
///
/// # Errors
/// `Error::Internal` when the thread that parses breaks down; inside, what is wrong with the content.
pub(super) async fn parse<R: Relation>(
    location: String,
    json: Bytes,
    writer: Writer,
    uuid: Uuid,
) -> Result<Result<Document<R>, iceberg::Error>> {
    off_thread(json.len(), move || {
        let metadata = R::parse(&json)?.or_uuid(uuid);
        let json = match writer {
            Writer::Us => json,
            Writer::Another => metadata.to_json().into(),
        };
        Ok(Document::new(location, json, Arc::new(metadata)))
    })
    .await
}

/// Runs work over `bytes` of JSON: here when it is quick, on a thread for blocking work when it is not.
pub(crate) async fn off_thread<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    if bytes <= INLINE_BYTES_MAX {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of ten thousand snapshots has 7 MB; the default bound is 128 MiB.
    #[test]
    fn a_table_with_a_long_history_is_kept() {
        let documents = Documents::<TableMetadata>::new(128 << 20);
        let schema =
            r#"{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}"#;
        let request = format!(r#"{{"name":"t","schema":{schema}}}"#);
        let request = crate::iceberg::create::CreateTable::parse(request.as_bytes()).unwrap();
        let metadata = Arc::new(request.metadata("s3://b/t", Uuid::nil(), 0).unwrap());
        let keep = |name: &str, bytes: usize| {
            let json = Bytes::from(vec![b' '; bytes]);
            documents.keep(&Arc::new(Document::new(name.to_owned(), json, Arc::clone(&metadata))));
        };
        keep("long", 30 << 20);
        assert!(documents.0.get("long").is_some());
        keep("beyond all bounds", 100 << 20);
        assert!(documents.0.get("beyond all bounds").is_none());
    }
}
