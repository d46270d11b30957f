//! Traces: what a collector gets of a node, and what a node does without one.

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use idgen::front::thrift::generated::TIdGenServiceSyncClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use support::node::{Node, TOKEN, data_folder, exclusive};
use support::thrift_client::client;

/// Takes batches of spans, as a collector does.
struct Collector {
    url: String,
    batches: Receiver<ExportTraceServiceRequest>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, batches) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let tell = tell.clone();
                std::thread::spawn(move || take(&stream, &tell));
            }
        });
        Collector { url, batches }
    }
}

/// Answers the requests of one connection.
fn take(stream: &TcpStream, tell: &Sender<ExportTraceServiceRequest>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        assert_eq!(line.trim_end(), "POST /v1/traces HTTP/1.1");
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            match header.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().expect("a length");
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-type") => {
                    assert_eq!(value, "application/x-protobuf");
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let batch = ExportTraceServiceRequest::decode(&body[..]).expect("OTLP");
        (&mut &*stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
        tell.send(batch).ok()?;
    }
}

/// The attributes as text.
fn texts(attributes: &[KeyValue]) -> HashMap<&str, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pair = |a: &'_ KeyValue| a.value.as_ref()?.value.as_ref().map(text);
    attributes.iter().filter_map(|a| Some((a.key.as_str(), pair(a)?))).collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    spans.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

#[test]
fn a_collector_gets_calls_requests_and_refills() {
    let _turn = exclusive();
    let (_folder, data) = data_folder();
    let collector = Collector::start();
    let data = data.to_str().unwrap();
    let traces = ["--traces-endpoint", &collector.url, "--traces-one-in", "1"];
    let mut node = Node::start(&[&["--data", data, "--node-id", "n1"], &traces[..]].concat());
    node.run(&["type", "add", "order"]);
    let mut client = client(&node.thrift).unwrap();
    client.next_id("order".to_owned()).unwrap();
    client.next_id("nobody".to_owned()).unwrap_err();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    ureq::get(format!("{}/api/v1/types/order", node.url))
        .header("authorization", format!("Bearer {TOKEN}"))
        .header("traceparent", format!("00-{trace}-b7ad6b7169203331-01"))
        .call()
        .unwrap();
    drop(client);
    // What is left is sent at the end.
    assert!(node.stop().success());

    let batches: Vec<_> = collector.batches.try_iter().flat_map(|b| b.resource_spans).collect();
    let about = texts(&batches[0].resource.as_ref().unwrap().attributes);
    assert_eq!((&*about["service.name"], &*about["service.instance.id"]), ("idgen", "n1"));
    assert_eq!(about["service.version"], env!("CARGO_PKG_VERSION"));
    let scopes = batches.into_iter().flat_map(|b| b.scope_spans);
    let spans: Vec<Span> = scopes.flat_map(|scope| scope.spans).collect();

    let calls: Vec<_> = spans.iter().filter(|span| span.name == "nextId").collect();
    assert_eq!(calls.len(), 2);
    let status = |span: &Span| span.status.as_ref().map_or(0, |status| status.code);
    assert_eq!((status(calls[0]), status(calls[1])), (0, 2), "the second one failed");
    assert_eq!(texts(&calls[1].attributes)["error.type"], "UNKNOWN_TYPE");
    assert_eq!(texts(&calls[0].attributes)["rpc.system"], "apache_thrift");
    assert_eq!(calls[0].kind, 2, "the kind of servers");

    let request = named(&spans, "GET /api/v1/types/{name}");
    let id: String = request.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(id, trace, "it is part of the caller's trace");
    assert_eq!(texts(&request.attributes)["http.response.status_code"], "200");

    let refill = named(&spans, "refill");
    assert_eq!(texts(&refill.attributes)["id_type"], "order");
    for step in ["allocate", "publish"] {
        assert_eq!(named(&spans, step).parent_span_id, refill.span_id, "{step}");
    }
    assert!(!format!("{spans:?}").contains(TOKEN));
}

#[test]
fn one_of_so_many_calls_is_traced() {
    let _turn = exclusive();
    let (_folder, data) = data_folder();
    let collector = Collector::start();
    let data = data.to_str().unwrap();
    let traces = ["--traces-endpoint", &collector.url, "--traces-one-in", "100"];
    let mut node = Node::start(&[&["--data", data], &traces[..]].concat());
    node.run(&["type", "add", "order"]);
    let mut client = client(&node.thrift).unwrap();
    for _ in 0..1_000 {
        client.next_id("order".to_owned()).unwrap();
    }
    drop(client);
    assert!(node.stop().success());
    let spans = collector.batches.try_iter().flat_map(|b| b.resource_spans);
    let spans = spans.flat_map(|r| r.scope_spans).flat_map(|s| s.spans);
    // The other requests of this test count, too.
    let calls = spans.filter(|span| span.name == "nextId").count();
    assert!((9..=11).contains(&calls), "{calls}");
}

#[test]
fn without_its_collector_a_node_works_and_says_so_once() {
    let _turn = exclusive();
    let (_folder, data) = data_folder();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{gone}");
    let data = data.to_str().unwrap();
    let traces = ["--traces-endpoint", &url, "--traces-one-in", "1", "--log-format", "json"];
    let mut node = Node::start(&[&["--data", data], &traces[..]].concat());
    node.run(&["type", "add", "order"]);
    let mut client = client(&node.thrift).unwrap();
    for _ in 0..600 {
        client.next_id("order".to_owned()).unwrap();
    }
    drop(client);
    assert!(node.stop().success());
    assert_eq!(node.log().matches("traces are lost").count(), 1, "{}", node.log());
}
