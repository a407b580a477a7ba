//! Undo, redo and restore: deciding, and carrying it out.
//!
//! ```text
//! record the present ──► decide ──► stage ──► journal ──► publish ──► look ──► checkpoint, journal ends
//!                          │                     └─ from here a crash is finished on the next open
//!                          └─ conflicts, dry run: nothing is touched
//! ```

mod perform;
mod plan;
mod present;
mod stacks;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{Author, Cause, Checkpoint, CheckpointId, Notes, Remark};
use crate::delta::{Change, Delta};
use crate::error::{Error, Result};
use crate::history::{History, Look};
use crate::log::{Checkpoints, More, Restoring};
use crate::path::TreePath;
use crate::record::{Known, Names};
use crate::revert::{self, Choices, Conflict, Decided, Targets};

use present::Now;

/// What to take back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// The newest so many that are not undone yet.
    Last(u64),
    Checkpoints(Vec<CheckpointId>),
    /// All that somebody did.
    By(Author),
}

/// How an undo, redo or restore shall go about it.
#[derive(Debug, Clone, Default)]
pub struct How {
    /// Only this name and what is below it.
    pub within: TreePath,
    pub choices: Choices,
    /// Refuse when the newest checkpoint is another one.
    pub expected: Option<CheckpointId>,
    pub authors: Vec<Author>,
    /// Decide, and touch nothing.
    pub dry_run: bool,
}

/// What was decided, and what came of it.
#[derive(Debug)]
pub struct Outcome {
    /// From the present to what it would be, or was before it was carried out.
    pub changes: Delta,
    /// Not empty: nothing was touched.
    pub conflicts: Vec<Conflict>,
    pub remarks: Vec<Remark>,
    /// The checkpoints that are taken back.
    pub of: Vec<CheckpointId>,
    /// What was recorded. `None` when nothing was done or nothing was to be done.
    pub checkpoint: Option<Checkpoint>,
}

impl History {
    /// Takes changes back, and keeps what others did later.
    pub fn undo(&mut self, look: Look<'_>, what: &Selection, how: &How) -> Result<Outcome> {
        self.prepare(look, how)?;
        let of = self.select(what)?;
        let within = how.within.clone();
        self.take_back(of.clone(), Cause::Undo { of, within }, how)
    }

    /// Takes the last undo back that has not been taken back.
    pub fn redo(&mut self, look: Look<'_>, how: &How) -> Result<Outcome> {
        self.prepare(look, how)?;
        let Some(of) = self.stacks()?.redo.last().copied() else {
            return Err(Error::Invalid("there is nothing to redo".to_owned()));
        };
        self.take_back(vec![of], Cause::Redo { of }, how)
    }

    /// Sets everything within a name to what it was after a checkpoint.
    pub fn restore(&mut self, look: Look<'_>, to: CheckpointId, how: &How) -> Result<Outcome> {
        self.prepare(look, how)?;
        Checkpoints(&self.db).get(to)?;
        let mut targets = Targets::new();
        Checkpoints(&self.db).deltas_after(to, |_, delta| {
            for change in delta.into_changes() {
                if change.path.is_within(&how.within) {
                    targets.insert(change.path, change.old);
                }
            }
            Ok(More::Yes)
        })?;
        let now = Now::new(self);
        let decided = revert::set_to(targets, &how.choices, &now)?;
        let known = now.known.into_inner();
        self.carry_out(decided, known, Vec::new(), Cause::Restore { to }, how)
    }

    fn prepare(&mut self, look: Look<'_>, how: &How) -> Result<()> {
        self.record(look, &[])?;
        let latest = Checkpoints(&self.db).latest()?.map_or(0, |latest| latest.id);
        match how.expected {
            Some(expected) if expected != latest => Err(Error::Stale { latest, expected }),
            Some(_) | None => Ok(()),
        }
    }

    /// Checkpoint ids, oldest first.
    fn select(&self, what: &Selection) -> Result<Vec<CheckpointId>> {
        let undoable = self.stacks()?.undo;
        let chosen: Vec<CheckpointId> = match what {
            Selection::Last(count) => {
                let count = usize::try_from(*count).unwrap_or(usize::MAX).min(undoable.len());
                undoable[undoable.len() - count..].to_vec()
            }
            Selection::Checkpoints(ids) => {
                let ids: BTreeSet<CheckpointId> = ids.iter().copied().collect();
                for id in &ids {
                    let checkpoint = Checkpoints(&self.db).get(*id)?;
                    if checkpoint.cause == Cause::First {
                        let why = "the first checkpoint is the beginning and cannot be undone";
                        return Err(Error::Invalid(why.to_owned()));
                    }
                }
                ids.into_iter().collect()
            }
            Selection::By(author) => {
                let mut ids = Vec::new();
                for id in undoable {
                    let checkpoint = Checkpoints(&self.db).get(id)?;
                    if checkpoint.authors.iter().any(|other| other.is(author)) {
                        ids.push(id);
                    }
                }
                ids
            }
        };
        if chosen.is_empty() {
            return Err(Error::Invalid("there is nothing to undo".to_owned()));
        }
        Ok(chosen)
    }

    fn take_back(&mut self, of: Vec<CheckpointId>, cause: Cause, how: &How) -> Result<Outcome> {
        let deltas =
            of.iter().map(|id| Checkpoints(&self.db).delta(*id)).collect::<Result<Vec<Delta>>>()?;
        let now = Now::new(self);
        let decided = revert::take_back(&deltas, &how.within, &how.choices, &now)?;
        let known = now.known.into_inner();
        self.carry_out(decided, known, of, cause, how)
    }

    fn carry_out(
        &mut self,
        mut decided: Decided,
        names: Names,
        of: Vec<CheckpointId>,
        cause: Cause,
        how: &How,
    ) -> Result<Outcome> {
        self.complete_links(&mut decided.targets)?;
        let steps = self.steps(&decided.targets, &names)?;
        let changes = Delta::new(steps.iter().map(|step| Change {
            path: step.path.clone(),
            old: step.now.clone(),
            new: step.target.clone(),
        }));
        let Decided { conflicts, remarks, .. } = decided;
        let mut outcome = Outcome { changes, conflicts, remarks, of, checkpoint: None };
        if how.dry_run || !outcome.conflicts.is_empty() || steps.is_empty() {
            return Ok(outcome);
        }
        let operation =
            format!("{}", Checkpoints(&self.db).latest()?.map_or(0, |last| last.id) + 1);
        let notes = Notes { remarks: outcome.remarks.clone(), ..Notes::default() };
        let restoring = Restoring { operation, cause, authors: how.authors.clone(), notes };
        let (journal, contents) = self.stage(&restoring, &steps)?;
        let known = Known { names, contents };
        let checkpoint = self.publish(restoring, &journal, &known)?;
        outcome.remarks.clone_from(&checkpoint.notes.remarks);
        outcome.checkpoint = Some(checkpoint);
        Ok(outcome)
    }
}
