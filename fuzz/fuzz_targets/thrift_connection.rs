//! A whole connection to a real server: calls that are right in themselves,
//! then spoilt here and there, sent in pieces.
//!
//! The input is read as: a byte for the dialect and how it is cut into pieces,
//! then calls of a few bytes each (method, arguments), then, behind the first
//! 0xff, places to spoil. The connection ends; every reply is one that the
//! official crate can read, in the order of the calls; unspoilt calls are all
//! answered; and the server goes on.

#![no_main]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use idgen::domain::{Error, ErrorCode, IdRange, TypeName, TypeRecord, TypeSpec};
use idgen::front::thrift::{ThriftConfig, ThriftMetrics, ThriftServer};
use idgen::service::api::{Decoded, IdApi, NodeStatus, Order, RangeLease, TypeStatus};
use libfuzzer_sys::fuzz_target;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol,
    TFieldIdentifier, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
    TStructIdentifier, TType,
};

/// Every connection must end within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// A service without a memory: what it says follows from the arguments.
struct Answers;

fn wrong(name: &str) -> Result<(), Error> {
    match name.bytes().next() {
        Some(b'!') => Err(Error::new(ErrorCode::Overloaded, name)),
        Some(b'?') => Err(Error::unknown_type(name)),
        _ => Ok(()),
    }
}

impl IdApi for Answers {
    async fn next_id(&self, name: &str) -> Result<i64, Error> {
        wrong(name)?;
        if name.starts_with('~') {
            tokio::task::yield_now().await;
        }
        Ok(name.len() as i64 + 1)
    }

    async fn next_ids(&self, name: &str, order: Order<'_>) -> Result<Vec<IdRange>, Error> {
        wrong(name)?;
        let count = order.count.min(5_000);
        Ok((1..=count).filter_map(|n| IdRange::new(2 * n, 2 * n + 1).ok()).collect())
    }

    async fn next_string_ids(
        &self,
        name: &str,
        order: Order<'_>,
        _: bool,
    ) -> Result<Vec<String>, Error> {
        wrong(name)?;
        Ok(vec![name.to_owned(); order.count.min(1_000) as usize])
    }

    async fn lease_range(&self, name: &str, count: i64, ttl_ms: i64) -> Result<RangeLease, Error> {
        wrong(name)?;
        Ok(RangeLease { first: 1, count, step: 1, ttl_ms })
    }

    async fn decode(&self, name: &str, id: &str) -> Result<Decoded, Error> {
        wrong(name)?;
        Ok(Decoded { text: id.to_owned(), shard: Some(3), ..Decoded::default() })
    }

    async fn describe(&self, name: &str) -> Result<TypeStatus, Error> {
        let spec = TypeSpec::new(TypeName::parse(name)?);
        let record = TypeRecord::created(&spec, idgen::domain::InstanceId(1), 0);
        Ok(TypeStatus { record, view: None, local: None, exhausted_at_ms: None })
    }

    async fn create_type(&self, spec: TypeSpec, _: &str) -> Result<TypeRecord, Error> {
        Ok(TypeRecord::created(&spec, idgen::domain::InstanceId(1), 0))
    }

    async fn node_status(&self) -> NodeStatus {
        NodeStatus {
            node: "fuzz".to_owned(),
            version: "0",
            uptime_s: 1,
            ready: true,
            draining: false,
            types_loaded: 0,
            parts: Vec::new(),
        }
    }
}

/// The server, in a thread of its own for as long as the process lives.
fn server() -> SocketAddr {
    static SERVER: OnceLock<SocketAddr> = OnceLock::new();
    *SERVER.get_or_init(|| {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut config = ThriftConfig::new(([127, 0, 0, 1], 0).into());
                config.max_frame_bytes = 2_048;
                let server = ThriftServer::bind(config).await.expect("a port");
                tell.send(server.local_addr()).expect("it is waited for");
                let registry = prometheus::Registry::new();
                let metrics = ThriftMetrics::register(&registry).expect("new metrics");
                let (_stop, stopped) = tokio::sync::watch::channel(false);
                server.serve(Arc::new(Answers), Arc::new(metrics), stopped).await;
            });
        });
        told.recv().expect("a server")
    })
}

/// The methods, and the kinds of their arguments by field id.
const METHODS: [(&str, &[TType]); 15] = [
    ("getId", &[TType::String, TType::String]),
    ("getStrId", &[TType::String, TType::String, TType::Bool]),
    ("addNewId", &[TType::String, TType::String]),
    ("echo", &[TType::String, TType::String]),
    ("nextId", &[TType::String]),
    ("nextIds", &[TType::String, TType::I32]),
    ("nextStringId", &[TType::String, TType::Bool]),
    ("describeType", &[TType::String]),
    ("nodeStatus", &[]),
    ("nextShardedId", &[TType::String, TType::String]),
    ("issueIds", &[TType::String, TType::I32, TType::String, TType::String]),
    ("issueStringIds", &[TType::String, TType::I32, TType::Bool, TType::String, TType::String]),
    ("leaseRange", &[TType::String, TType::I64, TType::I64]),
    ("decodeId", &[TType::String, TType::String]),
    ("authenticate", &[TType::String]),
    ("noSuchMethod", &[TType::Double, TType::I16]),
];

/// Bytes of the input, one after another; 0 when they are used up.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    fn number(&mut self) -> i64 {
        let shift = u32::from(self.byte() % 57);
        i64::from(self.byte() as i8) << shift
    }

    fn text(&mut self) -> Vec<u8> {
        let len = usize::from(self.byte() % 32).min(self.0.len());
        let (text, rest) = self.0.split_at(len);
        self.0 = rest;
        text.to_vec()
    }
}

fn write_call(
    out: &mut dyn TOutputProtocol,
    method: usize,
    seqid: i32,
    source: &mut Source<'_>,
) -> thrift::Result<()> {
    let (name, kinds) = METHODS[method];
    out.write_message_begin(&TMessageIdentifier::new(name, TMessageType::Call, seqid))?;
    out.write_struct_begin(&TStructIdentifier::new("args"))?;
    for (id, kind) in (1..).zip(kinds) {
        out.write_field_begin(&TFieldIdentifier::new("", *kind, id))?;
        match kind {
            TType::String => out.write_bytes(&source.text())?,
            TType::Bool => out.write_bool(source.byte() % 2 == 1)?,
            TType::I16 => out.write_i16(source.number() as i16)?,
            TType::I32 => out.write_i32(source.number() as i32)?,
            TType::I64 => out.write_i64(source.number())?,
            _ => out.write_double(source.number() as f64)?,
        }
        out.write_field_end()?;
    }
    out.write_field_stop()?;
    out.write_struct_end()?;
    out.write_message_end()
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, rest)) = data.split_first() else { return };
    let (framed, compact, strict) = (how & 1 == 0, how & 2 != 0, how & 4 == 0 || how & 1 != 0);
    let calls_end = rest.iter().position(|byte| *byte == 0xff).unwrap_or(rest.len());
    let mut source = Source(&rest[..calls_end]);
    let mut spoil = Source(rest.get(calls_end + 1..).unwrap_or_default());
    let mut bytes = Vec::new();
    let mut calls = 0;
    while !source.0.is_empty() && calls < 24 {
        calls += 1;
        let method = usize::from(source.byte()) % METHODS.len();
        let mut message = Vec::new();
        let written = match compact {
            true => write_call(&mut TCompactOutputProtocol::new(&mut message), method, calls, &mut source),
            false => {
                write_call(&mut TBinaryOutputProtocol::new(&mut message, strict), method, calls, &mut source)
            }
        };
        written.expect("calls can be written");
        if framed {
            bytes.extend((message.len() as u32).to_be_bytes());
        }
        bytes.extend(message);
    }
    let spoilt = !spoil.0.is_empty();
    while !spoil.0.is_empty() && !bytes.is_empty() {
        let place = usize::from(u16::from_be_bytes([spoil.byte(), spoil.byte()])) % bytes.len();
        match spoil.byte() % 4 {
            0 => bytes[place] ^= spoil.byte() | 1,
            1 => drop(bytes.remove(place)),
            2 => bytes.insert(place, spoil.byte()),
            _ => bytes.truncate(place),
        }
    }
    let replies = exchange(&bytes, usize::from(how >> 3));
    let mut rest = &replies[..];
    let mut last = 0;
    let mut count = 0;
    // A spoilt first call may be taken for another dialect.
    while !rest.is_empty() && !rest.starts_with(b"HTTP/1.1 400") {
        let header = match (spoilt, framed, compact) {
            (true, ..) => match guess(&mut rest) {
                Some(header) => header,
                None => break,
            },
            (false, framed, compact) => read(&mut rest, framed, compact),
        };
        if !spoilt {
            assert!(header.sequence_number > last, "{header:?} after {last}");
            last = header.sequence_number;
        }
        count += 1;
    }
    if !spoilt {
        assert_eq!(count, calls, "not every call has one answer");
    }
});

/// Sends `bytes` in pieces, and gives everything that comes back.
fn exchange(bytes: &[u8], piece: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(server()).expect("the server goes on");
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let size = match piece {
        0 => bytes.len().max(1),
        // Few pieces, whatever their number: each is a system call.
        n => (bytes.len() / n).max(1),
    };
    for piece in bytes.chunks(size) {
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut replies = Vec::new();
    match stream.read_to_end(&mut replies) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
            panic!("the connection does not end: {error}")
        }
        _ => replies,
    }
}

/// Reads one reply, all of it.
fn read(rest: &mut &[u8], framed: bool, compact: bool) -> TMessageIdentifier {
    let mut frame = *rest;
    if framed {
        let (length, after) = rest.split_first_chunk::<4>().expect("a length");
        let (inside, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        (frame, *rest) = (inside, after);
    }
    let header = match compact {
        true => read_message(&mut TCompactInputProtocol::new(&mut frame)),
        false => read_message(&mut TBinaryInputProtocol::new(&mut frame, false)),
    };
    let header = header.expect("a reply");
    match framed {
        true => assert!(frame.is_empty()),
        false => *rest = frame,
    }
    header
}

fn read_message(protocol: &mut dyn TInputProtocol) -> thrift::Result<TMessageIdentifier> {
    let header = protocol.read_message_begin()?;
    assert!(matches!(header.message_type, TMessageType::Reply | TMessageType::Exception));
    protocol.skip(TType::Struct)?;
    protocol.read_message_end()?;
    Ok(header)
}

/// Reads one reply in the dialect that it is in.
fn guess(rest: &mut &[u8]) -> Option<TMessageIdentifier> {
    match **rest {
        [0x82, ..] => Some(read(rest, false, true)),
        [0x80, ..] => Some(read(rest, false, false)),
        [0, _, _, _, 0x82, ..] => Some(read(rest, true, true)),
        [0, _, _, _, ..] => Some(read(rest, true, false)),
        _ => panic!("no reply begins with {:?}", rest.first()),
    }
}
