//! A block of ids for a bulk load: exactly so many, in a row, for the caller alone.
//!
//! 1. The type must count in one row that its callers see: no shards, no clock, no
//!    periods, no permutation, no circle.
//! 2. The floor is what this node and the type's Redis instance know to have been
//!    given away, so that a store that lost its latest writes repeats nothing.
//! 3. Allocate; durable when it returns, and in the feed of changes.
//! 4. Let Redis note it, as it notes the leases of nodes: should the store lose it
//!    later, the next range starts above it all the same. Without Redis the block is
//!    used as it is, because that would be a second failure.
//!
//! A block takes no part in the order of a strict type: it lies above what is
//! published already, which is handed out after it was answered.

use std::sync::Arc;

use super::Parts;
use super::admin::Reserved;
use super::catalogue::Source;
use super::instances::follow_loss;
use crate::domain::allocation::check_block;
use crate::domain::id_map::IdMap;
use crate::domain::{Error, IdRange, Mode, TypeName, TypeRecord};
use crate::ports::{Witness, WitnessedEnd};

/// Tries for one block: a miss teaches the floor, so a second one nearly always hits.
const TRIES: usize = 3;

impl Parts {
    /// See [`AdminApi::reserve`](super::admin::AdminApi::reserve).
    pub(super) async fn reserve(
        self: &Arc<Self>,
        name: &str,
        count: i64,
        actor: &str,
    ) -> Result<Reserved, Error> {
        let name = TypeName::parse(name)?;
        let unknown = || Error::unknown_type(name.as_str());
        let record = self.store.find_type(&name).await?.ok_or_else(unknown)?;
        check_block(&record)?;
        self.check_site(&record)?;
        let mut floor = self.block_floor(&record).await;
        for _ in 0..TRIES {
            let range = self.store.reserve(&name, count, floor, actor).await?;
            // The settings are final now that something was allocated; those from
            // before may have changed up to that moment.
            let record = self.store.find_type(&name).await?.ok_or_else(unknown)?;
            self.changed(&record).await;
            check_block(&record)?;
            match self.witness_block(&record, range).await {
                None => return block_of(&record, range),
                Some(highest_end) => {
                    self.metrics.burnt_ranges.with_label_values(&["overlap"]).inc();
                    self.metrics.burnt_ids.inc_by(range.len());
                    floor = highest_end;
                }
            }
        }
        Err(super::unavailable(
            "the range store gave out ids again that it had given out before: it went back in \
             time, and is being moved forward; try again",
        ))
    }

    /// The highest end that this node and Redis know; what does not answer knows nothing.
    async fn block_floor(self: &Arc<Self>, record: &TypeRecord) -> i64 {
        let mut floor = self.catalogue.get(record.name.as_str()).map_or(0, |e| e.supply.floor());
        let Some(instance) = self.instances.get(record.instance).filter(|i| !i.is_lost()) else {
            return floor;
        };
        match instance.dispatcher.witnessed_end(&record.name, None).await {
            Ok(WitnessedEnd::Known(end)) => floor = floor.max(end),
            Ok(WitnessedEnd::Moved(seal)) => {
                let _ = self.settle(&record.name, instance.record.id, seal).await;
            }
            Err(_) => {
                follow_loss(self, &instance);
                return floor;
            }
        }
        if record.mode == Mode::Strict
            && let Ok(view) = instance.dispatcher.view(&record.name).await
        {
            floor = floor.max(view.highest_end());
        }
        floor
    }

    /// Step 4: the floor for another try, where some of it was given away before.
    async fn witness_block(self: &Arc<Self>, record: &TypeRecord, range: IdRange) -> Option<i64> {
        let entry = self.catalogue.put(record.clone(), Source::Need);
        // A second time where the type has moved.
        for _ in 0..2 {
            let known = self.instances.get(entry.record().instance).filter(|i| !i.is_lost());
            let Some(instance) = known else { break };
            match instance.dispatcher.witness(&record.name, None, range).await {
                Ok(Witness::Noted) => return None,
                Ok(Witness::Overlaps { highest_end }) => return Some(highest_end),
                Ok(Witness::Moved(seal)) => {
                    let _ = self.settle(&record.name, instance.record.id, seal).await;
                }
                Err(_) => {
                    follow_loss(self, &instance);
                    break;
                }
            }
        }
        self.metrics.unwitnessed.inc();
        None
    }
}

/// The ids of the positions of a block.
fn block_of(record: &TypeRecord, range: IdRange) -> Result<Reserved, Error> {
    let map = IdMap::new(record)?;
    let step = record.options.sites.map_or(1, |sites| i64::from(sites.count));
    // The highest id is below i64::MAX, one step above it may not be.
    let end = map.id(range.last(), None).saturating_add(step);
    Ok(Reserved {
        name: record.name.clone(),
        start: map.id(range.start(), None),
        end,
        step,
        count: range.len() as i64,
    })
}
