//! Lines that match, found by `grep` where the files are.

use std::time::Duration;

use nacre_wire::{ApiError, ErrorKind};

use super::{Body, Command, Finished, Result};

const TIMEOUT: Duration = Duration::from_secs(60);
const MOST_OUTPUT: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search<'a> {
    /// An extended regular expression.
    pub pattern: &'a str,
    /// A file, or a directory and what is below it.
    pub within: &'a str,
    /// Only files with such a name, as a shell pattern.
    pub names: Option<&'a str>,
    pub at_most: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: String,
    /// From 1.
    pub line: u64,
    pub text: String,
}

impl dyn Body + '_ {
    /// Sorted by path and line, and whether there were more. Binary files, `.git` and `node_modules` are left out.
    pub async fn search(&self, search: &Search<'_>) -> Result<(Vec<Found>, bool)> {
        let command = Command { line: line(search), within: None, timeout: TIMEOUT, call: None };
        let Finished { exit, stdout, stderr } = self.run(&command, MOST_OUTPUT).await?;
        if exit.timed_out {
            return Err(refuse("the search took too long").hint("search in a smaller directory"));
        }
        // 1 is nothing found, 2 an error, also when some files could not be read.
        if exit.code != Some(0) && exit.code != Some(1) && stdout.is_empty() {
            let said = String::from_utf8_lossy(&stderr);
            let said = said.lines().next().unwrap_or("grep failed").trim();
            return Err(refuse(said));
        }
        let cut = stdout.len() >= MOST_OUTPUT;
        let mut found = parse(&stdout);
        found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
        let more = cut || found.len() > search.at_most;
        found.truncate(search.at_most);
        Ok((found, more))
    }
}

fn refuse(message: &str) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, message)
}

/// With a zero byte behind the path, so that any path can be told from what follows.
fn line(search: &Search<'_>) -> String {
    let mut line = "LC_ALL=C grep -rnIZE --exclude-dir=.git --exclude-dir=node_modules".to_owned();
    if let Some(names) = search.names {
        line.push_str(" --include=");
        line.push_str(&quoted(names));
    }
    // One line more than is wanted tells whether there are more.
    let most = search.at_most + 1;
    format!("{line} -m {most} -e {} -- {}", quoted(search.pattern), quoted(search.within))
}

/// One word for `/bin/sh`, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A line that does not look like one of grep's (cut off at the end) is left out.
fn parse(output: &[u8]) -> Vec<Found> {
    output
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let end = line.iter().position(|byte| *byte == 0)?;
            let rest = &line[end + 1..];
            let colon = rest.iter().position(|byte| *byte == b':')?;
            let path = String::from_utf8_lossy(&line[..end]);
            Some(Found {
                path: path.strip_prefix("./").unwrap_or(&path).to_owned(),
                line: std::str::from_utf8(&rest[..colon]).ok()?.parse().ok()?,
                text: String::from_utf8_lossy(&rest[colon + 1..]).into_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_one_word_whatever_is_in_it() {
        assert_eq!(quoted("a'; rm -rf /; '"), r"'a'\''; rm -rf /; '\'''");
    }

    #[test]
    fn lines_are_read_with_any_path() {
        let found = parse(b"./a:1:b\x0012:x:y\nhalf");
        let expected = Found { path: "a:1:b".to_owned(), line: 12, text: "x:y".to_owned() };
        assert_eq!(found, [expected]);
    }
}
