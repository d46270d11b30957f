//! Medians, targets, ratios within rounds, and what the guard says of them.

use crate::cpu::PerRequest;
use crate::guard;
use crate::line_up::LINE_UP;
use crate::numbers::{Spread, Target, quotient};
use crate::sample::{Contender, Sample};
use crate::targets::{Earlier, Ratio, ratios};

fn spread(numbers: &[f64]) -> Option<Spread> {
    Spread::of(numbers.iter().copied())
}

fn sample(rate: f64) -> Sample {
    Sample {
        requests_per_s: rate,
        ids_per_s: rate,
        p50_us: 100.0,
        p99_us: 200.0,
        p999_us: Some(300.0),
        max_us: 400.0,
        errors: 0,
        cpu: PerRequest { node_us: Some(5.0), ..PerRequest::default() },
        idle_bytes: None,
    }
}

fn contender(name: &'static str, samples: Vec<Option<Sample>>) -> Contender {
    Contender { name, what: "", samples, left_out: None }
}

fn rates(name: &'static str, rates: &[f64]) -> Contender {
    contender(name, rates.iter().map(|rate| Some(sample(*rate))).collect())
}

fn one<'a>(ratios: &'a [Ratio], name: &str) -> &'a Ratio {
    ratios.iter().find(|ratio| ratio.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn the_median_and_the_ends() {
    assert_eq!(spread(&[]), None);
    assert_eq!(spread(&[3.0]), Some(Spread { median: 3.0, min: 3.0, max: 3.0 }));
    assert_eq!(spread(&[9.0, 1.0, 4.0]), Some(Spread { median: 4.0, min: 1.0, max: 9.0 }));
    assert_eq!(spread(&[9.0, 1.0, 4.0, 2.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    assert_eq!(spread(&[9.0, 1.0, 4.0]).unwrap().width(), 8.0);
}

#[test]
fn a_quotient_by_nothing_is_nothing() {
    assert_eq!(quotient(1.0, 4.0), Some(0.25));
    assert_eq!(quotient(0.0, 4.0), Some(0.0));
    assert_eq!(quotient(1.0, 0.0), None);
    assert_eq!(quotient(f64::NAN, 1.0), None);
}

#[test]
fn targets_have_a_direction() {
    assert!(Target::AtLeast(0.95).is_met(0.95) && !Target::AtLeast(0.95).is_met(0.94));
    assert!(Target::AtMost(1.1).is_met(1.1) && !Target::AtMost(1.1).is_met(1.2));
    assert!(Target::None.is_met(0.0));
    assert_eq!(Target::AtLeast(4.0).reached(2.0), Some(0.5));
    assert_eq!(Target::AtMost(4.0).reached(8.0), Some(0.5));
    assert_eq!(Target::None.reached(8.0), None);
}

#[test]
fn ratios_are_taken_within_rounds() {
    // The second round was slow for both, so that medians over all would say 0.6.
    let field = [rates("null", &[90.0, 30.0, 60.0]), rates("floor", &[100.0, 40.0, 120.0])];
    let ratios = ratios(&field);
    let ratio = one(&ratios, "null / floor");
    assert_eq!(ratio.by_round, [Some(0.9), Some(0.75), Some(0.5)]);
    assert_eq!(ratio.measured, Some(Spread { median: 0.75, min: 0.5, max: 0.9 }));
    assert!(ratio.is_missed());
    let names: Vec<&str> = ratios.iter().map(|ratio| ratio.name.as_str()).collect();
    assert_eq!(names, ["null / floor", "node µs null / floor"], "of the others nobody took part");
}

#[test]
fn a_turn_that_failed_leaves_its_round_out() {
    let null = contender("null", vec![None, Some(sample(50.0)), Some(sample(0.0))]);
    let floor = contender("floor", vec![Some(sample(10.0)), Some(sample(100.0)), None]);
    let found = ratios(&[null, floor]);
    assert_eq!(one(&found, "null / floor").by_round, [None, Some(0.5), None]);
    let nobody = [contender("null", Vec::new()), rates("floor", &[1.0])];
    let found = ratios(&nobody);
    assert_eq!(one(&found, "null / floor").measured, None);
    assert!(!one(&found, "null / floor").is_missed(), "not measured is not missed");
}

#[test]
fn ratios_that_are_none_of_rates() {
    let mut field: Vec<Contender> = LINE_UP.iter().map(|e| rates(e.name, &[1e5])).collect();
    let mut change = |name: &str, change: fn(&mut Sample)| {
        let contender = field.iter_mut().find(|c| c.name == name).unwrap();
        contender.samples.iter_mut().flatten().for_each(change);
    };
    change("refills", |s| s.p999_us = Some(600.0));
    change("strict-1c", |s| s.p50_us = 250.0);
    change("strict-3n", |s| s.cpu.node_us = Some(4.0));
    change("thousand", |s| s.ids_per_s = 5e7);
    change("idle10k", |s| s.idle_bytes = Some(4_096.0));
    let ratios = ratios(&field);
    for (name, value) in [
        ("p99.9 refills / segment", 2.0),
        ("p50 strict-1c / (floor-1c + incr-1c)", 1.25),
        ("node µs strict-3n / strict", 0.8),
        ("million ids/s thousand", 50.0),
        ("KB per idle connection idle10k", 4.0),
        ("strict-8x32 / strict-8x1", 1.0),
    ] {
        assert_eq!(one(&ratios, name).by_round, [Some(value)], "{name}");
    }
    let missing: Vec<_> = ratios.iter().filter(|r| r.measured.is_none()).collect();
    assert!(missing.is_empty(), "all contenders of all targets exist: {missing:?}");
    let targets = ratios.iter().filter(|r| r.target != Target::None).count();
    assert_eq!(targets, 14);
}

fn ratio(target: Target, by_round: &[f64]) -> Ratio {
    Ratio::new("a / b".to_owned(), target, by_round.iter().copied().map(Some).collect())
}

#[test]
fn the_guard_warns_of_misses_and_of_losses() {
    let least = Target::AtLeast(0.8);
    let verdict = |now: &Ratio, before: Option<Ratio>| {
        let earlier = before.map(|ratio| Earlier { ratios: vec![ratio] });
        guard::verdict(now, now.measured.unwrap(), earlier.as_ref())
    };
    let good = ratio(least, &[0.84, 0.85, 0.86]);
    assert_eq!(verdict(&good, None), "ok");
    assert_eq!(verdict(&ratio(least, &[0.7]), None), "warn: missed");
    assert_eq!(verdict(&good, Some(ratio(least, &[0.85, 0.86, 0.87]))), "ok");
    assert_eq!(verdict(&good, Some(ratio(least, &[0.5]))), "ok", "it became better");
    let lost = "warn: worse than before, 0.95";
    assert_eq!(verdict(&good, Some(ratio(least, &[0.94, 0.95, 0.96]))), lost);
    let noisy = ratio(least, &[0.80, 0.95, 0.96]);
    assert_eq!(verdict(&good, Some(noisy)), "ok", "the earlier rounds differed by more");
    let most = Target::AtMost(1.3);
    let slow = ratio(most, &[1.2, 1.21, 1.22]);
    assert_eq!(
        verdict(&slow, Some(ratio(most, &[1.0, 1.01]))),
        format!("warn: worse than before, {:.2}", 1.005)
    );
    assert_eq!(verdict(&slow, Some(ratio(most, &[1.3]))), "ok");
}

#[test]
fn the_guard_counts_what_was_not_measured() {
    let ratios = [
        ratio(Target::AtLeast(0.8), &[0.5]),
        ratio(Target::AtLeast(0.8), &[]),
        ratio(Target::None, &[]),
    ];
    let mut out = Vec::new();
    assert_eq!(guard::print(&ratios, None, &mut out).unwrap(), 1);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("warn: missed") && text.contains("not measured"), "{text}");
}

#[test]
fn an_earlier_run_is_read_back() {
    let field = [rates("null", &[90.0, 80.0]), rates("floor", &[100.0, 100.0])];
    let json = serde_json::json!({ "facts": {}, "ratios": ratios(&field) }).to_string();
    let earlier: Earlier = serde_json::from_str(&json).unwrap();
    assert_eq!(earlier.ratios[0].measured, ratios(&field)[0].measured);
    assert_eq!(earlier.ratios[0].target, Target::AtLeast(0.85));
}
