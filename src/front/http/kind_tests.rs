//! The admin API of every kind of id, over real connections.

use serde_json::{Value, json};

use super::fake::{SECRET_KEY, Server};
use super::tests::{Reply, call, get};
use crate::domain::{OpaqueKey, TypeSpec};

fn create(server: &Server, body: Value) -> Value {
    let reply = call(server, "POST", "/types", body);
    assert_eq!(reply.status, 201, "{}", reply.body);
    reply.json()
}

fn post(server: &Server, path: &str) -> Reply {
    call(server, "POST", path, Value::Null)
}

#[test]
fn every_mode_with_its_options() {
    let server = Server::start();
    let highest = TypeSpec::HIGHEST_ID;
    for (mode, options, max_id, max_position) in [
        ("strict", json!({"on_redis_loss": "segment", "at_limit": "cycle"}), highest, highest),
        ("strict", json!({"format": "{seq:06}"}), 999_999, 999_999),
        ("segment", json!({"opaque": {"slices": 8}}), highest, highest),
        ("segment", json!({"sites": {"count": 4, "site": 3}}), highest, (highest - 3) / 4),
        (
            "segment",
            json!({
                "format": "{prefix}{date:yyMMdd}{seq:05}", "calendar": "daily",
                "time_zone": "Europe/Berlin"
            }),
            99_999,
            99_999,
        ),
        ("sharded", json!({"app_id": 255}), highest, (1 << 49) - 2),
        ("snowflake", json!({}), highest, highest),
        // The width of a text does not limit what nobody counts.
        ("snowflake", json!({"format": "S{seq:019}"}), highest, highest),
        (
            "snowflake",
            json!({"snowflake": {
                "time_bits": 32, "worker_bits": 11, "sequence_bits": 20, "unit": "s",
                "epoch_ms": 1_600_000_000_000_i64
            }}),
            highest,
            highest,
        ),
    ] {
        let name = format!("t{}", server.fake.0.lock().unwrap().types.len());
        let body = json!({"name": name, "mode": mode, "options": options});
        let made = create(&server, body);
        assert_eq!(made["mode"], mode);
        assert_eq!(made["options"], options, "{made}");
        assert_eq!(
            (&made["max_id"], &made["max_position"]),
            (&json!(max_id), &json!(max_position))
        );
        let shown = get(&server, &format!("/types/{name}")).json();
        assert_eq!(shown["options"], options);
        // What each kind has beside its settings.
        assert_eq!(shown["dispatcher"].is_null(), mode != "strict", "{shown}");
        assert_eq!(shown["local"].is_null(), mode == "strict", "{shown}");
        if mode != "strict" {
            assert_eq!(shown["local"]["runway_s"], 600.0);
            assert_eq!(shown["exhausted_at_ms"], 1_700_086_400_000_i64);
        }
    }
    let text = get(&server, "/types/t0?ids=string").json();
    assert_eq!(text["max_position"], highest.to_string());
}

#[test]
fn options_that_cannot_be_name_the_field() {
    let server = Server::start();
    for (mode, options, field, part) in [
        ("strict", json!({"colour": "red"}), "options.colour", "unknown field"),
        ("strict", json!({"at_limit": "wrap"}), "options.at_limit", "unknown variant"),
        ("strict", json!({"opaque": {"slice": 3}}), "options.opaque.slice", "unknown field"),
        ("strict", json!({"app_id": "x"}), "options.app_id", "i64"),
        ("strict", json!([]), "options", "sequence"),
        ("strict", json!({"app_id": 3}), "app_id", "sharded"),
        ("sharded", json!({}), "app_id", "0 to 255"),
        ("sharded", json!({"app_id": 256}), "app_id", "from 0 to 255"),
        ("segment", json!({"sites": {"count": 2, "site": 2}}), "sites.site", "from 0 to 1"),
        ("segment", json!({"format": "{seq"}), "format", "format"),
        ("strict", json!({"calendar": "daily"}), "format", "date"),
        ("snowflake", json!({"format": "{seq:06}"}), "format", "999999"),
    ] {
        let body = json!({"name": "a", "mode": mode, "options": options});
        let problem = call(&server, "POST", "/types", body).problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{problem}");
    }
    assert!(server.fake.0.lock().unwrap().types.is_empty());
}

#[test]
fn options_and_mode_change_as_long_as_nothing_was_issued() {
    let server = Server::start();
    create(&server, json!({"name": "a"}));
    let body = json!({"version": 1, "mode": "sharded", "options": {"app_id": 7}});
    let changed = call(&server, "PATCH", "/types/a", body);
    assert_eq!(changed.status, 200, "{}", changed.body);
    let changed = changed.json();
    assert_eq!((&changed["mode"], &changed["options"]), (&json!("sharded"), &json!({"app_id": 7})));
    assert_eq!(changed["max_position"], (1_i64 << 49) - 2);
    // Left out, they stay.
    let kept = call(&server, "PATCH", "/types/a", json!({"prefix": "x"})).json();
    assert_eq!(kept["options"], json!({"app_id": 7}));
    post(&server, "/types/a/ids?gate_pass=me");
    for body in [json!({"mode": "segment", "options": {}}), json!({"options": {"app_id": 8}})] {
        let refused = call(&server, "PATCH", "/types/a", body);
        refused.problem(400, "INVALID_ARGUMENT");
    }
    let problem = call(&server, "PATCH", "/types/a", json!({"options": {"app": 8}}));
    assert_eq!(problem.problem(400, "INVALID_ARGUMENT")["field"], "options.app");
    let problem = call(&server, "PATCH", "/types/a", json!({"mode": "wild"}));
    assert_eq!(problem.problem(400, "INVALID_ARGUMENT")["field"], "mode");
}

#[test]
fn gate_passes_and_request_keys() {
    let server = Server::start();
    create(&server, json!({"name": "s", "mode": "sharded", "options": {"app_id": 5}}));
    create(
        &server,
        json!({"name": "o", "prefix": "o-", "options": {"format": "{prefix}{seq:06}"}}),
    );
    let ids = post(&server, "/types/s/ids?count=2&gate_pass=a%26b%3D%20%C3%A9").json();
    let shard = i64::from(crate::domain::gate_pass::shard_of("a&b= é"));
    let low = shard << 8 | 5;
    assert_eq!(ids["ids"], json!([1 << 14 | low, 2 << 14 | low]));
    for path in ["/types/s/ids", "/types/s/ids?gate_pass=", "/types/o/ids?gate_pass=me"] {
        let problem = post(&server, path).problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], "gate_pass", "{path}");
    }
    let keyed = "/types/o/ids?count=2&request_key=k-1";
    let first = post(&server, keyed).json();
    assert_eq!(first["ids"], json!([1, 2]));
    assert_eq!(post(&server, keyed).json(), first);
    post(&server, "/types/o/ids?count=3&request_key=k-1").problem(409, "CONFLICT");
    // An empty key is none.
    assert_eq!(post(&server, "/types/o/ids?request_key=").json()["ids"], json!([3]));
    assert_eq!(post(&server, "/types/o/ids?request_key=").json()["ids"], json!([4]));

    let texts = post(&server, "/types/o/ids?count=2&as=text").json();
    assert_eq!(texts, json!({"name": "o", "texts": ["o-000005", "o-000006"]}));
    let problem =
        post(&server, "/types/o/ids?as=text&count=10001").problem(400, "INVALID_ARGUMENT");
    assert_eq!(problem["field"], "count");
    assert!(problem["detail"].as_str().unwrap().contains("from 1 to 10000"), "{problem}");
    assert_eq!(post(&server, "/types/o/ids?as=text&count=10000").status, 200);
    post(&server, "/types/o/ids?as=words").problem(400, "INVALID_ARGUMENT");
    post(&server, "/types/o/ids?gatepass=x").problem(400, "INVALID_ARGUMENT");
}

#[test]
fn leases_and_decoding() {
    let server = Server::start();
    create(&server, json!({"name": "seg", "mode": "segment"}));
    create(&server, json!({"name": "o", "prefix": "o-"}));
    create(&server, json!({"name": "s", "mode": "sharded", "options": {"app_id": 5}}));
    let lease = post(&server, "/types/seg/lease?count=100&ttl_ms=60000&ids=string").json();
    let expected = json!({"name": "seg", "first": "1", "count": 100, "step": 1, "ttl_ms": 60_000});
    assert_eq!(lease, expected);
    for (query, field, part) in [
        ("", "count", "missing"),
        ("count=5", "ttl_ms", "missing"),
        ("count=0&ttl_ms=1000", "count", "10000000"),
        ("count=10000001&ttl_ms=1000", "count", "10000000"),
        ("count=5&ttl_ms=999", "ttl_ms", "from 1000"),
        ("count=5&ttl_ms=86400001", "ttl_ms", "to 86400000"),
        ("count=x&ttl_ms=1000", "count", "digit"),
    ] {
        let problem = post(&server, &format!("/types/seg/lease?{query}"));
        let problem = problem.problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{problem}");
    }
    let refused = post(&server, "/types/o/lease?count=5&ttl_ms=1000");
    assert_eq!(refused.problem(400, "INVALID_ARGUMENT")["field"], "mode");

    let id = 1 << 14 | 9 << 8 | 5;
    let told = get(&server, &format!("/types/s/decode?id={id}&ids=string")).json();
    assert_eq!((&told["id"], &told["position"]), (&json!(id.to_string()), &json!("1")));
    assert_eq!((&told["shard"], &told["app_id"]), (&json!(9), &json!(5)));
    assert_eq!((&told["range_first"], &told["range_count"]), (&json!("1"), &json!(1_000)));
    assert_eq!((&told["issued"], &told["node"]), (&json!(false), &json!("here:5900")));
    // What it does not tell is not there.
    assert!(told.get("worker").is_none() && told.get("period").is_none(), "{told}");
    let told = get(&server, "/types/o/decode?id=o-7").json();
    assert_eq!((&told["id"], &told["text"]), (&json!(7), &json!("o-7")));
    for query in ["", "id=", "id=abc"] {
        let problem = get(&server, &format!("/types/o/decode?{query}"));
        assert_eq!(problem.problem(400, "INVALID_ARGUMENT")["field"], "id", "{query}");
    }
    get(&server, "/types/nothing/decode?id=1").problem(404, "UNKNOWN_TYPE");
}

#[test]
fn keys_change_and_never_appear() {
    let server = Server::start();
    let opaque = json!({"slices": 4});
    let body = json!({"name": "op", "options": {"opaque": opaque}, "max_id": 40_000_000});
    let secret = [
        OpaqueKey::new(SECRET_KEY).to_hex(),
        String::from_utf8(SECRET_KEY.to_vec()).unwrap(),
        "keys".to_owned(),
    ];
    let replies = [
        call(&server, "POST", "/types", body),
        get(&server, "/types/op"),
        get(&server, "/types"),
        call(&server, "PATCH", "/types/op", json!({"description": "x"})),
        post(&server, "/types/op/rotate-key"),
        post(&server, "/types/op/ids"),
        get(&server, "/types/op/decode?id=1"),
        get(&server, "/types/op/ranges"),
        get(&server, "/audit"),
    ];
    for reply in &replies {
        assert!(matches!(reply.status, 200 | 201), "{}", reply.body);
        assert!(secret.iter().all(|text| !reply.body.contains(text)), "{}", reply.body);
    }
    let rotated = replies[4].json();
    assert_eq!((&rotated["next_id"], &rotated["version"]), (&json!(10_000_001), &json!(3)));
    let audit = replies[8].json();
    assert_eq!(audit["items"][0]["action"], "rotate_key");
    assert_eq!(audit["items"][0]["actor"], "alice");
    // Nobody brings a key of their own.
    let brought = json!({"name": "own", "options": {"opaque": {"slices": 4, "key": "00"}}});
    let problem = call(&server, "POST", "/types", brought).problem(400, "INVALID_ARGUMENT");
    assert_eq!(problem["field"], "options.opaque.key");

    create(&server, json!({"name": "plain"}));
    let problem = post(&server, "/types/plain/rotate-key").problem(400, "INVALID_ARGUMENT");
    assert_eq!(problem["field"], "opaque");
    post(&server, "/types/nothing/rotate-key").problem(404, "UNKNOWN_TYPE");
}
