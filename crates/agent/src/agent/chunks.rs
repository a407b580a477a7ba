//! Pieces of what a model says, put together to what is worth a line of the journal.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::events::{Content, Update};
use crate::journal::Journal;
use crate::model::{self, Model, Piece, Reply, Request};

/// Pieces of text that come faster than this are put together before they are kept.
const AT_ONCE: Duration = Duration::from_millis(20);
/// But no more than this.
const PIECE: usize = 1024;

/// Asks once, and keeps what comes as it comes.
pub(super) async fn ask(
    model: &dyn Model,
    request: &Request<'_>,
    journal: &mut dyn Journal,
) -> io::Result<Result<Reply, model::Error>> {
    let chunks = Mutex::new(Chunks { journal, waiting: None, last: None, kept: Ok(()) });
    let lock = || chunks.lock().unwrap_or_else(PoisonError::into_inner);
    let stirred = Notify::new();
    let reply = {
        let mut pieces = |piece| {
            lock().piece(piece);
            stirred.notify_one();
        };
        let mut answer = model.respond(request, &mut pieces);
        loop {
            // A model that pauses holds nothing back.
            let quiet = async {
                stirred.notified().await;
                tokio::time::sleep(AT_ONCE).await;
            };
            tokio::select! {
                biased;
                reply = &mut answer => break reply,
                () = quiet => lock().flush(),
            }
        }
    };
    let mut chunks = chunks.into_inner().unwrap_or_else(PoisonError::into_inner);
    chunks.flush();
    chunks.kept.map(|()| reply)
}

struct Chunks<'a> {
    journal: &'a mut dyn Journal,
    waiting: Option<Piece>,
    /// When something was kept.
    last: Option<Instant>,
    kept: io::Result<()>,
}

impl Chunks<'_> {
    fn piece(&mut self, piece: Piece) {
        let joined = match (self.waiting.take(), piece) {
            (Some(Piece::Text(before)), Piece::Text(more)) => Piece::Text(before + &more),
            (Some(Piece::Thought(before)), Piece::Thought(more)) => Piece::Thought(before + &more),
            (Some(other), piece) => {
                self.keep(other);
                piece
            }
            (None, piece) => piece,
        };
        let (Piece::Text(text) | Piece::Thought(text)) = &joined;
        if text.len() >= PIECE || self.last.is_none_or(|last| last.elapsed() >= AT_ONCE) {
            self.keep(joined);
        } else {
            self.waiting = Some(joined);
        }
    }

    fn keep(&mut self, piece: Piece) {
        if self.kept.is_err() {
            return;
        }
        let update = match piece {
            Piece::Text(text) => Update::AgentMessageChunk { content: Content::text(text) },
            Piece::Thought(text) => Update::AgentThoughtChunk { content: Content::text(text) },
        };
        self.kept = self.journal.keep(update).map(|_| ());
        self.last = Some(Instant::now());
    }

    fn flush(&mut self) {
        if let Some(piece) = self.waiting.take() {
            self.keep(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;
    use async_trait::async_trait;

    /// Says three words, the last after a long pause.
    struct Slow;

    #[async_trait]
    impl Model for Slow {
        async fn respond(
            &self,
            _: &Request<'_>,
            pieces: &mut model::Pieces<'_>,
        ) -> model::Result<Reply> {
            pieces(Piece::Text("one ".to_owned()));
            pieces(Piece::Text("two ".to_owned()));
            tokio::time::sleep(Duration::from_secs(60)).await;
            pieces(Piece::Text("three".to_owned()));
            Ok(Reply::default())
        }
    }

    /// What was kept, and when.
    struct Kept(Instant, Vec<(Duration, String)>);

    impl Journal for Kept {
        fn keep(&mut self, update: Update) -> io::Result<Event> {
            let Update::AgentMessageChunk { content: Content::Text { text } } = &update else {
                return Err(io::Error::other("only words are expected"));
            };
            self.1.push((self.0.elapsed(), text.clone()));
            Ok(Event { seq: 1, at: 1, update })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_pauses_holds_nothing_back() {
        let mut kept = Kept(Instant::now(), Vec::new());
        let request = Request { system: "", messages: &[], tools: &[] };
        ask(&Slow, &request, &mut kept).await.unwrap().unwrap();
        let told: Vec<(u64, &str)> =
            kept.1.iter().map(|(at, text)| (at.as_secs(), text.as_str())).collect();
        assert_eq!(told, [(0, "one "), (0, "two "), (60, "three")]);
    }
}
