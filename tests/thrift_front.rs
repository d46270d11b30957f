//! The Thrift front as its clients meet it: a real server on a free port, the
//! official blocking client, raw sockets for everything that no client sends,
//! and a service behind it that counts.

#[path = "thrift_front/bad_input.rs"]
mod bad_input;
#[path = "thrift_front/clients.rs"]
mod clients;
#[path = "thrift_front/kinds.rs"]
mod kinds;
#[path = "thrift_front/limits.rs"]
mod limits;
#[path = "thrift_front/pipelines.rs"]
mod pipelines;
#[path = "thrift_front/shutdown.rs"]
mod shutdown;
#[path = "thrift_front/support.rs"]
mod support;
