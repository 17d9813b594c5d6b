//! What commands print. Standard output may be closed or full: neither is a panic.

use super::Result;
use std::{
    error::Error,
    fs::{OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

/// Prints `text` to its end.
///
/// # Errors
/// When it cannot be written; [`is_closed`] tells a reader that had enough from a disk that is full.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    Ok(out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Unprinted)?)
}

/// Writes `text`, which holds a secret, to a file that only its owner can read; what was in it is gone.
///
/// # Errors
/// When the file cannot be written.
pub fn write_private(file: &Path, text: &str) -> Result<()> {
    let written = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
        // One that was there has a mode of its own; a device or pipe keeps it.
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        file.write_all(text.as_bytes())
    };
    written().map_err(|error| format!("{} cannot be written: {error}", file.display()).into())
}

/// A moment as people read it.
pub fn date(ms: i64) -> String {
    let date = OffsetDateTime::from_unix_timestamp(ms.div_euclid(1000)).ok();
    date.and_then(|date| date.format(&Rfc3339).ok()).unwrap_or_else(|| format!("{ms} ms"))
}

#[derive(Debug, thiserror::Error)]
#[error("standard output cannot be written to")]
struct Unprinted(#[source] io::Error);

/// Whether a command ended because nobody reads what it prints any more.
pub fn is_closed(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref().is_some_and(|Unprinted(error)| error.kind() == io::ErrorKind::BrokenPipe)
}
