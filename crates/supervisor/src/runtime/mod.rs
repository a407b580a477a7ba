//! The runtime: the processes that `/workspace/nacre.toml` names. They may crash; this may not.
//!
//! ```text
//! nacre.toml ─▶ source ─▶ config ─┐
//! requests ─▶ http ───────────────┼─▶ manager ─▶ policy: what to do now
//! undo ─▶ Runtime::affected ──────┘    │   ▲
//!                                      ▼   │ started, ready, ended
//!                                     run: one process, its log and its probe
//! ```
//! The [`manager`] task owns every process and publishes a view of them, which the list, the
//! [`proxy`] to the app's port and whoever waits for a process read. An app with `per_mount` has a
//! process for each place that it is asked for at ([`mount`]), for as long as it is used ([`usage`]).

mod clock;
mod config;
mod http;
mod impact;
mod leftover;
mod log;
mod manager;
mod mount;
mod policy;
mod probe;
mod process;
mod proxy;
mod pulse;
mod run;
mod source;
mod usage;
mod visit;
mod waiting;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use nacre_wire::processes::{ProcessInfo, ProcessList, ProcessState};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub(crate) use config::FILE as CONFIG;
#[cfg(test)]
pub(crate) use config::parse as parse_config;
pub use http::router;
pub(crate) use http::text_log;
pub(crate) use manager::{Entry, Order};
pub(crate) use mount::{Mount, prefix};
pub(crate) use probe::connect;
pub use proxy::front;
pub(crate) use proxy::{Broken, exchange, exchange_over, is_navigation, keep_end_to_end};
pub(crate) use usage::Hold;
pub(crate) use waiting::{escape, in_words};

use self::log::Log;
use self::manager::{Awaited, Manager, Message, View};
use self::source::{Look, Source};
use crate::events::Events;
use crate::exec::Commands;
use crate::users::User;

const INBOX: usize = 64;
/// How long an instance of the app stays that nobody uses.
const IDLE: Duration = Duration::from_secs(10 * 60);
/// How long a request at the very start waits to learn whose the pages are.
const FIRST_READING: Duration = Duration::from_secs(1);
/// How long an app is waited for that should answer, when files were put back.
const HEARING: Duration = Duration::from_secs(2);

/// A handle to the runtime of this sandbox. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

struct Inner {
    source: Arc<Source>,
    manager: mpsc::Sender<Message>,
    view: watch::Receiver<Arc<View>>,
    closed: CancellationToken,
}

/// Who owns the pages.
#[derive(Debug)]
pub(crate) enum Pages {
    App(Box<App>),
    /// The built copy, because `nacre.toml` says so.
    Built,
    /// There is no app.
    Nobody,
    /// `nacre.toml` was never in order in this life.
    Unknown,
}

/// One instance of the app that owns the pages.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) entry: Entry,
    pub(crate) port: u16,
}

/// What became of a process that was to come up again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    pub name: String,
    pub state: ProcessState,
    /// Why it is not ready.
    pub reason: Option<String>,
}

impl Settled {
    pub fn is_ready(&self) -> bool {
        self.state == ProcessState::Ready
    }
}

impl Runtime {
    /// Reads the configuration and starts what it names, on the current tokio runtime.
    pub fn start(commands: Arc<Commands>, events: Events, workspace: &Path, user: User) -> Self {
        Self::start_with(commands, events, workspace, user, IDLE)
    }

    fn start_with(
        commands: Arc<Commands>,
        events: Events,
        workspace: &Path,
        user: User,
        idle: Duration,
    ) -> Self {
        let (manager, inbox) = mpsc::channel(INBOX);
        let (view, seen) = watch::channel(Arc::new(View::default()));
        let closed = CancellationToken::new();
        let task = Manager {
            commands,
            events,
            workspace: workspace.to_owned(),
            inbox,
            address: manager.clone(),
            view,
            closed: closed.clone(),
            idle,
            epoch: Instant::now(),
            processes: BTreeMap::new(),
        };
        tokio::spawn(task.work());
        let source = Source::new(workspace, user);
        let inner = Inner { source, manager, view: seen, closed };
        let runtime = Self { inner: Arc::new(inner) };
        tokio::spawn(runtime.clone().keep_reading());
        runtime
    }

    /// Starts nothing any more; what runs is for [`Commands`] to end.
    pub fn close(&self) {
        self.inner.closed.cancel();
    }

    /// To be told of files that an undo or a restore put back; paths are relative to the
    /// workspace. Reads `nacre.toml` again if it is among them, restarts what has to be, and
    /// resolves when all of that is up again or known not to be. The restarts happen whether or
    /// not anybody awaits the result.
    ///
    /// A process that is starting, backing off, crash-looping or failed is restarted for any path in
    /// its directory. One that is ready only for a `package.json`, a lock file or something in
    /// `node_modules` there: other files it watches itself. Of `nacre.toml`, what changed counts.
    /// One that is ready and does not answer is restarted for anything.
    pub fn affected(
        &self,
        paths: &[PathBuf],
    ) -> impl Future<Output = Vec<Settled>> + Send + 'static + use<> {
        let runtime = self.clone();
        let paths = paths.to_owned();
        let work = tokio::spawn(async move {
            let mut awaited = Vec::new();
            if paths.iter().any(|path| path == Path::new(config::FILE)) {
                awaited.extend(runtime.reread(Look::Closely).await);
            }
            let deaf = runtime.deaf().await;
            let (reply, restarted) = oneshot::channel();
            runtime.send(Message::Restored { paths, deaf, reply }).await;
            // But for those that the file restarted already.
            for new in restarted.await.unwrap_or_default() {
                if !awaited.iter().any(|known: &Awaited| known.name == new.name) {
                    awaited.push(new);
                }
            }
            let mut settled = Vec::new();
            for awaited in awaited {
                settled.push(runtime.settled(awaited).await);
            }
            settled
        });
        async move { work.await.unwrap_or_default() }
    }

    /// Those that are ready and do not answer: while nobody listens they are not asked otherwise.
    async fn deaf(&self) -> Vec<String> {
        let view = self.view();
        let asked = view.processes.values().filter_map(|entry| {
            let (port, ready) = (entry.info.port?, entry.spec.ready.as_ref()?);
            let (ready, name) = (format!("{}{}", entry.mount.prefix(), ready.0), &entry.info.name);
            let is_sound =
                entry.info.state == ProcessState::Ready && entry.info.responding.is_none();
            let asked = async move {
                (!probe::responds(port, &ready, HEARING).await).then(|| name.clone())
            };
            is_sound.then_some(asked)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    pub(crate) async fn list(&self) -> ProcessList {
        self.reread(Look::OnlyIfNew).await;
        let view = self.view();
        ProcessList {
            processes: view.processes.values().map(current).collect(),
            config_error: view.config_error.clone(),
        }
    }

    /// A stop returns when the process has ended.
    pub(crate) async fn order(&self, name: &str, order: Order) -> Result<ProcessInfo, ApiError> {
        self.reread(Look::OnlyIfNew).await;
        let (reply, answer) = oneshot::channel();
        self.send(Message::Order { name: name.to_owned(), order, reply }).await;
        let info = answer.await.map_err(|_| stopping())??;
        if order != Order::Stop || info.state == ProcessState::Stopped {
            return Ok(info);
        }
        let mut seen = self.inner.view.clone();
        let view = seen.wait_for(|view| {
            view.processes.get(name).is_none_or(|now| now.info.state != ProcessState::Stopping)
        });
        let view = view.await.map_err(|_| stopping())?.clone();
        view.processes.get(name).map(current).ok_or_else(|| manager::unknown(name))
    }

    pub(crate) async fn log(&self, name: &str) -> Result<Arc<Log>, ApiError> {
        self.reread(Look::OnlyIfNew).await;
        let view = self.view();
        let entry = view.processes.get(name).ok_or_else(|| manager::unknown(name))?;
        Ok(Arc::clone(&entry.log))
    }

    fn view(&self) -> Arc<View> {
        self.inner.view.borrow().clone()
    }

    /// Who owns the pages of this sandbox where it is mounted.
    pub(crate) async fn pages(&self, mount: &Mount) -> Result<Pages, ApiError> {
        let mut seen = self.inner.view.clone();
        if !seen.borrow().is_read {
            // One that comes this early would otherwise get a page for want of another.
            let _ = timeout(FIRST_READING, seen.wait_for(|view| view.is_read)).await;
        }
        let root = Mount::default();
        let mounted = |app: &App| app.entry.spec.per_mount && !mount.is_root();
        match self.owner(&root) {
            Pages::App(app) if mounted(&app) => {}
            pages => return Ok(pages),
        }
        match self.owner(mount) {
            Pages::App(app) if app.entry.info.state != ProcessState::Stopping => {
                return Ok(Pages::App(app));
            }
            _ => {}
        }
        let (reply, answer) = oneshot::channel();
        self.send(Message::Mount { mount: mount.clone(), reply }).await;
        answer.await.map_err(|_| stopping())??;
        Ok(self.owner(mount))
    }

    fn owner(&self, mount: &Mount) -> Pages {
        let view = self.inner.view.borrow();
        let entry = view.processes.get(&mount.process());
        match entry.and_then(|entry| Some((entry, entry.info.port?))) {
            Some((entry, port)) => Pages::App(Box::new(App { entry: entry.clone(), port })),
            None if view.built => Pages::Built,
            None if view.config_error.is_some() => Pages::Unknown,
            None => Pages::Nobody,
        }
    }

    async fn keep_reading(self) {
        let source = Arc::clone(&self.inner.source);
        let mut watch = source.watch();
        self.reread(Look::Closely).await;
        loop {
            tokio::select! {
                () = self.inner.closed.cancelled() => return,
                () = source.changed(&mut watch) => {}
            }
            self.reread(Look::Closely).await;
        }
    }

    /// Has the manager adopt the file as it is now.
    async fn reread(&self, how: Look) -> Vec<Awaited> {
        // Held until the manager has it, so that an older reading never comes after a newer one.
        let mut last = self.inner.source.last.lock().await;
        let Some(read) = self.inner.source.look(&mut last, how).await else { return Vec::new() };
        let (done, adopted) = oneshot::channel();
        self.send(Message::Configured { read, done }).await;
        adopted.await.unwrap_or_default()
    }

    async fn settled(&self, Awaited { name, run }: Awaited) -> Settled {
        let mut seen = self.inner.view.clone();
        let view = seen.wait_for(|view| match view.processes.get(&name) {
            None => true,
            Some(Entry { info, .. }) => info.run >= run && is_settled(info.state),
        });
        let entry = match view.await {
            Ok(view) => view.processes.get(&name).cloned(),
            Err(_) => None,
        };
        match entry {
            Some(Entry { info, .. }) => Settled { name, state: info.state, reason: info.reason },
            None => {
                let reason = Some(format!("it is no longer in {}", config::FILE));
                Settled { name, state: ProcessState::Stopped, reason }
            }
        }
    }

    async fn send(&self, message: Message) {
        // Without a manager the reply is dropped with the message, which is an answer too.
        let _ = self.inner.manager.send(message).await;
    }
}

fn is_settled(state: ProcessState) -> bool {
    match state {
        ProcessState::Starting | ProcessState::Stopping => false,
        ProcessState::Stopped
        | ProcessState::Ready
        | ProcessState::BackingOff
        | ProcessState::CrashLooping
        | ProcessState::Failed
        | ProcessState::Unknown => true,
    }
}

fn current(entry: &Entry) -> ProcessInfo {
    ProcessInfo { log_seq: entry.log.last(), ..entry.info.clone() }
}

fn stopping() -> ApiError {
    ApiError::new(ErrorKind::Unavailable, "the sandbox is stopping")
}
