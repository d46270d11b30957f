//! One node under ever more connections, all of them at work.

use std::time::Duration;

use serde::Serialize;

use super::{print_head, print_row};
use crate::cpu::{Client, Meter};
use crate::lean::Plan;
use crate::node::{IdNode, NodeSetup};
use crate::process::{Folder, Outcome};
use crate::sample::{Sample, Times};
use crate::wire::Call;
use crate::{servers, turn};

const SEGMENT: &str = "segment";
const STRICT: &str = "strict";

/// All steps.
#[derive(Serialize)]
pub struct Connections {
    segment: Vec<Step>,
    strict: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    connections: u64,
    #[serde(flatten)]
    sample: Sample,
    /// Of the node at the end of the step, in MB.
    resident_mb: Option<f64>,
}

/// Measures with servers of its own.
pub fn measure(steps: &[u64], times: Times, folder: &Folder) -> Outcome<Connections> {
    let (redis_process, redis) = servers::redis(folder)?;
    let (mariadb_process, mysql) = servers::mariadb(folder)?;
    crate::node::apply_schema(&mysql)?;
    let setup = NodeSetup { name: "node".into(), mysql: Some(mysql), redis: Some(redis) };
    let most = steps.iter().max().copied().unwrap_or_default();
    let connections = (most + 100).to_string();
    let (mut node, _) =
        IdNode::start_with(&setup, &["--thrift-max-connections", &connections], folder)?;
    node.ready()?;
    node.add_type(SEGMENT, &["--mode", "segment", "--min-range", "10000000"])?;
    node.add_type(STRICT, &[])?;
    let meter = Meter {
        nodes: vec![node.process.pid()],
        redis: Some(redis_process.pid()),
        mariadb: Some(mariadb_process.pid()),
        client: Client::ThisThread,
    };
    let ladder = |id_type: &str| -> Outcome<Vec<Step>> {
        println!("\n{id_type}");
        print_head(&[
            "connections",
            "requests/s",
            "p50 µs",
            "p99 µs",
            "node µs",
            "Redis µs",
            "client µs",
            "resident MB",
        ]);
        steps.iter().map(|step| climb(&node, id_type, *step, times, &meter)).collect()
    };
    Ok(Connections { segment: ladder(SEGMENT)?, strict: ladder(STRICT)? })
}

fn climb(
    node: &IdNode,
    id_type: &str,
    connections: u64,
    times: Times,
    meter: &Meter,
) -> Outcome<Step> {
    let plan = Plan {
        addresses: &[node.thrift],
        connections: connections as u32,
        depth: 1,
        calls: &[Call::next_id(id_type)],
        warm_up: Duration::from_millis(times.warm_up_ms),
        measured: Duration::from_secs(times.seconds),
    };
    let sample = turn::measure(&plan, meter)?;
    let resident_mb = node.process.resident_bytes().map(|bytes| bytes as f64 / 1_048_576.0);
    print_row(&[
        (Some(connections as f64), 0),
        (Some(sample.requests_per_s), 0),
        (Some(sample.p50_us), 0),
        (Some(sample.p99_us), 0),
        (sample.cpu.node_us, 2),
        (sample.cpu.redis_us, 2),
        (sample.cpu.client_us, 2),
        (resident_mb, 1),
    ]);
    Ok(Step { connections, sample, resident_mb })
}
