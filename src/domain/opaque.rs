//! Opaque ids: a keyed, reversible permutation of `1..=highest`.
//!
//! `1..=highest` is cut into equal slices. Slice after slice, the positions of
//! a slice are permuted within that slice by FF1 (NIST SP 800-38G) over four
//! numerals of the smallest radix that covers it, with cycle walking for what
//! falls outside. So ids have the same width as positions, tell nothing about
//! how many there are within a slice, and can be turned back.
//!
//! Each slice has one key for ever: a new key begins at the next slice, in the
//! same transaction that moves the next position there. As ids of different
//! slices differ whatever the keys, a rotation cannot repeat an id. A node that
//! knows the type as it was before may not use slices that were free then; see
//! [`Permutation::knows`].

use std::fmt;

use aes::Aes256;
use fpe::ff1::{FF1, FlexibleNumeralString};

use super::{Error, Opaque};

/// A secret of 256 bits. Shows itself to nobody: `Debug` prints stars.
#[derive(Clone, PartialEq, Eq)]
pub struct OpaqueKey([u8; 32]);

impl OpaqueKey {
    /// From its bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        OpaqueKey(bytes)
    }

    /// From 64 hexadecimal digits; the error names the field `key` and does not
    /// repeat the text.
    pub fn from_hex(text: &str) -> Result<Self, Error> {
        let wrong = || Error::invalid("key", "key must be 64 hexadecimal digits (256 bits)");
        let mut digits = Vec::with_capacity(64);
        for c in text.chars().take(65) {
            digits.push(c.to_digit(16).ok_or_else(wrong)? as u8);
        }
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(wrong());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Ok(OpaqueKey(bytes))
    }

    /// As 64 lower-case hexadecimal digits, for the range store alone.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for OpaqueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpaqueKey(***)")
    }
}

/// A key and the first slice that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceKey {
    /// The first slice; it holds until the next key's first slice.
    pub from_slice: i64,
    /// The key.
    pub key: OpaqueKey,
}

/// See the module.
pub struct Permutation {
    highest: i64,
    opaque: Opaque,
    /// Numerals go from 0 to one below it.
    radix: u32,
    /// By their first slices, ascending from 0.
    ciphers: Vec<(i64, FF1<Aes256>)>,
    /// The slice of the first position that was free.
    last_known_slice: i64,
}

/// How many numerals FF1 permutes. An even number, so that its two halves are
/// equally long; two would be too few for long slices, as FF1 allows a radix of
/// 2^16 at most.
const NUMERALS: u32 = 4;

impl Permutation {
    /// The permutation of `1..=highest` with `keys`, in the order of their
    /// slices and beginning with slice 0. `next_position` is the first position
    /// that was free when the keys were read.
    ///
    /// Fails with `key` where the keys are not so, with `max_id` or
    /// `opaque.slices` for settings that make no sense.
    pub fn new(
        highest: i64,
        opaque: Opaque,
        keys: &[SliceKey],
        next_position: i64,
    ) -> Result<Self, Error> {
        if opaque.slices == 0 || opaque.slices > Opaque::MAX_SLICES {
            return Err(Error::invalid(
                "opaque.slices",
                format!(
                    "opaque.slices {} is out of range: it must be from 1 to {}",
                    opaque.slices,
                    Opaque::MAX_SLICES
                ),
            ));
        }
        if highest / i64::from(opaque.slices) < Opaque::SMALLEST_SLICE {
            return Err(Error::invalid(
                "max_id",
                format!(
                    "max_id leaves {highest} positions, too few for {} slices of {} or more",
                    opaque.slices,
                    Opaque::SMALLEST_SLICE
                ),
            ));
        }
        let starts = keys.iter().map(|key| key.from_slice);
        if keys.first().is_none_or(|key| key.from_slice != 0) || !starts.is_sorted_by(|a, b| a < b)
        {
            return Err(Error::invalid(
                "key",
                "key is missing: the keys of an opaque type must begin with slice 0 and ascend",
            ));
        }
        let radix = radix_for(slice_length(highest, opaque));
        let ciphers = keys
            .iter()
            .map(|slice| {
                let cipher = FF1::new(&slice.key.0, radix).expect("the radix is from 32 to 2^16");
                (slice.from_slice, cipher)
            })
            .collect();
        let last_known_slice = slice_of(next_position.max(1), highest, opaque);
        Ok(Permutation { highest, opaque, radix, ciphers, last_known_slice })
    }

    /// Whether the key of the slice of `position` is final: slices after that
    /// of the first free position may still get another key, so the type must
    /// be read again before a position there is used.
    pub fn knows(&self, position: i64) -> bool {
        slice_of(position, self.highest, self.opaque) <= self.last_known_slice
    }

    /// The id at `position` (1 to `highest`). `shard` keeps the permutations of
    /// the shards apart.
    pub fn id(&self, position: i64, shard: Option<u8>) -> i64 {
        self.walk(position, shard, FF1::encrypt)
    }

    /// The position of `id` (1 to `highest`).
    pub fn position(&self, id: i64, shard: Option<u8>) -> i64 {
        self.walk(id, shard, FF1::decrypt)
    }

    /// Permutes `value` within its slice. What falls outside of the slice is
    /// permuted again until it falls inside, which keeps it a permutation; the
    /// radix is so close that this takes less than 1.2 steps on average.
    fn walk(&self, value: i64, shard: Option<u8>, step: Step) -> i64 {
        debug_assert!((1..=self.highest).contains(&value));
        let slice = slice_of(value, self.highest, self.opaque);
        let start = slice_start(slice, self.highest, self.opaque);
        // The last slice may be shorter, by less than the number of slices.
        let length = slice_length(self.highest, self.opaque).min(self.highest - start + 1) as u64;
        let newest = self.ciphers.partition_point(|(from_slice, _)| *from_slice <= slice) - 1;
        let cipher = &self.ciphers[newest].1;
        let tweak = tweak(slice, shard);
        let mut offset = (value - start) as u64;
        loop {
            let numerals = numerals(offset, self.radix);
            let permuted = step(cipher, &tweak, &numerals)
                .expect("four numerals of the radix are enough, as slices are long enough");
            offset = number(permuted, self.radix);
            if offset < length {
                return start + offset as i64;
            }
        }
    }
}

/// Without the ciphers, which hold the keys.
impl fmt::Debug for Permutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permutation")
            .field("highest", &self.highest)
            .field("opaque", &self.opaque)
            .field("last_known_slice", &self.last_known_slice)
            .finish_non_exhaustive()
    }
}

type Step = fn(
    &FF1<Aes256>,
    &[u8],
    &FlexibleNumeralString,
) -> Result<FlexibleNumeralString, fpe::ff1::NumeralStringError>;

/// Slice and shard, so that no two slices of one key, and no two shards, are
/// permuted alike. Ids depend on it: it stays as it is.
fn tweak(slice: i64, shard: Option<u8>) -> [u8; 10] {
    let mut tweak = [0; 10];
    tweak[..8].copy_from_slice(&slice.to_be_bytes());
    tweak[8] = u8::from(shard.is_some());
    tweak[9] = shard.unwrap_or(0);
    tweak
}

/// The smallest radix whose four numerals tell `length` numbers apart.
fn radix_for(length: i64) -> u32 {
    let length = length as u128;
    let root = (length as f64).sqrt().sqrt() as u128;
    // Doubles are not exact up here.
    let mut radix = root.saturating_sub(2).max(2);
    while radix.pow(NUMERALS) < length {
        radix += 1;
    }
    radix as u32
}

fn numerals(mut number: u64, radix: u32) -> FlexibleNumeralString {
    let radix = u64::from(radix);
    let mut numerals = vec![0; NUMERALS as usize];
    for numeral in numerals.iter_mut().rev() {
        *numeral = (number % radix) as u16;
        number /= radix;
    }
    FlexibleNumeralString::from(numerals)
}

fn number(numerals: FlexibleNumeralString, radix: u32) -> u64 {
    // At most 55 110 to the fourth power, which is below 2^64: see the tests.
    Vec::from(numerals)
        .into_iter()
        .fold(0, |number, numeral| number * u64::from(radix) + u64::from(numeral))
}

/// The slice that holds `position`, from 0.
pub fn slice_of(position: i64, highest: i64, opaque: Opaque) -> i64 {
    (position - 1) / slice_length(highest, opaque)
}

/// The first position of `slice`; for one after the last, where it would be.
pub fn slice_start(slice: i64, highest: i64, opaque: Opaque) -> i64 {
    slice_length(highest, opaque).saturating_mul(slice).saturating_add(1)
}

fn slice_length(highest: i64, opaque: Opaque) -> i64 {
    let slices = i64::from(opaque.slices.max(1));
    highest / slices + i64::from(highest % slices > 0)
}

#[cfg(test)]
mod tests;
