//! The files of a sandbox that is stopped have a history too: it is started for the call.

use nacre_wire::client::Client;
use nacre_wire::control::{SandboxInfo, SandboxState};
use nacre_wire::path::text_to_query;

use crate::commands::Context;
use crate::connect::Gateway;
use crate::failure::{Failure, Result};

/// Does `work` at the door of a sandbox. One that was stopped is stopped again afterwards, however
/// the work went.
pub(crate) async fn at_door<T>(
    sandbox: &str,
    context: &Context,
    work: impl AsyncFnOnce(&Client) -> Result<T>,
) -> Result<T> {
    let gateway = context.gateway().await?;
    let door = gateway.door(sandbox);
    let path = format!("/admin/sandboxes/{}", text_to_query(sandbox));
    let info: SandboxInfo = gateway.client.get_json(&path).await?;
    match info.state {
        SandboxState::Stopped => {}
        // Of one that failed or is paused the gateway says itself what to do.
        SandboxState::Running | SandboxState::Paused | SandboxState::Failed => {
            return work(&door).await;
        }
    }
    eprintln!("nacre: {} is stopped; starting it for this", info.name);
    operate(&gateway, &path, "start").await?;
    let done = tokio::select! {
        done = work(&door) => done,
        _ = tokio::signal::ctrl_c() => Err(Failure::new("interrupted")),
    };
    match operate(&gateway, &path, "stop").await {
        Ok(()) => eprintln!("nacre: {} is stopped again", info.name),
        Err(failure) => {
            eprintln!("nacre: {} could not be stopped again:", info.name);
            // What the work came to matters more.
            failure.report();
        }
    }
    done
}

async fn operate(gateway: &Gateway, path: &str, op: &str) -> Result<()> {
    let _: SandboxInfo = gateway.client.post_json(&format!("{path}/{op}"), &()).await?;
    Ok(())
}
