//! What forms came to, for the page that follows them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nacre_wire::history::Conflict;

use super::act::Act;
use crate::failure::Failure;
use crate::page::nonce;

const KEPT: usize = 32;
const KEPT_FOR: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Note {
    Working(Act),
    Done(String),
    Failed(String),
    /// Nothing was done: this was in the way.
    Conflicts(Act, Vec<Conflict>),
}

/// The newest, for a while. Oldest first.
#[derive(Debug, Default)]
pub(super) struct Notes(Mutex<VecDeque<Kept>>);

#[derive(Debug)]
struct Kept {
    id: String,
    at: Instant,
    note: Note,
}

impl Notes {
    pub(super) fn add(&self, note: Note) -> Result<String, Failure> {
        let id = nonce()?;
        let mut kept = self.lock();
        kept.push_back(Kept { id: id.clone(), at: Instant::now(), note });
        while kept.len() > KEPT {
            kept.pop_front();
        }
        Ok(id)
    }

    pub(super) fn set(&self, id: &str, note: Note) {
        if let Some(kept) = self.lock().iter_mut().find(|kept| kept.id == id) {
            kept.note = note;
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<Note> {
        let mut all = self.lock();
        all.retain(|kept| kept.at.elapsed() < KEPT_FOR);
        all.iter().find(|kept| kept.id == id).map(|kept| kept.note.clone())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_found_by_its_number_and_old_ones_make_room() {
        let notes = Notes::default();
        let first = notes.add(Note::Done("a".into())).unwrap();
        notes.set(&first, Note::Failed("b".into()));
        assert_eq!(notes.get(&first), Some(Note::Failed("b".into())));
        assert_eq!(notes.get("<script>"), None);
        let last = (0..KEPT).map(|_| notes.add(Note::Done("c".into())).unwrap()).last().unwrap();
        assert_eq!(notes.get(&first), None);
        assert!(notes.get(&last).is_some());
        notes.set(&first, Note::Done("nobody waits".into()));
    }
}
