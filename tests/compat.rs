//! The clients of Leaf, tinyid and S0 against a real node: the bytes that their HTTP
//! libraries send, what their own code makes of the answers, and that no id comes twice,
//! whichever way it is asked for.

mod support;

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use idgen::front::thrift::generated::{IdGenServiceSyncClient, TIdGenServiceSyncClient};
use serde_json::{Value, json};
use support::TempFolder;
use support::node::{Node, TOKEN};
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{TFramedReadTransport, TFramedWriteTransport, TIoChannel, TTcpChannel};

/// `HttpURLConnection` of Java 8 as tinyid's client uses it: a POST with an empty form.
const JAVA: &str = "Cache-Control: no-cache\r\nPragma: no-cache\r\nUser-Agent: Java/1.8.0_292\r\n\
    Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2\r\nConnection: keep-alive\r\n\
    Content-type: application/x-www-form-urlencoded\r\n";
/// Apache HttpClient 4, which most callers of Leaf use.
const APACHE: &str = "Connection: Keep-Alive\r\nUser-Agent: Apache-HttpClient/4.5.3 (Java/1.8.0_292)\r\n\
    Accept-Encoding: gzip,deflate\r\n";
const OKHTTP: &str = "Connection: Keep-Alive\r\nAccept-Encoding: gzip\r\nUser-Agent: okhttp/3.14.9\r\n\
    Content-Type: application/x-www-form-urlencoded\r\n";
/// `net/http` of Go.
const GO: &str = "User-Agent: Go-http-client/1.1\r\nAccept-Encoding: gzip\r\n";
const CURL: &str = "User-Agent: curl/7.88.1\r\nAccept: */*\r\nContent-Type: application/json\r\n";

/// What came back.
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

/// A connection that is kept, as the pools of clients keep theirs.
struct Http {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Http {
    fn connect(url: &str) -> Http {
        let host = url.trim_start_matches("http://").to_owned();
        Http { stream: BufReader::new(TcpStream::connect(&host).unwrap()), host }
    }

    fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let length = match (method, body.len()) {
            ("GET", 0) => String::new(),
            (_, length) => format!("Content-Length: {length}\r\n"),
        };
        let host = &self.host;
        self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}{length}\r\n{body}"
        ))
    }

    fn raw(&mut self, bytes: &str) -> Reply {
        self.stream.get_mut().write_all(bytes.as_bytes()).unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "closed behind {head:?}");
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let lines = head.lines().map(str::to_lowercase);
        let length = lines.filter_map(|l| l.strip_prefix("content-length: ")?.parse().ok()).next();
        let mut body = vec![0; length.unwrap_or_else(|| panic!("no length: {head}"))];
        self.stream.read_exact(&mut body).unwrap();
        Reply { status, head, body: String::from_utf8(body).unwrap() }
    }
}

/// A node on the embedded store with every route, on a port of their own.
struct Foreign {
    node: Node,
    url: String,
    _data: TempFolder,
}

fn start(more: &[&str]) -> Foreign {
    let data = TempFolder::new("compat");
    let addr = format!("127.0.0.1:{}", support::free_port());
    let folder = data.path().to_str().unwrap();
    let on = ["--compat-leaf", "on", "--compat-tinyid", "on", "--compat-s0", "on"];
    let all = [&["--data", folder, "--compat-addr", &addr], &on[..], more].concat();
    Foreign { node: Node::start(&all), url: format!("http://{addr}"), _data: data }
}

/// The secret of a new token.
fn token(node: &Node, name: &str, role: &str, types: &[&str], more: &[&str]) -> String {
    let mut all = vec!["token", "add", name, "--role", role, "--json"];
    for name in types {
        all.extend(["--type", name]);
    }
    let made: Value = serde_json::from_str(&node.run(&[&all[..], more].concat())).unwrap();
    made["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

/// Ids from `nextSegmentIdSimple`, taken as tinyid's client takes them.
fn lease_as_tinyid(http: &mut Http, name: &str, token: &str) -> Vec<i64> {
    let path = format!("/tinyid/id/nextSegmentIdSimple?token={token}&bizType={name}");
    let reply = http.send("POST", &path, JAVA, "");
    assert_eq!(reply.status, 200, "{}", reply.head);
    let numbers: Vec<i64> = reply.body.split(',').map(|n| n.parse().unwrap()).collect();
    let [current, loading, max, delta, remainder] = numbers[..] else { panic!("{}", reply.body) };
    assert_eq!(loading, current + (max - current) * 20 / 100, "{}", reply.body);
    // It looks for the first id above `current` with the remainder, and adds `delta`.
    let first = (current + 1..=current + delta).find(|id| id % delta == remainder).unwrap();
    (first..=max).step_by(delta as usize).collect()
}

fn thrift_ids(address: &str, name: &str, count: i32) -> Vec<i64> {
    let mut channel = TTcpChannel::new();
    channel.open(address).unwrap();
    let (read, write) = channel.split().unwrap();
    let mut client = IdGenServiceSyncClient::new(
        TBinaryInputProtocol::new(TFramedReadTransport::new(read), true),
        TBinaryOutputProtocol::new(TFramedWriteTransport::new(write), true),
    );
    (0..count).map(|_| client.next_id(name.to_owned()).unwrap()).collect()
}

#[test]
fn no_id_comes_twice_whatever_the_client() {
    let foreign = start(&["--store-site", "1"]);
    let node = &foreign.node;
    let segment = ["--mode", "segment", "--min-range", "100", "--max-range", "1000"];
    node.run(&[&["type", "add", "order"], &segment[..]].concat());
    node.run(&[&["type", "add", "odd", "--sites", "3", "--site", "1"], &segment[..]].concat());
    let token = token(node, "app", "issue", &["order", "odd"], &[]);
    let seen: Mutex<HashSet<i64>> = Mutex::default();
    let new = |ids: &[i64]| {
        let mut seen = seen.lock().unwrap();
        for id in ids {
            assert!(seen.insert(*id), "{id} came twice");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut http = Http::connect(&foreign.url);
                for _ in 0..300 {
                    let reply = http.send("GET", "/api/segment/get/order", APACHE, "");
                    new(&[reply.body.parse().unwrap()]);
                }
            });
            scope.spawn(|| {
                let mut http = Http::connect(&foreign.url);
                for _ in 0..60 {
                    let ids = lease_as_tinyid(&mut http, "order", &token);
                    assert!((1..=100).contains(&ids.len()), "{}", ids.len());
                    new(&ids);
                }
            });
            scope.spawn(|| {
                let mut http = Http::connect(&foreign.url);
                let form = format!("bizType=order&batchSize=7&token={token}");
                for _ in 0..60 {
                    let reply = http.send("POST", "/tinyid/id/nextId", OKHTTP, &form).json();
                    assert_eq!((&reply["code"], &reply["message"]), (&json!(200), &json!("")));
                    let ids: Vec<i64> = serde_json::from_value(reply["data"].clone()).unwrap();
                    assert_eq!(ids.len(), 7);
                    new(&ids);
                    let path = format!("/tinyid/id/nextIdSimple?{form}");
                    let reply = http.send("GET", &path, APACHE, "");
                    let ids: Vec<i64> = reply.body.split(',').map(|n| n.parse().unwrap()).collect();
                    new(&ids);
                }
            });
            scope.spawn(|| {
                let mut http = Http::connect(&foreign.url);
                for _ in 0..300 {
                    let reply = http.send("GET", "/api/leaf?biz_tag=order", GO, "").json();
                    new(&[reply["data"]["ID"].as_i64().unwrap()]);
                }
            });
            scope.spawn(|| new(&thrift_ids(&node.thrift, "order", 300)));
        }
    });
    // Ids that other sites may not have, right to the remainder.
    let mut http = Http::connect(&foreign.url);
    let mut odd = HashSet::new();
    for _ in 0..5 {
        let leased = lease_as_tinyid(&mut http, "odd", &token);
        let path = format!("/tinyid/id/nextId?bizType=odd&token={token}&batchSize=3");
        let listed = http.send("GET", &path, APACHE, "").json();
        let listed: Vec<i64> = serde_json::from_value(listed["data"].clone()).unwrap();
        for id in leased.into_iter().chain(listed) {
            assert!(id % 3 == 1 && odd.insert(id), "{id}");
        }
    }
    let path = format!("/tinyid/id/nextSegmentId?bizType=odd&token={token}");
    let data = http.send("POST", &path, JAVA, "").json()["data"].clone();
    assert_eq!((&data["delta"], &data["remainder"]), (&json!(3), &json!(1)));
    // What a client took it may use later than any lease lasts: the node was stopped and
    // started in between, and nobody is given one of them.
    let kept = lease_as_tinyid(&mut http, "order", &token);
    new(&kept);
    let Foreign { mut node, url, _data } = foreign;
    drop(http);
    node.stop();
    node.start_again();
    let mut http = Http::connect(&url);
    for _ in 0..20 {
        new(&lease_as_tinyid(&mut http, "order", &token));
    }
    let served = node.metric("idgen_compat_requests_total{result=\"served\",system=\"tinyid\"}");
    assert_eq!(served, 20.0);
}

#[test]
fn what_clients_send_is_understood_byte_by_byte() {
    let foreign = start(&[]);
    let node = &foreign.node;
    node.run(&["type", "add", "order", "--mode", "segment"]);
    node.run(&["type", "add", "flake", "--mode", "snowflake"]);
    let mut http = Http::connect(&foreign.url);
    let host = foreign.url.trim_start_matches("http://");
    let plain = http.send("GET", "/api/segment/get/order", APACHE, "");
    assert_eq!((plain.status, plain.body.as_str()), (200, "1"));
    assert!(plain.head.to_lowercase().contains("content-type: text/plain;charset=utf-8"));
    // A body in pieces, one that waits to be asked for, and none where one could be.
    let chunked = format!(
        "POST /api/segment/get/order HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\na=b\r\n0\r\n\r\n"
    );
    assert_eq!(http.raw(&chunked).body, "2");
    let expects = format!(
        "POST /api/segment/get/order HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\n\
         Content-Length: 0\r\n\r\n"
    );
    assert_eq!(http.raw(&expects).body, "3");
    assert_eq!(http.send("POST", "/api/segment/get/order", JAVA, "").body, "4");
    // Two requests in one packet.
    let one = format!("GET /api/segment/get/order HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert_eq!(http.raw(&format!("{one}{one}")).body, "5");
    assert_eq!(http.raw("").body, "6");
    // ApacheBench, with HTTP/1.0.
    let mut old = Http::connect(&foreign.url);
    let reply = old.raw("GET /api/segment/get/order HTTP/1.0\r\n\r\n");
    assert_eq!((reply.status, reply.body.as_str()), (200, "7"));

    let id: i64 = http.send("GET", "/api/snowflake/get/flake", APACHE, "").body.parse().unwrap();
    let told = http.send("GET", &format!("/decodeSnowflakeId?snowflakeId={id}"), APACHE, "");
    let told = told.json();
    let decoded = node.run(&["decode", "flake", &id.to_string(), "--json"]);
    let decoded: Value = serde_json::from_str(&decoded).unwrap();
    assert_eq!(told["workerId"], decoded["worker"].to_string(), "{decoded}");
    assert_eq!(told["sequenceId"], decoded["sequence"].to_string());
    let at = format!("{}(", decoded["at_ms"]);
    assert!(told["timestamp"].as_str().unwrap().starts_with(&at), "{told} {decoded}");

    let failed = http.send("GET", "/api/segment/get/nobody", APACHE, "");
    assert_eq!(
        (failed.status, failed.json()["message"].as_str()),
        (500, Some("Result{id=-2, status=EXCEPTION}"))
    );
    let mixed = http.send("GET", "/api/segment/get/flake", APACHE, "");
    assert_eq!(mixed.json()["message"], "Result{id=-2, status=EXCEPTION}");

    // Nothing of the admin API is here; all of it is where it was, and these are not.
    assert_eq!(http.send("GET", "/api/v1/types", CURL, "").status, 404);
    assert_eq!(http.send("GET", "/healthz", CURL, "").body, "ok\n");
    let mut admin = Http::connect(&node.url);
    assert_eq!(admin.send("GET", "/api/v1/types", CURL, "").status, 401);
    assert_eq!(admin.send("GET", "/api/segment/get/order", APACHE, "").status, 404);
}

#[test]
fn tokens_of_tinyid_are_those_of_the_access_service() {
    let foreign = start(&[]);
    let node = &foreign.node;
    node.run(&["type", "add", "order", "--mode", "segment"]);
    node.run(&["type", "add", "bill", "--mode", "segment"]);
    let token = token(node, "app", "issue", &["order"], &[]);
    let mut http = Http::connect(&foreign.url);
    let mut code = |name: &str, token: &str| {
        let path = format!("/tinyid/id/nextId?bizType={name}&token={token}");
        http.send("GET", &path, APACHE, "").json()["code"].clone()
    };
    assert_eq!(code("order", &token), 200);
    assert_eq!(code("bill", &token), 5);
    assert_eq!(code("order", TOKEN), 5);
    assert_eq!(code("order", &token[..10]), 5);
    node.run(&["token", "revoke", "app"]);
    assert_eq!(code("order", &token), 5);
    let log = node.log();
    assert!(log.contains("a call was refused") && !log.contains(&token), "{log}");
    let refused = node.metric("idgen_compat_requests_total{result=\"refused\",system=\"tinyid\"}");
    assert!(refused >= 4.0, "{refused}");
}

#[test]
fn quotas_and_the_need_for_tokens_hold_here_too() {
    let foreign = start(&["--clients-tokens", "required"]);
    let node = &foreign.node;
    node.run(&["type", "add", "order", "--mode", "segment"]);
    let secret = token(node, "app", "issue", &["order"], &["--quota", "10"]);
    let mut http = Http::connect(&foreign.url);
    for path in ["/api/segment/get/order", "/api/leaf?biz_tag=order"] {
        let refused = http.send("GET", path, APACHE, "");
        assert!(refused.body.contains("token"), "{path}: {}", refused.body);
        let header = format!("{APACHE}Authorization: Bearer {secret}\r\n");
        assert_eq!(http.send("GET", path, &header, "").status, 200, "{path}");
    }
    let mut batch = |count: u32| {
        let path = format!("/tinyid/id/nextId?bizType=order&token={secret}&batchSize={count}");
        http.send("GET", &path, APACHE, "").json()
    };
    // More than it ever gives at once; then more than is left.
    let never = batch(11);
    assert_eq!(never["code"], 6, "{never}");
    let mut answer = batch(5);
    while answer["code"] == 200 {
        answer = batch(5);
    }
    assert_eq!(answer["code"], 6, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("quota"), "{answer}");
    let refused = node.metric("idgen_caller_refusals_total{caller=\"app\",reason=\"quota\"}");
    assert!(refused >= 2.0, "{refused}");
}

#[test]
fn types_of_s0_live_as_there() {
    let foreign = start(&[]);
    let node = &foreign.node;
    let secret = token(node, "deploy", "operate", &["test_*"], &[]);
    let shown = format!("{CURL}Authorization: Bearer {secret}\r\n");
    let mut http = Http::connect(&foreign.url);
    let tag = "{\n  \"biz_tag\": \"test_one\",\n  \"max_id\": 1001,\n  \"step\": 500,\n  \
               \"descprition\": \"test api one\"\n}";
    let refused = http.send("POST", "/api/leaf", CURL, tag);
    assert_eq!((refused.status, &refused.json()["code"]), (200, &json!(1001)));
    let made = http.send("POST", "/api/leaf", &shown, tag);
    assert_eq!(made.body, r#"{"code":0,"data":null,"msg":"success"}"#);
    assert!(made.head.to_lowercase().contains("content-type: application/json; charset=utf-8"));
    let first = http.send("GET", "/api/leaf?biz_tag=test_one", GO, "");
    assert_eq!(first.body, r#"{"code":0,"data":{"ID":1001},"msg":"success"}"#);
    let step = http.send("PUT", "/api/leaf/step", &shown, r#"{"step":10000,"biz_tag":"test_one"}"#);
    assert_eq!(step.body, made.body);
    let warm = http.send("PUT", "/api/leaf/init/cache", CURL, r#"{"biz_tag":"test_one"}"#).json();
    assert_eq!((&warm["code"], &warm["data"]["Step"]), (&json!(0), &json!(10_000)), "{warm}");
    assert_eq!(warm["data"]["Buffer"][0]["Cursor"], 1_002, "{warm}");
    let shown = node.run(&["type", "show", "test_one", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["min_range"], &shown["mode"]), (&json!(10_000), &json!("segment")));
    let unknown = http.send("GET", "/api/leaf?biz_tag=nobody", GO, "");
    assert_eq!((unknown.status, &unknown.json()["code"]), (200, &json!(1001)));
}
