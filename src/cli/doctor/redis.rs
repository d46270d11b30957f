//! Checks of a Redis server, alone or in a group (`redis_groups`).

use std::collections::BTreeMap;
use std::time::Duration;

use redis::{Client, Connection, RedisError, TlsCertificates};

use super::{Check, Verdict, clock, now_ms, redis_groups, stopwatch};
use crate::config::RedisSettings;
use crate::domain::RedisUrl;
use crate::domain::instance::redact_url;

pub(super) const PART: &str = "redis";

/// What a server is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The one server of an instance.
    Alone,
    /// A master of a Sentinel group or a cluster.
    Master,
    /// A replica there.
    Replica,
}

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The fields of `INFO`.
    info: BTreeMap<String, String>,
    /// The answers to `CONFIG GET`; empty where the account may not ask.
    config: BTreeMap<String, String>,
    /// Its clock minus this machine's, in milliseconds.
    skew_ms: i64,
    /// How long a trivial command took.
    round_trip: Duration,
}

/// Checks the server of `--redis` and those that are registered in the range
/// store, each once.
pub(super) fn checks(settings: &RedisSettings, registered: Vec<String>) -> Vec<Check> {
    let mut urls: Vec<String> = settings.url.iter().cloned().collect();
    urls.extend(registered);
    urls.sort();
    urls.dedup();
    if urls.is_empty() {
        return vec![Check::ok(PART, "connection", "none given, none registered")];
    }
    urls.iter().flat_map(|url| check(url, settings)).collect()
}

fn check(url: &str, settings: &RedisSettings) -> Vec<Check> {
    let shown = redact_url(url);
    match RedisUrl::parse(url) {
        Ok(RedisUrl::Server(url)) => server(&url, &shown, Place::Alone, settings),
        Ok(RedisUrl::Sentinel { sentinels, sentinel_login, group, login }) => {
            redis_groups::sentinel(&sentinels, &sentinel_login, &group, &login, settings)
        }
        Ok(RedisUrl::Cluster { nodes, login }) => redis_groups::cluster(&nodes, &login, settings),
        Err(error) => vec![
            Check::ok(PART, "connection", format!("{shown}: {}", error.message))
                .with(Verdict::Fail, "register the instance with a URL that can work"),
        ],
    }
}

/// Checks one server by its plain URL.
pub(super) fn server(url: &str, shown: &str, place: Place, settings: &RedisSettings) -> Vec<Check> {
    match gather(url, settings) {
        Ok(facts) => judge(&facts, shown, place),
        Err(why) => vec![
            Check::ok(PART, "connection", format!("{shown}: {why}"))
                .with(Verdict::Fail, "check that the server runs, and the URL, user and password"),
        ],
    }
}

fn gather(url: &str, settings: &RedisSettings) -> Result<Facts, String> {
    let mut connection = connect(url, settings)?;
    let text = |error: RedisError| error.to_string();
    let info: String = redis::cmd("INFO").query(&mut connection).map_err(text)?;
    let mut config = BTreeMap::new();
    for name in ["maxmemory-policy", "appendonly", "appendfsync", "save", "min-replicas-to-write"] {
        // An account without the right, or a hosted server, refuses this: then
        // INFO has to do.
        let answer: Result<BTreeMap<String, String>, _> =
            redis::cmd("CONFIG").arg("GET").arg(name).query(&mut connection);
        config.extend(answer.unwrap_or_default());
    }
    let before = now_ms();
    let began = stopwatch();
    let (seconds, micros): (i64, i64) = redis::cmd("TIME").query(&mut connection).map_err(text)?;
    let round_trip = began.elapsed();
    let middle = before + round_trip.as_millis() as i64 / 2;
    Ok(Facts {
        info: parse_info(&info),
        config,
        skew_ms: seconds * 1_000 + micros / 1_000 - middle,
        round_trip,
    })
}

/// Connects to a plain URL, within the time limit.
pub(super) fn connect(url: &str, settings: &RedisSettings) -> Result<Connection, String> {
    // Fails only when a provider is chosen already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = match &settings.ca_file {
        Some(file) if url.starts_with("rediss://") => {
            let root = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
            let certificates = TlsCertificates { client_tls: None, root_cert: Some(root) };
            Client::build_with_tls(url, certificates)
        }
        _ => Client::open(url),
    };
    let timeout = settings.timeout;
    let connection = client
        .and_then(|client| client.get_connection_with_timeout(timeout))
        .map_err(|error| error.to_string())?;
    let limits = connection
        .set_read_timeout(Some(timeout))
        .and_then(|()| connection.set_write_timeout(Some(timeout)));
    limits.map_err(|error| error.to_string())?;
    Ok(connection)
}

pub(super) fn parse_info(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.trim_end().split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

pub(super) fn judge(facts: &Facts, shown: &str, place: Place) -> Vec<Check> {
    let info = |name: &str| facts.info.get(name).map_or("", String::as_str);
    let config = |name: &str| facts.config.get(name).map(String::as_str);
    let number = |name: &str| config(name).and_then(|text| text.parse::<u32>().ok());
    let answers = format!("{shown} answers in {:?}", facts.round_trip);
    let mut checks = vec![Check::ok(PART, "connection", answers), version(info("redis_version"))];
    match place {
        Place::Alone => checks.extend([role(info("role")), cluster(info("cluster_enabled"))]),
        Place::Master => checks.push(role(info("role"))),
        Place::Replica => checks.push(in_step(info("master_link_status"))),
    }
    checks.extend([
        eviction(config("maxmemory-policy").unwrap_or(info("maxmemory_policy"))),
        persistence(
            config("appendonly").map_or(info("aof_enabled") == "1", |value| value == "yes"),
            config("save"),
        ),
    ]);
    let min_to_write = number("min-replicas-to-write");
    // An older one fails its own check.
    let scripts_obey = !((6, 2)..(7, 0)).contains(&version_number(info("redis_version")));
    checks.push(match place {
        Place::Replica => promoted(min_to_write),
        _ => {
            let connected = info("connected_slaves").parse().unwrap_or(0);
            replicas(min_to_write, connected, scripts_obey, place)
        }
    });
    checks.push(clock(PART, facts.skew_ms, facts.round_trip));
    if place != Place::Alone {
        for check in checks.iter_mut().skip(1) {
            check.found = format!("{shown}: {}", check.found);
        }
    }
    checks
}

fn version_number(found: &str) -> (u32, u32) {
    let mut parts = found.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn version(found: &str) -> Check {
    Check::ok(PART, "version", found).unless(
        version_number(found) >= (6, 2),
        Verdict::Fail,
        "the scripts need Redis 6.2 or Valkey at least",
    )
}

fn role(found: &str) -> Check {
    Check::ok(PART, "role", found).unless(
        found == "master",
        Verdict::Fail,
        "connect to the primary server: a replica cannot hand out ids",
    )
}

fn cluster(enabled: &str) -> Check {
    let found = if enabled == "1" { "Redis Cluster" } else { "single" };
    Check::ok(PART, "kind", found).unless(
        enabled != "1",
        Verdict::Warn,
        "register it with a redis+cluster:// URL: by this one only types are served whose hash \
         slot is on this server",
    )
}

fn in_step(link: &str) -> Check {
    Check::ok(PART, "replica", format!("link to its master {link}")).unless(
        link == "up",
        Verdict::Warn,
        "it cannot take over as it is: see whether it loads, and masteruser and masterauth",
    )
}

fn eviction(policy: &str) -> Check {
    let check = Check::ok(PART, "eviction", format!("maxmemory-policy {policy}"));
    // The keys of types have no time to live, so `volatile-*` leaves them alone.
    let harmless = policy == "noeviction" || policy.starts_with("volatile-");
    if policy.is_empty() {
        return Check::ok(PART, "eviction", "cannot be read")
            .with(Verdict::Warn, "make sure that maxmemory-policy is noeviction");
    }
    check.unless(
        harmless,
        Verdict::Fail,
        "set maxmemory-policy noeviction: otherwise Redis drops published ranges when its memory \
         is full, which burns ids and stalls callers",
    )
}

/// Data that Redis loses is dropped, never resumed; so persistence is no
/// matter of safety. It saves the ids of the published ranges from being burnt.
fn persistence(append_only: bool, save: Option<&str>) -> Check {
    let snapshots = match save {
        Some("") => "no snapshots",
        Some(_) => "snapshots",
        None => "snapshots not known",
    };
    let log = if append_only { "append-only file" } else { "no append-only file" };
    Check::ok(PART, "persistence", format!("{log}, {snapshots}")).unless(
        append_only || save != Some(""),
        Verdict::Warn,
        "nothing is kept over a restart: ids stay unique, but each restart loses the floor that \
         Redis keeps for a MySQL that is restored from a backup; set appendonly yes",
    )
}

/// What `min-replicas-to-write 1` buys, and what it costs.
const ORDER_IN_SPLIT_BRAIN: &str = "set min-replicas-to-write 1, with min-replicas-max-lag below the time of a fail-over: it buys \
     order, not uniqueness, which never is in danger. Without it, a master that is cut off from its \
     replicas, but still reached by some nodes, hands out ids for up to a second that are unique, \
     but lower than others given meanwhile. It costs availability: a master whose replicas are away \
     refuses every write";

fn replicas(min: Option<u32>, connected: u32, scripts_obey: bool, place: Place) -> Check {
    let found = match min {
        Some(min) => format!("min-replicas-to-write {min} with {connected} replicas"),
        None => format!("min-replicas-to-write cannot be read, with {connected} replicas"),
    };
    let check = Check::ok(PART, "split brain", found);
    match (connected, min) {
        (0, Some(0) | None) if place == Place::Alone => check,
        (0, Some(0) | None) => check
            .with(Verdict::Warn, "it has no replica, so nothing takes over when it fails: add one"),
        (_, Some(min)) if connected < min => check.with(
            Verdict::Fail,
            "too few replicas are connected, so Redis refuses every write: start them, or \
             lower min-replicas-to-write",
        ),
        _ if !scripts_obey => check.with(
            Verdict::Warn,
            "before Redis 7.0, min-replicas-to-write does not hold inside scripts: a master that \
             is cut off can hand out ids out of order (never twice) for up to a second",
        ),
        (_, Some(0) | None) => check.with(Verdict::Warn, ORDER_IN_SPLIT_BRAIN),
        _ => check,
    }
}

/// A replica brings its own setting when it becomes master.
fn promoted(min: Option<u32>) -> Check {
    let found = match min {
        Some(min) => format!("min-replicas-to-write {min} once it is promoted"),
        None => "min-replicas-to-write cannot be read".to_owned(),
    };
    Check::ok(PART, "split brain", found).unless(
        min.is_some_and(|min| min > 0),
        Verdict::Warn,
        ORDER_IN_SPLIT_BRAIN,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        let info = "# Server\r\nredis_version:7.0.15\r\nrole:master\r\ncluster_enabled:0\r\n\
                    connected_slaves:1\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n";
        let config = [
            ("maxmemory-policy", "noeviction"),
            ("appendonly", "yes"),
            ("save", "3600 1"),
            ("min-replicas-to-write", "1"),
        ];
        Facts {
            info: parse_info(info),
            config: config.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            skew_ms: 3,
            round_trip: Duration::from_millis(1),
        }
    }

    #[test]
    fn a_good_server_is_ok_even_where_it_hides_its_config() {
        let mut facts = good();
        for check in judge(&facts, &redact_url("redis://:s3cr3t@h"), Place::Alone) {
            assert_eq!(check.verdict, Verdict::Ok, "{check:?}");
            assert!(!check.found.contains("s3cr3t"));
        }
        facts.config.clear();
        facts.info.insert("connected_slaves".into(), "0".into());
        for check in judge(&facts, "redis://h", Place::Alone) {
            assert_eq!(check.verdict, Verdict::Ok, "{check:?}");
        }
    }

    #[test]
    fn each_fault_is_found_alone_and_has_advice() {
        type Break = fn(&mut Facts);
        fn info(facts: &mut Facts, name: &str, value: &str) {
            facts.info.insert(name.into(), value.into());
        }
        fn config(facts: &mut Facts, name: &str, value: &str) {
            facts.config.insert(name.into(), value.into());
        }
        let cases: [(&str, Verdict, Break); 11] = [
            ("version", Verdict::Fail, |f| info(f, "redis_version", "6.0.16")),
            ("version", Verdict::Fail, |f| info(f, "redis_version", "?")),
            ("role", Verdict::Fail, |f| info(f, "role", "slave")),
            ("kind", Verdict::Warn, |f| info(f, "cluster_enabled", "1")),
            ("eviction", Verdict::Fail, |f| {
                config(f, "maxmemory-policy", "allkeys-lru");
            }),
            ("eviction", Verdict::Warn, |f| {
                f.config.remove("maxmemory-policy");
                f.info.remove("maxmemory_policy");
            }),
            ("persistence", Verdict::Warn, |f| {
                config(f, "appendonly", "no");
                config(f, "save", "");
            }),
            ("split brain", Verdict::Warn, |f| {
                config(f, "min-replicas-to-write", "0");
            }),
            ("split brain", Verdict::Warn, |f| info(f, "redis_version", "6.2.14")),
            ("split brain", Verdict::Fail, |f| {
                config(f, "min-replicas-to-write", "2");
            }),
            ("clock", Verdict::Warn, |f| f.skew_ms = -800),
        ];
        for (name, verdict, change) in cases {
            let mut facts = good();
            change(&mut facts);
            let bad: Vec<Check> = judge(&facts, "redis://h", Place::Alone)
                .into_iter()
                .filter(|check| check.verdict != Verdict::Ok)
                .collect();
            assert_eq!(bad.len(), 1, "{name}: {bad:?}");
            assert_eq!((bad[0].name, bad[0].verdict), (name, verdict));
            assert!(!bad[0].advice.is_empty());
        }
    }

    #[test]
    fn a_master_needs_a_replica_and_a_replica_its_master() {
        let bad = |facts: &Facts, place| {
            let checks = judge(facts, "h:1", place);
            let bad = checks.into_iter().filter(|check| check.verdict != Verdict::Ok);
            bad.map(|check| (check.name, check.verdict)).collect::<Vec<_>>()
        };
        let mut facts = good();
        facts.info.insert("cluster_enabled".into(), "1".into());
        assert_eq!(bad(&facts, Place::Master), []);
        facts.info.insert("connected_slaves".into(), "0".into());
        facts.config.insert("min-replicas-to-write".into(), "0".into());
        assert_eq!(bad(&facts, Place::Master), [("split brain", Verdict::Warn)]);

        facts.info.insert("role".into(), "slave".into());
        assert_eq!(
            bad(&facts, Place::Replica),
            [("replica", Verdict::Warn), ("split brain", Verdict::Warn)]
        );
        facts.info.insert("master_link_status".into(), "up".into());
        facts.config.insert("min-replicas-to-write".into(), "1".into());
        assert_eq!(bad(&facts, Place::Replica), []);
    }

    #[test]
    fn volatile_policies_leave_keys_without_a_time_to_live_alone() {
        assert_eq!(eviction("volatile-lru").verdict, Verdict::Ok);
        assert_eq!(eviction("allkeys-random").verdict, Verdict::Fail);
    }
}
