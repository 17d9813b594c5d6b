//! What the machine gives without us: the same HTTP layers answering from memory, and the same bytes written and synced.

use crate::measure::{Client, Figure, Load};
use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

/// Writes a new file of the same bytes and syncs it, file and folder.
pub struct SyncedWrite {
    folder: PathBuf,
    client: usize,
    count: u64,
    bytes: Vec<u8>,
}

impl Client for SyncedWrite {
    fn step(&mut self) -> Result<u64, String> {
        self.count += 1;
        let path = self.folder.join(format!("{}-{}", self.client, self.count));
        let written = write_synced(&path, &self.folder, &self.bytes).and_then(|()| std::fs::remove_file(&path));
        written.map(|()| self.bytes.len() as u64).map_err(|error| error.to_string())
    }
}

fn write_synced(path: &Path, folder: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    File::open(folder)?.sync_data()
}

/// Appends the same bytes to one preallocated file and syncs it: what a lone durable record costs.
pub struct SyncedAppend {
    file: File,
    bytes: Vec<u8>,
    syncs_a_step: usize,
}

impl Client for SyncedAppend {
    fn step(&mut self) -> Result<u64, String> {
        for _ in 0..self.syncs_a_step {
            self.file.write_all(&self.bytes).and_then(|()| self.file.sync_data()).map_err(|error| error.to_string())?;
        }
        Ok(self.bytes.len() as u64 * self.syncs_a_step as u64)
    }
}

/// Whole files, synced with their folder.
pub fn synced_files(folder: &Path, name: &str, seconds: f64, bytes: usize, clients: usize) -> Figure {
    let clients = (0..clients)
        .map(|client| SyncedWrite { folder: folder.to_owned(), client, count: 0, bytes: vec![b'x'; bytes] })
        .collect();
    Load { operation: name, seconds, steps_max: usize::MAX, server: None }.run(clients)
}

/// `syncs_a_step` appends of `bytes`, each synced, by each client to a file of its own.
pub fn synced_appends(
    folder: &Path,
    name: &str,
    seconds: f64,
    bytes: usize,
    syncs_a_step: usize,
    clients: usize,
) -> Figure {
    let clients = (0..clients)
        .map(|client| SyncedAppend {
            file: File::create(folder.join(format!("append-{client}"))).expect("a file for the floor"),
            bytes: vec![b'x'; bytes],
            syncs_a_step,
        })
        .collect();
    Load { operation: name, seconds, steps_max: usize::MAX, server: None }.run(clients)
}
