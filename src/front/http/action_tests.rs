//! Blocks and previews over real connections.

use serde_json::json;

use super::fake::Server;
use super::tests::{call, get};

#[test]
fn a_block_is_for_the_caller_alone() {
    let server = Server::start();
    call(&server, "POST", "/types", json!({"name": "order", "max_id": 10_000}));
    let block = call(&server, "POST", "/types/order/reserve", json!({"count": 500}));
    assert_eq!(block.status, 201, "{}", block.body);
    let expected = json!({"name": "order", "start": 1, "end": 501, "step": 1, "count": 500});
    assert_eq!(block.json(), expected);
    assert_eq!(call(&server, "POST", "/types/order/ids", json!(null)).json()["ids"], json!([501]));
    assert_eq!(get(&server, "/audit?limit=1").json()["items"][0]["actor"], "alice");
    let text = call(&server, "POST", "/types/order/reserve?ids=string", json!({"count": 1}));
    assert_eq!(text.json()["start"], "502");

    for (path, body, status, code, field) in [
        ("order", json!({"count": 0}), 400, "INVALID_ARGUMENT", "count"),
        ("order", json!({"count": 1_000_000_000_001_i64}), 400, "INVALID_ARGUMENT", "count"),
        ("order", json!({}), 400, "INVALID_ARGUMENT", ""),
        ("order", json!({"count": 1, "floor": 5}), 400, "INVALID_ARGUMENT", "floor"),
        ("order", json!({"count": 10_000}), 409, "EXHAUSTED", ""),
        ("nothing", json!({"count": 1}), 404, "UNKNOWN_TYPE", ""),
    ] {
        let reply = call(&server, "POST", &format!("/types/{path}/reserve"), body);
        let problem = reply.problem(status, code);
        assert_eq!(problem["field"].as_str().unwrap_or_default(), field, "{problem}");
    }
}

#[test]
fn kinds_without_a_row_of_ids_have_no_block() {
    let server = Server::start();
    for (name, body, field) in [
        ("a", json!({"mode": "sharded", "options": {"app_id": 1}}), "mode"),
        ("b", json!({"mode": "snowflake"}), "mode"),
        ("c", json!({"options": {"opaque": {"slices": 2}}}), "opaque"),
        ("d", json!({"options": {"at_limit": "cycle"}}), "at_limit"),
        ("e", json!({"options": {"calendar": "daily", "format": "{date:yyMMdd}{seq:06}"}}), "mode"),
    ] {
        let mut body = body;
        body["name"] = json!(name);
        assert_eq!(call(&server, "POST", "/types", body).status, 201, "{name}");
        let path = format!("/types/{name}/reserve");
        let problem = call(&server, "POST", &path, json!({"count": 5}));
        assert_eq!(problem.problem(400, "INVALID_ARGUMENT")["field"], field, "{name}");
    }
}

#[test]
fn a_preview_makes_nothing() {
    let server = Server::start();
    let wanted = json!({"type": {"name": "order", "prefix": "o-", "max_id": "9999"}, "rate": 10});
    let reply = call(&server, "POST", "/types/preview?ids=string", wanted);
    assert_eq!(reply.status, 200, "{}", reply.body);
    let shown = reply.json();
    assert_eq!(shown["ids"][0], json!({"id": "1", "text": "o-1"}));
    assert_eq!(shown["ids"].as_array().unwrap().len(), 5);
    assert_eq!(shown["growth"][0], json!({"at_s": 0.0, "length": 1_000, "end": "1001"}));
    assert_eq!((&shown["ascending"], &shown["lasts_s"]), (&json!(true), &json!(999.9)));
    get(&server, "/types/order").problem(404, "UNKNOWN_TYPE");

    // The same problem as that of a creation.
    for wrong in [
        json!({"name": "order", "min_range": 0}),
        json!({"name": "a b"}),
        json!({"name": "order", "options": {"format": "{seq:2}{seq}"}}),
    ] {
        let created = call(&server, "POST", "/types", wrong.clone()).json();
        let shown = call(&server, "POST", "/types/preview", json!({"type": wrong, "rate": 1}));
        assert_eq!(shown.json(), created);
    }
    let rate = json!({"type": {"name": "order"}, "rate": -1});
    let problem = call(&server, "POST", "/types/preview", rate).problem(400, "INVALID_ARGUMENT");
    assert_eq!(problem["field"], "rate");
}

#[test]
fn a_type_may_be_called_preview() {
    let server = Server::start();
    assert_eq!(call(&server, "POST", "/types", json!({"name": "preview"})).status, 201);
    assert_eq!(get(&server, "/types/preview").json()["name"], "preview");
    let patched = call(&server, "PATCH", "/types/preview", json!({"description": "x"}));
    assert_eq!(patched.status, 200);
    let body = json!({"type": {"name": "a"}});
    call(&server, "POST", "/types/other", body).problem(405, "METHOD_NOT_ALLOWED");
}
