//! The only way out of a sandbox.
//!
//! ```text
//!  supervisor ── GET /host/egress?host&port ──▶ admit ─▶ look up ─▶ judge ─▶ connect ─▶ 101
//!                                                 │                    │               │
//!                                               Refusal, in words ◀────┘        Passage: bytes both
//!                                                 └──────────▶ Log ◀──────────── ways until the end
//!                                                              from when it is open to its end
//! ```
//! [`Egress`] owns it all: what each sandbox may reach ([`policy`]), what it has open, and the record
//! of what was ([`log`]). A change of a policy is on disk, then in the table, and then every open
//! connection of that sandbox is judged again: a connection is entered in the table under the lock
//! under which it is judged last, so none slips through in between.

pub(crate) mod config;
mod connect;
mod door;
mod limits;
pub(crate) mod log;
mod lookup;
mod metrics;
mod own;
mod passage;
pub(crate) mod policy;
pub(crate) mod rule;
mod target;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nacre_atproto::{Resolve, System};
use nacre_sandbox::SandboxId;
use nacre_wire::egress::{EgressConnection, EgressMode, EgressRule, EgressView};
use nacre_wire::{ApiError, ErrorKind};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::sandboxes::errors;
use crate::store::{OwnEgress, Store, StoreError};
use config::EgressConfig;
use limits::Bucket;
use log::{Log, Passed};
use lookup::{Lookup, Lookups};
pub(crate) use metrics::Counts;
use policy::{Policy, Refusal};
use rule::{BadPattern, Pattern, Rule};
use target::Target;

pub(crate) use door::open;

/// The file of the record, in the data folder.
const LOG_FILE: &str = "egress.db";
/// Rules that one sandbox may have: each is looked at for each connection.
const MOST_RULES: usize = 1000;
/// For connections to end that were told to, when the gateway stops.
const LAST_ENDS: Duration = Duration::from_secs(2);

/// Cheap to clone; all clones share the table.
#[derive(Clone)]
pub(crate) struct Egress(Arc<Inner>);

struct Inner {
    config: EgressConfig,
    store: Store,
    lookups: Lookups,
    log: Log,
    counts: Counts,
    /// Whatever has no end in the record yet. Closed when the gateway stops.
    under_way: TaskTracker,
    guests: Mutex<HashMap<SandboxId, Guest>>,
    /// One change of policies at a time.
    changing: tokio::sync::Mutex<()>,
    next: AtomicU64,
}

/// One sandbox, as far as it goes out.
struct Guest {
    own: OwnEgress,
    policy: Arc<Policy>,
    /// Asked for and not there yet.
    connecting: u64,
    bucket: Bucket,
    lookup: Lookup,
    open: HashMap<u64, Arc<Open>>,
}

/// A connection that is open.
pub(crate) struct Open {
    target: Target,
    address: SocketAddr,
    since: u64,
    passed: Arc<Passed>,
    /// Cancelled when a change of the rules is against it.
    cut: CancellationToken,
    why: Mutex<Option<Refusal>>,
}

impl Egress {
    pub(crate) async fn start(
        config: EgressConfig,
        store: Store,
        data_dir: &Path,
    ) -> Result<Self, StoreError> {
        Self::with(config, store, data_dir, Arc::new(System)).await
    }

    /// With another resolver.
    async fn with(
        config: EgressConfig,
        store: Store,
        data_dir: &Path,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, StoreError> {
        let log = Log::open(&data_dir.join(LOG_FILE), config.log_records)?;
        let own = store.egress().await?;
        let lookups = Lookups::new(resolver);
        let known = |(id, own)| (id, Guest::new(&config, own, lookups.share()));
        let guests = own.into_iter().map(known).collect();
        Ok(Self(Arc::new(Inner {
            config,
            store,
            lookups,
            log,
            counts: Counts::default(),
            under_way: TaskTracker::new(),
            guests: Mutex::new(guests),
            changing: tokio::sync::Mutex::default(),
            next: AtomicU64::new(0),
        })))
    }

    /// What ends from now on ends because the gateway does.
    pub(crate) fn stopping(&self) {
        self.0.under_way.close();
    }

    /// Returns when the record has the ends of all connections. They have been told to end.
    pub(crate) async fn close(&self) {
        self.stopping();
        let _ = tokio::time::timeout(LAST_ENDS, self.0.under_way.wait()).await;
        self.0.log.close().await;
    }

    pub(crate) fn log(&self) -> &Log {
        &self.0.log
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.0.counts
    }

    pub(crate) fn view(&self, id: &SandboxId, name: &str) -> EgressView {
        let defaults = self.0.config.policy.rules.iter().map(|rule| shown(rule, true));
        let mut guests = self.guests();
        let guest = guests.entry(id.clone()).or_insert_with(|| self.fresh());
        let rules = defaults.chain(guest.own.rules.iter().map(|rule| shown(rule, false)));
        let mut open: Vec<_> = guest.open.iter().map(|(id, open)| (*id, open.view())).collect();
        open.sort_by_key(|(id, _)| *id);
        EgressView {
            sandbox: name.to_owned(),
            mode: guest.policy.mode,
            default_mode: guest.own.mode.is_none(),
            rules: rules.collect(),
            open: open.into_iter().map(|(_, view)| view).collect(),
            limits: self.0.config.limits,
        }
    }

    /// `None`: as the configuration has it.
    pub(crate) async fn set_mode(
        &self,
        id: &SandboxId,
        mode: Option<EgressMode>,
    ) -> Result<(), ApiError> {
        let _changing = self.0.changing.lock().await;
        self.0.store.set_egress_mode(id, mode).await.map_err(errors::from_store)?;
        self.reload(id).await
    }

    /// The same target again replaces the rule before.
    pub(crate) async fn add_rule(&self, id: &SandboxId, rule: &EgressRule) -> Result<(), ApiError> {
        let rule = Rule::try_from(rule).map_err(bad_pattern)?;
        let _changing = self.0.changing.lock().await;
        let has = self.guests().get(id).map_or(0, |guest| guest.own.rules.len());
        if has >= MOST_RULES {
            return Err(ApiError::new(
                ErrorKind::TooMany,
                format!("there are {has} rules already"),
            ));
        }
        self.0.store.put_egress_rule(id, rule).await.map_err(errors::from_store)?;
        self.reload(id).await
    }

    pub(crate) async fn remove_rule(&self, id: &SandboxId, target: &str) -> Result<(), ApiError> {
        let pattern: Pattern = target.parse().map_err(bad_pattern)?;
        let _changing = self.0.changing.lock().await;
        let removed = self.0.store.remove_egress_rule(id, pattern.to_string()).await;
        if !removed.map_err(errors::from_store)? {
            let message = format!("there is no rule about {pattern}");
            return Err(ApiError::new(ErrorKind::NotFound, message)
                .hint("nacre egress show lists them; those of nacre.toml are changed there"));
        }
        self.reload(id).await
    }

    /// A copy of a sandbox may reach what the sandbox may.
    pub(crate) async fn copy(&self, from: &SandboxId, to: &SandboxId) -> Result<(), StoreError> {
        let _changing = self.0.changing.lock().await;
        self.0.store.copy_egress(from, to).await?;
        let own = self.0.store.egress_of(to).await?;
        self.guests().insert(to.clone(), self.guest(own));
        Ok(())
    }

    /// It is gone, and its rules with it.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.guests().remove(id);
    }

    /// Takes over what the store says, and ends what is open against it.
    async fn reload(&self, id: &SandboxId) -> Result<(), ApiError> {
        let own = self.0.store.egress_of(id).await.map_err(errors::from_store)?;
        let mut guests = self.guests();
        let guest = guests.entry(id.clone()).or_insert_with(|| self.fresh());
        guest.policy = Arc::new(effective(&self.0.config, &own));
        guest.own = own;
        for open in guest.open.values() {
            if let Err(refusal) = guest.policy.still(&open.target, open.address.ip()) {
                open.cut(refusal);
            }
        }
        Ok(())
    }

    fn fresh(&self) -> Guest {
        self.guest(OwnEgress::default())
    }

    fn guest(&self, own: OwnEgress) -> Guest {
        Guest::new(&self.0.config, own, self.0.lookups.share())
    }

    fn guests(&self) -> MutexGuard<'_, HashMap<SandboxId, Guest>> {
        self.0.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    fn new(config: &EgressConfig, own: OwnEgress, lookup: Lookup) -> Self {
        Self {
            policy: Arc::new(effective(config, &own)),
            own,
            connecting: 0,
            bucket: Bucket::full(config.limits.connects_per_second),
            lookup,
            open: HashMap::new(),
        }
    }
}

impl Open {
    fn cut(&self, refusal: Refusal) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        self.cut.cancel();
    }

    fn view(&self) -> EgressConnection {
        EgressConnection {
            host: self.target.host.to_string(),
            port: self.target.port,
            address: self.address.ip().to_string(),
            since: self.since,
            sent: self.passed.sent(),
            received: self.passed.received(),
        }
    }
}

fn effective(config: &EgressConfig, own: &OwnEgress) -> Policy {
    let rules = config.policy.rules.iter().chain(&own.rules).cloned().collect();
    Policy { mode: own.mode.unwrap_or(config.policy.mode), rules }
}

fn shown(rule: &Rule, default: bool) -> EgressRule {
    let (effect, private) = (rule.effect, rule.private);
    EgressRule { effect, target: rule.pattern.to_string(), private, default }
}

fn bad_pattern(error: BadPattern) -> ApiError {
    ApiError::new(ErrorKind::InvalidRequest, error.to_string()).hint(BadPattern::HINT)
}

/// As records have it.
fn shown_address(address: Option<IpAddr>) -> Option<String> {
    address.map(|address| address.to_string())
}
