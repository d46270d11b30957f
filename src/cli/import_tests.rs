//! Whole commands that take types over and write them out.

use serde_json::json;

use super::exit;
use super::tests::client;
use crate::front::http::fake::Server;

const LEAF: &str = "biz_tag,max_id,step\norder,5001,2000\nuser,1,100\n";

#[test]
fn a_file_is_imported_from_standard_input() {
    let server = Server::start();
    let dry = client(&server, &["type", "import", "-", "--dry-run", "--gap", "50%"], LEAF);
    assert_eq!(dry.code, exit::OK, "{dry:?}");
    let row = dry.out.lines().find(|line| line.contains("order")).unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells, ["order", "new", "5001", "6001", "2000"]);
    assert!(dry.out.contains("format leaf: 2 would be created, 0 there already, 0 failed"));
    assert_eq!(client(&server, &["type", "show", "order"], "").code, exit::REFUSED);

    let done = client(&server, &["type", "import", "-", "--only", "order", "--json"], LEAF).json();
    assert_eq!((&done["create"], &done["items"][0]["state"]), (&json!(1), &json!("created")));
    assert_eq!(client(&server, &["get", "order"], "").out, "5001\n");
    let again = client(&server, &["type", "import", "-"], LEAF);
    assert!(again.out.contains("1 created, 1 there already"), "{again:?}");
    assert_eq!(again.code, exit::OK);
}

#[test]
fn what_fails_has_its_exit_code() {
    let server = Server::start();
    for (arguments, input, code, text) in [
        (&["-"][..], "biz_tag,max_id\n_a,1\n", exit::FAILED, "1 types were not taken over"),
        (&["-"], "INSERT INTO x", exit::REFUSED, "cut short"),
        (&["/no/such/file"], "", exit::USAGE, "/no/such/file"),
        (&[], "", exit::USAGE, "FILE"),
        (&["-", "--gap", "much"], "", exit::USAGE, "50%"),
        (&["-", "--from", "mysql://h/d"], "", exit::USAGE, "cannot be used with"),
        (&["--from", "mysql://u:s3cr3t@down/d"], "", exit::UNAVAILABLE, "refused"),
        (&["--from", "-"], "mysql://u:s3cr3t@down/d\n", exit::UNAVAILABLE, "refused"),
    ] {
        let done = client(&server, &[&["type", "import"], arguments].concat(), input);
        assert_eq!(done.code, code, "{arguments:?}: {done:?}");
        assert!(done.err.contains(text), "{arguments:?}: {done:?}");
        assert!(!done.err.contains("s3cr3t") && !done.out.contains("s3cr3t"), "{done:?}");
    }
    let found = client(&server, &["type", "import", "--from", "mysql://u:p@up/d"], "");
    assert!(found.out.contains("1 created"), "{found:?}");
}

#[test]
fn an_export_goes_to_another_cluster() {
    let (server, other) = (Server::start(), Server::start());
    client(&server, &["type", "add", "order", "--prefix", "o-", "--first-id", "70"], "");
    for form in [&["type", "export"][..], &["type", "export", "--format", "csv"]] {
        let text = client(&server, form, "").out;
        let done = client(&other, &["type", "import", "-", "--gap", "0"], &text);
        assert_eq!(done.code, exit::OK, "{done:?}");
    }
    assert_eq!(client(&other, &["get", "order", "--text"], "").out, "o-70\n");
}
