//! The gateway as `nacre up` runs it, with the upstream in the place of every supervisor.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use clap::ValueEnum;
use nacre_gateway::{Gateway, JsonLines, RawGatewayConfig, Spool};
use nacre_sandbox::{
    BoxStream, Capabilities, Driver, Error, Forked, Progress, SandboxId, SandboxSpec,
};
use nacre_wire::control::{SandboxState, Stats};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::{Proxy, Running, ourselves};

/// Until it is killed. The first line of output is a sign-in link.
pub(super) async fn serve(socket: &Path, data: &Path, guard: Guard) -> Result<()> {
    std::fs::create_dir_all(data)?;
    let (spool, _guard) = Spool::start(File::create(data.join("gateway.log"))?)?;
    tracing_subscriber::registry().with(EnvFilter::new("info")).with(JsonLines::new(spool)).init();
    let raw = RawGatewayConfig { listen: Some("127.0.0.1:0".to_owned()), ..Default::default() };
    let driver = OneUpstream::new(socket.to_owned());
    let gateway = Gateway::start(raw.resolve(data.to_owned())?, Arc::new(driver)).await?;
    println!("{}", gateway.sign_in_link().await?.url);
    if guard == Guard::Nobody {
        let_everyone_in(&gateway).await?;
    }
    std::future::pending().await
}

#[cfg(feature = "unguarded")]
async fn let_everyone_in(gateway: &nacre_gateway::RunningGateway) -> Result<()> {
    Ok(gateway.stop_checking_sessions().await?)
}

#[cfg(not(feature = "unguarded"))]
async fn let_everyone_in(_: &nacre_gateway::RunningGateway) -> Result<()> {
    anyhow::bail!("built without the feature `unguarded`; cargo xtask bench builds with it")
}

/// Whether the gateway looks at sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Guard {
    Session,
    Nobody,
}

pub(super) async fn start(socket: &Path, data: &Path, guard: Guard) -> Result<Running> {
    let words: &[&str] = match guard {
        Guard::Session => &["gateway", "--guard", "session"],
        Guard::Nobody => &["gateway", "--guard", "nobody"],
    };
    let mut child = ourselves("process", words, &[socket, data])?.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no output")?;
    let link = BufReader::new(output).lines().next_line().await?;
    let link = link.context("the gateway ended")?;
    let rest = link.strip_prefix("http://").context("the link is not http")?;
    let (address, path) = rest.split_once('/').context("the link has no path")?;
    let cookie = session(address, path).await?;
    Ok((child, Proxy { address: address.to_owned(), cookie: Some(cookie) }))
}

async fn session(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.and_then(|cookie| cookie.split(';').next());
    Ok(cookie.context("the link gave no session")?.to_owned())
}

/// Sandboxes without insides: whatever is dialled is the upstream.
pub(crate) struct OneUpstream {
    socket: PathBuf,
    states: Mutex<HashMap<SandboxId, SandboxState>>,
}

impl OneUpstream {
    pub(crate) fn new(socket: PathBuf) -> Self {
        Self { socket, states: Mutex::default() }
    }

    fn states(&self) -> MutexGuard<'_, HashMap<SandboxId, SandboxState>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, id: &SandboxId, state: SandboxState) -> nacre_sandbox::Result<()> {
        self.states().insert(id.clone(), state);
        Ok(())
    }
}

#[async_trait]
impl Driver for OneUpstream {
    fn name(&self) -> &'static str {
        "upstream"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    async fn probe(&self) -> nacre_sandbox::Result<()> {
        Ok(())
    }

    async fn create(&self, id: &SandboxId, _: &SandboxSpec) -> nacre_sandbox::Result<()> {
        self.set(id, SandboxState::Stopped)
    }

    async fn fork(
        &self,
        _: &SandboxId,
        to: &SandboxId,
        _: Arc<Progress>,
    ) -> nacre_sandbox::Result<Forked> {
        self.set(to, SandboxState::Stopped)?;
        Ok(Forked::default())
    }

    async fn start(&self, id: &SandboxId) -> nacre_sandbox::Result<()> {
        self.set(id, SandboxState::Running)
    }

    async fn pause(&self, id: &SandboxId) -> nacre_sandbox::Result<()> {
        self.set(id, SandboxState::Paused)
    }

    async fn resume(&self, id: &SandboxId) -> nacre_sandbox::Result<()> {
        self.set(id, SandboxState::Running)
    }

    async fn stop(&self, id: &SandboxId, _: Duration) -> nacre_sandbox::Result<()> {
        self.set(id, SandboxState::Stopped)
    }

    async fn destroy(&self, id: &SandboxId) -> nacre_sandbox::Result<()> {
        self.states().remove(id);
        Ok(())
    }

    async fn dial(&self, _: &SandboxId) -> nacre_sandbox::Result<BoxStream> {
        let stream = UnixStream::connect(&self.socket).await;
        let stream = stream.map_err(|source| Error::Io { context: "upstream".into(), source })?;
        Ok(Box::new(stream))
    }

    async fn accept(&self, _: &SandboxId) -> nacre_sandbox::Result<BoxStream> {
        std::future::pending().await
    }

    async fn state(&self, id: &SandboxId) -> nacre_sandbox::Result<SandboxState> {
        self.states().get(id).copied().ok_or_else(|| Error::NotFound(id.clone()))
    }

    async fn stats(&self, _: &SandboxId) -> nacre_sandbox::Result<Stats> {
        Ok(Stats::default())
    }

    async fn exited(&self, _: &SandboxId) {
        std::future::pending().await
    }

    async fn logs(&self, _: &SandboxId, _: u64) -> nacre_sandbox::Result<Vec<u8>> {
        Ok(Vec::new())
    }

    async fn reconcile(&self) -> nacre_sandbox::Result<Vec<(SandboxId, SandboxState)>> {
        Ok(Vec::new())
    }
}
