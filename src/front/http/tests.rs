//! The HTTP side over real connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::fake::{Server, TOKEN};
use super::*;

pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) kind: String,
    pub(super) body: String,
    pub(super) headers: ureq::http::HeaderMap,
}

impl Reply {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// Asserts that it is a problem of this status and code, and returns it.
    pub(super) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.kind, "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["code"], code);
        assert_eq!(problem["type"], format!("urn:idgen:error:{code}"));
        assert!(!problem["title"].as_str().unwrap().is_empty());
        assert!(!problem["detail"].as_str().unwrap().is_empty());
        assert!(problem["retriable"].is_boolean());
        problem
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(20)))
        .build()
        .into()
}

pub(super) fn send(
    server: &Server,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let mut request =
        ureq::http::Request::builder().method(method).uri(format!("{}{path}", server.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = agent().run(request.body(body.to_owned()).unwrap()).unwrap();
    let kind = answer.headers().get("content-type");
    Reply {
        status: answer.status().as_u16(),
        kind: kind.map_or(String::new(), |v| v.to_str().unwrap().to_owned()),
        headers: answer.headers().clone(),
        body: answer.body_mut().read_to_string().unwrap(),
    }
}

/// A request with the right token, the JSON type and an actor.
pub(super) fn call(server: &Server, method: &str, path: &str, body: Value) -> Reply {
    let token = format!("Bearer {TOKEN}");
    let headers = [
        ("authorization", token.as_str()),
        ("content-type", "application/json"),
        ("x-idgen-actor", "alice"),
    ];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send(server, method, &format!("/api/v1{path}"), &headers, &body)
}

/// An address of the document with its parameters, which names nothing that is there.
/// A stream is one that is refused, because the others have no end to wait for.
pub(super) fn filled_in(path: &str) -> String {
    let path = path.replace("{name}", "nobody-there").replace("{id}", "1");
    if path == "/stream" { path + "?types=~" } else { path }
}

pub(super) fn get(server: &Server, path: &str) -> Reply {
    call(server, "GET", path, Value::Null)
}

#[test]
fn health_and_metrics_need_no_token() {
    let server = Server::start();
    assert_eq!(send(&server, "GET", "/healthz", &[], "").status, 200);
    assert_eq!(send(&server, "GET", "/", &[], "").status, 200);
    let metrics = send(&server, "GET", "/metrics", &[], "");
    assert_eq!(metrics.status, 200);
    assert!(metrics.kind.starts_with("text/plain"), "{}", metrics.kind);
    assert!(metrics.body.contains("idgen_test_total 0"), "{}", metrics.body);

    let ready = send(&server, "GET", "/readyz", &[], "");
    assert_eq!((ready.status, &ready.json()["ready"]), (200, &json!(true)));
    server.fake.0.lock().unwrap().not_ready = true;
    let ready = send(&server, "GET", "/readyz", &[], "");
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["reasons"], json!(["main (redis): connection refused"]));
    send(&server, "GET", "/nothing", &[], "").problem(404, "NO_SUCH_ADDRESS");
    send(&server, "POST", "/healthz", &[], "").problem(405, "METHOD_NOT_ALLOWED");
}

#[test]
fn the_admin_api_needs_the_right_token_everywhere() {
    let server = Server::start();
    let wrong = [
        vec![],
        vec![("authorization", "Bearer")],
        vec![("authorization", "Bearer ")],
        vec![("authorization", "Bearer the-wrong-token")],
        vec![("authorization", "Bearer the-right-toke")],
        vec![("authorization", "Bearer the-right-token2")],
        vec![("authorization", "Basic the-right-token")],
        vec![("authorization", "the-right-token")],
    ];
    for headers in &wrong {
        for (method, path) in [
            ("GET", "/types"),
            ("POST", "/types"),
            ("GET", "/types/order"),
            ("PATCH", "/types/order"),
            ("POST", "/types/order/retire"),
            ("POST", "/types/order/restore"),
            ("POST", "/types/order/ids"),
            ("POST", "/types/order/lease"),
            ("POST", "/types/order/reserve"),
            ("POST", "/types/preview"),
            ("POST", "/imports"),
            ("GET", "/export"),
            ("POST", "/types/order/rotate-key"),
            ("GET", "/types/order/decode"),
            ("GET", "/types/order/ranges"),
            ("GET", "/redis-instances"),
            ("POST", "/redis-instances"),
            ("POST", "/redis-instances/test"),
            ("DELETE", "/redis-instances/main"),
            ("GET", "/audit"),
            ("GET", "/node"),
            ("GET", "/nothing"),
            ("DELETE", "/types"),
        ] {
            let reply = send(&server, method, &format!("/api/v1{path}"), headers, "");
            let problem = reply.problem(401, "UNAUTHENTICATED");
            assert!(!problem.to_string().contains(TOKEN));
            assert_eq!(reply.headers["www-authenticate"], "Bearer");
        }
    }
    let scheme = [("authorization", "bearer the-right-token")];
    assert_eq!(send(&server, "GET", "/api/v1/node", &scheme, "").status, 200);
    get(&server, "/nothing").problem(404, "NO_SUCH_ADDRESS");
    let reply = call(&server, "DELETE", "/types", Value::Null);
    reply.problem(405, "METHOD_NOT_ALLOWED");
    assert!(reply.headers.contains_key("allow"));
}

#[test]
fn without_a_token_the_admin_api_is_closed_and_says_why() {
    let admin = AdminToken::Closed("set IDGEN_ADMIN_TOKEN".to_owned());
    let server = Server::with(Access { admin, ..fake::access() }, 4);
    let problem = get(&server, "/types").problem(403, "PERMISSION_DENIED");
    assert_eq!(problem["detail"], "set IDGEN_ADMIN_TOKEN");
    assert_eq!(send(&server, "GET", "/healthz", &[], "").status, 200);
}

#[test]
fn a_type_lives() {
    let server = Server::start();
    let body = json!({"name": "order", "prefix": "o-", "first_id": "9007199254740993"});
    let created = call(&server, "POST", "/types", body.clone());
    assert_eq!(created.status, 201, "{}", created.body);
    assert_eq!(created.headers["location"], "/api/v1/types/order");
    assert_eq!(created.headers["cache-control"], "no-store");
    // One above 2^53: exact as a number, and as text where that is asked for.
    assert!(created.body.contains("\"first_id\":9007199254740993,"));
    call(&server, "POST", "/types", body).problem(409, "ALREADY_EXISTS");

    let shown = get(&server, "/types/order?ids=string").json();
    assert_eq!(shown["next_id"], "9007199254740993");
    assert_eq!(shown["dispatcher"]["current"]["start"], "9007199254740993");
    assert_eq!(shown["version"], 1);
    get(&server, "/types/nothing").problem(404, "UNKNOWN_TYPE");
    let problem = get(&server, "/types/a%20b").problem(400, "INVALID_ARGUMENT");
    assert_eq!(problem["field"], "name");
    get(&server, "/types/%ff").problem(400, "INVALID_ARGUMENT");

    let patch = json!({"version": 1, "max_range": 5_000});
    let changed = call(&server, "PATCH", "/types/order", patch.clone());
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!(changed.json()["max_range"], 5_000);
    call(&server, "PATCH", "/types/order", patch).problem(409, "CONFLICT");

    let ids = call(&server, "POST", "/types/order/ids?count=3", Value::Null).json();
    let first = 9_007_199_254_740_993_i64;
    assert_eq!(ids, json!({"name": "order", "ids": [first, first + 1, first + 2]}));
    let one = call(&server, "POST", "/types/order/ids?ids=string", Value::Null).json();
    assert_eq!(one["ids"], json!(["9007199254740996"]));
    for count in ["0", "-1", "100001", "x", "1.5", "99999999999999999999"] {
        let path = format!("/types/order/ids?count={count}");
        let problem = call(&server, "POST", &path, Value::Null).problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], "count", "{problem}");
    }

    let retired = call(&server, "POST", "/types/order/retire", Value::Null);
    assert_eq!(retired.json()["state"], "retired");
    call(&server, "POST", "/types/order/ids", Value::Null).problem(409, "RETIRED");
    let restored = call(&server, "POST", "/types/order/restore", Value::Null);
    assert_eq!(restored.json()["state"], "active");

    let ranges = get(&server, "/types/order/ranges?limit=5").json();
    assert_eq!(ranges["items"][0]["owner"], "here:5900");
    let audit = get(&server, "/audit").json();
    assert_eq!(audit["items"][0]["actor"], "alice");
    assert_eq!(audit["items"].as_array().unwrap().len(), 4);
    assert_eq!(get(&server, "/node").json()["types_loaded"], 1);
}

#[test]
fn listings_have_pages_and_limits() {
    let server = Server::start();
    for name in ["a1", "a2", "b1"] {
        call(&server, "POST", "/types", json!({ "name": name }));
    }
    let names = |path: &str| {
        let page = get(&server, path).json();
        let items = page["items"].as_array().unwrap();
        let names: Vec<_> = items.iter().map(|t| t["name"].clone()).collect();
        (json!(names), page["more"].as_bool().unwrap())
    };
    assert_eq!(names("/types"), (json!(["a1", "a2", "b1"]), false));
    assert_eq!(names("/types?contains=a&limit=1"), (json!(["a1"]), true));
    assert_eq!(names("/types?contains=a&after=a1"), (json!(["a2"]), false));
    for query in ["limit=0", "limit=1001", "limit=x", "limit=-1"] {
        let problem = get(&server, &format!("/types?{query}")).problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], "limit", "{problem}");
    }
    let problem = get(&server, "/types?colour=red").problem(400, "INVALID_ARGUMENT");
    assert!(problem["detail"].as_str().unwrap().contains("colour"), "{problem}");
}

#[test]
fn bad_bodies_name_the_field_and_the_rule() {
    let server = Server::start();
    let headers = [
        ("authorization", "Bearer the-right-token"),
        ("content-type", "application/json; charset=utf-8"),
    ];
    let nested = format!("{{\"name\":{}", "[".repeat(10_000));
    let deep = "[".repeat(10_000);
    for (body, field, text) in [
        ("", None, "not JSON"),
        ("{", None, "not JSON"),
        (r#"["order"]"#, None, "object"),
        (deep.as_str(), None, "object"),
        (nested.as_str(), Some("name"), "sequence"),
        ("{}", None, "missing field `name`"),
        ("\u{0}", None, "not JSON"),
        (r#"{"name":"a"} x"#, None, "not JSON"),
        (r#"{"name":"a","name":"b"}"#, None, "duplicate field"),
        (r#"{"name":"a","colour":1}"#, Some("colour"), "unknown field"),
        (r#"{"name":7}"#, Some("name"), "string"),
        (r#"{"name":"a b"}"#, Some("name"), "1 to 128"),
        (r#"{"name":"a","mode":"wild"}"#, Some("mode"), "strict"),
        (r#"{"name":"a","max_id":9223372036854775808}"#, Some("max_id"), "2^63"),
        (r#"{"name":"a","max_id":9223372036854775807}"#, Some("max_id"), "9223372036854775806"),
        (r#"{"name":"a","max_id":"1e3"}"#, Some("max_id"), "decimal"),
        (r#"{"name":"a","max_id":1.5}"#, Some("max_id"), "decimal"),
        (r#"{"name":"a","min_range":0}"#, Some("min_range"), "from 1"),
        (r#"{"name":"a","min_range":"5"}"#, Some("min_range"), "i64"),
        (r#"{"name":"a","load_percentage":2}"#, Some("load_percentage"), "0 to 1"),
    ] {
        let reply = send(&server, "POST", "/api/v1/types", &headers, body);
        let problem = reply.problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"].as_str(), field, "{body:.40}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(text), "{body:.40}: {detail}");
        if let Some(field) = field {
            assert!(detail.contains(field), "{body:.40}: {detail}");
        }
    }
    let large = json!({"name": "a", "description": "x".repeat(70_000)}).to_string();
    let problem =
        send(&server, "POST", "/api/v1/types", &headers, &large).problem(413, "BODY_TOO_LARGE");
    assert!(problem["detail"].as_str().unwrap().contains("65536"));
    let plain = [headers[0], ("content-type", "text/plain")];
    send(&server, "POST", "/api/v1/types", &plain, "{}").problem(415, "NOT_JSON");
    send(&server, "POST", "/api/v1/types", &headers[..1], "{}").problem(415, "NOT_JSON");
    assert!(server.fake.0.lock().unwrap().types.is_empty());
}

#[test]
fn instances_are_tested_and_never_show_their_password() {
    let server = Server::start();
    let url = "rediss://app:s3cr3t@cache:6379/0";
    let added = call(&server, "POST", "/redis-instances", json!({"name": "main", "url": url}));
    assert_eq!(added.status, 201, "{}", added.body);
    assert_eq!(added.json()["url"], "rediss://app:***@cache:6379/0");
    let listed = get(&server, "/redis-instances");
    assert_eq!(listed.json()["items"][0]["check"]["reachable"], true);
    let audit = get(&server, "/audit");
    for reply in [&added, &listed, &audit] {
        assert!(!reply.body.contains("s3cr3t"), "{}", reply.body);
    }

    let down = json!({"name": "far", "url": "redis://:s3cr3t@down:1"});
    let reply = call(&server, "POST", "/redis-instances", down.clone());
    let problem = reply.problem(503, "UNAVAILABLE");
    assert_eq!(problem["retriable"], true);
    assert_eq!(reply.headers["retry-after"], "1");
    let mut untested = down;
    untested["test"] = json!(false);
    assert_eq!(call(&server, "POST", "/redis-instances", untested).status, 201);

    let test = |body| call(&server, "POST", "/redis-instances/test", body);
    assert_eq!(test(json!({"name": "main"})).json()["reachable"], true);
    assert_eq!(test(json!({"name": "far"})).json()["reachable"], false);
    assert_eq!(test(json!({"url": "redis://up:1"})).json()["reachable"], true);
    test(json!({"name": "nothing"})).problem(404, "UNKNOWN_INSTANCE");
    test(json!({})).problem(400, "INVALID_ARGUMENT");
    test(json!({"name": "main", "url": "redis://up"})).problem(400, "INVALID_ARGUMENT");
    for bad in ["memory://", "http://u:s3cr3t@h", "x"] {
        let problem = test(json!({ "url": bad })).problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], "url");
        assert!(!problem.to_string().contains("s3cr3t"));
    }

    let removed = call(&server, "DELETE", "/redis-instances/main", Value::Null);
    assert_eq!((removed.status, removed.body.as_str()), (204, ""));
    call(&server, "DELETE", "/redis-instances/main", Value::Null).problem(404, "UNKNOWN_INSTANCE");
}

#[test]
fn a_connection_too_many_is_told_and_the_others_go_on() {
    let server = Server::with(fake::access(), 1);
    // One whole exchange, so that the server has surely taken the connection.
    let mut first = TcpStream::connect(server.addr).unwrap();
    let ask = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut exchange = || {
        first.write_all(ask).unwrap();
        let mut buffer = [0; 4096];
        let length = first.read(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    assert!(exchange().starts_with("HTTP/1.1 200"));
    let mut second = TcpStream::connect(server.addr).unwrap();
    let mut text = String::new();
    second.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    assert!(exchange().starts_with("HTTP/1.1 200"));
}

#[test]
fn bytes_that_are_not_http_cost_one_connection() {
    let server = Server::start();
    for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"\x80\x01\x00\x01rest\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.addr).unwrap();
        stream.write_all(garbage).unwrap();
        let mut answer = Vec::new();
        // A reset counts as an end, too.
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
    let many: String = (0..100).map(|n| format!("X-{n}: y\r\n")).collect();
    let mut stream = TcpStream::connect(server.addr).unwrap();
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: x\r\n{many}\r\n").unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    assert!(text.starts_with("HTTP/1.1 431"), "{text}");
    assert_eq!(send(&server, "GET", "/healthz", &[], "").status, 200);
}

#[test]
fn a_stop_ends_idle_connections_and_cuts_what_does_not_finish() {
    let mut server = Server::start();
    let (entered, wait) = tokio::sync::oneshot::channel();
    server.fake.0.lock().unwrap().entered_slow = Some(entered);
    let mut idle = TcpStream::connect(server.addr).unwrap();
    let mut slow = TcpStream::connect(server.addr).unwrap();
    write!(
        slow,
        "POST /api/v1/types/slow/ids HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Length: 0\r\n\r\n"
    )
    .unwrap();
    wait.blocking_recv().unwrap();
    // Returns only when every connection has ended.
    server.stop();
    for stream in [&mut idle, &mut slow] {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
    assert!(TcpStream::connect(server.addr).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_ends_by_its_deadline() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let api = Arc::new(fake::Fake::default());
    let config = HttpConfig {
        addr: Some("127.0.0.1:0".parse().unwrap()),
        max_connections: 4,
        drain: Duration::ZERO,
    };
    let http = bind(config).await.unwrap();
    let addr = http.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let access = fake::access();
    let server = tokio::spawn(http.serve(api, Registry::new(), access, None, stopped));
    for (request, expected) in [
        (
            "POST /api/v1/types/slow/ids HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Authorization: Bearer the-right-token\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 504",
        ),
        (
            "POST /api/v1/types HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
             Authorization: Bearer the-right-token\r\nContent-Type: application/json\r\n\
             Content-Length: 9\r\n\r\n{",
            "HTTP/1.1 408",
        ),
        ("GET /healthz HTTP/1.1\r\nHos", ""),
        ("", ""),
    ] {
        let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text).await;
        assert!(text.starts_with(expected), "{request}: {text}");
        assert_eq!(text.is_empty(), expected.is_empty(), "{request}: {text}");
    }
    stop.send(true).unwrap();
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_cut() {
    use tokio::io::AsyncWriteExt;
    let config = HttpConfig {
        addr: Some("127.0.0.1:0".parse().unwrap()),
        max_connections: 4,
        drain: Duration::ZERO,
    };
    let http = bind(config).await.unwrap();
    let mut mute = tokio::net::TcpStream::connect(http.local_addr().unwrap()).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let api = Arc::new(fake::Fake::default());
    let access = fake::access();
    let server = tokio::spawn(http.serve(api, Registry::new(), access, None, stopped));
    let head = "Host: x\r\nAuthorization: Bearer the-right-token\r\n";
    let create = format!(
        "POST /api/v1/types HTTP/1.1\r\n{head}Content-Type: application/json\r\n\
         Content-Length: 12\r\n\r\n{{\"name\":\"a\"}}"
    );
    mute.write_all(create.as_bytes()).await.unwrap();
    let ask = format!(
        "POST /api/v1/types/a/ids?count=100000 HTTP/1.1\r\n{head}Content-Length: 0\r\n\r\n"
    );
    // Far more than the kernels hold.
    mute.write_all(ask.repeat(50).as_bytes()).await.unwrap();
    let began = tokio::time::Instant::now();
    while mute.try_write(b"x").is_ok() {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    // The age of a connection would end it as well, after 300 s.
    let took = began.elapsed();
    assert!((25..60).contains(&took.as_secs()), "{took:?}");
    stop.send(true).unwrap();
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_idle_connections() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let config = HttpConfig {
        addr: Some("127.0.0.1:0".parse().unwrap()),
        max_connections: 4,
        drain: Duration::from_secs(3_600),
    };
    let http = bind(config).await.unwrap();
    let mut idle = tokio::net::TcpStream::connect(http.local_addr().unwrap()).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let api = Arc::new(fake::Fake::default());
    let access = fake::access();
    let server = tokio::spawn(http.serve(api, Registry::new(), access, None, stopped));
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut buffer = [0; 4_096];
    let length = idle.read(&mut buffer).await.unwrap();
    assert!(buffer[..length].starts_with(b"HTTP/1.1 200"));
    let began = tokio::time::Instant::now();
    stop.send(true).unwrap();
    server.await.unwrap();
    // Without a word to the connection it would be its idle time, 30 s.
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

/// The examples of the documentation, sent in their order, are answered as
/// they say.
#[test]
fn the_documented_examples_are_real() {
    let server = Server::start();
    let text = include_str!("../../../docs/admin-api.md");
    let mut examples = 0;
    for block in text.split("```http\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let (request, answer) = block.split_once("\n\n").unwrap();
        let (line, body) = request.split_once('\n').unwrap_or((request, "null"));
        let (method, path) = line.split_once(" /api/v1").unwrap();
        let reply = call(&server, method, path, serde_json::from_str(body).unwrap());
        let (status, expected) = answer.split_once('\n').unwrap();
        let found = if reply.body.is_empty() { Value::Null } else { reply.json() };
        let shown = serde_json::to_string_pretty(&found).unwrap();
        let expected: Value = serde_json::from_str(expected).unwrap_or_default();
        assert_eq!(reply.status.to_string(), status, "{line}: {shown}");
        assert_eq!(found, expected, "{line} is answered:\n{shown}");
        examples += 1;
    }
    assert!(examples >= 24, "only {examples} examples were found");
}
