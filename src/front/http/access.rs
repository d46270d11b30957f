//! Addresses about accounts, sessions and API tokens.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Response};

use super::access_schema::{
    AccessJson, AccountJson, AccountPatch, LoginJson, MadeTokenJson, NewAccountJson, NewTokenJson,
    PasswordJson, SessionInfoJson, SessionJson, SetupJson, TokenJson, WhoJson,
};
use super::answer::{IdForm, json};
use super::auth::{Access, Actor, AdminToken, Asker, Sender, Who};
use super::codes::Fault;
use super::extract::{JsonBody, Name, NoBody};
use super::problem::Problem;
use super::routes::Shared;
use super::schema::ListJson;
use crate::domain::Error;
use crate::domain::access::{CredentialKind, Role};
use crate::service::access::{AccessControl, Login, NoLogin, no_person};
use crate::service::admin::AdminApi;

type Answer = Result<Response, Problem>;

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
    json(StatusCode::OK, value, IdForm::Number)
}

fn list<T: serde::Serialize>(items: Vec<T>) -> Response {
    ok(&ListJson { items, more: false })
}

/// The answer to a login, with its cookie.
fn logged_in(access: &Access, login: &Login, status: StatusCode) -> Response {
    let csrf = AccessControl::csrf(&login.secret);
    let who = Who::Session(Box::new(login.caller.clone()), csrf);
    let mut response = json(status, &session_of(&who, String::new()), IdForm::Number);
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
        Who::Admin | Who::Token(_) => ("token", String::new()),
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

pub(super) async fn about<A: AdminApi>(State(app): State<Shared<A>>) -> Answer {
    let accounts = app.access.control.has_accounts().await?;
    let closed = match &app.access.admin {
        AdminToken::Closed(how) => Some(how.clone()),
        AdminToken::Token(_) => None,
    };
    Ok(ok(&AccessJson { setup_needed: !accounts, accounts, closed }))
}

pub(super) async fn set_up<A: AdminApi>(
    State(app): State<Shared<A>>,
    Sender(origin): Sender,
    JsonBody(body): JsonBody<SetupJson>,
) -> Answer {
    let control = &app.access.control;
    let login = control.set_up(&body.token, &body.name, &body.password, &origin).await?;
    Ok(logged_in(&app.access, &login, StatusCode::CREATED))
}

pub(super) async fn log_in<A: AdminApi>(
    State(app): State<Shared<A>>,
    Sender(origin): Sender,
    JsonBody(body): JsonBody<LoginJson>,
) -> Answer {
    let login = app.access.control.log_in(&body.name, &body.password, &origin).await?;
    Ok(logged_in(&app.access, &login, StatusCode::OK))
}

pub(super) async fn session(Asker(who): Asker, Actor(actor): Actor) -> Response {
    ok(&session_of(&who, actor))
}

pub(super) async fn log_out<A: AdminApi>(
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

pub(super) async fn change_password<A: AdminApi>(
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

pub(super) async fn accounts<A: AdminApi>(State(app): State<Shared<A>>) -> Answer {
    let accounts = app.access.control.accounts().await?;
    Ok(list(accounts.into_iter().map(AccountJson::from).collect()))
}

pub(super) async fn add_account<A: AdminApi>(
    State(app): State<Shared<A>>,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewAccountJson>,
) -> Answer {
    let role = Role::parse(&body.role)?;
    let control = &app.access.control;
    let account = control.add_account(&body.name, role, &body.password, &actor).await?;
    Ok(json(StatusCode::CREATED, &AccountJson::from(account), IdForm::Number))
}

pub(super) async fn change_account<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<AccountPatch>,
) -> Answer {
    let (change, password) = body.into_change()?;
    let control = &app.access.control;
    let changed = control.change_account(&name, change, password.as_deref(), &actor).await?;
    let account = changed.ok_or_else(|| not_found("account"))?;
    Ok(ok(&AccountJson::from(account)))
}

pub(super) async fn remove_account<A: AdminApi>(
    State(app): State<Shared<A>>,
    Name(name): Name,
    Actor(actor): Actor,
    _: NoBody,
) -> Answer {
    match app.access.control.remove_account(&name, &actor).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(not_found("account")),
    }
}

pub(super) async fn sessions<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
) -> Answer {
    let sessions = app.access.control.list(CredentialKind::Session, reach(&who)?).await?;
    let current = who.caller().map(|caller| caller.credential.id.as_str());
    let items = sessions.into_iter().map(|session| SessionInfoJson::of(session, current));
    Ok(list(items.collect()))
}

pub(super) async fn end_session<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
    Actor(actor): Actor,
    Name(id): Name,
    _: NoBody,
) -> Answer {
    end(&app.access, CredentialKind::Session, &who, &actor, &id).await
}

pub(super) async fn tokens<A: AdminApi>(State(app): State<Shared<A>>, Asker(who): Asker) -> Answer {
    let tokens = app.access.control.list(CredentialKind::Token, reach(&who)?).await?;
    Ok(list(tokens.into_iter().map(TokenJson::from).collect()))
}

pub(super) async fn add_token<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
    Actor(actor): Actor,
    JsonBody(body): JsonBody<NewTokenJson>,
) -> Answer {
    let account = match &who {
        // It would outlive the one that it was made with.
        Who::Token(_) => return Err(no_person("an API token makes no tokens").into()),
        Who::Admin => None,
        Who::Session(caller, _) => caller.credential.account.as_deref(),
    };
    let spec = body.into_spec(who.role())?;
    let (token, secret) = app.access.control.add_token(spec, account, &actor).await?;
    let made = MadeTokenJson { token: token.into(), secret };
    Ok(json(StatusCode::CREATED, &made, IdForm::Number))
}

pub(super) async fn revoke_token<A: AdminApi>(
    State(app): State<Shared<A>>,
    Asker(who): Asker,
    Actor(actor): Actor,
    Name(id): Name,
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
