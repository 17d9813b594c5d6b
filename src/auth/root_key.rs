//! The root access key: there from the first start on, so that somebody can log in.
//!
//! It comes from the settings, else from `<data>/keys/root` (mode 0600), which the first start writes. Exactly one
//! root key is valid: an earlier one goes when another takes its place.

use super::{
    StartError,
    access_keys::{AccessKeys, NewKey},
    key_file,
};
use secrecy::{ExposeSecret, SecretString};
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// The principal of the root key; no other key may carry it.
pub const PRINCIPAL: &str = "root";
const ID_VARIABLE: &str = "TIDEWATER_ROOT_ACCESS_KEY_ID";
const SECRET_VARIABLE: &str = "TIDEWATER_ROOT_SECRET_ACCESS_KEY";

/// Where whoever runs the server finds the root key's secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Settings,
    File(PathBuf),
    /// Another replica has it.
    Elsewhere,
}

/// `<keys folder>/root`.
pub fn path(keys_folder: &Path) -> PathBuf {
    keys_folder.join("root")
}

/// The key in `<keys folder>/root`; `None` when there is no such file.
///
/// # Errors
/// When the file cannot be read or is not what a first start writes.
pub fn load(keys_folder: &Path) -> Result<Option<NewKey>, StartError> {
    let path = path(keys_folder);
    let Some(bytes) = key_file::load(&path)? else { return Ok(None) };
    let key = std::str::from_utf8(&bytes).ok().and_then(parse);
    key.map(Some).ok_or(StartError::Malformed {
        path,
        expected: "TIDEWATER_ROOT_ACCESS_KEY_ID=… and TIDEWATER_ROOT_SECRET_ACCESS_KEY=…, a line each",
    })
}

/// Brings the database's root key in line with settings or file, and says its id and where its secret is.
pub async fn establish(
    access_keys: &AccessKeys,
    keys_folder: &Path,
    given: Option<NewKey>,
    now_ms: i64,
) -> Result<(String, Place), StartError> {
    let rows = access_keys.list().await.map_err(StartError::Database)?;
    let current = rows.into_iter().find(|row| row.principal == PRINCIPAL).map(|row| row.id);
    let (key, place) = match (given, load(keys_folder)?, current) {
        (Some(given), _, _) => (given, Place::Settings),
        (None, Some(stored), _) => (stored, Place::File(path(keys_folder))),
        (None, None, Some(id)) => {
            access_keys.find(&id, now_ms).await.map_err(StartError::Database)?.ok_or(StartError::MasterKeyMismatch)?;
            return Ok((id, Place::Elsewhere));
        }
        (None, None, None) => (make(keys_folder)?, Place::File(path(keys_folder))),
    };
    let known = access_keys.find(&key.id, now_ms).await.map_err(StartError::Database)?;
    let unchanged = known.is_some_and(|known| {
        *known.principal == *PRINCIPAL && known.secret.expose_secret() == key.secret.expose_secret()
    });
    if !unchanged {
        access_keys.put(&key, PRINCIPAL, now_ms).await.map_err(StartError::Database)?;
    }
    for row in access_keys.list().await.map_err(StartError::Database)? {
        if row.principal == PRINCIPAL && row.id != key.id {
            access_keys.delete(&row.id).await.map_err(StartError::Database)?;
        }
    }
    Ok((key.id, place))
}

fn make(keys_folder: &Path) -> Result<NewKey, StartError> {
    let fresh = NewKey::make();
    let text = format!("{ID_VARIABLE}={}\n{SECRET_VARIABLE}={}\n", fresh.id, fresh.secret.expose_secret());
    key_file::load_or_make(&path(keys_folder), text.as_bytes())?;
    load(keys_folder)?.ok_or_else(|| StartError::File { path: path(keys_folder), source: ErrorKind::NotFound.into() })
}

/// Lines of `NAME=value`, as a shell reads them; comments and empty lines are skipped.
fn parse(text: &str) -> Option<NewKey> {
    let value = |name: &str| {
        text.lines()
            .filter_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))
            .map(|value| value.trim_matches(['"', '\'']))
            .find(|value| !value.is_empty())
    };
    Some(NewKey { id: value(ID_VARIABLE)?.to_owned(), secret: SecretString::from(value(SECRET_VARIABLE)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_file_is_private_sourceable_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        assert!(load(folder.path()).unwrap().is_none());
        let made = make(folder.path()).unwrap();
        let read = load(folder.path()).unwrap().unwrap();
        assert_eq!((&made.id, made.secret.expose_secret()), (&read.id, read.secret.expose_secret()));
        let script = format!(
            ". '{}' && printf %s:%s \"$TIDEWATER_ROOT_ACCESS_KEY_ID\" \"$TIDEWATER_ROOT_SECRET_ACCESS_KEY\"",
            path(folder.path()).display()
        );
        let shell = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        let sourced = String::from_utf8(shell.stdout).unwrap();
        assert_eq!(sourced, format!("{}:{}", made.id, made.secret.expose_secret()));
    }

    #[test]
    fn file_without_secret_stops_the_start() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(path(folder.path()), "TIDEWATER_ROOT_ACCESS_KEY_ID=TWX\n").unwrap();
        let error = load(folder.path()).err().unwrap();
        assert!(error.to_string().contains("TIDEWATER_ROOT_SECRET_ACCESS_KEY"), "{error}");
    }
}
