//! Section `refill`: the jobs that fetch the next range of a type.

use std::time::Duration;

use super::reader::Reader;
use super::setting::{Kind, Setting};

const JOBS: Setting = Setting {
    key: "refill.jobs",
    flag: Some("refill-jobs"),
    env: "IDGEN_REFILL_JOBS",
    // A refill takes milliseconds: 16 at once are thousands of types a second.
    kind: Kind::Integer {
        default: 16,
        low: 1,
        high: 1_024,
    },
    meaning: "Most refills of one node at once",
};

const TAKEOVER_GRACE_MS: Setting = Setting {
    key: "refill.takeover_grace_ms",
    flag: Some("refill-takeover-grace-ms"),
    env: "IDGEN_REFILL_TAKEOVER_GRACE_MS",
    // Many times a healthy refill, and a small part of a request's deadline: a
    // node that died in the middle is replaced before its callers give up.
    kind: Kind::Integer {
        default: 250,
        low: 10,
        high: 60_000,
    },
    meaning: "How long the holder of a refill lock may be silent, in milliseconds, before \
              another node takes the lock over where ids have run out",
};

pub(super) const SETTINGS: &[&Setting] = &[&JOBS, &TAKEOVER_GRACE_MS];

/// Settings of the refill jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct RefillSettings {
    /// Most refills at once.
    pub jobs: usize,
    /// How long the holder of a lock may be silent before it loses it.
    pub takeover_grace: Duration,
}

impl RefillSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        RefillSettings {
            jobs: reader.integer(&JOBS) as usize,
            takeover_grace: reader.milliseconds(&TAKEOVER_GRACE_MS),
        }
    }
}
