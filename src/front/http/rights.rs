//! Which role each address under `/api/v1` needs.

use axum::http::Method;

use crate::domain::access::Role;

/// Who may send a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Everybody.
    Open,
    /// Whoever has this role, or a stronger one.
    Role(Role),
}

const VIEW: Need = Need::Role(Role::View);
const OPERATE: Need = Need::Role(Role::Operate);
const ADMINISTER: Need = Need::Role(Role::Administer);

/// Methods and addresses, as the router has them. What is not here needs
/// `administer`; a test finds every address of the router that is not here.
pub(super) const RIGHTS: &[(&str, &str, Need)] = &[
    // Access.
    ("GET", "/access", Need::Open),
    ("POST", "/setup", Need::Open),
    ("POST", "/session", Need::Open),
    ("GET", "/session", VIEW),
    ("DELETE", "/session", VIEW),
    ("POST", "/session/password", VIEW),
    ("GET", "/accounts", ADMINISTER),
    ("POST", "/accounts", ADMINISTER),
    ("PATCH", "/accounts/{name}", ADMINISTER),
    ("DELETE", "/accounts/{name}", ADMINISTER),
    // Of these two everybody has their own; the handlers look at whose they are.
    ("GET", "/sessions", VIEW),
    ("DELETE", "/sessions/{name}", VIEW),
    ("GET", "/tokens", VIEW),
    ("POST", "/tokens", VIEW),
    ("DELETE", "/tokens/{name}", VIEW),
    // Types.
    ("GET", "/types", VIEW),
    ("POST", "/types", OPERATE),
    ("POST", "/types/preview", VIEW),
    ("GET", "/types/{name}", VIEW),
    ("PATCH", "/types/{name}", OPERATE),
    ("POST", "/types/{name}/retire", OPERATE),
    ("POST", "/types/{name}/restore", OPERATE),
    ("POST", "/types/{name}/rotate-key", OPERATE),
    ("POST", "/types/{name}/ids", OPERATE),
    ("POST", "/types/{name}/lease", OPERATE),
    ("POST", "/types/{name}/reserve", OPERATE),
    ("GET", "/types/{name}/decode", VIEW),
    ("GET", "/types/{name}/ranges", VIEW),
    ("GET", "/types/{name}/series", VIEW),
    ("GET", "/types/{name}/migration", VIEW),
    ("POST", "/types/{name}/migration", OPERATE),
    ("DELETE", "/types/{name}/migration", OPERATE),
    ("GET", "/migrations", VIEW),
    ("GET", "/export", VIEW),
    ("POST", "/imports", OPERATE),
    // Redis instances.
    ("GET", "/redis-instances", VIEW),
    ("POST", "/redis-instances", ADMINISTER),
    ("POST", "/redis-instances/test", ADMINISTER),
    ("DELETE", "/redis-instances/{name}", ADMINISTER),
    ("POST", "/redis-instances/{name}/drain", OPERATE),
    ("DELETE", "/redis-instances/{name}/drain", OPERATE),
    // Live, and about the service.
    ("GET", "/overview", VIEW),
    ("GET", "/stream", VIEW),
    ("GET", "/series", VIEW),
    ("GET", "/audit", VIEW),
    ("GET", "/node", VIEW),
    ("GET", "/openapi.json", Need::Open),
];

/// What `method` at the address `path`, as the router has it, needs; `None` for an
/// address that the router does not know, where there is nothing to see.
pub(super) fn need(method: &Method, path: Option<&str>) -> Need {
    let Some(path) = path else { return VIEW };
    // The router answers HEAD as GET.
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let found = RIGHTS.iter().find(|(m, p, _)| *m == method && *p == path);
    found.map_or(ADMINISTER, |(_, _, need)| *need)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The methods and addresses of the router, as its source has them.
    pub fn routes() -> BTreeSet<(String, String)> {
        let source = include_str!("routes.rs");
        let start = source.find("let admin = Router::new()").expect("the router of the API");
        let end = start + source[start..].find(".fallback(").expect("its end");
        let mut found = BTreeSet::new();
        for route in source[start..end].split(".route(").skip(1) {
            let path = route.split('"').nth(1).expect("an address");
            for method in ["get", "post", "patch", "put", "delete"] {
                let handler = format!("{method}(");
                let mut before = route.match_indices(&handler).map(|(at, _)| &route[..at]);
                if before.any(|text| !text.ends_with(|c: char| c.is_alphanumeric() || c == '_')) {
                    found.insert((method.to_uppercase(), path.to_owned()));
                }
            }
        }
        assert!(found.len() > 30, "{found:?}");
        found
    }

    #[test]
    fn every_address_has_a_role() {
        for (method, path) in routes() {
            let known = RIGHTS.iter().any(|(m, p, _)| *m == method && *p == path);
            assert!(known, "{method} {path} has no role: add one to RIGHTS");
        }
        let unique: BTreeSet<_> = RIGHTS.iter().map(|(m, p, _)| (m, p)).collect();
        assert_eq!(unique.len(), RIGHTS.len());
    }

    #[test]
    fn what_is_not_known_needs_the_strongest_role() {
        assert_eq!(need(&Method::PUT, Some("/types")), ADMINISTER);
        assert_eq!(need(&Method::GET, Some("/forgotten")), ADMINISTER);
        assert_eq!(need(&Method::HEAD, Some("/types")), VIEW);
        assert_eq!(need(&Method::GET, None), VIEW);
    }
}
