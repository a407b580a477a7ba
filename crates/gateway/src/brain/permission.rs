//! The question that a turn waits with, and whoever answers it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use nacre_agent::model::Call;
use nacre_agent::tools::Intent;
use nacre_agent::{Mode, Permission};
use nacre_wire::conductor::{Approve, ConversationState};
use nacre_wire::{ApiError, ErrorKind};
use tokio::sync::{oneshot, watch};

/// What the owner is asked now; at most one thing at a time. Shared by the turn that asks, the
/// conversation that is answered, and listings.
#[derive(Debug, Clone, Default)]
pub(super) struct Question(Arc<Mutex<Option<Open>>>);

#[derive(Debug)]
struct Open {
    call: String,
    title: String,
    answer: oneshot::Sender<bool>,
}

impl Question {
    pub(super) fn state(&self, working: bool) -> ConversationState {
        match (&*self.open(), working) {
            (Some(Open { call, title, .. }), _) => {
                ConversationState::Asking { call: call.clone(), about: title.clone() }
            }
            (None, true) => ConversationState::Working,
            (None, false) => ConversationState::Idle,
        }
    }

    pub(super) fn answer(&self, given: &Approve) -> Result<(), ApiError> {
        let mut open = self.open();
        match open.take_if(|open| open.call == given.call) {
            Some(open) => {
                let _ = open.answer.send(given.allow);
                Ok(())
            }
            None => {
                let call = given.call.escape_debug();
                let message = format!("nothing is asked about the call \"{call}\"");
                Err(ApiError::new(ErrorKind::NotFound, message)
                    .hint("it may have been answered already, or its turn has ended"))
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the question back when nobody waits for the answer any more.
struct Asked<'a>(&'a Question);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        *self.0.open() = None;
    }
}

/// For one turn.
pub(super) struct Owner {
    pub(super) question: Question,
    pub(super) mode: watch::Receiver<Mode>,
}

impl Owner {
    /// Who says that nothing need be asked, or nothing done, has answered. What goes beyond the sandbox is
    /// asked about in every mode.
    async fn changed_mind(&self, intent: &Intent) -> bool {
        let mut mode = self.mode.clone();
        while mode.changed().await.is_ok() {
            match *mode.borrow_and_update() {
                Mode::Auto if !intent.asks => return true,
                Mode::Plan if intent.changes => return false,
                Mode::Plan | Mode::Ask | Mode::Auto => {}
            }
        }
        std::future::pending().await
    }
}

#[async_trait]
impl Permission for Owner {
    async fn ask(&self, call: &Call, intent: &Intent) -> bool {
        let (answer, answered) = oneshot::channel();
        let title = intent.title.clone();
        *self.question.open() = Some(Open { call: call.id.clone(), title, answer });
        let _asked = Asked(&self.question);
        tokio::select! {
            answered = answered => answered.unwrap_or(false),
            allowed = self.changed_mind(intent) => allowed,
        }
    }

    fn mode(&self) -> Option<Mode> {
        Some(*self.mode.borrow())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_agent::events::ToolKind;

    fn call(id: &str) -> Call {
        Call { id: id.to_owned(), name: "f".to_owned(), arguments: serde_json::json!({}) }
    }

    fn intent() -> Intent {
        let title = "do it".to_owned();
        Intent { title, kind: ToolKind::Other, locations: Vec::new(), changes: true, asks: false }
    }

    fn owner() -> (Owner, watch::Sender<Mode>) {
        let (mode, receiver) = watch::channel(Mode::Ask);
        (Owner { question: Question::default(), mode: receiver }, mode)
    }

    fn answer(call: &str, allow: bool) -> Approve {
        Approve { call: call.to_owned(), allow }
    }

    #[tokio::test]
    async fn an_answer_is_for_the_call_that_is_asked_about() {
        for allow in [true, false] {
            let (owner, _mode) = owner();
            let (call, intent) = (call("1"), intent());
            let (allowed, ()) = tokio::join!(owner.ask(&call, &intent), async {
                let asking =
                    ConversationState::Asking { call: "1".to_owned(), about: "do it".to_owned() };
                assert_eq!(owner.question.state(true), asking);
                assert!(owner.question.answer(&answer("2", true)).is_err());
                owner.question.answer(&answer("1", allow)).unwrap();
                assert!(owner.question.answer(&answer("1", true)).is_err(), "once");
            });
            assert_eq!(allowed, allow);
            assert_eq!(owner.question.state(true), ConversationState::Working);
        }
    }

    #[tokio::test]
    async fn another_mode_answers_what_is_asked() {
        for (mode, expected) in [(Mode::Auto, true), (Mode::Plan, false)] {
            let (owner, sender) = owner();
            let (call, intent) = (call("1"), intent());
            let (allowed, _) = tokio::join!(owner.ask(&call, &intent), async { sender.send(mode) });
            assert_eq!((allowed, owner.mode()), (expected, Some(mode)));
        }
    }

    #[tokio::test]
    async fn what_goes_beyond_the_sandbox_is_asked_about_in_every_mode() {
        let (owner, sender) = owner();
        let (call, intent) = (call("1"), Intent { asks: true, ..intent() });
        sender.send_replace(Mode::Auto);
        let (allowed, ()) = tokio::join!(owner.ask(&call, &intent), async {
            tokio::task::yield_now().await;
            owner.question.answer(&answer("1", false)).unwrap();
        });
        assert!(!allowed);
    }

    #[tokio::test]
    async fn who_no_longer_waits_asks_nothing() {
        let (owner, _mode) = owner();
        let (call, intent) = (call("1"), intent());
        {
            let mut asking = Box::pin(owner.ask(&call, &intent));
            assert!(futures_util::poll!(&mut asking).is_pending());
            assert_ne!(owner.question.state(true), ConversationState::Working);
        }
        assert_eq!(owner.question.state(false), ConversationState::Idle);
    }
}
