//! A TCP proxy whose link a test can cut, hold up and slow down.
//!
//! What a network holds up is not lost: TCP sends it again. So the proxy keeps
//! the bytes of a direction that is held, and delivers them when it is let go,
//! after the close of a connection too; the server then carries out requests
//! that nobody waits for any more, which is the worst that a network can do.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::sleep;

/// What happens to the bytes of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// They are kept until this is false again.
    pub held: bool,
    /// They arrive so much later.
    pub delay: Duration,
    /// They arrive at most so fast, in bytes per second.
    pub rate: Option<u32>,
    /// The connection breaks after so many bytes of it.
    pub cut_after: Option<usize>,
}

#[derive(Clone, Debug)]
struct Rules {
    to_server: Flow,
    to_client: Flow,
    server: SocketAddr,
    refuse: bool,
    /// Connections of an older epoch are cut.
    epoch: u64,
}

/// A proxy on a loopback address; ends with its connections on drop.
pub struct Proxy {
    address: SocketAddr,
    rules: watch::Sender<Rules>,
    listener: tokio::task::JoinHandle<()>,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().expect("a runtime")
    })
}

impl Proxy {
    /// A proxy to a server on 127.0.0.1, on a free port.
    pub fn to(server_port: u16) -> Proxy {
        Self::at(SocketAddr::from(([127, 0, 0, 1], super::free_port())), server_port)
    }

    /// The same on a given port of a loopback address.
    pub fn at(address: SocketAddr, server_port: u16) -> Proxy {
        assert!(address.ip().is_loopback());
        let (rules, _) = watch::channel(Rules {
            to_server: Flow::default(),
            to_client: Flow::default(),
            server: SocketAddr::from(([127, 0, 0, 1], server_port)),
            refuse: false,
            epoch: 0,
        });
        let listener = runtime().block_on(TcpListener::bind(address)).expect("a free port");
        let listener = runtime().spawn(listen(address, listener, rules.subscribe()));
        Proxy { address, rules, listener }
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// Nothing is held, slowed down or refused any more.
    pub fn pass(&self) {
        self.flows(Flow::default(), Flow::default());
        self.rules.send_modify(|rules| rules.refuse = false);
    }

    /// Sets both directions.
    pub fn flows(&self, to_server: Flow, to_client: Flow) {
        self.rules.send_modify(|rules| {
            rules.to_server = to_server;
            rules.to_client = to_client;
        });
    }

    /// Holds up what goes to the server, to the client, or both.
    pub fn hold(&self, to_server: bool, to_client: bool) {
        let flow = |held| Flow { held, ..Flow::default() };
        self.flows(flow(to_server), flow(to_client));
    }

    /// Breaks all connections, and refuses new ones until it passes again.
    pub fn refuse(&self) {
        self.rules.send_modify(|rules| {
            rules.refuse = true;
            rules.epoch += 1;
        });
    }

    /// Breaks all connections and sends new ones to another server.
    pub fn redirect(&self, server_port: u16) {
        self.rules.send_modify(|rules| {
            rules.server.set_port(server_port);
            rules.epoch += 1;
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn listen(address: SocketAddr, first: TcpListener, mut rules: watch::Receiver<Rules>) {
    let mut listener = Some(first);
    loop {
        let refuse = rules.borrow_and_update().refuse;
        match (&listener, refuse) {
            (Some(_), true) => listener = None,
            (None, false) => listener = TcpListener::bind(address).await.ok(),
            (Some(open), false) => {
                tokio::select! {
                    accepted = open.accept() => if let Ok((client, _)) = accepted {
                        tokio::spawn(connection(client, rules.clone()));
                    },
                    changed = rules.changed() => if changed.is_err() { return },
                }
                continue;
            }
            (None, true) => {
                if rules.changed().await.is_err() {
                    return;
                }
                continue;
            }
        }
        if listener.is_none() && !refuse {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn connection(client: TcpStream, mut rules: watch::Receiver<Rules>) {
    let (server, epoch) = {
        let rules = rules.borrow_and_update();
        (rules.server, rules.epoch)
    };
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let requests = pump(from_client, to_server, rules.clone(), |rules| rules.to_server);
    let answers = pump(from_server, to_client, rules.clone(), |rules| rules.to_client);
    // One that breaks takes the other along; one that ends does not.
    let both = async { tokio::try_join!(requests, answers) };
    tokio::select! {
        _ = both => {}
        // A proxy that is gone takes its connections along.
        _ = rules.wait_for(|rules| rules.epoch != epoch) => {}
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut rules: watch::Receiver<Rules>,
    flow: impl Fn(&Rules) -> Flow,
) -> io::Result<()> {
    let gone = |_| io::Error::from(io::ErrorKind::ConnectionAborted);
    let mut buffer = vec![0; 16 * 1024];
    let mut passed = 0;
    loop {
        let read = from.read(&mut buffer).await?;
        let flow = flow(&*rules.wait_for(|rules| !flow(rules).held).await.map_err(gone)?);
        sleep_if(flow.delay).await;
        if read == 0 {
            return to.shutdown().await;
        }
        let mut bytes = &buffer[..read];
        if let Some(limit) = flow.cut_after
            && passed + read > limit
        {
            bytes = &bytes[..limit.saturating_sub(passed)];
            to.write_all(bytes).await?;
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        passed += read;
        if let Some(rate) = flow.rate {
            sleep_if(Duration::from_secs_f64(read as f64 / f64::from(rate))).await;
        }
        to.write_all(bytes).await?;
    }
}

async fn sleep_if(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}
