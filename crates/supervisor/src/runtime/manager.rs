//! The task that owns all processes. Everybody else sends it a [`Message`] and reads the
//! [`View`] it publishes; what to do is for [`super::policy`] to say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::events::Event;
use nacre_wire::processes::{ConfigError, ProcessInfo, ProcessState};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::config::{Config, FILE};
use super::impact::{Impact, impact};
use super::log::Log;
use super::policy::{self, Action};
use super::process::Process;
use super::run::{News, Run, probe, request};
use crate::events::Events;
use crate::exec::Commands;

#[derive(Debug)]
pub(crate) enum Message {
    /// The file was read.
    Configured {
        read: Result<Config, ConfigError>,
        done: oneshot::Sender<Vec<Awaited>>,
    },
    Order {
        name: String,
        order: Order,
        reply: oneshot::Sender<Result<ProcessInfo, ApiError>>,
    },
    /// Files were put back.
    Restored {
        paths: Vec<PathBuf>,
        reply: oneshot::Sender<Vec<Awaited>>,
    },
    Run {
        name: String,
        run: u64,
        news: News,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Start,
    Stop,
    Restart,
}

/// A run whose coming up somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) name: String,
    pub(crate) run: u64,
}

/// What is known to everybody.
#[derive(Debug, Clone, Default)]
pub(crate) struct View {
    pub(crate) processes: BTreeMap<String, Entry>,
    pub(crate) config_error: Option<ConfigError>,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) info: ProcessInfo,
    pub(crate) log: Arc<Log>,
}

pub(crate) struct Manager {
    pub(crate) commands: Arc<Commands>,
    pub(crate) events: Events,
    pub(crate) workspace: PathBuf,
    pub(crate) inbox: mpsc::Receiver<Message>,
    /// For the runs to answer to.
    pub(crate) address: mpsc::Sender<Message>,
    pub(crate) view: watch::Sender<Arc<View>>,
    /// No run is started after this.
    pub(crate) closed: CancellationToken,
    pub(crate) epoch: Instant,
    pub(crate) processes: BTreeMap<String, Process>,
}

impl Manager {
    pub(crate) async fn work(mut self) {
        loop {
            let due = self.processes.values().filter_map(|process| process.policy.due()).min();
            let message = tokio::select! {
                biased;
                () = self.closed.cancelled() => return,
                message = self.inbox.recv() => message,
                () = until(due.map(|due| self.epoch + due)) => {
                    self.tick();
                    continue;
                }
            };
            match message {
                Some(message) => self.take(message),
                None => return,
            }
        }
    }

    fn take(&mut self, message: Message) {
        // Whoever asked may have gone away; what was asked for is done all the same.
        match message {
            Message::Configured { read, done } => {
                let _ = done.send(self.configure(read));
            }
            Message::Order { name, order, reply } => {
                let _ = reply.send(self.order(&name, order));
            }
            Message::Restored { paths, reply } => {
                let _ = reply.send(self.restored(&paths));
            }
            Message::Run { name, run, news } => self.hear(&name, run, news),
        }
    }

    fn tick(&mut self) {
        for name in self.names() {
            self.apply(&name, policy::Event::Tick);
        }
    }

    /// Restarts what changed, starts what is new, ends what is gone, and leaves the rest alone.
    fn configure(&mut self, read: Result<Config, ConfigError>) -> Vec<Awaited> {
        let error = read.as_ref().err().cloned();
        if self.view.borrow().config_error != error {
            match &error {
                Some(error) => tracing::warn!(line = error.line, "{FILE}: {}", error.reason),
                None => tracing::info!("{FILE} is in order again"),
            }
            self.show(|view| view.config_error.clone_from(&error));
            self.events.publish(Event::Config { error });
        }
        let Ok(config) = read else { return Vec::new() };
        for name in self.names() {
            if !config.processes.contains_key(&name) {
                self.leave(&name);
            }
        }
        let specs = config.processes.into_iter();
        specs.filter_map(|(name, spec)| self.adopt(name, spec)).collect()
    }

    fn adopt(&mut self, name: String, spec: super::config::Spec) -> Option<Awaited> {
        let event = match self.processes.get_mut(&name) {
            None => {
                self.processes.insert(name.clone(), Process::new(spec));
                policy::Event::Start
            }
            Some(process) => {
                let back = std::mem::take(&mut process.leaving);
                let same = process.spec.runs_the_same(&spec);
                process.policy.restart = spec.restart;
                process.spec = spec;
                match (back, same) {
                    (true, _) => policy::Event::Start,
                    (false, true) => return None,
                    (false, false) => policy::Event::Changed,
                }
            }
        };
        self.apply(&name, event);
        self.awaited(&name)
    }

    fn leave(&mut self, name: &str) {
        if let Some(process) = self.processes.get_mut(name) {
            process.leaving = true;
        }
        self.apply(name, policy::Event::Stop);
    }

    fn order(&mut self, name: &str, order: Order) -> Result<ProcessInfo, ApiError> {
        if self.processes.get(name).is_none_or(|process| process.leaving) {
            return Err(unknown(name));
        }
        self.apply(
            name,
            match order {
                Order::Start => policy::Event::Start,
                Order::Stop => policy::Event::Stop,
                Order::Restart => policy::Event::Restart,
            },
        );
        let entry = self.view.borrow().processes.get(name).cloned();
        entry.map(|entry| entry.info).ok_or_else(|| unknown(name))
    }

    fn restored(&mut self, paths: &[PathBuf]) -> Vec<Awaited> {
        let mut awaited = Vec::new();
        for name in self.names() {
            let Some(process) = self.processes.get(&name).filter(|process| !process.leaving) else {
                continue;
            };
            let paths = paths.iter().map(PathBuf::as_path);
            match impact(process.policy.state(), &process.spec.directory.0, paths) {
                Impact::None => continue,
                Impact::Await => {}
                Impact::Restart => self.apply(&name, policy::Event::Restart),
            }
            awaited.extend(self.awaited(&name));
        }
        awaited
    }

    /// The run to wait for: the one that starts, or that follows the one that ends.
    fn awaited(&self, name: &str) -> Option<Awaited> {
        let policy = &self.processes.get(name)?.policy;
        let run = match policy.state() {
            ProcessState::Starting => policy.runs,
            ProcessState::Stopping => policy.runs + 1,
            ProcessState::Stopped
            | ProcessState::Ready
            | ProcessState::BackingOff
            | ProcessState::CrashLooping
            | ProcessState::Failed
            | ProcessState::Unknown => return None,
        };
        Some(Awaited { name: name.to_owned(), run })
    }

    fn hear(&mut self, name: &str, run: u64, news: News) {
        let Some(process) = self.processes.get_mut(name) else { return };
        if process.policy.runs != run {
            return;
        }
        match news {
            News::Started { pid } => {
                process.pid = Some(pid);
                self.publish(name);
            }
            News::Ready => self.apply(name, policy::Event::Ready),
            News::Ended(end) => {
                let outcome = end.outcome;
                process.ended(end);
                self.apply(name, policy::Event::Ended(outcome));
            }
        }
    }

    fn apply(&mut self, name: &str, event: policy::Event) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(name) else { return };
        match process.policy.on(event, now, chance()) {
            Action::Nothing => {}
            Action::End => process.end.cancel(),
            Action::Start => self.start(name),
        }
        self.publish(name);
    }

    fn start(&mut self, name: &str) {
        let Some(process) = self.processes.get_mut(name) else { return };
        process.end = CancellationToken::new();
        let run = Run {
            name: name.to_owned(),
            number: process.policy.runs,
            request: request(name, &process.spec, &self.workspace),
            probe: probe(&process.spec),
            log: Arc::clone(&process.log),
            commands: Arc::clone(&self.commands),
            manager: self.address.clone(),
            end: process.end.clone(),
        };
        tokio::spawn(run.live());
    }

    /// Tells everybody how the process is, if that is new.
    fn publish(&mut self, name: &str) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(name) else { return };
        process.settle();
        if process.leaving && process.policy.state() == ProcessState::Stopped {
            process.log.close();
            self.processes.remove(name);
            self.show(|view| drop(view.processes.remove(name)));
            self.events.publish(Event::ProcessGone { name: name.to_owned() });
            return;
        }
        let info = process.info(name, &self.workspace, now);
        let log = Arc::clone(&process.log);
        let before = self.view.borrow().processes.get(name).map(|entry| entry.info.clone());
        if before.is_some_and(|before| same(&before, &info)) {
            return;
        }
        let entry = Entry { info: info.clone(), log };
        self.show(|view| drop(view.processes.insert(name.to_owned(), entry)));
        self.events.publish(Event::Process { process: info });
    }

    fn show(&self, change: impl FnOnce(&mut View)) {
        self.view.send_modify(|view| change(Arc::make_mut(view)));
    }

    fn names(&self) -> Vec<String> {
        self.processes.keys().cloned().collect()
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }
}

/// But for what moves by itself.
fn same(one: &ProcessInfo, other: &ProcessInfo) -> bool {
    let still = |info: &ProcessInfo| ProcessInfo { log_seq: 0, next_try: None, ..info.clone() };
    still(one) == still(other)
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// From 0 to 1. Without randomness all wait equally long, which is no fault.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)
}

pub(crate) fn unknown(name: &str) -> ApiError {
    ApiError::new(ErrorKind::NotFound, format!("no process \"{name}\""))
        .hint(format!("{} names the processes", Path::new("/workspace").join(FILE).display()))
}
