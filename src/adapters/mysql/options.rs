//! Where the server is, and how to talk to it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, SslOpts};

use super::sql::SQL_MODE;
use crate::domain::Error;
use crate::domain::instance::redact_url;
use crate::ports::StoreError;

/// Settings of the connection to MySQL or MariaDB.
#[derive(Clone)]
pub struct MysqlOptions {
    /// `mysql://user:password@host:port/database`, with `?require_ssl=true` for
    /// TLS. Holds a secret: shown by `redact_url` only.
    pub url: String,
    /// PEM file with the certificate of the authority that signed the
    /// server's. Turns TLS on, and no other authority is trusted.
    pub ca_file: Option<PathBuf>,
    /// Most connections at a time; at least 1.
    pub pool_max: usize,
    /// Every call ends within this time, waiting and connecting included. A
    /// second or less leaves the server's own limit on waiting for a lock (in
    /// whole seconds) no room below it.
    pub timeout: Duration,
}

impl MysqlOptions {
    /// Options for `url`: 8 connections, 5 seconds, authorities of the public web.
    pub fn new(url: impl Into<String>) -> Self {
        MysqlOptions {
            url: url.into(),
            ca_file: None,
            pool_max: 8,
            timeout: Duration::from_secs(5),
        }
    }

    /// The driver's options, and where they lead to, for messages. Refused
    /// (`INVALID_ARGUMENT`, field `mysql` or `ca_file`) when they can never work.
    pub(super) fn driver_opts(&self) -> Result<(Opts, String), StoreError> {
        let wrong = |why: String| {
            let url = redact_url(&self.url);
            StoreError::Refused(Error::invalid("mysql", format!("MySQL URL {url}: {why}")))
        };
        let opts = Opts::from_url(&self.url).map_err(|error| wrong(error.to_string()))?;
        let database = match opts.db_name() {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => {
                return Err(wrong(
                    "it names no database; it should be mysql://user:password@host:port/database"
                        .into(),
                ));
            }
        };
        let target = format!(
            "MySQL {}@{}:{}/{database}",
            opts.user().unwrap_or_default(),
            opts.ip_or_hostname(),
            opts.tcp_port()
        );
        let mut ssl = opts.ssl_opts().cloned();
        if let Some(path) = &self.ca_file {
            if let Err(error) = std::fs::read(path) {
                return Err(StoreError::Refused(Error::invalid(
                    "ca_file",
                    format!("ca_file {}: {error}", path.display()),
                )));
            }
            ssl = Some(
                ssl.unwrap_or_else(SslOpts::default)
                    .with_root_certs(vec![path.clone().into()])
                    .with_disable_built_in_roots(true),
            );
        }
        let builder = OptsBuilder::from_opts(opts)
            // The driver would change to a Unix socket, and so to another
            // account, on a server that it takes for local.
            .prefer_socket(false)
            .tcp_keepalive(Some(Duration::from_secs(30)))
            .stmt_cache_size(32)
            .init(vec![self.session_sql()])
            .ssl_opts(ssl);
        Ok((builder.into(), target))
    }

    /// Makes a session independent of the server's defaults. Waiting for a lock
    /// ends before the caller's patience does, so that the caller is told.
    fn session_sql(&self) -> String {
        let seconds = self.timeout.as_secs_f64().ceil() as u64;
        let wait = seconds.saturating_sub(1).max(1);
        format!(
            "SET SESSION sql_mode = '{SQL_MODE}', time_zone = '+00:00', autocommit = 1, \
             completion_type = 'NO_CHAIN', innodb_lock_wait_timeout = {wait}, \
             lock_wait_timeout = {wait}"
        )
    }
}

impl fmt::Debug for MysqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MysqlOptions")
            .field("url", &redact_url(&self.url))
            .field("ca_file", &self.ca_file)
            .field("pool_max", &self.pool_max)
            .field("timeout", &self.timeout)
            .finish()
    }
}

/// Chooses the process's TLS implementation if nobody has yet.
///
/// `main` does it; tests and tools that use the library may not.
pub(super) fn ensure_tls_provider() {
    // Fails only when one is there already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> Error {
        match MysqlOptions::new(url).driver_opts() {
            Err(StoreError::Refused(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn wrong_urls_are_told_without_the_password() {
        for url in [
            "http://app:hush@h/idgen",
            "mysql://app:hush@h:port/idgen",
            "mysql://app:hush@h",
            "mysql://app:hush@h/",
            "mysql://app:hush@h/idgen?nonsense=1",
            "app:hush@h/idgen",
            "",
        ] {
            let error = refusal(url);
            assert_eq!(error.field, Some("mysql"), "{url}");
            assert!(!error.message.contains("hush"), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let options = MysqlOptions::new("mysql://app:hush@h/idgen");
        assert!(!format!("{options:?}").contains("hush"));
        let (_, target) = options.driver_opts().unwrap();
        assert_eq!(target, "MySQL app@h:3306/idgen");
    }

    #[test]
    fn a_missing_ca_file_is_told() {
        let mut options = MysqlOptions::new("mysql://app@h/idgen");
        options.ca_file = Some("/nowhere/ca.pem".into());
        match options.driver_opts() {
            Err(StoreError::Refused(error)) => assert_eq!(error.field, Some("ca_file")),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn locks_are_given_up_before_the_call() {
        let wait = |ms| {
            let mut options = MysqlOptions::new("mysql://app@h/idgen");
            options.timeout = Duration::from_millis(ms);
            let sql = options.session_sql();
            sql.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(
            [wait(200), wait(1_500), wait(2_000), wait(5_000)],
            [1, 1, 1, 4]
        );
    }
}
