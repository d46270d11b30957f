//! What a node tells its peers, and what it hears of them.
//!
//! Two texts, both JSON: a summary of less than 16 KB that everybody reads every 2 s,
//! and details that are read only while somebody looks. A newer node may tell more,
//! an older one less.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::api::{Attention, NodeReport, Part};
use super::attention;
use super::recorder::{Busy, rounded};
use crate::ports::NodeEntry;
use crate::ports::node_registry::{MAX_DETAILS, MAX_SUMMARY};

/// Most types that a node tells of.
const MOST_TYPES: usize = 200;
/// Most parts that a node tells of.
const MOST_PARTS: usize = 64;
/// Longest error in a report, in characters.
const LONGEST_ERROR: usize = 100;
/// A node that was not heard of for so long is silent.
const SILENT_AFTER_MS: u64 = 10_000;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Summary {
    pub(super) version: String,
    pub(super) started_ms: i64,
    pub(super) at_ms: i64,
    pub(super) draining: bool,
    pub(super) thrift: String,
    pub(super) http: String,
    pub(super) ids_per_s: f64,
    pub(super) calls_per_s: f64,
    pub(super) errors_per_s: f64,
    pub(super) types_loaded: u64,
    pub(super) parts: Vec<Part>,
}

impl Summary {
    /// As text; the parts go where there are too many of them.
    pub(super) fn text(mut self) -> String {
        self.parts.truncate(MOST_PARTS);
        for part in &mut self.parts {
            part.error = part.error.take().map(|e| e.chars().take(LONGEST_ERROR).collect());
        }
        let text = |summary: &Summary| serde_json::to_string(summary).unwrap_or_default();
        let whole = text(&self);
        if whole.len() <= MAX_SUMMARY {
            return whole;
        }
        self.parts.clear();
        text(&self)
    }

    pub(super) fn into_node(self, node: String, age_ms: u64, silent: bool) -> NodeReport {
        NodeReport {
            node,
            version: self.version,
            started_ms: self.started_ms,
            at_ms: self.at_ms,
            age_ms,
            silent,
            draining: self.draining,
            thrift: self.thrift,
            http: self.http,
            ids_per_s: self.ids_per_s,
            calls_per_s: self.calls_per_s,
            errors_per_s: self.errors_per_s,
            types_loaded: self.types_loaded,
            parts: self.parts,
        }
    }
}

/// A type as a node tells of it. Short names: there are up to 200 of these.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Told {
    /// Name.
    pub(super) n: String,
    /// Ids per second that this node hands out of its own leases; of a strict type,
    /// those of the cluster.
    pub(super) r: f64,
    /// Runway in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) w: Option<f64>,
    /// When it is exhausted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) x: Option<i64>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    pub(super) types: Vec<Told>,
    /// Whether these are all types in use.
    pub(super) complete: bool,
    pub(super) attention: Vec<Attention>,
}

impl Details {
    /// Of the types in use at most 200: those with the shortest runways, and the
    /// busiest.
    pub(super) fn new(busy: Vec<Busy>, attention: Vec<Attention>) -> Self {
        let complete = busy.len() <= MOST_TYPES;
        Details { types: choose(busy), complete, attention }
    }

    /// As text; what is less important goes where it is too long.
    pub(super) fn text(mut self) -> String {
        self.attention.truncate(attention::MOST);
        loop {
            let text = serde_json::to_string(&self).unwrap_or_default();
            if text.len() <= MAX_DETAILS || (self.types.is_empty() && self.attention.is_empty()) {
                return text;
            }
            self.complete = false;
            self.types.truncate(self.types.len() / 2);
            self.attention.truncate(self.attention.len() / 2);
        }
    }
}

fn choose(mut busy: Vec<Busy>) -> Vec<Told> {
    let told = |busy: &Busy| Told {
        n: busy.name.to_string(),
        r: rounded(busy.rate),
        w: busy.latest.runway_s,
        x: busy.latest.exhausted_at_ms,
    };
    if busy.len() <= MOST_TYPES {
        return busy.iter().map(told).collect();
    }
    let half = MOST_TYPES / 2;
    let runway = |busy: &Busy| busy.latest.runway_s.unwrap_or(f64::INFINITY);
    busy.select_nth_unstable_by(half - 1, |a, b| runway(a).total_cmp(&runway(b)));
    let mut rest = busy.split_off(half);
    let rate = |busy: &Busy| busy.rate.unwrap_or(0.0);
    rest.select_nth_unstable_by(half - 1, |a, b| rate(b).total_cmp(&rate(a)));
    rest.truncate(half);
    busy.iter().chain(&rest).map(told).collect()
}

/// Another node.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) report: NodeReport,
    /// `None` where nobody asked, or they make no sense.
    pub(super) details: Option<Details>,
}

/// The other nodes, as last heard.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    pub(super) all: Vec<Peer>,
    /// When something was heard last; `None` for never.
    pub(super) heard: Option<Instant>,
    /// Whether the latest try heard something.
    pub(super) is_current: bool,
}

impl Peers {
    /// Peers that are not silent.
    pub(super) fn awake(&self) -> impl Iterator<Item = &Peer> {
        self.all.iter().filter(|peer| !peer.report.silent)
    }

    pub(super) fn ids_per_s(&self) -> f64 {
        self.awake().map(|peer| peer.report.ids_per_s).sum()
    }
}

/// Of what several registries hold, the newest of each node but `own`. What makes no
/// sense is left out.
pub(super) fn merge(own: &str, read: Vec<NodeEntry>) -> Vec<Peer> {
    let mut newest: BTreeMap<String, NodeEntry> = BTreeMap::new();
    for entry in read {
        let is_older = newest.get(&entry.node).is_some_and(|held| held.age <= entry.age);
        if entry.node != own && !is_older {
            newest.insert(entry.node.clone(), entry);
        }
    }
    let peer = |entry: NodeEntry| {
        let summary: Summary = serde_json::from_str(&entry.summary).ok()?;
        let age_ms = entry.age.as_millis() as u64;
        Some(Peer {
            report: summary.into_node(entry.node, age_ms, age_ms > SILENT_AFTER_MS),
            details: entry.details.and_then(|text| serde_json::from_str(&text).ok()),
        })
    };
    newest.into_values().filter_map(peer).collect()
}

#[cfg(test)]
mod tests {
    use super::super::recorder::Latest;
    use super::*;
    use crate::domain::TypeName;
    use std::time::Duration;

    fn busy(n: usize, rate: f64, runway_s: Option<f64>) -> Busy {
        Busy {
            name: TypeName::parse(&format!("type-{n}")).unwrap(),
            rate: Some(rate),
            latest: Latest { runway_s, exhausted_at_ms: None },
        }
    }

    #[test]
    fn a_report_is_bounded_and_tells_the_most_important() {
        let few = Details::new(vec![busy(1, 2.0, None)], Vec::new());
        assert!(few.complete);
        assert_eq!(few.types, [Told { n: "type-1".to_owned(), r: 2.0, w: None, x: None }]);
        // Rates and runways grow with the number.
        let many = (0..1_000).map(|n| busy(n, n as f64, Some(n as f64))).collect();
        let details = Details::new(many, Vec::new());
        assert!(!details.complete);
        assert_eq!(details.types.len(), MOST_TYPES);
        let numbers: Vec<usize> =
            details.types.iter().map(|told| told.n[5..].parse().unwrap()).collect();
        assert!((0..100).all(|n| numbers.contains(&n)), "the shortest runways");
        assert!((900..1_000).all(|n| numbers.contains(&n)), "the busiest");

        let long = |n: usize| Busy {
            name: TypeName::parse(&format!("{n:0128}")).unwrap(),
            ..busy(n, 1e9 / 3.0, Some(1e9 / 7.0))
        };
        let entry = Attention {
            kind: super::super::api::Kind::RefillFailing,
            severity: super::super::api::Severity::Critical,
            subject: Default::default(),
            detail: "x".repeat(2_000),
            runway_s: None,
            at_ms: None,
            count: None,
            left: None,
        };
        let text = Details::new((0..1_000).map(long).collect(), vec![entry; 500]).text();
        assert!(text.len() <= MAX_DETAILS, "{}", text.len());
        let read: Details = serde_json::from_str(&text).unwrap();
        assert!(!read.types.is_empty() && !read.attention.is_empty() && !read.complete);

        let part = Part {
            name: "p".repeat(128),
            kind: "redis".to_owned(),
            reachable: false,
            error: Some("e".repeat(5_000)),
        };
        let text = Summary { parts: vec![part; 500], ..Summary::default() }.text();
        assert!(text.len() <= MAX_SUMMARY, "{}", text.len());
    }

    fn entry(node: &str, age: u64, version: &str) -> NodeEntry {
        NodeEntry {
            node: node.to_owned(),
            age: Duration::from_millis(age),
            summary: format!(r#"{{"version":"{version}","news":{{}}}}"#),
            details: None,
        }
    }

    #[test]
    fn of_each_node_the_newest_counts() {
        let odd = NodeEntry { summary: "?".to_owned(), ..entry("odd", 1, "") };
        let peers = merge(
            "own",
            vec![
                entry("b", 500, "2"),
                entry("b", 9_000, "1"),
                entry("own", 1, "1"),
                entry("a", 12_000, "1"),
                odd,
                entry("a", 11_000, "3"),
                entry("c", 10_000, "1"),
            ],
        );
        let seen: Vec<_> = peers
            .iter()
            .map(|p| (p.report.node.as_str(), p.report.version.as_str(), p.report.silent))
            .collect();
        assert_eq!(seen, [("a", "3", true), ("b", "2", false), ("c", "1", false)]);
    }
}
