//! `nacre history export`: every checkpoint as a commit.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use clap::Args;
use http_body_util::BodyExt;
use nacre_wire::client::Client;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::commands::Context;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
A folder without a repository gets one, with the newest files checked out; in one that exists only
the branch is written. Git keeps less than history does: no empty folders, owners or hard links, of
modes only the executable bit, and no .git inside.

Examples:
  nacre history export --git ./past && git -C ./past log --stat
  nacre history export --git ~/src/site --branch sandbox")]
pub(super) struct Export {
    /// The repository; made when missing
    #[arg(long, value_name = "DIR")]
    git: PathBuf,
    /// The branch to write
    #[arg(long, value_name = "NAME", default_value = "nacre")]
    branch: String,
}

impl Export {
    pub(super) async fn run(self, door: &Client, context: &Context) -> Result<ExitCode> {
        // Also finds out whether there is a git at all, before anything is asked for.
        let new = !is_repository(&self.git).await?;
        let answer = door.export_history(&self.branch).await?;
        if new {
            std::fs::create_dir_all(&self.git)
                .map_err(|error| Failure::io(self.git.display(), &error))?;
            git(&self.git, &["init", "--quiet"]).await?;
            let head = format!("refs/heads/{}", self.branch);
            git(&self.git, &["symbolic-ref", "HEAD", &head]).await?;
        }
        import(&self.git, answer.into_body()).await?;
        let count = git(&self.git, &["rev-list", "--count", &self.branch]).await?;
        if new {
            git(&self.git, &["reset", "--quiet", "--hard"]).await?;
        }
        let (commits, folder) = (count.trim().parse().unwrap_or(0u64), self.git.display());
        if context.json {
            let folder = folder.to_string();
            let (branch, done) = (&self.branch, "exported");
            output::print_json(&json!({ done: commits, "git": folder, "branch": branch }))?;
        } else {
            let branch = &self.branch;
            output::print(&format!("{commits} commits on branch {branch} of {folder}.\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// One in the folder itself: a repository that merely surrounds it is not meant.
async fn is_repository(folder: &Path) -> Result<bool> {
    git(Path::new("."), &["--version"]).await?;
    if !folder.is_dir() {
        return Ok(false);
    }
    // Of a bare one the folder is the git directory.
    Ok(folder.join(".git").exists() || folder.join("HEAD").is_file())
}

async fn import(folder: &Path, mut body: hyper::body::Incoming) -> Result<()> {
    let mut command = command(folder);
    command.args(["fast-import", "--quiet", "--done"]).stdin(Stdio::piped());
    let mut child = command.spawn().map_err(no_git)?;
    let mut stdin = child.stdin.take();
    let mut broke_off = None;
    while let Some(frame) = body.frame().await {
        let data = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(error) => {
                broke_off = Some(Failure::new(format!("the stream broke off: {error}")));
                break;
            }
        };
        // When git gives up it says why itself.
        if let Some(stdin) = &mut stdin
            && stdin.write_all(&data).await.is_err()
        {
            break;
        }
    }
    drop(stdin);
    let output = child.wait_with_output().await.map_err(no_git)?;
    match broke_off {
        Some(failure) => Err(failure),
        None if output.status.success() => Ok(()),
        None => Err(failed("fast-import", &output.stderr)
            .hint("a branch that went its own way is not replaced: choose another --branch")),
    }
}

async fn git(folder: &Path, args: &[&str]) -> Result<String> {
    let output = command(folder).args(args).output().await.map_err(no_git)?;
    if !output.status.success() {
        return Err(failed(args[0], &output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).kill_on_drop(true);
    // We may have been started from a hook or an alias.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(name);
    }
    command
}

fn failed(what: &str, stderr: &[u8]) -> Failure {
    let stderr = String::from_utf8_lossy(stderr);
    let why: Vec<String> = stderr.lines().take(5).map(output::one_line).collect();
    Failure::new(format!("git {what}: {}", why.join("; ")))
}

fn no_git(error: std::io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::new("git is not installed here")
            .hint("the export is made with git: install it, on Debian with: apt install git"),
        _ => Failure::io("git", &error),
    }
}
