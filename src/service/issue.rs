//! A call for ids, from its arguments to what the client sees.
//!
//! 1. Check the arguments against the type: mode, gate pass, count.
//! 2. With a request key, look whether its ids were given already.
//! 3. Get positions: from the dispatcher, the node's own leases, or the clock.
//! 4. With a request key, keep them; if somebody was faster, theirs count.
//! 5. Turn positions into ids or texts.

use std::sync::Arc;

use tokio::time::Instant;

use super::api::{MAX_COUNT, MAX_GATE_PASS, MAX_LEASE, MAX_LEASE_MS, MAX_TEXTS, Order, RangeLease};
use super::catalogue::{Settings, TypeEntry};
use super::granted::Granted;
use super::{MAX_RANGES_PER_CALL, Parts, request_key, segment, sequence, snowflake};
use crate::domain::gate_pass::shard_of;
use crate::domain::options::{AtLimit, number_of, period_of};
use crate::domain::{Error, ErrorCode, IdRange, Mode, TypeRecord};

/// Ids that are computed before others have their turn: an opaque one costs
/// about 3 µs (docs/id-types.md).
const AT_A_STRETCH: u64 = 256;

/// What a call was given, before it is written as ids or texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Issued {
    /// Positions; ids, of a snowflake type.
    pub(super) granted: Granted,
    /// The sub-sequence of a sharded type.
    pub(super) shard: Option<u8>,
    /// When, in milliseconds of the Unix epoch by the node's clock: the date in texts.
    pub(super) at_ms: i64,
}

impl Parts {
    /// The next id, the path of nearly every call.
    pub(super) async fn next_id(self: &Arc<Self>, name: &str) -> Result<i64, Error> {
        // The clock is not read where the id is at hand.
        let mut deadline = None;
        let entry = match self.catalogue.get(name) {
            Some(entry) => entry,
            None => self.find(name, *deadline.insert(self.deadline())).await?,
        };
        if let Some(id) = self.try_next(&entry)? {
            return Ok(id);
        }
        let deadline = deadline.unwrap_or_else(|| self.deadline());
        let (issued, settings) = self.issue(name, Order::of(1), false, deadline).await?;
        let writing = settings.writing.as_ref().map_err(Error::clone)?;
        Ok(writing.id(issued.granted.first.start(), issued.shard))
    }

    /// The next id, where it is at hand: without waiting, locks or allocation.
    #[inline]
    fn try_next(self: &Arc<Self>, entry: &Arc<TypeEntry>) -> Result<Option<i64>, Error> {
        let settings = entry.settings();
        match settings.record.mode {
            Mode::Segment if settings.record.options.calendar.is_none() => {}
            Mode::Snowflake => {
                self.active.join(entry);
                return Ok(snowflake::source_of(self, entry)?.try_next(&*self.clock));
            }
            _ => return Ok(None),
        }
        if let Some(verdict) = entry.verdict() {
            return Err(verdict);
        }
        self.check_site(&settings.record)?;
        let Some(position) = segment::try_one(self, entry, entry.leases()) else {
            return Ok(None);
        };
        // Read again: the settings from before may lack a key that it needs.
        let settings = entry.settings();
        let writing = settings.writing.as_ref().map_err(Error::clone)?;
        Ok(writing.map.as_ref().map(|map| map.id(position, None)))
    }

    /// Exactly `order.count` ids, as runs.
    pub(super) async fn next_ids(
        self: &Arc<Self>,
        name: &str,
        order: Order<'_>,
    ) -> Result<Vec<IdRange>, Error> {
        check_count(order.count, MAX_COUNT)?;
        let (issued, settings) = self.issue(name, order, false, self.deadline()).await?;
        write_ids(&settings, &issued).await
    }

    /// Exactly `order.count` texts.
    pub(super) async fn next_texts(
        self: &Arc<Self>,
        name: &str,
        order: Order<'_>,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        check_count(order.count, MAX_TEXTS)?;
        let (issued, settings) = self.issue(name, order, true, self.deadline()).await?;
        write_texts(&settings, &issued, with_prefix).await
    }

    /// What was issued by `deadline`, and settings that tell its ids.
    async fn issue(
        self: &Arc<Self>,
        name: &str,
        order: Order<'_>,
        as_text: bool,
        deadline: Instant,
    ) -> Result<(Issued, Arc<Settings>), Error> {
        loop {
            let entry = self.find(name, deadline).await?;
            let settings = entry.settings_held();
            let shard = check_order(&settings.record, order, as_text)?;
            self.check_site(&settings.record)?;
            let result = match order.request_key {
                // The settings from before may lack a key that the positions need.
                None => self
                    .grant(&entry, &settings, shard, order.count, deadline)
                    .await
                    .map(|issued| (issued, entry.settings_held())),
                Some(key) => {
                    let keyed = request_key::Keyed { key, order, as_text };
                    self.grant_once(&entry, &settings, shard, keyed, deadline).await
                }
            };
            let left_memory = entry.is_closed() && !self.stop.is_cancelled();
            match result {
                // It was on its way out of memory: it is back at once.
                Err(_) if left_memory && Instant::now() < deadline => {
                    tokio::task::yield_now().await;
                }
                result => return result,
            }
        }
    }

    /// Positions (or snowflake ids) that nobody had before.
    pub(super) async fn grant(
        self: &Arc<Self>,
        entry: &Arc<TypeEntry>,
        settings: &Settings,
        shard: Option<u8>,
        count: i64,
        deadline: Instant,
    ) -> Result<Issued, Error> {
        if let Some(verdict) = entry.verdict() {
            return Err(verdict);
        }
        let count = count as u64;
        let granted = match settings.record.mode {
            Mode::Strict => sequence::acquire(self, entry, count, deadline).await?,
            Mode::Segment => segment::acquire(self, entry, entry.leases(), count, deadline).await?,
            Mode::Sharded => {
                let leases = entry.shard(shard.unwrap_or_default());
                segment::acquire(self, entry, leases, count, deadline).await?
            }
            Mode::Snowflake => {
                self.active.join(entry);
                let source = snowflake::source_of(self, entry)?;
                Granted::all(snowflake::acquire(self, &source, count, deadline).await?)?
            }
        };
        Ok(Issued { granted, shard, at_ms: self.clock.now_ms() })
    }

    /// A part of the node's own range for a client to hand out by itself.
    pub(super) async fn lease_range(
        self: &Arc<Self>,
        name: &str,
        count: i64,
        ttl_ms: i64,
    ) -> Result<RangeLease, Error> {
        check_count(count, MAX_LEASE)?;
        if !(1_000..=MAX_LEASE_MS).contains(&ttl_ms) {
            return Err(Error::invalid(
                "ttl_ms",
                format!("ttl_ms {ttl_ms} is out of range: it must be from 1000 to {MAX_LEASE_MS}"),
            ));
        }
        let deadline = self.deadline();
        loop {
            let entry = self.find(name, deadline).await?;
            let settings = entry.settings_held();
            check_leasable(&settings.record, count)?;
            self.check_site(&settings.record)?;
            if let Some(verdict) = entry.verdict() {
                return Err(verdict);
            }
            let leases = entry.leases();
            let some = segment::acquire_some(self, &entry, leases, count as u64, deadline).await;
            let range = match some {
                Err(_) if entry.is_closed() && !self.stop.is_cancelled() => {
                    tokio::task::yield_now().await;
                    continue;
                }
                some => some?,
            };
            // Those from before may have changed up to the first id.
            let settings = entry.settings_held();
            check_leasable(&settings.record, count)?;
            let writing = settings.writing.as_ref().map_err(Error::clone)?;
            let first = writing.id(range.start(), None);
            let step = settings.record.options.sites.map_or(1, |sites| i64::from(sites.count));
            return Ok(RangeLease { first, count: range.len() as i64, step, ttl_ms });
        }
    }

    /// Whether this node may serve a type that several sites share.
    pub(super) fn check_site(&self, record: &TypeRecord) -> Result<(), Error> {
        let Some(sites) = record.options.sites else { return Ok(()) };
        match self.config.site {
            Some(site) if site == sites.site => Ok(()),
            site => Err(Error::new(
                ErrorCode::Unavailable,
                format!(
                    "id type {} is that of site {}, and this node is {}: set store.site to the \
                     number of the site whose range store this is, and never use one site's \
                     store, or a copy of it, at another",
                    record.name,
                    sites.site,
                    site.map_or("of no site".to_owned(), |site| format!("of site {site}"))
                ),
            )),
        }
    }
}

fn check_count(count: i64, most: i64) -> Result<(), Error> {
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(Error::invalid(
        "count",
        format!("count {count} is out of range: it must be from 1 to {most}"),
    ))
}

/// Whether a type can serve an order; the shard that it is for.
fn check_order(record: &TypeRecord, order: Order<'_>, as_text: bool) -> Result<Option<u8>, Error> {
    let name = &record.name;
    if record.options.calendar.is_some() && !as_text {
        return Err(Error::invalid(
            "name",
            format!(
                "id type {name} is a calendar series, whose numbers restart: its ids are texts; ask \
                 for texts (nextStringId, --text, as=text)"
            ),
        ));
    }
    // Such a call would take more refills than fit in its time.
    let most = record.max_range.saturating_mul(MAX_RANGES_PER_CALL);
    if record.mode != Mode::Snowflake && order.count > most {
        return Err(Error::invalid(
            "count",
            format!(
                "count {} is too large for id type {name}: its ranges hold at most {} ids, and a \
                 call may take {MAX_RANGES_PER_CALL} ranges",
                order.count, record.max_range
            ),
        ));
    }
    match (record.mode, order.gate_pass) {
        (Mode::Sharded, Some(pass)) if pass.len() > MAX_GATE_PASS => Err(Error::invalid(
            "gate_pass",
            format!("gate_pass has {} bytes; the limit is {MAX_GATE_PASS}", pass.len()),
        )),
        (Mode::Sharded, Some(pass)) => Ok(Some(shard_of(pass))),
        (Mode::Sharded, None) => Err(Error::invalid(
            "gate_pass",
            format!(
                "gate_pass is missing: id type {name} is sharded (nextShardedId, --gate-pass, \
                 gate_pass=)"
            ),
        )),
        (_, Some(_)) => Err(Error::invalid(
            "gate_pass",
            format!("gate_pass is for sharded types only; id type {name} is {}", record.mode),
        )),
        (_, None) => Ok(None),
    }
}

/// Whether a client may hand out ids of the type by itself.
fn check_leasable(record: &TypeRecord, count: i64) -> Result<(), Error> {
    let options = &record.options;
    let why = match record.mode {
        Mode::Strict => Some("strict, and would lose its order"),
        Mode::Sharded => Some("sharded"),
        Mode::Snowflake => Some("snowflake"),
        Mode::Segment if options.opaque.is_some() => Some("opaque"),
        Mode::Segment if options.calendar.is_some() => Some("a calendar series"),
        Mode::Segment if options.at_limit == AtLimit::Cycle => Some("one that cycles"),
        Mode::Segment => None,
    };
    if let Some(why) = why {
        return Err(Error::invalid(
            "name",
            format!("id type {} cannot be leased: it is {why}", record.name),
        ));
    }
    if count > record.max_range {
        return Err(Error::invalid(
            "count",
            format!(
                "count {count} is too large: ranges of id type {} hold at most {} ids",
                record.name, record.max_range
            ),
        ));
    }
    Ok(())
}

/// The ids of what was issued.
async fn write_ids(settings: &Settings, issued: &Issued) -> Result<Vec<IdRange>, Error> {
    let writing = settings.writing.as_ref().map_err(Error::clone)?;
    let mut ids = Vec::new();
    for range in issued.granted.ranges() {
        match &writing.map {
            None => ids.push(range),
            Some(map) if map.is_identity() => map.append(range, None, &mut ids),
            Some(map) => {
                let mut rest = Some(range);
                while let Some(some) = rest {
                    let (head, tail) = some.split(AT_A_STRETCH);
                    map.append(head, issued.shard, &mut ids);
                    rest = tail;
                    if rest.is_some() {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
    }
    Ok(ids)
}

/// The texts of what was issued.
async fn write_texts(
    settings: &Settings,
    issued: &Issued,
    with_prefix: bool,
) -> Result<Vec<String>, Error> {
    let writing = settings.writing.as_ref().map_err(Error::clone)?;
    let prefix = if with_prefix { settings.record.prefix.as_str() } else { "" };
    let mut texts = Vec::with_capacity(issued.granted.len() as usize);
    let positions = issued.granted.ranges().flat_map(|r| r.start()..r.end());
    for (n, position) in positions.enumerate() {
        if n as u64 % AT_A_STRETCH == AT_A_STRETCH - 1 {
            tokio::task::yield_now().await;
        }
        texts.push(writing.text(&settings.record, position, issued.shard, issued.at_ms, prefix));
    }
    Ok(texts)
}

impl super::catalogue::Writing {
    /// The id of one position; a snowflake id as it is.
    pub(super) fn id(&self, position: i64, shard: Option<u8>) -> i64 {
        self.map.as_ref().map_or(position, |map| map.id(position, shard))
    }

    /// The text of one position (or snowflake id).
    pub(super) fn text(
        &self,
        record: &TypeRecord,
        position: i64,
        shard: Option<u8>,
        at_ms: i64,
        prefix: &str,
    ) -> String {
        // The date of a calendar series is that of the position, whatever any
        // clock says.
        let (number, date) = match record.options.calendar {
            Some(period) => (number_of(position), period.first_day(period_of(position))),
            None => (self.id(position, shard), self.zone.moment(at_ms)),
        };
        match &self.format {
            Some(format) => format.write(prefix, number, date),
            None => format!("{prefix}{number}"),
        }
    }
}
