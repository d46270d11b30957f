//! What a request allocates: nothing, where its id is at hand.
//!
//! The Thrift front with the service behind it, on the embedded store, and a client
//! of prepared bytes, all on one thread, whose allocations are counted. Time stands
//! still, so that nothing that the node does by timer is counted with the requests:
//! what is left is what they cost.

mod support;

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use idgen::adapters::embedded::EmbeddedStore;
use idgen::adapters::memory::MemoryDispatcher;
use idgen::adapters::mysql::MysqlImportSource;
use idgen::adapters::system::{SystemClock, SystemEntropy};
use idgen::domain::access::Role;
use idgen::domain::{Error, InstanceRecord, Mode, TypeName, TypeSpec};
use idgen::front::thrift::{ThriftConfig, ThriftMetrics, ThriftServer};
use idgen::ports::{Dispatcher, DispatcherFactory, RangeStore};
use idgen::service::access::{AccessControl, TokenSpec};
use idgen::service::{Ports, Service, ServiceConfig, ServiceMetrics};
use prometheus::Registry;
use support::TempFolder;
use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TCompactInputProtocol, TCompactOutputProtocol,
    TFieldIdentifier, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
    TStructIdentifier, TType,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Calls before the count begins: buffers have grown and ranges are leased.
const WARM_UP: usize = 4_096;
/// Calls that are counted.
const COUNTED: usize = 4_096;
/// Whole allocations per strict call, at most: a change that needs more should know
/// it. (Now and then a queue of tokio's allocates its next block.)
const MOST_STRICT: u64 = 5;
/// The first id. Those of one test are equally long in the compact protocol.
const FIRST: i64 = 1_000_000_000;

/// A node, and the only thread that it and its clients have.
struct Node {
    /// Holds the time up while it is there. Goes before the runtime, which waits for it.
    _frozen: std::sync::mpsc::Sender<()>,
    runtime: Runtime,
    addr: SocketAddr,
    /// Of a token for the type.
    token: String,
    _stop: watch::Sender<bool>,
    _folder: TempFolder,
}

struct Memory(Arc<MemoryDispatcher>);

impl DispatcherFactory for Memory {
    fn connect(&self, _: &InstanceRecord) -> Result<Arc<dyn Dispatcher>, Error> {
        Ok(self.0.clone())
    }
}

impl Node {
    /// With one type of `mode`, called `order`, whose ranges are longer than a test.
    fn start(mode: Mode) -> Node {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            // One for the time, and one for the store, which so works in order.
            .max_blocking_threads(2)
            .build()
            .unwrap();
        // Paused time goes on where everybody waits, which includes waiting for a
        // socket; but not while a blocking task runs.
        let (frozen, thawed) = std::sync::mpsc::channel::<()>();
        runtime.spawn_blocking(move || thawed.recv());

        let folder = TempFolder::new("allocations");
        let (stop, stopped) = watch::channel(false);
        let (addr, token) = runtime.block_on(async {
            let store = Arc::new(EmbeddedStore::open(folder.path()).unwrap());
            let mut spec = TypeSpec::new(TypeName::parse("order").unwrap());
            spec.mode = mode;
            if mode != Mode::Snowflake {
                spec.first_id = FIRST;
                spec.min_range = 1_000_000;
            }
            store.create_type(&spec, "test").await.unwrap();
            let config = ServiceConfig {
                node: "node-1".to_owned(),
                deadline: Duration::from_millis(1_500),
                max_waiting: 10_000,
                refill_jobs: 4,
                takeover_grace: Duration::from_millis(250),
                idle_after: Duration::from_secs(900),
                worker_lease: Duration::from_secs(900),
                site: None,
                store_kind: "embedded",
            };
            let clock = Arc::new(SystemClock);
            let access = AccessControl::new(store.clone(), Arc::new(SystemEntropy), clock);
            let access = Arc::new(access.unwrap());
            let spec = TokenSpec {
                name: "shop".to_owned(),
                role: Role::Issue,
                types: vec!["other".to_owned(), "ord*".to_owned()],
                quota: Some(1_000_000_000),
                certificate: false,
                expires_ms: None,
            };
            let (_, token) = access.add_token(spec, None, "test").await.unwrap();
            let ports = Ports {
                workers: store.clone(),
                store,
                factory: Arc::new(Memory(Arc::new(MemoryDispatcher::new(&SystemEntropy)))),
                entropy: Arc::new(SystemEntropy),
                clock: Arc::new(SystemClock),
                import_source: Arc::new(MysqlImportSource),
            };
            let registry = Registry::new();
            let service_metrics = ServiceMetrics::register(&registry).unwrap();
            let thrift_metrics = Arc::new(ThriftMetrics::register(&registry).unwrap());
            let service = Arc::new(Service::start(config, ports, service_metrics).await.unwrap());
            let config = ThriftConfig::new((Ipv4Addr::LOCALHOST, 0).into());
            let server = ThriftServer::bind(config).await.unwrap().guarded_by(access);
            let addr = server.local_addr();
            tokio::spawn(server.serve(service, thrift_metrics, stopped));
            (addr, token)
        });
        Node { _frozen: frozen, runtime, addr, token, _stop: stop, _folder: folder }
    }

    /// Allocations during `COUNTED` calls as `speak` tells, after a warm-up. All of
    /// them brought ids, which the last ones before and after prove.
    fn count(&self, speak: Speak) -> u64 {
        let mut client = self.runtime.block_on(Client::connect(self.addr, speak, &self.token));
        self.block_on(client.calls(WARM_UP));
        self.block_on(settle());
        let before = client.last_id();
        let counted =
            allocation_counter::measure(|| self.block_on(client.calls(COUNTED))).count_total;
        let ids = client.last_id() - before;
        assert!(ids >= COUNTED as i64, "{speak:?}: {ids} ids in {COUNTED} calls");
        counted
    }

    fn block_on(&self, future: impl Future<Output = ()>) {
        self.runtime.block_on(future);
    }
}

/// Lets what the node does in the background come to its end, or to where it waits
/// for time to pass: it works at the store, perhaps several times in a row, and each
/// round waits until the store has done what was asked of it before.
async fn settle() {
    for _ in 0..100 {
        tokio::task::spawn_blocking(|| ()).await.unwrap();
        tokio::task::yield_now().await;
    }
}

/// How a client calls.
#[derive(Clone, Copy, Debug)]
struct Speak {
    method: &'static str,
    framed: bool,
    compact: bool,
    /// Calls in one write.
    pipelined: usize,
    /// Whether it says who calls: once, or with each call where the method is getId.
    authenticated: bool,
}

/// The usual way: framed, binary, one call at a time.
const USUAL: Speak =
    Speak { method: "nextId", framed: true, compact: false, pipelined: 1, authenticated: false };

const WAYS: [Speak; 11] = [
    USUAL,
    Speak { pipelined: 32, ..USUAL },
    Speak { compact: true, ..USUAL },
    Speak { framed: false, ..USUAL },
    Speak { framed: false, compact: true, pipelined: 32, ..USUAL },
    Speak { method: "getId", ..USUAL },
    Speak { method: "getId", compact: true, pipelined: 32, ..USUAL },
    Speak { authenticated: true, ..USUAL },
    Speak { authenticated: true, pipelined: 32, compact: true, ..USUAL },
    Speak { authenticated: true, method: "getId", ..USUAL },
    Speak { authenticated: true, method: "getId", pipelined: 32, ..USUAL },
];

/// Prepared bytes, and room for their answers, which are always equally long.
struct Client {
    speak: Speak,
    stream: TcpStream,
    requests: Vec<u8>,
    replies: Vec<u8>,
}

impl Client {
    /// Makes the first call.
    async fn connect(addr: SocketAddr, speak: Speak, token: &str) -> Client {
        let mut stream = TcpStream::connect(addr).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let token = speak.authenticated.then_some(token);
        if let Some(token) = token.filter(|_| speak.method != "getId") {
            stream.write_all(&speak.request("authenticate", &[(1, token)])).await.unwrap();
            let mut reply = vec![0; 1_024];
            let length = stream.read(&mut reply).await.unwrap();
            assert!(length > 0 && length < 50, "{speak:?}: {:?}", &reply[..length]);
        }
        // The type stands behind the name of the caller.
        let request = match (speak.method, token) {
            ("getId", Some(token)) => speak.request("getId", &[(1, token), (2, "order")]),
            ("getId", None) => speak.request("getId", &[(2, "order")]),
            (method, _) => speak.request(method, &[(1, "order")]),
        };
        stream.write_all(&request).await.unwrap();
        // A reply is written at once, so that it arrives at once.
        let mut reply = vec![0; 1_024];
        let length = stream.read(&mut reply).await.unwrap();
        assert!(length > 0, "{speak:?}: no answer");
        speak.id(&reply[..length]);
        Client {
            speak,
            stream,
            requests: request.repeat(speak.pipelined),
            replies: vec![0; length * speak.pipelined],
        }
    }

    async fn calls(&mut self, count: usize) {
        for _ in 0..count / self.speak.pipelined {
            self.stream.write_all(&self.requests).await.unwrap();
            self.stream.read_exact(&mut self.replies).await.unwrap();
        }
    }

    fn last_id(&self) -> i64 {
        let length = self.replies.len() / self.speak.pipelined;
        self.speak.id(&self.replies[self.replies.len() - length..])
    }
}

impl Speak {
    /// A call of `method` with these texts.
    fn request(self, method: &str, texts: &[(i16, &str)]) -> Vec<u8> {
        let mut message = Vec::new();
        match self.compact {
            true => write(&mut TCompactOutputProtocol::new(&mut message), method, texts),
            false => write(&mut TBinaryOutputProtocol::new(&mut message, true), method, texts),
        }
        let length = (message.len() as i32).to_be_bytes();
        match self.framed {
            true => [&length[..], &message].concat(),
            false => message,
        }
    }

    /// The id in a reply.
    fn id(self, reply: &[u8]) -> i64 {
        let message = &reply[if self.framed { 4 } else { 0 }..];
        match self.compact {
            true => self.read(&mut TCompactInputProtocol::new(message)),
            false => self.read(&mut TBinaryInputProtocol::new(message, true)),
        }
    }

    fn read(self, from: &mut dyn TInputProtocol) -> i64 {
        let header = from.read_message_begin().unwrap();
        assert_eq!((header.name.as_str(), header.sequence_number), (self.method, 7));
        assert_eq!(header.message_type, TMessageType::Reply);
        from.read_struct_begin().unwrap();
        let value = from.read_field_begin().unwrap();
        assert_eq!(value.id, Some(0), "{self:?} failed");
        if value.field_type == TType::Struct {
            from.read_struct_begin().unwrap();
            from.read_field_begin().unwrap();
            assert_eq!(from.read_i32().unwrap(), 200, "{self:?} failed");
            from.read_field_end().unwrap();
            from.read_field_begin().unwrap();
        }
        from.read_i64().unwrap()
    }
}

fn write(out: &mut dyn TOutputProtocol, method: &str, texts: &[(i16, &str)]) {
    let header = TMessageIdentifier::new(method, TMessageType::Call, 7);
    out.write_message_begin(&header).unwrap();
    out.write_struct_begin(&TStructIdentifier::new("args")).unwrap();
    for (id, text) in texts {
        out.write_field_begin(&TFieldIdentifier::new("text", TType::String, *id)).unwrap();
        out.write_string(text).unwrap();
        out.write_field_end().unwrap();
    }
    out.write_field_stop().unwrap();
    out.write_struct_end().unwrap();
    out.write_message_end().unwrap();
}

/// That calls for ids at hand allocate nothing, in whichever way they come.
fn assert_none(node: &Node) {
    let counted = WAYS.map(|speak| (speak, node.count(speak)));
    let wrong: Vec<_> = counted.iter().filter(|(_, count)| *count != 0).collect();
    assert!(wrong.is_empty(), "allocations in {COUNTED} calls: {wrong:#?}");
}

#[test]
fn a_segment_id_costs_no_allocation() {
    assert_none(&Node::start(Mode::Segment));
}

#[test]
fn a_snowflake_id_costs_no_allocation() {
    assert_none(&Node::start(Mode::Snowflake));
}

/// A strict call waits for its dispatcher, in a queue. The dispatcher in memory is
/// the cheapest, so this is what the service itself needs. That it is not nothing
/// shows that the work of the node is counted at all.
#[test]
fn a_strict_id_costs_few_allocations() {
    let node = Node::start(Mode::Strict);
    for speak in WAYS {
        let counted = node.count(speak);
        println!("{speak:?}: {:.3} per call", counted as f64 / COUNTED as f64);
        assert!(counted > 0, "{speak:?}: nothing was counted");
        let each = counted / COUNTED as u64;
        assert!(each <= MOST_STRICT, "{speak:?}: {counted} allocations in {COUNTED} calls");
    }
}
