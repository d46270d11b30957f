//! The regression guard: one line per ratio. It warns; it fails only where
//! something could not be measured, because speed depends on the machine.

use std::io::{self, Write};

use crate::numbers::{Spread, Target};
use crate::targets::{Earlier, Ratio};

/// Prints a line for each ratio with a target, and says how many could not be
/// measured.
pub fn print(
    ratios: &[Ratio],
    earlier: Option<&Earlier>,
    out: &mut dyn Write,
) -> io::Result<usize> {
    let mut missing = 0;
    for ratio in ratios.iter().filter(|ratio| ratio.target != Target::None) {
        let (name, target) = (&ratio.name, ratio.target.words());
        let Some(now) = ratio.measured else {
            missing += 1;
            writeln!(out, "{name:<38} {target:>8}  not measured")?;
            continue;
        };
        let Spread { median, min, max } = now;
        let range = format!("{min:.2} to {max:.2}");
        let verdict = verdict(ratio, now, earlier);
        writeln!(out, "{name:<38} {target:>8}  {median:>8.2}  {range:<18}  {verdict}")?;
    }
    Ok(missing)
}

/// `ok`, or what there is to warn about.
pub fn verdict(ratio: &Ratio, now: Spread, earlier: Option<&Earlier>) -> String {
    let mut words = Vec::new();
    if ratio.is_missed() {
        words.push("missed".to_owned());
    }
    if let Some(before) = earlier.and_then(|earlier| find(earlier, &ratio.name))
        && ratio.target.loss(&before, &now).is_some()
    {
        words.push(format!("worse than before, {:.2}", before.median));
    }
    match words.is_empty() {
        true => "ok".to_owned(),
        false => format!("warn: {}", words.join(", ")),
    }
}

fn find(earlier: &Earlier, name: &str) -> Option<Spread> {
    earlier.ratios.iter().find(|ratio| ratio.name == name)?.measured
}
