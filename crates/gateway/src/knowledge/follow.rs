//! Documents of live and dev, as they change.
//!
//! One task looks which sandboxes have a role and run, and keeps a follower for each. A follower
//! watches first and looks through everything then, so that nothing falls in between; what it knew
//! before a restart it recognises by signature and does not read again. A follower that fails begins
//! anew after a pause. A source whose sandbox is gone for good goes too.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nacre_wire::client::{Client, Result, WatchStream};
use nacre_wire::watch::{Change, WatchMessage};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::look::Look;
use super::{Knowledge, PUBLICATIONS, which};
use crate::routes::Role;
use crate::sandboxes::Sandboxes;

/// How often roles and states are compared with what is followed.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A change is looked at when nothing else has changed for so long, or after the second at the latest.
const QUIET: Duration = Duration::from_millis(200);
const LATEST: Duration = Duration::from_secs(2);
/// More changes than this at once are quicker found by looking at everything.
const MOST_CHANGES: usize = 2000;
const PAUSE: Duration = Duration::from_secs(5);

/// How far the follower of a sandbox is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Followed {
    /// Everything has been looked at.
    pub(super) current: bool,
    pub(super) problem: Option<String>,
}

/// Runs until it is dropped.
pub(super) async fn keep(knowledge: Arc<Knowledge>) {
    let Some(places) = knowledge.places.get().filter(|_| knowledge.config.index) else { return };
    let sandboxes = places.sandboxes.clone();
    let mut followers: HashMap<String, AbortOnDropHandle<()>> = HashMap::new();
    let mut tick = tokio::time::interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut known: Option<BTreeSet<String>> = None;
    loop {
        tick.tick().await;
        let running = running(&sandboxes);
        followers.retain(|id, _| running.contains_key(id));
        knowledge.followed().retain(|id, _| running.contains_key(id));
        for (id, client) in running {
            let follow = || {
                let follower = follow(knowledge.clone(), id.clone(), client);
                AbortOnDropHandle::new(tokio::spawn(follower))
            };
            followers.entry(id.clone()).or_insert_with(follow);
        }
        let all: BTreeSet<_> = sandboxes.list().into_iter().map(|info| info.id).collect();
        if known.as_ref() != Some(&all) && forget_others(&knowledge, &all).await {
            known = Some(all);
        }
    }
}

/// Those with a role that run, by id.
fn running(sandboxes: &Sandboxes) -> HashMap<String, Client> {
    let here = Role::ALL.into_iter().filter_map(|role| sandboxes.by_role(role));
    here.filter(|sandbox| sandbox.require_running().is_ok())
        .map(|sandbox| (sandbox.id.to_string(), sandbox.client()))
        .collect()
}

/// Documents of sandboxes that are no more. False when that is to be tried again.
async fn forget_others(knowledge: &Knowledge, all: &BTreeSet<String>) -> bool {
    let all = all.clone();
    let forgotten = knowledge.with(move |library| {
        for source in library.sources()? {
            if source != PUBLICATIONS && !all.contains(&source) {
                library.remove_source(&source)?;
            }
        }
        Ok(())
    });
    match forgotten.await {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(%error, "documents of sandboxes that are gone stay for now");
            false
        }
    }
}

async fn follow(knowledge: Arc<Knowledge>, id: String, client: Client) {
    loop {
        let ignored = Mutex::default();
        let look = Look { knowledge: &knowledge, source: &id, client: &client, ignored };
        if let Err(error) = watch(&look).await {
            tracing::debug!(sandbox = %id, %error, "following documents begins anew");
            let state = Followed { current: false, problem: Some(error.to_string()) };
            knowledge.followed().insert(id.clone(), state);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn watch(look: &Look<'_>) -> Result<()> {
    let mut stream = look.client.watch(which::ROOT).await?;
    look.everything().await?;
    loop {
        let changes = gather(&mut stream).await?;
        match changes {
            Changes::Some(paths) => {
                for path in paths {
                    look.at(&path).await?;
                }
            }
            Changes::Unknown => look.everything().await?,
        }
    }
}

/// What to look at.
#[derive(Debug, PartialEq, Eq)]
enum Changes {
    Some(BTreeSet<String>),
    /// Anything may have changed.
    Unknown,
}

impl Changes {
    fn take(&mut self, message: WatchMessage) -> Result<()> {
        match message {
            WatchMessage::Changes { changes } => {
                changes.iter().for_each(|change| self.add(change));
                Ok(())
            }
            WatchMessage::Overflow { .. } | WatchMessage::Ready { .. } => {
                *self = Self::Unknown;
                Ok(())
            }
            WatchMessage::Error(error) => Err(error.into()),
        }
    }

    fn add(&mut self, change: &Change) {
        let Self::Some(paths) = self else { return };
        let here = |path: &Path| which::relative(path);
        paths.extend(here(change.path.as_path()));
        paths.extend(change.from.as_ref().and_then(|from| here(from.as_path())));
        if paths.len() > MOST_CHANGES {
            *self = Self::Unknown;
        }
    }
}

/// Waits for a change, and then for the end of what it belongs to.
async fn gather(stream: &mut WatchStream) -> Result<Changes> {
    let mut changes = Changes::Some(BTreeSet::new());
    changes.take(stream.next().await?)?;
    let latest = Instant::now() + LATEST;
    loop {
        let until = (Instant::now() + QUIET).min(latest);
        match tokio::time::timeout_at(until, stream.next()).await {
            Ok(message) => changes.take(message?)?,
            Err(_) => return Ok(changes),
        }
    }
}

#[cfg(test)]
mod tests {
    use nacre_wire::watch::ChangeKind;

    use super::*;

    fn change(path: &str, from: Option<&str>) -> Change {
        let (path, from) = (path.into(), from.map(Into::into));
        Change { kind: ChangeKind::Modify, path, from, directory: false }
    }

    #[test]
    fn both_ends_of_a_move_are_looked_at() {
        let mut changes = Changes::Some(BTreeSet::new());
        let moved = change("/workspace/b.md", Some("/workspace/a.md"));
        let outside = change("/etc/x", None);
        changes.take(WatchMessage::Changes { changes: vec![moved, outside] }).unwrap();
        assert_eq!(changes, Changes::Some(["a.md".to_owned(), "b.md".to_owned()].into()));
        changes.take(WatchMessage::Overflow { lost: 1, resync: false }).unwrap();
        assert_eq!(changes, Changes::Unknown);
        let again = WatchMessage::Changes { changes: vec![change("/workspace/c.md", None)] };
        changes.take(again).unwrap();
        assert_eq!(changes, Changes::Unknown);
    }

    #[test]
    fn too_many_changes_are_all_of_them() {
        let many = (0..=MOST_CHANGES).map(|n| change(&format!("/workspace/{n}"), None)).collect();
        let mut changes = Changes::Some(BTreeSet::new());
        changes.take(WatchMessage::Changes { changes: many }).unwrap();
        assert_eq!(changes, Changes::Unknown);
    }
}
