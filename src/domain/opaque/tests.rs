use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::domain::TypeSpec;

const SLICED: Opaque = Opaque { slices: 16 };

fn key(seed: u8) -> OpaqueKey {
    OpaqueKey::new([seed; 32])
}

fn keys(seeds: &[(i64, u8)]) -> Vec<SliceKey> {
    seeds.iter().map(|(from, seed)| SliceKey { from_slice: *from, key: key(*seed) }).collect()
}

fn permutation(highest: i64, slices: u16, seeds: &[(i64, u8)]) -> Permutation {
    Permutation::new(highest, Opaque { slices }, &keys(seeds), 1).unwrap()
}

#[test]
fn keys_as_text() {
    let text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff";
    let key = OpaqueKey::from_hex(text).unwrap();
    assert_eq!(key.to_hex(), text);
    assert_eq!(OpaqueKey::from_hex(&text.to_uppercase()).unwrap(), key);
    let slice = SliceKey { from_slice: 3, key };
    assert_eq!(format!("{slice:?}"), "SliceKey { from_slice: 3, key: OpaqueKey(***) }");
    let long = "a".repeat(65);
    for wrong in ["", &text[1..], &long, &text.replace('f', "g"), &text.replace('f', "é")] {
        let error = OpaqueKey::from_hex(wrong).unwrap_err();
        assert_eq!(error.field, Some("key"));
        assert!(wrong.is_empty() || !error.message.contains(wrong), "{error}");
    }
}

/// Sample 7 of NIST's FF1 samples: AES-256, radix 10, no tweak.
#[test]
fn the_cipher_is_ff1() {
    let key =
        OpaqueKey::from_hex("2B7E151628AED2A6ABF7158809CF4F3CEF4359D8D580AA4F7F036D6F04FC6A94")
            .unwrap();
    let cipher = FF1::<Aes256>::new(&key.0, 10).unwrap();
    let plain = FlexibleNumeralString::from((0..10).collect::<Vec<u16>>());
    let numerals = Vec::from(cipher.encrypt(&[], &plain).unwrap());
    assert_eq!(numerals, [6, 6, 5, 7, 6, 6, 7, 0, 0, 9]);
}

/// Ids that were handed out must be told again by every later version. The
/// values are those of a second implementation, written for this table.
#[test]
fn ids_stay_the_same_in_every_version() {
    let seeds = [(0, 7), (3, 8)];
    let ids = |highest, slices, shard| {
        let permutation = permutation(highest, slices, &seeds);
        [1, 2, highest / 2, highest].map(|position| permutation.id(position, shard))
    };
    assert_eq!(
        ids(1_000_000_000_000, 16, None),
        [31_722_387_138, 34_467_134_877, 463_288_367_192, 995_394_867_071]
    );
    assert_eq!(
        ids(TypeSpec::HIGHEST_ID, 1, None),
        [
            5_327_655_152_523_783_864,
            814_701_807_001_353_126,
            7_835_619_417_083_239_003,
            6_212_546_392_381_193_828,
        ]
    );
    assert_eq!(
        ids((1 << 49) - 1, 16, Some(63)),
        [4_632_277_204_152, 13_487_545_696_665, 276_121_067_088_902, 543_957_498_197_437]
    );
}

#[test]
fn settings_that_make_no_sense() {
    let good = keys(&[(0, 1), (5, 2)]);
    let cases = [
        ("opaque.slices", 1_000_000_000, 0, good.clone()),
        ("opaque.slices", 10_000_000_000, 1_025, good.clone()),
        ("max_id", 15_999_999, 16, good.clone()),
        ("max_id", 0, 1, good.clone()),
        ("max_id", -5, 1, good.clone()),
        ("key", 1_000_000_000, 16, vec![]),
        ("key", 1_000_000_000, 16, keys(&[(1, 1)])),
        ("key", 1_000_000_000, 16, keys(&[(0, 1), (5, 1), (5, 2)])),
        ("key", 1_000_000_000, 16, keys(&[(0, 1), (5, 1), (4, 2)])),
    ];
    for (field, highest, slices, keys) in cases {
        let made = Permutation::new(highest, Opaque { slices }, &keys, 1);
        let error = made.err().unwrap_or_else(|| panic!("{field} {highest} {slices}"));
        assert_eq!(error.field, Some(field), "{error}");
        assert!(error.message.contains(field), "{error}");
    }
    Permutation::new(16_000_000, SLICED, &good, 1).unwrap();
}

#[test]
fn the_radix_is_the_smallest_that_covers() {
    let cases = [
        (1_000_000, 32),
        (1_048_576, 32),
        (1_048_577, 33),
        (1 << 40, 1_024),
        ((1 << 40) + 1, 1_025),
        (TypeSpec::HIGHEST_ID, 55_109),
    ];
    for (length, radix) in cases {
        assert_eq!(radix_for(length), radix, "{length}");
        let all = u128::from(radix).pow(NUMERALS);
        assert!(all >= length as u128 && all <= u128::from(u64::MAX));
        assert!(u128::from(radix - 1).pow(NUMERALS) < length as u128);
    }
}

#[test]
fn slices_by_cases() {
    // Highest, position, slice, first position of that slice.
    let cases = [
        (16_000_000, 1, 0, 1),
        (16_000_000, 1_000_000, 0, 1),
        (16_000_000, 1_000_001, 1, 1_000_001),
        (16_000_000, 16_000_000, 15, 15_000_001),
        (16_000_000, 16_000_001, 16, 16_000_001),
        // Each one longer, so that the last is shorter.
        (16_000_001, 1_000_001, 0, 1),
        (16_000_001, 16_000_001, 15, 15_000_016),
        (TypeSpec::HIGHEST_ID, TypeSpec::HIGHEST_ID, 15, 8_646_911_284_551_352_321),
    ];
    for (highest, position, slice, start) in cases {
        assert_eq!(slice_of(position, highest, SLICED), slice, "{position}");
        assert_eq!(slice_start(slice, highest, SLICED), start, "{position}");
    }
    assert_eq!(slice_start(16, TypeSpec::HIGHEST_ID, SLICED), i64::MAX);
}

#[test]
fn slices_that_were_free_are_not_known() {
    let highest = 16_000_000;
    // The first free position, and the last one whose key is final.
    let cases = [
        (1, 1_000_000),
        (1_000_000, 1_000_000),
        // The first of a slice counts: a new key never begins there.
        (1_000_001, 2_000_000),
        (16_000_001, 16_000_000),
    ];
    for (next, last_known) in cases {
        let made = Permutation::new(highest, SLICED, &keys(&[(0, 1)]), next).unwrap();
        assert!(made.knows(1) && made.knows(last_known), "{next}");
        assert!(last_known == highest || !made.knows(last_known + 1), "{next}");
    }
}

#[test]
fn neighbours_are_permuted_without_repeating() {
    for (highest, slices) in [(1_000_000, 1), (16_000_001, 16), (1 << 53, 1), (1 << 62, 1_024)] {
        let permutation = permutation(highest, slices, &[(0, 1)]);
        let border = slice_start(1, highest, Opaque { slices }).min(highest);
        let positions: Vec<i64> = (1..=500).chain(border - 300..=border).collect();
        let ids: Vec<i64> = positions.iter().map(|p| permutation.id(*p, None)).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 801, "{highest}");
        assert!(ids.windows(2).filter(|w| w[0] + 1 == w[1]).count() < 5, "{highest}");
        // They tell nothing about how few there are.
        let length = slice_length(highest, Opaque { slices });
        let upper = ids.iter().filter(|id| **id % length > length / 2).count();
        assert!((300..=500).contains(&upper), "{upper} of 801");
    }
}

/// What is permuted to the first place outside of the slice must walk on.
#[test]
fn nothing_is_permuted_out_of_its_slice() {
    let mut walked = 0;
    for (highest, slices) in [(1_000_000, 1), (16_000_001, 16), (1_000_000_000_000, 16)] {
        for seed in 0..8 {
            let permutation = permutation(highest, slices, &[(0, seed)]);
            let length = slice_length(highest, Opaque { slices });
            let outside = numerals(length as u64, permutation.radix);
            let cipher = &permutation.ciphers[0].1;
            let before = cipher.decrypt(&tweak(0, None), &outside).unwrap();
            let position = number(before, permutation.radix) as i64 + 1;
            if position <= length {
                assert!((1..=length).contains(&permutation.id(position, None)), "{highest}");
                walked += 1;
            }
        }
    }
    assert!(walked > 12, "{walked}");
}

#[test]
fn keys_shards_and_slices_differ() {
    let highest = 32_000_000;
    let ids = |seed, shard, from: i64| {
        let permutation = permutation(highest, 16, &[(0, seed)]);
        (from..from + 200).map(|p| permutation.id(p, shard) - from).collect::<Vec<_>>()
    };
    let all = [
        ids(1, None, 1),
        ids(2, None, 1),
        ids(1, Some(0), 1),
        ids(1, Some(1), 1),
        ids(1, None, 2_000_001),
    ];
    for (a, first) in all.iter().enumerate() {
        for second in &all[a + 1..] {
            let same = first.iter().zip(second).filter(|(a, b)| a == b).count();
            assert!(same < 5, "{same}");
        }
    }
}

/// Any limits that are legal, and a position within them.
fn a_place() -> impl Strategy<Value = (i64, u16, i64)> {
    (1u16..=Opaque::MAX_SLICES, 1.0f64..9.22e12, 0i64..1_024)
        .prop_map(|(slices, times, more)| {
            // Logarithmically, so that short slices come too.
            let least = Opaque::SMALLEST_SLICE * i64::from(slices);
            let most = TypeSpec::HIGHEST_ID as f64 / least as f64;
            let highest = (least as f64 * most.powf(times.ln() / 9.22e12f64.ln())) as i64;
            (highest.saturating_add(more).clamp(least, TypeSpec::HIGHEST_ID), slices)
        })
        .prop_flat_map(|(highest, slices)| {
            let near_an_end = prop_oneof![1..=1_000_000i64, highest - 1_100..=highest, 1..=highest];
            (Just(highest), Just(slices), near_an_end)
        })
}

proptest! {
    #[test]
    fn ids_stay_in_their_slice_and_can_be_turned_back(
        (highest, slices, position) in a_place(),
        shard in prop::option::of(0u8..64),
        rotated in 1i64..1_024,
    ) {
        let opaque = Opaque { slices };
        let permutation = permutation(highest, slices, &[(0, 1), (rotated, 2)]);
        let id = permutation.id(position, shard);
        prop_assert!((1..=highest).contains(&id));
        prop_assert_eq!(slice_of(id, highest, opaque), slice_of(position, highest, opaque));
        prop_assert_eq!(permutation.position(id, shard), position);
        // And the other way round: each id has a position.
        let back = permutation.position(position, shard);
        prop_assert_eq!(permutation.id(back, shard), position);
    }

    /// A rotation as a store does it, and a node that may not have seen it.
    #[test]
    fn two_generations_share_no_id(
        (highest, slices, next) in a_place(),
        old in prop::collection::vec(any::<prop::sample::Index>(), 20),
        new in prop::collection::vec(any::<prop::sample::Index>(), 20),
    ) {
        let opaque = Opaque { slices };
        let before = Permutation::new(highest, opaque, &keys(&[(0, 1)]), next).unwrap();
        let from_slice = slice_of(next, highest, opaque) + 1;
        prop_assume!(from_slice < i64::from(slices));
        let start = slice_start(from_slice, highest, opaque);
        let after =
            Permutation::new(highest, opaque, &keys(&[(0, 1), (from_slice, 2)]), start).unwrap();
        prop_assert!(start > next && start <= highest);
        // The old node may use what was allocated before, and nothing after.
        prop_assert!(before.knows(next) && !before.knows(start));
        let pick = |index: prop::sample::Index, from: i64, to: i64| {
            from + index.index((to - from) as usize) as i64
        };
        let used: HashSet<i64> = old
            .into_iter()
            .map(|index| pick(index, 1, start))
            .inspect(|position| assert_eq!(before.id(*position, None), after.id(*position, None)))
            .map(|position| before.id(position, None))
            .collect();
        for index in new {
            prop_assert!(!used.contains(&after.id(pick(index, start, highest + 1), None)));
        }
    }
}
