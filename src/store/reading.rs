//! Bytes on their way out: every block is checked against its stored sum before a byte of it is passed on.
//!
//! One hop to the index finds the object and, where it is small, its bytes. Larger bodies are read in chunks on the
//! blocking pool, one ahead of the consumer. What is read was pinned in the same step as it was found, so overwriting
//! or deleting the object meanwhile changes nothing for the reader.

use super::{
    Error, Inner, ObjectInfo, Reading, Result, VersionId,
    checksum::{self, BLOCK_BYTES, BLOCK_SUM_BYTES},
    disk::StoredFile,
    index::{
        bodies::{self, Piece, Place, Shape},
        objects,
    },
    reaper::{BodyId, Pin},
    types::Address,
};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use std::{io, ops::Range, sync::Arc};

/// Bytes read in one step: whole blocks.
const CHUNK_BYTES: u64 = 512 << 10;
const _: () = assert!(CHUNK_BYTES.is_multiple_of(BLOCK_BYTES as u64));

/// What the look-up found.
enum Opened {
    /// Nothing to read.
    Nothing,
    /// All of it, checked.
    Whole(Bytes),
    Large(Cursor),
}

pub(super) async fn open(
    store: &Arc<Inner>,
    address: Address,
    version: Option<VersionId>,
    pick: impl FnOnce(&ObjectInfo) -> Option<Range<u64>> + Send + 'static,
) -> Result<Reading> {
    let inner = store.clone();
    let (info, range, opened) = store
        .index
        .look_up(move |index| {
            let pins = inner.pins.clone();
            pins.look_up(|| {
                let found = objects::open(index, &address, version.as_ref())?;
                let range = pick(&found.info).unwrap_or(0..0);
                let range = range.start.min(found.info.size)..range.end.min(found.info.size);
                if range.is_empty() {
                    return Ok((found.info, 0..0, Opened::Nothing));
                }
                let piece = match found.shape {
                    Shape::One(place) => Piece { start: 0, size: found.info.size, place },
                    Shape::Parts => bodies::piece_at(index, found.body, range.start)?,
                };
                let opened = match piece.place {
                    Place::Inline(ref stored) if range.end <= piece.start + piece.size => {
                        let sliced = slice_inline(&address, stored, &piece, &range);
                        Opened::Whole(sliced.inspect_err(|_| inner.suspects.add(found.body))?)
                    }
                    _ => Opened::Large(Cursor {
                        pin: inner.pins.pin(found.body),
                        store: inner,
                        address,
                        body: found.body,
                        piece: OpenPiece { piece, file: None },
                        left: range.clone(),
                    }),
                };
                Ok((found.info, range, opened))
            })
        })
        .await?;
    let stream = match opened {
        Opened::Nothing => stream::empty().boxed(),
        Opened::Whole(bytes) => stream::once(std::future::ready(Ok(bytes))).boxed(),
        Opened::Large(cursor) => chunks(cursor),
    };
    Ok(Reading { info, range, stream })
}

/// Starts reading at once, and each next chunk when the one before is handed out.
fn chunks(cursor: Cursor) -> stream::BoxStream<'static, Result<Bytes>> {
    let ahead = tokio::spawn(cursor.step());
    stream::unfold(Some(ahead), |ahead| async move {
        match ahead?.await {
            Ok(Ok((chunk, cursor))) => {
                let ahead = (!cursor.left.is_empty()).then(|| tokio::spawn(cursor.step()));
                Some((Ok(chunk), ahead))
            }
            Ok(Err(error)) => Some((Err(error), None)),
            Err(error) => Some((Err(Error::Io(io::Error::other(error))), None)),
        }
    })
    .boxed()
}

/// Where a reader is in an object.
struct Cursor {
    store: Arc<Inner>,
    address: Address,
    body: BodyId,
    piece: OpenPiece,
    /// What is still to be read, in bytes of the object; not empty.
    left: Range<u64>,
    #[expect(dead_code, reason = "held for what its drop does: the body's rows and files stay until then")]
    pin: Pin,
}

struct OpenPiece {
    piece: Piece,
    file: Option<StoredFile>,
}

impl Cursor {
    /// The next chunk, and the cursor behind it.
    async fn step(mut self) -> Result<(Bytes, Self)> {
        if self.left.start >= self.piece.piece.start + self.piece.piece.size {
            let (body, position) = (self.body, self.left.start);
            let piece = self.store.index.look_up(move |index| bodies::piece_at(index, body, position)).await?;
            self.piece = OpenPiece { piece, file: None };
        }
        let blocking = self.store.blocking.clone();
        blocking
            .run(move || {
                let chunk = self.read_chunk().inspect_err(|error| {
                    if matches!(error, Error::Damaged(_)) {
                        self.store.suspects.add(self.body);
                    }
                })?;
                self.left.start += chunk.len() as u64;
                Ok((chunk, self))
            })
            .await
    }

    /// Blocking.
    fn read_chunk(&mut self) -> Result<Bytes> {
        let piece = &self.piece.piece;
        let range = self.left.start..self.left.end.min(piece.start + piece.size);
        let name = match &piece.place {
            Place::Inline(stored) => return slice_inline(&self.address, stored, piece, &range),
            Place::File(name) => name,
        };
        let file = match &mut self.piece.file {
            Some(file) => file,
            slot => slot.insert(self.store.disk.open_file(name).map_err(|error| missing(&self.address, error))?),
        };
        // Within the file, from the first block of the range to at most a chunk further on.
        let inside = range.start - piece.start..range.end - piece.start;
        let start = inside.start - inside.start % BLOCK_BYTES as u64;
        let end = (start + CHUNK_BYTES).min(inside.end.next_multiple_of(BLOCK_BYTES as u64)).min(piece.size);
        let bytes = read_blocks(&self.address, file, piece.size, start..end)?;
        Ok(bytes.slice((inside.start - start) as usize..(inside.end.min(end) - start) as usize))
    }
}

/// Whole blocks of a file of `size` bytes, checked.
fn read_blocks(address: &Address, file: &StoredFile, size: u64, range: Range<u64>) -> Result<Bytes> {
    let length = range.end - range.start;
    let first = range.start / BLOCK_BYTES as u64;
    let sums_length = checksum::block_count(length) as usize * BLOCK_SUM_BYTES;
    let bytes = file.read_at(range.start, length as usize)?;
    let sums = file.read_at(size + first * BLOCK_SUM_BYTES as u64, sums_length)?;
    if bytes.len() as u64 != length || !checksum::blocks_match(&bytes, &sums) {
        return Err(damaged(address, file.name().as_str()));
    }
    Ok(bytes.into())
}

/// A range of a body kept in the index, checked.
fn slice_inline(address: &Address, stored: &Bytes, piece: &Piece, range: &Range<u64>) -> Result<Bytes> {
    let size = usize::try_from(piece.size).unwrap_or(usize::MAX);
    if size > stored.len() || !checksum::blocks_match(&stored[..size], &stored[size..]) {
        return Err(damaged(address, "the index"));
    }
    Ok(stored.slice((range.start - piece.start) as usize..(range.end - piece.start) as usize))
}

fn missing(address: &Address, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => damaged(address, "a missing file"),
        _ => error.into(),
    }
}

fn damaged(address: &Address, place: &str) -> Error {
    let (bucket, key) = (address.bucket.as_str(), address.key.as_str());
    metrics::counter!("tidewater_store_damaged_reads_total").increment(1);
    tracing::error!(bucket, key, place, "stored bytes do not match their checksum");
    Error::Damaged(format!("{bucket}/{key}"))
}
