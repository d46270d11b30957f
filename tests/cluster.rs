//! Whole processes: several nodes over a real MariaDB and a real Redis, with
//! faults in the middle of the load, and the checker `idgen verify` on top.

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use idgen::front::thrift::generated::TIdGenServiceSyncClient;
use support::node::{Cluster, Node, Verify, data_folder, exclusive, idgen};
use support::redis::RedisServer;
use support::thrift_client::{Client, client};

#[test]
fn three_nodes_are_unique_and_ordered() {
    let cluster = Cluster::start();
    let nodes = [cluster.node(), cluster.node(), cluster.node()];
    nodes[0].run(&["type", "add", "order", "--min-range", "100"]);
    let all: Vec<_> = nodes.iter().collect();
    let report = Verify::start(&all, "order", 5, &["--clients", "32"]).finish_clean();
    let logs: Vec<_> = nodes.iter().map(Node::log).collect();
    assert_eq!(report["errors"], 0, "{report:#}\n{}", logs.join("\n\n"));
    for node in &nodes {
        assert!(node.metric("idgen_refills_total") > 0.0 || node.metric("idgen_takes_total") > 0.0);
    }
    let many = Verify::start(&all, "order", 2, &["--clients", "8", "--count", "1000"]);
    assert_eq!(many.finish_clean()["errors"], 0);
}

#[test]
fn a_killed_node_costs_its_own_connections_only() {
    let cluster = Cluster::start();
    let mut nodes = [cluster.node(), cluster.node(), cluster.node()];
    nodes[0].run(&["type", "add", "order", "--min-range", "50", "--max-range", "5000"]);
    let verify = {
        let all: Vec<_> = nodes.iter().collect();
        Verify::start(&all, "order", 6, &["--clients", "30"])
    };
    verify.wait_until_busy();
    nodes[1].kill();
    nodes[1].start_again();
    let report = verify.finish_clean();
    // Each of its ten clients lost one call, and tried its connection again at
    // a bounded pace; the others saw nothing.
    let by_code = report["errors_by_code"].as_object().unwrap();
    let connection = |code: &String| ["connect", "disconnected"].contains(&code.as_str());
    assert!(by_code.keys().all(connection), "{report:#}");
    assert!(report["errors"].as_u64().unwrap() <= 10 + 10 * 20, "{report:#}");
    assert!(report["calls_by_node"][1].as_u64().unwrap() > 0, "it came back: {report:#}");
}

/// The holder of the refill lock dies after its range was allocated and before
/// it was published: the others go on within a second.
#[test]
fn a_lock_holder_killed_between_allocation_and_publication() {
    let cluster = Cluster::start();
    let (mut holder, other) = (cluster.node(), cluster.node());
    holder.run(&["type", "add", "order", "--min-range", "1000", "--max-range", "1000"]);
    let first = holder.run(&["get", "order", "-n", "50"]);
    assert_eq!(first.lines().count(), 50);
    other.run(&["get", "order"]);
    // Somebody holds the type's row, so the holder's call waits in the store.
    let blocker = cluster.db.name.clone();
    let port = cluster.mariadb.port();
    let release = Arc::new(AtomicBool::new(false));
    let blocking = block_row(port, &blocker, release.clone());
    holder.run(&["get", "order", "-n", "100"]); // past the update id: the refill begins
    wait_for("the refill waits for the row", || {
        let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                       WHERE INFO LIKE '%FOR UPDATE%' AND ID <> CONNECTION_ID()";
        let locked = cluster.redis.cli(&["exists", "idgen:{order}:lock"]);
        locked == "1" && cluster.sql(waiting) != "0"
    });
    holder.kill();
    let ranges = "SELECT COUNT(*) FROM idgen_ranges WHERE name = 'order'";
    let before: u32 = cluster.sql(ranges).parse().unwrap();
    release.store(true, Ordering::Relaxed);
    blocking.join().unwrap();
    wait_for("the store finished what the dead holder asked for", || {
        cluster.sql(ranges).parse::<u32>().unwrap() > before
    });
    // The other node uses up what is published, and must get the next range.
    let mut client = client(&other.thrift).unwrap();
    let (mut last, mut longest) = (0, Duration::ZERO);
    for _ in 0..1_500 {
        let began = Instant::now();
        let id = client.next_id("order".to_owned()).unwrap();
        longest = longest.max(began.elapsed());
        assert!(id > last, "{id} after {last}");
        last = id;
    }
    assert!(longest < Duration::from_secs(1), "the longest call took {longest:?}");
    assert!(other.metric("idgen_lock_takeovers_total") >= 1.0, "{}", other.log());
}

/// Holds the row of the type `order` in an open transaction until released.
fn block_row(port: u16, database: &str, release: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let mut session = Command::new("mariadb")
        .args(["--no-defaults", "--host=127.0.0.1", "--user=root", "--protocol=tcp"])
        .args(["--batch", "--skip-column-names", "--unbuffered"])
        .arg(format!("--port={port}"))
        .arg(database)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the mariadb client runs");
    let mut input = session.stdin.take().expect("piped");
    let mut output = BufReader::new(session.stdout.take().expect("piped"));
    writeln!(input, "BEGIN; SELECT name FROM idgen_type WHERE name = 'order' FOR UPDATE;").unwrap();
    input.flush().unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "order", "the row is held");
    std::thread::spawn(move || {
        while !release.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(input); // the session ends, and with it the transaction
        session.wait().unwrap();
    })
}

fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let bound = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < bound, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn redis_killed_and_started_empty() {
    let mut cluster = Cluster::start();
    let nodes = [cluster.node(), cluster.node()];
    nodes[0].run(&["type", "add", "order", "--min-range", "1000", "--max-range", "20000"]);
    let verify = Verify::start(&nodes.iter().collect::<Vec<_>>(), "order", 6, &["--clients", "16"]);
    verify.wait_until_busy();
    cluster.redis.kill();
    cluster.redis.start_again();
    assert_eq!(cluster.redis.cli(&["exists", "idgen:{order}"]), "0", "it came back empty");
    goes_on(&nodes);
    verify.finish_clean();
}

#[test]
fn redis_killed_and_started_from_an_old_snapshot() {
    let mut cluster = Cluster::start();
    let nodes = [cluster.node(), cluster.node()];
    nodes[0].run(&["type", "add", "order", "--min-range", "1000000"]);
    let verify = Verify::start(&nodes.iter().collect::<Vec<_>>(), "order", 7, &["--clients", "16"]);
    verify.wait_until_busy();
    assert_eq!(cluster.redis.cli(&["save"]), "OK");
    let saved: i64 = cluster.redis.cli(&["hget", "idgen:{order}", "cur"]).parse().unwrap();
    wait_for("ids after the snapshot", || {
        let now: i64 = cluster.redis.cli(&["hget", "idgen:{order}", "cur"]).parse().unwrap();
        now > saved + 1_000
    });
    cluster.redis.kill();
    cluster.redis.start_again();
    goes_on(&nodes);
    let report = verify.finish_clean();
    let stale: f64 = nodes.iter().map(|n| n.metric("idgen_stale_histories_total")).sum();
    assert!(stale >= 1.0, "the old data was met and dropped: {report:#}");
}

/// Redis stands still for three seconds under load, and goes on.
#[test]
fn a_redis_that_stood_still_is_used_again_within_a_second() {
    let cluster = Cluster::start();
    let nodes = [cluster.node(), cluster.node()];
    nodes[0].run(&["type", "add", "order", "--min-range", "100000"]);
    let verify = Verify::start(&nodes.iter().collect::<Vec<_>>(), "order", 8, &["--clients", "16"]);
    verify.wait_until_busy();
    cluster.redis.signal("STOP");
    std::thread::sleep(Duration::from_secs(3)); // the fault's length is the test
    let began = Instant::now();
    let late = nodes[0].try_run(&["get", "order"]);
    assert_eq!(late.status.code(), Some(4), "unavailable while it stands still");
    assert!(began.elapsed() < Duration::from_secs(3), "told by the deadline");
    cluster.redis.signal("CONT");
    for node in &nodes {
        let began = Instant::now();
        let mut client = client(&node.thrift).unwrap();
        wait_for("ids again", || client.next_id("order".to_owned()).is_ok());
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }
    verify.finish_clean();
}

/// Each node answers again, with ids of its own.
fn goes_on(nodes: &[Node]) {
    for node in nodes {
        wait_for("ids after the fault", || node.try_run(&["get", "order"]).status.success());
    }
}

#[test]
fn mariadb_away_for_ten_seconds_costs_nothing_while_the_runway_lasts() {
    let mut cluster = Cluster::start();
    let nodes = [cluster.node(), cluster.node()];
    nodes[0].run(&["type", "add", "order", "--min-range", "100000000"]);
    nodes[0].run(&["get", "order"]);
    let verify = Verify::start(&nodes.iter().collect::<Vec<_>>(), "order", 14, &["--clients", "8"]);
    verify.wait_until_busy();
    cluster.mariadb.kill();
    let gone = Instant::now();
    nodes[0].run(&["get", "order"]);
    while gone.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(50)); // the fault's length is the test
    }
    cluster.mariadb.start_again();
    let report = verify.finish_clean();
    assert_eq!(report["errors"], 0, "{report:#}");
    // And it is found again: a new type needs the store.
    wait_for("the store is found again", || {
        nodes[1].try_run(&["type", "add", "after"]).status.success()
    });
    nodes[0].run(&["get", "after"]);
}

/// Whatever a client has seen is in the store, even if that dies at once.
#[test]
fn ids_are_durable_before_they_are_visible() {
    let mut cluster = Cluster::start();
    let node = cluster.node();
    node.run(&["type", "add", "order", "--min-range", "10", "--max-range", "10"]);
    for _ in 0..3 {
        let mut client = client(&node.thrift).unwrap();
        let mut highest = 0;
        for _ in 0..200 {
            highest = client.next_id("order".to_owned()).unwrap();
        }
        cluster.mariadb.kill();
        // What is published may go on.
        while let Ok(id) = client.next_id("order".to_owned()) {
            highest = id;
        }
        cluster.mariadb.start_again();
        let next_id = "SELECT next_id FROM idgen_types WHERE name = 'order'";
        let next_id: i64 = cluster.sql(next_id).parse().unwrap();
        assert!(next_id > highest, "{highest} was handed out, the store knows up to {next_id}");
        wait_for("the node goes on", || client.next_id("order".to_owned()).is_ok());
    }
}

#[test]
fn some_settings_change_at_sighup() {
    let _turn = exclusive();
    let (folder, data) = data_folder();
    let file = folder.path().join("idgen.toml");
    let write = |text: &str| std::fs::write(&file, text).expect("the file can be written");
    write("[log]\nlevel = 'info'\n");
    let file_name = file.to_str().unwrap();
    let node = Node::start(&["--config", file_name, "--data", data.to_str().unwrap()]);
    node.run(&["type", "add", "order"]);
    let mut client = client(&node.thrift).unwrap();
    assert!(client.next_id("order".to_owned()).is_ok());
    let reread = |text: &str, said: &str| {
        write(text);
        node.signal("HUP");
        wait_for(said, || node.log().contains(said));
    };
    reread("[log]\nlevel = 'noise'\n", "the settings stay as they are");
    assert!(node.log().contains("log.level"), "{}", node.log());
    let changed = "[log]\nlevel = 'debug'\n[clients]\ntokens = 'required'\n";
    reread(changed, "clients.tokens changed");
    assert!(node.log().contains("log.level changed level=Debug"), "{}", node.log());
    assert!(client.next_id("order".to_owned()).is_err(), "it needs a token now");
    reread(&format!("{changed}[node]\ndrain_ms = 77\n"), "need a restart");
    assert!(node.log().contains("sections=\"node\""), "{}", node.log());
}

/// A load balancer needs a moment to see that a node goes.
#[test]
fn a_stop_may_pause_before_it_takes_no_more_calls() {
    let _turn = exclusive();
    let (_folder, data) = data_folder();
    let pause = ["--node-stop-pause-ms", "600000", "--data", data.to_str().unwrap()];
    let mut node = Node::start(&pause);
    node.run(&["type", "add", "order"]);
    node.signal("TERM");
    wait_for("readiness is gone", || !node.is_ready());
    let mut late = client(&node.thrift).expect("a new connection while it pauses");
    assert!(late.next_id("order".to_owned()).is_ok());
    // The second signal ends it at once.
    assert_eq!(node.stop().code(), Some(130));
}

/// SIGTERM under load: whatever the node has accepted it answers.
#[test]
fn an_orderly_stop_fails_no_accepted_call() {
    let _turn = exclusive();
    let (_folder, data) = data_folder();
    let mut node = Node::start(&["--data", data.to_str().unwrap()]);
    node.run(&["type", "add", "order"]);
    let address = node.thrift.clone();
    let stopping = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let (address, stopping) = (address.clone(), stopping.clone());
            std::thread::spawn(move || {
                let mut client = client(&address).unwrap();
                let mut answered = 0_u64;
                loop {
                    match client.next_id("order".to_owned()) {
                        Ok(_) => answered += 1,
                        Err(thrift::Error::Transport(_)) => {
                            assert!(stopping.load(Ordering::Relaxed), "cut before the stop");
                            return answered;
                        }
                        Err(other) => panic!("an accepted call failed: {other:?}"),
                    }
                }
            })
        })
        .collect();
    wait_for("load", || node.metric("idgen_thrift_requests_total") > 2_000.0);
    stopping.store(true, Ordering::Relaxed);
    let status = node.stop();
    assert_eq!(status.code(), Some(0), "{}", node.log());
    let answered: u64 = callers.into_iter().map(|c| c.join().unwrap()).sum();
    let log = node.log();
    let drained = log.lines().find(|l| l.contains("Thrift front drained")).expect("a last word");
    assert!(drained.contains(&format!("requests={answered} ")), "{answered} answered; {drained}");
    assert!(drained.contains("cut=0"), "{drained}");
}

#[test]
fn the_embedded_store_survives_a_kill() {
    let _turn = exclusive();
    let (_folder, data) = data_folder();
    let mut node = Node::start(&["--data", data.to_str().unwrap()]);
    node.run(&["type", "add", "order", "--min-range", "20", "--max-range", "500"]);
    let mut seen = HashSet::new();
    let mut highest = 0;
    for _ in 0..4 {
        let running = Arc::new(AtomicBool::new(true));
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let address = node.thrift.clone();
                let running = running.clone();
                std::thread::spawn(move || {
                    let mut ids = Vec::new();
                    let mut client = client(&address).unwrap();
                    while let Ok(id) = client.next_id("order".to_owned()) {
                        ids.push(id);
                    }
                    assert!(!running.load(Ordering::Relaxed), "a call failed before the kill");
                    ids
                })
            })
            .collect();
        let before = node.metric("idgen_thrift_requests_total");
        wait_for("load", || node.metric("idgen_thrift_requests_total") > before + 1_000.0);
        running.store(false, Ordering::Relaxed);
        node.kill();
        let ids: Vec<i64> = callers.into_iter().flat_map(|c| c.join().unwrap()).collect();
        for id in &ids {
            assert!(*id > highest, "{id} is not above {highest}, from before the kill");
            assert!(seen.insert(*id), "{id} was issued twice");
        }
        highest = *seen.iter().max().unwrap();
        node.start_again();
    }
    let second = idgen(&[
        "serve",
        "--data",
        data.to_str().unwrap(),
        "--thrift",
        "127.0.0.1:0",
        "--http",
        "127.0.0.1:0",
    ]);
    assert_ne!(second.status.code(), Some(0), "two nodes on one folder");
    assert!(String::from_utf8_lossy(&second.stderr).contains("--data"));
}

#[test]
fn a_type_added_over_thrift_is_served_by_every_node_within_a_second() {
    let cluster = Cluster::start();
    let (a, b) = (cluster.node(), cluster.node());
    let (mut to_a, mut to_b) = (client(&a.thrift).unwrap(), client(&b.thrift).unwrap());
    let get = |client: &mut Client| client.get_id("test".to_owned(), "bill".to_owned()).unwrap();
    let missing = get(&mut to_b);
    assert_eq!((missing.res, missing.value), (Some(553), Some(-1)));
    let info = r#"{"project_name":"shop","id_name":"bill","id_prifx":"B","id_start":1000,
        "last_range":0,"max_range":100000,"min_range":100,"applicant":"me","redis_flag":1,
        "state":1,"min_load_interval":600,"load_percentage":0.1,"lock_expire":10,"other_info":""}"#;
    let added = to_a.add_new_id("test".to_owned(), info.to_owned()).unwrap();
    assert_eq!((added.res, added.value), (Some(200), Some(true)), "{added:?}");
    let began = Instant::now();
    let first = loop {
        let answer = get(&mut to_b);
        if answer.res == Some(200) {
            break answer.value.unwrap();
        }
        assert!(began.elapsed() < Duration::from_secs(1), "{answer:?}");
    };
    assert_eq!(first, 1_001, "the first id of the original is id_start + 1");
    assert_eq!(get(&mut to_a).value, Some(1_002));
    let text = to_b.get_str_id("test".to_owned(), "bill".to_owned(), true).unwrap();
    assert_eq!((text.res, text.value.as_deref()), (Some(200), Some("B1003")));
    let again = to_a.add_new_id("test".to_owned(), info.to_owned()).unwrap();
    assert_eq!(again.res, Some(553), "two types with one name: {again:?}");
    let broken = to_a.add_new_id("test".to_owned(), "{".to_owned()).unwrap();
    assert_eq!(broken.res, Some(552), "{broken:?}");
}

#[test]
fn ranges_end_at_the_highest_number_and_say_so() {
    let cluster = Cluster::start();
    let node = cluster.node();
    let first = (i64::MAX - 1_200).to_string();
    node.run(&["type", "add", "last", "--first-id", &first]);
    let mut client = client(&node.thrift).unwrap();
    let mut last = 0;
    for _ in 0..1_200 {
        let id = client.next_id("last".to_owned()).unwrap();
        assert!(id > last);
        last = id;
    }
    assert_eq!(last, i64::MAX - 1);
    let error = node.try_run(&["get", "last"]);
    assert_eq!(error.status.code(), Some(3), "refused");
    assert!(String::from_utf8_lossy(&error.stderr).contains("highest id"));
    let one_more = i64::MAX.to_string();
    let refused = node.try_run(&["type", "add", "beyond", "--first-id", &one_more]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("first_id"));
}

#[test]
fn what_cannot_work_is_refused_at_the_start_without_secrets() {
    let cluster = Cluster::start();
    let (_folder, data) = data_folder();
    let serve = |mysql: &str, redis: &str| {
        idgen(&[
            "serve",
            "--thrift",
            "127.0.0.1:0",
            "--http",
            "127.0.0.1:0",
            "--mysql",
            mysql,
            "--redis",
            redis,
            "--data",
            data.to_str().unwrap(),
        ])
    };
    let said = |output: &std::process::Output| {
        let text = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(!text.contains("hush"), "a secret in: {text}");
        assert!(!text.contains("panicked"), "{text}");
        text
    };
    let redis = cluster.redis.url();
    let user = &cluster.db.name;
    let wrong_password = cluster.mariadb.url(user, "hush-wrong", user);
    let output = serve(&wrong_password, &redis);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("password"), "{}", said(&output));
    let nobody = format!("mysql://app:hush@127.0.0.1:{}/idgen", support::free_port());
    let output = serve(&nobody, &redis);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    cluster.sql("CREATE DATABASE bare");
    let output = serve(&cluster.mariadb.url("root", "", "bare"), &redis);
    assert!(said(&output).contains("idgen schema apply"), "{}", said(&output));
    assert_ne!(output.status.code(), Some(0));
    let good = &cluster.db.app.url;
    for url in ["redis://:hush@:x", "http://hush@h", "redis://:hush@h:1/notanumber"] {
        let output = serve(good, url);
        assert_eq!(output.status.code(), Some(2), "{url}: {}", said(&output));
    }
    // A newer schema: a node that does not know it says which command helps.
    cluster.sql(
        "INSERT INTO idgen_schema_history SELECT 99, 'future', applied_on, checksum \
                 FROM idgen_schema_history LIMIT 1",
    );
    let output = serve(good, &redis);
    assert!(said(&output).contains("99"), "{}", said(&output));
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn a_redis_with_a_wrong_password_is_told_and_the_node_waits_for_it() {
    let redis = RedisServer::start_with(&["--requirepass", "hush-hush"]);
    let cluster = Cluster::with_redis(redis);
    let (_folder, data) = data_folder();
    let port = cluster.redis.port();
    let wrong = format!("redis://:hush-wrong@127.0.0.1:{port}");
    let thrift = format!("127.0.0.1:{}", support::free_port());
    let http = format!("127.0.0.1:{}", support::free_port());
    let mut child = support::node::command(&[
        "serve",
        "--thrift",
        &thrift,
        "--http",
        &http,
        "--mysql",
        &cluster.db.app.url,
        "--redis",
        &wrong,
        "--data",
        data.to_str().unwrap(),
    ])
    .env("IDGEN_ADMIN_TOKEN", support::node::TOKEN)
    .stderr(std::process::Stdio::piped())
    .stdout(std::process::Stdio::null())
    .spawn()
    .unwrap();
    let ready = || {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let agent = ureq::Agent::new_with_config(config);
        let mut answer = agent.get(format!("http://{http}/readyz")).call().ok()?;
        Some((answer.status().as_u16(), answer.body_mut().read_to_string().ok()?))
    };
    wait_for("the HTTP side answers", || ready().is_some());
    let (status, body) = ready().unwrap();
    assert_eq!(status, 503);
    assert!(body.contains("default") && !body.contains("hush"), "{body}");
    support::send_signal(child.id(), "TERM");
    let output = child.wait().unwrap();
    assert_eq!(output.code(), Some(0));
}

#[test]
fn the_doctor_finds_what_is_set_up_badly() {
    let redis = RedisServer::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let cluster = Cluster::with_redis(redis);
    let node = cluster.node(); // registers the instance
    let examine = || {
        let output = idgen(&["doctor", "--mysql", &cluster.db.app.url, "--json"]);
        let checks: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |name: &str| {
            let all = checks.as_array().unwrap();
            let found = all.iter().find(|c| c["part"] == "redis" && c["name"] == name);
            found.unwrap_or_else(|| panic!("no check {name}: {checks:#}"))["verdict"].clone()
        };
        (output.status.code(), of("eviction"), of("version"))
    };
    let (code, eviction, version) = examine();
    assert_eq!((code, version), (Some(1), "ok".into()), "the registered instance is checked");
    assert_eq!(eviction, "fail");
    cluster.redis.cli(&["config", "set", "maxmemory-policy", "noeviction"]);
    let (_, eviction, _) = examine();
    assert_eq!(eviction, "ok");
    drop(node);
}

/// A client whose last bytes come late still gets the whole answer: a server
/// that closes with unread input makes the kernel throw the answer away.
#[test]
fn a_long_answer_is_whole_for_a_client_that_ends_its_request_late() {
    use std::io::{Read, Write};
    let _turn = exclusive();
    let (_folder, data) = data_folder();
    let node = Node::start(&["--data", data.to_str().unwrap()]);
    node.run(&["type", "add", "order"]);
    assert_eq!(node.run(&["get", "order", "-n", "100000"]).lines().count(), 100_000);
    let address = node.url.trim_start_matches("http://");
    for _ in 0..5 {
        let mut socket = std::net::TcpStream::connect(address).unwrap();
        let head = format!(
            "POST /api/v1/types/order/ids?count=50000 HTTP/1.1\r\nHost: {address}\r\n\
             Authorization: Bearer {}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
            support::node::TOKEN
        );
        socket.write_all(head.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(20)); // the late end is the fault
        socket.write_all(b"0\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("not reset");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert_eq!(body.matches(',').count(), 50_000, "every id");
    }
}
