//! The URL of a Redis instance: one server, a Sentinel group or a Redis Cluster.
//!
//! ```text
//! redis://[USER:PASSWORD@]HOST[:6379][/DB]
//! redis+sentinel://[[USER:PASSWORD]@[USER:PASSWORD]@]HOST[:26379],…/GROUP[/DB]
//! redis+cluster://[USER:PASSWORD@]HOST[:6379],…
//! ```
//!
//! and the same with `rediss` for TLS. With two accounts, the first is of the
//! Redis servers and the second of the Sentinels. So every secret stands before
//! the last `@`, where the views of the database and [`redact_url`] hide it; in a
//! query it would be shown by whoever does not know this form.
//!
//! What comes of a URL are plain URLs, one for each server, which the library
//! of whoever connects reads.
//!
//! [`redact_url`]: super::instance::redact_url

use std::fmt;

use super::Error;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// Name or address; without brackets where it is of IPv6.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl Endpoint {
    /// Reads `HOST[:PORT]`, with brackets around an address of IPv6.
    fn parse(text: &str, default_port: u16) -> Result<Self, Error> {
        let refused =
            || invalid("each server must be HOST or HOST:PORT, with a comma between them");
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(refused)?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| refused())?,
            None if port.is_empty() => default_port,
            None => return Err(refused()),
        };
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-:%".contains(c);
        if host.is_empty() || port == 0 || !host.chars().all(legal) {
            return Err(refused());
        }
        Ok(Endpoint { host: host.to_owned(), port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// How to log in to servers that are known by their endpoint alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    tls: bool,
    /// `USER:PASSWORD` as in the URL; empty for none.
    account: String,
    /// The number of the database; empty for the first.
    database: String,
}

impl Login {
    /// The plain URL of the server at `endpoint`, secrets included.
    pub fn url(&self, endpoint: &Endpoint) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let at = if self.account.is_empty() { "" } else { "@" };
        format!("{scheme}://{}{at}{endpoint}/{}", self.account, self.database)
    }
}

/// See the module. Holds secrets, so it has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub enum RedisUrl {
    /// One server, by the plain URL as it was given.
    Server(String),
    /// Whatever server the Sentinels say is the master of the group.
    Sentinel {
        /// The Sentinels, at least one.
        sentinels: Vec<Endpoint>,
        /// How to log in to them.
        sentinel_login: Login,
        /// The name of the group, as the Sentinels know it.
        group: String,
        /// How to log in to the servers of the group.
        login: Login,
    },
    /// The servers of a Redis Cluster.
    Cluster {
        /// Servers to ask for all the others, at least one.
        nodes: Vec<Endpoint>,
        /// How to log in to all of them.
        login: Login,
    },
}

impl RedisUrl {
    /// How each form begins.
    pub const SCHEMES: [&'static str; 6] = [
        "redis://",
        "rediss://",
        "redis+sentinel://",
        "rediss+sentinel://",
        "redis+cluster://",
        "rediss+cluster://",
    ];

    /// Reads a URL. Of a plain one only the scheme is checked, the rest is left
    /// to the library that connects. Errors name the field `url` and show
    /// nothing of it.
    pub fn parse(url: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = url
            .split_once("://")
            .filter(|_| Self::SCHEMES.iter().any(|scheme| url.starts_with(scheme)))
        else {
            return Err(invalid(
                "it must begin with redis:// or rediss://, or with +sentinel or +cluster before \
                 the ://",
            ));
        };
        let tls = scheme.starts_with("rediss");
        let (accounts, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        if scheme.ends_with("+sentinel") {
            let (account, sentinel_account) = accounts.split_once('@').unwrap_or((accounts, ""));
            let (group, database) = path.split_once('/').unwrap_or((path, ""));
            let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if group.is_empty() || !group.chars().all(legal) {
                return Err(invalid(
                    "the name of the group (letters, digits or . _ -) must follow the Sentinels, \
                     as in redis+sentinel://h1:26379,h2:26379/GROUP",
                ));
            }
            Ok(RedisUrl::Sentinel {
                sentinels: endpoints(hosts, 26_379)?,
                sentinel_login: login(tls, sentinel_account, "")?,
                group: group.to_owned(),
                login: login(tls, account, database)?,
            })
        } else if scheme.ends_with("+cluster") {
            if !matches!(path, "" | "0") {
                return Err(invalid("a Redis Cluster has database 0 only, and no options"));
            }
            Ok(RedisUrl::Cluster {
                nodes: endpoints(hosts, 6_379)?,
                login: login(tls, accounts, "")?,
            })
        } else {
            Ok(RedisUrl::Server(url.to_owned()))
        }
    }
}

fn endpoints(hosts: &str, default_port: u16) -> Result<Vec<Endpoint>, Error> {
    hosts.split(',').map(|host| Endpoint::parse(host, default_port)).collect()
}

fn login(tls: bool, account: &str, database: &str) -> Result<Login, Error> {
    if account.contains(['@', '/', '?', '#']) {
        return Err(invalid("write @ / ? and # in a user or password as %40 %2F %3F and %23"));
    }
    if database.parse::<u32>().is_err() && !database.is_empty() {
        return Err(invalid("the database must be a number, and there are no options"));
    }
    Ok(Login { tls, account: account.to_owned(), database: database.to_owned() })
}

fn invalid(why: &str) -> Error {
    Error::invalid("url", format!("url of a Redis instance: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_urls(url: &str) -> Vec<String> {
        match RedisUrl::parse(url).unwrap_or_else(|e| panic!("{url}: {e}")) {
            RedisUrl::Server(url) => vec![url],
            RedisUrl::Sentinel { sentinels, sentinel_login, group, login } => {
                let mut urls: Vec<_> = sentinels.iter().map(|s| sentinel_login.url(s)).collect();
                urls.push(group);
                urls.push(login.url(&Endpoint { host: "fd00::1".into(), port: 7_000 }));
                urls
            }
            RedisUrl::Cluster { nodes, login } => nodes.iter().map(|n| login.url(n)).collect(),
        }
    }

    #[test]
    fn every_form() {
        let cases: [(&str, &[&str]); 8] = [
            ("redis://u:p@h:1/2", &["redis://u:p@h:1/2"]),
            (
                "redis+sentinel://a,b:7/main",
                &["redis://a:26379/", "redis://b:7/", "main", "redis://[fd00::1]:7000/"],
            ),
            (
                "rediss+sentinel://u:p%40@s:q@a/my.group-1/3",
                &["rediss://s:q@a:26379/", "my.group-1", "rediss://u:p%40@[fd00::1]:7000/3"],
            ),
            ("redis+sentinel://:p@a/g", &["redis://a:26379/", "g", "redis://:p@[fd00::1]:7000/"]),
            ("redis+sentinel://@:q@a/g", &["redis://:q@a:26379/", "g", "redis://[fd00::1]:7000/"]),
            ("redis+cluster://a,[::1]:7/", &["redis://a:6379/", "redis://[::1]:7/"]),
            ("rediss+cluster://u:p@a:1,b:2/0", &["rediss://u:p@a:1/", "rediss://u:p@b:2/"]),
            ("redis+cluster://10.0.0.1:7000", &["redis://10.0.0.1:7000/"]),
        ];
        for (url, plain) in cases {
            assert_eq!(all_urls(url), plain, "{url}");
        }
    }

    #[test]
    fn what_cannot_work_is_refused_without_its_secrets() {
        for url in [
            "http://:secret@h",
            "redis+sentinel:/:secret@h/g",
            "redis+sentinel://:secret@h",
            "redis+sentinel://:secret@h/",
            "redis+sentinel://:secret@h/g h",
            "redis+sentinel://:secret@h/g/x",
            "redis+sentinel://:secret@h/g?sentinel_password=secret",
            "redis+sentinel://:secret@h/g/0?sentinel_password=secret",
            "redis+sentinel://:secret@x@y@h/g",
            "redis+sentinel://:sec/ret@h/g",
            "redis+sentinel://:secret@/g",
            "redis+sentinel://:secret@h,/g",
            "redis+sentinel://:secret@h:0/g",
            "redis+sentinel://:secret@h:port/g",
            "redis+sentinel://:secret@[::1/g",
            "redis+cluster://:secret@h/1",
            "redis+cluster://:secret@h?x",
            "redis+cluster://:secret@h:65536",
            "redis+cluster://:secret@a@h",
            "redis+cluster://",
        ] {
            let error = RedisUrl::parse(url).err().unwrap_or_else(|| panic!("accepted {url}"));
            assert_eq!(error.field, Some("url"), "{url}");
            assert!(!error.to_string().contains("secret"), "{url}: {error}");
        }
    }
}
