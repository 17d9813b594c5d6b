//! The settings' flags, made from the definitions.

use super::{
    Layer,
    definitions::{DEFINITIONS, Default as DefaultValue, Definition},
};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, builder::NonEmptyStringValueParser};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// What the command line said about settings. Accepted before and after the subcommand.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    config: Option<PathBuf>,
    values: BTreeMap<&'static str, String>,
}

impl Flags {
    /// The TOML file to read.
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    pub(super) fn layer(&self) -> Layer {
        let values = self.values.iter().map(|(name, value)| ((*name).to_owned(), value.clone().into()));
        Layer { place: "flag".to_owned(), values: values.collect() }
    }

    fn read(matches: &ArgMatches) -> Flags {
        let value = |definition: &'static Definition| {
            definition.flag()?;
            Some((definition.name, matches.get_one::<String>(definition.name)?.clone()))
        };
        Flags {
            config: matches.get_one::<String>("config").map(PathBuf::from),
            values: DEFINITIONS.iter().filter_map(value).collect(),
        }
    }
}

/// The settings each command uses, for its help; `serve` uses all. Every command accepts every setting, so that a
/// server's command line fits the others too.
const USED: &[(&str, &[&str])] = &[
    ("migrate", &["config", "data", "database_url", "database_connections_max", "log", "log_format"]),
    ("openapi", &[]),
    (
        "connect",
        &[
            "config",
            "data",
            "catalog_addr",
            "s3_addr",
            "catalog_url",
            "s3_url",
            "region",
            "warehouse",
            "root_access_key_id",
        ],
    ),
    ("keys", &["config", "data", "catalog_addr", "root_access_key_id"]),
    ("store", &["config", "data"]),
    ("health", &["config", "data", "catalog_addr"]),
];

/// Leaves out of each command's help the settings that mean nothing to it.
pub fn with_fitting_help(command: Command) -> Command {
    USED.iter().fold(command, |command, (name, used)| {
        command.mut_subcommand(name, |subcommand| {
            let shown = |arg: Arg| {
                let is_used = used.contains(&arg.get_id().as_str());
                arg.hide(!is_used)
            };
            args().map(shown).fold(subcommand, Command::arg).after_help("serve --help lists all settings.")
        })
    })
}

fn args() -> impl Iterator<Item = Arg> {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .help("TOML file of settings, names as below with underscores [env: TIDEWATER_CONFIG]");
    let args = std::iter::once(config).chain(DEFINITIONS.iter().filter_map(arg));
    args.map(|arg| arg.global(true).help_heading("Settings").value_parser(NonEmptyStringValueParser::new()))
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        args().fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args(command)
    }
}

fn arg(definition: &'static Definition) -> Option<Arg> {
    let default = match definition.default {
        DefaultValue::Value(value) => format!(" [default: {value}]"),
        DefaultValue::Derived(_) | DefaultValue::None => String::new(),
    };
    let help = format!("{} [env: {}]{default}", definition.meaning.replace('`', ""), definition.variable());
    Some(Arg::new(definition.name).long(definition.flag()?).value_name("VALUE").help(help))
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Flags, clap::Error> {
        Ok(Flags::read(matches))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Flags::read(matches);
        Ok(())
    }
}
