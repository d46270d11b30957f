//! One strict load, spread over more or fewer types.

use std::time::Duration;

use serde::Serialize;

use super::{print_head, print_row};
use crate::cpu::Meter;
use crate::lean::Plan;
use crate::node::IdNode;
use crate::process::Outcome;
use crate::sample::{Sample, Times};
use crate::turn;
use crate::wire::Call;

/// How many types.
const STEPS: [usize; 3] = [1, 8, 64];

/// The load over so many types.
#[derive(Serialize)]
pub struct Spread {
    types: usize,
    #[serde(flatten)]
    sample: Sample,
}

/// Adds the types, and measures; each connection asks for one of them.
pub fn measure(node: &IdNode, times: Times, meter: &Meter) -> Outcome<Vec<Spread>> {
    let name = |n: usize| format!("strict{n}");
    for n in 0..STEPS[STEPS.len() - 1] {
        node.add_type(&name(n), &[])?;
    }
    println!("\nstrict load, {} connections", times.connections);
    print_head(&["types", "requests/s", "p50 µs", "p99 µs", "node µs", "Redis µs"]);
    let climb = |types: usize| {
        let calls: Vec<Call> = (0..types).map(|n| Call::next_id(&name(n))).collect();
        let plan = Plan {
            addresses: &[node.thrift],
            connections: times.connections,
            depth: 1,
            calls: &calls,
            warm_up: Duration::from_millis(times.warm_up_ms),
            measured: Duration::from_secs(times.seconds),
        };
        let sample = turn::measure(&plan, meter)?;
        print_row(&[
            (Some(types as f64), 0),
            (Some(sample.requests_per_s), 0),
            (Some(sample.p50_us), 0),
            (Some(sample.p99_us), 0),
            (sample.cpu.node_us, 2),
            (sample.cpu.redis_us, 2),
        ]);
        Ok(Spread { types, sample })
    };
    STEPS.into_iter().map(climb).collect()
}
