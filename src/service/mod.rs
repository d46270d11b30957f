//! The use cases, over ports alone.

pub mod admin;
pub mod api;
