//! The contracts of the ports as tests: one suite for every adapter.
//!
//! The suite is ordinary code, so that tests of whole servers can run it too.
//! Each function panics, naming what was breached. They want an adapter that
//! nobody else uses meanwhile; names begin with `conform-`.

mod accounts;
mod dispatcher;
mod leases;
mod migration;
mod range_store;
mod worker_ids;

pub use accounts::accounts;
pub use dispatcher::{dispatcher, dispatcher_after_rollback};
pub use range_store::range_store;
pub use worker_ids::worker_ids;

use crate::domain::{IdRange, TypeName};

fn name(text: &str) -> TypeName {
    TypeName::parse(&format!("conform-{text}")).expect("names of the suite are legal")
}

/// Panics if two of `ranges` share an id.
fn assert_disjoint(mut ranges: Vec<IdRange>) {
    ranges.sort_by_key(|r| r.start());
    for pair in ranges.windows(2) {
        assert!(pair[0].end() <= pair[1].start(), "ids issued twice: {} and {}", pair[0], pair[1]);
    }
}
