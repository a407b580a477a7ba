//! `nacre register`: a code to make the computer yours with.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::control::SetupCode;

use super::Context;
use crate::failure::Result;
use crate::output;

/// Whoever types the code at /register and signs in with their Atmosphere account owns the computer
/// from then on. It works until then, for thirty minutes; an older one stops working.
#[derive(Debug, Args)]
pub(crate) struct Register {}

pub(crate) async fn run(_command: Register, context: &Context) -> Result<ExitCode> {
    let gateway = context.gateway().await?;
    let path = "/admin/sandboxes/gateway/setup-code";
    let code: SetupCode = gateway.client.post_json(path, &()).await?;
    if context.json {
        output::print_json(&code)?;
    } else {
        let SetupCode { url, code, expires_in_s } = code;
        let minutes = expires_in_s / 60;
        output::print(&format!("Open {url} within {minutes} minutes and type:\n  {code}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}
