//! Copies of sandboxes that run and write.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nacre_sandbox::conformance::client;
use nacre_sandbox::{Error, SandboxId, SandboxSpec};
use nacre_wire::client::Client;
use nacre_wire::control::{Limits, SandboxState};
use nacre_wire::exec::ExecRequest;
use nacre_wire::history::UndoRequest;

use crate::machine::{Sandbox, driver_on};

async fn sh(client: &Client, user: &str, script: &str) -> String {
    let request = ExecRequest {
        shell: Some(script.to_owned()),
        user: Some(user.to_owned()),
        timeout_ms: Some(60_000),
        ..ExecRequest::default()
    };
    let finished = client.run(request).await.unwrap();
    let errors = String::from_utf8_lossy(&finished.stderr).into_owned();
    assert_eq!(finished.exit.code, Some(0), "{script}: {errors}");
    String::from_utf8_lossy(&finished.stdout).trim().to_owned()
}

fn twin() -> SandboxId {
    "twin".parse().unwrap()
}

/// Forks the sandbox, starts the fork, and gives a client for it.
async fn fork(sandbox: &Sandbox) -> Client {
    sandbox.driver.fork(&sandbox.id, &twin(), Arc::default()).await.unwrap();
    sandbox.driver.start(&twin()).await.unwrap();
    client(&sandbox.driver, &twin())
}

#[tokio::test]
async fn a_fork_has_the_installed_system_and_the_workspace_with_owners_and_modes() {
    let sandbox = Sandbox::start().await;
    let make = "echo tool > /usr/bin/mine && chmod 755 /usr/bin/mine && rm /usr/bin/wc && \
                mkdir -p /etc/app && echo set > /etc/app/conf && chown 1000:1000 /etc/app/conf && \
                mkdir -p /home/nacre && echo mine > /home/nacre/.profile";
    sandbox.output("root", make).await;
    sandbox
        .output("nacre", "mkdir d && echo x > d/f && ln d/f g && ln -s g l && chmod 600 g")
        .await;
    let twin = fork(&sandbox).await;
    let look = "cat /usr/bin/mine /etc/app/conf; stat -c '%U %a' /etc/app/conf; \
                test -e /usr/bin/wc || echo removed; stat -c '%h %a %U' d/f; readlink l; cat l";
    let expected = "tool\nset\nnacre 644\nremoved\n2 600 nacre\ng\nx";
    assert_eq!(sh(&twin, "root", look).await, expected);
    sandbox.driver.destroy(&"twin".parse().unwrap()).await.unwrap();
    sandbox.destroy().await;
}

/// Every writer appends the same number to two files, first to one and then to the other. At any one
/// moment the second is never ahead, and the first by one at most.
#[tokio::test]
async fn a_fork_of_a_busy_sandbox_is_of_one_moment() {
    let sandbox = Sandbox::start().await;
    let write = "i=0; while :; do i=$((i+1)); echo $i >> first; echo $i >> second; done";
    let busy = ExecRequest { shell: Some(write.to_owned()), detach: true, ..Default::default() };
    sandbox.client().start_detached(&busy).await.unwrap();
    sandbox.output("nacre", "while [ ! -s second ]; do sleep 0.01; done").await;
    // So that copying takes a while.
    sandbox
        .output(
            "nacre",
            "for d in $(seq 40); do mkdir d$d; for f in $(seq 50); do echo $f > d$d/$f; done; done",
        )
        .await;
    for _ in 0..3 {
        let forked = sandbox.driver.fork(&sandbox.id, &twin(), Arc::default()).await.unwrap();
        assert!(forked.frozen.is_some() && forked.history, "{forked:?}");
        let read = |name: &str| {
            let path = sandbox.data.path().join("sandboxes/twin/data/workspace").join(name);
            std::fs::read_to_string(path).unwrap()
        };
        let (first, second) = (read("first"), read("second"));
        assert!(first.starts_with(&second), "the second is ahead");
        assert!(first.lines().count() - second.lines().count() <= 1, "more than one apart");
        assert_eq!(sandbox.driver.state(&sandbox.id).await.unwrap(), SandboxState::Running);
        sandbox.driver.destroy(&twin()).await.unwrap();
    }
    let before: u64 = sandbox.output("nacre", "wc -l < first").await.parse().unwrap();
    sandbox
        .output("nacre", &format!("while [ $(wc -l < first) -le {before} ]; do sleep 0.01; done"))
        .await;
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_fork_remembers_what_its_source_did_and_undoes_it_alone() {
    let sandbox = Sandbox::start().await;
    sandbox.output("nacre", "echo one > a").await;
    sandbox.output("nacre", "echo two > a").await;
    let source = sandbox.client();
    let before = source.history_status().await.unwrap();
    assert!(before.latest >= 2, "{before:?}");
    let twin = fork(&sandbox).await;
    let status = twin.history_status().await.unwrap();
    assert_eq!((status.latest, status.set_aside), (before.latest, None));
    twin.undo(&UndoRequest::default()).await.unwrap();
    assert_eq!(sh(&twin, "nacre", "cat a").await, "one");
    assert_eq!(sandbox.output("nacre", "cat a").await, "two");
    sandbox.driver.destroy(&"twin".parse().unwrap()).await.unwrap();
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_pause_that_comes_while_it_is_copied_lasts() {
    let sandbox = Sandbox::start().await;
    sandbox.driver.pause(&sandbox.id).await.unwrap();
    sandbox.driver.fork(&sandbox.id, &twin(), Arc::default()).await.unwrap();
    assert_eq!(sandbox.driver.state(&sandbox.id).await.unwrap(), SandboxState::Paused);
    sandbox.driver.resume(&sandbox.id).await.unwrap();
    assert_eq!(sandbox.output("nacre", "echo alive").await, "alive");
    sandbox.destroy().await;
}

/// On a filesystem of its own that is too small for two.
#[tokio::test]
async fn a_full_disk_fails_the_fork_and_leaves_nothing() {
    let disk = SmallDisk::new(48 << 20);
    let driver = driver_on(disk.path());
    let source: SandboxId = "box".parse().unwrap();
    driver
        .create(&source, &SandboxSpec { limits: Limits::default(), ..Default::default() })
        .await
        .unwrap();
    driver.start(&source).await.unwrap();
    sh(&client(&driver, &source), "nacre", "head -c 30000000 /dev/urandom > large").await;
    let failed = driver.fork(&source, &twin(), Arc::default()).await;
    let Err(Error::Io { source: error, .. }) = failed else { panic!("{failed:?}") };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
    assert!(error.to_string().contains("workspace/large"), "{error}");
    let left: Vec<_> = std::fs::read_dir(disk.path().join("sandboxes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("twin"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    sh(&client(&driver, &source), "nacre", "test -s large").await;
    driver.stop(&source, Duration::ZERO).await.unwrap();
    driver.destroy(&source).await.unwrap();
}

/// A tmpfs of some size. The tests that need one run as root.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let size = std::ffi::CString::new(format!("size={bytes}")).unwrap();
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("tmpfs", dir.path(), "tmpfs", flags, size.as_c_str()).unwrap();
        Self(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0.path(), rustix::mount::UnmountFlags::DETACH);
    }
}
