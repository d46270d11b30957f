//! Moving types and draining instances, over real connections.

use serde_json::{Value, json};

use super::fake::Server;
use super::tests::{call, get};
use crate::domain::{InstanceId, TypeName};

/// Instances 1 `main`, 2 `spare`, 3 `far`, which does not answer, and a type of each
/// mode on the first.
fn start() -> Server {
    let server = Server::start();
    for (name, host) in [("main", "up"), ("spare", "up"), ("far", "down")] {
        let body = json!({"name": name, "url": format!("redis://{host}:1"), "test": false});
        assert_eq!(call(&server, "POST", "/redis-instances", body).status, 201);
    }
    for (name, mode) in [("order", "strict"), ("event", "segment")] {
        let made = call(&server, "POST", "/types", json!({"name": name, "mode": mode}));
        assert_eq!(made.status, 201, "{}", made.body);
    }
    server
}

fn on_the_way(server: &Server, name: &str, to: i64) {
    let mut held = server.fake.0.lock().unwrap();
    let record = held.types.get_mut(&TypeName::parse(name).unwrap()).unwrap();
    record.placement.generation += 1;
    record.placement.moving_to = Some(InstanceId(to));
}

#[test]
fn a_type_moves_and_comes_back() {
    let server = start();
    let plan = get(&server, "/types/order/migration?to=spare&ids=string").json();
    assert_eq!(plan["record"]["instance"], 1);
    assert_eq!((&plan["from"]["name"], &plan["to"]["instance"]), (&json!("main"), &json!(2)));
    assert_eq!(
        (&plan["from"]["reachable"], &plan["from"]["history"]),
        (&json!(true), &json!("h1"))
    );
    assert_eq!(plan["from"]["dispatcher"]["current"]["end"], "1001");
    assert_eq!(plan["to"]["dispatcher"]["live"], false);
    assert_eq!((&plan["rest"], &plan["keeps_rest"]), (&json!(1_000), &json!(true)));
    assert_eq!(plan["problems"], json!([]));
    assert_eq!(get(&server, "/types/order").json()["instance"], 1, "nothing has changed");

    let moved = call(&server, "POST", "/types/order/migration", json!({"to": "2"}));
    assert_eq!(moved.status, 200, "{}", moved.body);
    let moved = moved.json();
    assert_eq!((&moved["kept"], &moved["burnt"]), (&json!(1_000), &json!(0)));
    assert_eq!(moved["took_ms"], 12);
    let record = &moved["record"];
    assert_eq!((&record["instance"], &record["moved_from"]), (&json!(2), &json!(1)));
    assert_eq!((&record["moving_to"], &record["generation"]), (&Value::Null, &json!(2)));
    assert!(record["moved_ms"].is_i64(), "{record}");
    assert_eq!(get(&server, "/audit?limit=1").json()["items"][0]["actor"], "alice");

    let back = call(&server, "DELETE", "/types/order/migration", Value::Null);
    assert_eq!((back.status, &back.json()["instance"]), (200, &json!(1)), "{}", back.body);
    call(&server, "DELETE", "/types/event/migration", Value::Null).problem(409, "CONFLICT");
}

#[test]
fn a_type_on_its_way_is_listed_and_can_be_undone() {
    let server = start();
    assert_eq!(get(&server, "/migrations").json(), json!({"items": [], "more": false}));
    on_the_way(&server, "event", 2);
    let listed = get(&server, "/migrations?ids=string").json();
    assert_eq!(listed["items"][0]["name"], "event");
    assert_eq!(listed["items"][0]["moving_to"], 2);
    assert_eq!(listed["items"][0]["next_id"], "1");
    let again = call(&server, "POST", "/types/event/migration", json!({"to": "spare"}));
    let told = again.problem(409, "CONFLICT");
    assert!(told["detail"].as_str().unwrap().contains("being moved to"), "{told}");
    let plan = get(&server, "/types/event/migration?to=spare").json();
    assert!(plan["problems"][0].as_str().unwrap().contains("being moved to"), "{plan}");
    let undone = call(&server, "DELETE", "/types/event/migration", Value::Null).json();
    assert_eq!((&undone["instance"], &undone["moving_to"]), (&json!(1), &Value::Null));
    assert_eq!(get(&server, "/migrations").json()["items"], json!([]));
}

#[test]
fn what_cannot_move_says_why() {
    let server = start();
    let drain = call(&server, "POST", "/redis-instances/far/drain", json!({"to": "spare"}));
    assert_eq!(drain.status, 200);
    let move_to =
        |name: &str, body: Value| call(&server, "POST", &format!("/types/{name}/migration"), body);
    for (name, body, status, code, field, part) in [
        ("nothing", json!({"to": "spare"}), 404, "UNKNOWN_TYPE", None, "nothing"),
        ("a%20b", json!({"to": "spare"}), 400, "INVALID_ARGUMENT", Some("name"), "name"),
        ("order", json!({"to": "nowhere"}), 404, "UNKNOWN_INSTANCE", None, "nowhere"),
        ("order", json!({"to": "4"}), 404, "UNKNOWN_INSTANCE", None, "4"),
        ("order", json!({"to": "main"}), 400, "INVALID_ARGUMENT", Some("instance"), "already"),
        ("order", json!({"to": "far"}), 400, "INVALID_ARGUMENT", Some("instance"), "drained"),
        ("order", json!({}), 400, "INVALID_ARGUMENT", None, "missing field `to`"),
        ("order", json!({"to": 2}), 400, "INVALID_ARGUMENT", Some("to"), "string"),
        ("order", json!({"to": null}), 400, "INVALID_ARGUMENT", Some("to"), "string"),
        (
            "order",
            json!({"to": "spare", "abandon": "yes"}),
            400,
            "INVALID_ARGUMENT",
            Some("abandon"),
            "boolean",
        ),
        (
            "order",
            json!({"to": "spare", "fast": true}),
            400,
            "INVALID_ARGUMENT",
            Some("fast"),
            "unknown field",
        ),
    ] {
        let problem = move_to(name, body.clone()).problem(status, code);
        assert_eq!(problem["field"].as_str(), field, "{body}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(part), "{body}: {problem}");
    }
    for (query, code, status) in [
        ("", "INVALID_ARGUMENT", 400),
        ("?to=nowhere", "UNKNOWN_INSTANCE", 404),
        ("?to=spare&abandon=true", "INVALID_ARGUMENT", 400),
    ] {
        get(&server, &format!("/types/order/migration{query}")).problem(status, code);
    }
    let ended = call(&server, "DELETE", "/redis-instances/far/drain", Value::Null);
    assert_eq!((ended.status, &ended.json()["drain_to"]), (200, &Value::Null));
    let problem = move_to("order", json!({"to": "far"})).problem(503, "UNAVAILABLE");
    assert_eq!(problem["retriable"], true);
    assert_eq!(get(&server, "/types/order").json()["generation"], 0);
}

#[test]
fn an_instance_is_drained_and_then_removed() {
    let server = start();
    for n in 0..5 {
        call(&server, "POST", "/types", json!({"name": format!("more{n}"), "instance": "main"}));
    }
    let count = |path: &str| get(&server, path).json()["items"].as_array().unwrap().len();
    assert_eq!((count("/types?instance=main"), count("/types?instance=2")), (7, 0));
    get(&server, "/types?instance=nowhere").problem(404, "UNKNOWN_INSTANCE");

    let refused = call(&server, "DELETE", "/redis-instances/main", Value::Null);
    let problem = refused.problem(409, "CONFLICT");
    assert!(problem["detail"].as_str().unwrap().contains("7 id types"), "{problem}");
    let drain =
        |name: &str, body| call(&server, "POST", &format!("/redis-instances/{name}/drain"), body);
    drain("nowhere", json!({"to": "spare"})).problem(404, "UNKNOWN_INSTANCE");
    drain("main", json!({"to": "nowhere"})).problem(404, "UNKNOWN_INSTANCE");
    let itself = drain("main", json!({"to": "1"})).problem(400, "INVALID_ARGUMENT");
    assert_eq!(itself["field"], "instance");
    for body in [json!({}), json!({"to": ["spare"]}), json!({"to": "spare", "wait": true})] {
        drain("main", body).problem(400, "INVALID_ARGUMENT");
    }
    let begun = drain("main", json!({"to": "2"})).json();
    assert_eq!(begun["drain_to"], json!({"id": 2, "name": "spare"}));
    assert_eq!(begun["types"], 7);
    drain("far", json!({"to": "main"})).problem(400, "INVALID_ARGUMENT");
    let body = json!({"name": "late", "instance": "main"});
    call(&server, "POST", "/types", body).problem(400, "INVALID_ARGUMENT");

    let left = || {
        let list = get(&server, "/redis-instances").json();
        let main = &list["items"][0];
        assert_eq!(main["drain_to"], json!({"id": 2, "name": "spare"}));
        main["types"].as_u64().unwrap()
    };
    assert_eq!((left(), left()), (2, 0));
    let removed = call(&server, "DELETE", "/redis-instances/main", Value::Null);
    assert_eq!(removed.status, 204, "{}", removed.body);
}
