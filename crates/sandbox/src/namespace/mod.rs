//! Sandboxes from Linux namespaces: no daemon, no image, no virtual machine.
//!
//! The driver owns `sandboxes/` in the data directory ([`files`]), one cgroup per sandbox
//! ([`cgroup`]), and the sandboxes-to-be that are kept ready ([`stock`]). All mounts live in the
//! sandboxes' own namespaces and end with them, so there is never one to clean up.
//!
//! ```text
//!           create            start                 pause
//!   (none) ───────► Stopped ─────────► Running ◄───────────► Paused
//!      ▲               ▲ ▲                │ exits    resume
//!      │   destroy     │ └──── stop ──────┤
//!      └───────────────┘                  ▼
//!                                       Failed ── start ──► Running
//! ```
//!
//! A seed builds a sandbox and then begins to be one. Order of writes at a start, so that a crash
//! between any two is recoverable: `run.json` names the seed's process before the seed may begin. A
//! seed whose host died before that exits by itself.
//!
//! `create` takes a blank if there is one: it gets its `sandbox.json` and then its name, in one
//! rename, which the mounts follow. The seed behind it is known to this process only, so after a
//! restart, or when it has died, `start` builds the sandbox as any other.

mod base;
mod builder;
mod cgroup;
mod demand;
mod files;
mod fork;
mod ids;
mod nursery;
mod process;
mod quota;
mod sockets;
mod steps;
mod stock;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nacre_launch::order::Reply;
use nacre_wire::client::{BoxStream, Client, Dial};
use nacre_wire::control::{SandboxState, Stats};
use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixListener;

use self::base::BaseSystem;
use self::builder::{Builder, Built};
use self::cgroup::{Ability, Cgroups, Hierarchies};
use self::files::{Place, Store};
use self::ids::IdPlan;
use self::nursery::{Nursery, Seed};
use self::process::Process;
use self::stock::Stock;
use crate::{Capabilities, Driver, Error, Forked, Progress, Result, SandboxId, SandboxSpec};

#[derive(Debug, Clone)]
pub struct NamespaceConfig {
    pub data_dir: PathBuf,
    /// The guest binary.
    pub guest: Cow<'static, [u8]>,
    /// Seeds to keep parked, and blanks to keep at least; with 0 no sandbox is prepared in advance.
    pub parked: usize,
    /// Directories of the host to show in sandboxes besides its system, read-only under a layer.
    pub host_directories: Vec<PathBuf>,
    /// A folder that every sandbox sees at `/opt/nacre`, read-only; made when it is missing. What is put
    /// there later is seen by those that run.
    pub shared: Option<PathBuf>,
}

/// See the [module](self).
pub struct NamespaceDriver {
    builder: Arc<Builder>,
    stock: Stock,
    hierarchies: Hierarchies,
    quota: quota::Quota,
    running: Mutex<HashMap<SandboxId, Arc<Running>>>,
    /// Sandboxes that were made from a blank and have not been started since.
    claimed: Mutex<HashMap<SandboxId, Built>>,
}

/// The most sandboxes that may hold on to something prepared without being started.
const MOST_CLAIMED: usize = 64;

/// A supervisor that was started and not yet stopped; it may have ended meanwhile.
#[derive(Debug)]
struct Running {
    process: Process,
    cgroups: Cgroups,
    host: UnixListener,
    freezer: Mutex<Freezer>,
}

/// Why a sandbox is frozen: because it was asked for, and because somebody copies it.
#[derive(Debug, Default)]
struct Freezer {
    paused: bool,
    holds: u32,
}

impl Running {
    fn new(process: Process, cgroups: Cgroups, host: UnixListener, paused: bool) -> Self {
        let freezer = Mutex::new(Freezer { paused, holds: 0 });
        Self { process, cgroups, host, freezer }
    }

    /// Changes what is wanted and does it.
    fn freezer(&self, change: impl FnOnce(&mut Freezer)) -> io::Result<()> {
        let mut freezer = self.freezer.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        change(&mut freezer);
        self.cgroups.set_frozen(freezer.paused || freezer.holds > 0)
    }

    fn is_paused(&self) -> bool {
        self.freezer.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).paused
    }
}

impl NamespaceDriver {
    /// Finds out what this machine offers. Starts nothing.
    pub fn new(config: NamespaceConfig) -> Result<Self> {
        let fail = || io_error(format!("open the data directory {}", config.data_dir.display()));
        let data_dir = std::path::absolute(&config.data_dir).map_err(fail())?;
        let store = Store::open(&data_dir).map_err(fail())?;
        // Two data directories on one machine keep out of each other's cgroups.
        let hierarchies = Hierarchies::detect(&store.instance().map_err(fail())?);
        let ids = IdPlan::detect().map_err(io_error("find out which ids we may map"))?;
        let shared = config.shared.as_deref().map(files::make_shared).transpose();
        let nursery = Nursery::new(
            &config.guest,
            store.directory().to_owned(),
            shared.map_err(io_error("make the folder that sandboxes share"))?,
            ids.sandbox.clone(),
            hierarchies.clone(),
        )
        .map_err(io_error("prepare the guest binary"))?;
        let base = BaseSystem::new(&store, &ids, config.host_directories);
        let builder = Arc::new(Builder { store, ids, nursery, base });
        Ok(Self {
            stock: Stock::new(builder.clone(), config.parked),
            builder,
            quota: quota::Quota::detect(&data_dir),
            hierarchies,
            running: Mutex::default(),
            claimed: Mutex::default(),
        })
    }

    /// Returns when everything is ready that is to be kept ready, so that the next start is a fast
    /// one. Without this it gets ready after the first start.
    pub async fn warm_up(&self) -> Result<()> {
        self.stock.fill().await.map_err(io_error("prepare sandboxes"))
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<SandboxId, Arc<Running>>> {
        self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn claimed(&self) -> std::sync::MutexGuard<'_, HashMap<SandboxId, Built>> {
        self.claimed.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn get(&self, id: &SandboxId) -> Option<Arc<Running>> {
        self.running().get(id).cloned()
    }

    fn known(&self, id: &SandboxId) -> Result<Place> {
        if self.builder.store.exists(id) {
            Ok(self.builder.store.place(id))
        } else {
            Err(Error::NotFound(id.clone()))
        }
    }

    fn state_now(&self, id: &SandboxId) -> Result<SandboxState> {
        self.known(id)?;
        Ok(match self.get(id) {
            None => SandboxState::Stopped,
            Some(running) if running.process.has_exited() => SandboxState::Failed,
            Some(running) if running.is_paused() => SandboxState::Paused,
            Some(_) => SandboxState::Running,
        })
    }

    /// The running entry, or an error that says what it is instead.
    fn require(
        &self,
        id: &SandboxId,
        wanted: SandboxState,
        action: &'static str,
    ) -> Result<Arc<Running>> {
        let state = self.state_now(id)?;
        match self.get(id) {
            Some(running) if state == wanted => Ok(running),
            _ => Err(Error::State { id: id.clone(), state, action }),
        }
    }
}

#[async_trait]
impl Driver for NamespaceDriver {
    fn name(&self) -> &'static str {
        "namespace"
    }

    fn capabilities(&self) -> Capabilities {
        let mut reduced = self.builder.ids.reduced.clone();
        reduced.extend(self.hierarchies.reduced.clone());
        reduced.extend(self.quota.reduced());
        Capabilities {
            pause: self.hierarchies.has(Ability::Freeze),
            memory_limit: self.hierarchies.has(Ability::Memory),
            cpu_limit: self.hierarchies.has(Ability::Cpu),
            pids_limit: self.hierarchies.has(Ability::Pids),
            disk_limit: self.quota.available(),
            persistent: true,
            reduced,
        }
    }

    async fn probe(&self) -> Result<()> {
        let id: SandboxId = format!("probe-{}", std::process::id()).parse().map_err(|error| {
            Error::Io { context: "name the probe".to_owned(), source: io::Error::other(error) }
        })?;
        self.destroy(&id).await?;
        self.create(&id, &SandboxSpec::default()).await?;
        let started = self.start(&id).await;
        let answered = started.is_ok() && answers(&self.builder.store.place(&id)).await;
        let log = self.logs(&id, 2000).await.unwrap_or_default();
        self.destroy(&id).await?;
        started?;
        if answered {
            return Ok(());
        }
        let log = String::from_utf8_lossy(&log).trim().to_owned();
        Err(Error::Start { id, why: format!("its supervisor does not answer\n{log}") })
    }

    async fn create(&self, id: &SandboxId, spec: &SandboxSpec) -> Result<()> {
        if self.builder.store.exists(id) {
            return Err(Error::Exists(id.clone()));
        }
        if let Some(rootfs) = &spec.rootfs {
            open_directory(rootfs).map_err(io_error(format!("open {}", rootfs.display())))?;
        }
        if self.claim(id, spec)? {
            return Ok(());
        }
        let half_made = self.builder.store.new_place(id);
        if half_made.0.exists() {
            self.remove_tree(&half_made.0).await?;
        }
        let laid_out = if self.builder.ids.chown_to.is_some() {
            self.builder.lay_out(&half_made)
        } else {
            // A launcher has to do it.
            let (builder, place) = (self.builder.clone(), half_made.clone());
            blocking(move || builder.lay_out(&place)).await
        };
        let made = laid_out.and_then(|()| self.builder.store.publish(&half_made, id, spec));
        if let Err(error) = made {
            // Reported first: what failed the creation may well fail the removal too.
            let _ = self.remove_tree(&half_made.0).await;
            return Err(create_error(id, error));
        }
        Ok(())
    }

    async fn fork(
        &self,
        from: &SandboxId,
        to: &SandboxId,
        progress: Arc<Progress>,
    ) -> Result<Forked> {
        let spec = self
            .known(from)?
            .read_spec()
            .map_err(io_error(format!("read the specification of sandbox \"{from}\"")))?;
        if self.builder.store.exists(to) {
            return Err(Error::Exists(to.clone()));
        }
        let half_made = self.builder.store.new_place(to);
        if half_made.0.exists() {
            self.remove_tree(&half_made.0).await?;
        }
        let (builder, place) = (self.builder.clone(), half_made.clone());
        let made = async {
            blocking(move || builder.lay_out(&place)).await.map_err(io_error("make room"))?;
            // Before there is a file: what is made afterwards counts.
            self.quota
                .limit(&half_made.data(), to, spec.limits.disk_bytes)
                .map_err(io_error("set its disk limit"))?;
            let forked = self.copy_files(from, &half_made, progress).await?;
            let published = self.builder.store.publish(&half_made, to, &spec);
            published.map_err(|error| create_error(to, error)).map(|()| forked)
        };
        let made = made.await;
        if made.is_err() {
            // Reported first: what failed the copy may well fail the removal too.
            let _ = self.remove_tree(&half_made.0).await;
        }
        made
    }

    async fn start(&self, id: &SandboxId) -> Result<()> {
        match self.state_now(id)? {
            SandboxState::Stopped => {}
            SandboxState::Failed => {
                if let Some(running) = self.get(id) {
                    self.clean_up(id, &running.cgroups).await?;
                }
            }
            state => return Err(Error::State { id: id.clone(), state, action: "start it" }),
        }
        let spec = self
            .builder
            .store
            .place(id)
            .read_spec()
            .map_err(io_error(format!("read the specification of sandbox \"{id}\"")))?;
        let claimed = self.claimed().remove(id);
        let begun = match claimed {
            Some(built) => match self.begin(id, &spec, built).await {
                Ok(running) => running,
                // It waited for long, perhaps, and may have met its end meanwhile.
                Err(error) => {
                    tracing::warn!(sandbox = %id, "what was prepared cannot be used: {error}");
                    self.begin(id, &spec, self.build(id, &spec).await?).await?
                }
            },
            None => self.begin(id, &spec, self.build(id, &spec).await?).await?,
        };
        self.running().insert(id.clone(), Arc::new(begun));
        self.stock.met();
        Ok(())
    }

    async fn pause(&self, id: &SandboxId) -> Result<()> {
        if !self.hierarchies.has(Ability::Freeze) {
            return Err(Error::Unsupported { what: "pause", why: "no cgroup freezer".to_owned() });
        }
        let running = self.require(id, SandboxState::Running, "pause it")?;
        let context = format!("pause sandbox \"{id}\"");
        running.freezer(|freezer| freezer.paused = true).map_err(io_error(context))?;
        while !running.cgroups.is_frozen() && !running.process.has_exited() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    async fn resume(&self, id: &SandboxId) -> Result<()> {
        let running = self.require(id, SandboxState::Paused, "resume it")?;
        let resumed = running.freezer(|freezer| freezer.paused = false);
        resumed.map_err(io_error(format!("resume sandbox \"{id}\"")))
    }

    async fn stop(&self, id: &SandboxId, grace: Duration) -> Result<()> {
        self.known(id)?;
        let Some(running) = self.get(id) else { return Ok(()) };
        if running.cgroups.is_frozen() {
            running
                .cgroups
                .set_frozen(false)
                .map_err(io_error(format!("stop sandbox \"{id}\"")))?;
        }
        if !grace.is_zero() {
            running.process.signal(Signal::TERM);
            let _ = tokio::time::timeout(grace, running.process.exited()).await;
        }
        running.process.kill();
        running.process.exited().await;
        self.clean_up(id, &running.cgroups).await
    }

    async fn destroy(&self, id: &SandboxId) -> Result<()> {
        if !self.builder.store.exists(id) {
            return Ok(());
        }
        self.stop(id, Duration::ZERO).await?;
        self.unclaim(id).await;
        let gone =
            self.builder.store.retire(id).map_err(io_error(format!("destroy sandbox \"{id}\"")))?;
        self.remove_tree(&gone).await
    }

    async fn dial(&self, id: &SandboxId) -> Result<BoxStream> {
        self.require(id, SandboxState::Running, "reach it")?;
        let stream = sockets::connect(&self.builder.store.place(id).0, "door.sock").await;
        Ok(Box::new(stream.map_err(io_error(format!("reach sandbox \"{id}\"")))?))
    }

    async fn accept(&self, id: &SandboxId) -> Result<BoxStream> {
        let state = self.state_now(id)?;
        let Some(running) = self.get(id) else {
            return Err(Error::State { id: id.clone(), state, action: "listen for it" });
        };
        tokio::select! {
            accepted = running.host.accept() => {
                let (stream, _) = accepted.map_err(io_error(format!("listen for sandbox \"{id}\"")))?;
                Ok(Box::new(stream))
            }
            () = running.process.exited() => {
                Err(Error::State { id: id.clone(), state: SandboxState::Failed, action: "listen for it" })
            }
        }
    }

    async fn state(&self, id: &SandboxId) -> Result<SandboxState> {
        self.state_now(id)
    }

    async fn stats(&self, id: &SandboxId) -> Result<Stats> {
        let place = self.known(id)?;
        let mut stats = self.get(id).map(|running| running.cgroups.stats()).unwrap_or_default();
        stats.disk_bytes = self.quota.used(&place.data(), id);
        Ok(stats)
    }

    async fn exited(&self, id: &SandboxId) {
        if let Some(running) = self.get(id) {
            running.process.exited().await;
        }
    }

    async fn logs(&self, id: &SandboxId, max_bytes: u64) -> Result<Vec<u8>> {
        let log = self.known(id)?.log();
        read_end(&log, max_bytes).map_err(io_error(format!("read {}", log.display())))
    }

    async fn reconcile(&self) -> Result<Vec<(SandboxId, SandboxState)>> {
        let failed = "look through the data directory";
        let nursery = &self.builder.nursery;
        let leftovers = self.builder.store.leftovers(|name| nursery.has(name));
        for leftover in leftovers.map_err(io_error(failed))? {
            self.remove_tree(&leftover).await?;
        }
        let mut found = Vec::new();
        for id in self.builder.store.ids().map_err(io_error(failed))? {
            let state = self.recover(&id).await?;
            found.push((id, state));
        }
        let used: Vec<String> =
            self.running().values().map(|running| running.cgroups.name.clone()).collect();
        let left = |name: &String| !used.contains(name) && !nursery.has(name);
        for name in self.hierarchies.names().into_iter().filter(left) {
            let cgroups = self.hierarchies.named(&name);
            cgroups.kill();
            remove_cgroups(&cgroups).await;
        }
        let (builder, used) = (self.builder.clone(), self.bases_in_use());
        let pruned = blocking(move || {
            builder.base.prune(&builder.nursery, &used);
            Ok(())
        });
        pruned.await.map_err(io_error("remove old layers"))?;
        Ok(found)
    }
}

impl Drop for NamespaceDriver {
    /// Running sandboxes live on; what was only in preparation does not.
    fn drop(&mut self) {
        for built in self.claimed().drain().map(|(_, built)| built) {
            built.seed.end();
        }
        self.stock.close();
        self.hierarchies.remove_base();
    }
}

/// Whether a supervisor answers at its door.
async fn answers(place: &Place) -> bool {
    struct Door(PathBuf);
    #[async_trait]
    impl Dial for Door {
        async fn dial(&self) -> io::Result<BoxStream> {
            Ok(Box::new(sockets::connect(&self.0, "door.sock").await?))
        }
    }
    let client = Client::new(Arc::new(Door(place.0.clone())), "");
    matches!(tokio::time::timeout(Duration::from_secs(10), client.version()).await, Ok(Ok(_)))
}

async fn wait_for_answer(seed: &Seed) -> io::Result<Reply> {
    // SAFETY: the seed keeps its socket open for longer than we look at it.
    let control =
        unsafe { AsyncFd::register_with_interest(seed.control.as_fd(), Interest::READABLE) }?;
    let readable = tokio::time::timeout(nursery::PATIENCE, control.readable()).await;
    let _guard = readable.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    nursery::receive(&seed.control)
}

/// Runs what blocks where it keeps nobody waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// The kernel lets go of a cgroup a moment after its last process.
async fn remove_cgroups(cgroups: &Cgroups) {
    for _ in 0..200 {
        if cgroups.remove().is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tracing::warn!(cgroup = cgroups.name, "cgroup is still in use and stays until the next start");
}

fn open_directory(path: &Path) -> io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn read_end(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = match std::fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(max_bytes)))?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn io_error(context: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let context = context.into();
    move |source| Error::Io { context, source }
}

fn create_error(id: &SandboxId, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists(id.clone()),
        _ => io_error(format!("create sandbox \"{id}\""))(error),
    }
}

fn start_error(id: &SandboxId, error: io::Error) -> Error {
    Error::Start { id: id.clone(), why: error.to_string() }
}
