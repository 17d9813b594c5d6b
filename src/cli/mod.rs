//! The command line. Commands that need a running server go through its HTTP interface; `serve` and `migrate` take the
//! data folder for themselves.

mod client;
mod connect;
mod keys;

use crate::{
    config::{Flags, LogFormat, Settings},
    server,
    telemetry::{self, Chain},
};
use clap::{Args, Parser, Subcommand};
use std::{error::Error, process::ExitCode};

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
    /// Print a ready-to-paste configuration of an engine for the running server
    Connect(ConnectArguments),
    /// Make, list and delete access keys of the running server
    Keys {
        #[command(subcommand)]
        action: keys::Action,
        #[command(flatten)]
        credential: CredentialArgument,
    },
    /// End with 0 when the running server is ready, with 1 when it is not
    Health,
}

#[derive(Args)]
struct ConnectArguments {
    engine: connect::Engine,
    /// How to write it
    #[arg(long, value_enum)]
    format: Option<connect::Format>,
    #[command(flatten)]
    credential: CredentialArgument,
}

#[derive(Args)]
struct CredentialArgument {
    /// Access key as ID:SECRET, in place of the root key
    #[arg(long, value_name = "ID:SECRET", value_parser = client::Credential::parse)]
    credential: Option<client::Credential>,
}

/// Whatever ends a command.
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

impl Command {
    /// Runs it to its end. Errors go to standard error.
    pub fn run(self) -> ExitCode {
        match self.execute() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("tidewater: {}", Chain(error.as_ref()));
                ExitCode::FAILURE
            }
        }
    }

    fn execute(self) -> Result<()> {
        let action = self.action.unwrap_or(Action::Serve);
        if let Action::Openapi = action {
            println!("{}", server::openapi().to_yaml()?);
            return Ok(());
        }
        let settings = Settings::load(&self.flags)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async move {
            match action {
                Action::Serve => serve(settings).await,
                Action::Migrate => migrate(settings).await,
                Action::Connect(arguments) => connect(&settings, arguments),
                Action::Keys { action, credential } => keys::run(&settings, action, credential.credential).await,
                Action::Health => client::check_ready(&settings).await,
                Action::Openapi => Ok(()),
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
    println!("The catalog database is up to date.");
    Ok(())
}

fn connect(settings: &Settings, arguments: ConnectArguments) -> Result<()> {
    let credential = client::Credential::of(settings, arguments.credential.credential)?;
    print!("{}", connect::text(settings, &credential, arguments.engine, arguments.format)?);
    Ok(())
}

fn start_telemetry(settings: &Settings) -> Result<()> {
    let format = match settings.log_format {
        LogFormat::Text => telemetry::Format::Text,
        LogFormat::Json => telemetry::Format::Json,
    };
    telemetry::start(format, &settings.log)
}
