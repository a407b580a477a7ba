//! The host side of Nacre: who may come in, which sandboxes there are, and the way to them.
//!
//! ```text
//!  browser ── tcp ──┐                       ┌── unix socket ── nacre (CLI)
//!                   ▼                       ▼
//!        web: target, host, session   web: peer uid
//!                   └──── routes ───────────┘
//!                  │              │
//!             control plane     proxy ── door ── Driver::dial ──▶ supervisor
//!                  │                       host ◀─ Driver::accept ── supervisor
//!                  │                       └─ egress ─▶ the internet
//!             sandboxes: one task per sandbox owns its lifecycle
//!                  │
//!             store: control.db, what should be true
//!
//!  a program with a policy token, or a sandbox ── provider ──▶ a model
//! ```
//!
//! What passes is counted and logged by [`observe`].
//!
//! State lives in three places, each with one owner: `control.db` ([`store`]) says what should be
//! true, the driver says what is true, and the task of each sandbox ([`sandboxes`]) brings the
//! second in line with the first. The library takes its configuration as values; it never reads
//! the environment.

mod auth;
mod brain;
mod clock;
mod config;
mod desktop;
mod egress;
mod gateway;
mod host;
mod knowledge;
mod lock;
mod observe;
mod prompt;
mod provider;
mod relayed;
pub mod routes;
mod runs;
mod sandboxes;
mod secret;
mod store;
mod tls;
mod wal;
mod web;

pub use auth::{AuthConfig, AuthStartError, SessionLimits};
pub use brain::config::{ConversationsConfig, RawAgentConfig, RawConversationsConfig};
pub use config::{ConfigError, GatewayConfig, RawGatewayConfig};
pub use desktop::SHARED_FOLDER;
pub use desktop::config::{DesktopConfig, Modules, RawDesktopConfig};
pub use egress::config::{EgressConfig, RawEgressConfig};
pub use gateway::{Gateway, RunningGateway, StartError};
pub use knowledge::{EmbeddingModel, KnowledgeConfig, RawKnowledgeConfig};
pub use lock::{LOCK_FILE, SOCKET_FILE};
pub use observe::{DroppedLines, JsonLines, LogGuard, ObserveConfig, RawObserveConfig, Spool};
pub use provider::{
    Dollars, Kind, ModelsConfig, PRICES_AS_OF, Provider, RawModelsConfig, RawPrice, RawProvider,
    RawSandboxLimits, Reload, check_name as check_provider_name,
};
pub use runs::config::{AgentProgram, Machine, RawRunsConfig, RunsConfig};
pub use sandboxes::policy::RestartPolicy;
pub use sandboxes::watching::{RawRolesConfig, RolesConfig};
pub use tls::{TlsError, TlsFiles};
/// Whether a session is asked for at all. Only a benchmark is ever built without.
pub const CHECKS_SESSIONS: bool = cfg!(not(feature = "unguarded"));

#[doc(hidden)]
pub use web::enter::probe::session_check_times;
pub use web::visitor::{Front, Network, PublicUrl};
