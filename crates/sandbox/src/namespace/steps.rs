//! How a sandbox is built, begins, is found again and is cleaned up after: the steps of the driver's
//! calls, each of which leaves nothing behind when it fails.

use std::path::Path;
use std::sync::Arc;

use nacre_launch::order::{Begin, Reply};
use nacre_wire::control::SandboxState;
use tokio::net::UnixListener;

use super::builder::{self, Built, memory_mounts};
use super::cgroup::{Ability, Cgroups};
use super::nursery::{self, Seed};
use super::process::Process;
use super::{
    MOST_CLAIMED, NamespaceDriver, Running, answers, blocking, create_error, io_error,
    remove_cgroups, sockets, start_error, wait_for_answer,
};
use crate::{Result, SandboxId, SandboxSpec};

impl NamespaceDriver {
    /// Lets a built sandbox begin as this one, and ends it when it cannot.
    pub(super) async fn begin(
        &self,
        id: &SandboxId,
        spec: &SandboxSpec,
        built: Built,
    ) -> Result<Running> {
        let begun = self.try_begin(id, spec, &built).await;
        let Seed { process, cgroups, .. } = built.seed;
        match begun.and_then(|()| {
            UnixListener::from_std(built.host).map_err(|error| start_error(id, error))
        }) {
            Ok(host) => Ok(Running::new(process, cgroups, host, false)),
            Err(error) => {
                process.kill();
                process.exited().await;
                self.clean_up(id, &cgroups).await?;
                Err(error)
            }
        }
    }

    pub(super) async fn try_begin(
        &self,
        id: &SandboxId,
        spec: &SandboxSpec,
        built: &Built,
    ) -> Result<()> {
        let fail = |what: &str| io_error(format!("start sandbox \"{id}\": {what}"));
        let (place, seed) = (self.builder.store.place(id), &built.seed);
        seed.cgroups.limit(&spec.limits).map_err(fail("set its limits"))?;
        self.quota
            .limit(&place.data(), id, spec.limits.disk_bytes)
            .map_err(fail("set its disk limit"))?;
        place.publish_run().map_err(fail("record it"))?;
        let begin = Begin {
            host_name: id.as_str().to_owned(),
            max_processes: spec.limits.pids.filter(|_| !self.hierarchies.has(Ability::Pids)),
            memory_mounts_bytes: memory_mounts(&spec.limits),
        };
        seed.control.send(&begin, &[]).map_err(fail("order it"))?;
        match wait_for_answer(seed).await.map_err(|error| start_error(id, error))? {
            Reply::Ready => Ok(()),
            other => Err(start_error(id, nursery::unexpected(&other))),
        }
    }

    /// Builds a sandbox whose files exist.
    pub(super) async fn build(&self, id: &SandboxId, spec: &SandboxSpec) -> Result<Built> {
        let place = self.builder.store.place(id);
        // Before there is a file: what is made afterwards counts.
        self.quota
            .limit(&place.data(), id, spec.limits.disk_bytes)
            .map_err(io_error(format!("start sandbox \"{id}\": set its disk limit")))?;
        let (stock, rootfs) = (self.stock.clone(), spec.rootfs.clone());
        let seed = blocking(move || stock.seed(rootfs)).await;
        let (seed, prepared) = seed.map_err(|error| start_error(id, error))?;
        let memory = memory_mounts(&spec.limits);
        let built = match self.builder.order(&place, &seed, prepared, memory) {
            Ok(host) => wait_for_answer(&seed)
                .await
                .and_then(|answer| builder::accept(&place, answer))
                .map(|()| host)
                .map_err(|error| start_error(id, error)),
            Err(error) => Err(io_error(format!("start sandbox \"{id}\""))(error)),
        };
        match built {
            Ok(host) => Ok(Built { seed, host }),
            Err(error) => {
                seed.process.kill();
                seed.process.exited().await;
                self.clean_up(id, &seed.cgroups).await?;
                Err(error)
            }
        }
    }

    /// Makes a sandbox from a blank, if one is ready and would do.
    pub(super) fn claim(&self, id: &SandboxId, spec: &SandboxSpec) -> Result<bool> {
        if spec.rootfs.is_some() || self.claimed().len() >= MOST_CLAIMED {
            return Ok(false);
        }
        let Some(blank) = self.stock.take_blank() else { return Ok(false) };
        let adopted = self.quota.adopt(&blank.place.data(), id);
        // Held until it is known who waits behind it: two seeds must never build on the same files.
        let mut claimed = self.claimed();
        match adopted.and_then(|()| self.builder.store.publish(&blank.place, id, spec)) {
            Ok(()) => {
                claimed.insert(id.clone(), blank.built);
                Ok(true)
            }
            Err(error) => {
                self.stock.scrap(blank);
                Err(create_error(id, error))
            }
        }
    }

    /// Ends what a claim has kept ready. The files are the sandbox's own and stay.
    pub(super) async fn unclaim(&self, id: &SandboxId) {
        let claimed = self.claimed().remove(id);
        if let Some(built) = claimed {
            let _ = tokio::task::spawn_blocking(move || built.seed.end()).await;
        }
    }

    /// What is left of a sandbox whose processes are gone.
    pub(super) async fn clean_up(&self, id: &SandboxId, cgroups: &Cgroups) -> Result<()> {
        self.builder
            .store
            .place(id)
            .clear_run()
            .map_err(io_error(format!("clean up after sandbox \"{id}\"")))?;
        self.running().remove(id);
        remove_cgroups(cgroups).await;
        Ok(())
    }

    pub(super) async fn remove_tree(&self, path: &Path) -> Result<()> {
        let (builder, path) = (self.builder.clone(), path.to_owned());
        let context = format!("remove {}", path.display());
        blocking(move || builder.remove_tree(&path)).await.map_err(io_error(context))
    }

    pub(super) fn bases_in_use(&self) -> Vec<String> {
        let ids: Vec<SandboxId> = self.running().keys().cloned().collect();
        ids.iter()
            .filter_map(|id| self.builder.store.place(id).read_run())
            .flat_map(|run| run.base)
            .collect()
    }

    /// Adopts what still runs, and ends what cannot be used any more.
    pub(super) async fn recover(&self, id: &SandboxId) -> Result<SandboxState> {
        if self.claimed().contains_key(id) {
            return Ok(SandboxState::Stopped);
        }
        let place = self.builder.store.place(id);
        let Some(run) = place.read_run() else {
            place.clear_run().map_err(io_error(format!("clean up after sandbox \"{id}\"")))?;
            return Ok(SandboxState::Stopped);
        };
        let cgroups = self.hierarchies.named(&run.cgroups);
        let Some(process) = Process::find(&run.process) else {
            self.clean_up(id, &cgroups).await?;
            return Ok(SandboxState::Failed);
        };
        let frozen = cgroups.is_frozen();
        if !frozen && !answers(&place).await {
            process.kill();
            process.exited().await;
            self.clean_up(id, &cgroups).await?;
            return Ok(SandboxState::Failed);
        }
        let host = sockets::listen_for_guest(&place.host())
            .and_then(UnixListener::from_std)
            .map_err(io_error(format!("listen for sandbox \"{id}\"")))?;
        let running = Running::new(process, cgroups, host, frozen);
        self.running().insert(id.clone(), Arc::new(running));
        Ok(if frozen { SandboxState::Paused } else { SandboxState::Running })
    }
}
