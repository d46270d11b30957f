//! One simulated client: one connection at a time, through the blocking
//! client that the Thrift compiler generated.
//!
//! A broken connection is dropped and made anew at the next call; how soon
//! that may be is [`Client::pace`].

use std::io;
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::calls::{Calls, TlsWire, Wire, generated_client};
use super::errors::{CallError, ErrorClass};
use super::request::{Answer, Request};
use crate::cli::exit;
use crate::cli::tls::TlsArgs;
use crate::front::thrift::generated::TypeInfo;

/// How messages are delimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// A length before each message.
    #[default]
    Framed,
    /// Messages one after another.
    Unframed,
}

/// How values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocol {
    /// The strict binary protocol.
    #[default]
    Binary,
    /// The compact protocol.
    Compact,
}

/// How to talk to a node; options that all load commands share.
#[derive(Clone, Debug, clap::Args)]
pub struct WireArgs {
    /// Transport: `framed` or `unframed`.
    #[arg(long, value_enum, default_value_t)]
    pub transport: Transport,
    /// Protocol: `binary` or `compact`.
    #[arg(long, value_enum, default_value_t)]
    pub protocol: Protocol,
    /// How long to wait for a connection or for the bytes of an answer, in
    /// milliseconds. The default is that of the original client.
    #[arg(long, value_name = "MS", default_value_t = 2_000,
          value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub timeout_ms: u64,
    /// Speak TLS with the nodes.
    #[arg(long)]
    pub tls: bool,
    /// Whom to trust, and who asks, with TLS.
    #[command(flatten)]
    pub files: TlsArgs,
}

impl Default for WireArgs {
    fn default() -> Self {
        WireArgs {
            transport: Transport::default(),
            protocol: Protocol::default(),
            timeout_ms: 2_000,
            tls: false,
            files: TlsArgs::default(),
        }
    }
}

/// Why no load could be put on the nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// Options that contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A node answered that it will not serve this request.
    #[error("node {node} refuses: {error}")]
    Refused {
        /// Its address, as it was given.
        node: String,
        /// Its answer.
        error: CallError,
    },
    /// A node is out of reach.
    #[error("node {node} is out of reach: {error}")]
    Unreachable {
        /// Its address, as it was given.
        node: String,
        /// What happened.
        error: CallError,
    },
    /// Not one call brought an id.
    #[error("not one call brought an id; errors: {0}")]
    NoCalls(String),
}

impl LoadError {
    /// A call of `node` that failed.
    pub fn of(node: &Node, error: CallError) -> Self {
        let node = node.name.clone();
        match error.class {
            ErrorClass::Refused => LoadError::Refused { node, error },
            ErrorClass::Passing | ErrorClass::Lost => LoadError::Unreachable { node, error },
        }
    }

    /// The exit code that tells a script what happened.
    pub fn exit_code(&self) -> u8 {
        match self {
            LoadError::Usage(_) => exit::USAGE,
            LoadError::Refused { .. } => exit::REFUSED,
            LoadError::Unreachable { .. } | LoadError::NoCalls(_) => exit::UNAVAILABLE,
        }
    }
}

/// A node, with its address resolved once: name servers have no time limit.
#[derive(Clone, Debug)]
pub struct Node {
    name: String,
    addresses: Vec<SocketAddr>,
    tls: Option<NodeTls>,
}

/// How to speak TLS with a node.
#[derive(Clone, Debug)]
struct NodeTls {
    config: Arc<ClientConfig>,
    /// What its certificate must be for.
    host: ServerName<'static>,
}

impl Node {
    /// Resolves `HOST:PORT`.
    pub fn resolve(name: &str) -> Result<Node, LoadError> {
        let unreachable = |message: &str| LoadError::Unreachable {
            node: name.to_owned(),
            error: CallError::new(ErrorClass::Lost, "address", message),
        };
        let port = name.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        if !matches!(port, Some(Ok(_))) {
            let message = format!("--node {name:?} must be HOST:PORT");
            return Err(LoadError::Usage(message));
        }
        let addresses: Vec<SocketAddr> =
            name.to_socket_addrs().map_err(|e| unreachable(&e.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(unreachable("the name has no address"));
        }
        let name = name.to_owned();
        Ok(Node { name, addresses, tls: None })
    }

    /// Resolves `HOST:PORT`; with TLS, where `wire` says so.
    pub fn with(name: &str, wire: &WireArgs) -> Result<Node, LoadError> {
        let node = Node::resolve(name)?;
        if !wire.tls {
            return Ok(node);
        }
        let host = name.rsplit_once(':').map_or(name, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let host = ServerName::try_from(host)
            .map_err(|_| LoadError::Usage(format!("--node {name:?} has no name for TLS")))?;
        let config = wire.files.rustls().map_err(|failure| LoadError::Usage(failure.message))?;
        Ok(Node { tls: Some(NodeTls { config, host }), ..node })
    }

    /// The address as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its name stands for; at least one.
    pub(super) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// A socket that its client uses and a supervisor may cut.
type SharedSocket = Arc<Mutex<Option<Arc<TcpStream>>>>;

/// Cuts the connection of a client from another thread, so that a call that
/// waits for an answer ends at once.
#[derive(Clone, Debug)]
pub struct Cutter(SharedSocket);

impl Cutter {
    /// Cuts the connection that is there now, if any.
    pub fn cut(&self) {
        if let Some(socket) = self.0.lock().expect("no holder panics").take() {
            // An error here means that it is closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

const NOT_CONNECTED: &str = "there is no connection";

/// One simulated client.
pub struct Client {
    node: Arc<Node>,
    node_index: u16,
    wire: WireArgs,
    request: Request,
    /// Counts the calls, so that the gate passes take turns.
    turn: usize,
    calls: Option<Box<dyn Calls>>,
    socket: SharedSocket,
    /// Failed calls since the last good one.
    failures: u32,
    last_class: ErrorClass,
}

impl Client {
    /// A client of `node`, which has the number `node_index` in this run. Does
    /// not connect yet.
    pub fn new(node: Arc<Node>, node_index: u16, wire: WireArgs, request: Request) -> Self {
        Client {
            node,
            node_index,
            wire,
            request,
            turn: 0,
            calls: None,
            socket: SharedSocket::default(),
            failures: 0,
            last_class: ErrorClass::Passing,
        }
    }

    /// Begins with gate pass number `turn`, so that clients are at different ones.
    pub fn at_turn(self, turn: usize) -> Self {
        Client { turn, ..self }
    }

    /// The gate pass of the last call.
    pub fn gate_pass(&self) -> Option<&str> {
        let passes = &self.request.gate_passes;
        passes.get(self.turn.checked_rem(passes.len())?).map(String::as_str)
    }

    /// The number of its node in this run.
    pub fn node_index(&self) -> u16 {
        self.node_index
    }

    /// What cuts its connection.
    pub fn cutter(&self) -> Cutter {
        Cutter(Arc::clone(&self.socket))
    }

    /// Makes the connection if there is none, within `limit` and the time-out
    /// per address of the node.
    pub fn connect(&mut self, limit: Duration) -> Result<(), CallError> {
        if self.calls.is_some() {
            return Ok(());
        }
        let opened = self.open(limit).and_then(|socket| {
            let socket = Arc::new(socket);
            *self.socket.lock().expect("no holder panics") = Some(Arc::clone(&socket));
            let wire = Wire(socket);
            Ok(match &self.node.tls {
                None => generated_client(wire.clone(), wire, &self.wire),
                Some(tls) => {
                    let wire = TlsWire::agree(wire, tls.config.clone(), tls.host.clone())?;
                    generated_client(wire.clone(), wire, &self.wire)
                }
            })
        });
        match opened {
            Ok(calls) => {
                self.calls = Some(calls);
                Ok(())
            }
            Err(error) => {
                let error = CallError::new(ErrorClass::Lost, "connect", &error.to_string());
                Err(self.failed(error))
            }
        }
    }

    fn open(&self, limit: Duration) -> io::Result<TcpStream> {
        let timeout = Duration::from_millis(self.wire.timeout_ms);
        let limit = limit.min(timeout).max(Duration::from_millis(1));
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in &self.node.addresses {
            match TcpStream::connect_timeout(address, limit) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    socket.set_read_timeout(Some(timeout))?;
                    socket.set_write_timeout(Some(timeout))?;
                    return Ok(socket);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// One call on the connection that [`connect`](Self::connect) made. After
    /// an error of class [`ErrorClass::Lost`] the connection is gone.
    pub fn call(&mut self) -> Result<Answer, CallError> {
        self.turn = self.turn.wrapping_add(1);
        let passes = &self.request.gate_passes;
        let turn = self.turn.checked_rem(passes.len());
        let pass = turn.map(|turn| passes[turn].as_str());
        let request = &self.request;
        let result = match self.calls.as_mut() {
            Some(calls) => calls.call(request, pass),
            None => Err(CallError::new(ErrorClass::Lost, "disconnected", NOT_CONNECTED)),
        };
        match result {
            Ok(answer) => {
                self.failures = 0;
                Ok(answer)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Connects, and asks for the settings of the type.
    pub fn describe(&mut self) -> Result<TypeInfo, CallError> {
        self.connect(Duration::from_millis(self.wire.timeout_ms))?;
        let result = match self.calls.as_mut() {
            Some(calls) => calls.describe(&self.request.id_type),
            None => Err(CallError::new(ErrorClass::Lost, "disconnected", NOT_CONNECTED)),
        };
        result.map_err(|error| self.failed(error))
    }

    fn failed(&mut self, error: CallError) -> CallError {
        self.failures = self.failures.saturating_add(1);
        self.last_class = error.class;
        if error.class == ErrorClass::Lost {
            self.calls = None;
            *self.socket.lock().expect("no holder panics") = None;
        }
        error
    }

    /// How long to wait before the next call: nothing after a good one; after
    /// failures in a row twice as long each time, from 10 ms to 320 ms for a
    /// lost connection (a dead node costs a client three tries a second) and
    /// from 1 ms to 32 ms for an answer without ids.
    pub fn pace(&self) -> Duration {
        if self.failures == 0 {
            return Duration::ZERO;
        }
        let first = match self.last_class {
            ErrorClass::Lost => Duration::from_millis(10),
            ErrorClass::Passing | ErrorClass::Refused => Duration::from_millis(1),
        };
        first * (1 << (self.failures - 1).min(5))
    }

    /// Connects and makes one call, to find out before a run whether the node
    /// is there and serves the request. An answer such as `UNAVAILABLE` may
    /// pass, and is no reason not to begin.
    pub fn probe(&mut self) -> Result<(), LoadError> {
        let timeout = Duration::from_millis(self.wire.timeout_ms);
        let result = self.connect(timeout).and_then(|()| self.call());
        match result {
            Err(error) if error.class != ErrorClass::Passing => {
                Err(LoadError::of(&self.node, error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
