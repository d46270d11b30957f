//! Tables of cases for the rules of allocation, and what holds whatever the
//! order of calls.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::domain::options::number_of;
use crate::domain::{InstanceId, Opaque, Period, Sites, TypeName, TypeOptions};

fn record(change: impl FnOnce(&mut TypeSpec)) -> TypeRecord {
    let mut spec = TypeSpec::new(TypeName::parse("order").unwrap());
    change(&mut spec);
    TypeRecord::created(&spec, InstanceId(1), 0)
}

fn sharded(spec: &mut TypeSpec) {
    spec.mode = Mode::Sharded;
    spec.options.app_id = Some(7);
}

fn daily(spec: &mut TypeSpec) {
    spec.max_id = 1_500;
    spec.options.calendar = Some(Period::Daily);
}

fn opaque(slices: u16) -> impl Fn(&mut TypeSpec) {
    move |spec| {
        spec.max_id = 10_000_000;
        spec.options.opaque = Some(Opaque { slices });
    }
}

fn day(number: i64) -> Option<PeriodSpan> {
    Some(PeriodSpan { number, from_ms: 1_000, until_ms: 2_000 })
}

fn at(next_id: i64) -> Sequence {
    Sequence { next_id, last_range: Some(1_000) }
}

/// Start and end of the next range, or the code and the field of the refusal.
fn tell(
    record: &TypeRecord,
    sequence: Sequence,
    request: &Request,
) -> Result<(i64, i64), (ErrorCode, Option<&'static str>)> {
    match next_range(record, sequence, request) {
        Ok((range, _)) => Ok((range.start(), range.end())),
        Err(Denied::Rule(error)) => Err((error.code, error.field)),
        Err(Denied::WrongPeriod { .. }) => panic!("the clock is inside the period"),
    }
}

#[test]
fn the_limit_is_that_of_positions() {
    let exhausted = Err((ErrorCode::Exhausted, None));
    let sites = record(|spec| {
        spec.mode = Mode::Segment;
        spec.max_id = 3_001;
        spec.options.sites = Some(crate::domain::Sites { count: 2, site: 1 });
    });
    let cycle = record(|spec| {
        spec.max_id = 10;
        spec.options.at_limit = crate::domain::AtLimit::Cycle;
    });
    let wide = record(|_| {});
    let last = TypeSpec::HIGHEST_ID;
    for (record, next, floor, expected) in [
        (&sites, 1, 0, Ok((1, 1_001))),
        (&sites, 1_001, 0, Ok((1_001, 1_501))),
        (&sites, 1, 1_500, Ok((1_500, 1_501))),
        (&sites, 1_501, 0, exhausted),
        (&cycle, 1, 0, Ok((1, 1_001))),
        (&cycle, 1_001, 5_000, Ok((5_000, 6_000))),
        (&wide, last, 0, Ok((last, last + 1))),
        (&wide, i64::MAX, 0, exhausted),
        (&wide, 1, i64::MAX, exhausted),
        (&wide, 1, -1, Err((ErrorCode::InvalidArgument, Some("floor")))),
    ] {
        let request = Request { floor, ..Request::default() };
        assert_eq!(tell(record, at(next), &request), expected, "{next} {floor}");
    }
}

#[test]
fn what_does_not_fit_the_type_is_refused() {
    let plain = record(|_| {});
    let sharded = record(sharded);
    let daily = record(daily);
    let snowflake = record(|spec| spec.mode = Mode::Snowflake);
    let refused = |field| Err((ErrorCode::InvalidArgument, Some(field)));
    for (record, shard, period, expected) in [
        (&plain, None, None, Ok((1, 1_001))),
        (&plain, Some(0), None, refused("shard")),
        (&plain, None, day(3), refused("period")),
        (&sharded, Some(0), None, Ok((1, 1_001))),
        (&sharded, Some(63), None, Ok((1, 1_001))),
        (&sharded, Some(64), None, refused("shard")),
        (&sharded, None, None, refused("shard")),
        (&sharded, Some(0), day(3), refused("period")),
        (&daily, None, day(0), Ok((1, 1_001))),
        (&daily, None, None, refused("period")),
        (&daily, None, day(-1), refused("period")),
        (&daily, None, day(HIGHEST_PERIOD + 1), refused("period")),
        (&daily, Some(1), day(3), refused("shard")),
        (&snowflake, None, None, refused("mode")),
    ] {
        let request = Request { shard, period, now_ms: 1_000, ..Request::default() };
        let fresh = Sequence::fresh(record);
        assert_eq!(tell(record, fresh, &request), expected, "{} {request:?}", record.mode);
    }
    let mut retired = plain.clone();
    retired.state = State::Retired;
    let expected = Err((ErrorCode::Retired, None));
    assert_eq!(tell(&retired, Sequence::of(&retired), &Request::default()), expected);
}

#[test]
fn a_range_lies_in_the_period_of_its_start() {
    let record = record(|spec| {
        daily(spec);
        spec.first_id = 5;
    });
    let exhausted = Err((ErrorCode::Exhausted, None));
    let p = |number| position_in(9, number);
    let q = |number| position_in(10, number);
    let far = position_in(HIGHEST_PERIOD, 0);
    for (next, floor, period, expected, why) in [
        (5, 0, 9, Ok((p(5), p(1_005))), "the first range of the type"),
        (p(1_005), 0, 9, Ok((p(1_005), p(1_501))), "cut at the end of the period"),
        (p(1_501), 0, 9, exhausted, "all numbers of the period are used"),
        (p(1_501), 0, 10, Ok((q(5), q(1_005))), "the next period has new ones"),
        (p(50), 0, 10, Ok((q(5), q(1_005))), "what is left of a period is skipped"),
        (q(50), 0, 9, Ok((q(50), q(1_050))), "never back to an earlier period"),
        (p(50), p(700), 9, Ok((p(700), p(1_501))), "the floor counts within the period"),
        (p(50), q(700), 9, Ok((q(700), q(1_501))), "and beyond it"),
        (p(50), q(0), 9, Ok((q(5), q(1_005))), "no number below the first"),
        (p(50), q(1_501), 9, exhausted, "a floor above all numbers"),
        (p(50), far, 9, Ok((far + 5, far + 1_005)), "the highest period"),
        (p(50), i64::MAX, 9, exhausted, "nothing overflows"),
    ] {
        let request = Request { floor, period: day(period), now_ms: 1_500, ..Request::default() };
        assert_eq!(tell(&record, at(next), &request), expected, "{why}");
    }
}

#[test]
fn the_clock_of_the_store_settles_the_period() {
    let record = record(daily);
    for (now_ms, inside) in [(999, false), (1_000, true), (1_999, true), (2_000, false)] {
        let request = Request { period: day(9), now_ms, ..Request::default() };
        match next_range(&record, Sequence::of(&record), &request) {
            Ok(_) => assert!(inside, "{now_ms}"),
            Err(denied) => {
                assert!(!inside, "{now_ms}");
                assert_eq!(denied, Denied::WrongPeriod { now_ms });
            }
        }
    }
}

#[test]
fn ids_in_a_row_are_not_of_every_kind() {
    let of = |mode, options| {
        let record = TypeRecord { mode, options, ..record(|_| {}) };
        check_block(&record).map_err(|error| error.field)
    };
    let none = TypeOptions::default;
    let opaque = TypeOptions { opaque: Some(Opaque { slices: 2 }), ..none() };
    let cycle = TypeOptions { at_limit: AtLimit::Cycle, ..none() };
    let calendar = TypeOptions { calendar: Some(Period::Daily), ..none() };
    let sites = TypeOptions { sites: Some(Sites { count: 2, site: 0 }), ..none() };
    for (mode, options, expected) in [
        (Mode::Strict, none(), Ok(())),
        (Mode::Segment, none(), Ok(())),
        (Mode::Segment, sites, Ok(())),
        (Mode::Sharded, none(), Err(Some("mode"))),
        (Mode::Snowflake, none(), Err(Some("mode"))),
        (Mode::Strict, calendar, Err(Some("mode"))),
        (Mode::Strict, opaque, Err(Some("opaque"))),
        (Mode::Strict, cycle, Err(Some("at_limit"))),
    ] {
        assert_eq!(of(mode, options.clone()), expected, "{mode} {options:?}");
    }
}

#[test]
fn a_block_is_reserved_from_a_plain_sequence_only() {
    let plain = record(|spec| spec.max_id = 100);
    let code = |error: Error| (error.code, error.field);
    assert_eq!(reserve(&plain, 100, 0).unwrap(), IdRange::new(1, 101).unwrap());
    assert_eq!(reserve(&plain, 1, 100).unwrap(), IdRange::new(100, 101).unwrap());
    let too_many = reserve(&plain, 101, 0).unwrap_err();
    assert_eq!(code(too_many), (ErrorCode::Exhausted, None));
    let snowflake = record(|spec| spec.mode = Mode::Snowflake);
    for other in [record(sharded), record(daily), snowflake] {
        let error = reserve(&other, 1, 0).unwrap_err();
        assert_eq!(code(error), (ErrorCode::InvalidArgument, Some("mode")), "{}", other.mode);
    }
}

#[test]
fn only_the_very_end_goes_back() {
    let plain = record(|_| {});
    let range = |start, end| IdRange::new(start, end).unwrap();
    let back = |next_id, left| Some(GivenBack { next_id, left });
    let logged = Some(range(100, 200));
    for (next, logged, tail, expected, why) in [
        (200, logged, (150, 200), back(150, Some(range(100, 150))), "a part"),
        (200, logged, (199, 200), back(199, Some(range(100, 199))), "one position"),
        (200, logged, (100, 200), back(100, None), "all of it"),
        (300, logged, (150, 200), None, "something was allocated after it"),
        (200, logged, (150, 199), None, "not the end"),
        (200, logged, (99, 200), None, "more than the range"),
        (200, None, (150, 200), None, "a range that is not in the log, or had a target"),
        (200, Some(range(100, 150)), (150, 200), None, "another range"),
        (150, logged, (150, 200), None, "given back already"),
    ] {
        let tail = range(tail.0, tail.1);
        assert_eq!(give_back(&plain, at(next), logged, tail), expected, "{why}");
    }
}

#[test]
fn an_opaque_type_takes_nothing_back() {
    let record = record(opaque(5));
    let logged = IdRange::new(1_000, 2_000).unwrap();
    let tail = IdRange::new(1_500, 2_000).unwrap();
    assert_eq!(give_back(&record, at(2_000), Some(logged), tail), None);
}

#[test]
fn the_slice_of_a_floor_above_the_next_position_is_skipped() {
    // Slices of two million.
    for (next_id, floor, expected) in [
        (1, 0, 1),
        (1_500, 1_500, 1_500),
        (1_500, 1_501, 2_000_001),
        (1_500, 5_000_000, 6_000_001),
        (2_000_001, 2_000_000, 2_000_001),
        (i64::MAX - 1, i64::MAX, i64::MAX),
    ] {
        assert_eq!(above_floor(&record(opaque(5)), next_id, floor), expected, "{next_id} {floor}");
    }
}

#[test]
fn a_key_begins_with_a_slice_that_nobody_has_touched() {
    for (slices, next_id, expected) in [
        (5, 1, Some((1, 2_000_001))),
        (5, 2_000_000, Some((1, 2_000_001))),
        (5, 2_000_001, Some((2, 4_000_001))),
        (5, 8_000_000, Some((4, 8_000_001))),
        (5, 8_000_001, None),
        (5, 10_000_001, None),
        (1, 1, None),
        (3, 6_666_668, Some((2, 6_666_669))),
        (3, 6_666_669, None),
    ] {
        let mut record = record(opaque(slices));
        record.next_id = next_id;
        let rotated = rotation(&record);
        let found = rotated.as_ref().ok().map(|r| (r.from_slice, r.next_id));
        assert_eq!(found, expected, "{slices} slices, next {next_id}");
        if let Err(error) = rotated {
            assert_eq!(error.code, ErrorCode::Exhausted);
        }
    }
    let mut whole = record(|spec| spec.options.opaque = Some(Opaque::default()));
    for next_id in [TypeSpec::HIGHEST_ID, i64::MAX] {
        whole.next_id = next_id;
        assert_eq!(rotation(&whole).unwrap_err().code, ErrorCode::Exhausted, "nothing overflows");
    }
    assert_eq!(rotation(&record(|_| {})).unwrap_err().field, Some("opaque"));
}

/// What a store does with the rules, and what its callers know of it.
struct Model {
    record: TypeRecord,
    shards: BTreeMap<Option<u8>, Sequence>,
    log: Vec<(Option<u8>, IdRange)>,
    /// The key of each first slice, counted.
    keys: BTreeMap<i64, usize>,
    /// The keys that a node takes for final.
    known: BTreeMap<i64, usize>,
}

impl Model {
    fn new(record: TypeRecord) -> Self {
        Model {
            record,
            shards: BTreeMap::new(),
            log: Vec::new(),
            keys: BTreeMap::from([(0, 0)]),
            known: BTreeMap::new(),
        }
    }

    fn sequence(&self, shard: Option<u8>) -> Sequence {
        self.shards.get(&shard).copied().unwrap_or(Sequence::fresh(&self.record))
    }

    fn set(&mut self, shard: Option<u8>, sequence: Sequence) {
        self.shards.insert(shard, sequence);
        self.record.next_id = self.shards.values().map(|s| s.next_id).max().unwrap();
    }

    fn next(&mut self, request: &Request) -> Option<IdRange> {
        let sequence = self.sequence(request.shard);
        let (range, _) = next_range(&self.record, sequence, request).ok()?;
        for (shard, live) in &self.log {
            let apart = range.end() <= live.start() || live.end() <= range.start();
            assert!(apart || *shard != request.shard, "{range} given away, and {live} before it");
        }
        let last_range = Some(range.len() as i64);
        self.set(request.shard, Sequence { next_id: range.end(), last_range });
        self.log.push((request.shard, range));
        Some(range)
    }

    /// Gives back what is above `keep` of the range that was logged as number `pick`.
    fn give_back(&mut self, pick: usize, keep: i64) {
        if self.log.is_empty() {
            return;
        }
        let pick = pick % self.log.len();
        let (shard, logged) = self.log[pick];
        let Ok(tail) = IdRange::new(logged.start() + keep, logged.end()) else { return };
        let sequence = self.sequence(shard);
        let answer = give_back(&self.record, sequence, Some(logged), tail);
        if let Some(back) = answer {
            self.set(shard, Sequence { next_id: back.next_id, ..sequence });
        }
        // The caller never uses the tail again, whatever the answer.
        match IdRange::new(logged.start(), tail.start()) {
            Ok(left) => self.log[pick].1 = left,
            Err(_) => drop(self.log.remove(pick)),
        }
    }

    fn rotate(&mut self, shards: &[Option<u8>]) {
        let Ok(rotation) = rotation(&self.record) else { return };
        self.keys.insert(rotation.from_slice, self.keys.len());
        for shard in shards {
            let sequence = self.sequence(*shard);
            self.set(*shard, Sequence { next_id: rotation.next_id, ..sequence });
        }
    }

    /// A node reads the type: it takes the keys up to the slice of `next_id` for final.
    fn read(&mut self) {
        let opaque = self.record.options.opaque.expect("an opaque type");
        let current = slice_of(self.record.next_id, self.record.max_position, opaque);
        for slice in 0..=current {
            let (_, key) = self.keys.range(..=slice).next_back().expect("a key of slice 0");
            let before = *self.known.entry(slice).or_insert(*key);
            assert_eq!(before, *key, "slice {slice} got another key after it was known");
        }
    }
}

fn request() -> impl Strategy<Value = Request> {
    let usage = (0u64..100_000, 0u64..1_000_000)
        .prop_map(|(consumed, elapsed_ms)| Usage { consumed, elapsed_ms });
    (proptest::option::of(usage), prop_oneof![4 => Just(0), 1 => 0i64..50_000_000])
        .prop_map(|(usage, floor)| Request { usage, floor, now_ms: 1_500, ..Request::default() })
}

/// What happens next: `None` is a rotation; else a request, and how much of
/// which range goes back after it.
type Step = (Option<Request>, u8, Option<(usize, i64)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (
        proptest::option::weighted(0.9, request()),
        0u8..4,
        proptest::option::of((0usize..8, 0i64..3_000)),
    );
    proptest::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn no_live_position_is_given_away_twice(steps in steps(), by_shard: bool) {
        let mut model = Model::new(record(|spec| {
            if by_shard {
                sharded(spec);
            }
        }));
        for (request, shard, back) in steps {
            if let Some(request) = request {
                model.next(&Request { shard: by_shard.then_some(shard), ..request });
            }
            if let Some((pick, keep)) = back {
                // The newest range is the one that can go back.
                model.give_back(model.log.len().saturating_sub(1 + pick / 4), keep);
            }
        }
    }

    #[test]
    fn a_slice_has_one_key_for_ever(steps in steps(), by_shard: bool) {
        let mut model = Model::new(record(|spec| {
            if by_shard {
                sharded(spec);
                spec.max_id = (50_000_001 << TypeOptions::SHARD_BITS) - 1;
            } else {
                spec.max_id = 50_000_000;
            }
            spec.min_range = 1_000_000;
            spec.options.opaque = Some(Opaque { slices: 25 });
        }));
        let shards: Vec<_> = if by_shard { (0..4).map(Some).collect() } else { vec![None] };
        for (request, shard, back) in steps {
            match request {
                Some(request) => {
                    let shard = by_shard.then_some(shard);
                    model.next(&Request { shard, ..request });
                }
                None => model.rotate(&shards),
            }
            model.read();
            if let Some((pick, keep)) = back {
                model.give_back(model.log.len().saturating_sub(1 + pick / 4), keep * 300);
            }
        }
    }

    #[test]
    fn periods_never_go_back_and_never_mix(
        steps in proptest::collection::vec((request(), 0i64..5, proptest::option::of(0i64..2_000)), 1..60),
        first_id in 1i64..100,
    ) {
        let mut model = Model::new(record(|spec| {
            daily(spec);
            spec.first_id = first_id;
            spec.min_range = 100;
        }));
        let mut latest = 0;
        for (request, period, back) in steps {
            // A floor within the last periods.
            let floor = position_in(request.floor % 6, request.floor % 1_600);
            let request = Request { floor, period: day(period), ..request };
            if let Some(range) = model.next(&request) {
                prop_assert_eq!(period_of(range.start()), period_of(range.last()));
                prop_assert!(period_of(range.start()) >= latest.max(period));
                prop_assert!(number_of(range.start()) >= first_id);
                prop_assert!(number_of(range.last()) <= 1_500);
                latest = period_of(range.start());
            }
            if let Some(keep) = back {
                model.give_back(model.log.len().saturating_sub(1), keep);
            }
        }
    }
}
