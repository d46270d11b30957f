//! The range store against real servers: MariaDB and MySQL 8, the same tests.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use idgen::adapters::mysql::{MysqlOptions, MysqlStore, doctor};
use idgen::adapters::system::unix_ms;
use idgen::domain::allocation::{Denied, Request, Sequence};
use idgen::domain::{
    Assignment, ErrorCode, History, IdRange, InstanceId, InstanceSpec, LoadPercentage, Mode,
    Period, PeriodSpan, Seal, TypeChange, TypeName, TypeOptions, TypeSpec, Usage, allocation,
};
use idgen::ports::{NextRange, RangeStore, StoreError, WorkerIds, conformance};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use support::mariadb::MariaDb;
use support::sql_server::{SqlServer, TestDb};

macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_mariadb {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::support::mariadb::shared()).await;
            })+
        }
        mod on_mysql8 {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::support::mysql8::shared()).await;
            })+
        }
    };
}

on_both!(
    conforms,
    worker_ids_conform,
    accounts_conform,
    sixteen_callers_share_one_type,
    the_rule_of_the_domain_holds,
    the_rule_holds_for_shards_and_periods,
    the_rules_of_options_hold_for_calls_by_hand,
    a_period_may_end_while_a_call_waits,
    thirty_two_nodes_lease_renew_and_release,
    a_renewal_in_the_last_moment_counts,
    no_tenure_begins_before_the_floor,
    old_tenures_are_forgotten,
    names_are_checked_byte_by_byte,
    highest_numbers_by_call,
    a_failure_in_the_middle_leaves_nothing,
    a_refill_before_the_assignment_is_seen,
    the_last_history_is_known_though_the_clock_went_back,
    refills_do_not_wait_for_changes,
    a_lock_that_is_held_too_long_is_unavailable,
    only_the_rights_that_it_needs,
    missing_rights_are_named,
    wrong_settings_are_told_without_the_password,
    encrypted_when_asked,
    time_does_not_depend_on_the_session,
    lax_sessions_are_refused_too,
    doctor_tells,
);

fn name(text: &str) -> TypeName {
    TypeName::parse(text).unwrap()
}

fn request(name: &TypeName) -> NextRange<'_> {
    NextRange::of(name, "test")
}

async fn store(db: &TestDb) -> Arc<MysqlStore> {
    Arc::new(MysqlStore::connect(db.app.clone()).await.expect("a store"))
}

/// A store with one Redis instance and one type.
async fn with_type(db: &TestDb, spec: &TypeSpec) -> Arc<MysqlStore> {
    let store = store(db).await;
    let instance = InstanceSpec { name: "main".into(), url: "redis://:secret@h:1".into() };
    store.add_instance(&instance, "test").await.unwrap();
    store.create_type(spec, "test").await.unwrap();
    store
}

async fn admin(db: &TestDb) -> Conn {
    Conn::new(Opts::from_url(&db.admin.url).unwrap()).await.unwrap()
}

async fn conforms(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let store: Arc<dyn RangeStore> = store(&db).await;
    conformance::range_store(store).await;
}

async fn worker_ids_conform(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let store: Arc<dyn WorkerIds> = store(&db).await;
    conformance::worker_ids(store).await;
}

async fn accounts_conform(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let store = store(&db).await;
    conformance::accounts(store.clone(), store).await;
}

async fn sixteen_callers_share_one_type(server: &SqlServer) {
    let mut db = TestDb::new(server).await;
    db.app.pool_max = 16;
    let spec = TypeSpec::new(name("shared"));
    let store = with_type(&db, &spec).await;
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let (store, name) = (store.clone(), spec.name.clone());
            tokio::spawn(async move {
                let mut ranges = Vec::new();
                for call in 0..10 {
                    ranges.push(match (caller + call) % 3 {
                        0 => store.reserve(&name, 7, 0, "test").await.unwrap(),
                        _ => store.next_range(request(&name)).await.unwrap().range,
                    });
                }
                assert!(
                    ranges.windows(2).all(|w| w[0].end() <= w[1].start()),
                    "what one caller gets ascends"
                );
                ranges
            })
        })
        .collect();
    let mut ranges: Vec<IdRange> = Vec::new();
    for caller in callers {
        ranges.extend(caller.await.unwrap());
    }
    ranges.sort_by_key(|r| r.start());
    assert_eq!((ranges.len(), ranges[0].start()), (160, 1));
    for pair in ranges.windows(2) {
        assert_eq!(pair[0].end(), pair[1].start(), "no overlap, no gap");
    }
    let record = store.find_type(&spec.name).await.unwrap().unwrap();
    assert_eq!(record.next_id, ranges.last().unwrap().end());
    let log = store.range_log(&spec.name, 1_000).await.unwrap();
    let mut logged: Vec<_> = log.iter().map(|e| e.range).collect();
    logged.reverse();
    assert_eq!(logged, ranges, "every range is in the log");
}

/// The procedure and the pure function answer the same, whatever is asked.
async fn the_rule_of_the_domain_holds(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let spec = TypeSpec::new(name("ruled"));
    let store = with_type(&db, &spec).await;
    // A small generator of one's own: the cases are the same in every run.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Numbers of every size, from none to 64 bits.
        state.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (state % 65).min(63)
    };
    let mut cut = 0;
    for _ in 0..200 {
        let min = (draw() % 1_000_000) as i64 + 1;
        let change = TypeChange {
            min_range: Some(min),
            max_range: Some(min + (draw() % 900_000_000_000) as i64),
            load_interval_ms: Some((draw() % 86_400_000) as i64 + 1),
            load_percentage: Some(
                LoadPercentage::from_fraction((draw() % 10_001) as f64 / 10_000.0).unwrap(),
            ),
            ..TypeChange::default()
        };
        let record = store.alter_type(&spec.name, &change, "test").await.unwrap();
        let usage = (draw() % 4 != 0).then(|| Usage { consumed: draw(), elapsed_ms: draw() });
        let floor = match draw() % 8 {
            0 => record.next_id + (draw() % 1_000) as i64,
            _ => (draw() % record.next_id as u64) as i64,
        };
        let asked = Request { usage, floor, ..Request::default() };
        let expected = allocation::next_range(&record, Sequence::of(&record), &asked).unwrap();
        let request = NextRange { usage, floor, ..request(&spec.name) };
        let given = store.next_range(request).await.unwrap();
        let what = format!("{record:?} {usage:?} {floor}");
        assert_eq!((given.range, given.update_id), expected, "{what}");
        cut += usize::from(given.range.len() as i64 == change.max_range.unwrap());
    }
    assert!(cut > 10 && cut < 190, "the cases are not all alike: {cut}");
}

/// As [`the_rule_of_the_domain_holds`], for positions that are more than one
/// plain sequence.
async fn the_rule_holds_for_shards_and_periods(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let mut pass = TypeSpec::new(name("pass"));
    pass.mode = Mode::Sharded;
    pass.max_id = 40_000 << 14;
    pass.options.app_id = Some(7);
    let store = with_type(&db, &pass).await;
    let mut daily = TypeSpec::new(name("daily"));
    daily.first_id = 5;
    daily.max_id = 40_000;
    daily.options.calendar = Some(Period::Daily);
    daily.options.format = Some("{date:yyMMdd}{seq:05}".into());
    store.create_type(&daily, "test").await.unwrap();
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut draw = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 8
    };
    let mut shards: BTreeMap<u8, Sequence> = BTreeMap::new();
    let (mut given, mut refused) = (0, 0);
    for _ in 0..300 {
        let sharded = draw() % 2 == 0;
        let spec = if sharded { &pass } else { &daily };
        let record = store.find_type(&spec.name).await.unwrap().unwrap();
        let shard = sharded.then(|| (draw() % 5) as u8);
        let day = 19_000 + (draw() % 4) as i64;
        let period = PeriodSpan { number: day, from_ms: 0, until_ms: i64::MAX };
        let period = (!sharded).then_some(period);
        let floor = match (draw() % 6, sharded) {
            (0, true) => (draw() % 50_000) as i64,
            (0, false) => ((day + 1) << 40) + (draw() % 50_000) as i64,
            (1, false) => day << 40,
            _ => 0,
        };
        let usage = (draw() % 3 != 0)
            .then(|| Usage { consumed: draw() % 100_000, elapsed_ms: 1 + draw() % 60_000_000 });
        let sequence = match shard {
            Some(shard) => *shards.entry(shard).or_insert(Sequence::fresh(&record)),
            None => Sequence::of(&record),
        };
        let asked = Request { shard, period, usage, floor, now_ms: unix_ms() };
        let expected = allocation::next_range(&record, sequence, &asked);
        let request = NextRange { shard, period, usage, floor, ..request(&spec.name) };
        let what = format!("{request:?} {sequence:?}");
        match (store.next_range(request).await, expected) {
            (Ok(told), Ok(expected)) => {
                assert_eq!((told.range, told.update_id), expected, "{what}");
                if let Some(shard) = shard {
                    let length = Some(told.range.len() as i64);
                    let sequence = Sequence { next_id: told.range.end(), last_range: length };
                    shards.insert(shard, sequence);
                }
                given += 1;
            }
            (Err(StoreError::Refused(told)), Err(Denied::Rule(expected))) => {
                assert_eq!((told.code, told.field), (expected.code, expected.field), "{what}");
                refused += 1;
            }
            (told, expected) => panic!("{what}: {told:?}, not {expected:?}"),
        }
    }
    assert!(given > 50 && refused > 20, "the cases are not all alike: {given} {refused}");
}

/// What a DBA passes by hand meets the same rules as what a node passes, and is
/// stored as the node would write it.
async fn the_rules_of_options_hold_for_calls_by_hand(server: &SqlServer) {
    let db = TestDb::new(server).await;
    with_type(&db, &TypeSpec::new(name("first"))).await;
    let mut conn = admin(&db).await;
    let (high, key) = (TypeSpec::HIGHEST_ID, "ab".repeat(32));
    let day = r#""calendar":"daily","format":"{date:yyMMdd}{seq:06}""#;
    let long = "x".repeat(256);
    let cases = [
        ("strict", "{}".to_owned(), 1, high),
        ("strict", r#" { "at_limit" : "error", "on_redis_loss":"fail", "format" : null } "#.into(), 1, high),
        ("strict", r#"{"at_limit":"cycle"}"#.into(), 10, 99),
        ("strict", r#"{"at_limit":"stop"}"#.into(), 1, high),
        ("strict", r#"{"at_limit":7}"#.into(), 1, high),
        ("strict", r#"{"on_redis_loss":"segment"}"#.into(), 1, high),
        ("segment", r#"{"on_redis_loss":"segment"}"#.into(), 1, high),
        ("strict", r#"{"format":"A-{seq:09}-é\"\\"}"#.into(), 1, 999_999_999),
        ("strict", r#"{"format":"{seq:09}"}"#.into(), 1, 1_000_000_000),
        ("strict", r#"{"format":"{{seq:02}}{seq36:03}"}"#.into(), 1, 46_655),
        ("strict", r#"{"format":"{seq36:03}"}"#.into(), 1, 46_656),
        ("strict", r#"{"format":"{seq62:011}"}"#.into(), 1, high),
        ("strict", r#"{"format":"{seq62:010}"}"#.into(), 1, high),
        ("strict", r#"{"format":"{seq:019}"}"#.into(), 1, high),
        ("strict", format!(r#"{{"format":"{long}{{seq}}"}}"#), 1, high),
        ("strict", r#"{"format":5}"#.into(), 1, high),
        ("strict", r#"{"time_zone":"Asia/Shanghai"}"#.into(), 1, high),
        ("strict", format!(r#"{{{day},"time_zone":"Asia/Shanghai"}}"#), 1, 999_999),
        ("strict", format!("{{{day}}}"), 1, 1_000_000),
        ("strict", r#"{"calendar":"daily","format":"{date:yyMMdd}{seq}"}"#.into(), 1, (1 << 40) - 2),
        ("strict", r#"{"calendar":"daily","format":"{date:yyMMdd}{seq}"}"#.into(), 1, (1 << 40) - 1),
        ("strict", r#"{"calendar":"weekly","format":"{date:yyMMdd}{seq}"}"#.into(), 1, 999),
        ("strict", r#"{"calendar":"daily"}"#.into(), 1, 999),
        ("strict", r#"{"calendar":"daily","format":"{seq}"}"#.into(), 1, 999),
        ("sharded", format!(r#"{{"app_id":1,{day}}}"#), 1, 999_999),
        ("strict", format!(r#"{{"at_limit":"cycle",{day}}}"#), 1, 999_999),
        ("strict", format!(r#"{{"opaque":{{}},{day}}}"#), 1, 999_999),
        ("segment", format!(r#"{{"sites":{{"count":2,"site":0}},{day}}}"#), 1, 999_999),
        ("segment", r#"{"opaque":{}}"#.into(), 1, 16_000_000),
        ("segment", r#"{"opaque":{}}"#.into(), 1, 15_999_999),
        ("strict", r#"{"opaque":{"slices":1024}}"#.into(), 1, high),
        ("strict", r#"{"opaque":{"slices":1025}}"#.into(), 1, high),
        ("strict", r#"{"opaque":{"slices":0}}"#.into(), 1, high),
        ("strict", r#"{"opaque":{"slices":1.5}}"#.into(), 1, high),
        ("strict", r#"{"opaque":{"slices":"8"}}"#.into(), 1, high),
        ("strict", r#"{"opaque":{"size":8}}"#.into(), 1, high),
        ("strict", r#"{"opaque":5}"#.into(), 1, high),
        ("strict", r#"{"opaque":{},"at_limit":"cycle"}"#.into(), 1, high),
        ("sharded", r#"{"opaque":{},"app_id":3}"#.into(), 1, high),
        ("sharded", r#"{"opaque":{},"app_id":3}"#.into(), 1, 16_000_000),
        ("sharded", "{}".into(), 1, high),
        ("sharded", r#"{"app_id":0}"#.into(), 1, 32_767),
        ("sharded", r#"{"app_id":255}"#.into(), 2, 32_767),
        ("sharded", r#"{"app_id":256}"#.into(), 1, high),
        ("sharded", r#"{"app_id":-1}"#.into(), 1, high),
        ("sharded", r#"{"app_id":"7"}"#.into(), 1, high),
        ("sharded", r#"{"app_id":1e2}"#.into(), 1, high),
        ("sharded", r#"{"app_id":99999999999999999999}"#.into(), 1, high),
        ("segment", r#"{"app_id":7}"#.into(), 1, high),
        ("segment", r#"{"sites":{"count":3,"site":2}}"#.into(), 1, 1_000),
        ("segment", r#"{"sites":{"count":3,"site":3}}"#.into(), 1, 1_000),
        ("segment", r#"{"sites":{"count":1,"site":0}}"#.into(), 1, 1_000),
        ("segment", r#"{"sites":{"count":1024,"site":1023}}"#.into(), 1, 2_046),
        ("segment", r#"{"sites":{"count":1024,"site":1023}}"#.into(), 1, 2_047),
        ("segment", r#"{"sites":{"count":1024,"site":1023}}"#.into(), 1, 10),
        ("segment", r#"{"sites":{"count":1025,"site":0}}"#.into(), 1, high),
        ("segment", r#"{"sites":{"count":2}}"#.into(), 1, high),
        ("strict", r#"{"sites":{"count":2,"site":0}}"#.into(), 1, high),
        ("segment", r#"{"sites":{"count":2,"site":1},"opaque":{"slices":2}}"#.into(), 1, 4_000_001),
        ("segment", r#"{"sites":{"count":2,"site":1},"opaque":{"slices":2}}"#.into(), 1, 4_000_000),
        ("segment", r#"{"sites":{"count":2,"site":1},"at_limit":"cycle"}"#.into(), 1, 100),
        ("snowflake", "{}".into(), 1, high),
        ("snowflake", "{}".into(), 2, high),
        ("snowflake", "{}".into(), 1, high - 1),
        ("snowflake", r#"{"at_limit":"cycle"}"#.into(), 1, high),
        ("snowflake", r#"{"opaque":{}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"time_bits":28,"worker_bits":11,"sequence_bits":24,"unit":"s","epoch_ms":0}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"time_bits":27}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"time_bits":54}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"worker_bits":0}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"worker_bits":21}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"sequence_bits":25}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"epoch_ms":-1}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"unit":"m"}}"#.into(), 1, high),
        ("snowflake", r#"{"snowflake":{"time_bits":42}}"#.into(), 1, high),
        ("strict", r#"{"snowflake":{}}"#.into(), 1, high),
        ("snowflake", r#"{"format":"{seq:018}"}"#.into(), 1, high),
        ("snowflake", r#"{"format":"S{seq36:013}"}"#.into(), 1, high),
        ("strict", r#"{"colour":"red"}"#.into(), 1, high),
        ("strict", r#"{"at_limit,format":"x"}"#.into(), 1, high),
        ("strict", "5".into(), 1, high),
        ("strict", "{\"at_limit\":".into(), 1, high),
        ("strict", "".into(), 1, high),
        ("fast", "{}".into(), 1, high),
    ];
    let (mut legal, mut illegal) = (0, 0);
    for (index, (mode, text, first, max)) in cases.iter().enumerate() {
        let what = format!("{mode} {text} {first} {max}");
        let rule = Mode::parse(mode).and_then(|mode| {
            let options = TypeOptions::from_json(text)?;
            options.validate(mode, *first, *max)?;
            Ok((mode, options))
        });
        let opaque = text.contains("opaque");
        let answer = conn
            .exec_drop(
                "CALL idgen_create_type(?, ?, NULL, NULL, ?, ?, NULL, NULL, NULL, NULL, NULL, NULL, ?, ?, NULL)",
                (format!("case-{index}"), mode, first, max, text, opaque.then_some(&key)),
            )
            .await;
        match rule {
            Ok((mode, options)) => {
                answer.unwrap_or_else(|error| panic!("{what}: {error}"));
                let stored: Vec<(String, i64)> = conn
                    .exec(
                        "SELECT options, max_position FROM idgen_types WHERE name = ?",
                        (format!("case-{index}"),),
                    )
                    .await
                    .unwrap();
                let expected = (options.to_json(), options.max_position(mode, *max));
                assert_eq!(stored, [expected], "{what}");
                legal += 1;
            }
            // A text that is no JSON of options breaks at whatever is met first.
            Err(error) => {
                let number = errno(answer);
                let field = field_of(number);
                let same = error.field == Some(field) || error.field == Some("options");
                assert!(number > 45_100 && same, "{what}: {number} {field}, not {error:?}");
                illegal += 1;
            }
        }
    }
    assert!(legal > 20 && illegal > 40, "{legal} {illegal}");
}

/// The field that docs/dba-guide.md gives to an error number.
fn field_of(number: u16) -> &'static str {
    let guide = include_str!("../docs/dba-guide.md");
    let row = guide.split(&format!("| {number} | `")).nth(1);
    row.and_then(|row| row.split('`').next()).unwrap_or("no row in the guide")
}

/// The clock is read behind the lock: a call that waited into the next period
/// gets nothing of the old one.
async fn a_period_may_end_while_a_call_waits(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let mut daily = TypeSpec::new(name("daily"));
    daily.max_id = 999_999;
    daily.options.calendar = Some(Period::Daily);
    daily.options.format = Some("{date:yyMMdd}{seq:06}".into());
    let store = with_type(&db, &daily).await;
    let mut other = admin(&db).await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("SELECT id FROM idgen_type WHERE name = 'daily' FOR UPDATE").await.unwrap();
    let until_ms = store.ping().await.unwrap() + 700;
    let waiting = tokio::spawn({
        let (store, name) = (store.clone(), daily.name.clone());
        async move {
            let period = Some(PeriodSpan { number: 19_000, from_ms: 0, until_ms });
            store.next_range(NextRange { period, ..request(&name) }).await
        }
    });
    // Until the server's own clock says that the period is over.
    while store.ping().await.unwrap() < until_ms {
        tokio::task::yield_now().await;
    }
    other.query_drop("ROLLBACK").await.unwrap();
    match waiting.await.unwrap() {
        Err(StoreError::WrongPeriod { now_ms }) => assert!(now_ms >= until_ms, "{now_ms}"),
        answer => panic!("the period was over: {answer:?}"),
    }
    assert_eq!(store.range_log(&daily.name, 9).await.unwrap(), [], "nothing happened");
}

/// No worker id twice, and nobody is told of a deadlock.
async fn thirty_two_nodes_lease_renew_and_release(server: &SqlServer) {
    let mut db = TestDb::new(server).await;
    db.app.pool_max = 32;
    db.app.timeout = Duration::from_secs(60);
    let store = store(&db).await;
    let nodes: Vec<_> = (0..32)
        .map(|node| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut spans = Vec::new();
                for round in 0..8 {
                    let (holder, token) = (format!("node-{node}"), format!("{node}-{round}"));
                    // 32 worker ids: one is always free for who released one.
                    let held = store.lease_worker(5, &holder, &token, 60_000).await.unwrap();
                    let longer = store.renew_worker(5, held.worker, &token, 90_000).await.unwrap();
                    assert!(longer.until_ms >= held.until_ms);
                    let used = held.now_ms.max(held.from_ms);
                    assert!(store.release_worker(5, held.worker, &token, used).await.unwrap());
                    spans.push((held.worker, held.from_ms, used));
                }
                spans
            })
        })
        .collect();
    let mut spans = Vec::new();
    for node in nodes {
        spans.extend(node.await.unwrap());
    }
    assert_eq!(spans.len(), 256);
    spans.retain(|(_, from, until)| from < until);
    spans.sort();
    for pair in spans.windows(2) {
        let ((worker, _, until), (next, from, _)) = (pair[0], pair[1]);
        assert!(worker != next || until <= from, "two holders: {pair:?}");
    }
}

/// A lease that has chosen a worker id whose holder renews it at the same time
/// looks again, and chooses another one.
async fn a_renewal_in_the_last_moment_counts(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let store = store(&db).await;
    for token in ["a", "b"] {
        store.lease_worker(1, "node", token, 60_000).await.unwrap();
    }
    server.sql(&db.name, "UPDATE idgen_worker SET until_ms = 5 + worker");
    let mut renewal = admin(&db).await;
    renewal.query_drop("START TRANSACTION").await.unwrap();
    let far = i64::MAX / 2;
    let renew = format!("UPDATE idgen_worker SET until_ms = {far} WHERE bits = 1 AND worker = 0");
    renewal.query_drop(renew).await.unwrap();
    let lease = tokio::spawn({
        let store = store.clone();
        async move { store.lease_worker(1, "heir", "heir", 60_000).await }
    });
    // It holds the pool while it waits for the worker id that it has chosen.
    let mut other = admin(&db).await;
    let look = "SELECT bits FROM idgen_worker_pool WHERE bits = 1 FOR UPDATE NOWAIT";
    while other.query_drop(look).await.is_ok() {
        tokio::task::yield_now().await;
    }
    renewal.query_drop("COMMIT").await.unwrap();
    let tenure = lease.await.unwrap().unwrap();
    assert_eq!((tenure.worker, tenure.from_ms), (1, 6), "worker id 0 was renewed");
}

/// What docs/dba-guide.md says to do after a restore.
async fn no_tenure_begins_before_the_floor(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let store = store(&db).await;
    let held = store.lease_worker(1, "old", "old", 60_000).await.unwrap();
    assert!(store.release_worker(1, held.worker, "old", held.now_ms).await.unwrap());
    let floor = store.ping().await.unwrap() + 700;
    server.sql(&db.name, &format!("UPDATE idgen_worker_pool SET floor_ms = {floor}"));
    let error = store.lease_worker(1, "new", "new", 60_000).await.unwrap_err();
    assert_eq!(code(&error), ErrorCode::Unavailable, "{error}");
    while store.ping().await.unwrap() < floor {
        tokio::task::yield_now().await;
    }
    for token in ["one", "two"] {
        let tenure = store.lease_worker(1, "new", token, 60_000).await.unwrap();
        assert_eq!(tenure.from_ms, floor, "also that of a worker id that was used before");
    }
}

async fn old_tenures_are_forgotten(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let store = store(&db).await;
    for token in ["a", "b"] {
        store.lease_worker(1, "node", token, 60_000).await.unwrap();
    }
    let day = 86_400_000;
    let now = store.ping().await.unwrap();
    let (old, kept) = (now - 401 * day, now - 399 * day);
    server.sql(
        &db.name,
        &format!(
            "UPDATE idgen_worker SET from_ms = {kept}, until_ms = {kept} + 5 WHERE worker = 0; \
             INSERT INTO idgen_worker_log VALUES (1, 0, 0, {old}, 'older'), (1, 0, {old}, {kept}, 'old'), \
             (1, 1, 0, {old}, 'of another')"
        ),
    );
    assert!(store.tenure_at(1, 0, 5).await.unwrap().is_some());
    store.lease_worker(1, "node", "c", 60_000).await.unwrap();
    let left = server.sql(&db.name, "SELECT holder FROM idgen_worker_log ORDER BY holder");
    assert_eq!(left, "node\nof another\nold", "the older one ended more than 400 days ago");
    assert_eq!(store.tenure_at(1, 0, 5).await.unwrap(), None);
    assert_eq!(store.tenure_at(1, 0, old).await.unwrap().unwrap().holder, "old");
}

async fn names_are_checked_byte_by_byte(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let spec = TypeSpec::new(name("Kelvin"));
    let store = with_type(&db, &spec).await;
    let mut conn = admin(&db).await;
    let long = "a".repeat(129);
    for text in [
        "",
        " ",
        "order\n",
        "order\r\n",
        "order ",
        " order",
        "_order",
        "or{der}",
        "a\0b",
        "órder",
        "\u{212a}elvin",
        "ſhop",
        "订单",
        "a/b",
        "a'b",
        "a\"b",
        "a\\b",
        long.as_str(),
    ] {
        for call in [
            "CALL idgen_next_range(?, NULL, NULL, NULL, NULL, NULL, NULL)",
            "CALL idgen_create_type(?,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL)",
            "CALL idgen_add_redis_instance(?, 'redis://h', NULL)",
            "CALL idgen_type_status(?)",
        ] {
            let answer = conn.exec_drop(call, (text,)).await;
            assert_eq!(errno(answer), 45101, "{text:?} {call}");
        }
    }
    let answer = conn.query_drop("CALL idgen_type_status(NULL)").await;
    assert_eq!(errno(answer), 45101);
    let longest = "z".repeat(128);
    for text in ["kelvin", "0", "Shop.order:2026-11_x", longest.as_str()] {
        store.create_type(&TypeSpec::new(name(text)), "test").await.unwrap();
        // The longest names fit into every message.
        store.set_retired(&name(text), true, "test").await.unwrap();
        let error = store.next_range(request(&name(text))).await.unwrap_err();
        assert_eq!(code(&error), ErrorCode::Retired, "{error}");
        let error = store.create_type(&TypeSpec::new(name(text)), "test").await.unwrap_err();
        assert_eq!(code(&error), ErrorCode::AlreadyExists, "{error}");
        store.set_retired(&name(text), false, "test").await.unwrap();
        let floor = i64::MAX;
        let error = store.reserve(&name(text), 1, floor, "test").await.unwrap_err();
        assert_eq!(code(&error), ErrorCode::Exhausted, "{error}");
        let count = TypeSpec::LONGEST_RANGE;
        let error = store.reserve(&name(text), count, i64::MAX - 2, "test").await;
        assert_eq!(code(&error.unwrap_err()), ErrorCode::Exhausted);
        let change = TypeChange { expected_version: Some(i64::MAX), ..TypeChange::default() };
        let error = store.alter_type(&name(text), &change, "test").await;
        assert_eq!(code(&error.unwrap_err()), ErrorCode::Conflict);
        let (one, two) = (History::new("a".repeat(64)), History::new("b".repeat(64)));
        let instance = store.instances().await.unwrap()[0].id;
        let own = name(text);
        let refill =
            |instance, history| NextRange { target: Some((instance, history)), ..request(&own) };
        store.next_range(refill(instance, &one)).await.unwrap();
        store.next_range(refill(instance, &two)).await.unwrap();
        let answer = store.next_range(refill(instance, &one)).await;
        assert!(matches!(answer, Err(StoreError::Superseded { .. })), "{answer:?}");
        let answer = store.next_range(refill(InstanceId(i64::MAX), &two)).await;
        assert!(matches!(answer, Err(StoreError::NotAssigned { .. })), "{answer:?}");
    }
}

fn errno<T>(answer: Result<T, mysql_async::Error>) -> u16 {
    match answer {
        Err(mysql_async::Error::Server(error)) => error.code,
        Err(other) => panic!("{other:?}"),
        Ok(_) => 0,
    }
}

fn code(error: &StoreError) -> ErrorCode {
    match error {
        StoreError::Refused(error) => error.code,
        other => panic!("{other:?}"),
    }
}

async fn highest_numbers_by_call(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let mut spec = TypeSpec::new(name("high"));
    spec.first_id = i64::MAX - 3;
    spec.max_range = TypeSpec::LONGEST_RANGE;
    spec.min_range = TypeSpec::LONGEST_RANGE;
    spec.load_percentage = LoadPercentage::from_fraction(1.0).unwrap();
    let store = with_type(&db, &spec).await;
    let usage = Some(Usage { consumed: u64::MAX, elapsed_ms: u64::MAX });
    let ranged = NextRange { usage, floor: i64::MAX - 2, ..request(&spec.name) };
    let given = store.next_range(ranged).await.unwrap();
    assert_eq!((given.range.start(), given.range.end()), (i64::MAX - 2, i64::MAX));
    assert_eq!(given.update_id, i64::MAX);
    let error = store.reserve(&spec.name, 1, 0, "test").await.unwrap_err();
    assert_eq!(code(&error), ErrorCode::Exhausted);
    // What the log and the views say of it.
    let record = store.find_type(&spec.name).await.unwrap().unwrap();
    assert_eq!((record.next_id, record.left()), (i64::MAX, 0));
    let shown = server.sql(&db.name, "CALL idgen_type_status('high')");
    assert!(shown.contains("high"), "{shown}");
}

async fn a_failure_in_the_middle_leaves_nothing(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let spec = TypeSpec::new(name("torn"));
    let store = with_type(&db, &spec).await;
    let instance = store.instances().await.unwrap()[0].id;
    let other = InstanceSpec { name: "other".into(), url: "redis://o:1".into() };
    store.add_instance(&other, "test").await.unwrap();
    store.next_range(request(&spec.name)).await.unwrap();
    let before = store.find_type(&spec.name).await.unwrap();
    let log = store.range_log(&spec.name, 9).await.unwrap();
    let seen = store.latest_change().await.unwrap();
    // The number of the change is the last thing that the procedure needs: the
    // type and the log are written by then.
    server.sql(&db.name, "DELETE FROM idgen_counter");
    let history = History::new("a");
    let target = Some((instance, &history));
    let error = store.next_range(NextRange { target, ..request(&spec.name) }).await;
    assert!(error.is_err(), "{error:?}");
    store.set_retired(&spec.name, true, "test").await.unwrap_err();
    store.alter_type(&spec.name, &TypeChange::default(), "test").await.unwrap_err();
    let other = TypeSpec::new(name("torn-too"));
    store.create_type(&other, "test").await.unwrap_err();
    store.remove_instance("main", "test").await.unwrap_err();
    store.begin_migration(&spec.name, "other", "test").await.unwrap_err();
    let seal = Seal { generation: 0, target: InstanceId(instance.0 + 1) };
    let assignment = Assignment { seal, history: Some(&history), rest_end: None };
    store.assign_type(&spec.name, assignment, "test").await.unwrap_err();
    store.drain_instance("main", Some("other"), "test").await.unwrap_err();
    assert_eq!(store.instances().await.unwrap()[0].drain_to, None);
    assert_eq!(store.find_type(&spec.name).await.unwrap(), before);
    assert_eq!(store.range_log(&spec.name, 9).await.unwrap(), log);
    assert_eq!(store.latest_change().await.unwrap(), seen);
    assert_eq!(store.find_type(&other.name).await.unwrap(), None);
    assert_eq!(server.sql(&db.name, "SELECT COUNT(*) FROM idgen_type_history"), "0");
    server.sql(&db.name, &format!("INSERT INTO idgen_counter VALUES ('change', {seen})"));
    store.next_range(NextRange { target, ..request(&spec.name) }).await.unwrap();

    // A next_id that was set back by hand: the log refuses the second giving.
    server.sql(&db.name, "UPDATE idgen_type SET next_id = 1");
    let error = store.next_range(request(&spec.name)).await.unwrap_err();
    assert!(matches!(error, StoreError::Broken(_)), "{error:?}");
}

/// An assignment that waits for the type sees what was allocated meanwhile.
async fn a_refill_before_the_assignment_is_seen(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let spec = TypeSpec::new(name("moving"));
    let store = with_type(&db, &spec).await;
    let other = InstanceSpec { name: "other".into(), url: "redis://o:1".into() };
    let target = store.add_instance(&other, "test").await.unwrap().id;
    let moving = store.begin_migration(&spec.name, "other", "test").await.unwrap();
    let mut refill = admin(&db).await;
    for step in [
        "START TRANSACTION",
        "SELECT id FROM idgen_type WHERE name = 'moving' FOR UPDATE",
        "INSERT INTO idgen_range_log (type_id, start_id, end_id, at_ms, kind, owner, instance_id, history, floor_id) \
         SELECT id, 1, 1001, 1, 'next', 'test', 1, 'a', 0 FROM idgen_type",
        "UPDATE idgen_type SET next_id = 1001, history = 'a'",
        "INSERT INTO idgen_type_history SELECT id, 'a', 1, 1 FROM idgen_type",
    ] {
        refill.query_drop(step).await.unwrap();
    }
    let assigning = tokio::spawn({
        let (store, name) = (store.clone(), spec.name.clone());
        let generation = moving.placement.generation;
        async move {
            let history = History::new("a");
            let seal = Seal { generation, target };
            let assignment = Assignment { seal, history: Some(&history), rest_end: Some(1) };
            store.assign_type(&name, assignment, "test").await
        }
    });
    // Until the server says that the call waits for the row of the type.
    let waiting = format!(
        "SELECT COUNT(*) FROM information_schema.processlist \
         WHERE db = '{}' AND info LIKE '%FROM idgen_type WHERE%FOR UPDATE%' AND id <> CONNECTION_ID()",
        db.name
    );
    let bound = tokio::time::Instant::now() + Duration::from_secs(10);
    while server.sql(&db.name, &waiting) == "0" {
        assert!(tokio::time::Instant::now() < bound, "the call never came");
    }
    refill.query_drop("COMMIT").await.unwrap();
    // It sees the history that is known on the other instance now.
    let error = assigning.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Superseded { .. }), "{error:?}");
    let history = History::new("b");
    let seal = Seal { generation: moving.placement.generation, target };
    let assignment = Assignment { seal, history: Some(&history), rest_end: Some(1) };
    let assigned = store.assign_type(&spec.name, assignment, "test").await.unwrap();
    assert!(!assigned.keeps_rest, "a range above was allocated");
}

/// A server that was replaced does not come back with a type, whatever the clock
/// of the database said when it was replaced.
async fn the_last_history_is_known_though_the_clock_went_back(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let spec = TypeSpec::new(name("timeless"));
    let store = with_type(&db, &spec).await;
    let home = store.instances().await.unwrap()[0].id;
    let other = InstanceSpec { name: "other".into(), url: "redis://o:1".into() };
    let other = store.add_instance(&other, "test").await.unwrap().id;
    let refill = async |history: &str| {
        let history = History::new(history);
        let target = Some((home, &history));
        store.next_range(NextRange { target, ..request(&spec.name) }).await
    };
    let assign = async |generation, target, history: &str| {
        let (seal, history) = (Seal { generation, target }, History::new(history));
        let assignment = Assignment { seal, history: Some(&history), rest_end: None };
        store.assign_type(&spec.name, assignment, "test").await
    };
    let superseded = |answer| matches!(answer, Err(StoreError::Superseded { .. }));
    refill("z").await.unwrap();
    // As if the clock had stood in the next century then.
    let later = "UPDATE idgen_type_history SET first_seen_ms = first_seen_ms + 4000000000000";
    server.sql(&db.name, later);
    refill("y").await.unwrap();
    assign(1, other, "there").await.unwrap();
    assert!(superseded(assign(2, home, "z").await), "y came after z");
    assign(2, home, "y").await.unwrap();
    // The same for a history that comes with an assignment.
    server.sql(&db.name, later);
    assign(3, other, "there").await.unwrap();
    assign(4, home, "x").await.unwrap();
    assign(5, other, "there").await.unwrap();
    assert!(superseded(assign(6, home, "y").await), "x came after y");
    assign(6, home, "x").await.unwrap();
}

async fn refills_do_not_wait_for_changes(server: &SqlServer) {
    let mut db = TestDb::new(server).await;
    db.app.timeout = Duration::from_secs(2);
    let spec = TypeSpec::new(name("calm"));
    let store = with_type(&db, &spec).await;
    let instance = store.instances().await.unwrap()[0].id;
    let history = History::new("a");
    let target = Some((instance, &history));
    let refill = || NextRange { target, ..request(&spec.name) };
    store.next_range(refill()).await.unwrap();
    let seen = store.latest_change().await.unwrap();
    // Somebody is in the middle of a change, and stays there.
    let mut other = admin(&db).await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("UPDATE idgen_counter SET value = value + 1").await.unwrap();
    store.next_range(refill()).await.unwrap();
    assert_eq!(store.latest_change().await.unwrap(), seen);
    let blocked = store.create_type(&TypeSpec::new(name("later")), "test").await;
    assert!(matches!(blocked, Err(StoreError::Unavailable(_))), "{blocked:?}");
}

async fn a_lock_that_is_held_too_long_is_unavailable(server: &SqlServer) {
    let mut db = TestDb::new(server).await;
    db.app.timeout = Duration::from_secs(3);
    let spec = TypeSpec::new(name("locked"));
    let store = with_type(&db, &spec).await;
    store.create_type(&TypeSpec::new(name("free")), "test").await.unwrap();
    let mut other = admin(&db).await;
    other.query_drop("START TRANSACTION").await.unwrap();
    other.query_drop("SELECT id FROM idgen_type WHERE name = 'locked' FOR UPDATE").await.unwrap();
    let began = tokio::time::Instant::now();
    let error = store.next_range(request(&spec.name)).await.unwrap_err();
    assert!(matches!(&error, StoreError::Unavailable(said) if said.contains("1205")), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "the server gave up first");
    store.next_range(request(&name("free"))).await.unwrap();
    other.query_drop("ROLLBACK").await.unwrap();
    let given = store.next_range(request(&spec.name)).await.unwrap();
    assert_eq!(given.range.start(), 1, "what timed out at the lock left nothing");
}

async fn only_the_rights_that_it_needs(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let spec = TypeSpec::new(name("guarded"));
    with_type(&db, &spec).await;
    let mut conn = Conn::new(Opts::from_url(&db.app.url).unwrap()).await.unwrap();
    for statement in [
        "SELECT * FROM idgen_type",
        "SELECT * FROM idgen_redis_instance",
        "UPDATE idgen_type SET next_id = 1",
        "DELETE FROM idgen_change",
        "INSERT INTO idgen_counter VALUES ('x', 1)",
        "DROP TABLE idgen_range_log",
        "CREATE TABLE mine (id INT)",
        "UPDATE idgen_types SET next_id = 1",
        "UPDATE idgen_types SET instance_id = 2, generation = 9",
        "UPDATE idgen_node_instances SET drain_to = NULL",
        "DROP PROCEDURE idgen_reserve",
        "SELECT * FROM mysql.user",
    ] {
        let number = errno(conn.query_drop(statement).await);
        assert!([1142, 1143, 1370, 1044, 1227].contains(&number), "{statement}: {number}");
    }
    for view in ["idgen_migrations", "idgen_node_instances"] {
        conn.query_drop(format!("SELECT * FROM {view}")).await.expect(view);
    }
    let shown: Vec<String> = conn.query("SELECT url FROM idgen_instances").await.unwrap();
    assert_eq!(shown, ["redis://***@h:1"], "people do not see the password");
}

async fn missing_rights_are_named(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let account = format!("'{}'@'%'", db.name);
    server.sql(&db.name, &format!("REVOKE SELECT ON idgen_changes FROM {account}"));
    let error = MysqlStore::connect(db.app.clone()).await.err().expect("refused");
    assert_eq!(code(&error), ErrorCode::PermissionDenied);
    let said = error.to_string();
    assert!(said.contains("SELECT on idgen_changes") && said.contains("account.sql"), "{said}");
    server.sql(
        &db.name,
        &format!(
            "GRANT SELECT ON idgen_changes TO {account}; REVOKE EXECUTE ON {}.* FROM {account}",
            db.name
        ),
    );
    let error = MysqlStore::connect(db.app.clone()).await.err().expect("refused");
    let said = error.to_string();
    assert!(said.contains("EXECUTE on idgen_next_range"), "{said}");
}

async fn wrong_settings_are_told_without_the_password(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let connect = async |url: String| {
        let mut options = MysqlOptions::new(url);
        options.timeout = Duration::from_secs(5);
        let error = MysqlStore::connect(options).await.err().expect("refused");
        let said = error.to_string();
        assert!(!said.contains("hush") && !said.contains("wrong-one"), "{said}");
        (error, said)
    };
    let (error, said) = connect(server.url(&db.name, "wrong-one", &db.name)).await;
    assert_eq!(code(&error), ErrorCode::PermissionDenied);
    assert!(said.contains(&format!("{}@127.0.0.1:{}", db.name, server.port())), "{said}");

    let (error, _) = connect(server.url("nobody", "wrong-one", &db.name)).await;
    assert_eq!(code(&error), ErrorCode::PermissionDenied);

    let (error, said) = connect(server.url("root", "", "no_such_database")).await;
    assert!(matches!(error, StoreError::Broken(_)), "{error:?}");
    assert!(said.contains("no_such_database") && said.contains("schema apply"), "{said}");

    let empty = TestDb::empty(server);
    for url in
        [empty.admin.url.clone(), {
            server.sql(&empty.name, &format!(
            "CREATE USER '{0}'@'%' IDENTIFIED BY '{1}'; GRANT EXECUTE ON {0}.* TO '{0}'@'%'",
            empty.name, TestDb::PASSWORD
        ));
            empty.app.url.clone()
        }]
    {
        let (error, said) = connect(url).await;
        assert!(matches!(error, StoreError::Broken(_)), "{error:?}");
        assert!(said.contains("idgen schema apply"), "{said}");
    }

    let port = support::free_port();
    let (error, said) = connect(format!("mysql://app:hush@127.0.0.1:{port}/idgen")).await;
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(said.contains("refused"), "{said}");
    let (error, _) = connect("mysql://app:hush@no-such-host.invalid/idgen".into()).await;
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    let (error, _) = connect("redis://app:hush@h/0".into()).await;
    assert_eq!(code(&error), ErrorCode::InvalidArgument);
}

async fn encrypted_when_asked(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let mut options = db.app.clone();
    options.ca_file = Some(server.ca_file());
    assert!(doctor(&options).await.expect("TLS").tls);
    MysqlStore::connect(options.clone()).await.expect("TLS").ping().await.unwrap();

    options.url.push_str("?require_ssl=true");
    assert!(doctor(&options).await.expect("TLS by the URL too").tls);

    // An authority that this machine does not know.
    let mut stranger = db.app.clone();
    stranger.url.push_str("?require_ssl=true");
    let error = MysqlStore::connect(stranger.clone()).await.err().expect("refused");
    assert!(matches!(&error, StoreError::Broken(said) if said.contains("TLS")), "{error:?}");
    stranger.url.push_str("&verify_ca=false");
    assert!(doctor(&stranger).await.expect("TLS without proof").tls);

    // A server's account that insists on TLS.
    server.sql(&db.name, &format!("ALTER USER '{}'@'%' REQUIRE SSL", db.name));
    let error = MysqlStore::connect(db.app.clone()).await.err().expect("refused");
    assert_eq!(code(&error), ErrorCode::PermissionDenied);
    MysqlStore::connect(options).await.expect("TLS");
}

async fn time_does_not_depend_on_the_session(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let spec = TypeSpec::new(name("timed"));
    with_type(&db, &spec).await;
    for zone in ["+00:00", "+09:00", "-11:30"] {
        let shown = server.sql(
            &db.name,
            &format!(
                "SET time_zone = '{zone}'; \
                 CALL idgen_next_range('timed', NULL, NULL, NULL, NULL, NULL, NULL)"
            ),
        );
        let at: i64 = shown.split('\t').next_back().unwrap().parse().unwrap();
        assert!((unix_ms() - at).abs() < 60_000, "{zone}: {at}");
    }
}

/// A session that cuts what does not fit must not get a number that was cut.
async fn lax_sessions_are_refused_too(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let spec = TypeSpec::new(name("lax"));
    with_type(&db, &spec).await;
    let mut conn = admin(&db).await;
    conn.query_drop("SET SESSION sql_mode = ''").await.unwrap();
    let huge = "9".repeat(30);
    for (call, expected) in [
        (format!("idgen_reserve('lax', {huge}, NULL, NULL)"), 45118),
        (format!("idgen_reserve('lax', 5, {huge}, NULL)"), 45112),
        (format!("idgen_reserve('lax', 5, -{huge}, NULL)"), 45112),
        ("idgen_next_range('lax', NULL, NULL, -1, 5, 0, NULL)".to_owned(), 45114),
        (
            format!(
                "idgen_alter_type('lax', NULL, NULL, NULL, {huge}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
            ),
            45106,
        ),
        (
            format!(
                "idgen_alter_type('lax', {huge}, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
            ),
            45006,
        ),
        (
            format!(
                "idgen_alter_type('lax', NULL, NULL, NULL, NULL, NULL, NULL, NULL, {huge}, NULL, NULL, NULL, NULL)"
            ),
            45110,
        ),
        (format!("idgen_type_status('{}')", "a".repeat(600)), 45101),
    ] {
        let answer = conn.query_drop(format!("CALL {call}")).await;
        assert_eq!(errno(answer), expected, "{call}");
    }
}

async fn doctor_tells(server: &SqlServer) {
    let db = TestDb::new(server).await;
    let facts = doctor(&db.app).await.unwrap();
    assert_eq!(facts.is_mariadb, facts.version.contains("MariaDB"));
    assert_eq!(facts.innodb_flush_log_at_trx_commit, 1);
    assert!(!facts.log_bin && !facts.tls && !facts.read_only);
    assert_eq!(facts.missing_rights, [""; 0]);
    assert_eq!(facts.excess_rights, [""; 0]);
    assert!((facts.clock_ms - unix_ms()).abs() < 60_000);
    assert!(facts.round_trip < Duration::from_secs(5));
    let account = format!("'{}'@'%'", db.name);
    server.sql(
        &db.name,
        &format!(
            "GRANT INSERT ON {0}.* TO {account}; REVOKE SELECT ON idgen_types FROM {account}",
            db.name
        ),
    );
    let facts = doctor(&db.app).await.unwrap();
    assert_eq!(facts.missing_rights, ["SELECT on idgen_types"]);
    assert_eq!(facts.excess_rights, [format!("INSERT on `{}`.*", db.name)]);
    assert!(!doctor(&db.admin).await.unwrap().excess_rights.is_empty());
}

/// Every way of proving a password that a MySQL 8 account may have, each on a
/// server that has not cached it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_plugin_of_mysql8_connects() {
    let server = support::mysql8::shared();
    let db = TestDb::new(server).await;
    for plugin in ["caching_sha2_password", "mysql_native_password"] {
        for tls in [false, true] {
            server.sql(
                "mysql",
                &format!(
                    "ALTER USER '{}'@'%' IDENTIFIED WITH {plugin} BY '{}'; FLUSH PRIVILEGES",
                    db.name,
                    TestDb::PASSWORD
                ),
            );
            let mut options = db.app.clone();
            options.ca_file = tls.then(|| server.ca_file());
            // Twice: the server then knows the password of caching_sha2.
            for _ in 0..2 {
                let facts =
                    doctor(&options).await.unwrap_or_else(|e| panic!("{plugin} {tls}: {e}"));
                assert_eq!(facts.tls, tls);
            }
            let mut wrong = options.clone();
            wrong.url = server.url(&db.name, "wrong-one", &db.name);
            let error = MysqlStore::connect(wrong).await.err().expect("refused");
            assert_eq!(code(&error), ErrorCode::PermissionDenied, "{plugin} {tls}");
        }
    }
}

/// Open TCP connections of this machine to `port`.
fn connections_to(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/self/net/tcp").expect("Linux");
    let remote = format!(":{port:04X}");
    let fields = table.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
    fields.filter(|f| f.len() > 3 && f[2].ends_with(&remote) && f[3] == "01").count()
}

/// A server that hangs, dies and comes back, on a server of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_and_dies() {
    let mut server = MariaDb::start();
    let mut db = TestDb::new(&server).await;
    db.app.timeout = Duration::from_millis(500);
    db.app.pool_max = 2;
    let spec = TypeSpec::new(name("tough"));
    let store = with_type(&db, &spec).await;
    let first = store.next_range(request(&spec.name)).await.unwrap();

    server.signal("STOP");
    let began = tokio::time::Instant::now();
    // More callers than connections: those that wait for a place end in time too.
    let callers: Vec<_> = (0..6)
        .map(|_| {
            let (store, name) = (store.clone(), spec.name.clone());
            tokio::spawn(async move { store.next_range(request(&name)).await })
        })
        .collect();
    for caller in callers {
        let answer = caller.await.unwrap();
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    }
    assert!(began.elapsed() < Duration::from_millis(1_500), "bounded");
    assert_eq!(connections_to(server.port()), 0, "no socket waits for a server that hangs");
    server.signal("CONT");
    // The places are free at once, whatever became of the calls that hung.
    let after = store.next_range(request(&spec.name)).await.unwrap();
    assert!(after.range.start() >= first.range.end());

    server.kill();
    let answer = store.next_range(request(&spec.name)).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    server.start_again();
    // No call pays for the connections that died with the server.
    let revived = store.next_range(request(&spec.name)).await.unwrap();
    assert!(revived.range.start() >= after.range.end(), "what was committed survived the kill");
    server.stop();
    server.start_again();
    store.ping().await.unwrap();
}
