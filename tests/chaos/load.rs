//! `idgen verify` in several modes at once, while a scenario does its worst.

use std::time::Duration;

use idgen::adapters::system::unix_ms;
use serde_json::Value;
use tokio::time::Instant;

use crate::report::Row;
use crate::support::node::{Node, Verify};

/// A kind of id type, and the load on it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Names the row and the type.
    pub mode: &'static str,
    /// Options of `idgen type add`.
    pub add: &'static [&'static str],
    /// Options of `idgen verify`.
    pub verify: &'static [&'static str],
    /// Why order is not checked, where it is not.
    pub exempt: Option<&'static str>,
}

impl Kind {
    /// The same without a check of the order, for the reason that is given.
    pub const fn unique_only(self, why: &'static str) -> Kind {
        Kind { exempt: Some(why), ..self }
    }

    /// The same with other ranges.
    pub const fn with(self, add: &'static [&'static str]) -> Kind {
        Kind { add, ..self }
    }
}

/// Ranges last a second or so, and the lock a second.
pub const STRICT: Kind = Kind {
    mode: "strict",
    add: &["--min-range", "1000", "--max-range", "5000", "--lock-expire", "1"],
    verify: &["--clients", "6", "--pause-ms", "1"],
    exempt: None,
};

/// Goes on without Redis, and then without order; verify knows.
pub const STRICT_ALONE: Kind = Kind {
    mode: "strict-alone",
    add: &["--on-redis-loss", "segment", "--min-range", "1000", "--max-range", "5000"],
    verify: &["--clients", "3", "--pause-ms", "2"],
    exempt: Some("by contract not while Redis is away"),
};

/// Several leases a second.
pub const SEGMENT: Kind = Kind {
    mode: "segment",
    add: &["--mode", "segment", "--min-range", "10000", "--max-range", "200000"],
    verify: &["--clients", "6", "--pause-ms", "2", "--count", "200"],
    exempt: None,
};

/// Each shard of each node leases every few seconds, so some shard always does.
pub const SHARDED: Kind = Kind {
    mode: "sharded",
    add: &["--mode", "sharded", "--app-id", "7", "--min-range", "50", "--max-range", "400"],
    verify: &["--clients", "3", "--pause-ms", "2", "--count", "5"],
    exempt: None,
};

/// From the clock and a worker id.
pub const SNOWFLAKE: Kind = Kind {
    mode: "snowflake",
    add: &["--mode", "snowflake"],
    verify: &["--clients", "3", "--pause-ms", "2", "--count", "500"],
    exempt: None,
};

/// Permuted: the check for repeats is all there is.
pub const OPAQUE: Kind = Kind {
    mode: "opaque",
    add: &["--mode", "segment", "--opaque", "--min-range", "1000", "--max-range", "20000"],
    verify: &["--clients", "3", "--pause-ms", "5", "--count", "10"],
    exempt: None,
};

/// The four modes.
pub const MODES: &[Kind] = &[STRICT, SEGMENT, SHARDED, SNOWFLAKE];

/// What a row is measured by. Never a test: the table says met or missed.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// Clients of other nodes than the victims saw no error.
    OthersUntouched,
    /// From the server answering again to the first id, in ms.
    Back(f64),
    /// No error on any node.
    NoErrors,
}

/// A node that is expected to suffer, and until when.
struct Victim {
    node: usize,
    from_ms: i64,
    until_ms: i64,
}

/// A load on all nodes of a cluster, in several modes.
pub struct Load {
    scenario: &'static str,
    runs: Vec<(Kind, Verify)>,
    nodes: usize,
    victims: Vec<Victim>,
    faults: usize,
    /// When something answered again, and for which nodes.
    back: Vec<(i64, Vec<usize>)>,
    target: Option<(&'static str, Target)>,
}

impl Load {
    /// The longest that a scenario may take; it ends the load when it is done.
    const SECONDS: u32 = 600;

    /// Makes a type of each kind through the first node, and starts the load
    /// through the Thrift addresses `addresses` of the nodes.
    pub fn start(
        scenario: &'static str,
        nodes: &[Node],
        addresses: &[String],
        kinds: &[Kind],
    ) -> Load {
        let addresses: Vec<_> = addresses.iter().map(String::as_str).collect();
        let mut runs = Vec::new();
        for kind in kinds {
            nodes[0].run(&[&["type", "add", kind.mode], kind.add].concat());
            let order: &[&str] = match (kind.exempt, kind.mode) {
                (Some(_), mode) if mode != STRICT_ALONE.mode => &["--order", "none"],
                _ => &[],
            };
            let arguments = [kind.verify, order].concat();
            runs.push((*kind, Verify::start_at(&addresses, kind.mode, Self::SECONDS, &arguments)));
        }
        let load = Load {
            scenario,
            runs,
            nodes: addresses.len(),
            victims: Vec::new(),
            faults: 0,
            back: Vec::new(),
            target: None,
        };
        load.flows();
        load
    }

    /// What the rows are measured by, and its name.
    pub fn target(&mut self, name: &'static str, target: Target) {
        self.target = Some((name, target));
    }

    /// Clients of these nodes are expected to notice what comes, until it is
    /// [over](Self::over).
    pub fn victims(&mut self, nodes: &[usize]) {
        let from_ms = unix_ms();
        let victim = |node: &usize| Victim { node: *node, from_ms, until_ms: i64::MAX };
        self.victims.extend(nodes.iter().map(victim));
    }

    /// There are no victims any more.
    pub fn over(&mut self) {
        for victim in &mut self.victims {
            victim.until_ms = victim.until_ms.min(unix_ms());
        }
    }

    /// A fault is injected now.
    pub fn fault(&mut self) {
        self.faults += 1;
    }

    /// What was broken answers again, from now on.
    pub fn back(&mut self) {
        self.back_on(&(0..self.nodes).collect::<Vec<_>>());
    }

    /// The same for these nodes only.
    pub fn back_on(&mut self, nodes: &[usize]) {
        self.back.push((unix_ms(), nodes.to_vec()));
    }

    /// A fault that lasts: the time is the fault.
    pub fn lasts(&self, time: Duration) {
        std::thread::sleep(time);
    }

    /// Waits until ids of every kind come through every node, from now on.
    pub fn flows(&self) {
        self.flows_on(&(0..self.nodes).collect::<Vec<_>>());
    }

    /// The same for these nodes only.
    pub fn flows_on(&self, nodes: &[usize]) {
        let bound = Instant::now() + Duration::from_secs(40);
        let before: Vec<_> = self.runs.iter().map(|(_, run)| ticks(run).len()).collect();
        for ((kind, run), before) in self.runs.iter().zip(before) {
            loop {
                let ticks = ticks(run);
                // The line after the next one counts nothing of before.
                if ticks.len() >= before + 2 {
                    let (base, now) = (&ticks[before], &ticks[ticks.len() - 1]);
                    if nodes.iter().all(|node| now[*node] > base[*node]) {
                        break;
                    }
                }
                let told = run.progress();
                let tail: Vec<_> = told.lines().rev().take(3).collect();
                let mode = kind.mode;
                assert!(Instant::now() < bound, "{mode}: no ids from each of {nodes:?}: {tail:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Ends the load, and judges it. `nodes` show their logs where it is not
    /// clean.
    pub fn finish(mut self, nodes: &[Node]) -> Vec<Row> {
        let mut early = Vec::new();
        for (kind, run) in &mut self.runs {
            match run.has_ended() {
                true => early.push(format!("verify of {} ended by itself", kind.mode)),
                false => run.interrupt(),
            }
        }
        let runs = std::mem::take(&mut self.runs);
        let mut rows = Vec::new();
        for (kind, run) in runs {
            let report = run.finish();
            let row = self.row(&kind, &report, early.first());
            if row.failure.is_some() {
                eprintln!("{report:#}");
                nodes.iter().for_each(|node| eprintln!("--- a node\n{}", tail(&node.log())));
            }
            rows.push(row);
        }
        rows
    }

    /// Whether a stall of a node falls into its time as a victim.
    fn expected(&self, node: usize, (from, until): &(f64, f64)) -> bool {
        let of_node = self.victims.iter().filter(|victim| victim.node == node);
        let mut times = of_node.map(|victim| (victim.from_ms as f64, victim.until_ms as f64));
        times.any(|(first, last)| *from < last && *until > first)
    }

    fn row(&self, kind: &Kind, report: &Value, early: Option<&String>) -> Row {
        let number = |name: &str| report[name].as_u64().expect("a number");
        let by_node = report["by_node"].as_array().expect("nodes");
        let was_victim = |node: usize| self.victims.iter().any(|victim| victim.node == node);
        // Where all were, all count.
        let all = (0..self.nodes).all(was_victim);
        let others: Vec<_> =
            (0..self.nodes).filter(|node| all || !was_victim(*node)).map(|n| &by_node[n]).collect();
        let longest_call = others.iter().map(|node| node["longest_call_ms"].as_f64().expect("ms"));
        let call_ms = longest_call.fold(0.0, f64::max);
        let mut back_ms: Option<f64> = None;
        let mut stall_ms = 0.0_f64;
        for (index, node) in by_node.iter().enumerate() {
            let stalls = stalls_of(node);
            let counted = stalls.iter().filter(|stall| !self.expected(index, stall));
            stall_ms = counted.map(|(from, until)| until - from).fold(stall_ms, f64::max);
            for (at, nodes) in &self.back {
                let at = *at as f64;
                let standing = |(from, until): &&(f64, f64)| *from <= at && *until > at;
                let left = stalls.iter().find(standing).map_or(0.0, |(_, until)| until - at);
                let left = if nodes.contains(&index) { left } else { 0.0 };
                back_ms = Some(back_ms.unwrap_or(0.0).max(left));
            }
        }
        let untouched = others.iter().all(|n| n["errors_by_code"] == serde_json::json!({}));
        let target = self.target.map(|(name, target)| {
            let met = match target {
                Target::OthersUntouched => untouched,
                Target::Back(ms) => back_ms.is_some_and(|back| back <= ms),
                Target::NoErrors => number("errors") == 0,
            };
            (name, met)
        });
        let codes = report["errors_by_code"].as_object().expect("codes");
        let mut errors: Vec<_> =
            codes.iter().map(|(code, n)| (code.clone(), n.as_u64().expect("a number"))).collect();
        errors.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let counts = report["calls_by_node"].as_array().expect("nodes");
        let silent = counts.iter().any(|calls| calls.as_u64() == Some(0));
        let failure = match report["clean"].as_bool() {
            Some(true) if silent => Some("a node gave no ids at all".to_owned()),
            Some(true) => early.cloned(),
            _ => Some(report["violations"].to_string()),
        };
        Row {
            scenario: self.scenario,
            mode: kind.mode,
            nodes: self.nodes,
            ids: number("ids"),
            faults: self.faults,
            duplicates: number("duplicates"),
            // Where the contract exempts it, it is counted and says nothing.
            order_violations: if kind.exempt.is_some() { 0 } else { number("order_violations") },
            order: match kind.exempt {
                Some(why) => format!("unique only: {why}"),
                None => report["order"].as_str().expect("an order").to_owned(),
            },
            errors,
            stall_ms,
            call_ms,
            back_ms,
            target,
            failure,
        }
    }
}

/// Times without ids through a node, in ms of the Unix epoch.
fn stalls_of(node: &Value) -> Vec<(f64, f64)> {
    let stalls = node["stalls"].as_array().expect("stalls").iter();
    let bounds = stalls.map(|stall| {
        let from = stall["from_unix_ms"].as_f64().expect("ms");
        (from, from + stall["ms"].as_f64().expect("ms"))
    });
    bounds.collect()
}

/// Ids by node, once for each second so far.
fn ticks(run: &Verify) -> Vec<Vec<u64>> {
    let progress = run.progress();
    let lists = progress.lines().filter_map(|line| line.split_once("by node: "));
    lists.map(|(_, list)| serde_json::from_str(list).expect("a list of numbers")).collect()
}

/// The last lines of a log.
pub fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
