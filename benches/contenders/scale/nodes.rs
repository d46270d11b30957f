//! Ever more nodes on one Redis, serving one strict type.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use super::{print_head, print_row};
use crate::cpu::{Client, Meter};
use crate::lean::Plan;
use crate::line_up::{Server, TYPE};
use crate::node::IdNode;
use crate::process::{Folder, Outcome};
use crate::sample::{Sample, Times};
use crate::stage::Stage;
use crate::turn;
use crate::wire::Call;

/// All steps.
#[derive(Serialize)]
pub struct Nodes {
    nodes: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    nodes: u64,
    #[serde(flatten)]
    sample: Sample,
    /// How many callers one call to Redis serves.
    ids_per_take: f64,
    /// Processor time of Redis for each of these calls.
    redis_us_per_take: Option<f64>,
}

/// Measures with as many connections to each node as the options say.
pub fn measure(steps: &[u64], times: Times, folder: &Folder) -> Outcome<Nodes> {
    let mut stage = Stage::new(folder);
    print_head(&[
        "nodes",
        "ids/s",
        "p50 µs",
        "p99 µs",
        "node µs",
        "Redis µs",
        "ids per take",
        "Redis µs/take",
    ]);
    let climbed = steps.iter().map(|step| climb(&mut stage, *step, times));
    let nodes = climbed.collect::<Outcome<Vec<Step>>>()?;
    stage.close();
    Ok(Nodes { nodes })
}

fn climb(stage: &mut Stage<'_>, count: u64, times: Times) -> Outcome<Step> {
    let place = stage.place(Server::Strict(count as usize))?;
    let meter = Meter {
        nodes: place.pids,
        redis: place.redis,
        mariadb: place.mariadb,
        client: Client::ThisThread,
    };
    let addresses: Vec<SocketAddr> = place.addresses;
    let plan = Plan {
        addresses: &addresses,
        connections: times.connections,
        depth: 1,
        calls: &[Call::next_id(TYPE)],
        warm_up: Duration::from_millis(times.warm_up_ms),
        measured: Duration::from_secs(times.seconds),
    };
    let nodes = stage.strict(count as usize)?;
    let (ids, takes) = totals(nodes)?;
    let sample = turn::measure(&plan, &meter)?;
    let (ids_after, takes_after) = totals(nodes)?;
    let ids_per_take = (ids_after - ids) / (takes_after - takes).max(1.0);
    let redis_us_per_take = sample.cpu.redis_us.map(|us| us * ids_per_take);
    print_row(&[
        (Some(count as f64), 0),
        (Some(sample.ids_per_s), 0),
        (Some(sample.p50_us), 0),
        (Some(sample.p99_us), 0),
        (sample.cpu.node_us, 2),
        (sample.cpu.redis_us, 2),
        (Some(ids_per_take), 1),
        (redis_us_per_take, 1),
    ]);
    Ok(Step { nodes: count, sample, ids_per_take, redis_us_per_take })
}

/// Ids and calls to dispatchers, of all nodes so far.
fn totals(nodes: &[IdNode]) -> Outcome<(f64, f64)> {
    let sum = |name: &str| nodes.iter().map(|node| node.metric(name)).sum::<Outcome<f64>>();
    Ok((sum("idgen_thrift_ids_total")?, sum("idgen_takes_total")?))
}
