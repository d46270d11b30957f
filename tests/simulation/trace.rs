//! What happened, in order: its hash tells whether two runs were the same.

use std::collections::VecDeque;
use std::fmt::{self, Write};

/// So many of the latest events are kept for a report.
const TAIL: usize = 120;

pub struct Trace {
    hash: u64,
    events: u64,
    tail: VecDeque<String>,
    verbose: bool,
}

impl Trace {
    pub fn new(verbose: bool) -> Self {
        Trace { hash: 0xcbf2_9ce4_8422_2325, events: 0, tail: VecDeque::new(), verbose }
    }

    /// Notes an event at `at_ms` of virtual time.
    pub fn note(&mut self, at_ms: u64, event: fmt::Arguments<'_>) {
        // The oldest line is written over, so that a run does not allocate much.
        let mut line = match self.tail.len() < TAIL {
            true => String::with_capacity(96),
            false => self.tail.pop_front().expect("it is full"),
        };
        line.clear();
        write!(line, "{at_ms:>6} {event}").expect("a string takes everything");
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.events += 1;
        if self.verbose {
            println!("{line}");
        }
        self.tail.push_back(line);
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn tail(&self) -> Vec<String> {
        self.tail.iter().cloned().collect()
    }
}
