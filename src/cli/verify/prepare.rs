//! Before a check: make the type if asked to, and read what it promises.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::VerifyArgs;
use crate::cli::client::{Client, ClientArgs};
use crate::cli::exit::Failure;
use crate::cli::load::{self, LoadError, Order, Promise, WireArgs};
use crate::front::thrift::generated::TypeInfo;

/// A new type is served on every node within a second; this is for slow days.
const UNTIL_SERVED: Duration = Duration::from_secs(5);

/// Options about making the type.
#[derive(Args, Clone, Debug, Default)]
pub struct CreateArgs {
    /// The mode that the type must have; where there is no such type, it is
    /// made with this mode, through the admin API.
    #[arg(long)]
    pub mode: Option<String>,
    /// Options of the type that is made, as one JSON object; a sharded type
    /// needs at least `{"app_id":0}`.
    #[arg(long, value_name = "JSON", requires = "mode")]
    pub options: Option<String>,
    /// Address of the admin API, for making the type [env: IDGEN_URL] [default: http://127.0.0.1:5980]
    #[arg(long, value_name = "URL", requires = "mode")]
    pub url: Option<String>,
    /// Data folder of a node of this machine, for its admin token where
    /// IDGEN_ADMIN_TOKEN is not set [env: IDGEN_DATA] [default: ./idgen-data]
    #[arg(long, value_name = "DIR", requires = "mode")]
    pub data: Option<PathBuf>,
}

/// Makes the type, where a mode is given and no node knows it yet.
pub(super) fn create(
    args: &VerifyArgs,
    environment: &[(OsString, OsString)],
) -> Result<(), Failure> {
    let Some(mode) = &args.create.mode else { return Ok(()) };
    let failure = |error: LoadError| Failure::new(error.exit_code(), error);
    match load::describe(&args.nodes[0], &args.wire, &args.id_type) {
        Ok(_) => return Ok(()),
        Err(LoadError::Refused { error, .. }) if error.kind == "UNKNOWN_TYPE" => {}
        Err(error) => return Err(failure(error)),
    }
    let CreateArgs { url, data, .. } = args.create.clone();
    let client = Client::new(
        &ClientArgs { url, data, tls: args.wire.files.clone(), json: false },
        environment,
    )?;
    let mut body = serde_json::json!({ "name": args.id_type, "mode": mode });
    if let Some(options) = &args.create.options {
        body["options"] = serde_json::from_str(options)
            .map_err(|error| Failure::usage(format_args!("--options is no JSON: {error}")))?;
    }
    client.post::<serde_json::Value>("/types", Some(&body))?;
    for node in &args.nodes {
        wait_until_served(node, &args.wire, &args.id_type).map_err(failure)?;
    }
    Ok(())
}

fn wait_until_served(node: &str, wire: &WireArgs, id_type: &str) -> Result<(), LoadError> {
    let deadline = load::now() + UNTIL_SERVED;
    loop {
        match load::describe(node, wire, id_type) {
            Err(LoadError::Refused { error, .. })
                if error.kind == "UNKNOWN_TYPE" && load::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return other.map(|_| ()),
        }
    }
}

/// What is to be checked.
pub(super) struct Prepared {
    pub(super) promise: Promise,
    /// The order that is checked.
    pub(super) order: Order,
    /// Whether ids are read as texts.
    pub(super) texts: bool,
    /// How many gate passes are used; 0 for a type that is not sharded.
    pub(super) gate_passes: u32,
    /// What is not judged, and why.
    pub(super) notes: Vec<String>,
    /// The first position that no range held before the run.
    next_id: i64,
    /// Positions that were at hand before the run.
    at_hand: i64,
}

/// Reads the type, and finds out what to check. All nodes must answer, and say
/// the same.
pub(super) fn prepare(args: &VerifyArgs) -> Result<Prepared, LoadError> {
    let usage = |message: String| LoadError::Usage(message);
    let infos: Vec<TypeInfo> = args
        .nodes
        .iter()
        .map(|node| load::describe(node, &args.wire, &args.id_type))
        .collect::<Result<_, _>>()?;
    let info = infos.first().ok_or_else(|| usage("--node is missing".to_owned()))?;
    for (node, other) in args.nodes.iter().zip(&infos) {
        if (&other.mode, &other.options) != (&info.mode, &info.options) {
            let first = &args.nodes[0];
            return Err(usage(format!("nodes {first} and {node} do not serve the same type")));
        }
    }
    let promise =
        Promise::of(info).map_err(|why| usage(format!("type {}: {why}", args.id_type)))?;
    let mode = promise.mode.as_str();
    if let Some(wanted) = &args.create.mode
        && wanted != mode
    {
        return Err(usage(format!("type {} is {mode}, not {wanted}", args.id_type)));
    }
    let gate_passes = promise.gate_passes(args.gate_passes).map_err(usage)?;
    if args.numbers && promise.only_texts {
        let why = "--numbers cannot be: a calendar series has texts only";
        return Err(usage(why.to_owned()));
    }
    let texts = promise.has_format && !args.numbers;
    let sharded = gate_passes > 0;
    match args.order {
        Some(Order::None) | None => {}
        Some(_) if texts => {
            return Err(usage("--order cannot be checked on texts; see --numbers".to_owned()));
        }
        Some(Order::Shard) if !sharded => {
            return Err(usage(format!("--order shard is for sharded types; this one is {mode}")));
        }
        Some(_) => {}
    }
    let order = match texts {
        true => Order::None,
        false => args.order.unwrap_or(promise.order),
    };
    let mut notes = Vec::new();
    if texts {
        notes.push("ids are read as texts: they are checked for repeats only".to_owned());
    }
    if order != Order::None && promise.order_may_lapse && args.order.is_none() {
        notes.push(
            "order violations are information: without Redis this type gives up its order \
             (give --order strict to count them)"
                .to_owned(),
        );
    }
    Ok(Prepared {
        order,
        texts,
        gate_passes,
        notes,
        next_id: info.next_id.unwrap_or(0),
        at_hand: at_hand(&infos),
        promise,
    })
}

/// Positions that may still be issued of what was allocated: what the
/// dispatcher holds, which every node shows alike, and what each node holds.
fn at_hand(infos: &[TypeInfo]) -> i64 {
    let live = |info: &TypeInfo| info.live.as_ref().and_then(|live| live.left);
    let local = |info: &TypeInfo| info.local.as_ref().and_then(|local| local.left);
    let shared = infos.iter().filter_map(live).max().unwrap_or(0);
    infos.iter().filter_map(local).fold(shared, i64::saturating_add)
}

/// Whether the run stayed within one cycle of the type: true, or why it cannot
/// be told. Positions of the run lie between what was at hand before and what
/// is allocated after it.
pub(super) fn within_a_cycle(
    args: &VerifyArgs,
    prepared: &Prepared,
    cycle: i64,
) -> Result<(), String> {
    if prepared.gate_passes > 0 {
        return Err("a node does not tell how far each shard has come".to_owned());
    }
    let after = args
        .nodes
        .iter()
        .find_map(|node| load::describe(node, &args.wire, &args.id_type).ok())
        .and_then(|info| info.next_id)
        .ok_or("no node tells how far the type has come")?;
    let used = after.saturating_sub(prepared.next_id).saturating_add(prepared.at_hand);
    match used <= cycle {
        true => Ok(()),
        false => Err(format!("up to {used} numbers were used, and a cycle has {cycle}")),
    }
}
