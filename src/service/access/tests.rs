//! Look-ups that count for a moment, and for as long as the store is away.

use std::net::Ipv4Addr;

use tokio::time::advance;

use super::*;
use crate::adapters::memory::{MemoryRangeStore, StoreFault};
use crate::adapters::system::{SystemClock, SystemEntropy, unix_ms};

const PASSWORD: &str = "correct horse";

fn node(store: &Arc<MemoryRangeStore>) -> AccessControl {
    AccessControl::new(store.clone(), Arc::new(SystemEntropy), Arc::new(SystemClock)).unwrap()
}

fn origin() -> Origin {
    Origin { address: Ipv4Addr::LOCALHOST.into(), agent: "test".to_owned() }
}

async fn log_in(node: &AccessControl, name: &str) -> Login {
    let login = node.log_in(name, PASSWORD, &origin()).await;
    login.unwrap_or_else(|why| panic!("{why:?}"))
}

async fn is_in(node: &AccessControl, login: &Login) -> bool {
    node.who(CredentialKind::Session, &login.secret).await.unwrap().is_some()
}

#[tokio::test(start_paused = true)]
async fn what_is_revoked_ends_here_at_once_and_elsewhere_within_a_second() {
    let store = Arc::new(MemoryRangeStore::new());
    let (here, there) = (node(&store), node(&store));
    here.add_account("ann", Role::View, PASSWORD, "test").await.unwrap();
    let login = log_in(&here, "ann").await;
    assert!(is_in(&here, &login).await && is_in(&there, &login).await);
    here.log_out(&login.caller).await.unwrap();
    assert!(!is_in(&here, &login).await);
    assert!(is_in(&there, &login).await, "it was looked up a moment ago");
    advance(Duration::from_secs(1)).await;
    assert!(!is_in(&there, &login).await);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_sessions_hold_until_they_end() {
    let store = Arc::new(MemoryRangeStore::new());
    let node = node(&store);
    node.add_account("ann", Role::Operate, PASSWORD, "test").await.unwrap();
    let (used, unused) = (log_in(&node, "ann").await, log_in(&node, "ann").await);
    assert!(is_in(&node, &used).await);
    // Others that end meanwhile do not take it along.
    node.end(CredentialKind::Session, "0", None, "test").await.unwrap();
    store.set_fault(StoreFault::Down);
    for _ in 0..11 {
        advance(Duration::from_secs(3_600)).await;
        assert!(is_in(&node, &used).await);
    }
    node.who(CredentialKind::Session, &unused.secret).await.expect_err("not known here");
    advance(Duration::from_secs(3_600)).await;
    node.who(CredentialKind::Session, &used.secret).await.expect_err("its 12 hours are over");
}

#[tokio::test(start_paused = true)]
async fn sessions_live_on_with_use_and_a_week_at_most() {
    let store = Arc::new(MemoryRangeStore::new());
    let began = unix_ms();
    store.set_clock(Some(began));
    let node = node(&store);
    node.add_account("ann", Role::View, PASSWORD, "test").await.unwrap();
    let (used, unused) = (log_in(&node, "ann").await, log_in(&node, "ann").await);
    for hour in (11..7 * 24).step_by(11) {
        store.set_clock(Some(began + hour * 3_600_000));
        advance(Duration::from_secs(11 * 3_600)).await;
        assert!(is_in(&node, &used).await, "after {hour} h");
    }
    assert!(!is_in(&node, &unused).await);
    store.set_clock(Some(began + 7 * 86_400_000));
    advance(Duration::from_secs(11 * 3_600)).await;
    assert!(!is_in(&node, &used).await, "a week is over");
}

#[tokio::test(start_paused = true)]
async fn uses_are_noted_once_a_minute() {
    let store = Arc::new(MemoryRangeStore::new());
    let began = unix_ms();
    store.set_clock(Some(began));
    let node = node(&store);
    let spec =
        TokenSpec { name: "ci".to_owned(), role: Role::View, types: vec![], expires_ms: None };
    let (_, secret) = node.add_token(spec, None, "test").await.unwrap();
    let used = async |after_ms: i64| {
        store.set_clock(Some(began + after_ms));
        advance(Duration::from_secs(2)).await;
        node.who(CredentialKind::Token, &secret).await.unwrap().expect("it is live");
        node.list(CredentialKind::Token, None).await.unwrap()[0].last_used_ms
    };
    assert_eq!(used(5).await, Some(began + 5));
    assert_eq!(used(60_004).await, Some(began + 5));
    assert_eq!(used(60_005).await, Some(began + 60_005));
}

#[tokio::test]
async fn a_login_that_ran_beside_a_new_password_lets_nobody_in() {
    let store = Arc::new(MemoryRangeStore::new());
    let node = node(&store);
    let account = node.add_account("ann", Role::View, PASSWORD, "test").await.unwrap();
    let change = AccountChange::default();
    node.change_account("ann", change, Some("battery staple"), "test").await.unwrap();
    // As if the password had been checked before.
    match node.begin_session(&account, &origin()).await {
        Err(NoLogin::Failed(error)) => assert_eq!(error.code, ErrorCode::Conflict),
        _ => panic!("logged in with the old password"),
    }
}

#[test]
fn nothing_shows_a_secret() {
    let store = Arc::new(MemoryRangeStore::new());
    let node = node(&store);
    let secret = node.secret("idg_");
    let new = node.credential(&secret);
    let shown = format!("{new:?}");
    assert!(!shown.contains(&secret) && !shown.contains(new.secret.as_str()), "{shown}");
    let csrf = AccessControl::csrf(&secret);
    assert!(csrf.len() == 32 && !secret.contains(&csrf));
}
