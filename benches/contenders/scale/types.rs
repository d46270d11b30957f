//! What a type costs a node: memory while it is in use and once it is idle, and
//! whether a node starts later because the store holds many.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use idgen::cli::load::now;
use idgen::front::thrift::generated::{IdGenServiceSyncClient, TIdGenServiceSyncClient};
use serde::Serialize;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{
    ReadHalf, TFramedReadTransport, TFramedWriteTransport, TIoChannel, TTcpChannel, WriteHalf,
};

use super::spread::{self, Spread};
use super::{print_head, print_row};
use crate::cpu::{Client as ClientTime, Meter};
use crate::node::{IdNode, NodeSetup, apply_schema};
use crate::process::{self, Folder, Outcome};
use crate::sample::Times;
use crate::servers;

/// A type counts as idle after so long, so that the benchmark need not wait for
/// the default of fifteen minutes.
const IDLE_AFTER_MS: &str = "5000";
/// Clients that use the types.
const CLIENTS: u64 = 32;

/// All steps.
#[derive(Serialize)]
pub struct Types {
    segment: Vec<Step>,
    strict: Vec<Spread>,
}

/// Fewer types weigh less than what a process gains and gives back by itself.
const WEIGHABLE: u64 = 1_000;

/// What was measured with so many segment types in the store, each used once.
#[derive(Clone, Debug, Serialize)]
struct Step {
    types: u64,
    first_id_ms: f64,
    /// Types that a second brought into memory, each with its first range.
    first_uses_per_s: f64,
    /// From a thousand types on.
    bytes_each_in_use: Option<f64>,
    bytes_each_idle: Option<f64>,
    bytes_each_in_use_again: Option<f64>,
}

/// Measures with a MariaDB and a Redis of its own.
pub fn measure(steps: &[u64], times: Times, folder: &Folder) -> Outcome<Types> {
    let (redis_process, redis) = servers::redis(folder)?;
    let (mariadb_process, mysql) = servers::mariadb(folder)?;
    apply_schema(&mysql)?;
    let setup = NodeSetup { name: "types".into(), mysql: Some(mysql.clone()), redis: Some(redis) };
    let (mut node, _) = IdNode::start(&setup, folder)?;
    node.ready()?;
    node.add_type("t0", &["--mode", "segment", "--min-range", "100"])?;
    let meter = Meter {
        nodes: vec![node.process.pid()],
        redis: Some(redis_process.pid()),
        mariadb: Some(mariadb_process.pid()),
        client: ClientTime::ThisThread,
    };
    let strict = spread::measure(&node, times, &meter)?;
    node.process.stop()?;

    println!("\nsegment types, each used once");
    print_head(&["types", "first id ms", "first uses/s", "bytes in use", "idle", "used again"]);
    let mut there = 0;
    let mut segment = Vec::new();
    for types in steps.iter().copied() {
        add_types(&mysql, there + 1, types)?;
        there = types;
        segment.push(climb(&setup, types, folder)?);
    }
    Ok(Types { segment, strict })
}

/// As the procedure makes them, without a million calls.
fn add_types(mysql: &str, from: u64, to: u64) -> Outcome<()> {
    servers::sql(
        mysql,
        &format!(
            "INSERT INTO idgen_type (name, mode, state, prefix, description, options, first_id, \
         next_id, max_id, max_position, min_range, max_range, load_interval_ms, load_percentage, \
         lock_ttl_ms, instance_id, version, created_ms, updated_ms) \
         SELECT CONCAT('t', seq), t.mode, t.state, t.prefix, t.description, t.options, 1, 1, \
         t.max_id, t.max_position, t.min_range, t.max_range, t.load_interval_ms, \
         t.load_percentage, t.lock_ttl_ms, t.instance_id, 1, t.created_ms, t.updated_ms \
         FROM idgen_type t JOIN seq_{from}_to_{to} WHERE t.name = 't0'"
        ),
    )
}

/// Uses each type once through a node that has just started, and lets them
/// become idle.
fn climb(setup: &NodeSetup, types: u64, folder: &Folder) -> Outcome<Step> {
    let (mut node, begun) =
        IdNode::start_with(setup, &["--node-idle-after-ms", IDLE_AFTER_MS], folder)?;
    let first_id_ms = node.first_id("t0", begun)?.as_secs_f64() * 1_000.0;
    let resident = |node: &IdNode| node.process.resident_bytes().unwrap_or(0) as f64;
    let before = resident(&node);
    let begun = now();
    use_all(&node, types)?;
    let first_uses_per_s = types as f64 / (now() - begun).as_secs_f64();
    let used = resident(&node);
    // An eviction gives the unused ids back, which is two calls of servers each.
    let evicted = |node: &IdNode| node.metric("idgen_evictions_total").unwrap_or(0.0);
    while evicted(&node) < types as f64 {
        process::uninterrupted()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    // The allocator gives pages back within ten seconds.
    std::thread::sleep(Duration::from_secs(15));
    let idle = resident(&node);
    // What is there once more must fit into what was given back, or is kept.
    use_all(&node, types)?;
    let again = resident(&node);
    node.process.stop()?;
    let each = |resident: f64| (types >= WEIGHABLE).then(|| (resident - before) / types as f64);
    let step = Step {
        types,
        first_id_ms,
        first_uses_per_s,
        bytes_each_in_use: each(used),
        bytes_each_idle: each(idle),
        bytes_each_in_use_again: each(again),
    };
    print_row(&[
        (Some(types as f64), 0),
        (Some(first_id_ms), 1),
        (Some(first_uses_per_s), 0),
        (step.bytes_each_in_use, 0),
        (step.bytes_each_idle, 0),
        (step.bytes_each_in_use_again, 0),
    ]);
    Ok(step)
}

type Client = IdGenServiceSyncClient<
    TBinaryInputProtocol<TFramedReadTransport<ReadHalf<TTcpChannel>>>,
    TBinaryOutputProtocol<TFramedWriteTransport<WriteHalf<TTcpChannel>>>,
>;

fn client(node: &IdNode) -> thrift::Result<Client> {
    let mut channel = TTcpChannel::new();
    channel.open(node.thrift.to_string())?;
    let (read, write) = channel.split()?;
    Ok(IdGenServiceSyncClient::new(
        TBinaryInputProtocol::new(TFramedReadTransport::new(read), true),
        TBinaryOutputProtocol::new(TFramedWriteTransport::new(write), true),
    ))
}

/// One id of every type.
fn use_all(node: &IdNode, types: u64) -> Outcome<()> {
    let next = AtomicU64::new(1);
    let work = || -> thrift::Result<()> {
        let mut client = client(node)?;
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n > types {
                return Ok(());
            }
            client.next_id(format!("t{n}"))?;
        }
    };
    let worked = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    });
    worked.map_err(|e| format!("a first use failed: {e:?}"))
}
