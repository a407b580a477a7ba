//! `nacre doctor`: what this machine offers. Works with no gateway.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::control::{Check, CheckStatus};
use serde_json::json;

use super::Context;
use super::up::Front;
use crate::config::RawConfig;
use crate::failure::Result;
use crate::{doctor, output};

/// The exit code is 1 when something failed. What is reduced works, but less well.
#[derive(Debug, Args)]
pub(crate) struct Doctor {}

pub(crate) async fn run(_command: Doctor, context: &Context) -> Result<ExitCode> {
    let raw = RawConfig::load(&context.data_dir, context.config.as_deref())?;
    let listen = raw.resolve(context.data_dir.clone(), Front::default())?.gateway.listen;
    let checks = doctor::examine(&context.data_dir, listen).await;
    let failed = checks.iter().any(|check| check.status == CheckStatus::Failed);
    if context.json {
        output::print_json(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        output::print(&describe(&checks))?;
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn describe(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let mark = match check.status {
            CheckStatus::Ok => "ok     ",
            CheckStatus::Reduced => "reduced",
            CheckStatus::Failed => "FAILED ",
        };
        text.push_str(&format!("{mark}  {}: {}\n", check.name, check.detail));
        if let Some(remedy) = &check.remedy {
            text.push_str(&format!("           fix: {remedy}\n"));
        }
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (reduced, failed) = (count(CheckStatus::Reduced), count(CheckStatus::Failed));
    text.push_str(&match (reduced, failed) {
        (0, 0) => "\nEverything works here.\n".to_owned(),
        (_, 0) => format!("\nNacre works here, with {reduced} reduced.\n"),
        (_, _) => format!("\n{failed} failed, {reduced} reduced.\n"),
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctor_for_people() {
        let check = |name: &str, status, detail: &str, remedy: Option<&str>| Check {
            name: name.to_owned(),
            status,
            detail: detail.to_owned(),
            remedy: remedy.map(str::to_owned),
        };
        insta::assert_snapshot!(describe(&[
            check("kernel", CheckStatus::Ok, "6.12.0", None),
            check(
                "cgroups",
                CheckStatus::Reduced,
                "no memory controller is delegated",
                Some("sudo loginctl enable-linger me")
            ),
            check(
                "user namespaces",
                CheckStatus::Failed,
                "refused by AppArmor",
                Some("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
            ),
        ]));
    }
}
