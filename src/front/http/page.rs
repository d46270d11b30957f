//! The admin page: the files that `npm run build` makes in `web-admin/dist`, as
//! part of the program.
//!
//! Nothing is compressed, hashed or read from a disk while the node runs: the
//! build leaves `FILE.br` and `FILE.gz` beside the files that are worth it, and a
//! file is sent in the form that the browser takes. A build without Node.js has
//! no such folder; then `/` says how to get the page.

use std::collections::BTreeMap;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

use super::codes::Fault;
use super::problem::Problem;

/// What the front-end build made, if there was one.
#[derive(RustEmbed)]
#[folder = "web-admin/dist"]
#[allow_missing = true]
pub(super) struct Built;

/// The page for every address of the browser that is not a file.
const INDEX: &str = "index.html";
/// The folder of files that have the hash of their content in the name.
const HASHED: &str = "assets/";
/// Addresses that are never the page's, themselves and what is below them.
const RESERVED: [&str; 4] = ["api", "healthz", "readyz", "metrics"];

/// What the page may do: run its own scripts and styles, and talk to this node. No
/// inline script, no other host, no frame around it.
pub(super) const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data:; font-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'",
);

const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// May be kept, but is asked for again each time.
const REVALIDATED: HeaderValue = HeaderValue::from_static("no-cache");

/// What stands at `/` in a program that was built without the page.
const MISSING: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <title>IdGen</title><h1>IdGen</h1>\
    <p>This program was built without the admin page. With Node.js on the machine, \
    <code>make build</code> makes both.</p><ul>\
    <li><a href=\"/healthz\">/healthz</a>: the process lives\
    <li><a href=\"/readyz\">/readyz</a>: the node takes requests\
    <li><a href=\"/metrics\">/metrics</a>: Prometheus metrics\
    <li><a href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a>: what the admin API knows\
    </ul></html>\n";

/// How the bytes of a file are coded, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Brotli,
    Gzip,
}

impl Coding {
    const ALL: [Coding; 2] = [Coding::Brotli, Coding::Gzip];

    /// As in the headers Accept-Encoding and Content-Encoding.
    fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// The end of the names of such files.
    fn suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Gzip => ".gz",
        }
    }
}

/// One form of a file.
struct Form {
    bytes: Bytes,
    etag: HeaderValue,
}

struct Asset {
    kind: HeaderValue,
    plain: Form,
    coded: Vec<(Coding, Form)>,
}

/// The files by their paths, without the first slash.
pub(super) struct Page {
    files: BTreeMap<String, Asset>,
}

impl Page {
    /// The page of the files of `E`.
    pub(super) fn of<E: RustEmbed>() -> Self {
        let names: Vec<String> = E::iter().map(|name| name.into_owned()).collect();
        let is_coded = |name: &str| {
            let plain = Coding::ALL.iter().find_map(|c| name.strip_suffix(c.suffix()));
            plain.is_some_and(|plain| names.iter().any(|n| n == plain))
        };
        let mut files = BTreeMap::new();
        for name in names.iter().filter(|name| !is_coded(name)) {
            let Some(file) = E::get(name) else { continue };
            let kind = kind_of(file.metadata.mimetype());
            let plain = form(file, "");
            let coded = Coding::ALL.into_iter().filter_map(|coding| {
                let file = E::get(&format!("{name}{}", coding.suffix()))?;
                Some((coding, form(file, coding.suffix())))
            });
            files.insert(name.clone(), Asset { kind, plain, coded: coded.collect() });
        }
        let is_built = files.contains_key(INDEX);
        if !is_built {
            let plain = Form {
                bytes: Bytes::from_static(MISSING.as_bytes()),
                etag: HeaderValue::from_static("\"missing\""),
            };
            let missing = Asset { kind: kind_of("text/html"), plain, coded: Vec::new() };
            files.insert(INDEX.to_owned(), missing);
        }
        Page { files }
    }

    /// The answer to a request for no address of the API: a file, the page itself
    /// where a browser looks for a view of it, or `None`.
    pub(super) fn answer(&self, request: &Request<Body>) -> Option<Response> {
        let (method, headers) = (request.method(), request.headers());
        let path = request.uri().path().trim_start_matches('/');
        let name = if path.is_empty() { INDEX } else { path };
        // Names are looked up as they come, neither decoded nor resolved: there is no
        // way out of the table.
        if let Some(asset) = self.files.get(name) {
            if !reads(method) {
                return Some(wrong_method(method));
            }
            return Some(send(asset, name, headers));
        }
        let first = path.split('/').next().unwrap_or_default();
        let is_view = reads(method)
            && !RESERVED.contains(&first)
            // A file of another version: the page in its place would be taken for it.
            && !path.starts_with(HASHED)
            && list(headers, &ACCEPT).any(|(kind, quality)| kind == "text/html" && quality > 0.0);
        if is_view { Some(send(self.files.get(INDEX)?, INDEX, headers)) } else { None }
    }
}

fn reads(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

fn wrong_method(method: &Method) -> Response {
    let method: String = method.as_str().chars().take(32).collect();
    let detail = format!("{method} is not known here; the header Allow lists what is");
    let mut response = Problem::fault(Fault::Method, detail).into_response();
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

fn kind_of(mime: &str) -> HeaderValue {
    let text = match mime.starts_with("text/") {
        true => format!("{mime}; charset=utf-8"),
        false => mime.to_owned(),
    };
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

fn form(file: rust_embed::EmbeddedFile, suffix: &str) -> Form {
    let hash = file.metadata.sha256_hash();
    // 128 bits are enough to tell two versions of a file apart.
    let hash: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let etag = HeaderValue::try_from(format!("\"{hash}{suffix}\""))
        .unwrap_or(HeaderValue::from_static("\"\""));
    let bytes = match file.data {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
    };
    Form { bytes, etag }
}

/// The elements of a list header with their quality (`q`), 1 unless told.
fn list<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = (&'a str, f32)> + 'a {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|element| {
        let mut parts = element.split(';').map(str::trim);
        let value = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q="));
        (value, quality.map_or(1.0, |text| text.parse().unwrap_or(0.0)))
    })
}

/// Whether the client takes this coding: by its name, else by `*`.
fn takes(headers: &HeaderMap, coding: Coding) -> bool {
    let quality = |wanted: &str| {
        let mut all = list(headers, &ACCEPT_ENCODING);
        all.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, quality)| quality)
    };
    quality(coding.name()).or_else(|| quality("*")).is_some_and(|quality| quality > 0.0)
}

fn send(asset: &Asset, name: &str, headers: &HeaderMap) -> Response {
    let coded = asset.coded.iter().find(|(coding, _)| takes(headers, *coding));
    let form = coded.map_or(&asset.plain, |(_, form)| form);
    let known = list(headers, &IF_NONE_MATCH).any(|(tag, _)| {
        let tag = tag.strip_prefix("W/").unwrap_or(tag);
        tag == "*" || tag.as_bytes() == form.etag.as_bytes()
    });
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => form.bytes.clone().into_response(),
    };
    let cached = if name.starts_with(HASHED) { IMMUTABLE } else { REVALIDATED };
    let answer = response.headers_mut();
    answer.insert(ETAG, form.etag.clone());
    answer.insert(CACHE_CONTROL, cached);
    answer.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
    if !asset.coded.is_empty() {
        answer.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    if known {
        return response;
    }
    answer.insert(CONTENT_TYPE, asset.kind.clone());
    if let Some((coding, _)) = coded {
        answer.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    response
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
