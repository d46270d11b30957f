//! What `benches/micro.rs` reaches of the front's inside.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use tokio::time::Instant;

use crate::service::api::IdApi;

use super::calling::Calling;
use super::calls;
use super::messages::{Input, Next};
use super::metrics::ThriftMetrics;
use super::reply::{self, Answer, ReplyTo};
use super::wire::Dialect;

/// A connection without its socket: complete requests in, replies out.
pub struct Exchange<A> {
    api: Arc<A>,
    metrics: ThriftMetrics,
    input: Input,
    output: Vec<u8>,
    began: Instant,
}

impl<A: IdApi> Exchange<A> {
    /// Nothing was sent yet.
    pub fn new(api: Arc<A>, metrics: ThriftMetrics) -> Self {
        let began = Instant::now();
        Exchange { api, metrics, input: Input::new(64 * 1024), output: Vec::new(), began }
    }

    /// The replies to the calls in `bytes`, of methods that exist.
    pub async fn answer(&mut self, bytes: &[u8]) -> &[u8] {
        self.output.clear();
        self.input.space().extend_from_slice(bytes);
        let (bytes, cursor) = self.input.parts();
        while let Next::Request { request, dialect } = cursor.next(bytes) {
            cursor.done();
            let method = request.method().expect("a method that exists");
            self.metrics.request(method);
            let who = Calling::unasked(self.began, IpAddr::V4(Ipv4Addr::LOCALHOST));
            let answer =
                calls::call(method, request, &who, &*self.api, &self.metrics, || false).await;
            let (strict, seqid) = (request.header.strict, request.header.seqid);
            let to = ReplyTo { dialect, strict, name: method.name(), seqid };
            reply::append(&mut self.output, &to, answer).expect("a short reply");
        }
        &self.output
    }
}

/// Appends the reply of nextId to `out`.
pub fn reply(out: &mut Vec<u8>, dialect: Dialect, id: i64) {
    let to = ReplyTo { dialect, strict: true, name: "nextId", seqid: 7 };
    reply::append(out, &to, Answer::NextId(Ok(id))).expect("a short reply");
}

/// The same through the generated struct and the official crate.
pub fn generated_reply(out: &mut Vec<u8>, dialect: Dialect, id: i64) {
    let to = ReplyTo { dialect, strict: true, name: "nextId", seqid: 7 };
    reply::append_generated(out, &to, Answer::NextId(Ok(id))).expect("a short reply");
}
