//! The clock of one node jumps by an hour, while it runs and before it starts.

use std::time::Duration;

use crate::cluster::{Chaos, Setup};
use crate::load::{Kind, MODES, SNOWFLAKE, Target};
use crate::report::Row;
use crate::{Scenario, wait_for};

pub const ALL: &[Scenario] = &[
    Scenario { name: "clock-forward", short: true, run: forward },
    Scenario { name: "clock-back", short: false, run: back },
    Scenario { name: "clock-wrong-at-start", short: false, run: at_start },
];

/// A node compares its clock with the store's when it renews its worker id,
/// eight times in this span. An hour is far beyond it all the same.
const OFTEN: &[&str] = &["--node-worker-lease-ms", "16000"];

const HOUR: i64 = 3_600;

/// Ids with the times of a wrong clock are by contract; only their order and
/// uniqueness are to be judged.
const ANY_TIME: Kind = Kind {
    verify: &["--clients", "3", "--pause-ms", "2", "--count", "500", "--max-skew-ms", "7200000"],
    ..SNOWFLAKE
};

const KINDS: &[Kind] = &[MODES[0], MODES[1], MODES[2], ANY_TIME];

fn forward(name: &'static str) -> Vec<Row> {
    moved(name, HOUR)
}

fn back(name: &'static str) -> Vec<Row> {
    moved(name, -HOUR)
}

fn moved(name: &'static str, seconds: i64) -> Vec<Row> {
    let cluster = Chaos::start(name, Setup { clocks: true, node: OFTEN, ..Setup::default() });
    let mut load = cluster.load(KINDS);
    load.target("others see no error", Target::OthersUntouched);
    load.victims(&[1]);
    for _ in 0..2 {
        load.fault();
        cluster.set_clock(1, seconds);
        shows_offset(&cluster, seconds);
        load.lasts(Duration::from_secs(2));
        load.flows_on(&[0, 2]);
        cluster.set_clock(1, 0);
        shows_offset(&cluster, 0);
        load.flows();
    }
    load.finish(&cluster.nodes)
}

/// Whether the clock was really moved: the node itself compares it with the
/// store's.
fn shows_offset(cluster: &Chaos, seconds: i64) {
    wait_for("the node's clock is moved", || {
        let offset = cluster.nodes[1].metric("idgen_clock_offset_seconds");
        (offset - seconds as f64).abs() < 5.0
    });
}

/// A node that is killed, and starts again with a wrong clock. One that is
/// behind takes a worker id without a past, and its ids are as old as its clock.
fn at_start(name: &'static str) -> Vec<Row> {
    let ordered_by = "in the order of a wrong clock";
    let kinds = [KINDS[0], KINDS[1], KINDS[2], ANY_TIME.unique_only(ordered_by)];
    let mut cluster = Chaos::start(name, Setup { clocks: true, node: OFTEN, ..Setup::default() });
    let mut load = cluster.load(&kinds);
    load.target("others see no error", Target::OthersUntouched);
    load.victims(&[1]);
    for seconds in [-HOUR, HOUR, 0] {
        load.fault();
        cluster.nodes[1].kill();
        cluster.set_clock(1, seconds);
        cluster.nodes[1].start_again();
        match seconds {
            // Its times are beyond every lease: no snowflake id is to be had.
            HOUR => load.flows_on(&[0, 2]),
            _ => load.flows(),
        }
        shows_offset(&cluster, seconds);
    }
    load.finish(&cluster.nodes)
}
