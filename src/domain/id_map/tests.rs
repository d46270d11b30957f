use proptest::prelude::*;

use super::*;
use crate::domain::options::position_in;
use crate::domain::{InstanceId, Opaque, OpaqueKey, Period, Sites, TypeName};

fn record(mode: Mode, first_id: i64, max_id: i64, options: TypeOptions) -> TypeRecord {
    let mut spec = TypeSpec::new(TypeName::parse("order").unwrap());
    spec.mode = mode;
    spec.first_id = first_id;
    spec.max_id = max_id;
    spec.key = options.opaque.map(|_| OpaqueKey::new([9; 32]));
    spec.options = options;
    TypeRecord::created(&spec, InstanceId(1), 0)
}

fn map(mode: Mode, first_id: i64, max_id: i64, options: TypeOptions) -> IdMap {
    let record = record(mode, first_id, max_id, options);
    record.options.validate(mode, first_id, max_id).unwrap();
    IdMap::new(&record).unwrap()
}

fn cycle() -> TypeOptions {
    TypeOptions { at_limit: AtLimit::Cycle, ..TypeOptions::default() }
}

fn sites(count: u16, site: u16) -> TypeOptions {
    TypeOptions { sites: Some(Sites { count, site }), ..TypeOptions::default() }
}

fn app(app_id: i64) -> TypeOptions {
    TypeOptions { app_id: Some(app_id), ..TypeOptions::default() }
}

fn opaque(slices: u16) -> TypeOptions {
    TypeOptions { opaque: Some(Opaque { slices }), ..TypeOptions::default() }
}

fn calendar() -> TypeOptions {
    TypeOptions {
        calendar: Some(Period::Daily),
        format: Some("{date:yyMMdd}{seq:04}".into()),
        ..TypeOptions::default()
    }
}

const TOP: i64 = TypeSpec::HIGHEST_ID;

#[test]
fn ids_by_cases() {
    use Mode::{Segment, Sharded, Strict};
    let cases = [
        (map(Strict, 1, TOP, TypeOptions::default()), 1, None, 1),
        (map(Strict, 1, TOP, TypeOptions::default()), TOP, None, TOP),
        (map(Strict, 5, 9, cycle()), 5, None, 5),
        (map(Strict, 5, 9, cycle()), 9, None, 9),
        (map(Strict, 5, 9, cycle()), 10, None, 5),
        (map(Strict, 5, 9, cycle()), 22, None, 7),
        (map(Strict, 7, 7, cycle()), TOP, None, 7),
        (map(Strict, 1, TOP, cycle()), TOP, None, TOP),
        (map(Segment, 1, TOP, sites(4, 1)), 1, None, 5),
        (map(Segment, 1, TOP, sites(4, 0)), 1, None, 4),
        (map(Segment, 1, TOP, sites(2, 0)), TOP / 2, None, TOP),
        (map(Segment, 1, 11, TypeOptions { at_limit: AtLimit::Cycle, ..sites(4, 3) }), 4, None, 11),
        (map(Sharded, 1, TOP, app(255)), 1, Some(63), 0x7fff),
        (map(Sharded, 1, TOP, app(7)), 2, Some(3), 2 << 14 | 3 << 8 | 7),
        (map(Sharded, 1, TOP, app(0)), (1 << 49) - 2, Some(0), ((1 << 49) - 2) << 14),
        (
            map(Sharded, 1, 0xffff, TypeOptions { at_limit: AtLimit::Cycle, ..app(7) }),
            4,
            Some(1),
            1 << 14 | 1 << 8 | 7,
        ),
        (map(Strict, 1, 9_999, calendar()), position_in(20_000, 7), None, position_in(20_000, 7)),
    ];
    for (case, (map, position, shard, id)) in cases.into_iter().enumerate() {
        assert_eq!(map.id(position, shard), id, "case {case}");
        assert!(map.knows(position), "case {case}");
        let (found, found_shard) = map.position(id).unwrap();
        assert_eq!(found_shard, shard, "case {case}");
        // Of a type that cycles, the first position with that id.
        assert_eq!(map.id(found, shard), id, "case {case}");
        assert!(found == position || found < position && matches!(map.step, Step::Cycle));
    }
}

#[test]
fn ids_of_others() {
    use Mode::{Segment, Sharded, Strict};
    let plain = || map(Strict, 5, 9, TypeOptions::default());
    let cases = [
        (plain(), 0, "ids begin at 1"),
        (plain(), i64::MIN, "ids begin at 1"),
        (plain(), 4, "the first position is 5"),
        (plain(), 10, "the highest is 9"),
        (plain(), i64::MAX, "the highest is 9"),
        (map(Strict, 5, 9, cycle()), 10, "the highest is 9"),
        (
            map(Segment, 1, 99, sites(4, 1)),
            6,
            "it belongs to site 2, and this range store is site 1",
        ),
        (map(Segment, 1, 99, sites(4, 1)), 1, "the first position is 1"),
        (map(Segment, 1, 99, sites(4, 1)), 101, "the highest is 97"),
        (map(Sharded, 1, TOP, app(7)), 1 << 14 | 8, "it has the app id 8, and this type 7"),
        (map(Sharded, 1, TOP, app(7)), 1 << 8 | 7, "the first position is 1"),
        (map(Sharded, 1, 0xffff, app(7)), 4 << 14 | 7, "the highest is 65287"),
        (map(Sharded, 1, TOP, app(255)), i64::MAX, "the highest is"),
        (map(Segment, 1, 1_000_000, opaque(1)), 1_000_001, "the highest is 1000000"),
        (map(Segment, 1, 1_000_000, opaque(1)), 0, "ids begin at 1"),
        (map(Strict, 1, 9_999, calendar()), position_in(20_000, 0), "no position of this calendar"),
        (map(Strict, 1, 9_999, calendar()), position_in(2, 10_000), "no position of this calendar"),
    ];
    for (map, id, says) in cases {
        let error = map.position(id).unwrap_err();
        assert_eq!(error.field, Some("id"), "{error}");
        assert!(error.message.contains(says), "{error}");
    }
}

#[test]
fn settings_that_make_no_sense() {
    use Mode::{Segment, Sharded, Snowflake, Strict};
    let no_key = TypeRecord { keys: [].into(), ..record(Strict, 1, TOP, opaque(1)) };
    let cases = [
        ("mode", record(Snowflake, 1, TOP, TypeOptions::default())),
        ("max_id", record(Strict, 1, 0, TypeOptions::default())),
        ("max_id", record(Strict, 1, i64::MAX, TypeOptions::default())),
        ("max_id", record(Sharded, 1, i64::MAX, app(1))),
        ("first_id", record(Strict, 0, 9, TypeOptions::default())),
        ("first_id", record(Strict, 10, 9, cycle())),
        ("first_id", record(Sharded, 1, 0x7ffe, app(1))),
        ("app_id", record(Sharded, 1, TOP, TypeOptions::default())),
        ("app_id", record(Sharded, 1, TOP, app(256))),
        ("sites.count", record(Segment, 1, TOP, sites(0, 0))),
        ("sites.site", record(Segment, 1, TOP, sites(2, 2))),
        ("max_id", record(Segment, 1, 999_999, opaque(1))),
        ("opaque.slices", record(Segment, 1, TOP, opaque(0))),
        ("key", no_key),
    ];
    for (case, (field, record)) in cases.into_iter().enumerate() {
        let error = IdMap::new(&record).err().unwrap_or_else(|| panic!("case {case}"));
        assert_eq!(error.field, Some(field), "case {case}: {error}");
        assert!(error.message.contains(field), "case {case}: {error}");
    }
}

#[test]
fn runs_by_cases() {
    let range = |start, end| IdRange::new(start, end).unwrap();
    // A range of any length costs nothing where ids are positions.
    let mut ids = vec![range(1, 3)];
    let plain = map(Mode::Strict, 1, TOP, TypeOptions::default());
    assert!(plain.is_identity());
    plain.append(range(3, i64::MAX), None, &mut ids);
    assert_eq!(ids, [range(1, i64::MAX)]);
    plain.append(range(5, 6), None, &mut ids);
    assert_eq!(ids, [range(1, i64::MAX), range(5, 6)]);

    let cycles = map(Mode::Strict, 5, 9, cycle());
    assert!(!cycles.is_identity());
    let mut ids = Vec::new();
    cycles.append(range(8, 17), None, &mut ids);
    assert_eq!(ids, [range(8, 10), range(5, 10), range(5, 7)]);
    cycles.append(range(17, 18), None, &mut ids);
    assert_eq!(ids.last(), Some(&range(5, 8)));

    let shared = map(Mode::Segment, 1, TOP, sites(4, 1));
    assert!(!shared.is_identity());
    let mut ids = Vec::new();
    shared.append(range(1, 4), None, &mut ids);
    assert_eq!(ids, [range(5, 6), range(9, 10), range(13, 14)]);

    let daily = map(Mode::Strict, 1, 9_999, calendar());
    assert!(daily.is_identity());
}

/// Each mode and option, with short cycles so that they wrap.
fn a_map() -> impl Strategy<Value = (IdMap, i64, bool)> {
    let cases = (1i64..50, 50i64..200, 2u16..20, 0u16..20, 0i64..256, 1u16..20);
    (cases, 0..8usize).prop_map(|((first, last, count, site, app_id, slices), kind)| {
        let made = |mode, first: i64, max_id, options: TypeOptions| {
            let made = record(mode, first, max_id, options);
            let most = made.options.max_position(mode, max_id);
            (IdMap::new(&made).unwrap(), most, mode == Mode::Sharded)
        };
        let sites = sites(count, site % count);
        let big = 1_000_000 * i64::from(slices) + last;
        match kind {
            0 => made(Mode::Strict, first, last, TypeOptions::default()),
            1 => made(Mode::Segment, first, last, cycle()),
            2 => made(Mode::Segment, first, last * 20, sites),
            3 => {
                made(Mode::Segment, 1, last * 20, TypeOptions { at_limit: AtLimit::Cycle, ..sites })
            }
            4 => made(Mode::Sharded, first, last << 15, app(app_id)),
            5 => made(Mode::Strict, first, big, opaque(slices)),
            6 => {
                let options = TypeOptions { sites: sites.sites, ..opaque(slices) };
                made(Mode::Segment, first, big * 20 + last, options)
            }
            _ => {
                let options = TypeOptions { app_id: Some(app_id), ..opaque(slices) };
                made(Mode::Sharded, first, big << 15, options)
            }
        }
    })
}

proptest! {
    #[test]
    fn ids_and_positions_are_inverse(
        (map, most, sharded) in a_map(), at in any::<prop::sample::Index>(), count in 1i64..100,
        shard in 0..SHARDS,
    ) {
        let shard = sharded.then_some(shard);
        let most = most.min(1 << 60);
        let start = map.first_id + at.index((most - map.first_id + 1) as usize) as i64;
        let end = start.saturating_add(count).min(most + 1);
        let range = IdRange::new(start, end).unwrap();
        let mut runs = Vec::new();
        map.append(range, shard, &mut runs);
        prop_assert!(runs.windows(2).all(|pair| pair[0].end() != pair[1].start()));
        let ids: Vec<i64> = runs.iter().flat_map(|run| run.start()..run.end()).collect();
        let expected: Vec<i64> = (start..end).map(|position| map.id(position, shard)).collect();
        prop_assert_eq!(&ids, &expected);
        let highest = map.compose(map.highest, Some(SHARDS - 1));
        for (position, id) in (start..end).zip(ids) {
            prop_assert!(id >= 1 && id <= highest);
            let (found, found_shard) = map.position(id).unwrap();
            prop_assert_eq!(found_shard, shard);
            if let Step::Cycle = map.step {
                let cycle = map.highest - map.first_id + 1;
                prop_assert_eq!((position - found) % cycle, 0);
                prop_assert!(found <= map.highest);
            } else {
                prop_assert_eq!(found, position);
            }
        }
    }

    /// What is read as a position makes that id again, and nothing panics.
    #[test]
    fn any_number_is_an_id_or_refused((map, _, _) in a_map(), id in any::<i64>(), small in 0i64..100_000) {
        for id in [id, small] {
            if let Ok((position, shard)) = map.position(id) {
                prop_assert_eq!(map.id(position, shard), id);
            }
        }
    }
}
