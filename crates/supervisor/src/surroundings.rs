//! Variables that every command gets unless it says otherwise.
//!
//! Parts of the supervisor that know of some set them under their own name; all of them together
//! are put together when one changes, so that a command that starts only takes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;

type Variables = BTreeMap<String, String>;

/// Cheap to clone; all clones share them.
#[derive(Debug, Clone, Default)]
pub struct Surroundings(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    together: RwLock<Arc<Variables>>,
    parts: Mutex<BTreeMap<&'static str, Variables>>,
    /// Parts that were announced and have not said anything.
    awaited: watch::Sender<Vec<&'static str>>,
}

impl Surroundings {
    pub fn current(&self) -> Arc<Variables> {
        self.0.together.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Announces a part that will be [`set`](Self::set).
    pub fn expect(&self, part: &'static str) {
        self.0.awaited.send_modify(|awaited| awaited.push(part));
    }

    /// What starts from now on gets these in the place of what the part said before.
    pub fn set(&self, part: &'static str, variables: Variables) {
        {
            let mut parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.insert(part, variables);
            let together = parts.values().flat_map(|part| part.clone()).collect();
            *self.0.together.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(together);
        }
        self.0.awaited.send_if_modified(|awaited| {
            let before = awaited.len();
            awaited.retain(|waiting| *waiting != part);
            awaited.len() < before
        });
    }

    /// Until every part that was announced has said something, or for so long.
    pub async fn settled(&self, patience: Duration) {
        let mut awaited = self.0.awaited.subscribe();
        let _ = tokio::time::timeout(patience, awaited.wait_for(Vec::is_empty)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[tokio::test]
    async fn parts_come_together_and_replace_what_they_said_before() {
        let all = Surroundings::default();
        all.settled(Duration::from_secs(60)).await;
        all.expect("a");
        all.set("a", of(&[("A", "1"), ("OLD", "1")]));
        all.set("b", of(&[("B", "2")]));
        all.set("a", of(&[("A", "3")]));
        assert_eq!(*all.current(), of(&[("A", "3"), ("B", "2")]));
        all.settled(Duration::from_secs(60)).await;
    }

    #[tokio::test]
    async fn who_waits_is_not_kept_by_a_part_that_never_speaks() {
        let all = Surroundings::default();
        all.expect("a");
        all.settled(Duration::from_millis(1)).await;
        assert_eq!(*all.current(), Variables::new());
    }
}
