//! What `.gitignore` files say is not worth keeping is not worth finding either: what programs made.
//!
//! Pure. The files are read by whoever looks at folders ([`super::look`]), each before what is below it.

use std::collections::BTreeMap;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

pub(super) const NAME: &str = ".gitignore";
/// A longer one is not read.
pub(super) const LARGEST: u64 = 256 * 1024;

/// The rules of one workspace, by the folder they are in.
#[derive(Debug, Default)]
pub(super) struct Ignored(BTreeMap<String, Gitignore>);

impl Ignored {
    /// What a folder's own file says now; nothing when it has none. A line that means nothing is left out,
    /// as git does.
    pub(super) fn set(&mut self, folder: &str, text: Option<&str>) {
        self.0.remove(folder);
        let Some(text) = text else { return };
        let mut rules = GitignoreBuilder::new("");
        for line in text.lines() {
            if let Err(error) = rules.add_line(None, line) {
                tracing::debug!(folder, %error, "a line of a .gitignore is left out");
            }
        }
        if let Ok(rules) = rules.build()
            && !rules.is_empty()
        {
            self.0.insert(folder.to_owned(), rules);
        }
    }

    /// Whether a path is left out, or a folder above it: git looks at nothing in those.
    pub(super) fn holds(&self, path: &str, is_folder: bool) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let above = path.match_indices('/').map(|(end, _)| (&path[..end], true));
        above.chain([(path, is_folder)]).any(|(path, is_folder)| self.decides(path, is_folder))
    }

    /// The nearest file that says anything about it.
    fn decides(&self, path: &str, is_folder: bool) -> bool {
        let mut folder = path;
        loop {
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
            if let Some(rules) = self.0.get(folder) {
                let below = path[folder.len()..].trim_start_matches('/');
                match rules.matched(Path::new(below), is_folder) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            if folder.is_empty() {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_git_reads_them() {
        let mut ignored = Ignored::default();
        assert!(!ignored.holds("a/b.md", false));
        ignored.set("", Some("# made\n/public/\n*.gen.md\n!keep.gen.md\nlogs/\n"));
        ignored.set("site", Some("cache\n!x.gen.md\n"));
        let check = |path: &str, is_folder: bool, expected: bool| {
            assert_eq!(ignored.holds(path, is_folder), expected, "{path}");
        };
        check("public", true, true);
        check("public", false, false);
        check("public/a/b.md", false, true);
        check("docs/public/a.md", false, false);
        check("docs/api.gen.md", false, true);
        check("docs/keep.gen.md", false, false);
        check("a/logs/today.md", false, true);
        check("site/x.gen.md", false, false);
        check("site/deep/x.gen.md", false, false);
        check("site/y.gen.md", false, true);
        check("site/a/cache/y.md", false, true);
        check("cache/y.md", false, false);
        check("notes.md", false, false);
        ignored.set("", None);
        ignored.set("site", Some(""));
        assert!(!ignored.holds("public/a.md", false) && !ignored.holds("site/cache", true));
    }
}
