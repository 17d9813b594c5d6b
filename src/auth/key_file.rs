//! Files that hold keys: made once, mode 0600 in a folder of mode 0700, complete or absent.

use super::StartError;
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

/// Far above any key file of ours; a larger one is not ours. Bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// The bytes of `path`; `None` when there is no such file.
pub fn load(path: &Path) -> Result<Option<Vec<u8>>, StartError> {
    let fail = |source| StartError::File { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(fail)?;
    Ok(Some(bytes))
}

/// The bytes of `path`, which is made with `fresh` when missing; whoever makes it first wins.
pub fn load_or_make(path: &Path, fresh: &[u8]) -> Result<Vec<u8>, StartError> {
    if let Some(bytes) = load(path)? {
        return Ok(bytes);
    }
    let fail = |source| StartError::File { path: path.to_owned(), source };
    make(path, fresh).map_err(fail)?;
    load(path)?.ok_or_else(|| fail(io::ErrorKind::NotFound.into()))
}

/// Written whole under another name and linked: a crash leaves no half key under `path`, and a link never replaces.
fn make(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let temporary = path.with_extension(format!("tmp-{}", uuid::Uuid::new_v4().simple()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let linked =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| match fs::hard_link(&temporary, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    fs::remove_file(&temporary)?;
    linked?;
    File::open(folder)?.sync_all()
}
