//! The routes of other systems over real connections: what each answers, and how it
//! fails. `tests/compat.rs` sends what their clients send, to a real node.

use serde_json::{Value, json};

use super::super::auth::Access;
use super::super::fake::{self, Server, TOKEN};
use super::super::tests::{Reply, call, send};
use super::CompatConfig;
use crate::domain::access::Role;
use crate::service::access::TokenSpec;

const ALL: CompatConfig =
    CompatConfig { leaf: true, tinyid: true, tinyid_tokens: true, s0: true, s0_open: false };
const SPRING_JSON: &str = "application/json;charset=UTF-8";
const SPRING_TEXT: &str = "text/plain;charset=UTF-8";
const GIN_JSON: &str = "application/json; charset=utf-8";

fn server(config: CompatConfig) -> Server {
    Server::with_compat(fake::access(), 16, config, false)
}

/// One type of each kind that makes a difference here.
fn make_types(server: &Server) {
    for body in [
        json!({"name": "order", "mode": "segment", "min_range": 10}),
        json!({"name": "gone"}),
        json!({"name": "flake", "mode": "snowflake"}),
        json!({"name": "shards", "mode": "sharded", "options": {"app_id": 1}}),
        json!({"name": "strict"}),
    ] {
        let made = call(server, "POST", "/types", body);
        assert_eq!(made.status, 201, "{}", made.body);
    }
    assert_eq!(call(server, "POST", "/types/gone/retire", Value::Null).status, 200);
}

/// The secret of a new token.
fn token(access: &Access, name: &str, role: Role, types: &[&str]) -> String {
    let types = types.iter().map(|t| (*t).to_owned()).collect();
    let (name, certificate) = (name.to_owned(), false);
    let spec = TokenSpec { name, role, types, quota: None, certificate, expires_ms: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(access.control.add_token(spec, None, "test")).unwrap().1
}

fn ask(server: &Server, method: &str, path: &str) -> Reply {
    send(server, method, path, &[], "")
}

#[test]
fn each_system_is_served_only_where_it_is_turned_on() {
    let routes = [
        ("leaf", "GET", "/api/segment/get/order"),
        ("leaf", "POST", "/api/snowflake/get/order"),
        ("leaf", "GET", "/decodeSnowflakeId?snowflakeId=1"),
        ("tinyid", "GET", "/tinyid/id/nextId"),
        ("tinyid", "GET", "/tinyid/id/nextIdSimple"),
        ("tinyid", "POST", "/tinyid/id/nextSegmentId"),
        ("tinyid", "POST", "/tinyid/id/nextSegmentIdSimple"),
        ("s0", "GET", "/api/leaf?biz_tag=order"),
        ("s0", "POST", "/api/leaf"),
        ("s0", "PUT", "/api/leaf/step"),
        ("s0", "PUT", "/api/leaf/init/cache"),
    ];
    for on in ["", "leaf", "tinyid", "s0"] {
        let config = CompatConfig {
            leaf: on == "leaf",
            tinyid: on == "tinyid",
            s0: on == "s0",
            ..CompatConfig::default()
        };
        let server = server(config);
        for (system, method, path) in routes {
            let status = ask(&server, method, path).status;
            assert_eq!(status == 404, system != on, "{on}: {method} {path}: {status}");
        }
        assert_eq!(ask(&server, "GET", "/api/v1/node").status, 401);
    }
}

#[test]
fn a_port_of_their_own_has_no_admin_api() {
    let server = Server::with_compat(fake::access(), 16, ALL, true);
    assert_eq!(ask(&server, "GET", "/healthz").body, "ok\n");
    assert_eq!(ask(&server, "GET", "/readyz").body, "ready\n");
    server.fake.0.lock().unwrap().not_ready = true;
    assert_eq!(ask(&server, "GET", "/readyz").status, 503);
    for path in ["/", "/metrics", "/api/v1/node", "/api/v1/types", "/api/v1/openapi.json"] {
        call(&server, "GET", "/types", Value::Null).problem(404, "NO_SUCH_ADDRESS");
        ask(&server, "GET", path).problem(404, "NO_SUCH_ADDRESS");
    }
    assert_eq!(ask(&server, "GET", "/api/segment/get/order").status, 500);
}

#[test]
fn leaf_answers_bare_numbers_to_every_method() {
    let server = server(ALL);
    make_types(&server);
    for (n, method) in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"].iter().enumerate() {
        let reply = ask(&server, method, "/api/segment/get/order");
        assert_eq!((reply.status, reply.kind.as_str()), (200, SPRING_TEXT), "{method}");
        assert_eq!(reply.body, (n + 1).to_string(), "{method}");
        assert_eq!(reply.header("cache-control"), "no-store");
    }
    assert_eq!(ask(&server, "GET", "/api/segment/get/order/").body, "7");
    assert_eq!(ask(&server, "GET", "/api/segment/get/%6Frder?x=%zz").body, "8");
    let with_body = send(&server, "POST", "/api/segment/get/order", &[], &"x".repeat(60_000));
    assert_eq!(with_body.body, "9");
    assert_eq!(ask(&server, "GET", "/api/segment/get/strict").body, "1");
    assert_eq!(ask(&server, "GET", "/api/snowflake/get/flake").body, "1");
    assert_eq!(ask(&server, "POST", "/api/snowflake/get/flake/").body, "2");
    assert_eq!(server.fake.0.lock().unwrap().live.served, (12, 0));
}

#[test]
fn leaf_fails_with_the_error_of_spring() {
    let server = server(ALL);
    make_types(&server);
    for (path, number, why) in [
        ("/api/segment/get/nobody", -2, "no id type is called"),
        ("/api/segment/get/gone", -2, "no ids any more"),
        ("/api/segment/get/flake", -2, "/api/snowflake/get/flake"),
        ("/api/segment/get/shards", -2, "gate_pass"),
        ("/api/segment/get/a%20b", -2, "a b"),
        ("/api/snowflake/get/order", -2, "/api/segment/get/order"),
        ("/api/snowflake/get/nobody", -2, "no id type is called"),
    ] {
        let reply = ask(&server, "POST", path);
        assert_eq!((reply.status, reply.kind.as_str()), (500, SPRING_JSON), "{path}");
        let begin = "{\"timestamp\":1700000000000,\"status\":500,\
                     \"error\":\"Internal Server Error\",\"exception\":";
        assert!(reply.body.starts_with(begin), "{}", reply.body);
        let error = reply.json();
        assert_eq!(error["message"], format!("Result{{id={number}, status=EXCEPTION}}"), "{path}");
        assert_eq!(error["path"], path);
        assert!(error["detail"].as_str().unwrap().contains(why), "{error}");
    }
    assert_eq!(ask(&server, "GET", "/api/segment/get/").status, 404);
}

#[test]
fn leaf_decodes_by_its_own_layout() {
    let server = server(ALL);
    let path = "/decodeSnowflakeId?snowflakeId=1169785127034650648";
    let told = ask(&server, "GET", path);
    let id = 1_169_785_127_034_650_648_i64;
    assert_eq!((told.status, told.kind.as_str()), (200, SPRING_JSON));
    let told = told.json();
    assert_eq!(told["workerId"], (id >> 12 & 1_023).to_string());
    assert_eq!(told["sequenceId"], (id & 4_095).to_string());
    let at_ms = (id >> 22) + 1_288_834_974_657;
    assert!(told["timestamp"].as_str().unwrap().starts_with(&format!("{at_ms}(2019-09-06 ")));
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let posted = send(&server, "POST", "/decodeSnowflakeId", &form, "snowflakeId=1");
    assert_eq!(posted.json()["sequenceId"], "1");
    for wrong in ["", "x", "1.5", "9223372036854775808", "%201"] {
        let reply = ask(&server, "GET", &format!("/decodeSnowflakeId?snowflakeId={wrong}"));
        assert_eq!(reply.status, 200);
        let error = reply.json();
        assert!(error["errorMsg"].is_string() && error.as_object().unwrap().len() == 1, "{error}");
    }
    let missing = ask(&server, "GET", "/decodeSnowflakeId");
    assert_eq!((missing.status, missing.json()["status"].as_u64()), (400, Some(400)));
}

#[test]
fn tinyid_hands_out_lists_and_ranges() {
    let access = fake::access();
    let secret = token(&access, "app", Role::Operate, &["order", "flake", "strict"]);
    let server = Server::with_compat(access, 16, ALL, false);
    make_types(&server);
    let path =
        |route: &str, more: &str| format!("/tinyid/id/{route}?bizType=order&token={secret}{more}");
    let get = |route: &str, more: &str| ask(&server, "GET", &path(route, more));
    let one = get("nextId", "");
    assert_eq!((one.status, one.kind.as_str()), (200, SPRING_JSON));
    assert_eq!(one.body, r#"{"data":[1],"code":200,"message":""}"#);
    let three = get("nextId", "&batchSize=3");
    assert_eq!(three.body, r#"{"data":[2,3,4],"code":200,"message":""}"#);
    let texts = get("nextId", "&batchSize=2&ids=string");
    assert_eq!(texts.body, r#"{"data":["5","6"],"code":200,"message":""}"#);
    assert_eq!(get("nextId", "&batchSize=").json()["data"], json!([7]));
    for none in ["0", "-1", "-2147483648"] {
        let more = format!("&batchSize={none}");
        assert_eq!(get("nextId", &more).body, r#"{"data":[],"code":200,"message":""}"#);
        assert_eq!(get("nextIdSimple", &more).body, "");
    }
    let simple = get("nextIdSimple", "");
    assert_eq!((simple.kind.as_str(), simple.body.as_str()), (SPRING_TEXT, "8"));
    assert_eq!(get("nextIdSimple", "&batchSize=3").body, "9,10,11");

    // Ten ids, of which the client fetches the next ten after two.
    let lease = get("nextSegmentId", "");
    let expected = r#"{"data":{"maxId":21,"loadingId":13,"currentId":11,"delta":1,"remainder":0},"code":200,"message":""}"#;
    assert_eq!(lease.body, expected);
    let lease = get("nextSegmentId", "&ids=string").json();
    assert_eq!((&lease["data"]["maxId"], &lease["data"]["delta"]), (&json!("31"), &json!(1)));
    // As its client asks: a POST, everything in the URL, an empty form.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let simple = send(&server, "POST", &path("nextSegmentIdSimple", ""), &form, "");
    assert_eq!((simple.kind.as_str(), simple.body.as_str()), (SPRING_TEXT, "31,33,41,1,0"));
    // As a form, too; what the URL says counts first.
    let body = format!("bizType=order&token={secret}&batchSize=2");
    let posted = send(&server, "POST", "/tinyid/id/nextId/", &form, &body);
    assert_eq!(posted.json()["data"], json!([42, 43]));
    let posted = send(&server, "POST", "/tinyid/id/nextIdSimple?batchSize=1", &form, &body);
    assert_eq!(posted.body, "44");

    // Nobody gets more than 100 000 at once, in JSON or not.
    let many = get("nextId", "&batchSize=2147483647").json();
    assert_eq!(many["data"].as_array().unwrap().len(), 100_000);
    assert_eq!(get("nextIdSimple", "&batchSize=200000").body.split(',').count(), 100_000);
}

#[test]
fn tinyid_wants_a_token_for_the_type() {
    let access = fake::access();
    let good = token(&access, "good", Role::Operate, &["order", "gone", "strict", "miss*"]);
    let other = token(&access, "other", Role::Operate, &["strict"]);
    let weak = token(&access, "weak", Role::View, &["order"]);
    let server = Server::with_compat(access, 16, ALL, false);
    make_types(&server);
    let refused = r#"{"data":null,"code":5,"message":"token is error"}"#;
    let long = "x".repeat(300);
    for (name, secret) in [
        ("order", ""),
        ("order", "nonsense"),
        ("order", long.as_str()),
        ("order", TOKEN),
        ("order", other.as_str()),
        ("order", weak.as_str()),
        ("", good.as_str()),
        ("flake", good.as_str()),
        // Its token is good, but there is no such type.
        ("missing", good.as_str()),
    ] {
        for route in ["nextId", "nextSegmentId"] {
            let path = format!("/tinyid/id/{route}?bizType={name}&token={secret}");
            let reply = ask(&server, "GET", &path);
            assert_eq!((reply.status, reply.kind.as_str()), (200, SPRING_JSON));
            assert_eq!(reply.body, refused, "{path}");
            let simple = ask(&server, "POST", &path.replace(route, &format!("{route}Simple")));
            assert_eq!((simple.status, simple.body.as_str()), (200, ""), "{path}");
        }
    }
    let metrics = ask(&server, "GET", "/metrics").body;
    let counted = "idgen_compat_requests_total{result=\"refused\",system=\"tinyid\"} 32";
    assert!(metrics.contains(counted), "{metrics}");
    // Everything else is code 6, and says why.
    for (route, name, why) in
        [("nextId", "gone", "no ids any more"), ("nextSegmentId", "strict", "strict")]
    {
        let path = format!("/tinyid/id/{route}?bizType={name}&token={good}");
        let reply = ask(&server, "GET", &path).json();
        assert_eq!((&reply["code"], &reply["data"]), (&json!(6), &Value::Null));
        assert!(reply["message"].as_str().unwrap().contains(why), "{reply}");
        assert_eq!(ask(&server, "GET", &path.replace(route, &format!("{route}Simple"))).body, "");
    }
    for wrong in ["x", "1.5", "2147483648"] {
        let path = format!("/tinyid/id/nextId?bizType=order&token={good}&batchSize={wrong}");
        let reply = ask(&server, "GET", &path);
        assert_eq!((reply.status, &reply.json()["status"]), (400, &json!(400)), "{wrong}");
    }
}

#[test]
fn the_check_of_tokens_can_be_turned_off() {
    let server = server(CompatConfig { tinyid_tokens: false, ..ALL });
    make_types(&server);
    let reply = ask(&server, "GET", "/tinyid/id/nextId?bizType=order");
    assert_eq!(reply.json()["data"], json!([1]));
    let unknown = ask(&server, "GET", "/tinyid/id/nextId?bizType=nobody&token=x");
    assert_eq!(unknown.json()["code"], 5);
}

#[test]
fn s0_reads_without_a_token_and_changes_with_one() {
    let access = fake::access();
    let scoped = token(&access, "deploy", Role::Operate, &["a*"]);
    let weak = token(&access, "weak", Role::View, &[]);
    let server = Server::with_compat(access, 16, ALL, false);
    let bearer = |secret: &str| format!("Bearer {secret}");
    let put = |method: &str, path: &str, secret: Option<&str>, body: Value| {
        let shown = secret.map(bearer);
        let shown: Vec<_> = shown.iter().map(|shown| ("authorization", shown.as_str())).collect();
        let reply = send(&server, method, path, &shown, &body.to_string());
        assert_eq!((reply.status, reply.kind.as_str()), (200, GIN_JSON), "{}", reply.body);
        reply
    };
    let tag = json!({"biz_tag": "a1", "max_id": 501, "step": 50, "descprition": "as documented"});
    for secret in [None, Some("nonsense"), Some(weak.as_str())] {
        let reply = put("POST", "/api/leaf", secret, tag.clone()).json();
        assert_eq!(reply["code"], 1001, "{reply}");
        assert!(reply.get("data").is_none());
        let step = json!({"biz_tag": "a1", "step": 5});
        assert_eq!(put("PUT", "/api/leaf/step", secret, step).json()["code"], 1001);
    }
    let outside = put("POST", "/api/leaf", Some(&scoped), json!({"biz_tag": "b"})).json();
    assert!(outside["msg"].as_str().unwrap().contains("limited to some types"), "{outside}");
    let success = r#"{"code":0,"data":null,"msg":"success"}"#;
    assert_eq!(put("POST", "/api/leaf", Some(&scoped), tag.clone()).body, success);
    let audit = call(&server, "GET", "/audit?limit=1", Value::Null).json();
    assert_eq!(audit["items"][0]["actor"], "token deploy");
    let made = call(&server, "GET", "/types/a1", Value::Null).json();
    assert_eq!((&made["mode"], &made["first_id"]), (&json!("segment"), &json!(501)));
    assert_eq!(made["min_range"], 50);
    assert_eq!(made["description"], "as documented");
    assert_eq!(put("POST", "/api/leaf", Some(&scoped), tag).json()["code"], 1001);

    let next = ask(&server, "GET", "/api/leaf?biz_tag=a1");
    assert_eq!(next.kind, GIN_JSON);
    assert_eq!(next.body, r#"{"code":0,"data":{"ID":501},"msg":"success"}"#);
    let text = ask(&server, "GET", "/api/leaf?ids=string&biz_tag=a1");
    assert_eq!(text.body, r#"{"code":0,"data":{"ID":"502"},"msg":"success"}"#);
    for path in ["/api/leaf", "/api/leaf?biz_tag=nobody"] {
        let reply = ask(&server, "GET", path);
        assert_eq!((reply.status, &reply.json()["code"]), (200, &json!(1001)), "{path}");
    }

    let step = json!({"biz_tag": "a1", "step": 7_000_000, "unknown": 1});
    assert_eq!(put("PUT", "/api/leaf/step", Some(TOKEN), step).body, success);
    let made = call(&server, "GET", "/types/a1", Value::Null).json();
    assert_eq!(made["min_range"], 7_000_000);
    let warm = put("PUT", "/api/leaf/init/cache", None, json!({"BIZ_TAG": "a1"})).json();
    assert_eq!((&warm["data"]["Key"], &warm["data"]["Step"]), (&json!("a1"), &json!(7_000_000)));
    let buffer = json!([{"Cursor": 503, "Max": 503 + 1_500, "Min": 503, "InitOk": true}]);
    assert_eq!(warm["data"]["Buffer"], buffer);
    let unknown = put("PUT", "/api/leaf/init/cache", None, json!({"biz_tag": "nobody"})).json();
    assert_eq!(unknown["code"], 1001);
}

#[test]
fn s0_reads_bodies_as_go_does() {
    let server = server(CompatConfig { s0_open: true, ..ALL });
    let post = |path: &str, method: &str, body: &str| {
        let reply = send(&server, method, path, &[("content-type", "text/plain")], body);
        assert_eq!(reply.status, 200);
        reply.json()
    };
    for (body, code) in [
        ("", 1000),
        ("nonsense", 1000),
        ("[]", 1000),
        ("{\"biz_tag\": 5}", 1000),
        ("{\"biz_tag\": \"a\", \"step\": 1.5}", 1000),
        ("{\"biz_tag\": \"a\", \"step\": 2147483648}", 1000),
        ("{\"biz_tag\": \"a\", \"max_id\": -1}", 1000),
        ("null", 1001),
        ("{}", 1001),
        ("{\"biz_tag\": \"a\", \"step\": -1}", 1001),
        ("{\"biz_tag\": \"a\", \"step\": 10000001}", 1001),
        ("{\"biz_tag\": \"a b\"}", 1001),
        ("{\"biz_tag\": \"a\", \"max_id\": 18446744073709551615}", 1001),
        ("{\"biz_tag\": \"a\", \"max_id\": null, \"step\": null} and more", 0),
    ] {
        assert_eq!(post("/api/leaf", "POST", body)["code"], code, "{body}");
    }
    let made = call(&server, "GET", "/types/a", Value::Null).json();
    assert_eq!((&made["first_id"], &made["min_range"]), (&json!(1), &json!(2_000)));
    assert_eq!(made["description"], "a");
    let audit = call(&server, "GET", "/audit?limit=1", Value::Null).json();
    assert_eq!(audit["items"][0]["actor"], "S0 client at 127.0.0.1");
    for (body, code) in [
        ("{\"biz_tag\": \"a\"}", 1001),
        ("{\"biz_tag\": \"a\", \"step\": 0}", 1001),
        ("{\"biz_tag\": \"a\", \"step\": 20000000}", 1001),
        ("{\"step\": 5}", 1001),
        ("{\"biz_tag\": \"nobody\", \"step\": 5}", 1001),
        ("{\"biz_tag\": \"a\", \"step\": \"5\"}", 1000),
        ("{\"biz_tag\": \"a\", \"step\": 5}", 0),
    ] {
        assert_eq!(post("/api/leaf/step", "PUT", body)["code"], code, "{body}");
    }
    // Who shows something must show something good, open or not.
    let shown = [("authorization", "Bearer nonsense")];
    let reply = send(&server, "POST", "/api/leaf", &shown, "{\"biz_tag\": \"z\"}");
    assert_eq!(reply.json()["code"], 1001);
    let long = send(&server, "POST", "/api/leaf", &[], &" ".repeat(70_000));
    assert_eq!(long.status, 413);
}
