//! A data directory with a driver on it, and what the kernel holds of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nacre_sandbox::conformance::client;
use nacre_sandbox::namespace::{NamespaceConfig, NamespaceDriver};
use nacre_sandbox::{Driver, SandboxId, SandboxSpec};
use nacre_wire::client::{Client, Finished};
use nacre_wire::exec::ExecRequest;

pub(crate) fn guest_path() -> PathBuf {
    PathBuf::from(
        std::env::var_os("NACRE_GUEST")
            .expect("NACRE_GUEST names the guest binary: run these tests with `cargo xtask test`"),
    )
}

pub(crate) fn driver_on(data: &Path) -> Arc<dyn Driver> {
    Arc::new(namespace_driver_on(data))
}

/// One with a blank ready, which the next sandbox is made from.
pub(crate) async fn stocked_driver_on(data: &Path) -> Arc<dyn Driver> {
    let driver = namespace_driver_on(data);
    driver.warm_up().await.expect("a blank");
    Arc::new(driver)
}

fn namespace_driver_on(data: &Path) -> NamespaceDriver {
    let guest = std::fs::read(guest_path()).expect("the guest binary");
    let config = NamespaceConfig {
        data_dir: data.to_owned(),
        guest: guest.into(),
        parked: 1,
        host_directories: Vec::new(),
        shared: Some(data.join("shared")),
    };
    NamespaceDriver::new(config).expect("a driver")
}

/// A running sandbox of its own, gone with its test. It was made from a blank, as most are; after
/// [`Sandbox::restart`] it is one that was built for its start.
pub(crate) struct Sandbox {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) id: SandboxId,
    pub(crate) data: tempfile::TempDir,
}

impl Sandbox {
    pub(crate) async fn start() -> Self {
        Self::with(SandboxSpec::default()).await
    }

    pub(crate) async fn with(spec: SandboxSpec) -> Self {
        let data = tempfile::tempdir().unwrap();
        let (driver, id) = (stocked_driver_on(data.path()).await, "box".parse().unwrap());
        driver.create(&id, &spec).await.unwrap();
        driver.start(&id).await.unwrap();
        Self { driver, id, data }
    }

    pub(crate) async fn restart(&self) {
        self.driver.stop(&self.id, Duration::ZERO).await.unwrap();
        self.driver.start(&self.id).await.unwrap();
    }

    pub(crate) fn client(&self) -> Client {
        client(&self.driver, &self.id)
    }

    /// Runs a script as `user` and returns how it went.
    pub(crate) async fn sh(&self, user: &str, script: &str) -> Finished {
        let request = ExecRequest {
            shell: Some(script.to_owned()),
            user: Some(user.to_owned()),
            timeout_ms: Some(30_000),
            ..ExecRequest::default()
        };
        self.client().run(request).await.unwrap()
    }

    /// Runs a script that must succeed and returns what it printed.
    pub(crate) async fn output(&self, user: &str, script: &str) -> String {
        let finished = self.sh(user, script).await;
        let errors = String::from_utf8_lossy(&finished.stderr).into_owned();
        assert_eq!(finished.exit.code, Some(0), "{script}: {errors}");
        String::from_utf8_lossy(&finished.stdout).trim().to_owned()
    }

    pub(crate) async fn destroy(self) {
        self.driver.destroy(&self.id).await.unwrap();
    }
}

impl Drop for Sandbox {
    /// A failed test leaves nothing running.
    fn drop(&mut self) {
        let run = self.data.path().join("sandboxes/box/run.json");
        let Ok(text) = std::fs::read_to_string(run) else { return };
        let pid = text
            .split("\"pid\":")
            .nth(1)
            .and_then(|rest| rest.split(',').next()?.parse::<i32>().ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
