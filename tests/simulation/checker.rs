//! What must hold, whatever the schedule: no id twice, order where it is promised,
//! every call ends in time and with ids or an error that is a verdict.

use std::collections::BTreeMap;
use std::time::Duration;

use idgen::domain::{Error, ErrorCode, IdRange};

use crate::plan::{Kind, Type};

/// The longest call, and what is forgiven on top.
pub const DEADLINE: Duration = Duration::from_millis(1_500);
const SLACK: Duration = Duration::from_millis(100);

/// What was returned before a call began.
#[derive(Clone, Copy)]
pub struct Floors {
    cluster: i64,
    node: i64,
}

/// A call as the client sees it.
pub struct Call {
    pub of: usize,
    pub node: usize,
    pub life: u32,
    pub shard: Option<u8>,
    /// What is repeated for the same ids.
    pub key: Option<String>,
    pub floors: Floors,
}

#[derive(Default)]
struct Seen {
    /// Start and end of what was returned, adjacent runs joined.
    runs: BTreeMap<i64, i64>,
    highest: i64,
    by_node: BTreeMap<(usize, u32, Option<u8>), i64>,
    /// What came under each request key: more than once, where Redis lost it.
    keys: BTreeMap<String, Vec<Vec<IdRange>>>,
}

pub struct Checker {
    types: Vec<(Kind, Seen)>,
    violation: Option<String>,
    pub calls: u64,
    pub failures: u64,
    pub ids: u64,
}

impl Checker {
    pub fn new(types: &[Type]) -> Self {
        Checker {
            types: types.iter().map(|t| (t.kind, Seen::default())).collect(),
            violation: None,
            calls: 0,
            failures: 0,
            ids: 0,
        }
    }

    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// Only the first counts: what follows may come of it.
    pub fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub fn floors(&self, of: usize, node: usize, life: u32, shard: Option<u8>) -> Floors {
        let seen = &self.types[of].1;
        let node = seen.by_node.get(&(node, life, shard)).copied().unwrap_or(0);
        Floors { cluster: seen.highest, node }
    }

    /// A block that a DBA reserved.
    pub fn reserved(&mut self, of: usize, block: IdRange) {
        self.add(of, block, "a reserved block");
    }

    /// The ids of a call, in order; texts of a calendar series as numbers in order.
    /// `exempt`: the order across the cluster is not promised now. `keys_kept`:
    /// what is kept under request keys is still there.
    pub fn returned(&mut self, call: &Call, runs: Vec<IdRange>, exempt: bool, keys_kept: bool) {
        let Call { of, node, life, shard, .. } = *call;
        self.calls += 1;
        let kind = self.types[of].0;
        let who = format!("{kind:?} of n{node}.{life}");
        if let Some(key) = &call.key {
            let before = self.types[of].1.keys.entry(key.clone()).or_default();
            if before.contains(&runs) {
                return;
            }
            if keys_kept && !before.is_empty() {
                let what = format!("{who}: request key {key} gave {before:?}, now {runs:?}");
                return self.violate(what);
            }
            before.push(runs.clone());
        }
        if kind.is_opaque() {
            runs.iter().for_each(|run| self.add(of, *run, &who));
            return;
        }
        let ascending = runs.windows(2).all(|pair| pair[0].end() <= pair[1].start());
        let (first, last) = (runs[0].start(), runs[runs.len() - 1].last());
        if !ascending {
            self.violate(format!("{who}: not in order within a call: {runs:?}"));
        }
        // A key may bring back what an earlier call kept whose answer was lost.
        let in_order = call.key.is_none();
        if in_order && kind.is_strict() && !exempt && first <= call.floors.cluster {
            let floor = call.floors.cluster;
            self.violate(format!("{who}: {first} after {floor} had been returned by some node"));
        }
        // After a loss a type that went on alone may have left the memory of its node,
        // which then remembers no more what it returned.
        let remembers = kind != Kind::Alone || !exempt;
        if in_order && remembers && first <= call.floors.node {
            let floor = call.floors.node;
            self.violate(format!("{who}: {first} after this node had returned {floor}"));
        }
        let seen = &mut self.types[of].1;
        seen.highest = seen.highest.max(last);
        if in_order {
            let by_node = seen.by_node.entry((node, life, shard)).or_default();
            *by_node = last.max(*by_node);
        }
        runs.iter().for_each(|run| self.add(of, *run, &who));
    }

    /// A call failed; whether it may have with `CONFLICT`.
    pub fn failed(&mut self, of: usize, error: &Error, may_conflict: bool) {
        self.calls += 1;
        self.failures += 1;
        let expected = matches!(
            error.code,
            ErrorCode::Unavailable
                | ErrorCode::Deadline
                | ErrorCode::Overloaded
                | ErrorCode::Retired
                | ErrorCode::ClockBackwards
        ) || may_conflict && error.code == ErrorCode::Conflict;
        if !expected {
            self.violate(format!("{:?}: a call failed with {error:?}", self.types[of].0));
        }
    }

    /// A call took `span` of virtual time, and its node was awake.
    pub fn took(&mut self, of: usize, span: Duration) {
        if span > DEADLINE + SLACK {
            let ms = span.as_millis();
            self.violate(format!("{:?}: a call ended after {ms} ms only", self.types[of].0));
        }
    }

    fn add(&mut self, of: usize, run: IdRange, who: &str) {
        self.ids += run.len();
        let runs = &mut self.types[of].1.runs;
        let before = runs.range(..run.end()).next_back().map(|(start, end)| (*start, *end));
        if let Some((start, end)) = before.filter(|(_, end)| *end > run.start()) {
            let twice = format!("{who}: {run} was issued twice: {start}..{end} was there");
            return self.violate(twice);
        }
        match before.filter(|(_, end)| *end == run.start()) {
            Some((start, _)) => runs.insert(start, run.end()),
            None => runs.insert(run.start(), run.end()),
        };
    }
}
