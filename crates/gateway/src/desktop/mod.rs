//! The desktop, as far as it is the host's: what it runs on is unpacked for all sandboxes to share, and
//! its source is put into the first sandbox of a new computer.
//!
//! Everything happens after the gateway answers, and nothing waits for it. That a sandbox is still to get
//! the desktop is a mark in `control.db`, made with its row and removed when its supervisor has answered:
//! a gateway that ends in between asks again at its next start. The supervisor decides; a workspace that
//! has something of its own is left alone.

pub(crate) mod config;
mod modules;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nacre_sandbox::SandboxId;
use nacre_wire::control::Reduction;
use nacre_wire::desktop::SeedRequest;
use nacre_wire::{ApiError, ErrorKind};
use tokio_util::sync::CancellationToken;

use crate::sandboxes::Sandboxes;
use config::DesktopConfig;

/// In the data folder: what every sandbox sees at `/opt/nacre`.
pub const SHARED_FOLDER: &str = "shared";

/// For a supervisor to write some hundred files and record them.
const PATIENCE: Duration = Duration::from_secs(60);

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Desktop(Arc<Inner>);

struct Inner {
    config: DesktopConfig,
    shared: PathBuf,
    /// Held by whoever unpacks.
    unpacking: tokio::sync::Mutex<()>,
    trouble: Mutex<Option<Reduction>>,
    stop: CancellationToken,
}

impl Desktop {
    pub(crate) fn new(config: DesktopConfig, shared: PathBuf, stop: CancellationToken) -> Self {
        let (unpacking, trouble) = (tokio::sync::Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { config, shared, unpacking, trouble, stop }))
    }

    /// What a start of the gateway owes to the desktop. A workspace leads to the modules from the moment
    /// it has the source, so they come first; without them the desktop installs its own.
    pub(crate) async fn settle(self, sandboxes: Sandboxes) {
        if !self.0.config.seed {
            return;
        }
        if let Err(error) = self.unpack().await {
            tracing::warn!(%error, "the modules of the desktop");
            self.trouble(format!("{error}; it installs them itself"), "nacre desktop seed");
        }
        let waiting = match sandboxes.unseeded().await {
            Ok(waiting) => waiting,
            Err(error) => return tracing::warn!(%error, "who is to get the desktop"),
        };
        for id in waiting {
            if let Err(error) = seed(&sandboxes, &id).await {
                tracing::warn!(sandbox = %id, %error, "did not get the desktop");
                let why = format!("its source is not in the workspace: {}", error.message);
                self.trouble(why, "nacre desktop seed");
            }
        }
    }

    /// Makes sure that sandboxes see what the desktop runs on.
    pub(crate) async fn unpack(&self) -> Result<(), ApiError> {
        let _alone = self.0.unpacking.lock().await;
        let Some(modules) = self.0.config.modules.clone() else { return Ok(()) };
        let (shared, stop) = (self.0.shared.clone(), self.0.stop.clone());
        let work = move || modules::unpack(&modules, &shared, &stop);
        let unpacked = tokio::task::spawn_blocking(work).await;
        let place = self.0.shared.display();
        unpacked
            .map_err(|_| ApiError::new(ErrorKind::Internal, "unpacking was cut short"))?
            .map_err(|error| ApiError::io(format!("cannot unpack its modules to {place}"), &error))
    }

    /// What is less than it should be.
    pub(crate) fn reduced(&self) -> Option<Reduction> {
        self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn trouble(&self, why: String, remedy: &str) {
        let remedy = Some(remedy.to_owned());
        let reduction = Reduction { what: "desktop".to_owned(), why, remedy };
        *self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(reduction);
    }
}

/// Waits until it runs, for as long as that takes.
async fn seed(sandboxes: &Sandboxes, id: &SandboxId) -> Result<(), ApiError> {
    let sandbox = sandboxes.find(id.as_str())?;
    sandbox.until_running().await?;
    let client = sandbox.client();
    let answer = tokio::time::timeout(PATIENCE, client.seed_desktop(&SeedRequest::default())).await;
    let seeded = answer
        .map_err(|_| ApiError::new(ErrorKind::Unavailable, "the supervisor does not answer"))?
        .map_err(|error| ApiError::new(error.kind(), error.to_string()))?;
    match seeded.why {
        Some(why) => tracing::info!(sandbox = %sandbox.name, why, "no desktop was put into it"),
        None => tracing::info!(sandbox = %sandbox.name, "has the desktop"),
    }
    sandboxes.note_seeded(id).await
}
