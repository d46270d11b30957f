//! What applications with blocking clients see, and `redis-benchmark` as a check
//! of our own client.

use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::Duration;

use idgen::cli::bench::{BenchArgs, measure};
use idgen::cli::load::{Method, WireArgs};

use crate::cpu::{Meter, PerRequest};
use crate::process::Outcome;
use crate::redis_csv;
use crate::sample::{Sample, Times};
use crate::stage::Place;

/// The load of `idgen bench`, which begins with a second of warm-up.
const WARM_UP: Duration = Duration::from_secs(1);
/// Connecting takes a moment: processor time is read within the measured time.
const MARGIN: Duration = Duration::from_millis(100);

/// Measures with a thread and a blocking generated client per connection.
pub fn threads(place: &Place, meter: &Meter, times: Times) -> Outcome<Sample> {
    let arguments = BenchArgs {
        rate: None,
        nodes: place.addresses.iter().map(SocketAddr::to_string).collect(),
        id_type: place.id_type.to_owned(),
        connections: times.connections,
        seconds: times.seconds,
        count: 1,
        method: Method::NextId,
        gate_passes: None,
        texts: false,
        wire: WireArgs::default(),
        json: false,
    };
    let watched = Duration::from_secs(times.seconds) - 2 * MARGIN;
    let (report, used) = thread::scope(|scope| {
        let load = scope.spawn(|| measure(&arguments));
        thread::sleep(WARM_UP + MARGIN);
        let before = meter.read();
        thread::sleep(watched);
        let used = meter.read().since(before);
        (load.join().expect("the load does not panic"), used)
    });
    let report = report.map_err(|e| e.to_string())?;
    Ok(Sample {
        requests_per_s: report.requests_per_s,
        ids_per_s: report.ids_per_s,
        p50_us: report.p50_us,
        p99_us: report.p99_us,
        p999_us: Some(report.p999_us),
        max_us: report.max_us,
        errors: report.errors,
        cpu: used.per_request(report.requests_per_s * watched.as_secs_f64()),
        idle_bytes: None,
    })
}

/// Measures with `redis-benchmark`. It counts calls, not seconds: about a second
/// of warm-up at the `rate` of before tells how many calls fill the turn.
pub fn redis_benchmark(
    address: SocketAddr,
    meter: &Meter,
    times: Times,
    thread_each: bool,
    rate: f64,
) -> Outcome<Sample> {
    let connections = times.connections;
    let warm = raw_incr(address, connections, thread_each, rate)?;
    let calls = (warm.requests_per_s * times.seconds as f64).round();
    let before = meter.read();
    let sample = raw_incr(address, connections, thread_each, calls)?;
    let cpu = meter.read().since(before).per_request(calls);
    Ok(Sample { cpu, ..sample })
}

fn raw_incr(
    address: SocketAddr,
    connections: u32,
    thread_each: bool,
    calls: f64,
) -> Outcome<Sample> {
    let calls = calls.max(1_000.0).round() as u64;
    let mut command = Command::new("redis-benchmark");
    command
        .args(["-h", &address.ip().to_string()])
        .args(["-p", &address.port().to_string()])
        .args(["-c", &connections.to_string()])
        .args(["-n", &calls.to_string()])
        .args(["-t", "incr", "--csv"]);
    if thread_each {
        command.args(["--threads", &connections.to_string()]);
    }
    let output = command.output().map_err(|e| format!("redis-benchmark does not start: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = redis_csv::parse(&text).ok_or_else(|| format!("redis-benchmark said {text:?}"))?;
    Ok(Sample {
        requests_per_s: line.requests_per_s,
        ids_per_s: line.requests_per_s,
        p50_us: line.p50_ms * 1_000.0,
        p99_us: line.p99_ms * 1_000.0,
        p999_us: None,
        max_us: line.highest_ms * 1_000.0,
        errors: 0,
        cpu: PerRequest::default(),
        idle_bytes: None,
    })
}
