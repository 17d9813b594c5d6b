//! The `tidewater` program.

use std::process::ExitCode;
use tidewater::cli::Command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    Command::read().run()
}
