//! The client for programs without a runtime.
//!
//! One thread of its own runs a small runtime, which watches the sockets and the time
//! and keeps leases filled. A call itself runs on the thread of its caller and is woken
//! when its answer is there. So both clients are one, with one set of rules about nodes,
//! deadlines and bounds; blocking sockets would need a second one, and a deadline over
//! several reads would cost them a system call for each.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use super::{Client, Config, Error, LeaseBatch, LeaseConfig, LocalLease, Order};
use crate::thrift_api::{DecodedId, IdRange, NodeInfo, RangeLease, TypeInfo};

/// A runtime on a thread of its own, which ends with the last user.
#[derive(Debug)]
struct Background {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    fn start() -> Result<Background, Error> {
        let failed = |e: std::io::Error| Error::Config(format!("no thread for the client: {e}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("idgen-client".to_owned());
        let run = move || {
            // An error says that the sender is gone: the same.
            let _ = runtime.block_on(stopped);
            // A name server that does not answer must not hold up the program.
            runtime.shutdown_background();
        };
        let thread = thread.spawn(run).map_err(failed)?;
        Ok(Background { handle, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It only fails if it panicked, which it said then.
            let _ = thread.join();
        }
    }
}

/// [`Client`] for programs without a runtime: the same calls, which block.
///
/// Clones share connections, and the one thread in the background.
///
/// # Panics
///
/// The calls panic inside a tokio runtime, where blocking would hold up other tasks: use
/// [`Client`] there.
#[derive(Clone, Debug)]
pub struct BlockingClient {
    client: Client,
    background: Arc<Background>,
}

impl BlockingClient {
    /// A client of these nodes. Connects with the first call.
    ///
    /// # Errors
    ///
    /// [`Error::Config`], also if there can be no thread.
    pub fn new(config: Config) -> Result<BlockingClient, Error> {
        let client = Client::new(config)?;
        Ok(BlockingClient { client, background: Arc::new(Background::start()?) })
    }

    /// The same client, on the same connections, with another time for each call.
    pub fn with_deadline(&self, deadline: Duration) -> BlockingClient {
        BlockingClient {
            client: self.client.with_deadline(deadline),
            background: Arc::clone(&self.background),
        }
    }

    fn wait<T>(&self, call: impl Future<Output = T>) -> T {
        self.background.handle.block_on(call)
    }

    /// See [`Client::next_id`].
    pub fn next_id(&self, id_type: &str) -> Result<i64, Error> {
        self.wait(self.client.next_id(id_type))
    }

    /// See [`Client::next_ids`].
    pub fn next_ids(&self, id_type: &str, count: u32) -> Result<Vec<IdRange>, Error> {
        self.wait(self.client.next_ids(id_type, count))
    }

    /// See [`Client::next_string_id`].
    pub fn next_string_id(&self, id_type: &str, with_prefix: bool) -> Result<String, Error> {
        self.wait(self.client.next_string_id(id_type, with_prefix))
    }

    /// See [`Client::next_string_ids`].
    pub fn next_string_ids(
        &self,
        id_type: &str,
        count: u32,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        self.wait(self.client.next_string_ids(id_type, count, with_prefix))
    }

    /// See [`Client::next_sharded_id`].
    pub fn next_sharded_id(&self, id_type: &str, gate_pass: &str) -> Result<i64, Error> {
        self.wait(self.client.next_sharded_id(id_type, gate_pass))
    }

    /// See [`Client::issue`].
    pub fn issue(&self, id_type: &str, order: &Order) -> Result<Vec<IdRange>, Error> {
        self.wait(self.client.issue(id_type, order))
    }

    /// See [`Client::issue_strings`].
    pub fn issue_strings(
        &self,
        id_type: &str,
        order: &Order,
        with_prefix: bool,
    ) -> Result<Vec<String>, Error> {
        self.wait(self.client.issue_strings(id_type, order, with_prefix))
    }

    /// See [`Client::lease_range`].
    pub fn lease_range(
        &self,
        id_type: &str,
        count: u32,
        ttl: Duration,
    ) -> Result<RangeLease, Error> {
        self.wait(self.client.lease_range(id_type, count, ttl))
    }

    /// See [`Client::local_lease`].
    pub fn local_lease(&self, id_type: &str, config: LeaseConfig) -> Result<BlockingLease, Error> {
        let lease = self.wait(self.client.local_lease(id_type, config))?;
        Ok(BlockingLease { lease, background: Arc::clone(&self.background) })
    }

    /// See [`Client::decode`].
    pub fn decode(&self, id_type: &str, id: &str) -> Result<DecodedId, Error> {
        self.wait(self.client.decode(id_type, id))
    }

    /// See [`Client::describe`].
    pub fn describe(&self, id_type: &str) -> Result<TypeInfo, Error> {
        self.wait(self.client.describe(id_type))
    }

    /// See [`Client::node_status`].
    pub fn node_status(&self) -> Result<NodeInfo, Error> {
        self.wait(self.client.node_status())
    }
}

/// [`LocalLease`] for programs without a runtime. It blocks only where no id is at hand.
#[derive(Debug)]
pub struct BlockingLease {
    lease: LocalLease,
    background: Arc<Background>,
}

impl BlockingLease {
    /// The next id; see [`LocalLease::next_id`].
    #[inline]
    pub fn next_id(&self) -> Result<i64, Error> {
        match self.lease.draw() {
            Ok(id) => Ok(id),
            Err(ticket) => self.background.handle.block_on(self.lease.wait(ticket)),
        }
    }

    /// The next id, if one is at hand; see [`LocalLease::try_next_id`].
    #[inline]
    pub fn try_next_id(&self) -> Option<i64> {
        self.lease.try_next_id()
    }

    /// A handle for one thread; see [`LocalLease::batch`].
    pub fn batch(&self, size: u32) -> BlockingBatch {
        BlockingBatch { batch: self.lease.batch(size), background: Arc::clone(&self.background) }
    }

    /// Ends it; see [`LocalLease::close`].
    pub fn close(&self) {
        self.lease.close();
    }
}

/// [`LeaseBatch`] for programs without a runtime.
#[derive(Debug)]
pub struct BlockingBatch {
    batch: LeaseBatch,
    background: Arc<Background>,
}

impl BlockingBatch {
    /// The next id; see [`LeaseBatch::next_id`].
    #[inline]
    pub fn next_id(&mut self) -> Result<i64, Error> {
        match self.batch.try_next_id() {
            Some(id) => Ok(id),
            None => self.background.handle.block_on(self.batch.next_id()),
        }
    }
}
