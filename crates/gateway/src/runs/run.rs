//! One run, as others see it: its state, its events, and who follows it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nacre_wire::runs::{RunInfo, RunLimits, RunOutcome, RunState, RunUpdate, RunUsage};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::agents::Agent;
use super::log::EventLog;
use super::record::{self, Folder};
use crate::clock::now_ms;
use crate::provider::Chosen;

/// Whoever starts a run that is not detached has so long to come and follow it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is to be done, checked.
#[derive(Debug)]
pub(super) struct Ordered {
    pub(super) spec: String,
    pub(super) agent: Agent,
    pub(super) model: Option<Chosen>,
    pub(super) limits: RunLimits,
    pub(super) input: bool,
    pub(super) keep: bool,
    pub(super) detach: bool,
}

/// Its task alone changes what is shown of it.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) folder: Folder,
    pub(super) log: EventLog,
    /// Asks its task to end it.
    pub(super) cancel: CancellationToken,
    /// Cancelled when it has ended and nothing of it is left but its record.
    pub(super) over: CancellationToken,
    /// Whether what it begins with is there.
    pub(super) filled: watch::Sender<bool>,
    /// Somebody sends that, or has sent it.
    receiving: AtomicBool,
    info: Mutex<RunInfo>,
    followers: AtomicUsize,
}

impl Run {
    pub(super) fn new(
        folder: Folder,
        log: EventLog,
        info: RunInfo,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            folder,
            log,
            cancel: stop.child_token(),
            over: CancellationToken::new(),
            filled: watch::channel(false).0,
            receiving: AtomicBool::new(false),
            info: Mutex::new(info),
            followers: AtomicUsize::new(0),
        }
    }

    /// One that has ended.
    pub(super) fn of_the_past(folder: Folder, info: RunInfo) -> Self {
        let log = EventLog::of_the_past(folder.events());
        let run = Self::new(folder, log, info, &CancellationToken::new());
        run.over.cancel();
        run
    }

    pub(super) fn info(&self) -> RunInfo {
        self.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut RunInfo)) {
        change(&mut self.info.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn save(&self) {
        if let Err(error) = self.folder.save(&self.info()) {
            tracing::error!(run = self.info().id, %error, "the record of a run is not kept");
        }
    }

    pub(super) fn enter(&self, state: RunState) {
        self.change(|info| {
            info.state = state;
            if state == RunState::Starting {
                info.started_at = Some(now_ms());
            }
        });
        self.save();
        self.log.keep(RunUpdate::State { state });
    }

    pub(super) fn use_up(&self, used: RunUsage) {
        let mut news = false;
        self.change(|info| {
            news = info.used != used;
            info.used = used;
        });
        if news {
            self.log.keep(RunUpdate::Usage { used });
        }
    }

    pub(super) fn end(&self, outcome: RunOutcome) {
        self.change(|info| {
            info.state = RunState::Ended;
            info.ended_at = Some(now_ms());
            info.outcome = Some(outcome);
        });
        self.save();
        self.log.keep(RunUpdate::Ended { run: Box::new(self.info()) });
        self.over.cancel();
    }

    pub(super) fn is_over(&self) -> bool {
        record::is_over(&self.info.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it waits for files, and nobody else sends them.
    pub(super) fn takes_input(&self) -> bool {
        self.info().state == RunState::Waiting && !self.receiving.swap(true, Ordering::SeqCst)
    }

    /// As long as this lives, somebody cares.
    pub(super) fn follow(self: &Arc<Self>, then: Then) -> Following {
        self.followers.fetch_add(1, Ordering::SeqCst);
        Following { run: self.clone(), then }
    }

    /// Nobody follows it yet; somebody should soon.
    pub(super) fn expect_somebody(self: &Arc<Self>) {
        let run = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = run.over.cancelled() => {}
                () = tokio::time::sleep(PATIENCE) => run.cancel_if_alone(),
            }
        });
    }

    fn cancel_if_alone(&self) {
        let detached = self.info.lock().unwrap_or_else(PoisonError::into_inner).detached;
        if !detached && self.followers.load(Ordering::SeqCst) == 0 {
            self.cancel.cancel();
        }
    }
}

/// What it means when somebody goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    /// They do not want it any more.
    Cancel,
    /// They come back: they have sent the files, and will read the events.
    Wait,
}

#[derive(Debug)]
pub(super) struct Following {
    run: Arc<Run>,
    then: Then,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.run.followers.fetch_sub(1, Ordering::SeqCst);
        match self.then {
            Then::Cancel => self.run.cancel_if_alone(),
            Then::Wait => self.run.expect_somebody(),
        }
    }
}
