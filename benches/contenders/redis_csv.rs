//! The CSV of `redis-benchmark`.

/// What it measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    pub requests_per_s: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub highest_ms: f64,
}

/// The line of `INCR`. Its columns are requests/s, then latencies in
/// milliseconds: average, lowest, p50, p95, p99, highest.
pub fn parse(csv: &str) -> Option<Line> {
    let line = csv.lines().find(|l| l.starts_with("\"INCR\""))?;
    let numbers: Option<Vec<f64>> =
        line.split(',').skip(1).map(|n| n.trim_matches('"').parse().ok()).collect();
    match numbers?.as_slice() {
        &[requests_per_s, _average, _lowest, p50_ms, _p95, p99_ms, highest_ms] => {
            Some(Line { requests_per_s, p50_ms, p99_ms, highest_ms })
        }
        _ => None,
    }
}
