//! Who watches what: one thread per watched directory and user, shared by all who ask.
//!
//! ```text
//! subscribe ──► running watcher? ──yes──► Join ─┐
//!                    │ no                       ▼
//!                    └──► new thread: learn ► ready ► wait ► digest ► tell everybody ─┐
//!                                               ▲                                     │
//!                                               └─────────────────────────────────────┘
//! last subscription dropped ──► Leave ──► the thread ends, and with it every watch
//! ```
//! The thread owns the tree and the list of subscribers; others send it [`Command`]s.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};

use nacre_wire::watch::Change;
use nacre_wire::{ApiError, ErrorKind};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::fstat;
use tokio::sync::mpsc as queue;
use tokio::sync::mpsc::error::TryRecvError;

use super::worker;
use crate::files::fault::at;
use crate::users::User;

/// Batches a subscriber may be behind before it has to start over.
const QUEUE: usize = 256;

/// What a subscriber is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What changes from here on is told.
    Ready {
        directories: u64,
    },
    Changes(Arc<[Change]>),
    /// The kernel dropped events; what was found by looking again follows as changes.
    Overflow {
        lost: u64,
    },
    /// This subscriber was too slow. Everything that exists, as `create`.
    Resync {
        lost: u64,
        everything: Arc<[Change]>,
    },
    /// Everything that happened before [`Subscription::flush`] has been told.
    Flushed,
    /// The last event.
    Failed(ApiError),
}

/// A directory to watch, open, and who is to see it.
#[derive(Debug)]
pub struct Target {
    pub directory: OwnedFd,
    /// The prefix of reported paths.
    pub path: PathBuf,
    pub user: Arc<User>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    uid: u32,
    device: u64,
    inode: u64,
    path: PathBuf,
}

#[derive(Debug)]
pub(crate) enum Command {
    Join(Subscriber),
    Leave(u64),
    /// The subscriber has read all it was sent and knows that it missed something.
    Resync(u64),
    /// Take what the kernel holds now, tell it, and then say so to this subscriber.
    Flush(u64),
    #[cfg(test)]
    Hold(mpsc::Receiver<()>),
}

#[derive(Debug)]
pub(crate) struct Subscriber {
    pub(crate) id: u64,
    pub(crate) events: queue::Sender<Event>,
    pub(crate) lagging: Arc<AtomicBool>,
    /// Events on their way to it.
    pub(crate) unheard: Arc<AtomicUsize>,
}

/// What a watcher's thread is doing, for who wants to know without asking it.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Set when the tree is learned.
    pub(crate) inotify: OnceLock<OwnedFd>,
    /// From before it takes events out of the kernel until it has told them.
    pub(crate) busy: AtomicBool,
}

/// Tells whether a subscriber has heard of every change.
#[derive(Debug, Clone)]
pub struct Calm {
    pulse: Arc<Pulse>,
    unheard: Arc<AtomicUsize>,
    lagging: Arc<AtomicBool>,
}

impl Calm {
    /// Whether nothing that happened before this call is still on its way. The places are asked in
    /// the order in which an event passes them, so none slips by.
    pub fn is_calm(&self) -> bool {
        let Some(inotify) = self.pulse.inotify.get() else { return false };
        let queued = rustix::io::ioctl_fionread(inotify);
        queued == Ok(0)
            && !self.pulse.busy.load(Ordering::SeqCst)
            && self.unheard.load(Ordering::SeqCst) == 0
            && !self.lagging.load(Ordering::SeqCst)
    }

    /// The subscriber has done what an event asked of it.
    pub fn heard(&self) {
        self.unheard.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Handle {
    commands: mpsc::Sender<Command>,
    wake: Arc<OwnedFd>,
    pulse: Arc<Pulse>,
}

impl Handle {
    pub(crate) fn send(&self, command: Command) {
        // The thread may have ended; then there is nobody left to tell.
        let _ = self.commands.send(command);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// All running watchers. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Watchers {
    running: Arc<Mutex<HashMap<Key, Handle>>>,
}

impl Watchers {
    /// Joins the watcher of this directory, or starts it. Does not wait until it is ready.
    pub fn subscribe(&self, target: Target) -> Result<Subscription, ApiError> {
        let stat = fstat(&target.directory).map_err(at(&target.path))?;
        let key = Key {
            uid: target.user.uid,
            device: stat.st_dev,
            inode: stat.st_ino,
            path: target.path.clone(),
        };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let (events, receiver) = queue::channel(QUEUE);
        let (lagging, unheard) = (Arc::new(AtomicBool::new(false)), Arc::default());
        let subscriber =
            Subscriber { id, events, lagging: lagging.clone(), unheard: Arc::clone(&unheard) };
        let mut running = self.lock();
        let handle = match running.get(&key) {
            Some(handle) => handle.clone(),
            None => {
                let handle = self.start(key.clone(), target)?;
                running.insert(key, handle.clone());
                handle
            }
        };
        // Under the lock, which a thread takes before it ends: it cannot miss this.
        handle.send(Command::Join(subscriber));
        Ok(Subscription { id, events: receiver, lagging, unheard, handle })
    }

    fn start(&self, key: Key, target: Target) -> Result<Handle, ApiError> {
        let failed = |error: &dyn std::fmt::Display| {
            ApiError::new(ErrorKind::Unavailable, format!("cannot start watching: {error}"))
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| failed(&error))?;
        let wake = Arc::new(wake);
        let (commands, inbox) = mpsc::channel();
        let (watchers, waked) = (self.clone(), wake.clone());
        let pulse = Arc::<Pulse>::default();
        let shown = pulse.clone();
        std::thread::Builder::new()
            .name("nacre-watch".to_owned())
            .spawn(move || worker::run(&watchers, &key, target, &inbox, &waked, &shown))
            .map_err(|error| failed(&error))?;
        Ok(Handle { commands, wake, pulse })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<Key, Handle>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Threads that watch something.
    pub fn running(&self) -> usize {
        self.lock().len()
    }
}

/// One subscriber's end. Dropping the last one of a directory ends its watches.
#[derive(Debug)]
pub struct Subscription {
    id: u64,
    events: queue::Receiver<Event>,
    lagging: Arc<AtomicBool>,
    unheard: Arc<AtomicUsize>,
    handle: Handle,
}

impl Subscription {
    /// For this to be of use, [`Calm::heard`] has to follow each event from [`Subscription::next`].
    pub fn calm(&self) -> Calm {
        let (unheard, lagging) = (self.unheard.clone(), self.lagging.clone());
        Calm { pulse: self.handle.pulse.clone(), unheard, lagging }
    }

    /// Asks for [`Event::Flushed`], which comes after every change made before this call. The kernel
    /// queues an event before the call that made the change returns, so nothing is on its way.
    pub fn flush(&self) {
        self.handle.send(Command::Flush(self.id));
    }

    /// `None` after [`Event::Failed`].
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let event = match self.events.try_recv() {
                Ok(event) => event,
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {
                    fence(Ordering::SeqCst);
                    if self.lagging.load(Ordering::SeqCst) {
                        self.handle.send(Command::Resync(self.id));
                    }
                    self.events.recv().await?
                }
            };
            // An empty one only says that this subscriber lags.
            if !matches!(&event, Event::Changes(changes) if changes.is_empty()) {
                return Some(event);
            }
            self.unheard.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[cfg(test)]
    pub(crate) fn hold(&self) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel();
        self.handle.send(Command::Hold(held));
        release
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.handle.send(Command::Leave(self.id));
    }
}
