//! Which calls are traced: one of so many, and those whose caller asks for it.
//!
//! The choice is made before a span is made, so that a call without one costs nothing
//! but a look at a number.

use std::sync::atomic::{AtomicU64, Ordering};

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::field::Empty;
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// 0: none.
static ONE_IN: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// From now on one of `one_in` calls to this process is traced; 0 for none.
pub fn trace_one_in(one_in: u64) {
    ONE_IN.store(one_in, Ordering::Relaxed);
}

/// Whether it is this call's turn. One after the other, over all connections: cheaper
/// than drawing, and enough, because calls of many clients have no order.
fn is_next() -> bool {
    match ONE_IN.load(Ordering::Relaxed) {
        0 => false,
        one_in => CALLS.fetch_add(1, Ordering::Relaxed).is_multiple_of(one_in),
    }
}

/// The span of a Thrift call, or none.
pub(super) fn of_call(method: &'static str) -> Span {
    if !is_next() {
        return Span::none();
    }
    // Names and attributes: OpenTelemetry's semantic conventions for RPC.
    info_span!(
        parent: None,
        "call",
        otel.name = method,
        otel.kind = "server",
        otel.status_code = Empty,
        rpc.system = "apache_thrift",
        rpc.service = "IdGenService",
        rpc.method = method,
        error.type = Empty,
    )
}

/// The span of an HTTP request, or none. With a sampled `traceparent` it belongs to
/// the caller's trace.
pub(super) fn of_request(method: &str, route: &str, headers: &impl Extractor) -> Span {
    if ONE_IN.load(Ordering::Relaxed) == 0 {
        return Span::none();
    }
    let caller = TraceContextPropagator::new().extract(headers);
    let asked = caller.span().span_context().is_sampled();
    if !asked && !is_next() {
        return Span::none();
    }
    let span = info_span!(
        parent: None,
        "request",
        otel.name = format_args!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
    );
    if asked {
        // Refused only where nothing takes spans.
        let _ = span.set_parent(caller);
    }
    span
}

/// Notes in the span of the present call, if it has one, that it failed with `code`.
pub(super) fn failed(code: &'static str) {
    let span = Span::current();
    span.record("otel.status_code", "ERROR");
    span.record("error.type", code);
}
