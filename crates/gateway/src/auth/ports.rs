//! Browsers at hosts that ports have to themselves. What lets one in there is good for that host alone,
//! hangs on the session that asked for it, and goes with it. In memory: after a restart, browsers that are
//! signed in are led through again without noticing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::{Pending, Session, Sessions};
use crate::secret::{Secret, SecretHash};
use crate::web::visitor::PortHost;

/// From one redirect to the next.
const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// More than these are not kept; the oldest goes.
const MOST: usize = 512;

pub(crate) struct PortVisits {
    /// Bound to the cookie that the browser has at the port's host.
    codes: Pending<(PortHost, Arc<Session>)>,
    visits: RwLock<HashMap<SecretHash, Visit>>,
}

struct Visit {
    place: PortHost,
    session: Arc<Session>,
    since: Instant,
}

impl PortVisits {
    pub(crate) fn new() -> Self {
        Self { codes: Pending::new(CODE_LIFETIME), visits: RwLock::default() }
    }

    /// A session may visit a port, from the browser that knocked there.
    pub(crate) fn allow(
        &self,
        code: &Secret,
        knock: SecretHash,
        place: PortHost,
        session: Arc<Session>,
    ) {
        self.codes.leave(code.reveal(), knock, (place, session));
    }

    /// The session that a code is for, once.
    pub(crate) fn redeem(
        &self,
        code: &str,
        knocks: &[SecretHash],
        place: PortHost,
    ) -> Option<Arc<Session>> {
        let (allowed, session) = self.codes.take(code, knocks)?;
        (allowed == place && !session.ended().is_cancelled()).then_some(session)
    }

    pub(crate) fn begin(&self, secret: &Secret, place: PortHost, session: Arc<Session>) {
        let mut visits = self.visits.write().unwrap_or_else(PoisonError::into_inner);
        visits.retain(|_, visit| !visit.session.ended().is_cancelled());
        if visits.len() >= MOST {
            let oldest = visits.iter().min_by_key(|(_, visit)| visit.since).map(|(key, _)| *key);
            oldest.and_then(|key| visits.remove(&key));
        }
        visits.insert(secret.hash(), Visit { place, session, since: Instant::now() });
    }

    /// The session behind a visit, if it is to this place and the session is still good.
    pub(crate) fn check(
        &self,
        hash: SecretHash,
        place: PortHost,
        sessions: &Sessions,
    ) -> Option<Arc<Session>> {
        let visits = self.visits.read().unwrap_or_else(PoisonError::into_inner);
        let session = visits.get(&hash).filter(|visit| visit.place == place)?.session.hash();
        drop(visits);
        sessions.check(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Arrival, Auth, AuthConfig};
    use crate::store::Store;
    use nacre_wire::access::SignInMethod;

    async fn signed_in(dir: &std::path::Path) -> (Auth, Arc<Session>) {
        let store = Store::open(&dir.join("control.db")).unwrap();
        let auth = Auth::start(&AuthConfig::default(), None, store).await.unwrap();
        let arrival = Arrival { method: SignInMethod::Link, address: None, agent: None };
        let secret = auth.sessions.open(arrival, None).await.unwrap();
        let session = auth.sessions.check(secret.hash()).unwrap();
        (auth, session)
    }

    #[tokio::test]
    async fn a_code_is_for_one_browser_at_one_host_once() {
        let dir = tempfile::tempdir().unwrap();
        let (auth, session) = signed_in(dir.path()).await;
        let (here, there): (PortHost, PortHost) =
            ("3000--dev".parse().unwrap(), "3000--live".parse().unwrap());
        let secret = || Secret::generate().unwrap();
        let (knock, other) = (secret().hash(), secret().hash());
        for (knocks, place, good) in [
            (vec![knock], here, true),
            (vec![other, knock], here, true),
            (vec![other], here, false),
            (vec![], here, false),
            (vec![knock], there, false),
        ] {
            let code = secret();
            auth.ports.allow(&code, knock, here, session.clone());
            let redeemed = auth.ports.redeem(code.reveal(), &knocks, place);
            assert_eq!(redeemed.is_some(), good, "{knocks:?} {place}");
            assert!(auth.ports.redeem(code.reveal(), &[knock], here).is_none(), "it is used up");
        }
    }

    #[tokio::test]
    async fn a_visit_is_to_one_host_and_goes_with_its_session() {
        let dir = tempfile::tempdir().unwrap();
        let (auth, session) = signed_in(dir.path()).await;
        let (here, there) = ("3000--dev".parse().unwrap(), "3001--dev".parse().unwrap());
        let secret = Secret::generate().unwrap();
        auth.ports.begin(&secret, here, session.clone());
        let check = |place| auth.ports.check(secret.hash(), place, &auth.sessions).is_some();
        assert!(check(here) && !check(there));
        assert!(auth.ports.check(session.hash(), here, &auth.sessions).is_none());
        auth.sessions.end(session.id()).await.unwrap();
        assert!(!check(here));
    }

    #[tokio::test]
    async fn no_more_visits_are_kept_than_so_many() {
        let dir = tempfile::tempdir().unwrap();
        let (auth, session) = signed_in(dir.path()).await;
        let here = "3000--dev".parse().unwrap();
        for _ in 0..MOST + 3 {
            auth.ports.begin(&Secret::generate().unwrap(), here, session.clone());
        }
        assert_eq!(auth.ports.visits.read().unwrap().len(), MOST);
    }
}
