//! One turn: from a message to its end, with the owner's answers in between.

use nacre_agent::events::{Ended, Event, Update};
use nacre_wire::ErrorKind;
use nacre_wire::client::Client;
use nacre_wire::conductor::{ChangeConversation, ConversationMode};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Screen, Typed};
use crate::failure::{Failure, Result};
use crate::history::conflicts::someone_is_there;
use crate::output;

const QUESTION: &str = "  allow it? (y)es, (n)o, (a)lways in this conversation ";

/// How it came out for whoever watched.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Ended(Ended),
    /// Somebody had enough of waiting; the turn goes on without them.
    Left,
}

pub(crate) struct Watching<'a> {
    /// Below `/admin/sandboxes`.
    pub(crate) client: &'a Client,
    pub(crate) id: &'a str,
    pub(crate) screen: &'a mut Screen,
    pub(crate) typed: Typed,
    pub(crate) json: bool,
}

impl Watching<'_> {
    /// Shows everything after an event, until the turn that is under way has ended. Ctrl-C stops it; a
    /// second one leaves.
    pub(crate) async fn until_ended(&mut self, after: u64) -> Result<Watched> {
        let failed = |error| Failure::io("signals cannot be handled", &error);
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut events = self.client.conversation_events(self.id, after, true).await?;
        let mut stopping = false;
        loop {
            let event = tokio::select! {
                event = events.next::<Event>() => event?,
                _ = interrupt.recv() => {
                    if stopping {
                        return Ok(Watched::Left);
                    }
                    stopping = true;
                    eprintln!("\nnacre: stopping; Ctrl-C again leaves at once");
                    self.client.stop_turn(self.id).await?;
                    continue;
                }
            };
            let Some(event) = event else {
                return Err(Failure::new(format!("conversation {} was removed", self.id)));
            };
            self.show(&event)?;
            match event.update {
                Update::Ended { how } => return Ok(Watched::Ended(how)),
                Update::PermissionRequest { tool_call_id, .. } => {
                    self.decide(&tool_call_id, &mut interrupt).await?;
                }
                _ => {}
            }
        }
    }

    fn show(&mut self, event: &Event) -> Result<()> {
        if !self.json {
            return output::print(&self.screen.event(event));
        }
        let line = serde_json::to_string(event).map_err(|error| Failure::new(error.to_string()))?;
        output::print(&format!("{line}\n"))
    }

    /// Asks whoever is there. With nobody, the question stays open for somebody else to answer.
    async fn decide(&mut self, call: &str, interrupt: &mut Signal) -> Result<()> {
        if self.json || !someone_is_there() {
            eprintln!("nacre: answer with: nacre conversations allow {} {call}", self.id);
            return Ok(());
        }
        loop {
            let answer = tokio::select! {
                answer = self.typed.answer(QUESTION) => answer,
                _ = interrupt.recv() => return self.stop().await,
            };
            match answer.as_deref().map(str::trim) {
                Some("y" | "yes") => return self.answer(call, true).await,
                Some("n" | "no" | "") | None => return self.answer(call, false).await,
                Some("a" | "always") => {
                    let mode = Some(ConversationMode::Auto);
                    let change = ChangeConversation { mode, ..ChangeConversation::default() };
                    self.client.change_conversation(self.id, &change).await?;
                    return Ok(());
                }
                Some(_) => {}
            }
        }
    }

    async fn stop(&self) -> Result<()> {
        Ok(self.client.stop_turn(self.id).await?)
    }

    async fn answer(&self, call: &str, allow: bool) -> Result<()> {
        match self.client.approve(self.id, call, allow).await {
            // Somebody else was faster, or the turn has ended.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            answered => Ok(answered?),
        }
    }
}
