//! Randomness, passed in so that a simulation can repeat a run.

/// A source of random numbers.
pub trait Entropy: Send + Sync {
    /// 128 bits that nobody else has drawn and nobody can guess.
    fn random_u128(&self) -> u128;

    /// A token that is unique across the cluster: 32 hexadecimal digits.
    fn token(&self) -> String {
        format!("{:032x}", self.random_u128())
    }
}
