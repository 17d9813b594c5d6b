//! One process owns the folder: a locked file that names its holder.

use super::{Error, Result};
use std::{
    fs::{File, TryLockError},
    io::{Read, Write},
    path::Path,
};

const LOCK_FILE: &str = "lock";
/// A process id and a line end fit easily.
const HOLDER_BYTES_MAX: u64 = 32;

/// Held by everything that may still write to the folder; the lock goes with the last holder, or with the process.
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// # Errors
    /// `Error::Folder` naming the process that has it.
    pub fn acquire(folder: &Path) -> Result<Self> {
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(folder.join(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Folder(format!("process {} has it", holder(&file)))),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self { _file: file })
    }
}

fn holder(file: &File) -> String {
    let mut holder = String::new();
    let read = file.take(HOLDER_BYTES_MAX).read_to_string(&mut holder);
    match holder.trim() {
        pid if read.is_ok() && !pid.is_empty() => pid.to_owned(),
        _ => "of unknown id".to_owned(),
    }
}
