//! What came of the scenarios: rows, and the table of them.

use std::fmt::Write;

/// A scenario in one mode.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub scenario: &'static str,
    pub mode: &'static str,
    pub nodes: usize,
    pub ids: u64,
    pub faults: usize,
    pub duplicates: u64,
    pub order_violations: u64,
    /// Which order was checked, or why none was.
    pub order: String,
    /// By code, most frequent first.
    pub errors: Vec<(String, u64)>,
    /// The longest time without ids, and the longest call that brought ids, of
    /// clients that were not connected to a victim; in milliseconds.
    pub stall_ms: f64,
    pub call_ms: f64,
    /// From the server answering again to the first id, the longest, in ms.
    pub back_ms: Option<f64>,
    /// A target, and whether it was met.
    pub target: Option<(&'static str, bool)>,
    /// What broke a promise, or kept the scenario from its end.
    pub failure: Option<String>,
}

/// All rows, and how long they took.
#[derive(Default)]
pub struct Report {
    pub rows: Vec<Row>,
    pub seconds: f64,
}

const HEAD: [&str; 12] = [
    "scenario",
    "mode",
    "nodes",
    "ids checked",
    "faults",
    "dup.",
    "order",
    "errors",
    "stall ms",
    "call ms",
    "back ms",
    "target",
];

impl Row {
    fn cells(&self) -> [String; 12] {
        let errors: Vec<_> = self.errors.iter().map(|(code, n)| format!("{code} {n}")).collect();
        let target = match (&self.failure, self.target) {
            (Some(_), _) => "**FAILED**".to_owned(),
            (None, Some((what, true))) => format!("{what}: met"),
            (None, Some((what, false))) => format!("{what}: **missed**"),
            (None, None) => "–".to_owned(),
        };
        [
            self.scenario.to_owned(),
            self.mode.to_owned(),
            self.nodes.to_string(),
            thousands(self.ids),
            self.faults.to_string(),
            self.duplicates.to_string(),
            format!("{} ({})", self.order_violations, self.order),
            if errors.is_empty() { "0".to_owned() } else { errors.join(", ") },
            format!("{:.0}", self.stall_ms),
            format!("{:.0}", self.call_ms),
            self.back_ms.map_or("–".to_owned(), |ms| match ms {
                ms if ms < 20.0 => "< 20".to_owned(),
                ms => format!("{ms:.0}"),
            }),
            target,
        ]
    }

    /// One line for a person who watches.
    pub fn line(&self) -> String {
        let verdict = match &self.failure {
            None => "ok    ",
            Some(_) => "FAILED",
        };
        let cells = self.cells();
        let shown: Vec<_> =
            HEAD.iter().zip(&cells).skip(3).map(|(head, cell)| format!("{head} {cell}")).collect();
        format!("{verdict} {:<28} {:<24} {}", cells[0], cells[1], shown.join(", "))
    }
}

impl Report {
    /// Whether every row kept its promises.
    pub fn is_good(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| row.failure.is_none())
    }

    /// The table and what belongs to it, as Markdown.
    pub fn markdown(&self) -> String {
        let sum = |of: fn(&Row) -> u64| self.rows.iter().map(of).sum::<u64>();
        let names: std::collections::BTreeSet<_> = self.rows.iter().map(|r| r.scenario).collect();
        let failed = self.rows.iter().filter(|row| row.failure.is_some()).count();
        let missed = self.rows.iter().filter(|r| matches!(r.target, Some((_, false)))).count();
        let mut text = format!(
            "{} scenarios, {} rows, {} ids checked, {} duplicates, {} order violations, \
             {failed} rows failed, {missed} targets missed; {:.0} s.\n\n{}\n\n",
            names.len(),
            self.rows.len(),
            thousands(sum(|row| row.ids)),
            sum(|row| row.duplicates),
            sum(|row| row.order_violations),
            self.seconds,
            machine(),
        );
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        text += &line(&HEAD.map(str::to_owned));
        text += &line(&HEAD.map(|_| "---".to_owned()));
        for row in &self.rows {
            text += &line(&row.cells());
        }
        for row in &self.rows {
            if let Some(failure) = &row.failure {
                let _ = write!(text, "\nFAILED {} ({}): {failure}\n", row.scenario, row.mode);
            }
        }
        text
    }
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    let groups: Vec<_> = groups.iter().map(|g| String::from_utf8_lossy(g)).collect();
    groups.join(" ")
}

/// The machine and the versions, in one line.
fn machine() -> String {
    let first = |program: &str, argument: &str| {
        let output = std::process::Command::new(program).arg(argument).output();
        let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        text.unwrap_or_default().lines().next().unwrap_or("?").trim().to_owned()
    };
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": "));
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory =
        memory.lines().next().and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok());
    format!(
        "Machine: {} × {}, {} GiB; Linux {}; {}; {}; {} build.",
        cpus.matches("model name").count(),
        model.map_or("?", |(_, name)| name),
        memory.unwrap_or(0) >> 20,
        first("uname", "-r"),
        first("/usr/sbin/mariadbd", "--version").split("for ").next().unwrap_or("?").trim(),
        first("redis-server", "--version").split(" sha").next().unwrap_or("?"),
        if std::env::var_os("CHAOS_PROGRAM").is_some() { "release" } else { "development" },
    )
}
