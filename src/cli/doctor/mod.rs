//! `idgen doctor`: is everything that a node depends on set up well?
//!
//! Facts are gathered first, then judged by pure functions, each with its
//! advice. Something that endangers ids or service is a `fail`; something that
//! a careful operator would change is a `warn`.

mod machine;
mod mysql;
mod redis;
mod redis_groups;
mod tls;

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::exit::Failure;
use super::flags::{Dependencies, SettingFlags};
use super::output::{json, table};
use super::{Console, Environment, Wiring};

/// Options of `idgen doctor`.
#[derive(Args, Clone, Debug)]
pub struct DoctorArgs {
    #[command(flatten)]
    settings: SettingFlags<Dependencies>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, but a careful operator would change it.
    Warn,
    /// It endangers ids or service.
    Fail,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The part that was checked: `mysql`, `redis`, `tls`, `machine`.
    pub part: &'static str,
    /// What was checked.
    pub name: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do; empty where all is well.
    pub advice: String,
}

impl Check {
    fn ok(part: &'static str, name: &'static str, found: impl Into<String>) -> Self {
        Check { part, name, verdict: Verdict::Ok, found: found.into(), advice: String::new() }
    }

    fn with(mut self, verdict: Verdict, advice: impl Into<String>) -> Self {
        self.verdict = verdict;
        self.advice = advice.into();
        self
    }

    /// `self` where `good`, else with `verdict` and `advice`.
    fn unless(self, good: bool, verdict: Verdict, advice: &str) -> Self {
        if good { self } else { self.with(verdict, advice) }
    }
}

/// Judges the difference of a server's clock to this machine's. Safety does
/// not rest on clocks, so it is never worse than a warning; but times in logs
/// and the sizes of ranges do.
fn clock(part: &'static str, skew_ms: i64, round_trip: Duration) -> Check {
    // Half of the round trip cannot be told from skew.
    let doubt = round_trip.as_millis() as i64 / 2;
    let found = format!("{skew_ms} ms off this machine (+/- {doubt} ms)");
    let good = skew_ms.abs() <= 500 + doubt;
    Check::ok(part, "clock", found).unless(
        good,
        Verdict::Warn,
        "keep the clocks in step with NTP (chrony or systemd-timesyncd)",
    )
}

/// This machine's clock, in milliseconds of the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "the clock itself is what is checked")]
fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| d.as_millis() as i64)
}

/// Begins to measure how long an answer takes.
#[expect(clippy::disallowed_methods, reason = "a real round trip is what is measured")]
fn stopwatch() -> std::time::Instant {
    std::time::Instant::now()
}

/// Runs `idgen doctor`.
pub fn run(
    args: DoctorArgs,
    environment: &Environment,
    console: &mut Console<'_>,
    wiring: &Wiring,
) -> Result<(), Failure> {
    let settings = args.settings.load(environment)?;
    let mut checks = machine::checks(&settings);
    checks.extend(settings.tls.iter().flat_map(tls::checks));
    checks.extend(mysql::checks(&settings.store, wiring));
    // A store that cannot be asked has failed its own checks above.
    let registered = match settings.store.mysql {
        Some(_) => (wiring.redis_urls)(&settings.store).unwrap_or_default(),
        None => Vec::new(),
    };
    checks.extend(redis::checks(&settings.redis, registered));
    if args.json {
        json(console.out, &checks)?;
    } else {
        let word = |verdict| match verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        let row = |check: &Check| {
            vec![
                word(check.verdict).to_owned(),
                check.part.to_owned(),
                check.name.to_owned(),
                check.found.clone(),
            ]
        };
        let rows = checks.iter().map(row).collect();
        table(console.out, &["result", "part", "check", "found"], rows)?;
        for check in checks.iter().filter(|check| !check.advice.is_empty()) {
            let word = word(check.verdict);
            writeln!(console.out, "{word}: {} {}: {}", check.part, check.name, check.advice)?;
        }
    }
    let failed = checks.iter().filter(|c| c.verdict == Verdict::Fail).count();
    match failed {
        0 => Ok(()),
        1 => Err(Failure::failed("1 check failed")),
        _ => Err(Failure::failed(format_args!("{failed} checks failed"))),
    }
}
