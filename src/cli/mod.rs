//! The command line.

pub mod bench;
pub mod load;
pub mod verify;
