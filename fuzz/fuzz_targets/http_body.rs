//! Requests to the HTTP side of a whole node in memory, as text.
//!
//! Requests stand one after another, with a line `---` between them; the first
//! line of each is the method and the path, what follows is the body, sent as
//! JSON with the right token. No request may be answered with 500 or 504, and
//! every failure is a problem in JSON that says the same status.

#![no_main]

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use idgen::adapters::memory::{MemoryDispatcher, MemoryRangeStore};
use idgen::adapters::system::{SystemClock, SystemEntropy};
use idgen::domain::import::Table;
use idgen::domain::{Error, InstanceRecord, InstanceSpec};
use idgen::front::http::{Access, AdminToken, HttpConfig, bind};
use idgen::ports::{Dispatcher, DispatcherFactory, ForeignTable, ImportSource, RangeStore};
use idgen::service::access::AccessControl;
use idgen::service::{Ports, Service, ServiceConfig, ServiceMetrics};
use libfuzzer_sys::fuzz_target;
use prometheus::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const TOKEN: &str = "the-right-token";
/// One answer must come within this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Every Redis instance is the memory of this process: nothing leaves it.
struct Memory(Arc<MemoryDispatcher>);

impl DispatcherFactory for Memory {
    fn connect(&self, _: &InstanceRecord) -> Result<Arc<dyn Dispatcher>, Error> {
        Ok(self.0.clone())
    }
}

/// There is no other database.
struct Nothing;

#[async_trait::async_trait]
impl ImportSource for Nothing {
    async fn read(&self, _: &ForeignTable) -> Result<Table, Error> {
        Err(Error::invalid("source.url", "source.url leads nowhere here"))
    }
}

/// Made once, because it takes the time of hashing a password.
fn access() -> Access {
    static ACCESS: OnceLock<Access> = OnceLock::new();
    let made = ACCESS.get_or_init(|| {
        let accounts = Arc::new(MemoryRangeStore::new());
        let control =
            AccessControl::new(accounts, Arc::new(SystemEntropy), Arc::new(SystemClock));
        Access {
            admin: AdminToken::Token(TOKEN.to_owned()),
            control: Arc::new(control.expect("a hash of a password")),
            secure_cookies: false,
        }
    });
    made.clone()
}

async fn node() -> Arc<Service> {
    let store = Arc::new(MemoryRangeStore::new());
    let spec = InstanceSpec { name: "main".into(), url: "memory://".into() };
    store.add_instance(&spec, "fuzz").await.expect("a first instance");
    let config = ServiceConfig {
        node: "fuzz".to_owned(),
        deadline: Duration::from_millis(1_500),
        max_waiting: 100,
        refill_jobs: 4,
        takeover_grace: Duration::from_millis(250),
        store_kind: "memory",
        idle_after: Duration::from_secs(900),
        worker_lease: Duration::from_secs(900),
        site: None,
    };
    let ports = Ports {
        store: store.clone(),
        workers: store,
        factory: Arc::new(Memory(Arc::new(MemoryDispatcher::new(&SystemEntropy)))),
        entropy: Arc::new(SystemEntropy),
        clock: Arc::new(SystemClock),
        import_source: Arc::new(Nothing),
    };
    let metrics = ServiceMetrics::register(&Registry::new()).expect("new metrics");
    Arc::new(Service::start(config, ports, metrics).await.expect("a node in memory"))
}

/// Anything as a path: what cannot stand in one is written as HTTP has it.
fn path(text: &str) -> String {
    let mut path = String::from("/");
    for byte in text.trim_start_matches('/').bytes().take(2_000) {
        match byte {
            b'!'..=b'~' => path.push(char::from(byte)),
            _ => path.push_str(&format!("%{byte:02x}")),
        }
    }
    path
}

fuzz_target!(|text: &str| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let service = node().await;
        let config = HttpConfig {
            addr: Some(([127, 0, 0, 1], 0).into()),
            max_connections: 4,
            drain: Duration::ZERO,
        };
        let http = bind(config).await.expect("a port");
        let addr = http.local_addr().expect("an address");
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let serving = tokio::spawn(http.serve(service.clone(), Registry::new(), access(), None, stopped));
        let mut stream = TcpStream::connect(addr).await.expect("the server goes on");
        for request in text.split("\n---\n").take(16) {
            let (line, body) = request.split_once('\n').unwrap_or((request, ""));
            let (method, target) = line.split_once(' ').unwrap_or(("GET", line));
            let legal = method.bytes().all(|b| b.is_ascii_uppercase());
            if !legal || !(1..=10).contains(&method.len()) || ["CONNECT", "HEAD"].contains(&method)
            {
                continue;
            }
            let head = format!(
                "{method} {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
                 Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                path(target),
                body.len()
            );
            let answer = tokio::time::timeout(PATIENCE, exchange(&mut stream, head.as_bytes()));
            let Some((status, Some(body))) = answer.await.expect("an answer in time") else {
                // Closed, as after a bad request line, or an answer in pieces.
                stream = TcpStream::connect(addr).await.expect("the server goes on");
                continue;
            };
            check(request, status, &body);
        }
        drop(stream);
        stop.send_replace(true);
        serving.await.expect("the server ends");
        service.close().await;
    });
});

/// Status, media type and body of the answer; `None` if the peer closes. There is no
/// body where the answer comes in pieces, as the stream of events, which does not end.
async fn exchange(
    stream: &mut TcpStream,
    request: &[u8],
) -> Option<(u16, Option<(String, Vec<u8>)>)> {
    stream.write_all(request).await.ok()?;
    let mut bytes = Vec::new();
    let end = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let field = |name: &str| {
        let line = head.lines().find(|line| line.starts_with(name))?;
        Some(line[name.len()..].trim().to_owned())
    };
    let status = head.split(' ').nth(1)?.parse().ok()?;
    if field("transfer-encoding:").is_some() {
        return Some((status, None));
    }
    let length: usize = field("content-length:").and_then(|n| n.parse().ok()).unwrap_or(0);
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let kind = field("content-type:").unwrap_or_default();
    Some((status, Some((kind, bytes.split_off(end)))))
}

fn check(request: &str, status: u16, (kind, body): &(String, Vec<u8>)) {
    let shown = String::from_utf8_lossy(body);
    assert!(status != 500 && status != 504, "{request}\n{status} {shown}");
    // Refused before there was a request, by the HTTP library, without a word.
    if status < 400 || body.is_empty() && matches!(status, 400 | 414 | 431) {
        return;
    }
    assert_eq!(kind, "application/problem+json", "{request}\n{status} {shown}");
    let problem: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    assert_eq!(problem["status"], status, "{request}\n{shown}");
    assert!(problem["detail"].as_str().is_some_and(|text| !text.is_empty()), "{request}\n{shown}");
    assert!(status < 500 || problem["retriable"] == true, "{request}\n{shown}");
}
