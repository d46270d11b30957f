//! Which shard a caller belongs to.

/// How many shards a sharded type has.
pub const SHARDS: u8 = 64;

/// The shard of a gate pass, 0 to 63: the absolute value of Java's
/// `String.hashCode`, modulo 64. The hash runs over UTF-16 units and wraps in 32
/// bits; its absolute value is taken without overflow, so `Integer.MIN_VALUE`,
/// whose `Math.abs` is negative in Java, is shard 0.
pub fn shard_of(gate_pass: &str) -> u8 {
    let hash = gate_pass
        .encode_utf16()
        .fold(0i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    (hash.unsigned_abs() % u32::from(SHARDS)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The hashes are those of Java's `String.hashCode`, computed by another program.
    #[test]
    fn shards_of_known_hashes() {
        let cases = [
            ("", 0),
            ("a", 97),
            ("hello", 99_162_322),
            // The usual example of two texts with one hash.
            ("Aa", 2_112),
            ("BB", 2_112),
            ("user:10086", 812_501_056),
            ("订单", 1_129_459),
            // A surrogate pair: 31 × 0xd83d + 0xde00.
            ("\u{1f600}", 1_772_899),
            // Integer.MIN_VALUE, which has no absolute value of 32 bits.
            ("polygenelubricants", i32::MIN),
            ("The quick brown fox jumps over the lazy dog", -609_428_141),
        ];
        for (gate_pass, hash) in cases {
            let hash: i32 = hash;
            let shard = (i64::from(hash).abs() % 64) as u8;
            assert_eq!(shard_of(gate_pass), shard, "{gate_pass}");
        }
        assert_eq!(shard_of("hello"), 18);
        assert_eq!(shard_of("polygenelubricants"), 0);
    }

    proptest! {
        #[test]
        fn every_text_has_a_shard(gate_pass in ".{0,200}") {
            prop_assert!(shard_of(&gate_pass) < SHARDS);
        }
    }
}
