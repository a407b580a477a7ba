//! Whose computer it is, and how to name them.
//!
//! An owner stays, also when a setting that named them goes: a variable that got lost must not open the
//! computer to whoever claims it first. Another one in the settings replaces them.

use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::HeaderValue;
use nacre_atproto::{Client, Did, Error, Handle, SignedIn};

use super::{Auth, AuthStartError, Code, Event};
use crate::clock::now_ms;
use crate::sandboxes::errors;
use crate::secret::SecretHash;
use crate::store::Store;
use nacre_wire::ApiError;

/// How long a handle is believed, and for how long we do not ask again after a failure.
const HANDLE_LIFETIME: Duration = Duration::from_secs(5 * 60);
const RETRY_AFTER: Duration = Duration::from_secs(30);
/// The page does not wait longer for a name.
const NAMING: Duration = Duration::from_secs(3);
const SETUP_LIFETIME: Duration = Duration::from_secs(30 * 60);

pub(crate) struct Owner {
    /// With the DID as sandboxes are told it, so that a request need not write it anew.
    did: RwLock<Option<(Did, HeaderValue)>>,
    /// Asked for by one visitor at a time; the others get what is known.
    name: tokio::sync::Mutex<Option<(Instant, Option<Handle>)>>,
    setup: Mutex<Option<(SecretHash, Instant)>>,
}

/// Who can sign in, as a page says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnerName {
    pub(crate) did: Did,
    /// Only when it was verified both ways.
    pub(crate) handle: Option<Handle>,
}

impl Owner {
    /// What the settings say wins over what was kept.
    pub(super) async fn load(store: &Store, said: Option<Did>) -> Result<Self, AuthStartError> {
        let did = match said {
            Some(did) => {
                if store.set_owner(did.to_string(), now_ms()).await? {
                    tracing::info!(owner = %did, "this computer has a new owner");
                }
                Some(did)
            }
            None => match store.owner().await? {
                Some(text) => {
                    Some(text.parse().map_err(|()| AuthStartError::OwnerUnreadable(text))?)
                }
                None => None,
            },
        };
        Ok(Self {
            did: RwLock::new(did.map(with_header)),
            name: Default::default(),
            setup: Mutex::default(),
        })
    }

    pub(super) fn did(&self) -> Option<Did> {
        let did = self.did.read().unwrap_or_else(PoisonError::into_inner);
        did.as_ref().map(|(did, _)| did.clone())
    }

    pub(super) fn user(&self) -> HeaderValue {
        let did = self.did.read().unwrap_or_else(PoisonError::into_inner);
        did.as_ref().map_or(HeaderValue::from_static("owner"), |(_, header)| header.clone())
    }
}

fn with_header(did: Did) -> (Did, HeaderValue) {
    // A DID is letters, digits, colons, dots and dashes.
    let header = HeaderValue::from_str(did.as_str());
    (did, header.unwrap_or(HeaderValue::from_static("owner")))
}

impl Auth {
    pub(crate) fn owner(&self) -> Option<Did> {
        self.owner.did()
    }

    /// The owner with their handle, as far as it is known soon enough.
    pub(crate) async fn owner_name(&self) -> Option<OwnerName> {
        let did = self.owner.did()?;
        let mut name = self.owner.name.lock().await;
        let fresh = name.as_ref().is_some_and(|(asked, handle)| {
            asked.elapsed() < if handle.is_some() { HANDLE_LIFETIME } else { RETRY_AFTER }
        });
        if !fresh && let Some(client) = &self.client {
            let asked = tokio::time::timeout(NAMING, ask_handle(client, &did)).await;
            *name = Some((Instant::now(), asked.unwrap_or(None)));
        }
        let handle = name.as_ref().and_then(|(_, handle)| handle.clone());
        Some(OwnerName { did, handle })
    }

    /// A fresh code that lets somebody claim this computer; `None` when it has an owner.
    pub(crate) fn setup_code(&self) -> std::io::Result<Option<Code>> {
        if self.owner().is_some() || self.client.is_none() {
            return Ok(None);
        }
        let code = Code::generate()?;
        let until = Instant::now() + SETUP_LIFETIME;
        *self.owner.setup.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((code.hash(), until));
        Ok(Some(code))
    }

    pub(crate) fn setup_lifetime(&self) -> Duration {
        SETUP_LIFETIME
    }

    /// It stays good until somebody has become the owner: a sign-in may be given up.
    pub(crate) fn is_setup_code(&self, typed: &str) -> bool {
        let setup = *self.owner.setup.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((hash, until)) = setup else { return false };
        Instant::now() < until && Code::typed(typed).is_some_and(|code| code.hash() == hash)
    }

    /// Makes them the owner, once; `false` when somebody is.
    pub(crate) async fn claim(&self, who: &SignedIn) -> Result<bool, ApiError> {
        let claimed = self.store.claim(who.did.to_string(), now_ms()).await;
        if !claimed.map_err(errors::from_store)? {
            return Ok(false);
        }
        *self.owner.did.write().unwrap_or_else(PoisonError::into_inner) =
            Some(with_header(who.did.clone()));
        *self.owner.setup.lock().unwrap_or_else(PoisonError::into_inner) = None;
        *self.owner.name.lock().await = Some((Instant::now(), who.handle.clone()));
        self.sessions.clear();
        self.tokens.clear();
        self.note(Event::of("claimed")).await;
        Ok(true)
    }
}

async fn ask_handle(client: &Client, did: &Did) -> Option<Handle> {
    match client.resolve(did).await {
        Ok(identity) => client.verified_handle(&identity).await,
        Err(Error::Unreachable { place, why }) => {
            tracing::debug!(%place, %why, "the owner's handle is not known");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "the owner's document cannot be used");
            None
        }
    }
}
