//! Bytes on their way in: small bodies stay in memory until they are published, large ones go to a file of their own.
//!
//! A body is its bytes followed by the CRC32C of each of its blocks, little endian, whether it ends up in a file or in
//! the index. Bytes are gathered into batches; while one batch is written and hashed (side by side, on the blocking
//! pool) the next one is gathered, so an upload holds at most three batches in memory.

use super::{
    ChecksumAlgorithm, Inner, Result,
    blocking::Lane,
    checksum::{self, BLOCK_BYTES, Digests},
    disk::FreshFile,
    index::bodies::NewBody,
};
use bytes::{Bytes, BytesMut};
use std::sync::Arc;

/// Bytes written and hashed in one step.
pub(super) const BATCH_BYTES: usize = 512 << 10;
const _: () = assert!(BATCH_BYTES.is_multiple_of(BLOCK_BYTES));

/// Bytes on their way in: nothing is visible until [`super::Store::publish`]. Dropping it removes what was written.
pub struct Upload {
    store: Arc<Inner>,
    algorithm: Option<ChecksumAlgorithm>,
    /// Less than a batch.
    gathered: BytesMut,
    size: u64,
    /// Once the body has outgrown a batch.
    lanes: Option<Lanes>,
}

/// Bytes written and, where large, synced; not visible yet. Dropping it removes them.
pub struct Sealed {
    pub size: u64,
    pub md5: [u8; 16],
    /// The digest asked for at [`super::Store::begin`], raw bytes.
    pub checksum: Option<(ChecksumAlgorithm, Vec<u8>)>,
    pub(super) body: NewBody,
}

struct Lanes {
    file: Lane<Writing>,
    digests: Lane<Digests>,
}

/// A file and the sums of the blocks in it so far.
struct Writing {
    file: FreshFile,
    sums: Vec<u8>,
}

impl Upload {
    pub(super) fn new(store: Arc<Inner>, algorithm: Option<ChecksumAlgorithm>) -> Self {
        Self { store, algorithm, gathered: BytesMut::new(), size: 0, lanes: None }
    }

    /// Takes the bytes; errors of the disk may show at a later call.
    ///
    /// # Errors
    /// `Error::Full`, `Error::Io`. After an error the upload is good for nothing but dropping.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        self.size += bytes.len() as u64;
        while self.gathered.len() + bytes.len() >= BATCH_BYTES {
            let batch = if self.gathered.is_empty() {
                bytes.split_to(BATCH_BYTES)
            } else {
                let missing = bytes.split_to(BATCH_BYTES - self.gathered.len());
                self.gathered.extend_from_slice(&missing);
                self.gathered.split().freeze()
            };
            self.pass_on(batch).await?;
        }
        if self.gathered.capacity() == 0 && self.lanes.is_some() {
            self.gathered.reserve(BATCH_BYTES);
        }
        self.gathered.extend_from_slice(&bytes);
        Ok(())
    }

    /// Finishes digests; large bodies are synced (file and folder) when this returns.
    ///
    /// # Errors
    /// `Error::Full`, `Error::Io`.
    pub async fn seal(mut self) -> Result<Sealed> {
        self.store.health.check()?;
        if self.size <= self.store.small_bytes_max && self.lanes.is_none() {
            return self.seal_small();
        }
        let rest = self.gathered.split().freeze();
        let Lanes { mut file, mut digests } = match self.lanes.take() {
            Some(lanes) => lanes,
            None => Lanes::create(&self.store, self.algorithm).await?,
        };
        let (bytes, disk) = (rest.clone(), self.store.disk.clone());
        file.step(move |writing| {
            disk.require_room(bytes.len() as u64)?;
            writing.append(&bytes)?;
            writing.file.append(&writing.sums)?;
            writing.file.sync()
        })
        .await?;
        digests.step(move |digests| digests.absorb(&rest)).await?;
        let (md5, checksum) = digests.finish().await?.finish();
        let Writing { file, .. } = file.finish().await?;
        Ok(Sealed { size: self.size, md5, checksum, body: NewBody::File(file) })
    }

    /// At most a batch, in memory.
    fn seal_small(self) -> Result<Sealed> {
        self.store.disk.require_room(self.size)?;
        let mut digests = Digests::new(self.algorithm);
        digests.update(&self.gathered);
        let (md5, checksum) = digests.finish();
        let mut body = self.gathered.to_vec();
        checksum::append_block_sums(&self.gathered, &mut body);
        Ok(Sealed { size: self.size, md5, checksum, body: NewBody::Inline(body.into()) })
    }

    async fn pass_on(&mut self, batch: Bytes) -> Result<()> {
        let lanes = match &mut self.lanes {
            Some(lanes) => lanes,
            slot => slot.insert(Lanes::create(&self.store, self.algorithm).await?),
        };
        let (bytes, disk) = (batch.clone(), self.store.disk.clone());
        lanes
            .file
            .step(move |writing| {
                disk.require_room(bytes.len() as u64)?;
                writing.append(&bytes)
            })
            .await?;
        lanes.digests.step(move |digests| digests.absorb(&batch)).await
    }
}

impl Lanes {
    async fn create(store: &Inner, algorithm: Option<ChecksumAlgorithm>) -> Result<Self> {
        let (disk, reaper) = (store.disk.clone(), store.reaper.clone());
        let create = move || {
            disk.require_room(BATCH_BYTES as u64)?;
            disk.create(reaper)
        };
        let writing = Writing { file: store.blocking.run(create).await?, sums: Vec::new() };
        Ok(Self {
            file: Lane::new(&store.blocking, writing),
            digests: Lane::new(&store.blocking, Digests::new(algorithm)),
        })
    }
}

impl Writing {
    /// Every batch but the last is whole blocks.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        checksum::append_block_sums(bytes, &mut self.sums);
        if bytes.is_empty() { Ok(()) } else { self.file.append(bytes) }
    }
}

impl Digests {
    /// As a step of a lane.
    fn absorb(&mut self, bytes: &[u8]) -> Result<()> {
        self.update(bytes);
        Ok(())
    }
}
