//! Headers that every answer has, whoever made it.

use axum::extract::Request;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};
use tower_http::compression::{CompressionLayer, CompressionLevel};

const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");

/// The shortest answer that is compressed, in bytes: shorter ones fit in a packet.
const WORTH_IT: u64 = 1_400;

/// Lets browsers guess no type, tell no address to others, show no answer in a frame,
/// and give none to another site.
pub(super) async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), SAME_ORIGIN);
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), SAME_ORIGIN);
    // The page has a policy of its own; an answer of the API is no document at all.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ));
    response
}

/// Ids and states must come from the service, each time: nobody keeps an answer of the
/// API, be it an error.
pub(super) async fn no_store(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let none = HeaderValue::from_static("no-store");
    response.headers_mut().entry(CACHE_CONTROL).or_insert(none);
    response
}

/// gzip for long answers to clients that take it; not for streams of events, whose
/// events must leave at once. At the level that costs least: answers are made where
/// calls are served.
pub(super) fn compression() -> CompressionLayer<impl Predicate> {
    let worth_it = SizeAbove::new(WORTH_IT).and(NotForContentType::const_new("text/event-stream"));
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(worth_it)
}
