//! The admin page as its users have it: a real browser, real nodes, a real database and
//! two real Redis servers. What is done there is in web-admin/e2e/page.test.mjs.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use support::node::{Cluster, Node, TOKEN, Verify};
use support::redis::RedisServer;

fn web_admin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("web-admin")
}

/// The link that a node prints at its start, in a cluster without accounts.
fn setup_link(node: &Node) -> String {
    let said = node.said();
    let link = said.split_whitespace().find(|word| word.contains("/setup#"));
    link.unwrap_or_else(|| panic!("no set-up link:\n{said}")).to_owned()
}

#[test]
fn an_operators_day_in_a_real_browser() {
    assert!(
        web_admin().join("node_modules").is_dir() && web_admin().join("dist").is_dir(),
        "the page is not built: run `make page`"
    );
    let cluster = Cluster::start();
    let spare = RedisServer::start();
    let (first, second) = (cluster.node(), cluster.node());
    // The link of the node that was started last is the one that works.
    let setup = setup_link(&second);
    first.run(&["type", "add", "busy", "--mode", "segment"]);
    // Bounded: a rate that a shared machine can keep.
    let load = Verify::start(&[&first], "busy", 600, &["--clients", "2", "--pause-ms", "5"]);
    let nodes = [&first, &second].map(|node| json!({ "url": node.url, "pid": node.pid() }));
    let given = json!({
        "nodes": nodes,
        "setup": setup,
        "token": TOKEN,
        "redis": [cluster.redis.url(), spare.url()],
        "shots": std::env::var("IDGEN_TEST_SHOTS").ok(),
    });
    let output = Command::new("node")
        .args(["--test", "--test-reporter=spec", "e2e/page.test.mjs"])
        .current_dir(web_admin())
        .env("IDGEN_E2E", given.to_string())
        .output()
        .expect("node starts");
    load.interrupt();
    assert!(
        output.status.success(),
        "{}{}\nthe first node:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        first.log()
    );
}
