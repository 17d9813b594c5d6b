//! The note a running server leaves in its data folder: where it listens and what it tells clients. Commands that talk
//! to a server find it by the folder alone, whatever flags it was started with.
//!
//! A file of settings like any other, below everything that is said otherwise. It holds no secret. One a killed server
//! left behind names an address where nobody answers, until the next server writes its own.

use super::{Error, Layer, Settings, url_of};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const FILE: &str = "running.toml";

/// Writes the note, whole or not at all, for listeners that are bound.
///
/// # Errors
/// When the folder cannot be written to.
pub fn announce(settings: &Settings) -> io::Result<()> {
    let file = file(&settings.data);
    let fresh = file.with_extension("toml.new");
    fs::write(&fresh, text(settings))?;
    fs::rename(fresh, file)
}

/// Takes the note away. One that cannot be removed only names an address where nobody answers.
pub fn withdraw(settings: &Settings) {
    fs::remove_file(file(&settings.data)).ok();
}

/// The note in `data`; nothing where there is none, or none for this user to read.
pub(super) fn layer(data: &Path) -> Result<Layer, Error> {
    match super::file(&file(data)) {
        Err(Error::Unreadable { .. }) => Ok(Layer::default()),
        read => read,
    }
}

fn file(data: &Path) -> PathBuf {
    data.join(FILE)
}

fn text(settings: &Settings) -> String {
    let mut said = vec![
        ("catalog_addr", settings.catalog_addr.to_string()),
        ("s3_addr", settings.s3_addr.to_string()),
        ("region", settings.region.clone()),
        ("warehouse", settings.warehouse.clone()),
    ];
    // Those that follow from the addresses stay unsaid, so that a flag's address brings its own.
    let urls =
        [("catalog_url", &settings.catalog_url, settings.catalog_addr), ("s3_url", &settings.s3_url, settings.s3_addr)];
    said.extend(
        urls.iter().filter(|(_, url, addr)| **url != url_of(*addr)).map(|(name, url, _)| (*name, (*url).clone())),
    );
    // No value has control characters: JSON's strings are TOML's.
    let lines = said.iter().map(|(name, value)| format!("{name} = {}\n", serde_json::Value::from(value.as_str())));
    format!("# Written by the running server: other commands find it by this.\n{}", lines.collect::<String>())
}
