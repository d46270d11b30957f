//! The results for people.

use std::io::{Result, Write};

use crate::numbers::Spread;
use crate::results::Results;
use crate::sample::{Contender, Sample};

type Column = (&'static str, fn(&Sample) -> Option<f64>, usize);

/// Medians of the rounds, with so many decimals.
const COLUMNS: [Column; 8] = [
    ("p50 µs", |s| Some(s.p50_us), 0),
    ("p99 µs", |s| Some(s.p99_us), 0),
    ("p99.9 µs", |s| s.p999_us, 0),
    ("max µs", |s| Some(s.max_us), 0),
    ("node µs", |s| s.cpu.node_us, 2),
    ("Redis µs", |s| s.cpu.redis_us, 2),
    ("MariaDB µs", |s| s.cpu.mariadb_us, 2),
    ("client µs", |s| s.cpu.client_us, 2),
];

/// Prints everything.
pub fn print(results: &Results, out: &mut dyn Write) -> Result<()> {
    let facts = &results.facts;
    writeln!(
        out,
        "\n{}, {} cores, {} MB, Linux {}; load before: {}",
        facts.cpu, facts.cores, facts.memory_mb, facts.kernel, facts.load_average_before
    )?;
    writeln!(out, "{}; {}; {}", facts.rustc, facts.redis, facts.mariadb)?;
    writeln!(
        out,
        "{} connections and one id per call but where said, {} rounds of {} s each, taking turns;\n\
         after the latencies: processor time per request\n",
        results.times.connections, results.rounds, results.times.seconds
    )?;
    write!(out, "{:<12} {:>10} {:>10} {:>10}", "", "requests/s", "lowest", "highest")?;
    for (title, ..) in COLUMNS {
        write!(out, " {title:>10}")?;
    }
    writeln!(out)?;
    for contender in &results.contenders {
        print_contender(contender, out)?;
    }
    writeln!(out, "\n{:<38} {:>8}  {:>8}  {:>8}", "", "target", "median", "spread")?;
    for ratio in &results.ratios {
        let target = ratio.target.words();
        match ratio.measured {
            Some(Spread { median, min, max }) => {
                let name = &ratio.name;
                writeln!(out, "{name:<38} {target:>8}  {median:>8.2}  {min:.2} to {max:.2}")?;
            }
            None => writeln!(out, "{:<38} {target:>8}  not measured", ratio.name)?,
        }
    }
    writeln!(out)?;
    print_idle(results, out)?;
    for warning in &results.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

fn print_contender(contender: &Contender, out: &mut dyn Write) -> Result<()> {
    write!(out, "{:<12}", contender.name)?;
    let Some(rate) = contender.spread(|s| Some(s.requests_per_s)) else {
        return writeln!(out, "  {}", contender.left_out.as_deref().unwrap_or("not measured"));
    };
    write!(out, " {:>10.0} {:>10.0} {:>10.0}", rate.median, rate.min, rate.max)?;
    for (_, of, decimals) in COLUMNS {
        match contender.spread(of) {
            Some(Spread { median, .. }) => write!(out, " {median:>10.decimals$}")?,
            None => write!(out, " {:>10}", "")?,
        }
    }
    writeln!(out, "   {}", contender.what)
}

fn print_idle(results: &Results, out: &mut dyn Write) -> Result<()> {
    for idle in &results.idle {
        let mb = |mb: Option<f64>| mb.map_or("?".to_owned(), |mb| format!("{mb:.1} MB"));
        writeln!(
            out,
            "{:<12} first id after {:.0} ms, resident {} idle and {} after the load, stopped in {}",
            idle.name,
            idle.first_id_ms,
            mb(idle.resident_mb),
            mb(idle.resident_after_load_mb),
            idle.stop_ms.map_or("?".to_owned(), |ms| format!("{ms:.0} ms")),
        )?;
    }
    Ok(())
}
