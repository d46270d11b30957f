//! What was measured of a contender.

use serde::Serialize;

use crate::cpu::PerRequest;
use crate::numbers::Spread;

/// One contender in one round.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub requests_per_s: f64,
    /// Ids, where a call brings more than one.
    pub ids_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// `None` where the load does not tell it.
    pub p999_us: Option<f64>,
    pub max_us: f64,
    pub errors: u64,
    /// Processor time per request.
    #[serde(flatten)]
    pub cpu: PerRequest,
    /// What the node keeps of each silent connection, in bytes.
    pub idle_bytes: Option<f64>,
}

/// How long a turn is.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Times {
    pub connections: u32,
    /// Before each turn; the blocking clients have a second.
    pub warm_up_ms: u64,
    pub seconds: u64,
}

/// One contender in all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Contender {
    pub name: &'static str,
    pub what: &'static str,
    /// By round; `None` where it could not be measured.
    pub samples: Vec<Option<Sample>>,
    /// Why it was not measured, if it was not.
    pub left_out: Option<String>,
}

impl Contender {
    /// A number of its turns, where they have it.
    pub fn spread(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.samples.iter().flatten().filter_map(of))
    }
}
