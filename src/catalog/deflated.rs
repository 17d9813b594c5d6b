//! A compressed copy that other bytes can be put around without compressing it again.
//!
//! Deflate streams can be joined where one ends on a byte (RFC 1951, section 3.2): the copy is flushed and not
//! finished, what comes before and after is stored as it is, and the checksum of the whole is combined from the parts'.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm::Crc32IsoHdlc, checksum, checksum_combine};
use flate2::{Compression, write::DeflateEncoder};
use std::io::Write;

/// Bytes in one stored block at most (RFC 1951, section 3.2.4).
const STORED_BYTES_MAX: usize = u16::MAX as usize;
/// Magic, deflate, no flags, no time, unknown system (RFC 1952, section 2.3).
const GZIP_HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// Some bytes, deflated up to a byte's end.
#[derive(Debug, Clone)]
pub struct Deflated {
    blocks: Bytes,
    crc: u64,
    length: u64,
}

impl Deflated {
    pub fn new(bytes: &[u8]) -> Deflated {
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
        // Writing to memory does not fail.
        let written = encoder.write_all(bytes).and_then(|()| encoder.flush());
        debug_assert!(written.is_ok());
        let blocks = std::mem::take(encoder.get_mut()).into();
        Deflated { blocks, crc: checksum(Crc32IsoHdlc, bytes), length: bytes.len() as u64 }
    }

    /// A gzip file of `before`, these bytes and `after`, in three pieces.
    pub fn gzip(&self, before: &[u8], after: &[u8]) -> [Bytes; 3] {
        let mut head = Vec::with_capacity(GZIP_HEAD.len() + before.len() + 16);
        head.extend_from_slice(&GZIP_HEAD);
        store(&mut head, before, false);
        let mut tail = Vec::with_capacity(after.len() + 32);
        store(&mut tail, after, true);
        let crc = checksum_combine(Crc32IsoHdlc, checksum(Crc32IsoHdlc, before), self.crc, self.length);
        let crc = checksum_combine(Crc32IsoHdlc, crc, checksum(Crc32IsoHdlc, after), after.len() as u64);
        let length = before.len() as u64 + self.length + after.len() as u64;
        tail.extend_from_slice(&low_32_bits(crc));
        tail.extend_from_slice(&low_32_bits(length));
        [head.into(), self.blocks.clone(), tail.into()]
    }
}

/// Appends stored blocks; the last one ends the stream when `ends`.
fn store(out: &mut Vec<u8>, bytes: &[u8], ends: bool) {
    let mut chunks = bytes.chunks(STORED_BYTES_MAX).peekable();
    if chunks.peek().is_none() && ends {
        out.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
    }
    while let Some(chunk) = chunks.next() {
        // A chunk is never longer than the field can say.
        let length = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        out.push(u8::from(ends && chunks.peek().is_none()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(chunk);
    }
}

fn low_32_bits(value: u64) -> [u8; 4] {
    let [a, b, c, d, ..] = value.to_le_bytes();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;

    /// Reads one gzip member, as strict readers do, and checks that nothing follows.
    fn check(before: &[u8], middle: &[u8], after: &[u8]) {
        let whole = Deflated::new(middle).gzip(before, after).concat();
        let mut decoder = flate2::bufread::GzDecoder::new(whole.as_slice());
        let mut read = Vec::new();
        decoder.read_to_end(&mut read).unwrap();
        assert_eq!(read, [before, middle, after].concat());
        assert!(decoder.into_inner().is_empty());
    }

    #[test]
    fn long_and_empty_parts_join() {
        check(b"", b"", b"");
        check(b"{", b"", b"}");
        check(&[b'x'; 200_000], &[b'y'; 3_000_000], &[b'z'; STORED_BYTES_MAX]);
        check(b"", &[b'y'; STORED_BYTES_MAX + 1], &[b'z'; STORED_BYTES_MAX * 2]);
    }

    proptest! {
        #[test]
        fn any_parts_join(before: Vec<u8>, middle in prop::collection::vec(any::<u8>(), 0..5_000), after: Vec<u8>) {
            check(&before, &middle, &after);
        }
    }
}
