//! Changing the machine: always said, never silent, and asked for when it takes `sudo`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{IsTerminal, Write, stdin};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// One command that root runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fix {
    words: Vec<String>,
}

impl Fix {
    pub(crate) fn install(packages: BTreeSet<&str>) -> Self {
        let fixed = ["apt-get", "install", "--yes", "--no-install-recommends"];
        Self { words: fixed.into_iter().chain(packages).map(str::to_owned).collect() }
    }

    fn line(&self) -> String {
        self.words.join(" ")
    }

    fn command(&self, sudo: bool) -> Command {
        let mut words = self.words.iter();
        let mut command = match words.next() {
            Some(program) if !sudo => Command::new(program),
            first => {
                let mut command = Command::new("sudo");
                command.args(first);
                command
            }
        };
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
        command
    }
}

pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}

/// The command that gives an ordinary user a range of uids to hand to sandboxes, when there is none.
pub(crate) fn subordinate_ids() -> Result<Option<Fix>> {
    if is_root() {
        return Ok(None);
    }
    let user = shell::output(Command::new("id").arg("-un"))?;
    let uid = shell::output(Command::new("id").arg("-u"))?;
    let listed = |file: &str| has_range(&fs::read_to_string(file).unwrap_or_default(), &user, &uid);
    if listed("/etc/subuid") && listed("/etc/subgid") {
        return Ok(None);
    }
    eprintln!("missing: a range in /etc/subuid and /etc/subgid for {user}");
    let range = "100000-165535";
    let words = ["usermod", "--add-subuids", range, "--add-subgids", range, &user];
    Ok(Some(Fix { words: words.map(str::to_owned).to_vec() }))
}

fn has_range(table: &str, user: &str, uid: &str) -> bool {
    table.lines().filter_map(|line| line.split(':').next()).any(|who| who == user || who == uid)
}

/// As root at once, otherwise after a yes. Without one it fails when `required`, and goes on
/// reduced when not.
pub(crate) fn apply(fixes: &[Fix], required: bool) -> Result<()> {
    if fixes.is_empty() {
        return Ok(());
    }
    let sudo = !is_root();
    if sudo && !agreed(fixes)? {
        let lines: Vec<_> = fixes.iter().map(|fix| format!("  sudo {}", fix.line())).collect();
        if required {
            bail!("run this first:\n{}", lines.join("\n"));
        }
        eprintln!("going on without; sandboxes are reduced until you run:\n{}", lines.join("\n"));
        return Ok(());
    }
    fixes.iter().try_for_each(|fix| run(fix, sudo))
}

fn agreed(fixes: &[Fix]) -> Result<bool> {
    if !stdin().is_terminal() {
        return Ok(false);
    }
    for fix in fixes {
        eprintln!("  sudo {}", fix.line());
    }
    eprint!("run this now? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn run(fix: &Fix, sudo: bool) -> Result<()> {
    if fix.words.first().is_some_and(|program| program == "apt-get")
        && shell::find("apt-get").is_none()
    {
        bail!("there is no apt-get here; install with your own package manager: {}", fix.line());
    }
    eprintln!("running: {}{}", if sudo { "sudo " } else { "" }, fix.line());
    let first = shell::run(&mut fix.command(sudo));
    if first.is_ok() || fix.words.get(1).is_none_or(|word| word != "install") {
        return first;
    }
    // Package lists on a fresh machine are empty or name versions that are gone.
    eprintln!("refreshing the package lists and trying again");
    let update = Fix { words: vec!["apt-get".to_owned(), "update".to_owned()] };
    shell::run(&mut update.command(sudo))?;
    shell::run(&mut fix.command(sudo))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_by_name_and_by_number() {
        let table = "ann:100000:65536\n1001:165536:65536\n";
        assert!(has_range(table, "ann", "1000"));
        assert!(has_range(table, "bob", "1001"));
        assert!(!has_range(table, "an", "100"));
    }

    #[test]
    fn one_install_names_every_package_once() {
        let fix = Fix::install(BTreeSet::from(["strace", "gcc"]));
        assert_eq!(fix.line(), "apt-get install --yes --no-install-recommends gcc strace");
    }
}
