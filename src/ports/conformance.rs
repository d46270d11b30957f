//! The conformance suite (in work).
