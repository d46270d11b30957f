//! A type in words: its settings, its options, what its dispatcher and the node
//! hold of it, and for how long that lasts.

use serde_json::{Map, Value};

use super::output::time;
use crate::domain::snowflake::{Layout, TimeUnit};
use crate::domain::{AtLimit, OnRedisLoss, TypeOptions};
use crate::front::http::kind_schema::LocalJson;
use crate::front::http::schema::{DispatcherJson, RangeJson, TypeDetailJson, TypeJson};

/// Names and what stands beside them.
pub type Pairs = Vec<(&'static str, String)>;

/// The settings and options of a type.
pub fn settings_of(record: &TypeJson) -> Pairs {
    let mut pairs = vec![
        ("name", record.name.clone()),
        ("mode", record.mode.clone()),
        ("state", record.state.clone()),
        ("prefix", record.prefix.clone()),
        ("description", record.description.clone()),
    ];
    pairs.extend(options_of(&record.options));
    if record.mode != "snowflake" {
        pairs.extend([
            ("first id", record.first_id.to_string()),
            ("next id of the store", record.next_id.to_string()),
            ("max id", record.max_id.to_string()),
            ("min range", record.min_range.to_string()),
            ("max range", record.max_range.to_string()),
            ("load interval", format!("{} ms", record.load_interval_ms)),
            ("load percentage", record.load_percentage.to_string()),
            ("lock expire", format!("{} ms", record.lock_ttl_ms)),
            ("last range", or_dash(record.last_range)),
            ("last load", record.last_load_ms.map_or("-".into(), time)),
        ]);
    }
    pairs.push(("redis instance", record.instance.to_string()));
    pairs.extend(record.moving_to.map(|to| ("moving to", format!("redis instance {to}"))));
    if let Some(from) = record.moved_from {
        let when = record.moved_ms.map_or_else(|| "-".to_owned(), time);
        pairs.push(("moved from", format!("redis instance {from}, {when}")));
    }
    if record.generation > 0 {
        pairs.push(("generation", record.generation.to_string()));
    }
    pairs.extend([
        ("version", record.version.to_string()),
        ("created", time(record.created_ms)),
        ("updated", time(record.updated_ms)),
    ]);
    pairs
}

/// What the options mean; as JSON where a newer node has more of them.
fn options_of(fields: &Map<String, Value>) -> Pairs {
    let json = Value::Object(fields.clone());
    let Ok(options) = serde_json::from_value::<TypeOptions>(json.clone()) else {
        return vec![("options", json.to_string())];
    };
    let TypeOptions {
        at_limit,
        on_redis_loss,
        format,
        calendar,
        time_zone,
        opaque,
        app_id,
        snowflake,
        sites,
    } = options;
    let mut pairs = Pairs::new();
    let mut add = |name, value: Option<String>| pairs.extend(value.map(|value| (name, value)));
    add("format", format);
    add("calendar", calendar.map(|period| format!("starts again {}", period.as_str())));
    add("time zone", time_zone);
    let cycles = at_limit == AtLimit::Cycle;
    add("at max id", cycles.then(|| "starts again at the first id: ids repeat".to_owned()));
    add("opaque", opaque.map(|o| format!("ids tell nothing; {} slices for keys", o.slices)));
    add("app id", app_id.map(|id| id.to_string()));
    add("layout", snowflake.map(layout_of));
    let site = |s: crate::domain::Sites| {
        format!("site {} of {}: id = position x {} + {}", s.site, s.count, s.count, s.site)
    };
    add("sites", sites.map(site));
    let goes_on = on_redis_loss == OnRedisLoss::Segment;
    let goes_on = goes_on.then(|| "goes on, without one order across the cluster".to_owned());
    add("without redis", goes_on);
    pairs
}

fn layout_of(layout: Layout) -> String {
    let unit = match layout.unit {
        TimeUnit::Milliseconds => "milliseconds",
        TimeUnit::Seconds => "seconds",
    };
    format!(
        "{} bits of {unit} since {}, {} bits of worker, {} bits of sequence",
        layout.time_bits,
        time(layout.epoch_ms),
        layout.worker_bits,
        layout.sequence_bits
    )
}

/// What the dispatcher and the node hold, and when the type ends.
pub fn supply_of(detail: &TypeDetailJson) -> Pairs {
    let strict = detail.record.mode == "strict";
    let mut pairs = match &detail.dispatcher {
        Some(view) => dispatcher_of(view),
        None if strict => vec![("dispatcher", "out of reach".to_owned())],
        None => Pairs::new(),
    };
    match &detail.local {
        Some(local) => pairs.extend(local_of(local)),
        None if strict => {}
        None => pairs.push(("this node", "has handed out none yet".to_owned())),
    }
    let end = match (detail.exhausted_at_ms, detail.record.options.contains_key("calendar")) {
        (Some(at_ms), false) => format!("{}, at the rate of now", time(at_ms)),
        (Some(at_ms), true) => {
            format!("{}, at the rate of now: before the period ends", time(at_ms))
        }
        (None, _) => "not in sight".to_owned(),
    };
    pairs.push(("ids end", end));
    pairs
}

fn dispatcher_of(view: &DispatcherJson) -> Pairs {
    let range = |range: Option<RangeJson>| {
        range.map_or("-".to_owned(), |r| format!("[{}, {})", r.start, r.end))
    };
    let state = match (view.sealed, view.live) {
        (Some(seal), _) => format!("closed: the type goes to redis instance {}", seal.target),
        (None, true) => "live".to_owned(),
        (None, false) => "needs a refill before it can go on".to_owned(),
    };
    vec![
        ("dispatcher", state),
        ("next id", view.cursor.to_string()),
        ("current range", range(view.current)),
        ("range in reserve", range(view.second)),
        ("refill due at", view.update_id.to_string()),
        ("ids left", view.left.to_string()),
    ]
}

fn local_of(local: &LocalJson) -> Pairs {
    let mut pairs = Pairs::new();
    if let Some(worker) = local.worker {
        pairs.push(("worker id of this node", worker.to_string()));
    }
    if local.ranges > 0 || local.worker.is_none() {
        let held =
            format!("{} ids in {} ranges; keeps {} ahead", local.left, local.ranges, local.ahead);
        pairs.push(("this node holds", held));
    }
    if let Some(rate) = local.rate {
        pairs.push(("this node hands out", format!("{rate:.1} ids/s")));
    }
    if let Some(seconds) = local.runway_s {
        let text = format!("{} without the range store", duration(seconds));
        pairs.push(("which lasts", text));
    }
    pairs
}

/// The Redis instance of a type, and where it goes from there.
pub fn place_of(record: &TypeJson) -> String {
    match record.moving_to {
        Some(to) => format!("{} -> {to}", record.instance),
        None => record.instance.to_string(),
    }
}

/// Seconds in the largest unit of which there are at least two.
pub fn duration(seconds: f64) -> String {
    const UNITS: [(f64, &str); 5] =
        [(31_556_952.0, "years"), (86_400.0, "days"), (3_600.0, "h"), (60.0, "min"), (1.0, "s")];
    let found = UNITS.into_iter().find(|(length, _)| seconds >= 2.0 * length);
    let (length, name) = found.unwrap_or((1.0, "s"));
    format!("{:.1} {name}", seconds / length)
}

/// The number, or a dash.
pub fn or_dash(value: Option<i64>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(options: Value) -> String {
        let Value::Object(fields) = options else { panic!("options are an object") };
        let lines = options_of(&fields).into_iter().map(|(name, value)| format!("{name}: {value}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn options_in_words() {
        assert_eq!(text(json!({})), "");
        for (options, words) in [
            (json!({"at_limit": "cycle"}), "ids repeat"),
            (json!({"format": "{seq:06}", "calendar": "daily"}), "starts again daily"),
            (json!({"time_zone": "Asia/Tokyo"}), "time zone: Asia/Tokyo"),
            (json!({"opaque": {"slices": 4}}), "4 slices"),
            (json!({"app_id": 7}), "app id: 7"),
            (json!({"sites": {"count": 3, "site": 1}}), "id = position x 3 + 1"),
            (json!({"on_redis_loss": "segment"}), "without redis: goes on"),
            (
                json!({"snowflake": {"worker_bits": 8, "unit": "s"}}),
                "41 bits of seconds since 2010-11-04 01:42:54.657Z, 8 bits of worker, 12 bits",
            ),
            // A newer node may have more.
            (json!({"colour": "red"}), r#"options: {"colour":"red"}"#),
        ] {
            let said = text(options);
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn durations_by_cases() {
        for (seconds, expected) in [
            (0.0, "0.0 s"),
            (119.0, "119.0 s"),
            (120.0, "2.0 min"),
            (5_400.0, "90.0 min"),
            (7_200.0, "2.0 h"),
            (172_800.0, "2.0 days"),
            (86_400.0 * 365.0, "365.0 days"),
            (31_556_952.0 * 10.0, "10.0 years"),
        ] {
            assert_eq!(duration(seconds), expected);
        }
    }
}
