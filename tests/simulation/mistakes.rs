//! Known mistakes: a service that lacks one of its checks, and the seed that shows it.

use idgen::adapters::memory::Checks;

use crate::plan::{Event, Kind, Plan};
use crate::run::run;

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
    /// A new connection leads to where the old one led.
    Reset,
    /// Of two calls with one request key each thinks that it was the first.
    RequestKeys,
    /// A sealed type still hands out.
    Seals,
    /// The store accepts the assignment of a migration that is over.
    LateAssignment,
    /// Who assigned a type thinks that it may publish what was left.
    KeepsRest,
    /// The new instance does not hear what was given away on the old one.
    Adoption,
    /// A seal of a migration that the store has forgotten counts as outdated.
    Forgotten,
}

impl Mistake {
    pub const ALL: [Mistake; 19] = [
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
        Mistake::Reset,
        Mistake::RequestKeys,
        Mistake::Seals,
        Mistake::LateAssignment,
        Mistake::KeepsRest,
        Mistake::Adoption,
        Mistake::Forgotten,
    ];

    /// The one called `name`, as [`ALL`](Self::ALL) prints it.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|m| format!("{m:?}").eq_ignore_ascii_case(name))
    }

    /// Whether a schedule can show it at all, so that a search need not run it.
    pub fn may_show(self, plan: &Plan) -> bool {
        let kind = |wanted: &[Kind]| plan.types.iter().any(|t| wanted.contains(&t.kind));
        let event = |is: fn(&Event) -> bool| plan.events.iter().any(|(_, event)| is(event));
        let rolled_back = plan.redis_is_safe && event(|e| matches!(e, Event::Restore));
        let strict = kind(&[Kind::Strict, Kind::StrictDaily, Kind::StrictOpaque, Kind::Alone]);
        let leased = kind(&[Kind::Segment, Kind::Daily, Kind::Sharded, Kind::Opaque]);
        match self {
            Mistake::Floor => rolled_back,
            Mistake::Witness => rolled_back && leased,
            Mistake::TenureSpans => {
                let moved = event(|e| matches!(e, Event::NodeClock { .. }));
                kind(&[Kind::Snowflake]) && (moved || rolled_back)
            }
            Mistake::Superseded | Mistake::NobodyAsks => {
                strict && event(|e| matches!(e, Event::Promote { split_ms: Some(_), .. }))
            }
            Mistake::History => {
                let old = |e: &Event| matches!(e, Event::RedisOld { .. } | Event::Promote { .. });
                strict && event(old)
            }
            Mistake::Token | Mistake::Order | Mistake::Publication => {
                strict && event(|e| matches!(e, Event::Pause { .. }))
            }
            Mistake::Tail | Mistake::TailAndWitness => leased && plan.idle_ms < 900_000,
            Mistake::Seals | Mistake::LateAssignment | Mistake::KeepsRest => {
                strict && event(Event::moves)
            }
            Mistake::Adoption => rolled_back && leased && event(Event::moves),
            Mistake::Forgotten => rolled_back && event(Event::moves),
            Mistake::RowLock | Mistake::RequestKeys | Mistake::Reset => true,
        }
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
            Mistake::Seals => checks.seals = false,
            Mistake::LateAssignment => checks.generation = false,
            // On the lines.
            Mistake::NobodyAsks
            | Mistake::TenureSpans
            | Mistake::Reset
            | Mistake::RequestKeys
            | Mistake::KeepsRest
            | Mistake::Adoption
            | Mistake::Forgotten => {}
        }
        checks
    }
}

/// A mistake, and where it was seen.
pub struct Known {
    pub mistake: Mistake,
    /// Seeds that showed it last time. A change of the service, or of what is drawn,
    /// moves them: others are tried then.
    pub seeds: &'static [u64],
    /// Part of what the checker says.
    pub shows: &'static str,
}

/// So many schedules are tried for each mistake, beside its own seeds.
const TRIES: usize = 150;

impl Known {
    /// The first seed whose schedule shows the mistake, and is fine without it; with
    /// what the checker says, and how many were tried.
    pub fn find(&self) -> Option<(u64, String, usize)> {
        let others = (0..).filter(|seed| self.mistake.may_show(&Plan::draw(*seed)));
        let seeds = self.seeds.iter().copied().chain(others.take(TRIES));
        for (tried, seed) in seeds.enumerate() {
            let plan = Plan::draw(seed);
            let found = run(&plan, Some(self.mistake), false).violation;
            let Some(found) = found.filter(|found| found.contains(self.shows)) else { continue };
            if run(&plan, None, false).violation.is_none() {
                return Some((seed, found, tried + 1));
            }
        }
        None
    }
}

/// The table of docs/simulation.md, but for the schedules by hand.
pub const KNOWN: &[Known] = &[
    Known { mistake: Mistake::Witness, seeds: &[17], shows: "issued twice" },
    Known { mistake: Mistake::History, seeds: &[4], shows: "" },
    Known { mistake: Mistake::Publication, seeds: &[14], shows: "" },
    Known { mistake: Mistake::Superseded, seeds: &[25], shows: "had been returned" },
    Known { mistake: Mistake::NobodyAsks, seeds: &[47], shows: "had been returned" },
    Known { mistake: Mistake::RequestKeys, seeds: &[95], shows: "request key" },
];
