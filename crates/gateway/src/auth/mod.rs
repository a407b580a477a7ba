//! Who may come in: the owner, the sessions of their browsers, tokens of their programs, and what helps
//! when nothing else does.
//!
//! ```text
//!  link, account, passkey, recovery code ──▶ Sessions ──┐
//!  nacre token create ─────────────────────▶ Tokens ────┴──▶ Pass: this request may
//! ```
//!
//! `control.db` keeps hashes of all of it; what is checked on every request is in memory ([`Sessions`],
//! [`Tokens`]). What waits for a browser to come back is in memory alone ([`Pending`]): a restart in
//! between means beginning anew.

mod codes;
mod config;
mod limits;
mod owner;
mod passkeys;
mod pending;
mod ports;
mod recovery;
mod sessions;
mod tokens;
mod webauthn;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use nacre_atproto::{Client, Did, Flow};
use nacre_wire::access::{AuditEvent, AuditPage};
use nacre_wire::control::SignInLink;
use nacre_wire::{ApiError, ErrorKind};
use tokio_util::sync::CancellationToken;

pub use config::{AuthConfig, AuthStartError};
pub use sessions::SessionLimits;

pub(crate) use codes::Code;
pub(crate) use limits::Limits;
pub(crate) use owner::OwnerName;
pub(crate) use passkeys::{Challenge, ChallengeFor, PasskeyAnswer};
pub(crate) use pending::Pending;
pub(crate) use ports::PortVisits;
pub(crate) use sessions::{Arrival, Session, Sessions};
pub(crate) use tokens::{PREFIX as TOKEN_PREFIX, Token, Tokens};
pub(crate) use webauthn::encode as base64url;

use crate::clock::now_ms;
use crate::sandboxes::errors;
use crate::secret::{Secret, SecretHash};
use crate::store::{SIGN_IN_LIFETIME, Store};
use crate::web::WayBack;
use owner::Owner;

/// How long a sign-in may take at the account's server, and a passkey to be found.
const FLOW_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// At most this long until a session that is over is noticed by what hangs on it, and a use is written
/// down.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
const MOST_EVENTS: u32 = 500;
const USUAL_EVENTS: u32 = 50;

/// What a sign-in under way is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    SignIn,
    /// Whoever it is becomes the owner, if it is who they said.
    Claim {
        expected: Did,
    },
}

/// A browser that is at the account's server.
#[derive(Debug)]
pub(crate) struct Away {
    pub(crate) flow: Flow,
    pub(crate) purpose: Purpose,
    pub(crate) way_back: Option<WayBack>,
}

pub(crate) struct Auth {
    store: Store,
    pub(crate) sessions: Sessions,
    pub(crate) tokens: Tokens,
    pub(crate) limits: Limits,
    /// How often an address begins a sign-in that it does not finish: each asks others for much.
    pub(crate) starts: Limits,
    pub(crate) away: Pending<Away>,
    pub(crate) challenges: Pending<Challenge>,
    pub(crate) ports: PortVisits,
    /// Absent when accounts cannot be asked from this address.
    client: Option<Client>,
    owner: Owner,
    /// Whom every request is taken for, once it is set.
    #[cfg(feature = "unguarded")]
    everyone: std::sync::OnceLock<Arc<Session>>,
}

/// What lets a request in.
#[derive(Debug, Clone)]
pub(crate) enum Pass {
    Session(Arc<Session>),
    Token(Arc<Token>),
}

impl Pass {
    /// Cancelled when it lets nobody in any more.
    pub(crate) fn ended(&self) -> &CancellationToken {
        match self {
            Self::Session(session) => session.ended(),
            Self::Token(token) => token.ended(),
        }
    }

    pub(crate) fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Session(session) => Some(session),
            Self::Token(_) => None,
        }
    }
}

impl Auth {
    pub(crate) async fn start(
        config: &AuthConfig,
        client: Option<Client>,
        store: Store,
    ) -> Result<Self, AuthStartError> {
        let owner = Owner::load(&store, config.owner.clone()).await?;
        Ok(Self {
            sessions: Sessions::load(store.clone(), config.sessions).await?,
            tokens: Tokens::load(store.clone()).await?,
            limits: Limits::default(),
            starts: Limits::default(),
            away: Pending::new(FLOW_LIFETIME),
            challenges: Pending::new(FLOW_LIFETIME),
            ports: PortVisits::new(),
            client,
            owner,
            store,
            #[cfg(feature = "unguarded")]
            everyone: Default::default(),
        })
    }

    /// Ends what is over, until it is dropped.
    pub(crate) async fn keep(self: Arc<Self>) {
        // A session that is opened meanwhile lasts at least as long.
        let limits = self.sessions.limits();
        let longest = SWEEP_EVERY.min(limits.idle).min(limits.absolute);
        loop {
            let next = self.sweep().await;
            tokio::time::sleep(next.min(longest)).await;
        }
    }

    /// Also when the gateway stops, so that the last uses are known.
    pub(crate) async fn sweep(&self) -> Duration {
        let next = self.sessions.sweep().await;
        if let Err(error) = self.tokens.sweep().await {
            tracing::error!(%error, "tokens cannot be kept");
        }
        next.unwrap_or_else(|error| {
            tracing::error!(%error, "sessions cannot be kept");
            SWEEP_EVERY
        })
    }

    /// As sandboxes see it: the owner's DID, or just that it is the owner.
    pub(crate) fn user(&self) -> HeaderValue {
        self.owner.user()
    }

    pub(crate) fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// A fresh one-time link; the one before it stops working.
    pub(crate) async fn link(&self, base_url: &str) -> Result<SignInLink, ApiError> {
        let token = Secret::generate().map_err(|error| ApiError::io("random numbers", &error))?;
        self.store.replace_sign_in(token.hash(), now_ms()).await.map_err(errors::from_store)?;
        self.note(Event::of("link_created")).await;
        Ok(SignInLink {
            url: format!("{base_url}/login?token={}", token.reveal()),
            expires_in_s: SIGN_IN_LIFETIME.as_secs(),
        })
    }

    /// Whether the link was good. It is used up by asking.
    pub(crate) async fn redeem(&self, token: &str) -> Result<bool, ApiError> {
        let token = SecretHash::of(token);
        self.store.take_sign_in(token, now_ms()).await.map_err(errors::from_store)
    }

    /// A new session. Whoever got in may make mistakes again.
    pub(crate) async fn open(
        &self,
        arrival: Arrival,
        before: Option<&Session>,
        address: IpAddr,
    ) -> Result<Secret, ApiError> {
        let method = arrival.method.as_str();
        let opened = self.sessions.open(arrival, before).await;
        let secret =
            opened.map_err(|error| ApiError::new(ErrorKind::Internal, error.to_string()))?;
        self.limits.succeeded(address);
        self.starts.succeeded(address);
        self.note(Event::of("sign_in").from(address).saying(method)).await;
        Ok(secret)
    }

    pub(crate) async fn audit(
        &self,
        before: Option<i64>,
        limit: Option<u32>,
    ) -> Result<AuditPage, ApiError> {
        let limit = limit.unwrap_or(USUAL_EVENTS).clamp(1, MOST_EVENTS);
        let events = self.store.audit(before, limit).await.map_err(errors::from_store)?;
        let full = u32::try_from(events.len()).is_ok_and(|count| count == limit);
        let next = events.last().map(|event| event.id).filter(|id| full && *id > 1);
        Ok(AuditPage { events, next })
    }

    /// From now on every request is let in, whatever it brings.
    #[cfg(feature = "unguarded")]
    pub(crate) async fn let_everyone_in(&self) -> Result<(), ApiError> {
        let method = nacre_wire::access::SignInMethod::Link;
        let arrival = Arrival { method, address: None, agent: None };
        let secret = self.open(arrival, None, std::net::Ipv4Addr::LOCALHOST.into()).await?;
        if let Some(session) = self.sessions.check(secret.hash()) {
            let _ = self.everyone.set(session);
        }
        Ok(())
    }

    #[cfg(feature = "unguarded")]
    pub(crate) fn everyone(&self) -> Option<Arc<Session>> {
        self.everyone.get().cloned()
    }

    /// Writes down what happened. What cannot be written goes to the log.
    pub(crate) async fn note(&self, event: Event) {
        let Event { event, who, address, detail } = event;
        let owner = || self.owner.did().map(|did| did.to_string());
        let event = AuditEvent {
            id: 0,
            at: now_ms(),
            event: event.to_owned(),
            who: who.or_else(owner),
            address: address.map(|address| address.to_canonical().to_string()),
            detail,
        };
        tracing::info!(target: "audit", event = event.event, who = event.who, address = event.address,
            detail = event.detail);
        if let Err(error) = self.store.record(event).await {
            tracing::error!(%error, "an event could not be recorded");
        }
    }
}

/// Something for the record. Never a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    event: &'static str,
    who: Option<String>,
    address: Option<IpAddr>,
    detail: Option<String>,
}

impl Event {
    pub(crate) fn of(event: &'static str) -> Self {
        Self { event, who: None, address: None, detail: None }
    }

    /// About somebody who is not the owner.
    pub(crate) fn by(mut self, who: impl ToString) -> Self {
        self.who = Some(who.to_string());
        self
    }

    pub(crate) fn from(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
        self
    }

    pub(crate) fn saying(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}
