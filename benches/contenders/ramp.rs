//! Does a segment type keep up while its rate doubles every ten seconds?
//!
//! The number of clients stays, and with it the number of calls; each step asks
//! for twice as many ids per call. So the machine is not the limit, and what
//! changes is how soon ranges are used up.

use idgen::cli::bench::{BenchArgs, measure};
use idgen::cli::load::{Method, WireArgs};
use serde::Serialize;

use crate::processes::{IdNode, Outcome};

const TYPE: &str = "ramp";
/// Each step is measured for nine seconds, after one of warm-up.
const SECONDS: u64 = 9;

/// One step.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    pub count: u32,
    pub ids_per_s: f64,
    pub p999_us: f64,
}

/// All steps.
#[derive(Clone, Debug, Serialize)]
pub struct Ramp {
    pub steps: Vec<Step>,
    /// Calls that found no ids at hand, after the first step.
    pub waits: f64,
}

/// Adds a type with the default settings, and doubles.
pub fn climb(node: &IdNode, connections: u32) -> Outcome<Ramp> {
    node.add_type(TYPE, &["--mode", "segment"])?;
    let mut steps = Vec::new();
    let mut waits_before = 0.0;
    for count in [1, 2, 4, 8, 16, 32] {
        let arguments = BenchArgs {
            rate: None,
            nodes: vec![node.thrift.to_string()],
            id_type: TYPE.to_owned(),
            connections,
            seconds: SECONDS,
            count,
            gate_passes: None,
            texts: false,
            method: Method::NextId,
            wire: WireArgs::default(),
            json: false,
        };
        let report = measure(&arguments).map_err(|e| e.to_string())?;
        eprintln!("ramp: {:.0} ids/s, p99.9 {:.0} µs", report.ids_per_s, report.p999_us);
        steps.push(Step { count, ids_per_s: report.ids_per_s, p999_us: report.p999_us });
        if count == 1 {
            // The first calls of a new type wait for its first range.
            waits_before = node.metric("idgen_waits_total")?;
        }
    }
    let waits = node.metric("idgen_waits_total")? - waits_before;
    Ok(Ramp { steps, waits })
}
