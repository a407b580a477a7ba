//! Carrying out what was decided, so that a crash at any instant is finished on the next open.

use std::collections::{BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::apply::{self, Displaced, Journal, Step, Taken};
use crate::checkpoint::{Checkpoint, Remark, What};
use crate::contents::Keep;
use crate::entry::{ContentId, Entry, Kind};
use crate::error::{Context, Error, Result};
use crate::history::{History, Look, now};
use crate::log::{Checkpoints, New, Pending, Restoring, State};
use crate::path::TreePath;
use crate::planted::{Fault, is_planted};
use crate::record::{Known, Seen};
use crate::store::Batch;

/// From so many names on, reading back takes longer than a thread takes to start.
const MANY: usize = 200;

/// Bytes kept free for the record of an operation: some for the database, and some for each name.
const RESERVE: u64 = 256 << 10;
const RESERVE_PER_STEP: u64 = 1 << 10;

impl History {
    /// From here on the tree will be changed, come what may. Gives the contents that came from the
    /// store as well.
    pub(super) fn stage(
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

    pub(super) fn publish(
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
