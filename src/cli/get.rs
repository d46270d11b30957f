//! `idgen get`: ids, one per line.

use clap::Args;

use super::client::{Client, ClientArgs, encode};
use super::exit::Failure;
use super::output::json;
use super::{Console, Environment};
use crate::front::http::kind_schema::TextsJson;
use crate::front::http::schema::IdsJson;
use crate::service::api::MAX_COUNT;

/// Options of `idgen get`.
#[derive(Args, Clone, Debug)]
pub struct GetArgs {
    /// The id type
    #[arg(value_name = "TYPE")]
    name: String,
    /// How many; with --text at most 10 000
    #[arg(short = 'n', long = "count", value_name = "N", allow_negative_numbers = true, default_value_t = 1,
          value_parser = clap::value_parser!(i64).range(1..=MAX_COUNT))]
    count: i64,
    /// Chooses the shard of a sharded type, which needs one
    #[arg(long, value_name = "TEXT")]
    gate_pass: Option<String>,
    /// The same key gives the same ids again, for 10 minutes
    #[arg(long, value_name = "KEY")]
    request_key: Option<String>,
    /// As text, in the format of the type
    #[arg(long)]
    text: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs `idgen get`.
pub fn run(
    args: GetArgs,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let mut path = format!("/types/{}/ids?count={}", encode(&args.name), args.count);
    for (field, value) in [("gate_pass", &args.gate_pass), ("request_key", &args.request_key)] {
        if let Some(value) = value {
            path.push_str(&format!("&{field}={}", encode(value)));
        }
    }
    let client = Client::new(&args.client, environment)?;
    if args.text {
        path.push_str("&as=text");
        let answer: TextsJson = client.post(&path, None::<&()>)?;
        return match args.client.json {
            true => Ok(json(console.out, &answer)?),
            // A format is one line, and a prefix has no control characters.
            false => lines(answer.texts.iter(), console),
        };
    }
    let answer: IdsJson = client.post(&path, None::<&()>)?;
    match args.client.json {
        true => Ok(json(console.out, &answer)?),
        false => lines(answer.ids.iter(), console),
    }
}

/// One write: line by line, a terminal's buffer would make a system call of each.
fn lines(
    items: impl Iterator<Item = impl std::fmt::Display>,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let lines: String = items.map(|item| format!("{item}\n")).collect();
    Ok(console.out.write_all(lines.as_bytes())?)
}
