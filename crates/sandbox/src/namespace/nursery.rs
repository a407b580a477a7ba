//! Seeds: sandboxes-to-be, parked one step before their mounts.
//!
//! The nursery owns the guest binary, in a sealed memfd, so that no sandbox can change the file it
//! runs from. Everything here blocks while a launcher works.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use nacre_launch::Control;
use nacre_launch::order::{Ids, Park, Reply, Task};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use super::cgroup::{Cgroups, Hierarchies};
use super::process::Process;

const SEAL_TRIES: u32 = 50;
const SEAL_PAUSE: Duration = Duration::from_millis(20);

/// A parked pid 1.
#[derive(Debug)]
pub(super) struct Seed {
    pub(super) control: Control,
    pub(super) process: Process,
    pub(super) cgroups: Cgroups,
    _live: Live,
}

/// A name that something of this process's goes by, for as long as it does.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) name: String,
    nursery: Nursery,
}

impl Seed {
    /// Ends it and everything of it. Blocks for the moment that the kernel takes.
    pub(super) fn end(&self) {
        self.process.kill();
        let mut tries = 0;
        while self.process.exits_within(Duration::from_secs(1))
            && self.cgroups.remove().is_err()
            && tries < 200
        {
            std::thread::sleep(Duration::from_millis(2));
            tries += 1;
        }
    }
}

/// Makes seeds. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Nursery(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    guest: OwnedFd,
    /// The directory that holds all sandboxes.
    sandboxes: PathBuf,
    /// What every sandbox sees at `/opt/nacre`.
    shared: Option<PathBuf>,
    ids: Ids,
    hierarchies: Hierarchies,
    /// Tells this process's seeds from those of one before it.
    run: String,
    counter: AtomicU64,
    live: Mutex<HashSet<String>>,
}

/// How long a launcher may take. It waits for the kernel only.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

impl Nursery {
    pub(super) fn new(
        guest: &[u8],
        sandboxes: PathBuf,
        shared: Option<PathBuf>,
        ids: Ids,
        hierarchies: Hierarchies,
    ) -> io::Result<Self> {
        let run = format!("{:x}{:x}", std::process::id(), monotonic_ns() & 0xffff_ffff);
        Ok(Self(Arc::new(Inner {
            guest: sealed(guest)?,
            sandboxes,
            shared,
            ids,
            hierarchies,
            run,
            counter: AtomicU64::new(0),
            live: Mutex::default(),
        })))
    }

    /// Whether something of this process's goes by this name, so that it is not a leftover.
    pub(super) fn has(&self, name: &str) -> bool {
        self.live().contains(name)
    }

    /// A name that nothing else of this data directory has.
    pub(super) fn name(&self) -> Live {
        let number = self.0.counter.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", self.0.run);
        self.live().insert(name.clone());
        Live { name, nursery: self.clone() }
    }

    fn live(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.live.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A new seed; `rootfs` is for a sandbox on a root filesystem that it has to open itself.
    pub(super) fn make(&self, rootfs: Option<PathBuf>) -> io::Result<Seed> {
        let inner = &self.0;
        let live = self.name();
        let cgroups = inner.hierarchies.open(&live.name)?;
        let park = Park {
            ids: inner.ids.clone(),
            sandboxes: inner.sandboxes.clone(),
            rootfs,
            shared: inner.shared.clone(),
            cgroups: cgroups.directories(),
            oom_score_adj: rustix::process::geteuid().is_root().then_some(-500),
        };
        let made = self.launch(&Task::Park(park)).and_then(|(control, reply)| match reply {
            Reply::Parked { pid } => {
                let process = Process::open(pid)?;
                Ok(Seed { process, control, cgroups: cgroups.clone(), _live: live })
            }
            other => Err(unexpected(&other)),
        });
        if made.is_err() {
            cgroups.kill();
            let _ = cgroups.remove();
        }
        made
    }

    /// Runs an administrative task to its end.
    pub(super) fn administer(&self, task: &Task) -> io::Result<()> {
        match self.launch(task)?.1 {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Starts a launcher and gives it its task.
    pub(super) fn begin(&self, task: &Task) -> io::Result<(Control, Child)> {
        let (ours, theirs) = Control::pair()?;
        ours.send(task, &[])?;
        let launcher = Command::new(format!("/proc/self/fd/{}", self.0.guest.as_raw_fd()))
            .arg0("nacre-guest")
            .arg("launch")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok((ours, launcher))
    }

    /// Starts a launcher and waits for its first answer.
    fn launch(&self, task: &Task) -> io::Result<(Control, Reply)> {
        let (ours, mut launcher) = self.begin(task)?;
        let answer = receive(&ours);
        // A launcher ends when it has parked its seed; one that does not is stuck and of no use.
        if answer.is_err() {
            let _ = launcher.kill();
        }
        launcher.wait()?;
        Ok((ours, answer?))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.nursery.live().remove(&self.name);
    }
}

/// Waits for a launcher's or a seed's next message.
pub(super) fn receive(control: &Control) -> io::Result<Reply> {
    let timeout = rustix::net::sockopt::set_socket_timeout(
        control,
        rustix::net::sockopt::Timeout::Recv,
        Some(PATIENCE),
    );
    timeout?;
    match control.receive::<Reply>()? {
        Some(received) => Ok(received.message),
        None => {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the launcher ended without a word"))
        }
    }
}

pub(super) fn unexpected(reply: &Reply) -> io::Error {
    match reply {
        Reply::Failed { step, message, errno } => {
            let kind = errno
                .map_or(io::ErrorKind::Other, |errno| io::Error::from_raw_os_error(errno).kind());
            io::Error::new(kind, format!("{step}: {message}"))
        }
        other => io::Error::other(format!("unexpected answer from the launcher: {other:?}")),
    }
}

fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 do not know the flag and need none.
    let fd = rustix::fs::memfd_create("nacre-guest", flags | MemfdFlags::EXEC)
        .or_else(|_| rustix::fs::memfd_create("nacre-guest", flags))?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    let fd = OwnedFd::from(file);
    seal(&fd)?;
    Ok(fd)
}

/// The kernel refuses while anything holds one of the pages, and its own housekeeping does so for
/// moments: it waits a little for that to end, and we ask again.
fn seal(fd: &OwnedFd) -> io::Result<()> {
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let mut tries = 0;
    loop {
        tries += 1;
        match rustix::fs::fcntl_add_seals(fd, seals) {
            Err(Errno::BUSY) if tries < SEAL_TRIES => std::thread::sleep(SEAL_PAUSE),
            done => return Ok(done?),
        }
    }
}

fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
