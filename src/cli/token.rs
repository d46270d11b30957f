//! `idgen token`: API tokens for programs.

use clap::{Args, Subcommand};

use super::client::{Client, ClientArgs, encode};
use super::exit::{Failure, REFUSED};
use super::output::{json, pairs, table, time};
use super::{Console, Environment};
use crate::domain::access::MAX_QUOTA;
use crate::front::http::access_schema::{MadeTokenJson, NewTokenJson, TokenJson};
use crate::front::http::import_schema::{ImportedTokenJson, NewTokenImport, TokenImportJson};
use crate::front::http::schema::ListJson;

/// The roles of tokens.
const ROLES: [&str; 4] = ["issue", "view", "operate", "administer"];

/// What to do with API tokens.
#[derive(Clone, Debug, Subcommand)]
pub enum TokenCommand {
    /// List the tokens, also those that were revoked or have expired lately
    List(ListArgs),
    /// Make a token and print its secret, which is never shown again
    Add(AddArgs),
    /// Take over the tokens of tinyid, whose secrets go on working
    Import(ImportArgs),
    /// Revoke a token
    Revoke(RevokeArgs),
}

/// Options of `token list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `token add`.
#[derive(Args, Clone, Debug)]
pub struct AddArgs {
    /// Its name, for the audit log: 1 to 64 letters, digits or _ . @ + -
    name: String,
    /// What it may do
    #[arg(long, value_parser = ROLES)]
    role: String,
    /// Limit it to an id type, or with `shop.*` to those whose names begin so; may be
    /// given more than once
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// How many ids per second it may take on each node, and as many at once; no limit
    /// if left out
    #[arg(long, value_name = "IDS", value_parser = clap::value_parser!(i64).range(1..=MAX_QUOTA))]
    quota: Option<i64>,
    /// Make no secret: the name is that of a client's certificate. Role issue only
    #[arg(long)]
    certificate: bool,
    /// Let it end after so many days: 1 to 3650
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3_650))]
    days: Option<u32>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `token import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// A dump with the table tiny_id_token, or that table as CSV or TSV; - reads standard
    /// input
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    file: Option<String>,
    /// Read the table from this database, mysql://USER:PASSWORD@HOST:PORT/DATABASE, which
    /// the node connects to; - reads the URL from standard input
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The table there, where it is not called tiny_id_token
    #[arg(long, value_name = "NAME", requires = "from")]
    table: Option<String>,
    /// Show what would be made, without the secrets, and make nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `token revoke`.
#[derive(Args, Clone, Debug)]
pub struct RevokeArgs {
    /// Its name, or its id
    token: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs `idgen token …`.
pub fn run(
    command: TokenCommand,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    match command {
        TokenCommand::List(args) => {
            let client = Client::new(&args.client, environment)?;
            let list: ListJson<TokenJson> = client.get("/tokens")?;
            if args.client.json {
                return Ok(json(console.out, &list.items)?);
            }
            let now_ms = now_ms();
            let header = ["name", "role", "types", "quota", "state", "last used", "made by", "id"];
            let rows = list.items.into_iter().map(|token| row(token, now_ms)).collect();
            Ok(table(console.out, &header, rows)?)
        }
        TokenCommand::Add(args) => {
            let client = Client::new(&args.client, environment)?;
            let life = |days: u32| now_ms() + i64::from(days) * 86_400_000 - MARGIN_MS;
            let body = NewTokenJson {
                name: args.name,
                role: args.role,
                types: args.types,
                quota: args.quota,
                certificate: args.certificate,
                expires_ms: args.days.map(life),
            };
            let made: MadeTokenJson = client.post("/tokens", Some(&body))?;
            if args.client.json {
                return Ok(json(console.out, &made)?);
            }
            let expires = made.token.expires_ms.map_or("never".to_owned(), time);
            let shown = match made.token.certificate {
                true => ("shown", "certificate".to_owned()),
                false => ("secret", made.secret),
            };
            let rows = [
                ("name", made.token.name),
                ("role", made.token.role),
                ("types", types_of(&made.token.types)),
                ("quota", quota_of(made.token.quota)),
                ("expires", expires),
                ("id", made.token.id),
                shown,
            ];
            Ok(pairs(console.out, &rows)?)
        }
        TokenCommand::Import(args) => import(&args, environment, console),
        TokenCommand::Revoke(args) => {
            let client = Client::new(&args.client, environment)?;
            let list: ListJson<TokenJson> = client.get("/tokens")?;
            let live = list.items.into_iter().filter(|token| !token.revoked);
            let mut found: Vec<_> =
                live.filter(|token| token.name == args.token || token.id == args.token).collect();
            // An expired one may have the same name as a live one, which is newer.
            found.sort_by_key(|token| std::cmp::Reverse(token.created_ms));
            let Some(token) = found.first() else {
                let text = format!("no token is called {:?}", args.token);
                return Err(Failure::new(REFUSED, text));
            };
            client.delete(&format!("/tokens/{}", encode(&token.id)))?;
            if !args.client.json {
                writeln!(console.out, "{} is revoked", token.name)?;
            }
            Ok(())
        }
    }
}

fn import(
    args: &ImportArgs,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let client = Client::new(&args.client, environment)?;
    let source = super::import::source(
        args.file.as_deref(),
        args.from.clone(),
        args.table.clone(),
        console,
    )?;
    let path = format!("/imports/tokens?dry_run={}", args.dry_run);
    let done: TokenImportJson = client.post(&path, Some(&NewTokenImport { source }))?;
    match args.client.json {
        true => json(console.out, &done)?,
        false => {
            let header = ["name", "state", "types", "remarks"];
            let row = |token: &ImportedTokenJson| {
                let remark = token.remark.clone().unwrap_or_default();
                vec![token.name.clone(), token.state.clone(), types_of(&token.types), remark]
            };
            table(console.out, &header, done.items.iter().map(row).collect())?;
            let what = if args.dry_run { "would be made" } else { "made" };
            let (make, skip, fail) = (done.make, done.skip, done.fail);
            writeln!(console.out, "{make} {what}, {skip} there already, {fail} failed")?;
        }
    }
    match done.fail {
        0 => Ok(()),
        fail => Err(Failure::failed(format_args!("{fail} tokens were not taken over"))),
    }
}

/// The clock of the node may be behind by so much, and 3 650 days still be legal.
const MARGIN_MS: i64 = 60_000;

fn row(token: TokenJson, now_ms: i64) -> Vec<String> {
    let state = match token.expires_ms {
        _ if token.revoked => "revoked".to_owned(),
        Some(at) if at <= now_ms => "expired".to_owned(),
        Some(at) => format!("until {}", time(at)),
        None => "live".to_owned(),
    };
    let last_used = token.last_used_ms.map_or("never".to_owned(), time);
    let types = types_of(&token.types);
    let quota = quota_of(token.quota);
    let role = match token.certificate {
        true => format!("{} (certificate)", token.role),
        false => token.role,
    };
    vec![token.name, role, types, quota, state, last_used, token.created_by, token.id]
}

fn quota_of(quota: Option<i64>) -> String {
    quota.map_or("none".to_owned(), |quota| format!("{quota}/s"))
}

fn types_of(types: &[String]) -> String {
    if types.is_empty() { "all".to_owned() } else { types.join(" ") }
}

#[expect(clippy::disallowed_methods, reason = "the command line reads the wall clock")]
fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}
