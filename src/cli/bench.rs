//! `idgen bench`: how fast do nodes hand out ids?
//!
//! A closed loop: each of `--connections` clients sends its next request when
//! the answer to the last one is there. After a warm-up of one second, calls
//! that begin and end within exactly `--seconds` are counted; the latency of a
//! call is that of the call alone, without making a connection.
//!
//! With `--rate` it is an open loop: see [`load::open`].

use std::io::Write;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::exit;
use super::load::{
    self, Client, ErrorCounts, Latencies, LoadError, Method, Node, Plan, Promise, Protocol,
    Request, Run, Transport, WireArgs, open::Offer,
};
use crate::service::api::MAX_COUNT;

/// Options of `idgen bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// A node's Thrift address; repeat it to spread the connections evenly.
    #[arg(long = "node", value_name = "HOST:PORT", required = true)]
    pub nodes: Vec<String>,
    /// The id type to take ids from.
    #[arg(long = "type", value_name = "TYPE")]
    pub id_type: String,
    /// How many clients, each with its own connection.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub connections: u32,
    /// How long to measure, after one second of warm-up.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// How many ids per call.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_COUNT))]
    pub count: u32,
    /// The method: `nextId` (`nextIds` for more than one id), or `getId` of the
    /// original interface.
    #[arg(long, value_enum, default_value_t)]
    pub method: Method,
    /// How many different gate passes to use, of a sharded type [default: 256]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub gate_passes: Option<u32>,
    /// Take ids as texts, in the type's format. A calendar series has nothing else.
    #[arg(long)]
    pub texts: bool,
    /// Send so many calls per second over all connections, whether or not answers come, and
    /// pipelined where they do not; latencies run from when a call was due
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub rate: Option<u64>,
    /// How to talk to the nodes.
    #[command(flatten)]
    pub wire: WireArgs,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// What a benchmark measured. Its JSON form is the output of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The nodes, with commas between them.
    pub node: String,
    /// The id type.
    #[serde(rename = "type")]
    pub id_type: String,
    /// How many clients.
    pub connections: u32,
    /// The measured time.
    pub seconds: u64,
    /// How many ids were asked for per call.
    pub count: u32,
    /// Calls that brought ids.
    pub requests: u64,
    /// Ids that they brought.
    pub ids: u64,
    /// Calls that brought ids, per second.
    pub requests_per_s: f64,
    /// Ids per second.
    pub ids_per_s: f64,
    /// The latency that half of the calls stay within, in microseconds.
    pub p50_us: f64,
    /// The same for 99 % of the calls.
    pub p99_us: f64,
    /// The same for 99.9 % of the calls.
    pub p999_us: f64,
    /// The longest latency.
    pub max_us: f64,
    /// Calls without ids, and connections that could not be made.
    pub errors: u64,
    /// The same by kind.
    pub errors_by_code: ErrorCounts,
    /// With `--rate` only.
    #[serde(flatten)]
    pub open: Option<OpenReport>,
}

/// What an open loop adds. Latencies are those of accepted calls; `requests` are
/// ids that arrived within the measured time, whenever their calls were due.
#[derive(Clone, Debug, Serialize)]
pub struct OpenReport {
    /// Calls per second that were due.
    pub offered_per_s: f64,
    /// The share of those that brought an id.
    pub accepted_share: f64,
    /// The latency that 99 % of the calls answered with an error stay within.
    pub refused_p99_us: f64,
    /// Calls that have no answer, three seconds after the end.
    pub unanswered: u64,
}

/// What one client measured.
#[derive(Default)]
struct Tally {
    latencies: Latencies,
    ids: u64,
    errors: ErrorCounts,
}

const WARM_UP: Duration = Duration::from_secs(1);

/// Measures; refuses options that contradict each other, nodes that are out of
/// reach, and types that they do not serve.
pub fn measure(args: &BenchArgs) -> Result<BenchReport, LoadError> {
    if args.method == Method::GetId && args.count != 1 {
        let message = "--count must be 1 with --method getId, which brings one id per call";
        return Err(LoadError::Usage(message.to_owned()));
    }
    let request = request(args)?;
    if let Some(rate) = args.rate {
        return measure_open(args, &request, rate);
    }
    let clients = load::clients(&args.nodes, args.connections, &args.wire, &request)?;
    let plan = Plan { warm_up: WARM_UP, measured: Duration::from_secs(args.seconds) };
    let tallies = load::run(clients, plan, drive, |_| ());
    let mut total = Tally::default();
    for tally in &tallies {
        total.latencies.merge(&tally.latencies);
        total.ids += tally.ids;
        total.errors.merge(&tally.errors);
    }
    if total.latencies.count() == 0 {
        return Err(LoadError::NoCalls(total.errors.summary()));
    }
    let requests = total.latencies.count();
    Ok(report(args, requests, total))
}

/// Measures with calls at a fixed rate.
fn measure_open(args: &BenchArgs, request: &Request, rate: u64) -> Result<BenchReport, LoadError> {
    let plain = Request::new(&args.id_type, Method::NextId, 1);
    let wire = (args.wire.transport, args.wire.protocol);
    if args.wire.tls {
        return Err(LoadError::Usage("--rate works without --tls only".to_owned()));
    }
    if *request != plain || wire != (Transport::Framed, Protocol::Binary) {
        let message = "--rate asks for one number per call with nextId, framed and binary";
        return Err(LoadError::Usage(message.to_owned()));
    }
    // Probes the nodes, and raises the limit of open files.
    load::clients(&args.nodes, args.connections, &args.wire, request)?;
    let nodes = args.nodes.iter().map(|name| Node::resolve(name));
    let offer = Offer {
        nodes: nodes.collect::<Result<_, LoadError>>()?,
        connections: args.connections,
        id_type: args.id_type.clone(),
        rate,
        warm_up: WARM_UP,
        measured: Duration::from_secs(args.seconds),
    };
    let fate = load::open::offer(&offer).map_err(|error| LoadError::NoCalls(error.to_string()))?;
    if fate.accepted.count() == 0 {
        return Err(LoadError::NoCalls(fate.errors.summary()));
    }
    let open = OpenReport {
        offered_per_s: fate.offered as f64 / args.seconds as f64,
        accepted_share: fate.accepted.count() as f64 / fate.offered as f64,
        refused_p99_us: fate.refused.quantile_us(0.99),
        unanswered: fate.unanswered(),
    };
    let requests = fate.arrived;
    let total = Tally { latencies: fate.accepted, ids: requests, errors: fate.errors };
    Ok(BenchReport { open: Some(open), ..report(args, requests, total) })
}

/// What to ask for, which is a matter of the type. A server that does not
/// describe its types is asked for plain ids, as the options say.
fn request(args: &BenchArgs) -> Result<Request, LoadError> {
    let request = Request::new(&args.id_type, args.method, args.count);
    if args.method == Method::GetId {
        return match args.texts || args.gate_passes.is_some() {
            true => {
                let message = "--method getId has neither texts nor gate passes";
                Err(LoadError::Usage(message.to_owned()))
            }
            false => Ok(request),
        };
    }
    // Out of reach for now, perhaps: then the probe that follows tells why.
    let info = match load::describe(&args.nodes[0], &args.wire, &args.id_type) {
        Ok(info) => Some(info),
        Err(LoadError::Refused { error, .. }) if error.kind == "unknown_method" => None,
        Err(LoadError::Unreachable { .. }) => None,
        Err(error) => return Err(error),
    };
    let mut texts = args.texts;
    let mut gate_passes = args.gate_passes.unwrap_or(0);
    if let Some(info) = info {
        let usage = |why| LoadError::Usage(format!("type {}: {why}", args.id_type));
        let promise = Promise::of(&info).map_err(usage)?;
        gate_passes = promise.gate_passes(args.gate_passes).map_err(usage)?;
        texts |= promise.only_texts;
    }
    Ok(Request { texts, ..request }.with_gate_passes(gate_passes))
}

fn drive(client: &mut Client, run: &Run) -> Tally {
    let mut tally = Tally::default();
    while !run.is_over(load::now()) {
        let mut begun = load::now();
        let result = client.connect(run.left(begun)).and_then(|()| {
            begun = load::now();
            client.call()
        });
        let ended = load::now();
        match result {
            Ok(answer) => {
                if run.measures(begun, ended) {
                    tally.latencies.record(ended - begun);
                    tally.ids += answer.ids();
                }
            }
            Err(error) => {
                if run.is_warm(ended) {
                    tally.errors.add(load::kind_of(&error, run));
                }
                run.pause(client.pace());
            }
        }
    }
    tally
}

fn report(args: &BenchArgs, requests: u64, total: Tally) -> BenchReport {
    let Tally { latencies, ids, errors } = total;
    let per_second = |n: u64| (n as f64 / args.seconds as f64 * 10.0).round() / 10.0;
    BenchReport {
        node: args.nodes.join(","),
        id_type: args.id_type.clone(),
        connections: args.connections,
        seconds: args.seconds,
        count: args.count,
        requests,
        ids,
        requests_per_s: per_second(requests),
        ids_per_s: per_second(ids),
        p50_us: latencies.quantile_us(0.5),
        p99_us: latencies.quantile_us(0.99),
        p999_us: latencies.quantile_us(0.999),
        max_us: latencies.max_us(),
        errors: errors.total(),
        errors_by_code: errors,
        open: None,
    }
}

/// Runs `idgen bench`: the result goes to `out`, a message about a failure to
/// `err`. Returns the exit code (see [`exit`]); errors of single calls do not
/// change it.
pub fn execute(args: &BenchArgs, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match measure(args) {
        Ok(report) => match print(&report, args.json, out) {
            Ok(()) => exit::OK,
            // Whoever was to read the result is gone.
            Err(_) => exit::FAILED,
        },
        Err(error) => {
            let _ = writeln!(err, "idgen bench: {error}");
            error.exit_code()
        }
    }
}

fn print(report: &BenchReport, json: bool, out: &mut dyn Write) -> std::io::Result<()> {
    if json {
        return writeln!(out, "{}", load::json(report));
    }
    writeln!(
        out,
        "{} ids per call of type {} from {}, {} connections, {} s",
        report.count, report.id_type, report.node, report.connections, report.seconds
    )?;
    let rows = [
        ("requests_per_s", report.requests_per_s),
        ("ids_per_s", report.ids_per_s),
        ("p50_us", report.p50_us),
        ("p99_us", report.p99_us),
        ("p999_us", report.p999_us),
        ("max_us", report.max_us),
    ];
    for (name, value) in rows {
        writeln!(out, "{name:<16} {value:>12.1}")?;
    }
    writeln!(out, "{:<16} {:>12}", "errors", report.errors)?;
    if report.errors > 0 {
        writeln!(out, "  {}", report.errors_by_code.summary())?;
    }
    if let Some(open) = &report.open {
        let rows = [
            ("offered_per_s", open.offered_per_s),
            ("accepted_share", open.accepted_share),
            ("refused_p99_us", open.refused_p99_us),
        ];
        for (name, value) in rows {
            writeln!(out, "{name:<16} {value:>12.3}")?;
        }
        writeln!(out, "{:<16} {:>12}", "unanswered", open.unanswered)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "bench_tests.rs"]
mod tests;
