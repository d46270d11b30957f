use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// `(start, end, first, count, node)`; times in steps of 16 ns, so that the
/// rounding of records does not get in the way.
type Row = (u64, u64, i64, u32, u16);

fn calls(rows: &[Row]) -> Vec<Call> {
    rows.iter()
        .map(|&(start, end, first, count, node)| {
            Call::new(start * 16, end * 16, first, count, node)
        })
        .collect()
}

#[test]
fn table_of_cases() {
    // what, calls, duplicates, order violations (strict), and (per node)
    let cases: &[(&str, &[Row], u64, u64, u64)] = &[
        ("nothing", &[], 0, 0, 0),
        ("one call", &[(0, 1, 5, 1, 0)], 0, 0, 0),
        ("in order", &[(0, 1, 5, 1, 0), (2, 3, 6, 1, 1)], 0, 0, 0),
        ("given in another order", &[(2, 3, 6, 1, 1), (0, 1, 5, 1, 0)], 0, 0, 0),
        ("smaller, later", &[(0, 1, 6, 1, 0), (2, 3, 5, 1, 0)], 0, 1, 1),
        ("smaller, later, other node", &[(0, 1, 6, 1, 0), (2, 3, 5, 1, 1)], 0, 1, 0),
        ("smaller, but in flight together", &[(0, 3, 6, 1, 0), (2, 4, 5, 1, 0)], 0, 0, 0),
        ("smaller, but the times touch", &[(0, 2, 6, 1, 0), (2, 4, 5, 1, 0)], 0, 0, 0),
        ("the same id twice, together", &[(0, 3, 6, 1, 0), (2, 4, 6, 1, 1)], 1, 0, 0),
        ("the same id twice, later", &[(0, 1, 6, 1, 0), (2, 4, 6, 1, 1)], 1, 1, 0),
        ("the same id three times", &[(0, 9, 6, 1, 0), (0, 9, 6, 1, 1), (0, 9, 6, 1, 2)], 2, 0, 0),
        ("ranges overlap by two", &[(0, 9, 10, 5, 0), (0, 9, 13, 5, 1)], 2, 0, 0),
        ("a range within a range", &[(0, 9, 10, 9, 0), (0, 9, 12, 2, 1)], 2, 0, 0),
        ("two within one", &[(0, 9, 10, 9, 0), (0, 9, 12, 2, 1), (0, 9, 15, 1, 1)], 3, 0, 0),
        ("ranges touch", &[(0, 1, 10, 5, 0), (2, 3, 15, 5, 1)], 0, 0, 0),
        ("the last of a range counts", &[(0, 1, 10, 5, 0), (2, 3, 14, 5, 0)], 1, 1, 1),
        (
            "two ranges of one call",
            &[(0, 1, 10, 5, 0), (0, 1, 90, 5, 0), (2, 3, 95, 1, 0)],
            0,
            0,
            0,
        ),
        (
            "below the second range of an earlier call",
            &[(0, 1, 10, 5, 0), (0, 1, 90, 5, 0), (2, 3, 50, 1, 0)],
            0,
            1,
            1,
        ),
        (
            "the highest counts, not the latest",
            &[(0, 1, 9, 1, 0), (0, 2, 3, 1, 0), (4, 5, 6, 1, 0)],
            0,
            1,
            1,
        ),
        (
            "a long call does not hide a short one",
            &[(0, 99, 1, 1, 0), (1, 2, 9, 1, 0), (3, 4, 5, 1, 0)],
            0,
            1,
            1,
        ),
        (
            "every later call is counted",
            &[(0, 1, 9, 1, 0), (2, 3, 4, 1, 0), (4, 5, 5, 1, 0), (6, 7, 10, 1, 0)],
            0,
            2,
            2,
        ),
        ("a call that lasted no time", &[(5, 5, 9, 1, 0), (6, 6, 8, 1, 0)], 0, 1, 1),
        ("negative ids", &[(0, 1, -5, 1, 0), (2, 3, -6, 1, 0)], 0, 1, 1),
        ("the highest ids", &[(0, 1, i64::MAX, 1, 0), (2, 3, i64::MAX, 1, 0)], 1, 1, 1),
    ];
    for (what, rows, duplicates, strict, node) in cases {
        let calls = calls(rows);
        let report = check(&calls);
        assert_eq!(report.duplicates, *duplicates, "{what}");
        assert_eq!(report.order_violations, *strict, "{what}");
        let ids: u64 = rows.iter().map(|r| u64::from(r.3)).sum();
        assert_eq!(report.ids, ids, "{what}");
        assert_eq!(report.is_clean(), *duplicates + *strict == 0, "{what}");
        let by_node = check_in_place(&mut calls.clone(), Order::Node);
        assert_eq!(by_node.order_violations, *node, "{what}, per node");
        assert_eq!(by_node.duplicates, *duplicates, "{what}, per node");
        let unordered = check_in_place(&mut calls.clone(), Order::None);
        assert_eq!(unordered.order_violations, 0, "{what}, without order");
        assert_eq!(unordered.duplicates, *duplicates, "{what}, without order");
    }
}

#[test]
fn shards_are_compared_apart() {
    let id = |number: i64, shard: i64| number << 14 | shard << 8 | 7;
    // what, calls, order violations per shard
    let cases: &[(&str, &[Row], u64)] = &[
        ("one shard", &[(0, 1, id(6, 3), 1, 0), (2, 3, id(5, 3), 1, 0)], 1),
        ("two shards", &[(0, 1, id(6, 3), 1, 0), (2, 3, id(5, 4), 1, 0)], 0),
        ("two nodes", &[(0, 1, id(6, 3), 1, 0), (2, 3, id(5, 3), 1, 1)], 0),
        ("the last shard of a node", &[(0, 1, id(6, 63), 1, 1), (2, 3, id(5, 63), 1, 1)], 1),
        ("neighbours in the table", &[(0, 1, id(6, 63), 1, 0), (2, 3, id(5, 0), 1, 1)], 0),
    ];
    for (what, rows, expected) in cases {
        let report = check_in_place(&mut calls(rows), Order::Shard);
        assert_eq!(report.order_violations, *expected, "{what}");
    }
}

#[test]
fn evidence_names_the_calls() {
    let calls = calls(&[(0, 1, 7, 1, 0), (2, 3, 7, 1, 1), (4, 5, 6, 1, 2)]);
    let report = check(&calls);
    let (one, other, low) = (calls[0], calls[1], calls[2]);
    assert_eq!(
        report.examples,
        [
            Violation::Duplicate { id: 7, one, other },
            Violation::Order { earlier: one, later: other },
            Violation::Order { earlier: one, later: low },
        ]
    );
}

#[test]
fn evidence_is_bounded_and_counts_are_not() {
    let rows: Vec<Row> = (0..1_000).map(|i| (2 * i, 2 * i + 1, 7, 1, 0)).collect();
    let report = check(&calls(&rows));
    assert_eq!((report.duplicates, report.order_violations), (999, 999));
    assert_eq!(report.examples.len(), 2 * Report::EXAMPLES);
}

/// What the promise says, word for word, in O(n²).
fn reference(calls: &[Call], order: Order) -> (u64, u64) {
    let mut times: HashMap<i64, u64> = HashMap::new();
    for call in calls {
        for id in call.first()..=call.last() {
            *times.entry(id).or_default() += 1;
        }
    }
    let related = |a: &Call, b: &Call| match order {
        Order::Strict => true,
        Order::Node => a.node() == b.node(),
        Order::Shard => a.node() == b.node() && a.first() >> 8 & 63 == b.first() >> 8 & 63,
        Order::None => false,
    };
    let violations = calls
        .iter()
        .filter(|later| {
            calls.iter().any(|earlier| {
                related(earlier, later)
                    && earlier.end_ns() < later.start_ns()
                    && earlier.last() >= later.first()
            })
        })
        .count();
    (times.values().map(|n| n - 1).sum(), violations as u64)
}

proptest! {
    /// Few ids and short times, so that collisions are the rule.
    #[test]
    fn agrees_with_the_reference(
        rows in prop::collection::vec((0u64..60, 0u64..12, 1i64..80, 1u32..6, 0u16..3), 0..60),
        order in prop::sample::select(vec![
            Order::Strict, Order::Node, Order::Shard, Order::None
        ]),
        spread in prop::sample::select(vec![1i64, 100]),
    ) {
        let rows: Vec<Row> = rows
            .into_iter()
            .map(|(start, duration, first, count, node)| {
                (start, start + duration, first * spread, count, node)
            })
            .collect();
        let mut calls = calls(&rows);
        let expected = reference(&calls, order);
        let report = check_in_place(&mut calls, order);
        prop_assert_eq!((report.duplicates, report.order_violations), expected);
        prop_assert_eq!(report.examples.is_empty(), expected == (0, 0));
    }

    /// Mostly right histories with one fault: a counter that every call takes
    /// from at one moment between its start and its end is clean, whatever the
    /// overlap; one id given again is found.
    #[test]
    fn a_counter_is_clean_and_one_repeat_is_found(
        moments in prop::collection::vec((0u64..20, 0u64..20, 0u16..3), 2..80),
        victim in any::<prop::sample::Index>(),
    ) {
        let mut calls: Vec<Call> = moments
            .iter()
            .enumerate()
            .map(|(i, &(before, after, node))| {
                let moment = 1_000 + 16 * 4 * i as u64;
                Call::new(moment - 16 * before, moment + 16 * after, i as i64 + 1, 1, node)
            })
            .collect();
        prop_assert!(check(&calls).is_clean());
        let victim = 1 + victim.index(calls.len() - 1);
        let late = calls[victim];
        calls[victim] = Call::new(late.start_ns(), late.end_ns(), victim as i64, 1, late.node());
        prop_assert_eq!(check(&calls).duplicates, 1);
    }
}
