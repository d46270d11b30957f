//! Randomness from one seed.

use std::sync::Mutex;

use idgen::ports::Entropy;

/// SplitMix64: small, and good enough to draw schedules.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream called `name` of a seed. Streams are independent, so that what is
    /// drawn in one does not move the others.
    pub fn new(seed: u64, name: &str) -> Self {
        let mixed = name.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut rng = Rng(mixed);
        rng.draw();
        rng
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n - 1`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(n)) >> 64) as u64
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    /// True in `per_million` of a million cases.
    pub fn chance(&mut self, per_million: u64) -> bool {
        self.below(1_000_000) < per_million
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }
}

/// The port, from a stream.
pub struct SeededEntropy(Mutex<Rng>);

impl SeededEntropy {
    pub fn new(seed: u64, name: &str) -> Self {
        SeededEntropy(Mutex::new(Rng::new(seed, name)))
    }
}

impl Entropy for SeededEntropy {
    fn random_u128(&self) -> u128 {
        let mut rng = self.0.lock().unwrap();
        u128::from(rng.draw()) << 64 | u128::from(rng.draw())
    }
}
