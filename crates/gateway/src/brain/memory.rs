//! What a conversation remembers while it may be spoken to, and where every event goes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use nacre_agent::events::{Ended, Event, ToolStatus, Update};
use nacre_agent::journal::{FileJournal, Journal};
use nacre_agent::session::Session;
use nacre_wire::ApiError;
use nacre_wire::conductor::{Notice, Sent};
use tokio::sync::oneshot;

use super::acting::Doing;
use super::log::Log;
use super::news::News;
use crate::provider::Meter;

pub(super) type Accepted = oneshot::Sender<Result<Sent, ApiError>>;

pub(super) struct Memory {
    pub(super) session: Session,
    pub(super) journal: Kept,
    /// How many turns there were.
    pub(super) turns: u64,
}

/// The journal of one conversation: on disk first, then to everybody who follows.
pub(super) struct Kept {
    file: FileJournal,
    id: String,
    log: Arc<Log>,
    news: News,
    pub(super) doing: Doing,
    /// What the turn costs; known while one is under way.
    pub(super) meter: Option<Meter>,
    /// Whether a turn is under way: not any more when its end is to be seen.
    pub(super) working: Arc<AtomicBool>,
    /// Waits for the owner's message to be written down.
    pub(super) accepted: Option<Accepted>,
}

impl Memory {
    /// Reads all of it once. A turn that was cut off is said to be, so that nothing of it is done again.
    pub(super) fn load(path: &Path, id: &str, log: Arc<Log>, news: News) -> io::Result<Self> {
        let (file, events) = FileJournal::open(path)?;
        catch_up(&log, &events)?;
        let session = Session::replay(&events);
        let begins = |event: &&Event| matches!(event.update, Update::TurnBegins { .. });
        let turns = events.iter().filter(begins).count() as u64;
        let journal = Kept {
            file,
            id: id.to_owned(),
            log,
            news,
            doing: Doing::default(),
            meter: None,
            working: Arc::default(),
            accepted: None,
        };
        let mut memory = Self { session, journal, turns };
        if memory.session.under_way {
            memory.keep(Update::Ended { how: Ended::Interrupted })?;
        }
        Ok(memory)
    }

    pub(super) fn keep(&mut self, update: Update) -> io::Result<()> {
        let event = self.journal.keep(update)?;
        self.session.see(&event.update);
        Ok(())
    }
}

/// A line that could not be taken away after a failure is on the disk, and nobody who follows has seen it.
fn catch_up(log: &Log, events: &[Event]) -> io::Result<()> {
    let told = usize::try_from(log.last()).unwrap_or(usize::MAX);
    for event in events.iter().skip(told) {
        log.push(serde_json::to_vec(event)?);
    }
    if told > events.len() {
        let what = format!("{told} events were told of, and the journal has {}", events.len());
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(())
}

impl Kept {
    fn keep_one(&mut self, update: Update) -> io::Result<Event> {
        let event = self.file.keep(update)?;
        let line = serde_json::to_vec(&event)?;
        if matches!(event.update, Update::Ended { .. }) {
            self.working.store(false, Ordering::SeqCst);
        }
        if let Some(kind) = kind(&line).filter(|_| !is_piece(&event.update)) {
            let (id, kind) = (self.id.clone(), kind.to_owned());
            self.news.tell(Notice { id, seq: event.seq, kind });
        }
        self.log.push(Bytes::from(line));
        Ok(event)
    }

    fn tell_cost(&mut self) -> io::Result<()> {
        match self.meter.as_ref().and_then(Meter::dollars) {
            Some(dollars) if dollars > 0.0 => {
                self.keep_one(Update::CostUpdate { dollars }).map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Journal for Kept {
    fn keep(&mut self, update: Update) -> io::Result<Event> {
        let event = self.keep_one(update)?;
        match &event.update {
            Update::ToolCall { .. } => self.doing.store(event.seq, Ordering::Relaxed),
            Update::UsageUpdate { .. } => self.tell_cost()?,
            Update::UserMessageChunk { .. } => {
                if let Some(accepted) = self.accepted.take() {
                    let _ = accepted.send(Ok(Sent { seq: event.seq }));
                }
            }
            _ => {}
        }
        Ok(event)
    }
}

/// What `sessionUpdate` says, which stands before anything that somebody else wrote.
pub(super) fn kind(line: &[u8]) -> Option<&str> {
    const NAME: &[u8] = b"\"sessionUpdate\":\"";
    let at = line.windows(NAME.len()).position(|window| window == NAME)?;
    let rest = &line[at + NAME.len()..];
    let end = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()
}

/// There are too many of these to tell of each.
fn is_piece(update: &Update) -> bool {
    matches!(
        update,
        Update::AgentMessageChunk { .. }
            | Update::AgentThoughtChunk { .. }
            | Update::ToolCallUpdate { status: ToolStatus::InProgress, .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_agent::events::Content;
    use serde_json::Value;

    fn load(path: &Path) -> (Memory, Arc<Log>) {
        let log = Arc::new(Log::load(path).unwrap());
        (Memory::load(path, "c-1", log.clone(), News::default()).unwrap(), log)
    }

    #[test]
    fn a_turn_that_was_cut_off_is_said_to_be_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (mut memory, log) = load(&path);
        memory.keep(Update::UserMessageChunk { content: Content::text("go") }).unwrap();
        assert_eq!(log.last(), 1);
        drop(memory);
        for _ in 0..2 {
            let (memory, log) = load(&path);
            assert!(!memory.session.under_way);
            let lines: Vec<Value> =
                log.after(0, 9).iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
            assert_eq!(lines.len(), 2);
            assert_eq!(lines[1]["how"]["reason"], "interrupted");
            assert_eq!(lines[1]["seq"], 2);
        }
    }

    #[test]
    fn journal_and_log_agree_whatever_a_failure_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j");
        let (memory, log) = load(&path);
        let event = |seq| Event { seq, at: 1, update: Update::Notice { message: seq.to_string() } };
        let line = |seq| format!("{}\n", serde_json::to_string(&event(seq)).unwrap());
        std::fs::write(&path, line(1)).unwrap();
        drop(memory);
        let memory = Memory::load(&path, "c-1", log.clone(), News::default());
        memory.unwrap().keep(event(0).update).unwrap();
        assert_eq!((log.last(), load(&path).1.last()), (2, 2));
        std::fs::write(&path, line(1)).unwrap();
        let error = Memory::load(&path, "c-1", log, News::default()).err().unwrap();
        assert!(error.to_string().contains("2 events were told of"), "{error}");
    }

    #[test]
    fn an_event_is_called_what_it_says() {
        let update = Update::UserMessageChunk { content: Content::text("\"sessionUpdate\":\"x\"") };
        let line = serde_json::to_vec(&Event { seq: 7, at: 1, update }).unwrap();
        assert_eq!(kind(&line), Some("user_message_chunk"));
        assert_eq!(kind(b"{}"), None);
    }
}
