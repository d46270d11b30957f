//! The use cases, over ports alone.

pub mod api;
