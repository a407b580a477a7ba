//! `nacre status`: what runs, and what is less than it should be.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use nacre_wire::control::GatewayStatus;
use nacre_wire::roles::{RolesStatus, SwapKind};
use serde_json::json;

use super::{Context, sandbox};
use crate::failure::Result;
use crate::output;

/// The exit code is 3 when no gateway runs.
#[derive(Debug, Args)]
pub(crate) struct Status {}

const NOT_RUNNING: u8 = 3;

pub(crate) async fn run(_command: Status, context: &Context) -> Result<ExitCode> {
    match context.find_gateway().await? {
        Some((gateway, status)) => {
            if context.json {
                output::print_json(&status)?;
            } else {
                let roles: RolesStatus = gateway.client.get_json("/admin/sandboxes/roles").await?;
                output::print(&format!("{}{}", describe(&status), last_swap(&roles)))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        None => {
            if context.json {
                output::print_json(&json!({ "running": false }))?;
            } else {
                let dir = context.data_dir.display();
                output::print(&format!("Nacre is not running for {dir}.\nStart it: nacre up\n"))?;
            }
            Ok(ExitCode::from(NOT_RUNNING))
        }
    }
}

fn describe(status: &GatewayStatus) -> String {
    let owner = status.owner.as_ref().map_or(String::new(), |owner| format!("Owner {owner}\n"));
    let mut text = format!(
        "Nacre {} at {} (process {}, up {})\nData in {}, driver {}\n{owner}\n{}",
        status.version,
        status.url,
        status.pid,
        output::duration(Duration::from_millis(status.uptime_ms)),
        status.data_dir,
        status.driver,
        sandbox::table(&status.sandboxes)
    );
    if !status.reduced.is_empty() {
        text.push_str("\nReduced on this machine:\n");
    }
    for reduction in &status.reduced {
        text.push_str(&format!("  {}: {}\n", reduction.what, reduction.why));
        if let Some(remedy) = &reduction.remedy {
            text.push_str(&format!("    {remedy}\n"));
        }
    }
    text
}

/// What became of the last swap, and why.
fn last_swap(roles: &RolesStatus) -> String {
    let Some(last) = &roles.last_swap else { return String::new() };
    let what = match last.kind {
        SwapKind::Swap => "live and dev changed places",
        SwapKind::Rollback => "a swap was taken back",
        SwapKind::AutoRollback => "a swap was taken back by itself",
    };
    let mut text = format!("\n{} ago {what}", output::ago(last.at));
    if let Some(reason) = &last.reason {
        text.push_str(&format!(": {}", output::one_line(reason)));
    }
    match (&last.verdict, last.watched_until) {
        (Some(verdict), _) => text.push_str(&format!(" ({})", output::one_line(verdict))),
        (None, Some(_)) => text.push_str(" (it is being watched)"),
        (None, None) => {}
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use nacre_wire::control::{Limits, Reduction, SandboxInfo, SandboxState};

    #[test]
    fn status_for_people() {
        let sandbox = |name: &str, role: Option<&str>, state, failure: Option<&str>| SandboxInfo {
            id: format!("sb-{name}"),
            name: name.to_owned(),
            role: role.map(str::to_owned),
            driver: "namespace".to_owned(),
            state,
            created_at: 0,
            limits: Limits { memory_bytes: Some(1 << 30), ..Default::default() },
            rootfs: None,
            failure: failure.map(str::to_owned),
            supervisor: Some("0.1.0".to_owned()),
            run: None,
        };
        let status = GatewayStatus {
            version: "0.1.0".to_owned(),
            pid: 42,
            uptime_ms: 3_700_000,
            url: "http://127.0.0.1:8080".to_owned(),
            owner: Some("did:plc:z72i7hdynkq6kh7aaaaaaaaa".to_owned()),
            data_dir: "/data".into(),
            driver: "namespace".to_owned(),
            reduced: vec![Reduction {
                what: "memory".to_owned(),
                why: "no memory controller is delegated to this user".to_owned(),
                remedy: Some("sudo systemctl set-property user-1000.slice Delegate=yes".to_owned()),
            }],
            sandboxes: vec![
                sandbox("live", Some("live"), SandboxState::Running, None),
                sandbox("work", None, SandboxState::Failed, Some("its supervisor ended")),
            ],
        };
        // Ages are relative to now.
        let text = redact_ages(&describe(&status));
        insta::assert_snapshot!(text);
    }

    fn redact_ages(text: &str) -> String {
        let age = output::ago(0);
        text.replace(&format!("{age} ago"), "AGE ago")
    }
}
