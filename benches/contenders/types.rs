//! What a type costs a node: memory while it is in use and once it is idle, and
//! whether a node starts later because the store holds many.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use idgen::cli::load::now;
use idgen::front::thrift::generated::{IdGenServiceSyncClient, TIdGenServiceSyncClient};
use serde::Serialize;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{
    ReadHalf, TFramedReadTransport, TFramedWriteTransport, TIoChannel, TTcpChannel, WriteHalf,
};

use crate::processes::{self, Folder, IdNode, NodeSetup, Outcome};

/// A type counts as idle after so long, so that the benchmark need not wait for
/// the default of fifteen minutes.
const IDLE_AFTER_MS: &str = "5000";
/// Clients that use the types.
const CLIENTS: u64 = 32;

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct ManyTypes {
    pub types: u64,
    pub first_id_ms_without: f64,
    pub first_id_ms: f64,
    /// Types that a second brought into memory, each with its first range.
    pub first_uses_per_s: f64,
    pub bytes_each_in_use: f64,
    pub bytes_each_idle: f64,
    pub bytes_each_in_use_again: f64,
}

/// Measures with `types` segment types on a MariaDB and a Redis of its own.
pub fn measure(types: u64, folder: &Folder) -> Outcome<ManyTypes> {
    let (_redis, redis) = processes::redis(folder)?;
    let (_mariadb, mysql) = processes::mariadb(folder)?;
    processes::apply_schema(&mysql)?;
    let setup = NodeSetup { name: "types", mysql: Some(mysql.clone()), redis: Some(redis) };
    let start = || IdNode::start_with(&setup, &["--node-idle-after-ms", IDLE_AFTER_MS], folder);

    let (mut node, _) = start()?;
    node.ready()?;
    node.add_type("t0", &["--mode", "segment", "--min-range", "100"])?;
    node.process.stop()?;
    let (mut node, begun) = start()?;
    let first_id_ms_without = first_id(&mut node, begun)?.as_secs_f64() * 1_000.0;
    node.process.stop()?;

    // As the procedure makes them, without a million calls.
    processes::sql(
        &mysql,
        &format!(
            "INSERT INTO idgen_type (name, mode, state, prefix, description, options, first_id, \
         next_id, max_id, max_position, min_range, max_range, load_interval_ms, load_percentage, \
         lock_ttl_ms, instance_id, version, created_ms, updated_ms) \
         SELECT CONCAT('t', seq), t.mode, t.state, t.prefix, t.description, t.options, 1, 1, \
         t.max_id, t.max_position, t.min_range, t.max_range, t.load_interval_ms, \
         t.load_percentage, t.lock_ttl_ms, t.instance_id, 1, t.created_ms, t.updated_ms \
         FROM idgen_type t JOIN seq_1_to_{types} WHERE t.name = 't0'"
        ),
    )?;
    let (mut node, begun) = start()?;
    let first_id_ms = first_id(&mut node, begun)?.as_secs_f64() * 1_000.0;
    let resident = |node: &IdNode| node.process.resident_bytes().unwrap_or(0) as f64;
    let before = resident(&node);
    let begun = now();
    use_all(&node, types)?;
    let first_uses_per_s = types as f64 / (now() - begun).as_secs_f64();
    let used = resident(&node);
    // An eviction gives the unused ids back, which is two calls of servers each.
    let evicted = |node: &IdNode| node.metric("idgen_evictions_total").unwrap_or(0.0);
    while evicted(&node) < types as f64 {
        processes::uninterrupted()?;
        std::thread::sleep(Duration::from_millis(200));
    }
    // The allocator gives pages back within ten seconds.
    std::thread::sleep(Duration::from_secs(15));
    let idle = resident(&node);
    // What is there once more must fit into what was given back, or is kept.
    use_all(&node, types)?;
    let again = resident(&node);
    node.process.stop()?;
    Ok(ManyTypes {
        types,
        first_id_ms_without,
        first_id_ms,
        first_uses_per_s,
        bytes_each_in_use: (used - before) / types as f64,
        bytes_each_idle: (idle - before) / types as f64,
        bytes_each_in_use_again: (again - before) / types as f64,
    })
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

fn first_id(node: &mut IdNode, begun: Instant) -> Outcome<Duration> {
    let IdNode { process, thrift, .. } = node;
    process.wait_until(|| processes::accepts(*thrift))?;
    let mut client = client(node).map_err(|e| e.to_string())?;
    node.process.wait_until(|| client.next_id("t0".to_owned()).is_ok())?;
    Ok(now() - begun)
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
