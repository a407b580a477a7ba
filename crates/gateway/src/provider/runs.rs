//! What one-shot runs may use: a token for one model of one provider, within a budget, until the run
//! ends.
//!
//! The commands of a run's sandbox find this token where those of others find theirs. There is never
//! another one in that sandbox while the run goes on, so nothing in it gets past the budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nacre_wire::models::{PolicyScope, UsageBy};
use nacre_wire::{ApiError, ErrorKind};

use super::book::Account;
use super::config::Kind;
use super::paths::glob;
use super::tokens::{Mint, PolicyToken, Which};
use super::{Dollars, Models};
use crate::clock::now_ms;
use crate::secret::Secret;

/// No agent is to ask for more tokens in one reply. By itself, Claude Code asks for as many.
pub(crate) const LONGEST_REPLY: u64 = 32_000;
/// Our own agent goes on with less by itself when not even this fits.
const SHORTEST_REPLY: u64 = 1_024;

/// The most that our own agent asks for in one reply, of what is affordable. Only Anthropic has to be told a
/// number, and what is not asked for is not set aside.
pub(crate) fn longest(kind: Kind, affordable: Option<u64>) -> Option<u32> {
    let reply = affordable.filter(|_| kind == Kind::Anthropic)?;
    u32::try_from(reply.clamp(SHORTEST_REPLY, LONGEST_REPLY)).ok()
}

/// `provider/model`, found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) provider: Arc<str>,
    pub(crate) kind: Kind,
    pub(crate) model: String,
}

impl std::fmt::Display for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// What a run is to be given.
pub(crate) struct Grant<'a> {
    pub(crate) run: &'a str,
    /// By id.
    pub(crate) sandbox: &'a str,
    /// No model at all, when absent.
    pub(crate) model: Option<&'a Chosen>,
    pub(crate) dollars: Option<f64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) lives: Duration,
}

/// What it was given.
#[derive(Clone)]
pub(crate) struct RunGrant {
    token: Option<Arc<PolicyToken>>,
    secret: Option<Secret>,
    reply: Option<u64>,
}

impl RunGrant {
    /// Opens the model, from inside of the run's sandbox.
    pub(crate) fn secret(&self) -> Option<&str> {
        self.secret.as_ref().map(Secret::reveal)
    }

    /// Tokens of a reply that costs a third of the budget: what is asked and the next call fit beside it.
    /// `None` when there is no end to it.
    pub(crate) fn reply(&self) -> Option<u64> {
        self.reply
    }

    /// What the last call was told, when there was no budget left for it.
    pub(crate) fn spent(&self) -> Option<String> {
        self.token.as_ref()?.spent()
    }
}

/// By run.
#[derive(Default)]
pub(super) struct Granted(Mutex<HashMap<String, Entry>>);

struct Entry {
    provider: Option<(Arc<str>, Kind)>,
    secret: Option<Secret>,
}

impl Granted {
    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type OfRun = (Option<(Arc<str>, Kind)>, Option<String>);

impl Models {
    /// Finds `provider/model`. What cannot work is said before anything is begun.
    pub(crate) fn choose(&self, text: &str) -> Result<Chosen, ApiError> {
        let invalid = |message: String| ApiError::new(ErrorKind::InvalidRequest, message);
        let Some((name, model)) = text.split_once('/').filter(|(_, model)| !model.is_empty())
        else {
            return Err(invalid(format!("\"{}\" is no model", text.escape_debug()))
                .hint("write it as PROVIDER/MODEL, such as openai/gpt-4o-mini"));
        };
        let live = self.live();
        let Some(target) = live.providers.get(name) else {
            let message = format!("there is no provider \"{}\"", name.escape_debug());
            return Err(invalid(message)
                .hint("nacre provider list shows them, nacre provider add makes one"));
        };
        if let Some(problem) = target.problem() {
            return Err(invalid(format!("the provider {name} cannot be used: {problem}"))
                .hint(format!("nacre provider test {name} tells more")));
        }
        let named = &target.provider.models;
        if !named.is_empty() && !named.iter().any(|allowed| glob(allowed, model)) {
            let message = format!("{name} may not be asked for \"{}\"", model.escape_debug());
            return Err(invalid(message).hint(format!(
                "models in [provider.{name}] of nacre.toml lists those that it may"
            )));
        }
        Ok(Chosen {
            provider: target.name.clone(),
            kind: target.provider.kind,
            model: model.to_owned(),
        })
    }

    /// Before the sandbox starts, so that its first command finds it.
    pub(crate) async fn grant_run(&self, wanted: Grant<'_>) -> Result<RunGrant, ApiError> {
        let grant = match wanted.model {
            None => RunGrant { token: None, secret: None, reply: None },
            Some(chosen) => {
                let scope = PolicyScope {
                    sandbox: Some(wanted.sandbox.to_owned()),
                    run: Some(wanted.run.to_owned()),
                    providers: vec![chosen.provider.to_string()],
                    models: vec![chosen.model.clone()],
                    dollars: wanted.dollars,
                    tokens: wanted.tokens,
                    ..PolicyScope::default()
                };
                let lives_ms = u64::try_from(wanted.lives.as_millis()).ok();
                let name = wanted.run.to_owned();
                let minted = self.tokens.mint(Mint { name, scope, lives_ms, automatic: false });
                let (token, secret) = minted.await?;
                let dollars = wanted.dollars.and_then(Dollars::new);
                let (provider, model) = (&chosen.provider, &chosen.model);
                let by_price = self.affordable_reply(provider, model, dollars);
                let by_tokens = wanted.tokens.map(|tokens| tokens / 3);
                let reply = by_price.into_iter().chain(by_tokens).min();
                RunGrant { token: Some(token), secret: Some(secret), reply }
            }
        };
        let provider = wanted.model.map(|chosen| (chosen.provider.clone(), chosen.kind));
        let entry = Entry { provider, secret: grant.secret.clone() };
        self.granted.table().insert(wanted.run.to_owned(), entry);
        Ok(grant)
    }

    /// Tokens of a reply that costs a third of so much.
    pub(super) fn affordable_reply(
        &self,
        provider: &str,
        model: &str,
        dollars: Option<Dollars>,
    ) -> Option<u64> {
        let live = self.live();
        let price = live.providers.get(provider)?.provider.prices.of(model);
        (dollars?.0 / 3).checked_div(price.output)
    }

    /// How many tokens a model can hear and say at once, where the owner has said so.
    pub(crate) fn window(&self, provider: &str, model: &str) -> Option<u64> {
        self.live().providers.get(provider)?.provider.bounds.window(model)
    }

    /// At once: what it has under way ends, and its sandbox gets nothing in its place.
    pub(crate) async fn end_run(&self, run: &str) {
        if let Some(entry) = self.granted.table().get_mut(run) {
            *entry = Entry { provider: None, secret: None };
        }
        if let Err(error) = self.tokens.revoke(Which::Run(run)).await {
            tracing::error!(%error, run, "the policy token of a run stays in control.db");
        }
    }

    /// When its sandbox is gone, or stays as one that gets what others have.
    pub(crate) fn forget_run(&self, run: &str) {
        if self.granted.table().remove(run).is_some() {
            self.changed.send_modify(|count| *count += 1);
        }
    }

    /// What commands of its sandbox find; `None` when the sandbox is not a run's.
    pub(super) fn of_run(&self, run: &str) -> Option<OfRun> {
        let table = self.granted.table();
        let entry = table.get(run)?;
        Some((entry.provider.clone(), entry.secret.as_ref().map(|it| it.reveal().to_owned())))
    }

    /// Tokens and dollars so far; what is under way counts as reserved.
    pub(crate) fn used_so_far(&self, grant: &RunGrant) -> (u64, f64) {
        let Some(token) = &grant.token else { return (0, 0.0) };
        let used = self.book.used(&Account::Token(token.id.clone()), now_ms());
        (used.tokens, used.dollars.as_f64())
    }

    /// The same from the record, which outlives the token.
    pub(crate) async fn used_by_run(&self, run: &str, since: u64) -> Option<(u64, Dollars)> {
        let report = self.ledger.usage(UsageBy::Run, since).await.ok()?;
        let row = report.rows.into_iter().find(|row| row.key == run)?;
        let tokens = row.input_tokens + row.cached_tokens + row.output_tokens;
        Some((tokens, Dollars::new(row.dollars)?))
    }
}
