//! `idgen type migrate`, `idgen type migrations`, `idgen redis drain`: moving types
//! between Redis instances.

use std::time::Duration;

use clap::Args;

use super::client::{Client, ClientArgs, encode};
use super::exit::{Failure, UNAVAILABLE};
use super::load;
use super::output::{json, pairs, table, time};
use super::type_view::Pairs;
use super::types::changed_to;
use super::{Console, Environment, confirm};
use crate::front::http::migration_schema::{DrainTo, MigratedJson, MoveType, PlaceJson, PlanJson};
use crate::front::http::schema::{InstanceJson, ListJson, TypeJson};

/// How often a waiting drain looks.
const LOOK: Duration = Duration::from_millis(500);

/// Options of `type migrate`.
#[derive(Args, Clone, Debug)]
pub struct MigrateArgs {
    /// Its name
    name: String,
    /// Name or number of the Redis instance to move it to
    #[arg(long, value_name = "INSTANCE", required_unless_present = "undo")]
    to: Option<String>,
    /// Change nothing; say what would happen, and what stands in the way
    #[arg(long, conflicts_with_all = ["abandon", "undo"])]
    dry_run: bool,
    /// Do not ask the old instance, which is out of reach for good: what is left there
    /// is lost, and a node that still reaches it may hand out lower ids for a second
    #[arg(long, conflicts_with = "undo")]
    abandon: bool,
    /// Undo the migration that is under way; if none is, move the type back to where
    /// it came from
    #[arg(long, conflicts_with = "to")]
    undo: bool,
    /// Do not ask before --abandon
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `type migrations`.
#[derive(Args, Clone, Debug)]
pub struct MigrationsArgs {
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `redis drain`.
#[derive(Args, Clone, Debug)]
pub struct DrainArgs {
    /// Its name
    name: String,
    /// Name or number of the instance that its types go to
    #[arg(long, value_name = "OTHER", required_unless_present = "cancel")]
    to: Option<String>,
    /// Stop draining; what was moved stays where it is now
    #[arg(long, conflicts_with = "to")]
    cancel: bool,
    /// Wait until no type is left, and say how many are
    #[arg(long, conflicts_with = "cancel")]
    wait: bool,
    /// How long --wait waits at most; the draining goes on without it
    #[arg(long, value_name = "SECONDS", default_value_t = 600, requires = "wait",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    #[command(flatten)]
    client: ClientArgs,
}

/// Runs `idgen type migrate`.
pub(super) fn migrate(
    args: MigrateArgs,
    env: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let client = Client::new(&args.client, env)?;
    let path = format!("/types/{}/migration", encode(&args.name));
    let Some(to) = args.to else {
        let record: TypeJson = client.delete_and_read(&path)?;
        return changed_to(record, args.client.json, console);
    };
    if args.dry_run {
        let plan: PlanJson = client.get(&format!("{path}?to={}", encode(&to)))?;
        match args.client.json {
            true => json(console.out, &plan)?,
            false => pairs(console.out, &plan_in_words(&plan))?,
        }
        return match plan.problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::failed("it cannot be moved as things are now")),
        };
    }
    if args.abandon && !args.yes {
        let danger = format!(
            "The Redis instance of {} will not be asked: what is left there is lost, and a node \
             that still reaches it may hand out lower ids for a second.",
            args.name
        );
        confirm(console, &args.name, &danger, "not moved")?;
    }
    let body = MoveType { to, abandon: args.abandon };
    let moved: MigratedJson = client.post(&path, Some(&body))?;
    if args.client.json {
        return Ok(json(console.out, &moved)?);
    }
    let from = moved.record.moved_from.map_or("-".to_owned(), |from| from.to_string());
    let rows = [
        ("name", moved.record.name),
        ("redis instance", moved.record.instance.to_string()),
        ("moved from", from),
        ("ids kept", moved.kept.to_string()),
        ("ids lost", moved.burnt.to_string()),
        ("took", format!("{} ms", moved.took_ms)),
    ];
    Ok(pairs(console.out, &rows)?)
}

fn plan_in_words(plan: &PlanJson) -> Pairs {
    let left = match (plan.rest, plan.keeps_rest) {
        (0, _) => "none, so none are lost".to_owned(),
        (rest, true) => format!("{rest}, which go along"),
        (rest, false) => format!("{rest}, which are lost: ranges as high were there before"),
    };
    let mut pairs = vec![
        ("name", plan.record.name.clone()),
        ("mode", plan.record.mode.clone()),
        ("from", place_in_words(&plan.from)),
        ("to", place_in_words(&plan.to)),
        ("ids published", left),
    ];
    pairs.extend(plan.problems.iter().map(|problem| ("in the way", problem.clone())));
    if plan.problems.is_empty() {
        pairs.push(("in the way", "nothing".to_owned()));
    }
    pairs
}

fn place_in_words(place: &PlaceJson) -> String {
    let state = match &place.dispatcher {
        None => "does not answer".to_owned(),
        Some(view) if view.sealed.is_some() => "answers; the type is closed there".to_owned(),
        Some(view) => match view.current.filter(|_| view.live) {
            Some(range) => format!("answers; {} ids left up to {}", view.left, range.end - 1),
            None => "answers; nothing is published".to_owned(),
        },
    };
    format!("{} (number {}): {state}", place.name, place.instance)
}

/// Runs `idgen type migrations`.
pub(super) fn migrations(
    args: MigrationsArgs,
    env: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let client = Client::new(&args.client, env)?;
    let list: ListJson<TypeJson> = client.get("/migrations")?;
    if args.client.json {
        return Ok(json(console.out, &list.items)?);
    }
    let row = |t: TypeJson| {
        let to = t.moving_to.map_or("-".to_owned(), |to| to.to_string());
        vec![t.name, t.mode, t.instance.to_string(), to, time(t.updated_ms)]
    };
    let header = ["name", "mode", "from redis", "to redis", "since"];
    table(console.out, &header, list.items.into_iter().map(row).collect())?;
    if list.more {
        writeln!(console.err, "there may be more than these")?;
    }
    Ok(())
}

/// Runs `idgen redis drain`.
pub(super) fn drain(
    args: DrainArgs,
    env: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let client = Client::new(&args.client, env)?;
    let path = format!("/redis-instances/{}/drain", encode(&args.name));
    let drained: InstanceJson = match &args.to {
        Some(to) => client.post(&path, Some(&DrainTo { to: to.clone() }))?,
        None => client.delete_and_read(&path)?,
    };
    let drained = match args.wait {
        true => wait(&client, drained, Duration::from_secs(args.timeout), console)?,
        false => drained,
    };
    if args.client.json {
        return Ok(json(console.out, &drained)?);
    }
    let rows = [
        ("name", drained.name.clone()),
        ("drained to", drains_to(&drained)),
        ("types left", drained.types.to_string()),
    ];
    Ok(pairs(console.out, &rows)?)
}

/// Where the types of an instance go, by name where that is known.
pub(super) fn drains_to(instance: &InstanceJson) -> String {
    let to = instance.drain_to.clone();
    to.map_or("-".to_owned(), |to| to.name.unwrap_or_else(|| to.id.to_string()))
}

fn left_on(instance: &InstanceJson) -> String {
    let InstanceJson { types, name, .. } = instance;
    match types {
        1 => format!("1 type is left on {name}"),
        _ => format!("{types} types are left on {name}"),
    }
}

/// Waits until the instance has no type left.
fn wait(
    client: &Client,
    mut drained: InstanceJson,
    limit: Duration,
    console: &mut Console<'_>,
) -> Result<InstanceJson, Failure> {
    let bound = load::now() + limit;
    let mut told = None;
    loop {
        if told != Some(drained.types) {
            writeln!(console.err, "{}", left_on(&drained))?;
            told = Some(drained.types);
        }
        if drained.types == 0 {
            return Ok(drained);
        }
        if drained.drain_to.is_none() {
            return Err(Failure::failed(format_args!(
                "{}: somebody stopped the draining",
                left_on(&drained)
            )));
        }
        if load::now() >= bound {
            return Err(Failure::failed(format_args!(
                "{} after {} s; the nodes go on draining it, and their logs say what holds them up",
                left_on(&drained),
                limit.as_secs()
            )));
        }
        std::thread::sleep(LOOK);
        match client.get::<ListJson<InstanceJson>>("/redis-instances") {
            Ok(list) => match list.items.into_iter().find(|found| found.id == drained.id) {
                Some(found) => drained = found,
                None => {
                    return Err(Failure::failed(format_args!(
                        "{} was removed meanwhile",
                        drained.name
                    )));
                }
            },
            // A node that starts again, or a store that is away for a moment.
            Err(failure) if failure.code == UNAVAILABLE => {}
            Err(failure) => return Err(failure),
        }
    }
}
