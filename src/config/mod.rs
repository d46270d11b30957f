//! Configuration: flags, environment and a TOML file become one checked value.
//!
//! Every setting is one [`Setting`] in the file of its section; that table is
//! what the flags, the variables, the documented list and the checks are made
//! from, so they cannot drift apart. [`Settings::load`] merges the three layers
//! (a flag beats a variable beats the file beats the default) and reports
//! every bad value at once, with where it came from and its limit. A secret is
//! never part of a report.

mod clients;
mod compat;
mod http;
mod log;
mod node;
mod problem;
mod reader;
mod redis;
mod refill;
mod setting;
mod store;
mod thrift;
mod tls;
pub mod token;
mod traces;

use std::ffi::OsString;
use std::path::PathBuf;

pub use clients::ClientsSettings;
pub use compat::CompatSettings;
pub use http::{HttpSettings, SecureCookies};
pub use log::{LogFormat, LogLevel, LogSettings};
pub use node::NodeSettings;
pub use problem::{ConfigErrors, Problem};
pub use reader::Layers;
pub use redis::RedisSettings;
pub use refill::RefillSettings;
pub use setting::{Kind, Setting};
pub use store::StoreSettings;
pub use thrift::ThriftSettings;
pub use tls::{ClientAuth, TlsSettings};
pub use token::Secret;
pub use traces::TraceSettings;

use reader::Reader;

/// The variable that names the configuration file.
pub const CONFIG_VARIABLE: &str = "IDGEN_CONFIG";
/// The variable with the address of the admin API, for client commands.
pub const URL_VARIABLE: &str = "IDGEN_URL";

/// The variables with the files of TLS, for client commands: the authorities that may have
/// signed the certificate of a node, and the client's own certificate and key.
pub const CLIENT_TLS_VARIABLES: [&str; 3] = ["IDGEN_CA_FILE", "IDGEN_CERT", "IDGEN_KEY"];

/// Everything that a node is told from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the node keeps files: the embedded store and the admin token.
    pub data: PathBuf,
    /// The Thrift front.
    pub thrift: ThriftSettings,
    /// The HTTP side.
    pub http: HttpSettings,
    /// The routes of other systems.
    pub compat: CompatSettings,
    /// TLS of both, if one of them speaks it.
    pub tls: Option<TlsSettings>,
    /// The range store.
    pub store: StoreSettings,
    /// Programs that take ids.
    pub clients: ClientsSettings,
    /// Redis, as far as it is not in the range store.
    pub redis: RedisSettings,
    /// The node itself.
    pub node: NodeSettings,
    /// The refill jobs.
    pub refill: RefillSettings,
    /// What is logged, and how.
    pub log: LogSettings,
    /// What is told to a collector of traces.
    pub traces: TraceSettings,
}

impl Settings {
    /// Merges and checks all layers. The error holds every problem.
    pub fn load(layers: Layers) -> Result<Settings, ConfigErrors> {
        let mut reader = Reader::new(layers, &all_settings());
        let thrift = ThriftSettings::read(&mut reader);
        let http = HttpSettings::read(&mut reader);
        let compat = CompatSettings::read(&mut reader);
        let settings = Settings {
            data: store::read_data(&mut reader),
            compat,
            tls: TlsSettings::read(&mut reader, &thrift, &http, &compat),
            http,
            store: StoreSettings::read(&mut reader),
            clients: ClientsSettings::read(&mut reader),
            redis: RedisSettings::read(&mut reader),
            node: NodeSettings::read(&mut reader, thrift.port()),
            refill: RefillSettings::read(&mut reader),
            log: LogSettings::read(&mut reader),
            traces: TraceSettings::read(&mut reader),
            thrift,
        };
        reader.finish().map(|()| settings)
    }

    /// The sections that are not the same in `other`; `data` stands above them all.
    pub fn differs_from(&self, other: &Settings) -> Vec<&'static str> {
        [
            ("data", self.data != other.data),
            ("store", self.store != other.store),
            ("thrift", self.thrift != other.thrift),
            ("http", self.http != other.http),
            ("compat", self.compat != other.compat),
            ("clients", self.clients != other.clients),
            ("tls", self.tls != other.tls),
            ("redis", self.redis != other.redis),
            ("node", self.node != other.node),
            ("refill", self.refill != other.refill),
            ("log", self.log != other.log),
            ("traces", self.traces != other.traces),
        ]
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
    }

    /// Merges and checks the flags `flags` (key and value), the environment of
    /// this process and the file that they name.
    pub fn from_process(
        flags: Vec<(&'static str, String)>,
        config: Option<PathBuf>,
    ) -> Result<Settings, ConfigErrors> {
        Settings::load(Layers {
            flags,
            environment: std::env::vars_os().collect::<Vec<(OsString, OsString)>>(),
            config,
        })
    }
}

/// Every setting, in the order of the documentation.
pub fn all_settings() -> Vec<&'static Setting> {
    [
        store::SETTINGS,
        thrift::SETTINGS,
        http::SETTINGS,
        compat::SETTINGS,
        tls::SETTINGS,
        clients::SETTINGS,
        redis::SETTINGS,
        node::SETTINGS,
        refill::SETTINGS,
        log::SETTINGS,
        traces::SETTINGS,
    ]
    .concat()
}

#[cfg(test)]
mod tests;
