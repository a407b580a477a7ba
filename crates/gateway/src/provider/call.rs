//! One model call: checked, paid for in advance, passed on, and settled.
//!
//! ```text
//! target ─▶ token ─▶ path ─▶ body ─▶ model ─▶ reservation ─▶ ledger ─▶ provider ─▶ Metered
//! ```
//! Every step either goes on or refuses; nothing leaves before the reservation is written down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Uri};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::ask::Ask;
use super::body::Held;
use super::book::{Account, Opened, Opening};
use super::format::{Format, Reason, Refusal};
use super::headers;
use super::ledger::{Begun, Refused};
use super::mask::Mask;
use super::meter::Metered;
use super::money::Limits;
use super::paths::{glob, is_plain};
use super::retry::{self, Message};
use super::tally::{Bodies, State, Tally};
use super::tokens::PolicyToken;
use super::usage::Api;
use super::{Live, Models, Target};
use crate::clock::now_ms;
use crate::observe::ACCESS;

pub(crate) const PREFIX: &str = "/provider/v1/";
const ENDED: &str = "the call was ended: it was stopped, or its token was revoked or has expired";

/// Where a call comes from, as the connection tells it.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// Over the gateway's own listener.
    Outside,
    /// Out of this sandbox, by id.
    Sandbox(Arc<str>),
}

impl Caller {
    fn sandbox(&self) -> Option<&Arc<str>> {
        match self {
            Self::Outside => None,
            Self::Sandbox(id) => Some(id),
        }
    }
}

/// A call that may be made, as far as its head tells.
struct Admitted {
    live: Arc<Live>,
    target: Arc<Target>,
    token: Arc<PolicyToken>,
    method: Method,
    path: String,
    query: Option<String>,
}

impl Models {
    pub(crate) async fn answer(&self, caller: Caller, request: Request<Body>) -> Response {
        let (name, path) = split(request.uri()).unwrap_or_default();
        let live = self.live();
        let kind = live.providers.get(name).map(|target| target.provider.kind);
        let format = Format::of(kind, path);
        let began = Instant::now();
        let (name, path) = (loggable(name), loggable(path));
        let answered = self.call(live, &caller, request).await;
        let (response, refused) = match answered {
            Ok(response) => (response, None),
            Err(refusal) => {
                self.counters.refused(refusal.reason);
                (refusal.response(format), Some(refusal.reason.as_str()))
            }
        };
        tracing::info!(
            target: ACCESS,
            provider = name,
            path,
            sandbox = caller.sandbox().map(|id| &**id),
            status = response.status().as_u16(),
            refused,
            ms = began.elapsed().as_millis(),
            "model call"
        );
        response
    }

    async fn call(
        &self,
        live: Arc<Live>,
        caller: &Caller,
        request: Request<Body>,
    ) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        let admitted = self.admit(live, caller, &parts.method, &parts.uri, &parts.headers)?;
        let of = caller.sandbox().cloned();
        let Held { bytes, place } =
            self.room.read(of, &parts.headers, body, admitted.live.largest_body).await?;
        let api = Api::of(&admitted.method, &admitted.path);
        let ask = Ask::read(api, &admitted.path, &bytes, &admitted.target.provider.bounds)
            .map_err(|why| Refusal::new(Reason::Invalid, why))?;
        let noted = |refusal: &Refusal| self.note(&admitted, &ask, refusal);
        admitted.check_models(&ask).inspect_err(noted)?;
        let accounts = admitted.accounts();
        let opened = self.open(&admitted, api, &ask, &accounts, &bytes);
        let (mut tally, opened) = opened.inspect_err(noted)?;
        // Who was refused may have asked for less.
        admitted.token.is_spent(None);
        tally.row = Some(self.write(&admitted, &ask, &tally, &bytes)?);
        let budgeted = accounts.iter().any(|(_, limits)| !limits.is_none());
        let bytes = if budgeted { ask.wishing_usage(bytes) } else { bytes };
        let mut headers = parts.headers;
        headers::inward(&mut headers, &admitted.target.provider);
        let message =
            Message { method: admitted.method.clone(), uri: admitted.uri()?, headers, body: bytes };
        let upstream = admitted.target.upstream()?;
        let mut ended = Box::pin(over(opened.end, admitted.token.row.expires_at));
        let mut response = tokio::select! {
            biased;
            () = &mut ended => return Err(Refusal::new(Reason::Ended, ENDED)),
            sent = retry::send(upstream, &message, &mut tally) => sent?,
        };
        let status = response.status();
        if status.is_redirection() {
            tally.unused();
            let message = "the provider answered with a redirect, which is not followed; is its base_url right?";
            return Err(Refusal::new(Reason::Upstream, message));
        }
        headers::outward(response.headers_mut());
        let mask = admitted.mask();
        if let Some(mask) = &mask {
            mask.clean(response.headers_mut());
        }
        tally.answered(status.as_u16(), api, is_stream(response.headers()));
        Ok(response.map(|body| Body::new(Metered::new(body, tally, ended, place, mask))))
    }

    fn admit(
        &self,
        live: Arc<Live>,
        caller: &Caller,
        method: &Method,
        uri: &Uri,
        given: &HeaderMap,
    ) -> Result<Admitted, Refusal> {
        let Some((name, path)) = split(uri) else {
            return Err(Refusal::new(Reason::NotFound, "models answer at /provider/v1/NAME/..."));
        };
        let target = live.providers.get(name).cloned();
        let google = target.as_ref().is_some_and(|target| target.takes_key_in_query());
        let (query, key) = match uri.query() {
            Some(query) if google => {
                let (rest, key) = headers::take_key(query);
                ((!rest.is_empty()).then_some(rest), key)
            }
            query => (query.map(str::to_owned), None),
        };
        let mut presented = headers::presented(given).chain(key);
        let token = presented.find_map(|presented| self.tokens.check(presented)).ok_or_else(|| {
            let message = "a policy token is needed, and this is none, or it has expired or was revoked; \
                           in a sandbox the variables hold one, elsewhere see nacre provider token create";
            Refusal::new(Reason::Unauthorized, message)
        })?;
        if !token.works_in(caller.sandbox().map(|id| &**id)) {
            let message =
                "this policy token belongs to another place: it works in its own sandbox only";
            return Err(Refusal::new(Reason::Unauthorized, message));
        }
        let of_sandbox = &live.sandbox.providers;
        let for_all = !token.row.automatic || of_sandbox.is_empty();
        let for_it = for_all || of_sandbox.iter().any(|allowed| allowed == name);
        let target = target.filter(|_| for_it && token.allows_provider(name)).ok_or_else(|| {
            let message =
                format!("there is no provider \"{}\" for this policy token", loggable(name));
            Refusal::new(Reason::NotFound, message)
        })?;
        let plain = is_plain(path);
        let allowed = target.provider.paths.iter().any(|rule| rule.allows(method, path));
        if !plain || !allowed || !token.allows_path(method, path) {
            let message = format!(
                "{method} {} is not among the calls that may be made to {name}; paths in [provider.{name}] lists them",
                loggable(path)
            );
            return Err(Refusal::new(Reason::Forbidden, message));
        }
        if let Err(why) = &target.provider.key {
            let message = format!("{name} cannot be used: {why}");
            return Err(Refusal::new(Reason::Upstream, message));
        }
        Ok(Admitted { live, target, token, method: method.clone(), path: path.to_owned(), query })
    }

    /// From here on the call counts.
    fn open(
        &self,
        admitted: &Admitted,
        api: Api,
        ask: &Ask,
        accounts: &[(Account, Limits)],
        body: &[u8],
    ) -> Result<(Tally, Opened), Refusal> {
        let Admitted { live, target, token, .. } = admitted;
        let price = if api == Api::Free {
            Default::default()
        } else {
            target.provider.prices.of_any(ask.models())
        };
        let opened = self.book.open(&Opening {
            token: &token.id,
            token_name: &token.row.name,
            of_run: token.row.scope.run.is_some(),
            token_ended: &token.ended,
            provider: &target.name,
            accounts,
            requests_per_minute: admitted.requests_per_minute(),
            reservation: ask.reservation(price),
            now: now_ms(),
        })?;
        let tally = Tally {
            book: self.book.clone(),
            ledger: self.ledger.clone(),
            counters: self.counters.clone(),
            number: opened.number,
            row: None,
            price,
            most: ask.most(),
            began: Instant::now(),
            state: State::Unsent,
            bodies: live.keep_bodies.then(|| Bodies::of(body)),
        };
        Ok((tally, opened))
    }

    /// Why it was not made goes into the record, and to whoever gave the token away.
    fn note(&self, admitted: &Admitted, ask: &Ask, refusal: &Refusal) {
        let token = &admitted.token;
        if refusal.reason == Reason::Budget {
            token.is_spent(Some(&refusal.message));
        }
        let (Reason::Budget | Reason::Rate | Reason::Stopped | Reason::Forbidden) = refusal.reason
        else {
            return;
        };
        let Admitted { target, path, .. } = admitted;
        let (scope, provider) = (&token.row.scope, &target.name);
        let refused =
            Refused::of(refusal.reason, now_ms(), &token.id, scope, provider, &ask.model, path);
        let noted = self.refusals.note(&self.ledger, &token.id, provider, refusal.reason, refused);
        if let Err(error) = noted {
            tracing::error!(%error, "a refused model call was not written down");
        }
    }

    fn write(
        &self,
        admitted: &Admitted,
        ask: &Ask,
        tally: &Tally,
        body: &[u8],
    ) -> Result<i64, Refusal> {
        let scope = &admitted.token.row.scope;
        let begun = Begun {
            at: now_ms(),
            token: admitted.token.row.id.clone(),
            sandbox: scope.sandbox.clone(),
            run: scope.run.clone(),
            conversation: scope.conversation.clone(),
            provider: admitted.target.provider.name.clone(),
            model: ask.model.clone(),
            path: admitted.path.clone(),
            input: tally.most.input,
            output: tally.most.output,
            nanodollars: ask.reservation(tally.price).dollars.0,
            request_hash: Sha256::digest(body).into(),
        };
        self.ledger.begin(begun).map_err(|error| Refusal::new(Reason::Busy, error.message))
    }
}

impl Admitted {
    fn check_models(&self, ask: &Ask) -> Result<(), Refusal> {
        ask.models().try_for_each(|model| self.check_model(model))
    }

    /// What keeps the key out of answers.
    fn mask(&self) -> Option<Mask> {
        Mask::of(self.target.provider.key.as_ref().ok()?.as_ref()?)
    }

    fn check_model(&self, model: &str) -> Result<(), Refusal> {
        let named = &self.target.provider.models;
        let provider = named.is_empty() || named.iter().any(|allowed| glob(allowed, model));
        let of_sandbox = &self.live.sandbox.models;
        let sandbox = !self.token.row.automatic
            || of_sandbox.is_empty()
            || of_sandbox.iter().any(|allowed| glob(allowed, model));
        // A list names no model, and is of all of them.
        if model.is_empty() || (provider && sandbox && self.token.allows_model(model)) {
            return Ok(());
        }
        let by = match (provider, sandbox) {
            (false, _) => "the list of models of this provider in nacre.toml",
            (true, false) => "[models.sandbox] in nacre.toml",
            (true, true) => "this policy token",
        };
        let message = format!("{by} does not allow the model \"{}\"", loggable(model));
        Err(Refusal::new(Reason::Forbidden, message))
    }

    /// What holds for the commands of sandboxes is read when they call, so that it can be changed.
    fn requests_per_minute(&self) -> Option<u32> {
        match self.token.row.automatic {
            true => self.live.sandbox.requests_per_minute,
            false => self.token.row.scope.requests_per_minute,
        }
    }

    /// What the call is charged to, and how much there is.
    fn accounts(&self) -> Vec<(Account, Limits)> {
        let mut accounts = vec![
            (Account::Token(self.token.id.clone()), self.token.limits),
            (Account::Day, self.live.day),
            (Account::Provider(self.target.name.clone()), self.target.provider.day),
        ];
        if let Some(id) = &self.token.row.scope.sandbox {
            accounts.push((Account::Sandbox(id.as_str().into()), self.live.sandbox.day));
        }
        accounts
    }

    /// What the provider is asked for. The host is not in it: that was decided before.
    fn uri(&self) -> Result<Uri, Refusal> {
        let prefix = &self.target.provider.base.prefix;
        let text = match &self.query {
            Some(query) => format!("{prefix}/{}?{query}", self.path),
            None => format!("{prefix}/{}", self.path),
        };
        let path = PathAndQuery::try_from(text)
            .map_err(|_| Refusal::new(Reason::Invalid, "the address cannot be passed on"))?;
        Ok(Uri::from(path))
    }
}

/// Comes to its end when the call has to: it is stopped, or its token is revoked or expires.
async fn over(end: CancellationToken, expires_at: Option<u64>) {
    let Some(at) = expires_at else { return end.cancelled().await };
    let left = Duration::from_millis(at.saturating_sub(now_ms()));
    // Either is the end.
    let _ = tokio::time::timeout(left, end.cancelled()).await;
}

/// The provider's name and what follows it, of an address that is a path.
fn split(uri: &Uri) -> Option<(&str, &str)> {
    if uri.authority().is_some() {
        return None;
    }
    uri.path().strip_prefix(PREFIX)?.split_once('/')
}

fn is_stream(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream"))
}

/// What somebody else wrote, short and in one line.
fn loggable(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_debug).collect()
}
