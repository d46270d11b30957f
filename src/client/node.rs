//! One node: its connections, and whether it is worth asking.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::connection::{Broken, Connection};
use super::error::printable;
use super::wire::{Call, Said};
use super::{Config, Error, Refusal};
use crate::thrift_api::IdGenServiceAuthenticateArgs;

/// How long a node is passed over after its first failure; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest that a node is passed over.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long a node is passed over after `failures` in a row.
fn pause(failures: u32) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST_PAUSE)
}

/// What is known of the health of a node.
#[derive(Debug, Default)]
struct Health {
    /// Failures since it last answered.
    failures: u32,
    /// Until when it is asked last. `None`: it answered.
    until: Option<Instant>,
}

/// A node and the connections to it.
#[derive(Debug)]
pub(super) struct Node {
    /// As the configuration calls it.
    pub name: String,
    /// One permit per connection that may be in use.
    permits: Semaphore,
    /// Connections without a call; the one that was used last at the end.
    idle: Mutex<Vec<Connection>>,
    health: Mutex<Health>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is inside is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Node {
    pub fn new(name: &str, max_connections: usize) -> Node {
        Node {
            name: name.to_owned(),
            permits: Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)),
            idle: Mutex::default(),
            health: Mutex::default(),
        }
    }

    /// Until when it is passed over, if it is.
    pub fn passed_over(&self) -> Option<Instant> {
        lock(&self.health).until
    }

    /// Whether it may be asked first. A node whose pause has ended may: by one call, and
    /// if that does not tell, by one more after each pause.
    pub fn may_lead(&self, now: Instant) -> bool {
        let mut health = lock(&self.health);
        match health.until {
            None => true,
            Some(until) if until <= now => {
                health.until = Some(now + pause(health.failures));
                true
            }
            Some(_) => false,
        }
    }

    fn answered(&self) {
        *lock(&self.health) = Health::default();
    }

    /// It does not answer; nor do its other connections, as far as anybody knows.
    fn failed(&self) {
        let mut health = lock(&self.health);
        health.failures = health.failures.saturating_add(1);
        health.until = Some(Instant::now() + pause(health.failures));
        drop(health);
        lock(&self.idle).clear();
    }

    /// One call, until `end` at the latest.
    pub async fn call<C: Call>(
        &self,
        config: &Config,
        call: &C,
        end: Instant,
    ) -> Result<C::Answer, Error> {
        let unreachable = |message: &str| {
            let (node, message) = (self.name.clone(), printable(message));
            Err(Error::Unreachable { node, message })
        };
        let Ok(permit) = timeout_at(end, self.permits.acquire()).await else {
            return unreachable("all connections were in use");
        };
        let _permit = permit.expect("never closed");
        let said = match timeout_at(end, self.say(config, call)).await {
            Ok(Ok(said)) => said,
            Ok(Err(Broken::Early(message) | Broken::Late(message))) => {
                self.failed();
                return unreachable(&message);
            }
            Ok(Err(Broken::Nonsense(message))) => {
                self.failed();
                return Err(Error::bad_answer(&self.name, message));
            }
            Err(_) => {
                self.failed();
                return unreachable("no answer in its share of the time");
            }
        };
        self.answered();
        match said {
            Said::Answer(answer) => Ok(answer),
            Said::Raised(raised) => Err(Error::Refused(Box::new(Refusal::new(&self.name, raised)))),
            Said::Application { kind, message } => {
                let (node, message) = (self.name.clone(), printable(&message));
                Err(Error::Application { node, kind, message })
            }
        }
    }

    /// The call on a connection that is there, else on a new one.
    async fn say<C: Call>(&self, config: &Config, call: &C) -> Result<Said<C::Answer>, Broken> {
        if let Some(mut connection) = self.take_idle(config.idle_timeout) {
            match connection.call(call, config.protocol, config.max_reply_bytes).await {
                Ok(said) => return Ok(self.keep(connection, said)),
                // The node closed it while it was not in use, and the others too then.
                Err(Broken::Early(_)) => lock(&self.idle).clear(),
                Err(broken) => return Err(broken),
            }
        }
        let opened = timeout(config.connect_timeout, Connection::open(&self.name)).await;
        let mut connection = match opened {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(Broken::Early(error.to_string())),
            Err(_) => return Err(Broken::Early("no connection in time".to_owned())),
        };
        if let Some(token) = &config.token {
            let sign_in = IdGenServiceAuthenticateArgs { token: token.clone() };
            match connection.call(&sign_in, config.protocol, config.max_reply_bytes).await? {
                Said::Answer(()) => {}
                Said::Raised(raised) => return Ok(Said::Raised(raised)),
                Said::Application { kind, message } => {
                    return Ok(Said::Application { kind, message });
                }
            }
        }
        let said = connection.call(call, config.protocol, config.max_reply_bytes).await?;
        Ok(self.keep(connection, said))
    }

    /// The connection that was used last, if it still works. Older than `age` does not
    /// count: the node may be closing it just now.
    fn take_idle(&self, age: Duration) -> Option<Connection> {
        let mut idle = lock(&self.idle);
        let connection = idle.pop()?;
        if connection.used.elapsed() > age {
            // Those below it are older still.
            idle.clear();
            return None;
        }
        drop(idle);
        connection.is_quiet().then_some(connection)
    }

    /// Keeps a connection for the next call, unless the node is about to close it.
    fn keep<A>(&self, connection: Connection, said: Said<A>) -> Said<A> {
        if !matches!(said, Said::Application { .. }) {
            // Never more than there are permits: its user still has one.
            lock(&self.idle).push(connection);
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let millis = |failures| pause(failures).as_millis();
        let expected = [(1, 100), (2, 200), (3, 400), (6, 3_200), (7, 5_000), (u32::MAX, 5_000)];
        for (failures, pause) in expected {
            assert_eq!(millis(failures), pause, "{failures}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_failed_is_tried_by_one_call_after_its_pause() {
        let node = Node::new("a:1", 1);
        assert!(node.may_lead(Instant::now()));
        node.failed();
        assert!(!node.may_lead(Instant::now()));
        tokio::time::advance(FIRST_PAUSE).await;
        assert!(node.may_lead(Instant::now()), "the first to come");
        assert!(!node.may_lead(Instant::now()), "nobody else meanwhile");
        tokio::time::advance(FIRST_PAUSE).await;
        assert!(node.may_lead(Instant::now()), "the first did not tell");
        node.answered();
        assert!(node.may_lead(Instant::now()) && node.may_lead(Instant::now()));
    }
}
