//! From a signal to the end of the process, in two steps.
//!
//! The first SIGTERM or SIGINT asks for an orderly stop: the caller drains and
//! joins every task. A second one ends the process at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a second signal: 128 + SIGINT, as shells have it.
const IMMEDIATE: i32 = 130;

/// Listens for signals from the moment it is made.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

/// Listens for SIGHUP, which asks to read files again; from now on it ends the process no
/// more. Needs a tokio runtime.
pub fn hangup() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}

impl StopSignals {
    /// Starts to listen. Needs a tokio runtime.
    pub fn listen() -> io::Result<Self> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Returns at the next signal, with its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Runs `orderly` to its end; a signal meanwhile ends the process at once.
    pub async fn or_at_once<T>(&mut self, orderly: impl Future<Output = T>) -> T {
        tokio::select! {
            done = orderly => done,
            name = self.next() => {
                tracing::warn!(signal = name, "second signal: stopping at once");
                std::process::exit(IMMEDIATE)
            }
        }
    }
}
