//! News from peers, over a connection of its own: to the server that the link is
//! connected to, or to any master of a cluster, where news goes to all servers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::broadcast;

use super::CHANNEL;
use super::link::Link;
use crate::domain::TypeName;
use crate::ports::Announcement;

/// Between two tries to subscribe; news is only a hint, so no hurry.
const PAUSE: Duration = Duration::from_millis(200);

/// The message for `announcement`; `None` where there is nothing to send.
pub(super) fn encode(announcement: &Announcement) -> Option<String> {
    match announcement {
        Announcement::Range(name) => Some(format!("range {name}")),
        Announcement::Type(name) => Some(format!("type {name}")),
        Announcement::Resumed => None,
    }
}

/// What `message` says; `None` for one that this version does not know. Words
/// after the name are for people and newer versions.
pub(super) fn decode(message: &str) -> Option<Announcement> {
    let mut words = message.split(' ');
    let kind = words.next()?;
    let name = TypeName::parse(words.next()?).ok()?;
    match kind {
        "range" => Some(Announcement::Range(name)),
        "type" => Some(Announcement::Type(name)),
        _ => None,
    }
}

/// Hands messages on until it is aborted.
pub(super) async fn listen(link: Arc<Link>, listeners: broadcast::Sender<Announcement>) {
    loop {
        if let Ok(mut subscription) = link.subscribe(CHANNEL).await {
            // No receiver is no error: then nobody waits for news.
            let _ = listeners.send(Announcement::Resumed);
            let mut messages = subscription.on_message();
            loop {
                let message = tokio::select! {
                    message = messages.next() => message,
                    () = link.broken() => None,
                };
                let Some(message) = message else { break };
                if let Ok(text) = message.get_payload::<String>()
                    && let Some(announcement) = decode(&text)
                {
                    let _ = listeners.send(announcement);
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_way() {
        let name = TypeName::parse("shop:order").unwrap();
        for announcement in [Announcement::Range(name.clone()), Announcement::Type(name.clone())] {
            let message = encode(&announcement).unwrap();
            assert_eq!(decode(&message), Some(announcement));
        }
        assert_eq!(decode("range shop:order 1 1001 101"), Some(Announcement::Range(name)));
        for odd in ["", "range", "range {", "color order", "range  order"] {
            assert_eq!(decode(odd), None, "{odd:?}");
        }
    }
}
