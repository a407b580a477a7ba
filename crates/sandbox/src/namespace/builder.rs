//! Builds sandboxes up to the point where it matters which one it is.
//!
//! Everything here blocks, for milliseconds as a rule and longer when a layer of the base has to be
//! made first. Whoever may give up in the middle takes the single steps and waits in between: then
//! nobody is left who still works on the sandbox's files.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use nacre_launch::order::{Build, Reply, Task};
use nacre_wire::control::Limits;

use super::base::{BaseSystem, Prepared};
use super::files::{self, Place, Run, Store};
use super::ids::IdPlan;
use super::nursery::{self, Live, Nursery, Seed};
use super::sockets;

pub(super) struct Builder {
    pub(super) store: Store,
    pub(super) ids: IdPlan,
    pub(super) nursery: Nursery,
    pub(super) base: BaseSystem,
}

/// A seed with all its mounts, and where its supervisor will reach us.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) seed: Seed,
    pub(super) host: UnixListener,
}

/// A sandbox on the host's system that is nobody's yet.
#[derive(Debug)]
pub(super) struct Blank {
    pub(super) place: Place,
    pub(super) built: Built,
    pub(super) _live: Live,
}

impl Builder {
    pub(super) fn blank(&self) -> io::Result<Blank> {
        let live = self.nursery.name();
        let place = self.store.blank_place(&live.name);
        match self.lay_out(&place).and_then(|()| self.fill(&place)) {
            Ok(built) => Ok(Blank { place, built, _live: live }),
            Err(error) => {
                // Reported first: what failed the making may well fail the removal too.
                let _ = self.remove_tree(&place.0);
                Err(error)
            }
        }
    }

    fn fill(&self, place: &Place) -> io::Result<Built> {
        let seed = self.nursery.make(None)?;
        let built = self.prepare(&seed, None).and_then(|prepared| {
            let host = self.order(place, &seed, prepared, memory_mounts(&Limits::default()))?;
            accept(place, nursery::receive(&seed.control)?)?;
            Ok(host)
        });
        match built {
            Ok(host) => Ok(Built { seed, host }),
            Err(error) => {
                seed.end();
                Err(error)
            }
        }
    }

    /// Ends a blank and removes its files.
    pub(super) fn scrap(&self, blank: &Blank) {
        blank.built.seed.end();
        if let Err(error) = self.remove_tree(&blank.place.0) {
            tracing::warn!("cannot remove {}: {error}", blank.place.0.display());
        }
    }

    /// The directories of a sandbox that has nothing in it.
    pub(super) fn lay_out(&self, place: &Place) -> io::Result<()> {
        files::make_place(place)?;
        match self.ids.chown_to {
            Some(owner) => files::make_data(place, owner),
            None if self.ids.many => {
                let ids = self.ids.admin.clone();
                self.nursery.administer(&Task::MakeDirectory { ids, path: place.data() })
            }
            None => std::fs::create_dir(place.data()),
        }
    }

    /// What `seed` will mount. Touches nothing of a sandbox, and may take long.
    pub(super) fn prepare(&self, seed: &Seed, rootfs: Option<&Path>) -> io::Result<Prepared> {
        self.base
            .prepare(&self.nursery, seed.process.identity.pid, rootfs)
            .map_err(step("prepare its base"))
    }

    /// Tells `seed` to build the sandbox at `place`. It answers with what [`accept`] takes.
    pub(super) fn order(
        &self,
        place: &Place,
        seed: &Seed,
        prepared: Prepared,
        memory_mounts_bytes: u64,
    ) -> io::Result<UnixListener> {
        let host = sockets::listen_for_guest(&place.host()).map_err(step("listen for it"))?;
        let door = sockets::listen(&place.0, "door.sock").map_err(step("open its door"))?;
        let log = files::open_log(place).map_err(step("open its log"))?;
        let run = Run {
            process: seed.process.identity.clone(),
            cgroups: seed.cgroups.name.clone(),
            base: prepared.owned,
        };
        place.write_run(&run).map_err(step("record it"))?;
        let fds: Vec<_> = [door.as_fd(), log.as_fd()]
            .into_iter()
            .chain(prepared.trees.iter().map(AsFd::as_fd))
            .collect();
        let build = Build {
            directory: place.name(),
            base: prepared.base,
            many_ids: self.ids.many,
            memory_mounts_bytes,
        };
        seed.control.send(&build, &fds).map_err(step("order it"))?;
        Ok(host)
    }

    pub(super) fn remove_tree(&self, path: &Path) -> io::Result<()> {
        // Only root of the namespace may look into what overlayfs keeps for itself.
        if self.ids.chown_to.is_none() {
            let task = Task::Remove { ids: self.ids.admin.clone(), path: path.to_owned() };
            return self.nursery.administer(&task);
        }
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

/// Takes the answer to [`Builder::order`].
pub(super) fn accept(place: &Place, answer: Reply) -> io::Result<()> {
    match answer {
        Reply::Built(built) => {
            for reason in built.read_only {
                tracing::warn!(sandbox = place.name(), "read-only in it: {reason}");
            }
            if let Some(reason) = built.no_device {
                tracing::info!(sandbox = place.name(), "without a device for packets: {reason}");
            }
            if let Some(reason) = built.no_shared {
                tracing::warn!(sandbox = place.name(), "without /opt/nacre: {reason}");
            }
            Ok(())
        }
        other => Err(nursery::unexpected(&other)),
    }
}

fn step(what: &'static str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Size of the memory-backed mounts. They count against the sandbox; half of its limit leaves room
/// to work.
pub(super) fn memory_mounts(limits: &Limits) -> u64 {
    const DEFAULT: u64 = 1 << 30;
    limits.memory_bytes.map_or(DEFAULT, |bytes| (bytes / 2).clamp(1 << 20, DEFAULT))
}
