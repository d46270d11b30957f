//! The ports, made real. Only `app.rs` names what is in here.

mod audit;
pub mod embedded;
pub mod memory;
pub mod mysql;
pub mod redis;

pub mod system;
