//! The command line. Commands that need a running server go through its HTTP interface; `serve` and `migrate` take the
//! data folder for themselves; `store` looks into it from outside.

mod client;
mod connect;
mod keys;
mod output;
mod store;

use crate::{
    config::{Flags, LogFormat, Settings, with_fitting_help},
    server,
    telemetry::{self, Chain},
};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use rustix::{fs::Mode, process::umask};
use std::{error::Error, io::Write, path::PathBuf, process::ExitCode};

/// An Apache Iceberg REST catalog and an S3-compatible object store in one process.
///
/// Without a command it serves.
#[derive(Parser)]
#[command(name = "tidewater", version)]
pub struct Command {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Subcommand)]
enum Action {
    /// Serve the catalog and the store (what happens without a command)
    Serve,
    /// Bring the catalog database up to date, then end
    Migrate,
    /// Print the OpenAPI document of everything the catalog's address serves
    Openapi,
    /// Print a ready-to-paste configuration of an engine for the server that runs on the data folder
    Connect(ConnectArguments),
    /// Make, list and delete access keys of the server that runs on the data folder
    Keys {
        #[command(subcommand)]
        action: keys::Action,
        #[command(flatten)]
        credential: CredentialArgument,
    },
    /// Check and measure the embedded store in the data folder, with or without a server running on it
    Store {
        #[command(subcommand)]
        action: store::Action,
    },
    /// Print `ready` and end with 0, or say what is not ready and end with 1
    Health,
}

#[derive(Args)]
struct ConnectArguments {
    /// What to configure
    engine: connect::Engine,
    /// How to write it
    #[arg(long, value_enum)]
    format: Option<connect::Format>,
    /// Write it to a file that only you can read (mode 0600), in place of printing it
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    credential: CredentialArgument,
}

#[derive(Args)]
struct CredentialArgument {
    /// Access key as ID:SECRET, in place of the root key
    #[arg(long, global = true, value_name = "ID:SECRET", value_parser = client::Credential::parse)]
    credential: Option<client::Credential>,
}

/// Whatever ends a command.
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

impl Command {
    /// What the command line says; ends the process for `--help`, `--version` and mistakes.
    pub fn read() -> Command {
        let matches = with_fitting_help(Command::command()).get_matches();
        Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Runs it to its end. Errors go to standard error.
    pub fn run(self) -> ExitCode {
        match self.execute() {
            Ok(()) => ExitCode::SUCCESS,
            // Whoever reads has what they wanted: `tidewater openapi | head`.
            Err(error) if output::is_closed(error.as_ref()) => ExitCode::SUCCESS,
            Err(error) => {
                // Where standard error takes nothing either, the exit code is what is left.
                writeln!(std::io::stderr(), "tidewater: {}", Chain(error.as_ref())).ok();
                ExitCode::FAILURE
            }
        }
    }

    fn execute(self) -> Result<()> {
        let action = self.action.unwrap_or(Action::Serve);
        let settings = match action {
            Action::Openapi => return output::print(&format!("{}\n", server::openapi().to_yaml()?)),
            Action::Serve | Action::Migrate => {
                // Databases, objects and keys are their owner's only, whatever the mode of the folder they go into.
                umask(Mode::RWXG | Mode::RWXO);
                Settings::load(&self.flags)?
            }
            Action::Store { action } => return store::run(&Settings::load(&self.flags)?, &action),
            Action::Connect(_) | Action::Keys { .. } | Action::Health => Settings::load_with_running(&self.flags)?,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async move {
            match action {
                Action::Serve => serve(settings).await,
                Action::Migrate => migrate(settings).await,
                Action::Connect(arguments) => connect(&settings, arguments),
                Action::Keys { action, credential } => keys::run(&settings, action, credential.credential).await,
                Action::Health => health(&settings).await,
                Action::Openapi | Action::Store { .. } => Ok(()),
            }
        })
    }
}

async fn serve(settings: Settings) -> Result<()> {
    start_telemetry(&settings)?;
    Ok(server::serve(settings).await?)
}

async fn migrate(settings: Settings) -> Result<()> {
    start_telemetry(&settings)?;
    let (db, _lock) = server::open_database(&settings).await?;
    db.close().await;
    output::print("The catalog database is up to date.\n")
}

fn connect(settings: &Settings, arguments: ConnectArguments) -> Result<()> {
    let credential = client::Credential::of(settings, arguments.credential.credential)?;
    let text = connect::text(settings, &credential, arguments.engine, arguments.format)?;
    match arguments.output {
        Some(file) => output::write_private(&file, &text),
        None => output::print(&text),
    }
}

async fn health(settings: &Settings) -> Result<()> {
    client::check_ready(settings).await?;
    output::print("ready\n")
}

fn start_telemetry(settings: &Settings) -> Result<()> {
    let format = match settings.log_format {
        LogFormat::Text => telemetry::Format::Text,
        LogFormat::Json => telemetry::Format::Json,
    };
    telemetry::start(format, &settings.log)
}

#[cfg(test)]
mod tests;
