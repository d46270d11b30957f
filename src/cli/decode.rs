//! `idgen decode`: what an id tells.

use clap::Args;

use super::client::{Client, ClientArgs, encode};
use super::exit::Failure;
use super::output::{json, pairs, time};
use super::{Console, Environment};
use crate::front::http::kind_schema::DecodedJson;

/// Options of `idgen decode`.
#[derive(Args, Clone, Debug)]
pub struct DecodeArgs {
    /// The id type
    #[arg(value_name = "TYPE")]
    name: String,
    /// The id: a number, or a text as the type writes it
    #[arg(value_name = "ID", allow_negative_numbers = true)]
    id: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs `idgen decode`.
pub fn run(
    args: DecodeArgs,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let path = format!("/types/{}/decode?id={}", encode(&args.name), encode(&args.id));
    let decoded: DecodedJson = Client::new(&args.client, environment)?.get(&path)?;
    if args.client.json {
        return Ok(json(console.out, &decoded)?);
    }
    Ok(pairs(console.out, &told(decoded))?)
}

/// What is known, in words.
fn told(decoded: DecodedJson) -> Vec<(&'static str, String)> {
    let number = |value: Option<i64>| value.map(|value| value.to_string());
    let snowflake = decoded.mode == "snowflake";
    let range = decoded.range_first.zip(decoded.range_count);
    let issued = match decoded.issued {
        true => "yes, or lost unused",
        false => "no: it lies ahead",
    };
    let rows = [
        ("type", Some(decoded.id_type)),
        ("mode", Some(decoded.mode)),
        ("id", number(decoded.id)),
        ("text", Some(decoded.text)),
        ("period", decoded.period),
        ("position", number(decoded.position)),
        ("shard", number(decoded.shard.map(i64::from))),
        ("app id", number(decoded.app_id)),
        ("worker id", number(decoded.worker)),
        ("sequence", number(decoded.sequence)),
        (if snowflake { "time" } else { "range allocated" }, decoded.at_ms.map(time)),
        (if snowflake { "node" } else { "range of node" }, decoded.node),
        ("range", range.map(|(first, count)| format!("{count} positions from {first} on"))),
        ("issued", Some(issued.to_owned())),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}
