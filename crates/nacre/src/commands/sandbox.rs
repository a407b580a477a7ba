//! `nacre sandbox`: make, run and remove sandboxes.

use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::control::{CreateSandbox, Limits, SandboxInfo, SandboxList, SandboxState};
use nacre_wire::path::text_to_query;
use serde_json::json;

use super::Context;
use crate::connect::Gateway;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
A sandbox called dev answers at /dev.

Examples:
  nacre sandbox create work --start --memory 2G --cpus 1.5
  nacre sandbox list
  nacre sandbox destroy work")]
pub(crate) struct Sandbox {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a sandbox
    Create(Create),
    /// Show all of them
    List,
    /// Start one that is stopped or failed
    Start(Named),
    /// End its commands and stop it; its files stay
    Stop(Named),
    /// Freeze it; it keeps its memory and uses no cpu
    Pause(Named),
    /// Let a paused one go on
    Resume(Named),
    /// Remove it and all of its files
    Destroy(Destroy),
}

#[derive(Debug, Args)]
struct Create {
    /// Lower case letters, digits and dashes; made up when absent
    name: Option<String>,
    /// Start it at once
    #[arg(long)]
    start: bool,
    /// Folder with an OCI root filesystem [default: the host's own system, read-only]
    #[arg(long, value_name = "DIR")]
    rootfs: Option<PathBuf>,
    /// At most this much memory, such as 512M or 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// At most this many cpus, such as 1.5
    #[arg(long, value_name = "N", value_parser = parse_cpus)]
    cpus: Option<u64>,
    /// At most this many processes
    #[arg(long, value_name = "N")]
    pids: Option<u64>,
    /// At most this much disk, such as 10G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    disk: Option<u64>,
}

#[derive(Debug, Args)]
struct Named {
    /// The sandbox, by name or id
    name: String,
}

#[derive(Debug, Args)]
struct Destroy {
    /// The sandbox, by name or id
    name: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(command: Sandbox, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    match command.action {
        Action::Create(create) => {
            let made: SandboxInfo =
                gateway.client.post_json("/admin/sandboxes", &create.into_wanted()?).await?;
            show(&made, context)?;
        }
        Action::List => {
            let list: SandboxList = gateway.client.get_json("/admin/sandboxes").await?;
            if context.json {
                output::print_json(&list)?;
            } else {
                output::print(&table(&list.sandboxes))?;
            }
        }
        Action::Start(named) => operate(&gateway, &named.name, "start", context).await?,
        Action::Stop(named) => operate(&gateway, &named.name, "stop", context).await?,
        Action::Pause(named) => operate(&gateway, &named.name, "pause", context).await?,
        Action::Resume(named) => operate(&gateway, &named.name, "resume", context).await?,
        Action::Destroy(destroy) => remove(&gateway, &destroy, context).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn operate(gateway: &Gateway, name: &str, op: &str, context: &Context) -> Result<()> {
    let path = format!("/admin/sandboxes/{}/{op}", text_to_query(name));
    let info: SandboxInfo = gateway.client.post_json(&path, &()).await?;
    show(&info, context)
}

async fn remove(gateway: &Gateway, destroy: &Destroy, context: &Context) -> Result<()> {
    let path = format!("/admin/sandboxes/{}", text_to_query(&destroy.name));
    let info: SandboxInfo = gateway.client.get_json(&path).await?;
    if !destroy.yes && !confirm(&info.name)? {
        return Err(Failure::new("nothing was removed"));
    }
    gateway.client.delete(&path).await?;
    if context.json {
        output::print_json(&json!({ "destroyed": info.name, "id": info.id }))
    } else {
        output::print(&format!("Removed {}.\n", info.name))
    }
}

fn confirm(name: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(format!("\"{name}\" would be removed with all of its files"))
            .hint("say --yes when you mean it"));
    }
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "Remove sandbox \"{name}\" and all of its files? Type its name: ");
    let _ = stderr.flush();
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::io("the terminal", &error))?;
    Ok(answer.trim() == name)
}

fn show(info: &SandboxInfo, context: &Context) -> Result<()> {
    if context.json {
        return output::print_json(info);
    }
    output::print(&format!("{} is {}.\n", info.name, state(info.state)))
}

/// Also used by `nacre status`.
pub(crate) fn table(sandboxes: &[SandboxInfo]) -> String {
    let rows: Vec<_> = sandboxes
        .iter()
        .map(|info| {
            vec![
                info.name.clone(),
                state(info.state).to_owned(),
                info.role.clone().unwrap_or_default(),
                format!("{} ago", output::ago(info.created_at)),
                info.id.clone(),
                info.failure.clone().unwrap_or_default(),
            ]
        })
        .collect();
    output::table(&["NAME", "STATE", "ROLE", "CREATED", "ID", ""], &rows)
}

fn state(state: SandboxState) -> &'static str {
    match state {
        SandboxState::Stopped => "stopped",
        SandboxState::Running => "running",
        SandboxState::Paused => "paused",
        SandboxState::Failed => "failed",
    }
}

impl Create {
    fn into_wanted(self) -> Result<CreateSandbox> {
        // The gateway has another working directory.
        let absolute = |path: PathBuf| {
            std::path::absolute(&path).map_err(|error| Failure::io(path.display(), &error))
        };
        Ok(CreateSandbox {
            name: self.name,
            rootfs: self.rootfs.map(absolute).transpose()?.map(Into::into),
            limits: Limits {
                memory_bytes: self.memory,
                cpu_millis: self.cpus,
                pids: self.pids,
                disk_bytes: self.disk,
            },
            start: self.start,
        })
    }
}

/// `512M`, `2G`, `2GiB`, or bytes. Units are powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let bad = || format!("\"{text}\" is not a size: use something like 512M or 2G");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| bad())?;
    let shift = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(bad()),
    };
    number.checked_mul(1 << shift).ok_or_else(bad)
}

/// In thousandths.
fn parse_cpus(text: &str) -> Result<u64, String> {
    let cpus: f64 = text.parse().map_err(|_| format!("\"{text}\" is not a number of cpus"))?;
    let millis = (cpus * 1000.0).round();
    if (1.0..=1_000_000.0).contains(&millis) {
        // In range, so the cast is exact.
        Ok(millis as u64)
    } else {
        Err(format!("\"{text}\" cpus make no sense"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_cpus_are_written_as_people_do() {
        let cases = [("1", 1), ("512M", 512 << 20), ("2g", 2 << 30), ("2GiB", 2 << 30)];
        for (text, expected) in cases {
            assert_eq!(parse_size(text), Ok(expected), "{text}");
        }
        for bad in ["", "G", "1.5G", "-1", "1X", "99999999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_cpus("1.5"), Ok(1500));
        for bad in ["0", "-1", "x", "NaN", "inf"] {
            assert!(parse_cpus(bad).is_err(), "{bad}");
        }
    }
}
