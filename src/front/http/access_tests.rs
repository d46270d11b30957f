//! Who is let in, over real connections.

use std::sync::Arc;

use serde_json::{Value, json};

use super::fake::{Fake, Server, TOKEN, access, access_over};
use super::routes::operations;
use super::tests::{Reply, call, filled_in, get, send};
use super::{Access, AdminToken};
use crate::adapters::memory::{MemoryRangeStore, StoreFault};
use crate::domain::access::Role;
use crate::ports::RangeStore;

const PASSWORD: &str = "correct horse";

/// A browser that is logged in.
pub(super) struct Browser<'s> {
    server: &'s Server,
    cookie: String,
    csrf: String,
}

impl Browser<'_> {
    fn with(&self, method: &str, path: &str, extra: &[(&str, &str)], body: Value) -> Reply {
        let mut headers =
            vec![("cookie", self.cookie.as_str()), ("content-type", "application/json")];
        headers.extend(extra);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        send(self.server, method, &format!("/api/v1{path}"), &headers, &body)
    }

    fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        self.with(method, path, &[("x-idgen-csrf", &self.csrf)], body)
    }
}

fn open(server: &Server, path: &str, body: Value) -> Reply {
    let headers = [("content-type", "application/json"), ("user-agent", "a test\u{9}")];
    send(server, "POST", &format!("/api/v1{path}"), &headers, &body.to_string())
}

fn browser(server: &Server, reply: Reply) -> Browser<'_> {
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    Browser { server, cookie, csrf: reply.json()["csrf"].as_str().unwrap().to_owned() }
}

fn log_in<'s>(server: &'s Server, name: &str) -> Browser<'s> {
    let reply = open(server, "/session", json!({"name": name, "password": PASSWORD}));
    assert_eq!(reply.status, 200, "{}", reply.body);
    browser(server, reply)
}

fn add_account(server: &Server, name: &str, role: &str) {
    let body = json!({"name": name, "role": role, "password": PASSWORD});
    let added = call(server, "POST", "/accounts", body);
    assert_eq!(added.status, 201, "{}", added.body);
}

/// The roles of people.
const PEOPLE: [Role; 3] = [Role::View, Role::Operate, Role::Administer];

/// An account and a browser of each role.
fn people(server: &Server) -> [Browser<'_>; 3] {
    PEOPLE.map(|role| {
        add_account(server, role.as_str(), role.as_str());
        log_in(server, role.as_str())
    })
}

fn bearer(server: &Server, token: &str, method: &str, path: &str) -> Reply {
    let shown = format!("Bearer {token}");
    let headers = [("authorization", shown.as_str()), ("content-type", "application/json")];
    send(server, method, &format!("/api/v1{path}"), &headers, "")
}

#[test]
fn a_set_up_link_makes_the_first_account_once() {
    let access = access();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let link = || runtime.block_on(access.control.make_setup()).unwrap();
    let first = link().expect("there is no account");
    let second = link().expect("there is no account");
    let server = Server::with(access.clone(), 16);
    let before = send(&server, "GET", "/api/v1/access", &[], "").json();
    assert_eq!(before, json!({"setup_needed": true, "accounts": false, "closed": null}));
    let set_up = |token: &str, name: &str, password: &str| {
        open(&server, "/setup", json!({"token": token, "name": name, "password": password}))
    };
    for wrong in ["", "x", first.as_str(), TOKEN] {
        set_up(wrong, "ann", PASSWORD).problem(403, "PERMISSION_DENIED");
    }
    let short = set_up(&second, "ann", "short").problem(400, "INVALID_ARGUMENT");
    assert_eq!(short["field"], "password");
    let reply = set_up(&second, "ann", PASSWORD);
    assert_eq!(reply.status, 201, "{}", reply.body);
    assert_eq!(reply.json()["account"], json!({"name": "ann", "role": "administer"}));
    let ann = browser(&server, reply);
    assert_eq!(ann.call("GET", "/accounts", Value::Null).status, 200);
    set_up(&second, "bob", PASSWORD).problem(403, "PERMISSION_DENIED");
    let after = send(&server, "GET", "/api/v1/access", &[], "").json();
    assert_eq!(after, json!({"setup_needed": false, "accounts": true, "closed": null}));
    assert_eq!(link(), None);
}

#[test]
fn a_session_lives_from_login_to_logout() {
    let server = Server::start();
    add_account(&server, "ann", "operate");
    let login = json!({"name": "ann", "password": PASSWORD});
    let reply = open(&server, "/session", login.clone());
    let cookie = reply.headers["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.starts_with("idgen_session="), "{cookie}");
    assert!(cookie.ends_with("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"), "{cookie}");
    let ann = browser(&server, reply);
    let me = ann.call("GET", "/session", Value::Null).json();
    assert_eq!(me["account"], json!({"name": "ann", "role": "operate"}));
    assert_eq!((&me["how"], &me["csrf"]), (&json!("session"), &json!(ann.csrf)));

    // Whatever changes something needs the proof, which another page cannot read.
    let add = json!({"name": "order"});
    ann.with("POST", "/types", &[], add.clone()).problem(403, "PERMISSION_DENIED");
    for wrong in ["", "x", &ann.csrf[..31]] {
        let reply = ann.with("POST", "/types", &[("x-idgen-csrf", wrong)], add.clone());
        reply.problem(403, "PERMISSION_DENIED");
    }
    assert_eq!(ann.call("POST", "/types", add).status, 201);
    let audit = ann.call("GET", "/audit", Value::Null).json();
    assert_eq!(audit["items"][0]["actor"], "ann", "not the header X-Idgen-Actor");

    let other = log_in(&server, "ann");
    let sessions = ann.call("GET", "/sessions", Value::Null).json();
    let items = sessions["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    let theirs = items.iter().find(|s| s["current"] == false).unwrap();
    assert_eq!(theirs["address"], "127.0.0.1");
    assert_eq!(theirs["agent"], "a test", "what is not printable is left out");
    let id = theirs["id"].as_str().unwrap();
    assert_eq!(ann.call("DELETE", &format!("/sessions/{id}"), Value::Null).status, 204);
    other.call("GET", "/session", Value::Null).problem(401, "UNAUTHENTICATED");
    ann.call("DELETE", &format!("/sessions/{id}"), Value::Null).problem(404, "NOT_FOUND");

    ann.with("DELETE", "/session", &[], Value::Null).problem(403, "PERMISSION_DENIED");
    let gone = ann.call("DELETE", "/session", Value::Null);
    assert_eq!(gone.status, 204);
    assert!(gone.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    ann.call("GET", "/session", Value::Null).problem(401, "UNAUTHENTICATED");
    let secure = Server::with(Access { secure_cookies: true, ..access() }, 16);
    add_account(&secure, "ann", "view");
    let reply = open(&secure, "/session", login);
    let cookie = reply.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-idgen_session="), "{cookie}");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn a_password_is_changed_by_who_knows_the_old_one() {
    let server = Server::start();
    add_account(&server, "ann", "view");
    let (ann, other) = (log_in(&server, "ann"), log_in(&server, "ann"));
    let change = |old: &str, new: &str| {
        ann.call("POST", "/session/password", json!({"old": old, "new": new}))
    };
    let wrong = change("nonsense nonsense", "battery staple").problem(400, "INVALID_ARGUMENT");
    assert_eq!(wrong["field"], "old");
    let short = change(PASSWORD, "short").problem(400, "INVALID_ARGUMENT");
    assert_eq!(short["field"], "password");
    assert_eq!(change(PASSWORD, "battery staple").status, 204);
    assert_eq!(ann.call("GET", "/session", Value::Null).status, 200);
    other.call("GET", "/session", Value::Null).problem(401, "UNAUTHENTICATED");
    let old = open(&server, "/session", json!({"name": "ann", "password": PASSWORD}));
    old.problem(401, "UNAUTHENTICATED");
    let new = open(&server, "/session", json!({"name": "ann", "password": "battery staple"}));
    assert_eq!(new.status, 200);
    let by_token = call(&server, "POST", "/session/password", json!({"old": "a", "new": "b"}));
    by_token.problem(403, "PERMISSION_DENIED");
}

#[test]
fn accounts_are_managed() {
    let server = Server::start();
    add_account(&server, "ann", "administer");
    let bad = [
        (json!({"name": "a b", "role": "view", "password": PASSWORD}), "name"),
        (json!({"name": "bob", "role": "root", "password": PASSWORD}), "role"),
        (json!({"name": "bob", "role": "view", "password": "short"}), "password"),
    ];
    for (body, field) in bad {
        let problem = call(&server, "POST", "/accounts", body).problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(!problem.to_string().contains(PASSWORD));
    }
    let again = json!({"name": "ann", "role": "view", "password": PASSWORD});
    call(&server, "POST", "/accounts", again).problem(409, "ALREADY_EXISTS");
    let patch =
        |name: &str, body: Value| call(&server, "PATCH", &format!("/accounts/{name}"), body);
    patch("ann", json!({"disabled": true})).problem(409, "CONFLICT");
    patch("ann", json!({"role": "view"})).problem(409, "CONFLICT");
    patch("nobody", json!({"role": "view"})).problem(404, "NOT_FOUND");
    call(&server, "DELETE", "/accounts/ann", Value::Null).problem(409, "CONFLICT");
    call(&server, "DELETE", "/accounts/nobody", Value::Null).problem(404, "NOT_FOUND");

    add_account(&server, "bob", "view");
    let bob = log_in(&server, "bob");
    bob.call("POST", "/types", json!({"name": "x"})).problem(403, "PERMISSION_DENIED");
    let promoted = patch("bob", json!({"version": 1, "role": "operate"}));
    assert_eq!(promoted.json()["version"], 2, "{}", promoted.body);
    patch("bob", json!({"version": 1, "role": "view"})).problem(409, "CONFLICT");
    assert_eq!(bob.call("POST", "/types", json!({"name": "x"})).status, 201, "at once");
    assert_eq!(patch("bob", json!({"disabled": true})).status, 200);
    bob.call("GET", "/session", Value::Null).problem(401, "UNAUTHENTICATED");
    let login = json!({"name": "bob", "password": PASSWORD});
    open(&server, "/session", login.clone()).problem(401, "UNAUTHENTICATED");
    patch("bob", json!({"disabled": false, "password": "battery staple"}));
    open(&server, "/session", login).problem(401, "UNAUTHENTICATED");
    let listed = get(&server, "/accounts");
    assert!(!listed.body.contains("argon2"), "{}", listed.body);
    let names: Vec<_> =
        listed.json()["items"].as_array().unwrap().iter().map(|a| a["name"].clone()).collect();
    assert_eq!(names, ["ann", "bob"]);
    assert_eq!(call(&server, "DELETE", "/accounts/bob", Value::Null).status, 204);
}

#[test]
fn tokens_have_a_role_a_scope_and_an_end() {
    let server = Server::start();
    let [view, operate, administer] = people(&server);
    let make = |by: &Browser<'_>, body: Value| by.call("POST", "/tokens", body);
    let made = make(&operate, json!({"name": "ci", "role": "operate", "types": ["shop.*"]}));
    assert_eq!(made.status, 201, "{}", made.body);
    let (token, secret) = (made.json()["token"].clone(), made.json()["secret"].clone());
    let secret = secret.as_str().unwrap();
    assert!(secret.starts_with("idg_") && secret.len() == 68, "{}", made.body);
    assert_eq!(token["created_by"], "operate");
    make(&operate, json!({"name": "ci", "role": "view"})).problem(409, "ALREADY_EXISTS");
    make(&operate, json!({"name": "up", "role": "administer"})).problem(403, "PERMISSION_DENIED");
    for (body, field) in [
        (json!({"name": "a b", "role": "view"}), "name"),
        (json!({"name": "a", "role": "x"}), "role"),
        (json!({"name": "a", "role": "view", "types": ["*"]}), "types"),
        (json!({"name": "a", "role": "view", "expires_ms": 1}), "expires_ms"),
    ] {
        let problem = make(&operate, body).problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], field);
    }
    for name in ["shop.order", "other"] {
        call(&server, "POST", "/types", json!({ "name": name }));
    }
    let ci = |method: &str, path: &str| bearer(&server, secret, method, path);
    assert_eq!(ci("POST", "/types/shop.order/ids").status, 200);
    assert_eq!(ci("POST", "/types/shop%2Eorder/ids").status, 200);
    assert_eq!(ci("GET", "/session").json()["account"]["name"], "token ci");
    for (method, path) in [
        ("POST", "/types/other/ids"),
        ("GET", "/types/other"),
        ("GET", "/types"),
        ("POST", "/types"),
        ("GET", "/audit"),
        ("DELETE", "/redis-instances/shop.x"),
        ("GET", "/tokens"),
    ] {
        ci(method, path).problem(403, "PERMISSION_DENIED");
    }
    assert_eq!(ci("POST", "/types/shop.order/retire").status, 200);
    let audit = get(&server, "/audit").json();
    assert_eq!(audit["items"][0]["actor"], "token ci");

    // Everybody sees and revokes their own; who administers, all.
    let seen = |by: &Browser<'_>| by.call("GET", "/tokens", Value::Null).json()["items"].clone();
    assert_eq!(seen(&view), json!([]));
    assert_eq!(seen(&administer).as_array().unwrap().len(), 1);
    let path = format!("/tokens/{}", token["id"].as_str().unwrap());
    view.call("DELETE", &path, Value::Null).problem(404, "NOT_FOUND");
    assert_eq!(operate.call("DELETE", &path, Value::Null).status, 204);
    ci("POST", "/types/shop.order/ids").problem(401, "UNAUTHENTICATED");
    assert_eq!(seen(&operate)[0]["revoked"], true);

    // A token is worth no more than its account is now, and makes no tokens.
    let made = make(&administer, json!({"name": "all", "role": "administer"})).json();
    let secret = made["secret"].as_str().unwrap();
    assert_eq!(bearer(&server, secret, "GET", "/accounts").status, 200);
    bearer(&server, secret, "POST", "/session/password").problem(400, "INVALID_ARGUMENT");
    let shown = format!("Bearer {secret}");
    let headers = [("authorization", shown.as_str()), ("content-type", "application/json")];
    let body = json!({"name": "child", "role": "view"}).to_string();
    send(&server, "POST", "/api/v1/tokens", &headers, &body).problem(403, "PERMISSION_DENIED");
    add_account(&server, "boss", "administer");
    call(&server, "PATCH", "/accounts/administer", json!({"role": "view"}));
    bearer(&server, secret, "GET", "/accounts").problem(403, "PERMISSION_DENIED");
    assert_eq!(bearer(&server, secret, "GET", "/node").status, 200);
    call(&server, "DELETE", "/accounts/administer", Value::Null);
    bearer(&server, secret, "GET", "/node").problem(401, "UNAUTHENTICATED");
    let forged = format!("idg_{}", "0".repeat(64));
    bearer(&server, &forged, "GET", "/node").problem(401, "UNAUTHENTICATED");
    // The secret of a session is no token.
    let cookie = view.cookie.split('=').nth(1).unwrap();
    bearer(&server, cookie, "GET", "/node").problem(401, "UNAUTHENTICATED");
}

#[test]
fn every_address_lets_in_who_has_the_role_and_nobody_else() {
    let server = Server::start();
    let browsers = people(&server);
    let program = token(&server, json!({"name": "shop", "role": "issue"}));
    let mut walked = 0;
    for operation in operations::<Fake>() {
        let (method, route) = (operation.method.as_str(), operation.path);
        let path = filled_in(route);
        if route == "/session" && method == "DELETE" {
            continue; // Ends the session that the rest is asked with.
        }
        let anybody = send(&server, method, &format!("/api/v1{path}"), &[], "");
        let Some(needed) = operation.role else {
            assert!(![401, 403].contains(&anybody.status), "{method} {route}: {}", anybody.body);
            continue;
        };
        anybody.problem(401, "UNAUTHENTICATED");
        for (browser, role) in browsers.iter().zip(PEOPLE) {
            let reply = browser.call(method, &path, Value::Null);
            let what = format!("{method} {route} as {role}: {}", reply.body);
            if !role.includes(needed) {
                let problem = reply.problem(403, "PERMISSION_DENIED");
                let detail = problem["detail"].as_str().unwrap();
                assert!(detail.contains(&format!("needs the role {needed}")), "{what}");
            } else {
                assert!(![401, 403].contains(&reply.status), "{what}");
                assert_ne!(reply.status, 405, "{what}");
            }
            walked += 1;
        }
        let reply = bearer(&server, &program, method, &path);
        let is_for_programs = ["issueIds", "leaseRange", "decodeId"].contains(&operation.id);
        assert_eq!(reply.status != 403, is_for_programs, "{method} {route}: {}", reply.body);
        assert_ne!(call(&server, method, &path, Value::Null).status, 401, "{method} {route}");
    }
    assert!(walked > 90, "only {walked}");
}

/// The secret of a token that the admin token made.
fn token(server: &Server, body: Value) -> String {
    let made = call(server, "POST", "/tokens", body);
    assert_eq!(made.status, 201, "{}", made.body);
    made.json()["secret"].as_str().unwrap().to_owned()
}

#[test]
fn a_caller_takes_ids_of_its_types_up_to_its_quota() {
    let store = Arc::new(MemoryRangeStore::new());
    let server = Server::with(access_over(store.clone()), 16);
    for name in ["order", "order2", "other"] {
        call(&server, "POST", "/types", json!({"name": name}));
    }
    let body = json!({"name": "shop", "role": "issue", "types": ["order*"], "quota": 2});
    let shop = token(&server, body);
    let take = |path: &str| bearer(&server, &shop, "POST", path);
    assert_eq!(take("/types/order/ids?count=1").status, 200);
    let problem = take("/types/other/ids").problem(403, "PERMISSION_DENIED");
    assert!(problem["detail"].as_str().unwrap().contains("limited to some types"));
    let problem = take("/types/order/ids?count=3").problem(400, "INVALID_ARGUMENT");
    assert_eq!(problem["field"], "count");
    assert!(problem["detail"].as_str().unwrap().contains("2 ids per second"), "{problem}");
    // Two at a time, as fast as calls go: sooner or later there are none left.
    let refused = loop {
        let reply = take("/types/order2/ids?count=2");
        if reply.status != 200 {
            break reply;
        }
    };
    let problem = refused.problem(429, "QUOTA_EXCEEDED");
    assert_eq!(problem["retriable"], true);
    assert_eq!(refused.headers["retry-after"], "1");
    // It comes again.
    while take("/types/order/ids").status != 200 {}

    let callers = get(&server, "/callers").json();
    let of = &callers["items"][0];
    assert_eq!((&of["name"], &of["quota"]), (&json!("shop"), &json!(2)));
    assert!(of["taken"].as_u64().unwrap() >= 2 && of["calls"].as_u64().unwrap() >= 2, "{of}");
    assert_eq!(of["refused"]["type"], 1, "{of}");
    assert!(of["refused"]["quota"].as_u64().unwrap() >= 2, "{of}");

    let listed = get(&server, "/tokens").json();
    let listed = &listed["items"][0];
    assert_eq!((&listed["quota"], &listed["certificate"]), (&json!(2), &json!(false)));
    let id = listed["id"].as_str().unwrap();
    call(&server, "DELETE", &format!("/tokens/{id}"), Value::Null);
    take("/types/order/ids").problem(401, "UNAUTHENTICATED");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut entries;
    loop {
        entries = runtime.block_on(store.audit(100)).unwrap();
        entries.retain(|entry| entry.action == "refused_call");
        if entries.len() == 2 {
            break;
        }
    }
    let told = |at: usize| (entries[at].subject.as_str(), entries[at].after.as_deref().unwrap());
    assert_eq!(told(1), ("shop", r#"{"reason":"type"}"#));
    assert_eq!(told(0), ("?", r#"{"reason":"bad_token"}"#));
    assert!(entries.iter().all(|entry| entry.actor == "127.0.0.1"));
}

#[test]
fn a_token_for_callers_is_made_by_who_may_take_ids() {
    let server = Server::start();
    let [view, operate, _] = people(&server);
    let body = |name: &str| json!({"name": name, "role": "issue"});
    view.call("POST", "/tokens", body("a")).problem(403, "PERMISSION_DENIED");
    let made = operate.call("POST", "/tokens", body("b"));
    assert_eq!(made.status, 201, "{}", made.body);
    let made = made.json();
    let secret = made["secret"].as_str().unwrap();
    call(&server, "POST", "/types", json!({"name": "order"}));
    assert_eq!(bearer(&server, secret, "POST", "/types/order/ids").status, 200);
    // What its account may not do any more, it may not either; nothing is left of it.
    call(&server, "PATCH", "/accounts/operate", json!({"role": "view"}));
    bearer(&server, secret, "POST", "/types/order/ids").problem(401, "UNAUTHENTICATED");

    let account = json!({"name": "p", "role": "issue", "password": PASSWORD});
    let refused = call(&server, "POST", "/accounts", account);
    assert_eq!(refused.problem(400, "INVALID_ARGUMENT")["field"], "role");
    for (change, field) in [
        (json!({"quota": 0}), "quota"),
        (json!({"quota": 1_000_000_001}), "quota"),
        (json!({"role": "view", "certificate": true}), "role"),
    ] {
        let mut spec = body("c");
        spec.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refused = call(&server, "POST", "/tokens", spec);
        assert_eq!(refused.problem(400, "INVALID_ARGUMENT")["field"], field);
    }
    let certificate = json!({"name": "shop.example", "role": "issue", "certificate": true});
    let made = call(&server, "POST", "/tokens", certificate).json();
    assert_eq!((&made["secret"], &made["token"]["certificate"]), (&json!(""), &json!(true)));
    bearer(&server, "certificate shop.example", "GET", "/node").problem(401, "UNAUTHENTICATED");
}

#[test]
fn guessing_is_slow_and_leaves_a_bounded_trace() {
    let store = Arc::new(MemoryRangeStore::new());
    let server = Server::with(access_over(store.clone()), 16);
    add_account(&server, "ann", "view");
    let guess = |name: &str| {
        open(&server, "/session", json!({"name": name, "password": "a wrong password"}))
    };
    for name in ["ann", "nobody", "no body"] {
        let problem = guess(name).problem(401, "UNAUTHENTICATED");
        assert_eq!(problem["detail"], "no open account has that name and password");
    }
    for _ in 0..9 {
        guess("ann").problem(401, "UNAUTHENTICATED");
    }
    let refused = guess("ann");
    refused.problem(429, "RATE_LIMITED");
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((20..=30).contains(&wait), "{wait}");
    let right = json!({"name": "ann", "password": PASSWORD});
    open(&server, "/session", right).problem(429, "RATE_LIMITED");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let audit = runtime.block_on(store.audit(100)).unwrap();
    let failed = audit.iter().filter(|entry| entry.action == "failed_login").count();
    assert_eq!(failed, 10, "twelve failed");
}

#[test]
fn without_the_store_who_was_let_in_stays_in() {
    let store = Arc::new(MemoryRangeStore::new());
    let server = Server::with(access_over(store.clone()), 16);
    let [_, operate, _] = people(&server);
    assert_eq!(operate.call("GET", "/session", Value::Null).status, 200);
    let other = log_in(&server, "operate");
    store.set_fault(StoreFault::Down);
    assert_eq!(operate.call("POST", "/types", json!({"name": "order"})).status, 201);
    other.call("GET", "/session", Value::Null).problem(503, "UNAVAILABLE");
    open(&server, "/session", json!({"name": "operate", "password": PASSWORD}))
        .problem(503, "UNAVAILABLE");
    assert_eq!(get(&server, "/node").status, 200, "the admin token needs no store");
    store.set_fault(StoreFault::None);
    assert_eq!(other.call("GET", "/session", Value::Null).status, 200);
}

#[test]
fn without_an_admin_token_accounts_still_work() {
    let open_one = access();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let control = &open_one.control;
    runtime.block_on(control.add_account("ann", Role::View, PASSWORD, "test")).unwrap();
    let admin = AdminToken::Closed("set IDGEN_ADMIN_TOKEN".to_owned());
    let server = Server::with(Access { admin, ..open_one }, 16);
    let about = send(&server, "GET", "/api/v1/access", &[], "").json();
    assert_eq!(about["closed"], "set IDGEN_ADMIN_TOKEN");
    assert_eq!(log_in(&server, "ann").call("GET", "/node", Value::Null).status, 200);
    let nothing = send(&server, "GET", "/api/v1/node", &[], "").problem(401, "UNAUTHENTICATED");
    assert!(nothing["detail"].as_str().unwrap().contains("IDGEN_ADMIN_TOKEN"));
    get(&server, "/node").problem(403, "PERMISSION_DENIED");
}
