//! Model calls: the keys stay here, and what goes out is allowed, paid for and written down.
//!
//! ```text
//!  /provider/v1/NAME/...  ─┐
//!  a sandbox's 8002 ─ way up ─┴▶ Models::answer (call) ─▶ upstream ─▶ the provider
//!                                  │ tokens  who may, and what
//!                                  │ book    budgets, rates, stops: one lock, no waiting
//!                                  └ ledger  usage.db: before it goes out, and after
//! ```
//! [`Models`] owns all of it. Bodies pass as they are, in both directions; usage is read off the
//! answer while it passes.

mod admin;
mod ask;
mod base;
mod body;
mod book;
mod bounds;
mod call;
mod config;
mod conversations;
mod counters;
mod embeddings;
mod environment;
mod format;
mod headers;
pub(crate) mod inside;
mod key;
mod ledger;
mod mask;
mod meter;
mod money;
mod paths;
mod prices;
mod refusals;
mod retry;
mod runs;
mod tally;
mod tokens;
mod upstream;
mod usage;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use nacre_wire::ApiError;
use tokio::sync::watch;

pub(crate) use book::day_began;
pub(crate) use call::{Caller, PREFIX};
pub use config::{
    Kind, ModelsConfig, Provider, RawModelsConfig, RawPrice, RawProvider, RawSandboxLimits,
    check_name,
};
pub(crate) use conversations::{Allowance, Meter};
pub use money::Dollars;
pub use prices::AS_OF as PRICES_AS_OF;
pub(crate) use runs::{Chosen, Grant, LONGEST_REPLY, RunGrant, longest};

use body::Room;
use book::Book;
use config::SandboxScope;
use counters::Counters;
use format::{Reason, Refusal};
use ledger::Ledger;
use money::Limits;
use refusals::Refusals;
use tokens::Tokens;
use upstream::Upstream;

use crate::clock::now_ms;
use crate::sandboxes::errors;
use crate::store::Store;

const FILE: &str = "usage.db";
/// Every provider.
const ALL: &str = "*";

/// Reads the configuration again: only the program knows where it is.
#[derive(Clone)]
pub struct Reload(pub Arc<dyn Fn() -> Result<ModelsConfig, String> + Send + Sync>);

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reload")
    }
}

impl PartialEq for Reload {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Reload {}

pub(crate) struct Models {
    live: RwLock<Arc<Live>>,
    reload: Option<Reload>,
    /// Counts how often that changed.
    changed: watch::Sender<u64>,
    store: Store,
    tokens: Tokens,
    book: Arc<Book>,
    ledger: Ledger,
    counters: Arc<Counters>,
    room: Room,
    refusals: Refusals,
    granted: runs::Granted,
}

/// The configuration as it is in use.
struct Live {
    providers: BTreeMap<String, Arc<Target>>,
    day: Limits,
    largest_body: u64,
    keep_bodies: bool,
    sandbox: SandboxScope,
}

/// A provider, and the connections to it.
struct Target {
    name: Arc<str>,
    provider: Provider,
    upstream: Result<Upstream, String>,
}

impl Live {
    fn new(config: ModelsConfig) -> Self {
        let target = |provider: Provider| {
            let upstream = Upstream::new(&provider.base, provider.ca_file.as_deref());
            for why in [provider.key.as_ref().err(), upstream.as_ref().err()].into_iter().flatten()
            {
                tracing::warn!(provider = provider.name, why, "a provider cannot be used");
            }
            let name: Arc<str> = provider.name.as_str().into();
            (provider.name.clone(), Arc::new(Target { name, provider, upstream }))
        };
        Self {
            providers: config.providers.into_iter().map(target).collect(),
            day: config.day,
            largest_body: config.largest_body,
            keep_bodies: config.keep_bodies,
            sandbox: config.sandbox,
        }
    }
}

impl Target {
    fn upstream(&self) -> Result<&Upstream, Refusal> {
        self.upstream.as_ref().map_err(|why| {
            Refusal::new(Reason::Upstream, format!("{} cannot be used: {why}", self.name))
        })
    }

    fn takes_key_in_query(&self) -> bool {
        self.provider.kind == Kind::Google
    }

    fn problem(&self) -> Option<String> {
        self.provider.key.as_ref().err().or(self.upstream.as_ref().err()).cloned()
    }
}

impl Models {
    pub(crate) async fn start(
        data_dir: &Path,
        config: ModelsConfig,
        reload: Option<Reload>,
        store: Store,
    ) -> Result<Arc<Self>, String> {
        let ledger = Ledger::open(&data_dir.join(FILE))?;
        let book = Arc::new(Book::default());
        let now = now_ms();
        let failed = |error: ApiError| error.message;
        book.restore(now, ledger.sums(book::day_began(now)).await.map_err(failed)?);
        for name in store.stopped_providers().await.map_err(|error| error.to_string())? {
            book.stop((name != ALL).then_some(name.as_str()));
        }
        let tokens = Tokens::load(store.clone(), book.clone()).await;
        Ok(Arc::new(Self {
            live: RwLock::new(Arc::new(Live::new(config))),
            reload,
            changed: watch::channel(0).0,
            store,
            tokens: tokens.map_err(|error| error.to_string())?,
            book,
            ledger,
            counters: Arc::default(),
            room: Room::default(),
            refusals: Refusals::default(),
            granted: runs::Granted::default(),
        }))
    }

    fn live(&self) -> Arc<Live> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn has_providers(&self) -> bool {
        !self.live().providers.is_empty()
    }

    /// Calls under way go on as they began.
    fn replace(&self, config: ModelsConfig) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Live::new(config));
        self.changed.send_modify(|count| *count += 1);
    }

    /// Ends what a sandbox may do, now that it is gone.
    pub(crate) async fn forget_sandbox(&self, id: &str) {
        if let Err(error) = self.tokens.revoke(tokens::Which::Sandbox(id)).await {
            tracing::error!(%error, "the policy tokens of a sandbox stay in control.db");
        }
    }

    pub(crate) fn prometheus(&self) -> String {
        self.counters.prometheus(self.book.under_way(None))
    }
}

/// A store that fails is told as everywhere else.
fn store_failed(error: crate::store::StoreError) -> ApiError {
    errors::from_store(error)
}
