//! Tokens for programs, in memory as the sessions are: whole, so that checking one never waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use http::Method;
use nacre_wire::access::{CreateToken, MadeToken, Scope, TokenInfo};
use nacre_wire::{ApiError, ErrorKind};
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::routes::{Owner, Part, Role};
use crate::sandboxes::errors;
use crate::secret::{Secret, SecretHash, random_id};
use crate::store::{Store, StoreError, TokenRow};

/// What every token begins with, so that one that lies about is recognised.
pub(crate) const PREFIX: &str = "nacre_";
const LONGEST_NAME: usize = 64;
const MOST: usize = 500;

#[derive(Debug)]
pub(crate) struct Token {
    row: TokenRow,
    used_at: AtomicU64,
    /// What the database knows of that.
    noted_at: AtomicU64,
    ended: CancellationToken,
}

impl Token {
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Whether it may ask this. A socket is never only reading.
    pub(crate) fn allows(&self, owner: Owner, method: &Method, upgrade: bool) -> bool {
        let reads = matches!(*method, Method::GET | Method::HEAD) && !upgrade;
        self.row.scopes.iter().any(|scope| match (scope, owner) {
            (Scope::Admin, _) => true,
            (Scope::Live, Owner::Role(Role::Live)) | (Scope::Dev, Owner::Role(Role::Dev)) => true,
            (Scope::Dev, Owner::Gateway(Part::Slash)) => true,
            (Scope::Live | Scope::Dev, _) => false,
            (Scope::Read, _) => reads,
        })
    }

    fn is_over(&self, now: u64) -> bool {
        self.row.expires_at.is_some_and(|at| at <= now)
    }

    fn info(&self) -> TokenInfo {
        let used_at = self.used_at.load(Ordering::Relaxed);
        TokenInfo {
            id: self.row.id.clone(),
            name: self.row.name.clone(),
            scopes: self.row.scopes.clone(),
            created_at: self.row.created_at,
            expires_at: self.row.expires_at,
            used_at: (used_at > 0).then_some(used_at),
        }
    }
}

pub(crate) struct Tokens {
    store: Store,
    table: RwLock<HashMap<SecretHash, Arc<Token>>>,
}

impl Tokens {
    pub(crate) async fn load(store: Store) -> Result<Self, StoreError> {
        let rows = store.tokens().await?;
        let table = rows.into_iter().map(|row| (row.hash, Arc::new(token(row)))).collect();
        Ok(Self { store, table: RwLock::new(table) })
    }

    pub(crate) fn check(&self, text: &str) -> Option<Arc<Token>> {
        let hash = SecretHash::of(text);
        let token = self.table.read().unwrap_or_else(PoisonError::into_inner).get(&hash)?.clone();
        let now = now_ms();
        if token.is_over(now) || token.ended.is_cancelled() {
            return None;
        }
        token.used_at.store(now, Ordering::Relaxed);
        Some(token)
    }

    pub(crate) async fn create(&self, wanted: CreateToken) -> Result<MadeToken, ApiError> {
        check_wanted(&wanted)?;
        if self.all().len() >= MOST {
            return Err(ApiError::new(ErrorKind::InvalidRequest, "there are too many tokens")
                .hint("revoke some: nacre token list"));
        }
        let failed = |error| ApiError::io("random numbers", &error);
        let secret = Secret::generate().map_err(failed)?;
        let secret = secret.named(PREFIX);
        let mut scopes = wanted.scopes;
        scopes.sort_unstable();
        scopes.dedup();
        let now = now_ms();
        let row = TokenRow {
            id: random_id("t-").map_err(failed)?,
            hash: secret.hash(),
            name: wanted.name,
            scopes,
            created_at: now,
            expires_at: wanted.expires_in_s.map(|s| now.saturating_add(s.saturating_mul(1000))),
            used_at: None,
        };
        if !self.store.add_token(row.clone()).await.map_err(errors::from_store)? {
            let message = format!("there is a token \"{}\" already", row.name.escape_debug());
            return Err(ApiError::new(ErrorKind::Exists, message)
                .hint("choose another name, or revoke it: nacre token list"));
        }
        let made = Arc::new(token(row));
        let info = made.info();
        self.write(|table| table.insert(made.row.hash, made));
        Ok(MadeToken { info, token: secret.reveal().to_owned() })
    }

    /// By id or by name; the one it was.
    pub(crate) async fn revoke(&self, which: &str) -> Result<TokenInfo, ApiError> {
        let found = self.all().into_iter().find(|t| t.row.id == which || t.row.name == which);
        let token = found.ok_or_else(|| {
            let message = format!("there is no token \"{}\"", which.escape_debug());
            ApiError::new(ErrorKind::NotFound, message).hint("see nacre token list")
        })?;
        let ids = vec![token.row.id.clone()];
        self.store.remove_tokens(ids).await.map_err(errors::from_store)?;
        self.forget(std::slice::from_ref(&token));
        Ok(token.info())
    }

    /// Oldest first.
    pub(crate) fn list(&self) -> Vec<TokenInfo> {
        let mut all: Vec<_> = self.all().iter().map(|token| token.info()).collect();
        all.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        all
    }

    /// Forgets all of them; the database has already.
    pub(crate) fn clear(&self) {
        let all = self.all();
        self.forget(&all);
    }

    /// Ends what is over, and writes down what was used.
    pub(crate) async fn sweep(&self) -> Result<(), StoreError> {
        let now = now_ms();
        let (over, good): (Vec<_>, Vec<_>) =
            self.all().into_iter().partition(|token| token.is_over(now));
        if !over.is_empty() {
            self.forget(&over);
            self.store.remove_tokens(over.iter().map(|t| t.row.id.clone()).collect()).await?;
        }
        let mut used = Vec::new();
        for token in &good {
            let at = token.used_at.load(Ordering::Relaxed);
            if token.noted_at.swap(at, Ordering::Relaxed) != at {
                used.push((token.row.id.clone(), at));
            }
        }
        if used.is_empty() { Ok(()) } else { self.store.tokens_used(used).await }
    }

    fn all(&self) -> Vec<Arc<Token>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.values().cloned().collect()
    }

    fn forget(&self, tokens: &[Arc<Token>]) {
        self.write(|table| table.retain(|_, kept| !tokens.iter().any(|t| Arc::ptr_eq(t, kept))));
        for token in tokens {
            token.ended.cancel();
        }
    }

    fn write<T>(&self, change: impl FnOnce(&mut HashMap<SecretHash, Arc<Token>>) -> T) -> T {
        change(&mut self.table.write().unwrap_or_else(PoisonError::into_inner))
    }
}

fn token(row: TokenRow) -> Token {
    let [used_at, noted_at] = [(); 2].map(|()| AtomicU64::new(row.used_at.unwrap_or(0)));
    Token { row, used_at, noted_at, ended: CancellationToken::new() }
}

fn check_wanted(wanted: &CreateToken) -> Result<(), ApiError> {
    let refused = |why: &str, hint: &str| {
        Err(ApiError::new(ErrorKind::InvalidRequest, why.to_owned()).hint(hint))
    };
    let name = &wanted.name;
    if name.trim().is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return refused(
            "a token needs a name",
            "one line of at most 64 bytes that says what it is for",
        );
    }
    if wanted.scopes.is_empty() {
        return refused("a token needs a scope", "read, live, dev or admin");
    }
    if wanted.expires_in_s == Some(0) {
        return refused("this token would have expired already", "leave the time out, or name one");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tokens() -> (tempfile::TempDir, Tokens) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        let tokens = Tokens::load(store).await.unwrap();
        (dir, tokens)
    }

    fn wanted(name: &str, scopes: &[Scope]) -> CreateToken {
        CreateToken { name: name.to_owned(), scopes: scopes.to_vec(), expires_in_s: None }
    }

    #[tokio::test]
    async fn a_token_is_shown_once_kept_hashed_and_ends_when_revoked() {
        let (dir, tokens) = tokens().await;
        let made = tokens.create(wanted("ci", &[Scope::Read])).await.unwrap();
        assert!(made.token.starts_with(PREFIX) && made.token.len() == PREFIX.len() + 64);
        let token = tokens.check(&made.token).unwrap();
        assert!(tokens.check(&made.token[..60]).is_none());
        tokens.sweep().await.unwrap();
        let database = std::fs::read(dir.path().join("control.db-wal")).unwrap();
        let secret = made.token.strip_prefix(PREFIX).unwrap().as_bytes();
        assert!(!database.windows(secret.len()).any(|window| window == secret));

        let again = Tokens::load(tokens.store.clone()).await.unwrap();
        assert!(again.check(&made.token).is_some());
        tokens.revoke("ci").await.unwrap();
        assert!(tokens.check(&made.token).is_none() && token.ended().is_cancelled());
        assert_eq!(tokens.revoke("ci").await.unwrap_err().kind, ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn a_token_ends_at_its_time() {
        let (_dir, tokens) = tokens().await;
        let soon = CreateToken { expires_in_s: Some(1), ..wanted("soon", &[Scope::Read]) };
        let made = tokens.create(soon).await.unwrap();
        let token = tokens.check(&made.token).unwrap();
        let began = std::time::Instant::now();
        while tokens.check(&made.token).is_some() {
            assert!(began.elapsed() < std::time::Duration::from_secs(10));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        tokens.sweep().await.unwrap();
        assert!(token.ended().is_cancelled(), "what it has open goes");
        assert_eq!(tokens.list(), []);
        assert_eq!(tokens.store.tokens().await.unwrap(), []);
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_refused() {
        let (_dir, tokens) = tokens().await;
        tokens.create(wanted("a", &[Scope::Admin])).await.unwrap();
        let again = tokens.create(wanted("a", &[Scope::Read])).await;
        assert_eq!(again.unwrap_err().kind, ErrorKind::Exists);
        assert!(tokens.create(wanted("", &[Scope::Read])).await.is_err());
        assert!(tokens.create(wanted("b\n", &[Scope::Read])).await.is_err());
        assert!(tokens.create(wanted("b", &[])).await.is_err());
        let over = CreateToken { expires_in_s: Some(0), ..wanted("b", &[Scope::Read]) };
        assert!(tokens.create(over).await.is_err());
    }

    #[test]
    fn a_scope_is_what_it_says() {
        let allows = |scope: Scope, owner: Owner, method: Method, upgrade: bool| {
            let row = TokenRow {
                id: String::new(),
                hash: SecretHash([0; 32]),
                name: String::new(),
                scopes: vec![scope],
                created_at: 0,
                expires_at: None,
                used_at: None,
            };
            token(row).allows(owner, &method, upgrade)
        };
        let (live, dev) = (Owner::Role(Role::Live), Owner::Role(Role::Dev));
        let control = Owner::Gateway(Part::Control);
        for owner in [live, dev, control] {
            assert!(allows(Scope::Admin, owner, Method::DELETE, true));
            assert!(allows(Scope::Read, owner, Method::GET, false));
            assert!(!allows(Scope::Read, owner, Method::GET, true));
            assert!(!allows(Scope::Read, owner, Method::POST, false));
            assert_eq!(allows(Scope::Live, owner, Method::POST, true), owner == live);
            assert_eq!(allows(Scope::Dev, owner, Method::POST, true), owner == dev);
        }
    }
}
