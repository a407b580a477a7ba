//! One sign-in: from a DID to an address for the browser, and from the callback to who it was.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderName, StatusCode};
use ring::digest::{SHA256, digest};
use serde::Deserialize;

use crate::app::SCOPE;
use crate::callback::Callback;
use crate::client::Client;
use crate::did::Did;
use crate::error::Error;
use crate::handle::Handle;
use crate::jwt;
use crate::keys::SigningKey;
use crate::metadata::Server;
use crate::network::{Ask, Reply};
use crate::place::{Place, encode_form};
use crate::random;
use crate::token::{Tokens, judge};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
static DPOP: HeaderName = HeaderName::from_static("dpop");
const NONCE: &str = "dpop-nonce";
const LONGEST_NONCE: usize = 512;
/// Giving tokens back is a courtesy: they are worth nothing without a key that is gone by then.
const GIVING_BACK: Duration = Duration::from_secs(3);

/// A sign-in under way. It has no `Debug` that shows its secrets.
pub struct Flow {
    state: String,
    verifier: String,
    key: SigningKey,
    server: Server,
    /// The last that this server gave us.
    nonce: Option<String>,
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").field("issuer", &self.server.issuer).finish_non_exhaustive()
    }
}

impl Flow {
    /// Comes back with the callback. It is used once: whoever finds the flow by it, takes it.
    pub fn state(&self) -> &str {
        &self.state
    }
}

/// Where to send the browser, and what to keep meanwhile.
#[derive(Debug)]
pub struct Started {
    pub address: String,
    pub flow: Flow,
}

/// Who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    pub did: Did,
    /// Only when it was verified both ways.
    pub handle: Option<Handle>,
}

#[derive(Deserialize)]
struct Pushed {
    request_uri: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OauthError {
    error: String,
}

impl Client {
    /// Everything up to the point where a person has to say yes.
    pub async fn begin(&self, did: &Did) -> Result<Started, Error> {
        let identity = self.resolve(did).await?;
        let server = self.server_of(&identity.pds).await?;
        let key = SigningKey::generate().map_err(|error| Error::Local(error.to_string()))?;
        let (state, verifier) = (random::word()?, random::word()?);
        let mut flow = Flow { state, verifier, key, server, nonce: None };
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, flow.verifier.as_bytes()));
        let state = flow.state.clone();
        let form = [
            ("client_id", self.app.client_id()),
            ("response_type", "code"),
            ("redirect_uri", self.app.redirect_uri()),
            ("scope", SCOPE),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("login_hint", did.as_str()),
        ];
        let place = flow.server.push.clone();
        let reply = self.post(&mut flow, &place, &form).await?;
        if !matches!(reply.status, StatusCode::OK | StatusCode::CREATED) {
            return Err(refused(&place, &reply));
        }
        let pushed: Pushed = serde_json::from_slice(&reply.body).map_err(|error| {
            Error::untrusted(&place, format!("the answer is malformed: {error}"))
        })?;
        // Nothing else travels through the browser, where it could be changed.
        let query =
            [("client_id", self.app.client_id()), ("request_uri", pushed.request_uri.as_str())];
        Ok(Started { address: flow.server.authorization.with_query(&query), flow })
    }

    /// Who it was. The tokens are given back before anything is decided.
    pub async fn finish(&self, mut flow: Flow, callback: &Callback) -> Result<SignedIn, Error> {
        let issuer = flow.server.issuer.to_string();
        let (Callback::Code { iss, .. } | Callback::Error { iss, .. }) = callback;
        if *iss != issuer {
            return Err(Error::untrusted(&issuer, "the answer comes from another server"));
        }
        let code = match callback {
            Callback::Code { code, .. } => code,
            Callback::Error { error, .. } => {
                return Err(Error::Refused { place: issuer, code: plain(error) });
            }
        };
        let verifier = std::mem::take(&mut flow.verifier);
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.app.redirect_uri()),
            ("code_verifier", &verifier),
            ("client_id", self.app.client_id()),
        ];
        let place = flow.server.token.clone();
        let reply = self.post(&mut flow, &place, &form).await?;
        if reply.status != StatusCode::OK {
            return Err(refused(&place, &reply));
        }
        self.give_back(&mut flow, Tokens::find(&reply.body)).await;
        if reply.media_type() != "application/json" {
            return Err(Error::untrusted(&place, "the answer is not JSON"));
        }
        let granted = judge(&reply.body).map_err(|why| Error::untrusted(&place, why))?;
        self.confirm(&flow.server, granted.sub).await
    }

    /// A server may speak for those whose own document leads to it, as of now.
    async fn confirm(&self, server: &Server, sub: Did) -> Result<SignedIn, Error> {
        let identity = self.resolve(&sub).await?;
        let speaks = self.server_of(&identity.pds).await?;
        if speaks.issuer != server.issuer {
            let why = format!("it does not speak for {sub}");
            return Err(Error::untrusted(&server.issuer, why));
        }
        let handle = self.verified_handle(&identity).await;
        Ok(SignedIn { did: sub, handle })
    }

    async fn give_back(&self, flow: &mut Flow, tokens: Tokens) {
        let Some(place) = flow.server.revocation.clone() else { return };
        let all = async {
            for token in tokens.into_inner() {
                let form = [("token", token.as_str()), ("client_id", self.app.client_id())];
                match self.post(flow, &place, &form).await {
                    Ok(reply) if reply.status.is_success() => {}
                    Ok(reply) => {
                        tracing::debug!(%place, status = %reply.status, "a token was not taken back")
                    }
                    Err(error) => tracing::debug!(%error, "a token was not taken back"),
                }
            }
        };
        if tokio::time::timeout(GIVING_BACK, all).await.is_err() {
            tracing::debug!(%place, "taking tokens back takes too long");
        }
    }

    /// A form to the authorization server, with a proof; once more when it wants its nonce in it.
    async fn post(
        &self,
        flow: &mut Flow,
        place: &Place,
        form: &[(&str, &str)],
    ) -> Result<Reply, Error> {
        let first = self.post_once(flow, place, form).await?;
        let had = flow.nonce.take();
        flow.nonce = nonce_of(&first).or(had.clone());
        let wants_nonce =
            matches!(first.status, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED)
                && error_of(&first) == "use_dpop_nonce"
                && flow.nonce != had;
        if !wants_nonce {
            return Ok(first);
        }
        let second = self.post_once(flow, place, form).await?;
        flow.nonce = nonce_of(&second).or(flow.nonce.take());
        Ok(second)
    }

    async fn post_once(
        &self,
        flow: &Flow,
        place: &Place,
        form: &[(&str, &str)],
    ) -> Result<Reply, Error> {
        let mut form = form.to_vec();
        let assertion = match self.app.key() {
            Some(key) => {
                jwt::assertion(key, self.app.client_id(), &flow.server.issuer.to_string())?
            }
            None => String::new(),
        };
        if !assertion.is_empty() {
            form.push(("client_assertion_type", ASSERTION_TYPE));
            form.push(("client_assertion", &assertion));
        }
        let mut ask = Ask::form(encode_form(&form));
        let proof = jwt::proof(&flow.key, "POST", place, flow.nonce.as_deref())?;
        ask.headers.push((DPOP.clone(), proof));
        self.network.send(place, ask).await
    }
}

fn nonce_of(reply: &Reply) -> Option<String> {
    let nonce = reply.header(NONCE)?;
    (!nonce.is_empty() && nonce.len() <= LONGEST_NONCE).then(|| nonce.to_owned())
}

fn error_of(reply: &Reply) -> String {
    serde_json::from_slice::<OauthError>(&reply.body).unwrap_or_default().error
}

fn refused(place: &Place, reply: &Reply) -> Error {
    if reply.status.is_server_error() {
        return Error::unreachable(place, reply.status);
    }
    let error = plain(&error_of(reply));
    match (reply.status.is_client_error(), error.is_empty()) {
        (true, false) => Error::Refused { place: place.to_string(), code: error },
        _ => Error::untrusted(place, format!("it answers {}", reply.status)),
    }
}

/// A word of a server that is shown to people.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect()
}
