//! Whole commands that move types and drain instances.

use serde_json::json;

use super::exit;
use super::tests::{Outcome, client};
use crate::domain::{InstanceId, TypeName};
use crate::front::http::fake::Server;

fn run(server: &Server, line: &[&str]) -> Outcome {
    client(server, line, "")
}

/// Instances 1 `main`, 2 `spare`, 3 `far`, which does not answer, and types on the
/// first.
fn start(types: usize) -> Server {
    let server = Server::start();
    for (name, url) in
        [("main", "redis://up:1"), ("spare", "redis://up:2"), ("far", "redis://down:1")]
    {
        let added = run(&server, &["redis", "add", name, url, "--no-test"]);
        assert_eq!(added.code, exit::OK, "{added:?}");
    }
    for n in 0..types {
        let added = run(&server, &["type", "add", &format!("t{n}"), "--redis", "main"]);
        assert_eq!(added.code, exit::OK, "{added:?}");
    }
    server
}

/// The cells of the line that begins with `name`.
fn line<'a>(outcome: &'a Outcome, name: &str) -> &'a str {
    let mut lines = outcome.out.lines();
    let found = lines.find(|line| line.trim_start().starts_with(name));
    found.unwrap_or_else(|| panic!("no line {name}: {outcome:?}"))
}

#[test]
fn a_type_moves_in_words() {
    let server = start(2);
    let cli = |arguments: &[&str]| run(&server, arguments);
    let planned = cli(&["type", "migrate", "t0", "--to", "spare", "--dry-run"]);
    assert_eq!(planned.code, exit::OK, "{planned:?}");
    for text in ["main (number 1)", "spare (number 2)", "1000, which go along", "nothing"] {
        assert!(planned.out.contains(text), "{planned:?}");
    }
    assert_eq!(cli(&["type", "show", "t0", "--json"]).json()["instance"], 1);

    let moved = cli(&["type", "migrate", "t0", "--to", "spare"]);
    assert_eq!((moved.code, moved.err.as_str()), (exit::OK, ""), "{moved:?}");
    assert!(line(&moved, "ids kept").ends_with("1000"), "{moved:?}");
    assert!(line(&moved, "took").ends_with("12 ms"), "{moved:?}");
    let shown = cli(&["type", "show", "t0"]);
    assert!(line(&shown, "redis instance").ends_with('2'), "{shown:?}");
    assert!(line(&shown, "moved from").contains("redis instance 1, 2023-"), "{shown:?}");
    let of_main = cli(&["type", "list", "--instance", "main", "--json"]).json();
    assert_eq!(of_main.as_array().unwrap().len(), 1);
    assert_eq!(cli(&["type", "list", "--instance", "nowhere"]).code, exit::REFUSED);

    let back = cli(&["type", "migrate", "t0", "--undo", "--json"]).json();
    assert_eq!((&back["instance"], &back["moved_from"]), (&json!(1), &json!(2)));
    assert_eq!(cli(&["type", "migrate", "t1", "--undo"]).code, exit::REFUSED);
    let moved = cli(&["type", "migrate", "t1", "--to", "2", "--json"]).json();
    assert_eq!(moved["record"]["instance"], 2);
}

#[test]
fn a_type_on_its_way_shows_everywhere() {
    let server = start(1);
    {
        let mut held = server.fake.0.lock().unwrap();
        let record = held.types.get_mut(&TypeName::parse("t0").unwrap()).unwrap();
        record.placement.generation = 7;
        record.placement.moving_to = Some(InstanceId(2));
    }
    let listed = run(&server, &["type", "migrations"]);
    assert_eq!(listed.out.lines().count(), 2, "{listed:?}");
    assert!(line(&listed, "t0").contains('2'), "{listed:?}");
    assert_eq!(run(&server, &["type", "migrations", "--json"]).json()[0]["generation"], 7);
    let shown = run(&server, &["type", "show", "t0"]);
    assert!(line(&shown, "moving to").ends_with("redis instance 2"), "{shown:?}");
    assert!(line(&run(&server, &["type", "list"]), "t0").contains("1 -> 2"));
    // A plan that cannot be carried out is a check that failed.
    let planned = run(&server, &["type", "migrate", "t0", "--to", "spare", "--dry-run"]);
    assert_eq!(planned.code, exit::FAILED, "{planned:?}");
    assert!(line(&planned, "in the way").contains("being moved to"), "{planned:?}");
    let undone = run(&server, &["type", "migrate", "t0", "--undo"]);
    assert_eq!(undone.code, exit::OK, "{undone:?}");
    assert_eq!(run(&server, &["type", "migrations"]).out.lines().count(), 1);
}

#[test]
fn abandoning_asks_for_the_name() {
    let server = start(1);
    let order = ["type", "migrate", "t0", "--to", "spare", "--abandon"];
    let place = || run(&server, &["type", "show", "t0", "--json"]).json()["instance"].clone();
    for answer in ["", "yes\n", "t1\n"] {
        let kept = client(&server, &order, answer);
        assert_eq!(kept.code, exit::FAILED, "{kept:?}");
        assert!(kept.err.contains("Type its name") && kept.err.contains("lost"), "{kept:?}");
        assert_eq!(place(), 1);
    }
    let moved = client(&server, &order, "t0\n");
    assert_eq!(moved.code, exit::OK, "{moved:?}");
    assert!(line(&moved, "ids lost").ends_with("1000"), "{moved:?}");
    assert_eq!(place(), 2);
    let back = ["type", "migrate", "t0", "--to", "main", "--abandon", "--yes"];
    let asked_nothing = client(&server, &back, "");
    assert_eq!((asked_nothing.code, asked_nothing.err.as_str()), (exit::OK, ""));
}

#[test]
fn what_cannot_be_is_refused() {
    let server = start(1);
    for (arguments, code, text) in [
        (&["type", "migrate", "t0"][..], exit::USAGE, "--to"),
        (&["type", "migrate", "t0", "--to", "spare", "--undo"], exit::USAGE, "--undo"),
        (&["type", "migrate", "t0", "--undo", "--dry-run"], exit::USAGE, "--dry-run"),
        (&["type", "migrate", "t0", "--undo", "--abandon"], exit::USAGE, "--abandon"),
        (
            &["type", "migrate", "t0", "--to", "spare", "--dry-run", "--abandon"],
            exit::USAGE,
            "--abandon",
        ),
        (&["type", "migrate", "t0", "--to", "main"], exit::REFUSED, "already"),
        (&["type", "migrate", "t0", "--to", "nowhere"], exit::REFUSED, "UNKNOWN_INSTANCE"),
        (&["type", "migrate", "none", "--to", "spare"], exit::REFUSED, "UNKNOWN_TYPE"),
        (&["type", "migrate", "t0", "--to", "far"], exit::UNAVAILABLE, "far: connection refused"),
        (&["redis", "drain", "main"], exit::USAGE, "--to"),
        (&["redis", "drain", "main", "--to", "spare", "--cancel"], exit::USAGE, "--cancel"),
        (&["redis", "drain", "main", "--cancel", "--wait"], exit::USAGE, "--wait"),
        (&["redis", "drain", "main", "--to", "spare", "--timeout", "5"], exit::USAGE, "--wait"),
        (&["redis", "drain", "main", "--to", "main"], exit::REFUSED, "itself"),
        (&["redis", "drain", "nowhere", "--to", "main"], exit::REFUSED, "UNKNOWN_INSTANCE"),
        (&["redis", "remove", "main"], exit::REFUSED, "redis drain main --to OTHER"),
    ] {
        let outcome = run(&server, arguments);
        assert_eq!(outcome.code, code, "{arguments:?}: {outcome:?}");
        assert!(outcome.err.contains(text), "{arguments:?}: {outcome:?}");
    }
    // Not every refusal is about what is in use.
    assert!(!run(&server, &["redis", "remove", "nowhere"]).err.contains("drain"));
    assert_eq!(run(&server, &["type", "show", "t0", "--json"]).json()["generation"], 0);
}

#[test]
fn a_drain_is_waited_for() {
    let server = start(12);
    let begun = run(&server, &["redis", "drain", "main", "--to", "spare"]);
    assert_eq!(begun.code, exit::OK, "{begun:?}");
    assert!(line(&begun, "drained to").ends_with("spare"), "{begun:?}");
    assert!(line(&begun, "types left").ends_with("12"), "{begun:?}");
    let cancelled = run(&server, &["redis", "drain", "main", "--cancel", "--json"]).json();
    assert_eq!((&cancelled["drain_to"], &cancelled["types"]), (&json!(null), &json!(12)));
    let late = ["redis", "drain", "main", "--to", "spare", "--wait", "--timeout", "1"];
    let late = run(&server, &late);
    assert_eq!(late.code, exit::FAILED, "{late:?}");
    assert!(late.err.contains("2 types are left on main after 1 s"), "{late:?}");
    let listed = run(&server, &["redis", "list"]);
    assert!(line(&listed, "1 ").contains("spare"), "{listed:?}");
    let waited = run(&server, &["redis", "drain", "main", "--to", "spare", "--wait"]);
    assert_eq!(waited.code, exit::OK, "{waited:?}");
    assert!(line(&waited, "types left").ends_with('0'), "{waited:?}");
    assert_eq!(run(&server, &["redis", "remove", "main"]).code, exit::OK);
}
