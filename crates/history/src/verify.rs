//! Whether what is kept can still be read, and what is hit when it cannot.

use std::collections::{HashMap, HashSet};

use crate::checkpoint::CheckpointId;
use crate::delta::Change;
use crate::entry::ContentId;
use crate::error::Result;
use crate::history::History;
use crate::log::{Checkpoints, More, State};
use crate::path::TreePath;

/// A content that is lost, and where it was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub content: ContentId,
    pub why: String,
    /// Names, and the checkpoint that recorded them; the present has the newest.
    pub uses: Vec<(TreePath, CheckpointId)>,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// Contents that something refers to.
    pub contents: u64,
    pub damaged: Vec<Damage>,
}

impl History {
    /// Reads everything. `progress` gets the bytes done and the bytes in all.
    pub fn verify(&mut self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        let broken = self.store.verify(&mut self.db, progress)?;
        let mut why: HashMap<ContentId, String> =
            broken.into_iter().map(|broken| (broken.id, broken.why)).collect();
        let mut uses: HashMap<ContentId, Vec<(TreePath, CheckpointId)>> = HashMap::new();
        let mut note = |id: ContentId, path: &TreePath, checkpoint| -> Result<()> {
            if !uses.contains_key(&id) && !self.store.has(&self.db, &id)? {
                why.entry(id).or_insert_with(|| "it is not in the store".to_owned());
            }
            uses.entry(id).or_default().push((path.clone(), checkpoint));
            Ok(())
        };
        // What was there before: of some the checkpoint that recorded it comes later in this loop.
        let mut before: HashSet<(ContentId, TreePath)> = HashSet::new();
        Checkpoints(&self.db).deltas_after(0, |checkpoint, delta| {
            for Change { path, old, new } in delta.into_changes() {
                if let Some(id) = new.as_ref().and_then(|entry| entry.content()) {
                    before.remove(&(id, path.clone()));
                    note(id, &path, checkpoint)?;
                }
                before.extend(old.and_then(|entry| entry.content()).map(|id| (id, path)));
            }
            Ok(More::Yes)
        })?;
        // What was recorded by the oldest checkpoint that is left, or before it.
        let oldest = Checkpoints(&self.db).oldest()?.map_or(0, |oldest| oldest.id);
        State(&self.db).each_below(&TreePath::root(), |recorded| {
            match recorded.entry.content() {
                Some(id) => note(id, &recorded.path, oldest),
                None => Ok(()),
            }
        })?;
        for (id, path) in before {
            note(id, &path, oldest)?;
        }
        let contents = uses.len() as u64;
        let mut damaged: Vec<Damage> = why
            .into_iter()
            .map(|(content, why)| {
                let mut uses = uses.remove(&content).unwrap_or_default();
                uses.sort();
                uses.dedup_by(|one, other| one.0 == other.0);
                Damage { content, why, uses }
            })
            .collect();
        damaged.sort_by_key(|damage| damage.content);
        Ok(Verification { contents, damaged })
    }
}
