//! The sessions, in memory: checking one is a hash and a look into a table, and never waits.
//!
//! ```text
//!  open ──▶ good ──▶ ended: revoked, unused for too long, or too old
//! ```
//!
//! The table is whole: what is not in it is no session, so a cookie that somebody made up costs no
//! read of the database. The database is written first. When a session ends, its token is cancelled,
//! and every connection that hangs on it goes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use nacre_wire::access::{SessionInfo, SignInMethod};
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::secret::{Secret, SecretHash, random_id};
use crate::store::{SessionRow, Store, StoreError};

/// More than these are not kept; the one that was not used for longest goes.
const MOST: usize = 200;
/// How precisely the last use is known: a request within this of the last notes nothing.
const SEEN_STEP_MS: u64 = 1000;
const LONGEST_AGENT: usize = 200;

/// When sessions end by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Without a request for this long.
    pub idle: Duration,
    /// However much it is used.
    pub absolute: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        Self { idle: DAY * 7, absolute: DAY * 30 }
    }
}

/// A browser that is signed in.
#[derive(Debug)]
pub(crate) struct Session {
    row: SessionRow,
    seen_at: AtomicU64,
    /// What the database knows of that.
    noted_at: AtomicU64,
    ended: CancellationToken,
}

impl Session {
    pub(crate) fn id(&self) -> &str {
        &self.row.id
    }

    pub(crate) fn hash(&self) -> SecretHash {
        self.row.hash
    }

    /// Cancelled when the session is over.
    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

/// Who signs in, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) method: SignInMethod,
    pub(crate) address: Option<String>,
    pub(crate) agent: Option<String>,
}

pub(crate) struct Sessions {
    store: Store,
    limits: SessionLimits,
    table: RwLock<HashMap<SecretHash, Arc<Session>>>,
}

impl Sessions {
    pub(crate) async fn load(store: Store, limits: SessionLimits) -> Result<Self, StoreError> {
        let rows = store.sessions().await?;
        let table = rows.into_iter().map(|row| (row.hash, Arc::new(session(row)))).collect();
        let sessions = Self { store, limits, table: RwLock::new(table) };
        sessions.sweep().await?;
        Ok(sessions)
    }

    /// The session that this is the secret of, if it is still good.
    pub(crate) fn check(&self, hash: SecretHash) -> Option<Arc<Session>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let session = table.get(&hash)?.clone();
        drop(table);
        let (now, seen) = (now_ms(), session.seen_at.load(Ordering::Relaxed));
        if self.expires_at(&session) <= now || session.ended.is_cancelled() {
            return None;
        }
        if now > seen + SEEN_STEP_MS {
            session.seen_at.store(now, Ordering::Relaxed);
        }
        Some(session)
    }

    /// A new session under a new secret. The one that the browser had before ends.
    pub(crate) async fn open(
        &self,
        arrival: Arrival,
        before: Option<&Session>,
    ) -> Result<Secret, OpenError> {
        let secret = Secret::generate()?;
        let now = now_ms();
        let row = SessionRow {
            id: random_id("s-")?,
            hash: secret.hash(),
            method: arrival.method,
            address: arrival.address,
            agent: arrival.agent.map(|agent| agent.chars().take(LONGEST_AGENT).collect()),
            created_at: now,
            seen_at: now,
        };
        let mut removed: Vec<Arc<Session>> = self.oldest_beyond(MOST - 1);
        removed.extend(before.and_then(|before| self.find(before.id())));
        let ids = removed.iter().map(|session| session.id().to_owned()).collect();
        self.store.add_session(row.clone(), ids).await?;
        self.write(|table| table.insert(row.hash, Arc::new(session(row))));
        self.forget(&removed);
        Ok(secret)
    }

    /// Ends one by its name; `false` when there is none.
    pub(crate) async fn end(&self, id: &str) -> Result<bool, StoreError> {
        let Some(session) = self.find(id) else { return Ok(false) };
        self.store.remove_sessions(vec![id.to_owned()]).await?;
        self.forget(&[session]);
        Ok(true)
    }

    /// Forgets all of them; the database has already.
    pub(crate) fn clear(&self) {
        let all = self.all();
        self.forget(&all);
    }

    /// Last used first.
    pub(crate) fn list(&self, current: Option<&str>) -> Vec<SessionInfo> {
        let mut all: Vec<_> =
            self.all().iter().map(|session| self.info(session, current)).collect();
        all.sort_by_key(|info| std::cmp::Reverse(info.seen_at));
        all
    }

    /// Ends what is over, and writes down what was used. Says when to look again.
    pub(crate) async fn sweep(&self) -> Result<Duration, StoreError> {
        let now = now_ms();
        let (over, good): (Vec<_>, Vec<_>) =
            self.all().into_iter().partition(|session| self.expires_at(session) <= now);
        if !over.is_empty() {
            let ids = over.iter().map(|session| session.id().to_owned()).collect();
            self.forget(&over);
            self.store.remove_sessions(ids).await?;
        }
        let mut seen = Vec::new();
        for session in &good {
            let at = session.seen_at.load(Ordering::Relaxed);
            if session.noted_at.swap(at, Ordering::Relaxed) != at {
                seen.push((session.id().to_owned(), at));
            }
        }
        if !seen.is_empty() {
            self.store.sessions_seen(seen).await?;
        }
        let next = good.iter().map(|session| self.expires_at(session)).min();
        Ok(Duration::from_millis(next.map_or(u64::MAX, |at| at.saturating_sub(now)).max(1)))
    }

    pub(crate) fn limits(&self) -> SessionLimits {
        self.limits
    }

    fn expires_at(&self, session: &Session) -> u64 {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let idle = session.seen_at.load(Ordering::Relaxed).saturating_add(ms(self.limits.idle));
        idle.min(session.row.created_at.saturating_add(ms(self.limits.absolute)))
    }

    fn info(&self, session: &Session, current: Option<&str>) -> SessionInfo {
        SessionInfo {
            id: session.row.id.clone(),
            method: session.row.method,
            created_at: session.row.created_at,
            seen_at: session.seen_at.load(Ordering::Relaxed),
            expires_at: self.expires_at(session),
            address: session.row.address.clone(),
            agent: session.row.agent.clone(),
            current: current == Some(session.id()),
        }
    }

    fn oldest_beyond(&self, most: usize) -> Vec<Arc<Session>> {
        let mut all = self.all();
        all.sort_by_key(|session| std::cmp::Reverse(session.seen_at.load(Ordering::Relaxed)));
        all.split_off(most.min(all.len()))
    }

    fn find(&self, id: &str) -> Option<Arc<Session>> {
        self.all().into_iter().find(|session| session.id() == id)
    }

    fn all(&self) -> Vec<Arc<Session>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.values().cloned().collect()
    }

    fn forget(&self, sessions: &[Arc<Session>]) {
        self.write(|table| table.retain(|_, kept| !sessions.iter().any(|s| Arc::ptr_eq(s, kept))));
        for session in sessions {
            session.ended.cancel();
        }
    }

    fn write<T>(&self, change: impl FnOnce(&mut HashMap<SecretHash, Arc<Session>>) -> T) -> T {
        change(&mut self.table.write().unwrap_or_else(PoisonError::into_inner))
    }
}

fn session(row: SessionRow) -> Session {
    let [seen_at, noted_at] = [(); 2].map(|()| AtomicU64::new(row.seen_at));
    Session { row, seen_at, noted_at, ended: CancellationToken::new() }
}

/// Why no session was opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("no random numbers: {0}")]
    Random(#[from] std::io::Error),
    #[error("{0}")]
    Store(#[from] StoreError),
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Arrival = Arrival { method: SignInMethod::Link, address: None, agent: None };

    async fn sessions(limits: SessionLimits) -> (tempfile::TempDir, Sessions) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("control.db")).unwrap();
        let sessions = Sessions::load(store, limits).await.unwrap();
        (dir, sessions)
    }

    #[tokio::test]
    async fn signing_in_changes_the_secret_and_ends_what_was_before() {
        let (_dir, sessions) = sessions(SessionLimits::default()).await;
        let first = sessions.open(LINK, None).await.unwrap();
        let before = sessions.check(first.hash()).unwrap();
        let second = sessions.open(LINK, Some(&before)).await.unwrap();
        assert_ne!(first, second);
        assert!(sessions.check(first.hash()).is_none() && before.ended().is_cancelled());
        assert!(sessions.check(second.hash()).is_some());
    }

    #[tokio::test]
    async fn a_session_ends_when_it_is_revoked_and_stays_ended() {
        let (_dir, sessions) = sessions(SessionLimits::default()).await;
        let secret = sessions.open(LINK, None).await.unwrap();
        let session = sessions.check(secret.hash()).unwrap();
        assert!(sessions.end(session.id()).await.unwrap());
        assert!(!sessions.end(session.id()).await.unwrap());
        assert!(session.ended().is_cancelled());
        let again = Sessions::load(sessions.store.clone(), SessionLimits::default()).await.unwrap();
        assert!(again.check(secret.hash()).is_none());
    }

    #[tokio::test]
    async fn one_that_is_used_lives_on_and_one_that_is_not_ends() {
        let limits = SessionLimits { idle: Duration::from_millis(60), ..Default::default() };
        let (_dir, sessions) = sessions(limits).await;
        let secret = sessions.open(LINK, None).await.unwrap();
        let session = sessions.check(secret.hash()).unwrap();
        let wait = sessions.sweep().await.unwrap();
        assert!(wait <= Duration::from_millis(60) && !session.ended().is_cancelled());
        tokio::time::sleep(Duration::from_millis(80)).await;
        assert!(sessions.check(secret.hash()).is_none(), "before anybody swept");
        sessions.sweep().await.unwrap();
        assert!(session.ended().is_cancelled());
        assert_eq!(sessions.list(None), []);
    }

    #[tokio::test]
    async fn however_much_it_is_used_it_ends() {
        let limits = SessionLimits { absolute: Duration::from_millis(50), ..Default::default() };
        let (_dir, sessions) = sessions(limits).await;
        let began = std::time::Instant::now();
        let secret = sessions.open(LINK, None).await.unwrap();
        while sessions.check(secret.hash()).is_some() {
            assert!(began.elapsed() < Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(began.elapsed() >= Duration::from_millis(40));
    }

    #[tokio::test]
    async fn sessions_survive_a_restart_and_are_not_without_number() {
        let (_dir, sessions) = sessions(SessionLimits::default()).await;
        for _ in 0..MOST + 5 {
            sessions.open(LINK, None).await.unwrap();
        }
        assert_eq!(sessions.list(None).len(), MOST);
        let again = Sessions::load(sessions.store.clone(), SessionLimits::default()).await.unwrap();
        assert_eq!(again.list(None).len(), MOST);
    }
}
