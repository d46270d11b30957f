//! Addresses about accounts, sessions and API tokens.

use axum::extract::{FromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::access_schema::{
    AccessJson, AccountJson, AccountPatch, CallerJson, LoginJson, MadeTokenJson, NewAccountJson,
    NewTokenJson, PasswordJson, SessionInfoJson, SessionJson, SetupJson, TokenJson, WhoJson,
};
use super::answer::{self, IdForm};
use super::auth::{Access, Actor, AdminToken, Asker, Sender, Who};
use super::codes::Fault;
use super::extract::{JsonBody, Name, NoBody};
use super::operations::{Operation, Request, Takes, delete, get, patch, post};
use super::problem::Problem;
use super::routes::Shared;
use super::schema::ListJson;
use crate::domain::access::{CredentialKind, MAX_NAME, NAME_PATTERN, Role};
use crate::domain::{Error, ErrorCode};
use crate::service::access::{AccessControl, Login, NoLogin, no_person};
use crate::service::admin::AdminApi;

type Answer = Result<Response, Problem>;

/// The name of an account in the path.
struct AccountName(String);

impl<S: Send + Sync> FromRequestParts<S> for AccountName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Name::from_request_parts(parts, state).await.map(|Name(name)| AccountName(name))
    }
}

impl Takes for AccountName {
    fn note(request: &mut Request) {
        request.parameters.push(json!({
            "name": "name", "in": "path", "required": true,
            "description": "Name of the account.",
            "schema": {"type": "string", "maxLength": MAX_NAME, "pattern": NAME_PATTERN},
        }));
    }
}

/// The id of a session or a token in the path.
struct CredentialId(String);

impl<S: Send + Sync> FromRequestParts<S> for CredentialId {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(id)) => Ok(CredentialId(id)),
            Err(error) => {
                let detail = format!("id in the path: {}", error.body_text());
                Err(Problem::malformed(Some("id".to_owned()), detail))
            }
        }
    }
}

impl Takes for CredentialId {
    fn note(request: &mut Request) {
        request.parameters.push(json!({
            "name": "id", "in": "path", "required": true,
            "description": "Id of the session or token: 32 hexadecimal digits.",
            "schema": {"type": "string", "maxLength": 32, "pattern": "^[0-9a-f]{32}$"},
        }));
    }
}

impl Takes for Asker {
    fn note(_: &mut Request) {}
}

impl Takes for Sender {
    fn note(_: &mut Request) {}
}

/// The operations that let people and programs in.
pub(super) fn operations<A: AdminApi>() -> Vec<Operation<Shared<A>>> {
    use ErrorCode::{AlreadyExists, Conflict, PermissionDenied};
    let mut all = vec![
        get("showAccess", "/access", Role::View, about::<A>)
            .open()
            .about("Says how to get in", "Whether there are accounts, and an admin token.")
            .answers::<AccessJson>(200, "How to get in."),
        post("setUp", "/setup", Role::View, set_up::<A>)
            .open()
            .about("Makes the first account", "With the token of the set-up link, once.")
            .answers::<SessionJson>(201, "The session of the new account.")
            .with_header("Set-Cookie", "The cookie of the session.")
            .faults(&[Fault::RateLimited])
            .refuses(&[AlreadyExists, Conflict, PermissionDenied]),
        post("logIn", "/session", Role::View, log_in::<A>)
            .open()
            .about("Logs in", "After too many failures: 429, and `Retry-After` says how long.")
            .answers::<SessionJson>(200, "The session.")
            .with_header("Set-Cookie", "The cookie of the session.")
            .faults(&[Fault::Unauthenticated, Fault::RateLimited]),
        get("showSession", "/session", Role::View, session)
            .about("Says who asks", "And what a change with a cookie must show.")
            .answers::<SessionJson>(200, "Who asks."),
        delete("logOut", "/session", Role::View, log_out::<A>)
            .about("Logs out", "The session ends.")
            .answers_nothing(204, "It has ended."),
        post("changePassword", "/session/password", Role::View, change_password::<A>)
            .about("Changes one's own password", "All other sessions of the account end.")
            .answers_nothing(204, "It is changed.")
            .faults(&[Fault::RateLimited])
            .refuses(&[Conflict]),
    ];
    all.extend(of_accounts());
    all.extend(of_credentials());
    all
}

fn of_accounts<A: AdminApi>() -> [Operation<Shared<A>>; 4] {
    use ErrorCode::{AlreadyExists, Conflict};
    [
        get("listAccounts", "/accounts", Role::Administer, accounts::<A>)
            .about("Lists the accounts", "By name.")
            .answers::<ListJson<AccountJson>>(200, "The accounts."),
        post("addAccount", "/accounts", Role::Administer, add_account::<A>)
            .about("Makes an account", "For a person.")
            .answers::<AccountJson>(201, "The account.")
            .refuses(&[AlreadyExists, Conflict]),
        patch("changeAccount", "/accounts/{name}", Role::Administer, change_account::<A>)
            .about("Changes an account", "A new password, and closing it, end its sessions.")
            .answers::<AccountJson>(200, "The account.")
            .faults(&[Fault::NotFound])
            .refuses(&[Conflict]),
        delete("removeAccount", "/accounts/{name}", Role::Administer, remove_account::<A>)
            .about("Removes an account", "With its sessions and tokens.")
            .answers_nothing(204, "It is removed.")
            .faults(&[Fault::NotFound])
            .refuses(&[Conflict]),
    ]
}

// Of these everybody has their own; the handlers look at whose they are.
fn of_credentials<A: AdminApi>() -> [Operation<Shared<A>>; 6] {
    use ErrorCode::{AlreadyExists, Conflict};
    [
        get("listSessions", "/sessions", Role::View, sessions::<A>)
            .about("Lists one's sessions", "Those of everybody, for `administer`.")
            .answers::<ListJson<SessionInfoJson>>(200, "The sessions."),
        delete("endSession", "/sessions/{id}", Role::View, end_session::<A>)
            .about("Ends a session", "One of those that one sees.")
            .answers_nothing(204, "It has ended.")
            .faults(&[Fault::NotFound]),
        get("listTokens", "/tokens", Role::View, tokens::<A>)
            .about("Lists one's API tokens", "Those of everybody, for `administer`.")
            .answers::<ListJson<TokenJson>>(200, "The tokens."),
        post("addToken", "/tokens", Role::View, add_token::<A>)
            .about("Makes an API token", "Of at most one's own role.")
            .answers::<MadeTokenJson>(201, "The token, and this once its secret.")
            .refuses(&[AlreadyExists, Conflict]),
        delete("revokeToken", "/tokens/{id}", Role::View, revoke_token::<A>)
            .about("Revokes an API token", "One of those that one sees.")
            .answers_nothing(204, "It is revoked.")
            .faults(&[Fault::NotFound]),
        get("listCallers", "/callers", Role::View, callers::<A>)
            .about(
                "Lists the callers",
                "Programs that called this node with a token since it started, by name, and what \
                 they took of it. The metrics of all nodes tell what they took of the cluster.",
            )
            .answers::<ListJson<CallerJson>>(200, "The callers."),
    ]
}

impl From<NoLogin> for Problem {
    fn from(why: NoLogin) -> Self {
        match why {
            NoLogin::RateLimited(wait) => Problem::rate_limited(wait),
            NoLogin::Wrong => {
                Problem::fault(Fault::Unauthenticated, "no open account has that name and password")
            }
            NoLogin::Failed(error) => error.into(),
        }
    }
}

fn not_found(what: &str) -> Problem {
    Problem::fault(Fault::NotFound, format!("there is no such {what}"))
}

fn ok(value: &impl serde::Serialize) -> Response {
    answer::json(StatusCode::OK, value, IdForm::Number)
}

fn list<T: serde::Serialize>(items: Vec<T>) -> Response {
    ok(&ListJson { items, more: false })
}

/// The answer to a login, with its cookie.
fn logged_in(access: &Access, login: &Login, status: StatusCode) -> Response {
    let csrf = AccessControl::csrf(&login.secret);
    let who = Who::Session(Box::new(login.caller.clone()), csrf);
    let mut response = answer::json(status, &session_of(&who, String::new()), IdForm::Number);
    response.headers_mut().insert(SET_COOKIE, access.set_cookie(&login.secret));
    response
}

fn session_of(who: &Who, admin: String) -> SessionJson {
    let (name, expires_ms) = match who.caller() {
        Some(caller) => (caller.actor(), caller.credential.expires_ms),
        None => (admin, None),
    };
    let (how, csrf) = match who {
        Who::Session(_, csrf) => ("session", csrf.clone()),
        Who::Admin | Who::Token(..) => ("token", String::new()),
    };
    let account = WhoJson { name, role: who.role().to_string() };
    SessionJson { account, csrf, expires_ms, how: how.to_owned() }
}

/// Whose sessions and tokens `who` may see and end; `None` for everybody's.
fn reach(who: &Who) -> Result<Option<&str>, Error> {
    if who.role() == Role::Administer {
        return Ok(None);
    }
    let account = who.caller().and_then(|caller| caller.credential.account.as_deref());
    account.map(Some).ok_or_else(|| no_person("so has none of its own"))
}

async fn about<A: AdminApi>(State(app): State<Shared<A>>) -> Answer {
    let accounts = app.access.control.has_accounts().await?;
    let closed = match &app.access.admin {
        AdminToken::Closed(how) => Some(how.clone()),
        AdminToken::Token(_) => None,
    };
    Ok(ok(&AccessJson { setup_needed: !accounts, accounts, closed }))
}

async fn set_up<A: AdminApi>(
    State(app): State<Shared<A>>,
    Sender(origin): Sender,
    JsonBody(body): JsonBody<SetupJson>,
) -> Answer {
    let control = &app.access.control;
    let login = control.set_up(&body.token, &body.name, &body.password, &origin).await?;
    Ok(logged_in(&app.access, &login, StatusCode::CREATED))
}

async fn log_in<A: AdminApi>(
    State(app): State<Shared<A>>,
    Sender(origin): Sender,
    JsonBody(body): JsonBody<LoginJson>,
) -> Answer {
    let login = app.access.control.log_in(&body.name, &body.password, &origin).await?;
    Ok(logged_in(&app.access, &login, StatusCode::OK))
}

async fn session(Asker(who): Asker, Actor(actor): Actor) -> Response {
    ok(&session_of(&who, actor))
}

async fn log_out<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
    _: NoBody,
) -> Answer {
    let Who::Session(caller, _) = who else {
        return Err(no_person("there is none to end").into());
    };
    app.access.control.log_out(&caller).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    response.headers_mut().insert(SET_COOKIE, app.access.set_cookie(""));
    Ok(response)
}

async fn change_password<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
    Sender(origin): Sender,
    JsonBody(body): JsonBody<PasswordJson>,
) -> Answer {
    let Who::Session(caller, _) = who else {
        return Err(no_person("has no password").into());
    };
    let changed = app.access.control.change_password(&caller, &body.old, &body.new, &origin).await;
    match changed {
        Ok(()) => Ok(StatusCode::NO_CONTENT.into_response()),
        // Not 401, which would mean that the session has ended.
        Err(NoLogin::Wrong) => {
            let error = Error::invalid("old", "old is not the password of this account");
            Err(error.into())
        }
        Err(why) => Err(why.into()),
    }
}

async fn accounts<A: AdminApi>(State(app): State<Shared<A>>) -> Answer {
    let accounts = app.access.control.accounts().await?;
    Ok(list(accounts.into_iter().map(AccountJson::from).collect()))
}

async fn add_account<A: AdminApi>(
    State(app): State<Shared<A>>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewAccountJson>,
) -> Answer {
    let role = Role::of_person(&body.role)?;
    let control = &app.access.control;
    let account = control.add_account(&body.name, role, &body.password, &actor).await?;
    Ok(answer::json(StatusCode::CREATED, &AccountJson::from(account), IdForm::Number))
}

async fn change_account<A: AdminApi>(
    State(app): State<Shared<A>>,
    AccountName(name): AccountName,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<AccountPatch>,
) -> Answer {
    let (change, password) = body.into_change()?;
    let control = &app.access.control;
    let changed = control.change_account(&name, change, password.as_deref(), &actor).await?;
    let account = changed.ok_or_else(|| not_found("account"))?;
    Ok(ok(&AccountJson::from(account)))
}

async fn remove_account<A: AdminApi>(
    State(app): State<Shared<A>>,
    AccountName(name): AccountName,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    match app.access.control.remove_account(&name, &actor).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(not_found("account")),
    }
}

async fn sessions<A: AdminApi>(State(app): State<Shared<A>>, Asker(who): Asker) -> Answer {
    let sessions = app.access.control.list(CredentialKind::Session, reach(&who)?).await?;
    let current = who.caller().map(|caller| caller.credential.id.as_str());
    let items = sessions.into_iter().map(|session| SessionInfoJson::of(session, current));
    Ok(list(items.collect()))
}

async fn end_session<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
    Actor(actor): Actor,
    CredentialId(id): CredentialId,
    _: NoBody,
) -> Answer {
    end(&app.access, CredentialKind::Session, &who, &actor, &id).await
}

async fn tokens<A: AdminApi>(State(app): State<Shared<A>>, Asker(who): Asker) -> Answer {
    let tokens = app.access.control.list(CredentialKind::Token, reach(&who)?).await?;
    Ok(list(tokens.into_iter().map(TokenJson::from).collect()))
}

async fn callers<A: AdminApi>(State(app): State<Shared<A>>) -> Answer {
    let callers = app.access.control.callers();
    Ok(list(callers.into_iter().map(CallerJson::from).collect()))
}

async fn add_token<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewTokenJson>,
) -> Answer {
    let account = match &who {
        // It would outlive the one that it was made with.
        Who::Token(..) => return Err(no_person("an API token makes no tokens").into()),
        Who::Admin => None,
        Who::Session(caller, _) => caller.credential.account.as_deref(),
    };
    let spec = body.into_spec(who.role())?;
    let (token, secret) = app.access.control.add_token(spec, account, &actor).await?;
    let made = MadeTokenJson { token: token.into(), secret };
    Ok(answer::json(StatusCode::CREATED, &made, IdForm::Number))
}

async fn revoke_token<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
    Actor(actor): Actor,
    CredentialId(id): CredentialId,
    _: NoBody,
) -> Answer {
    end(&app.access, CredentialKind::Token, &who, &actor, &id).await
}

async fn end(access: &Access, kind: CredentialKind, who: &Who, actor: &str, id: &str) -> Answer {
    match access.control.end(kind, id, reach(who)?, actor).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(not_found(kind.as_str())),
    }
}
