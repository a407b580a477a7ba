//! The thread that owns the history.
//!
//! ```text
//! untouched ──something is in the workspace──► open ──► first look ──► recording ◄──► refusing
//! ```
//! A new sandbox is untouched: nothing is opened and nothing watched until there is something to
//! keep, so sandboxes that live for one command pay nothing.

use std::fs;
use std::os::fd::OwnedFd;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use nacre_history::{Author, Checkpoint, Error, History, Look, Options, Retention};
use nacre_wire::events;
use nacre_wire::history::{HistorySettings, HistoryState};
use nacre_wire::{ApiError, ErrorKind};
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::convert;
use super::recorder::Shared;
use super::settings;
use super::state::{Active, Dirty, Manner};
use crate::events::Events;
use crate::memory;
use crate::users;
use crate::watch::{Event, Subscription, Target, Watchers};

/// A look at everything now and then finds what no event told of.
const FULL_LOOK: Duration = Duration::from_secs(3600);
/// After a refusal, before the next try that nobody asked for.
const PAUSE: Duration = Duration::from_secs(5);
/// Without a word from anybody, before the store is made smaller.
const IDLE: Duration = Duration::from_secs(3);
/// After each few milliseconds of that, so that it never takes all of a processor.
const BREATH: Duration = Duration::from_millis(1);
/// For the watcher to tell what it knows.
const HEARING: Duration = Duration::from_secs(10);

/// Where the workspace is and where its history goes.
#[derive(Debug)]
pub struct Place {
    /// As paths of changes begin.
    pub workspace: PathBuf,
    /// The same directory, on one mount with the store.
    pub root: PathBuf,
    pub store: PathBuf,
    /// Keeps paths through it valid.
    pub data: Option<OwnedFd>,
}

pub(super) type Job = Box<dyn FnOnce(&mut Keeper, Result<&mut History, ApiError>) + Send + 'static>;

pub(super) enum Message {
    Begin { number: u64, manner: Manner, authors: Vec<Author>, reply: Option<oneshot::Sender<()>> },
    End(u64),
    Job(Job),
    Finish(oneshot::Sender<()>),
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Begin { .. } => "Begin",
            Self::End(_) => "End",
            Self::Job(_) => "Job",
            Self::Finish(_) => "Finish",
        })
    }
}

/// See the [module](self).
pub(crate) struct Keeper {
    pub(super) place: Place,
    watchers: Watchers,
    shared: Weak<Shared>,
    events: Events,
    runtime: Option<Handle>,
    pub(super) dirty: Dirty,
    active: Active,
    subscription: Option<Subscription>,
    pub(super) settings: HistorySettings,
    /// Nothing was ever in the workspace, as far as we know.
    untouched: bool,
    last_full_look: Instant,
    /// When the store is to be made smaller; `None` while there is nothing to gain.
    tidy_at: Option<Instant>,
}

enum Next {
    Event(Option<Event>),
    Message(Option<Message>),
    Due,
}

enum Go {
    On,
    Home(oneshot::Sender<()>),
}

pub(super) fn spawn(keeper: Keeper, inbox: UnboundedReceiver<Message>) -> std::io::Result<()> {
    let runtime = Handle::current();
    std::thread::Builder::new()
        .name("nacre-history".to_owned())
        .spawn(move || keeper.run(inbox, runtime))?;
    Ok(())
}

impl Keeper {
    pub(super) fn new(
        place: Place,
        watchers: Watchers,
        events: Events,
        shared: Weak<Shared>,
    ) -> Self {
        let settings = settings::load(&place.store);
        Self {
            place,
            watchers,
            shared,
            events,
            runtime: None,
            dirty: Dirty::default(),
            active: Active::default(),
            subscription: None,
            settings,
            untouched: false,
            last_full_look: Instant::now(),
            tidy_at: None,
        }
    }

    fn run(mut self, mut inbox: UnboundedReceiver<Message>, runtime: Handle) {
        self.runtime = Some(runtime.clone());
        self.untouched = self.is_untouched();
        let mut history = None;
        if !self.untouched {
            self.dirty.add_everything();
            self.record(&mut history, &[]);
        }
        loop {
            self.show(history.as_ref());
            let due = self.due();
            let next = runtime.block_on(next(&mut self.subscription, &mut inbox, due));
            // A fault in here must not end what keeps the owner's files.
            let waited_for = || !inbox.is_empty();
            let step = AssertUnwindSafe(|| self.step(&mut history, next, &waited_for));
            match std::panic::catch_unwind(step) {
                Ok(Go::On) => {}
                Ok(Go::Home(reply)) => {
                    drop(history);
                    let _ = reply.send(());
                    return;
                }
                Err(_) => {
                    history = None;
                    self.refuse("a fault in the supervisor; its log has more");
                }
            }
        }
    }

    fn step(
        &mut self,
        history: &mut Option<History>,
        next: Next,
        waited_for: &dyn Fn() -> bool,
    ) -> Go {
        if let (Some(at), Next::Event(_) | Next::Message(_)) = (&mut self.tidy_at, &next) {
            *at = Instant::now() + IDLE;
        }
        match next {
            Next::Event(event) => self.hear_event(event),
            Next::Due if self.is_idle() => self.tidy(history, waited_for),
            Next::Due => {
                if self.last_full_look.elapsed() >= FULL_LOOK {
                    self.last_full_look = Instant::now();
                    self.dirty.add_everything();
                    self.maintain(history);
                }
                let authors = self.active.authors();
                self.record(history, &authors);
            }
            Next::Message(Some(Message::Begin { number, manner, authors, reply })) => {
                if reply.is_some() {
                    let before = self.active.authors();
                    self.record(history, &before);
                }
                self.active.join(number, manner, authors);
                reply.map(|reply| reply.send(()));
            }
            Next::Message(Some(Message::End(number))) => {
                let authors = self.active.authors();
                self.record(history, &authors);
                self.active.leave(number);
            }
            Next::Message(Some(Message::Job(job))) => self.run_job(history, job),
            Next::Message(Some(Message::Finish(reply))) => {
                let authors = self.active.authors();
                self.record(history, &authors);
                return Go::Home(reply);
            }
            // Everybody who could ask is gone.
            Next::Message(None) => return Go::Home(oneshot::channel().0),
        }
        Go::On
    }

    fn run_job(&mut self, history: &mut Option<History>, job: Job) {
        self.hear();
        match self.open(history) {
            Ok(()) => match history.take() {
                Some(mut open) => {
                    job(self, Ok(&mut open));
                    *history = Some(open);
                }
                None => job(self, Err(unavailable("it is not open"))),
            },
            Err(error) => job(self, Err(error)),
        }
    }

    fn due(&self) -> Option<Instant> {
        let full = self.subscription.as_ref().map(|_| self.last_full_look + FULL_LOOK);
        self.dirty.due().into_iter().chain(full).chain(self.tidy_at).min()
    }

    /// Nothing is due but what can wait.
    fn is_idle(&self) -> bool {
        let now = Instant::now();
        self.tidy_at.is_some_and(|at| at <= now)
            && self.dirty.is_clean()
            && self.last_full_look + FULL_LOOK > now
    }

    /// Makes a part of the store smaller, or gives it up when anybody wants anything.
    fn tidy(&mut self, history: &mut Option<History>, waited_for: &dyn Fn() -> bool) {
        self.tidy_at = None;
        let Some(open) = history.as_mut() else { return };
        let calm = self.subscription.as_ref().map(Subscription::calm);
        let mut given_up = false;
        let mut go_on = || {
            std::thread::sleep(BREATH);
            given_up = waited_for() || calm.as_ref().is_some_and(|calm| !calm.is_calm());
            !given_up
        };
        let tidied = open.tidy(&mut go_on);
        memory::give_back();
        match tidied {
            Ok(true) if given_up => self.tidy_at = Some(Instant::now() + IDLE),
            Ok(true) => self.tidy_at = Some(Instant::now()),
            Ok(false) => {}
            // It is tried again after the next checkpoint.
            Err(error) => tracing::warn!(%error, "cannot make history smaller"),
        }
    }

    /// Nothing in the workspace and nothing in the store, which only we write to.
    fn is_untouched(&self) -> bool {
        is_empty(&self.place.root) && !self.place.store.join("log.db").exists()
    }

    /// Records the present, if there is anything new about it.
    fn record(&mut self, history: &mut Option<History>, authors: &[Author]) {
        if self.untouched && history.is_none() && is_empty(&self.place.root) {
            return;
        }
        self.hear();
        let unsettled = history.as_ref().is_some_and(History::has_unsettled);
        if history.is_some() && self.dirty.is_clean() && !unsettled {
            return;
        }
        if self.open(history).is_err() {
            return;
        }
        let Some(open) = history.as_mut() else { return };
        let mut recorded = open.checkpoint(self.dirty.look(), authors);
        if matches!(recorded, Err(Error::NoSpace { .. })) {
            self.maintain(history);
            let Some(open) = history.as_mut() else { return };
            recorded = open.checkpoint(self.dirty.look(), authors);
        }
        match recorded {
            Ok(checkpoint) => self.recorded(checkpoint.as_ref()),
            Err(error) => {
                self.dirty.add_everything();
                self.refuse(&error.to_string());
            }
        }
    }

    /// After everything up to now has been recorded.
    pub(super) fn recorded(&mut self, checkpoint: Option<&Checkpoint>) {
        // A look at a large tree takes memory that is of no use until the next one.
        if matches!(self.dirty.look(), Look::Everywhere) {
            memory::give_back();
        }
        self.dirty.clear();
        self.tidy_at = Some(Instant::now() + IDLE);
        self.set_state(HistoryState::Recording);
        if let Some(checkpoint) = checkpoint {
            let checkpoint = convert::checkpoint(checkpoint);
            self.events.publish(events::Event::Checkpoint { checkpoint });
        }
    }

    fn refuse(&mut self, why: &str) {
        tracing::error!(why, "changes are not being recorded");
        self.dirty.add_everything();
        self.dirty.wait(PAUSE);
        self.set_state(HistoryState::Refusing { why: why.to_owned() });
    }

    fn maintain(&mut self, history: &mut Option<History>) {
        let Some(open) = history.as_mut() else { return };
        let retention = self.retention();
        match open.maintain(&retention, convert::now()) {
            Ok(done) if done.merged + done.dropped > 0 => {
                tracing::info!(
                    merged = done.merged,
                    dropped = done.dropped,
                    "history made smaller"
                );
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "cannot make history smaller"),
        }
    }

    /// Those at work now.
    pub(super) fn authors(&self) -> Vec<Author> {
        self.active.authors()
    }

    pub(super) fn retention(&self) -> Retention {
        let disk = rustix::fs::statvfs(&self.place.root)
            .map_or(u64::MAX, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        let mut retention = Retention::for_disk(disk);
        if let Some(quota) = self.settings.quota_bytes {
            retention.quota = quota;
        }
        retention
    }

    /// Opens the history and begins to watch, unless that is done.
    fn open(&mut self, history: &mut Option<History>) -> Result<(), ApiError> {
        if history.is_some() {
            return Ok(());
        }
        let mut opened = self.open_store().map_err(|error| {
            self.refuse(&error.to_string());
            convert::error(error)
        })?;
        if self.untouched {
            // The tree was empty to begin with; what is in it now came later.
            opened.begin_empty().map_err(convert::error)?;
            self.untouched = false;
            if let Some(shared) = self.shared.upgrade() {
                shared.view.untouched.store(false, Ordering::SeqCst);
            }
        }
        self.watch();
        self.dirty.add_everything();
        *history = Some(opened);
        Ok(())
    }

    fn open_store(&mut self) -> Result<History, Error> {
        let mut options = Options::new(&self.place.root, &self.place.store);
        options.exclude.clone_from(&self.settings.exclude);
        if let Some(largest) = self.settings.largest_file_bytes {
            options.largest_file = largest;
        }
        match History::open(&options) {
            Err(error) if error.is_damage() => {
                // What cannot be read is kept for who can; recording goes on beside it.
                let name = format!("history.damaged-{}", convert::now());
                tracing::error!(%error, name, "the history cannot be read and is set aside");
                let aside = self.place.store.with_file_name(&name);
                if fs::rename(&self.place.store, aside).is_err() {
                    return Err(error);
                }
                if let Some(shared) = self.shared.upgrade() {
                    shared.view.set_aside(name);
                }
                History::open(&options)
            }
            other => other,
        }
    }

    fn watch(&mut self) {
        if self.subscription.is_some() {
            return;
        }
        let target = fs::File::open(&self.place.root)
            .map_err(|error| ApiError::io(self.place.root.display(), &error))
            .and_then(|directory| {
                let own = rustix::process::geteuid().as_raw().to_string();
                let user = Arc::new(users::lookup(&own)?);
                Ok(Target { directory: directory.into(), path: self.place.workspace.clone(), user })
            });
        match target.and_then(|target| self.watchers.subscribe(target)) {
            Ok(subscription) => self.subscription = Some(subscription),
            // Then every look is at everything: slower, not less.
            Err(error) => tracing::warn!(%error, "history works without a watcher"),
        }
        self.hear();
    }

    /// Takes in all that has happened up to now.
    pub(super) fn hear(&mut self) {
        let Some(runtime) = self.runtime.clone() else { return };
        let Some(subscription) = &self.subscription else {
            self.dirty.add_everything();
            return;
        };
        if subscription.calm().is_calm() {
            return;
        }
        subscription.flush();
        loop {
            let Some(subscription) = &mut self.subscription else { return };
            let heard = runtime.block_on(async { timeout(HEARING, subscription.next()).await });
            match heard {
                Ok(Some(Event::Flushed)) => {
                    subscription.calm().heard();
                    return;
                }
                Ok(event) => {
                    // Who was told to start over was not told what it asked for.
                    let again = matches!(event, Some(Event::Resync { .. }));
                    self.hear_event(event);
                    if let (true, Some(subscription)) = (again, &self.subscription) {
                        subscription.flush();
                    }
                }
                Err(_) => {
                    self.dirty.add_everything();
                    return;
                }
            }
        }
    }

    fn hear_event(&mut self, event: Option<Event>) {
        match event {
            Some(Event::Changes(changes)) => self.dirty.add(&changes, &self.place.workspace),
            Some(Event::Overflow { .. } | Event::Resync { .. }) => self.dirty.add_everything(),
            Some(Event::Ready { .. } | Event::Flushed) => {}
            Some(Event::Failed(error)) => {
                tracing::warn!(%error, "history goes on without a watcher");
                self.dirty.add_everything();
            }
            None => self.subscription = None,
        }
        // Before the event counts as heard: who asks in between must not find everything settled.
        if let Some(shared) = self.shared.upgrade() {
            shared.view.clean.store(false, Ordering::SeqCst);
        }
        if let Some(subscription) = &self.subscription {
            subscription.calm().heard();
        }
    }

    fn set_state(&self, state: HistoryState) {
        if let Some(shared) = self.shared.upgrade() {
            shared.view.set_state(state);
        }
    }

    /// Lets who is about to change something know whether there is anything to wait for.
    fn show(&self, history: Option<&History>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let clean = self.dirty.is_clean() && history.is_some_and(|open| !open.has_unsettled());
        shared.view.set_calm(self.subscription.as_ref().map(Subscription::calm));
        shared.view.clean.store(clean, Ordering::SeqCst);
        shared.view.untouched.store(self.untouched && history.is_none(), Ordering::SeqCst);
        // There is nothing to look at, and what could not be recorded since is not forgotten.
        if self.untouched && shared.view.state() == HistoryState::Starting {
            shared.view.set_state(HistoryState::Recording);
        }
    }
}

async fn next(
    subscription: &mut Option<Subscription>,
    inbox: &mut UnboundedReceiver<Message>,
    due: Option<Instant>,
) -> Next {
    let event = async {
        match subscription {
            Some(subscription) => subscription.next().await,
            None => std::future::pending().await,
        }
    };
    let quiet = async {
        match due {
            Some(due) => tokio::time::sleep_until(due.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        message = inbox.recv() => Next::Message(message),
        event = event => Next::Event(event),
        () = quiet => Next::Due,
    }
}

/// Whether there is nothing in a directory.
pub(super) fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).is_ok_and(|mut names| names.next().is_none())
}

fn unavailable(why: &str) -> ApiError {
    ApiError::new(ErrorKind::Unavailable, format!("history cannot answer: {why}"))
}
