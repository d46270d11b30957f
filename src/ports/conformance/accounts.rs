//! What every store must do about accounts and credentials.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::domain::access::{
    Account, AccountChange, CredentialKind, MAX_SESSIONS, NewAccount, PasswordHash, Role,
    SecretHash,
};
use crate::domain::{Error, ErrorCode};
use crate::ports::{Accounts, NewCredential, RangeStore, SessionLife, StoreError, Subject};

type Store = Arc<dyn Accounts>;

/// Long enough not to end while the suite runs.
const LONG_MS: i64 = 600_000;

/// Runs the whole suite on a store without accounts; `log` is the same store, which
/// keeps the audit log.
pub async fn accounts(store: Store, log: Arc<dyn RangeStore>) {
    setting_up(&store).await;
    accounts_live(&store).await;
    the_last_administrator(&store).await;
    sessions(&store).await;
    what_ends_sessions(&store).await;
    tokens(&store).await;
    certificates(&store).await;
    expiry(&store).await;
    a_session_lives_on_with_use(&store).await;
    audited(&store, &log).await;
}

fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Error {
    match result {
        Err(StoreError::Refused(error)) => error,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A secret that is the same for the same text and differs for others.
fn secret(text: &str) -> SecretHash {
    let mut bytes = [0; 32];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    SecretHash::new(bytes)
}

fn new_account(name: &str, role: Role) -> NewAccount {
    NewAccount {
        name: name.to_owned(),
        role,
        password: PasswordHash::new(format!("$argon2id$of-{name}")),
    }
}

async fn add(store: &Store, name: &str, role: Role) -> Account {
    store.add_account(&new_account(name, role), None, "suite").await.expect("a new account")
}

async fn find(store: &Store, name: &str) -> Account {
    store.find_account(name).await.unwrap().expect("it is there")
}

fn setup(text: &str) -> NewCredential {
    NewCredential {
        id: format!("id-{text}"),
        kind: CredentialKind::Setup,
        secret: secret(text),
        account: None,
        account_version: None,
        name: String::new(),
        role: Role::Administer,
        types: vec![],
        quota: None,
        certificate: false,
        agent: String::new(),
        address: String::new(),
        ttl_ms: Some(LONG_MS),
    }
}

fn session(account: &Account, text: &str) -> NewCredential {
    NewCredential {
        kind: CredentialKind::Session,
        account: Some(account.name.clone()),
        account_version: Some(account.version),
        agent: "a browser, Zoë's".to_owned(),
        address: "2001:db8::1".to_owned(),
        ..setup(text)
    }
}

fn token(account: Option<&str>, text: &str) -> NewCredential {
    NewCredential {
        kind: CredentialKind::Token,
        account: account.map(str::to_owned),
        name: text.to_owned(),
        role: Role::Operate,
        types: vec!["order".to_owned(), "shop.*".to_owned()],
        quota: Some(5_000),
        ttl_ms: None,
        ..setup(text)
    }
}

async fn keep(store: &Store, new: NewCredential) {
    store.add_credential(&new, "suite").await.expect("a new credential");
}

async fn lets_in(store: &Store, text: &str) -> bool {
    store.find_credential(&secret(text)).await.unwrap().is_some()
}

fn life(idle_ms: i64, whole_ms: i64) -> SessionLife {
    SessionLife { idle_ms, whole_ms }
}

async fn setting_up(store: &Store) {
    assert_eq!(store.accounts().await.unwrap(), []);
    let make = async |name: &str, by: &str| {
        let new = new_account(name, Role::Administer);
        store.add_account(&new, Some(&secret(by)), "suite").await
    };
    let denied = |error: Error| assert_eq!(error.code, ErrorCode::PermissionDenied, "{error}");
    denied(refusal(make("ann", "no link").await));
    keep(store, setup("first link")).await;
    keep(store, setup("second link")).await;
    denied(refusal(make("ann", "first link").await));
    keep(store, NewCredential { ttl_ms: Some(1), ..setup("short link") }).await;
    while lets_in(store, "short link").await {}
    denied(refusal(make("ann", "short link").await));
    denied(refusal(make("ann", "second link").await));
    // Of two at once, one.
    keep(store, setup("third link")).await;
    let both = join_all(["ann", "bob"].map(|name| make(name, "third link"))).await;
    assert_eq!(both.iter().filter(|made| made.is_ok()).count(), 1, "{both:?}");
    let first = store.accounts().await.unwrap().remove(0);
    assert_eq!((first.role, first.disabled, first.version), (Role::Administer, false, 1));
    assert!(first.created_ms > 1_500_000_000_000 && first.updated_ms == first.created_ms);
    assert_eq!(first.last_login_ms, None);
    denied(refusal(make("cid", "third link").await));
    let late = refusal(store.add_credential(&setup("late link"), "suite").await);
    assert_eq!(late.code, ErrorCode::Conflict, "{late}");
    if first.name == "bob" {
        add(store, "ann", Role::Administer).await;
        assert!(store.remove_account("bob", "suite").await.unwrap());
    }
}

async fn accounts_live(store: &Store) {
    let error = refusal(store.add_account(&new_account("ann", Role::View), None, "suite").await);
    assert_eq!(error.code, ErrorCode::AlreadyExists, "{error}");
    let error = refusal(store.add_account(&new_account("an n", Role::View), None, "suite").await);
    assert_eq!((error.code, error.field), (ErrorCode::InvalidArgument, Some("name")));
    // Names are told apart by every letter.
    let other = add(store, "Ann", Role::View).await;
    assert_eq!((other.role, other.password.reveal()), (Role::View, "$argon2id$of-Ann"));
    let names: Vec<_> = store.accounts().await.unwrap().into_iter().map(|a| a.name).collect();
    assert_eq!(names, ["Ann", "ann"]);

    let change = AccountChange {
        expected_version: Some(1),
        role: Some(Role::Operate),
        password: Some(PasswordHash::new("$argon2id$new")),
        ..AccountChange::default()
    };
    let changed = store.change_account("Ann", &change, "suite").await.unwrap().expect("known");
    assert_eq!((changed.role, changed.version), (Role::Operate, 2));
    assert_eq!(changed.password.reveal(), "$argon2id$new");
    assert_eq!(find(store, "Ann").await, changed);
    assert_eq!(find(store, "ann").await.version, 1, "the other one is as it was");
    let stale = refusal(store.change_account("Ann", &change, "suite").await);
    assert_eq!(stale.code, ErrorCode::Conflict, "{stale}");
    assert_eq!(store.change_account("nobody", &change, "suite").await, Ok(None));
    assert_eq!(store.remove_account("nobody", "suite").await, Ok(false));
    assert_eq!(store.remove_account("Ann", "suite").await, Ok(true));
    assert_eq!(store.find_account("Ann").await, Ok(None));
}

async fn the_last_administrator(store: &Store) {
    let role = |role| AccountChange { role: Some(role), ..AccountChange::default() };
    let closed = AccountChange { disabled: Some(true), ..AccountChange::default() };
    let open = AccountChange { disabled: Some(false), ..AccountChange::default() };
    for change in [&role(Role::Operate), &closed] {
        let error = refusal(store.change_account("ann", change, "suite").await);
        assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    }
    let error = refusal(store.remove_account("ann", "suite").await);
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    add(store, "bob", Role::Administer).await;
    store.change_account("bob", &closed, "suite").await.unwrap();
    refusal(store.remove_account("ann", "suite").await);
    store.change_account("bob", &open, "suite").await.unwrap();
    // Of two who would each leave the other one, one may. More than once, because
    // they need not meet.
    for _ in 0..25 {
        let both =
            join_all(["ann", "bob"].map(|name| store.change_account(name, &closed, "suite"))).await;
        assert_eq!(both.iter().filter(|done| done.is_ok()).count(), 1, "{both:?}");
        for name in ["ann", "bob"] {
            store.change_account(name, &open, "suite").await.unwrap();
        }
    }
    assert!(store.remove_account("bob", "suite").await.unwrap());
}

async fn sessions(store: &Store) {
    let ann = find(store, "ann").await;
    let kept = store.add_credential(&session(&ann, "s1"), "ann").await.unwrap();
    assert_eq!((kept.id.as_str(), kept.kind), ("id-s1", CredentialKind::Session));
    assert_eq!(kept.expires_ms, Some(kept.created_ms + LONG_MS));
    assert_eq!(kept.agent, "a browser, Zoë's");
    let found = store.find_credential(&secret("s1")).await.unwrap().expect("it lets in");
    assert_eq!(found.credential, kept);
    assert_eq!(found.account_role, Some(Role::Administer));
    assert!((kept.created_ms..kept.created_ms + LONG_MS).contains(&found.now_ms));
    assert!(!lets_in(store, "S1").await, "another secret");
    let logged_in = find(store, "ann").await;
    assert_eq!((logged_in.last_login_ms, logged_in.version), (Some(kept.created_ms), ann.version));

    let older = Account { version: ann.version + 1, ..ann.clone() };
    let error = refusal(store.add_credential(&session(&older, "s2"), "ann").await);
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    let gone = Account { name: "gone".into(), ..ann.clone() };
    let error = refusal(store.add_credential(&session(&gone, "s2"), "ann").await);
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");

    let end = async |kind, id: &str, account| {
        store.end_credential(kind, id, account, "suite").await.unwrap()
    };
    assert!(!end(CredentialKind::Session, "id-s1", Some("bob")).await, "not his");
    assert!(!end(CredentialKind::Token, "id-s1", None).await, "no token");
    assert!(lets_in(store, "s1").await);
    assert!(end(CredentialKind::Session, "id-s1", Some("ann")).await);
    assert!(!lets_in(store, "s1").await, "at once");
    assert!(!end(CredentialKind::Session, "id-s1", Some("ann")).await, "only once");

    for n in 0..=MAX_SESSIONS {
        keep(store, session(&ann, &format!("many-{n}"))).await;
    }
    let listed = store.credentials(CredentialKind::Session, Some("ann")).await.unwrap();
    assert_eq!(listed.len(), MAX_SESSIONS, "the oldest was ended");
    assert!(listed.windows(2).all(|pair| pair[0].created_ms >= pair[1].created_ms));
    assert!(lets_in(store, &format!("many-{MAX_SESSIONS}")).await, "not the newest");
    assert_eq!(store.credentials(CredentialKind::Session, Some("bob")).await.unwrap(), []);
}

async fn what_ends_sessions(store: &Store) {
    let cid = add(store, "cid", Role::View).await;
    for text in ["c1", "c2"] {
        keep(store, session(&cid, text)).await;
    }
    let role = AccountChange { role: Some(Role::Operate), ..AccountChange::default() };
    store.change_account("cid", &role, "suite").await.unwrap();
    let found = store.find_credential(&secret("c1")).await.unwrap().expect("it goes on");
    assert_eq!(found.account_role, Some(Role::Operate), "with the new role");
    let password = AccountChange {
        password: Some(PasswordHash::new("$argon2id$other")),
        keep_session: Some("id-c1".to_owned()),
        ..AccountChange::default()
    };
    let cid = store.change_account("cid", &password, "suite").await.unwrap().expect("known");
    assert!(lets_in(store, "c1").await, "the one that asks goes on");
    assert!(!lets_in(store, "c2").await);

    keep(store, token(Some("cid"), "cids-token")).await;
    let closed = AccountChange { disabled: Some(true), ..AccountChange::default() };
    let closed = store.change_account("cid", &closed, "suite").await.unwrap().expect("known");
    assert!(!lets_in(store, "c1").await && !lets_in(store, "cids-token").await);
    let error = refusal(store.add_credential(&session(&closed, "c3"), "cid").await);
    assert_eq!(error.code, ErrorCode::Conflict, "{error}");
    assert!(closed.version > cid.version);
    let open = AccountChange { disabled: Some(false), ..AccountChange::default() };
    store.change_account("cid", &open, "suite").await.unwrap();
    assert!(!lets_in(store, "c1").await, "an ended session does not come back");
    assert!(lets_in(store, "cids-token").await, "a token does");
    assert!(store.remove_account("cid", "suite").await.unwrap());
    add(store, "cid", Role::View).await;
    assert!(!lets_in(store, "cids-token").await, "a namesake inherits nothing");
}

async fn tokens(store: &Store) {
    let kept = store.add_credential(&token(None, "ci"), "admin token").await.unwrap();
    assert_eq!((kept.name.as_str(), kept.role), ("ci", Role::Operate));
    assert_eq!(kept.types, ["order", "shop.*"]);
    assert_eq!((kept.created_by.as_str(), kept.expires_ms), ("admin token", None));
    assert_eq!((kept.last_used_ms, kept.revoked_ms), (None, None));
    assert_eq!((kept.quota, kept.certificate), (Some(5_000), false));
    let found = store.find_credential(&secret("ci")).await.unwrap().expect("it lets in");
    assert_eq!((found.credential, found.account_role), (kept.clone(), None));
    let again = NewCredential { name: "ci".to_owned(), ..token(None, "ci2") };
    let error = refusal(store.add_credential(&again, "suite").await);
    assert_eq!(error.code, ErrorCode::AlreadyExists, "{error}");

    store.touch(&kept.id, life(1, 2)).await.unwrap();
    let used = store.find_credential(&secret("ci")).await.unwrap().expect("it lets in");
    let last = used.credential.last_used_ms.expect("noted");
    assert!((kept.created_ms..=used.now_ms).contains(&last));
    assert_eq!(used.credential.expires_ms, None, "the life of sessions is none of it");

    let revoked = store.end_credential(CredentialKind::Token, &kept.id, None, "suite").await;
    assert_eq!(revoked, Ok(true));
    assert!(!lets_in(store, "ci").await);
    let listed = store.credentials(CredentialKind::Token, None).await.unwrap();
    let listed: Vec<_> = listed.iter().filter(|t| t.name == "ci").collect();
    assert!(matches!(listed[..], [one] if one.revoked_ms.is_some()), "it is still listed");
    let revoked = store.end_credential(CredentialKind::Token, &kept.id, None, "suite").await;
    assert_eq!(revoked, Ok(false), "only once");
    keep(store, again).await;
    assert!(lets_in(store, "ci2").await, "its name is free again");
}

async fn certificates(store: &Store) {
    let new = |id: &str| NewCredential {
        id: id.to_owned(),
        name: "shop.example".to_owned(),
        role: Role::Issue,
        quota: None,
        certificate: true,
        ..token(None, "certificate shop.example")
    };
    let kept = store.add_credential(&new("id-cert-1"), "suite").await.unwrap();
    assert_eq!((kept.role, kept.quota, kept.certificate), (Role::Issue, None, true));
    let found = store.find_credential(&new("").secret).await.unwrap().expect("it lets in");
    assert_eq!(found.credential, kept);
    let error = refusal(store.add_credential(&new("id-cert-2"), "suite").await);
    assert_eq!(error.code, ErrorCode::AlreadyExists, "{error}");
    let end = store.end_credential(CredentialKind::Token, "id-cert-1", None, "suite").await;
    assert_eq!(end, Ok(true));
    assert!(store.find_credential(&new("").secret).await.unwrap().is_none());
    // A secret that is always the same can be used again.
    keep(store, new("id-cert-2")).await;
    let found = store.find_credential(&new("").secret).await.unwrap().expect("it lets in");
    assert_eq!(found.credential.id, "id-cert-2");
}

async fn expiry(store: &Store) {
    let ann = find(store, "ann").await;
    keep(store, NewCredential { ttl_ms: Some(1), ..session(&ann, "brief") }).await;
    keep(store, NewCredential { ttl_ms: Some(1), ..token(None, "brief-token") }).await;
    while lets_in(store, "brief").await || lets_in(store, "brief-token").await {}
    let live = store.credentials(CredentialKind::Session, Some("ann")).await.unwrap();
    assert!(live.iter().all(|session| session.id != "id-brief"));
    // A name is free once its token has expired.
    let again = NewCredential { name: "brief-token".to_owned(), ..token(None, "brief2") };
    keep(store, again).await;
    let tokens = store.credentials(CredentialKind::Token, None).await.unwrap();
    let named = tokens.iter().filter(|token| token.name == "brief-token");
    assert_eq!(named.count(), 2, "an expired token is still listed");
}

async fn a_session_lives_on_with_use(store: &Store) {
    let ann = find(store, "ann").await;
    keep(store, session(&ann, "used")).await;
    let of = async || {
        let found = store.find_credential(&secret("used")).await.unwrap();
        found.expect("it lets in").credential
    };
    let created = of().await.created_ms;
    store.touch("id-used", life(2 * LONG_MS, 9 * LONG_MS)).await.unwrap();
    let used = of().await;
    let last = used.last_used_ms.expect("noted");
    assert_eq!(used.expires_ms, Some(last + 2 * LONG_MS));
    store.touch("id-used", life(9 * LONG_MS, 2 * LONG_MS)).await.unwrap();
    assert_eq!(of().await.expires_ms, Some(created + 2 * LONG_MS), "at most its whole life");
    store.touch("id-nobody", life(1, 1)).await.unwrap();
    // What has ended does not come back.
    keep(store, NewCredential { ttl_ms: Some(1), ..session(&ann, "over") }).await;
    while lets_in(store, "over").await {}
    store.touch("id-over", life(LONG_MS, LONG_MS)).await.unwrap();
    assert!(!lets_in(store, "over").await);
}

async fn audited(store: &Store, log: &Arc<dyn RangeStore>) {
    let seq = log.latest_change().await.unwrap();
    let dan = store.add_account(&new_account("dan", Role::View), None, "ann").await.unwrap();
    let closed = AccountChange { disabled: Some(true), ..AccountChange::default() };
    let password = AccountChange {
        password: Some(PasswordHash::new("$argon2id$of-dan-2")),
        ..AccountChange::default()
    };
    keep(store, session(&dan, "d1")).await;
    store.end_credential(CredentialKind::Session, "id-d1", None, "dan").await.unwrap();
    keep(store, token(Some("dan"), "dans")).await;
    store.end_credential(CredentialKind::Token, "id-dans", None, "ann").await.unwrap();
    store.change_account("dan", &password, "dan").await.unwrap();
    store.change_account("dan", &closed, "ann").await.unwrap();
    store.note_failed_login("dan", "192.0.2.7").await.unwrap();
    store.note_failed_login("né\u{7}", "192.0.2.7").await.unwrap();
    store.note_refused_call("dans", "192.0.2.8", "type").await.unwrap();
    store.note_refused_call("", "192.0.2.8", "token").await.unwrap();
    store.touch("id-dans", life(1, 1)).await.unwrap();
    store.remove_account("dan", "ann").await.unwrap();
    let entries = log.audit(100).await.unwrap();
    let entries: Vec<_> = entries.into_iter().rev().filter(|e| e.seq > seq).collect();
    let told: Vec<_> =
        entries.iter().map(|e| (e.action.as_str(), e.subject.as_str(), e.actor.as_str())).collect();
    let expected = [
        ("add_account", "dan", "ann"),
        ("log_in", "dan", "suite"),
        ("end_session", "dan", "dan"),
        ("add_token", "dans", "suite"),
        ("revoke_token", "dans", "ann"),
        ("change_account", "dan", "dan"),
        ("change_account", "dan", "ann"),
        ("failed_login", "dan", "192.0.2.7"),
        ("failed_login", "?", "192.0.2.7"),
        ("refused_call", "dans", "192.0.2.8"),
        ("refused_call", "?", "192.0.2.8"),
        ("remove_account", "dan", "ann"),
    ];
    assert_eq!(told, expected);
    for entry in &entries {
        let texts = [entry.before.as_deref(), entry.after.as_deref()];
        for text in texts.into_iter().flatten() {
            let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
            assert!(value.is_object(), "{text}");
            assert!(!text.contains("argon2id"), "no hash of a password: {text}");
            assert!(!text.contains(secret("d1").as_str()), "no hash of a secret: {text}");
        }
    }
    let changes = log.changes_since(seq).await.unwrap();
    assert_eq!(changes.len(), expected.len());
    assert!(changes.iter().all(|change| change.subject == Subject::Access), "{changes:?}");
}
