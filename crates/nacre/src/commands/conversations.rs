//! `nacre conversations`: what there was to say, and taking it back.

use std::cell::RefCell;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_agent::events::Event;
use nacre_wire::client::{self, Client};
use nacre_wire::conductor::{
    ChangeConversation, ConversationInfo, ConversationState, ForkConversation, LostIn,
    UndoConversation, UndoneIn, UndoneList,
};
use nacre_wire::history::{How, Outcome};
use serde_json::json;

use super::Context;
use super::undo::Manner;
use crate::failure::{Failure, Result};
use crate::history::conflicts;
use crate::history::outcome::Deed;
use crate::history::paint::Paint;
use crate::output;
use crate::talk::Screen;

#[derive(Debug, Args)]
#[command(after_help = "\
Without a command, all of them are listed, the one that was used last first.

Events have numbers; `show --numbers` tells them. A fork begins where an event was, and an undo takes
back what one call (--step) or one turn (--turn) changed in files, or all that the conversation did.

Examples:
  nacre conversations
  nacre conversations show c-0123456789
  nacre conversations fork c-0123456789 --at 40
  nacre conversations undo c-0123456789 --turn 40
  nacre conversations rm c-0123456789")]
pub(crate) struct Conversations {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show all that was said and done in one
    Show(Show),
    /// Begin another with the same events, up to one of them
    Fork(Fork),
    /// Give one another title
    Rename(Rename),
    /// Stop the turn that is under way
    Stop(One),
    /// Allow what one asks for
    Allow(Answer),
    /// Deny what one asks for
    Deny(Answer),
    /// Take back what one changed in files
    Undo(Undo),
    /// Remove some; what they changed in files stays
    Rm(Rm),
}

#[derive(Debug, Args)]
struct One {
    /// The conversation
    id: String,
}

#[derive(Debug, Args)]
struct Show {
    /// The conversation
    id: String,
    /// Say the number of each event
    #[arg(long)]
    numbers: bool,
}

#[derive(Debug, Args)]
struct Fork {
    /// The conversation
    id: String,
    /// The number of the last event to have [default: the last there is]
    #[arg(long, value_name = "EVENT")]
    at: Option<u64>,
    /// What the fork is called
    #[arg(long)]
    title: Option<String>,
}

#[derive(Debug, Args)]
struct Rename {
    /// The conversation
    id: String,
    /// What it is called from now on
    title: String,
}

#[derive(Debug, Args)]
struct Answer {
    /// The conversation
    id: String,
    /// The call it is about [default: what is asked now]
    call: Option<String>,
}

#[derive(Debug, Args)]
struct Undo {
    /// The conversation
    id: String,
    /// Only what this call changed, by the number of its event
    #[arg(long, value_name = "EVENT", conflicts_with = "turn")]
    step: Option<u64>,
    /// Only what one turn changed, by the number of any of its events
    #[arg(long, value_name = "EVENT")]
    turn: Option<u64>,
    #[command(flatten)]
    manner: Manner,
}

#[derive(Debug, Args)]
struct Rm {
    /// The conversations
    #[arg(required = true)]
    ids: Vec<String>,
}

pub(crate) async fn run(command: Conversations, context: &Context) -> Result<ExitCode> {
    let client = context.gateway().await?.client.under("/admin/sandboxes");
    match command.action {
        None => list(&client, context).await?,
        Some(Action::Show(show)) => self::show(&client, &show, context).await?,
        Some(Action::Fork(fork)) => {
            let wanted = ForkConversation { at: fork.at, title: fork.title };
            let made = client.fork_conversation(&fork.id, &wanted).await?;
            say(context, &made, &format!("{}\n", made.id))?;
        }
        Some(Action::Rename(Rename { id, title })) => {
            let wanted = ChangeConversation { title: Some(title), ..ChangeConversation::default() };
            let changed = client.change_conversation(&id, &wanted).await?;
            say(context, &changed, &format!("Renamed {id}.\n"))?;
        }
        Some(Action::Stop(One { id })) => {
            client.stop_turn(&id).await?;
            say(context, &json!({ "stopped": id }), &format!("Stopped {id}.\n"))?;
        }
        Some(Action::Allow(answer)) => decide(&client, answer, true, context).await?,
        Some(Action::Deny(answer)) => decide(&client, answer, false, context).await?,
        Some(Action::Undo(undo)) => return self::undo(&client, &undo, context).await,
        Some(Action::Rm(Rm { ids })) => {
            for id in &ids {
                client.delete_conversation(id).await?;
            }
            say(context, &json!({ "removed": ids }), &format!("Removed {}.\n", ids.join(", ")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn say(context: &Context, value: &impl serde::Serialize, text: &str) -> Result<()> {
    if context.json { output::print_json(value) } else { output::print(text) }
}

async fn list(client: &Client, context: &Context) -> Result<()> {
    let list = client.conversations().await?;
    say(context, &list, &table(&list.conversations))
}

fn table(all: &[ConversationInfo]) -> String {
    if all.is_empty() {
        return "There are no conversations. nacre chat begins one.\n".to_owned();
    }
    let rows: Vec<_> = all
        .iter()
        .map(|info| {
            let state = match &info.state {
                ConversationState::Idle => "idle",
                ConversationState::Working => "working",
                ConversationState::Asking { .. } => "asking",
            };
            vec![
                info.id.clone(),
                state.to_owned(),
                info.mode.as_str().to_owned(),
                info.role.clone().unwrap_or_else(|| "-".to_owned()),
                output::ago(info.updated_at),
                info.seq.to_string(),
                info.dollars.map_or_else(|| "-".to_owned(), |sum| format!("${sum:.4}")),
                output::one_line(&info.title),
            ]
        })
        .collect();
    output::table(&["ID", "STATE", "MODE", "ROLE", "USED", "EVENTS", "COST", "TITLE"], &rows)
}

async fn show(client: &Client, wanted: &Show, context: &Context) -> Result<()> {
    let mut events = client.conversation_events(&wanted.id, 0, false).await?;
    let mut screen = Screen::new(Paint::for_stdout(), true);
    while let Some(event) = events.next::<Event>().await? {
        if context.json {
            let line = serde_json::to_string(&event);
            let line = line.map_err(|error| Failure::new(error.to_string()))?;
            output::print(&format!("{line}\n"))?;
            continue;
        }
        let text = screen.event(&event);
        match wanted.numbers && !text.trim().is_empty() {
            true => output::print(&format!("[{}] {}", event.seq, text.trim_start_matches('\n')))?,
            false => output::print(&text)?,
        }
    }
    Ok(())
}

async fn decide(client: &Client, answer: Answer, allow: bool, context: &Context) -> Result<()> {
    let call = match answer.call {
        Some(call) => call,
        None => match client.conversation(&answer.id).await?.state {
            ConversationState::Asking { call, .. } => call,
            ConversationState::Idle | ConversationState::Working => {
                return Err(Failure::new(format!("{} asks for nothing", answer.id)));
            }
        },
    };
    client.approve(&answer.id, &call, allow).await?;
    let word = if allow { "Allowed" } else { "Denied" };
    say(context, &json!({ "call": call, "allow": allow }), &format!("{word}.\n"))
}

async fn undo(client: &Client, wanted: &Undo, context: &Context) -> Result<ExitCode> {
    let how = wanted.manner.how();
    // It is asked again after each decision, and the last answer counts.
    let lost = RefCell::default();
    let ask_for = async |how: &How| {
        let (step, turn) = (wanted.step, wanted.turn);
        let request = UndoConversation { step, turn, how: how.clone() };
        let undone = client.undo_conversation(&wanted.id, &request).await?;
        lost.replace(undone.lost.clone());
        together(undone)
    };
    let done = conflicts::settle(how, Deed::Undo, context, ask_for).await?;
    for LostIn { sandbox, role } in lost.take() {
        eprintln!(
            "nacre: not in {sandbox}, which was {role} then: it is gone, and its files with it"
        );
    }
    Ok(done)
}

/// As if it had been one.
fn together(undone: UndoneList) -> client::Result<Outcome> {
    let mut all = undone.sandboxes.into_iter();
    let Some(UndoneIn { outcome: mut first, .. }) = all.next() else {
        return Err(client::Error::Protocol("nothing was done".to_owned()));
    };
    for UndoneIn { outcome, .. } in all {
        first.changes.total += outcome.changes.total;
        first.changes.changes.extend(outcome.changes.changes);
        first.conflicts.extend(outcome.conflicts);
        first.remarks.extend(outcome.remarks);
        first.of.extend(outcome.of);
    }
    Ok(first)
}
