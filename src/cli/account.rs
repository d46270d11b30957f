//! `idgen account`: who may use the admin page and its API.

use clap::{Args, Subcommand};

use super::client::{Client, ClientArgs, encode};
use super::exit::Failure;
use super::output::{json, pairs, table, time};
use super::{Console, Environment};
use crate::front::http::access_schema::{AccountJson, AccountPatch, NewAccountJson};
use crate::front::http::schema::ListJson;

/// The roles, for the command line.
pub const ROLES: [&str; 3] = ["view", "operate", "administer"];

/// What to do with accounts.
#[derive(Clone, Debug, Subcommand)]
pub enum AccountCommand {
    /// List the accounts
    List(ListArgs),
    /// Make an account
    Add(AddArgs),
    /// Change the role or the password of an account, close it or open it again
    Change(ChangeArgs),
    /// Remove an account with its sessions and tokens
    Remove(RemoveArgs),
}

/// Options of `account list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `account add`.
#[derive(Args, Clone, Debug)]
pub struct AddArgs {
    /// Its name: 1 to 64 letters, digits or _ . @ + -
    name: String,
    /// What the person may do
    #[arg(long, value_parser = ROLES)]
    role: String,
    /// Read the password from standard input, instead of asking at the terminal
    #[arg(long)]
    password_stdin: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `account change`.
#[derive(Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("change").required(true).multiple(true)
    .args(["role", "password", "password_stdin", "close", "open"])))]
pub struct ChangeArgs {
    /// Its name
    name: String,
    /// What the person may do
    #[arg(long, value_parser = ROLES)]
    role: Option<String>,
    /// Ask for a new password at the terminal; ends the sessions of the account
    #[arg(long)]
    password: bool,
    /// Read a new password from standard input; ends the sessions of the account
    #[arg(long, conflicts_with = "password")]
    password_stdin: bool,
    /// Let nobody log in, and end its sessions; its tokens do not work meanwhile
    #[arg(long, conflicts_with = "open")]
    close: bool,
    /// Let the person log in again
    #[arg(long)]
    open: bool,
    /// Only if the account has this version
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    version: Option<i64>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `account remove`.
#[derive(Args, Clone, Debug)]
pub struct RemoveArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs `idgen account …`.
pub fn run(
    command: AccountCommand,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    match command {
        AccountCommand::List(args) => {
            let client = Client::new(&args.client, environment)?;
            let list: ListJson<AccountJson> = client.get("/accounts")?;
            if args.client.json {
                return Ok(json(console.out, &list.items)?);
            }
            let header = ["name", "role", "state", "last login", "version"];
            Ok(table(console.out, &header, list.items.into_iter().map(row).collect())?)
        }
        AccountCommand::Add(args) => {
            let client = Client::new(&args.client, environment)?;
            let password = read_password(args.password_stdin, console)?;
            let body = NewAccountJson { name: args.name, role: args.role, password };
            show(client.post("/accounts", Some(&body))?, args.client.json, console)
        }
        AccountCommand::Change(args) => {
            let client = Client::new(&args.client, environment)?;
            let password = match args.password || args.password_stdin {
                true => Some(read_password(args.password_stdin, console)?),
                false => None,
            };
            let disabled = (args.close || args.open).then_some(args.close);
            let body = AccountPatch { version: args.version, role: args.role, disabled, password };
            let path = format!("/accounts/{}", encode(&args.name));
            show(client.patch(&path, &body)?, args.client.json, console)
        }
        AccountCommand::Remove(args) => {
            let client = Client::new(&args.client, environment)?;
            client.delete(&format!("/accounts/{}", encode(&args.name)))?;
            if !args.client.json {
                writeln!(console.out, "{} is removed", args.name)?;
            }
            Ok(())
        }
    }
}

fn row(account: AccountJson) -> Vec<String> {
    let state = if account.disabled { "closed" } else { "open" };
    let last_login = account.last_login_ms.map_or("never".to_owned(), time);
    vec![account.name, account.role, state.to_owned(), last_login, account.version.to_string()]
}

fn show(account: AccountJson, as_json: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    if as_json {
        return Ok(json(console.out, &account)?);
    }
    let names = ["name", "role", "state", "last login", "version"];
    let rows: Vec<_> = names.into_iter().zip(row(account)).collect();
    Ok(pairs(console.out, &rows)?)
}

/// A password: the first line of the input, or typed twice at the terminal, which does
/// not show it.
fn read_password(from_stdin: bool, console: &mut Console<'_>) -> Result<String, Failure> {
    if from_stdin {
        let mut line = String::new();
        console
            .input
            .read_line(&mut line)
            .map_err(|error| Failure::usage(format_args!("cannot read the password: {error}")))?;
        return Ok(line.trim_end_matches(['\r', '\n']).to_owned());
    }
    let ask = |prompt: &str| {
        rpassword::prompt_password(prompt).map_err(|error| {
            Failure::usage(format_args!(
                "cannot ask for the password at a terminal: {error} (--password-stdin reads it \
                 from standard input)"
            ))
        })
    };
    let password = ask("Password: ")?;
    if ask("Once more: ")? != password {
        return Err(Failure::usage("these are two different passwords"));
    }
    Ok(password)
}
