//! Known mistakes: a service that lacks one of its checks, and the seed that shows it.

use idgen::adapters::memory::Checks;

/// A check, or checks that stand in for each other, taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Redis hands out what was published under another history.
    History,
    /// A publication needs no lock.
    Token,
    /// A publication may lie below what is published.
    Order,
    /// Neither of the two, nor the history: nothing guards a publication.
    Publication,
    /// The store ignores the floor.
    Floor,
    /// The store reads and writes in two transactions.
    RowLock,
    /// Redis answers every lease with "noted".
    Witness,
    /// The store accepts a history that was succeeded, and tells nobody.
    Superseded,
    /// Nodes do not hear that a history was succeeded.
    NobodyAsks,
    /// The store takes back what does not lie at the end.
    Tail,
    /// As that, and Redis does not notice what is given out again.
    TailAndWitness,
    /// A worker id comes without the times that others used of it.
    TenureSpans,
    /// Of two calls with one request key each thinks that it was the first.
    RequestKeys,
}

impl Mistake {
    pub const ALL: [Mistake; 13] = [
        Mistake::History,
        Mistake::Token,
        Mistake::Order,
        Mistake::Publication,
        Mistake::Floor,
        Mistake::RowLock,
        Mistake::Witness,
        Mistake::Superseded,
        Mistake::NobodyAsks,
        Mistake::Tail,
        Mistake::TailAndWitness,
        Mistake::TenureSpans,
        Mistake::RequestKeys,
    ];

    /// The one called `name`, as [`ALL`](Self::ALL) prints it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| format!("{m:?}").eq_ignore_ascii_case(name))
    }

    pub fn checks(self) -> Checks {
        let mut checks = Checks::default();
        match self {
            Mistake::History => checks.history = false,
            Mistake::Token => checks.token = false,
            Mistake::Order => checks.order = false,
            Mistake::Publication => {
                (checks.history, checks.token, checks.order) = (false, false, false);
            }
            Mistake::Floor => checks.floor = false,
            Mistake::RowLock => checks.row_lock = false,
            Mistake::Witness => checks.witness = false,
            Mistake::Superseded => checks.superseded = false,
            Mistake::Tail => checks.tail = false,
            Mistake::TailAndWitness => (checks.tail, checks.witness) = (false, false),
            Mistake::NobodyAsks | Mistake::TenureSpans | Mistake::RequestKeys => {}
        }
        checks
    }
}

/// A mistake, and the seed whose schedule shows it.
pub struct Known {
    pub mistake: Mistake,
    pub seed: u64,
    /// Part of what the checker says.
    pub shows: &'static str,
}

/// The table of docs/simulation.md.
pub const KNOWN: &[Known] = &[];
