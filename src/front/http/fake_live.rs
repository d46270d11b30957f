//! A live view in memory, and the tests of its addresses.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{Fake, Server, TOKEN, access};
use super::tests::{call, get};
use crate::domain::{Error, TypeName};
use crate::ports::TypeCounts;
use crate::service::api::IdApi;
use crate::service::live::api::{
    About, Attention, Changed, Event, Events, InstanceState, Kind, LiveApi, NodeReport, Overview,
    Part, Scope, Series, SeriesRange, Severity, Span, StoreState, TypeLive,
};

const NOW_MS: i64 = 1_700_000_000_000;

/// What the live view of the fake holds.
#[derive(Default)]
pub(crate) struct FakeLive {
    /// Events beyond the first two never end.
    endless: bool,
    /// How many events were asked for.
    asked: Arc<AtomicU64>,
    /// How many streams have ended.
    ended: Arc<AtomicU64>,
    /// What the HTTP side said that it served: ids, and errors.
    pub(super) served: (u64, u64),
}

pub(crate) struct FakeEvents {
    waiting: VecDeque<Event>,
    endless: bool,
    asked: Arc<AtomicU64>,
    ended: Arc<AtomicU64>,
}

impl Drop for FakeEvents {
    fn drop(&mut self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl Events for FakeEvents {
    async fn next(&mut self) -> Option<Event> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.waiting.pop_front() {
            Some(event) => Some(event),
            None if self.endless => {
                let types = vec!["x".repeat(100); 500];
                Some(Event::Changed(Changed { types, ..Changed::default() }))
            }
            None => std::future::pending().await,
        }
    }
}

fn overview() -> Overview {
    Overview {
        at_ms: NOW_MS,
        node: "here:5900".to_owned(),
        ids_per_s: 12.5,
        calls_per_s: 2.0,
        errors_per_s: 0.0,
        nodes: vec![NodeReport {
            node: "here:5900".to_owned(),
            version: "0.1.0".to_owned(),
            started_ms: NOW_MS - 7_000,
            at_ms: NOW_MS,
            age_ms: 0,
            silent: false,
            draining: false,
            thrift: "0.0.0.0:5900".to_owned(),
            http: "0.0.0.0:5980".to_owned(),
            ids_per_s: 12.5,
            calls_per_s: 2.0,
            errors_per_s: 0.0,
            types_loaded: 3,
            parts: vec![Part {
                name: "main".to_owned(),
                kind: "redis".to_owned(),
                reachable: true,
                error: None,
            }],
        }],
        instances: vec![InstanceState {
            id: 1,
            name: "main".to_owned(),
            url: "redis://idgen:***@cache.example:6379".to_owned(),
            reachable: true,
            round_trip_us: 250,
            history: Some("h1".to_owned()),
            error: None,
            types: 3,
            drain_to: None,
            memory_bytes: Some(1_024),
            role: Some("master".to_owned()),
            version: Some("7.0.15".to_owned()),
        }],
        store: StoreState { kind: "mysql", reachable: true, round_trip_us: Some(300), error: None },
        types: TypeCounts { active: 3, retired: 1 },
        attention: vec![Attention {
            kind: Kind::LimitNear,
            severity: Severity::Warning,
            subject: About { id_type: Some("order".to_owned()), ..About::default() },
            detail: "order nears its highest id: at the present rate the limit is reached in 20 \
                     days; 97.5 % of its ids are allocated, 21600000 are left."
                .to_owned(),
            runway_s: None,
            at_ms: Some(NOW_MS + 20 * 86_400_000),
            count: None,
            left: Some("21600000".to_owned()),
        }],
    }
}

impl LiveApi for Fake {
    type Events = FakeEvents;

    async fn overview(&self) -> Arc<Overview> {
        Arc::new(overview())
    }

    fn series(&self, span: Span) -> Series {
        Series {
            span,
            from_ms: NOW_MS - 20_000,
            to_ms: NOW_MS,
            step_ms: 10_000,
            scope: Scope::Cluster,
            at_ms: vec![NOW_MS - 20_000, NOW_MS - 10_000],
            ids_per_s: vec![None, Some(2.5)],
            ranges: None,
        }
    }

    async fn type_series(&self, name: &str, span: Span) -> Result<Series, Error> {
        let record = self.describe(name).await?.record;
        let range = SeriesRange {
            at_ms: NOW_MS,
            start: record.next_id,
            end: record.next_id + 1_000,
            length: 1_000,
            refill_ms: Some(3),
            owner: "here:5900".to_owned(),
        };
        Ok(Series { ranges: Some(vec![range]), ..self.series(span) })
    }

    fn watch(&self, names: Vec<TypeName>) -> FakeEvents {
        let held = self.0.lock().unwrap();
        let known = names.iter().filter_map(|name| held.types.get(name));
        let items = known.map(|record| TypeLive {
            name: record.name.clone(),
            version: record.version,
            rate: Some(10.0),
            rate_of: Scope::Cluster,
            runway_s: Some(100.0),
            exhausted_at_ms: None,
            view: Some(super::fake::view_of(record)),
            local: None,
            last_load_ms: None,
        });
        let types = Event::Types { at_ms: NOW_MS, items: items.collect() };
        FakeEvents {
            waiting: [Event::Overview(Arc::new(overview())), types].into(),
            endless: held.live.endless,
            asked: held.live.asked.clone(),
            ended: held.live.ended.clone(),
        }
    }

    fn served(&self, result: Result<u64, &Error>) {
        let served = &mut self.0.lock().unwrap().live.served;
        match result {
            Ok(ids) => served.0 += ids,
            Err(_) => served.1 += 1,
        }
    }
}

/// An open stream.
struct Open {
    reader: BufReader<TcpStream>,
}

impl Open {
    fn start(server: &Server, query: &str) -> Self {
        let mut stream = TcpStream::connect(server.addr).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let request = format!(
            "GET /api/v1/stream{query} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        Open { reader: BufReader::new(stream) }
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
        }
    }

    /// The status and the headers.
    fn head(&mut self) -> String {
        let mut head = String::new();
        while let Some(line) = self.line().filter(|line| !line.is_empty()) {
            head.push_str(&line.to_lowercase());
            head.push('\n');
        }
        head
    }

    /// The next event, with what else its lines say.
    fn event(&mut self) -> Option<(String, Value, String)> {
        let (mut name, mut data, mut rest) = (String::new(), None, String::new());
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some(("event", value)) => name = value.to_owned(),
                Some(("data", value)) => data = Some(serde_json::from_str(value).unwrap()),
                Some(("retry", _)) => rest = line.clone(),
                // The length of a chunk, or an empty line.
                _ => {}
            }
            if line.is_empty()
                && let Some(data) = data.take()
            {
                return Some((name, data, rest));
            }
        }
    }
}

fn with_type(server: &Server, name: &str, first_id: &str) {
    let body = json!({"name": name, "first_id": first_id});
    assert_eq!(call(server, "POST", "/types", body).status, 201);
}

#[test]
fn a_stream_says_hello_and_how_things_are() {
    let server = Server::start();
    with_type(&server, "order", "9007199254740993");
    let mut stream = Open::start(&server, "?types=order,nothing&ids=string");
    let head = stream.head();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    assert_eq!(head.matches("cache-control").count(), 1, "{head}");

    let (name, hello, retry) = stream.event().unwrap();
    assert_eq!((name.as_str(), retry.as_str()), ("hello", "retry: 1000"));
    assert_eq!(hello, json!({"node": "here:5900", "version": "0.1.0", "at_ms": NOW_MS}));
    let (name, told, _) = stream.event().unwrap();
    assert_eq!(name, "overview");
    assert_eq!(told["instances"][0]["id"], 1, "numbers of instances are no ids");
    assert_eq!(told["store"]["round_trip_us"], 300);
    let (name, types, _) = stream.event().unwrap();
    assert_eq!(name, "types");
    assert_eq!(types["items"].as_array().unwrap().len(), 1);
    assert_eq!(types["items"][0]["dispatcher"]["cursor"], "9007199254740993");
    assert_eq!(types["items"][0]["rate_of"], "cluster");

    assert_eq!(get(&server, "/overview?ids=string").json(), told);
    get(&server, "/stream?types={").problem(400, "INVALID_ARGUMENT");
    get(&server, "/stream?typos=a").problem(400, "INVALID_ARGUMENT");
}

#[test]
fn series_by_their_addresses() {
    let server = Server::start();
    with_type(&server, "order", "5");
    let all = get(&server, "/series").json();
    assert_eq!(all["span"], "hour");
    assert_eq!(all["ids_per_s"], json!([null, 2.5]));
    assert!(all.get("ranges").is_none());
    assert_eq!(get(&server, "/series?span=week&ids=string").json()["span"], "week");
    let one = get(&server, "/types/order/series?span=day&ids=string").json();
    assert_eq!(one["span"], "day");
    assert_eq!(one["ranges"][0]["start"], "5");
    assert_eq!(one["ranges"][0]["length"], 1_000);
    get(&server, "/series?span=year").problem(400, "INVALID_ARGUMENT");
    get(&server, "/types/nothing/series").problem(404, "UNKNOWN_TYPE");
}

#[test]
fn a_stream_too_many_is_told_to_come_again() {
    let server = Server::with(access(), 100);
    let mut open: Vec<_> = (0..64).map(|_| Open::start(&server, "")).collect();
    for stream in &mut open {
        assert!(stream.head().starts_with("http/1.1 200"));
    }
    let problem = get(&server, "/stream").problem(503, "OVERLOADED");
    assert_eq!(problem["retriable"], true);
    // One that ends makes room.
    drop(open.pop());
    let ended = server.fake.0.lock().unwrap().live.ended.clone();
    let bound = std::time::Duration::from_secs(10);
    let began = tokio::time::Instant::now();
    while ended.load(Ordering::SeqCst) == 0 {
        assert!(began.elapsed() < bound, "the server does not notice");
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut next = Open::start(&server, "");
    assert!(next.head().starts_with("http/1.1 200"));
}

#[test]
fn the_end_of_the_server_ends_streams_at_once() {
    let mut server = Server::start();
    let mut stream = Open::start(&server, "");
    for _ in 0..3 {
        stream.event().unwrap();
    }
    let began = tokio::time::Instant::now();
    server.stop();
    assert_eq!(stream.event(), None);
    let mut rest = String::new();
    stream.reader.read_to_string(&mut rest).unwrap();
    // Before the end of the drain time, after which it would be cut.
    assert!(began.elapsed() < Duration::from_millis(150), "{:?}", began.elapsed());
}

#[test]
fn nothing_piles_up_for_a_client_that_does_not_read() {
    let server = Server::start();
    server.fake.0.lock().unwrap().live.endless = true;
    let mut stream = Open::start(&server, "");
    stream.head();
    let asked = server.fake.0.lock().unwrap().live.asked.clone();
    let mut before = 0;
    let began = tokio::time::Instant::now();
    loop {
        assert!(began.elapsed() < Duration::from_secs(20), "it is asked for ever");
        std::thread::sleep(Duration::from_millis(300)); // how long nothing must happen
        let now = asked.load(Ordering::SeqCst);
        if now > 2 && now == before {
            break;
        }
        before = now;
    }
    // Each event has 50 KB; what was asked for is in buffers of bounded size.
    assert!(before < 200, "{before} events of 50 KB");
    assert!(stream.event().is_some());
}

#[test]
fn ids_that_are_handed_out_here_count() {
    let server = Server::start();
    with_type(&server, "order", "1");
    assert_eq!(call(&server, "POST", "/types/order/ids?count=7", Value::Null).status, 200);
    assert_eq!(call(&server, "POST", "/types/order/ids?count=3&as=text", Value::Null).status, 200);
    call(&server, "POST", "/types/nothing/ids", Value::Null).problem(404, "UNKNOWN_TYPE");
    assert_eq!(server.fake.0.lock().unwrap().live.served, (10, 1));
}
