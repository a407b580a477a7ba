//! The task that owns all processes. Everybody else sends it a [`Message`] and reads the
//! [`View`] it publishes; what to do is for [`super::policy`] to say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nacre_wire::events::Event;
use nacre_wire::processes::{ConfigError, ProcessInfo, ProcessState, RUNTIME};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::config::{Config, FILE, Spec};
use super::impact::{Impact, impact};
use super::leftover::Mark;
use super::log::Log;
use super::mount::Mount;
use super::policy::{self, Action};
use super::process::Process;
use super::run::{News, Run, probe, request};
use super::usage::Usage;
use crate::events::Events;
use crate::exec::Commands;

/// Besides the one at the root.
const MOST_MOUNTS: usize = 3;

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
    /// Somebody asks for the app at this place; answered when there is an instance for it.
    Mount {
        mount: Mount,
        reply: oneshot::Sender<Result<(), ApiError>>,
    },
    /// Files were put back.
    Restored {
        paths: Vec<PathBuf>,
        /// Those that were asked and do not answer.
        deaf: Vec<String>,
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
    /// The file was read for the first time.
    pub(crate) is_read: bool,
    /// It says that the built copy is to own the pages.
    pub(crate) built: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) info: ProcessInfo,
    pub(crate) log: Arc<Log>,
    pub(crate) spec: Arc<Spec>,
    pub(crate) mount: Mount,
    pub(crate) usage: Arc<Usage>,
}

pub(crate) struct Manager {
    pub(crate) commands: Arc<Commands>,
    pub(crate) events: Events,
    pub(crate) workspace: PathBuf,
    pub(crate) inbox: mpsc::Receiver<Message>,
    /// For the runs to answer to.
    pub(crate) address: mpsc::Sender<Message>,
    pub(crate) view: watch::Sender<Arc<View>>,
    /// How long an instance stays that nobody uses.
    pub(crate) idle: Duration,
    /// No run is started after this.
    pub(crate) closed: CancellationToken,
    pub(crate) epoch: Instant,
    pub(crate) processes: BTreeMap<String, Process>,
}

impl Manager {
    pub(crate) async fn work(mut self) {
        loop {
            let due = self.due();
            let message = tokio::select! {
                biased;
                () = self.closed.cancelled() => return,
                message = self.inbox.recv() => message,
                () = until(due) => {
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
            Message::Mount { mount, reply } => {
                let _ = reply.send(self.mount(mount));
            }
            Message::Restored { paths, deaf, reply } => {
                let _ = reply.send(self.restored(&paths, &deaf));
            }
            Message::Run { name, run, news } => self.hear(&name, run, news),
        }
    }

    /// When something is to be done though nobody says anything.
    fn due(&self) -> Option<Instant> {
        let now = Instant::now();
        let policies = self.processes.values().filter_map(|process| process.policy.due());
        let idle = self.mounted().map(|(_, process)| process.usage.idle_at(self.idle, now));
        policies.map(|due| self.epoch + due).chain(idle).min()
    }

    fn tick(&mut self) {
        for name in self.names() {
            self.apply(&name, policy::Event::Tick);
        }
        self.end_unused();
    }

    fn end_unused(&mut self) {
        let now = Instant::now();
        let is_idle = |process: &Process| process.usage.idle_at(self.idle, now) <= now;
        let mounted = self.mounted().filter(|(_, process)| is_idle(process));
        let unused: Vec<String> = mounted.map(|(name, _)| name.clone()).collect();
        for name in unused {
            self.leave(&name);
        }
    }

    /// Instances of the app besides the one at the root, but for those that are on their way out.
    fn mounted(&self) -> impl Iterator<Item = (&String, &Process)> {
        let others = |process: &Process| !process.mount.is_root() && !process.leaving;
        self.processes.iter().filter(move |(_, process)| others(process))
    }

    /// Sees to it that there is an instance of the app for this place.
    fn mount(&mut self, mount: Mount) -> Result<(), ApiError> {
        let name = mount.process();
        if self.processes.get(&name).is_some_and(|process| !process.leaving) {
            return Ok(());
        }
        let app = self.processes.get(RUNTIME).filter(|app| !app.leaving && app.spec.per_mount);
        let spec = app.map(|app| Spec::clone(&app.spec)).ok_or_else(|| unknown(&name))?;
        if self.mounted().count() >= MOST_MOUNTS {
            let message = format!("the app is mounted at {MOST_MOUNTS} other places already");
            return Err(ApiError::new(ErrorKind::Unavailable, message));
        }
        self.adopt(name, spec, mount);
        Ok(())
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
        if !self.view.borrow().is_read {
            self.show(|view| view.is_read = true);
        }
        let Ok(config) = read else { return Vec::new() };
        if self.view.borrow().built != config.built {
            self.show(|view| view.built = config.built);
        }
        let Config { mut processes, .. } = config;
        // An instance goes with the app, or changes with it.
        let mounts: Vec<Mount> = self.mounted().map(|(_, process)| process.mount.clone()).collect();
        if let Some(app) = processes.get(RUNTIME).filter(|app| app.per_mount).cloned() {
            processes.extend(mounts.iter().map(|mount| (mount.process(), app.clone())));
        }
        for name in self.names() {
            if !processes.contains_key(&name) {
                self.leave(&name);
            }
        }
        let place = |name: &str| mounts.iter().find(|mount| mount.process() == name).cloned();
        let specs = processes.into_iter().map(|(name, spec)| (place(&name), name, spec));
        specs
            .filter_map(|(place, name, spec)| self.adopt(name, spec, place.unwrap_or_default()))
            .collect()
    }

    fn adopt(&mut self, name: String, spec: Spec, mount: Mount) -> Option<Awaited> {
        let event = match self.processes.get_mut(&name) {
            None => {
                self.processes.insert(name.clone(), Process::new(spec, mount));
                policy::Event::Start
            }
            Some(process) => {
                let back = std::mem::take(&mut process.leaving);
                let same = process.spec.runs_the_same(&spec);
                process.policy.rules = spec.rules();
                if *process.spec != spec {
                    process.spec = Arc::new(spec);
                }
                match (back, same) {
                    (true, _) => policy::Event::Start,
                    (false, true) => {
                        self.publish(&name);
                        return None;
                    }
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

    fn restored(&mut self, paths: &[PathBuf], deaf: &[String]) -> Vec<Awaited> {
        let mut awaited = Vec::new();
        for name in self.names() {
            let Some(process) = self.processes.get(&name).filter(|process| !process.leaving) else {
                continue;
            };
            let paths = paths.iter().map(PathBuf::as_path);
            // One that hangs does not see files change, and hangs because of any of them.
            let hangs = process.deaf || deaf.contains(&name);
            let impact = match process.policy.state() {
                ProcessState::Ready if hangs => Impact::Restart,
                state => impact(state, &process.spec.directory.0, paths),
            };
            match impact {
                Impact::None => {}
                Impact::Restart => {
                    self.apply(&name, policy::Event::Restart);
                    awaited.extend(self.awaited(&name));
                }
            }
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
            News::Responding(responding) => {
                process.deaf = !responding;
                self.publish(name);
            }
            News::Ended(end) => {
                let outcome = process.ended(end);
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
            Action::GiveUp => {
                process.log.note(&process.late());
                process.end.cancel();
            }
            Action::Start => self.start(name),
        }
        self.publish(name);
    }

    fn start(&mut self, name: &str) {
        let Some(process) = self.processes.get_mut(name) else { return };
        process.prepare();
        let mark = Mark::new(name, self.events.run());
        let run = Run {
            name: name.to_owned(),
            number: process.policy.runs,
            request: request(name, process, &self.workspace, &mark),
            mark,
            probe: probe(process),
            listeners: self.events.clients(),
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
        let entry = Entry {
            info: info.clone(),
            log: Arc::clone(&process.log),
            spec: Arc::clone(&process.spec),
            mount: process.mount.clone(),
            usage: Arc::clone(&process.usage),
        };
        let before = self.view.borrow().processes.get(name).cloned();
        let told = before.as_ref().is_some_and(|before| same(&before.info, &info));
        // What it is to be may change without anything that is told of it.
        if told && before.is_some_and(|before| Arc::ptr_eq(&before.spec, &entry.spec)) {
            return;
        }
        self.show(|view| drop(view.processes.insert(name.to_owned(), entry)));
        if !told {
            self.events.publish(Event::Process { process: info });
        }
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
