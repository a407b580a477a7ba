//! The thread of one watched directory.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use nacre_wire::watch::{Change, ChangeKind};
use nacre_wire::{ApiError, ErrorKind, WirePath};
use rustix::event::Timespec;
use tokio::sync::mpsc::error::TrySendError;

use super::hub::{Command, Event, Key, Pulse, Subscriber, Target, Watchers};
use super::inotify::{RawEvent, wait_for};
use super::tracker::Tracker;
use crate::files::fault::at;
use crate::files::identity::act_as;

/// After a batch, what follows is gathered this long; the first event after a pause goes at once.
const WINDOW: Duration = Duration::from_millis(2);
const LONGEST_WINDOW: Duration = Duration::from_millis(20);
/// A batch of this size makes the next window twice as long.
const BUSY: usize = 512;
/// The kernel queues the two halves of a move one after the other.
const OTHER_HALF: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
/// Events taken at once.
const BATCH: usize = 16_384;
/// Changes in one message.
const MESSAGE: usize = 4096;

/// Runs until the last subscriber leaves or watching fails.
pub(crate) fn run(
    watchers: &Watchers,
    key: &Key,
    target: Target,
    inbox: &mpsc::Receiver<Command>,
    wake: &OwnedFd,
    pulse: &Pulse,
) {
    let mut worker = Worker { subscribers: Vec::new(), flushing: Vec::new(), lost: 0, ready: None };
    let failure = worker.serve(watchers, key, target, inbox, wake, pulse).err();
    if let Some(error) = failure {
        let mut running = watchers.lock();
        running.remove(key);
        worker.admit(inbox);
        worker.tell(&Event::Failed(error));
    }
}

struct Worker {
    subscribers: Vec<Subscriber>,
    /// Who wants to know when all that is queued has been told.
    flushing: Vec<u64>,
    lost: u64,
    /// How many directories are watched, once the tree is learned.
    ready: Option<u64>,
}

impl Worker {
    fn serve(
        &mut self,
        watchers: &Watchers,
        key: &Key,
        target: Target,
        inbox: &mpsc::Receiver<Command>,
        wake: &OwnedFd,
        pulse: &Pulse,
    ) -> Result<(), ApiError> {
        // For as long as the thread lives: it sees what the user may see.
        let _acting = act_as(&target.user)?;
        let path = target.path;
        let mut tracker = Tracker::new(target.directory, &path)?;
        tracker.learn()?;
        self.ready = Some(tracker.tree.watches() as u64);
        if let Ok(inotify) = tracker.inotify.share() {
            // Nobody else sets it.
            let _ = pulse.inotify.set(inotify);
        }
        let mut window = WINDOW;
        loop {
            self.obey(inbox, &tracker);
            if self.subscribers.is_empty() && self.may_end(watchers, key, inbox, &tracker) {
                return Ok(());
            }
            if self.flushing.is_empty() {
                tracker.inotify.wait(wake, None).map_err(at(&path))?;
                clear(wake);
            }
            pulse.busy.store(true, Ordering::SeqCst);
            let count = self.batch(&mut tracker)?;
            pulse.busy.store(false, Ordering::SeqCst);
            if !self.flushing.is_empty() {
                self.flushed(count);
            } else if count > 0 {
                window = if count > BUSY { (window * 2).min(LONGEST_WINDOW) } else { WINDOW };
                self.pause(window, inbox, wake, &tracker).map_err(at(&path))?;
            }
        }
    }

    /// Takes what the kernel holds and tells what it means; returns how many events there were.
    fn batch(&mut self, tracker: &mut Tracker) -> Result<usize, ApiError> {
        let root = tracker.tree.root().to_owned();
        let mut events: Vec<RawEvent> = Vec::new();
        tracker.inotify.read(&mut events, BATCH).map_err(at(&root))?;
        if Tracker::half_moved(&events) {
            tracker.inotify.wait_alone(OTHER_HALF).map_err(at(&root))?;
            tracker.inotify.read(&mut events, BATCH).map_err(at(&root))?;
        }
        if events.is_empty() {
            return Ok(0);
        }
        let outcome = tracker.digest(&events)?;
        self.tell_changes(outcome.changes);
        if outcome.gone {
            let gone = Change {
                kind: ChangeKind::Delete,
                path: WirePath::from(&root),
                from: None,
                directory: true,
            };
            self.tell_changes(vec![gone]);
            let message = format!("{}: the watched directory was removed", root.display());
            return Err(ApiError::new(ErrorKind::NotFound, message));
        }
        if outcome.overflowed {
            self.lost += 1;
            self.tell(&Event::Overflow { lost: self.lost });
            let found = tracker.heal()?;
            self.tell_changes(found);
        }
        self.ready = Some(tracker.tree.watches() as u64);
        Ok(events.len())
    }

    /// A batch that was as large as one can be may have left something in the kernel.
    fn flushed(&mut self, count: usize) {
        if count >= BATCH {
            return;
        }
        for id in std::mem::take(&mut self.flushing) {
            if let Some(subscriber) = self.subscribers.iter().find(|other| other.id == id) {
                deliver(subscriber, Event::Flushed);
            }
        }
    }

    /// Lets events gather, while commands are still served.
    fn pause(
        &mut self,
        window: Duration,
        inbox: &mpsc::Receiver<Command>,
        wake: &OwnedFd,
        tracker: &Tracker,
    ) -> Result<(), rustix::io::Errno> {
        let end = Instant::now() + window;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
            wait_for(&[wake.as_fd()], Some(timeout))?;
            clear(wake);
            self.obey(inbox, tracker);
            if !self.flushing.is_empty() {
                return Ok(());
            }
        }
    }

    fn obey(&mut self, inbox: &mpsc::Receiver<Command>, tracker: &Tracker) {
        while let Ok(command) = inbox.try_recv() {
            match command {
                Command::Join(subscriber) => self.join(subscriber),
                Command::Leave(id) => self.subscribers.retain(|other| other.id != id),
                Command::Resync(id) => self.resync(id, tracker),
                Command::Flush(id) => self.flushing.push(id),
                #[cfg(test)]
                Command::Hold(held) => {
                    let _ = held.recv();
                }
            }
        }
    }

    fn join(&mut self, subscriber: Subscriber) {
        if let Some(directories) = self.ready {
            deliver(&subscriber, Event::Ready { directories });
        }
        self.subscribers.push(subscriber);
    }

    /// Takes in whoever joined while watching failed.
    fn admit(&mut self, inbox: &mpsc::Receiver<Command>) {
        self.ready = None;
        while let Ok(command) = inbox.try_recv() {
            if let Command::Join(subscriber) = command {
                self.join(subscriber);
            }
        }
    }

    /// Nobody is left. Whoever subscribes does it under the lock, so with the lock in hand and the
    /// inbox empty nobody is on the way either.
    fn may_end(
        &mut self,
        watchers: &Watchers,
        key: &Key,
        inbox: &mpsc::Receiver<Command>,
        tracker: &Tracker,
    ) -> bool {
        let mut running = watchers.lock();
        self.obey(inbox, tracker);
        let end = self.subscribers.is_empty();
        if end {
            running.remove(key);
        }
        end
    }

    fn resync(&mut self, id: u64, tracker: &Tracker) {
        let Some(subscriber) = self.subscribers.iter().find(|other| other.id == id) else { return };
        if !subscriber.lagging.swap(false, Ordering::AcqRel) {
            return;
        }
        let everything = Arc::from(tracker.everything());
        deliver(subscriber, Event::Resync { lost: self.lost, everything });
        if let Some(directories) = self.ready {
            deliver(subscriber, Event::Ready { directories });
        }
    }

    fn tell_changes(&mut self, changes: Vec<Change>) {
        for changes in changes.chunks(MESSAGE) {
            self.tell(&Event::Changes(Arc::from(changes)));
        }
    }

    fn tell(&mut self, event: &Event) {
        for subscriber in &self.subscribers {
            deliver(subscriber, event.clone());
        }
    }
}

/// A subscriber whose queue is full hears nothing more until it has started over.
fn deliver(subscriber: &Subscriber, event: Event) {
    if subscriber.lagging.load(Ordering::Acquire) {
        return;
    }
    let send = |event| {
        subscriber.unheard.fetch_add(1, Ordering::SeqCst);
        let sent = subscriber.events.try_send(event);
        if sent.is_err() {
            subscriber.unheard.fetch_sub(1, Ordering::SeqCst);
        }
        sent
    };
    if let Err(TrySendError::Full(_)) = send(event) {
        subscriber.lagging.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        // It may have emptied the queue and gone to sleep just before the flag was up. Either this
        // wakes it, or the queue is still full and it sees the flag when it gets to the end.
        let _ = send(Event::Changes(Arc::from([])));
    }
}

fn clear(wake: &OwnedFd) {
    let mut count = [0; 8];
    let _ = rustix::io::read(wake, &mut count);
}
