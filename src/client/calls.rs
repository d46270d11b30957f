//! The calls, async. A call asks one node after another until one answers:
//!
//! 1. It begins with the nodes in turn, so that the load is spread. Those that failed
//!    lately come last, but for one call now and then that finds out.
//! 2. Of the time that is left, each node gets an even share with those behind it, so
//!    that one that hangs leaves time for the others.
//! 3. It goes on to the next node if the connection fails, if the answer is nonsense,
//!    and if the node refuses in a way that another may not (`retriable`). Every call
//!    may be repeated: an answer that was lost cost ids at most.
//!
//! Each node is asked once per call (twice where a connection had been closed since its
//! last use). Waiting until nodes come back is the caller's decision.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::node::Node;
use super::wire::Call;
use super::{Config, Error, LeaseConfig, LocalLease, Order};
use crate::thrift_api::{
    DecodedId, IdGenServiceDecodeIdArgs, IdGenServiceDescribeTypeArgs, IdGenServiceIssueIdsArgs,
    IdGenServiceIssueStringIdsArgs, IdGenServiceLeaseRangeArgs, IdGenServiceNextIdArgs,
    IdGenServiceNextIdsArgs, IdGenServiceNextShardedIdArgs, IdGenServiceNextStringIdArgs,
    IdGenServiceNodeStatusArgs, IdRange, NodeInfo, RangeLease, TypeInfo,
};

#[derive(Debug)]
struct Inner {
    config: Config,
    nodes: Vec<Node>,
    /// Counts the calls, so that they begin with the nodes in turn.
    turn: AtomicUsize,
}

/// A client of a cluster. Clones share connections; one for a whole program will do.
///
/// Its calls want a tokio runtime with I/O and time; [`BlockingClient`] brings its own.
/// A call that is dropped before its end ends at once, and its connection with it.
///
/// [`BlockingClient`]: super::BlockingClient
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    deadline: Duration,
}

impl Client {
    /// A client of these nodes. Connects with the first call.
    ///
    /// # Errors
    ///
    /// [`Error::Config`].
    pub fn new(config: Config) -> Result<Client, Error> {
        config.validate()?;
        let nodes = config.nodes.iter().map(|name| Node::new(name, config.max_connections));
        let nodes: Vec<_> = nodes.collect();
        // Clients that start together do not all begin with the same node.
        let turn = AtomicUsize::new(RandomState::new().hash_one(0) as usize % nodes.len());
        let deadline = config.deadline;
        Ok(Client { inner: Arc::new(Inner { config, nodes, turn }), deadline })
    }

    /// The same client, on the same connections, with another time for each call.
    pub fn with_deadline(&self, deadline: Duration) -> Client {
        Client { inner: Arc::clone(&self.inner), deadline }
    }

    /// How long a call may take.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The next id of a type.
    pub async fn next_id(&self, id_type: &str) -> Result<i64, Error> {
        let call = IdGenServiceNextIdArgs { id_type: id_type.to_owned() };
        self.call(None, &call, |id| id_defect(*id)).await.map(|(id, _)| id)
    }

    /// The next `count` ids of a type, 1 to 100 000, as ranges in the order of issue.
    pub async fn next_ids(&self, id_type: &str, count: u32) -> Result<Vec<IdRange>, Error> {
        let id_type = id_type.to_owned();
        let call = IdGenServiceNextIdsArgs { id_type, count: saturated(count) };
        self.call(None, &call, |ids| ranges_defect(ids, count)).await.map(|(ids, _)| ids)
    }

    /// The next id of a type as text, with the type's prefix if `with_prefix`.
    pub async fn next_string_id(&self, id_type: &str, with_prefix: bool) -> Result<String, Error> {
        let call = IdGenServiceNextStringIdArgs { id_type: id_type.to_owned(), with_prefix };
        self.call(None, &call, |text| texts_defect(std::slice::from_ref(text), 1))
            .await
            .map(|(text, _)| text)
    }

    /// The next `count` ids of a type as texts, 1 to 10 000.
    pub async fn next_string_ids(
        &self,
        id_type: &str,
        count: u32,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        self.issue_strings(id_type, &Order::of(count), with_prefix).await
    }

    /// The next id of a sharded type, from the shard of `gate_pass`.
    pub async fn next_sharded_id(&self, id_type: &str, gate_pass: &str) -> Result<i64, Error> {
        let (id_type, gate_pass) = (id_type.to_owned(), gate_pass.to_owned());
        let call = IdGenServiceNextShardedIdArgs { id_type, gate_pass };
        self.call(None, &call, |id| id_defect(*id)).await.map(|(id, _)| id)
    }

    /// The ids of an order: several, perhaps with a request key that makes the call
    /// repeatable, perhaps from a shard.
    pub async fn issue(&self, id_type: &str, order: &Order) -> Result<Vec<IdRange>, Error> {
        let call = IdGenServiceIssueIdsArgs {
            id_type: id_type.to_owned(),
            count: saturated(order.count),
            request_key: order.request_key.clone(),
            gate_pass: order.gate_pass.clone(),
        };
        self.call(None, &call, |ids| ranges_defect(ids, order.count)).await.map(|(ids, _)| ids)
    }

    /// The ids of an order as texts, at most 10 000.
    pub async fn issue_strings(
        &self,
        id_type: &str,
        order: &Order,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        let call = IdGenServiceIssueStringIdsArgs {
            id_type: id_type.to_owned(),
            count: saturated(order.count),
            with_prefix,
            request_key: order.request_key.clone(),
            gate_pass: order.gate_pass.clone(),
        };
        let issued = self.call(None, &call, |texts| texts_defect(texts, order.count)).await;
        issued.map(|(texts, _)| texts)
    }

    /// Up to `count` ids, 1 to 10 000 000, to hand out for `ttl` (a second to a day)
    /// from when the call was made. [`local_lease`](Self::local_lease) does that.
    pub async fn lease_range(
        &self,
        id_type: &str,
        count: u32,
        ttl: Duration,
    ) -> Result<RangeLease, Error> {
        self.lease_from(None, id_type, count, ttl).await.map(|(lease, _)| lease)
    }

    /// The same, from node number `preferred` if that is well; with the node that gave it.
    pub(super) async fn lease_from(
        &self,
        preferred: Option<usize>,
        id_type: &str,
        count: u32,
        ttl: Duration,
    ) -> Result<(RangeLease, usize), Error> {
        let call = IdGenServiceLeaseRangeArgs {
            id_type: id_type.to_owned(),
            count: i64::from(count),
            ttl_ms: i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX),
        };
        self.call(preferred, &call, |lease| lease_defect(lease, count)).await
    }

    /// Ids of a segment type that are handed out in this process (`docs/rust-client.md`).
    /// Its first lease is taken now, so that a type that has no leases is found out.
    ///
    /// Its work in the background runs on the runtime that this is called in.
    pub async fn local_lease(
        &self,
        id_type: &str,
        config: LeaseConfig,
    ) -> Result<LocalLease, Error> {
        LocalLease::open(self.clone(), id_type, config).await
    }

    /// What an id of a type tells. `id`: in decimal, or as the type's format writes it.
    pub async fn decode(&self, id_type: &str, id: &str) -> Result<DecodedId, Error> {
        let (id_type, id) = (id_type.to_owned(), id.to_owned());
        let call = IdGenServiceDecodeIdArgs { id_type, id };
        self.call(None, &call, |_| None).await.map(|(decoded, _)| decoded)
    }

    /// The settings of a type, and where it stands.
    pub async fn describe(&self, id_type: &str) -> Result<TypeInfo, Error> {
        let call = IdGenServiceDescribeTypeArgs { id_type: id_type.to_owned() };
        self.call(None, &call, |_| None).await.map(|(info, _)| info)
    }

    /// The state of the node that answers.
    pub async fn node_status(&self) -> Result<NodeInfo, Error> {
        let call = IdGenServiceNodeStatusArgs {};
        self.call(None, &call, |_| None).await.map(|(info, _)| info)
    }

    /// One call: the answer, and the number of the node that gave it. `defect` tells
    /// what is wrong with an answer.
    async fn call<C: Call>(
        &self,
        preferred: Option<usize>,
        call: &C,
        defect: impl Fn(&C::Answer) -> Option<String>,
    ) -> Result<(C::Answer, usize), Error> {
        let Inner { config, nodes, .. } = &*self.inner;
        let begun = Instant::now();
        let deadline = begun + self.deadline;
        let order = self.order(preferred, begun);
        let mut last: Option<Error> = None;
        for (asked, &at) in order.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let end = Instant::now() + left / (order.len() - asked) as u32;
            let error = match nodes[at].call(config, call, end).await {
                Ok(answer) => match defect(&answer) {
                    None => return Ok((answer, at)),
                    Some(defect) => Error::bad_answer(&nodes[at].name, defect),
                },
                Err(Error::Refused(refusal)) if !refusal.may_differ_elsewhere() => {
                    return Err(Error::Refused(refusal));
                }
                Err(error) => error,
            };
            last = Some(error.or_better(last));
        }
        match last {
            Some(error) if Instant::now() < deadline => Err(error),
            last => Err(Error::Deadline { last: last.map(Box::new) }),
        }
    }

    /// In which order the nodes are asked.
    fn order(&self, preferred: Option<usize>, now: Instant) -> Vec<usize> {
        let nodes = &self.inner.nodes;
        let turn = || self.inner.turn.fetch_add(1, Ordering::Relaxed);
        let first = preferred.unwrap_or_else(turn) % nodes.len();
        let mut order: Vec<_> = (first..nodes.len()).chain(0..first).collect();
        if nodes.len() > 1 {
            let leads = nodes[first].may_lead(now);
            // Stable: those that answered stay in their turn.
            order.sort_by_cached_key(|&at| match at {
                at if at == first && leads => None,
                at => nodes[at].passed_over(),
            });
        }
        order
    }
}

/// What the node is told; it refuses what is too large in any case.
fn saturated(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn id_defect(id: i64) -> Option<String> {
    (id < 1).then(|| format!("{id} is no id"))
}

fn ranges_defect(ranges: &[IdRange], count: u32) -> Option<String> {
    let mut ids = 0_i64;
    for IdRange { first, count } in ranges {
        if *first < 1 || *count < 1 || first.checked_add(*count).is_none() {
            return Some(format!("({first}, {count}) is no range of ids"));
        }
        ids = ids.saturating_add(*count);
    }
    (ids != i64::from(count)).then(|| format!("{ids} ids instead of {count}"))
}

fn texts_defect(texts: &[String], count: u32) -> Option<String> {
    if texts.iter().any(String::is_empty) {
        return Some("an empty text is no id".to_owned());
    }
    (texts.len() != count as usize).then(|| format!("{} ids instead of {count}", texts.len()))
}

fn lease_defect(lease: &RangeLease, asked: u32) -> Option<String> {
    let RangeLease { first, count, step, ttl_ms } = *lease;
    let last = step.checked_mul(count).and_then(|span| first.checked_add(span));
    let sound = first >= 1
        && (1..=i64::from(asked)).contains(&count)
        && step >= 1
        && ttl_ms >= 1
        && last.is_some();
    (!sound).then(|| format!("{first}, {count}, {step}, {ttl_ms} is no lease for {asked} ids"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defects_of_answers() {
        let ranges = |ranges: &[(i64, i64)]| -> Vec<_> {
            ranges.iter().map(|&(first, count)| IdRange { first, count }).collect()
        };
        for good in [&[(1, 10)][..], &[(5, 6), (1, 4)]] {
            assert_eq!(ranges_defect(&ranges(good), 10), None, "{good:?}");
        }
        for bad in [&[][..], &[(1, 9)], &[(0, 10)], &[(i64::MAX, 10)], &[(1, 11), (9, -1)]] {
            assert!(ranges_defect(&ranges(bad), 10).is_some(), "{bad:?}");
        }
        let lease = |first, count, step, ttl_ms| RangeLease { first, count, step, ttl_ms };
        for good in [lease(1, 10, 1, 1), lease(7, 3, 100, 60_000)] {
            assert_eq!(lease_defect(&good, 10), None, "{good:?}");
        }
        for bad in [
            lease(0, 10, 1, 1),
            lease(1, 0, 1, 1),
            lease(1, 11, 1, 1),
            lease(1, 10, 0, 1),
            lease(1, 10, 1, 0),
            lease(1, 10, i64::MAX, 1),
            lease(i64::MAX, 1, 1, 1),
        ] {
            assert!(lease_defect(&bad, 10).is_some(), "{bad:?}");
        }
        assert!(id_defect(0).is_some() && id_defect(1).is_none());
        assert!(texts_defect(&[String::new()], 1).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_begin_with_the_nodes_in_turn() {
        let client = Client::new(Config::new(["a:1", "b:1", "c:1"])).unwrap();
        let mut first: Vec<_> = (0..3).map(|_| client.order(None, Instant::now())[0]).collect();
        first.sort();
        assert_eq!(first, [0, 1, 2]);
        assert_eq!(client.order(Some(1), Instant::now()), [1, 2, 0]);
    }
}
