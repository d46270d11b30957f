//! Does a segment type keep up while its rate doubles every ten seconds?
//!
//! The number of clients stays, and with it the number of calls; each step asks
//! for twice as many ids per call. So the machine is not the limit, and what
//! changes is how soon ranges are used up.

use idgen::cli::bench::{BenchArgs, measure};
use idgen::cli::load::{Method, WireArgs};

use crate::node::IdNode;
use crate::numbers::Target;
use crate::process::Outcome;
use crate::targets::Ratio;

const TYPE: &str = "ramp";
/// Each step is measured for nine seconds, after one of warm-up.
const SECONDS: u64 = 9;

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    pub p999_us: f64,
}

/// All steps.
#[derive(Clone, Debug)]
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
        steps.push(Step { p999_us: report.p999_us });
        if count == 1 {
            // The first calls of a new type wait for its first range.
            waits_before = node.metric("idgen_waits_total")?;
        }
    }
    let waits = node.metric("idgen_waits_total")? - waits_before;
    Ok(Ramp { steps, waits })
}

impl Ramp {
    /// Its figures beside the ratios.
    pub fn ratios(&self) -> Vec<Ratio> {
        let tails = self.steps.iter().map(|step| Some(step.p999_us / self.steps[0].p999_us));
        vec![
            Ratio::new(
                "calls that waited while it doubled".to_owned(),
                Target::AtMost(0.0),
                vec![Some(self.waits)],
            ),
            Ratio::new("p99.9 while it doubled / before".to_owned(), Target::None, tails.collect()),
        ]
    }
}
