//! Section `store`: the range store, and the folder of the node's own files.

use std::path::PathBuf;
use std::time::Duration;

use super::reader::Reader;
use super::setting::{Kind, Setting};

const DATA: Setting = Setting {
    key: "data",
    flag: Some("data"),
    env: "IDGEN_DATA",
    kind: Kind::Folder { default: "./idgen-data" },
    meaning: "Folder of the embedded store and of the admin token made at the first start",
};

const MYSQL: Setting = Setting {
    key: "store.mysql",
    flag: Some("mysql"),
    env: "IDGEN_MYSQL",
    kind: Kind::Url { schemes: &["mysql://"] },
    meaning: "The range store, `mysql://USER:PASSWORD@HOST:PORT/DATABASE`; without it the \
              embedded store under `data` is used",
};

const MYSQL_CA_FILE: Setting = Setting {
    key: "store.mysql_ca_file",
    flag: Some("mysql-ca-file"),
    env: "IDGEN_MYSQL_CA_FILE",
    kind: Kind::File,
    meaning: "PEM file with the authority that signed the certificate of MySQL; turns TLS on",
};

const POOL_MAX: Setting = Setting {
    key: "store.pool_max",
    flag: Some("store-pool-max"),
    env: "IDGEN_STORE_POOL_MAX",
    // Refills are short and rare (about one per type in ten minutes); half of
    // the refill jobs can be in the store at once.
    kind: Kind::Integer { default: 8, low: 1, high: 1_024 },
    meaning: "Most connections of one node to MySQL",
};

const TIMEOUT_MS: Setting = Setting {
    key: "store.timeout_ms",
    flag: Some("store-timeout-ms"),
    env: "IDGEN_STORE_TIMEOUT_MS",
    // Longer than a request waits: a refill is early, and one that is slow is
    // still of use to the requests after it. But no longer than people would
    // wait for a type that has run dry behind a connection that went silent.
    kind: Kind::Integer { default: 3_000, low: 100, high: 60_000 },
    meaning: "How long one call of the range store may take, in milliseconds",
};

const SITE: Setting = Setting {
    key: "store.site",
    flag: Some("store-site"),
    env: "IDGEN_STORE_SITE",
    kind: Kind::Word { default: "none", max: 4 },
    meaning: "Which site the range store is, 0 to 1023, where several sites share id types",
};

pub(super) const SETTINGS: &[&Setting] =
    &[&DATA, &MYSQL, &MYSQL_CA_FILE, &POOL_MAX, &TIMEOUT_MS, &SITE];

/// Settings of the range store.
#[derive(Clone, PartialEq)]
pub struct StoreSettings {
    /// URL of MySQL, password included: show it only redacted. `None` for the
    /// embedded store.
    pub mysql: Option<String>,
    /// PEM file with the authority for TLS to MySQL.
    pub mysql_ca_file: Option<PathBuf>,
    /// Most connections of the node to MySQL.
    pub pool_max: usize,
    /// How long one call may take.
    pub timeout: Duration,
    /// Which site it is, where several share id types.
    pub site: Option<u16>,
}

impl std::fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = self.mysql.as_deref().map(crate::domain::instance::redact_url);
        f.debug_struct("StoreSettings")
            .field("mysql", &url)
            .field("mysql_ca_file", &self.mysql_ca_file)
            .field("pool_max", &self.pool_max)
            .field("timeout", &self.timeout)
            .field("site", &self.site)
            .finish()
    }
}

impl StoreSettings {
    pub(super) fn read(reader: &mut Reader) -> Self {
        let mysql = reader.url(&MYSQL, check_mysql);
        let mysql_ca_file = reader.file(&MYSQL_CA_FILE).map(|(path, _)| path);
        if mysql_ca_file.is_some() && reader.strength(&MYSQL) == 0 {
            reader.problem(
                "store.mysql_ca_file is given without store.mysql, so it would have no effect",
            );
        }
        StoreSettings {
            mysql,
            mysql_ca_file,
            pool_max: reader.integer(&POOL_MAX) as usize,
            timeout: reader.milliseconds(&TIMEOUT_MS),
            site: site(reader),
        }
    }
}

fn site(reader: &mut Reader) -> Option<u16> {
    let word = reader.word(&SITE)?;
    let site = word.parse().ok().filter(|site| (0..1_024).contains(site));
    if site.is_none() {
        reader.problem("store.site must be an integer from 0 to 1023");
    }
    site
}

/// The folder of the node's own files.
pub(super) fn read_data(reader: &mut Reader) -> PathBuf {
    reader.folder(&DATA)
}

/// The outer form only; the adapter knows the rest.
fn check_mysql(url: &str) -> Result<(), String> {
    let rest = url.trim_start_matches("mysql://");
    let rest = rest.split('?').next().unwrap_or_default();
    // A password may hold a raw slash: what counts comes after the last `@`.
    let place = rest.rsplit('@').next().unwrap_or_default();
    match place.split_once('/') {
        Some((host, database)) if !host.is_empty() && !database.is_empty() => Ok(()),
        _ => {
            Err("a MySQL URL needs a host and a database: mysql://USER:PASSWORD@HOST:PORT/DATABASE"
                .to_owned())
        }
    }
}
