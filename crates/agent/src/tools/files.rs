//! Reading, writing, editing, listing and searching files.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answer, Context, Intent, Ready, arguments, at, tool};
use crate::body::{Body, Edit, EntryKind, Expected, Search, Write};
use crate::events::{ToolContent, ToolKind};
use crate::model::{Call, Tool};

const LARGEST: u64 = 4 << 20;
const LINES: u64 = 2000;
const LONGEST_LINE: usize = 2000;
const MOST_FOUND: usize = 200;
const MOST_LISTED: usize = 1000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    /// From the workspace, or absolute.
    path: String,
    /// The first line to read, from 1.
    #[serde(default)]
    offset: Option<u64>,
    /// How many lines; 2000 when not said.
    #[serde(default)]
    limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    /// From the workspace, or absolute. Directories above it are made.
    path: String,
    /// The whole file.
    content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditFile {
    path: String,
    /// The passage to replace, exactly as it stands in the file, spaces and line ends included.
    old_string: String,
    new_string: String,
    /// Replace every such passage; otherwise there must be exactly one.
    #[serde(default)]
    replace_all: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListFiles {
    /// A directory; the workspace when not said.
    #[serde(default)]
    path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchFiles {
    /// An extended regular expression, matched against each line.
    pattern: String,
    /// A file or a directory; the workspace when not said.
    #[serde(default)]
    path: Option<String>,
    /// Only files with such a name, like `*.rs`.
    #[serde(default)]
    include: Option<String>,
}

enum Asked {
    Read(ReadFile),
    Write(WriteFile),
    Edit(EditFile),
    List(ListFiles),
    Search(SearchFiles),
}

struct FileCall {
    body: Arc<dyn Body>,
    asked: Asked,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        tool::<ReadFile>("read_file", "Read a text file. Lines come with their numbers."),
        tool::<WriteFile>("write_file", "Make a file, or replace a whole one."),
        tool::<EditFile>("edit_file", "Replace a passage of a text file by another."),
        tool::<ListFiles>("list_files", "List a directory."),
        tool::<SearchFiles>("search", "Find lines that match, with path and line number."),
    ]
}

pub(super) fn prepare(body: &Arc<dyn Body>, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
    let asked = match call.name.as_str() {
        "read_file" => arguments(call).map(Asked::Read),
        "write_file" => arguments(call).map(Asked::Write),
        "edit_file" => arguments(call).map(Asked::Edit),
        "list_files" => arguments(call).map(Asked::List),
        "search" => arguments(call).map(Asked::Search),
        _ => return None,
    };
    let body = body.clone();
    Some(asked.map(|asked| Box::new(FileCall { body, asked }) as Box<dyn Ready>))
}

#[async_trait]
impl Ready for FileCall {
    fn intent(&self) -> Intent {
        let here = || ".".to_owned();
        let (title, kind, path, changes) = match &self.asked {
            Asked::Read(ReadFile { path, .. }) => {
                (format!("read {path}"), ToolKind::Read, path.clone(), false)
            }
            Asked::Write(WriteFile { path, .. }) => {
                (format!("write {path}"), ToolKind::Edit, path.clone(), true)
            }
            Asked::Edit(EditFile { path, .. }) => {
                (format!("edit {path}"), ToolKind::Edit, path.clone(), true)
            }
            Asked::List(ListFiles { path }) => {
                let path = path.clone().unwrap_or_else(here);
                (format!("list {path}"), ToolKind::Read, path, false)
            }
            Asked::Search(SearchFiles { pattern, path, .. }) => {
                let path = path.clone().unwrap_or_else(here);
                (format!("search {pattern} in {path}"), ToolKind::Search, path, false)
            }
        };
        Intent { title, kind, locations: at(&path), changes, asks: false }
    }

    async fn run(self: Box<Self>, context: &mut Context<'_>) -> Answer {
        let Self { body, asked } = *self;
        let done = match &asked {
            Asked::Read(asked) => read(&*body, asked).await,
            Asked::Write(asked) => write(&*body, asked, context.call).await,
            Asked::Edit(asked) => edit(&*body, asked, context.call).await,
            Asked::List(asked) => list(&*body, asked).await,
            Asked::Search(asked) => search(&*body, asked).await,
        };
        done.unwrap_or_else(|error| Answer::error(&error))
    }
}

async fn read(body: &dyn Body, asked: &ReadFile) -> crate::body::Result<Answer> {
    let (text, _) = body.read_text(&asked.path, LARGEST).await?;
    Ok(Answer::ok(numbered(&text, asked.offset.unwrap_or(1).max(1), asked.limit.unwrap_or(LINES))))
}

fn numbered(text: &str, first: u64, limit: u64) -> String {
    let mut shown = String::new();
    let mut left = 0u64;
    for (number, line) in (1..).zip(text.lines()) {
        if number < first {
            continue;
        }
        if number - first >= limit {
            left += 1;
            continue;
        }
        let cut = line.char_indices().nth(LONGEST_LINE).map_or(line.len(), |(end, _)| end);
        let mark = if cut < line.len() { "..." } else { "" };
        // Writing to a string does not fail.
        let _ = writeln!(shown, "{number:>6}\t{}{mark}", &line[..cut]);
    }
    match (shown.is_empty(), left) {
        (true, _) if text.is_empty() => "(the file is empty)".to_owned(),
        (true, _) => format!("(the file has {} lines)", text.lines().count()),
        (false, 0) => shown,
        (false, left) => {
            format!("{shown}({left} lines more; read on with offset {})\n", first + limit)
        }
    }
}

async fn write(body: &dyn Body, asked: &WriteFile, call: &str) -> crate::body::Result<Answer> {
    let old = body.read_text(&asked.path, LARGEST).await.ok().map(|(text, _)| text);
    let bytes = asked.content.clone().into_bytes();
    let write = Write { bytes, expected: Expected::Anything, call: Some(call.to_owned()) };
    body.write_file(&asked.path, &write).await?;
    let lines = asked.content.lines().count();
    let text = format!("wrote {} ({lines} lines)", asked.path);
    let (path, new_text) = (asked.path.clone(), asked.content.clone());
    let content = vec![ToolContent::Diff { path, old_text: old, new_text }];
    Ok(Answer { content, ..Answer::ok(text) })
}

async fn edit(body: &dyn Body, asked: &EditFile, call: &str) -> crate::body::Result<Answer> {
    let edited = body
        .edit_file(&Edit {
            path: &asked.path,
            old: &asked.old_string,
            new: &asked.new_string,
            everywhere: asked.replace_all,
            call: Some(call),
        })
        .await?;
    let text = match edited.times {
        1 => format!("edited {}", asked.path),
        times => format!("edited {} in {times} places", asked.path),
    };
    let path = asked.path.clone();
    let (old_text, new_text) = (Some(edited.before), edited.after);
    let content = vec![ToolContent::Diff { path, old_text, new_text }];
    Ok(Answer { content, ..Answer::ok(text) })
}

async fn list(body: &dyn Body, asked: &ListFiles) -> crate::body::Result<Answer> {
    let entries = body.list_files(asked.path.as_deref().unwrap_or(".")).await?;
    let mut text = String::new();
    for entry in entries.iter().take(MOST_LISTED) {
        let _ = match entry.kind {
            EntryKind::Directory => writeln!(text, "{}/", entry.name),
            EntryKind::Link => writeln!(text, "{} (link)", entry.name),
            EntryKind::File => writeln!(text, "{} ({} bytes)", entry.name, entry.size),
            EntryKind::Other => writeln!(text, "{} (no file)", entry.name),
        };
    }
    if entries.len() > MOST_LISTED {
        let _ = writeln!(text, "({} more)", entries.len() - MOST_LISTED);
    }
    Ok(Answer::ok(if text.is_empty() { "(nothing is there)".to_owned() } else { text }))
}

async fn search(body: &dyn Body, asked: &SearchFiles) -> crate::body::Result<Answer> {
    let within = asked.path.as_deref().unwrap_or(".");
    let names = asked.include.as_deref();
    let search = Search { pattern: &asked.pattern, within, names, at_most: MOST_FOUND };
    let (found, more) = body.search(&search).await?;
    let mut text = String::new();
    for line in &found {
        let shown: String = line.text.chars().take(LONGEST_LINE).collect();
        let _ = writeln!(text, "{}:{}: {shown}", line.path, line.line);
    }
    if more {
        let _ = writeln!(text, "(there are more; search for something narrower)");
    }
    Ok(Answer::ok(if text.is_empty() { "(nothing found)".to_owned() } else { text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_shown_from_where_it_was_asked_for() {
        let text = "a\nb\nc\n";
        assert_eq!(numbered(text, 1, 9), "     1\ta\n     2\tb\n     3\tc\n");
        let part = "     2\tb\n(1 lines more; read on with offset 3)\n";
        assert_eq!(numbered(text, 2, 1), part);
        assert_eq!(numbered(text, 9, 1), "(the file has 3 lines)");
        assert_eq!(numbered("", 1, 1), "(the file is empty)");
    }
}
