//! What somebody should know: rules over facts, without I/O.
//!
//! The thresholds are explained in docs/admin-api.md, section "Live".

use std::collections::{BTreeMap, BTreeSet};

use super::api::{About, Attention, InstanceState, Kind, NodeReport, Severity, StoreState};

/// Most entries of an answer, and of what a node tells its peers.
pub(super) const MOST: usize = 50;

const DAY_MS: i64 = 86_400_000;
/// A limit that will be reached within this is a warning, and soon after critical.
const LIMIT_WARNING_MS: i64 = 30 * DAY_MS;
const LIMIT_CRITICAL_MS: i64 = 7 * DAY_MS;
/// The same for the share of its ids that a type has used.
const USED_WARNING: f64 = 0.90;
const USED_CRITICAL: f64 = 0.99;
/// The same for the end of the time of snowflake ids: programs must be changed.
const EPOCH_WARNING_MS: i64 = 365 * DAY_MS;
const EPOCH_CRITICAL_MS: i64 = 30 * DAY_MS;
/// Without the store, ids at hand for less than so many load intervals are too few.
const RUNWAY_INTERVALS: f64 = 2.0;
/// So few of them, in seconds, are the last chance.
const RUNWAY_CRITICAL_S: f64 = 60.0;
/// More failed calls of a minute than this share of all are critical.
const FAILURES_CRITICAL: f64 = 0.01;

/// A type in use, as the node that answers for it sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct TypeFacts {
    pub(super) name: String,
    /// How long the ids at hand last.
    pub(super) runway_s: Option<f64>,
    pub(super) load_interval_ms: i64,
    /// When the limit is reached at the present rate.
    pub(super) exhausted_at_ms: Option<i64>,
    /// The share of its ids that is allocated, and how many are left; `None` where
    /// there is no limit, or it comes back with the next period.
    pub(super) used: Option<(f64, u64)>,
    /// The end of the time of a snowflake type.
    pub(super) epoch_end_ms: Option<i64>,
    /// Why the latest refill failed.
    pub(super) refill_error: Option<String>,
    /// Whether callers wait for ids that are not there.
    pub(super) starving: bool,
}

/// What a node knows of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeFacts {
    pub(super) node: String,
    pub(super) store_reachable: bool,
    pub(super) calls_last_minute: u64,
    pub(super) failures_last_minute: u64,
    /// Histories found stale within 10 minutes.
    pub(super) stale_histories: u64,
}

/// What the node that answers knows of all.
#[derive(Clone, Copy)]
pub(super) struct ClusterFacts<'a> {
    pub(super) store: &'a StoreState,
    pub(super) instances: &'a [InstanceState],
    pub(super) nodes: &'a [NodeReport],
    /// Types on their way between instances: the name, and since when.
    pub(super) migrations: &'a [(String, i64)],
}

fn attention(kind: Kind, severity: Severity, subject: About, detail: String) -> Attention {
    let (runway_s, at_ms, count, left) = (None, None, None, None);
    Attention { kind, severity, subject, detail, runway_s, at_ms, count, left }
}

fn of_type(name: &str) -> About {
    About { id_type: Some(name.to_owned()), ..About::default() }
}

fn of_instance(name: &str) -> About {
    About { instance: Some(name.to_owned()), ..About::default() }
}

fn of_node(name: &str) -> About {
    About { node: Some(name.to_owned()), ..About::default() }
}

/// What a node tells of itself and of the types that it serves.
pub(super) fn of_one_node(now_ms: i64, node: &NodeFacts, types: &[TypeFacts]) -> Vec<Attention> {
    let mut found = Vec::new();
    for facts in types {
        found.extend(runway(node.store_reachable, facts));
        found.extend(refill(facts));
        found.extend(limit(now_ms, facts));
        found.extend(epoch(now_ms, facts));
    }
    let failures = node.failures_last_minute;
    if failures > 0 {
        let share = failures as f64 / node.calls_last_minute.max(failures) as f64;
        let severity = match share > FAILURES_CRITICAL {
            true => Severity::Critical,
            false => Severity::Warning,
        };
        let detail = format!(
            "{failures} of {} calls failed in the last minute for no fault of the caller's.",
            node.calls_last_minute.max(failures)
        );
        let entry = attention(Kind::Errors, severity, of_node(&node.node), detail);
        found.push(Attention { count: Some(failures), ..entry });
    }
    if node.stale_histories > 0 {
        let detail = format!(
            "Published ranges that may have been rolled back were met and dropped {} times in 10 \
             minutes: Redis restarted, lost data or changed its master.",
            node.stale_histories
        );
        let entry = attention(Kind::StaleHistory, Severity::Warning, of_node(&node.node), detail);
        found.push(Attention { count: Some(node.stale_histories), ..entry });
    }
    ordered(found)
}

fn runway(store_reachable: bool, facts: &TypeFacts) -> Option<Attention> {
    // With the store at hand the next range comes in time, or the refill fails.
    let runway_s = facts.runway_s.filter(|_| !store_reachable)?;
    let interval_s = facts.load_interval_ms as f64 / 1_000.0;
    if runway_s >= RUNWAY_INTERVALS * interval_s {
        return None;
    }
    let severity = match runway_s < RUNWAY_CRITICAL_S || runway_s < interval_s / 2.0 {
        true => Severity::Critical,
        false => Severity::Warning,
    };
    let detail = format!(
        "Without the range store, the ids at hand of {} last for {}.",
        facts.name,
        words(runway_s)
    );
    let entry = attention(Kind::RunwayShort, severity, of_type(&facts.name), detail);
    Some(Attention { runway_s: Some(runway_s), ..entry })
}

fn refill(facts: &TypeFacts) -> Option<Attention> {
    let why = facts.refill_error.as_ref()?;
    let severity = if facts.starving { Severity::Critical } else { Severity::Warning };
    let why: String = why.chars().take(200).collect();
    let detail = format!("The next range of {} could not be had: {why}.", facts.name);
    let entry = attention(Kind::RefillFailing, severity, of_type(&facts.name), detail);
    Some(Attention { runway_s: facts.runway_s, ..entry })
}

fn limit(now_ms: i64, facts: &TypeFacts) -> Option<Attention> {
    if facts.epoch_end_ms.is_some() {
        return None; // see `epoch`
    }
    let until = facts.exhausted_at_ms.map(|at_ms| at_ms.saturating_sub(now_ms));
    let share = facts.used.map_or(0.0, |(share, _)| share);
    let is_within = |limit: i64| until.is_some_and(|left| left < limit);
    let severity = if is_within(LIMIT_CRITICAL_MS) || share > USED_CRITICAL {
        Severity::Critical
    } else if is_within(LIMIT_WARNING_MS) || share > USED_WARNING {
        Severity::Warning
    } else {
        return None;
    };
    let at = until.map(|left| match left {
        ..=0 => "the limit is reached".to_owned(),
        left => format!("at the present rate the limit is reached in {}", words(left as f64 / 1e3)),
    });
    let used = facts.used.map(|(share, left)| {
        // Never "100 %" while there is something left.
        let percent = (share * 1_000.0).floor() / 10.0;
        format!("{percent} % of its ids are allocated, {left} are left")
    });
    let both: Vec<_> = at.into_iter().chain(used).collect();
    let detail = format!("{} nears its highest id: {}.", facts.name, both.join("; "));
    let entry = attention(Kind::LimitNear, severity, of_type(&facts.name), detail);
    let left = facts.used.map(|(_, left)| left.to_string());
    Some(Attention { at_ms: facts.exhausted_at_ms, left, ..entry })
}

fn epoch(now_ms: i64, facts: &TypeFacts) -> Option<Attention> {
    let end_ms = facts.epoch_end_ms?;
    let left = end_ms.saturating_sub(now_ms);
    let severity = if left < EPOCH_CRITICAL_MS {
        Severity::Critical
    } else if left < EPOCH_WARNING_MS {
        Severity::Warning
    } else {
        return None;
    };
    let detail = match left {
        ..=0 => format!("The time of the snowflake type {} has ended.", facts.name),
        _ => format!(
            "The time of the snowflake type {} ends in {}: it needs a new epoch, in a new type.",
            facts.name,
            words(left as f64 / 1_000.0)
        ),
    };
    let entry = attention(Kind::EpochNear, severity, of_type(&facts.name), detail);
    Some(Attention { at_ms: Some(end_ms), ..entry })
}

/// What the node that answers tells of all.
pub(super) fn of_cluster(facts: &ClusterFacts<'_>) -> Vec<Attention> {
    let mut found = Vec::new();
    if !facts.store.reachable {
        let why = why(facts.store.error.as_deref());
        let detail = format!("The range store does not answer ({why}): no new ranges.");
        found.push(attention(Kind::StoreDown, Severity::Critical, About::default(), detail));
    }
    for instance in facts.instances {
        found.extend(instance_down(instance));
        found.extend(drain(instance));
    }
    for node in facts.nodes.iter().filter(|node| node.silent) {
        let ago = words(node.age_ms as f64 / 1_000.0);
        let detail = format!("Node {} has not been heard of for {ago}.", node.node);
        let entry = attention(Kind::NodeSilent, Severity::Warning, of_node(&node.node), detail);
        found.push(Attention { at_ms: Some(node.at_ms), ..entry });
    }
    // One entry for all: a drain moves many.
    if let Some((first, _)) = facts.migrations.first() {
        let count = facts.migrations.len() as u64;
        let since = facts.migrations.iter().map(|(_, since)| *since).min();
        let (subject, detail) = match count {
            1 => (of_type(first), format!("{first} is on its way to another Redis instance.")),
            _ => {
                let detail = format!(
                    "{count} types are on their way to other Redis instances, {first} among them."
                );
                (About::default(), detail)
            }
        };
        let entry = attention(Kind::MigrationRunning, Severity::Info, subject, detail);
        found.push(Attention { count: Some(count), at_ms: since, ..entry });
    }
    let heard = facts.nodes.iter().filter(|node| !node.silent);
    let versions: BTreeSet<&str> = heard.map(|node| node.version.as_str()).collect();
    if versions.len() > 1 {
        let list = versions.iter().copied().collect::<Vec<_>>().join(", ");
        let detail = format!("The nodes have different versions: {list}.");
        let entry = attention(Kind::VersionsDiffer, Severity::Info, About::default(), detail);
        found.push(Attention { count: Some(versions.len() as u64), ..entry });
    }
    found
}

fn instance_down(instance: &InstanceState) -> Option<Attention> {
    if instance.reachable {
        return None;
    }
    let (severity, types) = match instance.types {
        0 => (Severity::Warning, "no type is on it".to_owned()),
        1 => (Severity::Critical, "1 type is on it".to_owned()),
        many => (Severity::Critical, format!("{many} types are on it")),
    };
    let why = why(instance.error.as_deref());
    let detail = format!("Redis instance {} does not answer ({why}); {types}.", instance.name);
    let entry = attention(Kind::InstanceDown, severity, of_instance(&instance.name), detail);
    Some(Attention { count: Some(instance.types), ..entry })
}

fn drain(instance: &InstanceState) -> Option<Attention> {
    let to = instance.drain_to.as_ref()?;
    let to = to.name.clone().unwrap_or_else(|| to.id.to_string());
    let detail = match instance.types {
        0 => format!("Redis instance {} is drained to {to}: it is empty.", instance.name),
        left => format!(
            "Redis instance {} is being drained to {to}; {left} types are left on it.",
            instance.name
        ),
    };
    let entry = attention(Kind::DrainRunning, Severity::Info, of_instance(&instance.name), detail);
    Some(Attention { count: Some(instance.types), ..entry })
}

fn why(error: Option<&str>) -> String {
    error.unwrap_or("no answer").chars().take(200).collect()
}

/// The worst first, one of a kind and subject (the worst of them), at most [`MOST`].
pub(super) fn ordered(found: Vec<Attention>) -> Vec<Attention> {
    let mut worst: BTreeMap<(Kind, About), Attention> = BTreeMap::new();
    for entry in found {
        let key = (entry.kind, entry.subject.clone());
        match worst.get(&key) {
            Some(held) if rank(held) <= rank(&entry) => {}
            _ => drop(worst.insert(key, entry)),
        }
    }
    let mut all: Vec<_> = worst.into_values().collect();
    // Stable: what is equally urgent stays in the order of the subjects.
    all.sort_by(|a, b| {
        let urgency = |entry: &Attention| (entry.severity, entry.kind);
        let soon = |entry: &Attention| entry.runway_s.unwrap_or(f64::INFINITY);
        let at = |entry: &Attention| entry.at_ms.unwrap_or(i64::MAX);
        urgency(a).cmp(&urgency(b)).then(soon(a).total_cmp(&soon(b))).then(at(a).cmp(&at(b)))
    });
    all.truncate(MOST);
    all
}

fn rank(entry: &Attention) -> (Severity, u64) {
    (entry.severity, entry.runway_s.map_or(u64::MAX, |s| s.max(0.0) as u64))
}

/// A span of time in words, roughly.
fn words(seconds: f64) -> String {
    let (number, unit) = match seconds {
        ..120.0 => (seconds.max(0.0), "second"),
        ..7_200.0 => (seconds / 60.0, "minute"),
        ..172_800.0 => (seconds / 3_600.0, "hour"),
        _ => (seconds / 86_400.0, "day"),
    };
    let number = number.floor();
    let plural = if number == 1.0 { "" } else { "s" };
    format!("{number} {unit}{plural}")
}

#[cfg(test)]
mod tests {
    use super::super::api::InstanceRef;
    use super::*;

    const NOW: i64 = 1_700_000_000_000;

    fn one(facts: TypeFacts) -> Vec<(Kind, Severity)> {
        node_with(NodeFacts { store_reachable: true, ..NodeFacts::default() }, facts)
    }

    fn node_with(node: NodeFacts, facts: TypeFacts) -> Vec<(Kind, Severity)> {
        let facts = TypeFacts { name: "order".to_owned(), load_interval_ms: 600_000, ..facts };
        let found = of_one_node(NOW, &node, &[facts]);
        for entry in &found {
            assert!(entry.detail.ends_with('.') && !entry.detail.contains("  "), "{entry:?}");
        }
        found.iter().map(|entry| (entry.kind, entry.severity)).collect()
    }

    #[test]
    fn types_by_cases() {
        use Kind::{EpochNear, LimitNear, RefillFailing};
        use Severity::{Critical, Warning};
        let day = |days: i64| Some(NOW + days * DAY_MS);
        let ends = |at| TypeFacts { exhausted_at_ms: at, ..TypeFacts::default() };
        let used = |share| TypeFacts { used: Some((share, 5)), ..TypeFacts::default() };
        let epoch =
            |at| TypeFacts { epoch_end_ms: at, exhausted_at_ms: at, ..TypeFacts::default() };
        let failed = |starving| TypeFacts {
            refill_error: Some("range store unavailable".to_owned()),
            starving,
            ..TypeFacts::default()
        };
        let cases = [
            (TypeFacts::default(), vec![]),
            (ends(day(31)), vec![]),
            (ends(day(29)), vec![(LimitNear, Warning)]),
            (ends(day(8)), vec![(LimitNear, Warning)]),
            (ends(day(6)), vec![(LimitNear, Critical)]),
            (ends(Some(NOW - 1)), vec![(LimitNear, Critical)]),
            (used(0.90), vec![]),
            (used(0.901), vec![(LimitNear, Warning)]),
            (used(0.99), vec![(LimitNear, Warning)]),
            (used(0.991), vec![(LimitNear, Critical)]),
            (used(1.0), vec![(LimitNear, Critical)]),
            (epoch(day(366)), vec![]),
            (epoch(day(364)), vec![(EpochNear, Warning)]),
            (epoch(day(29)), vec![(EpochNear, Critical)]),
            (epoch(day(-1)), vec![(EpochNear, Critical)]),
            (failed(false), vec![(RefillFailing, Warning)]),
            (failed(true), vec![(RefillFailing, Critical)]),
        ];
        for (facts, expected) in cases {
            assert_eq!(one(facts.clone()), expected, "{facts:?}");
        }
    }

    #[test]
    fn runways_count_only_without_the_store() {
        use Severity::{Critical, Warning};
        // The load interval is 600 s.
        for (runway_s, expected) in [
            (1_201.0, None),
            (1_199.0, Some(Warning)),
            (301.0, Some(Warning)),
            (299.0, Some(Critical)),
            (0.0, Some(Critical)),
        ] {
            let facts = TypeFacts { runway_s: Some(runway_s), ..TypeFacts::default() };
            let found = node_with(NodeFacts::default(), facts.clone());
            let expected: Vec<_> =
                expected.map(|severity| (Kind::RunwayShort, severity)).into_iter().collect();
            assert_eq!(found, expected, "{runway_s}");
            assert_eq!(one(facts), [], "with the store: {runway_s}");
        }
        let quick = TypeFacts {
            runway_s: Some(50.0),
            name: "quick".to_owned(),
            load_interval_ms: 30_000,
            ..TypeFacts::default()
        };
        let found = of_one_node(NOW, &NodeFacts::default(), &[quick]);
        assert_eq!(found[0].severity, Critical, "less than a minute");
        assert_eq!(found[0].runway_s, Some(50.0));
    }

    #[test]
    fn nodes_by_cases() {
        let node = |calls, failures, stale| NodeFacts {
            node: "a:1".to_owned(),
            store_reachable: true,
            calls_last_minute: calls,
            failures_last_minute: failures,
            stale_histories: stale,
        };
        let nothing = TypeFacts::default;
        assert_eq!(node_with(node(1_000, 0, 0), nothing()), []);
        let errors = |severity| vec![(Kind::Errors, severity)];
        assert_eq!(node_with(node(1_000, 10, 0), nothing()), errors(Severity::Warning));
        assert_eq!(node_with(node(1_000, 11, 0), nothing()), errors(Severity::Critical));
        assert_eq!(node_with(node(0, 1, 0), nothing()), errors(Severity::Critical));
        let stale = vec![(Kind::StaleHistory, Severity::Warning)];
        assert_eq!(node_with(node(0, 0, 2), nothing()), stale);
    }

    fn store(reachable: bool) -> StoreState {
        let error = (!reachable).then(|| "connection refused".to_owned());
        StoreState { kind: "mysql", reachable, round_trip_us: None, error }
    }

    fn instance(name: &str, reachable: bool, types: u64, drained: bool) -> InstanceState {
        InstanceState {
            id: 1,
            name: name.to_owned(),
            url: "redis://h".to_owned(),
            reachable,
            round_trip_us: 0,
            history: None,
            error: None,
            types,
            drain_to: drained.then(|| InstanceRef { id: 2, name: Some("b".to_owned()) }),
            memory_bytes: None,
            role: None,
            version: None,
        }
    }

    fn node(name: &str, version: &str, silent: bool) -> NodeReport {
        NodeReport {
            node: name.to_owned(),
            version: version.to_owned(),
            started_ms: NOW,
            at_ms: NOW,
            age_ms: 12_000,
            silent,
            draining: false,
            thrift: String::new(),
            http: String::new(),
            ids_per_s: 0.0,
            calls_per_s: 0.0,
            errors_per_s: 0.0,
            types_loaded: 0,
            parts: Vec::new(),
        }
    }

    #[test]
    fn the_cluster_by_cases() {
        use Severity::{Critical, Info, Warning};
        let up = store(true);
        let nobody = ClusterFacts { store: &up, instances: &[], nodes: &[], migrations: &[] };
        assert_eq!(of_cluster(&nobody), []);
        let down = store(false);
        let two = [node("a", "1.0", false), node("b", "1.1", false)];
        let gone = [node("a", "1.0", false), node("b", "1.1", true)];
        let moving = [("order".to_owned(), NOW), ("user".to_owned(), NOW - 5)];
        let cases: [(ClusterFacts<'_>, Kind, Severity, Option<u64>); 9] = [
            (ClusterFacts { store: &down, ..nobody }, Kind::StoreDown, Critical, None),
            (
                ClusterFacts { instances: &[instance("a", false, 3, false)], ..nobody },
                Kind::InstanceDown,
                Critical,
                Some(3),
            ),
            (
                ClusterFacts { instances: &[instance("a", false, 0, false)], ..nobody },
                Kind::InstanceDown,
                Warning,
                Some(0),
            ),
            (
                ClusterFacts { instances: &[instance("a", true, 9, true)], ..nobody },
                Kind::DrainRunning,
                Info,
                Some(9),
            ),
            (
                ClusterFacts { instances: &[instance("a", true, 0, true)], ..nobody },
                Kind::DrainRunning,
                Info,
                Some(0),
            ),
            (ClusterFacts { nodes: &two, ..nobody }, Kind::VersionsDiffer, Info, Some(2)),
            (ClusterFacts { nodes: &gone, ..nobody }, Kind::NodeSilent, Warning, None),
            (
                ClusterFacts { migrations: &moving[..1], ..nobody },
                Kind::MigrationRunning,
                Info,
                Some(1),
            ),
            (ClusterFacts { migrations: &moving, ..nobody }, Kind::MigrationRunning, Info, Some(2)),
        ];
        for (facts, kind, severity, count) in cases {
            let found = of_cluster(&facts);
            assert_eq!(found.len(), 1, "{found:?}");
            let entry = &found[0];
            assert_eq!((entry.kind, entry.severity, entry.count), (kind, severity, count));
            assert!(entry.detail.ends_with('.'), "{entry:?}");
        }
    }

    #[test]
    fn the_worst_comes_first_once_and_not_too_much() {
        let entry = |kind, severity, name: &str, runway_s| Attention {
            runway_s,
            ..attention(kind, severity, of_type(name), "x.".to_owned())
        };
        use Severity::{Critical, Info, Warning};
        let found = ordered(vec![
            entry(Kind::VersionsDiffer, Info, "a", None),
            entry(Kind::RunwayShort, Warning, "b", Some(700.0)),
            entry(Kind::LimitNear, Critical, "c", None),
            entry(Kind::RunwayShort, Critical, "d", Some(9.0)),
            entry(Kind::RunwayShort, Critical, "e", Some(3.0)),
            entry(Kind::RunwayShort, Critical, "b", Some(1.0)),
            entry(Kind::RunwayShort, Warning, "b", Some(500.0)),
            entry(Kind::StoreDown, Critical, "f", None),
        ]);
        let names: Vec<_> =
            found.iter().map(|entry| entry.subject.id_type.clone().unwrap()).collect();
        assert_eq!(names, ["f", "b", "e", "d", "c", "a"]);
        let many = (0..80).map(|n| entry(Kind::LimitNear, Warning, &n.to_string(), None));
        let worst = entry(Kind::LimitNear, Critical, "x", None);
        let found = ordered(many.chain([worst]).collect());
        assert_eq!(found.len(), MOST);
        assert_eq!(found[0].subject.id_type.as_deref(), Some("x"));
    }

    #[test]
    fn spans_in_words() {
        let cases = [
            (-3.0, "0 seconds"),
            (1.4, "1 second"),
            (119.0, "119 seconds"),
            (120.0, "2 minutes"),
            (7_300.0, "2 hours"),
            (172_800.0, "2 days"),
            (700.0 * 86_400.0, "700 days"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(words(seconds), expected);
        }
    }
}
