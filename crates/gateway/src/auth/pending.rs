//! What waits for a browser to come back: found by a word that only the browser brings, once, within
//! some minutes, and only by the browser that it was left for.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::secret::SecretHash;

/// More than these are not kept; the oldest goes.
const MOST: usize = 256;

#[derive(Debug)]
pub(crate) struct Pending<T> {
    lifetime: Duration,
    table: Mutex<HashMap<SecretHash, Entry<T>>>,
}

#[derive(Debug)]
struct Entry<T> {
    /// Of the cookie that the browser got along with it.
    browser: SecretHash,
    left_at: Instant,
    value: T,
}

impl<T> Pending<T> {
    pub(crate) fn new(lifetime: Duration) -> Self {
        Self { lifetime, table: Mutex::default() }
    }

    pub(crate) fn leave(&self, word: &str, browser: SecretHash, value: T) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.retain(|_, entry| entry.left_at.elapsed() < self.lifetime);
        if table.len() >= MOST {
            let oldest = table.iter().min_by_key(|(_, entry)| entry.left_at).map(|(key, _)| *key);
            oldest.and_then(|key| table.remove(&key));
        }
        let entry = Entry { browser, left_at: Instant::now(), value };
        table.insert(SecretHash::of(word), entry);
    }

    /// Gone afterwards, whoever asked: a word that another browser knows is no secret any more.
    pub(crate) fn take(&self, word: &str, browsers: &[SecretHash]) -> Option<T> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = table.remove(&SecretHash::of(word))?;
        let good = entry.left_at.elapsed() < self.lifetime && browsers.contains(&entry.browser);
        good.then_some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROWSER: SecretHash = SecretHash([1; 32]);
    const OTHER: SecretHash = SecretHash([2; 32]);

    #[test]
    fn it_is_taken_once_and_by_the_browser_it_was_left_for() {
        let pending = Pending::new(Duration::from_secs(60));
        pending.leave("a", BROWSER, 1);
        assert_eq!(pending.take("b", &[BROWSER]), None);
        assert_eq!(pending.take("a", &[OTHER, BROWSER]), Some(1));
        assert_eq!(pending.take("a", &[BROWSER]), None);
        for other in [&[OTHER][..], &[]] {
            pending.leave("a", BROWSER, 1);
            assert_eq!(pending.take("a", other), None);
            assert_eq!(pending.take("a", &[BROWSER]), None, "it is gone");
        }
    }

    #[test]
    fn it_does_not_wait_for_ever_nor_without_number() {
        let pending = Pending::new(Duration::ZERO);
        pending.leave("a", BROWSER, 1);
        assert_eq!(pending.take("a", &[BROWSER]), None);
        let pending = Pending::new(Duration::from_secs(60));
        for number in 0..MOST + 1 {
            pending.leave(&number.to_string(), BROWSER, number);
        }
        assert_eq!(pending.take("0", &[BROWSER]), None);
        assert_eq!(pending.take("1", &[BROWSER]), Some(1));
    }
}
