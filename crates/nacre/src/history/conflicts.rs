//! Names that somebody changed later: told, and decided by whoever is there to decide.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use nacre_wire::client;
use nacre_wire::history::{Choice, Conflict, How, Outcome};

use super::outcome::{self, Deed};
use super::words;
use crate::commands::Context;
use crate::failure::{Failure, Result};
use crate::output::{self, one_line};

/// Nothing was done, because of conflicts.
const CONFLICTS: u8 = 3;
/// Conflicts that are listed when nobody is asked.
const MOST: usize = 50;

/// Asks for an undo, a redo or a restore until there is no conflict left, and reports.
pub(crate) async fn settle(
    mut how: How,
    deed: Deed,
    context: &Context,
    ask_for: impl AsyncFn(&How) -> client::Result<Outcome>,
) -> Result<ExitCode> {
    loop {
        let outcome = ask_for(&how).await?;
        if outcome.conflicts.is_empty() {
            return outcome::report(&outcome, deed, context);
        }
        if context.json {
            output::print_json(&outcome)?;
            return Ok(ExitCode::from(CONFLICTS));
        }
        if how.dry_run || !someone_is_there() {
            eprint!("{}", list(&outcome.conflicts));
            return Ok(ExitCode::from(CONFLICTS));
        }
        if !decide(&outcome.conflicts, &mut how).await? {
            eprintln!("Nothing was done.");
            return Ok(ExitCode::from(CONFLICTS));
        }
    }
}

pub(crate) fn someone_is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn list(conflicts: &[Conflict]) -> String {
    let mut text = "These names changed later, so nothing was done:\n".to_owned();
    for conflict in conflicts.iter().take(MOST) {
        text.push_str(&format!("  {}\n", describe(conflict)));
    }
    if conflicts.len() > MOST {
        text.push_str(&format!("  and {} more\n", conflicts.len() - MOST));
    }
    text.push_str(
        "--keep leaves them as they are and does the rest; --overwrite puts the old ones in their \
         place.\nWhat --overwrite replaces is in the history too.\n",
    );
    text
}

fn describe(conflict: &Conflict) -> String {
    let path = one_line(&conflict.path.to_string());
    let what = match conflict.reason.as_str() {
        "changed_later" => "changed later",
        "changed_between" => "changed in between",
        "holds_later_files" => "holds files that came later",
        "parent_replaced" => "its folder was replaced",
        other => other,
    };
    let present = match &conflict.present {
        None => "now gone".to_owned(),
        Some(version) if version.kind == "file" => {
            format!("now a file of {}", output::bytes(version.size))
        }
        Some(version) => format!("now a {}", one_line(&version.kind)),
    };
    let by = conflict.by.as_ref().map_or_else(String::new, |by| {
        let who = words::short(&words::who(by));
        format!(" by {} ({who}), {}", words::id(by.id), words::when(by.time))
    });
    format!("{path}: {what}{by}; {present}")
}

/// What a person answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    One(Choice),
    All(Choice),
    Abort,
}

impl Answer {
    fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "k" | "keep" => Some(Self::One(Choice::Keep)),
            "o" | "overwrite" => Some(Self::One(Choice::Overwrite)),
            "K" | "keep all" => Some(Self::All(Choice::Keep)),
            "O" | "overwrite all" => Some(Self::All(Choice::Overwrite)),
            "a" | "abort" | "q" | "" => Some(Self::Abort),
            _ => None,
        }
    }
}

/// `false` when the person would rather not.
async fn decide(conflicts: &[Conflict], how: &mut How) -> Result<bool> {
    let names = if conflicts.len() == 1 { "name" } else { "names" };
    eprintln!("{} {names} changed later; nothing is done yet.", conflicts.len());
    for conflict in conflicts {
        eprintln!("  {}", describe(conflict));
        // JSON has no other strings for the keys of an object.
        let Some(path) = conflict.path.as_path().to_str() else {
            return Err(Failure::new(format!("\"{}\" is not UTF-8", conflict.path))
                .hint("it takes part in --keep and --overwrite only"));
        };
        if how.choices.contains_key(path) {
            return Err(Failure::new(format!(
                "\"{path}\" is in the way whatever is chosen for it"
            )));
        }
        match answer().await? {
            Answer::One(choice) => {
                how.choices.insert(path.to_owned(), choice);
            }
            Answer::All(choice) => {
                how.on_conflict = choice;
                return Ok(true);
            }
            Answer::Abort => return Ok(false),
        }
    }
    Ok(true)
}

async fn answer() -> Result<Answer> {
    loop {
        let question = "(k)eep the present, (o)verwrite with the old, K or O for all, (a)bort? ";
        match ask(question).await?.as_deref().map(Answer::parse) {
            None => return Ok(Answer::Abort),
            Some(Some(answer)) => return Ok(answer),
            Some(None) => {}
        }
    }
}

/// A line from the person; `None` when there is none to come.
pub(crate) async fn ask(question: &str) -> Result<Option<String>> {
    eprint!("{question}");
    let _ = std::io::stderr().flush();
    // In a thread of its own, so that Ctrl-C is still heard.
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|count| (count > 0).then_some(line))
    });
    let line = read.await.map_err(|error| Failure::new(error.to_string()))?;
    line.map_err(|error| Failure::io("the terminal", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capital_letter_is_for_all() {
        let cases = [
            ("k\n", Some(Answer::One(Choice::Keep))),
            ("o", Some(Answer::One(Choice::Overwrite))),
            ("K\n", Some(Answer::All(Choice::Keep))),
            ("O", Some(Answer::All(Choice::Overwrite))),
            ("a", Some(Answer::Abort)),
            ("\n", Some(Answer::Abort)),
            ("yes", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Answer::parse(text), expected, "{text}");
        }
    }
}
