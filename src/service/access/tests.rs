//! Look-ups that count for a moment, and for as long as the store is away.

use std::net::Ipv4Addr;

use tokio::time::advance;

use super::*;
use crate::adapters::memory::{MemoryRangeStore, StoreFault};
use crate::adapters::system::{SystemClock, SystemEntropy, unix_ms};

use super::callers::{Call, KnownCaller, Want};

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
    let spec = TokenSpec {
        name: "ci".to_owned(),
        role: Role::View,
        types: vec![],
        quota: None,
        certificate: false,
        expires_ms: None,
    };
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

fn spec(name: &str) -> TokenSpec {
    TokenSpec {
        name: name.to_owned(),
        role: Role::Issue,
        types: vec!["order*".to_owned()],
        quota: None,
        certificate: false,
        expires_ms: None,
    }
}

fn call(name: &str, want: Want) -> Call<'_> {
    Call { name, want, now: Instant::now(), from: Ipv4Addr::LOCALHOST.into() }
}

/// Why a call of `caller` for an id of `name` is refused; nothing if it is not.
async fn refused(
    node: &Arc<AccessControl>,
    caller: Option<&Arc<KnownCaller>>,
    name: &str,
    want: Want,
) -> String {
    match node.admit(caller, call(name, want)).await {
        Ok(pass) => {
            pass.settle(if let Want::Ids(count) = want { count as u64 } else { 0 });
            String::new()
        }
        Err(error) => error.to_string(),
    }
}

const ONE: Want = Want::Ids(1);
const FROM: std::net::IpAddr = std::net::IpAddr::V4(Ipv4Addr::LOCALHOST);

#[tokio::test(start_paused = true)]
async fn a_caller_may_what_its_token_says() {
    let store = Arc::new(MemoryRangeStore::new());
    let node = Arc::new(node(&store));
    let (_, secret) = node.add_token(spec("shop"), None, "test").await.unwrap();
    let shop = node.authenticate(&secret, FROM).await.unwrap();
    assert_eq!(shop.name(), "shop");
    assert_eq!(refused(&node, Some(&shop), "order", ONE).await, "");
    assert_eq!(refused(&node, Some(&shop), "order2", Want::Look).await, "");
    let why = refused(&node, Some(&shop), "other", ONE).await;
    assert!(why.contains("PERMISSION_DENIED") && why.contains("not for the id type"), "{why}");
    let why = refused(&node, Some(&shop), "order", Want::Create).await;
    assert!(why.contains("needs the role operate"), "{why}");
    let looker = TokenSpec { role: Role::View, ..spec("looker") };
    let (_, secret) = node.add_token(looker, None, "test").await.unwrap();
    let looker = node.authenticate(&secret, FROM).await.unwrap();
    assert_eq!(refused(&node, Some(&looker), "order", Want::Look).await, "");
    let why = refused(&node, Some(&looker), "order", ONE).await;
    assert!(why.contains("has the role view") && why.contains("needs the role issue"), "{why}");
    // Nobody may what nobody asks for, and a wrong token is nobody's.
    assert_eq!(refused(&node, None, "order", ONE).await, "");
    for wrong in ["idg_", "", "certificate shop", &secret[4..]] {
        let error = node.authenticate(wrong, FROM).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::PermissionDenied, "{wrong:?}");
        assert!(!error.message.contains(&secret[4..]));
    }
    let strict = Arc::new(self::node(&store).require_tokens(true));
    let why = refused(&strict, None, "order", ONE).await;
    assert!(why.contains("API token") && why.contains("authenticate"), "{why}");
    let uses = node.callers();
    let told: Vec<_> = uses.iter().map(|of| (of.name.as_str(), of.ids, of.calls)).collect();
    assert_eq!(told, [("looker", 0, 1), ("shop", 1, 2)]);
    assert_eq!(
        uses[1].refused,
        [("no_token", 0), ("bad_token", 0), ("role", 1), ("type", 1), ("quota", 0)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_stops_here_at_once_and_elsewhere_within_a_second() {
    let store = Arc::new(MemoryRangeStore::new());
    let (here, there) = (Arc::new(node(&store)), Arc::new(node(&store)));
    let (token, secret) = here.add_token(spec("shop"), None, "test").await.unwrap();
    let at_home = here.authenticate(&secret, FROM).await.unwrap();
    let away = there.authenticate(&secret, FROM).await.unwrap();
    here.end(CredentialKind::Token, &token.id, None, "test").await.unwrap();
    let why = refused(&here, Some(&at_home), "order", ONE).await;
    assert!(why.contains("was revoked"), "{why}");
    assert_eq!(refused(&there, Some(&away), "order", ONE).await, "", "looked up a moment ago");
    advance(Duration::from_millis(999)).await;
    assert_eq!(refused(&there, Some(&away), "order", ONE).await, "");
    advance(Duration::from_millis(1)).await;
    let why = refused(&there, Some(&away), "order", ONE).await;
    assert!(why.contains("was revoked"), "{why}");
}

/// Calls that go on and on never wait for a look-up: one beside them is enough.
#[tokio::test(start_paused = true)]
async fn a_caller_in_use_is_looked_up_beside_its_calls() {
    let store = Arc::new(MemoryRangeStore::new());
    let (here, there) = (Arc::new(node(&store)), Arc::new(node(&store)));
    let (token, secret) = here.add_token(spec("shop"), None, "test").await.unwrap();
    let away = there.authenticate(&secret, FROM).await.unwrap();
    advance(Duration::from_millis(600)).await;
    here.end(CredentialKind::Token, &token.id, None, "test").await.unwrap();
    assert_eq!(refused(&there, Some(&away), "order", ONE).await, "", "this one asks");
    let mut turns = 0;
    while refused(&there, Some(&away), "order", ONE).await.is_empty() {
        assert!(turns < 1_000, "it was not looked up");
        turns += 1;
        tokio::task::yield_now().await;
    }
    assert!(Instant::now() - there.base() < Duration::from_secs(1), "no time had to pass");
}

#[tokio::test(start_paused = true)]
async fn while_the_store_is_away_callers_go_on_until_their_tokens_end() {
    let store = Arc::new(MemoryRangeStore::new());
    store.set_clock(Some(unix_ms()));
    let node = Arc::new(node(&store));
    let hour = TokenSpec { expires_ms: Some(unix_ms() + 3_600_000), ..spec("shop") };
    let (_, secret) = node.add_token(hour, None, "test").await.unwrap();
    let (other, unused) = node.add_token(spec("unused"), None, "test").await.unwrap();
    let shop = node.authenticate(&secret, FROM).await.unwrap();
    store.set_fault(StoreFault::Down);
    for _ in 0..118 {
        advance(Duration::from_secs(30)).await;
        assert_eq!(refused(&node, Some(&shop), "order", ONE).await, "");
    }
    let error = node.authenticate(&unused, FROM).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable, "not known here");
    advance(Duration::from_secs(120)).await;
    let why = refused(&node, Some(&shop), "order", ONE).await;
    assert!(!why.is_empty(), "its hour is over");
    store.set_fault(StoreFault::None);
    store.set_clock(Some(unix_ms() + 3_700_000));
    advance(Duration::from_secs(2)).await;
    let why = refused(&node, Some(&shop), "order", ONE).await;
    assert!(why.contains("has expired"), "{why}");
    node.end(CredentialKind::Token, &other.id, None, "test").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_quota_is_for_all_connections_of_a_token() {
    let store = Arc::new(MemoryRangeStore::new());
    let node = Arc::new(node(&store));
    let (_, secret) =
        node.add_token(TokenSpec { quota: Some(10), ..spec("shop") }, None, "t").await.unwrap();
    let one = node.authenticate(&secret, FROM).await.unwrap();
    let two = node.authenticate(&secret, FROM).await.unwrap();
    let (known, three) = node.who_calls(&secret).await.unwrap().expect("it lets in");
    assert_eq!(known.credential.quota, Some(10));
    for caller in [&one, &two] {
        assert_eq!(refused(&node, Some(caller), "order", Want::Ids(5)).await, "");
    }
    let why = refused(&node, Some(&three), "order", ONE).await;
    assert!(why.contains("QUOTA_EXCEEDED") && why.contains("10 ids per second"), "{why}");
    assert!(why.contains("in 100 ms"), "{why}");
    let error = node.admit(Some(&one), call("order", Want::Ids(11))).await.unwrap_err();
    assert_eq!((error.code, error.field), (ErrorCode::InvalidArgument, Some("count")));
    advance(Duration::from_millis(100)).await;
    assert_eq!(refused(&node, Some(&three), "order", ONE).await, "");
    // What was not given does not count.
    advance(Duration::from_secs(1)).await;
    for _ in 0..3 {
        node.admit(Some(&one), call("order", Want::Ids(10))).await.unwrap().settle(0);
    }
    node.admit(Some(&one), call("order", Want::Ids(10))).await.unwrap().settle(10);
    assert_ne!(refused(&node, Some(&one), "order", ONE).await, "");
    // Looking costs none of it.
    assert_eq!(refused(&node, Some(&one), "order", Want::Look).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_who_was_made_for_it_and_no_other_token() {
    let store = Arc::new(MemoryRangeStore::new());
    let node = Arc::new(node(&store));
    let (_, secret) = node.add_token(spec("ops.example"), None, "test").await.unwrap();
    assert!(node.caller_by_certificate("ops.example").await.unwrap().is_none());
    let certificate = TokenSpec { certificate: true, ..spec("shop.example") };
    let (token, none) = node.add_token(certificate, None, "test").await.unwrap();
    assert_eq!(none, "");
    let shop = node.caller_by_certificate("shop.example").await.unwrap().expect("it lets in");
    assert_eq!(refused(&node, Some(&shop), "order", ONE).await, "");
    assert_ne!(refused(&node, Some(&shop), "other", ONE).await, "");
    for shown in ["certificate shop.example", "shop.example ", secret.as_str()] {
        assert!(node.caller_by_certificate(shown).await.unwrap().is_none(), "{shown}");
    }
    let shown = "certificate shop.example";
    assert!(node.who(CredentialKind::Token, shown).await.unwrap().is_none());
    assert!(node.who_calls(shown).await.unwrap().is_none());
    node.end(CredentialKind::Token, &token.id, None, "test").await.unwrap();
    assert!(node.caller_by_certificate("shop.example").await.unwrap().is_none());
    assert_ne!(refused(&node, Some(&shop), "order", ONE).await, "");
}

#[tokio::test(start_paused = true)]
async fn metrics_and_notes_of_callers_are_bounded() {
    let store = Arc::new(MemoryRangeStore::new());
    let node = Arc::new(node(&store));
    let registry = prometheus::Registry::new();
    node.register(&registry).unwrap();
    for at in 0..1_010 {
        let (token, secret) =
            node.add_token(spec(&format!("shop-{at}")), None, "test").await.unwrap();
        let caller = node.authenticate(&secret, FROM).await.unwrap();
        assert_ne!(refused(&node, Some(&caller), "other", ONE).await, "");
        assert_eq!(refused(&node, Some(&caller), "order", ONE).await, "");
        node.end(CredentialKind::Token, &token.id, None, "test").await.unwrap();
    }
    for family in registry.gather() {
        let of = |label: &str| {
            let metrics = family.get_metric().iter();
            let has =
                |m: &&prometheus::proto::Metric| m.get_label().iter().any(|l| l.value() == label);
            metrics.filter(has).map(|m| m.get_counter().get_value()).sum::<f64>()
        };
        match family.name() {
            "idgen_caller_refusals_total" => {
                assert_eq!((of("shop-7"), of("(other)")), (1.0, 10.0));
                assert_eq!(family.get_metric().len(), 1_002 * 5);
            }
            "idgen_caller_ids_total" | "idgen_caller_calls_total" => {
                assert_eq!((of("shop-7"), of("(other)")), (1.0, 10.0));
                assert_eq!(family.get_metric().len(), 1_001);
            }
            name => panic!("{name}"),
        }
    }
    let noted = || async {
        let entries = crate::ports::RangeStore::audit(&*store, 10_000).await.unwrap();
        entries.iter().filter(|entry| entry.action == "refused_call").count()
    };
    while noted().await < 10 {
        tokio::task::yield_now().await;
    }
    advance(Duration::from_secs(60)).await;
    for _ in 0..5 {
        node.authenticate("idg_wrong", FROM).await.unwrap_err();
    }
    while noted().await < 11 {
        tokio::task::yield_now().await;
    }
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert_eq!(noted().await, 11);
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
