//! Lives a day and says what is done, for the tests that interrupt it.
//!
//! `day HOME SAID [reopen] [stop] [sync] [FAULT]`: the tree is `HOME/work`, the store `HOME/store`; lines go to `SAID`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "part of the tests")]

#[path = "../tests/day/story.rs"]
mod story;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use nacre_history::planted::{Fault, plant};
use nacre_history::{Checkpoint, Error, History, How, Look, Outcome, Selection};
use story::{afternoon, morning, options};

/// Each can be asked for by its name.
const FAULTS: [Fault; 6] = [
    Fault::PackNotSynced,
    Fault::LogNotSynced,
    Fault::StagingNotSynced,
    Fault::NoJournal,
    Fault::RecordedTooSoon,
    Fault::NameForgotten,
];

struct Day {
    work: PathBuf,
    said: File,
    first: u64,
    /// Has on the disk what was changed before it says so.
    syncs: bool,
    /// Dies of the first refusal.
    stops: bool,
}

impl Day {
    fn say(&mut self, line: &str) {
        // One call, so that a line is there or is not.
        self.said.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn live(&mut self, home: &Path) -> Result<(), Error> {
        let mut history = History::open(&options(home))?;
        self.say("open");
        let lived = self.steps(&mut history);
        if let Err(error) = &lived {
            self.say(&format!("refused {error}"));
            if self.stops {
                std::process::abort();
            }
            // What went wrong has passed: the same process goes on.
            history.checkpoint(Look::Everywhere, &[])?;
            self.say("end");
        }
        Ok(())
    }

    fn steps(&mut self, history: &mut History) -> Result<(), Error> {
        self.first = self.checkpoint(history)?;
        self.change(morning);
        self.checkpoint(history)?;
        self.change(afternoon);
        self.checkpoint(history)?;
        let how = How::default();
        let undone = history.undo(Look::Everywhere, &Selection::Last(1), &how)?;
        self.carried_out(&undone)?;
        let redone = history.redo(Look::Everywhere, &how)?;
        self.carried_out(&redone)?;
        let restored = history.restore(Look::Everywhere, self.first, &how)?;
        self.carried_out(&restored)?;
        self.say("end");
        Ok(())
    }

    fn change(&mut self, change: fn(&Path)) {
        self.say("changing");
        change(&self.work);
        if self.syncs {
            rustix::fs::syncfs(File::open(&self.work).unwrap()).unwrap();
        }
        self.say("changed");
    }

    fn checkpoint(&mut self, history: &mut History) -> Result<u64, Error> {
        let made = history.checkpoint(Look::Everywhere, &[])?.expect("something has changed");
        self.done(&made)
    }

    fn carried_out(&mut self, outcome: &Outcome) -> Result<u64, Error> {
        assert_eq!(outcome.conflicts, []);
        self.done(outcome.checkpoint.as_ref().expect("something was done"))
    }

    /// What was done in part, and says so, is not held to be done.
    fn done(&mut self, made: &Checkpoint) -> Result<u64, Error> {
        if !made.notes.remarks.is_empty() {
            return Err(Error::Invalid(format!("noted {:?}", made.notes.remarks)));
        }
        self.say(&format!("done {}", made.id));
        Ok(made.id)
    }
}

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let (home, said) = (&arguments[0], &arguments[1]);
    let asked = |what: &str| arguments[2..].iter().any(|word| word.as_os_str() == what);
    for fault in FAULTS {
        if asked(&format!("{fault:?}")) {
            plant(fault);
        }
    }
    if asked("reopen") {
        History::open(&options(home)).expect("opens");
        return;
    }
    let said = OpenOptions::new().append(true).create(true).open(said).unwrap();
    let (work, syncs, stops) = (home.join("work"), asked("sync"), asked("stop"));
    let mut day = Day { work, said, first: 0, syncs, stops };
    if let Err(error) = day.live(home) {
        day.say(&format!("refused {error}"));
    }
}
