//! Changed files are taken into use without a restart.
//!
//! The content decides, not the time of a change: renames, swapped links (Kubernetes
//! swaps one above the files) and copies that keep times are all seen. What cannot be used
//! is told once, and left until it changes again; what is in use stays in use.

use std::sync::{Arc, PoisonError};

use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Tls;
use super::files::{Contents, Material};

/// Looks at the files at every interval and at every `hangup`, until `stop` turns true or
/// its sender is gone. Without TLS, signals are only answered: they must not end the node.
pub async fn keep_current(
    tls: Option<Arc<Tls>>,
    mut hangup: Signal,
    mut stop: watch::Receiver<bool>,
) {
    // What was told of the files last, while they cannot be used.
    let mut told: Option<String> = None;
    loop {
        let pause = async {
            match &tls {
                Some(tls) => sleep(tls.config.reload_interval).await,
                None => std::future::pending().await,
            }
        };
        let asked = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            _ = hangup.recv() => true,
            () = pause => false,
        };
        let Some(tls) = &tls else { continue };
        let looked = tls.look().await;
        match looked {
            Ok(changed) => {
                if changed {
                    tls.metrics.reloaded(true);
                } else if told.is_some() {
                    // The old files are back.
                    tls.metrics.reload_failed.set(0);
                    tracing::info!("TLS: the files are those in use again");
                } else if asked {
                    tracing::info!("SIGHUP: the certificate files have not changed");
                }
                told = None;
            }
            Err(why) => {
                if asked || told.as_ref() != Some(&why) {
                    tls.metrics.reloaded(false);
                    tracing::warn!(%why, "TLS: the new files cannot be used; the old stay in use");
                }
                told = Some(why);
            }
        }
    }
}

impl Tls {
    /// Takes the files into use if they have changed; tells whether they had.
    async fn look(&self) -> Result<bool, String> {
        let files = self.config.files.clone();
        // A network file system may stand still; only this task waits for it.
        let contents = tokio::task::spawn_blocking(move || Contents::read(&files)).await;
        let contents = contents.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
        let hash = contents.hash();
        if *self.in_use.lock().unwrap_or_else(PoisonError::into_inner) == hash {
            return Ok(false);
        }
        let now = self.clock.now_ms() / 1_000;
        let material =
            Material::of(&contents, &self.config.files, now).map_err(|error| error.to_string())?;
        self.take(&material)?;
        *self.in_use.lock().unwrap_or_else(PoisonError::into_inner) = hash;
        Ok(true)
    }
}
