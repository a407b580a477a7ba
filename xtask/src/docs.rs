//! `cargo xtask docs`: the pages that are written by the program they describe.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::builds::{self, Profile};
use crate::{cargo, shell};

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => pages()?.iter().try_for_each(|page| page.write()),
        [flag] if flag == "--check" => check(),
        _ => bail!("docs takes --check and nothing else"),
    }
}

struct Page {
    place: &'static str,
    content: String,
}

impl Page {
    fn write(&self) -> Result<()> {
        let place = cargo::root().join(self.place);
        fs::write(&place, &self.content)
            .with_context(|| format!("cannot write {}", place.display()))
    }

    fn is_current(&self, root: &Path) -> bool {
        fs::read_to_string(root.join(self.place)).is_ok_and(|found| found == self.content)
    }
}

/// Fails when a generated page differs from what the program says today.
pub(crate) fn check() -> Result<()> {
    let stale: Vec<_> = pages()?
        .iter()
        .filter(|page| !page.is_current(cargo::root()))
        .map(|page| page.place)
        .collect();
    if !stale.is_empty() {
        bail!("stale: {}; run `cargo xtask docs`", stale.join(", "));
    }
    Ok(())
}

fn pages() -> Result<Vec<Page>> {
    let nacre = builds::debug(&builds::guest(Profile::Debug)?)?;
    let mut content = CLI_HEADER.to_owned();
    reference(&nacre, &["nacre"], &mut content)?;
    Ok(vec![
        Page { place: "docs/cli.md", content },
        Page { place: "docs/openapi.json", content: openapi()? },
        Page { place: "ARCHITECTURE.md", content: architecture()? },
    ])
}

fn openapi() -> Result<String> {
    // The end of the last line is lost on the way.
    Ok(example("openapi")? + "\n")
}

/// What a program wrote that [`builds::debug`] has built.
fn example(name: &str) -> Result<String> {
    shell::output(&mut Command::new(builds::made(Profile::Debug, "examples").join(name)))
}

/// The page as it is, with today's path contract between its two marks.
fn architecture() -> Result<String> {
    let page = fs::read_to_string(cargo::root().join("ARCHITECTURE.md"))?;
    let table = example("path_contract")?;
    between(&page, "<!-- path contract -->\n", "<!-- end -->", &format!("{table}\n"))
        .context("ARCHITECTURE.md has lost the marks of the path contract")
}

fn between(page: &str, start: &str, end: &str, content: &str) -> Option<String> {
    let (before, rest) = page.split_once(start)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{start}{content}{end}{after}"))
}

const CLI_HEADER: &str = "\
# Command reference

Written by `cargo xtask docs` from the help of the program itself.
";

/// The help of one command, then of those below it.
fn reference(nacre: &Path, words: &[&str], content: &mut String) -> Result<()> {
    let help = shell::output(Command::new(nacre).args(&words[1..]).arg("--help"))?;
    content.push_str(&format!("\n## `{}`\n\n```text\n{help}\n```\n", words.join(" ")));
    for name in subcommands(&help) {
        reference(nacre, &[words, &[name]].concat(), content)?;
    }
    Ok(())
}

/// Names in the section `Commands:`; what is indented further goes on from the line above.
fn subcommands(help: &str) -> Vec<&str> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_written() {
        assert_eq!(between("a<b>old</b>c", "<b>", "</b>", "new").unwrap(), "a<b>new</b>c");
        assert_eq!(between("a<b>old", "<b>", "</b>", "new"), None);
    }

    #[test]
    fn subcommands_are_read_from_help() {
        let help = "Does it\n\nUsage: x <COMMAND>\n\nCommands:\n  up    Start\n          and wait\n  \
                    ls    List\n  help  Print\n\nOptions:\n  -h  no\n";
        assert_eq!(subcommands(help), ["up", "ls"]);
        assert_eq!(subcommands("Usage: x\n"), Vec::<&str>::new());
    }
}
