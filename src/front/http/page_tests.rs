//! The files of a page over the rules of HTTP. `tests/page` stands for a build of the
//! front end.

use axum::http::header::CONTENT_LENGTH;

use super::*;
use crate::front::http::fake::Server;

#[derive(RustEmbed)]
#[folder = "tests/page"]
struct Fixture;

/// A folder that a machine without Node.js does not have.
#[derive(RustEmbed)]
#[folder = "tests/page/none"]
#[allow_missing = true]
struct Nothing;

const SCRIPT: &str = "/assets/app-0f3e7a9c.js";
const STYLE: &str = "/assets/app-5d2c91ab.css";

struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Reply {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

async fn ask(page: &Page, method: &str, path: &str, headers: &[(&str, &str)]) -> Option<Reply> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, body) = page.answer(&request.body(Body::empty()).unwrap())?.into_parts();
    Some(Reply {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec(),
    })
}

fn file(name: &str) -> Vec<u8> {
    Fixture::get(name).expect(name).data.into_owned()
}

#[tokio::test]
async fn files_have_their_type_their_policy_and_their_life() {
    let page = Page::of::<Fixture>();
    for (path, name, kind, cached) in [
        ("/", "index.html", "text/html; charset=utf-8", "no-cache"),
        ("/index.html", "index.html", "text/html; charset=utf-8", "no-cache"),
        (SCRIPT, &SCRIPT[1..], "text/javascript; charset=utf-8", IMMUTABLE.to_str().unwrap()),
        (STYLE, &STYLE[1..], "text/css; charset=utf-8", IMMUTABLE.to_str().unwrap()),
        ("/favicon.svg", "favicon.svg", "image/svg+xml", "no-cache"),
    ] {
        let reply = ask(&page, "GET", path, &[]).await.expect(path);
        assert_eq!((reply.status, reply.header("content-type")), (200, kind), "{path}");
        assert_eq!(reply.header("cache-control"), cached, "{path}");
        assert_eq!(reply.headers["content-security-policy"], PAGE_POLICY);
        assert_eq!(reply.body, file(name), "{path}");
        assert!(!reply.headers.contains_key("content-encoding"), "{path}");
    }
}

#[tokio::test]
async fn a_file_is_sent_in_the_best_form_that_the_browser_takes() {
    let page = Page::of::<Fixture>();
    let script = &SCRIPT[1..];
    for (accepted, coding) in [
        ("", ""),
        ("identity", ""),
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("GZIP;q=0.5,  BR;q=0.1", "br"),
        ("br;q=0, gzip", "gzip"),
        ("br; q=0, *", "gzip"),
        ("*", "br"),
        ("*;q=0", ""),
        ("br;q=0, gzip;q=0.0", ""),
        ("br;q=none", ""),
        ("brr, xgzip", ""),
    ] {
        let reply = ask(&page, "GET", SCRIPT, &[("accept-encoding", accepted)]).await.unwrap();
        assert_eq!(reply.header("content-encoding"), coding, "{accepted}");
        assert_eq!(reply.header("vary"), "accept-encoding");
        let suffix = match coding {
            "br" => ".br",
            "gzip" => ".gz",
            _ => "",
        };
        assert_eq!(reply.body, file(&format!("{script}{suffix}")), "{accepted}");
        assert_eq!(reply.header("content-type"), "text/javascript; charset=utf-8");
    }
    // It has one form only, so that nothing varies.
    let style = ask(&page, "GET", STYLE, &[("accept-encoding", "br, gzip")]).await.unwrap();
    assert!(!style.headers.contains_key("vary"));
    assert!(!style.headers.contains_key("content-encoding"));
}

#[tokio::test]
async fn what_the_browser_has_is_not_sent_again() {
    let page = Page::of::<Fixture>();
    let br = ("accept-encoding", "br");
    let plain = ask(&page, "GET", "/", &[]).await.unwrap().header("etag").to_owned();
    let coded = ask(&page, "GET", "/", &[br]).await.unwrap().header("etag").to_owned();
    assert_ne!(plain, coded, "two forms are two things to a cache");
    let other = ask(&page, "GET", SCRIPT, &[]).await.unwrap().header("etag").to_owned();
    assert_ne!(plain, other);
    for (known, status) in [
        (coded.clone(), 304),
        (format!("W/{coded}"), 304),
        (format!("\"x\", {coded}"), 304),
        ("*".to_owned(), 304),
        (plain, 200),
        (coded.trim_matches('"').to_owned(), 200),
        ("\"x\"".to_owned(), 200),
    ] {
        let reply = ask(&page, "GET", "/", &[br, ("if-none-match", &known)]).await.unwrap();
        assert_eq!(reply.status, status, "{known}");
        assert_eq!(reply.body.is_empty(), status == 304);
        assert_eq!((reply.header("etag"), reply.header("cache-control")), (&*coded, "no-cache"));
        assert_eq!(reply.header("vary"), "accept-encoding");
    }
}

#[tokio::test]
async fn views_of_the_page_are_the_page_and_nothing_else_is() {
    let page = Page::of::<Fixture>();
    let html = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    for path in ["/types", "/types/order", "/types/a.b:c", "/login", "/apis", "/metricsx", "//x"] {
        let reply = ask(&page, "GET", path, &[html]).await.expect(path);
        assert_eq!((reply.status, reply.body), (200, file("index.html")), "{path}");
        assert!(ask(&page, "GET", path, &[("accept", "*/*")]).await.is_none(), "{path}");
        assert!(ask(&page, "GET", path, &[("accept", "text/html;q=0")]).await.is_none());
        assert!(ask(&page, "GET", path, &[]).await.is_none(), "{path}");
        assert!(ask(&page, "POST", path, &[html]).await.is_none(), "{path}");
    }
    for path in ["/api", "/api/", "/api/v2/types", "/healthz/x", "/readyz/", "/metrics/x"] {
        assert!(ask(&page, "GET", path, &[html]).await.is_none(), "{path}");
    }
    // A script of another version is not found, rather than being the page.
    assert!(ask(&page, "GET", "/assets/app-00000000.js", &[html]).await.is_none());
    // The coded forms are no files of their own.
    assert!(ask(&page, "GET", "/index.html.br", &[]).await.is_none());
    assert!(ask(&page, "GET", &format!("{SCRIPT}.gz"), &[]).await.is_none());
}

#[tokio::test]
async fn there_is_no_way_out_of_the_folder() {
    let page = Page::of::<Fixture>();
    for path in [
        "/../Cargo.toml",
        "/../../Cargo.toml",
        "/assets/../../Cargo.toml",
        "/assets/../index.html",
        "/%2e%2e/Cargo.toml",
        "/..%2fCargo.toml",
        "/assets/%2e%2e/index.html",
        "/./index.html",
        "/%69ndex.html",
        "/etc/passwd",
        "//etc/passwd",
        "/index.html%00",
    ] {
        assert!(ask(&page, "GET", path, &[]).await.is_none(), "{path}");
    }
}

#[tokio::test]
async fn other_methods_are_told_which_ones_there_are() {
    let page = Page::of::<Fixture>();
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let reply = ask(&page, method, "/", &[]).await.unwrap();
        assert_eq!((reply.status, reply.header("allow")), (405, "GET, HEAD"), "{method}");
        assert_eq!(reply.header("content-type"), "application/problem+json");
    }
}

#[tokio::test]
async fn without_a_build_it_says_how_to_make_one() {
    let page = Page::of::<Nothing>();
    let reply = ask(&page, "GET", "/", &[("accept-encoding", "br")]).await.unwrap();
    assert_eq!(reply.status, 200);
    let text = String::from_utf8(reply.body).unwrap();
    assert!(text.contains("make build"), "{text}");
    assert!(!text.contains("<script") && !text.contains("style="), "the policy forbids it");
}

/// The policy of the page would stop them in every browser.
#[test]
fn the_page_of_this_build_has_nothing_inline() {
    let Some(index) = Built::get(INDEX) else { return };
    let text = String::from_utf8(index.data.into_owned()).unwrap();
    for script in text.split("<script").skip(1) {
        let tag = script.split('>').next().unwrap();
        assert!(tag.contains("src="), "an inline script: <script{tag}>");
    }
    assert!(!text.contains("<style") && !text.contains(" style="), "an inline style");
}

/// Headers and status of `method path` of a real connection, and the body.
fn over_the_wire(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
    let mut request =
        ureq::http::Request::builder().method(method).uri(format!("{}{path}", server.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = agent.run(request.body(()).unwrap()).unwrap();
    let (parts, mut body) = answer.into_parts();
    Reply {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: body.read_to_vec().unwrap(),
    }
}

#[test]
fn a_head_request_is_answered_with_headers_alone() {
    let server = Server::start();
    let get = over_the_wire(&server, "GET", "/", &[]);
    let head = over_the_wire(&server, "HEAD", "/", &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in [CONTENT_LENGTH, CONTENT_TYPE, ETAG, CACHE_CONTROL, CONTENT_SECURITY_POLICY] {
        assert_eq!(head.headers.get(&name), get.headers.get(&name), "{name}");
        assert!(head.headers.contains_key(&name), "{name}");
    }
}

#[test]
fn every_answer_has_the_headers_of_security() {
    let server = Server::start();
    for path in ["/", "/healthz", "/readyz", "/metrics", "/nothing", "/api/v1/types", "/api/x"] {
        let reply = over_the_wire(&server, "GET", path, &[]);
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(reply.header("cross-origin-resource-policy"), "same-origin", "{path}");
        assert_eq!(reply.header("cross-origin-opener-policy"), "same-origin", "{path}");
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none';"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        let api = path.starts_with("/api/v1");
        assert_eq!(reply.header("cache-control") == "no-store", api, "{path}");
    }
}

#[test]
fn long_answers_of_the_api_are_compressed_for_who_takes_it() {
    use crate::front::http::tests::call;
    use serde_json::{Value, json};
    let server = Server::start();
    call(&server, "POST", "/types", json!({"name": "order"}));
    let token = format!("Bearer {}", crate::front::http::fake::TOKEN);
    let ids = |count: u32, accepted: &str| {
        let path = format!("/api/v1/types/order/ids?count={count}");
        let headers = [("authorization", &*token), ("accept-encoding", accepted)];
        over_the_wire(&server, "POST", &path, &headers)
    };
    let long = ids(10_000, "gzip, br");
    assert_eq!((long.status, long.header("content-encoding")), (200, "gzip"));
    assert!(long.header("vary").eq_ignore_ascii_case("accept-encoding"));
    assert!(long.body.len() < 50_000, "{} bytes", long.body.len());
    assert_eq!(long.body[..2], [0x1f, 0x8b]);
    for (count, accepted) in [(10_000, "identity"), (10_000, "br"), (10, "gzip")] {
        let reply = ids(count, accepted);
        assert!(!reply.headers.contains_key("content-encoding"), "{count} {accepted}");
        let found: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(found["ids"].as_array().unwrap().len() as u32, count);
    }
}
