//! The command line: parses, calls, and turns every outcome into text and an
//! exit code ([`exit`]).
//!
//! What needs concrete adapters comes in as [`Wiring`]. Standard streams and
//! the environment come in too, so that tests run whole commands.

pub mod account;
pub mod bench;
pub mod client;
pub mod decode;
pub mod doctor;
pub mod exit;
pub mod flags;
pub mod get;
mod import;
pub mod lease;
pub mod load;
mod migrate;
pub mod output;
pub mod redis;
pub mod schema;
mod sites;
pub mod tls;
pub mod token;
mod type_options;
mod type_view;
pub mod types;
pub mod verify;

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::sync::LazyLock;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::config::{Layers, StoreSettings};
use crate::ports::MysqlFacts;
use doctor::DoctorArgs;
use exit::Failure;
use flags::{Every, SettingFlags};
use schema::SchemaReport;

/// The variables of the process.
pub type Environment = Vec<(OsString, OsString)>;

/// The standard streams.
pub struct Console<'a> {
    /// Questions are answered here.
    pub input: &'a mut dyn BufRead,
    /// Results go here.
    pub out: &'a mut dyn Write,
    /// Messages go here.
    pub err: &'a mut dyn Write,
}

/// What the commands need of the rest of the program.
#[derive(Clone, Copy)]
pub struct Wiring {
    /// Runs a node until it is told to stop.
    pub serve: fn(Layers) -> Result<(), Failure>,
    /// Makes the schema of a MySQL, or brings it up to date.
    pub schema_apply: fn(&StoreSettings) -> Result<SchemaReport, Failure>,
    /// Compares the schema of a MySQL with that of this version.
    pub schema_check: fn(&StoreSettings) -> Result<SchemaReport, Failure>,
    /// The schema as a script.
    pub schema_print: fn() -> String,
    /// The URLs of the Redis instances that are registered in a MySQL.
    pub redis_urls: fn(&StoreSettings) -> Result<Vec<String>, Failure>,
    /// Asks a MySQL about itself and the account of the service.
    pub mysql_facts: fn(&StoreSettings) -> Result<MysqlFacts, Failure>,
}

/// IdGen hands out unique, cluster-wide ordered 64-bit ids over Thrift.
#[derive(Debug, Parser)]
#[command(name = "idgen", version = VERSION_TEXT.as_str(), max_term_width = 100, infer_long_args = false)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What `--version` says after the name.
static VERSION_TEXT: LazyLock<String> =
    LazyLock::new(|| format!("{} (commit {})", crate::VERSION, crate::COMMIT));

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a node
    #[command(after_help = "Every setting can also be given in the file or by its variable; \
                            docs/configuration.md lists them. The token of the admin API is set \
                            by IDGEN_ADMIN_TOKEN.")]
    Serve(ServeArgs),
    /// Create, list, show, change, move, retire and restore id types
    #[command(subcommand)]
    Type(Box<types::TypeCommand>),
    /// Register, list, test, drain and remove Redis instances
    #[command(subcommand)]
    Redis(redis::RedisCommand),
    /// List, make, change and remove the accounts of the admin page
    #[command(subcommand)]
    Account(account::AccountCommand),
    /// List, make and revoke API tokens
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Print ids of a type, one per line
    Get(get::GetArgs),
    /// Take ids to hand out by yourself for a while
    Lease(lease::LeaseArgs),
    /// Say what an id tells: when, which node, which range
    Decode(decode::DecodeArgs),
    /// Make, check or print the schema of the range store
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// Check MySQL, Redis and this machine, and say what to do
    Doctor(DoctorArgs),
    /// Measure how fast nodes hand out ids
    Bench(bench::BenchArgs),
    /// Check that nodes hand out each id once, and in order
    Verify(verify::VerifyArgs),
    /// Print completions for a shell, to be sourced by it
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
struct ServeArgs {
    #[command(flatten)]
    settings: SettingFlags<Every>,
}

/// Runs the command line `arguments` (the first is the name of the program)
/// and returns the exit code.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    console: &mut Console<'_>,
    wiring: &Wiring,
) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let asked_for = !error.use_stderr();
            let text = error.render();
            let _ = match asked_for {
                true => write!(console.out, "{text}"),
                false => write!(console.err, "{text}"),
            };
            return if asked_for { exit::OK } else { exit::USAGE };
        }
    };
    match execute(cli.command, environment, console, wiring) {
        Ok(code) => code,
        Err(failure) => {
            let _ = writeln!(console.err, "idgen: {failure}");
            failure.code
        }
    }
}

fn execute(
    command: Command,
    environment: &Environment,
    console: &mut Console<'_>,
    wiring: &Wiring,
) -> Result<u8, Failure> {
    match command {
        Command::Serve(args) => (wiring.serve)(args.settings.layers(environment)),
        Command::Type(command) => types::run(*command, environment, console),
        Command::Redis(command) => redis::run(command, environment, console),
        Command::Account(command) => account::run(command, environment, console),
        Command::Token(command) => token::run(command, environment, console),
        Command::Get(args) => get::run(args, environment, console),
        Command::Lease(args) => lease::run(args, environment, console),
        Command::Decode(args) => decode::run(args, environment, console),
        Command::Schema(command) => schema::run(command, environment, console, wiring),
        Command::Doctor(args) => doctor::run(args, environment, console, wiring),
        Command::Bench(mut args) => {
            args.wire.files = args.wire.files.or_from(environment);
            return Ok(bench::execute(&args, console.out, console.err));
        }
        Command::Verify(mut args) => {
            args.wire.files = args.wire.files.or_from(environment);
            let interrupt = verify::Interrupt::at_signal();
            return Ok(verify::execute(&args, environment, console.out, console.err, &interrupt));
        }
        Command::Completions { shell } => {
            // Made in memory, because the generator panics when a pipe breaks.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "idgen", &mut script);
            Ok(console.out.write_all(&script)?)
        }
    }?;
    Ok(exit::OK)
}

/// Asks to type `name` before something that cannot be taken back; `danger` says
/// what will happen, `refusal` what has not.
fn confirm(
    console: &mut Console<'_>,
    name: &str,
    danger: &str,
    refusal: &str,
) -> Result<(), Failure> {
    write!(console.err, "{danger} Type its name to go on: ")?;
    console.err.flush()?;
    let mut answer = String::new();
    console.input.read_line(&mut answer)?;
    if answer.trim_end_matches(['\r', '\n']) != name {
        return Err(Failure::failed(format_args!("{refusal}: that was not the name of the type")));
    }
    Ok(())
}

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod kind_tests;
#[cfg(test)]
mod migrate_tests;
#[cfg(test)]
mod tests;
