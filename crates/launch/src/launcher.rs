//! The first two processes: out of the host's session, into cgroups and namespaces.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::UnshareFlags;

use crate::order::{Ids, Park, Reply, Task};
use crate::seed::{self, Guest};
use crate::{Control, Error, Result, Step, admin, device, ids};

/// Runs a launcher with its control socket as standard input and returns in the seed, once it has
/// built and begun. Every other process ends here.
pub fn main() -> Guest {
    // SAFETY: the host gave us our control socket as standard input and nothing else uses it.
    let control = Control::from(unsafe { OwnedFd::from_raw_fd(0) });
    match run(&control) {
        Ok(Some(guest)) => {
            // The seed has put something else at number 0; closing it is not ours any more.
            std::mem::forget(control);
            guest
        }
        Ok(None) => std::process::exit(0),
        Err(error) => fail(&control, &error),
    }
}

/// Tells the host what went wrong and ends this process.
pub(crate) fn fail(control: &Control, error: &Error) -> ! {
    let reply = Reply::Failed {
        step: error.step.clone(),
        message: error.source.to_string(),
        errno: error.source.raw_os_error(),
    };
    // The host may be gone, and then nobody is left to tell.
    let _ = control.send(&reply, &[]);
    std::process::exit(1)
}

fn run(control: &Control) -> Result<Option<Guest>> {
    let Some(received) = control.receive::<Task>().step(|| "read the task".to_owned())? else {
        return Ok(None);
    };
    match received.message {
        Task::Park(park) => launch(control, &park),
        Task::MakeDirectory { ids, path } => admin::make_directory(control, &ids, &path),
        Task::Remove { ids, path } => admin::remove(control, &ids, &path),
        Task::MakeLayer { ids, layer } => admin::make_layer(control, &ids, &layer),
        Task::Clone(tree) => admin::clone(control, &tree),
    }
}

fn launch(control: &Control, park: &Park) -> Result<Option<Guest>> {
    // Started from a descriptor, our name would be its number.
    let _ = rustix::thread::set_name(c"nacre-guest");
    // A Ctrl-C in the terminal of `nacre up` is not for the sandboxes.
    rustix::process::setsid().step(|| "setsid".to_owned())?;
    if let Some(adjust) = park.oom_score_adj {
        // Root without CAP_SYS_RESOURCE may not; the supervisor's children raise theirs instead.
        let _ = fs::write("/proc/self/oom_score_adj", adjust.to_string());
    }
    for cgroup in &park.cgroups {
        let procs = cgroup.join("cgroup.procs");
        fs::write(&procs, "0").step(|| format!("join {}", cgroup.display()))?;
    }
    // A new mount namespace takes the current directory along, so this is how the seed gets to a
    // place that its ids could not walk to.
    rustix::process::chdir(&park.sandboxes)
        .step(|| format!("enter {}", park.sandboxes.display()))?;
    let open = || {
        let rootfs = park.rootfs.as_deref().map(open_directory).transpose()?;
        let shared = park.shared.as_deref().map(open_directory);
        Ok(Opened { rootfs, shared, device: device::open() })
    };
    in_user_namespace(&park.ids, all_namespaces(), open, |opened| middle(control, opened))
}

fn all_namespaces() -> UnshareFlags {
    UnshareFlags::NEWUSER
        | UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP
}

/// What only who we were outside may open.
pub(crate) struct Opened {
    pub(crate) rootfs: Option<OwnedFd>,
    pub(crate) shared: Option<Result<OwnedFd>>,
    /// See [`device::open`].
    pub(crate) device: io::Result<OwnedFd>,
}

/// Forks; the child unshares `flags`, opens what it needs, has its ids mapped by us and runs `child`
/// as root in there.
/// The parent returns `None` when the child has ended.
pub(crate) fn in_user_namespace<T>(
    ids: &Ids,
    flags: UnshareFlags,
    open: impl FnOnce() -> Result<T>,
    child: impl FnOnce(T) -> Result<Option<Guest>>,
) -> Result<Option<Guest>> {
    let (mut unshared, tell_unshared) = io::pipe().step(|| "pipe".to_owned())?;
    let (wait_mapped, mut mapped) = io::pipe().step(|| "pipe".to_owned())?;
    match fork()? {
        Fork::Child => {
            drop((unshared, mapped));
            unshare(flags)?;
            // While we are still who we were outside.
            let opened = open()?;
            become_root(tell_unshared, wait_mapped)?;
            child(opened)
        }
        Fork::Parent(pid) => {
            drop((tell_unshared, wait_mapped));
            // End of file instead of the byte: the child failed and has said so itself.
            if unshared.read(&mut [0]).step(|| "wait for namespaces".to_owned())? == 1 {
                ids::map(pid.as_raw_nonzero().get(), ids)?;
                mapped.write_all(&[1]).step(|| "report the mapped ids".to_owned())?;
            }
            waitpid(Some(pid), WaitOptions::empty()).step(|| "wait for namespaces".to_owned())?;
            Ok(None)
        }
    }
}

fn unshare(flags: UnshareFlags) -> Result<()> {
    // SAFETY: this process has one thread and shares no descriptor table that others rely on.
    unsafe { rustix::thread::unshare_unsafe(flags) }.step(|| "unshare namespaces".to_owned())
}

fn open_directory(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).step(|| format!("open {}", path.display()))
}

fn become_root(mut tell: io::PipeWriter, mut wait: io::PipeReader) -> Result<()> {
    tell.write_all(&[1]).step(|| "report the namespaces".to_owned())?;
    if wait.read(&mut [0]).step(|| "wait for mapped ids".to_owned())? == 0 {
        // The launcher could not map our ids and has told the host why.
        std::process::exit(1);
    }
    let root = (rustix::process::Uid::ROOT, rustix::process::Gid::ROOT);
    // With a single id mapped, setgroups is denied and there are no groups to drop.
    let _ = rustix::thread::set_thread_groups(&[]);
    rustix::thread::set_thread_res_gid(root.1, root.1, root.1).step(|| "setgid".to_owned())?;
    rustix::thread::set_thread_res_uid(root.0, root.0, root.0).step(|| "setuid".to_owned())
}

/// Inside the namespaces but not yet in the new pid namespace: only a child is.
fn middle(control: &Control, opened: Opened) -> Result<Option<Guest>> {
    match fork()? {
        Fork::Parent(pid) => {
            let reply = Reply::Parked { pid: pid.as_raw_nonzero().get() };
            control.send(&reply, &[]).step(|| "report the parked seed".to_owned())?;
            Ok(None)
        }
        Fork::Child => seed::park(control, opened),
    }
}

enum Fork {
    Parent(rustix::process::Pid),
    Child,
}

fn fork() -> Result<Fork> {
    // SAFETY: every process of a launcher has exactly one thread, so the child may do anything.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        pid => rustix::process::Pid::from_raw(pid.max(0))
            .map(Fork::Parent)
            .ok_or_else(|| Error { step: "fork".to_owned(), source: io::Error::last_os_error() }),
    }
}
