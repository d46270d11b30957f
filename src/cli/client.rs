//! Talks to the admin API of a node, for the client commands.
//!
//! Straight to the node: no proxy and no redirect, so that the token goes
//! nowhere else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::{Agent, Body};

use super::exit::{FAILED, Failure, REFUSED, UNAVAILABLE};
use super::tls::TlsArgs;
use crate::config::{Secret, URL_VARIABLE, token};
use crate::domain::instance::redact_url;
use crate::front::http::schema::ProblemJson;

/// Where a node listens for HTTP when nobody says otherwise.
const DEFAULT_URL: &str = "http://127.0.0.1:5980";
/// How an address with TLS begins.
const HTTPS: &str = "https://";
/// Longer than the 30 s that the node gives a request.
const TIMEOUT: Duration = Duration::from_secs(35);
/// 100 000 ids of 20 characters are 2 MB; a page of 1 000 types with the
/// longest descriptions is 64 MB.
const MAX_ANSWER: u64 = 128 * 1024 * 1024;

/// Where the admin API is, and how results look.
#[derive(Args, Clone, Debug)]
pub struct ClientArgs {
    /// Address of the admin API of a node [env: IDGEN_URL] [default: http://127.0.0.1:5980]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Data folder of a node of this machine, for its admin token where
    /// IDGEN_ADMIN_TOKEN is not set [env: IDGEN_DATA] [default: ./idgen-data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Whom to trust, and who asks, with https.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// A connection to the admin API.
pub struct Client {
    agent: Agent,
    url: String,
    token: Option<Secret>,
    /// What to say when the node wants a token and there is none.
    hint: String,
    actor: String,
}

impl Client {
    /// A client for what the flags and the environment say.
    pub fn new(args: &ClientArgs, environment: &[(OsString, OsString)]) -> Result<Self, Failure> {
        let variable = |name: &str| {
            let found = environment.iter().find(|(key, _)| key == name);
            let text = found.map(|(_, value)| value.to_string_lossy().into_owned());
            text.filter(|text| !text.is_empty())
        };
        let url = args.url.clone().or_else(|| variable(URL_VARIABLE));
        let url = url.unwrap_or_else(|| DEFAULT_URL.to_owned());
        let url = url.trim_end_matches('/').to_owned();
        check_url(&url)?;
        let data = args.data.clone();
        let data = data.or_else(|| variable("IDGEN_DATA").map(PathBuf::from));
        let data = data.unwrap_or_else(|| PathBuf::from("./idgen-data"));
        let (token, hint) = find_token(&variable, &data)?;
        let mut config = Agent::config_builder();
        if url.starts_with(HTTPS) {
            config = config.tls_config(args.tls.clone().or_from(environment).ureq()?);
        }
        let agent = config
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .https_only(url.starts_with(HTTPS))
            .proxy(None)
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("idgen/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Ok(Client {
            agent,
            url,
            token,
            hint,
            actor: variable("USER").map_or("command line".to_owned(), |u| format!("{u} (cli)")),
        })
    }

    /// The address of the node, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The JSON at `path`, which begins with a slash.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::GET, path, None)
    }

    /// The text at `path`.
    pub fn get_text(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::GET, path, None)
    }

    /// Sends `body`, if any, and reads the JSON of the answer.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Failure> {
        self.ask(Method::POST, path, body.map(to_json).transpose()?)
    }

    /// Sends `body` as a change and reads the JSON of the answer.
    pub fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.ask(Method::PATCH, path, Some(to_json(body)?))
    }

    /// Deletes what is at `path`.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        self.send(Method::DELETE, path, None).map(drop)
    }

    /// Deletes what is at `path` and reads the JSON of the answer.
    pub fn delete_and_read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::DELETE, path, None)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
    ) -> Result<T, Failure> {
        let text = self.send(method, path, body)?;
        serde_json::from_str(&text).map_err(|error| self.strange(error))
    }

    /// The text of a good answer.
    fn send(&self, method: Method, path: &str, body: Option<String>) -> Result<String, Failure> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}/api/v1{path}", self.url))
            .header("Accept", "application/json, application/problem+json")
            .header("X-Idgen-Actor", &self.actor);
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {}", token.reveal()));
        }
        let answer = match body {
            Some(body) => {
                let request = request.header("Content-Type", "application/json");
                request.body(body).map(|request| self.agent.run(request))
            }
            None => request.body(()).map(|request| self.agent.run(request)),
        };
        let answer = answer
            .map_err(|error| Failure::usage(format_args!("{}: {error}", redact_url(&self.url))))?;
        let mut answer = answer.map_err(|error| self.unreachable(error))?;
        let text = answer.body_mut().with_config().limit(MAX_ANSWER);
        let text = text.read_to_string().map_err(|error| self.unreachable(error))?;
        if answer.status().is_success() { Ok(text) } else { Err(self.refusal(&answer, &text)) }
    }

    fn unreachable(&self, error: ureq::Error) -> Failure {
        let url = redact_url(&self.url);
        let why = match error {
            ureq::Error::Timeout(_) => {
                format!("no answer within {} s; it may or may not have happened", TIMEOUT.as_secs())
            }
            error => format!("{error}"),
        };
        Failure::new(
            UNAVAILABLE,
            format_args!(
                "cannot reach the admin API at {url}: {why} (is the node running? --url or \
                 {URL_VARIABLE} names another one)"
            ),
        )
    }

    fn strange(&self, why: impl std::fmt::Display) -> Failure {
        let url = redact_url(&self.url);
        Failure::new(
            FAILED,
            format_args!("what answers at {url} is no admin API of this version: {why}"),
        )
    }

    fn refusal(&self, answer: &Response<Body>, text: &str) -> Failure {
        let Ok(problem) = serde_json::from_str::<ProblemJson>(text) else {
            return self.strange(format_args!("status {}", answer.status()));
        };
        let code = match problem.code.as_str() {
            "INTERNAL" => FAILED,
            _ if problem.retriable || answer.status() == StatusCode::SERVICE_UNAVAILABLE => {
                UNAVAILABLE
            }
            _ => REFUSED,
        };
        let hint = match answer.status() {
            StatusCode::UNAUTHORIZED => format!(" ({})", self.hint),
            _ => String::new(),
        };
        Failure::new(code, format_args!("{}: {}{hint}", problem.code, problem.detail))
    }
}

fn check_url(url: &str) -> Result<(), Failure> {
    let host = url.strip_prefix("http://").or(url.strip_prefix(HTTPS)).unwrap_or_default();
    if host.is_empty() || host.contains(['@', '?', '#']) {
        return Err(Failure::usage(format_args!(
            "{}: the address of the admin API must be http://HOST:PORT or https://HOST:PORT (from --url or \
             {URL_VARIABLE})",
            redact_url(url)
        )));
    }
    Ok(())
}

/// The token and where it came from, or why there is none.
fn find_token(
    variable: &dyn Fn(&str) -> Option<String>,
    data: &Path,
) -> Result<(Option<Secret>, String), Failure> {
    if let Some(text) = variable("IDGEN_ADMIN_TOKEN") {
        let token = Secret::new(&text).map_err(|error| {
            Failure::usage(format_args!("IDGEN_ADMIN_TOKEN: the token {error}"))
        })?;
        return Ok((Some(token), "the token is from IDGEN_ADMIN_TOKEN".to_owned()));
    }
    let named = variable("IDGEN_ADMIN_TOKEN_FILE").map(PathBuf::from);
    let given = named.is_some();
    let file = named.unwrap_or_else(|| token::token_file(data));
    let shown = file.display();
    match token::read(&file) {
        Ok(Some(token)) => Ok((Some(token), format!("the token is from {shown}"))),
        Ok(None) if given => {
            Err(Failure::usage(format_args!("IDGEN_ADMIN_TOKEN_FILE: there is no file {shown}")))
        }
        Ok(None) => {
            Ok((None, format!("set IDGEN_ADMIN_TOKEN; there is no token in {shown} either")))
        }
        Err(error) if given => Err(Failure::usage(format_args!("IDGEN_ADMIN_TOKEN_FILE: {error}"))),
        // Another user's file is no reason to fail before the node has said
        // that it wants a token.
        Err(error) => Ok((None, format!("set IDGEN_ADMIN_TOKEN; {error}"))),
    }
}

fn to_json(body: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(body).map_err(Failure::failed)
}

/// `text` as one segment of a path or one value of a query.
pub fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b':' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_bytes_go_into_a_path() {
        assert_eq!(encode("shop.order:1_x-y"), "shop.order:1_x-y");
        assert_eq!(encode("a/../b?c#d é"), "a%2F..%2Fb%3Fc%23d%20%C3%A9");
    }

    #[test]
    fn urls_by_cases() {
        for (url, legal) in [
            ("http://127.0.0.1:5980", true),
            ("http://[::1]:5980", true),
            ("https://h", true),
            ("https://", false),
            ("ftp://h", false),
            ("http://", false),
            ("http://u:s3cr3t@h", false),
            ("h:1", false),
        ] {
            let checked = check_url(url);
            assert_eq!(checked.is_ok(), legal, "{url}");
            if let Err(failure) = checked {
                assert!(!failure.message.contains("s3cr3t"), "{failure}");
            }
        }
    }
}
