//! What a form of the page asks for.

use nacre_wire::history::{Choice, How, Outcome, RedoRequest, RestoreRequest, UndoRequest};
use nacre_wire::{ApiError, ErrorKind};

use super::notes::Note;
use super::words;
use crate::files::Query;
use crate::history::Actions;
use crate::runtime::{Order, Runtime};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    /// Of one checkpoint, or of the last that stands.
    Undo(Option<u64>, Choice),
    Redo(Choice),
    Restore(u64, Choice),
    Restart(String),
}

impl Act {
    /// From the last part of the path, and the fields as a browser sends them.
    pub(super) fn read(name: &str, body: &[u8]) -> Result<Self, ApiError> {
        let text =
            std::str::from_utf8(body).map_err(|_| bad("the form is not UTF-8".to_owned()))?;
        // In a form a plus is a space.
        let fields = Query::parse(&text.replace('+', "%20"));
        let checkpoint = fields.number("checkpoint", 10)?;
        let choice = match fields.text("choice")?.as_deref() {
            None | Some("" | "ask") => Choice::Ask,
            Some("keep") => Choice::Keep,
            Some("overwrite") => Choice::Overwrite,
            Some(other) => return Err(bad(format!("\"choice={other}\" is no choice"))),
        };
        let missing = |field: &str| bad(format!("the form has no \"{field}\""));
        match name {
            "undo" => Ok(Self::Undo(checkpoint, choice)),
            "redo" => Ok(Self::Redo(choice)),
            "restore" => {
                Ok(Self::Restore(checkpoint.ok_or_else(|| missing("checkpoint"))?, choice))
            }
            "restart" => Ok(Self::Restart(fields.text("name")?.ok_or_else(|| missing("name"))?)),
            other => {
                let message = format!("the rescue page cannot \"{other}\"");
                Err(ApiError::new(ErrorKind::NotFound, message))
            }
        }
    }

    /// Where its form goes, and the fields that make it the same again.
    pub(super) fn fields(&self) -> (&'static str, Vec<(&'static str, String)>) {
        match self {
            Self::Undo(None, _) => ("undo", Vec::new()),
            Self::Undo(Some(id), _) => ("undo", vec![("checkpoint", id.to_string())]),
            Self::Redo(_) => ("redo", Vec::new()),
            Self::Restore(id, _) => ("restore", vec![("checkpoint", id.to_string())]),
            Self::Restart(name) => ("restart", vec![("name", name.clone())]),
        }
    }

    pub(super) async fn carry_out(self, history: &Actions, runtime: &Runtime) -> Note {
        let outcome = match &self {
            Self::Undo(checkpoint, choice) => {
                let checkpoints = checkpoint.iter().copied().collect();
                let request = UndoRequest { checkpoints, how: how(*choice), ..Default::default() };
                history.undo(request).await
            }
            Self::Redo(choice) => history.redo(RedoRequest { how: how(*choice) }).await,
            Self::Restore(id, choice) => {
                let (checkpoint, how) = (Some(*id), how(*choice));
                history.restore(RestoreRequest { checkpoint, how, time: None }).await
            }
            Self::Restart(name) => {
                return match runtime.order(name, Order::Restart).await {
                    Ok(info) => Note::Done(format!("{} is being started again.", info.name)),
                    Err(error) => Note::Failed(words::error(&error)),
                };
            }
        };
        match outcome {
            Ok(Outcome { conflicts, .. }) if !conflicts.is_empty() => {
                Note::Conflicts(self, conflicts)
            }
            Ok(outcome) => Note::Done(words::outcome(&outcome)),
            Err(error) => Note::Failed(words::error(&error)),
        }
    }
}

fn how(on_conflict: Choice) -> How {
    How { on_conflict, ..How::default() }
}

fn bad(message: String) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_is_to_be_done_or_is_refused() {
        let check = |name: &str, body: &str, expected: Option<Act>| {
            assert_eq!(Act::read(name, body.as_bytes()).ok(), expected, "{name} {body}");
        };
        check("undo", "", Some(Act::Undo(None, Choice::Ask)));
        check("undo", "checkpoint=7", Some(Act::Undo(Some(7), Choice::Ask)));
        check("undo", "checkpoint=7&choice=keep", Some(Act::Undo(Some(7), Choice::Keep)));
        check("redo", "choice=overwrite", Some(Act::Redo(Choice::Overwrite)));
        check("restore", "checkpoint=3", Some(Act::Restore(3, Choice::Ask)));
        check("restart", "name=runtime%40dev", Some(Act::Restart("runtime@dev".into())));
        check("restart", "name=a+b", Some(Act::Restart("a b".into())));
        for (name, body) in [
            ("undo", "checkpoint=many"),
            ("undo", "choice=whatever"),
            ("restore", ""),
            ("restart", ""),
            ("format", ""),
        ] {
            check(name, body, None);
        }
        assert!(Act::read("undo", &[0xff]).is_err());
    }
}
