//! One turn of one contender.

use std::net::TcpStream;
use std::time::Duration;

use crate::blocking;
use crate::cpu::{Client, Meter, Usage};
use crate::lean::{self, Plan};
use crate::line_up::{Entry, Lean, Load, Server};
use crate::process::{self, Outcome};
use crate::sample::{Sample, Times};
use crate::stage::Place;
use crate::wire::Call;

/// A contender and where it is.
pub struct Contestant {
    place: Place,
    server: Server,
    load: Load,
    /// Calls per second in its last turn, by which the next one is filled.
    rate: f64,
}

impl Contestant {
    pub fn new(entry: &Entry, place: Place) -> Contestant {
        // A first guess, for the first warm-up.
        Contestant { place, server: entry.server, load: entry.load, rate: 50_000.0 }
    }

    pub fn take_turn(&mut self, times: Times) -> Outcome<Sample> {
        match self.load {
            Load::Lean(lean) => lean_turn(&self.place, self.server, lean, times),
            Load::Threads => {
                let meter = meter(&self.place, Client::ThisProcess);
                blocking::threads(&self.place, &meter, times)
            }
            Load::RedisBenchmark { threads } => {
                let meter = meter(&self.place, Client::Children);
                let address = self.place.addresses[0];
                let sample = blocking::redis_benchmark(address, &meter, times, threads, self.rate)?;
                self.rate = sample.requests_per_s;
                Ok(sample)
            }
        }
    }
}

fn meter(place: &Place, client: Client) -> Meter {
    let Place { pids, redis, mariadb, .. } = place.clone();
    Meter { nodes: pids, redis, mariadb, client }
}

fn lean_turn(place: &Place, server: Server, lean: Lean, times: Times) -> Outcome<Sample> {
    let call = match (server, lean.count) {
        (Server::Redis, _) => Call::incr(place.id_type),
        (_, 1) => Call::next_id(place.id_type),
        (_, count) => Call::next_ids(place.id_type, count),
    };
    let silent = match lean.idle {
        0 => None,
        count => Some(Silent::open(place, count, &call)?),
    };
    let plan = Plan {
        addresses: &place.addresses,
        connections: lean.connections.unwrap_or(times.connections),
        depth: lean.depth,
        calls: &[call],
        warm_up: Duration::from_millis(times.warm_up_ms),
        measured: Duration::from_secs(times.seconds),
    };
    let mut sample = measure(&plan, &meter(place, Client::ThisThread))?;
    sample.idle_bytes = silent.as_ref().and_then(|silent| silent.bytes_each(place));
    Ok(sample)
}

/// Puts the load on, and sees whose processor time it takes.
pub fn measure(plan: &Plan<'_>, meter: &Meter) -> Outcome<Sample> {
    let connections = plan.addresses.len() as u64 * u64::from(plan.connections);
    let _ = rlimit::increase_nofile_limit(connections + 256);
    let mut marks: Vec<Usage> = Vec::new();
    let seen = lean::drive(plan, &mut || marks.push(meter.read())).map_err(|e| e.to_string())?;
    process::uninterrupted()?;
    let [before, after] = marks[..] else { return Err("the measured time never came".into()) };
    if seen.calls == 0 {
        return Err(format!("not one call brought ids; {} failed", seen.errors));
    }
    let seconds = plan.measured.as_secs_f64();
    Ok(Sample {
        requests_per_s: seen.calls as f64 / seconds,
        ids_per_s: seen.ids as f64 / seconds,
        p50_us: seen.latencies.quantile_us(0.5),
        p99_us: seen.latencies.quantile_us(0.99),
        p999_us: Some(seen.latencies.quantile_us(0.999)),
        max_us: seen.latencies.max_us(),
        errors: seen.errors,
        cpu: after.since(before).per_request((seen.calls + seen.errors) as f64),
        idle_bytes: None,
    })
}

/// How long it takes until a silent connection has given back what it can: the
/// front does so after a second.
const QUIET: Duration = Duration::from_millis(1_500);

/// Connections that made one call each and are silent since.
struct Silent {
    streams: Vec<TcpStream>,
    /// What the node had before, in bytes.
    resident_before: Option<u64>,
}

impl Silent {
    fn open(place: &Place, count: u32, call: &Call) -> Outcome<Silent> {
        let limit = u64::from(count) + 1_024;
        let files = rlimit::increase_nofile_limit(limit).unwrap_or(0);
        if files < limit {
            return Err(format!("{count} connections need more open files than {files}"));
        }
        let resident_before = process::resident_bytes(place.pids[0]);
        let open = |_| lean::open(place.addresses[0], call);
        let streams: std::io::Result<Vec<_>> = (0..count).map(open).collect();
        let streams = streams.map_err(|e| format!("{count} connections cannot be had: {e}"))?;
        std::thread::sleep(QUIET);
        Ok(Silent { streams, resident_before })
    }

    /// Taken before they are closed, and after the others have had their turn:
    /// what those left over is little, and shared by all.
    fn bytes_each(&self, place: &Place) -> Option<f64> {
        let now = process::resident_bytes(place.pids[0])? as f64;
        Some((now - self.resident_before? as f64).max(0.0) / self.streams.len() as f64)
    }
}
