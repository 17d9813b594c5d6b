//! What a start finds after a crash, and clears away: files that no row names, and bodies nobody references.
//!
//! Runs before anything else touches the folder, so whatever is unnamed now belongs to nobody.

use super::{
    Result,
    disk::Disk,
    index::{bodies, forget_all},
};
use rusqlite::Connection;

/// Blocking. Memory is bounded by the files of one fan-out folder.
pub(super) fn recover(index: &mut Connection, disk: &Disk) -> Result<()> {
    let dead = bodies::dead(index)?;
    for body in &dead {
        for name in bodies::files(index, *body)? {
            disk.remove(&name)?;
        }
    }
    forget_all(index, &dead)?;
    let mut collected = 0_u64;
    for folder in Disk::folders() {
        let named = bodies::files_in(index, &folder)?;
        for file in disk.list(&folder)? {
            if named.binary_search_by(|name| name.as_str().cmp(file.as_str())).is_err() {
                disk.remove(&file)?;
                collected += 1;
            }
        }
    }
    if collected > 0 || !dead.is_empty() {
        tracing::info!(files = collected, objects = dead.len(), "cleared what an earlier run left behind");
    }
    Ok(())
}
