//! Policy tokens, in memory as a whole, so that checking one never waits.
//!
//! A token is revoked in memory first and in the database after: from that moment it opens nothing,
//! and what it has under way ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use nacre_wire::models::PolicyScope;
use nacre_wire::{ApiError, ErrorKind};
use tokio_util::sync::CancellationToken;

use super::book::Book;
use super::money::{Dollars, Limits};
use super::paths::{PathRule, glob};
use crate::clock::now_ms;
use crate::sandboxes::errors;
use crate::secret::{Secret, SecretHash, random_id};
use crate::store::{PolicyTokenRow, Store, StoreError};

/// What every one begins with, so that one that lies about is recognised.
pub(crate) const PREFIX: &str = "nacre_model_";
const LONGEST_NAME: usize = 64;
const MOST: usize = 10_000;

#[derive(Debug)]
pub(crate) struct PolicyToken {
    pub(crate) id: Arc<str>,
    pub(crate) row: PolicyTokenRow,
    pub(crate) limits: Limits,
    paths: Vec<PathRule>,
    pub(crate) ended: CancellationToken,
    /// The words of the last call, when no budget was left for it.
    spent: Mutex<Option<String>>,
}

impl PolicyToken {
    fn new(row: PolicyTokenRow) -> Result<Self, String> {
        let scope = &row.scope;
        let paths =
            scope.paths.iter().map(|path| PathRule::parse(path)).collect::<Result<_, _>>()?;
        let dollars = match scope.dollars {
            None => None,
            Some(amount) => {
                Some(Dollars::new(amount).ok_or(format!("{amount} is not an amount of dollars"))?)
            }
        };
        let limits = Limits { tokens: scope.tokens, dollars };
        let ended = CancellationToken::new();
        let spent = Mutex::default();
        Ok(Self { id: row.id.as_str().into(), limits, paths, ended, spent, row })
    }

    pub(crate) fn is_spent(&self, words: Option<&str>) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) = words.map(str::to_owned);
    }

    pub(crate) fn spent(&self) -> Option<String> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn allows_provider(&self, name: &str) -> bool {
        let named = &self.row.scope.providers;
        named.is_empty() || named.iter().any(|allowed| allowed == name)
    }

    pub(crate) fn allows_model(&self, model: &str) -> bool {
        let named = &self.row.scope.models;
        named.is_empty() || named.iter().any(|allowed| glob(allowed, model))
    }

    pub(crate) fn allows_path(&self, method: &http::Method, path: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|rule| rule.allows(method, path))
    }

    /// One that is bound to a sandbox works in that one only.
    pub(crate) fn works_in(&self, sandbox: Option<&str>) -> bool {
        self.row.scope.sandbox.as_deref().is_none_or(|bound| sandbox == Some(bound))
    }

    fn is_over(&self, now: u64) -> bool {
        self.row.expires_at.is_some_and(|at| at <= now)
    }
}

/// Which tokens are meant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which<'a> {
    /// By id or name.
    Named(&'a str),
    Run(&'a str),
    Conversation(&'a str),
    Sandbox(&'a str),
    /// What the commands of a sandbox were given.
    AutomaticOf(&'a str),
}

impl Which<'_> {
    fn is(self, row: &PolicyTokenRow) -> bool {
        let scope = &row.scope;
        match self {
            Self::Named(name) => row.id == name || row.name == name,
            Self::Run(run) => scope.run.as_deref() == Some(run),
            Self::Conversation(id) => scope.conversation.as_deref() == Some(id),
            Self::Sandbox(id) => scope.sandbox.as_deref() == Some(id),
            Self::AutomaticOf(id) => row.automatic && scope.sandbox.as_deref() == Some(id),
        }
    }
}

pub(crate) struct Tokens {
    store: Store,
    book: Arc<Book>,
    table: RwLock<HashMap<SecretHash, Arc<PolicyToken>>>,
}

/// What a token is made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mint {
    pub(crate) name: String,
    pub(crate) scope: PolicyScope,
    pub(crate) lives_ms: Option<u64>,
    pub(crate) automatic: bool,
}

impl Tokens {
    pub(crate) async fn load(store: Store, book: Arc<Book>) -> Result<Self, StoreError> {
        let mut table = HashMap::new();
        for row in store.policy_tokens().await? {
            let (id, hash) = (row.id.clone(), row.hash);
            match PolicyToken::new(row) {
                Ok(token) => drop(table.insert(hash, Arc::new(token))),
                Err(why) => {
                    tracing::error!(id, why, "a policy token cannot be read, and opens nothing")
                }
            }
        }
        Ok(Self { store, book, table: RwLock::new(table) })
    }

    /// The one that this opens, if it is still good.
    pub(crate) fn check(&self, presented: &str) -> Option<Arc<PolicyToken>> {
        if !presented.starts_with(PREFIX) {
            return None;
        }
        let hash = SecretHash::of(presented);
        let token = self.read().get(&hash).cloned()?;
        (!token.is_over(now_ms()) && !token.ended.is_cancelled()).then_some(token)
    }

    /// Oldest first, without those that have expired.
    pub(crate) fn list(&self) -> Vec<Arc<PolicyToken>> {
        let now = now_ms();
        let mut all: Vec<_> =
            self.read().values().filter(|token| !token.is_over(now)).cloned().collect();
        all.sort_by(|a, b| (a.row.created_at, &a.row.id).cmp(&(b.row.created_at, &b.row.id)));
        all
    }

    /// The token itself is returned once and kept nowhere.
    pub(crate) async fn mint(&self, wanted: Mint) -> Result<(Arc<PolicyToken>, Secret), ApiError> {
        let invalid = |why: String| ApiError::new(ErrorKind::InvalidRequest, why);
        if wanted.name.chars().count() > LONGEST_NAME || wanted.name.chars().any(char::is_control) {
            return Err(invalid(format!("a name has at most {LONGEST_NAME} characters")));
        }
        self.sweep().await?;
        if self.read().len() >= MOST {
            let message = format!("there are {MOST} policy tokens already");
            return Err(ApiError::new(ErrorKind::NoSpace, message).hint("revoke some of them"));
        }
        let random = |error: std::io::Error| ApiError::io("random numbers", &error);
        let secret = Secret::generate().map_err(random)?.named(PREFIX);
        let now = now_ms();
        let row = PolicyTokenRow {
            id: random_id("pt-").map_err(random)?,
            hash: secret.hash(),
            name: wanted.name,
            automatic: wanted.automatic,
            scope: wanted.scope,
            created_at: now,
            expires_at: wanted.lives_ms.map(|lives| now.saturating_add(lives)),
        };
        let token = Arc::new(PolicyToken::new(row.clone()).map_err(invalid)?);
        self.store.add_policy_token(row).await.map_err(errors::from_store)?;
        self.write().insert(token.row.hash, token.clone());
        Ok((token, secret))
    }

    /// Returns those that it ended. At once: the database follows.
    pub(crate) async fn revoke(&self, which: Which<'_>) -> Result<Vec<Arc<PolicyToken>>, ApiError> {
        let ended = self.take(|token| which.is(&token.row));
        self.forget(&ended).await?;
        Ok(ended)
    }

    async fn sweep(&self) -> Result<(), ApiError> {
        let now = now_ms();
        let over = self.take(|token| token.is_over(now));
        self.forget(&over).await
    }

    fn take(&self, which: impl Fn(&PolicyToken) -> bool) -> Vec<Arc<PolicyToken>> {
        let taken: Vec<_> = {
            let mut table = self.write();
            table.extract_if(|_, token| which(token)).map(|(_, token)| token).collect()
        };
        for token in &taken {
            token.ended.cancel();
            self.book.end_token(&token.id);
            self.book.forget(&token.id);
        }
        taken
    }

    async fn forget(&self, tokens: &[Arc<PolicyToken>]) -> Result<(), ApiError> {
        if tokens.is_empty() {
            return Ok(());
        }
        let ids = tokens.iter().map(|token| token.row.id.clone()).collect();
        self.store.remove_policy_tokens(ids).await.map_err(errors::from_store)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<SecretHash, Arc<PolicyToken>>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<SecretHash, Arc<PolicyToken>>> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tokens(dir: &std::path::Path) -> Tokens {
        let store = Store::open(&dir.join("control.db")).unwrap();
        Tokens::load(store, Arc::default()).await.unwrap()
    }

    fn mint(change: impl FnOnce(&mut Mint)) -> Mint {
        let mut wanted = Mint { name: "a".to_owned(), ..Mint::default() };
        change(&mut wanted);
        wanted
    }

    #[tokio::test]
    async fn a_token_is_known_by_its_hash_also_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (made, secret) = tokens(dir.path()).await.mint(mint(|_| ())).await.unwrap();
        let again = tokens(dir.path()).await;
        assert_eq!(again.check(secret.reveal()).unwrap().row, made.row);
        assert!(again.check(&secret.reveal().replace("nacre_model_", "")).is_none());
        assert!(again.check("nacre_model_wrong").is_none());
        let raw = std::fs::read(dir.path().join("control.db-wal")).unwrap_or_default();
        let found =
            raw.windows(secret.reveal().len()).any(|part| part == secret.reveal().as_bytes());
        assert!(!found, "it is on disk");
    }

    #[tokio::test]
    async fn one_that_is_over_opens_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(dir.path()).await;
        let (_, over) = tokens.mint(mint(|wanted| wanted.lives_ms = Some(0))).await.unwrap();
        assert!(tokens.check(over.reveal()).is_none());
        assert_eq!(tokens.list().len(), 0);
    }

    #[tokio::test]
    async fn those_of_a_run_end_together_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(dir.path()).await;
        let run = |run: &str| mint(|wanted| wanted.scope.run = Some(run.to_owned()));
        let (_, first) = tokens.mint(run("r1")).await.unwrap();
        let (_, second) = tokens.mint(run("r1")).await.unwrap();
        let (_, other) = tokens.mint(run("r2")).await.unwrap();
        assert_eq!(tokens.revoke(Which::Run("r1")).await.unwrap().len(), 2);
        assert!(tokens.check(first.reveal()).is_none() && tokens.check(second.reveal()).is_none());
        assert!(tokens.check(other.reveal()).is_some());
        assert_eq!(tokens.revoke(Which::Conversation("c")).await.unwrap().len(), 0);
    }

    #[tokio::test]
    async fn what_cannot_be_meant_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = tokens(dir.path()).await;
        let bad = [
            mint(|wanted| wanted.scope.dollars = Some(-1.0)),
            mint(|wanted| wanted.scope.paths = vec!["../files".to_owned()]),
            mint(|wanted| wanted.name = "x".repeat(65)),
        ];
        for wanted in bad {
            assert_eq!(tokens.mint(wanted).await.unwrap_err().kind, ErrorKind::InvalidRequest);
        }
    }
}
