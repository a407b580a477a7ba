//! From what names shall be to what has to happen to each.

use std::collections::BTreeSet;

use crate::apply::Step;
use crate::entry::{Entry, Kind};
use crate::error::Result;
use crate::history::History;
use crate::log::{Recorded, State};
use crate::record::Names;
use crate::revert::Targets;
use crate::tree::Signature;

impl History {
    /// Names of one file are restored together: those that are not named are brought in, and a
    /// number that now stands for another file is given up.
    pub(super) fn complete_links(&self, targets: &mut Targets) -> Result<()> {
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

    pub(super) fn steps(&self, targets: &Targets, known: &Names) -> Result<Vec<Step>> {
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
