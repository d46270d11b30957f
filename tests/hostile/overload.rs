//! More than a node can serve.

use std::io::Write;
use std::time::Duration;

use idgen::cli::load::now;

use crate::support::node::{Cluster, Node};
use crate::tools::*;

/// Redis does not answer: so many calls wait as may, and the rest are told at once.
#[test]
fn calls_beyond_those_that_may_wait_are_refused_at_once() {
    const MAY_WAIT: usize = 3;
    let cluster = Cluster::start();
    let deadline = Duration::from_secs(4);
    let node = Node::start(&[
        "--mysql",
        &cluster.db.app.url,
        "--redis",
        &cluster.redis.url(),
        "--node-max-waiting",
        &MAY_WAIT.to_string(),
        "--node-deadline-ms",
        &deadline.as_millis().to_string(),
        "--redis-timeout-ms",
        "60000",
    ]);
    node.run(&["type", "add", "order"]);
    let mut streams: Vec<_> = (0..20).map(|_| connect(&node.thrift)).collect();
    streams[0].write_all(&next_id(1)).expect("room");
    assert!(brings_an_id(&read_frame(&mut streams[0]).expect("an answer")));

    cluster.redis.signal("STOP");
    let began = now();
    let clients = streams.into_iter().map(|mut stream| {
        std::thread::spawn(move || {
            stream.write_all(&next_id(1)).expect("room");
            let reply = read_frame(&mut stream).expect("an answer");
            (String::from_utf8_lossy(&reply).contains("OVERLOADED"), began.elapsed())
        })
    });
    let clients: Vec<_> = clients.collect();
    let answers: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    cluster.redis.signal("CONT");
    let refused = answers.iter().filter(|(refused, _)| *refused);
    // Those that one call of Redis is on its way for do not count as waiting.
    let least = answers.len() - 2 * MAY_WAIT;
    assert!(refused.clone().count() >= least, "{answers:?}");
    assert!(refused.clone().count() < answers.len(), "{answers:?}");
    for (_, after) in refused {
        assert!(*after < deadline / 2, "{answers:?}");
    }
    assert!(node.metric("idgen_thrift_errors_total{code=\"OVERLOADED\"}") >= least as f64);
}
