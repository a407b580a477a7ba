//! `nacre desktop`: the page that a sandbox shows, and its source in the workspace.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use nacre_wire::desktop::{DesktopHealth, DesktopMode, SeedRequest};

use super::Context;
use crate::cli::Which;
use crate::connect::Gateway;
use crate::failure::Result;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
The desktop is a program in /workspace/shell that you and the agent may change; what is changed
shows at once, and `nacre undo` takes it back. Nacre also carries a built copy, which is shown while
the program starts, when it fails, where there is no Node, and with `runtime = \"built\"` in
/workspace/nacre.toml.

A new computer gets the source by itself; `nacre up --desktop-seed false` or `[desktop] seed =
false` in nacre.toml leaves its workspace empty.

Examples:
  nacre desktop status
  nacre desktop seed                  into a workspace that has none
  nacre desktop seed --replace        start over with the source of this version; undo takes it back
  nacre desktop seed -s work          into another sandbox")]
pub(crate) struct Desktop {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Put the source into the workspace, with a nacre.toml that runs it
    Seed(Seed),
    /// Show whether the page works, and what does not
    Status(Status),
}

/// Nothing that exists is overwritten without --replace. It is one change in the history.
#[derive(Debug, Args)]
struct Seed {
    #[command(flatten)]
    which: Which,
    /// Put it in the place of what is in /workspace/shell
    #[arg(long)]
    replace: bool,
}

/// The exit code is 1 when something does not work.
#[derive(Debug, Args)]
struct Status {
    #[command(flatten)]
    which: Which,
}

pub(crate) async fn run(command: Desktop, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    match command.action {
        Action::Seed(Seed { which, replace }) => {
            seed(&gateway, &which.sandbox, SeedRequest { replace }, context).await
        }
        Action::Status(Status { which }) => {
            let health = gateway.door(&which.sandbox).desktop_health().await?;
            if context.json {
                output::print_json(&health)?;
            } else {
                output::print(&describe(&health))?;
            }
            Ok(ExitCode::from(u8::from(!health.ok)))
        }
    }
}

async fn seed(
    gateway: &Gateway,
    sandbox: &str,
    wanted: SeedRequest,
    context: &Context,
) -> Result<ExitCode> {
    // What it leads to comes first. Without, the desktop installs its own.
    if let Err(failure) = gateway.post("/admin/sandboxes/gateway/modules", &()).await {
        eprintln!("warning: {failure}");
    }
    let seeded = gateway.door(sandbox).seed_desktop(&wanted).await?;
    if context.json {
        output::print_json(&seeded)?;
    } else if seeded.seeded {
        let next = "nacre desktop status shows how it is doing, nacre undo takes it back";
        output::print(&format!("the desktop is in {sandbox}:shell; {next}\n"))?;
    } else {
        let why = seeded.why.as_deref().unwrap_or("it is there");
        output::print(&format!("nothing was changed: {}\n", output::one_line(why)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(health: &DesktopHealth) -> String {
    let mode = match health.mode {
        DesktopMode::Source => "the desktop, from /workspace/shell",
        DesktopMode::Built => "the desktop as it came with Nacre",
        DesktopMode::App => "an app of the workspace's own",
        DesktopMode::Unknown => "something this version does not know",
    };
    let verdict = if health.ok { "works" } else { "does not work" };
    let mut text = format!("/ is {mode}, and {verdict}\n");
    for check in &health.checks {
        let mark = if check.ok { "ok    " } else { "FAILED" };
        let detail = check
            .detail
            .as_deref()
            .map_or(String::new(), |detail| format!(": {}", output::one_line(detail)));
        text.push_str(&format!("{mark}  {}{detail}\n", output::one_line(&check.name)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::desktop::DesktopCheck;

    #[test]
    fn status_for_people() {
        let check = |name: &str, ok, detail: Option<&str>| DesktopCheck {
            name: name.to_owned(),
            ok,
            detail: detail.map(str::to_owned),
        };
        let health = DesktopHealth {
            ok: false,
            mode: DesktopMode::Source,
            checks: vec![
                check("process", true, None),
                check("entry", false, Some("/src/main.tsx answers 500:\nUnexpected token")),
            ],
        };
        assert_eq!(
            describe(&health),
            "/ is the desktop, from /workspace/shell, and does not work\n\
             ok      process\n\
             FAILED  entry: /src/main.tsx answers 500:\\nUnexpected token\n"
        );
    }
}
