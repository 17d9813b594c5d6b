//! `tidewater store`: looks at the embedded store in the data folder, whether a server runs on it or not.
//!
//! It reads the index and the files beside whoever has them open and changes nothing.

use super::{
    Result,
    output::{self, date},
};
use crate::{
    config::Settings,
    store::{self, Damage, Stats, Verification},
};
use clap::Subcommand;
use std::fmt::Write;

#[derive(Subcommand)]
pub enum Action {
    /// Read every stored byte against its checksum; ends with 1 where anything is wrong
    Verify,
    /// Count what is stored and say how much room is left
    Stats,
    /// List what the running server's background check found; ends with 1 where there is anything
    Damages,
}

/// Blocking.
pub fn run(settings: &Settings, action: &Action) -> Result<()> {
    let folder = settings.data.join("store");
    match action {
        Action::Verify => {
            let found = store::verify(&folder)?;
            output::print(&verification(&found))?;
            if found.is_sound() { Ok(()) } else { Err("the store is damaged".into()) }
        }
        Action::Stats => output::print(&statistics(&store::stats(&folder)?)),
        Action::Damages => {
            let (damages, bodies) = store::damages(&folder)?;
            output::print(&damages.iter().map(line).collect::<String>())?;
            if bodies == 0 { Ok(()) } else { Err(format!("{bodies} stored bodies are damaged").into()) }
        }
    }
}

fn verification(found: &Verification) -> String {
    let mut text = String::new();
    for finding in &found.index {
        // Writing to a string does not fail.
        writeln!(text, "index: {finding}").ok();
    }
    text.extend(found.damages.iter().map(line));
    writeln!(text, "{} bodies of {} bytes checked, {} damaged", found.bodies, found.bytes, found.damaged).ok();
    if found.unnamed_files > 0 {
        let files = found.unnamed_files;
        writeln!(text, "{files} files belong to no object: uploads under way, or removed at the next start").ok();
    }
    text
}

/// Keys may hold anything: they are shown quoted, on one line.
fn line(damage: &Damage) -> String {
    let Damage { bucket, key, version, upload, what } = damage;
    match upload {
        None => format!("{bucket} {key:?} version {version}: {what}\n"),
        Some((upload, part)) => format!("{bucket} {key:?} part {part} of upload {upload}: {what}\n"),
    }
}

fn statistics(stats: &Stats) -> String {
    let rows = [
        ("buckets", stats.buckets.to_string()),
        ("objects", format!("{} of {} bytes", stats.objects, stats.object_bytes)),
        ("small bodies", format!("{} of {} bytes, beside the index", stats.small, stats.small_bytes)),
        ("large bodies", format!("{} of {} bytes, in files", stats.files, stats.file_bytes)),
        ("open uploads", format!("{} with {} parts of {} bytes", stats.uploads, stats.parts, stats.part_bytes)),
        ("index", format!("{} bytes", stats.index_bytes)),
        ("free", format!("{} bytes", stats.free_bytes)),
        ("damaged", format!("{} bodies", stats.damaged)),
        ("last check", last_check(stats)),
    ];
    rows.iter().map(|(name, value)| format!("{name:<13} {value}\n")).collect()
}

fn last_check(stats: &Stats) -> String {
    let pass = &stats.pass;
    let looked_at = format!("{} bodies of {} bytes", pass.bodies, pass.bytes);
    match (pass.started_ms, pass.finished_ms) {
        (0, _) => "none yet".to_owned(),
        (started_ms, None) => format!("began {}, {looked_at} so far", date(started_ms)),
        (_, Some(finished_ms)) => format!("ended {}, {looked_at}", date(finished_ms)),
    }
}
