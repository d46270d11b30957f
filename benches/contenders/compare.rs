//! The comparison: all contenders, round after round.

use std::io::{self, Write};
use std::path::Path;

use crate::line_up::LINE_UP;
use crate::options::Options;
use crate::process::{self, Folder};
use crate::results::{self, Results};
use crate::sample::Contender;
use crate::stage::Stage;
use crate::targets::Earlier;
use crate::turn::Contestant;
use crate::{facts, guard, plot, ramp, table, targets};

/// Measures and tells.
pub fn run(options: &Options) -> Result<(), String> {
    let earlier = options.against.as_deref().map(read_earlier).transpose()?;
    let results = measure(options)?;
    let unwritable = |e: io::Error| format!("the results cannot be written: {e}");
    if options.guard {
        results::save("guard.json", &results).map_err(unwritable)?;
        let mut out = io::stdout();
        let missing = guard::print(&results.ratios, earlier.as_ref(), &mut out);
        for left_out in results.contenders.iter().filter_map(|c| c.left_out.as_ref()) {
            writeln!(out, "left out: {left_out}").map_err(unwritable)?;
        }
        return match missing.map_err(unwritable)? {
            0 => Ok(()),
            missing => Err(format!("{missing} ratios could not be measured")),
        };
    }
    table::print(&results, &mut io::stdout()).map_err(unwritable)?;
    results::save("contenders.json", &results).map_err(unwritable)?;
    let undrawable = |e: Box<dyn std::error::Error>| format!("no picture: {e}");
    let picture = results::project_file("target/bench/contenders.svg");
    plot::draw(&results, &picture).map_err(undrawable)?;
    if options.publish {
        let file = results::project_file("docs/performance.json");
        results::write_json(&file, &results).map_err(unwritable)?;
        let picture = results::project_file("docs/pictures/performance.svg");
        plot::draw(&results, &picture).map_err(undrawable)?;
    }
    Ok(())
}

fn read_earlier(path: &Path) -> Result<Earlier, String> {
    let unreadable = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(&e))?;
    serde_json::from_str(&text).map_err(|e| unreadable(&e))
}

fn measure(options: &Options) -> Result<Results, String> {
    let facts = facts::collect();
    process::heed_interrupts().map_err(|e| e.to_string())?;
    let folder = Folder::create().map_err(|e| format!("no temporary folder: {e}"))?;
    let mut stage = Stage::new(&folder);
    let mut field: Vec<(Contender, Option<Contestant>)> = Vec::new();
    for entry in LINE_UP.iter().filter(|e| options.chosen(e.name, e.is_lean())) {
        process::uninterrupted()?;
        eprintln!("starting {}", entry.name);
        let (contestant, left_out) = match stage.place(entry.server) {
            Ok(place) => (Some(Contestant::new(entry, place)), None),
            Err(reason) => (None, Some(reason)),
        };
        let (name, what, samples) = (entry.name, entry.what, Vec::new());
        field.push((Contender { name, what, samples, left_out }, contestant));
    }
    let times = options.times();
    for round in 1..=options.rounds() {
        // There and back, so that being early or late in a round is no advantage.
        let mut order: Vec<_> = field.iter_mut().collect();
        if round % 2 == 0 {
            order.reverse();
        }
        for (contender, contestant) in order {
            let Some(contestant) = contestant else { continue };
            process::uninterrupted()?;
            let sample = contestant.take_turn(times);
            match &sample {
                Ok(s) => eprintln!("round {round}: {} {:.0}/s", contender.name, s.requests_per_s),
                Err(error) => eprintln!("round {round}: {}: {error}", contender.name),
            }
            contender.samples.push(sample.ok());
        }
    }
    let ramp = match stage.leasing_node() {
        Some(node) if options.ramp => ramp::climb(node, times.connections)?.ratios(),
        _ => Vec::new(),
    };
    let contenders: Vec<Contender> = field.into_iter().map(|(contender, _)| contender).collect();
    let mut ratios = targets::ratios(&contenders);
    ratios.extend(ramp);
    let rounds = usize::from(options.rounds());
    let idle = stage.close();
    let warnings = Vec::new();
    let mut results = Results { facts, rounds, times, contenders, ratios, idle, warnings };
    results.find_warnings();
    Ok(results)
}
