//! The sandboxes under measurement: a driver with a data folder of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use nacre_sandbox::namespace::{NamespaceConfig, NamespaceDriver};
use nacre_sandbox::{Driver, SandboxId, SandboxSpec};
use nacre_wire::client::{BoxStream, Client, Dial};
use nacre_wire::exec::ExecRequest;

pub(crate) struct Computer {
    driver: Arc<NamespaceDriver>,
    data: PathBuf,
    next: AtomicU32,
}

/// A sandbox that runs. It is removed by [`Sandbox::destroy`], which benchmarks call themselves
/// because its time belongs to nobody's measurement.
pub(crate) struct Sandbox {
    pub(crate) id: SandboxId,
    pub(crate) client: Client,
    driver: Arc<dyn Driver>,
}

struct DriverDial {
    driver: Arc<dyn Driver>,
    id: SandboxId,
}

#[async_trait]
impl Dial for DriverDial {
    async fn dial(&self) -> io::Result<BoxStream> {
        self.driver.dial(&self.id).await.map_err(io::Error::other)
    }
}

impl Computer {
    /// `parked` is how many seeds the driver keeps ready, and blanks at least.
    pub(crate) async fn new(data: &Path, guest: &Path, parked: usize) -> Result<Self> {
        std::fs::create_dir_all(data)?;
        let guest =
            std::fs::read(guest).with_context(|| format!("cannot read {}", guest.display()))?;
        let config = NamespaceConfig {
            data_dir: data.to_owned(),
            guest: guest.into(),
            parked,
            host_directories: Vec::new(),
            shared: Some(data.join("shared")),
        };
        let driver = NamespaceDriver::new(config)?;
        driver.warm_up().await?;
        Ok(Self { driver: Arc::new(driver), data: data.to_owned(), next: AtomicU32::new(0) })
    }

    /// What makes the sandboxes, for what only it can be asked.
    pub(crate) fn driver(&self) -> &NamespaceDriver {
        &self.driver
    }

    /// Waits until the driver has everything ready that it wants to.
    pub(crate) async fn stocked(&self) -> Result<()> {
        Ok(self.driver.warm_up().await?)
    }

    /// Where the sandboxes are; a peer that writes files does it here too.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// What the names of this driver's cgroups begin with.
    pub(crate) fn cgroup_name(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.data.join("sandboxes/.instance"))?)
    }

    /// Create and start, nothing else.
    pub(crate) async fn sandbox(&self) -> Result<Sandbox> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id: SandboxId = format!("bench-{}-{number}", std::process::id()).parse()?;
        self.driver.create(&id, &SandboxSpec::default()).await?;
        self.driver.start(&id).await?;
        let driver: Arc<dyn Driver> = self.driver.clone();
        let dial = DriverDial { driver: driver.clone(), id: id.clone() };
        Ok(Sandbox { id, client: Client::new(Arc::new(dial), ""), driver })
    }
}

impl Sandbox {
    /// Runs it to its end and returns what it wrote.
    pub(crate) async fn run(&self, argv: &[&str]) -> Result<String> {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let done = self.client.run(ExecRequest { argv, ..ExecRequest::default() }).await?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.exit.code == Some(0), "it ended with {:?}: {}", done.exit, said.trim());
        Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
    }

    /// The inode of its pid namespace, by which the host finds its processes.
    pub(crate) async fn pid_namespace(&self) -> Result<String> {
        self.run(&["readlink", "/proc/self/ns/pid"]).await
    }

    pub(crate) async fn destroy(self) -> Result<()> {
        self.driver.destroy(&self.id).await.with_context(|| format!("cannot destroy {}", self.id))
    }
}
