//! The history as a stream for `git fast-import`: one commit for each checkpoint.
//!
//! Git keeps less than we do: empty directories, modes but the executable bit, owners, hard links
//! and special files are lost, and a nested `.git` is left out, because Git refuses it.

use std::collections::HashMap;
use std::io::Write;

use crate::checkpoint::{Author, Cause, Checkpoint};
use crate::contents::Fetch;
use crate::delta::Delta;
use crate::entry::{ContentId, Entry, Kind};
use crate::error::{Context, Result};
use crate::history::History;
use crate::log::{Checkpoints, Filter, More};
use crate::path::TreePath;

/// Names and contents that went out already.
struct Exporter<'a> {
    out: &'a mut dyn Write,
    marks: HashMap<ContentId, u64>,
    branch: &'a str,
}

impl History {
    /// Writes all that is kept, oldest first, onto `branch`.
    pub fn export_git(&mut self, branch: &str, out: &mut dyn Write) -> Result<()> {
        let mut log = Vec::new();
        Checkpoints(&self.db).newest_first(&Filter::default(), |checkpoint| {
            log.push(checkpoint);
            Ok(More::Yes)
        })?;
        log.reverse();
        let mut exporter = Exporter { out, marks: HashMap::new(), branch };
        exporter.line("feature done")?;
        let mut first = true;
        for checkpoint in &log {
            // The oldest checkpoint stands on what was there before it.
            let files = if first {
                self.state_after(checkpoint.id)?
            } else {
                files_of(&Checkpoints(&self.db).delta(checkpoint.id)?)
            };
            self.export_contents(&mut exporter, &files)?;
            exporter.commit(checkpoint, &files)?;
            first = false;
        }
        exporter.line("done")
    }

    fn export_contents(
        &mut self,
        exporter: &mut Exporter<'_>,
        files: &[(TreePath, Option<Entry>)],
    ) -> Result<()> {
        let fetcher = self.store.fetcher(&mut self.db);
        for (path, entry) in files {
            let Some(id) = entry.as_ref().and_then(Entry::content) else { continue };
            if exporter.marks.contains_key(&id) || is_git(path) {
                continue;
            }
            let mut bytes = Vec::new();
            fetcher.fetch(id, &mut bytes)?;
            exporter.blob(id, &bytes)?;
        }
        Ok(())
    }
}

fn files_of(delta: &Delta) -> Vec<(TreePath, Option<Entry>)> {
    delta.changes().iter().map(|change| (change.path.clone(), change.new.clone())).collect()
}

fn is_git(path: &TreePath) -> bool {
    path.names().any(|name| name.eq_ignore_ascii_case(".git"))
}

impl Exporter<'_> {
    fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "{text}").context(|| "write the export".to_owned())
    }

    fn data(&mut self, bytes: &[u8]) -> Result<()> {
        self.line(&format!("data {}", bytes.len()))?;
        self.out
            .write_all(bytes)
            .and_then(|()| self.out.write_all(b"\n"))
            .context(|| "write the export".to_owned())
    }

    fn blob(&mut self, id: ContentId, bytes: &[u8]) -> Result<()> {
        let mark = self.marks.len() as u64 + 1;
        self.marks.insert(id, mark);
        self.line("blob")?;
        self.line(&format!("mark :{mark}"))?;
        self.data(bytes)
    }

    fn commit(
        &mut self,
        checkpoint: &Checkpoint,
        files: &[(TreePath, Option<Entry>)],
    ) -> Result<()> {
        self.line(&format!("commit refs/heads/{}", self.branch))?;
        let seconds = checkpoint.time.div_euclid(1000);
        self.line(&format!("committer Nacre <nacre@localhost> {seconds} +0000"))?;
        self.data(message(checkpoint).as_bytes())?;
        // Removals first: a directory may have become a file.
        for (path, entry) in files.iter().filter(|(path, _)| !is_git(path)) {
            if entry.as_ref().is_none_or(|entry| !entry.is_directory()) {
                self.line(&format!("D {}", quoted(path)))?;
            }
        }
        for (path, entry) in files.iter().filter(|(path, _)| !is_git(path)) {
            if let Some(entry) = entry {
                self.file(path, entry)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &TreePath, entry: &Entry) -> Result<()> {
        match &entry.kind {
            Kind::File { .. } => {
                let mark = entry.content().and_then(|id| self.marks.get(&id).copied());
                let mode = if entry.mode & 0o100 == 0 { "100644" } else { "100755" };
                match mark {
                    Some(mark) => self.line(&format!("M {mode} :{mark} {}", quoted(path))),
                    None => Ok(()),
                }
            }
            Kind::Symlink { target } => {
                self.line(&format!("M 120000 inline {}", quoted(path)))?;
                self.data(target)
            }
            Kind::Directory | Kind::Special(_) => Ok(()),
        }
    }
}

/// In C style, as fast-import reads names that hold anything.
fn quoted(path: &TreePath) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::from("\"");
    for byte in path.to_path().as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}

fn message(checkpoint: &Checkpoint) -> String {
    let what = match &checkpoint.cause {
        Cause::First => "the beginning".to_owned(),
        Cause::Change => match checkpoint.authors.first() {
            Some(Author::Command { line, .. }) => line.clone(),
            Some(Author::Api { call }) => call.clone(),
            Some(Author::Conversation { id, .. }) => format!("conversation {id}"),
            Some(Author::Ssh { session }) => format!("ssh session {session}"),
            None => "changes".to_owned(),
        },
        Cause::Undo { of, .. } => format!("undo of {of:?}"),
        Cause::Redo { of } => format!("redo of {of}"),
        Cause::Restore { to } => format!("restore to {to}"),
    };
    let label = checkpoint.label.as_ref().map_or(String::new(), |label| format!(" ({label})"));
    format!("{}: {what}{label}\n", checkpoint.id)
}
