//! `idgen type`: the id types of a cluster.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::{Client, ClientArgs, encode};
use super::exit::Failure;
use super::import::{self, ExportArgs, ImportArgs};
use super::migrate::{self, MigrateArgs, MigrationsArgs};
use super::output::{json, pairs, table, time};
use super::sites::{self, CheckSitesArgs};
use super::type_options::{ModeFlag, OpaqueFlags, OptionFlags};
use super::type_view::{or_dash, place_of, settings_of, supply_of};
use super::{Console, Environment, confirm};
use crate::domain::{LoadPercentage, TypeOptions};
use crate::front::http::action_schema::{Reserve, ReservedJson};
use crate::front::http::log_schema::RangeLogJson;
use crate::front::http::schema::{ListJson, NewType, TypeDetailJson, TypeJson, TypePatch};

/// What to do with id types.
#[derive(Clone, Debug, Subcommand)]
pub enum TypeCommand {
    /// Create an id type; every node serves it within a second
    Add(AddArgs),
    /// List the id types
    List(ListArgs),
    /// Show one id type, what its dispatcher holds, and its newest ranges
    Show(ShowArgs),
    /// Change settings of an id type
    #[command(visible_alias = "alter")]
    Set(SetArgs),
    /// Give an opaque type a new key; the ids that are left in its slice are lost
    RotateKey(NameArgs),
    /// Move an id type to another Redis instance, while it is in use
    Migrate(MigrateArgs),
    /// List the id types that are on their way to another Redis instance
    Migrations(MigrationsArgs),
    /// Take ids in a row for a bulk load: nobody else gets them
    Reserve(ReserveArgs),
    /// Take types over from another system: Leaf, tinyid, IdGen, CosId, a list
    Import(Box<ImportArgs>),
    /// Print all id types, to be imported elsewhere
    Export(ExportArgs),
    /// Compare the types that several sites share with those of the other sites
    CheckSites(CheckSitesArgs),
    /// Stop handing out ids of a type; its name and its next id are kept
    Retire(RetireArgs),
    /// Hand out ids of a retired type again, above all earlier ones
    Restore(NameArgs),
}

/// Options of `type add`.
#[derive(Args, Clone, Debug)]
pub struct AddArgs {
    /// Its name, for ever: 1 to 128 letters, digits or _ . : -
    name: String,
    #[command(flatten)]
    mode: ModeFlag,
    /// The first id [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    first_id: Option<i64>,
    /// Name or number of its Redis instance [default: the one with the lowest number]
    #[arg(long, value_name = "INSTANCE")]
    redis: Option<String>,
    #[command(flatten)]
    settings: TypeSettings,
    #[command(flatten)]
    options: OptionFlags,
    #[command(flatten)]
    opaque: OpaqueFlags,
    #[command(flatten)]
    client: ClientArgs,
}

/// The settings of a type that can change.
#[derive(Args, Clone, Debug)]
struct TypeSettings {
    /// Put before the number in string ids
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// For people
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The highest id that may ever be handed out: a number, or `int32`, `uint32`,
    /// `js` (2^53 - 1, what JavaScript holds exactly)
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = limit)]
    max_id: Option<i64>,
    /// Shortest range, in ids
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    min_range: Option<i64>,
    /// Longest range, in ids
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_range: Option<i64>,
    /// How long one range is meant to last
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    load_interval: Option<i64>,
    /// The share of a range, 0 to 1, after whose use the next is loaded
    #[arg(long, value_name = "F", allow_negative_numbers = true, value_parser = fraction)]
    load_percentage: Option<f64>,
    /// How long a refill holds its lock without a sign of life
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    lock_expire: Option<i64>,
}

/// Options of `type list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Only names that contain this text
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    /// Only types of this Redis instance, by name or number
    #[arg(long, value_name = "INSTANCE")]
    instance: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `type show`.
#[derive(Args, Clone, Debug)]
pub struct ShowArgs {
    /// Its name
    name: String,
    /// How many of the newest ranges to show
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(0..=1_000))]
    ranges: u32,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `type set`.
#[derive(Args, Clone, Debug)]
pub struct SetArgs {
    /// Its name
    name: String,
    /// Change it only if it has this version still (`type show` says which)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    version: Option<i64>,
    #[command(flatten)]
    mode: ModeFlag,
    #[command(flatten)]
    settings: TypeSettings,
    #[command(flatten)]
    options: OptionFlags,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `type retire`.
#[derive(Args, Clone, Debug)]
pub struct RetireArgs {
    /// Its name
    name: String,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `type restore` and `type rotate-key`.
#[derive(Args, Clone, Debug)]
pub struct NameArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    client: ClientArgs,
}

/// Options of `type reserve`.
#[derive(Args, Clone, Debug)]
pub struct ReserveArgs {
    /// Its name
    name: String,
    /// How many ids
    #[arg(value_name = "COUNT", allow_negative_numbers = true)]
    count: i64,
    #[command(flatten)]
    client: ClientArgs,
}

/// A highest id, by number or by the name of a type that must hold it.
fn limit(text: &str) -> Result<i64, String> {
    match text {
        "int32" => Ok(i32::MAX.into()),
        "uint32" => Ok(u32::MAX.into()),
        "js" => Ok((1 << 53) - 1),
        _ => text.parse().map_err(|_| "must be a number, int32, uint32 or js".to_owned()),
    }
}

/// Whole seconds, as milliseconds. The service knows the limits.
pub(super) fn seconds(text: &str) -> Result<i64, String> {
    let value: i64 = text.parse().map_err(|_| "must be a whole number of seconds".to_owned())?;
    value.checked_mul(1_000).ok_or_else(|| "too many seconds".to_owned())
}

/// Runs `idgen type …`.
pub fn run(
    command: TypeCommand,
    environment: &Environment,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    match command {
        TypeCommand::Add(args) => add(args, environment, console),
        TypeCommand::List(args) => list(args, environment, console),
        TypeCommand::Show(args) => show(args, environment, console),
        TypeCommand::Set(args) => set(args, environment, console),
        TypeCommand::Migrate(args) => migrate::migrate(args, environment, console),
        TypeCommand::Migrations(args) => migrate::migrations(args, environment, console),
        TypeCommand::Reserve(args) => reserve(args, environment, console),
        TypeCommand::Import(args) => import::import(*args, environment, console),
        TypeCommand::Export(args) => import::export(args, environment, console),
        TypeCommand::CheckSites(args) => sites::run(args, environment, console),
        TypeCommand::Retire(args) => retire(args, environment, console),
        TypeCommand::Restore(args) => {
            let client = Client::new(&args.client, environment)?;
            let changed = act(&client, &args.name, "restore")?;
            changed_to(changed, args.client.json, console)
        }
        TypeCommand::RotateKey(args) => {
            let client = Client::new(&args.client, environment)?;
            let changed = act(&client, &args.name, "rotate-key")?;
            changed_to(changed, args.client.json, console)
        }
    }
}

fn add(args: AddArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut options = TypeOptions::default();
    args.options.apply_to(&mut options);
    args.opaque.apply_to(&mut options);
    let body = NewType {
        name: args.name,
        mode: args.mode.mode,
        prefix: args.settings.prefix,
        description: args.settings.description,
        first_id: args.first_id,
        max_id: args.settings.max_id,
        min_range: args.settings.min_range,
        max_range: args.settings.max_range,
        load_interval_ms: args.settings.load_interval,
        load_percentage: args.settings.load_percentage,
        lock_ttl_ms: args.settings.lock_expire,
        instance: args.redis,
        options: (options != TypeOptions::default()).then_some(options),
    };
    let created: TypeJson = Client::new(&args.client, env)?.post("/types", Some(&body))?;
    changed_to(created, args.client.json, console)
}

fn list(args: ListArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let client = Client::new(&args.client, env)?;
    let (contains, instance) = (args.contains.as_deref(), args.instance.as_deref());
    let types = all_types(&client, contains.unwrap_or_default(), instance.unwrap_or_default())?;
    if args.client.json {
        return Ok(json(console.out, &types)?);
    }
    let header = ["name", "mode", "state", "next id", "last range", "redis", "description"];
    let row = |t: TypeJson| {
        let place = place_of(&t);
        vec![
            t.name,
            t.mode,
            t.state,
            t.next_id.to_string(),
            or_dash(t.last_range),
            place,
            t.description.chars().take(60).collect(),
        ]
    };
    Ok(table(console.out, &header, types.into_iter().map(row).collect())?)
}

/// Every type whose name contains `text`, of one Redis instance if `instance` is not
/// empty, page by page.
pub(super) fn all_types(
    client: &Client,
    text: &str,
    instance: &str,
) -> Result<Vec<TypeJson>, Failure> {
    let filter = format!("contains={}&instance={}", encode(text), encode(instance));
    let mut types: Vec<TypeJson> = Vec::new();
    loop {
        let after = types.last().map_or("", |t| t.name.as_str());
        let path = format!("/types?limit=1000&{filter}&after={}", encode(after));
        let page: ListJson<TypeJson> = client.get(&path)?;
        let more = page.more && !page.items.is_empty();
        types.extend(page.items);
        if !more {
            return Ok(types);
        }
    }
}

fn show(args: ShowArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let client = Client::new(&args.client, env)?;
    let path = format!("/types/{}", encode(&args.name));
    let detail: TypeDetailJson = client.get(&path)?;
    let ranges: Vec<RangeLogJson> = match args.ranges {
        0 => Vec::new(),
        limit => {
            let list: ListJson<RangeLogJson> =
                client.get(&format!("{path}/ranges?limit={limit}"))?;
            list.items
        }
    };
    if args.client.json {
        let mut value = serde_json::to_value(&detail).map_err(Failure::failed)?;
        value["ranges"] = serde_json::to_value(&ranges).map_err(Failure::failed)?;
        return Ok(json(console.out, &value)?);
    }
    pairs(console.out, &settings_of(&detail.record))?;
    pairs(console.out, &supply_of(&detail))?;
    if ranges.is_empty() {
        return Ok(());
    }
    writeln!(console.out)?;
    let row = |entry: RangeLogJson| {
        vec![
            entry.start.to_string(),
            entry.end.to_string(),
            time(entry.at_ms),
            or_dash(entry.instance),
            entry.owner,
        ]
    };
    let header = ["range start", "end", "allocated", "redis", "owner"];
    Ok(table(console.out, &header, ranges.into_iter().map(row).collect())?)
}

/// A share from 0 to 1. JSON has no word for the numbers that are none.
fn fraction(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().map_err(|_| "it must be a number from 0 to 1".to_owned())?;
    LoadPercentage::from_fraction(number).map(|_| number).map_err(|error| error.message)
}

fn set(args: SetArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let mut patch = TypePatch {
        version: args.version,
        mode: args.mode.mode,
        options: None,
        prefix: args.settings.prefix,
        description: args.settings.description,
        max_id: args.settings.max_id,
        min_range: args.settings.min_range,
        max_range: args.settings.max_range,
        load_interval_ms: args.settings.load_interval,
        load_percentage: args.settings.load_percentage,
        lock_ttl_ms: args.settings.lock_expire,
    };
    let nothing = TypePatch { version: args.version, ..TypePatch::default() };
    if patch == nothing && args.options.is_empty() {
        return Err(Failure::usage(
            "nothing to change: give at least one setting, such as --max-range N",
        ));
    }
    let path = format!("/types/{}", encode(&args.name));
    let client = Client::new(&args.client, env)?;
    if !args.options.is_empty() {
        // Options are replaced all together, so the others must be sent as they
        // are, and the type must not have changed in between.
        let found: TypeDetailJson = client.get(&path)?;
        let options = Value::Object(found.record.options);
        let mut options: TypeOptions = serde_json::from_value(options).map_err(|error| {
            Failure::failed(format_args!(
                "the options of this type are not known to this version: {error}"
            ))
        })?;
        args.options.apply_to(&mut options);
        patch.options = Some(options);
        patch.version = patch.version.or(Some(found.record.version));
    }
    let changed: TypeJson = client.patch(&path, &patch)?;
    changed_to(changed, args.client.json, console)
}

fn retire(args: RetireArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let client = Client::new(&args.client, env)?;
    if !args.yes {
        let danger = format!("{} will hand out no more ids, on any node.", args.name);
        confirm(console, &args.name, &danger, "not retired")?;
    }
    let changed = act(&client, &args.name, "retire")?;
    changed_to(changed, args.client.json, console)
}

fn reserve(args: ReserveArgs, env: &Environment, console: &mut Console<'_>) -> Result<(), Failure> {
    let client = Client::new(&args.client, env)?;
    let path = format!("/types/{}/reserve", encode(&args.name));
    let block: ReservedJson = client.post(&path, Some(&Reserve { count: args.count }))?;
    if args.client.json {
        return Ok(json(console.out, &block)?);
    }
    let last = block.start + (block.count - 1) * block.step;
    let mut shown = vec![
        ("first id", block.start.to_string()),
        ("last id", last.to_string()),
        ("ids", block.count.to_string()),
    ];
    if block.step != 1 {
        shown.push(("step", block.step.to_string()));
    }
    Ok(pairs(console.out, &shown)?)
}

fn act(client: &Client, name: &str, action: &str) -> Result<TypeJson, Failure> {
    let path = format!("/types/{}/{action}", encode(name));
    client.post(&path, None::<&()>)
}

pub(super) fn changed_to(
    record: TypeJson,
    as_json: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let printed = match as_json {
        true => json(console.out, &record),
        false => pairs(console.out, &settings_of(&record)),
    };
    Ok(printed?)
}
