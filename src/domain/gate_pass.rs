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
