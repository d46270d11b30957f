//! Taking over tokens of tinyid: the same secret lets its clients in here, for the same
//! types. Only its SHA-256 is stored.

use super::{AccessControl, TOKEN_PREFIX, hash};
use crate::domain::access::{CredentialKind, Role};
use crate::domain::import::{ForeignToken, Table, plan_tokens};
use crate::domain::{Error, ErrorCode};
use crate::ports::NewCredential;

/// What such a token may do: take ids. It works on the routes of tinyid alone, because
/// the others take secrets of our own form only.
const ROLE: Role = Role::Issue;
/// Below so many characters a secret is easily guessed.
const SHORT: usize = 16;

/// What became of a token, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedToken {
    /// Its name here: `tinyid-`, and the first digits of the SHA-256 of its secret. So it
    /// is the same whenever it is taken over.
    pub name: String,
    /// What it is limited to.
    pub types: Vec<String>,
    /// `new` (would be made), `made`, `exists` or `failed`.
    pub state: &'static str,
    /// What is wrong, or to be known.
    pub remark: Option<String>,
}

impl AccessControl {
    /// Makes the tokens of `table`, which belong to nobody; with `dry_run`, only says
    /// which. What is wrong with one stands with it, and the others are not affected.
    pub async fn import_tokens(
        &self,
        table: &Table,
        dry_run: bool,
        actor: &str,
    ) -> Result<Vec<ImportedToken>, Error> {
        let there = self.list(CredentialKind::Token, None).await?;
        let mut done = Vec::new();
        for token in plan_tokens(table)? {
            let secret = hash(token.secret.reveal());
            let name = format!("tinyid-{}", &secret.as_str()[..16]);
            let live = there.iter().find(|c| c.name == name && c.revoked_ms.is_none());
            let ended = there.iter().any(|c| c.name == name);
            let (state, remark) = match (problem_of(&token), live) {
                (Some(problem), _) => ("failed", Some(problem)),
                (None, Some(live)) if live.types == token.types => ("exists", None),
                (None, Some(live)) => ("exists", Some(differs(&live.types))),
                (None, None) if ended => (
                    "failed",
                    Some("it was revoked here: its secret can be used again in 30 days".to_owned()),
                ),
                (None, None) if dry_run => ("new", warning(&token)),
                (None, None) => {
                    let new = NewCredential {
                        secret,
                        kind: CredentialKind::Token,
                        name: name.clone(),
                        role: ROLE,
                        types: token.types.clone(),
                        ..self.credential(token.secret.reveal())
                    };
                    match self.accounts.add_credential(&new, actor).await.map_err(Error::from) {
                        Ok(_) => ("made", warning(&token)),
                        // Somebody was faster.
                        Err(error) if error.code == ErrorCode::AlreadyExists => ("exists", None),
                        Err(error) => ("failed", Some(error.message)),
                    }
                }
            };
            done.push(ImportedToken { name, types: token.types, state, remark });
        }
        Ok(done)
    }
}

fn problem_of(token: &ForeignToken) -> Option<String> {
    let ours = token.secret.reveal().starts_with(TOKEN_PREFIX);
    let problem = ours.then(|| {
        format!("its secret begins with {TOKEN_PREFIX}, and would work on the admin API as well")
    });
    token.problem.clone().or(problem)
}

fn warning(token: &ForeignToken) -> Option<String> {
    let is_short = token.secret.reveal().chars().count() < SHORT;
    is_short.then(|| format!("its secret has fewer than {SHORT} characters: easily guessed"))
}

fn differs(types: &[String]) -> String {
    format!("it is there for other types: {}", types.join(" "))
}
