//! Changes as people read them.

use std::time::Duration;

use similar::TextDiff;

use crate::delta::Change;
use crate::entry::{Entry, Kind};
use crate::error::Result;
use crate::history::History;

/// Files above this are not compared line by line.
const LARGEST: u64 = 2 << 20;
/// After this the rest is shown as replaced: two files that have nothing in common take long.
const PATIENCE: Duration = Duration::from_millis(500);

/// How the content of one name changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileDiff {
    /// Unified, with headers. Empty when only the mode or the owner changed.
    Text(String),
    Binary,
    TooLarge,
    /// A directory or something without content.
    None,
}

impl History {
    /// Compares both sides of a change.
    pub fn diff(&mut self, change: &Change) -> Result<FileDiff> {
        let sides = [change.old.as_ref(), change.new.as_ref()];
        let size = |entry: &Entry| match entry.kind {
            Kind::File { size, .. } => size,
            Kind::Directory | Kind::Symlink { .. } | Kind::Special(_) => 0,
        };
        if !sides.iter().flatten().any(|entry| has_text(entry)) {
            return Ok(FileDiff::None);
        }
        if sides.iter().flatten().any(|entry| size(entry) > LARGEST) {
            return Ok(FileDiff::TooLarge);
        }
        let (old, new) = (self.text(change.old.as_ref())?, self.text(change.new.as_ref())?);
        if old.contains(&0) || new.contains(&0) {
            return Ok(FileDiff::Binary);
        }
        let (Ok(old), Ok(new)) = (String::from_utf8(old), String::from_utf8(new)) else {
            return Ok(FileDiff::Binary);
        };
        let name = |side: &str, entry: Option<&Entry>| match entry {
            Some(_) => format!("{side}/{}", change.path),
            None => "/dev/null".to_owned(),
        };
        let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&old, &new);
        let (before, after) = (name("a", change.old.as_ref()), name("b", change.new.as_ref()));
        Ok(FileDiff::Text(diff.unified_diff().header(&before, &after).to_string()))
    }

    /// A link's text is where it points to.
    fn text(&mut self, entry: Option<&Entry>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match entry {
            Some(Entry { kind: Kind::Symlink { target }, .. }) => bytes.extend_from_slice(target),
            Some(entry) => {
                if let Some(id) = entry.content() {
                    self.fetch(id, &mut bytes)?;
                }
            }
            None => {}
        }
        Ok(bytes)
    }
}

fn has_text(entry: &Entry) -> bool {
    match entry.kind {
        Kind::File { .. } | Kind::Symlink { .. } => true,
        Kind::Directory | Kind::Special(_) => false,
    }
}
