//! What can be undone, and what redone: read from the causes of all checkpoints.

use std::collections::BTreeSet;

use crate::checkpoint::{Cause, CheckpointId};
use crate::error::Result;
use crate::history::History;
use crate::log::{Checkpoints, Filter, More};

impl History {
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

    pub(super) fn stacks(&self) -> Result<Stacks> {
        let mut causes = Vec::new();
        Checkpoints(&self.db).newest_first(&Filter::default(), |checkpoint| {
            causes.push((checkpoint.id, checkpoint.cause));
            Ok(More::Yes)
        })?;
        causes.reverse();
        Ok(Stacks::of(&causes))
    }
}

/// What can be undone and redone, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stacks {
    pub(super) undo: Vec<CheckpointId>,
    pub(super) redo: Vec<CheckpointId>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::TreePath;

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
