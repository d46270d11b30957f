//! `idgen redis`: the Redis instances of a cluster.

use clap::{Args, Subcommand};

use super::client::{Client, ClientArgs, encode};
use super::exit::{Failure, REFUSED};
use super::migrate::{self, DrainArgs, drains_to};
use super::output::{json, pairs, table};
use super::{Console, Environment};
use crate::front::http::schema::{CheckJson, InstanceJson, ListJson, NewInstance, TestInstance};

/// What to do with Redis instances.
#[derive(Clone, Debug, Subcommand)]
pub enum RedisCommand {
    /// Register an instance, after a test of its connection
    Add(AddArgs),
    /// List the instances and how they answer
    List(ListArgs),
    /// Try the connection of an instance from the node
    Test(TestArgs),
    /// Move all types of an instance to another one, so that it can be removed
    Drain(DrainArgs),
    /// Remove an instance that no type is assigned to
    Remove(RemoveArgs),
}

/// Options of `redis add`.
#[derive(Args, Clone, Debug)]
pub struct AddArgs {
    /// Its name: 1 to 128 letters, digits or _ . : -
    name: String,
    /// redis://, redis+sentinel:// or redis+cluster:// URL (rediss for TLS); `-` reads
    /// it from standard input, so that a password does not show in the list of
    /// processes
    address: String,
    /// Register it even if it does not answer now
    #[arg(long)]
    no_test: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `redis list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `redis test`.
#[derive(Args, Clone, Debug)]
pub struct TestArgs {
    /// Name of a registered instance, or a URL; `-` reads it from standard input
    instance: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `redis remove`.
#[derive(Args, Clone, Debug)]
pub struct RemoveArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs `idgen redis …`.
pub fn run(
    command: RedisCommand,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    match command {
        RedisCommand::Add(args) => add(args, environment, console),
        RedisCommand::List(args) => list(args, environment, console),
        RedisCommand::Test(args) => test(args, environment, console),
        RedisCommand::Drain(args) => migrate::drain(args, environment, console),
        RedisCommand::Remove(args) => {
            let client = Client::new(&args.client, environment)?;
            client
                .delete(&format!("/redis-instances/{}", encode(&args.name)))
                .map_err(|failure| with_hint(failure, &args.name))?;
            if !args.client.json {
                writeln!(console.out, "{} is removed", args.name)?;
            }
            Ok(())
        }
    }
}

/// What to do about an instance that is still in use.
fn with_hint(failure: Failure, name: &str) -> Failure {
    if failure.code != REFUSED || !failure.message.starts_with("CONFLICT") {
        return failure;
    }
    Failure::new(
        REFUSED,
        format_args!(
            "{failure} (`idgen redis list` shows what is in use; `idgen redis drain {name} --to \
             OTHER` moves its types away, and `--cancel` ends a drain to it)"
        ),
    )
}

fn add(args: AddArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let body = NewInstance {
        name: args.name,
        url: typed_or_read(args.address, console)?,
        test: !args.no_test,
    };
    let client = Client::new(&args.client, env)?;
    let added: InstanceJson = client.post("/redis-instances", Some(&body))?;
    if args.client.json {
        return Ok(json(console.out, &added)?);
    }
    let rows = [("number", added.id.to_string()), ("name", added.name), ("url", added.url)];
    Ok(pairs(console.out, &rows)?)
}

fn list(args: ListArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let client = Client::new(&args.client, env)?;
    let list: ListJson<InstanceJson> = client.get("/redis-instances")?;
    if args.client.json {
        return Ok(json(console.out, &list.items)?);
    }
    let row = |instance: InstanceJson| {
        let state = match &instance.check {
            Some(check) if check.reachable => format!("answers in {} us", check.round_trip_us),
            Some(check) => check.error.clone().unwrap_or_else(|| "does not answer".to_owned()),
            None => "-".to_owned(),
        };
        let drains_to = drains_to(&instance);
        vec![
            instance.id.to_string(),
            instance.name,
            instance.types.to_string(),
            drains_to,
            instance.url,
            state,
        ]
    };
    let header = ["number", "name", "types", "drains to", "url", "state"];
    Ok(table(console.out, &header, list.items.into_iter().map(row).collect())?)
}

fn test(args: TestArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let instance = typed_or_read(args.instance, console)?;
    let body = match instance.contains("://") {
        true => TestInstance { name: None, url: Some(instance) },
        false => TestInstance { name: Some(instance), url: None },
    };
    let client = Client::new(&args.client, env)?;
    let check: CheckJson = client.post("/redis-instances/test", Some(&body))?;
    if args.client.json {
        json(console.out, &check)?;
    } else if check.reachable {
        writeln!(console.out, "it answers in {} us", check.round_trip_us)?;
    }
    match check.reachable {
        true => Ok(()),
        false => Err(Failure::failed(format_args!(
            "it does not answer: {}",
            check.error.unwrap_or_else(|| "no reason given".to_owned())
        ))),
    }
}

/// `text`, or the first line of the input where it is `-`.
fn typed_or_read(text: String, console: &mut Console<'_>) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text);
    }
    let mut line = String::new();
    console
        .input
        .read_line(&mut line)
        .map_err(|error| Failure::usage(format_args!("cannot read standard input: {error}")))?;
    Ok(line.trim().to_owned())
}
