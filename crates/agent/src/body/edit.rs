//! A passage of a file replaced by another, when it is clear which.

use nacre_wire::{ApiError, ErrorKind};

use super::{Body, Expected, Result, Write};

/// Larger files are for commands.
const LARGEST: u64 = 4 << 20;
/// How often somebody else may be faster.
const TRIES: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit<'a> {
    pub path: &'a str,
    pub old: &'a str,
    pub new: &'a str,
    /// All of them; otherwise there must be exactly one.
    pub everywhere: bool,
    pub call: Option<&'a str>,
}

/// The file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub before: String,
    pub after: String,
    pub times: usize,
}

impl dyn Body + '_ {
    /// Nothing is written when the passage is not there, is there more often than was meant, or when
    /// the file was changed meanwhile so that this is no longer clear.
    pub async fn edit_file(&self, edit: &Edit<'_>) -> Result<Edited> {
        let mut tries = 0;
        loop {
            tries += 1;
            let (before, version) = self.read_text(edit.path, LARGEST).await?;
            let (after, times) = replace(&before, edit)?;
            let write = Write {
                bytes: after.clone().into_bytes(),
                expected: Expected::Version(version),
                call: edit.call.map(str::to_owned),
            };
            match self.write_file(edit.path, &write).await {
                Ok(()) => return Ok(Edited { before, after, times }),
                Err(error) if error.kind == ErrorKind::Conflict && tries < TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn replace(text: &str, edit: &Edit<'_>) -> Result<(String, usize)> {
    let refuse = |message: String| ApiError::new(ErrorKind::InvalidRequest, message);
    if edit.old.is_empty() {
        return Err(refuse("the passage to replace is empty".to_owned())
            .hint("write_file makes a new file or replaces a whole one"));
    }
    if edit.old == edit.new {
        return Err(refuse("both passages are the same".to_owned()));
    }
    let times = text.matches(edit.old).count();
    match (times, edit.everywhere) {
        (0, _) => Err(refuse(format!("{} has no such passage", edit.path))
            .hint("read the file again; spaces and line ends count")),
        (1, _) | (_, true) => Ok((text.replace(edit.old, edit.new), times)),
        (_, false) => Err(refuse(format!("{} has this passage {times} times", edit.path))
            .hint("name more of what stands around it, or replace all of them")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, old: &str, new: &str, everywhere: bool, expected: Result<&str, &str>) {
        let result = replace(text, &Edit { path: "a", old, new, everywhere, call: None });
        let result = result.map(|(after, _)| after).map_err(|error| error.message);
        assert_eq!(result.as_deref().map_err(String::as_str), expected, "{text:?} {old:?}");
    }

    #[test]
    fn only_what_is_clear_is_replaced() {
        check("one two", "two", "2", false, Ok("one 2"));
        check("a a", "a", "b", true, Ok("b b"));
        check("a a", "a", "b", false, Err("a has this passage 2 times"));
        check("a", "x", "b", true, Err("a has no such passage"));
        check("a", "", "b", false, Err("the passage to replace is empty"));
        check("a", "a", "a", false, Err("both passages are the same"));
        check("line\r\n", "line\n", "x", false, Err("a has no such passage"));
    }
}
