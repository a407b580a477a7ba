//! `nacre dev`: a copy of live to try things on.

use std::convert::Infallible;
use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use nacre_wire::roles::{CopyReport, DevMade, RolesStatus};
use serde_json::json;

use super::Context;
use crate::connect::Gateway;
use crate::failure::{Failure, Result};
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
dev has everything that live has: files, history, what was installed. It answers at /dev/, and
nothing that happens there touches live. nacre swap makes it live.

Examples:
  nacre dev create
  nacre exec -s dev -- npm update
  nacre swap")]
pub(crate) struct Dev {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make dev, as a copy of live
    Create,
    /// Replace dev by a fresh copy of live
    Reset(Removes),
    /// Remove dev and all of its files
    Delete(Removes),
}

#[derive(Debug, Args)]
struct Removes {
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Even if dev is what a swap that is still watched would go back to
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(command: Dev, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    match command.action {
        Action::Create => make(&gateway, "/admin/sandboxes/dev", context).await?,
        Action::Reset(removes) => {
            confirm(&removes, "Replace dev and all of its files by a fresh copy of live?")?;
            make(&gateway, &forced("/admin/sandboxes/dev/reset", &removes), context).await?;
        }
        Action::Delete(removes) => {
            confirm(&removes, "Remove dev and all of its files?")?;
            gateway.client.delete(&forced("/admin/sandboxes/dev", &removes)).await?;
            if context.json {
                output::print_json(&json!({ "destroyed": "dev" }))?;
            } else {
                output::print("Removed dev.\n")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn forced(path: &str, removes: &Removes) -> String {
    if removes.force { format!("{path}?force=true") } else { path.to_owned() }
}

async fn make(gateway: &Gateway, path: &str, context: &Context) -> Result<()> {
    let progress = !context.json && std::io::stderr().is_terminal();
    let making = gateway.client.post_json::<DevMade>(path, &());
    let made = if progress {
        tokio::select! {
            made = making => made,
            never = show_progress(gateway) => match never {},
        }
    } else {
        making.await
    };
    if progress {
        eprint!("\r\x1b[K");
    }
    let made = made?;
    if context.json {
        return output::print_json(&made);
    }
    output::print(&told(&made))
}

async fn show_progress(gateway: &Gateway) -> Infallible {
    loop {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let Ok(roles) = gateway.client.get_json::<RolesStatus>("/admin/sandboxes/roles").await
        else {
            continue;
        };
        if let Some(copying) = roles.copying {
            let (files, size) = (copying.files, output::bytes(copying.bytes));
            eprint!("\r\x1b[KCopying live: {files} files, {size}");
            let _ = std::io::stderr().flush();
        }
    }
}

fn told(made: &DevMade) -> String {
    let copy = &made.copy;
    let mut text = format!(
        "dev is a copy of live: {} names, {}, in {:.1} s. It answers at /dev/.\n",
        copy.names,
        output::bytes(copy.bytes),
        copy.took_ms as f64 / 1000.0
    );
    for remark in remarks(copy) {
        text.push_str(&format!("{remark}\n"));
    }
    if let Some(failure) = &made.sandbox.failure {
        text.push_str(&format!("It does not run: {failure}\n"));
    }
    text
}

fn remarks(copy: &CopyReport) -> Vec<String> {
    let mut remarks = Vec::new();
    if copy.left_out > 0 {
        let mut names: Vec<_> =
            copy.left_out_names.iter().take(5).map(|name| output::one_line(name)).collect();
        if copy.left_out > names.len() as u64 {
            names.push("...".to_owned());
        }
        let (count, names) = (copy.left_out, names.join(", "));
        remarks.push(format!("Left out: {count} sockets, pipes or devices ({names})."));
    }
    if !copy.history {
        remarks.push("Its history begins now: live could not be frozen to copy it.".to_owned());
    }
    if copy.unsettled > 0 {
        remarks.push(format!(
            "live kept changing {} names while it was copied; they may not fit together.",
            copy.unsettled
        ));
    }
    remarks
}

fn confirm(removes: &Removes, question: &str) -> Result<()> {
    if removes.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new("dev would be removed with all of its files")
            .hint("say --yes when you mean it"));
    }
    eprint!("{question} [y/N] ");
    let _ = std::io::stderr().flush();
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::io("the terminal", &error))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::new("nothing was removed")),
    }
}
