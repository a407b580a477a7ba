//! Our side of the comparison: the library as the supervisor uses it, every result checked.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nacre_history::{History, How, Look, Options, Selection, TreePath};

use super::tree::{Edit, Tree};
use crate::ground::Ground;

pub(super) struct Ours {
    pub(super) tree: Tree,
    store: PathBuf,
    /// Closed while it is opened again.
    history: Option<History>,
}

impl Ours {
    /// With the tree at `home/tree`.
    pub(super) fn new(home: &Path, tree: Tree) -> Self {
        Self { tree, store: home.join("store"), history: None }
    }

    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    fn history(&mut self) -> Result<&mut History> {
        self.history.as_mut().context("the history is not open")
    }

    /// Begins anew: an earlier store is removed, outside of the time.
    pub(super) fn first(&mut self, ground: &Ground) -> Result<Duration> {
        self.history = None;
        if self.store.exists() {
            std::fs::remove_dir_all(&self.store)?;
        }
        ground.settle()?;
        let (took, found) = self.open()?;
        ensure!(found, "the first snapshot found nothing");
        Ok(took)
    }

    /// What the supervisor does in idle time, without the pauses that it makes.
    pub(super) fn tidy(&mut self) -> Result<Duration> {
        let history = self.history()?;
        let began = Instant::now();
        while history.tidy(&mut || true)? {}
        Ok(began.elapsed())
    }

    /// From closed to ready, with nothing changed meanwhile.
    pub(super) fn reopen(&mut self) -> Result<Duration> {
        self.history = None;
        let (took, found) = self.open()?;
        ensure!(!found, "opening again found changes where there are none");
        Ok(took)
    }

    /// Says whether there was anything to record.
    fn open(&mut self) -> Result<(Duration, bool)> {
        let options = Options::new(&self.tree.root, &self.store);
        let began = Instant::now();
        let mut history = History::open(&options)?;
        let checkpoint = history.checkpoint(Look::Everywhere, &[])?;
        let took = began.elapsed();
        self.history = Some(history);
        Ok((took, checkpoint.is_some()))
    }

    /// A change of `count` files: recording it from the list of what was edited, and taking it back.
    pub(super) fn there_and_back(
        &mut self,
        ground: &Ground,
        count: usize,
        round: usize,
    ) -> Result<(Duration, Duration)> {
        let Self { tree, history, .. } = self;
        let history = history.as_mut().context("the history is not open")?;
        ground.settle()?;
        let edit = Edit::make(tree, count, round)?;
        let recorded = record(history, &edit)?;
        ground.settle()?;
        let undone = undo(history, edit.paths().count())?;
        ensure!(edit.is_undone()?, "undo did not bring back what was there");
        Ok((recorded, undone))
    }

    /// Looks at every name; there is nothing to find.
    pub(super) fn scan(&mut self) -> Result<Duration> {
        let history = self.history()?;
        let began = Instant::now();
        let checkpoint = history.checkpoint(Look::Everywhere, &[])?;
        let took = began.elapsed();
        ensure!(checkpoint.is_none(), "a scan found changes where there are none");
        Ok(took)
    }
}

fn record(history: &mut History, edit: &Edit<'_>) -> Result<Duration> {
    let dirty: BTreeSet<TreePath> = edit.paths().filter_map(TreePath::parse).collect();
    let began = Instant::now();
    let checkpoint = history.checkpoint(Look::At(&dirty), &[])?;
    let took = began.elapsed();
    let changed = checkpoint.map_or(0, |checkpoint| checkpoint.counts.changed);
    ensure!(changed == dirty.len() as u64, "{changed} of {} changes were recorded", dirty.len());
    Ok(took)
}

/// Right after a checkpoint nothing else is dirty.
fn undo(history: &mut History, count: usize) -> Result<Duration> {
    let dirty = BTreeSet::new();
    let began = Instant::now();
    let outcome = history.undo(Look::At(&dirty), &Selection::Last(1), &How::default())?;
    let took = began.elapsed();
    ensure!(outcome.conflicts.is_empty(), "undo met {:?}", outcome.conflicts);
    let changed = outcome.checkpoint.map_or(0, |checkpoint| checkpoint.counts.changed);
    ensure!(changed == count as u64, "undo changed {changed} of {count} files");
    Ok(took)
}
