//! `idgen verify`: do nodes keep their promises, whatever happens to them?
//!
//! Clients take ids through all nodes and record when each call began and
//! ended, by one clock, and what it brought. At the end the records are
//! checked: was any id brought twice, was any call that began after another
//! had returned given a smaller id? Nodes may die and come back meanwhile:
//! calls without an answer are errors, which prove nothing either way.
//!
//! Memory: 24 bytes per call (per range, where a call of several ids brings
//! several) and at most 1.5 MB per client. `--max-calls` bounds it: the run
//! then ends early, and says so.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use super::exit;
use super::load::checker::check_in_place;
use super::load::{
    self, Answer, Call, CallLog, Client, ErrorCounts, LoadError, Method, Order, Plan, Report,
    Request, Run, Violation, WireArgs,
};
use crate::service::api::MAX_COUNT;

/// Options of `idgen verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// A node's Thrift address; repeat it for every node of the cluster.
    #[arg(long = "node", value_name = "HOST:PORT", required = true)]
    pub nodes: Vec<String>,
    /// The id type to take ids from.
    #[arg(long = "type", value_name = "TYPE")]
    pub id_type: String,
    /// How many clients, spread evenly over the nodes; at least one per node.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub clients: u32,
    /// How long to take ids.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// How many ids per call.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_COUNT))]
    pub count: u32,
    /// The order that the type promises: `strict` across all nodes, `node`
    /// through each node, or `none`.
    #[arg(long, value_enum, default_value_t)]
    pub order: Order,
    /// End early after so many calls: each takes 24 bytes of memory, so the
    /// default needs 480 MB when it is reached.
    #[arg(long, default_value_t = 20_000_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub max_calls: u64,
    /// How to talk to the nodes.
    #[command(flatten)]
    pub wire: WireArgs,
    /// Print one JSON object instead of a table. Progress still goes to the
    /// standard error.
    #[arg(long)]
    pub json: bool,
}

/// What `idgen verify` found. Its JSON form is the output of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct VerifyReport {
    /// The nodes, in the order in which they were given.
    pub nodes: Vec<String>,
    /// Records of calls through each of them, in the same order.
    pub calls_by_node: Vec<u64>,
    /// The id type.
    #[serde(rename = "type")]
    pub id_type: String,
    /// How many clients.
    pub clients: u32,
    /// How long ids were taken.
    pub seconds: f64,
    /// Whether `--max-calls` ended the run before its time.
    pub stopped_early: bool,
    /// The order that was checked.
    pub order: &'static str,
    /// Records of calls that brought ids.
    pub calls: u64,
    /// Ids, repeated ones included.
    pub ids: u64,
    /// How many ids had been brought already.
    pub duplicates: u64,
    /// Calls that began after another had returned a larger or equal id.
    pub order_violations: u64,
    /// Answers that break the contract: not the number of ids that was asked
    /// for, ids that are not positive, ranges that are not ascending.
    pub malformed_answers: u64,
    /// Calls without ids, and connections that could not be made.
    pub errors: u64,
    /// The same by kind.
    pub errors_by_code: ErrorCounts,
    /// Whether no violation was found.
    pub clean: bool,
    /// The first few violations, in words.
    pub violations: Vec<String>,
}

/// What one client saw.
#[derive(Default)]
struct Witness {
    log: CallLog,
    errors: ErrorCounts,
    malformed: u64,
    /// The first malformed answer, in words.
    example: Option<String>,
}

/// What the clients share: the bound on memory, and the progress.
struct Shared {
    max_calls: u64,
    /// Records of calls that were kept, or would have been but for the bound.
    calls: AtomicU64,
    stopped_early: AtomicBool,
    ids: AtomicU64,
    errors: AtomicU64,
}

/// Takes ids and checks them. Writes a line of progress to `progress` every
/// second. Refuses as [`bench::measure`](super::bench::measure) does; a run
/// without a single recorded call is [`LoadError::NoCalls`], as a check that
/// checked nothing is not clean.
pub fn verify(args: &VerifyArgs, progress: &mut dyn Write) -> Result<VerifyReport, LoadError> {
    let request =
        Request { id_type: args.id_type.clone(), method: Method::NextId, count: args.count };
    let clients = load::clients(&args.nodes, args.clients, args.wire, &request)?;
    let shared = Arc::new(Shared {
        max_calls: args.max_calls,
        calls: AtomicU64::new(0),
        stopped_early: AtomicBool::new(false),
        ids: AtomicU64::new(0),
        errors: AtomicU64::new(0),
    });
    let plan = Plan { warm_up: Duration::ZERO, measured: Duration::from_secs(args.seconds) };
    let count = args.count;
    let for_clients = Arc::clone(&shared);
    let begun = load::now();
    let mut ids_before = 0;
    let witnesses = load::run(
        clients,
        plan,
        move |client, run| witness(client, run, count, &for_clients),
        |tick| {
            let ids = shared.ids.load(Ordering::Relaxed);
            // Progress is a courtesy: that nobody reads it is no failure.
            let _ = writeln!(
                progress,
                "{:>5.0} s  {ids} ids  {} errors  {} ids/s",
                tick.elapsed.as_secs_f64(),
                shared.errors.load(Ordering::Relaxed),
                ids - ids_before,
            );
            ids_before = ids;
        },
    );
    let elapsed = load::now() - begun;
    let stopped_early = shared.stopped_early.load(Ordering::Relaxed);
    if stopped_early {
        let _ = writeln!(
            progress,
            "ended early: {} calls are recorded, as --max-calls allows",
            args.max_calls
        );
    }
    judge(args, witnesses, elapsed, stopped_early)
}

fn witness(client: &mut Client, run: &Run, count: u32, shared: &Shared) -> Witness {
    let mut seen = Witness::default();
    while !run.is_over(load::now()) {
        let mut begun = load::now();
        let result = client.connect(run.left(begun)).and_then(|()| {
            begun = load::now();
            client.call()
        });
        let ended = load::now();
        match result {
            Ok(answer) => {
                let records = answer.records();
                if shared.calls.fetch_add(records, Ordering::Relaxed) >= shared.max_calls {
                    shared.stopped_early.store(true, Ordering::Relaxed);
                    run.stop();
                    break;
                }
                shared.ids.fetch_add(answer.ids(), Ordering::Relaxed);
                if let Some(defect) = answer.defect(count) {
                    seen.malformed += 1;
                    seen.example.get_or_insert(defect);
                }
                let times = (since(run, begun), since(run, ended));
                record(&answer, times, client.node_index(), &mut seen.log);
            }
            Err(error) => {
                shared.errors.fetch_add(1, Ordering::Relaxed);
                seen.errors.add(load::kind_of(&error, run));
                run.pause(client.pace());
            }
        }
    }
    seen
}

/// Nanoseconds since the start of the run: within a day and a grace of it.
fn since(run: &Run, at: Instant) -> u64 {
    at.saturating_duration_since(run.start()).as_nanos() as u64
}

/// Records what can be recorded of an answer, even of a malformed one: what
/// was handed out, was handed out.
fn record(answer: &Answer, (start, end): (u64, u64), node: u16, log: &mut CallLog) {
    let mut push = |first: i64, count: i64| {
        let fits = count >= 1 && first.checked_add(count - 1).is_some();
        if let (true, Ok(count)) = (fits, u32::try_from(count)) {
            log.push(Call::new(start, end, first, count, node));
        }
    };
    match answer {
        Answer::One(id) => push(*id, 1),
        Answer::Many(ranges) => ranges.iter().for_each(|&(first, count)| push(first, count)),
    }
}

fn judge(
    args: &VerifyArgs,
    witnesses: Vec<Witness>,
    elapsed: Duration,
    stopped_early: bool,
) -> Result<VerifyReport, LoadError> {
    let mut errors = ErrorCounts::default();
    let mut malformed_answers = 0;
    let mut violations = Vec::new();
    let mut logs = Vec::with_capacity(witnesses.len());
    for witness in witnesses {
        errors.merge(&witness.errors);
        malformed_answers += witness.malformed;
        if violations.is_empty() {
            violations.extend(witness.example.map(|e| format!("malformed answer: {e}")));
        }
        logs.push(witness.log);
    }
    let mut calls = CallLog::merge(logs);
    if calls.is_empty() && malformed_answers == 0 {
        return Err(LoadError::NoCalls(errors.summary()));
    }
    let mut calls_by_node = vec![0; args.nodes.len()];
    for call in &calls {
        calls_by_node[usize::from(call.node())] += 1;
    }
    let found: Report = check_in_place(&mut calls, args.order);
    violations.extend(found.examples.iter().map(|v| in_words(v, &args.nodes)));
    Ok(VerifyReport {
        nodes: args.nodes.clone(),
        calls_by_node,
        id_type: args.id_type.clone(),
        clients: args.clients,
        seconds: (elapsed.as_secs_f64() * 1_000.0).round() / 1_000.0,
        stopped_early,
        order: args.order.as_str(),
        calls: calls.len() as u64,
        ids: found.ids,
        duplicates: found.duplicates,
        order_violations: found.order_violations,
        malformed_answers,
        errors: errors.total(),
        errors_by_code: errors,
        clean: found.is_clean() && malformed_answers == 0,
        violations,
    })
}

fn in_words(violation: &Violation, nodes: &[String]) -> String {
    let call = |call: &Call| {
        let ids = match call.count() {
            1 => call.first().to_string(),
            _ => format!("{}..={}", call.first(), call.last()),
        };
        let (start, end) = (call.start_ns() as f64 / 1e3, call.end_ns() as f64 / 1e3);
        let node = &nodes[usize::from(call.node())];
        format!("{ids} (from {start:.3} to {end:.3} µs, through {node})")
    };
    match violation {
        Violation::Duplicate { id, one, other } => {
            format!("duplicate: {id} is in {} and in {}", call(one), call(other))
        }
        Violation::Order { earlier, later } => {
            let (earlier, later) = (call(earlier), call(later));
            format!("order: {later} began after {earlier} had returned")
        }
    }
}

/// Runs `idgen verify`: the result goes to `out`, progress and a message about
/// a failure to `err`. Returns the exit code (see [`exit`]).
pub fn execute(args: &VerifyArgs, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let report = match verify(args, err) {
        Ok(report) => report,
        Err(error) => {
            let _ = writeln!(err, "idgen verify: {error}");
            return error.exit_code();
        }
    };
    let printed = print(&report, args.json, out);
    // A result that nobody could read is no proof either.
    if report.clean && printed.is_ok() { exit::OK } else { exit::FAILED }
}

fn print(report: &VerifyReport, json: bool, out: &mut dyn Write) -> std::io::Result<()> {
    if json {
        return writeln!(out, "{}", load::json(report));
    }
    writeln!(
        out,
        "type {}, order {}, {} clients, {} s",
        report.id_type, report.order, report.clients, report.seconds
    )?;
    for (node, calls) in report.nodes.iter().zip(&report.calls_by_node) {
        writeln!(out, "{node:<24} {calls:>12} calls")?;
    }
    let rows = [
        ("ids", report.ids),
        ("duplicates", report.duplicates),
        ("order_violations", report.order_violations),
        ("malformed_answers", report.malformed_answers),
        ("errors", report.errors),
    ];
    for (name, value) in rows {
        writeln!(out, "{name:<24} {value:>12}")?;
    }
    if report.errors > 0 {
        writeln!(out, "  {}", report.errors_by_code.summary())?;
    }
    for violation in &report.violations {
        writeln!(out, "  {violation}")?;
    }
    writeln!(out, "{}", if report.clean { "clean" } else { "NOT CLEAN" })
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
