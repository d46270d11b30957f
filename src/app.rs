//! The composition root: the only place that names concrete adapters.
//!
//! A node is built, bound, and only then spawned: every setting, the store's
//! schema and both ports are known to be good before the first task runs.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use prometheus::Registry;
use tokio::sync::watch;

use crate::adapters::embedded::EmbeddedStore;
use crate::adapters::memory::MemoryDispatcher;
use crate::adapters::mysql::{self, MysqlImportSource, MysqlOptions, MysqlStore};
use crate::adapters::redis::{RedisDispatcher, RedisOptions};
use crate::adapters::system::{SystemClock, SystemEntropy};
use crate::cli::Wiring;
use crate::cli::exit::{self, Failure};
use crate::cli::schema::SchemaReport;
use crate::config::token::{self, AdminAccess};
use crate::config::{self, Layers, SecureCookies, Settings, StoreSettings};
use crate::domain::{Error, ErrorCode, InstanceRecord, InstanceSpec};
use crate::front;
use crate::front::http::{
    self, Access, AdminToken, BoundHttp, Compat, CompatConfig, CompatMetrics, HttpConfig, HttpTls,
};
use crate::front::thrift::{ThriftConfig, ThriftMetrics, ThriftServer};
use crate::front::tls::{self, ClientAuth, Side, Tls, TlsConfig, TlsFiles};
use crate::lifecycle::{self, StopSignals};
use crate::ports::{
    Accounts, Dispatcher, DispatcherFactory, MysqlFacts, RangeStore, StoreError, WorkerIds,
};
use crate::reload::{self, Followers};
use crate::service::access::AccessControl;
use crate::service::live::api::LiveConfig;
use crate::service::{Ports, Service, ServiceConfig, ServiceMetrics};
use crate::telemetry::{LogLevelControl, Telemetry};

/// What the command line needs of the rest of the program.
pub const WIRING: Wiring = Wiring {
    serve,
    schema_apply,
    schema_check,
    schema_print: mysql::schema::print,
    redis_urls,
    mysql_facts,
};

/// The name under which `--redis` is registered in a cluster without instances.
const DEFAULT_INSTANCE: &str = "default";

/// Makes dispatchers: on Redis, or in this process beside the embedded store.
struct Dispatchers {
    redis: RedisOptions,
    /// `None` in a cluster: what one process remembers cannot be shared.
    memory: Option<Arc<MemoryDispatcher>>,
}

impl DispatcherFactory for Dispatchers {
    fn connect(&self, instance: &InstanceRecord) -> Result<Arc<dyn Dispatcher>, Error> {
        if instance.url != InstanceRecord::MEMORY_URL {
            return Ok(Arc::new(RedisDispatcher::new(&instance.url, &self.redis)?));
        }
        match &self.memory {
            Some(memory) => Ok(memory.clone()),
            None => Err(Error::invalid(
                "url",
                "url memory:// works beside the embedded store only: a cluster needs Redis",
            )),
        }
    }
}

/// One store, seen from its sides; the dispatcher beside it, and its kind.
type Stores = (
    Arc<dyn RangeStore>,
    Arc<dyn WorkerIds>,
    Arc<dyn Accounts>,
    Option<Arc<MemoryDispatcher>>,
    &'static str,
);

/// Everything that is needed before the first task runs.
struct Built {
    config: ServiceConfig,
    ports: Ports,
    access: Access,
    thrift: ThriftServer,
    http: BoundHttp,
    /// The port of the routes of other systems, if they have one of their own.
    compat: Option<BoundHttp>,
    banner: String,
}

/// Runs a node until a signal stops it. Exit codes: 2 for settings that cannot
/// work, 4 for a store that is out of reach, 1 for everything else.
pub fn serve(layers: Layers) -> Result<(), Failure> {
    let settings = Settings::load(layers.clone()).map_err(Failure::usage)?;
    let telemetry = Telemetry::start(&settings.log, &settings.traces, &settings.node.id)
        .map_err(|e| Failure::usage(e.to_string()))?;
    front::trace_one_in(settings.traces.rate());
    // The provider of TLS for every client in the process; an error means that
    // it was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    raise_file_limit(&settings);
    let runtime = runtime(settings.node.workers)?;
    let outcome = runtime.block_on(run(settings, layers, telemetry.log_level()));
    // Tasks of libraries that nobody joins must not hold the process up.
    runtime.shutdown_background();
    telemetry.end();
    outcome
}

/// How many threads serve requests where nothing is set: half of the cores, at
/// least one. Most of a request's time is the kernel's, which takes the other
/// half, and so do Redis and clients that share the machine. Measured on two
/// cores with everything on them (docs/performance.md): one worker serves 10 %
/// more than two, with a third less at p99.
pub fn default_workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).max(1)
}

/// A runtime with `workers` threads; 0 for [`default_workers`].
fn runtime(workers: usize) -> Result<tokio::runtime::Runtime, Failure> {
    let workers = if workers == 0 { default_workers() } else { workers };
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .map_err(|e| Failure::failed(format_args!("cannot start: {e}")))
}

/// Each connection is a file descriptor; the usual soft limit of 1 024 is far
/// below what the settings allow.
fn raise_file_limit(settings: &Settings) {
    let apart = if settings.compat.is_apart() { settings.compat.max_connections } else { 0 };
    let connections = settings.thrift.max_connections + settings.http.max_connections + apart;
    let wanted = connections as u64 + 256;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(limit) if limit < wanted => tracing::warn!(
            limit,
            wanted,
            "the system allows fewer open files than the settings need: raise LimitNOFILE"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
}

async fn run(settings: Settings, layers: Layers, log: LogLevelControl) -> Result<(), Failure> {
    let registry = Registry::new();
    let failed = |e: prometheus::Error| Failure::failed(format_args!("metrics: {e}"));
    let service_metrics = ServiceMetrics::register(&registry).map_err(failed)?;
    let thrift_metrics = Arc::new(ThriftMetrics::register(&registry).map_err(failed)?);
    let compat = Compat {
        config: compat_config(&settings),
        metrics: CompatMetrics::register(&registry).map_err(failed)?,
    };
    let mut signals = StopSignals::listen()
        .map_err(|e| Failure::failed(format_args!("cannot listen for signals: {e}")))?;

    let hangup = || {
        lifecycle::hangup()
            .map_err(|e| Failure::failed(format_args!("cannot listen for signals: {e}")))
    };
    let (hangup, for_settings) = (hangup()?, hangup()?);
    let tls = load_tls(&settings, &registry)?;

    let built = build(&settings, tls.as_deref()).await?;
    built.access.control.register(&registry).map_err(failed)?;
    let stop_pause = settings.node.stop_pause;
    let service =
        Service::start(built.config, built.ports, service_metrics).await.map_err(failure)?;
    let counted = thrift_metrics.clone();
    service.go_live(LiveConfig {
        thrift: built.thrift.local_addr().to_string(),
        http: built.http.local_addr().map_err(Failure::failed)?.to_string(),
        traffic: Box::new(move || counted.traffic()),
    });
    let service = Arc::new(service);
    let (stop_thrift, thrift_stop) = watch::channel(false);
    let (stop_http, http_stop) = watch::channel(false);
    let (stop_reload, reload_stop) = watch::channel(false);
    let certificates = tls::keep_current(tls, hangup, reload_stop.clone());
    let followers = Followers { log, access: built.access.control.clone() };
    let rest = reload::keep_current(settings, layers, followers, for_settings, reload_stop);
    let reloads = tokio::spawn(async { tokio::join!(certificates, rest) });
    let mut thrift =
        tokio::spawn(built.thrift.serve(service.clone(), thrift_metrics.clone(), thrift_stop));
    // Applications call these as they call Thrift, so both end together.
    let beside = built.compat.is_none().then(|| compat.clone());
    let mut foreign = built.compat.map(|bound| {
        let (access, stop) = (built.access.clone(), stop_thrift.subscribe());
        tokio::spawn(bound.serve_compat(service.clone(), access, compat, stop))
    });
    let mut http =
        tokio::spawn(built.http.serve(service.clone(), registry, built.access, beside, http_stop));
    // Somebody may have started the node without a terminal.
    let _ = io::stdout().write_all(built.banner.as_bytes());
    let _ = io::stdout().flush();

    tokio::select! {
        name = signals.next() => tracing::info!(signal = name, "stopping"),
        _ = &mut thrift => return Err(Failure::failed("the Thrift front ended by itself")),
        () = ended(&mut foreign) => {
            return Err(Failure::failed("the HTTP side of other systems ended by itself"));
        }
        _ = &mut http => return Err(Failure::failed("the HTTP side ended by itself")),
    }
    signals
        .or_at_once(async {
            // Readiness goes first and HTTP last, so that probes see the drain.
            service.drain();
            tokio::time::sleep(stop_pause).await;
            let _ = stop_thrift.send(true);
            if let Ok(served) = thrift.await {
                let requests = thrift_metrics.requests();
                tracing::info!(requests, cut = served.cut, "Thrift front drained");
            }
            if let Some(foreign) = foreign.take() {
                let _ = foreign.await;
            }
            service.close().await;
            let _ = stop_http.send(true);
            let _ = http.await;
            let _ = stop_reload.send(true);
            let _ = reloads.await;
        })
        .await;
    tracing::info!("stopped");
    Ok(())
}

/// Returns when `task` has ended; never without one.
async fn ended(task: &mut Option<tokio::task::JoinHandle<()>>) {
    match task {
        Some(task) => drop(task.await),
        None => std::future::pending().await,
    }
}

fn compat_config(settings: &Settings) -> CompatConfig {
    let compat = &settings.compat;
    CompatConfig {
        leaf: compat.leaf,
        tinyid: compat.tinyid,
        tinyid_tokens: compat.tinyid_tokens,
        s0: compat.s0,
        s0_open: compat.s0_open,
    }
}

/// The certificates, where a side speaks TLS.
fn load_tls(settings: &Settings, registry: &Registry) -> Result<Option<Arc<Tls>>, Failure> {
    let Some(tls) = &settings.tls else { return Ok(None) };
    let client_auth = |auth| match auth {
        config::ClientAuth::Off => ClientAuth::Off,
        config::ClientAuth::Optional => ClientAuth::Optional,
        config::ClientAuth::Required => ClientAuth::Required,
    };
    let config = TlsConfig {
        files: TlsFiles {
            cert: tls.cert_file.clone(),
            key: tls.key_file.clone(),
            client_ca: tls.client_ca_file.clone(),
        },
        only_tls13: tls.only_tls13,
        handshake_timeout: tls.handshake_timeout,
        reload_interval: tls.reload_interval,
        thrift: client_auth(settings.thrift.tls_client_auth),
        http: client_auth(settings.http.tls_client_auth),
    };
    Tls::load(config, Arc::new(SystemClock), registry).map(Some).map_err(Failure::usage)
}

async fn build(settings: &Settings, tls: Option<&Tls>) -> Result<Built, Failure> {
    let port = |addr: Option<_>, side| addr.zip(tls.map(|tls| tls.port(side)));
    let thrift_tls = port(settings.thrift.tls_addr, Side::Thrift);
    let thrift_config = ThriftConfig {
        addr: settings.thrift.addr,
        max_frame_bytes: settings.thrift.max_frame_bytes,
        max_connections: settings.thrift.max_connections,
        idle_timeout: settings.thrift.idle_timeout,
        message_timeout: settings.thrift.message_timeout,
        drain: settings.node.drain,
        ..ThriftConfig::default()
    };
    let thrift = ThriftServer::bind_with_tls(thrift_config, thrift_tls)
        .await
        .map_err(|e| Failure::failed(format_args!("cannot listen for Thrift on {e}")))?;
    let http_config = HttpConfig {
        addr: settings.http.addr,
        max_connections: settings.http.max_connections,
        drain: settings.node.drain,
    };
    let cookies = settings.http.secure_cookies;
    let http_tls = |addr| {
        port(addr, Side::Http).map(|(addr, port)| HttpTls {
            addr,
            port,
            secure_cookies: cookies != SecureCookies::Never,
        })
    };
    let http = http::bind_with_tls(http_config, http_tls(settings.http.tls_addr))
        .await
        .map_err(Failure::failed)?;
    let compat = match settings.compat.is_apart() {
        false => None,
        true => {
            let config = HttpConfig {
                addr: settings.compat.addr,
                max_connections: settings.compat.max_connections,
                drain: settings.node.drain,
            };
            let tls = http_tls(settings.compat.tls_addr);
            Some(http::bind_with_tls(config, tls).await.map_err(Failure::failed)?)
        }
    };
    let access = token::resolve(settings).map_err(Failure::failed)?;
    let redis =
        RedisOptions { timeout: settings.redis.timeout, ca_file: settings.redis.ca_file.clone() };
    let (store, workers, accounts, memory, store_kind): Stores = match &settings.store.mysql {
        Some(_) => {
            let store = MysqlStore::connect(mysql_options(&settings.store)?)
                .await
                .map_err(|e| failure(e.into()))?;
            let store = Arc::new(store);
            (store.clone(), store.clone(), store, None, "mysql")
        }
        None => {
            let store = EmbeddedStore::open(&settings.data).map_err(|e| failure(e.into()))?;
            let store = Arc::new(store);
            let memory = Arc::new(MemoryDispatcher::new(&SystemEntropy));
            (store.clone(), store.clone(), store, Some(memory), "embedded")
        }
    };
    let factory = Dispatchers { redis, memory };
    if let Some(url) = &settings.redis.url {
        register_default(&*store, &factory, url).await?;
    }
    let control = AccessControl::new(accounts, Arc::new(SystemEntropy), Arc::new(SystemClock))
        .map_err(failure)?
        .require_tokens(settings.clients.tokens_required);
    let control = Arc::new(control);
    let setup = control.make_setup().await.map_err(failure)?;
    let mut addresses =
        listed(["thrift  ", "thrift  ", ", with TLS"], thrift.local_addr(), thrift.tls_addr());
    let (http_addr, https) = (http.local_addr().map_err(Failure::failed)?, http.tls_addr());
    addresses += &listed(["http    http://", "https   https://", ""], http_addr, https);
    if let Some(compat) = &compat {
        let first = compat.local_addr().map_err(Failure::failed)?;
        addresses += &listed(["compat  http://", "compat  https://", ""], first, compat.tls_addr());
    }
    let banner = banner(settings, &addresses, (http_addr, https), &access, setup.as_deref());
    Ok(Built {
        config: ServiceConfig {
            node: settings.node.id.clone(),
            deadline: settings.node.deadline,
            max_waiting: settings.node.max_waiting,
            refill_jobs: settings.refill.jobs,
            takeover_grace: settings.refill.takeover_grace,
            idle_after: settings.node.idle_after,
            worker_lease: settings.node.worker_lease,
            site: settings.store.site,
            store_kind,
        },
        ports: Ports {
            store,
            workers,
            factory: Arc::new(factory),
            entropy: Arc::new(SystemEntropy),
            clock: Arc::new(SystemClock),
            import_source: Arc::new(MysqlImportSource),
        },
        access: Access {
            admin: match access {
                AdminAccess::Token { token, .. } => AdminToken::Token(token.reveal().to_owned()),
                AdminAccess::Closed(how) => AdminToken::Closed(how.to_owned()),
            },
            control: control.clone(),
            secure_cookies: cookies == SecureCookies::Always,
        },
        thrift: thrift.guarded_by(control),
        http,
        compat,
        banner,
    })
}

/// `--redis` becomes the default instance of a cluster that has none yet.
async fn register_default(
    store: &dyn RangeStore,
    factory: &Dispatchers,
    url: &str,
) -> Result<(), Failure> {
    let known = store.connections().await.map_err(|e| failure(e.into()))?;
    if known.iter().any(|i| i.url != InstanceRecord::MEMORY_URL) {
        return Ok(());
    }
    let spec = InstanceSpec { name: DEFAULT_INSTANCE.to_owned(), url: url.to_owned() };
    spec.validate().map_err(failure)?;
    let record = spec.clone().into_record(crate::domain::InstanceId(0));
    // A URL that can never work must not reach the table that all nodes read.
    factory.connect(&record).map_err(failure)?;
    match store.add_instance(&spec, "idgen serve --redis").await {
        // Another node of the cluster was faster.
        Err(StoreError::Refused(error)) if error.code == ErrorCode::AlreadyExists => Ok(()),
        result => result.map(|_| ()).map_err(|e| failure(e.into())),
    }
}

/// The lines of the banner for where a part listens: at `first`, without TLS where there
/// is such an address, and at `tls`.
fn listed([plain, secure, after]: [&str; 3], first: SocketAddr, tls: Option<SocketAddr>) -> String {
    let first = (tls != Some(first)).then(|| format!("  {plain}{first}\n"));
    let tls = tls.map(|addr| format!("  {secure}{addr}{after}\n"));
    first.into_iter().chain(tls).collect()
}

fn banner(
    settings: &Settings,
    addresses: &str,
    (http_addr, https): (SocketAddr, Option<SocketAddr>),
    access: &AdminAccess,
    setup: Option<&str>,
) -> String {
    let base = match https {
        Some(addr) => format!("https://{}", reachable(addr)),
        None => format!("http://{}", reachable(http_addr)),
    };
    let program = std::env::args().next().unwrap_or_else(|| "idgen".to_owned());
    let store = match &settings.store.mysql {
        Some(url) => crate::domain::instance::redact_url(url),
        None => format!("embedded, in {}", settings.data.display()),
    };
    // A command on this machine is spared the certificates, where that can be.
    let mut url = match https == Some(http_addr) {
        true => format!("IDGEN_URL={base}"),
        false => format!("IDGEN_URL=http://{http_addr}"),
    };
    if https == Some(http_addr) {
        url += " IDGEN_CA_FILE=...";
    }
    let (admin, hint) = match access {
        AdminAccess::Token { file: Some(file), .. } => {
            let data = format!("IDGEN_DATA={}", settings.data.display());
            (format!("token in {}", file.display()), format!("{url} {data}"))
        }
        AdminAccess::Token { file: None, .. } => {
            ("token as configured".to_owned(), format!("{url} IDGEN_ADMIN_TOKEN=..."))
        }
        AdminAccess::Closed(_) => {
            ("no token: set IDGEN_ADMIN_TOKEN".to_owned(), format!("{url} IDGEN_ADMIN_TOKEN=..."))
        }
    };
    // The first account is made through this link.
    let setup = setup.map_or(String::new(), |secret| format!("  set-up  {base}/setup#{secret}\n"));
    format!(
        "idgen {} is ready\n{addresses}  store   {store}\n  admin   {admin}\n{setup}The first id, \
         from another terminal:\n  export {hint}\n  {program} type add order\n  {program} get \
         order\n",
        crate::VERSION
    )
}

/// What listens everywhere is reached on this machine in any case.
fn reachable(addr: SocketAddr) -> SocketAddr {
    match addr.ip().is_unspecified() {
        true => SocketAddr::from(([127, 0, 0, 1], addr.port())),
        false => addr,
    }
}

fn mysql_options(store: &StoreSettings) -> Result<MysqlOptions, Failure> {
    let url = store.mysql.clone().ok_or_else(|| {
        Failure::usage("no MySQL is given: set --mysql, IDGEN_MYSQL or store.mysql")
    })?;
    Ok(MysqlOptions {
        url,
        ca_file: store.mysql_ca_file.clone(),
        pool_max: store.pool_max,
        timeout: store.timeout,
    })
}

/// Runs `work` on a runtime of its own, for commands that are no service.
fn once<T>(
    store: &StoreSettings,
    work: impl AsyncFnOnce(&MysqlOptions) -> Result<T, StoreError>,
) -> Result<T, Failure> {
    let options = mysql_options(store)?;
    let runtime = runtime(1)?;
    let result = runtime.block_on(work(&options));
    runtime.shutdown_background();
    result.map_err(|e| {
        let refused =
            matches!(&e, StoreError::Refused(error) if error.code == ErrorCode::PermissionDenied);
        let mut failure = failure(e.into());
        if refused {
            failure.message += "; `idgen schema` needs an administrator's account, not the \
                                service's (docs/dba-guide.md)";
        }
        failure
    })
}

fn schema_apply(store: &StoreSettings) -> Result<SchemaReport, Failure> {
    let report = once(store, async |options| mysql::schema::apply(options).await)?;
    let mut lines: Vec<String> =
        report.migrations.iter().map(|name| format!("ran migration {name}")).collect();
    lines.extend(report.created.iter().map(|name| format!("created {name}")));
    lines.extend(report.replaced.iter().map(|name| format!("replaced {name}")));
    Ok(SchemaReport {
        version: Some(report.to),
        wanted: mysql::schema::current_version(),
        lines,
        clean: report.to == mysql::schema::current_version(),
    })
}

fn schema_check(store: &StoreSettings) -> Result<SchemaReport, Failure> {
    let report = once(store, async |options| mysql::schema::check(options).await)?;
    let describe = |finding: &mysql::schema::Finding| {
        let fault = match finding.fault {
            mysql::schema::Fault::Missing => "is missing",
            mysql::schema::Fault::Differs => "differs from that of this version",
        };
        format!("{} {} {fault}", finding.kind, finding.name)
    };
    Ok(SchemaReport {
        version: report.version,
        wanted: report.current,
        clean: report.is_clean(),
        lines: report.findings.iter().map(describe).collect(),
    })
}

fn mysql_facts(store: &StoreSettings) -> Result<MysqlFacts, Failure> {
    once(store, async |options| mysql::doctor(options).await)
}

fn redis_urls(store: &StoreSettings) -> Result<Vec<String>, Failure> {
    let records =
        once(store, async |options| MysqlStore::connect(options.clone()).await?.instances().await)?;
    Ok(records.into_iter().map(|record| record.url).collect())
}

/// The exit code and the text of an error that ends a command.
fn failure(error: Error) -> Failure {
    let code = match error.code {
        ErrorCode::Unavailable | ErrorCode::Deadline => exit::UNAVAILABLE,
        ErrorCode::InvalidArgument => exit::USAGE,
        ErrorCode::PermissionDenied => exit::REFUSED,
        _ => exit::FAILED,
    };
    Failure::new(code, error.message)
}
