//! Accounts and tokens by command.

use super::exit;
use super::tests::{client, run_with};
use crate::front::http::fake::Server;

const PASSWORD: &str = "correct horse\n";

#[test]
fn accounts_are_managed_and_passwords_come_from_the_input() {
    let server = Server::start();
    let cli = |arguments: &[&str], input: &str| {
        let outcome = client(&server, arguments, input);
        assert!(!outcome.out.contains("horse") && !outcome.err.contains("horse"), "{outcome:?}");
        outcome
    };
    let add = ["account", "add", "ann", "--role", "administer", "--password-stdin"];
    let added = cli(&add, PASSWORD);
    assert_eq!(added.code, exit::OK, "{added:?}");
    assert!(added.out.contains("administer") && added.out.contains("never"), "{added:?}");
    assert_eq!(cli(&add, PASSWORD).code, exit::REFUSED);
    let short = cli(&["account", "add", "bob", "--role", "view", "--password-stdin"], "horse\n");
    assert_eq!(short.code, exit::REFUSED);
    assert!(short.err.contains("password must have 10 characters"), "{short:?}");
    let role = cli(&["account", "add", "bob", "--role", "root", "--password-stdin"], PASSWORD);
    assert_eq!(role.code, exit::USAGE);
    // A password is no argument.
    let typed = cli(&["account", "add", "bob", "--role", "view", "--password", "x"], "");
    assert_eq!(typed.code, exit::USAGE);

    let last = cli(&["account", "change", "ann", "--close"], "");
    assert_eq!(last.code, exit::REFUSED);
    assert!(last.err.contains("CONFLICT"), "{last:?}");
    assert_eq!(cli(&["account", "change", "ann"], "").code, exit::USAGE);
    let change = ["account", "change", "ann", "--password-stdin", "--version", "1", "--json"];
    assert_eq!(cli(&change, "battery staple\n").json()["version"], 2);
    let listed = cli(&["account", "list"], "");
    assert_eq!(listed.out.lines().count(), 2, "{listed:?}");
    let add = ["account", "add", "bob", "--role", "view", "--password-stdin", "--json"];
    assert_eq!(cli(&add, PASSWORD).json()["role"], "view");
    assert_eq!(
        cli(&["account", "change", "bob", "--close", "--json"], "").json()["disabled"],
        true
    );
    assert_eq!(cli(&["account", "remove", "bob"], "").code, exit::OK);
    assert_eq!(cli(&["account", "remove", "bob"], "").code, exit::REFUSED);
}

#[test]
fn tokens_are_made_used_and_revoked() {
    let server = Server::start();
    let cli = |arguments: &[&str]| client(&server, arguments, "");
    let made = cli(&[
        "token", "add", "ci", "--role", "operate", "--type", "shop.*", "--days", "3650", "--json",
    ])
    .json();
    assert_eq!(made["token"]["types"][0], "shop.*");
    let secret = made["secret"].as_str().unwrap();
    let url = server.url();
    let as_ci = [("IDGEN_URL", url.as_str()), ("IDGEN_ADMIN_TOKEN", secret)];
    cli(&["type", "add", "shop.order"]);
    assert_eq!(run_with(&["get", "shop.order"], &as_ci, "").out, "1\n");
    assert_eq!(run_with(&["type", "list"], &as_ci, "").code, exit::REFUSED);
    let listed = cli(&["token", "list"]);
    assert!(listed.out.contains("until ") && !listed.out.contains(secret), "{listed:?}");
    assert_eq!(cli(&["token", "revoke", "nothing"]).code, exit::REFUSED);
    assert_eq!(cli(&["token", "revoke", "ci"]).code, exit::OK);
    assert_eq!(run_with(&["get", "shop.order"], &as_ci, "").code, exit::REFUSED);
    assert!(cli(&["token", "list"]).out.contains("revoked"));
    assert_eq!(cli(&["token", "revoke", "ci"]).code, exit::REFUSED);
    assert_eq!(cli(&["token", "add", "x", "--role", "view", "--days", "3651"]).code, exit::USAGE);
    let shown = cli(&["token", "add", "x", "--role", "view"]);
    assert!(shown.out.contains("secret   idg_") && shown.out.contains("never"), "{shown:?}");
}
