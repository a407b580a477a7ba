//! `nacre-bench soak history`: one history lives through random changes, checkpoints, undos,
//! restores, restarts and a quota that is too small, and states that were remembered are compared
//! byte for byte with what a restore makes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use nacre_history::{
    CheckpointId, Choice, Choices, Error, History, How, Look, Options as Opened, Retention,
    Selection, TreePath,
};

use super::random::Random;
use super::tree::Tree;
use super::vandal::{self, State};
use crate::census;
use crate::ground::Ground;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Options {
    /// How long to go on
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Files at the start
    #[arg(long, default_value_t = 3000)]
    files: usize,
    /// What the changes depend on; printed, so that a failure can be had again
    #[arg(long)]
    seed: Option<u64>,
}

/// States to compare with. More would not find more, and take memory.
const REMEMBERED: usize = 8;
const PROGRESS: Duration = Duration::from_secs(10);
const MIB: u64 = 1 << 20;
const GROUND: u64 = 4 << 30;
/// Allocators and SQLite keep some of what they were given.
const MEMORY_SLACK: u64 = 48 * MIB;
/// Of a history besides its packs: the root, the lock, the database and its log.
const OPEN_FILES: usize = 8;
/// Of the present's size: room for some past and not for all of it.
const QUOTA: f64 = 1.5;

#[derive(Debug, Default)]
struct Counts {
    checkpoints: u64,
    undos: u64,
    redos: u64,
    restores: u64,
    restarts: u64,
    maintained: u64,
    dropped: u64,
    compared: u64,
}

struct Soak {
    root: PathBuf,
    opened: Opened,
    history: Option<History>,
    random: Random,
    /// Changed since the last checkpoint.
    dirty: BTreeSet<TreePath>,
    remembered: BTreeMap<CheckpointId, State>,
    retention: Retention,
    counts: Counts,
}

/// What this process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// Open files while the history is closed.
    files: usize,
    /// How many more there are when it is open, besides one for each pack.
    open: usize,
    memory: u64,
}

/// Fails on the first state that is not what it was, and when more is held at the end than after
/// the first third.
pub(crate) fn run(options: &Options) -> Result<()> {
    let ground = Ground::new(GROUND, &mut Vec::new())?;
    let home = ground.path();
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = options.seed.unwrap_or(clock.as_secs());
    println!("seed {seed}, {} files, {} minutes", options.files, options.minutes);
    let mut soak = Soak::begin(home, options.files, seed)?;
    let whole = Duration::from_secs_f64(options.minutes * 60.0);
    let began = Instant::now();
    let mut said = Instant::now();
    let mut before = None;
    let mut turns = 0_u64;
    while began.elapsed() < whole {
        soak.turn().with_context(|| format!("turn {turns} of seed {seed}"))?;
        turns += 1;
        if before.is_none() && began.elapsed() > whole / 3 {
            before = Some(soak.held()?);
        }
        if said.elapsed() > PROGRESS {
            println!("{:>5.0} s, {turns} turns, {:?}", began.elapsed().as_secs_f64(), soak.counts);
            said = Instant::now();
        }
    }
    soak.compare_all().context("the states at the end")?;
    let after = soak.held()?;
    let before = before.unwrap_or(after);
    println!("{turns} turns, {:?}", soak.counts);
    println!("open files, history closed: {} -> {}", before.files, after.files);
    println!("open files of a history besides packs: {} -> {}", before.open, after.open);
    println!("memory {} -> {} MiB", before.memory / MIB, after.memory / MIB);
    ensure!(after.files <= before.files, "open files grew");
    ensure!(after.open <= OPEN_FILES, "a history holds {} files besides packs", after.open);
    ensure!(after.memory <= before.memory + MEMORY_SLACK, "memory grew");
    Ok(())
}

impl Soak {
    fn begin(home: &Path, files: usize, seed: u64) -> Result<Self> {
        let root = home.join("tree");
        let tree = Tree::plant(&root, files)?;
        let opened = Opened::new(&root, home.join("store"));
        let quota = (tree.bytes as f64 * QUOTA) as u64;
        let retention = Retention { quota, hourly_after: 0, daily_after: i64::MAX };
        let mut history = History::open(&opened)?;
        history.checkpoint(Look::Everywhere, &[])?;
        Ok(Self {
            root,
            opened,
            history: Some(history),
            random: Random::new(seed),
            dirty: BTreeSet::new(),
            remembered: BTreeMap::new(),
            retention,
            counts: Counts::default(),
        })
    }

    fn history(&mut self) -> Result<&mut History> {
        self.history.as_mut().context("the history is not open")
    }

    fn held(&mut self) -> Result<Held> {
        let packs = std::fs::read_dir(self.opened.store.join("packs"))?.count();
        let open = census::open_fds();
        let memory = census::memory(std::process::id()).unwrap_or_default().rss;
        self.history = None;
        let files = census::open_fds();
        self.history = Some(History::open(&self.opened)?);
        Ok(Held { files, open: open.saturating_sub(files + packs), memory })
    }

    fn turn(&mut self) -> Result<()> {
        match self.random.below(100) {
            0..=54 => self.change_and_record(),
            55..=69 => self.undo_and_redo(),
            70..=79 => self.undo_some(),
            80..=89 => self.restore(),
            90..=94 => self.restart(),
            _ => self.maintain(),
        }
    }

    fn change_and_record(&mut self) -> Result<()> {
        for _ in 0..1 + self.random.below(20) {
            self.dirty.extend(vandal::change(&self.root, &mut self.random)?);
        }
        // Now and then the next turn finds changes that nobody has recorded.
        if self.random.chance(0.9) { self.record() } else { Ok(()) }
    }

    fn record(&mut self) -> Result<()> {
        let dirty = std::mem::take(&mut self.dirty);
        let everywhere = self.random.chance(0.1);
        let look = if everywhere { Look::Everywhere } else { Look::At(&dirty) };
        let history = self.history.as_mut().context("the history is not open")?;
        let Some(checkpoint) = history.checkpoint(look, &[])? else { return Ok(()) };
        self.counts.checkpoints += 1;
        if self.random.chance(0.1) {
            self.remember(checkpoint.id)?;
        }
        Ok(())
    }

    fn remember(&mut self, id: CheckpointId) -> Result<()> {
        if self.remembered.len() == REMEMBERED {
            let ids: Vec<CheckpointId> = self.remembered.keys().copied().collect();
            let forgotten = *self.random.pick(&ids);
            self.remembered.remove(&forgotten);
        }
        self.remembered.insert(id, vandal::state(&self.root)?);
        Ok(())
    }

    /// There and back is where one was.
    fn undo_and_redo(&mut self) -> Result<()> {
        self.record()?;
        self.nothing_left()?;
        let before = vandal::state(&self.root)?;
        let count = 1 + self.random.below(4) as u64;
        if !self.undo(count)? {
            return Ok(());
        }
        let nothing = BTreeSet::new();
        let outcome = self.history()?.redo(Look::At(&nothing), &how());
        self.counts.redos += 1;
        outcome.context("redo")?;
        self.same(&before, "undo and redo")
    }

    /// What a list of names led to is the whole truth.
    fn nothing_left(&mut self) -> Result<()> {
        let history = self.history()?;
        if let Some(missed) = history.checkpoint(Look::Everywhere, &[])? {
            let (_, delta) = history.show(missed.id)?;
            bail!(
                "a checkpoint has missed {:?}",
                delta.changes().iter().take(3).collect::<Vec<_>>()
            );
        }
        Ok(())
    }

    fn undo_some(&mut self) -> Result<()> {
        let count = 1 + self.random.below(6) as u64;
        self.record()?;
        self.undo(count).map(|_| ())
    }

    /// Says whether anything was taken back.
    fn undo(&mut self, count: u64) -> Result<bool> {
        let nothing = BTreeSet::new();
        match self.history()?.undo(Look::At(&nothing), &Selection::Last(count), &how()) {
            Ok(outcome) => {
                self.counts.undos += 1;
                Ok(outcome.checkpoint.is_some())
            }
            Err(Error::Invalid(_)) => Ok(false),
            Err(error) => Err(error).context("undo"),
        }
    }

    fn restore(&mut self) -> Result<()> {
        let ids: Vec<CheckpointId> = self.remembered.keys().copied().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let id = *self.random.pick(&ids);
        self.restore_to(id)
    }

    fn restore_to(&mut self, id: CheckpointId) -> Result<()> {
        let dirty = std::mem::take(&mut self.dirty);
        let outcome = self.history()?.restore(Look::At(&dirty), id, &how());
        if matches!(outcome, Err(Error::NoCheckpoint(_))) {
            // The quota has taken it. What was dirty is recorded all the same.
            self.remembered.remove(&id);
            return Ok(());
        }
        let outcome = outcome.context("restore")?;
        ensure!(outcome.conflicts.is_empty(), "restore met {:?}", outcome.conflicts);
        self.counts.restores += 1;
        let Some(state) = self.remembered.remove(&id) else { return Ok(()) };
        self.same(&state, &format!("restore to {id}"))?;
        self.remembered.insert(id, state);
        Ok(())
    }

    fn same(&mut self, wanted: &State, after: &str) -> Result<()> {
        self.counts.compared += 1;
        let found = vandal::state(&self.root)?;
        let wrong: Vec<_> = vandal::differences(wanted, &found).take(5).collect();
        ensure!(wrong.is_empty(), "{after} left another state: {}", wrong.join("; "));
        Ok(())
    }

    /// Nothing is lost, and nothing is found that was recorded already.
    fn restart(&mut self) -> Result<()> {
        self.record()?;
        let latest = self.history()?.latest()?.map(|checkpoint| checkpoint.id);
        self.history = None;
        let mut history = History::open(&self.opened)?;
        let found = history.checkpoint(Look::Everywhere, &[])?;
        let names = found.as_ref().map(|checkpoint| history.show(checkpoint.id)).transpose()?;
        ensure!(found.is_none(), "a restart found changes: {names:?}");
        ensure!(
            history.latest()?.map(|checkpoint| checkpoint.id) == latest,
            "a checkpoint is lost"
        );
        self.history = Some(history);
        self.counts.restarts += 1;
        Ok(())
    }

    fn maintain(&mut self) -> Result<()> {
        let retention = self.retention;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis())?;
        let done = self.history()?.maintain(&retention, now)?;
        let taken = self.history()?.usage(0)?.disk_bytes;
        ensure!(done.over_quota || taken <= retention.quota, "{taken} bytes are over the quota");
        self.counts.maintained += 1;
        self.counts.dropped += done.dropped + done.merged;
        Ok(())
    }

    fn compare_all(&mut self) -> Result<()> {
        let ids: Vec<CheckpointId> = self.remembered.keys().copied().collect();
        ids.into_iter().try_for_each(|id| self.restore_to(id))
    }
}

/// A conflict is settled for the undo: what it overwrites is in the history.
fn how() -> How {
    let choices = Choices { otherwise: Choice::Overwrite, ..Choices::default() };
    How { choices, ..How::default() }
}
