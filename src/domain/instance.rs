//! Redis instances: the servers that strict types are assigned to.

use std::fmt;

use super::{Error, ErrorCode, RedisUrl};

/// The number of a Redis instance in the range store; at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub i64);

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a new Redis instance is made from.
#[derive(Clone, PartialEq, Eq)]
pub struct InstanceSpec {
    /// Its name: the rule of type names.
    pub name: String,
    /// A [`RedisUrl`], with user and password where needed.
    pub url: String,
}

impl InstanceSpec {
    /// Longest URL, in bytes.
    pub const MAX_URL: usize = 1_024;

    /// The record of an instance of this spec, to which no type is assigned yet.
    pub fn into_record(self, id: InstanceId) -> InstanceRecord {
        InstanceRecord { id, name: self.name, url: self.url, types: 0, drain_to: None }
    }

    /// Checks the name and the outer form of the URL.
    pub fn validate(&self) -> Result<(), Error> {
        if !super::TypeName::is_legal(&self.name) {
            return Err(Error::invalid(
                "name",
                "name of a Redis instance must be 1 to 128 letters, digits or _ . : - and begin \
                 with a letter or digit",
            ));
        }
        if self.url.len() > Self::MAX_URL {
            return Err(Error::invalid(
                "url",
                format!("url of a Redis instance must have at most {} bytes", Self::MAX_URL),
            ));
        }
        if !self.url.starts_with(InstanceRecord::MEMORY_URL) {
            RedisUrl::parse(&self.url)?;
        }
        Ok(())
    }
}

/// A Redis instance as the range store holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct InstanceRecord {
    /// Its number.
    pub id: InstanceId,
    /// Its name.
    pub name: String,
    /// Its URL, secrets included: show [`redact_url`] of it, never itself.
    pub url: String,
    /// How many types are assigned to it.
    pub types: u64,
    /// Where its types go one after another, while it is being drained. It gets
    /// no new ones.
    pub drain_to: Option<InstanceId>,
}

impl InstanceRecord {
    /// The URL of the dispatcher that lives in the process itself, beside the
    /// embedded store.
    pub const MEMORY_URL: &'static str = "memory://";

    /// Whether types may come to it. Refused: `INVALID_ARGUMENT` (`instance`) while it
    /// is being drained.
    pub fn check_takes_types(&self) -> Result<(), Error> {
        match self.drain_to {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "instance",
                format!("instance {} is being drained: it takes no id types", self.name),
            )),
        }
    }
}

/// The instance of `all` called `wanted`, else the one of that number; else
/// `UNKNOWN_INSTANCE`.
pub fn find_instance<'a>(
    all: &'a [InstanceRecord],
    wanted: &str,
) -> Result<&'a InstanceRecord, Error> {
    let by_name = all.iter().find(|i| i.name == wanted);
    let found = by_name.or_else(|| all.iter().find(|i| i.id.to_string() == wanted));
    found.ok_or_else(|| {
        let message = format!("no Redis instance is called {wanted:?}");
        Error::new(ErrorCode::UnknownInstance, message)
    })
}

/// The instance of `all` (by number, ascending) for a new type that asks for
/// `wanted`; the first one that is not being drained where it asks for none.
/// Refused: `UNKNOWN_INSTANCE`, and `INVALID_ARGUMENT` (`instance`) for one that is
/// being drained.
pub fn choose_instance<'a>(
    all: &'a [InstanceRecord],
    wanted: Option<&str>,
) -> Result<&'a InstanceRecord, Error> {
    let Some(wanted) = wanted else {
        let found = all.iter().find(|instance| instance.drain_to.is_none());
        let none = match all.is_empty() {
            true => "no Redis instance is registered",
            false => "every Redis instance is being drained",
        };
        return found.ok_or_else(|| Error::new(ErrorCode::UnknownInstance, none));
    };
    let found = find_instance(all, wanted)?;
    found.check_takes_types()?;
    Ok(found)
}

/// Checks that `from` may be drained to `to`. Refused: `INVALID_ARGUMENT`
/// (`instance`) where they are one, or `to` is being drained itself.
pub fn check_drain(from: &InstanceRecord, to: &InstanceRecord) -> Result<(), Error> {
    if from.id == to.id {
        return Err(Error::invalid("instance", "an instance cannot be drained to itself"));
    }
    to.check_takes_types()
}

impl fmt::Debug for InstanceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceSpec({}, {})", self.name, redact_url(&self.url))
    }
}

impl fmt::Debug for InstanceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InstanceRecord({}, {}, {})", self.id, self.name, redact_url(&self.url))
    }
}

/// `url` with its password, if any, replaced by `***`, for logs, pages and errors.
///
/// Works on text, not on a parsed URL, because it must also hide the password
/// of a URL that does not parse: everything between the first `:`, `/` or `?`
/// after `//` and the last `@` goes. So does what follows a `?`: somebody may have put a
/// password there.
pub fn redact_url(url: &str) -> String {
    let after = url.rfind('@').map_or(0, |at| at + 1);
    let (address, query) = match url[after..].find('?') {
        Some(question) => (&url[..after + question], "?***"),
        None => (url, ""),
    };
    redact_account(address) + query
}

fn redact_account(url: &str) -> String {
    let Some(scheme_end) = url.find("//").map(|i| i + 2) else {
        return match url.rfind('@') {
            Some(at) => format!("***{}", &url[at..]),
            None => url.to_owned(),
        };
    };
    let rest = &url[scheme_end..];
    match rest.rfind('@') {
        None => url.to_owned(),
        Some(at) => {
            let (user, hidden) = match rest[..at].find([':', '/', '?']) {
                Some(end) => (&rest[..end], ":***"),
                None => (&rest[..at], ""),
            };
            format!("{}{user}{hidden}{}", &url[..scheme_end], &rest[at..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://:secret@h:1/0", "redis://:***@h:1/0"),
            ("rediss://user:se:c@ret@h:1", "rediss://user:***@h:1"),
            ("mysql://app:p%40ss@h/idgen", "mysql://app:***@h/idgen"),
            ("redis://user@h", "redis://user@h"),
            ("app:secret@h/idgen", "***@h/idgen"),
            ("redis+sentinel://u:secret@s:secret@a,b/g/1", "redis+sentinel://u:***@a,b/g/1"),
            ("redis+sentinel://@s:secret@a,b/g", "redis+sentinel://@s:***@a,b/g"),
            ("rediss+cluster://:sec?ret@a,b:1", "rediss+cluster://:***@a,b:1"),
            ("redis+sentinel://a/g?sentinel_password=secret", "redis+sentinel://a/g?***"),
            ("redis://u:secret@h/0?password=secret", "redis://u:***@h/0?***"),
            ("redis://h/0?password=secret@home", "redis://h:***@home"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
    }

    #[test]
    fn only_redis_urls() {
        let spec = |name: &str, url: &str| InstanceSpec { name: name.into(), url: url.into() };
        assert!(spec("main", "redis://h:1").validate().is_ok());
        assert!(spec("main", "redis+sentinel://h:1/g").validate().is_ok());
        assert!(spec("main", "rediss+cluster://h:1,i:1").validate().is_ok());
        let error = spec("main", "redis+sentinel://h:1").validate().unwrap_err();
        assert_eq!(error.field, Some("url"));
        assert_eq!(spec("main", "http://h").validate().unwrap_err().field, Some("url"));
        assert_eq!(spec("m n", "redis://h").validate().unwrap_err().field, Some("name"));
    }
}
