//! `idgen type import` and `idgen type export`.

use std::collections::HashSet;
use std::io::Read;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::client::{Client, ClientArgs};
use super::exit::Failure;
use super::output::{json, table};
use super::{Console, Environment};
use crate::domain::import::Kind;
use crate::front::http::import_schema::{
    GapJson, ImportItemJson, ImportJson, NewImport, NewSource,
};

/// Most bytes that a node takes in one request, less what JSON needs for itself.
const MAX_TEXT: u64 = 7 * 1024 * 1024;

/// Options of `type import`.
#[derive(Args, Clone, Debug)]
pub struct ImportArgs {
    /// A dump, a table as CSV or TSV, or an export; - reads standard input
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    file: Option<String>,
    /// Read the table from this database, mysql://USER:PASSWORD@HOST:PORT/DATABASE, which
    /// the node connects to; - reads the URL from standard input
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The table there, where it has not the name that its system gives it
    #[arg(long, value_name = "NAME", requires = "from")]
    table: Option<String>,
    /// Whose types they are [default: as the source tells]
    #[arg(long, value_name = "FORMAT",
          value_parser = PossibleValuesParser::new(Kind::ALL.map(Kind::as_str)))]
    format: Option<String>,
    /// Ids to leave out above the highest one: a number, or a share of the step as 50%
    #[arg(long, value_name = "N|P%", allow_negative_numbers = true, value_parser = gap)]
    gap: Option<GapJson>,
    /// Mode of the new types [default: as the source tells, else strict]
    #[arg(long, value_parser = PossibleValuesParser::new(["strict", "segment"]))]
    mode: Option<String>,
    /// Name or number of their Redis instance [default: the one with the lowest number]
    #[arg(long, value_name = "INSTANCE")]
    redis: Option<String>,
    /// Only the type of this name; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Show what would be created, and create nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `type export`.
#[derive(Args, Clone, Debug)]
pub struct ExportArgs {
    /// The form: JSON, which can be imported again, or CSV, which can be, too
    #[arg(long, value_name = "FORM", default_value = "json",
          value_parser = PossibleValuesParser::new(["json", "csv"]))]
    format: String,
    #[command(flatten)]
    client: ClientArgs,
}

fn gap(text: &str) -> Result<GapJson, String> {
    let (number, percent) = match text.strip_suffix('%') {
        Some(number) => (number, true),
        None => (text, false),
    };
    let number = number.parse().map_err(|_| "it must be a number, or a share as 50%".to_owned())?;
    Ok(if percent { GapJson::Percent { percent: number } } else { GapJson::Ids(number) })
}

/// Runs `idgen type export`.
pub fn export(
    args: ExportArgs,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let client = Client::new(&args.client, environment)?;
    let text = client.get_text(&format!("/export?format={}", args.format))?;
    Ok(console.out.write_all(text.as_bytes())?)
}

/// Runs `idgen type import`.
pub fn import(
    args: ImportArgs,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let client = Client::new(&args.client, environment)?;
    let source = source(args.file.as_deref(), args.from, args.table, console)?;
    let body = NewImport {
        source,
        format: args.format,
        gap: args.gap,
        mode: args.mode,
        instance: args.redis,
        only: args.only,
    };
    let path = format!("/imports?dry_run={}", args.dry_run);
    let mut created = HashSet::new();
    let done = loop {
        let mut done: ImportJson = client.post(&path, Some(&body))?;
        let before = created.len();
        let new = done.items.iter().filter(|item| item.state == "created");
        created.extend(new.map(|item| item.name.clone()));
        // A request ends before its time does; what is left needs another one.
        if done.left == 0 || created.len() == before {
            count_created(&mut done, &created);
            break done;
        }
        writeln!(console.err, "{} created, {} left", created.len(), done.left)?;
    };
    let failed = done.fail + done.left;
    match args.client.json {
        true => json(console.out, &done)?,
        false => show(&done, args.dry_run, console)?,
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::failed(format_args!("{failed} types were not taken over"))),
    }
}

/// What an earlier request of this command made is there for the last one.
fn count_created(done: &mut ImportJson, created: &HashSet<String>) {
    for item in &mut done.items {
        if item.state == "exists" && created.contains(&item.name) {
            item.state = "created".to_owned();
            done.create += 1;
            done.skip = done.skip.saturating_sub(1);
        }
    }
}

/// From where: a file or standard input, or a database.
pub(super) fn source(
    file: Option<&str>,
    from: Option<String>,
    table: Option<String>,
    console: &mut Console<'_>,
) -> Result<NewSource, Failure> {
    match (file, from) {
        (Some(file), _) => {
            Ok(NewSource { text: Some(read(file, console)?), ..NewSource::default() })
        }
        (None, Some(url)) => {
            let url = if url == "-" { read("-", console)?.trim().to_owned() } else { url };
            Ok(NewSource { url: Some(url), table, ..NewSource::default() })
        }
        (None, None) => Err(Failure::usage("name a file, or a database with --from")),
    }
}

fn read(file: &str, console: &mut Console<'_>) -> Result<String, Failure> {
    let mut text = String::new();
    let wrong = |error| Failure::usage(format_args!("{file}: {error}"));
    let length = match file {
        "-" => (&mut *console.input).take(MAX_TEXT + 1).read_to_string(&mut text),
        _ => std::fs::File::open(file).map_err(wrong)?.take(MAX_TEXT + 1).read_to_string(&mut text),
    };
    if length.map_err(wrong)? as u64 > MAX_TEXT {
        return Err(Failure::usage(format_args!(
            "{file}: more than {MAX_TEXT} bytes: dump the one table alone, or use --from"
        )));
    }
    Ok(text)
}

fn show(done: &ImportJson, dry_run: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let header = ["name", "state", "next there", "first id here", "min range", "remarks"];
    let row = |item: &ImportItemJson| {
        let remarks: Vec<_> =
            [&item.problem, &item.source.note].into_iter().flatten().map(String::as_str).collect();
        vec![
            item.name.clone(),
            item.state.clone(),
            item.source.next.clone(),
            item.first_id.clone(),
            item.min_range.map_or_else(String::new, |length| length.to_string()),
            remarks.join("; "),
        ]
    };
    table(console.out, &header, done.items.iter().map(row).collect())?;
    let what = if dry_run { "would be created" } else { "created" };
    writeln!(
        console.out,
        "format {}: {} {what}, {} there already, {} failed",
        done.format,
        done.create,
        done.skip,
        done.fail + done.left
    )?;
    Ok(())
}
