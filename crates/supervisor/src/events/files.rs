//! Changes of files as events, for as long as somebody listens.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::ApiError;
use nacre_wire::events::Event;
use tokio::sync::watch::Receiver;
use tokio::time::sleep;

use super::{Context, Events};
use crate::files::hop;
use crate::files::identity::act_as;
use crate::files::root::Root;
use crate::watch::{self, Subscription, Target};

/// Changes in one event, so that a long list does not make one huge message.
const MOST_CHANGES: usize = 500;
/// After a watch that failed, such as when the host's user has no more of them.
const PAUSE: Duration = Duration::from_secs(5);

pub(super) async fn feed(events: Events, context: Context) {
    let mut clients = events.inner.clients.subscribe();
    let mut first = true;
    // Ends with the hub, of which this holds one itself: with the supervisor.
    while clients.wait_for(|count| *count > 0).await.is_ok() {
        let started = subscribe(&context).await;
        let fed = match started {
            Ok(subscription) => relay(&events, subscription, &mut clients, first).await,
            Err(error) => Err(error),
        };
        first = false;
        events.inner.watching.send_replace(None);
        if let Err(error) = fed {
            tracing::warn!(%error, "changes of files are not told");
            sleep(PAUSE).await;
        }
    }
}

async fn subscribe(context: &Context) -> Result<Subscription, ApiError> {
    let Context { workspace, user, watchers } = context.clone();
    hop(move || {
        let root = Root::open(Path::new("/"), &workspace)?;
        let path = root.absolute(&workspace)?;
        let _acting = act_as(&user)?;
        let directory = root.directory(&path)?;
        watchers.subscribe(Target { directory, path, user: Arc::new(user) })
    })
    .await
}

/// Publishes until nobody listens.
async fn relay(
    events: &Events,
    mut subscription: Subscription,
    clients: &mut Receiver<usize>,
    first: bool,
) -> Result<(), ApiError> {
    let mut unwatched = !first;
    loop {
        let event = tokio::select! {
            event = subscription.next() => event,
            _ = clients.wait_for(|count| *count == 0) => return Ok(()),
        };
        match event {
            None => return Ok(()),
            Some(watch::Event::Ready { directories }) => {
                // A client that comes back cannot know what happened while nobody watched.
                if std::mem::take(&mut unwatched) {
                    events.publish(Event::FilesLost);
                }
                events.inner.watching.send_replace(Some(directories));
            }
            Some(watch::Event::Changes(changes)) => {
                for changes in changes.chunks(MOST_CHANGES) {
                    events.publish(Event::Files { changes: changes.to_vec() });
                }
            }
            // What was lost in the kernel is found by looking again and follows as changes.
            Some(watch::Event::Overflow { .. } | watch::Event::Flushed) => {}
            Some(watch::Event::Resync { .. }) => events.publish(Event::FilesLost),
            Some(watch::Event::Failed(error)) => return Err(error),
        }
    }
}
