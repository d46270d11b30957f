//! Simulation of the whole service: docs/simulation.md.

mod checker;
mod load;
mod minimise;
mod mistakes;
mod named;
mod plan;
mod rng;
mod run;
mod trace;
mod wire;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mistakes::{KNOWN, Mistake};
use plan::Plan;
use run::{Outcome, run};

/// Schedules of an ordinary test run.
const SEEDS: u64 = 240;

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..12 {
        let plan = Plan::draw(seed);
        let (first, second) = (run(&plan, None, false), run(&plan, None, false));
        assert!(first.events > 500, "seed {seed}: {} events", first.events);
        assert_eq!(first.tail, second.tail, "seed {seed}");
        assert_eq!((first.hash, first.events), (second.hash, second.events), "seed {seed}");
    }
    let (one, other) = (run(&Plan::draw(1), None, false), run(&Plan::draw(2), None, false));
    assert_ne!(one.hash, other.hash, "the hash tells traces apart");
}

/// Many seeds, or the one of `SEED`: see docs/simulation.md for the variables.
#[test]
fn schedules() {
    let mistake = variable("MISTAKE")
        .map(|name| Mistake::parse(&name).unwrap_or_else(|| panic!("one of {:?}", Mistake::ALL)));
    match number("SEED") {
        Some(seed) => one_seed(seed, mistake),
        None => many_seeds(mistake),
    }
}

#[test]
fn each_removed_check_is_caught() {
    for known in KNOWN {
        let mistake = known.mistake;
        let found = known.find();
        let (seed, what, tried) = found.unwrap_or_else(|| panic!("{mistake:?} is not caught"));
        println!("{mistake:?}: seed {seed} after {tried}: {what}");
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str) -> Option<u64> {
    variable(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn one_seed(seed: u64, mistake: Option<Mistake>) {
    let mut plan = Plan::draw(seed);
    if variable("MINIMISE").is_some() {
        plan = minimise::minimise(plan, mistake);
    }
    if variable("LOG").is_some() {
        let level = tracing_subscriber::filter::LevelFilter::DEBUG;
        tracing_subscriber::fmt().with_max_level(level).without_time().init();
    }
    let outcome = run(&plan, mistake, variable("VERBOSE").is_some());
    println!("types {:?}", plan.types.iter().map(|t| (t.kind, t.instance)).collect::<Vec<_>>());
    println!("rates {:?}", plan.mishaps());
    plan.events.iter().for_each(|(at, event)| println!("at {at} {event:?}"));
    println!("trace {:016x} of {} events", outcome.hash, outcome.events);
    if let Some(violation) = &outcome.violation {
        panic!("{}", report(seed, mistake, violation, &outcome));
    }
}

fn report(seed: u64, mistake: Option<Mistake>, violation: &str, outcome: &Outcome) -> String {
    let mistake = mistake.map(|m| format!("MISTAKE={m:?} ")).unwrap_or_default();
    format!(
        "seed {seed}: {violation}\n{}\nrerun: {mistake}SEED={seed} VERBOSE=1 cargo test --test \
         simulation schedules -- --nocapture",
        outcome.tail.join("\n")
    )
}

#[derive(Default)]
struct Totals {
    seeds: u64,
    events: u64,
    calls: u64,
    failures: u64,
    ids: u64,
    faults: BTreeMap<&'static str, u64>,
    failed: Vec<(u64, String)>,
}

fn many_seeds(mistake: Option<Mistake>) {
    let from = number("SIMULATE_FROM").unwrap_or(0);
    let seeds = number("SIMULATE_SEEDS").unwrap_or(SEEDS);
    let most = Duration::from_secs(number("SIMULATE_SECONDS").unwrap_or(600));
    // How many schedules go at once has no say in what each of them does.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = wall_clock();
    let (next, over) = (AtomicU64::new(from), AtomicBool::new(false));
    let totals = Mutex::new(Totals::default());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let late = began.elapsed() > most;
            if seed >= from + seeds || late || over.load(Ordering::Relaxed) {
                return;
            }
            let plan = Plan::draw(seed);
            if mistake.is_some_and(|mistake| !mistake.may_show(&plan)) {
                continue;
            }
            let outcome = run(&plan, mistake, false);
            let counts = mistake.is_none() || run(&plan, None, false).violation.is_none();
            let mut totals = totals.lock().unwrap();
            totals.seeds += 1;
            totals.events += outcome.events;
            totals.calls += outcome.calls;
            totals.failures += outcome.failures;
            totals.ids += outcome.ids;
            for (fault, times) in &outcome.faults {
                *totals.faults.entry(fault).or_default() += times;
            }
            if let Some(violation) = outcome.violation.as_ref().filter(|_| counts) {
                println!("seed {seed}: {violation}");
                let report = report(seed, mistake, violation, &outcome);
                totals.failed.push((seed, report));
                if mistake.is_some() || totals.failed.len() >= 20 {
                    over.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let mut totals = totals.into_inner().unwrap();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} seeds in {seconds:.1} s, {:.1} a second; {} events, {} calls, {} of them failed, {} ids",
        totals.seeds,
        totals.seeds as f64 / seconds,
        totals.events,
        totals.calls,
        totals.failures,
        totals.ids
    );
    for (fault, times) in &totals.faults {
        println!("{times:>9} {fault}");
    }
    totals.failed.sort();
    if let Some((_, report)) = totals.failed.first() {
        panic!("{report}");
    }
    assert!(totals.seeds > 0 && totals.ids > 0, "nothing was simulated");
}

#[expect(clippy::disallowed_methods, reason = "how long the simulation itself takes")]
fn wall_clock() -> std::time::Instant {
    std::time::Instant::now()
}
