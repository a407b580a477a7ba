//! Every command the supervisor knows: those that run, and the last ones that ended.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nacre_wire::exec::{CommandInfo, ExecRequest};
use nacre_wire::history::Author;
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};
use tokio::time::{Instant, sleep, timeout};

use super::command::{Command, Life};
use super::oom::OomKills;
use super::output::Reader;
use super::program::Program;
use super::reaper::{Reap, Reaper};
use super::session::Session;
use super::spawn::spawn;
use crate::history::{Activity, Manner, Recorder};
use crate::limits::Limits;
use crate::memory;
use crate::surroundings::Surroundings;
use crate::users::User;

const MOST_RUNNING: usize = 1024;
const MOST_FINISHED: usize = 64;
/// The output that finished commands keep together; the oldest lose theirs first.
const MOST_FINISHED_OUTPUT: usize = 2 * 1024 * 1024;
const REMEMBERED: Duration = Duration::from_secs(3600);
/// So much output makes it worth while to give memory back when all is quiet again.
const BURST: u64 = 4 * 1024 * 1024;
/// For clients to get the exits when everything ends.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// What is started without anybody waiting can wait for a host that is slow to speak.
const SURROUNDINGS: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(2);

/// Where and as whom commands run unless they say otherwise.
#[derive(Debug, Clone)]
pub struct Defaults {
    pub workspace: PathBuf,
    pub user: User,
    pub limits: Limits,
    /// Told of every command before it starts and after it ends.
    pub recorder: Recorder,
    /// In the environment of every command that does not say otherwise.
    pub surroundings: Surroundings,
}

/// The commands of one supervisor.
pub struct Commands {
    defaults: Defaults,
    reaper: Arc<Reaper>,
    oom_kills: OomKills,
    running: Arc<Semaphore>,
    /// Makes identifiers differ from those before a restart.
    birth: u32,
    next: AtomicU64,
    /// Bytes of output since memory was last given back.
    burst: AtomicU64,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    known: HashMap<String, Arc<Command>>,
    /// Oldest first.
    finished: VecDeque<(Instant, String)>,
}

impl Commands {
    /// On the current runtime.
    pub fn start(defaults: Defaults, reap: Reap) -> std::io::Result<Arc<Self>> {
        let nanos = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos());
        Ok(Arc::new(Self {
            defaults,
            reaper: Reaper::start(reap)?,
            oom_kills: OomKills::find(),
            running: Arc::new(Semaphore::new(MOST_RUNNING)),
            birth: nanos >> 4,
            next: AtomicU64::new(1),
            burst: AtomicU64::new(0),
            table: Mutex::default(),
        }))
    }

    pub fn running(&self) -> usize {
        MOST_RUNNING - self.running.available_permits()
    }

    /// Until it is known what every command is to get, but not for long.
    pub(super) async fn surrounded(&self) {
        self.defaults.surroundings.settled(SURROUNDINGS).await;
    }

    /// Runs a command that no client follows. It is started and entered in the table even when
    /// the caller is dropped half-way, so no process is ever without an owner.
    pub(super) async fn run_detached(
        self: &Arc<Self>,
        request: ExecRequest,
    ) -> Result<Arc<Command>, ApiError> {
        let commands = Arc::clone(self);
        let started = tokio::spawn(async move { commands.run(&request).await });
        match started.await {
            Ok(started) => started.map(|(command, _lossless)| command),
            Err(_) => Err(ApiError::new(ErrorKind::Internal, "the supervisor failed to start it")),
        }
    }

    /// Runs a command for a client that reads all of its output. Has to be awaited to the end.
    pub(super) async fn run(
        self: &Arc<Self>,
        request: &ExecRequest,
    ) -> Result<(Arc<Command>, Reader), ApiError> {
        let permit = Arc::clone(&self.running).try_acquire_owned().map_err(no_room)?;
        let program = Program::new(request, &self.defaults)?;
        let name = program.name.clone();
        let id = format!("{:07x}-{}", self.birth, self.next.fetch_add(1, Ordering::Relaxed));
        let activity = self.announce(&id, &program.line, request).await;
        let (program, spawned) = spawn(program, &self.reaper, self.defaults.limits).await?;
        let session = Session { leader: spawned.pid };
        let (command, life) =
            Command::new(id, request, program, spawned, &self.reaper, self.oom_kills).map_err(
                |error| {
                    session.signal_all(&self.reaper, libc::SIGKILL);
                    ApiError::io(format!("cannot start {name}"), &error)
                },
            )?;
        let reader = Reader::lossless(&command.output);
        self.lock().known.insert(command.id().to_owned(), Arc::clone(&command));
        let at_work = (permit, activity);
        tokio::spawn(Arc::clone(self).see_through(Arc::clone(&command), life, at_work));
        Ok((command, reader))
    }

    /// When this returns, whatever changed before is recorded.
    async fn announce(&self, id: &str, line: &str, request: &ExecRequest) -> Activity {
        let command = Author::Command { id: id.to_owned(), line: line.to_owned() };
        let manner = if request.detach { Manner::Background } else { Manner::Foreground };
        let by = std::iter::once(command).chain(request.by.iter().cloned());
        self.defaults.recorder.begin(manner, by.collect()).await
    }

    async fn see_through(
        self: Arc<Self>,
        command: Arc<Command>,
        life: Life,
        at_work: (OwnedSemaphorePermit, Activity),
    ) {
        let ended = || {
            drop(at_work);
            self.retire(command.id().to_owned());
        };
        command.live(life, ended).await;
        let printed = command.output.total();
        let burst = self.burst.fetch_add(printed, Ordering::Relaxed) + printed;
        if burst >= BURST && self.running() == 0 {
            self.burst.store(0, Ordering::Relaxed);
            memory::give_back();
        }
    }

    pub(super) fn get(&self, id: &str) -> Result<Arc<Command>, ApiError> {
        let mut table = self.lock();
        table.tidy();
        table.known.get(id).cloned().ok_or_else(|| {
            ApiError::new(ErrorKind::NotFound, format!("no command \"{id}\""))
                .hint("it may have ended long ago; see the list of commands")
        })
    }

    /// Oldest first.
    pub(super) fn list(&self) -> Vec<CommandInfo> {
        let mut table = self.lock();
        table.tidy();
        let known: Vec<_> = table.known.values().cloned().collect();
        drop(table);
        let mut list: Vec<_> = known.iter().map(|command| command.info()).collect();
        list.sort_by(|a, b| {
            (a.started_at, a.id.len(), &a.id).cmp(&(b.started_at, b.id.len(), &b.id))
        });
        list
    }

    /// Ends a command if it runs, and forgets it.
    pub(super) async fn remove(&self, id: &str) -> Result<(), ApiError> {
        let command = self.get(id)?;
        command.end.cancel();
        command.output.finished().await;
        self.lock().forget(id);
        Ok(())
    }

    /// Takes no more commands, asks every one to end, and waits until they have and their
    /// clients know.
    pub async fn end_all(&self) {
        self.running.close();
        let known: Vec<_> = self.lock().known.values().cloned().collect();
        for command in &known {
            command.end.cancel();
        }
        for command in &known {
            command.output.finished().await;
        }
        let told = async {
            while known.iter().any(|command| command.clients.load(Ordering::Relaxed) > 0) {
                sleep(TICK).await;
            }
        };
        // Not for one that does not read.
        let _ = timeout(LAST_WORDS, told).await;
    }

    fn retire(&self, id: String) {
        let mut table = self.lock();
        table.finished.push_back((Instant::now(), id));
        table.tidy();
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_room(error: TryAcquireError) -> ApiError {
    match error {
        TryAcquireError::NoPermits => {
            ApiError::new(ErrorKind::Unavailable, format!("{MOST_RUNNING} commands run already"))
                .hint("end some of them first")
        }
        TryAcquireError::Closed => ApiError::new(ErrorKind::Unavailable, "the sandbox is stopping"),
    }
}

impl Table {
    fn tidy(&mut self) {
        while let Some((when, id)) = self.finished.front() {
            if self.finished.len() <= MOST_FINISHED && when.elapsed() < REMEMBERED {
                break;
            }
            let id = id.clone();
            self.forget(&id);
        }
        let mut held = 0;
        for (_, id) in self.finished.iter().rev() {
            let Some(command) = self.known.get(id) else { continue };
            held += command.output.footprint();
            if held > MOST_FINISHED_OUTPUT {
                command.output.clear();
            }
        }
    }

    fn forget(&mut self, id: &str) {
        self.finished.retain(|(_, finished)| finished != id);
        if let Some(command) = self.known.remove(id) {
            command.forgotten.cancel();
        }
    }
}
