//! An undo that was begun is finished, whoever was in its way: a crash between two sandboxes, or between
//! what was done and what was written down.
//!
//! ```text
//!  begin: what is to be undone is on disk ─▶ each sandbox ─▶ the journal says so ─▶ end
//!             └────────── finish: whatever of this has not happened ──────────┘
//! ```
//! The intent is in the small file of the conversation, like that of a turn.

use std::time::Duration;

use nacre_agent::events::{Event, Update};
use nacre_wire::client;
use nacre_wire::history::{How, UndoRequest};
use nacre_wire::{ApiError, ErrorKind};

use super::conversation::{Conversation, Request};
use super::index::{Undoing, UndoingIn};
use super::{Brain, undo};

/// After a start of the gateway: sandboxes may be starting too. Doubled each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const TRIES: u32 = 9;

pub(super) async fn begin(
    conversation: &mut Conversation,
    how: &How,
    parts: Vec<UndoingIn>,
) -> Result<(), ApiError> {
    let after = conversation.log.last();
    // What the newest checkpoint was is of no use to whoever finishes it.
    let how = How { expected: None, dry_run: false, ..how.clone() };
    set(conversation, Some(Undoing { after, how, parts })).await
}

pub(super) async fn end(conversation: &mut Conversation) -> Result<(), ApiError> {
    set(conversation, None).await
}

async fn set(conversation: &mut Conversation, undoing: Option<Undoing>) -> Result<(), ApiError> {
    let mut meta = conversation.meta.clone();
    meta.undoing = undoing;
    conversation.brain.put(meta.clone()).await?;
    conversation.meta = meta;
    Ok(())
}

/// Does what is left of one that was cut off. Fails when that cannot be done now.
pub(super) async fn finish(conversation: &mut Conversation) -> Result<(), ApiError> {
    while let Some(undoing) = conversation.meta.undoing.clone() {
        let Some((part, rest)) = undoing.parts.split_first() else {
            return end(conversation).await;
        };
        if !is_told(conversation, undoing.after, part) {
            let came_of_it = finish_in(conversation, part, &undoing.how).await?;
            conversation.note(vec![came_of_it]).await?;
        }
        set(conversation, Some(Undoing { parts: rest.to_vec(), ..undoing })).await?;
    }
    Ok(())
}

/// Whether the journal says so already.
fn is_told(conversation: &Conversation, after: u64, part: &UndoingIn) -> bool {
    let lines = conversation.log.after(after, usize::MAX);
    let mut events = lines.iter().filter_map(|line| serde_json::from_slice::<Event>(line).ok());
    events.any(
        |event| matches!(event.update, Update::Undone { sandbox, .. } if sandbox == part.sandbox),
    )
}

async fn finish_in(
    conversation: &Conversation,
    part: &UndoingIn,
    how: &How,
) -> Result<Update, ApiError> {
    let Ok(sandbox) = conversation.brain.sandboxes.find(&part.sandbox) else {
        return Ok(cut_off(&format!("the sandbox {} is gone", part.sandbox)));
    };
    sandbox.require_running().map_err(|error| ApiError {
        message: format!("an undo was cut off and waits to be finished: {}", error.message),
        ..error
    })?;
    let client = sandbox.client();
    let all = undo::all_of(&client, &conversation.meta.id).await?;
    let open = |id: &u64| all.iter().any(|checkpoint| checkpoint.id == *id && !checkpoint.undone);
    let checkpoints: Vec<u64> = part.checkpoints.iter().copied().filter(open).collect();
    let done = |paths: Vec<String>| Update::Undone {
        sandbox: part.sandbox.clone(),
        checkpoints: part.checkpoints.clone(),
        paths,
    };
    if checkpoints.is_empty() {
        return Ok(done(part.paths.clone()));
    }
    let request = UndoRequest { checkpoints, how: how.clone(), ..UndoRequest::default() };
    match client.undo(&request).await {
        Ok(outcome) if !outcome.conflicts.is_empty() => {
            let first = outcome.conflicts[0].path.to_string();
            let what = format!(
                "in {} {first} was changed since, so nothing was taken back there",
                sandbox.name
            );
            Ok(cut_off(&what))
        }
        Ok(outcome) if outcome.checkpoint.is_some() => Ok(done(undo::paths(&outcome))),
        Ok(_) => Ok(done(part.paths.clone())),
        Err(client::Error::Api(error)) if !may_pass(&error) => {
            Ok(cut_off(&format!("{} refuses: {}", sandbox.name, error.message)))
        }
        Err(error) => Err(undo::plain(error)),
    }
}

fn cut_off(why: &str) -> Update {
    let message = format!("an undo was cut off, and is not whole: {why}; undo again what is left");
    Update::Notice { message }
}

/// Whether whoever says so has surely done nothing.
pub(super) fn is_refusal(error: &ApiError) -> bool {
    use ErrorKind::{Conflict, InvalidRequest, NotFound, Unsupported};
    matches!(error.kind, InvalidRequest | NotFound | Conflict | Unsupported)
}

/// Whether it is worth waiting for: nothing else may hold a conversation up for ever.
fn may_pass(error: &ApiError) -> bool {
    matches!(error.kind, ErrorKind::Unavailable | ErrorKind::TimedOut)
}

/// At the start. What cannot be finished by then is finished before the conversation goes on.
pub(super) fn finish_later(brain: &Brain, id: String) {
    let brain = brain.clone();
    tokio::spawn(async move {
        let mut pause = FIRST_PAUSE;
        for _ in 0..TRIES {
            match brain.ask(&id, |reply| Request::Finish { reply }).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(id, %error, "an undo that was cut off waits"),
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    });
}
