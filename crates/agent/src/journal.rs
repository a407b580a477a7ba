//! Where events are kept: one line of JSON each, only ever appended.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::events::{Event, ToolStatus, Update};

/// Takes events in order.
pub trait Journal: Send + Sync {
    /// It is kept when this returns, and may be acted on.
    fn keep(&mut self, update: Update) -> io::Result<Event>;
}

/// A journal in a file that outlives its writer, whenever that ends.
#[derive(Debug)]
pub struct FileJournal {
    file: File,
    last: u64,
    /// Of all that was kept. What stands behind it is of a write that failed.
    length: u64,
    /// A write failed, and what it left could not be taken away.
    in_doubt: bool,
    sync: fn(&File) -> io::Result<()>,
}

impl FileJournal {
    /// With what is in it. A line that was cut off by the end of its writer is taken away; one that
    /// cannot be read for another reason is an error, because what follows would be taken for all.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<Event>)> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut events: Vec<Event> = Vec::new();
        let mut whole = 0;
        let mut lines = BufReader::new(&file);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            let event = Event::read(&mut line).map_err(|error| {
                let place = format!("{}:{}", path.display(), events.len() + 1);
                io::Error::new(io::ErrorKind::InvalidData, format!("{place}: {error}"))
            })?;
            events.push(event);
            whole += line.len() as u64;
            line.clear();
        }
        if whole < file.metadata()?.len() {
            file.set_len(whole)?;
        }
        let mut file = file;
        file.seek(SeekFrom::End(0))?;
        let last = events.last().map_or(0, |event| event.seq);
        let journal = Self { file, last, length: whole, in_doubt: false, sync: File::sync_data };
        Ok((journal, events))
    }

    fn append(&mut self, line: &[u8], update: &Update) -> io::Result<()> {
        self.file.write_all(line)?;
        if is_a_promise(update) { (self.sync)(&self.file) } else { Ok(()) }
    }
}

impl Journal for FileJournal {
    fn keep(&mut self, update: Update) -> io::Result<Event> {
        if self.in_doubt {
            return Err(io::Error::other(
                "a write failed before, and the journal is in doubt since",
            ));
        }
        let event = next(self.last, update);
        let line = line(&event)?;
        if let Err(error) = self.append(&line, &event.update) {
            // Half a line would spoil the next one, and a whole one that nobody was told of would have
            // the next one's number.
            self.in_doubt = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        self.length += line.len() as u64;
        self.last = event.seq;
        Ok(event)
    }
}

/// What is acted on once it is kept must still be there after a power cut.
fn is_a_promise(update: &Update) -> bool {
    !matches!(
        update,
        Update::AgentMessageChunk { .. }
            | Update::AgentThoughtChunk { .. }
            | Update::ToolCallUpdate { status: ToolStatus::InProgress, .. }
            | Update::UsageUpdate { .. }
            | Update::CostUpdate { .. }
            | Update::Notice { .. }
            | Update::Retry { .. }
    )
}

/// A journal for whoever reads along, such as the caller of a one-shot run.
#[derive(Debug)]
pub struct Lines<W> {
    to: W,
    last: u64,
}

impl<W: Write> Lines<W> {
    pub fn new(to: W) -> Self {
        Self { to, last: 0 }
    }

    pub fn into_inner(self) -> W {
        self.to
    }
}

impl<W: Write + Send + Sync> Journal for Lines<W> {
    fn keep(&mut self, update: Update) -> io::Result<Event> {
        let event = next(self.last, update);
        self.to.write_all(&line(&event)?)?;
        self.to.flush()?;
        self.last = event.seq;
        Ok(event)
    }
}

fn next(last: u64, update: Update) -> Event {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Event { seq: last + 1, at: u64::try_from(at.as_millis()).unwrap_or(u64::MAX), update }
}

fn line(event: &Event) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Content, Ended};

    fn said(text: &str) -> Update {
        Update::UserMessageChunk { content: Content::text(text) }
    }

    #[test]
    fn what_was_kept_is_there_again_and_half_a_line_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, events) = FileJournal::open(&path).unwrap();
        assert_eq!(events, []);
        let kept = [journal.keep(said("a\nb")).unwrap(), journal.keep(said("c")).unwrap()];
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (mut journal, events) = FileJournal::open(&path).unwrap();
            assert!(kept.starts_with(&events), "{cut}");
            let next = journal.keep(Update::Ended { how: Ended::Interrupted }).unwrap();
            assert_eq!(next.seq, events.len() as u64 + 1);
            assert_eq!(FileJournal::open(&path).unwrap().1.len(), events.len() + 1);
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        FileJournal::open(&path).unwrap().0.keep(said("a")).unwrap();
        let mut spoilt = std::fs::read(&path).unwrap();
        spoilt.extend_from_slice(b"{}\n");
        std::fs::write(&path, &spoilt).unwrap();
        let error = FileJournal::open(&path).unwrap_err().to_string();
        assert!(error.contains("journal:2"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), spoilt);
    }

    #[test]
    fn what_could_not_be_kept_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let (mut journal, _) = FileJournal::open(&path).unwrap();
        let first = journal.keep(said("a")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        // The line is written, and the disk fails when it is to be made sure of.
        journal.sync = |_| Err(io::Error::other("the disk"));
        journal.keep(said("b")).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        journal.sync = File::sync_data;
        let next = journal.keep(said("c")).unwrap();
        assert_eq!(next.seq, 2);
        assert_eq!(FileJournal::open(&path).unwrap().1, [first, next]);
    }

    #[test]
    fn after_a_failure_that_cannot_be_put_right_nothing_is_kept() {
        let file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (last, length, in_doubt, sync) = (0, 0, false, File::sync_data as fn(&File) -> _);
        let mut journal = FileJournal { file, last, length, in_doubt, sync };
        journal.keep(said("a")).unwrap_err();
        let error = journal.keep(said("b")).unwrap_err().to_string();
        assert!(error.contains("in doubt"), "{error}");
    }
}
