//! One-shot runs: a task is given to an agent in a sandbox that was made for it alone, and what comes of
//! it is kept when that is gone.
//!
//! [`Runs`] is the table. Each [`Run`] is owned by one task ([`stages`]); others follow its events, which
//! are a file ([`log`]), and ask it to end. [`queue`] decides whose turn it is, [`agents`] how each agent
//! is started, [`outcome`] how it ended; these are pure. What is kept is in [`record`].

mod agents;
mod begin;
mod collect;
pub(crate) mod config;
mod lines;
mod log;
mod outcome;
mod queue;
mod record;
mod run;
mod stages;
mod work;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::{Stream, StreamExt};
use nacre_wire::client;
use nacre_wire::runs::{RunEnd, RunInfo, RunList, RunOutcome, RunState, RunUpdate};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::now_ms;
use crate::provider::Models;
use crate::sandboxes::Sandboxes;
use config::RunsConfig;
use queue::{Queue, Turn};
use record::{Folder, Kept};
use run::{Following, Run, Then};

const DIRECTORY: &str = "runs";
/// How long runs may take to end when the gateway stops.
const FINISH: Duration = Duration::from_secs(10);

/// Cheap to clone; all clones share the table.
#[derive(Clone)]
pub(crate) struct Runs(Arc<Inner>);

struct Inner {
    config: RunsConfig,
    folder: PathBuf,
    sandboxes: Sandboxes,
    models: Arc<Models>,
    line: Line,
    table: Mutex<BTreeMap<String, Arc<Run>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Who stands in the queue, and news of it.
struct Line {
    queue: Mutex<Queue>,
    moved: watch::Sender<u64>,
}

impl Line {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, id: &str) -> Option<Turn> {
        self.queue().turn(id)
    }

    fn moved(&self) -> watch::Receiver<u64> {
        self.moved.subscribe()
    }
}

/// A place in the queue, given up when it is dropped.
struct Place {
    runs: Runs,
    id: String,
}

impl Place {
    fn of(runs: Runs, id: &str) -> Self {
        Self { runs, id: id.to_owned() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let line = &self.runs.0.line;
        line.queue().leave(&self.id);
        line.moved.send_modify(|count| *count += 1);
    }
}

impl Runs {
    /// Runs that were cut off by the end of the process before are concluded; their sandboxes are gone
    /// by now.
    pub(crate) async fn start(
        config: RunsConfig,
        data_dir: &Path,
        sandboxes: Sandboxes,
        models: Arc<Models>,
    ) -> io::Result<Self> {
        let folder = data_dir.join(DIRECTORY);
        let mut table = BTreeMap::new();
        for (folder, mut info) in record::load(&folder)? {
            if !record::is_over(&info) {
                models.end_run(&info.id).await;
                conclude(&folder, &mut info)?;
            }
            table.insert(info.id.clone(), Arc::new(Run::of_the_past(folder, info)));
        }
        let queue = Mutex::new(Queue::new(config.at_once, config.most_waiting));
        let runs = Self(Arc::new(Inner {
            config,
            folder,
            sandboxes,
            models,
            line: Line { queue, moved: watch::channel(0).0 },
            table: Mutex::new(table),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }));
        runs.tidy().await;
        Ok(runs)
    }

    fn config(&self) -> &RunsConfig {
        &self.0.config
    }

    fn sandboxes(&self) -> &Sandboxes {
        &self.0.sandboxes
    }

    fn models(&self) -> &Models {
        &self.0.models
    }

    fn line(&self) -> &Line {
        &self.0.line
    }

    fn stops(&self) -> bool {
        self.0.stop.is_cancelled()
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Run>>> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Result<Arc<Run>, ApiError> {
        self.table().get(id).cloned().ok_or_else(|| {
            let message = format!("there is no run \"{}\"", id.escape_debug());
            ApiError::new(ErrorKind::NotFound, message).hint("nacre runs shows those that are kept")
        })
    }

    pub(crate) fn list(&self) -> RunList {
        let mut runs: Vec<_> = self.table().values().map(|run| run.info()).collect();
        runs.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        RunList { runs, at_once: self.config().at_once as u64 }
    }

    pub(crate) fn info(&self, id: &str) -> Result<RunInfo, ApiError> {
        Ok(self.find(id)?.info())
    }

    /// Returns when its sandbox is gone. One that has ended is forgotten.
    pub(crate) async fn cancel(&self, id: &str) -> Result<(), ApiError> {
        let run = self.find(id)?;
        if self.end(id).await? {
            return Ok(());
        }
        self.table().remove(id);
        let folder = run.folder.clone();
        let _ = tokio::task::spawn_blocking(move || folder.remove()).await;
        Ok(())
    }

    /// The same, but what has ended by itself is kept; says whether there was something to end.
    pub(crate) async fn end(&self, id: &str) -> Result<bool, ApiError> {
        let run = self.find(id)?;
        if run.is_over() {
            return Ok(false);
        }
        run.cancel.cancel();
        run.over.cancelled().await;
        Ok(true)
    }

    /// Takes the files that a run begins with. It waits for its turn when they are there.
    pub(crate) async fn receive(&self, id: &str, body: Body) -> Result<RunInfo, ApiError> {
        let run = self.find(id)?;
        if !run.takes_input() {
            let message = format!("{id} does not wait for files");
            return Err(ApiError::new(ErrorKind::Conflict, message)
                .hint("start a run with \"input\": true, and send them once"));
        }
        let _following = run.follow(Then::Wait);
        let receiving = write_input(run.folder.input(), body, self.config().largest_input);
        let received = match run.cancel.run_until_cancelled(receiving).await {
            Some(received) => received,
            None => Err(ApiError::new(ErrorKind::Unavailable, "the run was cancelled")),
        };
        if let Err(error) = received {
            // Half of them is none.
            run.cancel.cancel();
            return Err(error);
        }
        run.filled.send_replace(true);
        Ok(run.info())
    }

    /// Its events as lines. Whoever drops this does not follow it any more.
    pub(crate) fn follow(
        &self,
        id: &str,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + use<>, ApiError> {
        let run = self.find(id)?;
        let following: Following = run.follow(Then::Cancel);
        let lines = run.log.read().map_err(|error| ApiError::io("the events", &error))?;
        Ok(lines.inspect(move |_| {
            let _ = &following;
        }))
    }

    /// What it changed, as a tar stream.
    pub(crate) fn files(
        &self,
        id: &str,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + use<>, ApiError> {
        self.result(id, Folder::files)
    }

    pub(crate) fn patch(
        &self,
        id: &str,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + use<>, ApiError> {
        self.result(id, Folder::patch)
    }

    fn result(
        &self,
        id: &str,
        which: fn(&Folder) -> PathBuf,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + use<>, ApiError> {
        let run = self.find(id)?;
        if !run.is_over() {
            let message = format!("{id} has not ended");
            return Err(ApiError::new(ErrorKind::Unavailable, message)
                .hint("follow it with nacre runs show, and ask again"));
        }
        let path = which(&run.folder);
        match std::fs::File::open(&path) {
            Ok(file) => Ok(record::stream(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!("{id} ended before anything could be taken out of it");
                Err(ApiError::new(ErrorKind::NotFound, message))
            }
            Err(error) => Err(ApiError::io(path.display(), &error)),
        }
    }

    /// Forgets what is too much of those that have ended.
    async fn tidy(&self) {
        let over: Vec<_> = self.table().values().filter(|run| run.is_over()).cloned().collect();
        let keep = self.config().keep;
        let deciding = tokio::task::spawn_blocking(move || {
            let kept = over.iter().map(|run| {
                let info = run.info();
                Kept {
                    ended_at: info.ended_at.unwrap_or(0),
                    id: info.id,
                    bytes: run.folder.bytes(),
                }
            });
            let ids = record::expired(kept.collect(), &keep, now_ms());
            over.iter()
                .filter(|run| ids.contains(&run.info().id))
                .for_each(|run| run.folder.remove());
            ids
        });
        let forgotten = deciding.await.unwrap_or_default();
        self.table().retain(|id, _| !forgotten.contains(id));
    }

    /// Ends what runs, and removes its sandboxes.
    pub(crate) async fn shut_down(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(FINISH, self.0.tasks.wait()).await.is_err() {
            tracing::warn!("a run did not end in time; the next start removes its sandbox");
        }
    }
}

/// What a sandbox answered, or that it did not.
fn told(error: client::Error) -> ApiError {
    match error {
        client::Error::Api(error) => error,
        other => ApiError::new(ErrorKind::Unavailable, format!("the sandbox: {other}")),
    }
}

/// The gateway ended while it ran.
fn conclude(folder: &Folder, info: &mut RunInfo) -> io::Result<()> {
    info.state = RunState::Ended;
    info.ended_at = Some(now_ms());
    info.outcome = Some(RunOutcome::new(RunEnd::Interrupted, None));
    info.sandbox = None;
    folder.forget_input();
    log::conclude(&folder.events(), RunUpdate::Ended { run: Box::new(info.clone()) })?;
    folder.save(info)
}

async fn write_input(path: PathBuf, body: Body, largest: u64) -> Result<(), ApiError> {
    let shown = path.display().to_string();
    let failed = |error: &io::Error| ApiError::io(&shown, error);
    let mut file = record::private(&path).map_err(|error| failed(&error))?;
    let mut pieces = body.into_data_stream();
    let mut bytes = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| {
            ApiError::new(ErrorKind::InvalidRequest, format!("the files broke off: {error}"))
        })?;
        bytes += piece.len() as u64;
        if bytes > largest {
            let message = format!("a run begins with at most {largest} bytes of files");
            return Err(ApiError::new(ErrorKind::TooLarge, message)
                .hint("leave some out, or raise largest_input_bytes in [runs] of nacre.toml"));
        }
        let written = tokio::task::spawn_blocking(move || file.write_all(&piece).map(|()| file));
        let written = written.await.map_err(io::Error::other).and_then(|written| written);
        file = written.map_err(|error| failed(&error))?;
    }
    Ok(())
}
