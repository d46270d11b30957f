//! `make bench`: the service beside its yardsticks, in one run.
//!
//! Every contender is a process of its own, and all are there from the start;
//! the load comes from this process (from `redis-benchmark` for raw Redis).
//! They take turns, a few seconds each, round after round, so that whatever
//! disturbs the machine disturbs them all; reported are medians over the
//! rounds, the spread, and ratios within rounds. Speed is warned about, never
//! failed on: it depends on the machine.
//!
//! - `null`: the Thrift front with a constant answer. What the wire costs.
//! - `incr`: raw `INCR` by `redis-benchmark` as it comes: no Thrift, and one
//!   thread that serves all connections, which costs the machine far less than
//!   the clients of the other contenders do.
//! - `incr-mt`: the same with a thread per connection, as those clients have.
//! - `strict`: a strict type through one node, over MariaDB and that Redis.
//! - `embedded`: a strict type through one node on the embedded store.
//! - `segment`, `snowflake`: such types through one node, over MariaDB and Redis.
//! - `refills`: a segment type with ranges so short that several a second are
//!   leased, to see whether calls notice.
//! - `thousand`: a segment type, 1 000 ids per call.
//! - `null-1t`, `strict-1t`, `segment-1t`: the same servers under clients like those of
//!   `redis-benchmark`, one thread for all connections.

mod facts;
mod lean;
mod null_server;
mod processes;
mod ramp;
mod results;
mod types;

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use idgen::cli::bench::{BenchArgs, measure};
use idgen::cli::load::{Client, Method, Node, Request, WireArgs, now};

use processes::{Folder, IdNode, NodeSetup, Outcome, Process};
use results::{Contender, Figure, Idle, Ratio, Results, Sample, Spread};

/// Measures the service beside its yardsticks; see docs/performance.md.
#[derive(Parser)]
#[command(name = "contenders")]
struct Options {
    /// How many rounds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// How long each contender is measured in a round, after a second of warm-up.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// How many clients at a time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    connections: u32,
    /// Also double the rate of ids on a segment type every ten seconds, a minute long.
    #[arg(long)]
    ramp: bool,
    /// Measure nothing else but what so many types cost one node.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    types: Option<u64>,
    /// Measure only these.
    #[arg(long, value_delimiter = ',', value_parser = NAMES.map(|n| n.0))]
    only: Vec<String>,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

const NULL: &str = "null";
const INCR: &str = "incr";
const INCR_THREADS: &str = "incr-mt";
const STRICT: &str = "strict";
const EMBEDDED: &str = "embedded";
const SEGMENT: &str = "segment";
const REFILLS: &str = "refills";
const THOUSAND: &str = "thousand";
const SNOWFLAKE: &str = "snowflake";
const NULL_LEAN: &str = "null-1t";
const STRICT_LEAN: &str = "strict-1t";
const SEGMENT_LEAN: &str = "segment-1t";

/// The contenders in the order of their turns, and what they are.
const NAMES: [(&str, &str); 12] = [
    (NULL, "Thrift front, constant answer"),
    (INCR, "redis-benchmark, raw INCR"),
    (INCR_THREADS, "the same, a thread per connection"),
    (STRICT, "strict type, MariaDB and Redis"),
    (EMBEDDED, "strict type, embedded store"),
    (SEGMENT, "segment type, MariaDB and Redis"),
    (REFILLS, "the same, several leases a second"),
    (THOUSAND, "the same, 1 000 ids per call"),
    (SNOWFLAKE, "snowflake type"),
    (NULL_LEAN, "as null, one thread for all clients"),
    (STRICT_LEAN, "as strict, one thread for all clients"),
    (SEGMENT_LEAN, "as segment, one thread for all clients"),
];

/// The type that ids are taken from, where a node has only one.
const TYPE: &str = "bench";

/// The types of the node that leases, and how they are added. At the rates of
/// these benchmarks ranges of `refills` last a fraction of a second; those of
/// the others grow until they outlast the run.
const LEASED: [(&str, &[&str]); 4] = [
    (SEGMENT, &["--mode", "segment", "--min-range", "10000000"]),
    (REFILLS, &["--mode", "segment", "--min-range", "10000", "--max-range", "10000"]),
    (THOUSAND, &["--mode", "segment", "--min-range", "100000000", "--max-range", "1000000000"]),
    (SNOWFLAKE, &["--mode", "snowflake"]),
];

/// How to put load on a contender.
enum Target {
    Thrift {
        address: SocketAddr,
        id_type: &'static str,
        /// Ids per call.
        count: u32,
        /// Whether one thread serves all connections.
        lean: bool,
    },
    Redis {
        address: SocketAddr,
        /// Whether every connection has a thread of its own.
        thread_each: bool,
        /// Calls per second in its last turn, to fill the next one.
        rate: f64,
    },
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(null_server::ARGUMENT) {
        return exit_code(null_server::serve().map_err(|e| e.to_string()));
    }
    let options = Options::parse();
    if !options.bench {
        // `cargo test --benches` runs this too, and must not measure for minutes.
        println!("run by `make bench`, or `cargo bench --bench contenders`");
        return ExitCode::SUCCESS;
    }
    exit_code(match options.types {
        Some(types) => many_types(types),
        None => compare(&options),
    })
}

fn many_types(types: u64) -> Result<(), String> {
    processes::heed_interrupts().map_err(|e| e.to_string())?;
    let folder = Folder::create().map_err(|e| format!("no temporary folder: {e}"))?;
    let measured = types::measure(types, &folder)?;
    let json = serde_json::to_string_pretty(&measured).map_err(|e| e.to_string())?;
    println!("{json}");
    Ok(())
}

fn exit_code(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("contenders: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Everything that runs, in the order in which it is stopped.
#[derive(Default)]
struct Stage {
    nodes: Vec<(IdNode, Idle)>,
    leasing: Option<IdNode>,
    others: Vec<Process>,
}

fn compare(options: &Options) -> Result<(), String> {
    let facts = facts::collect();
    processes::heed_interrupts().map_err(|e| e.to_string())?;
    let folder = Folder::create().map_err(|e| format!("no temporary folder: {e}"))?;
    let mut stage = Stage::default();
    let mut redis = None;
    let mut mysql = None;
    let mut leasing = None;
    let mut field: Vec<(Contender, Option<Target>)> = Vec::new();
    for (name, what) in NAMES {
        if !options.only.is_empty() && !options.only.iter().any(|n| n == name) {
            continue;
        }
        processes::uninterrupted()?;
        eprintln!("starting {name}");
        let target = match name {
            NULL => start_null(&mut stage, &folder),
            INCR => raw_redis(false, &mut redis, &mut stage, &folder),
            INCR_THREADS => raw_redis(true, &mut redis, &mut stage, &folder),
            STRICT => servers_of(&mut redis, &mut mysql, &mut stage, &folder)
                .and_then(|servers| start_strict(servers, &mut stage, &folder)),
            SEGMENT | REFILLS | THOUSAND | SNOWFLAKE => leasing
                .get_or_insert_with(|| {
                    let servers = servers_of(&mut redis, &mut mysql, &mut stage, &folder)?;
                    start_leasing(servers, &mut stage, &folder)
                })
                .clone()
                .map(|address| leased(address, name)),
            EMBEDDED => start_embedded(&mut stage, &folder),
            _ => lean_twin(name, &field),
        };
        let (target, left_out) = match target {
            Ok(target) => (Some(target), None),
            Err(reason) => (None, Some(reason)),
        };
        let samples = Vec::new();
        let contender = Contender { name, what, samples, left_out };
        field.push((contender, target));
    }
    for round in 1..=options.rounds {
        for (contender, target) in &mut field {
            let Some(target) = target else {
                continue;
            };
            processes::uninterrupted()?;
            let sample = take_turn(target, options);
            match &sample {
                Ok(s) => eprintln!("round {round}: {} {:.0}/s", contender.name, s.requests_per_s),
                Err(error) => eprintln!("round {round}: {}: {error}", contender.name),
            }
            contender.samples.push(sample.ok());
        }
    }
    let ramp = match &stage.leasing {
        Some(node) if options.ramp => Some(ramp::climb(node, options.connections)?),
        _ => None,
    };
    let contenders: Vec<Contender> = field.into_iter().map(|(contender, _)| contender).collect();
    let mut results = Results {
        facts,
        connections: options.connections,
        seconds: options.seconds,
        rounds: usize::from(options.rounds),
        ratios: ratios(&contenders),
        figures: figures(&contenders, ramp.as_ref()),
        contenders,
        idle: stage.stop_nodes(),
        warnings: Vec::new(),
    };
    drop(stage);
    results.find_warnings();
    results
        .print(&mut std::io::stdout())
        .and_then(|()| save(&results))
        .map_err(|e| format!("the results cannot be written: {e}"))
}

/// The Redis that `incr` and `strict` share; started once.
fn redis_of(
    redis: &mut Option<Outcome<SocketAddr>>,
    stage: &mut Stage,
    folder: &Folder,
) -> Outcome<SocketAddr> {
    let started = redis.get_or_insert_with(|| {
        let (process, address) = processes::redis(folder)?;
        stage.others.push(process);
        Ok(address)
    });
    started.clone()
}

/// The Redis and the MariaDB that the nodes of `strict` and `segment` share.
fn servers_of(
    redis: &mut Option<Outcome<SocketAddr>>,
    mysql: &mut Option<Outcome<String>>,
    stage: &mut Stage,
    folder: &Folder,
) -> Outcome<(SocketAddr, String)> {
    let redis = redis_of(redis, stage, folder)?;
    let mysql = mysql.get_or_insert_with(|| {
        let (process, mysql) = processes::mariadb(folder)?;
        stage.others.push(process);
        processes::apply_schema(&mysql)?;
        Ok(mysql)
    });
    Ok((redis, mysql.clone()?))
}

fn raw_redis(
    thread_each: bool,
    redis: &mut Option<Outcome<SocketAddr>>,
    stage: &mut Stage,
    folder: &Folder,
) -> Outcome<Target> {
    let address = redis_of(redis, stage, folder)?;
    // A first guess, for the first warm-up.
    let rate = 50_000.0;
    Ok(Target::Redis { address, thread_each, rate })
}

fn start_null(stage: &mut Stage, folder: &Folder) -> Outcome<Target> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.arg(null_server::ARGUMENT);
    let mut process = Process::start("null", &mut command, folder)?;
    let mut address = None;
    process.wait_until(|| {
        let text = std::fs::read_to_string(folder.path("null.log")).unwrap_or_default();
        address = text.lines().next().and_then(|line| line.parse().ok());
        address.is_some()
    })?;
    stage.others.push(process);
    address.map(one_each).ok_or_else(|| "no address".to_owned())
}

/// One id per call of the one type.
fn one_each(address: SocketAddr) -> Target {
    Target::Thrift { address, id_type: TYPE, count: 1, lean: false }
}

fn leased(address: SocketAddr, id_type: &'static str) -> Target {
    let count = if id_type == THOUSAND { 1_000 } else { 1 };
    Target::Thrift { address, id_type, count, lean: false }
}

/// The node whose types are leased by the node itself.
fn start_leasing(
    (redis, mysql): (SocketAddr, String),
    stage: &mut Stage,
    folder: &Folder,
) -> Outcome<SocketAddr> {
    let setup = NodeSetup { name: SEGMENT, mysql: Some(mysql), redis: Some(redis) };
    let (mut node, _) = IdNode::start(&setup, folder)?;
    node.ready()?;
    for (name, flags) in LEASED {
        node.add_type(name, flags)?;
    }
    let address = node.thrift;
    stage.leasing = Some(node);
    Ok(address)
}

fn start_strict(
    (redis, mysql): (SocketAddr, String),
    stage: &mut Stage,
    folder: &Folder,
) -> Outcome<Target> {
    let setup = NodeSetup { name: STRICT, mysql: Some(mysql), redis: Some(redis) };
    start_node(&setup, stage, folder)
}

/// The server of the contender of which `name` is the lean twin.
fn lean_twin(name: &str, field: &[(Contender, Option<Target>)]) -> Outcome<Target> {
    let twin = name.trim_end_matches("-1t");
    let found = field.iter().find(|(contender, _)| contender.name == twin);
    match found {
        Some((_, Some(Target::Thrift { address, id_type, count, .. }))) => {
            Ok(Target::Thrift { address: *address, id_type, count: *count, lean: true })
        }
        _ => Err(format!("it needs {twin}")),
    }
}

fn start_embedded(stage: &mut Stage, folder: &Folder) -> Outcome<Target> {
    let setup = NodeSetup { name: EMBEDDED, mysql: None, redis: None };
    start_node(&setup, stage, folder)
}

/// Starts a node twice: once to add the type, and once more, as an operator
/// restarts it, to see how soon it hands out the first id.
fn start_node(setup: &NodeSetup, stage: &mut Stage, folder: &Folder) -> Outcome<Target> {
    let (mut node, _) = IdNode::start(setup, folder)?;
    node.ready()?;
    node.add_type(TYPE, &[])?;
    node.process.stop()?;
    let (mut node, begun) = IdNode::start(setup, folder)?;
    let first_id = first_id(&mut node, begun)?;
    let idle = Idle {
        name: setup.name,
        first_id_ms: first_id.as_secs_f64() * 1_000.0,
        resident_mb: megabytes(&node.process),
        resident_after_load_mb: None,
        stop_ms: None,
    };
    let target = one_each(node.thrift);
    stage.nodes.push((node, idle));
    Ok(target)
}

fn first_id(node: &mut IdNode, begun: Instant) -> Outcome<Duration> {
    let address = Node::resolve(&node.thrift.to_string()).map_err(|e| e.to_string())?;
    let request = Request::new(TYPE, Method::NextId, 1);
    let mut client = Client::new(Arc::new(address), 0, WireArgs::default(), request);
    node.process.wait_until(|| {
        let answer = client.connect(Duration::from_secs(1)).and_then(|()| client.call());
        answer.is_ok()
    })?;
    Ok(now() - begun)
}

fn megabytes(process: &Process) -> Option<f64> {
    process.resident_bytes().map(|bytes| bytes as f64 / 1_048_576.0)
}

impl Stage {
    fn stop_nodes(&mut self) -> Vec<Idle> {
        let nodes = self.nodes.drain(..);
        nodes
            .map(|(mut node, mut idle)| {
                idle.resident_after_load_mb = megabytes(&node.process);
                idle.stop_ms = node.process.stop().ok().map(|d| d.as_secs_f64() * 1_000.0);
                idle
            })
            .collect()
    }
}

fn take_turn(target: &mut Target, options: &Options) -> Outcome<Sample> {
    match target {
        Target::Thrift { address, id_type, lean: true, .. } => {
            lean::measure(*address, id_type, options.connections, options.seconds)
        }
        Target::Thrift { address, id_type, count, lean: false } => {
            let arguments = BenchArgs {
                rate: None,
                nodes: vec![address.to_string()],
                id_type: (*id_type).to_owned(),
                connections: options.connections,
                seconds: options.seconds,
                count: *count,
                method: Method::NextId,
                gate_passes: None,
                texts: false,
                wire: WireArgs::default(),
                json: false,
            };
            let report = measure(&arguments).map_err(|e| e.to_string())?;
            Ok(Sample {
                requests_per_s: report.requests_per_s,
                p50_us: report.p50_us,
                p99_us: report.p99_us,
                p999_us: Some(report.p999_us),
                max_us: report.max_us,
                ids_per_s: report.ids_per_s,
                errors: report.errors,
            })
        }
        Target::Redis { address, thread_each, rate } => {
            // It counts calls, not seconds: one second of warm-up tells how
            // many calls fill the turn.
            let connections = options.connections;
            let warm = raw_incr(*address, connections, *thread_each, *rate)?;
            let calls = warm.requests_per_s * options.seconds as f64;
            let sample = raw_incr(*address, connections, *thread_each, calls)?;
            *rate = sample.requests_per_s;
            Ok(sample)
        }
    }
}

fn raw_incr(
    address: SocketAddr,
    connections: u32,
    thread_each: bool,
    calls: f64,
) -> Outcome<Sample> {
    let calls = calls.max(1_000.0).round() as u64;
    let mut command = Command::new("redis-benchmark");
    command
        .args(["-h", &address.ip().to_string()])
        .args(["-p", &address.port().to_string()])
        .args(["-c", &connections.to_string()])
        .args(["-n", &calls.to_string()])
        .args(["-t", "incr", "--csv"]);
    if thread_each {
        command.args(["--threads", &connections.to_string()]);
    }
    let output = command.output().map_err(|e| format!("redis-benchmark does not start: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    parse_incr(&text).ok_or_else(|| format!("redis-benchmark said {text:?}"))
}

/// The columns of its CSV are requests/s, then latencies in milliseconds:
/// average, lowest, p50, p95, p99, highest.
fn parse_incr(csv: &str) -> Option<Sample> {
    let line = csv.lines().find(|l| l.starts_with("\"INCR\""))?;
    let numbers: Option<Vec<f64>> =
        line.split(',').skip(1).map(|n| n.trim_matches('"').parse().ok()).collect();
    match numbers?.as_slice() {
        [rate, _average, _lowest, p50, _p95, p99, highest] => Some(Sample {
            requests_per_s: *rate,
            p50_us: p50 * 1_000.0,
            p99_us: p99 * 1_000.0,
            p999_us: None,
            ids_per_s: *rate,
            max_us: highest * 1_000.0,
            errors: 0,
        }),
        _ => None,
    }
}

/// The targets of the strict core, and what else is worth knowing.
fn ratios(contenders: &[Contender]) -> Vec<Ratio> {
    let find = |name| contenders.iter().find(|c| c.name == name);
    let targets = [
        (STRICT, NULL, 0.7),
        (STRICT, INCR, 1.0),
        (STRICT_LEAN, INCR, 1.0),
        (STRICT, INCR_THREADS, 1.0),
        (STRICT_LEAN, NULL_LEAN, 0.7),
        (EMBEDDED, NULL, 0.7),
        (SEGMENT, NULL, 0.9),
        (SNOWFLAKE, NULL, 0.9),
        (SEGMENT_LEAN, NULL_LEAN, 0.9),
    ];
    targets
        .into_iter()
        .filter_map(|(of, to, target)| Some(Ratio::between(find(of)?, find(to)?, target)))
        .collect()
}

/// What is no ratio of rates.
fn figures(contenders: &[Contender], ramp: Option<&ramp::Ramp>) -> Vec<Figure> {
    let samples = |name| {
        let found = contenders.iter().find(|c| c.name == name);
        found.map(|c| c.samples.iter().flatten()).into_iter().flatten()
    };
    let p999 = |name| samples(name).filter_map(|s| s.p999_us);
    let pairs = p999(REFILLS).zip(p999(SEGMENT)).map(|(with, without)| with / without);
    let ids = samples(THOUSAND).map(|s| s.ids_per_s / 1e6);
    let figure = |what, value, least, most| Figure { what, value, least, most };
    let mut figures = vec![
        figure("million ids/s, 1 000 per call", Spread::of(ids), Some(20.0), None),
        figure("p99.9 with refills / without", Spread::of(pairs), None, Some(1.2)),
    ];
    if let Some(ramp) = ramp {
        let worst = ramp.steps.iter().map(|step| step.p999_us / ramp.steps[0].p999_us);
        let waits = std::iter::once(ramp.waits);
        figures.extend([
            figure("calls that waited while the rate doubled", Spread::of(waits), None, Some(0.0)),
            figure("p99.9 while the rate doubled / before", Spread::of(worst), None, None),
        ]);
    }
    figures
}

fn save(results: &Results) -> std::io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench");
    std::fs::create_dir_all(&folder)?;
    let json = serde_json::to_string_pretty(results)?;
    std::fs::write(folder.join("contenders.json"), json + "\n")
}
