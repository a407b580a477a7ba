//! Undo, redo and restore: deciding, and carrying it out.
//!
//! ```text
//! record the present ──► decide ──► stage ──► journal ──► publish ──► look ──► checkpoint, journal ends
//!                          │                     └─ from here a crash is finished on the next open
//!                          └─ conflicts, dry run: nothing is touched
//! ```

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::apply::{self, Displaced, Journal, Step, Taken};
use crate::checkpoint::{Author, Cause, Checkpoint, CheckpointId, Notes, Remark, What};
use crate::contents::Keep;
use crate::delta::{Change, Delta};
use crate::entry::{ContentId, Entry, Kind};
use crate::error::{Context, Error, Result};
use crate::history::{History, Look, now};
use crate::log::{Checkpoints, Filter, More, New, Pending, Recorded, Restoring, State};
use crate::path::TreePath;
use crate::planted::{Fault, is_planted};
use crate::record::{Known, Names, Seen};
use crate::revert::{self, Choices, Conflict, Decided, Present, Targets};
use crate::store::Batch;
use crate::tree::Signature;

/// From so many names on, reading back takes longer than a thread takes to start.
const MANY: usize = 200;

/// Bytes kept free for the record of an operation: some for the database, and some for each name.
const RESERVE: u64 = 256 << 10;
const RESERVE_PER_STEP: u64 = 1 << 10;

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

    /// From here on the tree will be changed, come what may. Gives the contents that came from the
    /// store as well.
    fn stage(
        &mut self,
        restoring: &Restoring,
        steps: &[Step],
    ) -> Result<(Journal, HashSet<ContentId>)> {
        // What it holds may be the room that is needed.
        self.sweeper.finish();
        let staging = self.staging.join(&restoring.operation);
        let contents = self.store.fetcher(&mut self.db).expecting(contents_of(steps))?;
        let journal = apply::stage(&self.root, &staging, steps, &contents, self.policy.threads)?;
        let contents = contents.found();
        let pending = Pending(&self.db);
        let begun = self.reserve(steps.len()).and_then(|()| match is_planted(Fault::NoJournal) {
            true => Ok(()),
            false => pending.begin(restoring, &journal.encode()),
        });
        if let Err(error) = begun {
            // While it may still be found to have begun, what is staged is needed.
            if pending.never_began().is_ok() {
                // What stays is cleared on the next start.
                let _ = apply::clear(&self.staging);
            }
            return Err(error);
        }
        Ok((journal, contents))
    }

    /// Keeps room for what is written once the tree has been touched: a disk that is full shows here,
    /// where nothing has happened yet.
    fn reserve(&self, steps: usize) -> Result<()> {
        let room = RESERVE + RESERVE_PER_STEP * steps as u64;
        let what = || "keep room to finish in".to_owned();
        let file = std::fs::File::create(self.staging.join("reserve")).context(what)?;
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, room) {
            // Not every filesystem can promise room.
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(error).context(what),
        }
    }

    fn release_reserve(&self) {
        // If it cannot go, what needs the room says so.
        let _ = std::fs::remove_file(self.staging.join("reserve"));
    }

    fn publish(
        &mut self,
        restoring: Restoring,
        journal: &Journal,
        known: &Known,
    ) -> Result<Checkpoint> {
        if let Ok(checkpoint) = self.try_publish(restoring.clone(), journal, known) {
            return Ok(checkpoint);
        }
        // The tree has been touched, so this is not given up for a fault that may have passed.
        self.release_reserve();
        self.try_publish(restoring, journal, known)
            .map_err(|error| Error::Unfinished(Box::new(error)))
    }

    fn try_publish(
        &mut self,
        mut restoring: Restoring,
        journal: &Journal,
        known: &Known,
    ) -> Result<Checkpoint> {
        let staging = self.staging.join(&restoring.operation);
        let threads = self.policy.threads;
        let published = match is_planted(Fault::RecordedTooSoon) {
            true => apply::Outcome { left: Vec::new() },
            false => apply::publish(&self.root, &staging, journal, threads)?,
        };
        self.release_reserve();
        let left = published
            .left
            .into_iter()
            .map(|(path, why)| Remark { path, what: What::LeftAlone { why: why.to_string() } });
        restoring.notes.remarks.extend(left);
        let (mut seen, taken) = self.read_back(&staging, journal, known)?;
        let (batch, remarks) = self.keep_displaced(&taken.changed)?;
        restoring.notes.remarks.extend(remarks);
        restoring.notes.remarks.append(&mut seen.notes.remarks);
        restoring.notes.moved = std::mem::take(&mut seen.notes.moved);
        let Restoring { cause, authors, notes, .. } = restoring;
        let tx = self.db.transaction()?;
        batch.record(&tx)?;
        seen.write(&tx)?;
        let delta = &seen.delta;
        let new = New { cause, authors: &authors, label: None, notes, delta, time: now() };
        let checkpoint = Checkpoints(&tx).append(new)?;
        Pending(&tx).end()?;
        tx.commit()?;
        if is_planted(Fault::RecordedTooSoon) {
            apply::publish(&self.root, &staging, journal, threads)?;
        }
        self.settle(seen);
        self.sweep(staging, &taken);
        Ok(checkpoint)
    }

    /// Read back rather than believed: what is recorded is what is there. It is on disk then. What it
    /// displaced is looked through as well.
    fn read_back(
        &mut self,
        staging: &Path,
        journal: &Journal,
        known: &Known,
    ) -> Result<(Seen, Taken)> {
        let paths: BTreeSet<TreePath> = journal.paths().cloned().collect();
        let rest = || {
            apply::sync(staging)?;
            apply::displaced(staging, journal)
        };
        if self.policy.threads == 1 || paths.len() < MANY {
            let taken = rest()?;
            return Ok((self.see_knowing(Look::At(&paths), known)?, taken));
        }
        std::thread::scope(|scope| {
            let rest = scope.spawn(rest);
            let seen = self.see_knowing(Look::At(&paths), known);
            let panicked = |_| Error::Invalid("the sync panicked".to_owned());
            let taken = rest.join().map_err(panicked)??;
            Ok((seen?, taken))
        })
    }

    /// Should this fail, the next open clears it.
    fn sweep(&mut self, staging: PathBuf, taken: &Taken) {
        if self.policy.threads == 1 {
            let _ = apply::clear(&staging);
            return;
        }
        for name in &taken.linked {
            let _ = std::fs::remove_file(name);
        }
        self.sweeper.begin(staging);
    }

    /// What somebody wrote into a file between the look at it and its replacement.
    fn keep_displaced(&mut self, changed: &[Displaced]) -> Result<(Batch, Vec<Remark>)> {
        let mut recorded = Vec::with_capacity(changed.len());
        for displaced in changed {
            let known = State(&self.db).get(&displaced.path)?;
            recorded.push(known.and_then(|known| match &known.entry.kind {
                Kind::Symlink { target } => Some(ContentId::of(target)),
                Kind::File { content, .. } => content.id(),
                Kind::Directory | Kind::Special(_) => None,
            }));
        }
        let writer = self.store.writer(&mut self.db)?;
        let mut remarks = Vec::new();
        for (displaced, known) in changed.iter().zip(recorded) {
            let id = keep(&writer, displaced)?;
            // A signature that was not to be trusted, on a file that nobody touched.
            if Some(id) != known {
                let what = What::Displaced { content: id.to_string() };
                remarks.push(Remark { path: displaced.path.clone(), what });
            }
        }
        Ok((writer.finish()?, remarks))
    }

    /// After a crash or a fault between the first and the last touch of the tree.
    pub(crate) fn finish_interrupted(&mut self) -> Result<()> {
        let Some((restoring, steps)) = Pending(&self.db).get()? else { return Ok(()) };
        let journal = Journal::decode(&steps).map_err(|_| Error::damaged("the journal"))?;
        self.publish(restoring, &journal, &Known::default())?;
        Ok(())
    }

    /// Names of one file are restored together: those that are not named are brought in, and a
    /// number that now stands for another file is given up.
    fn complete_links(&self, targets: &mut Targets) -> Result<()> {
        let state = State(&self.db);
        let links: BTreeSet<u64> =
            targets.values().flatten().filter_map(|entry| entry.link).collect();
        let mut next = state.next_link()?;
        for link in links {
            let wanted: Vec<Entry> = targets
                .values()
                .flatten()
                .filter(|entry| entry.link == Some(link))
                .cloned()
                .collect();
            let others: Vec<_> = state
                .names_of(link)?
                .into_iter()
                .filter(|name| !targets.contains_key(&name.path))
                .collect();
            let fits =
                others.iter().all(|other| wanted.iter().all(|entry| entry.same_file(&other.entry)));
            if fits {
                targets.extend(others.into_iter().map(|other| (other.path, Some(other.entry))));
                continue;
            }
            let fresh = (wanted.len() > 1).then(|| {
                next += 1;
                next - 1
            });
            for entry in targets.values_mut().flatten().filter(|entry| entry.link == Some(link)) {
                entry.link = fresh;
            }
        }
        Ok(())
    }

    fn steps(&self, targets: &Targets, known: &Names) -> Result<Vec<Step>> {
        let mut steps = Vec::with_capacity(targets.len());
        for (path, target) in targets {
            let recorded = self.recorded(path, known)?;
            let signature = recorded.as_ref().map_or(Signature::UNKNOWN, believed);
            let now = recorded.map(|recorded| recorded.entry);
            steps.push(Step { path: path.clone(), now, signature, target: target.clone() });
        }
        // Names that were only brought in for their links, when there is nothing else to do.
        let idle = |step: &Step| match (&step.now, &step.target) {
            (Some(now), Some(target)) => now.same(target),
            (None, None) => true,
            _ => false,
        };
        if steps.iter().all(idle) {
            steps.clear();
        }
        Ok(steps)
    }

    /// Checkpoints that an undo has taken back, and undos that a redo has.
    pub fn undone(&self) -> Result<BTreeSet<CheckpointId>> {
        let stacks = self.stacks()?;
        let standing: BTreeSet<CheckpointId> =
            stacks.undo.iter().chain(&stacks.redo).copied().collect();
        let mut undone = BTreeSet::new();
        Checkpoints(&self.db).newest_first(&Filter::default(), |checkpoint| {
            let can_be = match checkpoint.cause {
                Cause::First | Cause::Redo { .. } => false,
                Cause::Change | Cause::Restore { .. } | Cause::Undo { .. } => true,
            };
            if can_be && !standing.contains(&checkpoint.id) {
                undone.insert(checkpoint.id);
            }
            Ok(More::Yes)
        })?;
        Ok(undone)
    }

    fn stacks(&self) -> Result<Stacks> {
        let mut causes = Vec::new();
        Checkpoints(&self.db).newest_first(&Filter::default(), |checkpoint| {
            causes.push((checkpoint.id, checkpoint.cause));
            Ok(More::Yes)
        })?;
        causes.reverse();
        Ok(Stacks::of(&causes))
    }
}

/// Of files that come back or change.
fn contents_of(steps: &[Step]) -> Vec<ContentId> {
    let content = |entry: &Option<Entry>| entry.as_ref().and_then(Entry::content);
    let new = steps.iter().filter(|step| content(&step.now) != content(&step.target));
    new.filter_map(|step| content(&step.target)).collect()
}

fn keep(contents: &dyn Keep, displaced: &Displaced) -> Result<ContentId> {
    let step = || format!("read what {} was", displaced.path);
    if displaced.stat.file_type == FileType::Symlink {
        let target = std::fs::read_link(&displaced.at).context(step)?;
        return contents.keep(target.as_os_str().as_bytes());
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(&displaced.at, flags, Mode::empty()).context(step)?;
    let (id, _) = contents.keep_stream(&mut std::fs::File::from(file))?;
    Ok(id)
}

/// A file that was recorded in the tick of its last change has no signature to trust. Its inode, size
/// and time still tell whether it is the one that was read; only its change time cannot.
fn believed(recorded: &Recorded) -> Signature {
    let signature = recorded.signature;
    if signature != (Signature { inode: signature.inode, ..Signature::UNKNOWN }) {
        return signature;
    }
    let size = match &recorded.entry.kind {
        Kind::File { size, .. } => *size,
        Kind::Symlink { target } => target.len() as u64,
        Kind::Directory | Kind::Special(_) => 0,
    };
    Signature { size, mtime: recorded.entry.mtime, ..signature }
}

/// What can be undone and redone, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stacks {
    undo: Vec<CheckpointId>,
    redo: Vec<CheckpointId>,
}

impl Stacks {
    fn of(causes: &[(CheckpointId, Cause)]) -> Self {
        let mut stacks = Self::default();
        for (id, cause) in causes {
            match cause {
                Cause::First => {}
                Cause::Change | Cause::Restore { .. } => stacks.undo.push(*id),
                Cause::Undo { of, within } => {
                    // What was taken back in part can still be taken back as a whole.
                    if within.is_root() {
                        stacks.undo.retain(|undone| !of.contains(undone));
                    }
                    stacks.redo.push(*id);
                }
                Cause::Redo { of } => {
                    stacks.redo.retain(|redone| redone != of);
                    let undone = causes.iter().find(|(id, _)| id == of);
                    if let Some((_, Cause::Undo { of, .. })) = undone {
                        // Some may have been dropped for want of room.
                        let there = |id: &&u64| causes.iter().any(|(known, _)| known == *id);
                        stacks.undo.extend(of.iter().filter(there));
                        stacks.undo.sort_unstable();
                        stacks.undo.dedup();
                    }
                }
            }
        }
        stacks
    }
}

/// The recorded present for [`revert`]. The directories above a name are asked about with each name
/// in them, so what was found is remembered.
struct Now<'a> {
    history: &'a History,
    known: RefCell<Names>,
}

impl<'a> Now<'a> {
    fn new(history: &'a History) -> Self {
        Self { history, known: RefCell::default() }
    }
}

impl Present for Now<'_> {
    fn entry(&self, path: &TreePath) -> Result<Option<Entry>> {
        let entry = |recorded: &Option<Recorded>| recorded.as_ref().map(|r| r.entry.clone());
        if let Some(known) = self.known.borrow().get(path) {
            return Ok(entry(known));
        }
        let recorded = State(&self.history.db).get(path)?;
        let found = entry(&recorded);
        self.known.borrow_mut().insert(path.clone(), recorded);
        Ok(found)
    }

    fn below(&self, path: &TreePath) -> Result<Vec<TreePath>> {
        let mut names = Vec::new();
        State(&self.history.db).each_below(path, |recorded| {
            names.push(recorded.path);
            Ok(())
        })?;
        Ok(names)
    }

    fn last_directory(&self, path: &TreePath) -> Result<Option<Entry>> {
        let mut found = None;
        Checkpoints(&self.history.db).deltas_after(0, |_, delta| {
            let change = delta.into_changes().into_iter().find(|change| change.path == *path);
            found = change.and_then(|change| {
                [change.new, change.old].into_iter().flatten().find(Entry::is_directory)
            });
            Ok(if found.is_some() { More::No } else { More::Yes })
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undo_and_redo_move_between_the_stacks() {
        let undo = |of: &[u64]| Cause::Undo { of: of.to_vec(), within: TreePath::root() };
        let within = TreePath::root().join("a".as_ref());
        let part = |of: &[u64]| Cause::Undo { of: of.to_vec(), within: within.clone() };
        let check = |causes: &[Cause], undo: &[u64], redo: &[u64]| {
            let numbered: Vec<_> = (1..).zip(causes.iter().cloned()).collect();
            let wanted = Stacks { undo: undo.to_vec(), redo: redo.to_vec() };
            assert_eq!(Stacks::of(&numbered), wanted, "{causes:?}");
        };
        check(&[Cause::First], &[], &[]);
        check(&[Cause::First, Cause::Change, Cause::Change], &[2, 3], &[]);
        check(&[Cause::First, Cause::Change, Cause::Change, undo(&[3])], &[2], &[4]);
        check(&[Cause::First, Cause::Change, undo(&[2]), Cause::Redo { of: 3 }], &[2], &[]);
        // A change after an undo does not take the redo away: it may conflict, and that is asked.
        check(&[Cause::First, Cause::Change, undo(&[2]), Cause::Change], &[4], &[3]);
        check(&[Cause::First, Cause::Restore { to: 1 }], &[2], &[]);
        // What was undone in part can be undone as a whole.
        check(&[Cause::First, Cause::Change, part(&[2])], &[2], &[3]);
        check(&[Cause::First, Cause::Change, part(&[2]), Cause::Redo { of: 3 }], &[2], &[]);
        // What was dropped cannot be undone again.
        let left = [(4, undo(&[2, 3])), (5, Cause::Redo { of: 4 })];
        assert_eq!(Stacks::of(&left), Stacks::default());
    }
}
