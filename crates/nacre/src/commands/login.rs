//! `nacre login`: a fresh sign-in link.

use std::process::ExitCode;

use clap::Args;
use nacre_wire::control::SignInLink;

use super::Context;
use crate::connect::Gateway;
use crate::failure::Result;
use crate::output;

/// The link works once, within ten minutes; an older one stops working.
#[derive(Debug, Args)]
pub(crate) struct Login {}

pub(crate) async fn run(_command: Login, context: &Context) -> Result<ExitCode> {
    let link = fresh_link(&context.gateway().await?).await?;
    if context.json {
        output::print_json(&link)?;
    } else {
        output::print(&format!("{}\n", link.url))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn fresh_link(gateway: &Gateway) -> Result<SignInLink> {
    Ok(gateway.client.post_json("/admin/sandboxes/gateway/sign-in-link", &()).await?)
}
