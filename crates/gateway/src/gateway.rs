//! Starting and stopping: a sequence of stages, each leaving something that the next one needs.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nacre_agent::body::Body;
use nacre_agent::tools::Toolbox;
use nacre_sandbox::Driver;
use nacre_wire::ApiError;
use nacre_wire::control::{SandboxInfo, SetupCode, Shutdown, SignInLink};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Auth, AuthStartError};
use crate::brain::{self, Brain};
use crate::config::GatewayConfig;
use crate::desktop::{Desktop, SHARED_FOLDER};
use crate::egress::Egress;
use crate::host::Services;
use crate::knowledge::{self, Knowledge, Scope, Writer};
use crate::lock::{DataLock, LockError, SOCKET_FILE};
use crate::observe::Observer;
use crate::provider::Models;
use crate::relayed::{Relayed, Routers, Tickets};
use crate::routes::Role;
use crate::runs::Runs;
use crate::sandboxes::Sandboxes;
use crate::store::Store;
use crate::tls::{Certificate, TlsError};
use crate::web::lanes::Lanes;
use crate::web::serve::{Server, bind_tcp};
use crate::web::{App, Site};

/// How long responses under way may take when the gateway stops.
const LAST_RESPONSES: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("a gateway already runs for {}{}", data_dir.display(), with_pid(.pid))]
    AlreadyRunning { data_dir: PathBuf, pid: Option<u32> },
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("{0}")]
    Auth(#[from] AuthStartError),
    #[error("{0}")]
    Control(String),
    #[error("{0}")]
    Sandboxes(ApiError),
}

fn with_pid(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

impl StartError {
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::AlreadyRunning { .. } => {
                Some("nacre login gives a link to it, nacre down stops it".to_owned())
            }
            Self::Io { .. } => Some("nacre doctor checks the data directory".to_owned()),
            Self::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => Some(
                "another program has this port; choose one with --listen 127.0.0.1:PORT".to_owned(),
            ),
            Self::Listen { .. } | Self::Control(_) => None,
            Self::Tls(error) => Some(error.hint().to_owned()),
            Self::Auth(error) => error.hint().map(str::to_owned),
            Self::Sandboxes(error) => error.hint.clone(),
        }
    }
}

/// Namespace for [`Gateway::start`].
pub struct Gateway;

/// A gateway that answers. Dropping it without [`RunningGateway::stop`] is like killing it: the
/// sandboxes run on and the next gateway finds them.
pub struct RunningGateway {
    app: Arc<App>,
    connections: TaskTracker,
    lanes: Arc<Lanes>,
    stop: CancellationToken,
    shutdown: watch::Receiver<Option<Shutdown>>,
    socket: PathBuf,
    relayed: Relayed,
    _lock: DataLock,
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        self.relayed.clear();
    }
}

impl Gateway {
    /// Returns when the listeners answer and the live sandbox runs, or has failed to.
    pub async fn start(
        config: GatewayConfig,
        driver: Arc<dyn Driver>,
    ) -> Result<RunningGateway, StartError> {
        let started = Instant::now();
        let lock = take_lock(&config.data_dir)?;
        let certificate = config.tls.clone().map(Certificate::load).transpose()?.map(Arc::new);
        // Bound before anything is started, so that a port in use costs nothing.
        let tcp = bind_tcp(config.listen)
            .await
            .map_err(|source| StartError::Listen { address: config.listen, source })?;
        let address = tcp
            .local_addr()
            .map_err(|source| StartError::Listen { address: config.listen, source })?;
        let store = Store::open(&config.data_dir.join("control.db"))
            .map_err(|error| StartError::Control(error.to_string()))?;
        let auth = start_auth(&config, address, store.clone()).await?;
        let egress = Egress::start(config.egress.clone(), store.clone(), &config.data_dir)
            .await
            .map_err(|error| StartError::Control(error.to_string()))?;
        let (models, reload) = (config.models.clone(), config.reload_models.clone());
        let models = Models::start(&config.data_dir, models, reload, store.clone());
        let models = models.await.map_err(StartError::Control)?;
        let knowledge =
            Knowledge::start(&config.data_dir, config.knowledge.clone(), models.clone()).map_err(
                |source| StartError::Io { what: "cannot start threads".to_owned(), source },
            )?;
        let tickets = Tickets::new()
            .map_err(|source| StartError::Io { what: "random numbers".to_owned(), source })?;
        let relayed = Relayed::default();
        let services = Services {
            models: models.clone(),
            egress,
            relayed: relayed.clone(),
            tickets: tickets.clone(),
        };
        let sandboxes = Sandboxes::recover(&config, driver, store, services)
            .await
            .map_err(StartError::Sandboxes)?;
        let brain = start_brain(&config, &sandboxes, &models, &knowledge).await?;
        relayed.answer_with(routers(brain.clone(), knowledge.clone()), brain.clone());
        let runs = Runs::start(config.runs, &config.data_dir, sandboxes.clone(), models.clone());
        let runs = runs.await.map_err(|source| StartError::Io {
            what: config.data_dir.join("runs").display().to_string(),
            source,
        })?;
        let lanes = Lanes::start()
            .map_err(|source| StartError::Io { what: "cannot start threads".to_owned(), source })?;
        let socket = config.data_dir.join(SOCKET_FILE);
        let unix = bind_unix(&socket)?;
        let (sender, shutdown) = watch::channel(None);
        let stop = CancellationToken::new();
        let shared = config.data_dir.join(SHARED_FOLDER);
        let desktop = Desktop::new(config.desktop, shared, stop.clone());
        let auth = Arc::new(auth);
        knowledge.settle(sandboxes.clone(), auth.clone());
        let app = Arc::new(App {
            sandboxes,
            models,
            runs,
            knowledge,
            brain,
            desktop,
            tickets,
            auth,
            observer: Arc::new(Observer::new(config.observe)),
            data_dir: config.data_dir,
            address,
            front: config.front,
            started,
            shutdown: sender,
        });
        let gateway = RunningGateway {
            app,
            connections: TaskTracker::new(),
            lanes: Arc::new(lanes),
            stop,
            shutdown,
            socket,
            relayed,
            _lock: lock,
        };
        gateway.listen(tcp, unix, certificate, config.lean)?;
        gateway.settle_desktop();
        tracing::info!(%address, ms = started.elapsed().as_millis(), "ready");
        Ok(gateway)
    }
}

impl RunningGateway {
    fn listen(
        &self,
        tcp: TcpListener,
        unix: UnixListener,
        certificate: Option<Arc<Certificate>>,
        lean: bool,
    ) -> Result<(), TlsError> {
        let tls = certificate.clone().map(Certificate::acceptor).transpose()?;
        let server = Server {
            site: Site::new(self.app.clone()),
            connections: self.connections.clone(),
            stop: self.stop.clone(),
            lean,
        };
        if let Some(certificate) = certificate {
            let stop = self.stop.clone();
            self.connections.spawn(stop.run_until_cancelled_owned(certificate.keep_current()));
        }
        let (stop, auth) = (self.stop.clone(), self.app.auth.clone());
        self.connections.spawn(stop.run_until_cancelled_owned(auth.keep()));
        let (stop, knowledge) = (self.stop.clone(), self.app.knowledge.clone());
        self.connections.spawn(stop.run_until_cancelled_owned(knowledge.keep()));
        self.connections.spawn(server.clone().accept_tcp(tcp, tls, self.lanes.clone()));
        self.connections.spawn(server.accept_unix(unix));
        Ok(())
    }

    /// After everything else: nobody waits for it.
    fn settle_desktop(&self) {
        let (stop, desktop) = (self.stop.clone(), self.app.desktop.clone());
        let settled = desktop.settle(self.app.sandboxes.clone());
        self.connections.spawn(stop.run_until_cancelled_owned(settled));
    }

    /// The address that was asked for, with the port that was really taken.
    pub fn address(&self) -> SocketAddr {
        self.app.address
    }

    pub fn url(&self) -> String {
        self.app.url()
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn sandboxes(&self) -> Vec<SandboxInfo> {
        self.app.sandboxes.list()
    }

    /// A fresh one-time link; the one before it stops working.
    pub async fn sign_in_link(&self) -> Result<SignInLink, ApiError> {
        self.app.auth.link(&self.url()).await
    }

    /// A fresh code to claim this computer with; `None` when it has an owner, or cannot have one.
    pub fn setup_code(&self) -> Result<Option<SetupCode>, ApiError> {
        self.app.setup_code()
    }

    /// What requests cost without a look at their session. There is no way back.
    #[cfg(feature = "unguarded")]
    pub async fn stop_checking_sessions(&self) -> Result<(), ApiError> {
        self.app.auth.let_everyone_in().await
    }

    /// Whose computer it is, as a DID.
    pub fn owner(&self) -> Option<String> {
        self.app.auth.owner().map(|did| did.to_string())
    }

    /// Tools for memory, knowledge and publications, for one conversation that acts on the sandbox of
    /// a role.
    pub fn knowledge_tools(
        &self,
        role: Role,
        body: &Arc<dyn Body>,
        conversation: &str,
    ) -> Vec<Arc<dyn Toolbox>> {
        knowledge::toolboxes(&self.app.knowledge, role, body, conversation)
    }

    /// Returns when somebody asks for a shutdown over the unix socket.
    pub async fn asked_to_stop(&self) -> Shutdown {
        let mut shutdown = self.shutdown.clone();
        match shutdown.wait_for(Option::is_some).await {
            Ok(wanted) => wanted.unwrap_or_default(),
            Err(_) => Shutdown::default(),
        }
    }

    /// Stops answering, lets what has begun end, and stops the sandboxes when asked to.
    pub async fn stop(self, how: Shutdown) {
        self.stop.cancel();
        self.connections.close();
        self.app.auth.sweep().await;
        self.app.sandboxes.egress().stopping();
        self.app.runs.shut_down().await;
        self.app.sandboxes.shut_down(how.stop_sandboxes).await;
        self.app.sandboxes.egress().close().await;
        self.app.knowledge.close();
        // Terminals and followed logs never end by themselves.
        let _ = tokio::time::timeout(LAST_RESPONSES, self.connections.wait()).await;
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// Turns that a crash cut off are said to be before anybody can ask for them.
async fn start_brain(
    config: &GatewayConfig,
    sandboxes: &Sandboxes,
    models: &Arc<Models>,
    knowledge: &Arc<Knowledge>,
) -> Result<Brain, StartError> {
    let knowledge = knowledge.clone();
    let tools: brain::Extra = Arc::new(move |place| {
        knowledge::toolboxes(&knowledge, place.role, &place.body, &place.conversation)
    });
    let parts = brain::Parts {
        data_dir: config.data_dir.clone(),
        socket: config.data_dir.join(SOCKET_FILE),
        config: config.conversations.clone(),
        sandboxes: sandboxes.clone(),
        models: models.clone(),
        extra: vec![tools],
    };
    Brain::start(parts)
        .await
        .map_err(|source| StartError::Io { what: "conversations".to_owned(), source })
}

/// Paths of a sandbox that are answered here: conversations and memory, which are the same wherever they
/// are asked about, and what is written, which is that of the sandbox and what was published.
fn routers(brain: Brain, knowledge: Arc<Knowledge>) -> Routers {
    Arc::new(move |id| {
        let scope = Scope::Sandbox(id.to_string());
        let writer = Writer { knowledge: knowledge.clone(), scope };
        let memory = knowledge::memory::router(knowledge.clone(), knowledge::memory::PAGE);
        brain::http::router(brain.clone())
            .nest("/conductor", memory)
            .merge(knowledge::writer_router(writer))
    })
}

/// Before any sandbox is started: nobody may be let near a computer that nobody owns.
async fn start_auth(
    config: &GatewayConfig,
    address: SocketAddr,
    store: Store,
) -> Result<Auth, AuthStartError> {
    let url = config.front.url(address);
    let client = config.auth.client(&url, &config.data_dir)?;
    // A start that is refused leaves the owner as it was.
    let owned = config.auth.owner.is_some() || store.owner().await?.is_some();
    config.auth.check(address, &config.front, owned, client.as_ref())?;
    Auth::start(&config.auth, client, store).await
}

fn take_lock(data_dir: &Path) -> Result<DataLock, StartError> {
    DataLock::take(data_dir).map_err(|error| match error {
        LockError::Taken(pid) => StartError::AlreadyRunning { data_dir: data_dir.to_owned(), pid },
        LockError::Io(source) => StartError::Io {
            what: format!("{}", data_dir.join(crate::LOCK_FILE).display()),
            source,
        },
    })
}

/// Whoever holds the lock owns the path, so a socket that is there is a dead one.
fn bind_unix(path: &Path) -> Result<UnixListener, StartError> {
    let failed = |source| StartError::Io { what: path.display().to_string(), source };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}
