//! Models as a sandbox sees them: what its supervisor is told, and the connections of its processes.
//!
//! A [`Guest`] lives as long as its sandbox's supervisor runs. What comes over it is from whoever
//! runs in the sandbox, so it leads to models and nowhere else, and everything is bounded.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioIo, TokioTimer};
use nacre_wire::models::{AskEnvironment, GuestEnvironment, PROTOCOL};
use nacre_wire::{ApiError, ErrorKind};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

use super::tokens::{Mint, Which};
use super::{Caller, Models, environment};
use crate::host::switch;
use crate::secret::hex;
use crate::web::reply;

/// Connections that the processes of one sandbox may have open.
const CONNECTIONS: usize = 256;
/// A connection that says nothing is let go.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a question waits for something new.
const NEWS: Duration = Duration::from_secs(60);

/// One sandbox, while it runs.
pub(crate) struct Guest {
    id: Arc<str>,
    models: Arc<Models>,
    /// The one-shot run that the sandbox was made for.
    run: Option<Arc<str>>,
    connections: Arc<Semaphore>,
    /// Cancelled when the sandbox stops.
    end: CancellationToken,
    /// The token of its commands. Kept in memory only.
    token: Mutex<Option<String>>,
    /// Whether its supervisor has what there is.
    told: watch::Sender<bool>,
}

impl Guest {
    pub(crate) fn new(
        models: Arc<Models>,
        id: &str,
        run: Option<Arc<str>>,
        end: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: id.into(),
            models,
            run,
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
            end,
            token: Mutex::default(),
            told: watch::channel(false).0,
        })
    }

    pub(crate) fn told(&self) -> watch::Receiver<bool> {
        self.told.subscribe()
    }

    /// What every command should get, as soon as it is something new.
    pub(crate) async fn environment(
        &self,
        asked: AskEnvironment,
    ) -> Result<GuestEnvironment, ApiError> {
        let mut changed = self.models.changed.subscribe();
        let waited = tokio::time::sleep(NEWS);
        tokio::pin!(waited);
        loop {
            changed.borrow_and_update();
            let current = self.current(asked.token.as_deref()).await?;
            if asked.version.as_ref() != Some(&current.version) {
                return Ok(current);
            }
            self.told.send_replace(true);
            tokio::select! {
                changed = changed.changed() => match changed {
                    Ok(()) => {}
                    Err(_) => return Ok(current),
                },
                () = &mut waited => return Ok(current),
            }
        }
    }

    async fn current(&self, held: Option<&str>) -> Result<GuestEnvironment, ApiError> {
        match self.run.as_deref().and_then(|run| self.models.of_run(run)) {
            // What a run may use is what its commands find, and there is no second token beside it.
            Some((provider, token)) => {
                let providers: Vec<_> =
                    provider.iter().map(|(name, kind)| (&**name, *kind)).collect();
                let variables = environment::variables(&providers, token.as_deref().unwrap_or(""));
                Ok(told(variables, token))
            }
            None => self.as_any_other(held).await,
        }
    }

    async fn as_any_other(&self, held: Option<&str>) -> Result<GuestEnvironment, ApiError> {
        let live = self.models.live();
        let allowed = &live.sandbox.providers;
        let providers: Vec<_> = live
            .providers
            .values()
            .filter(|target| allowed.is_empty() || allowed.contains(&target.provider.name))
            .map(|target| (&*target.name, target.provider.kind))
            .collect();
        let token = match providers.is_empty() {
            true => None,
            false => Some(self.token(held).await?),
        };
        let variables = environment::variables(&providers, token.as_deref().unwrap_or_default());
        Ok(told(variables, token))
    }

    /// The one that its processes have, as long as that is good: after a restart of the gateway only
    /// the supervisor knows it.
    async fn token(&self, held: Option<&str>) -> Result<String, ApiError> {
        let tokens = &self.models.tokens;
        let good = |text: &str| {
            let token = tokens.check(text)?;
            (token.row.automatic && token.row.scope.sandbox.as_deref() == Some(&*self.id))
                .then(|| text.to_owned())
        };
        let mut ours = self.token.lock().await;
        if let Some(token) = ours.as_deref().and_then(good).or(held.and_then(good)) {
            return Ok(ours.insert(token).clone());
        }
        // Those of before were for processes that are gone.
        tokens.revoke(Which::AutomaticOf(&self.id)).await?;
        let mut wanted = Mint { name: "sandbox".to_owned(), automatic: true, ..Mint::default() };
        wanted.scope.sandbox = Some(self.id.to_string());
        let (_, secret) = tokens.mint(wanted).await?;
        Ok(ours.insert(secret.reveal().to_owned()).clone())
    }

    /// Turns a connection of the way up into one of a process in the sandbox.
    pub(crate) fn connect(self: &Arc<Self>, request: Request<Body>) -> Response {
        let Ok(place) = self.connections.clone().try_acquire_owned() else {
            let message =
                format!("this sandbox has {CONNECTIONS} connections to models open already");
            return reply::error(&ApiError::new(ErrorKind::Unavailable, message));
        };
        let this = self.clone();
        switch(request, PROTOCOL, move |stream| this.serve(stream, place))
    }

    async fn serve(self: Arc<Self>, stream: TokioIo<Upgraded>, _place: OwnedSemaphorePermit) {
        let end = self.end.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let this = self.clone();
            async move {
                let caller = Caller::Sandbox(this.id.clone());
                Ok::<_, Infallible>(this.models.answer(caller, request.map(Body::new)).await)
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .serve_connection(stream.into_inner(), service);
        if let Some(Err(error)) = end.run_until_cancelled_owned(serving).await {
            tracing::debug!(%error, "a connection from a sandbox to models ended early");
        }
    }
}

fn told(variables: BTreeMap<String, String>, token: Option<String>) -> GuestEnvironment {
    let mut hash = Sha256::new();
    for (name, value) in &variables {
        hash.update(format!("{name}={value}\n"));
    }
    let version = hex(&hash.finalize()[..8]);
    GuestEnvironment { variables, token, version }
}
