//! The sandboxes there are, and the roles that point to them.
//!
//! [`Sandboxes`] is the table; each entry is a [`Sandbox`]: a handle to the task that owns its
//! lifecycle ([`actor`]) and to its supervisor's HTTP server ([`door`]).

mod actor;
mod checks;
pub(crate) mod dev;
pub(crate) mod door;
pub(crate) mod errors;
mod health;
mod judging;
pub(crate) mod label;
pub(crate) mod looking;
mod make;
mod name;
mod plain;
pub(crate) mod policy;
mod recover;
pub(crate) mod roles;
mod startup;
pub(crate) mod swap;
pub(crate) mod watching;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use nacre_sandbox::{BoxStream, Driver, SandboxId, SandboxSpec};
use nacre_wire::client::{Client, Dial};
use nacre_wire::control::{SandboxInfo, SandboxState};
use nacre_wire::roles::SwapCheck;
use nacre_wire::{ApiError, ErrorKind, WirePath};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use actor::{Request, View};
use door::Door;
use label::Label;
use policy::{Op, Phase, RestartPolicy};
use roles::Healths;
use watching::RolesConfig;

use crate::config::GatewayConfig;
use crate::egress::Egress;
use crate::host::Services;
use crate::routes::Role;
use crate::store::{Row, Store};

/// How long operations that have begun may take to end when the gateway stops.
const FINISH: Duration = Duration::from_secs(20);

/// One sandbox. It may be destroyed while somebody holds this.
pub(crate) struct Sandbox {
    pub(crate) id: SandboxId,
    pub(crate) name: String,
    pub(crate) door: Door,
    label: Label,
    /// Cancelled when the role that this handle was for has moved on.
    moved: CancellationToken,
    driver: String,
    spec: SandboxSpec,
    created_at: u64,
    /// The one-shot run that it was made for.
    run: Option<Arc<str>>,
    requests: mpsc::Sender<Request>,
    view: watch::Receiver<View>,
}

/// Cheap to clone; all clones share the table.
#[derive(Clone)]
pub(crate) struct Sandboxes(Arc<Inner>);

struct Inner {
    driver: Arc<dyn Driver>,
    store: Store,
    restart: RestartPolicy,
    stop_grace: Duration,
    table: Mutex<Table>,
    tasks: TaskTracker,
    stop: CancellationToken,
    roles: RolesConfig,
    services: Services,
    healths: Healths,
    changing_roles: Arc<tokio::sync::Mutex<()>>,
    looking: looking::Places,
    extras: Mutex<Extras>,
}

/// What is only shown.
#[derive(Default)]
struct Extras {
    copying: Option<dev::Copying>,
    checks: Vec<SwapCheck>,
}

impl Inner {
    fn extras(&self) -> MutexGuard<'_, Extras> {
        self.extras.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Table {
    sandboxes: BTreeMap<SandboxId, Arc<Sandbox>>,
    roles: HashMap<Role, SandboxId>,
}

impl Sandbox {
    /// Asks the sandbox's task and waits for it. Once sent, the operation runs to its end.
    pub(crate) async fn ask(&self, op: Op) -> Result<(), ApiError> {
        let gone =
            || ApiError::new(ErrorKind::NotFound, format!("sandbox \"{}\" is gone", self.name));
        let (reply, answer) = oneshot::channel();
        self.requests.send(Request { op, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?.map(|_| ())
    }

    /// Fails with what to tell the user when its supervisor cannot answer now.
    pub(crate) fn require_running(&self) -> Result<(), ApiError> {
        let view = self.view.borrow();
        let (is, hint) = match view.phase {
            Phase::Running => return Ok(()),
            Phase::Stopped => ("stopped".to_owned(), format!("nacre sandbox start {}", self.name)),
            Phase::Paused => ("paused".to_owned(), format!("nacre sandbox resume {}", self.name)),
            Phase::Restarting => (
                format!("restarting: {}", view.failure.as_deref().unwrap_or("it ended")),
                "try again in a moment".to_owned(),
            ),
            Phase::Failed => (
                format!("failed: {}", view.failure.as_deref().unwrap_or("it ended")),
                format!("nacre sandbox start {}", self.name),
            ),
        };
        Err(ApiError::new(ErrorKind::Unavailable, format!("sandbox \"{}\" is {is}", self.name))
            .hint(hint))
    }

    /// Waits until its supervisor can answer, for as long as that takes.
    pub(crate) async fn until_running(&self) -> Result<(), ApiError> {
        let mut view = self.view.clone();
        let seen = view.wait_for(|view| view.destroyed || view.phase == Phase::Running).await;
        match seen {
            Ok(view) if !view.destroyed => Ok(()),
            Ok(_) | Err(_) => Err(ApiError::new(
                ErrorKind::NotFound,
                format!("sandbox \"{}\" is gone", self.name),
            )),
        }
    }

    /// Whether its supervisor passes this path up to us.
    pub(crate) async fn relays(&self, path: &str) -> bool {
        let known = self.view.borrow().relays.clone();
        let relays = match known {
            Some(relays) => relays,
            // It runs, and has not been heard of yet.
            None => self.door.version().await.map(|version| version.relays).unwrap_or_default(),
        };
        let below = |prefix: &String| path.strip_prefix(prefix.as_str());
        relays.iter().filter_map(below).any(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// For calls of the gateway's own to its supervisor.
    pub(crate) fn client(&self) -> Client {
        Client::new(Arc::new(self.door.clone()), "")
    }

    fn is_destroyed(&self) -> bool {
        self.view.borrow().destroyed
    }

    fn info(&self, role: Option<Role>) -> SandboxInfo {
        let view = self.view.borrow().clone();
        SandboxInfo {
            id: self.id.to_string(),
            name: self.name.clone(),
            role: role.map(|role| role.as_str().to_owned()),
            driver: self.driver.clone(),
            state: match view.phase {
                Phase::Stopped => SandboxState::Stopped,
                Phase::Running => SandboxState::Running,
                Phase::Paused => SandboxState::Paused,
                Phase::Restarting | Phase::Failed => SandboxState::Failed,
            },
            created_at: self.created_at,
            limits: self.spec.limits,
            rootfs: self.spec.rootfs.as_ref().map(WirePath::from),
            failure: view.failure,
            supervisor: view.supervisor,
            run: self.run.as_deref().map(str::to_owned),
        }
    }
}

impl Sandboxes {
    fn new(
        driver: Arc<dyn Driver>,
        store: Store,
        config: &GatewayConfig,
        services: Services,
    ) -> Self {
        Self(Arc::new(Inner {
            driver,
            store,
            restart: config.restart,
            stop_grace: config.stop_grace,
            table: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            roles: config.roles,
            services,
            healths: Healths::default(),
            changing_roles: Arc::default(),
            looking: looking::Places::default(),
            extras: Mutex::default(),
        }))
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.0.driver
    }

    pub(crate) fn egress(&self) -> &Egress {
        &self.0.services.egress
    }

    /// It is one like any other from now on.
    pub(crate) async fn keep_after_run(&self, sandbox: &Sandbox) -> Result<(), ApiError> {
        self.0.store.keep_after_run(&sandbox.id).await.map_err(errors::from_store)
    }

    /// Those that are still to get the desktop.
    pub(crate) async fn unseeded(&self) -> Result<Vec<SandboxId>, ApiError> {
        self.0.store.unseeded().await.map_err(errors::from_store)
    }

    pub(crate) async fn note_seeded(&self, id: &SandboxId) -> Result<(), ApiError> {
        self.0.store.set_seeded(id).await.map_err(errors::from_store)
    }

    /// By name first, then by id.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Sandbox>, ApiError> {
        let table = self.table();
        let named = |sandbox: &&Arc<Sandbox>| sandbox.name == name && !sandbox.is_destroyed();
        let by_id =
            |sandbox: &&Arc<Sandbox>| sandbox.id.as_str() == name && !sandbox.is_destroyed();
        let mut all = table.sandboxes.values();
        all.clone().find(named).or_else(|| all.find(by_id)).cloned().ok_or_else(|| {
            ApiError::new(ErrorKind::NotFound, format!("no sandbox \"{}\"", name.escape_debug()))
                .hint("nacre sandbox list shows them all")
        })
    }

    pub(crate) fn by_role(&self, role: Role) -> Option<Arc<Sandbox>> {
        let table = self.table();
        let id = table.roles.get(&role)?;
        table.sandboxes.get(id).filter(|sandbox| !sandbox.is_destroyed()).cloned()
    }

    /// Oldest first.
    pub(crate) fn list(&self) -> Vec<SandboxInfo> {
        let table = self.table();
        let mut infos: Vec<_> = table
            .sandboxes
            .values()
            .filter(|sandbox| !sandbox.is_destroyed())
            .map(|sandbox| sandbox.info(table.role_of(&sandbox.id)))
            .collect();
        infos.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        infos
    }

    pub(crate) fn info(&self, sandbox: &Sandbox) -> SandboxInfo {
        sandbox.info(self.table().role_of(&sandbox.id))
    }

    /// Lets operations that have begun end, and stops the sandboxes when asked to.
    pub(crate) async fn shut_down(&self, stop_sandboxes: bool) {
        if stop_sandboxes {
            let all: Vec<_> = self.table().sandboxes.values().cloned().collect();
            let halts = all.iter().map(|sandbox| sandbox.ask(Op::Halt));
            for (sandbox, halted) in all.iter().zip(futures_util::future::join_all(halts).await) {
                if let Err(error) = halted {
                    tracing::warn!(sandbox = %sandbox.name, %error, "did not stop");
                }
            }
        }
        self.0.stop.cancel();
        self.0.tasks.close();
        if tokio::time::timeout(FINISH, self.0.tasks.wait()).await.is_err() {
            tracing::warn!("an operation did not end in time; the next start recovers it");
        }
    }

    /// Starts the task for a sandbox that exists.
    fn adopt(&self, row: Row, view: View) -> Arc<Sandbox> {
        let (view_sender, view) = watch::channel(view);
        let (requests, receiver) = mpsc::channel(16);
        let door = Door::new(self.0.driver.clone(), row.id.clone());
        let label = Label::new(&row.name);
        let run: Option<Arc<str>> = row.run.as_ref().map(|run| run.id.as_str().into());
        let parts = actor::Parts {
            id: row.id.clone(),
            name: label.clone(),
            run: run.clone(),
            driver: self.0.driver.clone(),
            store: self.0.store.clone(),
            door: door.clone(),
            restart: self.0.restart,
            stop_grace: self.0.stop_grace,
            services: self.0.services.clone(),
            view: view_sender,
        };
        let sandbox = Arc::new(Sandbox {
            id: row.id.clone(),
            name: row.name,
            door,
            label,
            moved: CancellationToken::new(),
            driver: row.driver,
            spec: row.spec,
            created_at: row.created_at,
            run,
            requests,
            view,
        });
        self.table().sandboxes.insert(row.id.clone(), sandbox.clone());
        let (this, stop) = (self.clone(), self.0.stop.clone());
        self.0.tasks.spawn(async move {
            actor::run(parts, receiver, stop).await;
            this.table().sandboxes.remove(&row.id);
        });
        sandbox
    }

    async fn reload_roles(&self) -> Result<(), ApiError> {
        let roles = self.0.store.roles().await.map_err(errors::from_store)?;
        self.table().roles = roles.into_iter().collect();
        Ok(())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn role_of(&self, id: &SandboxId) -> Option<Role> {
        self.roles.iter().find(|(_, owner)| *owner == id).map(|(role, _)| *role)
    }
}

#[async_trait]
impl Dial for Door {
    async fn dial(&self) -> std::io::Result<BoxStream> {
        Self::dial(self).await.map_err(std::io::Error::other)
    }
}
