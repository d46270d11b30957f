//! The ratios that this is all about, and what they should be.

use serde::{Deserialize, Serialize};

use crate::line_up::*;
use crate::numbers::{Spread, Target, quotient};
use crate::sample::{Contender, Sample};

/// What is taken of the contenders within a round.
#[derive(Clone, Copy, Debug)]
enum Measure {
    /// Requests/s of one over those of another.
    Rate(&'static str, &'static str),
    /// p99.9 of one over that of another.
    Tail(&'static str, &'static str),
    /// p50 of one over the sum of those of two others.
    RoundTrips(&'static str, [&'static str; 2]),
    /// Processor time of the nodes per id, of one over another.
    NodeTime(&'static str, &'static str),
    /// Millions of ids/s.
    MillionIds(&'static str),
    /// What a silent connection costs, in KB (of 1 024 bytes).
    IdleKb(&'static str),
}

use Measure::{IdleKb, MillionIds, NodeTime, Rate, RoundTrips, Tail};
use Target::{AtLeast, AtMost};

/// In the order of the line-up.
const GOALS: [(Measure, Target); 24] = [
    (Rate(NULL, FLOOR), AtLeast(0.85)),
    (Rate(SEGMENT, NULL), AtLeast(0.95)),
    (Rate(SNOWFLAKE, NULL), AtLeast(0.95)),
    (Rate(STRICT, NULL), AtLeast(0.85)),
    (Rate(STRICT, INCR), AtLeast(1.3)),
    (RoundTrips(STRICT_1C, [FLOOR_1C, INCR_1C]), AtMost(1.3)),
    (Rate(STRICT_3N, STRICT), AtLeast(0.95)),
    (NodeTime(STRICT_3N, STRICT), AtMost(1.0)),
    (MillionIds(THOUSAND), AtLeast(40.0)),
    (Rate(SEGMENT_8X32, SEGMENT_8X1), AtLeast(3.0)),
    (Rate(STRICT_8X32, STRICT_8X1), AtLeast(3.0)),
    (Tail(REFILLS, SEGMENT), AtMost(1.1)),
    (Rate(IDLE10K, SEGMENT), AtLeast(0.95)),
    (IdleKb(IDLE10K), AtMost(8.0)),
    (Rate(EMBEDDED, NULL), Target::None),
    (NodeTime(NULL, FLOOR), Target::None),
    (NodeTime(SEGMENT, NULL), Target::None),
    (NodeTime(STRICT, NULL), Target::None),
    (Rate(NULL_MT, NULL), Target::None),
    (Rate(SEGMENT_MT, NULL_MT), Target::None),
    (Rate(STRICT_MT, NULL_MT), Target::None),
    (Rate(STRICT_MT, INCR_MT), Target::None),
    (Rate(STRICT, INCR_RB), Target::None),
    // How far our client is from the one that everybody knows.
    (Rate(INCR_RB, INCR), Target::None),
];

/// A number with its target, over the rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ratio {
    pub name: String,
    pub target: Target,
    /// Of each round: so what slows a whole round down (a noisy neighbour, a hot
    /// processor) cancels out. `None` where it could not be measured.
    pub by_round: Vec<Option<f64>>,
    pub measured: Option<Spread>,
}

impl Ratio {
    pub fn new(name: String, target: Target, by_round: Vec<Option<f64>>) -> Ratio {
        let measured = Spread::of(by_round.iter().flatten().copied());
        Ratio { name, target, by_round, measured }
    }

    pub fn is_missed(&self) -> bool {
        self.measured.is_some_and(|measured| !self.target.is_met(measured.median))
    }
}

/// What is read of an earlier run.
#[derive(Clone, Debug, Deserialize)]
pub struct Earlier {
    pub ratios: Vec<Ratio>,
}

/// All ratios between these contenders.
pub fn ratios(contenders: &[Contender]) -> Vec<Ratio> {
    let is_there = |name: &&str| contenders.iter().any(|c| c.name == *name);
    let goals = GOALS.iter().filter(|(measure, _)| measure.contenders().iter().all(is_there));
    let rounds = contenders.iter().map(|c| c.samples.len()).max().unwrap_or(0);
    goals
        .map(|(measure, target)| {
            let by_round = (0..rounds).map(|n| measure.value(&Round { contenders, n })).collect();
            Ratio::new(measure.name(), *target, by_round)
        })
        .collect()
}

struct Round<'a> {
    contenders: &'a [Contender],
    n: usize,
}

impl Round<'_> {
    fn sample(&self, name: &str) -> Option<&Sample> {
        let contender = self.contenders.iter().find(|c| c.name == name)?;
        contender.samples.get(self.n)?.as_ref()
    }

    fn quotient(&self, a: &str, b: &str, of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        quotient(of(self.sample(a)?)?, of(self.sample(b)?)?)
    }
}

impl Measure {
    fn contenders(self) -> Vec<&'static str> {
        match self {
            Rate(a, b) | Tail(a, b) | NodeTime(a, b) => vec![a, b],
            RoundTrips(a, [b, c]) => vec![a, b, c],
            MillionIds(a) | IdleKb(a) => vec![a],
        }
    }

    fn name(self) -> String {
        match self {
            Rate(a, b) => format!("{a} / {b}"),
            Tail(a, b) => format!("p99.9 {a} / {b}"),
            RoundTrips(a, [b, c]) => format!("p50 {a} / ({b} + {c})"),
            NodeTime(a, b) => format!("node µs {a} / {b}"),
            MillionIds(a) => format!("million ids/s {a}"),
            IdleKb(a) => format!("KB per idle connection {a}"),
        }
    }

    fn value(self, round: &Round<'_>) -> Option<f64> {
        match self {
            Rate(a, b) => round.quotient(a, b, |s| Some(s.requests_per_s)),
            Tail(a, b) => round.quotient(a, b, |s| s.p999_us),
            RoundTrips(a, [b, c]) => {
                let sum = round.sample(b)?.p50_us + round.sample(c)?.p50_us;
                quotient(round.sample(a)?.p50_us, sum)
            }
            NodeTime(a, b) => {
                let ids_per_request = |s: &Sample| quotient(s.ids_per_s, s.requests_per_s);
                round.quotient(a, b, |s| quotient(s.cpu.node_us?, ids_per_request(s)?))
            }
            MillionIds(a) => Some(round.sample(a)?.ids_per_s / 1e6),
            IdleKb(a) => Some(round.sample(a)?.idle_bytes? / 1_024.0),
        }
    }
}
