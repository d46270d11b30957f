//! Real processes, real faults: nodes × modes × faults, with `idgen verify` as
//! the judge. See docs/reliability.md.
//!
//! Without arguments it runs a short selection, as a part of `cargo test`;
//! `--all` runs the campaign (`make chaos`). Times are shown and not judged.

mod clock;
mod cluster;
mod embedded;
mod load;
mod mariadb;
mod migration;
mod network;
mod nodes;
mod redis;
mod report;
#[path = "../support/mod.rs"]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::time::Instant;

use report::{Report, Row};

/// A fault, or several of a kind, under load; `run` gets the name, and returns a
/// row for each mode. A panic fails the scenario.
pub struct Scenario {
    /// What it is called.
    pub name: &'static str,
    /// Whether `cargo test` runs it.
    pub short: bool,
    /// Runs it.
    pub run: fn(&'static str) -> Vec<Row>,
}

/// All of them; a new one is a function and a line in `ALL` of its file.
fn scenarios() -> impl Iterator<Item = &'static Scenario> {
    let redis = [redis::ALL, migration::ALL];
    let others = [mariadb::ALL, network::ALL, clock::ALL, embedded::ALL];
    [nodes::ALL].into_iter().chain(redis).chain(others).flatten()
}

/// Faults under load, with `idgen verify` as the judge.
#[derive(Debug, Parser)]
struct Arguments {
    /// Run the whole campaign, not the short selection.
    #[arg(long)]
    all: bool,
    /// Run the scenarios whose name begins so; repeat it for more.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List the scenarios; those with a star are in the short selection.
    #[arg(long)]
    list: bool,
    /// Write the table to a file too.
    #[arg(long, value_name = "FILE")]
    report: Option<std::path::PathBuf>,
    /// Run those of the short selection whose names contain one of these, as
    /// `cargo test WORD` asks every test program.
    words: Vec<String>,
    /// As `cargo test` has it; changes nothing here.
    #[arg(long, hide = true)]
    nocapture: bool,
    /// As `cargo test` has it; changes nothing here.
    #[arg(long, hide = true, value_name = "N")]
    test_threads: Option<u32>,
}

impl Arguments {
    fn wants(&self, scenario: &Scenario) -> bool {
        let named = |name: &String| scenario.name.starts_with(name.as_str());
        match self.only.is_empty() {
            false => self.only.iter().any(named),
            true if self.all => true,
            true => scenario.short && self.matches(scenario.name),
        }
    }

    fn matches(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let chosen: Vec<_> = scenarios().filter(|scenario| arguments.wants(scenario)).collect();
    if arguments.list {
        for scenario in scenarios() {
            println!("{}{}", scenario.name, if scenario.short { " *" } else { "" });
        }
        return ExitCode::SUCCESS;
    }
    if chosen.is_empty() {
        // `cargo test WORD` runs every test program; this one has nothing to do.
        println!("no such scenario; --list shows them");
        return if arguments.only.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let began = Instant::now();
    let mut report = Report::default();
    for scenario in chosen {
        let started = Instant::now();
        let rows = run(scenario);
        for row in &rows {
            println!("{}", row.line());
        }
        println!("       {} took {:.0} s", scenario.name, started.elapsed().as_secs_f64());
        report.rows.extend(rows);
    }
    report.seconds = began.elapsed().as_secs_f64();
    let table = report.markdown();
    println!("\n{table}");
    if let Some(file) = &arguments.report
        && let Err(error) = std::fs::write(file, &table)
    {
        eprintln!("{}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    if report.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a scenario to its end, however that comes.
fn run(scenario: &'static Scenario) -> Vec<Row> {
    catch_unwind(AssertUnwindSafe(|| (scenario.run)(scenario.name))).unwrap_or_else(|panic| {
        let told = panic.downcast_ref::<String>().cloned();
        let told = told.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        let told = told.unwrap_or_else(|| "it panicked".to_owned());
        // The first line says what was wrong; the last one of a log says why.
        let mut lines = told.lines();
        let first = lines.next().unwrap_or("it panicked").to_owned();
        let failure = Some(lines.next_back().map_or(first.clone(), |why| format!("{first} {why}")));
        vec![Row { scenario: scenario.name, mode: "–", failure, ..Row::default() }]
    })
}

/// Waits until `holds`, at most a minute; panics otherwise.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let bound = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < bound, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Writes a file `junk` until not one more byte fits on that disk.
fn fill(folder: &std::path::Path) {
    use std::io::Write;
    let mut junk = std::fs::File::create(folder.join("junk")).expect("a file");
    while junk.write_all(&[b'x'; 4_096]).is_ok() {}
}
