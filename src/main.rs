//! The `tidewater` program.

use clap::Parser;
use std::process::ExitCode;
use tidewater::cli::Command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Command::parse().run()
}
