//! Reads what is stored against its checksums and says what is wrong with it.
//!
//! [`Check`] looks at one body, a step at a time, for whoever paces the steps: the scrub of a running store
//! ([`super::scrub`]), or [`verify`], which looks at a whole folder from outside, beside a running server too. A body
//! is bytes and the sums of its blocks behind them; what is made of parts is right when its parts are and fit.

use super::{
    Error, Result,
    checksum::{self, BLOCK_BYTES, BLOCK_SUM_BYTES},
    disk::{Disk, StoredFile},
    index::{
        audit::{self, Content, Stored},
        bodies, open_beside,
    },
    reaper::BodyId,
};
use rusqlite::Connection;
use rustix::io::Errno;
use std::{collections::BTreeMap, io, path::Path};

/// Read in one step: whole blocks. Bytes.
const STEP_BYTES: u64 = 512 << 10;
/// Damaged objects that a report lists, and findings about the index. What is more is counted.
pub(super) const LISTED_MAX: usize = 10_000;
const INDEX_FINDINGS_MAX: usize = 100;

/// An object, or a part of an open upload, that cannot be read whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub bucket: String,
    pub key: String,
    pub version: String,
    /// Upload id and number of a part that is not of an object yet.
    pub upload: Option<(String, u32)>,
    pub what: String,
}

/// One round of the scrub over all that is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pass {
    /// The body it looked at last.
    pub(super) at: i64,
    /// 0: there was none yet.
    pub started_ms: i64,
    pub finished_ms: Option<i64>,
    /// Looked at so far.
    pub bodies: u64,
    pub bytes: u64,
}

/// What a store holds. Sizes in bytes; what copies share counts once, but in `object_bytes`.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    pub buckets: u64,
    pub objects: u64,
    pub object_bytes: u64,
    /// Bodies kept beside the index.
    pub small: u64,
    pub small_bytes: u64,
    /// Bodies in files of their own.
    pub files: u64,
    pub file_bytes: u64,
    pub uploads: u64,
    /// Of open uploads.
    pub parts: u64,
    pub part_bytes: u64,
    /// The index with its log and the small bodies in it.
    pub index_bytes: u64,
    /// Of the disk, for us.
    pub free_bytes: u64,
    /// Bodies that the scrub found to be damaged.
    pub damaged: u64,
    pub pass: Pass,
}

/// What [`verify`] found.
#[derive(Debug, Clone, Default)]
pub struct Verification {
    pub bodies: u64,
    pub bytes: u64,
    /// Damaged bodies; `damages` lists what clients know them by.
    pub damaged: u64,
    pub damages: Vec<Damage>,
    /// What is wrong with the index itself.
    pub index: Vec<String>,
    /// Files that no record names: uploads under way, or left by a crash for the next start to remove.
    pub unnamed_files: u64,
}

impl Verification {
    pub fn is_sound(&self) -> bool {
        self.damaged == 0 && self.damages.is_empty() && self.index.is_empty()
    }
}

/// Verifies every byte of the store in `folder`, changing nothing. Memory is bounded; time is that of reading it all.
/// Blocking.
///
/// # Errors
/// `Error::Folder` where there is no store, or one of another format.
pub fn verify(folder: &Path) -> Result<Verification> {
    let (index, disk) = (open_beside(folder)?, Disk::view(folder));
    let mut found = Verification { index: audit::integrity(&index, INDEX_FINDINGS_MAX)?, ..Verification::default() };
    let mut damaged = BTreeMap::new();
    let mut at = 0;
    while let Some(stored) = audit::next_body(&index, at)? {
        at = stored.id;
        found.bodies += 1;
        found.bytes += stored.size;
        if let Some(what) = wrong(&index, &disk, stored)? {
            found.damaged += 1;
            if damaged.len() < LISTED_MAX {
                damaged.insert(at, what);
            }
        }
    }
    found.damages = audit::owners(&index, &damaged, LISTED_MAX)?;
    found.damages.extend(audit::misfits(&index, LISTED_MAX)?);
    for fan in Disk::folders() {
        let named = bodies::files_in(&index, &fan)?;
        let files = disk.list(&fan)?;
        let is_named = |file: &str| named.binary_search_by(|name| name.as_str().cmp(file)).is_ok();
        found.unnamed_files += files.iter().filter(|file| !is_named(file.as_str())).count() as u64;
    }
    Ok(found)
}

/// What is wrong with a body of a store that another process may be changing.
fn wrong(index: &Connection, disk: &Disk, stored: Stored) -> Result<Option<String>> {
    let id = stored.id;
    let what = Check::new(stored).run(disk)?;
    // Removed while it was looked at: its row goes before its file.
    Ok(what.filter(|_| audit::body(index, id).is_ok_and(|still| still.is_some())))
}

/// What is in the store in `folder`. Reads all records and no bytes of objects. Blocking.
///
/// # Errors
/// `Error::Folder` where there is no store, or one of another format.
pub fn stats(folder: &Path) -> Result<Stats> {
    let index = open_beside(folder)?;
    let stats = audit::stats(&index)?;
    let (index_bytes, free_bytes) = Disk::view(folder).usage(folder)?;
    Ok(Stats { index_bytes, free_bytes, ..stats })
}

/// What the scrub has found so far in the store in `folder`, and how many bodies are damaged. Blocking.
///
/// # Errors
/// `Error::Folder` where there is no store, or one of another format.
pub fn damages(folder: &Path) -> Result<(Vec<Damage>, u64)> {
    report(&open_beside(folder)?)
}

pub(super) fn report(index: &Connection) -> Result<(Vec<Damage>, u64)> {
    let (bodies, count) = audit::marked(index, LISTED_MAX)?;
    Ok((audit::owners(index, &bodies, LISTED_MAX)?, count))
}

/// A body being looked at.
pub(super) struct Check {
    stored: Stored,
    /// The file, and the sums of its blocks.
    open: Option<(StoredFile, Vec<u8>)>,
    position: u64,
}

/// What a step found.
pub(super) enum Step {
    /// These many bytes are right, and there are more.
    More(u64),
    Sound,
    Wrong(String),
}

impl Check {
    pub fn new(stored: Stored) -> Self {
        Self { stored, open: None, position: 0 }
    }

    pub fn id(&self) -> BodyId {
        self.stored.id
    }

    pub fn is_marked(&self) -> bool {
        self.stored.is_marked
    }

    /// To the end: what is wrong with it.
    fn run(mut self, disk: &Disk) -> Result<Option<String>> {
        loop {
            match self.step(disk)? {
                Step::More(_) => {}
                Step::Sound => return Ok(None),
                Step::Wrong(what) => return Ok(Some(what)),
            }
        }
    }

    /// Blocking.
    ///
    /// # Errors
    /// Those of the disk that say nothing about the body.
    pub fn step(&mut self, disk: &Disk) -> Result<Step> {
        match &self.stored.content {
            Content::Parts(None) => Ok(Step::Sound),
            Content::Parts(Some(misfit)) => Ok(Step::Wrong((*misfit).to_owned())),
            Content::Inline(bytes) => {
                let size = usize::try_from(self.stored.size).unwrap_or(usize::MAX);
                let fits = bytes.len() >= size && checksum::blocks_match(&bytes[..size], &bytes[size..]);
                Ok(if fits { Step::Sound } else { Step::Wrong(MISMATCH_IN_INDEX.to_owned()) })
            }
            Content::File(_) => self.step_file(disk).or_else(|error| match error {
                // A bad sector.
                Error::Io(error) if Errno::from_io_error(&error) == Some(Errno::IO) => {
                    Ok(Step::Wrong(format!("its file cannot be read: {error}")))
                }
                error => Err(error),
            }),
        }
    }

    fn step_file(&mut self, disk: &Disk) -> Result<Step> {
        let Stored { size, content: Content::File(name), .. } = &self.stored else { return Ok(Step::Sound) };
        let size = *size;
        let (file, sums) = match &mut self.open {
            Some(open) => open,
            slot => match disk.open_file(name) {
                Ok(file) => {
                    let length = checksum::block_count(size) as usize * BLOCK_SUM_BYTES;
                    // One more than there should be.
                    let sums = file.read_at(size, length + 1)?;
                    if sums.len() != length {
                        return Ok(Step::Wrong("its file has not the size it should have".to_owned()));
                    }
                    slot.insert((file, sums))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Step::Wrong("its file is missing".to_owned()));
                }
                Err(error) => return Err(error.into()),
            },
        };
        let length = STEP_BYTES.min(size - self.position);
        let bytes = file.read_at(self.position, length as usize)?;
        let first = (self.position / BLOCK_BYTES as u64) as usize * BLOCK_SUM_BYTES;
        let count = checksum::block_count(length) as usize * BLOCK_SUM_BYTES;
        if bytes.len() as u64 != length || !checksum::blocks_match(&bytes, &sums[first..first + count]) {
            return Ok(Step::Wrong(format!("its bytes do not match their checksum behind byte {}", self.position)));
        }
        self.position += length;
        Ok(if self.position == size { Step::Sound } else { Step::More(length) })
    }
}

const MISMATCH_IN_INDEX: &str = "its bytes, kept in the index, do not match their checksum";
