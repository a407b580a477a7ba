//! The first checkpoint: what was there when recording began.
//!
//! ```text
//! walk ──► read, compress ──► packs ─────────────► synced ──┐
//!               └──────────► rows, as they come ────────────┴─► one transaction
//! ```
//! There is nothing to compare with, so a name is read and its row written while the walk goes on.

use std::collections::{BTreeMap, BTreeSet};

use crate::checkpoint::{Author, Cause, Checkpoint, Counts, Notes, Remark, What};
use crate::delta::Delta;
use crate::entry::Entry;
use crate::error::Result;
use crate::history::{History, now};
use crate::log::{Checkpoints, New, State};
use crate::path::TreePath;
use crate::record::put;
use crate::tree::{self, Captured, Now};

/// What was found so far.
struct Beginning<'a> {
    state: State<'a>,
    counts: Counts,
    /// Files that have other names somewhere, by inode: which are names of one file is known in the
    /// end.
    linked: BTreeMap<u64, Vec<Captured>>,
    unsettled: BTreeSet<TreePath>,
    remarks: Vec<Remark>,
}

impl History {
    /// Records everything that is there. `None` when contents were kept before, which only a general
    /// look asks about.
    pub(crate) fn record_beginning(&mut self, authors: &[Author]) -> Result<Option<Checkpoint>> {
        let Self { root, db, store, exclude, policy, .. } = self;
        let Some(writer) = store.first_writer(db)? else { return Ok(None) };
        let tx = db.transaction()?;
        let mut beginning = Beginning::new(State(&tx));
        let unreadable = tree::take_in(root, exclude, &writer, policy, &mut |block| {
            block.into_iter().try_for_each(|captured| beginning.add(captured))
        })?;
        let batch = writer.finish()?;
        beginning.link()?;
        let Beginning { counts, unsettled, mut remarks, .. } = beginning;
        let unknown = |(path, why)| Remark { path, what: What::Unreadable { why } };
        remarks.extend(unreadable.into_iter().map(unknown));
        // What was there is the present with all that came later taken back.
        let (notes, delta) = (Notes { remarks, ..Notes::default() }, &Delta::default());
        let new = New { cause: Cause::First, authors, label: None, notes, delta, time: now() };
        let mut checkpoint = Checkpoints(&tx).append(new)?;
        Checkpoints(&tx).set_counts(checkpoint.id, counts)?;
        checkpoint.counts = counts;
        // Last: contents are still on their way to the disk.
        batch.record(&tx)?;
        tx.commit()?;
        self.unsettled = unsettled;
        Ok(Some(checkpoint))
    }
}

impl<'a> Beginning<'a> {
    fn new(state: State<'a>) -> Self {
        let (counts, linked) = (Counts::default(), BTreeMap::new());
        Self { state, counts, linked, unsettled: BTreeSet::new(), remarks: Vec::new() }
    }

    fn add(&mut self, captured: Captured) -> Result<()> {
        if captured.unsettled {
            self.unsettled.insert(captured.path.clone());
        }
        if let Some(note) = &captured.note {
            self.remarks.push(Remark { path: captured.path.clone(), what: note.into() });
        }
        let Now::There(entry) = &captured.now else { return Ok(()) };
        self.counts.added += 1;
        if entry.is_file() && captured.links > 1 {
            self.linked.entry(captured.inode).or_default().push(captured);
            return Ok(());
        }
        put(&self.state, &captured, entry)
    }

    /// Names of one file get one number.
    fn link(&mut self) -> Result<()> {
        let mut next = self.state.next_link()?;
        for names in std::mem::take(&mut self.linked).into_values() {
            let link = (names.len() > 1).then_some(next);
            next += u64::from(link.is_some());
            for captured in names {
                let Now::There(entry) = &captured.now else { continue };
                put(&self.state, &captured, &Entry { link, ..entry.clone() })?;
            }
        }
        Ok(())
    }
}
