//! Checks of a Sentinel group, of a Redis Cluster, and of each server in them.

use std::collections::BTreeMap;

use redis::RedisError;

use super::redis::{PART, Place, connect, parse_info, server};
use super::{Check, Verdict};
use crate::config::RedisSettings;
use crate::domain::redis_url::{Endpoint, Login};

/// The number of hash slots of every cluster.
const SLOTS: u32 = 16_384;

/// What one Sentinel knows of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    master: Endpoint,
    epoch: u64,
    quorum: u64,
    /// All that it knows of, itself included.
    sentinels: u64,
    replicas: Vec<Endpoint>,
}

/// Checks the Sentinels, the master that they name, and its replicas.
pub(super) fn sentinel(
    sentinels: &[Endpoint],
    sentinel_login: &Login,
    name: &str,
    login: &Login,
    settings: &RedisSettings,
) -> Vec<Check> {
    let asked = sentinels.iter().map(|sentinel| {
        (sentinel.clone(), ask_sentinel(&sentinel_login.url(sentinel), name, settings))
    });
    let asked: Vec<_> = asked.collect();
    let mut checks = judge_sentinels(name, &asked);
    let newest = asked.iter().filter_map(|(_, answer)| answer.as_ref().ok());
    if let Some(group) = newest.max_by_key(|group| group.epoch) {
        let check = |at: &Endpoint, place| server(&login.url(at), &at.to_string(), place, settings);
        checks.extend(check(&group.master, Place::Master));
        checks.extend(group.replicas.iter().flat_map(|replica| check(replica, Place::Replica)));
    }
    checks
}

fn ask_sentinel(url: &str, name: &str, settings: &RedisSettings) -> Result<Group, String> {
    let mut connection = connect(url, settings)?;
    let text = |error: RedisError| error.to_string();
    let mut ask = |what: &str| redis::cmd("SENTINEL").arg(what).arg(name).query(&mut connection);
    let about: BTreeMap<String, String> =
        redis::from_redis_value(ask("MASTER").map_err(text)?).map_err(|e| e.to_string())?;
    let replicas: Vec<BTreeMap<String, String>> =
        redis::from_redis_value(ask("REPLICAS").map_err(text)?).map_err(|e| e.to_string())?;
    let number = |field: &str| about.get(field).and_then(|text| text.parse::<u64>().ok());
    let endpoint = |of: &BTreeMap<String, String>| {
        Some(Endpoint { host: of.get("ip")?.clone(), port: of.get("port")?.parse().ok()? })
    };
    let read = || {
        Some(Group {
            master: endpoint(&about)?,
            epoch: number("config-epoch")?,
            quorum: number("quorum")?,
            sentinels: number("num-other-sentinels")? + 1,
            replicas: replicas.iter().filter_map(endpoint).collect(),
        })
    };
    read().ok_or_else(|| "SENTINEL MASTER lacks a field".to_owned())
}

fn judge_sentinels(name: &str, asked: &[(Endpoint, Result<Group, String>)]) -> Vec<Check> {
    let answers: Vec<&Group> = asked.iter().filter_map(|(_, a)| a.as_ref().ok()).collect();
    let mut found = format!("{} of {} answer for {name}", answers.len(), asked.len());
    for (sentinel, answer) in asked {
        if let Err(why) = answer {
            found += &format!("; {sentinel}: {why}");
        }
    }
    let reachable = Check::ok(PART, "sentinels", found);
    let reachable = match answers.len() {
        0 => reachable.with(
            Verdict::Fail,
            "nobody names the master: check that the Sentinels run, the name of the group, and \
             the second account of the URL",
        ),
        count => reachable.unless(
            count == asked.len(),
            Verdict::Warn,
            "start those that do not answer, or take them out of the URL",
        ),
    };
    let Some(newest) = answers.iter().max_by_key(|group| group.epoch) else {
        return vec![reachable];
    };
    let known = answers.iter().map(|group| group.sentinels).max().unwrap_or(1);
    let quorum = newest.quorum;
    let check = Check::ok(PART, "quorum", format!("{quorum} of {known} Sentinels"));
    let check = if quorum > known {
        check.with(Verdict::Fail, "there are fewer Sentinels than the quorum: nothing fails over")
    } else {
        check.unless(
            known >= 3,
            Verdict::Warn,
            "run three Sentinels at least: a fail-over needs more than half of them",
        )
    };
    let agree = answers.iter().all(|group| group.master == newest.master);
    let master = Check::ok(PART, "master", format!("{} by the newest word", newest.master)).unless(
        agree,
        Verdict::Warn,
        "the Sentinels do not agree: a fail-over is going on, or one of them is cut off",
    );
    vec![reachable, check, master]
}

/// A line of `CLUSTER NODES`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    endpoint: Endpoint,
    is_master: bool,
    has_slots: bool,
    /// What others say of it: `fail`, `fail?`, `noaddr`, `handshake`; else empty.
    trouble: String,
}

/// Checks the cluster as the first server that answers sees it, and each server.
pub(super) fn cluster(nodes: &[Endpoint], login: &Login, settings: &RedisSettings) -> Vec<Check> {
    let mut silent = Vec::new();
    for node in nodes {
        match ask_node(&login.url(node), node, settings) {
            Ok((info, members)) => {
                let mut checks = judge_cluster(&info, &members);
                for member in members.iter().filter(|member| member.trouble.is_empty()) {
                    let place = if member.is_master { Place::Master } else { Place::Replica };
                    let at = &member.endpoint;
                    checks.extend(server(&login.url(at), &at.to_string(), place, settings));
                }
                return checks;
            }
            Err(why) => silent.push(format!("{node}: {why}")),
        }
    }
    vec![Check::ok(PART, "connection", silent.join("; ")).with(
        Verdict::Fail,
        "no server of the URL answers: check that they run, and the URL, user and password",
    )]
}

type Info = BTreeMap<String, String>;

fn ask_node(
    url: &str,
    node: &Endpoint,
    settings: &RedisSettings,
) -> Result<(Info, Vec<Member>), String> {
    let mut connection = connect(url, settings)?;
    let mut ask = |what: &str| {
        redis::cmd("CLUSTER")
            .arg(what)
            .query::<String>(&mut connection)
            .map_err(|error| error.to_string())
    };
    Ok((parse_info(&ask("INFO")?), members(&ask("NODES")?, node)))
}

/// Reads `CLUSTER NODES`, which the server at `asked` gave. Lines look like
/// `ID HOST:PORT@BUS,NAME FLAGS MASTER PING PONG EPOCH LINK SLOTS…`.
fn members(text: &str, asked: &Endpoint) -> Vec<Member> {
    let member = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let (address, name) = words.get(1)?.split_once(',').unwrap_or((words[1], ""));
        let (host, port) = address.split('@').next()?.rsplit_once(':')?;
        // The names that a server announces are those of its certificate.
        let host = [name.split(',').next().unwrap_or(""), host, &asked.host]
            .into_iter()
            .find(|host| !host.is_empty())?;
        let flags: Vec<&str> = words.get(2)?.split(',').collect();
        let trouble =
            flags.iter().find(|f| matches!(**f, "fail" | "fail?" | "noaddr" | "handshake"));
        Some(Member {
            endpoint: Endpoint { host: host.to_owned(), port: port.parse().ok()? },
            is_master: flags.contains(&"master"),
            has_slots: words.len() > 8,
            trouble: trouble.map_or(String::new(), |flag| flag.to_string()),
        })
    };
    text.lines().filter_map(member).collect()
}

fn judge_cluster(info: &Info, members: &[Member]) -> Vec<Check> {
    let field = |name: &str| info.get(name).map_or("", String::as_str);
    let covered: u32 = field("cluster_slots_ok").parse().unwrap_or(0);
    let state = field("cluster_state");
    let found = format!("cluster_state {state}, {covered} of {SLOTS} slots are served");
    let state = Check::ok(PART, "cluster", found).unless(
        state == "ok" && covered == SLOTS,
        Verdict::Fail,
        "types whose hash slot nobody serves fail: see redis-cli --cluster check, and start what \
         is down",
    );
    let with_slots = members.iter().filter(|m| m.is_master && m.has_slots).count();
    let masters = Check::ok(PART, "masters", format!("{with_slots} with slots")).unless(
        with_slots >= 3,
        Verdict::Warn,
        "run three masters at least: a fail-over needs more than half of them",
    );
    let failing: Vec<_> = members
        .iter()
        .filter(|member| !member.trouble.is_empty())
        .map(|member| format!("{} ({})", member.endpoint, member.trouble))
        .collect();
    let found = match failing.is_empty() {
        true => format!("{} servers", members.len()),
        false => failing.join(", "),
    };
    let all = Check::ok(PART, "members", found).unless(
        failing.is_empty(),
        Verdict::Warn,
        "start them, or take them out with redis-cli --cluster del-node",
    );
    vec![state, masters, all]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Endpoint {
        Endpoint { host: "h".into(), port }
    }

    fn verdicts(checks: &[Check]) -> Vec<(&'static str, Verdict)> {
        checks.iter().map(|check| (check.name, check.verdict)).collect()
    }

    #[test]
    fn sentinels_by_cases() {
        use Verdict::{Fail, Ok as Fine, Warn};
        let good = Group {
            master: at(1),
            epoch: 3,
            quorum: 2,
            sentinels: 3,
            replicas: vec![at(2), at(3)],
        };
        let old = Group { master: at(2), epoch: 2, ..good.clone() };
        let pair = Group { sentinels: 2, ..good.clone() };
        let few = Group { sentinels: 1, ..good.clone() };
        let answer = |group: &Group| Ok(group.clone());
        let none = || Err("refused".to_owned());
        type Answers = Vec<Result<Group, String>>;
        let cases: [(Answers, [Verdict; 3]); 5] = [
            (vec![answer(&good), answer(&good), answer(&good)], [Fine, Fine, Fine]),
            (vec![answer(&good), none(), answer(&good)], [Warn, Fine, Fine]),
            (vec![answer(&old), answer(&good), answer(&good)], [Fine, Fine, Warn]),
            (vec![answer(&pair), answer(&pair)], [Fine, Warn, Fine]),
            (vec![answer(&few)], [Fine, Fail, Fine]),
        ];
        for (answers, expected) in cases {
            let asked: Vec<_> = answers.into_iter().map(|answer| (at(9), answer)).collect();
            let checks = judge_sentinels("main", &asked);
            let found: Vec<_> = checks.iter().map(|check| check.verdict).collect();
            assert_eq!(found, expected, "{checks:?}");
            assert!(checks[2].found.contains("h:1"), "the newest word counts: {checks:?}");
        }
        let checks = judge_sentinels("main", &[(at(9), none()), (at(8), none())]);
        assert_eq!(verdicts(&checks), [("sentinels", Fail)]);
    }

    #[test]
    fn clusters_by_cases() {
        let nodes = "a1 10.0.0.1:7000@17000,redis-1.example myself,master - 0 0 1 connected 0-5460\n\
                     b2 10.0.0.2:7000@17000 master - 0 0 2 connected 5461-10922 [5-<-a1]\n\
                     c3 :7002@17002 master - 0 0 3 connected 10923-16383\n\
                     d4 10.0.0.4:7000@17000 slave a1 0 0 1 connected\n";
        let mut found = members(nodes, &at(7_002));
        let endpoints: Vec<_> = found.iter().map(|m| m.endpoint.to_string()).collect();
        assert_eq!(endpoints, ["redis-1.example:7000", "10.0.0.2:7000", "h:7002", "10.0.0.4:7000"]);
        let masters: Vec<_> = found.iter().map(|m| m.is_master).collect();
        assert_eq!(masters, [true, true, true, false]);
        let mut info = parse_info("cluster_state:ok\r\ncluster_slots_ok:16384\r\n");
        let good = [("cluster", Verdict::Ok), ("masters", Verdict::Ok), ("members", Verdict::Ok)];
        assert_eq!(verdicts(&judge_cluster(&info, &found)), good);

        info.insert("cluster_slots_ok".into(), "16383".into());
        assert_eq!(judge_cluster(&info, &found)[0].verdict, Verdict::Fail);
        found[3].trouble = "fail".into();
        assert_eq!(judge_cluster(&info, &found)[2].verdict, Verdict::Warn);
        assert_eq!(judge_cluster(&info, &found[..2])[1].verdict, Verdict::Warn);
        let failing = members("d4 h:1@2 slave,fail a1 0 0 1 disconnected\n", &at(1));
        assert_eq!(failing[0].trouble, "fail");
    }
}
