//! Models for a conversation: a policy token of its own, so that budget, record and switch hold for it as
//! for anything else, and what it has cost.

use std::sync::Arc;

use nacre_wire::models::PolicyScope;
use nacre_wire::{ApiError, ErrorKind};

use super::Models;
use super::admin::no_provider;
use super::book::Account;
use super::config::Kind;
use super::money::Dollars;
use super::tokens::{Mint, PolicyToken, Which};
use crate::clock::now_ms;
use crate::secret::Secret;

/// What lets a conversation ask one model, while it is held.
pub(crate) struct Allowance {
    token: Arc<PolicyToken>,
    pub(crate) secret: Secret,
    /// What the conversation had cost before.
    before: Dollars,
}

impl Allowance {
    /// Whether it still opens anything: the owner may have revoked it.
    pub(crate) fn is_good(&self) -> bool {
        !self.token.ended.is_cancelled()
    }
}

/// Reads what a conversation has cost, without waiting.
#[derive(Clone)]
pub(crate) struct Meter {
    models: Arc<Models>,
    token: Arc<str>,
    before: Dollars,
}

impl Meter {
    pub(crate) fn new(models: Arc<Models>, allowance: &Allowance) -> Self {
        Self { models, token: allowance.token.id.clone(), before: allowance.before }
    }

    /// `None` while a call is under way, of which only the reservation is known.
    pub(crate) fn dollars(&self) -> Option<f64> {
        let used = self.models.book.settled(&self.token, now_ms())?;
        Some(Dollars(self.before.0.saturating_add(used.dollars.0)).as_f64())
    }
}

impl Models {
    /// `budget` is for as long as the conversation lives: what it cost before counts.
    pub(crate) async fn allow_conversation(
        &self,
        id: &str,
        provider: &str,
        model: &str,
        budget: Option<Dollars>,
    ) -> Result<Allowance, ApiError> {
        self.end_conversation(id).await?;
        let before = self.ledger.cost_of_conversation(id).await?;
        let left = budget.map(|budget| Dollars(budget.0.saturating_sub(before.0)));
        let scope = PolicyScope {
            conversation: Some(id.to_owned()),
            providers: vec![provider.to_owned()],
            models: vec![model.to_owned()],
            dollars: left.map(Dollars::as_f64),
            ..PolicyScope::default()
        };
        let name = format!("conversation {id}");
        let minted = self.tokens.mint(Mint { name, scope, ..Mint::default() });
        let (token, secret) = minted.await?;
        Ok(Allowance { token, secret, before })
    }

    /// What it has under way ends.
    pub(crate) async fn end_conversation(&self, id: &str) -> Result<(), ApiError> {
        self.tokens.revoke(Which::Conversation(id)).await.map(drop)
    }

    /// Tokens of a reply that costs a third of what is left of a conversation's budget.
    pub(crate) fn reply_of_conversation(
        &self,
        provider: &str,
        model: &str,
        allowance: &Allowance,
        budget: Option<Dollars>,
    ) -> Option<u64> {
        let used = self.book.used(&Account::Token(allowance.token.id.clone()), now_ms());
        let gone = allowance.before.0.saturating_add(used.dollars.0);
        let left = budget.map(|budget| Dollars(budget.0.saturating_sub(gone)));
        self.affordable_reply(provider, model, left)
    }

    /// The models of a provider that the owner has set a price for: those are known to be there.
    pub(crate) fn priced(&self, provider: &str) -> Vec<String> {
        let live = self.live();
        live.providers
            .get(provider)
            .map(|target| target.provider.prices.named())
            .unwrap_or_default()
    }

    /// Which API a provider speaks.
    pub(crate) fn kind_of(&self, provider: &str) -> Result<Kind, ApiError> {
        let live = self.live();
        let target = live.providers.get(provider).ok_or_else(|| no_provider(provider))?;
        match target.problem() {
            None => Ok(target.provider.kind),
            Some(why) => Err(ApiError::new(
                ErrorKind::Unavailable,
                format!("{provider} cannot be used: {why}"),
            )
            .hint("nacre provider list shows what is wrong")),
        }
    }
}
