//! The index: every SQL statement of the store, one thread that writes and several connections that read.
//!
//! A change is a closure over [`Write`]; [`Index::change`] queues it for the commit thread, which runs everyone's
//! waiting changes in one transaction and answers when that is synced. A look-up is a closure over a connection, run
//! on the blocking pool. Statements live in the files named after their tables; nothing here knows of files or pins.

pub(super) mod audit;
pub(super) mod bodies;
pub(super) mod buckets;
mod commit;
pub(super) mod listing;
pub(super) mod object_parts;
pub(super) mod objects;
mod readers;
pub(super) mod retries;
mod schema;
pub(super) mod settings;
pub(super) mod uploads;

use commit::Committer;
pub(super) use commit::{Parts, Write};
pub(super) use schema::{open_beside, open_reader};

use super::{Checksum, ChecksumAlgorithm, ChecksumType, Error, Result, UploadChecksum, health::Health, reaper::BodyId};
use readers::Readers;
use rusqlite::Connection;
use std::{path::Path, sync::Arc};

/// The handle the store holds; the commit thread ends when it is dropped.
pub(super) struct Index {
    committer: Committer,
    readers: Arc<Readers>,
    health: Arc<Health>,
}

impl Index {
    /// Makes or opens the index and runs `recover` on it before anything else. Blocking.
    ///
    /// # Errors
    /// `Error::Folder` where a newer release wrote it.
    pub fn open(folder: &Path, parts: Parts, recover: impl FnOnce(&mut Connection) -> Result<()>) -> Result<Self> {
        let mut connection = schema::open_writer(folder)?;
        recover(&mut connection)?;
        let readers = Readers::open(folder)?;
        let health = parts.health.clone();
        Ok(Self { committer: Committer::start(connection, parts)?, readers, health })
    }

    /// Runs `apply` with others' changes in one transaction; answers once it is durable. A change that fails undoes
    /// its own statements only.
    pub async fn change<T: Send + 'static>(
        &self,
        apply: impl FnOnce(&mut Write<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.health.check()?;
        self.committer.change(apply).await
    }

    pub async fn look_up<T: Send + 'static>(
        &self,
        look_up: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.health.check()?;
        self.readers.run(look_up).await
    }

    /// Waits for look-ups and changes under way, then checkpoints and closes every connection.
    pub async fn close(&self) {
        self.readers.close().await;
        self.committer.close().await;
    }
}

/// Drops the rows of bodies whose files are gone, in one transaction.
pub(super) fn forget_all(index: &mut Connection, dead: &[BodyId]) -> Result<()> {
    let transaction = index.transaction()?;
    dead.iter().try_for_each(|body| bodies::forget(&transaction, *body))?;
    Ok(transaction.commit()?)
}

/// SQLite's integers are signed; sizes and counts of ours never reach their end.
pub(super) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn algorithm_name(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "crc32",
        ChecksumAlgorithm::Crc32c => "crc32c",
        ChecksumAlgorithm::Crc64Nvme => "crc64nvme",
        ChecksumAlgorithm::Md5 => "md5",
        ChecksumAlgorithm::Sha1 => "sha1",
        ChecksumAlgorithm::Sha256 => "sha256",
        ChecksumAlgorithm::Sha512 => "sha512",
        ChecksumAlgorithm::Xxh3 => "xxh3",
        ChecksumAlgorithm::Xxh64 => "xxh64",
        ChecksumAlgorithm::Xxh128 => "xxh128",
    }
}

fn kind_name(kind: ChecksumType) -> &'static str {
    match kind {
        ChecksumType::FullObject => "full",
        ChecksumType::Composite => "composite",
    }
}

/// `crc32 full`, the stored form of an algorithm and its type.
fn encode_choice(algorithm: ChecksumAlgorithm, kind: ChecksumType) -> String {
    format!("{} {}", algorithm_name(algorithm), kind_name(kind))
}

fn decode_choice(text: &str) -> Result<(ChecksumAlgorithm, ChecksumType)> {
    let unknown = || Error::Index(format!("unknown checksum in the index: {text}"));
    let (algorithm, kind) = text.split_once(' ').ok_or_else(unknown)?;
    let known = ChecksumAlgorithm::ALL.into_iter().find(|known| algorithm_name(*known) == algorithm);
    let algorithm = known.ok_or_else(unknown)?;
    let kind = match kind {
        "full" => ChecksumType::FullObject,
        "composite" => ChecksumType::Composite,
        _ => return Err(unknown()),
    };
    Ok((algorithm, kind))
}

/// Behind the choice of an upload whose client made none.
const UNASKED: &str = " unasked";

fn encode_upload_checksum(checksum: &UploadChecksum) -> String {
    let choice = encode_choice(checksum.algorithm, checksum.kind);
    if checksum.asked { choice } else { choice + UNASKED }
}

fn decode_upload_checksum(text: &str) -> Result<UploadChecksum> {
    let (choice, asked) = match text.strip_suffix(UNASKED) {
        Some(choice) => (choice, false),
        None => (text, true),
    };
    let (algorithm, kind) = decode_choice(choice)?;
    Ok(UploadChecksum { algorithm, kind, asked })
}

/// `crc32 full y/Q5Jg==`, the stored form of a checksum.
fn encode_checksum(checksum: &Checksum) -> String {
    format!("{} {}", encode_choice(checksum.algorithm, checksum.kind), checksum.value)
}

fn decode_checksum(text: Option<&str>) -> Result<Option<Checksum>> {
    let Some(text) = text else { return Ok(None) };
    let (choice, value) =
        text.rsplit_once(' ').ok_or_else(|| Error::Index(format!("unknown checksum in the index: {text}")))?;
    let (algorithm, kind) = decode_choice(choice)?;
    Ok(Some(Checksum { algorithm, kind, value: value.to_owned() }))
}
