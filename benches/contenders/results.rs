//! What was measured, and what it means: medians, spread and ratios.

use std::io::Write;

use serde::Serialize;

/// One contender in one round.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub requests_per_s: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// `None` where the load does not tell it.
    pub p999_us: Option<f64>,
    pub max_us: f64,
    /// Ids, where a call brings more than one.
    pub ids_per_s: f64,
    pub errors: u64,
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
    fn rates(&self) -> impl Iterator<Item = f64> + '_ {
        self.samples.iter().flatten().map(|s| s.requests_per_s)
    }
}

/// The middle, the lowest and the highest of some numbers.
#[derive(Clone, Copy, Debug, Serialize)]
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
}

/// One contender's rate over another's.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    pub of: &'static str,
    pub to: &'static str,
    /// Of the ratios within each round: so what slows a whole round down (a
    /// noisy neighbour, a hot processor) cancels out.
    pub ratio: Option<Spread>,
    /// What the issue asks for.
    pub target: f64,
}

impl Ratio {
    pub fn between(of: &Contender, to: &Contender, target: f64) -> Ratio {
        let pairs = of.samples.iter().zip(&to.samples);
        let ratios = pairs.filter_map(|(a, b)| {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            (b.requests_per_s > 0.0).then(|| a.requests_per_s / b.requests_per_s)
        });
        Ratio { of: of.name, to: to.name, ratio: Spread::of(ratios), target }
    }
}

/// A figure with a limit of its own.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    pub what: &'static str,
    pub value: Option<Spread>,
    /// The least or the most that the issue asks for.
    pub least: Option<f64>,
    pub most: Option<f64>,
}

impl Figure {
    fn is_missed(&self) -> bool {
        self.value.is_some_and(|spread| {
            self.least.is_some_and(|least| spread.median < least)
                || self.most.is_some_and(|most| spread.median > most)
        })
    }

    fn target(&self) -> String {
        match (self.least, self.most) {
            (Some(least), _) => format!("target at least {least}"),
            (None, Some(most)) => format!("target at most {most}"),
            (None, None) => "no target".to_owned(),
        }
    }
}

/// What is measured of a node that has nothing to do.
#[derive(Clone, Debug, Serialize)]
pub struct Idle {
    pub name: &'static str,
    /// From the start of the process, over its data of before, to the first id.
    pub first_id_ms: f64,
    /// Resident memory after the first id, before any load.
    pub resident_mb: Option<f64>,
    /// The same after all rounds.
    pub resident_after_load_mb: Option<f64>,
    /// From SIGTERM to the end of the process.
    pub stop_ms: Option<f64>,
}

/// What the figures were measured on.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    pub cpu: String,
    pub cores: usize,
    pub memory_mb: u64,
    pub kernel: String,
    pub load_average_before: String,
    pub idgen: &'static str,
    pub rustc: String,
    pub redis: String,
    pub mariadb: String,
}

/// Everything; its JSON form is `target/bench/contenders.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    pub facts: Facts,
    pub connections: u32,
    pub seconds: u64,
    pub rounds: usize,
    pub contenders: Vec<Contender>,
    pub ratios: Vec<Ratio>,
    pub figures: Vec<Figure>,
    pub idle: Vec<Idle>,
    pub warnings: Vec<String>,
}

/// Most resident memory of an idle node, in MB.
const RESIDENT_TARGET_MB: f64 = 30.0;
/// Longest time from start to first id, in milliseconds.
const FIRST_ID_TARGET_MS: f64 = 1_000.0;

impl Results {
    /// What misses its target or could not be measured, in words.
    pub fn find_warnings(&mut self) {
        let mut warnings = Vec::new();
        for contender in &self.contenders {
            if let Some(reason) = &contender.left_out {
                warnings.push(format!("{} was left out: {reason}", contender.name));
            }
            let errors: u64 = contender.samples.iter().flatten().map(|s| s.errors).sum();
            if errors > 0 {
                warnings.push(format!("{}: {errors} calls failed", contender.name));
            }
        }
        for ratio in &self.ratios {
            if let Some(spread) = ratio.ratio.filter(|s| s.median < ratio.target) {
                let (of, to, target) = (ratio.of, ratio.to, ratio.target);
                let median = spread.median;
                warnings.push(format!("{of} is {median:.2} of {to}; the target is {target:.1}"));
            }
        }
        for figure in self.figures.iter().filter(|figure| figure.is_missed()) {
            let median = figure.value.map_or(0.0, |spread| spread.median);
            warnings.push(format!("{}: {median:.2}; {}", figure.what, figure.target()));
        }
        for idle in &self.idle {
            if let Some(mb) = idle.resident_mb.filter(|mb| *mb > RESIDENT_TARGET_MB) {
                let target = format!("the target is under {RESIDENT_TARGET_MB} MB");
                warnings.push(format!("{} is {mb:.1} MB resident; {target}", idle.name));
            }
            if idle.first_id_ms > FIRST_ID_TARGET_MS {
                let (name, ms) = (idle.name, idle.first_id_ms);
                let target = format!("the target is within {FIRST_ID_TARGET_MS} ms");
                warnings.push(format!("{name}: first id after {ms:.0} ms; {target}"));
            }
        }
        self.warnings = warnings;
    }

    /// Prints everything for a person.
    pub fn print(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let facts = &self.facts;
        writeln!(
            out,
            "\n{}, {} cores, {} MB, Linux {}; load before: {}",
            facts.cpu, facts.cores, facts.memory_mb, facts.kernel, facts.load_average_before
        )?;
        writeln!(out, "{}; {}; {}", facts.rustc, facts.redis, facts.mariadb)?;
        writeln!(
            out,
            "{} connections, one id per call but where said, {} rounds of {} s each, taking turns\n",
            self.connections, self.rounds, self.seconds
        )?;
        let head = ["requests/s", "lowest", "highest", "p50 µs", "p99 µs", "p99.9 µs", "max µs"];
        write!(out, "{:<10}", "")?;
        for title in head {
            write!(out, " {title:>10}")?;
        }
        writeln!(out)?;
        for contender in &self.contenders {
            write!(out, "{:<10}", contender.name)?;
            let Some(rate) = Spread::of(contender.rates()) else {
                let reason = contender.left_out.as_deref().unwrap_or("not measured");
                writeln!(out, "  {reason}")?;
                continue;
            };
            let median = |of: fn(&Sample) -> f64| {
                Spread::of(contender.samples.iter().flatten().map(of)).map_or(0.0, |s| s.median)
            };
            let (p50, p99) = (median(|s| s.p50_us), median(|s| s.p99_us));
            let max = median(|s| s.max_us);
            let p999 = median(|s| s.p999_us.unwrap_or_default());
            for number in [rate.median, rate.min, rate.max, p50, p99, p999, max] {
                write!(out, " {number:>10.0}")?;
            }
            writeln!(out, "   {}", contender.what)?;
        }
        writeln!(out)?;
        for ratio in &self.ratios {
            if let Some(Spread { median, min, max }) = ratio.ratio {
                let name = format!("{} / {}", ratio.of, ratio.to);
                let target = ratio.target;
                writeln!(
                    out,
                    "{name:<18} {median:>6.2}   ({min:.2} to {max:.2}; target at least {target:.1})"
                )?;
            }
        }
        for figure in &self.figures {
            if let Some(Spread { median, min, max }) = figure.value {
                let target = figure.target();
                writeln!(out, "{}: {median:.2}   ({min:.2} to {max:.2}; {target})", figure.what)?;
            }
        }
        writeln!(out)?;
        for idle in &self.idle {
            let mb = |mb: Option<f64>| mb.map_or("?".to_owned(), |mb| format!("{mb:.1} MB"));
            writeln!(
                out,
                "{:<10} first id after {:.0} ms, resident {} idle and {} after the load, stopped in {}",
                idle.name,
                idle.first_id_ms,
                mb(idle.resident_mb),
                mb(idle.resident_after_load_mb),
                idle.stop_ms.map_or("?".to_owned(), |ms| format!("{ms:.0} ms")),
            )?;
        }
        for warning in &self.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        Ok(())
    }
}
