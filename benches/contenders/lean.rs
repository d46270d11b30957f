//! Load as `redis-benchmark` makes it: one thread that serves all connections.
//!
//! A blocking client with a thread per connection costs the machine a wake-up
//! and a switch of threads per call, more than the service itself does. To
//! compare with `redis-benchmark`, the clients must be of the same kind; so
//! this one sends prepared bytes and looks only at what kind of reply it is.

use std::net::SocketAddr;
use std::time::Duration;

use idgen::cli::load::{Latencies, now};
use thrift::protocol::{
    TBinaryOutputProtocol, TFieldIdentifier, TMessageIdentifier, TMessageType, TOutputProtocol,
    TStructIdentifier, TType,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::processes::Outcome;
use crate::results::Sample;

/// Before the calls that count.
const WARM_UP: Duration = Duration::from_secs(1);

/// `nextId` of the type in one frame, strict binary.
fn request(id_type: &str) -> thrift::Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut out = TBinaryOutputProtocol::new(&mut body, true);
    out.write_message_begin(&TMessageIdentifier::new("nextId", TMessageType::Call, 1))?;
    out.write_struct_begin(&TStructIdentifier::new("args"))?;
    out.write_field_begin(&TFieldIdentifier::new("idType", TType::String, 1))?;
    out.write_string(id_type)?;
    out.write_field_end()?;
    out.write_field_stop()?;
    out.write_struct_end()?;
    out.write_message_end()?;
    let mut frame = (body.len() as u32).to_be_bytes().to_vec();
    frame.extend(body);
    Ok(frame)
}

/// Whether a frame is a reply (type 2) whose result (field 0) is an i64.
fn brings_an_id(frame: &[u8]) -> bool {
    let name = "nextId".len();
    let field = 4 + 4 + 4 + name + 4;
    frame.get(7) == Some(&2) && frame.get(field..field + 3) == Some(&[10, 0, 0])
}

struct Seen {
    calls: u64,
    errors: u64,
    latencies: Latencies,
}

/// Measures `connections` clients for `seconds` after the warm-up.
pub fn measure(
    address: SocketAddr,
    id_type: &str,
    connections: u32,
    seconds: u64,
) -> Outcome<Sample> {
    let request = request(id_type).map_err(|e| e.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    let seen = runtime.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..connections {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            streams.push(stream);
        }
        let begin = now() + WARM_UP;
        let end = begin + Duration::from_secs(seconds);
        let clients: Vec<_> = streams
            .into_iter()
            .map(|stream| tokio::spawn(client(stream, request.clone(), begin, end)))
            .collect();
        let mut all = Seen { calls: 0, errors: 0, latencies: Latencies::new() };
        for client in clients {
            let seen = client.await.map_err(std::io::Error::other)??;
            all.calls += seen.calls;
            all.errors += seen.errors;
            all.latencies.merge(&seen.latencies);
        }
        Ok::<_, std::io::Error>(all)
    });
    let seen = seen.map_err(|e| e.to_string())?;
    Ok(Sample {
        requests_per_s: seen.calls as f64 / seconds as f64,
        p50_us: seen.latencies.quantile_us(0.5),
        p999_us: Some(seen.latencies.quantile_us(0.999)),
        ids_per_s: seen.calls as f64 / seconds as f64,
        p99_us: seen.latencies.quantile_us(0.99),
        max_us: seen.latencies.max_us(),
        errors: seen.errors,
    })
}

async fn client(
    mut stream: TcpStream,
    request: Vec<u8>,
    begin: std::time::Instant,
    end: std::time::Instant,
) -> std::io::Result<Seen> {
    let mut seen = Seen { calls: 0, errors: 0, latencies: Latencies::new() };
    let mut buffer = [0; 512];
    let mut sent = now();
    while sent < end {
        stream.write_all(&request).await?;
        let mut filled = 0;
        // A reply with an id has a few dozen bytes; one that does not fit is
        // an error text, and ends the measurement.
        let whole = loop {
            let read = stream.read(&mut buffer[filled..]).await?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            if filled >= 4 {
                let length = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
                if filled == 4 + length as usize {
                    break filled;
                }
            }
        };
        let received = now();
        if sent >= begin && received <= end {
            if brings_an_id(&buffer[..whole]) {
                seen.calls += 1;
                seen.latencies.record(received - sent);
            } else {
                seen.errors += 1;
            }
        }
        sent = received;
    }
    Ok(seen)
}
