//! The checks that keep ids unique and in order, to be removed one by one.

/// Which checks the memory adapters make. All of them, by [`Default`]; without one
/// an adapter shows what would happen to a service that lacks it. For simulations
/// (docs/simulation.md), never for use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// A take looks whether the range was published under the history of now; a
    /// publication, whether it is the history that the refill began under.
    pub history: bool,
    /// A publication needs the lock.
    pub token: bool,
    /// A publication lies above what is published.
    pub order: bool,
    /// The store starts ranges at the floor at least.
    pub floor: bool,
    /// The store reads and writes a type in one transaction. Without: it writes
    /// what it computed from an earlier read, a round trip later.
    pub row_lock: bool,
    /// A leased range is compared with those that were noted before.
    pub witness: bool,
    /// The store refuses a history that was succeeded by another.
    pub superseded: bool,
    /// Only what lies at the end of a sequence goes back to the store, and only what
    /// was noted last is withdrawn.
    pub tail: bool,
    /// A seal closes a type: nothing is taken any more, and what is left is dead.
    pub seals: bool,
    /// The store refuses an assignment of a migration that is over.
    pub generation: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Checks {
            history: true,
            token: true,
            order: true,
            floor: true,
            row_lock: true,
            witness: true,
            superseded: true,
            tail: true,
            seals: true,
            generation: true,
        }
    }
}
