//! A small pool of connections whose every call ends in time.
//!
//! A call takes a permit (so there are never more than `max` calls), an idle
//! connection that still answers or a new one, and gives the connection back
//! only after a clean answer. A call that ends in any other way (time-out,
//! broken connection, a caller that went away) closes its connection hard and
//! frees its place at once: a server that hangs cannot eat up the pool. That is
//! why this is not the driver's own pool, which waits for the server's answer
//! before it lets go of a connection.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Waker};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Params, Row};
use tokio::sync::Semaphore;

use super::errors::{Failure, is_harmless};
use crate::ports::StoreError;

/// Connections to one server.
pub struct Pool {
    opts: Opts,
    /// `user@host:port/database`, for messages.
    target: String,
    timeout: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<Conn>>,
}

impl Pool {
    /// No connection yet. At most `max` calls run at a time, each ends within
    /// `timeout`.
    pub fn new(opts: Opts, target: String, max: usize, timeout: Duration) -> Self {
        Pool {
            opts,
            target,
            timeout,
            permits: Semaphore::new(max.max(1)),
            idle: Mutex::default(),
        }
    }

    /// Where it connects to, without secrets.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Sends one statement and answers with the rows of its first result.
    ///
    /// Never sends it twice. `Unavailable` after the statement was sent means
    /// that it may have happened.
    pub async fn rows(
        &self,
        sql: &str,
        params: impl Into<Params> + Send,
    ) -> Result<Vec<Row>, Failure> {
        match tokio::time::timeout(self.timeout, self.send(sql, params.into())).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure {
                error: StoreError::Unavailable(format!(
                    "{}: no answer within {} ms",
                    self.target,
                    self.timeout.as_millis()
                )),
                errno: None,
            }),
        }
    }

    async fn send(&self, sql: &str, params: Params) -> Result<Vec<Row>, Failure> {
        let _permit = self
            .permits
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let mut lease = self.lease().await?;
        let answer = lease.conn().exec(sql, params).await;
        match &answer {
            Ok(_) => lease.give_back(),
            Err(error) if is_harmless(error) => lease.give_back(),
            Err(_) => {}
        }
        answer.map_err(|error| Failure::new(&self.target, &error))
    }

    /// An idle connection that answers, or a new one.
    async fn lease(&self) -> Result<Lease<'_>, Failure> {
        let found = self.idle().pop();
        if let Some(conn) = found {
            let mut lease = Lease {
                pool: self,
                conn: Some(conn),
            };
            // Asked every time: a server that was restarted must not cost a
            // call, because a call that was sent cannot be sent again.
            if lease.conn().ping().await.is_ok() {
                return Ok(lease);
            }
            // The others were opened to the same server.
            let stale = std::mem::take(&mut *self.idle());
            stale.into_iter().for_each(close);
        }
        let conn = Conn::new(self.opts.clone())
            .await
            .map_err(|error| Failure::new(&self.target, &error))?;
        Ok(Lease {
            pool: self,
            conn: Some(conn),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Conn>> {
        self.idle.lock().expect("no one panics while holding it")
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        std::mem::take(&mut *self.idle())
            .into_iter()
            .for_each(close);
    }
}

/// A connection in use; closed hard unless it is given back.
struct Lease<'p> {
    pool: &'p Pool,
    conn: Option<Conn>,
}

impl Lease<'_> {
    fn conn(&mut self) -> &mut Conn {
        self.conn.as_mut().expect("there until it is given back")
    }

    fn give_back(mut self) {
        if let Some(conn) = self.conn.take() {
            self.pool.idle().push(conn);
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            close(conn);
        }
    }
}

/// Closes the socket now, without waiting for the server.
///
/// The driver's own drop starts a task that first reads what the server still
/// owes. Its `disconnect` marks the connection as closed when it is polled
/// first, and from then on a drop just closes the socket.
fn close(conn: Conn) {
    let mut farewell = pin!(conn.disconnect());
    let _ = farewell
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
}
