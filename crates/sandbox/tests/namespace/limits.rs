//! Limits hold, and running into one leaves the sandbox usable.

use std::process::Command;
use std::time::Duration;

use nacre_sandbox::SandboxSpec;
use nacre_wire::ErrorKind;
use nacre_wire::client::WriteOptions;
use nacre_wire::control::Limits;
use nacre_wire::exec::ExecRequest;

use crate::machine::{Sandbox, driver_on, stocked_driver_on};

fn limited(limits: Limits) -> SandboxSpec {
    SandboxSpec { limits, ..SandboxSpec::default() }
}

#[tokio::test]
async fn a_fork_bomb_stops_at_the_process_limit() {
    let sandbox = Sandbox::with(limited(Limits { pids: Some(40), ..Limits::default() })).await;
    let bomb = "for i in $(seq 100); do sleep 1000 & done; wait";
    let errors = String::from_utf8_lossy(&sandbox.sh("nacre", bomb).await.stderr).into_owned();
    assert!(errors.contains("fork"), "{errors}");
    // At the limit the supervisor cannot start anything, says so, and still ends what is there.
    let list = ExecRequest { shell: Some("(true); (true)".to_owned()), ..ExecRequest::default() };
    let refused = sandbox.client().run(list).await;
    assert!(!matches!(&refused, Ok(finished) if finished.exit.code == Some(0)), "{refused:?}");
    sandbox.driver.stop(&sandbox.id, Duration::from_secs(5)).await.unwrap();
    sandbox.driver.start(&sandbox.id).await.unwrap();
    assert_eq!(sandbox.output("nacre", "(echo fine)").await, "fine");
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_memory_hog_is_ended_and_nothing_else() {
    let sandbox =
        Sandbox::with(limited(Limits { memory_bytes: Some(128 << 20), ..Limits::default() })).await;
    let finished =
        sandbox.sh("nacre", "exec perl -e '$x = \"x\" x (400 << 20); print length $x'").await;
    assert_eq!(finished.exit.signal.as_deref(), Some("KILL"), "{finished:?}");
    assert_eq!(sandbox.output("nacre", "echo fine").await, "fine");
    let stats = sandbox.driver.stats(&sandbox.id).await.unwrap();
    assert!(stats.oom_kills.unwrap() >= 1, "{stats:?}");
    assert_eq!(stats.memory_limit_bytes, Some(128 << 20));
    sandbox.destroy().await;
}

#[tokio::test]
async fn files_in_memory_count_as_memory() {
    let sandbox =
        Sandbox::with(limited(Limits { memory_bytes: Some(64 << 20), ..Limits::default() })).await;
    let finished = sandbox.sh("nacre", "head -c 200M /dev/zero > /tmp/big").await;
    assert_ne!(finished.exit.code, Some(0));
    assert_eq!(sandbox.output("nacre", "rm -f /tmp/big; echo fine").await, "fine");
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_busy_loop_gets_its_share_of_the_cpu() {
    let sandbox =
        Sandbox::with(limited(Limits { cpu_millis: Some(200), ..Limits::default() })).await;
    let before = sandbox.driver.stats(&sandbox.id).await.unwrap().cpu_usage_us.unwrap();
    sandbox.sh("nacre", "timeout 2 sh -c 'while :; do :; done'").await;
    let used = sandbox.driver.stats(&sandbox.id).await.unwrap().cpu_usage_us.unwrap() - before;
    // A fifth of two seconds, with room for the period it may start in.
    assert!((100_000..900_000).contains(&used), "{used} us");
    sandbox.destroy().await;
}

/// A filesystem of a few megabytes, or one that counts projects, gone with the test.
struct Disk(tempfile::TempDir);

impl Disk {
    fn tmpfs(options: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        run("mount", &["-t", "tmpfs", "-o", options, "none", directory.path().to_str().unwrap()]);
        Self(directory)
    }

    /// `None` on a kernel without quotas.
    fn with_project_quotas(image: &std::path::Path) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let (image, at) = (image.to_str().unwrap(), directory.path().to_str().unwrap());
        run("truncate", &["-s", "256M", image]);
        run("mkfs.ext4", &["-q", "-O", "quota,project", "-E", "quotatype=prjquota", image]);
        let mounted =
            Command::new("mount").args(["-o", "loop,prjquota", image, at]).status().unwrap();
        mounted.success().then(|| Self(directory))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["--lazy", self.0.path().to_str().unwrap()]);
    }
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

#[tokio::test]
async fn a_full_disk_is_a_clear_error_and_nothing_is_lost() {
    let disk = Disk::tmpfs("size=24m,mode=700");
    let driver = driver_on(disk.0.path());
    let id = "box".parse().unwrap();
    driver.create(&id, &SandboxSpec::default()).await.unwrap();
    driver.start(&id).await.unwrap();
    let client = nacre_sandbox::conformance::client(&driver, &id);
    client.write("kept", "pearl", &WriteOptions::default()).await.unwrap();
    let full = client.write("kept", vec![1_u8; 40 << 20], &WriteOptions::default()).await;
    assert_eq!(full.unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(client.read("kept").await.unwrap(), "pearl");
    let fill = nacre_wire::exec::ExecRequest {
        shell: Some("head -c 100M /dev/zero > filler; true".to_owned()),
        ..Default::default()
    };
    client.run(fill).await.unwrap();
    // Full to the brim, it still stops, starts, and lets its owner make room.
    driver.stop(&id, std::time::Duration::from_secs(5)).await.unwrap();
    let another = driver.create(&"another".parse().unwrap(), &SandboxSpec::default()).await;
    assert!(another.is_err() || driver.destroy(&"another".parse().unwrap()).await.is_ok());
    let started = driver.start(&id).await;
    if let Err(error) = &started {
        assert!(error.to_string().contains("No space left"), "{error}");
        std::fs::remove_file(disk.0.path().join("sandboxes/box/data/workspace/filler")).unwrap();
        driver.start(&id).await.unwrap();
    }
    let remove =
        nacre_wire::files::Remove { path: "filler".into(), recursive: false, if_match: None };
    let removed = client.remove(&remove).await;
    assert_eq!(removed.is_ok(), started.is_ok(), "{removed:?} after {started:?}");
    client.write("kept", "still here", &WriteOptions::default()).await.unwrap();
    driver.destroy(&id).await.unwrap();
}

#[tokio::test]
async fn a_disk_limit_holds_for_one_sandbox_only() {
    let image = tempfile::NamedTempFile::new().unwrap();
    let Some(disk) = Disk::with_project_quotas(image.path()) else {
        // Then the driver has to say that it cannot, and with which remedy.
        let data = tempfile::tempdir().unwrap();
        let capabilities = driver_on(data.path()).capabilities();
        let reduction =
            capabilities.reduced.iter().find(|reduction| reduction.what == "disk").unwrap();
        assert!(!capabilities.disk_limit && reduction.remedy.is_some(), "{capabilities:?}");
        return;
    };
    // One of the two is made from the blank.
    let driver = stocked_driver_on(disk.0.path()).await;
    assert!(driver.capabilities().disk_limit);
    let (small, large) = ("small".parse().unwrap(), "large".parse().unwrap());
    let spec = limited(Limits { disk_bytes: Some(16 << 20), ..Limits::default() });
    driver.create(&small, &spec).await.unwrap();
    driver.create(&large, &SandboxSpec::default()).await.unwrap();
    for id in [&small, &large] {
        driver.start(id).await.unwrap();
    }
    let write = async |id| {
        let client = nacre_sandbox::conformance::client(&driver, id);
        client.write("big", vec![1_u8; 40 << 20], &WriteOptions::default()).await
    };
    assert_eq!(write(&small).await.unwrap_err().kind(), ErrorKind::NoSpace);
    write(&large).await.unwrap();
    assert!(driver.stats(&large).await.unwrap().disk_bytes.unwrap() >= 40 << 20);
    for id in [&small, &large] {
        driver.destroy(id).await.unwrap();
    }
}
