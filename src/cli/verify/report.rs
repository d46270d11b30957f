//! What `idgen verify` found, and whether that breaks a promise.

use std::io::Write;
use std::time::Duration;

use serde::Serialize;

use super::prepare::{self, Prepared};
use super::{VerifyArgs, Witness};
use crate::cli::load::checker::check_in_place;
use crate::cli::load::promise::Skew;
use crate::cli::load::texts::find_repeats;
use crate::cli::load::{
    self, Call, CallLog, ErrorCounts, LoadError, Report, Stall, TextLog, Violation,
};
use crate::domain::Mode;

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
    /// Its mode.
    pub mode: &'static str,
    /// How many clients.
    pub clients: u32,
    /// How long ids were taken.
    pub seconds: f64,
    /// When that began, in milliseconds of the Unix epoch, by this machine.
    pub started_unix_ms: i64,
    /// Whether `--max-calls` or a signal ended the run before its time.
    pub stopped_early: bool,
    /// How many gate passes were used; 0 for a type that is not sharded.
    pub gate_passes: u32,
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
    /// Ranges with ids that are not of this type: above its highest id, below
    /// its first one, of another shard, app or site, or of a time too far off.
    pub wrong_ids: u64,
    /// How far the times in ids were from the time here; snowflake types only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skew>,
    /// Calls without ids, and connections that could not be made.
    pub errors: u64,
    /// The same by kind.
    pub errors_by_code: ErrorCounts,
    /// The longest time in which no client got ids, in milliseconds; 0 where it
    /// was less than 20.
    pub longest_stall_ms: f64,
    /// The longest call that brought ids, in milliseconds.
    pub longest_call_ms: f64,
    /// Errors, stalls and the longest call of each node, in the order of `nodes`.
    pub by_node: Vec<NodeReport>,
    /// Whether no violation was found, of what the type promises.
    pub clean: bool,
    /// The first few violations, in words.
    pub violations: Vec<String>,
    /// What was not judged, and why; and the first few of what would have been
    /// violations.
    pub notes: Vec<String>,
}

/// What the clients of one node saw.
#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeReport {
    /// Calls without ids, and connections that could not be made, by kind.
    pub errors_by_code: ErrorCounts,
    /// The longest time in which none of them got ids, in milliseconds; 0 where
    /// it was less than 20.
    pub longest_stall_ms: f64,
    /// The longest call that brought ids, in milliseconds.
    pub longest_call_ms: f64,
    /// The longest times of at least 20 ms without ids: at most 64, in the order
    /// of time.
    pub stalls: Vec<StallReport>,
}

/// A time in which no client of a node got ids.
#[derive(Clone, Debug, Serialize)]
pub struct StallReport {
    /// The answer before it, in milliseconds of the Unix epoch.
    pub from_unix_ms: i64,
    /// Its length in milliseconds.
    pub ms: f64,
}

/// What was seen of a run as a whole, apart from the records of its calls.
pub(super) struct Watched {
    pub(super) elapsed: Duration,
    pub(super) stopped_early: bool,
    /// The start of the run, in milliseconds of the Unix epoch.
    pub(super) started_ms: i64,
    /// By node, in the order in which they were given.
    pub(super) by_node: Vec<Vec<Stall>>,
    pub(super) stalls: Vec<Stall>,
}

impl Watched {
    fn of_node(&self, node: usize) -> NodeReport {
        let stalls = &self.by_node[node];
        NodeReport {
            longest_stall_ms: longest_ms(stalls),
            stalls: stalls
                .iter()
                .map(|stall| StallReport {
                    from_unix_ms: self.started_ms + (stall.from_ns / 1_000_000) as i64,
                    ms: millis(stall.length_ns()),
                })
                .collect(),
            ..NodeReport::default()
        }
    }
}

/// Nanoseconds in milliseconds, to a tenth.
fn millis(ns: u64) -> f64 {
    (ns as f64 / 1e5).round() / 10.0
}

fn longest_ms(stalls: &[Stall]) -> f64 {
    millis(stalls.iter().map(Stall::length_ns).max().unwrap_or(0))
}

/// Adds up what the clients saw, and judges it by what the type promises.
pub(super) fn judge(
    args: &VerifyArgs,
    mut prepared: Prepared,
    witnesses: Vec<Witness>,
    watched: Watched,
) -> Result<VerifyReport, LoadError> {
    let mut by_node: Vec<_> = (0..args.nodes.len()).map(|node| watched.of_node(node)).collect();
    let mut longest_call_ns = 0;
    let mut errors = ErrorCounts::default();
    let (mut malformed_answers, mut wrong_ids, mut text_calls) = (0, 0, 0);
    let mut skew = Skew::default();
    let mut violations = Vec::new();
    let mut calls_by_node = vec![0; args.nodes.len()];
    let (mut logs, mut text_logs) = (Vec::new(), Vec::new());
    for witness in witnesses {
        errors.merge(&witness.errors);
        let of_node = &mut by_node[usize::from(witness.node)];
        of_node.errors_by_code.merge(&witness.errors);
        of_node.longest_call_ms = of_node.longest_call_ms.max(millis(witness.longest_call_ns));
        longest_call_ns = longest_call_ns.max(witness.longest_call_ns);
        malformed_answers += witness.malformed;
        wrong_ids += witness.wrong_ids;
        skew = skew.max(witness.skew);
        if violations.len() < Report::EXAMPLES {
            violations.extend(witness.examples);
        }
        text_calls += witness.text_calls;
        calls_by_node[usize::from(witness.node)] += witness.text_calls;
        logs.push(witness.log);
        text_logs.push(witness.texts);
    }
    let mut calls = CallLog::merge(logs);
    let mut texts = TextLog::merge(text_logs);
    if calls.is_empty() && texts.is_empty() && malformed_answers == 0 {
        return Err(LoadError::NoCalls(errors.summary()));
    }
    for call in &calls {
        calls_by_node[usize::from(call.node())] += 1;
    }
    let found: Report = check_in_place(&mut calls, prepared.order);
    let (repeated, examples) = find_repeats(&mut texts);
    let duplicates = found.duplicates + repeated;

    let may_repeat = judge_cycle(args, &mut prepared);
    let may_disorder = prepared.promise.order_may_lapse && args.order.is_none();
    for violation in &found.examples {
        let excused = match violation {
            Violation::Duplicate { .. } => may_repeat,
            Violation::Order { .. } => may_disorder,
        };
        let words = in_words(violation, &args.nodes);
        if excused { &mut prepared.notes } else { &mut violations }.push(words);
    }
    for text in examples {
        let words = format!("duplicate: {text} came more than once");
        if may_repeat { &mut prepared.notes } else { &mut violations }.push(words);
    }
    Ok(VerifyReport {
        nodes: args.nodes.clone(),
        calls_by_node,
        id_type: args.id_type.clone(),
        mode: prepared.promise.mode.as_str(),
        clients: args.clients,
        seconds: (watched.elapsed.as_secs_f64() * 1_000.0).round() / 1_000.0,
        started_unix_ms: watched.started_ms,
        stopped_early: watched.stopped_early,
        gate_passes: prepared.gate_passes,
        order: prepared.order.as_str(),
        calls: calls.len() as u64 + text_calls,
        ids: found.ids + texts.len() as u64,
        duplicates,
        order_violations: found.order_violations,
        malformed_answers,
        wrong_ids,
        skew: (prepared.promise.mode == Mode::Snowflake && !prepared.texts).then_some(skew),
        errors: errors.total(),
        errors_by_code: errors,
        longest_stall_ms: longest_ms(&watched.stalls),
        longest_call_ms: millis(longest_call_ns),
        by_node,
        clean: malformed_answers == 0
            && wrong_ids == 0
            && (duplicates == 0 || may_repeat)
            && (found.order_violations == 0 || may_disorder),
        violations,
        notes: prepared.notes,
    })
}

/// Whether ids may repeat, because the type cycles and the run may have been
/// longer than a cycle; a note says which.
fn judge_cycle(args: &VerifyArgs, prepared: &mut Prepared) -> bool {
    let Some(cycle) = prepared.promise.cycle else { return false };
    let within = prepare::within_a_cycle(args, prepared, cycle);
    prepared.notes.push(match &within {
        Ok(()) => format!("the type cycles; the run stayed within one cycle of {cycle} numbers"),
        Err(why) => format!("repeated ids are no violation: the type cycles, and {why}"),
    });
    within.is_err()
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

/// Prints the result, as JSON or for a person.
pub(super) fn print(report: &VerifyReport, json: bool, out: &mut dyn Write) -> std::io::Result<()> {
    if json {
        return writeln!(out, "{}", load::json(report));
    }
    writeln!(
        out,
        "type {}, mode {}, order {}, {} clients, {} s",
        report.id_type, report.mode, report.order, report.clients, report.seconds
    )?;
    for ((node, calls), seen) in report.nodes.iter().zip(&report.calls_by_node).zip(&report.by_node)
    {
        let (stall, call) = (seen.longest_stall_ms, seen.longest_call_ms);
        write!(out, "{node:<24} {calls:>12} calls")?;
        writeln!(out, ", longest stall {stall} ms, longest call {call} ms")?;
    }
    let rows = [
        ("ids", report.ids),
        ("duplicates", report.duplicates),
        ("order_violations", report.order_violations),
        ("malformed_answers", report.malformed_answers),
        ("wrong_ids", report.wrong_ids),
        ("errors", report.errors),
    ];
    for (name, value) in rows {
        writeln!(out, "{name:<24} {value:>12}")?;
    }
    if report.errors > 0 {
        writeln!(out, "  {}", report.errors_by_code.summary())?;
    }
    if let Some(Skew { ahead_ms, behind_ms }) = report.skew {
        writeln!(out, "  times in ids: up to {ahead_ms} ms ahead, {behind_ms} ms behind")?;
    }
    for note in &report.notes {
        writeln!(out, "  note: {note}")?;
    }
    for violation in &report.violations {
        writeln!(out, "  {violation}")?;
    }
    writeln!(out, "{}", if report.clean { "clean" } else { "NOT CLEAN" })
}
