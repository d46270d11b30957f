//! Imports and exports over real connections.

use serde_json::{Value, json};

use super::fake::Server;
use super::tests::{call, get};

const LEAF: &str =
    "biz_tag,max_id,step,description\norder,5001,2000,orders\nuser,1,100,\n_x,1,1,\n";

fn import(server: &Server, dry_run: bool, body: Value) -> Value {
    let reply = call(server, "POST", &format!("/imports?dry_run={dry_run}"), body);
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply.json()
}

#[test]
fn a_dry_run_makes_nothing_and_an_import_may_be_repeated() {
    let server = Server::start();
    let body = json!({"source": {"text": LEAF}, "gap": {"percent": 100}});
    let dry = import(&server, true, body.clone());
    assert_eq!(
        (&dry["format"], &dry["create"], &dry["skip"], &dry["fail"], &dry["left"]),
        (&json!("leaf"), &json!(2), &json!(0), &json!(1), &json!(0))
    );
    assert_eq!(
        dry["items"][0],
        json!({
            "name": "order",
            "source": {"highest": "5000", "next": "5001", "step": "2000", "note": null},
            "first_id": "7001", "min_range": 2_000, "description": "orders", "mode": "strict",
            "existing_next_id": null, "state": "new", "problem": null
        })
    );
    assert_eq!(dry["items"][2]["state"], "failed");
    assert!(dry["items"][2]["problem"].as_str().unwrap().contains("not legal"));
    // Nothing is made where nobody says so.
    call(&server, "POST", "/imports", body.clone());
    assert_eq!(get(&server, "/types").json()["items"], json!([]));

    let done = import(&server, false, body.clone());
    assert_eq!(done["items"][0]["state"], "created");
    assert_eq!((&done["create"], &done["fail"]), (&json!(2), &json!(1)));
    assert_eq!(get(&server, "/types/order").json()["first_id"], 7_001);
    assert_eq!(get(&server, "/audit?limit=1").json()["items"][0]["actor"], "alice");

    let again = import(&server, false, body);
    assert_eq!((&again["create"], &again["skip"]), (&json!(0), &json!(2)));
    assert_eq!(again["items"][0]["state"], "exists");
    assert_eq!(again["items"][0]["existing_next_id"], "7001");
    assert_eq!(again["items"][0]["problem"], Value::Null);

    // The other service went on, and is ahead of the type here.
    let ahead = json!({"source": {"text": "biz_tag,max_id\norder,9000\n"}});
    let ahead = import(&server, false, ahead);
    assert!(ahead["items"][0]["problem"].as_str().unwrap().contains("could issue ids again"));
}

#[test]
fn only_what_is_wanted_with_the_settings_that_are_wanted() {
    let server = Server::start();
    let body = json!({
        "source": {"text": LEAF}, "format": "leaf", "gap": 10, "mode": "segment", "only": ["user"]
    });
    let done = import(&server, false, body);
    assert_eq!(done["items"].as_array().unwrap().len(), 1);
    let user = get(&server, "/types/user").json();
    assert_eq!((&user["mode"], &user["first_id"]), (&json!("segment"), &json!(11)));
}

#[test]
fn a_database_is_read_by_the_node() {
    let server = Server::start();
    let body = json!({"source": {"url": "mysql://u:s3cr3t@up/db"}});
    let done = import(&server, false, body);
    assert_eq!(done["items"][0]["first_id"], "5001");
    let down = json!({"source": {"url": "mysql://u:s3cr3t@down/db", "table": "x"}});
    let problem = call(&server, "POST", "/imports?dry_run=true", down);
    assert!(!problem.problem(503, "UNAVAILABLE").to_string().contains("s3cr3t"));
}

#[test]
fn wrong_requests_name_the_field() {
    let server = Server::start();
    let text = json!({"text": LEAF});
    for (body, field) in [
        (json!({"source": {}}), "source"),
        (json!({"source": {"text": LEAF, "url": "mysql://h/d"}}), "source"),
        (json!({"source": {"text": LEAF, "table": "t"}}), "source"),
        (json!({"source": text, "format": "oracle"}), "format"),
        (json!({"source": text, "gap": -1}), "gap"),
        (json!({"source": text, "gap": {"percent": 2_000}}), "gap.percent"),
        (json!({"source": text, "mode": "sharded"}), "mode"),
        (json!({"source": text, "only": ["nothing"]}), "only"),
        (json!({"source": {"text": "INSERT INTO leaf_alloc"}}), "source.text"),
        (json!({"source": {"text": "biz_tag,step\n"}, "format": "leaf"}), "source"),
        (json!({"source": text, "colour": "red"}), "colour"),
    ] {
        let reply = call(&server, "POST", "/imports?dry_run=true", body.clone());
        let problem = reply.problem(400, "INVALID_ARGUMENT");
        assert_eq!(problem["field"], field, "{body}: {problem}");
        assert!(get(&server, "/types").json()["items"].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_long_text_is_taken_and_a_longer_one_is_not() {
    let server = Server::start();
    let mut text = String::from("name,next_id,description\n");
    for n in 0..1_000 {
        text.push_str(&format!("t{n},1,{}\n", "x".repeat(1_000)));
    }
    let done = import(&server, true, json!({"source": {"text": text}}));
    assert_eq!(done["create"], 1_000);
    let long = json!({"source": {"text": "x".repeat(8 * 1024 * 1024)}});
    let problem = call(&server, "POST", "/imports", long).problem(413, "BODY_TOO_LARGE");
    assert!(problem["detail"].as_str().unwrap().contains("8388608"), "{problem}");
    let other = json!({"name": "x".repeat(70_000)});
    let problem = call(&server, "POST", "/types", other).problem(413, "BODY_TOO_LARGE");
    assert!(problem["detail"].as_str().unwrap().contains("65536"), "{problem}");
}

#[test]
fn an_export_is_imported_again() {
    let server = Server::start();
    let all = 2_003;
    {
        // More than two pages.
        let mut text = String::from("name,next_id,description,prefix\n");
        for n in 0..all {
            text.push_str(&format!("t{n:04},{},\"=cmd(\"\"{n}\"\")\",'-p\n", n + 7));
        }
        let mut left = 1;
        while left > 0 {
            left =
                import(&server, false, json!({"source": {"text": text}}))["left"].as_u64().unwrap();
        }
    }
    call(&server, "POST", "/types/t0000/retire", Value::Null);
    for form in ["json", "csv"] {
        let reply = get(&server, &format!("/export?format={form}"));
        assert_eq!(reply.status, 200);
        assert!(reply.header("content-disposition").contains(&format!("idgen-types.{form}")));
        assert!(reply.body.contains("t2002"), "{form}");
        if form == "csv" {
            assert_eq!(reply.body.lines().count(), all + 1);
            // No cell begins a formula.
            assert!(!reply.body.contains(",=") && !reply.body.contains(",\"="));
            assert!(reply.body.contains(",\"'=cmd(\"\"5\"\")\""));
        } else {
            let json = reply.json();
            assert_eq!(json["types"].as_array().unwrap().len(), all);
            assert_eq!(json["types"][1]["next_id"], "8");
            assert_eq!(json["types"][0]["state"], "retired");
        }
        let other = Server::start();
        let mut left = 1;
        while left > 0 {
            let done = import(&other, false, json!({"source": {"text": reply.body}}));
            assert_eq!(done["format"], "idgen");
            left = done["left"].as_u64().unwrap();
        }
        let there = get(&other, "/types/t0003").json();
        assert_eq!((&there["first_id"], &there["prefix"]), (&json!(10), &json!("-p")));
        assert_eq!(there["description"], "=cmd(\"3\")");
        assert_eq!(get(&other, "/types/t0000").json()["state"], "retired");
    }
    assert_eq!(get(&server, "/export?format=xml").status, 400);
}

#[test]
fn tokens_of_tinyid_keep_their_secrets() {
    let server = Server::start();
    let text = "id,token,biz_type,remark\n1,0f673adf80504e2eaa552f5d791b644c,order,x\n\
                2,0f673adf80504e2eaa552f5d791b644c,bill,\n3,short,order,\n4,idg_0123456789,a,\n\
                5,,a,\n";
    let import = |dry_run: bool| {
        let path = format!("/imports/tokens?dry_run={dry_run}");
        let reply = call(&server, "POST", &path, json!({"source": {"text": text}}));
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert!(!reply.body.contains("0f673adf8"), "{}", reply.body);
        reply.json()
    };
    let count = |done: &Value| [&done["make"], &done["skip"], &done["fail"]].map(Value::as_u64);
    let dry = import(true);
    assert_eq!(count(&dry), [Some(2), Some(0), Some(2)], "{dry}");
    assert_eq!(get(&server, "/tokens").json()["items"], json!([]));
    let states = |done: &Value, state: &str| {
        let all = done["items"].as_array().unwrap().iter();
        all.filter(|item| item["state"] == state).cloned().collect::<Vec<_>>()
    };
    let both = |item: &&Value| item["types"] == json!(["bill", "order"]);
    assert_eq!(states(&dry, "new").iter().filter(both).count(), 1, "{dry}");

    let done = import(false);
    assert_eq!(count(&done), [Some(2), Some(0), Some(2)], "{done}");
    let made = states(&done, "made");
    let short = made.iter().find(|item| item["types"] == json!(["order"])).unwrap();
    assert!(short["remark"].as_str().unwrap().contains("easily guessed"), "{short}");
    let tokens = get(&server, "/tokens").json();
    assert_eq!(tokens["items"].as_array().unwrap().len(), 2);
    assert!(tokens["items"].as_array().unwrap().iter().all(|t| t["role"] == "issue"));
    assert_eq!(count(&import(false)), [Some(0), Some(2), Some(2)]);
    // Only where tinyid's clients show it: the admin API takes secrets of its own form.
    let shown = [("authorization", "Bearer 0f673adf80504e2eaa552f5d791b644c")];
    super::tests::send(&server, "GET", "/api/v1/types/order", &shown, "")
        .problem(401, "UNAUTHENTICATED");

    let name = made[0]["name"].as_str().unwrap();
    let id = tokens["items"].as_array().unwrap().iter().find(|t| t["name"] == name).unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(call(&server, "DELETE", &format!("/tokens/{id}"), Value::Null).status, 204);
    let again = import(false);
    assert_eq!(count(&again), [Some(0), Some(1), Some(3)], "{again}");

    let cut = "CREATE TABLE tiny_id_token (token text, biz_type text);\n\
               INSERT INTO tiny_id_token VALUES ('s3cr3t-word','a'),\n('s3cr3";
    let body = json!({"source": {"text": cut}});
    let refused = call(&server, "POST", "/imports/tokens?dry_run=false", body);
    let problem = refused.problem(400, "INVALID_ARGUMENT");
    assert_eq!(problem["field"], "source.text");
    assert!(problem["detail"].as_str().unwrap().contains("line 3, column 2"), "{problem}");
    assert!(!refused.body.contains("s3cr3"), "{problem}");
}

#[test]
fn only_an_administrator_takes_tokens_over() {
    let server = Server::start();
    let operate = call(&server, "POST", "/tokens", json!({"name": "op", "role": "operate"})).json();
    let all = call(&server, "POST", "/tokens", json!({"name": "all", "role": "administer"})).json();
    for made in [operate, all] {
        let bearer = format!("Bearer {}", made["secret"].as_str().unwrap());
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let body = json!({"source": {"text": "token,biz_type\nabc,a\n"}}).to_string();
        super::tests::send(&server, "POST", "/api/v1/imports/tokens", &headers, &body)
            .problem(403, "PERMISSION_DENIED");
    }
}
