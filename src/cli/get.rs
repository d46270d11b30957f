//! `idgen get`: ids, one per line.

use clap::Args;

use super::client::{Client, ClientArgs, encode};
use super::exit::Failure;
use super::output::json;
use super::{Console, Environment};
use crate::front::http::schema::IdsJson;
use crate::service::api::MAX_COUNT;

/// Options of `idgen get`.
#[derive(Args, Clone, Debug)]
pub struct GetArgs {
    /// The id type
    #[arg(value_name = "TYPE")]
    name: String,
    /// How many
    #[arg(short = 'n', long = "count", value_name = "N", allow_negative_numbers = true, default_value_t = 1,
          value_parser = clap::value_parser!(i64).range(1..=MAX_COUNT))]
    count: i64,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs `idgen get`.
pub fn run(
    args: GetArgs,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let path = format!("/types/{}/ids?count={}", encode(&args.name), args.count);
    let answer: IdsJson = Client::new(&args.client, environment)?.post(&path, None::<&()>)?;
    if args.client.json {
        return Ok(json(console.out, &answer)?);
    }
    // One write: line by line, a terminal's buffer would make a system call of each.
    let lines: String = answer.ids.iter().map(|id| format!("{id}\n")).collect();
    Ok(console.out.write_all(lines.as_bytes())?)
}
