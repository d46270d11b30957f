//! The record of a call that brought ids, in 24 bytes, and a log of them.
//!
//! Times are nanoseconds since the start of the run, by one monotonic clock.
//! The duration is kept in steps of 16 ns, rounded up: a recorded end is never
//! before the true one, so the rounding can hide an order violation of less
//! than 16 ns, but never invent one.

/// Some adjacent ids that one call brought. A call that brought several ranges
/// has several records with the same times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Call {
    first: i64,
    /// 48 bits of start (78 hours in nanoseconds) and 16 bits of node.
    start_and_node: u64,
    duration_steps: u32,
    count: u32,
}

impl Call {
    const STEP_NS: u64 = 16;
    /// The latest start that can be recorded: 78 hours.
    pub const LATEST_START_NS: u64 = (1 << 48) - 1;

    /// The ids `first .. first + count`, from a call through node number
    /// `node` that was begun at `start_ns` and had returned at `end_ns`.
    ///
    /// # Panics
    /// Where `end_ns < start_ns`, `count == 0`, `start_ns` is past
    /// [`LATEST_START_NS`](Self::LATEST_START_NS), or the ids pass `i64::MAX`.
    pub fn new(start_ns: u64, end_ns: u64, first: i64, count: u32, node: u16) -> Self {
        assert!(start_ns <= end_ns && start_ns <= Self::LATEST_START_NS && count > 0);
        assert!(first.checked_add(i64::from(count) - 1).is_some());
        let steps = (end_ns - start_ns).div_ceil(Self::STEP_NS);
        Call {
            first,
            start_and_node: start_ns << 16 | u64::from(node),
            // u32::MAX stands for "longer than can be told": see `end_ns`.
            duration_steps: u32::try_from(steps).unwrap_or(u32::MAX),
            count,
        }
    }

    /// The lowest id.
    pub fn first(&self) -> i64 {
        self.first
    }

    /// The highest id.
    pub fn last(&self) -> i64 {
        self.first + (i64::from(self.count) - 1)
    }

    /// How many ids; at least 1.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// When the call was begun.
    pub fn start_ns(&self) -> u64 {
        self.start_and_node >> 16
    }

    /// When the call had returned, rounded up by less than 16 ns. A call of
    /// more than 68 s counts as never having returned, which proves nothing
    /// about later calls but still shows its duplicates.
    pub fn end_ns(&self) -> u64 {
        match self.duration_steps {
            u32::MAX => u64::MAX,
            steps => self.start_ns() + u64::from(steps) * Self::STEP_NS,
        }
    }

    /// The number of the node that it went through.
    pub fn node(&self) -> u16 {
        self.start_and_node as u16
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (start, end) = (self.start_ns(), self.end_ns());
        let (first, last, node) = (self.first, self.last(), self.node());
        write!(f, "Call({first}..={last}, {start}..{end} ns, node {node})")
    }
}

/// The calls of one client, in the order in which they were made.
///
/// Grows by blocks, so that it never copies itself, and can be emptied into
/// one vector block by block: the whole run needs 24 bytes per call, plus at
/// most one block per client.
#[derive(Debug, Default)]
pub struct CallLog {
    blocks: Vec<Vec<Call>>,
}

impl CallLog {
    /// 1.5 MB: large enough that the allocator returns it to the system when
    /// it is freed, which keeps the peak low while logs are merged.
    const CALLS_PER_BLOCK: usize = 1 << 16;

    /// Adds a call.
    pub fn push(&mut self, call: Call) {
        match self.blocks.last_mut() {
            Some(block) if block.len() < Self::CALLS_PER_BLOCK => block.push(call),
            _ => {
                let mut block = Vec::with_capacity(Self::CALLS_PER_BLOCK);
                block.push(call);
                self.blocks.push(block);
            }
        }
    }

    /// How many records it holds.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// All calls of all `logs`, in one vector.
    pub fn merge(logs: Vec<CallLog>) -> Vec<Call> {
        let mut calls = Vec::with_capacity(logs.iter().map(CallLog::len).sum());
        for log in logs {
            for block in log.blocks {
                calls.extend_from_slice(&block);
            }
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_small() {
        assert_eq!(size_of::<Call>(), 24);
    }

    #[test]
    fn keeps_what_it_was_given() {
        let call = Call::new(1_000_000_000_000, 1_000_000_000_160, 77, 3, 65_535);
        assert_eq!((call.first(), call.last(), call.count()), (77, 79, 3));
        assert_eq!(call.start_ns(), 1_000_000_000_000);
        assert_eq!(call.end_ns(), 1_000_000_000_160);
        assert_eq!(call.node(), 65_535);
        let extreme = Call::new(Call::LATEST_START_NS, u64::MAX, i64::MIN, u32::MAX, 0);
        assert_eq!(extreme.start_ns(), Call::LATEST_START_NS);
        assert_eq!(extreme.end_ns(), u64::MAX);
    }

    #[test]
    fn an_end_is_rounded_up_only() {
        for duration in [0, 1, 15, 16, 17, 68_000_000_000, 69_000_000_000] {
            let call = Call::new(500, 500 + duration, 1, 1, 0);
            assert!(call.end_ns() >= 500 + duration, "{duration}");
            if duration <= 68_000_000_000 {
                assert!(call.end_ns() < 500 + duration + 16, "{duration}");
            }
        }
    }

    #[test]
    fn merging_loses_nothing() {
        let mut logs = Vec::new();
        let mut next = 1;
        for size in [0, 1, CallLog::CALLS_PER_BLOCK, CallLog::CALLS_PER_BLOCK + 1] {
            let mut log = CallLog::default();
            for _ in 0..size {
                log.push(Call::new(1, 2, next, 1, 0));
                next += 1;
            }
            assert_eq!(log.len(), size);
            assert_eq!(log.is_empty(), size == 0);
            logs.push(log);
        }
        let calls = CallLog::merge(logs);
        assert!(calls.iter().map(Call::first).eq(1..next));
    }
}
