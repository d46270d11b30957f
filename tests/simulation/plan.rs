//! What a seed decides before the run: types, faults and their rates, events.
//!
//! Each seed draws which kinds of faults it has at all ("swarm"): a schedule with
//! few kinds goes deeper than one in which everything happens at once.

use idgen::domain::snowflake::Layout;
use idgen::domain::{
    Mode, OnRedisLoss, Opaque, OpaqueKey, Period, TypeName, TypeOptions, TypeSpec,
};

use crate::rng::Rng;

pub const NODES: usize = 3;
pub const INSTANCES: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Strict,
    /// `on_redis_loss = segment`.
    Alone,
    StrictOpaque,
    StrictDaily,
    Segment,
    Opaque,
    Daily,
    Sharded,
    Snowflake,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::Strict,
        Kind::Alone,
        Kind::StrictOpaque,
        Kind::StrictDaily,
        Kind::Segment,
        Kind::Opaque,
        Kind::Daily,
        Kind::Sharded,
        Kind::Snowflake,
    ];

    /// Its ids are texts that begin with a date.
    pub fn is_daily(self) -> bool {
        matches!(self, Kind::Daily | Kind::StrictDaily)
    }

    pub fn is_opaque(self) -> bool {
        matches!(self, Kind::Opaque | Kind::StrictOpaque)
    }

    /// Whether its ids must go up cluster-wide.
    pub fn is_strict(self) -> bool {
        matches!(self, Kind::Strict | Kind::Alone | Kind::StrictDaily)
    }

    /// Whether its positions are its ids, so that a DBA may reserve a block.
    pub fn is_plain(self) -> bool {
        matches!(self, Kind::Strict | Kind::Alone | Kind::Segment)
    }
}

/// A type of the schedule.
#[derive(Clone, Debug)]
pub struct Type {
    pub kind: Kind,
    pub name: TypeName,
    pub instance: usize,
    pub spec: TypeSpec,
}

impl Type {
    /// A type of that kind, with small ranges.
    pub fn draw(kind: Kind, rng: &mut Rng) -> Self {
        let mut options = TypeOptions::default();
        let name = TypeName::parse(&format!("{kind:?}").to_lowercase()).expect("a legal name");
        let mut spec = TypeSpec::new(name.clone());
        spec.min_range = rng.between(50, 150);
        spec.max_range = rng.between(spec.min_range, 400);
        spec.load_interval_ms = rng.pick(&[1, 2_000, 600_000]);
        spec.lock_ttl_ms = rng.between(1_000, 4_000);
        spec.mode = match kind {
            Kind::Strict | Kind::Alone | Kind::StrictOpaque | Kind::StrictDaily => Mode::Strict,
            Kind::Segment | Kind::Opaque | Kind::Daily => Mode::Segment,
            Kind::Sharded => Mode::Sharded,
            Kind::Snowflake => Mode::Snowflake,
        };
        match kind {
            Kind::Alone => options.on_redis_loss = OnRedisLoss::Segment,
            Kind::StrictOpaque | Kind::Opaque => {
                options.opaque = Some(Opaque { slices: 256 });
                spec.max_id = 256_000_000;
                spec.key = Some(OpaqueKey::new([7; 32]));
            }
            Kind::StrictDaily | Kind::Daily => {
                options.calendar = Some(Period::Daily);
                options.format = Some("{date:yyMMdd}{seq}".to_owned());
                spec.max_id = 1_000_000_000;
            }
            Kind::Sharded => options.app_id = Some(3),
            Kind::Snowflake => {
                let worker_bits = rng.pick(&[2, 2, 10]);
                let sequence_bits = 22 - worker_bits;
                options.snowflake =
                    Some(Layout { worker_bits, sequence_bits, ..Layout::default() });
            }
            Kind::Strict | Kind::Segment => {}
        }
        spec.options = options;
        let instance = rng.index(INSTANCES);
        spec.instance = Some(format!("redis{instance}"));
        Type { kind, name, instance, spec }
    }
}

/// What may happen to one call of a node to another part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    Slow,
    FailsAtOnce,
    LostRequest,
    LostAnswer,
    LateEffect,
    CrashBefore,
    CrashAfter,
    LostNews,
}

impl Mishap {
    pub const ALL: [Mishap; 8] = [
        Mishap::Slow,
        Mishap::FailsAtOnce,
        Mishap::LostRequest,
        Mishap::LostAnswer,
        Mishap::LateEffect,
        Mishap::CrashBefore,
        Mishap::CrashAfter,
        Mishap::LostNews,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mishap::Slow => "slow call",
            Mishap::FailsAtOnce => "error at once",
            Mishap::LostRequest => "lost request",
            Mishap::LostAnswer => "lost answer",
            Mishap::LateEffect => "late effect",
            Mishap::CrashBefore => "crash before an effect",
            Mishap::CrashAfter => "crash after an effect",
            Mishap::LostNews => "lost announcement",
        }
    }

    /// The highest rate, per million calls.
    fn most(self) -> u64 {
        match self {
            Mishap::Slow => 60_000,
            Mishap::LostNews => 600_000,
            Mishap::CrashBefore | Mishap::CrashAfter => 1_500,
            _ => 25_000,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Requests,
    Answers,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Store,
    Redis(usize),
}

/// What happens to the world, or what an operator does.
#[derive(Clone, Debug)]
pub enum Event {
    Pause {
        node: usize,
        ms: i64,
    },
    Crash {
        node: usize,
    },
    Stop {
        node: usize,
    },
    Cut {
        node: usize,
        peer: Peer,
        cut: Cut,
        ms: i64,
    },
    RedisDown {
        instance: usize,
        ms: i64,
    },
    RedisEmpty {
        instance: usize,
    },
    RedisOld {
        instance: usize,
    },
    Flush {
        instance: usize,
    },
    Evict {
        of: usize,
    },
    /// The replica takes over. `split_ms`: for so long the old master is still
    /// reached by the nodes of `with_old`.
    Promote {
        instance: usize,
        split_ms: Option<i64>,
        with_old: [bool; NODES],
    },
    /// The old master becomes the master again, with what it had, or a copy.
    Repromote {
        instance: usize,
        with_own: bool,
    },
    StoreDown {
        ms: i64,
    },
    Backup,
    Restore,
    NodeClock {
        node: usize,
        skew_ms: i64,
    },
    StoreClock {
        skew_ms: i64,
    },
    Alter {
        node: usize,
        of: usize,
        max_range: i64,
    },
    Retire {
        node: usize,
        of: usize,
        ms: i64,
    },
    Reserve {
        of: usize,
        count: i64,
    },
    Rotate {
        node: usize,
        of: usize,
    },
    /// A type goes to another Redis instance.
    Migrate {
        node: usize,
        of: usize,
        to: usize,
        abandon: bool,
    },
    /// A migration is undone: one that is under way, or the last one.
    Undo {
        node: usize,
        of: usize,
    },
    /// All types of an instance go to the other one. `ms`: ended after so long,
    /// if at all.
    Drain {
        node: usize,
        from: usize,
        ms: Option<i64>,
    },
}

impl Event {
    /// Whether it may move a type between Redis instances.
    pub fn moves(&self) -> bool {
        matches!(self, Event::Migrate { .. } | Event::Undo { .. } | Event::Drain { .. })
    }
}

/// What is drawn together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Pauses,
    Crashes,
    Stops,
    Cuts,
    RedisDowns,
    RedisLosses,
    Evictions,
    Promotions,
    Splits,
    StoreDowns,
    Rollbacks,
    Clocks,
    Settings,
    Reserves,
    Rotations,
    Migrations,
    Drains,
}

const GROUPS: [Group; 17] = [
    Group::Pauses,
    Group::Crashes,
    Group::Stops,
    Group::Cuts,
    Group::RedisDowns,
    Group::RedisLosses,
    Group::Evictions,
    Group::Promotions,
    Group::Splits,
    Group::StoreDowns,
    Group::Rollbacks,
    Group::Clocks,
    Group::Settings,
    Group::Reserves,
    Group::Rotations,
    Group::Migrations,
    Group::Drains,
];

#[derive(Clone)]
pub struct Plan {
    pub seed: u64,
    pub types: Vec<Type>,
    /// Per million calls, by [`Mishap`].
    pub rates: [u64; Mishap::ALL.len()],
    /// In the order of time, in milliseconds from the start.
    pub events: Vec<(u64, Event)>,
    /// Until then there are faults.
    pub storm_ms: u64,
    pub clients: usize,
    /// The time of day at the start, in milliseconds of the Unix epoch.
    pub start_ms: i64,
    pub idle_ms: u64,
    /// Nothing happens to Redis, so that the store may be rolled back: see the rule
    /// of a single failure.
    pub redis_is_safe: bool,
    pub worker_lease_ms: u64,
}

impl Plan {
    /// The mishaps that it has, per million calls.
    pub fn mishaps(&self) -> Vec<(Mishap, u64)> {
        let all = Mishap::ALL.into_iter().zip(self.rates);
        all.filter(|(_, rate)| *rate > 0).collect()
    }

    /// Whether the type is ever on that instance, as far as the plan goes.
    pub fn touches(&self, of: usize, instance: usize) -> bool {
        self.types[of].instance == instance || self.events.iter().any(|(_, e)| e.moves())
    }

    pub fn draw(seed: u64) -> Self {
        let rng = &mut Rng::new(seed, "plan");
        let mut kinds = Kind::ALL.to_vec();
        let wanted = rng.between(2, 4) as usize;
        while kinds.len() > wanted {
            kinds.remove(rng.index(kinds.len()));
        }
        let types: Vec<Type> = kinds.into_iter().map(|kind| Type::draw(kind, rng)).collect();
        let mut rates = [0; Mishap::ALL.len()];
        for (mishap, rate) in Mishap::ALL.into_iter().zip(&mut rates) {
            if rng.chance(450_000) {
                *rate = mishap.most() / (1 << rng.below(4));
            }
        }
        let storm_ms = rng.between(6_000, 16_000) as u64;
        let redis_is_safe = rng.chance(200_000);
        let events = draw_events(&types, storm_ms, redis_is_safe, rng);
        // Midnight of a day comes within the schedule, now and then.
        let midnight = 20_800 * 86_400_000;
        Plan {
            seed,
            types,
            redis_is_safe,
            rates,
            events,
            storm_ms,
            clients: rng.between(3, 6) as usize,
            start_ms: midnight - rng.between(1, 40_000),
            idle_ms: rng.pick(&[1_000, 3_000, 900_000]),
            worker_lease_ms: rng.pick(&[3_000, 8_000]),
        }
    }
}

fn draw_events(
    types: &[Type],
    storm_ms: u64,
    redis_is_safe: bool,
    rng: &mut Rng,
) -> Vec<(u64, Event)> {
    let mut groups: Vec<Group> = GROUPS.into_iter().filter(|_| rng.chance(250_000)).collect();
    if redis_is_safe {
        groups.extend([Group::Rollbacks; 2]);
        if rng.chance(400_000) {
            groups.extend([Group::Migrations; 2]);
        }
    }
    let mut events = Vec::new();
    for group in groups {
        for _ in 0..rng.between(1, 4) {
            let at = rng.between(300, storm_ms as i64) as u64;
            let later = at + rng.between(100, 4_000) as u64;
            let (node, instance) = (rng.index(NODES), rng.index(INSTANCES));
            let of = rng.index(types.len());
            let ms = rng.between(100, 4_000);
            let event = match group {
                // Longer than any lock.
                Group::Pauses => Event::Pause { node, ms: rng.between(500, 6_000) },
                Group::Crashes => Event::Crash { node },
                Group::Stops => Event::Stop { node },
                Group::Cuts => {
                    let peer = rng.pick(&[Peer::Store, Peer::Redis(0), Peer::Redis(1)]);
                    let cut = rng.pick(&[Cut::Requests, Cut::Answers, Cut::Both]);
                    Event::Cut { node, peer, cut, ms }
                }
                Group::RedisDowns => Event::RedisDown { instance, ms },
                Group::RedisLosses => match rng.below(3) {
                    0 => Event::RedisEmpty { instance },
                    1 => Event::RedisOld { instance },
                    _ => Event::Flush { instance },
                },
                Group::Evictions => Event::Evict { of },
                Group::Promotions => {
                    let with_own = rng.chance(500_000);
                    events.push((later, Event::Repromote { instance, with_own }));
                    Event::Promote { instance, split_ms: None, with_old: [false; NODES] }
                }
                Group::Splits => {
                    let mut with_old = [false; NODES];
                    with_old[node] = true;
                    with_old[rng.index(NODES)] = true;
                    let split_ms = Some(rng.between(1_000, 6_000));
                    Event::Promote { instance, split_ms, with_old }
                }
                Group::StoreDowns => Event::StoreDown { ms },
                Group::Rollbacks => {
                    events.push((at, Event::Backup));
                    events.push((later, Event::Restore));
                    continue;
                }
                Group::Clocks => {
                    let most = rng.pick(&[500, 5_000, 3_600_000]);
                    let skew_ms = rng.between(-most, most);
                    match rng.below(3) {
                        0 => Event::StoreClock { skew_ms },
                        _ => Event::NodeClock { node, skew_ms },
                    }
                }
                Group::Settings => match rng.below(3) {
                    0 => Event::Retire { node, of, ms },
                    _ => Event::Alter { node, of, max_range: rng.between(150, 400) },
                },
                Group::Reserves => Event::Reserve { of, count: rng.between(1, 500) },
                Group::Rotations => Event::Rotate { node, of },
                Group::Migrations if rng.chance(200_000) => Event::Undo { node, of },
                Group::Migrations => {
                    let abandon = rng.chance(100_000);
                    // Often it comes back soon.
                    let back = Event::Migrate { node, of, to: 1 - instance, abandon: false };
                    events.push((later, back));
                    Event::Migrate { node, of, to: instance, abandon }
                }
                Group::Drains => {
                    let ms = rng.chance(500_000).then_some(ms);
                    Event::Drain { node, from: instance, ms }
                }
            };
            events.push((at, event));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events
}
