//! A directory, a PDS and an authorization server on loopback, in one process, that keep to the rules
//! until a test tells them not to.
//!
//! The honest server is as strict as the real ones: it wants proofs with its nonce, the verifier that
//! fits, and a code only once. A test changes one answer ([`Net::tweak`]) and sees what comes of it.

mod proofs;
mod server;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;

pub use proofs::{Jwt, verify};

pub const ALICE: &str = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa";
pub const MALLORY: &str = "did:plc:mmmmmmmmmmmmmmmmmmmmmmmm";
pub const DOCUMENT: &str = "/.well-known/oauth-authorization-server";
pub const RESOURCE: &str = "/.well-known/oauth-protected-resource";
pub const PUSH: &str = "/oauth/par";
pub const AUTHORIZE: &str = "/oauth/authorize";
pub const TOKEN: &str = "/oauth/token";
pub const REVOKE: &str = "/oauth/revoke";
pub const HANDLE: &str = "/.well-known/atproto-did";

/// What somebody asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub host: String,
    pub form: HashMap<String, String>,
    pub proof: Option<Jwt>,
    pub assertion: Option<Jwt>,
}

/// What they get.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Before the head.
    pub delay: Duration,
}

impl Reply {
    pub fn json(value: &Value) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { status: 200, headers, body: value.to_string().into_bytes(), delay: Duration::ZERO }
    }

    pub fn error(status: u16, error: &str) -> Self {
        Self { status, ..Self::json(&json!({ "error": error })) }
    }

    /// Changes the body as JSON.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::from_slice(&self.body).unwrap_or(Value::Null);
        change(&mut value);
        self.body = value.to_string().into_bytes();
    }

    pub fn set_header(&mut self, name: &str, value: &str) {
        self.headers.retain(|(found, _)| found != name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }
}

type Tweak = Box<dyn FnMut(&mut Reply, &Asked) + Send>;

#[derive(Default)]
struct State {
    /// DIDs with the origin of their PDS and their handle.
    accounts: HashMap<String, (String, String)>,
    /// Who consents next.
    signs_in: String,
    /// What consent comes to, instead of a code.
    denies: Option<String>,
    requests: HashMap<String, HashMap<String, String>>,
    /// Codes with the request and the subject they were given for.
    codes: HashMap<String, (HashMap<String, String>, String)>,
    nonce: u64,
    seen: Vec<Asked>,
    tweaks: HashMap<String, Tweak>,
    /// Of the client, when it has one.
    jwks: Option<Value>,
    counter: u64,
}

/// The servers. They end with the runtime they were started in.
#[derive(Clone)]
pub struct Net {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Net {
    /// With the accounts of Alice and Mallory.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let net = Self { address: listener.local_addr()?, state: Arc::default() };
        let origin = net.origin();
        {
            let mut state = net.lock();
            state.nonce = 1;
            state.signs_in = ALICE.to_owned();
            for (did, handle) in [(ALICE, "alice.test"), (MALLORY, "mallory.test")] {
                state.accounts.insert(did.to_owned(), (origin.clone(), handle.to_owned()));
            }
        }
        tokio::spawn(server::serve(net.clone(), listener));
        Ok(net)
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Changes what is answered at this path from now on.
    pub fn tweak(&self, path: &str, tweak: impl FnMut(&mut Reply, &Asked) + Send + 'static) {
        self.lock().tweaks.insert(path.to_owned(), Box::new(tweak));
    }

    pub fn signs_in(&self, did: &str) {
        self.lock().signs_in = did.to_owned();
    }

    pub fn denies(&self, error: &str) {
        self.lock().denies = Some(error.to_owned());
    }

    /// Moves an account to another PDS.
    pub fn moves(&self, did: &str, pds: &str) {
        if let Some(account) = self.lock().accounts.get_mut(did) {
            account.0 = pds.to_owned();
        }
    }

    /// A new nonce, so that the one that clients know is refused.
    pub fn new_nonce(&self) {
        self.lock().nonce += 1;
    }

    pub fn knows_client(&self, jwks: Value) {
        self.lock().jwks = Some(jwks);
    }

    /// Everything that was asked, in order.
    pub fn seen(&self) -> Vec<Asked> {
        self.lock().seen.clone()
    }

    pub fn seen_at(&self, path: &str) -> Vec<Asked> {
        self.seen().into_iter().filter(|asked| asked.path == path).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a person's browser does with the address it is sent to: where it is sent back to.
    pub async fn consent(&self, address: &str) -> Option<String> {
        let query = address.split_once('?')?.1;
        let form = server::parse_form(query);
        let reply = self.authorize(&form);
        reply.headers.into_iter().find(|(name, _)| name == "location").map(|(_, value)| value)
    }
}
