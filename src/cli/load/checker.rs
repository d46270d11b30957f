//! Are the ids of recorded calls unique and in order?
//!
//! **Duplicates.** Sorted by their first id, a range repeats exactly those of
//! its ids that lie at or below the highest id seen before it: the range that
//! holds this highest id began no later.
//!
//! **Order.** A call that began after another had returned must have larger
//! ids. The sweep visits calls by their start. Those that are visited but had
//! not returned wait in a heap by their end; before a call is judged, all that
//! returned before its start leave the heap and raise the highest id that had
//! returned. A first id at or below that is a violation. At any time the heap
//! holds only calls in flight, so no more than there are clients.
//!
//! Calls that overlap in time say nothing about each other, nor do calls with
//! equal times: what is reported is certain. A call without an answer is not
//! recorded, and so proves nothing. O(n log n) time; the calls are reordered
//! in place, so no memory but the heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::record::Call;
use crate::domain::gate_pass::SHARDS;

/// Which order a type promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// Across all nodes: a call that began after another had returned,
    /// anywhere, has larger ids.
    #[default]
    Strict,
    /// The same, but only between calls through one node.
    Node,
    /// The same, but only between calls through one node to one shard, which
    /// is told by bits 8 to 13 of the id.
    Shard,
    /// None; only duplicates count.
    None,
}

impl Order {
    /// The name on the command line and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Order::Strict => "strict",
            Order::Node => "node",
            Order::Shard => "shard",
            Order::None => "none",
        }
    }
}

/// Two calls that cannot both be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Both brought `id`.
    Duplicate {
        /// The lowest id that both brought.
        id: i64,
        /// One call.
        one: Call,
        /// The other.
        other: Call,
    },
    /// `later` began after `earlier` had returned, and has a smaller or equal id.
    Order {
        /// The call that had returned.
        earlier: Call,
        /// The call that began afterwards.
        later: Call,
    },
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many ids were brought, repeated ones included.
    pub ids: u64,
    /// How many of them had been brought already: ids less distinct ids.
    pub duplicates: u64,
    /// How many records hold an id that is not larger than one of a call that
    /// had returned before theirs began.
    pub order_violations: u64,
    /// The first few of each kind, with evidence: duplicates by id, then order
    /// violations by time. At most [`EXAMPLES`](Self::EXAMPLES) of each.
    pub examples: Vec<Violation>,
}

impl Report {
    /// How many violations of a kind are kept in detail.
    pub const EXAMPLES: usize = 5;

    /// Whether nothing is wrong. Says nothing if no id was checked.
    pub fn is_clean(&self) -> bool {
        self.duplicates == 0 && self.order_violations == 0
    }
}

/// Checks `calls`, given in any order, against the strictest promise.
pub fn check(calls: &[Call]) -> Report {
    check_in_place(&mut calls.to_vec(), Order::Strict)
}

/// Checks `calls` against `order`, and leaves them in an order of its own.
pub fn check_in_place(calls: &mut [Call], order: Order) -> Report {
    let mut report = Report::default();
    find_duplicates(calls, &mut report);
    if order != Order::None {
        find_order_violations(calls, order, &mut report);
    }
    report
}

/// The shard in an id of a sharded type.
pub(super) fn shard_in(id: i64) -> u8 {
    (id >> 8) as u8 % SHARDS
}

fn find_duplicates(calls: &mut [Call], report: &mut Report) {
    // The times only make the evidence the same for the same calls.
    calls.sort_unstable_by_key(|c| (c.first(), c.last(), c.start_ns(), c.end_ns(), c.node()));
    let mut highest: Option<Call> = None;
    for &call in calls.iter() {
        report.ids += u64::from(call.count());
        if let Some(holder) = highest
            && call.first() <= holder.last()
        {
            let last_repeated = call.last().min(holder.last());
            report.duplicates += (last_repeated - call.first()) as u64 + 1;
            if report.examples.len() < Report::EXAMPLES {
                report.examples.push(Violation::Duplicate {
                    id: call.first(),
                    one: holder,
                    other: call,
                });
            }
        }
        if highest.is_none_or(|h| h.last() < call.last()) {
            highest = Some(call);
        }
    }
}

fn find_order_violations(calls: &mut [Call], order: Order, report: &mut Report) {
    calls.sort_unstable_by_key(|c| (c.start_ns(), c.end_ns(), c.first(), c.node()));
    // How many sequences there may be for each node.
    let per_node = match order {
        Order::Shard => usize::from(SHARDS),
        Order::Node => 1,
        Order::Strict | Order::None => 0,
    };
    let nodes = calls.iter().map(|c| usize::from(c.node()) + 1).max().unwrap_or(0);
    let sequence_of = |call: &Call| match order {
        Order::Shard => usize::from(call.node()) * per_node + usize::from(shard_in(call.first())),
        Order::Node => usize::from(call.node()),
        Order::Strict | Order::None => 0,
    };
    // By sequence: the call with the highest id among those that had returned.
    let mut highest: Vec<Option<usize>> = vec![None; (nodes * per_node).max(1)];
    let mut in_flight: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut examples = 0;
    for (index, call) in calls.iter().enumerate() {
        while let Some(&Reverse((end, returned))) = in_flight.peek()
            && end < call.start_ns()
        {
            in_flight.pop();
            let highest = &mut highest[sequence_of(&calls[returned])];
            if highest.is_none_or(|h| calls[h].last() < calls[returned].last()) {
                *highest = Some(returned);
            }
        }
        if let Some(earlier) = highest[sequence_of(call)]
            && call.first() <= calls[earlier].last()
        {
            report.order_violations += 1;
            if examples < Report::EXAMPLES {
                examples += 1;
                report.examples.push(Violation::Order { earlier: calls[earlier], later: *call });
            }
        }
        in_flight.push(Reverse((call.end_ns(), index)));
    }
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
