//! The recorded present, as decisions ask for it.

use std::cell::RefCell;

use crate::entry::Entry;
use crate::error::Result;
use crate::history::History;
use crate::log::{Checkpoints, More, Recorded, State};
use crate::path::TreePath;
use crate::record::Names;
use crate::revert::Present;

/// The recorded present for [`crate::revert`]. The directories above a name are asked about with each name
/// in them, so what was found is remembered.
pub(super) struct Now<'a> {
    history: &'a History,
    pub(super) known: RefCell<Names>,
}

impl<'a> Now<'a> {
    pub(super) fn new(history: &'a History) -> Self {
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
