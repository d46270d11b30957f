//! What a node changes without a restart: some settings, read again at SIGHUP.
//!
//! (Certificates are read again by `front::tls`, at the same signal.)

use tokio::signal::unix::Signal;
use tokio::sync::watch;

use std::sync::Arc;

use crate::config::{Layers, Settings};
use crate::front;
use crate::service::access::AccessControl;
use crate::telemetry::LogLevelControl;

/// What follows the settings.
pub struct Followers {
    /// `log.level`.
    pub log: LogLevelControl,
    /// `clients.tokens`.
    pub access: Arc<AccessControl>,
}

/// Reads `layers` again at every `hangup`, until `stop` turns true or its sender is gone.
/// `settings` are those in use. With a fault in the new ones, all of the old stay.
pub async fn keep_current(
    mut settings: Settings,
    layers: Layers,
    followers: Followers,
    mut hangup: Signal,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            _ = hangup.recv() => {}
        }
        match Settings::load(layers.clone()) {
            Ok(new) => follow(&mut settings, new, &followers),
            Err(errors) => {
                let problems = errors.to_string();
                tracing::error!(problems, "SIGHUP: the settings stay as they are");
            }
        }
    }
}

/// Takes into use what can be, and says what cannot.
fn follow(settings: &mut Settings, new: Settings, followers: &Followers) {
    let Settings { log, traces, clients, .. } = &new;
    if log.level != settings.log.level {
        followers.log.set(log.level);
        settings.log.level = log.level;
        tracing::info!(level = ?log.level, "SIGHUP: log.level changed");
    }
    if traces.one_in != settings.traces.one_in {
        settings.traces.one_in = traces.one_in;
        front::trace_one_in(settings.traces.rate());
        tracing::info!(one_in = traces.one_in, "SIGHUP: traces.one_in changed");
    }
    if clients.tokens_required != settings.clients.tokens_required {
        followers.access.set_tokens_required(clients.tokens_required);
        settings.clients.tokens_required = clients.tokens_required;
        tracing::info!(required = clients.tokens_required, "SIGHUP: clients.tokens changed");
    }
    let rest = settings.differs_from(&new).join(", ");
    if rest.is_empty() {
        tracing::info!("SIGHUP: the settings are those in use");
    } else {
        tracing::warn!(sections = rest, "SIGHUP: changes in these sections need a restart");
    }
}
