//! What can be asked for.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::line_up::LINE_UP;
use crate::sample::Times;

/// Measures the service beside its yardsticks; see docs/performance.md.
#[derive(Parser)]
#[command(name = "contenders")]
pub struct Options {
    /// How many rounds [default: 5, or 3 with --quick or --guard]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: Option<u16>,
    /// How long each contender is measured in a round [default: 2, or 1 with --quick or --guard]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,
    /// How many clients at a time, where a contender has no number of its own.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    connections: u32,
    /// Short turns, and only those that targets are about.
    #[arg(long)]
    quick: bool,
    /// Measure only these.
    #[arg(long, value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
    /// Also double the rate of ids on a segment type every ten seconds, a minute long.
    #[arg(long)]
    pub ramp: bool,
    /// A quick run that prints one line per ratio; fails only if one could not be measured.
    #[arg(long)]
    pub guard: bool,
    /// With --guard: warn also where a ratio is worse than in this file of an earlier run.
    #[arg(long, value_name = "FILE", requires = "guard")]
    pub against: Option<PathBuf>,
    /// Put the results into the documentation.
    #[arg(long, conflicts_with_all = ["quick", "guard", "only", "scale"])]
    pub publish: bool,
    /// Measure nothing but how the service scales.
    #[arg(long, value_enum, conflicts_with = "guard")]
    pub scale: Option<Scale>,
    /// With --scale: where the ladder ends [default: its end, or 10 000 types]
    #[arg(long, value_name = "N", requires = "scale", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub most: Option<u64>,
    /// What `cargo bench` passes to every benchmark.
    #[arg(long, hide = true)]
    pub bench: bool,
}

/// With what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    Connections,
    Nodes,
    Types,
}

impl Options {
    fn is_quick(&self) -> bool {
        self.quick || self.guard
    }

    pub fn rounds(&self) -> u16 {
        self.rounds.unwrap_or(if self.is_quick() { 3 } else { 5 })
    }

    pub fn times(&self) -> Times {
        let quick = self.is_quick();
        Times {
            connections: self.connections,
            warm_up_ms: if quick { 500 } else { 1_000 },
            seconds: self.seconds.unwrap_or(if quick { 1 } else { 2 }),
        }
    }

    /// Whether a contender takes part.
    pub fn chosen(&self, name: &str, is_lean: bool) -> bool {
        match self.only.is_empty() {
            true => is_lean || !self.is_quick(),
            false => self.only.iter().any(|only| only == name),
        }
    }
}

fn names() -> Vec<&'static str> {
    LINE_UP.iter().map(|entry| entry.name).collect()
}
