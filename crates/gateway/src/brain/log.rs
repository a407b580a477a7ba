//! The events of one conversation that is awake, as they are sent: lines of JSON.
//!
//! Everybody reads from here at their own pace, so nobody who is slow holds up a turn, and who was away
//! goes on after what they saw last. Line `n` is event `n`: they count from 1 without a gap.

use std::io;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use axum::body::Bytes;
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct Log {
    lines: RwLock<Vec<Bytes>>,
    end: watch::Sender<End>,
}

/// How far it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct End {
    last: u64,
    /// The conversation was removed.
    over: bool,
}

impl Log {
    /// Only cut into lines: nothing of it is parsed.
    pub(super) fn load(path: &Path) -> io::Result<Self> {
        let all = match std::fs::read(path) {
            Ok(all) => Bytes::from(all),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Bytes::new(),
            Err(error) => return Err(error),
        };
        Ok(Self::of(&all))
    }

    fn of(all: &Bytes) -> Self {
        let mut lines = Vec::new();
        let mut begin = 0;
        for (place, byte) in all.iter().enumerate() {
            if *byte == b'\n' {
                lines.push(all.slice(begin..place));
                begin = place + 1;
            }
        }
        let end = watch::Sender::new(End { last: lines.len() as u64, over: false });
        Self { lines: RwLock::new(lines), end }
    }

    pub(super) fn push(&self, line: impl Into<Bytes>) {
        let mut lines = self.lines.write().unwrap_or_else(PoisonError::into_inner);
        lines.push(line.into());
        let last = lines.len() as u64;
        drop(lines);
        self.end.send_modify(|end| end.last = last);
    }

    pub(super) fn last(&self) -> u64 {
        self.end.borrow().last
    }

    /// Those after an event, with the number of the first; no more than `most`.
    pub(super) fn after(&self, seq: u64, most: usize) -> Vec<Bytes> {
        let lines = self.read();
        let from = usize::try_from(seq).unwrap_or(usize::MAX).min(lines.len());
        lines[from..].iter().take(most).cloned().collect()
    }

    /// Those up to an event.
    pub(super) fn until(&self, seq: u64) -> Vec<Bytes> {
        let lines = self.read();
        let to = usize::try_from(seq).unwrap_or(usize::MAX).min(lines.len());
        lines[..to].to_vec()
    }

    /// Whether there is something after an event, as soon as there is; `false` when nothing will come.
    pub(super) async fn more(&self, seq: u64) -> bool {
        let mut end = self.end.subscribe();
        let ended = end.wait_for(|end| end.over || end.last > seq).await;
        ended.is_ok_and(|end| end.last > seq)
    }

    /// Nothing will be added.
    pub(super) fn close(&self) {
        self.end.send_modify(|end| end.over = true);
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Bytes>> {
        self.lines.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_goes_on_after_what_it_saw() {
        let log = Log::of(&Bytes::from_static(b"a\nb\nhalf a li"));
        assert_eq!((log.last(), log.after(0, 9)), (2, vec!["a".into(), "b".into()]));
        assert_eq!(log.after(1, 9), ["b"]);
        assert_eq!(log.after(0, 1), ["a"]);
        assert_eq!(log.until(1), ["a"]);
        assert!(log.after(2, 9).is_empty() && log.after(99, 9).is_empty());
        let (more, ()) = tokio::join!(log.more(2), async { log.push("c") });
        assert!(more);
        assert_eq!(log.after(2, 9), ["c"]);
        let (more, ()) = tokio::join!(log.more(3), async { log.close() });
        assert!(!more);
        assert!(log.more(0).await, "what is there is still read");
    }
}
