//! When something happens too often. Pure: the clock is an argument.
//!
//! A **reconnect** is a socket that is asked for within the window after one of the same user and
//! sandbox ended or failed. So many of them within the window are a storm; so many 404s of one
//! sandbox below one runtime path are a loop.

use std::collections::{HashMap, VecDeque};

use nacre_wire::control::{Alert, AlertKind};

/// Pairs of user and sandbox, or of sandbox and path, that are watched at once; the one that was
/// quiet for longest makes room.
const WATCHED: usize = 256;
const ALERTS: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(super) window_ms: u64,
    pub(super) reconnects: u32,
    pub(super) missing: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { window_ms: 30_000, reconnects: 10, missing: 10 }
    }
}

pub(super) struct Detector {
    limits: Limits,
    sockets: HashMap<(String, String), Pair>,
    missing: HashMap<(String, String), Pair>,
    alerts: VecDeque<Alert>,
}

#[derive(Default)]
struct Pair {
    /// When it happened, within the window; no more than the limit.
    times: VecDeque<u64>,
    /// When a socket last ended.
    ended: Option<u64>,
    touched: u64,
}

/// A sandbox: what it is counted by, and what people call it. The name goes with a role that moves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Whose<'s> {
    pub(super) id: &'s str,
    pub(super) name: &'s str,
}

/// What asking for a socket was.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) again: bool,
    pub(super) alert: Option<Alert>,
}

impl Detector {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, sockets: HashMap::new(), missing: HashMap::new(), alerts: VecDeque::new() }
    }

    pub(super) fn connecting(&mut self, user: &str, sandbox: Whose<'_>, now: u64) -> Seen {
        let Limits { window_ms, reconnects, .. } = self.limits;
        let pair = pair(&mut self.sockets, user, sandbox.id, now);
        let again = pair.ended.is_some_and(|ended| now.saturating_sub(ended) <= window_ms);
        if !again {
            return Seen { again, alert: None };
        }
        let alert = pair.happened(now, window_ms, reconnects).then(|| Alert {
            kind: AlertKind::ReconnectStorm,
            sandbox: sandbox.name.to_owned(),
            sandbox_id: sandbox.id.to_owned(),
            user: Some(user.to_owned()),
            path: None,
            count: u64::from(reconnects),
            first_at: now,
            last_at: now,
            message: format!(
                "the page of {user} opens its connection to sandbox \"{}\" again and again",
                sandbox.name
            ),
        });
        Seen { again, alert: alert.and_then(|alert| self.raise(alert)) }
    }

    pub(super) fn disconnected(&mut self, user: &str, sandbox: Whose<'_>, now: u64) {
        pair(&mut self.sockets, user, sandbox.id, now).ended = Some(now);
    }

    pub(super) fn missing(&mut self, sandbox: Whose<'_>, path: &str, now: u64) -> Option<Alert> {
        let Limits { window_ms, missing, .. } = self.limits;
        let pair = pair(&mut self.missing, sandbox.id, path, now);
        let alert = pair.happened(now, window_ms, missing).then(|| Alert {
            kind: AlertKind::MissingRuntimePath,
            sandbox: sandbox.name.to_owned(),
            sandbox_id: sandbox.id.to_owned(),
            user: None,
            path: Some(path.to_owned()),
            count: u64::from(missing),
            first_at: now,
            last_at: now,
            message: format!(
                "a page asks sandbox \"{}\" again and again for files below {path} that it does not \
                 have",
                sandbox.name
            ),
        });
        alert.and_then(|alert| self.raise(alert))
    }

    pub(super) fn alerts(&self) -> Vec<Alert> {
        self.alerts.iter().cloned().collect()
    }

    /// The alert when it has just begun; one that goes on is only counted.
    fn raise(&mut self, alert: Alert) -> Option<Alert> {
        let same = |old: &&mut Alert| {
            (old.kind, &old.sandbox_id, &old.user, &old.path)
                == (alert.kind, &alert.sandbox_id, &alert.user, &alert.path)
        };
        if let Some(old) = self.alerts.iter_mut().rev().find(same)
            && alert.last_at.saturating_sub(old.last_at) <= self.limits.window_ms
        {
            old.count += 1;
            old.last_at = alert.last_at;
            return None;
        }
        if self.alerts.len() >= ALERTS {
            self.alerts.pop_front();
        }
        self.alerts.push_back(alert.clone());
        Some(alert)
    }
}

impl Pair {
    /// Whether that makes `limit` times within the window.
    fn happened(&mut self, now: u64, window_ms: u64, limit: u32) -> bool {
        self.times.push_back(now);
        while self.times.len() > limit as usize
            || self.times.front().is_some_and(|first| now.saturating_sub(*first) > window_ms)
        {
            self.times.pop_front();
        }
        self.times.len() >= limit as usize
    }
}

fn pair<'m>(
    pairs: &'m mut HashMap<(String, String), Pair>,
    one: &str,
    other: &str,
    now: u64,
) -> &'m mut Pair {
    let key = (one.to_owned(), other.to_owned());
    if pairs.len() >= WATCHED && !pairs.contains_key(&key) {
        let quietest =
            pairs.iter().min_by_key(|(_, pair)| pair.touched).map(|(key, _)| key.clone());
        if let Some(quietest) = quietest {
            pairs.remove(&quietest);
        }
    }
    let pair = pairs.entry(key).or_default();
    pair.touched = now;
    pair
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: &str) -> Whose<'_> {
        Whose { id, name: "live" }
    }

    fn detector() -> Detector {
        Detector::new(Limits { window_ms: 1000, reconnects: 3, missing: 3 })
    }

    #[test]
    fn only_a_socket_that_follows_an_end_is_a_reconnect() {
        let mut detector = detector();
        assert!(!detector.connecting("o", of("sb-live"), 0).again);
        assert!(!detector.connecting("o", of("sb-live"), 1).again, "several at once are fine");
        detector.disconnected("o", of("sb-live"), 10);
        assert!(detector.connecting("o", of("sb-live"), 20).again);
        assert!(!detector.connecting("o", of("sb-dev"), 20).again);
        assert!(!detector.connecting("other", of("sb-live"), 20).again);
        assert!(!detector.connecting("o", of("sb-live"), 2000).again, "a new day");
    }

    #[test]
    fn a_storm_is_one_alert_that_counts() {
        let mut detector = detector();
        let mut begun = 0;
        for n in 0..10 {
            detector.disconnected("o", of("sb-live"), n * 10);
            begun += u64::from(detector.connecting("o", of("sb-live"), n * 10 + 5).alert.is_some());
        }
        assert_eq!(begun, 1);
        let [alert] = &detector.alerts()[..] else { panic!("{:?}", detector.alerts()) };
        assert_eq!((alert.kind, alert.count), (AlertKind::ReconnectStorm, 10));
        assert_eq!((alert.first_at, alert.last_at), (25, 95));
        assert_eq!((alert.sandbox.as_str(), alert.sandbox_id.as_str()), ("live", "sb-live"));

        for n in 0..3 {
            detector.disconnected("o", of("sb-live"), 5000 + n);
            detector.connecting("o", of("sb-live"), 5000 + n);
        }
        assert_eq!(detector.alerts().len(), 2, "after a quiet time it is another one");
    }

    #[test]
    fn slow_reconnects_are_no_storm() {
        let mut detector = detector();
        for n in 0..20 {
            detector.disconnected("o", of("sb-live"), n * 600);
            assert_eq!(detector.connecting("o", of("sb-live"), n * 600).alert, None);
        }
    }

    #[test]
    fn a_loop_of_404s_names_the_path() {
        let mut detector = detector();
        assert_eq!(detector.missing(of("sb-live"), "/_dioxus", 0), None);
        assert_eq!(detector.missing(of("sb-live"), "/_dioxus", 10), None);
        assert_eq!(detector.missing(of("sb-live"), "/other", 10), None);
        let alert = detector.missing(of("sb-live"), "/_dioxus", 20).unwrap();
        assert_eq!(alert.path.as_deref(), Some("/_dioxus"));
        assert_eq!(detector.missing(of("sb-live"), "/_dioxus", 30), None);
    }

    #[test]
    fn nothing_grows() {
        let mut detector = detector();
        for n in 0..10_000u64 {
            let name = format!("sb-{n}");
            for _ in 0..4 {
                detector.disconnected("o", of(&name), n);
                detector.connecting("o", of(&name), n);
                detector.missing(of(&name), "/_dioxus", n);
            }
        }
        assert_eq!(detector.sockets.len(), WATCHED);
        assert_eq!(detector.missing.len(), WATCHED);
        assert_eq!(detector.alerts.len(), ALERTS);
        assert!(detector.sockets.values().all(|pair| pair.times.len() <= 3));
    }
}
