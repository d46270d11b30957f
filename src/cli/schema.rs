//! `idgen schema`: the tables, views and procedures of the range store.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::exit::Failure;
use super::flags::{SettingFlags, StoreOnly};
use super::output::json;
use super::{Console, Environment, Wiring};
use crate::config::StoreSettings;

/// What to do with the schema.
#[derive(Clone, Debug, Subcommand)]
pub enum SchemaCommand {
    /// Make the schema, or bring it up to date; may be repeated. Needs an
    /// account with the rights to make tables and procedures
    Apply(SchemaArgs),
    /// Say what differs from the schema of this version; changes nothing
    Check(SchemaArgs),
    /// Print the schema as a script for the mysql client
    Print,
}

/// Options of `schema apply` and `schema check`.
#[derive(Args, Clone, Debug)]
pub struct SchemaArgs {
    #[command(flatten)]
    settings: SettingFlags<StoreOnly>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What `apply` did or `check` found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchemaReport {
    /// The version of the database; `None` when it has no schema.
    pub version: Option<i32>,
    /// The version that this program works with.
    pub wanted: i32,
    /// What was done or what differs, a line each.
    pub lines: Vec<String>,
    /// Whether the database is now as this program wants it.
    pub clean: bool,
}

/// Runs `idgen schema …`.
pub fn run(
    command: SchemaCommand,
    environment: &Environment,
    console: &mut Console<'_>,
    wiring: &Wiring,
) -> Result<(), Failure> {
    let (args, work) = match command {
        SchemaCommand::Print => {
            write!(console.out, "{}", (wiring.schema_print)())?;
            return Ok(());
        }
        SchemaCommand::Apply(args) => (args, wiring.schema_apply),
        SchemaCommand::Check(args) => (args, wiring.schema_check),
    };
    let store = args.settings.load(environment)?.store;
    need_mysql(&store)?;
    let report = work(&store)?;
    if args.json {
        json(console.out, &report)?;
    } else {
        for line in &report.lines {
            writeln!(console.out, "{line}")?;
        }
        let version = report.version.map_or("none".to_owned(), |v| v.to_string());
        let wanted = report.wanted;
        writeln!(
            console.out,
            "schema version {version}, this program works with {wanted}"
        )?;
    }
    match report.clean {
        true => Ok(()),
        false => Err(Failure::failed(
            "the schema is not that of this version; `idgen schema apply` brings it up to date",
        )),
    }
}

fn need_mysql(store: &StoreSettings) -> Result<(), Failure> {
    match store.mysql {
        Some(_) => Ok(()),
        None => Err(Failure::usage(
            "no MySQL is given: set --mysql, IDGEN_MYSQL or store.mysql (the embedded store makes \
             its own schema)",
        )),
    }
}
