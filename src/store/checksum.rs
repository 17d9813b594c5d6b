//! Digests computed as bytes pass, the checksum of each stored block, and checksums of objects made from parts.

use super::{Checksum, ChecksumAlgorithm, ChecksumType};
use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use crc_fast::CrcAlgorithm;
use md5::{Digest, Md5};
use xxhash_rust::{xxh3::Xxh3, xxh64::Xxh64};

/// Stored bytes are checked in blocks of this many; the last one may be shorter.
pub(super) const BLOCK_BYTES: usize = 64 << 10;
/// Each block's CRC32C, little endian.
pub(super) const BLOCK_SUM_BYTES: usize = 4;

/// The sums of consecutive blocks; `bytes` starts at a block's start.
pub(super) fn append_block_sums(bytes: &[u8], sums: &mut Vec<u8>) {
    for block in bytes.chunks(BLOCK_BYTES) {
        sums.extend_from_slice(&crc_fast::crc32_iscsi(block).to_le_bytes());
    }
}

/// Whether consecutive blocks have these sums; `bytes` starts at a block's start.
pub(super) fn blocks_match(bytes: &[u8], sums: &[u8]) -> bool {
    sums.len() == block_count(bytes.len() as u64) as usize * BLOCK_SUM_BYTES
        && bytes
            .chunks(BLOCK_BYTES)
            .zip(sums.chunks(BLOCK_SUM_BYTES))
            .all(|(block, sum)| crc_fast::crc32_iscsi(block).to_le_bytes() == sum)
}

pub(super) fn block_count(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as u64)
}

/// MD5 and, where asked for, one more digest of the same bytes.
pub(super) struct Digests {
    md5: Md5,
    checksum: Option<Hasher>,
}

/// One digest being computed.
pub struct Hasher {
    algorithm: ChecksumAlgorithm,
    running: Running,
}

enum Running {
    Crc(Box<crc_fast::Digest>),
    Md5(Box<Md5>),
    Sha(digest::Context),
    Xxh3(Box<Xxh3>),
    Xxh64(Box<Xxh64>),
}

impl Digests {
    pub fn new(algorithm: Option<ChecksumAlgorithm>) -> Self {
        Self { md5: Md5::new(), checksum: algorithm.map(Hasher::new) }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.md5.update(bytes);
        if let Some(hasher) = &mut self.checksum {
            hasher.update(bytes);
        }
    }

    pub fn finish(self) -> ([u8; 16], Option<(ChecksumAlgorithm, Vec<u8>)>) {
        let checksum = self.checksum.map(|hasher| (hasher.algorithm, hasher.finish()));
        (self.md5.finalize().into(), checksum)
    }
}

impl Hasher {
    pub fn new(algorithm: ChecksumAlgorithm) -> Self {
        let crc = |kind| Running::Crc(Box::new(crc_fast::Digest::new(kind)));
        let running = match algorithm {
            ChecksumAlgorithm::Crc32 => crc(CrcAlgorithm::Crc32IsoHdlc),
            ChecksumAlgorithm::Crc32c => crc(CrcAlgorithm::Crc32Iscsi),
            ChecksumAlgorithm::Crc64Nvme => crc(CrcAlgorithm::Crc64Nvme),
            ChecksumAlgorithm::Md5 => Running::Md5(Box::default()),
            ChecksumAlgorithm::Sha1 => Running::Sha(digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY)),
            ChecksumAlgorithm::Sha256 => Running::Sha(digest::Context::new(&digest::SHA256)),
            ChecksumAlgorithm::Sha512 => Running::Sha(digest::Context::new(&digest::SHA512)),
            ChecksumAlgorithm::Xxh3 | ChecksumAlgorithm::Xxh128 => Running::Xxh3(Box::new(Xxh3::new())),
            ChecksumAlgorithm::Xxh64 => Running::Xxh64(Box::new(Xxh64::new(0))),
        };
        Self { algorithm, running }
    }

    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.running {
            Running::Crc(crc) => crc.update(bytes),
            Running::Md5(md5) => md5.update(bytes),
            Running::Sha(sha) => sha.update(bytes),
            Running::Xxh3(xxh) => xxh.update(bytes),
            Running::Xxh64(xxh) => xxh.update(bytes),
        }
    }

    /// The digest, in the byte order S3 shows it in.
    pub fn finish(self) -> Vec<u8> {
        match self.running {
            Running::Crc(crc) => crc_bytes(self.algorithm, crc.finalize()),
            Running::Md5(md5) => md5.finalize().to_vec(),
            Running::Sha(sha) => sha.finish().as_ref().to_vec(),
            Running::Xxh3(xxh) if self.algorithm == ChecksumAlgorithm::Xxh128 => xxh.digest128().to_be_bytes().to_vec(),
            Running::Xxh3(xxh) => xxh.digest().to_be_bytes().to_vec(),
            Running::Xxh64(xxh) => xxh.digest().to_be_bytes().to_vec(),
        }
    }
}

/// S3 shows CRCs big endian, in the width of the algorithm.
fn crc_bytes(algorithm: ChecksumAlgorithm, crc: u64) -> Vec<u8> {
    match algorithm {
        ChecksumAlgorithm::Crc64Nvme => crc.to_be_bytes().to_vec(),
        _ => (crc as u32).to_be_bytes().to_vec(),
    }
}

/// A checksum over one body, as S3 shows it.
pub(super) fn of_body(algorithm: ChecksumAlgorithm, digest: &[u8]) -> Checksum {
    Checksum { algorithm, kind: ChecksumType::FullObject, value: BASE64.encode(digest) }
}

/// The etag of an object made from parts: the MD5 of the parts' MD5s, and how many there are.
pub(super) fn multipart_etag<'a>(etags: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut md5 = Md5::new();
    let mut count = 0;
    for etag in etags {
        md5.update(hex::decode(etag).ok()?);
        count += 1;
    }
    Some(format!("{}-{count}", hex::encode(md5.finalize())))
}

/// The checksum of an object from those of its parts (checksum, size), in order.
///
/// `None` where a part has none of this algorithm, or where the algorithm has no such type: only CRCs can be combined,
/// and a CRC64NVME is never composite.
pub(super) fn of_parts<'a>(
    algorithm: ChecksumAlgorithm,
    kind: ChecksumType,
    parts: impl Iterator<Item = (Option<&'a Checksum>, u64)>,
) -> Option<Checksum> {
    let digests = parts.map(|(checksum, size)| {
        let checksum = checksum.filter(|checksum| checksum.algorithm == algorithm)?;
        Some((BASE64.decode(&checksum.value).ok()?, size))
    });
    let value = match kind {
        ChecksumType::Composite => composite(algorithm, digests)?,
        ChecksumType::FullObject => combined(algorithm, digests)?,
    };
    Some(Checksum { algorithm, kind, value })
}

fn composite(algorithm: ChecksumAlgorithm, digests: impl Iterator<Item = Option<(Vec<u8>, u64)>>) -> Option<String> {
    if algorithm == ChecksumAlgorithm::Crc64Nvme {
        return None;
    }
    let mut hasher = Hasher::new(algorithm);
    let mut count = 0;
    for digest in digests {
        hasher.update(&digest?.0);
        count += 1;
    }
    Some(format!("{}-{count}", BASE64.encode(hasher.finish())))
}

fn combined(algorithm: ChecksumAlgorithm, digests: impl Iterator<Item = Option<(Vec<u8>, u64)>>) -> Option<String> {
    let crc = match algorithm {
        ChecksumAlgorithm::Crc32 => CrcAlgorithm::Crc32IsoHdlc,
        ChecksumAlgorithm::Crc32c => CrcAlgorithm::Crc32Iscsi,
        ChecksumAlgorithm::Crc64Nvme => CrcAlgorithm::Crc64Nvme,
        _ => return None,
    };
    let mut whole = crc_fast::checksum(crc, b"");
    for digest in digests {
        let (digest, size) = digest?;
        let part = digest.iter().fold(0, |crc, byte| crc << 8 | u64::from(*byte));
        whole = crc_fast::checksum_combine(crc, whole, part, size);
    }
    Some(BASE64.encode(crc_bytes(algorithm, whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Checksum {
        let mut digests = Digests::new(Some(algorithm));
        digests.update(bytes);
        of_body(algorithm, &digests.finish().1.unwrap().1)
    }

    #[test]
    fn digests_are_those_of_their_standards() {
        let mut digests = Digests::new(None);
        digests.update(b"hel");
        digests.update(b"lo");
        assert_eq!(hex::encode(digests.finish().0), "5d41402abc4b2a76b9719d911017c592");
        // The check values of the catalogue of CRCs, and the digests of FIPS 180 for "abc".
        assert_eq!(digest(ChecksumAlgorithm::Crc32, b"123456789").value, BASE64.encode([0xcb, 0xf4, 0x39, 0x26]));
        assert_eq!(digest(ChecksumAlgorithm::Crc32c, b"123456789").value, BASE64.encode([0xe3, 0x06, 0x92, 0x83]));
        assert_eq!(digest(ChecksumAlgorithm::Crc64Nvme, b"hello").value, "M3eFcAZSQlc=");
        assert_eq!(
            digest(ChecksumAlgorithm::Md5, b"").value,
            BASE64.encode(hex::decode("d41d8cd98f00b204e9800998ecf8427e").unwrap())
        );
        assert_eq!(digest(ChecksumAlgorithm::Xxh64, b"").value, BASE64.encode(0xef46_db37_51d8_e999_u64.to_be_bytes()));
        assert_eq!(digest(ChecksumAlgorithm::Xxh3, b"").value, BASE64.encode(0x2d06_8005_38d3_94c2_u64.to_be_bytes()));
        let xxh128 = 0x99aa_06d3_0147_98d8_6001_c324_468d_497f_u128.to_be_bytes();
        assert_eq!(digest(ChecksumAlgorithm::Xxh128, b"").value, BASE64.encode(xxh128));
        let sha512 = hex::decode(
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        );
        assert_eq!(digest(ChecksumAlgorithm::Sha512, b"abc").value, BASE64.encode(sha512.unwrap()));
        assert_eq!(digest(ChecksumAlgorithm::Sha1, b"abc").value, "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
        assert_eq!(digest(ChecksumAlgorithm::Sha256, b"abc").value, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }

    #[test]
    fn crcs_of_parts_combine_to_the_crc_of_the_whole() {
        let whole: Vec<u8> = (0..300_000_u32).map(|n| (n * 7 % 251) as u8).collect();
        let parts = [&whole[..100_000], &whole[100_000..100_001], &whole[100_001..100_001], &whole[100_001..]];
        for algorithm in [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c, ChecksumAlgorithm::Crc64Nvme] {
            let sums: Vec<_> = parts.iter().map(|part| (digest(algorithm, part), part.len() as u64)).collect();
            let combined =
                of_parts(algorithm, ChecksumType::FullObject, sums.iter().map(|(sum, size)| (Some(sum), *size)));
            assert_eq!(combined, Some(digest(algorithm, &whole)), "{algorithm:?}");
        }
    }

    #[test]
    fn composite_checksums_digest_the_parts_digests_and_count_them() {
        let sums = [digest(ChecksumAlgorithm::Sha256, b"abc"), digest(ChecksumAlgorithm::Sha256, b"def")];
        let joined: Vec<u8> = sums.iter().flat_map(|sum| BASE64.decode(&sum.value).unwrap()).collect();
        let composite =
            of_parts(ChecksumAlgorithm::Sha256, ChecksumType::Composite, sums.iter().map(|sum| (Some(sum), 3)));
        let expected = format!("{}-2", digest(ChecksumAlgorithm::Sha256, &joined).value);
        assert_eq!(composite.map(|composite| composite.value), Some(expected));
    }

    #[test]
    fn impossible_types_and_missing_part_checksums_give_none() {
        for algorithm in ChecksumAlgorithm::ALL {
            let sum = digest(algorithm, b"abc");
            let of = |kind| of_parts(algorithm, kind, [(Some(&sum), 3)].into_iter()).is_some();
            assert_eq!(of(ChecksumType::FullObject), algorithm.combines(), "{algorithm:?}");
            assert_eq!(of(ChecksumType::Composite), algorithm != ChecksumAlgorithm::Crc64Nvme, "{algorithm:?}");
            assert!(of_parts(algorithm, ChecksumType::Composite, [(None, 3)].into_iter()).is_none());
        }
    }

    #[test]
    fn one_changed_byte_breaks_its_block() {
        let mut bytes = vec![7; BLOCK_BYTES * 2 + 10];
        let mut sums = Vec::new();
        append_block_sums(&bytes, &mut sums);
        assert_eq!(sums.len(), 3 * BLOCK_SUM_BYTES);
        assert!(blocks_match(&bytes, &sums));
        assert!(!blocks_match(&bytes, &sums[..8]));
        for position in [0, BLOCK_BYTES, bytes.len() - 1] {
            bytes[position] ^= 1;
            assert!(!blocks_match(&bytes, &sums), "{position}");
            bytes[position] ^= 1;
        }
    }
}
