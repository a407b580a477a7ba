//! What others are asked to do: the commands of git, restic and jj for the same work.
//!
//! Each has a tree of its own, planted the same, because an undo by one would be a change to all
//! others. A command is timed from spawn to exit; none of them has to sync.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Source;
use super::tree::Tree;
use crate::ground::Ground;
use crate::peers::find;

type Words = &'static [&'static str];

/// What one tool needs for what we do.
struct Plan {
    name: &'static str,
    program: &'static str,
    /// How to get it.
    source: &'static str,
    /// Its store, below its tree or, when it starts with `../`, beside it.
    store: &'static str,
    /// From a tree without a store to one that is recorded.
    first: &'static [Words],
    record: &'static [Words],
    /// Back to what was recorded before; `None` for a tool that can only restore everything.
    undo: Option<Words>,
    /// Whether anything has changed.
    look: Option<Words>,
    /// It takes seconds for the smallest change.
    slow: bool,
}

const PLANS: &[Plan] = &[
    Plan {
        name: "git",
        program: "git",
        source: "apt-get install git",
        store: ".git",
        first: &[&["init", "-q"], &["add", "-A"], &["commit", "-q", "-m", "first"]],
        record: &[&["add", "-A"], &["commit", "-q", "-m", "next"]],
        undo: Some(&["reset", "-q", "--hard", "HEAD~1"]),
        look: Some(&["status", "--porcelain"]),
        slow: false,
    },
    Plan {
        name: "restic",
        program: "restic",
        source: "apt-get install restic",
        store: "../restic-store",
        first: &[&["init", "-q"], &["backup", "-q", "."]],
        record: &[&["backup", "-q", "."]],
        undo: None,
        look: None,
        slow: true,
    },
    Plan {
        name: "jj",
        program: "jj",
        source: "cargo install --locked jj-cli",
        store: ".jj",
        first: &[&["git", "init", "--no-colocate", "-q"], &["commit", "-q", "-m", "first"]],
        record: &[&["commit", "-q", "-m", "next"]],
        undo: Some(&["new", "-q", "@--"]),
        look: Some(&["diff", "--summary"]),
        slow: false,
    },
];

/// Nobody's settings but these.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_COUNT", "4"),
    ("GIT_CONFIG_KEY_0", "gc.auto"),
    ("GIT_CONFIG_VALUE_0", "0"),
    ("GIT_CONFIG_KEY_1", "maintenance.auto"),
    ("GIT_CONFIG_VALUE_1", "false"),
    ("GIT_CONFIG_KEY_2", "user.name"),
    ("GIT_CONFIG_VALUE_2", "bench"),
    ("GIT_CONFIG_KEY_3", "user.email"),
    ("GIT_CONFIG_VALUE_3", "bench@localhost"),
    ("RESTIC_PASSWORD", "bench"),
    ("RESTIC_REPOSITORY", "../restic-store"),
    ("RESTIC_CACHE_DIR", "../restic-cache"),
    ("JJ_USER", "bench"),
    ("JJ_EMAIL", "bench@localhost"),
];

/// Files of any size are to be kept, and git's own limits are as above.
const JJ_CONFIG: &str = "snapshot.max-new-file-size = 0\n";

pub(super) struct Tool {
    plan: &'static Plan,
    program: PathBuf,
    pub(super) tree: Tree,
    home: PathBuf,
}

/// Those that are on this machine, each with `files` files on `ground`; a note for each other one.
pub(super) fn set_up(
    ground: &Ground,
    source: &Source,
    files: usize,
    notes: &mut Vec<String>,
) -> Result<Vec<Tool>> {
    let mut tools = Vec::new();
    for plan in PLANS {
        let Ok(program) = find(plan.program) else {
            let note =
                format!("{} was not measured: it is not installed ({})", plan.name, plan.source);
            println!("{note}");
            notes.push(note);
            continue;
        };
        let home = ground.join(plan.name);
        let tree = source.plant(&home.join("tree"), files)?;
        std::fs::write(home.join("jj.toml"), JJ_CONFIG)?;
        tools.push(Tool { plan, program, tree, home });
    }
    Ok(tools)
}

impl Tool {
    pub(super) fn name(&self) -> &'static str {
        self.plan.name
    }

    pub(super) fn is_slow(&self) -> bool {
        self.plan.slow
    }

    pub(super) fn store(&self) -> PathBuf {
        self.tree.root.join(self.plan.store)
    }

    /// Begins anew: an earlier store is removed, outside of the time.
    pub(super) fn first(&self, ground: &Ground) -> Result<Duration> {
        if self.store().exists() {
            std::fs::remove_dir_all(self.store())?;
        }
        ground.settle()?;
        self.all(self.plan.first)
    }

    pub(super) fn record(&self) -> Result<Duration> {
        self.all(self.plan.record)
    }

    pub(super) fn undo(&self) -> Result<Option<Duration>> {
        self.plan.undo.map(|words| self.run(words)).transpose()
    }

    pub(super) fn look(&self) -> Result<Option<Duration>> {
        self.plan.look.map(|words| self.run(words)).transpose()
    }

    fn all(&self, commands: &[Words]) -> Result<Duration> {
        commands.iter().map(|words| self.run(words)).sum()
    }

    fn run(&self, words: Words) -> Result<Duration> {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(&self.tree.root).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.home).env("JJ_CONFIG", self.home.join("jj.toml"));
        command.envs(ENVIRONMENT.iter().copied());
        timed(&mut command, &self.tree.root).with_context(|| self.plan.name)
    }
}

fn timed(command: &mut Command, place: &Path) -> Result<Duration> {
    let began = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("cannot run it in {}", place.display()))?;
    let took = began.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "it ended with {}: {}", output.status, said.trim());
    Ok(took)
}
