//! How the service grows with connections, nodes and types.

mod connections;
mod nodes;
mod spread;
mod types;

use serde::Serialize;

use crate::facts::{self, Facts};
use crate::options::{Options, Scale};
use crate::process::{self, Folder};
use crate::results;

/// Types at the end of the ladder, if nothing else is asked for: more take
/// minutes, at about a thousand first uses a second.
const TYPES: u64 = 10_000;

/// A table with what it was measured on.
#[derive(Serialize)]
struct Measured<T> {
    facts: Facts,
    #[serde(flatten)]
    steps: T,
}

/// Measures one of them, prints it, and keeps it as JSON.
pub fn measure(what: Scale, options: &Options) -> Result<(), String> {
    let facts = facts::collect();
    process::heed_interrupts().map_err(|e| e.to_string())?;
    let folder = Folder::create().map_err(|e| format!("no temporary folder: {e}"))?;
    let times = options.times();
    let within = |steps: &[u64], most: u64| -> Vec<u64> {
        steps.iter().copied().filter(|step| *step <= most).collect()
    };
    let most = options.most;
    match what {
        Scale::Connections => {
            let steps = within(&[1, 10, 100, 1_000, 10_000], most.unwrap_or(10_000));
            keep(facts, "scale-connections.json", connections::measure(&steps, times, &folder)?)
        }
        Scale::Nodes => {
            let steps = within(&[1, 2, 4, 8], most.unwrap_or(8));
            keep(facts, "scale-nodes.json", nodes::measure(&steps, times, &folder)?)
        }
        Scale::Types => {
            let most = most.unwrap_or(TYPES);
            let mut steps = within(&[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000], most);
            if steps.last() != Some(&most) {
                steps.push(most);
            }
            keep(facts, "scale-types.json", types::measure(&steps, times, &folder)?)
        }
    }
}

fn keep(facts: Facts, name: &str, steps: impl Serialize) -> Result<(), String> {
    results::save(name, &Measured { facts, steps })
        .map_err(|e| format!("the results cannot be written: {e}"))
}

/// A line of a table: numbers with so many decimals, `-` for those that are not there.
fn print_row(cells: &[(Option<f64>, usize)]) {
    let cells: Vec<String> = cells
        .iter()
        .map(|(number, decimals)| match number {
            Some(number) => format!("{number:>14.decimals$}"),
            None => format!("{:>14}", "-"),
        })
        .collect();
    println!("{}", cells.concat());
}

fn print_head(titles: &[&str]) {
    let titles: Vec<String> = titles.iter().map(|title| format!("{title:>14}")).collect();
    println!("{}", titles.concat());
}
