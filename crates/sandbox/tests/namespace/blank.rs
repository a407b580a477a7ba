//! Sandboxes that are made from a blank.

use std::path::Path;

use nacre_sandbox::conformance::client;
use nacre_sandbox::{Driver, SandboxId, SandboxSpec};
use nacre_wire::client::WriteOptions;
use nacre_wire::control::{Limits, SandboxState};

use crate::machine::{Sandbox, driver_on, stocked_driver_on};

fn blanks(data: &Path) -> usize {
    let names = std::fs::read_dir(data.join("sandboxes")).unwrap().flatten();
    names.filter(|entry| entry.file_name().to_string_lossy().starts_with(".blank-")).count()
}

/// The process that waits behind a sandbox that was made from a blank.
fn waiting_seed(data: &Path, id: &SandboxId) -> rustix::process::Pid {
    let place = data.join("sandboxes").join(id.as_str()).join("run.json.new");
    let run = std::fs::read_to_string(place).expect("it was made from a blank");
    let pid = run.split("\"pid\":").nth(1).unwrap().split(',').next().unwrap();
    rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap()
}

async fn works(driver: &std::sync::Arc<dyn Driver>, id: &SandboxId) {
    client(driver, id).write("pearl", "kept", &WriteOptions::default()).await.unwrap();
    assert_eq!(client(driver, id).read("pearl").await.unwrap(), "kept");
}

#[tokio::test]
async fn it_gets_its_own_name_and_limits() {
    let limits = Limits { memory_bytes: Some(64 << 20), pids: Some(50), ..Limits::default() };
    let sandbox = Sandbox::with(SandboxSpec { limits, ..SandboxSpec::default() }).await;
    let facts = "hostname; stat -fc '%b %S' /tmp /dev/shm | awk '{print $1 * $2}'; \
                 findmnt -no OPTIONS /tmp | tr , '\n' | grep -c 'nosuid\\|nodev'; stat -c %a /tmp";
    let half = (32 << 20).to_string();
    let expected = ["box", &half, &half, "2", "1777"].join("\n");
    assert_eq!(sandbox.output("nacre", facts).await, expected);
    let stats = sandbox.driver.stats(&sandbox.id).await.unwrap();
    assert_eq!(stats.memory_limit_bytes, Some(64 << 20));
    sandbox.restart().await;
    assert_eq!(sandbox.output("nacre", facts).await, expected, "and again when built for a start");
    sandbox.destroy().await;
}

#[tokio::test]
async fn what_it_kept_is_there_when_it_is_built_anew() {
    let sandbox = Sandbox::start().await;
    sandbox.output("root", "echo pearl > /usr/local/bin/kept; echo pearl > /workspace/kept").await;
    sandbox.restart().await;
    let kept = sandbox.output("root", "cat /usr/local/bin/kept /workspace/kept").await;
    assert_eq!(kept, "pearl\npearl");
    sandbox.destroy().await;
}

#[tokio::test]
async fn a_blank_that_died_is_not_missed() {
    let data = tempfile::tempdir().unwrap();
    let (driver, id) = (stocked_driver_on(data.path()).await, "box".parse().unwrap());
    driver.create(&id, &SandboxSpec::default()).await.unwrap();
    let seed = waiting_seed(data.path(), &id);
    rustix::process::kill_process(seed, rustix::process::Signal::KILL).unwrap();
    driver.start(&id).await.unwrap();
    works(&driver, &id).await;
    driver.destroy(&id).await.unwrap();
}

#[tokio::test]
async fn another_host_process_starts_it_all_the_same() {
    let data = tempfile::tempdir().unwrap();
    let id = "box".parse().unwrap();
    let driver = stocked_driver_on(data.path()).await;
    driver.create(&id, &SandboxSpec::default()).await.unwrap();
    waiting_seed(data.path(), &id);
    drop(driver);
    let driver = driver_on(data.path());
    assert_eq!(driver.reconcile().await.unwrap(), [(id.clone(), SandboxState::Stopped)]);
    driver.start(&id).await.unwrap();
    works(&driver, &id).await;
    driver.destroy(&id).await.unwrap();
}

#[tokio::test]
async fn one_that_is_never_started_can_be_destroyed() {
    let data = tempfile::tempdir().unwrap();
    let (driver, id) = (stocked_driver_on(data.path()).await, "box".parse().unwrap());
    driver.create(&id, &SandboxSpec::default()).await.unwrap();
    let seed = waiting_seed(data.path(), &id);
    driver.destroy(&id).await.unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", seed.as_raw_nonzero()));
    assert!(stat.is_err() || stat.unwrap().contains(") Z "), "its seed is gone");
    assert!(!data.path().join("sandboxes/box").exists());
}

#[tokio::test]
async fn reconciling_leaves_those_of_this_process_alone() {
    let data = tempfile::tempdir().unwrap();
    let (driver, id) = (stocked_driver_on(data.path()).await, "box".parse().unwrap());
    driver.reconcile().await.unwrap();
    assert_eq!(blanks(data.path()), 1);
    driver.create(&id, &SandboxSpec::default()).await.unwrap();
    assert_eq!(driver.reconcile().await.unwrap(), [(id.clone(), SandboxState::Stopped)]);
    let seed = waiting_seed(data.path(), &id);
    driver.start(&id).await.unwrap();
    let run = std::fs::read_to_string(data.path().join("sandboxes/box/run.json")).unwrap();
    assert!(run.contains(&format!("\"pid\":{},", seed.as_raw_nonzero())), "the same seed: {run}");
    works(&driver, &id).await;
    driver.destroy(&id).await.unwrap();
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let (driver, id) = (stocked_driver_on(data.path()).await, "box".parse().unwrap());
    driver.create(&id, &SandboxSpec::default()).await.unwrap();
    let again = driver.create(&id, &SandboxSpec::default()).await;
    assert!(matches!(again, Err(nacre_sandbox::Error::Exists(_))), "{again:?}");
    driver.destroy(&id).await.unwrap();
}
