//! A server with a service that counts, clients for it, and raw bytes.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idgen::domain::{
    AtLimit, Error, ErrorCode, History, IdRange, InstanceId, TypeName, TypeOptions, TypeRecord,
    TypeSpec,
};
use idgen::front::thrift::generated::IdGenServiceSyncClient;
use idgen::front::thrift::{Served, ThriftConfig, ThriftMetrics, ThriftServer};
use idgen::ports::View;
use idgen::service::api::{
    Decoded, IdApi, LocalSupply, NodeStatus, Order, PartStatus, RangeLease, TypeStatus,
};
use prometheus::Registry;
use prometheus::proto::MetricType;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol,
    TInputProtocol, TOutputProtocol,
};
use thrift::transport::{
    TBufferedReadTransport, TBufferedWriteTransport, TFramedReadTransport, TFramedWriteTransport,
    TIoChannel, TTcpChannel,
};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// No step of a test takes longer, unless something is broken.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What a call asked for beyond the name: count, request key, gate pass.
pub type Asked = (i64, Option<String>, Option<String>);

/// A service whose answer follows from the name of the type: `order` counts, and
/// so do `segment`, which can be leased from, `sharded`, which wants a gate pass,
/// and `opaque`; the ids of the last two do not follow each other. `gated` waits
/// for a permit and counts, and so does `later` after a while; others fail in their own way.
pub struct Counter {
    next: AtomicI64,
    /// Calls that wait at the gate, or have passed it.
    pub arrived: AtomicUsize,
    /// One permit lets one call of `gated` through.
    pub gate: Semaphore,
    /// What addNewId made: the settings, and who asked.
    pub created: Mutex<Vec<(TypeSpec, String)>>,
    /// The description that every type has.
    pub description: Mutex<String>,
    names: Mutex<HashSet<String>>,
    /// The last order that came through.
    pub asked: Mutex<Option<Asked>>,
    /// Request keys, and what was given for them.
    remembered: Mutex<HashMap<String, (Asked, Vec<IdRange>)>>,
}

impl Counter {
    fn new() -> Self {
        Counter {
            next: AtomicI64::new(1),
            arrived: AtomicUsize::new(0),
            gate: Semaphore::new(0),
            created: Mutex::default(),
            description: Mutex::new("for tests".into()),
            names: Mutex::default(),
            asked: Mutex::default(),
            remembered: Mutex::default(),
        }
    }

    async fn take(&self, name: &str, count: i64) -> Result<i64, Error> {
        let code = match name {
            "order" | "segment" | "sharded" | "opaque" => {
                return Ok(self.next.fetch_add(count, Ordering::SeqCst));
            }
            "gated" | "later" => {
                if name == "later" {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                self.arrived.fetch_add(1, Ordering::SeqCst);
                self.gate.acquire().await.unwrap().forget();
                return Ok(self.next.fetch_add(count, Ordering::SeqCst));
            }
            "broken" => panic!("this type breaks its task, as the test wants"),
            "gone" => ErrorCode::Retired,
            "empty" => ErrorCode::Exhausted,
            "down" => ErrorCode::Unavailable,
            _ => {
                TypeName::parse(name)?;
                return Err(Error::unknown_type(name));
            }
        };
        Err(Error::new(code, format!("{name} is {code} for tests")))
    }
}

impl Counter {
    /// The ids of an order, after the rules about gate passes and request keys.
    async fn issue(&self, name: &str, order: Order<'_>) -> Result<Vec<IdRange>, Error> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let asked = (order.count, owned(order.request_key), owned(order.gate_pass));
        *self.asked.lock().unwrap() = Some(asked.clone());
        match (name, order.gate_pass) {
            ("sharded", None) => return Err(Error::invalid("gate_pass", "gate_pass is missing")),
            ("sharded", Some(_)) | (_, None) => {}
            _ => return Err(Error::invalid("gate_pass", "gate_pass is for sharded types")),
        }
        if let Some(key) = order.request_key {
            if key.contains(' ') {
                return Err(Error::invalid("request_key", "request_key holds a space"));
            }
            if let Some((before, ids)) = self.remembered.lock().unwrap().get(key) {
                return match *before == asked {
                    true => Ok(ids.clone()),
                    false => Err(Error::new(ErrorCode::Conflict, "the request key was used")),
                };
            }
        }
        let first = self.take(name, order.count).await?;
        let ids = match name {
            "sharded" | "opaque" => (first..first + order.count)
                .map(|at| IdRange::new(at << SHARD_BITS, (at << SHARD_BITS) + 1).unwrap())
                .collect(),
            _ => vec![IdRange::new(first, first + order.count).unwrap()],
        };
        if let Some(key) = order.request_key {
            self.remembered.lock().unwrap().insert(key.to_owned(), (asked, ids.clone()));
        }
        Ok(ids)
    }
}

impl IdApi for Counter {
    async fn next_id(&self, name: &str) -> Result<i64, Error> {
        Ok(self.issue(name, Order::of(1)).await?[0].start())
    }

    async fn next_ids(&self, name: &str, order: Order<'_>) -> Result<Vec<IdRange>, Error> {
        self.issue(name, order).await
    }

    async fn next_string_ids(
        &self,
        name: &str,
        order: Order<'_>,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        let ranges = self.issue(name, order).await?;
        let prefix = if with_prefix { PREFIX } else { "" };
        let ids = ranges.iter().flat_map(|range| range.start()..range.end());
        Ok(ids.map(|id| format!("{prefix}{id}")).collect())
    }

    async fn lease_range(&self, name: &str, count: i64, ttl_ms: i64) -> Result<RangeLease, Error> {
        if name == "order" {
            return Err(Error::invalid("name", "mode strict has no leases"));
        }
        let first = self.take(name, count).await?;
        Ok(RangeLease { first, count, step: 1, ttl_ms })
    }

    async fn decode(&self, name: &str, id: &str) -> Result<Decoded, Error> {
        if !["order", "sharded"].contains(&name) {
            return Err(Error::unknown_type(name));
        }
        let number = id.strip_prefix(PREFIX).unwrap_or(id).parse::<i64>();
        let number = number.map_err(|_| Error::invalid("id", format!("id {id:?} is no number")))?;
        let plain = Decoded {
            id_type: name.to_owned(),
            mode: "strict",
            id: Some(number),
            text: format!("{PREFIX}{number}"),
            position: Some(number),
            at_ms: Some(1_700_000_000_000),
            node: Some("node-1".to_owned()),
            range_first: Some(1),
            range_count: Some(1_000),
            issued: number < self.next.load(Ordering::SeqCst),
            ..Decoded::default()
        };
        Ok(match name {
            "sharded" => Decoded {
                mode: "sharded",
                position: Some(number >> SHARD_BITS),
                shard: Some((number >> 8 & 63) as u8),
                app_id: Some(number & 255),
                ..plain
            },
            _ => plain,
        })
    }

    async fn describe(&self, name: &str) -> Result<TypeStatus, Error> {
        if name != "order" {
            return Err(Error::unknown_type(name));
        }
        let mut record = record(&TypeSpec::new(TypeName::parse(name)?));
        record.description = self.description.lock().unwrap().clone();
        record.prefix = PREFIX.to_owned();
        record.history = Some(History::new("h1"));
        record.options = TypeOptions { at_limit: AtLimit::Cycle, ..TypeOptions::default() };
        record.max_position = 1_000_000;
        let view = View {
            sealed: None,
            history: History::new("h1"),
            published_history: Some(History::new("h1")),
            cursor: 11,
            current: Some(IdRange::new(1, 1_001).unwrap()),
            update_id: 101,
            second: Some(IdRange::new(1_001, 3_001).unwrap()),
            used: 10,
            age_ms: 5,
            leased_end: 0,
        };
        let local = LocalSupply {
            left: 500,
            ranges: 2,
            ahead: 1,
            rate: Some(2.5),
            runway_s: Some(200.0),
            worker: None,
        };
        let exhausted_at_ms = Some(1_800_000_000_000);
        Ok(TypeStatus { record, view: Some(view), local: Some(local), exhausted_at_ms })
    }

    async fn create_type(&self, spec: TypeSpec, actor: &str) -> Result<TypeRecord, Error> {
        let instance = spec.instance.clone().unwrap_or_default();
        if !["1", "main"].contains(&instance.as_str()) {
            return Err(Error::new(ErrorCode::UnknownInstance, "no such instance"));
        }
        if !self.names.lock().unwrap().insert(spec.name.to_string()) {
            return Err(Error::new(ErrorCode::AlreadyExists, "the name is taken"));
        }
        let record = record(&spec);
        self.created.lock().unwrap().push((spec, actor.to_owned()));
        Ok(record)
    }

    async fn node_status(&self) -> NodeStatus {
        NodeStatus {
            node: "node-1".into(),
            version: "0.0.0",
            uptime_s: 7,
            ready: true,
            draining: false,
            types_loaded: 3,
            parts: vec![PartStatus {
                name: "store".into(),
                kind: "memory",
                reachable: false,
                error: Some("gone".into()),
            }],
        }
    }
}

/// The lowest bits of a sharded id, which its sequence does not count.
const SHARD_BITS: u32 = TypeOptions::SHARD_BITS;

/// The prefix of the string ids of every type.
const PREFIX: &str = "OD";

fn record(spec: &TypeSpec) -> TypeRecord {
    TypeRecord {
        next_id: 3_001,
        last_range: Some(2_000),
        version: 4,
        updated_ms: 2_000,
        ..TypeRecord::created(spec, InstanceId(1), 1_000)
    }
}

/// A running server.
pub struct Server {
    pub addr: SocketAddr,
    pub api: Arc<Counter>,
    pub stop: watch::Sender<bool>,
    registry: Registry,
    serving: JoinHandle<Served>,
    runtime: Runtime,
}

impl Server {
    pub fn start() -> Server {
        Server::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut ThriftConfig)) -> Server {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let mut config = ThriftConfig::new((Ipv4Addr::LOCALHOST, 0).into());
        change(&mut config);
        let registry = Registry::new();
        let metrics = Arc::new(ThriftMetrics::register(&registry).unwrap());
        let api = Arc::new(Counter::new());
        let (stop, stopped) = watch::channel(false);
        let server = runtime.block_on(ThriftServer::bind(config)).unwrap();
        let addr = server.local_addr();
        let serving = runtime.spawn(server.serve(Arc::clone(&api), metrics, stopped));
        Server { addr, api, stop, registry, serving, runtime }
    }

    /// Stops the server and waits for its end.
    pub fn stop(self) -> Served {
        self.stop.send_replace(true);
        self.join().0
    }

    /// Waits for the end of a server that was told to stop; gives the registry
    /// to look at.
    pub fn join(self) -> (Served, Registry) {
        let served = self.runtime.block_on(async {
            tokio::time::timeout(PATIENCE, self.serving).await.expect("the server ends").unwrap()
        });
        (served, self.registry)
    }

    /// The value of a counter or gauge; `label` is the value of its label, if
    /// it has one.
    pub fn metric(&self, name: &str, label: &str) -> u64 {
        metric(&self.registry, name, label)
    }

    /// A connection without a client.
    pub fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    pub fn client(&self) -> Client {
        client(self.addr, true, false)
    }

    /// That somebody else is still served.
    pub fn assert_goes_on(&self) {
        assert!(self.client().next_id("order".into()).unwrap() > 0);
    }
}

use idgen::front::thrift::generated::TIdGenServiceSyncClient;

/// See [`Server::metric`].
pub fn metric(registry: &Registry, name: &str, label: &str) -> u64 {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == name);
    let family = family.unwrap_or_else(|| panic!("no metric is called {name}"));
    let found = family.get_metric().iter().find(|metric| {
        let labels = metric.get_label();
        labels.is_empty() && label.is_empty() || labels.iter().any(|l| l.value() == label)
    });
    let found = found.unwrap_or_else(|| panic!("{name} has no {label:?}"));
    match family.get_field_type() {
        MetricType::HISTOGRAM => found.get_histogram().get_sample_count(),
        MetricType::GAUGE => found.get_gauge().get_value() as u64,
        _ => found.get_counter().get_value() as u64,
    }
}

/// Waits until `done`, by looking again and again; fails after [`PATIENCE`].
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let began = tokio::time::Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "never happened: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub type Client =
    IdGenServiceSyncClient<Box<dyn TInputProtocol + Send>, Box<dyn TOutputProtocol + Send>>;

/// The official blocking client.
pub fn client(addr: SocketAddr, framed: bool, compact: bool) -> Client {
    let mut channel = TTcpChannel::new();
    channel.open(addr).unwrap();
    let (read, write) = channel.split().unwrap();
    type Reader = Box<dyn Read + Send>;
    type Writer = Box<dyn Write + Send>;
    let (read, write): (Reader, Writer) = match framed {
        true => {
            (Box::new(TFramedReadTransport::new(read)), Box::new(TFramedWriteTransport::new(write)))
        }
        false => (
            Box::new(TBufferedReadTransport::new(read)),
            Box::new(TBufferedWriteTransport::new(write)),
        ),
    };
    match compact {
        true => IdGenServiceSyncClient::new(
            Box::new(TCompactInputProtocol::new(read)),
            Box::new(TCompactOutputProtocol::new(write)),
        ),
        false => IdGenServiceSyncClient::new(
            Box::new(TBinaryInputProtocol::new(read, true)),
            Box::new(TBinaryOutputProtocol::new(write, true)),
        ),
    }
}

/// A strict binary message: type 1 is a call; `body` is the arguments without
/// the final stop.
pub fn message(kind: u8, name: &str, seqid: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, 1, 0, kind];
    bytes.extend((name.len() as i32).to_be_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(seqid.to_be_bytes());
    bytes.extend(body);
    bytes.push(0);
    bytes
}

/// A binary string field.
pub fn text(id: i16, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![11];
    bytes.extend(id.to_be_bytes());
    bytes.extend((value.len() as i32).to_be_bytes());
    bytes.extend(value);
    bytes
}

/// `message` with its length before it.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = (message.len() as i32).to_be_bytes().to_vec();
    bytes.extend(message);
    bytes
}

/// The framed call `nextId(name)`.
pub fn next_id(name: &str, seqid: i32) -> Vec<u8> {
    framed(&message(1, "nextId", seqid, &text(1, name.as_bytes())))
}

/// The next frame, without its length; `None` at a clean end. A frame that is
/// cut fails the test.
pub fn read_frame(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    match stream.read(&mut length[..1]) {
        Ok(0) => return None,
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
        Err(error) => panic!("no reply: {error}"),
    }
    stream.read_exact(&mut length[1..]).expect("a whole length");
    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut frame).expect("a whole frame");
    Some(frame)
}

/// Everything until the server closes.
pub fn read_to_end(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return bytes,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return bytes,
            Err(error) => panic!("the server did not close: {error}"),
        }
    }
}

/// Checks that `reply` (strict binary, no frame) is a TApplicationException of
/// `kind` for `name` and `seqid`, and gives its message.
pub fn application_error(reply: &[u8], name: &str, seqid: i32, kind: i32) -> String {
    let mut protocol = TBinaryInputProtocol::new(reply, true);
    let header = protocol.read_message_begin().unwrap();
    assert_eq!(header.message_type, thrift::protocol::TMessageType::Exception);
    assert_eq!((header.name.as_str(), header.sequence_number), (name, seqid));
    let error = thrift::Error::read_application_error_from_in_protocol(&mut protocol).unwrap();
    assert_eq!(error.kind as i32, kind, "{}", error.message);
    error.message
}
