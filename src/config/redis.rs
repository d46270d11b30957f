//! Section `redis`: what is not in the range store about Redis.

use std::path::PathBuf;
use std::time::Duration;

use super::reader::Reader;
use super::setting::{Kind, Setting};
use crate::domain::{InstanceSpec, RedisUrl};

const URL: Setting = Setting {
    key: "redis.url",
    flag: Some("redis"),
    env: "IDGEN_REDIS",
    kind: Kind::Url { schemes: &RedisUrl::SCHEMES },
    meaning: "Registered as the instance `default` where the range store has no instance yet; \
              later ones are added with `idgen redis add`",
};

const CA_FILE: Setting = Setting {
    key: "redis.ca_file",
    flag: Some("redis-ca-file"),
    env: "IDGEN_REDIS_CA_FILE",
    kind: Kind::File,
    meaning: "PEM file with the authority that signed the certificates of `rediss://` instances",
};

const TIMEOUT_MS: Setting = Setting {
    key: "redis.timeout_ms",
    flag: Some("redis-timeout-ms"),
    env: "IDGEN_REDIS_TIMEOUT_MS",
    // Below the deadline of a request, so that a request can say why it failed.
    kind: Kind::Integer { default: 1_000, low: 10, high: 60_000 },
    meaning: "How long one call of Redis may take, in milliseconds",
};

pub(super) const SETTINGS: &[&Setting] = &[&URL, &CA_FILE, &TIMEOUT_MS];

/// Settings about Redis.
#[derive(Clone, PartialEq)]
pub struct RedisSettings {
    /// URL of the default instance, password included: show it only redacted.
    pub url: Option<String>,
    /// PEM file with the authority for `rediss://`.
    pub ca_file: Option<PathBuf>,
    /// How long one call may take.
    pub timeout: Duration,
}

impl std::fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = self.url.as_deref().map(crate::domain::instance::redact_url);
        f.debug_struct("RedisSettings")
            .field("url", &url)
            .field("ca_file", &self.ca_file)
            .field("timeout", &self.timeout)
            .finish()
    }
}

impl RedisSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        RedisSettings {
            url: reader.url(&URL, |url| {
                let spec = InstanceSpec { name: "default".to_owned(), url: url.to_owned() };
                spec.validate().map_err(|error| error.message)
            }),
            ca_file: reader.file(&CA_FILE).map(|(path, _)| path),
            timeout: reader.milliseconds(&TIMEOUT_MS),
        }
    }
}
