//! What is not in `usage.db` yet: two files of lines, written in turns.
//!
//! ```text
//!  a call ── append ──▶ usage.0.log ┐            one is written
//!                       usage.1.log ┘── fold ──▶ usage.db, while the other goes there and is emptied
//! ```
//! A line is in the kernel's hands when [`Journal::append`] returns, so a gateway that is killed loses
//! nothing; what a fold has put into the database is on disk before the lines go. After a crash both files
//! are read again: a line that was folded already changes nothing.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::rows::{Begun, Ended, Refused};

/// Something to write down about the call with this number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) id: i64,
    #[serde(flatten)]
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum What {
    Begun(Begun),
    Ended(Ended),
    /// It was not made.
    Refused(Refused),
    /// So often by now.
    Again {
        times: u64,
    },
}

impl What {
    /// It is about a row that something else makes.
    fn follows(&self) -> bool {
        match self {
            Self::Begun(_) | Self::Refused(_) => false,
            Self::Ended(_) | Self::Again { .. } => true,
        }
    }
}

/// What one half held, to be folded.
#[derive(Debug)]
pub(super) struct Turned {
    pub(super) entries: Vec<Entry>,
    file: Arc<File>,
}

impl Turned {
    /// All of it is in the database. Emptying a file may wait for the disk, so this needs no journal: nobody
    /// writes to this half before the next turn.
    pub(super) fn folded(self) -> io::Result<()> {
        self.file.set_len(0)
    }
}

#[derive(Debug)]
pub(super) struct Journal {
    halves: [Arc<File>; 2],
    written: usize,
    /// What the half that is written holds, in memory.
    entries: Vec<Entry>,
}

impl Journal {
    /// With what an earlier gateway left there: all beginnings before all ends. It stays in the files until
    /// [`Journal::forget_all`].
    pub(super) fn open(database: &Path) -> io::Result<(Self, Vec<Entry>)> {
        let mut found = Vec::new();
        let mut half = |number: usize| {
            let path = place(database, number);
            let mut options = OpenOptions::new();
            let file = options.read(true).append(true).create(true).mode(0o600).open(&path)?;
            read(&file, &path, &mut found)?;
            io::Result::Ok(Arc::new(file))
        };
        let halves = [half(0)?, half(1)?];
        // Two files say nothing about which of them was first.
        found.sort_by_key(|entry| entry.what.follows());
        Ok((Self { halves, written: 0, entries: Vec::new() }, found))
    }

    pub(super) fn forget_all(&mut self) -> io::Result<()> {
        self.halves.iter().try_for_each(|half| half.set_len(0))
    }

    /// Says whether it is the first since the last [`Journal::turn`].
    pub(super) fn append(&mut self, entry: Entry) -> io::Result<bool> {
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        append(&self.halves[self.written], &line)?;
        self.entries.push(entry);
        Ok(self.entries.len() == 1)
    }

    /// What was not folded, when that fails for long.
    pub(super) fn waiting(&self) -> usize {
        self.entries.len()
    }

    /// From now on the other half is written. What it held before is folded, and it is empty.
    pub(super) fn turn(&mut self) -> Turned {
        let file = self.halves[self.written].clone();
        self.written = 1 - self.written;
        Turned { entries: std::mem::take(&mut self.entries), file }
    }
}

fn append(mut file: &File, line: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    if let Err(error) = file.write_all(line) {
        // A part of it may be there, and would spoil the next.
        file.set_len(before)?;
        return Err(error);
    }
    Ok(())
}

fn place(database: &Path, number: usize) -> PathBuf {
    database.with_extension(format!("{number}.log"))
}

/// A power cut may leave half a line, or something else, at the end.
fn read(file: &File, path: &Path, found: &mut Vec<Entry>) -> io::Result<()> {
    for line in BufReader::new(file).split(b'\n') {
        match serde_json::from_slice(&line?) {
            Ok(entry) => found.push(entry),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a line about a model call is lost");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::ledger::rows::Outcome;
    use std::fs;

    fn ended(id: i64) -> Entry {
        Entry { id, what: What::Ended(Ended::of(Outcome::Failed, Some(500), 3)) }
    }

    fn begun(id: i64) -> Entry {
        let begun = super::super::tests::begun("t", "a\nb", 5);
        Entry { id, what: What::Begun(begun) }
    }

    #[test]
    fn what_was_written_is_found_again_until_it_is_folded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("usage.db");
        let (mut journal, found) = Journal::open(&path).unwrap();
        assert_eq!(found, []);
        assert!(journal.append(begun(1)).unwrap(), "the first");
        assert!(!journal.append(begun(2)).unwrap());
        assert_eq!(journal.turn().entries, [begun(1), begun(2)]);
        assert!(journal.append(ended(1)).unwrap());
        drop(journal);
        let (mut journal, found) = Journal::open(&path).unwrap();
        assert_eq!(found, [begun(1), begun(2), ended(1)]);
        journal.forget_all().unwrap();
        journal.append(begun(3)).unwrap();
        let turned = journal.turn();
        journal.append(begun(4)).unwrap();
        turned.folded().unwrap();
        drop(journal);
        assert_eq!(Journal::open(&path).unwrap().1, [begun(4)]);
    }

    #[test]
    fn half_a_line_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("usage.db");
        let (mut journal, _) = Journal::open(&path).unwrap();
        journal.append(begun(1)).unwrap();
        journal.append(begun(2)).unwrap();
        drop(journal);
        let file = place(&path, 0);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() - 20]).unwrap();
        assert_eq!(Journal::open(&path).unwrap().1, [begun(1)]);
        fs::write(&file, [&whole[..], &[0; 100]].concat()).unwrap();
        assert_eq!(Journal::open(&path).unwrap().1, [begun(1), begun(2)]);
    }
}
