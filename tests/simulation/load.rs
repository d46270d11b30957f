//! Clients: they call any node for ids of any type, all the time.

use std::sync::Arc;
use std::time::Duration;

use idgen::domain::gate_pass::shard_of;
use idgen::domain::{Error, IdRange};
use idgen::service::api::{IdApi, Order};
use tokio::time::{Instant, sleep};

use crate::checker::Call;
use crate::plan::{INSTANCES, Kind, NODES};
use crate::rng::Rng;
use crate::world::{Line, Up, World};

/// How long a node may go on with a server that was replaced, after the store
/// heard of the new one: a second, as docs/redis.md says, and the time of a call.
const LAST_SECOND: Duration = Duration::from_millis(1_100);

/// One client, for ever.
pub async fn client(world: Arc<World>, number: usize) {
    let mut rng = Rng::new(world.plan.seed, &format!("client {number}"));
    loop {
        sleep(Duration::from_millis(rng.between(1, 150) as u64)).await;
        let Some(up) = world.up(rng.index(NODES)) else { continue };
        let of = rng.index(world.plan.types.len());
        let order = Wish::draw(&world, of, &mut rng);
        let _ = ask(&world, &up, of, &order).await;
    }
}

/// What a client wants.
pub struct Wish {
    count: i64,
    pass: Option<String>,
    key: Option<String>,
    as_text: bool,
    as_lease: bool,
}

impl Wish {
    /// The simplest call.
    pub fn one(kind: Kind) -> Self {
        Wish {
            count: 1,
            pass: (kind == Kind::Sharded).then(|| "pass-0".to_owned()),
            key: None,
            as_text: kind.is_daily(),
            as_lease: false,
        }
    }

    /// The same for `count` ids.
    pub fn of(kind: Kind, count: i64) -> Self {
        Wish { count, ..Wish::one(kind) }
    }

    fn draw(world: &World, of: usize, rng: &mut Rng) -> Self {
        let kind = world.plan.types[of].kind;
        let mut wish = Wish::one(kind);
        let most = match kind {
            Kind::Opaque | Kind::StrictOpaque | Kind::Sharded => 6,
            _ => rng.pick(&[1, 1, 10, 40, 120]),
        };
        wish.count = rng.between(1, most);
        if kind == Kind::Sharded {
            wish.pass = Some(format!("pass-{}", rng.below(4)));
        }
        if kind == Kind::Segment && rng.chance(100_000) {
            wish.as_lease = true;
            wish.count = rng.between(1, 50);
        } else if rng.chance(100_000) {
            // Everything else about a call with the same key is the same.
            let number = rng.between(1, 3);
            wish = Wish { count: number, ..Wish::one(kind) };
            let second = world.began.elapsed().as_secs();
            wish.key = Some(format!("key-{number}-{second}"));
        } else if kind != Kind::Snowflake && !kind.is_opaque() {
            wish.as_text |= rng.chance(100_000);
        }
        wish
    }
}

/// Asks a node, and lets the checker see what came. `None`: no answer, because the
/// node is gone.
pub async fn ask(world: &World, up: &Up, of: usize, wish: &Wish) -> Option<Result<(), Error>> {
    let Up { line, service } = up;
    let of_type = &world.plan.types[of];
    let kind = of_type.kind;
    let shard = wish.pass.as_deref().map(shard_of);
    let began = Instant::now();
    let (node, life) = (line.node, line.life);
    let floors = world.state().checker.floors(of, node, life, shard);
    let call = Call { of, node, life, shard, key: wish.key.clone(), floors };
    let name = of_type.name.as_str();
    let answer = async {
        let order = Order {
            count: wish.count,
            gate_pass: wish.pass.as_deref(),
            request_key: wish.key.as_deref(),
        };
        let answer = if wish.as_lease {
            let lease = service.lease_range(name, wish.count, 1_000).await;
            lease.map(|l| vec![IdRange::new(l.first, l.first + l.count).expect("not empty")])
        } else if wish.as_text {
            let texts = service.next_string_ids(name, order, true).await;
            texts.map(|texts| texts.iter().map(|text| number_of(kind, text)).collect())
        } else if wish.count == 1 && wish.key.is_none() && wish.pass.is_none() {
            service.next_id(name).await.map(|id| vec![one(id)])
        } else {
            service.next_ids(name, order).await
        };
        // The answer of a node that sleeps comes when it wakes up.
        line.alive().await;
        answer
    };
    let answer = tokio::select! {
        biased;
        () = line.dead.cancelled() => return None,
        answer = answer => answer,
    };
    let paused = line.health.lock().unwrap().paused_at.is_some_and(|until| until >= began);
    if !paused {
        world.state().checker.took(of, began.elapsed());
    }
    match &answer {
        Ok(runs) => {
            let (first, last) = (runs[0].start(), runs[runs.len() - 1].last());
            world.note(format_args!("n{node}.{life} gives {name} {first}..={last}"));
            let exempt = is_exempt(world, line, of, began);
            let keys_kept = !world.is_redis_lost(of);
            let mut state = world.state();
            let keys_kept = keys_kept
                && !state.abandoned.contains(&of_type.name)
                && !state.keys_forgotten.contains(&of_type.name);
            let count: u64 = runs.iter().map(|run| run.len()).sum();
            if count != wish.count as u64 && !wish.as_lease {
                state.checker.violate(format!("{name}: {count} ids instead of {}", wish.count));
            }
            state.checker.returned(&call, runs.clone(), exempt, keys_kept);
        }
        Err(error) => {
            world.note(format_args!("n{node}.{life} gives no {name}: {}", error.code.as_str()));
            let mut state = world.state();
            // It cannot tell what it gave with a key that the store has forgotten.
            let forgot = state.faults.contains_key("store rolled back");
            let may_conflict = forgot && wish.key.is_some() && kind.is_opaque();
            state.checker.failed(of, error, may_conflict);
        }
    }
    if world.violation().is_some() {
        world.over.cancel();
    }
    Some(answer.map(|_| ()))
}

/// Whether the order across the cluster is not promised to a call that began then
/// and ends now.
fn is_exempt(world: &World, line: &Line, of: usize, began: Instant) -> bool {
    let of_type = &world.plan.types[of];
    // Since nodes went on alone their ids are in order on each node only, and some
    // may do so still, or have been lost with what only they knew.
    if of_type.kind == Kind::Alone && world.is_redis_lost(of) {
        return true;
    }
    if world.state().out_of_order.contains(&of_type.name) {
        return true;
    }
    let health = *line.health.lock().unwrap();
    let used_old = (0..INSTANCES)
        .filter(|i| world.plan.touches(of, *i))
        .any(|i| health.stale_at[i].is_some_and(|at| at >= began));
    let recorded = world.recorded_at(&of_type.name);
    // The second begins when the node can hear of it.
    let within = |since: Option<Instant>| {
        since.max(health.trouble_at).is_none_or(|at| Instant::now() <= at + LAST_SECOND)
    };
    let unsealed_at = world.state().unsealed_at.get(&of_type.name).copied();
    (used_old && within(recorded)) || (unsealed_at.is_some() && within(unsealed_at))
}

fn one(id: i64) -> IdRange {
    IdRange::new(id, id + 1).expect("ids are positive")
}

/// A text as a number that goes up as its position does.
fn number_of(kind: Kind, text: &str) -> IdRange {
    let number = |digits: &str| digits.parse::<i64>().expect("digits");
    match kind.is_daily() {
        true => one(number(&text[..6]) * 10_000_000_000 + number(&text[6..])),
        false => one(number(text)),
    }
}
