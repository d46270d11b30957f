//! `make bench-micro`: what the parts of one request cost, each alone on one thread.
//!
//! No sockets and no other process, so that a part can be told from the kernel, and
//! a change of some nanoseconds from the noise. docs/performance.md says what each
//! one is.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use aes::Aes256;
use criterion::{Criterion, Throughput};
use fpe::ff1::{FF1, FlexibleNumeralString};
use futures_util::FutureExt;
use idgen::adapters::memory::{MemoryDispatcher, MemoryRangeStore};
use idgen::adapters::mysql::MysqlImportSource;
use idgen::adapters::system::{SystemClock, SystemEntropy};
use idgen::domain::calendar::Zone;
use idgen::domain::format::Format;
use idgen::domain::id_map::IdMap;
use idgen::domain::snowflake::Layout;
use idgen::domain::{
    Error, IdRange, InstanceId, InstanceRecord, InstanceSpec, Mode, Opaque, OpaqueKey, TypeName,
    TypeRecord, TypeSpec,
};
use idgen::front::thrift::ThriftMetrics;
use idgen::front::thrift::bench::{self as front, Exchange};
use idgen::front::thrift::wire::{Dialect, Protocol, Scanner};
use idgen::ports::{Dispatcher, DispatcherFactory, RangeStore};
use idgen::service::api::IdApi;
use idgen::service::{Ports, Service, ServiceConfig, ServiceMetrics, bench as service};
use prometheus::Registry;
use thrift::protocol::{
    TBinaryOutputProtocol, TCompactOutputProtocol, TFieldIdentifier, TMessageIdentifier,
    TMessageType, TOutputProtocol, TStructIdentifier, TType,
};
use tokio::runtime::Runtime;

/// Nine digits, as ids that are in use for a while have.
const ID: i64 = 123_456_789;
/// 2026-11-22 in the morning, in milliseconds of the Unix epoch.
const MORNING_MS: i64 = 1_795_334_400_000;

const DIALECTS: [(&str, Dialect); 2] = [
    ("binary", Dialect { framed: true, protocol: Protocol::Binary }),
    ("compact", Dialect { framed: true, protocol: Protocol::Compact }),
];

fn main() -> ExitCode {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --benches` runs this too, and must not measure.
        println!("run by `make bench-micro`, or `cargo bench --bench micro`");
        return ExitCode::SUCCESS;
    }
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    thrift(&mut criterion);
    calls(&mut criterion);
    supply(&mut criterion);
    opaque(&mut criterion);
    snowflake(&mut criterion);
    texts(&mut criterion);
    criterion.final_summary();
    ExitCode::SUCCESS
}

/// Reading a request and writing its reply.
fn thrift(criterion: &mut Criterion) {
    for (name, dialect) in DIALECTS {
        let framed = request(dialect, "order");
        let message = &framed[4..];
        criterion.bench_function(&format!("thrift/scan/{name}"), |b| {
            b.iter(|| {
                let mut scanner = Scanner::new(dialect.protocol, message.len());
                scanner.whole(black_box(message)).expect("a request");
                *scanner.args()
            });
        });
        let mut out = Vec::with_capacity(256);
        criterion.bench_function(&format!("thrift/reply/{name}"), |b| {
            b.iter(|| {
                out.clear();
                front::reply(&mut out, dialect, black_box(ID));
            });
        });
        criterion.bench_function(&format!("thrift/reply_generated/{name}"), |b| {
            b.iter(|| {
                out.clear();
                front::generated_reply(&mut out, dialect, black_box(ID));
            });
        });
    }
}

/// Whole calls: bytes in, bytes out, with the service behind the front.
fn calls(criterion: &mut Criterion) {
    let node = Node::start();
    for id_type in ["segment", "snowflake"] {
        criterion.bench_function(&format!("service/next_id/{id_type}"), |b| {
            b.iter(|| at_hand(node.service.next_id(black_box(id_type))).expect("an id"));
        });
        for (name, dialect) in DIALECTS {
            let mut exchange = node.exchange();
            let request = request(dialect, id_type);
            criterion.bench_function(&format!("call/{id_type}/{name}"), |b| {
                b.iter(|| at_hand(exchange.answer(black_box(&request))).len());
            });
        }
        let mut exchange = node.exchange();
        let pipeline = request(DIALECTS[0].1, id_type).repeat(32);
        let mut group = criterion.benchmark_group("call_of_32");
        group.throughput(Throughput::Elements(32));
        group.bench_function(format!("{id_type}/binary"), |b| {
            b.iter(|| at_hand(exchange.answer(black_box(&pipeline))).len());
        });
        group.finish();
    }
}

/// Where a call for a segment type goes within the service.
fn supply(criterion: &mut Criterion) {
    let all = IdRange::new(1, i64::MAX).expect("a range");
    let take = service::takes_of(all);
    criterion.bench_function("segment/take", |b| b.iter(|| take().expect("a position")));

    for count in [10, 100_000] {
        let names = (0..count).map(|at| name(&format!("order-{at}")));
        let record = |name| TypeRecord::created(&TypeSpec::new(name), InstanceId(1), 0);
        let types = service::Types::new(names.map(record));
        criterion.bench_function(&format!("catalogue/get/of_{count}"), |b| {
            b.iter(|| assert!(types.knows(black_box("order-7"))));
        });
    }
    criterion.bench_function("name/parse", |b| {
        b.iter(|| TypeName::parse(black_box("shop.order-line:eu")));
    });
}

/// Ids that hide how many there are.
fn opaque(criterion: &mut Criterion) {
    let key = [7; 32];
    let spec = TypeSpec {
        mode: Mode::Segment,
        options: idgen::domain::TypeOptions {
            opaque: Some(Opaque { slices: 16 }),
            ..Default::default()
        },
        key: Some(OpaqueKey::new(key)),
        ..TypeSpec::new(name("order"))
    };
    let map = IdMap::new(&TypeRecord::created(&spec, InstanceId(1), 0)).expect("a type");
    let mut position = 0;
    criterion.bench_function("opaque/id", |b| {
        b.iter(|| {
            position += 1;
            map.id(position, None)
        });
    });
    criterion.bench_function("opaque/decode", |b| b.iter(|| map.position(black_box(ID))));

    // One step of the permutation: most ids take one, some two.
    let cipher = FF1::<Aes256>::new(&key, 27_555).expect("a radix that FF1 allows");
    let numerals = FlexibleNumeralString::from(vec![0, 4, 480, 13_269]);
    criterion.bench_function("opaque/ff1", |b| {
        b.iter(|| cipher.encrypt(black_box(&[0; 10]), black_box(&numerals)).expect("long enough"));
    });
}

fn snowflake(criterion: &mut Criterion) {
    let layout = Layout::default();
    criterion.bench_function("snowflake/decode", |b| {
        b.iter(|| layout.decompose(black_box(1_600_000_000_000_000_000)));
    });
}

/// Ids as texts, and back.
fn texts(criterion: &mut Criterion) {
    let date = Zone::parse(None).expect("UTC").moment(MORNING_MS);
    let formats = [
        ("plain", "{prefix}{seq}"),
        ("date", "{prefix}{date:yyMMdd}{seq:09}"),
        ("check", "4000{seq:010}{check:luhn}"),
    ];
    for (name, text) in formats {
        let format = Format::parse(text).expect("a format");
        criterion.bench_function(&format!("format/write/{name}"), |b| {
            b.iter(|| format.write("P", black_box(ID), black_box(date)));
        });
        let written = format.write("P", ID, date);
        criterion.bench_function(&format!("format/read/{name}"), |b| {
            b.iter(|| format.read("P", black_box(&written)).expect("its own text"));
        });
    }
    criterion.bench_function("format/parse", |b| {
        b.iter(|| Format::parse(black_box("{prefix}{date:yyMMdd}{seq:09}")));
    });
}

fn name(text: &str) -> TypeName {
    TypeName::parse(text).expect("a legal name")
}

/// The outcome of what must not have to wait.
fn at_hand<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("an id at hand")
}

/// The framed call `nextId(id_type)`.
fn request(dialect: Dialect, id_type: &str) -> Vec<u8> {
    let mut message = Vec::new();
    match dialect.protocol {
        Protocol::Binary => write(&mut TBinaryOutputProtocol::new(&mut message, true), id_type),
        Protocol::Compact => write(&mut TCompactOutputProtocol::new(&mut message), id_type),
    }
    .expect("a short message");
    [&(message.len() as u32).to_be_bytes()[..], &message].concat()
}

fn write(out: &mut dyn TOutputProtocol, id_type: &str) -> thrift::Result<()> {
    out.write_message_begin(&TMessageIdentifier::new("nextId", TMessageType::Call, 7))?;
    out.write_struct_begin(&TStructIdentifier::new("nextId_args"))?;
    out.write_field_begin(&TFieldIdentifier::new("idType", TType::String, 1))?;
    out.write_string(id_type)?;
    out.write_field_end()?;
    out.write_field_stop()?;
    out.write_struct_end()?;
    out.write_message_end()
}

/// A service in memory with the types `segment` and `snowflake`, whose ids are at hand.
struct Node {
    service: Arc<Service>,
    /// For what the service does in the background.
    _runtime: Runtime,
}

struct Memory(Arc<MemoryDispatcher>);

impl DispatcherFactory for Memory {
    fn connect(&self, _: &InstanceRecord) -> Result<Arc<dyn Dispatcher>, Error> {
        Ok(self.0.clone())
    }
}

impl Node {
    fn start() -> Node {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let service = runtime.block_on(async {
            let store = Arc::new(MemoryRangeStore::new());
            let instance = InstanceSpec { name: "main".into(), url: "memory://".into() };
            store.add_instance(&instance, "bench").await.expect("an instance");
            // Ranges that outlast the run.
            let mut segment = TypeSpec::new(name("segment"));
            segment.mode = Mode::Segment;
            segment.min_range = TypeSpec::LONGEST_RANGE;
            segment.max_range = TypeSpec::LONGEST_RANGE;
            store.create_type(&segment, "bench").await.expect("a type");
            // A million ids in a millisecond, so that none has to wait for the next.
            let mut snowflake = TypeSpec::new(name("snowflake"));
            snowflake.mode = Mode::Snowflake;
            snowflake.options.snowflake =
                Some(Layout { worker_bits: 1, sequence_bits: 20, ..Layout::default() });
            store.create_type(&snowflake, "bench").await.expect("a type");

            let config = ServiceConfig {
                node: "node-1".to_owned(),
                deadline: Duration::from_millis(1_500),
                max_waiting: 10_000,
                refill_jobs: 4,
                takeover_grace: Duration::from_millis(250),
                idle_after: Duration::from_secs(900),
                worker_lease: Duration::from_secs(900),
                site: None,
                store_kind: "memory",
            };
            let ports = Ports {
                workers: store.clone(),
                store,
                factory: Arc::new(Memory(Arc::new(MemoryDispatcher::new(&SystemEntropy)))),
                entropy: Arc::new(SystemEntropy),
                clock: Arc::new(SystemClock),
                import_source: Arc::new(MysqlImportSource),
            };
            let metrics = ServiceMetrics::register(&Registry::new()).expect("new metrics");
            let service = Service::start(config, ports, metrics).await.expect("a service");
            for id_type in ["segment", "snowflake"] {
                service.next_id(id_type).await.expect("the first id");
            }
            Arc::new(service)
        });
        Node { service, _runtime: runtime }
    }

    fn exchange(&self) -> Exchange<Service> {
        let metrics = ThriftMetrics::register(&Registry::new()).expect("new metrics");
        Exchange::new(self.service.clone(), metrics)
    }
}
