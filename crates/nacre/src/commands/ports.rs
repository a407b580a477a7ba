//! `nacre ports`: what listens in a sandbox.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::ports::PortInfo;

use super::Context;
use crate::failure::Result;
use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "\
A browser that is signed in finds a port of live at /ports/PORT/ and one of dev at /dev/ports/PORT/;
`nacre forward` makes one a port of this machine.

Examples:
  nacre ports
  nacre ports dev --json")]
pub(crate) struct Ports {
    /// The sandbox, by name or id
    #[arg(default_value = "live")]
    sandbox: String,
}

pub(crate) async fn run(command: Ports, context: &Context) -> Result<ExitCode> {
    let list = context.gateway().await?.door(&command.sandbox).ports().await?;
    if context.json {
        output::print_json(&list)?;
    } else if list.ports.is_empty() {
        output::print(&format!("Nothing listens in {}.\n", command.sandbox))?;
    } else {
        let rows: Vec<_> = list.ports.iter().map(row).collect();
        output::print(&output::table(&["PORT", "ADDRESS", "PID", "PROCESS"], &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(port: &PortInfo) -> Vec<String> {
    let process = port.process.as_ref();
    vec![
        port.port.to_string(),
        port.address.clone(),
        process.map_or_else(String::new, |process| process.pid.to_string()),
        process.map_or_else(String::new, |process| output::one_line(&process.name)),
    ]
}
