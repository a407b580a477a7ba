//! Taking back what a conversation changed, by way of the history of the sandboxes that it acted on.
//!
//! What is to be taken back is asked of history and not of the journal: a call that was cut off has no end
//! in the latter, and what it changed is in the former all the same.
//!
//! It happens in all of these sandboxes or in none: what one of them would refuse is known before another
//! is touched, and what is begun is written down before, so that [`super::undoing`] can finish it.

use nacre_agent::events::{Event, Update};
use nacre_wire::client::{self, Client, ListHistory};
use nacre_wire::conductor::{LostIn, UndoConversation, UndoneIn, UndoneList};
use nacre_wire::history::{CheckpointInfo, How, Outcome, RedoRequest, UndoRequest};
use nacre_wire::{ApiError, ErrorKind};

use super::conversation::Conversation;
use super::index::UndoingIn;
use super::log::Log;
use super::policy::{self, Began, Scope};
use super::undoing;

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
    undoing::finish(conversation).await?;
    let began = began(&conversation.log);
    let scope = policy::scope(wanted, &began, conversation.meta.parent.as_ref())?;
    let (parts, lost) = parts(conversation, &scope, &began).await?;
    if parts.is_empty() {
        return Err(nothing(&lost));
    }
    let looked = look(&parts, &wanted.how).await?;
    let conflicts = looked.iter().any(|part| !part.outcome.conflicts.is_empty());
    if conflicts || wanted.how.dry_run {
        return Ok(UndoneList { sandboxes: looked, lost });
    }
    let intended = parts.iter().zip(&looked).map(|(part, looked)| UndoingIn {
        sandbox: part.sandbox.clone(),
        checkpoints: part.checkpoints.clone(),
        paths: paths(&looked.outcome),
    });
    undoing::begin(conversation, &wanted.how, intended.collect()).await?;
    let sandboxes = match perform(&parts, &wanted.how).await? {
        Performed::All(done) => {
            write_down(conversation, &parts, &done).await?;
            done
        }
        Performed::Conflict(conflict) => vec![*conflict],
        Performed::Refused(error) => {
            undoing::end(conversation).await?;
            return Err(*error);
        }
    };
    undoing::end(conversation).await?;
    Ok(UndoneList { sandboxes, lost })
}

fn nothing(lost: &[LostIn]) -> ApiError {
    match lost.first() {
        Some(LostIn { sandbox, role }) => {
            let message = format!("the sandbox that this was done in is gone ({role}, {sandbox})");
            ApiError::new(ErrorKind::NotFound, message)
                .hint("its files went with it, and nothing else has changed")
        }
        None => ApiError::new(ErrorKind::InvalidRequest, "nothing of that is left to take back")
            .hint("it changed no files, or was undone already; nacre history shows what happened"),
    }
}

/// Every turn there was. Most lines are about something else, and are not parsed.
pub(super) fn began(log: &Log) -> Vec<Began> {
    let lines = log.after(0, usize::MAX);
    let named =
        lines.iter().filter(|line| line.windows(BEGINS.len()).any(|window| window == BEGINS));
    let read = named.filter_map(|line| serde_json::from_slice::<Event>(line).ok());
    read.filter_map(|event| match event.update {
        Update::TurnBegins { turn, sandbox, role, .. } => {
            Some(Began { seq: event.seq, turn, sandbox, role })
        }
        _ => None,
    })
    .collect()
}

const BEGINS: &[u8] = b"\"turn_begins\"";

/// Where something is to be taken back, and the sandboxes that are no more: what was done in those went
/// with them, and holds up nothing else.
async fn parts(
    conversation: &Conversation,
    scope: &Scope,
    began: &[Began],
) -> Result<(Vec<Part>, Vec<LostIn>), ApiError> {
    let (mut parts, mut lost) = (Vec::new(), Vec::new());
    for id in &scope.sandboxes {
        let Ok(sandbox) = conversation.brain.sandboxes.find(id) else {
            let last = began.iter().rfind(|began| began.sandbox == *id);
            let role = last.map(|began| began.role.clone()).unwrap_or_default();
            lost.push(LostIn { sandbox: id.clone(), role });
            continue;
        };
        sandbox.require_running()?;
        let client = sandbox.client();
        let all = all_of(&client, &conversation.meta.id).await?;
        let held = all.iter().filter(|checkpoint| scope.holds(&conversation.meta.id, checkpoint));
        let checkpoints: Vec<u64> = held.map(|checkpoint| checkpoint.id).collect();
        if !checkpoints.is_empty() {
            let (sandbox, name) = (id.clone(), sandbox.name.clone());
            parts.push(Part { sandbox, name, client, checkpoints });
        }
    }
    Ok((parts, lost))
}

/// What a sandbox's history has of a conversation.
pub(super) async fn all_of(client: &Client, id: &str) -> Result<Vec<CheckpointInfo>, ApiError> {
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
        found.extend(page.checkpoints);
        before = page.next;
        if before.is_none() {
            return Ok(found);
        }
    }
}

impl Part {
    async fn undo(&self, how: &How) -> client::Result<UndoneIn> {
        let (checkpoints, how) = (self.checkpoints.clone(), how.clone());
        let request = UndoRequest { checkpoints, how, ..UndoRequest::default() };
        let outcome = self.client.undo(&request).await?;
        Ok(UndoneIn { sandbox: self.name.clone(), outcome })
    }
}

async fn look(parts: &[Part], how: &How) -> Result<Vec<UndoneIn>, ApiError> {
    let how = How { dry_run: true, ..how.clone() };
    let mut looked = Vec::new();
    for part in parts {
        looked.push(part.undo(&how).await.map_err(plain)?);
    }
    Ok(looked)
}

/// What came of it. When one has refused, the others are as they were.
enum Performed {
    All(Vec<UndoneIn>),
    Conflict(Box<UndoneIn>),
    Refused(Box<ApiError>),
}

/// Fails when it is not known how far it got.
async fn perform(parts: &[Part], how: &How) -> Result<Performed, ApiError> {
    let mut done = Vec::new();
    for part in parts {
        let refused = match part.undo(how).await {
            Ok(undone) if undone.outcome.conflicts.is_empty() => {
                done.push(undone);
                continue;
            }
            // Somebody was faster since we looked.
            Ok(conflict) => Performed::Conflict(Box::new(conflict)),
            Err(client::Error::Api(error)) if undoing::is_refusal(&error) => {
                Performed::Refused(Box::new(error))
            }
            Err(error) => return Err(plain(error)),
        };
        for (part, undone) in parts.iter().zip(&done).rev() {
            redo(part, undone).await?;
        }
        return Ok(refused);
    }
    Ok(Performed::All(done))
}

async fn redo(part: &Part, undone: &UndoneIn) -> Result<(), ApiError> {
    let Some(checkpoint) = &undone.outcome.checkpoint else { return Ok(()) };
    let how = How { expected: Some(checkpoint.id), ..How::default() };
    let redone = part.client.redo(&RedoRequest { how }).await.map_err(plain)?;
    if redone.conflicts.is_empty() {
        return Ok(());
    }
    let message = format!("{} was changed while an undo was under way", part.name);
    Err(ApiError::new(ErrorKind::Conflict, message).hint("undo it again: the rest is done then"))
}

/// So that whoever goes on, and the model, know of it.
async fn write_down(
    conversation: &mut Conversation,
    parts: &[Part],
    done: &[UndoneIn],
) -> Result<(), ApiError> {
    let undone = parts
        .iter()
        .zip(done)
        .filter(|(_, done)| done.outcome.checkpoint.is_some())
        .map(|(part, done)| Update::Undone {
            sandbox: part.sandbox.clone(),
            checkpoints: done.outcome.of.clone(),
            paths: paths(&done.outcome),
        })
        .collect();
    conversation.note(undone).await
}

pub(super) fn paths(outcome: &Outcome) -> Vec<String> {
    let changes = outcome.changes.changes.iter();
    changes.take(MOST_PATHS).map(|change| change.path.to_string()).collect()
}

pub(super) fn plain(error: client::Error) -> ApiError {
    match error {
        client::Error::Api(error) => error,
        other => ApiError::new(other.kind(), other.to_string()),
    }
}
