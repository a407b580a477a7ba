//! `nacre logs`: what a supervisor logged, or a command or a process wrote.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::path::text_to_query;

use super::Context;
use crate::cli::Which;
use crate::connect::copy_to_stdout;
use crate::failure::Result;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  nacre logs -f\n  nacre logs -s dev\n  nacre logs -f ID\n  nacre logs -f runtime"
)]
pub(crate) struct Logs {
    #[command(flatten)]
    which: Which,
    /// Go on with what is added
    #[arg(short, long)]
    follow: bool,
    /// The output of this command, or of this process of nacre.toml, instead of the
    /// supervisor's log
    #[arg(value_name = "ID|NAME")]
    id: Option<String>,
}

pub(crate) async fn run(command: Logs, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    let follow = command.follow;
    match command.id {
        Some(id) => {
            let door = gateway.door(&command.which.sandbox);
            let named = door
                .processes()
                .await
                .is_ok_and(|list| list.processes.iter().any(|process| process.name == id));
            let id = text_to_query(&id);
            let path = if named {
                format!("/supervisor/processes/{id}/log?format=text&follow={follow}")
            } else {
                format!("/supervisor/commands/{id}/output?follow={follow}")
            };
            copy_to_stdout(&door, &path).await?;
        }
        None => {
            let name = text_to_query(&command.which.sandbox);
            let path = format!("/admin/sandboxes/{name}/logs?follow={follow}");
            copy_to_stdout(&gateway.client, &path).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
