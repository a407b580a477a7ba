//! The library's face: one directory, its store, and what can be done with them.
//!
//! A [`History`] owns its store; nobody else may open it meanwhile. It is synchronous and takes
//! `&mut self` for whatever records or changes, so two who want to undo at once go one after the
//! other, and the second can say which present it meant ([`Error::Stale`]).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use rusqlite::Connection;

use crate::apply::{self, Sweeper};
use crate::checkpoint::{Author, Cause, Checkpoint, CheckpointId, Notes};
use crate::delta::Delta;
use crate::error::{Context, Error, Result};
use crate::log::{self, Checkpoints, New, State};
use crate::path::TreePath;
use crate::store::Store;
use crate::tree::{Exclusions, Policy, Root};

/// What a history is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory whose changes are recorded.
    pub root: PathBuf,
    /// Where they are kept: on the same filesystem and mount, and not below the root.
    pub store: PathBuf,
    /// Names that are neither recorded nor touched: `*` within a name, `**` across names.
    pub exclude: Vec<String>,
    /// Larger files are noted without their content.
    pub largest_file: u64,
    /// How many threads read and write files.
    pub threads: usize,
}

impl Options {
    pub fn new(root: impl Into<PathBuf>, store: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            store: store.into(),
            exclude: Vec::new(),
            largest_file: 4 << 30,
            threads: 2,
        }
    }
}

/// Where to look for changes.
#[derive(Debug, Clone, Copy)]
pub enum Look<'a> {
    /// At every name: the truth.
    Everywhere,
    /// At these names, and at what came or went below them.
    At(&'a BTreeSet<TreePath>),
}

/// The recorded past of a directory.
pub struct History {
    pub(crate) root: Root,
    pub(crate) db: Connection,
    pub(crate) store: Store,
    /// The database's file.
    pub(crate) log: PathBuf,
    pub(crate) staging: PathBuf,
    pub(crate) exclude: Exclusions,
    pub(crate) policy: Policy,
    /// Files that were open for writing when they were read: they are looked at again each time.
    pub(crate) unsettled: BTreeSet<TreePath>,
    pub(crate) sweeper: Sweeper,
    _lock: Lock,
}

impl History {
    /// Opens or begins a history, and finishes a restore that was interrupted. Records nothing yet:
    /// a checkpoint that looks [`Look::Everywhere`] is due.
    pub fn open(options: &Options) -> Result<Self> {
        let store = &options.store;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(store)
            .context(|| format!("create {}", store.display()))?;
        let lock = File::create(store.join("lock")).context(|| "create the lock".to_owned())?;
        lock.try_lock().map_err(|_| Error::Invalid("the history is in use".to_owned()))?;
        let root =
            Root::open(&options.root).context(|| format!("open {}", options.root.display()))?;
        let log = store.join("log.db");
        let db = log::open(&log, Store::SCHEMA)?;
        let packs = Store::open(store, &db)?;
        let mut history = Self {
            root,
            db,
            store: packs,
            log,
            staging: store.join("staging"),
            exclude: Exclusions::new(options.exclude.iter().map(String::as_str))?,
            policy: Policy {
                largest_file: options.largest_file,
                threads: options.threads.max(1),
                xattrs: true,
            },
            unsettled: BTreeSet::new(),
            sweeper: Sweeper::default(),
            _lock: Lock(lock),
        };
        history.finish_interrupted()?;
        apply::clear(&history.staging)?;
        Ok(history)
    }

    /// The newest checkpoint; `None` before the first.
    pub fn latest(&self) -> Result<Option<Checkpoint>> {
        Checkpoints(&self.db).latest()
    }

    pub fn show(&self, id: CheckpointId) -> Result<(Checkpoint, Delta)> {
        let checkpoint = Checkpoints(&self.db).get(id)?;
        let delta = self.delta_of(&checkpoint)?;
        Ok((checkpoint, delta))
    }

    /// Changes what is left out from the next look on; `None` leaves the limit for files as it is.
    pub fn configure(&mut self, exclude: &[String], largest_file: Option<u64>) -> Result<()> {
        self.exclude = Exclusions::new(exclude.iter().map(String::as_str))?;
        if let Some(largest) = largest_file {
            self.policy.largest_file = largest;
        }
        Ok(())
    }

    pub fn checkpoints(&self) -> Result<u64> {
        Checkpoints(&self.db).count()
    }

    /// Names in the recorded present.
    pub fn names(&self) -> Result<u64> {
        State(&self.db).count()
    }

    /// Gives a checkpoint a name that people see; thinning keeps it then.
    pub fn label(&mut self, id: CheckpointId, label: Option<&str>) -> Result<()> {
        Checkpoints(&self.db).set_label(id, label)
    }

    /// Whether files were open for writing when they were last read. They may change without an
    /// event, so a checkpoint is worth while even when nothing is known to have changed.
    pub fn has_unsettled(&self) -> bool {
        !self.unsettled.is_empty()
    }

    /// Begins with an empty tree, whatever is in it by now: for a caller who knows that it was empty.
    /// Does nothing when the history has begun.
    pub fn begin_empty(&mut self) -> Result<()> {
        if self.latest()?.is_some() {
            return Ok(());
        }
        let (notes, delta) = (Notes::default(), &Delta::default());
        let new = New { cause: Cause::First, authors: &[], label: None, notes, delta, time: now() };
        Checkpoints(&self.db).append(new)?;
        Ok(())
    }

    /// Records the present. `None` when nothing has changed.
    pub fn checkpoint(&mut self, look: Look<'_>, authors: &[Author]) -> Result<Option<Checkpoint>> {
        self.record(look, authors)
    }
}

/// Given back by name: a child process between its fork and its exec holds the file as well.
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // The end of the process gives it back too.
        let _ = self.0.unlock();
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
