//! `nacre down`: stop what `nacre up` started.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use nacre_gateway::LOCK_FILE;
use nacre_wire::control::Shutdown;
use rustix::fs::{FlockOperation, flock};
use serde_json::json;

use super::Context;
use crate::connect::Gateway;
use crate::failure::{Failure, Result};
use crate::output;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct Down {
    /// Leave the sandboxes running; the next `nacre up` finds them
    #[arg(long)]
    keep_sandboxes: bool,
}

pub(crate) async fn run(command: Down, context: &Context) -> Result<ExitCode> {
    let was_running = match Gateway::find(&context.data_dir).await? {
        None => false,
        Some((gateway, _)) => {
            let how = Shutdown { stop_sandboxes: !command.keep_sandboxes };
            gateway.post("/admin/sandboxes/gateway/shutdown", &how).await?;
            let gone = until_gone(&context.data_dir);
            tokio::time::timeout(PATIENCE, gone).await.map_err(|_| {
                Failure::new("the gateway has not stopped yet").hint("see nacre status")
            })??;
            true
        }
    };
    if context.json {
        output::print_json(&json!({ "was_running": was_running }))?;
    } else {
        output::print(if was_running {
            "Nacre has stopped.\n"
        } else {
            "Nacre was not running.\n"
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The gateway holds the lock until it ends, so getting it means that it has.
async fn until_gone(data_dir: &Path) -> Result<()> {
    let path = data_dir.join(LOCK_FILE);
    let waited = tokio::task::spawn_blocking(move || {
        let file = File::open(&path).map_err(|error| Failure::io(path.display(), &error))?;
        flock(&file, FlockOperation::LockShared)
            .map_err(|errno| Failure::io(path.display(), &errno.into()))
    });
    waited.await.map_err(|error| Failure::new(error.to_string()))?
}
