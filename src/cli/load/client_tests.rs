use super::*;
use crate::cli::load::request::Method;

#[test]
fn the_pace_grows_to_a_bound_and_starts_anew() {
    let node = Arc::new(Node::resolve("127.0.0.1:1").unwrap());
    let request = Request::new("t", Method::NextId, 1);
    let mut client = Client::new(node, 0, WireArgs::default(), request);
    assert_eq!(client.pace(), Duration::ZERO);
    let mut paces = Vec::new();
    for _ in 0..8 {
        client.failed(CallError::new(ErrorClass::Lost, "connect", ""));
        paces.push(client.pace().as_millis());
    }
    assert_eq!(paces, [10, 20, 40, 80, 160, 320, 320, 320]);
    client.failures = 1_000_000;
    client.last_class = ErrorClass::Passing;
    assert_eq!(client.pace().as_millis(), 32);
}

#[test]
fn a_node_is_a_host_and_a_port() {
    for name in ["localhost", "localhost:", "localhost:thrift", "localhost:65536", ""] {
        let result = Node::resolve(name);
        assert!(matches!(result, Err(LoadError::Usage(_))), "{name:?}");
    }
    for name in ["127.0.0.1:5900", "[::1]:5900"] {
        assert_eq!(Node::resolve(name).unwrap().name(), name);
    }
}

#[test]
fn gate_passes_take_turns() {
    let node = Arc::new(Node::resolve("127.0.0.1:1").unwrap());
    let request = Request::new("t", Method::NextId, 1);
    let plain = Client::new(Arc::clone(&node), 0, WireArgs::default(), request.clone());
    assert_eq!(plain.gate_pass(), None);
    let request = request.with_gate_passes(3);
    let mut client = Client::new(node, 0, WireArgs::default(), request).at_turn(1);
    let mut passes = Vec::new();
    for _ in 0..4 {
        client.call().unwrap_err();
        passes.push(client.gate_pass().unwrap().to_owned());
    }
    assert_eq!(passes, ["gate-2", "gate-0", "gate-1", "gate-2"]);
}
