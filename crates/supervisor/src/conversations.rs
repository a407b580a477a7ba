//! What happens in conversations, for whoever listens on `/ws`.
//!
//! They are the host's. While there is a client, one request to it is open and tells what happened, by
//! number and kind; who wants to know more asks for it at `/conductor`.

use std::time::Duration;

use nacre_wire::client::{self, Client};
use nacre_wire::conductor::Notice;
use nacre_wire::events::Event;
use nacre_wire::{ApiError, ErrorKind};

use crate::events::Events;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A host that is too old to know is asked again in case it was replaced.
const OLD_HOST: Duration = Duration::from_secs(60);

/// For as long as the supervisor runs.
pub(crate) async fn follow(host: Client, events: Events) {
    let mut clients = events.clients();
    let mut pause = FIRST_PAUSE;
    while clients.wait_for(|count| *count > 0).await.is_ok() {
        let mut told = false;
        let ended = tokio::select! {
            ended = tell(&host, &events, &mut told) => ended,
            _ = clients.wait_for(|count| *count == 0) => continue,
        };
        pause = match ended {
            _ if told => FIRST_PAUSE,
            Err(client::Error::Api(ApiError { kind: ErrorKind::NotFound, .. })) => OLD_HOST,
            Ok(()) | Err(_) => (pause * 2).min(LONGEST_PAUSE),
        };
        tokio::time::sleep(pause).await;
    }
}

async fn tell(host: &Client, events: &Events, told: &mut bool) -> client::Result<()> {
    let mut notices = host.conversation_notices().await?;
    while let Some(Notice { id, seq, kind }) = notices.next().await? {
        *told = true;
        events.publish(Event::Conversation { id, number: seq, kind });
    }
    Ok(())
}
