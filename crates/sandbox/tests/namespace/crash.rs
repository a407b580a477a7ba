//! Killing the host process, a launcher or a seed at any system call leaks nothing and loses nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nacre_sandbox::conformance::client;
use nacre_sandbox::{Driver, SandboxId, SandboxSpec};
use nacre_wire::client::WriteOptions;
use nacre_wire::control::SandboxState;

use crate::machine::{Sandbox, driver_on, guest_path};

/// Calls that change something, in whichever process makes them.
const CALLS: &[&str] = &[
    "mkdir",
    "rename",
    "renameat2",
    "unlink,unlinkat,rmdir",
    "bind",
    "sendmsg",
    "recvmsg",
    "execve",
    "clone,clone3,vfork",
    "unshare",
    "setresuid",
    "chown,fchownat,lchown",
    "mount",
    "move_mount",
    "pivot_root",
    "umount2",
    "symlink,symlinkat",
    "chdir",
    "write",
    "seccomp",
    "capset",
    "pidfd_open",
    "ftruncate,fchmod,chmod",
];

/// Those that making, claiming and beginning a blank are made of.
const BLANK_CALLS: &[&str] = &[
    "mkdir",
    "rename",
    "renameat2",
    "bind",
    "sendmsg",
    "recvmsg",
    "clone,clone3,vfork",
    "chown,fchownat,lchown",
    "mount",
    "pivot_root",
    "chdir",
    "write",
    "seccomp",
    "sethostname",
];

pub(crate) fn cycle_binary() -> PathBuf {
    // tests live in target/PROFILE/deps, examples in target/PROFILE/examples.
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().parent().unwrap().join("examples/cycle");
    assert!(path.exists(), "{} is built together with the tests", path.display());
    path
}

/// Runs a cycle in which the `nth` of these calls of every process is its last. Returns whether the
/// cycle came to its end all the same.
fn interrupted_cycle(data: &Path, options: &[&str], calls: &str, nth: usize) -> bool {
    let _ = std::fs::remove_file(data.join("pid"));
    let mut strace = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={calls}")])
        .args(["-e", &format!("inject={calls}:signal=SIGKILL:when={nth}")])
        .arg(cycle_binary())
        .args(options)
        .arg(data)
        .arg(guest_path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("strace is installed by `cargo xtask test`");
    // The sandbox lives on when the cycle is killed, and strace with it; so wait for the cycle.
    let begun = Instant::now();
    let mut cycle = None;
    loop {
        if strace.try_wait().unwrap().is_some() {
            break;
        }
        cycle =
            cycle.or_else(|| std::fs::read_to_string(data.join("pid")).ok()?.parse::<i32>().ok());
        let ended = cycle.is_some_and(|pid| !Path::new(&format!("/proc/{pid}/stat")).exists());
        assert!(begun.elapsed() < Duration::from_secs(60), "{calls} {nth}: a cycle hangs");
        if ended {
            let pid = rustix::process::Pid::from_child(&strace);
            // Asked to end, strace waits for processes to stop first, and one whose pid 1 was just
            // killed may never; the kernel lets go of them when strace is gone.
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    let output = strace.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().any(|line| line == "done")
}

/// What the kernel and the disk hold of a data directory.
fn census(data: &Path) -> Vec<String> {
    let name = std::fs::read_to_string(data.join("sandboxes/.instance")).unwrap();
    let mut held: Vec<String> = Vec::new();
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
        let ours = hierarchy.path().join(&name);
        if ours.exists() {
            held.push(ours.display().to_string());
        }
    }
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let cgroup = std::fs::read_to_string(process.path().join("cgroup")).unwrap_or_default();
        // One that has ended waits for whoever is pid 1 here to look at it.
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let ended = stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']));
        if cgroup.contains(&name) && !ended {
            held.push(process.path().display().to_string());
        }
    }
    for entry in std::fs::read_dir(data.join("sandboxes")).unwrap().flatten() {
        if ![".base", ".instance"]
            .map(std::ffi::OsStr::new)
            .contains(&entry.file_name().as_os_str())
        {
            held.push(entry.path().display().to_string());
        }
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    held.extend(
        mounts.lines().filter(|line| line.contains(data.to_str().unwrap())).map(str::to_owned),
    );
    held
}

/// After a crash: everything is found, the kept sandbox is whole, and the rest can be removed.
async fn recover(data: &Path, kept: &SandboxId, expected: SandboxState) {
    let driver = driver_on(data);
    let found = driver.reconcile().await.expect("reconcile");
    let state = found.iter().find(|(id, _)| id == kept).map(|(_, state)| *state);
    assert_eq!(state, Some(expected), "{found:?}");
    let leftovers: Vec<_> = std::fs::read_dir(data.join("sandboxes"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| [".new", ".gone", ".blank"].iter().any(|left| name.starts_with(left)))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
    for left in ["cycle", "twin"] {
        driver.destroy(&left.parse().unwrap()).await.expect("destroy what is left of the cycle");
    }
    assert_eq!(client(&driver, kept).read("pearl").await.expect("the kept file"), "of great price");
}

async fn keep_one(data: &Path) -> (Arc<dyn Driver>, SandboxId) {
    let (driver, kept) = (driver_on(data), "kept".parse().unwrap());
    driver.create(&kept, &SandboxSpec::default()).await.unwrap();
    driver.start(&kept).await.unwrap();
    client(&driver, &kept)
        .write("pearl", "of great price", &WriteOptions::default())
        .await
        .unwrap();
    (driver, kept)
}

/// Once the one that was kept is gone too.
async fn nothing_is_left(data: &Path, kept: &SandboxId) {
    let driver = driver_on(data);
    driver.reconcile().await.unwrap();
    driver.destroy(kept).await.unwrap();
    drop(driver);
    assert_eq!(census(data), Vec::<String>::new());
}

#[tokio::test]
async fn a_kill_at_any_call_leaks_nothing_and_loses_nothing() {
    let data = tempfile::tempdir().unwrap();
    let (driver, kept) = keep_one(data.path()).await;
    drop(driver);
    let mut interrupted = 0;
    for calls in CALLS {
        let mut nth = 1;
        while !interrupted_cycle(data.path(), &[], calls, nth) {
            recover(data.path(), &kept, SandboxState::Running).await;
            interrupted += 1;
            // Every call at the beginning, then a sample of the long runs of the same call.
            nth += if nth < 6 { 1 } else { nth };
            assert!(nth < 5000, "{calls} never stops being called");
        }
        recover(data.path(), &kept, SandboxState::Running).await;
    }
    assert!(interrupted > CALLS.len(), "only {interrupted} interruptions: is strace injecting?");
    nothing_is_left(data.path(), &kept).await;
}

/// What is made in the background does not end the cycle when it is killed, so a cycle that came to
/// its end does not mean that there was nothing left to kill.
#[tokio::test]
async fn a_kill_at_any_call_on_the_way_from_a_blank_leaks_nothing_and_loses_nothing() {
    let data = tempfile::tempdir().unwrap();
    let (driver, kept) = keep_one(data.path()).await;
    drop(driver);
    let mut interrupted = 0;
    for calls in BLANK_CALLS {
        for nth in [1, 2, 3, 5, 9] {
            interrupted += usize::from(!interrupted_cycle(data.path(), &["--blank"], calls, nth));
            recover(data.path(), &kept, SandboxState::Running).await;
        }
    }
    assert!(interrupted > BLANK_CALLS.len(), "only {interrupted} interruptions");
    nothing_is_left(data.path(), &kept).await;
}

/// Those that copying is made of.
const FORK_CALLS: &[&str] = &[
    "mkdirat",
    "copy_file_range,ioctl",
    "fchown",
    "utimensat",
    "renameat2",
    "write",
    "flistxattr",
];

/// A half-made copy is never a sandbox, and a source that was frozen is frozen no more.
#[tokio::test]
async fn a_kill_at_any_call_of_a_fork_leaves_no_half_of_it() {
    let data = tempfile::tempdir().unwrap();
    let (driver, kept) = keep_one(data.path()).await;
    drop(driver);
    let mut interrupted = 0;
    for calls in FORK_CALLS {
        for nth in [1, 2, 4, 9, 20, 45, 70, 100, 150] {
            interrupted += usize::from(!interrupted_cycle(data.path(), &["--fork"], calls, nth));
            let driver = driver_on(data.path());
            for (id, _) in driver.reconcile().await.expect("reconcile") {
                let place = data.path().join("sandboxes").join(id.as_str());
                assert!(place.join("sandbox.json").exists(), "{calls} {nth}: half of {id}");
                if id.as_str() == "twin" {
                    let file = std::fs::read_to_string(place.join("data/workspace/file"));
                    assert_eq!(file.unwrap(), "pearl", "{calls} {nth}");
                }
            }
            drop(driver);
            recover(data.path(), &kept, SandboxState::Running).await;
        }
    }
    assert!(interrupted > FORK_CALLS.len(), "only {interrupted} interruptions");
    nothing_is_left(data.path(), &kept).await;
}

#[tokio::test]
async fn a_killed_supervisor_is_noticed_and_starts_again() {
    let sandbox = Sandbox::start().await;
    sandbox.client().write("pearl", "kept", &WriteOptions::default()).await.unwrap();
    let watching = {
        let (driver, id) = (sandbox.driver.clone(), sandbox.id.clone());
        tokio::spawn(async move { driver.exited(&id).await })
    };
    let run = std::fs::read_to_string(sandbox.data.path().join("sandboxes/box/run.json")).unwrap();
    let pid: i32 =
        run.split("\"pid\":").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    watching.await.unwrap();
    assert_eq!(sandbox.driver.state(&sandbox.id).await.unwrap(), SandboxState::Failed);
    sandbox.driver.start(&sandbox.id).await.unwrap();
    assert_eq!(sandbox.client().read("pearl").await.unwrap(), "kept");
    sandbox.destroy().await;
}

#[tokio::test]
async fn killing_everything_but_the_supervisor_leaves_it_standing() {
    let sandbox = Sandbox::start().await;
    for _ in 0..20 {
        sandbox.sh("root", "sleep 100 & sleep 100 & kill -KILL -1").await;
        assert_eq!(sandbox.output("nacre", "echo alive").await, "alive");
    }
    assert_eq!(sandbox.client().stats().await.unwrap().processes, 1, "and everything is collected");
    sandbox.destroy().await;
}

#[tokio::test]
async fn nothing_is_left_of_a_life_that_went_well() {
    let data = tempfile::tempdir().unwrap();
    let (driver, kept) = keep_one(data.path()).await;
    driver.destroy(&kept).await.unwrap();
    drop(driver);
    assert_eq!(census(data.path()), Vec::<String>::new());
}
