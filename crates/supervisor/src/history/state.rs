//! What the keeper believes about the tree: which names may have changed, and who is at work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use nacre_history::{Author, Look, TreePath};
use nacre_wire::watch::Change;

/// Beyond this a look at everything is cheaper than a list.
const MOST_NAMES: usize = 50_000;
/// Without a change for this long, what changed is recorded.
const QUIET: Duration = Duration::from_millis(500);
/// And at the latest after this, when changes never cease.
const LONGEST: Duration = Duration::from_secs(10);

/// Names to look at.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    names: BTreeSet<TreePath>,
    everything: bool,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Dirty {
    pub(super) fn is_clean(&self) -> bool {
        self.names.is_empty() && !self.everything
    }

    pub(super) fn add(&mut self, changes: &[Change], workspace: &Path) {
        for change in changes {
            for path in std::iter::once(&change.path).chain(&change.from) {
                let Ok(relative) = path.as_path().strip_prefix(workspace) else { continue };
                match TreePath::parse(relative) {
                    Some(path) if path.is_root() => self.everything = true,
                    Some(path) => {
                        self.names.insert(path);
                    }
                    None => self.everything = true,
                }
            }
        }
        if self.names.len() > MOST_NAMES {
            self.everything = true;
            self.names.clear();
        }
        self.touch();
    }

    pub(super) fn add_everything(&mut self) {
        self.everything = true;
        self.touch();
    }

    fn touch(&mut self) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// When it is time to record what nobody announced.
    pub(super) fn due(&self) -> Option<Instant> {
        let (first, last) = self.first.zip(self.last)?;
        (!self.is_clean()).then(|| (last + QUIET).min(first + LONGEST))
    }

    /// Puts it off after a failure.
    pub(super) fn wait(&mut self, pause: Duration) {
        let later = Instant::now() + pause;
        (self.first, self.last) = (Some(later), Some(later));
    }

    pub(super) fn look(&self) -> Look<'_> {
        if self.everything { Look::Everywhere } else { Look::At(&self.names) }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Whether somebody waits for what an author does, or it works on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Foreground,
    Background,
}

/// Who is at work now.
#[derive(Debug, Default)]
pub(super) struct Active(BTreeMap<u64, (Manner, Vec<Author>)>);

impl Active {
    pub(super) fn join(&mut self, number: u64, manner: Manner, authors: Vec<Author>) {
        self.0.insert(number, (manner, authors));
    }

    pub(super) fn leave(&mut self, number: u64) {
        self.0.remove(&number);
    }

    /// Those a change is put down to: a server that runs all day is not suspected while somebody
    /// else is at work.
    pub(super) fn authors(&self) -> Vec<Author> {
        let of = |wanted: Manner| {
            let mut authors: Vec<Author> = Vec::new();
            for (manner, group) in self.0.values() {
                let new = group.iter().filter(|author| !authors.contains(author)).cloned();
                if *manner == wanted {
                    let new: Vec<Author> = new.collect();
                    authors.extend(new);
                }
            }
            authors
        };
        let foreground = of(Manner::Foreground);
        if foreground.is_empty() { of(Manner::Background) } else { foreground }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::WirePath;
    use nacre_wire::watch::ChangeKind;

    fn command(id: &str) -> Author {
        Author::Command { id: id.to_owned(), line: String::new() }
    }

    #[test]
    fn a_background_command_is_only_suspected_alone() {
        let mut active = Active::default();
        assert_eq!(active.authors(), []);
        active.join(1, Manner::Background, vec![command("server")]);
        assert_eq!(active.authors(), [command("server")]);
        active.join(2, Manner::Foreground, vec![command("edit")]);
        active.join(3, Manner::Foreground, vec![command("other"), command("edit")]);
        assert_eq!(active.authors(), [command("edit"), command("other")]);
        active.leave(2);
        active.leave(3);
        assert_eq!(active.authors(), [command("server")]);
    }

    #[test]
    fn names_are_relative_and_too_many_become_everything() {
        let change = |path: &str| Change {
            kind: ChangeKind::Move,
            path: WirePath::from(path),
            from: Some(WirePath::from("/w/before")),
            directory: false,
        };
        let mut dirty = Dirty::default();
        assert!(dirty.is_clean() && dirty.due().is_none());
        dirty.add(&[change("/w/a/b"), change("/elsewhere")], Path::new("/w"));
        assert!(matches!(dirty.look(), Look::At(names) if names.len() == 2));
        assert!(dirty.due().is_some());
        let many: Vec<Change> =
            (0..=MOST_NAMES).map(|number| change(&format!("/w/{number}"))).collect();
        dirty.add(&many, Path::new("/w"));
        assert!(matches!(dirty.look(), Look::Everywhere));
        dirty.clear();
        assert!(dirty.is_clean());
    }
}
