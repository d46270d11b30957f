//! The flags of settings, made from the table of settings.
//!
//! Values stay text, so that the command-line parser does not stop at the
//! first bad one: `config` checks them together with the other layers.

use std::ffi::OsString;
use std::marker::PhantomData;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};

use super::exit::Failure;
use crate::config::{CONFIG_VARIABLE, Kind, Layers, Setting, Settings, all_settings};

/// Which settings a command has flags for.
pub trait Selection {
    /// Whether `setting` is one of them.
    fn includes(setting: &Setting) -> bool;
}

/// Every setting that has a flag: `serve`.
#[derive(Clone, Debug)]
pub struct Every;

impl Selection for Every {
    fn includes(_: &Setting) -> bool {
        true
    }
}

/// Where the range store is: `schema`.
#[derive(Clone, Debug)]
pub struct StoreOnly;

impl Selection for StoreOnly {
    fn includes(setting: &Setting) -> bool {
        ["store.mysql", "store.mysql_ca_file", "store.timeout_ms"].contains(&setting.key)
    }
}

/// The parts that a node depends on: `doctor`.
#[derive(Clone, Debug)]
pub struct Dependencies;

impl Selection for Dependencies {
    fn includes(setting: &Setting) -> bool {
        setting.key == "data"
            || setting.key.contains(".tls_")
            || ["store.", "redis.", "tls."].iter().any(|section| setting.key.starts_with(section))
    }
}

/// The flags that were given for the settings of `S`.
#[derive(Clone, Debug)]
pub struct SettingFlags<S> {
    values: Vec<(&'static str, String)>,
    config: Option<PathBuf>,
    selection: PhantomData<S>,
}

impl<S> SettingFlags<S> {
    /// What the configuration is read from: these flags, `environment` and the file.
    pub fn layers(self, environment: &[(OsString, OsString)]) -> Layers {
        Layers { flags: self.values, environment: environment.to_vec(), config: self.config }
    }

    /// The configuration of these flags, `environment` and the file.
    pub fn load(self, environment: &[(OsString, OsString)]) -> Result<Settings, Failure> {
        Settings::load(self.layers(environment)).map_err(Failure::usage)
    }
}

fn selected<S: Selection>() -> impl Iterator<Item = (&'static Setting, &'static str)> {
    let settings = all_settings().into_iter().filter(|s| S::includes(s));
    settings.filter_map(|setting| Some((setting, setting.flag?)))
}

fn argument(setting: &'static Setting, flag: &'static str) -> Arg {
    let value = match setting.kind {
        Kind::Integer { .. } => "N",
        Kind::Address { .. } => "ADDR",
        Kind::Folder { .. } => "DIR",
        Kind::File => "FILE",
        Kind::Url { .. } => "URL",
        Kind::Choice { .. } | Kind::Word { .. } | Kind::Secret { .. } => "WORD",
    };
    let default = match setting.default_text() {
        text if text == "not set" => String::new(),
        text => format!(" [default: {text}]"),
    };
    let help = format!("{} [env: {}]{default}", setting.meaning, setting.env);
    Arg::new(setting.key)
        .long(flag)
        .value_name(value)
        // So that a negative number is a bad value, not an unknown flag.
        .allow_hyphen_values(true)
        .help(help)
        .help_heading("Settings")
}

impl<S: Selection> Args for SettingFlags<S> {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(format!(
                "TOML file with settings; flags and variables beat it [env: {CONFIG_VARIABLE}]"
            ));
        selected::<S>().fold(command.arg(config), |command, (setting, flag)| {
            command.arg(argument(setting, flag))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Selection> FromArgMatches for SettingFlags<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |(setting, _): (&'static Setting, _)| {
            let value = matches.get_one::<String>(setting.key)?;
            Some((setting.key, value.clone()))
        };
        Ok(SettingFlags {
            values: selected::<S>().filter_map(given).collect(),
            config: matches.get_one::<PathBuf>("config").cloned(),
            selection: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
