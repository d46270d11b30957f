//! Medians and spread of what the rounds brought, and what they are held against.

use serde::{Deserialize, Serialize};

/// The middle, the lowest and the highest of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// `None` of nothing.
    pub fn of(numbers: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = numbers.collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[middle],
            _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
        };
        Some(Spread { median, min, max })
    }

    pub fn width(&self) -> f64 {
        self.max - self.min
    }
}

/// `a / b`, unless that is nothing to go by.
pub fn quotient(a: f64, b: f64) -> Option<f64> {
    (a >= 0.0 && b > 0.0).then(|| a / b)
}

/// What a number should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// Worth knowing, no more.
    None,
}

impl Target {
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
            Target::None => true,
        }
    }

    /// How far the target is reached: 1 where it is met exactly, more beyond.
    pub fn reached(self, value: f64) -> Option<f64> {
        match self {
            Target::AtLeast(least) => quotient(value, least),
            Target::AtMost(most) => quotient(most, value),
            Target::None => None,
        }
    }

    pub fn words(self) -> String {
        match self {
            Target::AtLeast(least) => format!(">= {least}"),
            Target::AtMost(most) => format!("<= {most}"),
            Target::None => "-".to_owned(),
        }
    }

    /// By how much `now` is worse than `before`, if it is more than the rounds
    /// of either run differ among themselves.
    pub fn loss(self, before: &Spread, now: &Spread) -> Option<f64> {
        let loss = match self {
            Target::AtLeast(_) => before.median - now.median,
            Target::AtMost(_) => now.median - before.median,
            Target::None => return None,
        };
        (loss > before.width() && loss > now.width() && loss > 0.0).then_some(loss)
    }
}
