//! Taking back what a conversation changed, by way of the history of the sandboxes that it acted on.
//!
//! What is to be taken back is asked of history and not of the journal: a call that was cut off has no end
//! in the latter, and what it changed is in the former all the same.

use nacre_agent::events::{Event, Update};
use nacre_wire::client::{self, Client, ListHistory};
use nacre_wire::conductor::{UndoConversation, UndoneIn, UndoneList};
use nacre_wire::history::{How, Outcome, UndoRequest};
use nacre_wire::{ApiError, ErrorKind};

use super::conversation::Conversation;
use super::log::Log;
use super::policy::{self, Began, Scope};

const PAGE: u64 = 1000;
/// Paths that the model and the owner are told of.
const MOST_PATHS: usize = 50;

/// What there is to do in one sandbox.
struct Part {
    sandbox: String,
    name: String,
    client: Client,
    checkpoints: Vec<u64>,
}

pub(super) async fn undo(
    conversation: &mut Conversation,
    wanted: &UndoConversation,
) -> Result<UndoneList, ApiError> {
    let scope =
        policy::scope(wanted, &began(&conversation.log), conversation.meta.parent.as_ref())?;
    let parts = parts(conversation, &scope).await?;
    if parts.is_empty() {
        let message = "nothing of that is left to take back";
        return Err(ApiError::new(ErrorKind::InvalidRequest, message).hint(
            "it changed no files, or was undone already; nacre history shows what happened",
        ));
    }
    // Both or none: what one would refuse is known before the other is touched.
    if parts.len() > 1 || wanted.how.dry_run {
        let looked = perform(&parts, &How { dry_run: true, ..wanted.how.clone() }).await?;
        let conflicts = looked.iter().any(|part| !part.outcome.conflicts.is_empty());
        if conflicts || wanted.how.dry_run {
            return Ok(UndoneList { sandboxes: looked });
        }
    }
    let done = perform(&parts, &wanted.how).await?;
    write_down(conversation, &parts, &done).await?;
    Ok(UndoneList { sandboxes: done })
}

/// Every turn there was. Most lines are about something else, and are not parsed.
fn began(log: &Log) -> Vec<Began> {
    let lines = log.after(0, usize::MAX);
    let named =
        lines.iter().filter(|line| line.windows(BEGINS.len()).any(|window| window == BEGINS));
    let read = named.filter_map(|line| serde_json::from_slice::<Event>(line).ok());
    read.filter_map(|event| match event.update {
        Update::TurnBegins { turn, sandbox, .. } => Some(Began { seq: event.seq, turn, sandbox }),
        _ => None,
    })
    .collect()
}

const BEGINS: &[u8] = b"\"turn_begins\"";

async fn parts(conversation: &Conversation, scope: &Scope) -> Result<Vec<Part>, ApiError> {
    let mut parts = Vec::new();
    for id in &scope.sandboxes {
        let sandbox = conversation.brain.sandboxes.find(id).map_err(|_| {
            ApiError::new(ErrorKind::NotFound, "the sandbox that this was done in is gone")
        })?;
        sandbox.require_running()?;
        let client = sandbox.client();
        let checkpoints = checkpoints(&client, &conversation.meta.id, scope).await?;
        if !checkpoints.is_empty() {
            let (sandbox, name) = (id.clone(), sandbox.name.clone());
            parts.push(Part { sandbox, name, client, checkpoints });
        }
    }
    Ok(parts)
}

async fn checkpoints(client: &Client, id: &str, scope: &Scope) -> Result<Vec<u64>, ApiError> {
    let mut found = Vec::new();
    let mut before = None;
    loop {
        let wanted = ListHistory {
            before,
            conversation: Some(id.to_owned()),
            limit: Some(PAGE),
            ..ListHistory::default()
        };
        let page = client.history(&wanted).await.map_err(plain)?;
        let held = page.checkpoints.iter().filter(|checkpoint| scope.holds(id, checkpoint));
        found.extend(held.map(|checkpoint| checkpoint.id));
        before = page.next;
        if before.is_none() {
            return Ok(found);
        }
    }
}

async fn perform(parts: &[Part], how: &How) -> Result<Vec<UndoneIn>, ApiError> {
    let mut done = Vec::new();
    for part in parts {
        let request = UndoRequest {
            checkpoints: part.checkpoints.clone(),
            how: how.clone(),
            ..UndoRequest::default()
        };
        let outcome = part.client.undo(&request).await.map_err(plain)?;
        done.push(UndoneIn { sandbox: part.name.clone(), outcome });
    }
    Ok(done)
}

/// So that whoever goes on, and the model, know of it.
async fn write_down(
    conversation: &mut Conversation,
    parts: &[Part],
    done: &[UndoneIn],
) -> Result<(), ApiError> {
    let undone: Vec<_> = parts
        .iter()
        .zip(done)
        .filter(|(_, done)| done.outcome.checkpoint.is_some())
        .map(|(part, done)| Update::Undone {
            sandbox: part.sandbox.clone(),
            checkpoints: done.outcome.of.clone(),
            paths: paths(&done.outcome),
        })
        .collect();
    if undone.is_empty() {
        return Ok(());
    }
    let mut memory = conversation.memory().await?;
    let kept = undone.into_iter().try_for_each(|update| memory.keep(update));
    conversation.remember(memory);
    kept.map_err(|error| ApiError::io("the conversation", &error))
}

fn paths(outcome: &Outcome) -> Vec<String> {
    let changes = outcome.changes.changes.iter();
    changes.take(MOST_PATHS).map(|change| change.path.to_string()).collect()
}

fn plain(error: client::Error) -> ApiError {
    match error {
        client::Error::Api(error) => error,
        other => ApiError::new(other.kind(), other.to_string()),
    }
}
