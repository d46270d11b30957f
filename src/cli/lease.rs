//! `idgen lease`: ids for the caller to hand out by itself.

use clap::Args;

use super::client::{Client, ClientArgs, encode};
use super::exit::Failure;
use super::output::{json, pairs};
use super::types::seconds;
use super::{Console, Environment};
use crate::front::http::kind_schema::LeaseJson;
use crate::service::api::MAX_LEASE;

/// Options of `idgen lease`.
#[derive(Args, Clone, Debug)]
pub struct LeaseArgs {
    /// The id type: of mode segment, with ids in order
    #[arg(value_name = "TYPE")]
    name: String,
    /// How many; there may be fewer
    #[arg(short = 'n', long, value_name = "N", allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(1..=MAX_LEASE))]
    count: i64,
    /// For how long: 1 to 86400 seconds. What is left then is lost
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    ttl: i64,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs `idgen lease`.
pub fn run(
    args: LeaseArgs,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let (count, ttl_ms) = (args.count, args.ttl);
    let path = format!("/types/{}/lease?count={count}&ttl_ms={ttl_ms}", encode(&args.name));
    let lease: LeaseJson = Client::new(&args.client, environment)?.post(&path, None::<&()>)?;
    if args.client.json {
        return Ok(json(console.out, &lease)?);
    }
    let last = lease.first.saturating_add((lease.count - 1).saturating_mul(lease.step));
    let shown = [
        ("first id", lease.first.to_string()),
        ("last id", last.to_string()),
        ("step", lease.step.to_string()),
        ("ids", lease.count.to_string()),
        ("to be used within", format!("{} ms from the call", lease.ttl_ms)),
    ];
    Ok(pairs(console.out, &shown)?)
}
