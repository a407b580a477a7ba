//! A driver whose sandboxes are values in this process, for tests that are not about isolation.
//!
//! [`FakeDriver`] plays by the same rules as the others (the conformance suite holds it to them)
//! and can be held, failed and crashed at will. What it shares between clones outlives a gateway,
//! as the kernel and the disk do. Behind its door stands whatever [`Serve`] the test brings.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use nacre_wire::control::{SandboxState, Stats};
use tokio::io::DuplexStream;
use tokio::sync::{Notify, mpsc, watch};

use crate::{
    BoxStream, Capabilities, Driver, Error, Forked, Progress, Report, Result, SandboxId,
    SandboxSpec,
};

type Pending = Pin<Box<dyn Future<Output = ()> + Send>>;
/// Serves one connection to a sandbox's door.
pub type Serve = Arc<dyn Fn(Guest, DuplexStream) -> Pending + Send + Sync>;
/// What a sandbox remembers while it is stopped.
pub type Disk = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// The inside of a fake sandbox.
#[derive(Clone)]
pub struct Guest {
    pub id: SandboxId,
    pub disk: Disk,
    up: mpsc::UnboundedSender<DuplexStream>,
}

impl Guest {
    /// A connection to the host.
    pub fn dial_host(&self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        // Without a host that accepts, the stream ends at once.
        let _ = self.up.send(theirs);
        ours
    }
}

const BUFFER: usize = 64 * 1024;

#[derive(Clone)]
pub struct FakeDriver(Arc<Inner>);

struct Inner {
    serve: Serve,
    sandboxes: Mutex<HashMap<SandboxId, Fake>>,
    counts: watch::Sender<Counts>,
    hold: watch::Sender<Option<&'static str>>,
    start_fails: watch::Sender<bool>,
    fork_fails: watch::Sender<bool>,
}

#[derive(Debug, Default, Clone)]
pub struct Counts {
    pub starts: u32,
    pub dials: u32,
    /// Points at which somebody has waited because of [`FakeDriver::hold_at`].
    pub held: Vec<&'static str>,
}

struct Fake {
    state: SandboxState,
    exit: Exit,
    disk: Disk,
    up: (
        mpsc::UnboundedSender<DuplexStream>,
        Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<DuplexStream>>>,
    ),
}

/// The end of one run of a sandbox.
#[derive(Clone, Default)]
struct Exit(Arc<(std::sync::atomic::AtomicBool, Notify)>);

impl Exit {
    fn happen(&self) {
        self.0.0.store(true, std::sync::atomic::Ordering::SeqCst);
        self.0.1.notify_waiters();
    }

    async fn wait(&self) {
        let notified = self.0.1.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if !self.0.0.load(std::sync::atomic::Ordering::SeqCst) {
            notified.await;
        }
    }
}

impl Fake {
    fn new(state: SandboxState) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let up = (sender, Arc::new(tokio::sync::Mutex::new(receiver)));
        Self { state, exit: Exit::default(), disk: Disk::default(), up }
    }
}

impl FakeDriver {
    pub fn new(serve: Serve) -> Self {
        Self(Arc::new(Inner {
            serve,
            sandboxes: Mutex::default(),
            counts: watch::channel(Counts::default()).0,
            hold: watch::channel(None).0,
            start_fails: watch::channel(false).0,
            fork_fails: watch::channel(false).0,
        }))
    }

    /// Whoever reaches this point (`create:before`, `stop:after`, ...) waits there.
    pub fn hold_at(&self, point: &'static str) {
        self.0.hold.send_replace(Some(point));
    }

    pub fn release(&self) {
        self.0.hold.send_replace(None);
    }

    /// Waits until the counts are as wanted.
    pub async fn until(&self, good: impl FnMut(&Counts) -> bool) {
        // The sender lives as long as this driver, so there is always another change to wait for.
        let _ = self.0.counts.subscribe().wait_for(good).await;
    }

    pub fn counts(&self) -> Counts {
        self.0.counts.borrow().clone()
    }

    pub fn let_starts_fail(&self, fail: bool) {
        self.0.start_fails.send_replace(fail);
    }

    /// As on a disk that is full.
    pub fn let_forks_fail(&self, fail: bool) {
        self.0.fork_fails.send_replace(fail);
    }

    /// What a sandbox keeps; nothing when there is none.
    pub fn disk(&self, id: &SandboxId) -> Disk {
        self.with(id, |fake| fake.disk.clone()).unwrap_or_default()
    }

    /// Puts a sandbox there as an earlier gateway would have left it.
    pub fn put(&self, id: &SandboxId, state: SandboxState) {
        self.lock().insert(id.clone(), Fake::new(state));
    }

    /// Ends a sandbox as a fault in its supervisor would.
    pub fn crash(&self, id: &SandboxId) {
        if let Some(fake) = self.lock().get_mut(id) {
            fake.state = SandboxState::Failed;
            fake.exit.happen();
        }
    }

    /// Id and state, sorted.
    pub fn sandboxes(&self) -> Vec<(SandboxId, SandboxState)> {
        let mut all: Vec<_> =
            self.lock().iter().map(|(id, fake)| (id.clone(), fake.state)).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    async fn point(&self, point: &'static str) {
        if *self.0.hold.borrow() == Some(point) {
            self.0.counts.send_modify(|counts| counts.held.push(point));
            let _ = self.0.hold.subscribe().wait_for(|held| *held != Some(point)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, Fake>> {
        self.0.sandboxes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn with<T>(&self, id: &SandboxId, change: impl FnOnce(&mut Fake) -> T) -> Result<T> {
        self.lock().get_mut(id).map(change).ok_or_else(|| Error::NotFound(id.clone()))
    }

    /// Moves a sandbox from one of the states `from` to another.
    fn change(
        &self,
        id: &SandboxId,
        from: &[SandboxState],
        to: SandboxState,
        action: &'static str,
    ) -> Result<()> {
        self.with(id, |fake| {
            let state = fake.state;
            if !from.contains(&state) {
                return Err(Error::State { id: id.clone(), state, action });
            }
            fake.state = to;
            Ok(())
        })?
    }
}

#[async_trait]
impl Driver for FakeDriver {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pause: true, persistent: true, ..Default::default() }
    }

    async fn probe(&self) -> Result<()> {
        Ok(())
    }

    async fn create(&self, id: &SandboxId, _spec: &SandboxSpec) -> Result<()> {
        self.point("create:before").await;
        if self.lock().contains_key(id) {
            return Err(Error::Exists(id.clone()));
        }
        self.put(id, SandboxState::Stopped);
        self.point("create:after").await;
        Ok(())
    }

    async fn fork(
        &self,
        from: &SandboxId,
        to: &SandboxId,
        progress: Arc<Progress>,
    ) -> Result<Forked> {
        self.point("fork:before").await;
        if *self.0.fork_fails.borrow() {
            let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(Error::Io { context: format!("copy sandbox \"{from}\""), source });
        }
        let files = self.with(from, |fake| {
            fake.disk.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
        })?;
        if self.lock().contains_key(to) {
            return Err(Error::Exists(to.clone()));
        }
        let report = Report {
            names: files.len() as u64,
            bytes: files.values().map(|file| file.len() as u64).sum(),
            ..Report::default()
        };
        progress.set(report.names, report.bytes);
        self.put(to, SandboxState::Stopped);
        self.with(to, |fake| fake.disk = Arc::new(Mutex::new(files)))?;
        self.point("fork:after").await;
        Ok(Forked { report, history: true, ..Forked::default() })
    }

    async fn start(&self, id: &SandboxId) -> Result<()> {
        self.point("start:before").await;
        if *self.0.start_fails.borrow() {
            return Err(Error::Start { id: id.clone(), why: "told to fail".to_owned() });
        }
        self.change(
            id,
            &[SandboxState::Stopped, SandboxState::Failed],
            SandboxState::Running,
            "start it",
        )?;
        self.with(id, |fake| fake.exit = Exit::default())?;
        self.0.counts.send_modify(|counts| counts.starts += 1);
        self.point("start:after").await;
        Ok(())
    }

    async fn pause(&self, id: &SandboxId) -> Result<()> {
        self.change(id, &[SandboxState::Running], SandboxState::Paused, "pause it")
    }

    async fn resume(&self, id: &SandboxId) -> Result<()> {
        self.change(id, &[SandboxState::Paused], SandboxState::Running, "resume it")
    }

    async fn stop(&self, id: &SandboxId, _grace: Duration) -> Result<()> {
        self.point("stop:before").await;
        self.with(id, |fake| {
            fake.state = SandboxState::Stopped;
            fake.exit.happen();
        })?;
        self.point("stop:after").await;
        Ok(())
    }

    async fn destroy(&self, id: &SandboxId) -> Result<()> {
        self.point("destroy:before").await;
        if let Some(fake) = self.lock().remove(id) {
            fake.exit.happen();
        }
        self.point("destroy:after").await;
        Ok(())
    }

    async fn dial(&self, id: &SandboxId) -> Result<BoxStream> {
        let (state, exit, guest) = self.with(id, |fake| {
            let guest = Guest { id: id.clone(), disk: fake.disk.clone(), up: fake.up.0.clone() };
            (fake.state, fake.exit.clone(), guest)
        })?;
        if state != SandboxState::Running {
            return Err(Error::State { id: id.clone(), state, action: "reach it" });
        }
        self.0.counts.send_modify(|counts| counts.dials += 1);
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        let served = (self.0.serve)(guest, theirs);
        tokio::spawn(async move {
            tokio::select! {
                () = served => {}
                () = exit.wait() => {}
            }
        });
        Ok(Box::new(ours))
    }

    async fn accept(&self, id: &SandboxId) -> Result<BoxStream> {
        let (state, exit, up) =
            self.with(id, |fake| (fake.state, fake.exit.clone(), fake.up.1.clone()))?;
        let ended = |state| Error::State { id: id.clone(), state, action: "listen for it" };
        if state == SandboxState::Stopped {
            return Err(ended(state));
        }
        tokio::select! {
            stream = async { up.lock().await.recv().await } => match stream {
                Some(stream) => Ok(Box::new(stream)),
                None => Err(ended(SandboxState::Stopped)),
            },
            () = exit.wait() => Err(ended(SandboxState::Stopped)),
        }
    }

    async fn state(&self, id: &SandboxId) -> Result<SandboxState> {
        self.with(id, |fake| fake.state)
    }

    async fn stats(&self, id: &SandboxId) -> Result<Stats> {
        self.with(id, |_| Stats { pids: Some(1), ..Default::default() })
    }

    async fn exited(&self, id: &SandboxId) {
        let exit =
            self.with(id, |fake| (fake.state != SandboxState::Stopped).then(|| fake.exit.clone()));
        if let Ok(Some(exit)) = exit {
            exit.wait().await;
        }
    }

    async fn logs(&self, id: &SandboxId, _max_bytes: u64) -> Result<Vec<u8>> {
        self.with(id, |_| b"hello from the supervisor\n".to_vec())
    }

    async fn reconcile(&self) -> Result<Vec<(SandboxId, SandboxState)>> {
        Ok(self.sandboxes())
    }
}
