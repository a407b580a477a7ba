//! `nacre chat`: speak with the agent.

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use nacre_agent::events::Ended;
use nacre_wire::client::Client;
use nacre_wire::conductor::{
    ChangeConversation, ConversationInfo, ConversationMode, ConversationState, CreateConversation,
};

use tokio::signal::unix::{SignalKind, signal};

use super::Context;
use crate::failure::{Failure, Result};
use crate::history::paint::Paint;
use crate::talk::turn::{Watched, Watching};
use crate::talk::{Screen, Typed};

/// As a shell has it for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Args)]
#[command(after_help = "\
Without a message, a terminal asks for one after the other, and anything else is read to its end and
sent as one. Ctrl-C stops the turn that is under way; a second one leaves at once. Closing the terminal
stops nothing: the turn goes on, and `nacre chat -c ID` shows what happened meanwhile.

In mode ask, every change is asked about before it is made. In mode plan nothing is changed.

The exit code says how the turn ended: 0 done, 10 too many steps, 11 out of time, 12 out of budget,
13 the model failed, 14 it made calls that cannot be made, 15 interrupted, 130 stopped.

Examples:
  nacre chat \"run the linter and fix the errors\"
  nacre chat --mode ask --role live
  nacre chat -c c-0123456789 \"and now the tests\"
  nacre chat --json \"what is in here?\"")]
pub(crate) struct Chat {
    /// Go on with this conversation [default: a new one]
    #[arg(short, long, value_name = "ID")]
    conversation: Option<String>,
    /// Where to act: dev or live [default: dev when there is one]
    #[arg(short, long, value_name = "ROLE")]
    role: Option<String>,
    /// What may be done without asking [default: auto]
    #[arg(short, long)]
    mode: Option<ModeName>,
    /// Which model, as provider/model [default: that of nacre.toml]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What to say
    #[arg(value_name = "MESSAGE")]
    message: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeName {
    /// Look, and change nothing
    Plan,
    /// Ask before each change
    Ask,
    /// Change what the task needs
    Auto,
}

impl From<ModeName> for ConversationMode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Plan => Self::Plan,
            ModeName::Ask => Self::Ask,
            ModeName::Auto => Self::Auto,
        }
    }
}

pub(crate) async fn run(command: Chat, context: &Context) -> Result<ExitCode> {
    let client = context.gateway().await?.client.under("/admin/sandboxes");
    let message = command.message()?;
    let info = command.conversation(&client).await?;
    let mut screen = Screen::new(Paint::for_stdout(), false);
    let mut watching = Watching {
        client: &client,
        id: &info.id,
        screen: &mut screen,
        typed: Typed::default(),
        json: context.json,
    };
    if command.conversation.is_none() {
        eprintln!("nacre: conversation {}", info.id);
    }
    // What somebody began elsewhere, or before, is seen to its end first.
    if info.state != ConversationState::Idle {
        let watched = watching.until_ended(info.seq).await?;
        if watched == Watched::Left {
            return Ok(left(&info.id));
        }
    }
    match message {
        Some(text) => say(&mut watching, &text).await,
        None => talk(&mut watching).await,
    }
}

impl Chat {
    /// `None` when a person is to be asked.
    fn message(&self) -> Result<Option<String>> {
        if !self.message.is_empty() {
            return Ok(Some(self.message.join(" ")));
        }
        let mut stdin = std::io::stdin();
        if stdin.is_terminal() {
            return Ok(None);
        }
        let mut text = String::new();
        let read = stdin.read_to_string(&mut text);
        read.map_err(|error| Failure::io("standard input", &error))?;
        match text.trim().is_empty() {
            true => Err(Failure::new("there is nothing to say")
                .hint("give a message: nacre chat \"what is in here?\"")),
            false => Ok(Some(text)),
        }
    }

    /// The one that is named, with what is said of it here, or a new one.
    async fn conversation(&self, client: &Client) -> Result<ConversationInfo> {
        let (role, model) = (self.role.clone(), self.model.clone());
        let mode = self.mode.map(Into::into);
        match &self.conversation {
            None => {
                let wanted = CreateConversation { title: None, role, mode, model };
                Ok(client.create_conversation(&wanted).await?)
            }
            Some(id) if role.is_none() && mode.is_none() && model.is_none() => {
                Ok(client.conversation(id).await?)
            }
            Some(id) => {
                let wanted = ChangeConversation { title: None, role, mode, model };
                Ok(client.change_conversation(id, &wanted).await?)
            }
        }
    }
}

async fn say(watching: &mut Watching<'_>, text: &str) -> Result<ExitCode> {
    let sent = watching.client.send_message(watching.id, text).await?;
    match watching.until_ended(sent.seq).await? {
        Watched::Ended(how) => Ok(ExitCode::from(how.exit_code())),
        Watched::Left => Ok(left(watching.id)),
    }
}

/// One message after the other, until there are no more.
async fn talk(watching: &mut Watching<'_>) -> Result<ExitCode> {
    let failed = |error| Failure::io("signals cannot be handled", &error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut code = Ended::Done.exit_code();
    loop {
        let line = tokio::select! {
            line = watching.typed.next("> ") => line,
            _ = interrupt.recv() => return Ok(ExitCode::from(INTERRUPTED)),
        };
        let Some(text) = line else { break };
        if text.trim().is_empty() {
            continue;
        }
        let sent = watching.client.send_message(watching.id, &text).await?;
        match watching.until_ended(sent.seq).await? {
            Watched::Ended(how) => code = how.exit_code(),
            Watched::Left => return Ok(left(watching.id)),
        }
    }
    eprintln!();
    Ok(ExitCode::from(code))
}

fn left(id: &str) -> ExitCode {
    eprintln!("nacre: left; nacre chat -c {id} goes on with it");
    ExitCode::from(INTERRUPTED)
}
