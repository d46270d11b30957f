//! Everything that a run brought.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::facts::Facts;
use crate::sample::{Contender, Times};
use crate::stage::Idle;
use crate::targets::Ratio;

/// Everything; its JSON form is `target/bench/contenders.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    pub facts: Facts,
    pub rounds: usize,
    #[serde(flatten)]
    pub times: Times,
    pub contenders: Vec<Contender>,
    pub ratios: Vec<Ratio>,
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
        for ratio in self.ratios.iter().filter(|ratio| ratio.is_missed()) {
            let median = ratio.measured.map_or(0.0, |spread| spread.median);
            let target = ratio.target.words();
            warnings.push(format!("{} is {median:.2}; the target is {target}", ratio.name));
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
}

/// A file of this project.
pub fn project_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Writes `what` as JSON, where results of benchmarks are.
pub fn save(name: &str, what: &impl Serialize) -> io::Result<()> {
    write_json(&project_file("target/bench").join(name), what)
}

/// Writes `what` as JSON.
pub fn write_json(path: &Path, what: &impl Serialize) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, serde_json::to_string_pretty(what)? + "\n")
}
