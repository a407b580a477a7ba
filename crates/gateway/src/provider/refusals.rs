//! Calls that were not made, in the record: whose, and why.
//!
//! What is refused again and again is one row with a number. A program in a sandbox asks as often as it likes,
//! so of each policy token, provider and reason there is one row in ten minutes, which is written again when
//! its number has doubled, and when somebody looks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nacre_wire::ApiError;

use super::format::Reason;
use super::ledger::{Ledger, Refused};

const WINDOW_MS: u64 = 10 * 60 * 1000;
/// So many are told apart at a time.
const MOST: usize = 4096;

#[derive(Default)]
pub(crate) struct Refusals(Mutex<HashMap<Which, Row>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Which {
    token: Arc<str>,
    provider: Arc<str>,
    reason: Reason,
}

struct Row {
    id: i64,
    began: u64,
    times: u64,
    /// The number that is written down.
    written: u64,
}

impl Row {
    fn write(&mut self, ledger: &Ledger) {
        if self.times > self.written {
            self.written = self.times;
            ledger.refused_again(self.id, self.times);
        }
    }

    fn is_over(&self, now: u64) -> bool {
        now >= self.began.saturating_add(WINDOW_MS)
    }
}

impl Refusals {
    pub(crate) fn note(
        &self,
        ledger: &Ledger,
        token: &Arc<str>,
        provider: &Arc<str>,
        reason: Reason,
        refused: Refused,
    ) -> Result<(), ApiError> {
        let which = Which { token: token.clone(), provider: provider.clone(), reason };
        let now = refused.at;
        let mut rows = self.rows();
        if let Some(row) = rows.get_mut(&which) {
            if !row.is_over(now) {
                row.times += 1;
                if row.times >= row.written.saturating_mul(2) {
                    row.write(ledger);
                }
                return Ok(());
            }
            row.write(ledger);
        }
        if rows.len() >= MOST {
            rows.extract_if(|_, row| row.is_over(now)).for_each(|(_, mut row)| row.write(ledger));
        }
        if rows.len() >= MOST && !rows.contains_key(&which) {
            return Ok(());
        }
        let id = ledger.refuse(refused)?;
        rows.insert(which, Row { id, began: now, times: 1, written: 1 });
        Ok(())
    }

    /// Somebody wants to see how many there were.
    pub(crate) fn write(&self, ledger: &Ledger) {
        self.rows().values_mut().for_each(|row| row.write(ledger));
    }

    fn rows(&self) -> MutexGuard<'_, HashMap<Which, Row>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_is_a_row_for_each_reason() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&dir.path().join("usage.db")).unwrap();
        let refusals = Refusals::default();
        let (token, provider): (Arc<str>, Arc<str>) = ("t".into(), "openai".into());
        let began = crate::clock::now_ms();
        let note = |reason, at, model: &str| {
            let refused = Refused::of(reason, at, "t", &Default::default(), "openai", model, "x");
            refusals.note(&ledger, &token, &provider, reason, refused).unwrap();
        };
        for number in 0..1000 {
            note(Reason::Forbidden, began, &format!("model-{number}"));
        }
        note(Reason::Budget, began, "m");
        note(Reason::Forbidden, began + WINDOW_MS, "m");
        refusals.write(&ledger);
        let calls = ledger.calls(None, 100).await.unwrap();
        let rows: Vec<_> = calls
            .iter()
            .map(|call| (call.verdict.as_deref(), call.model.as_str(), call.times))
            .collect();
        assert_eq!(
            rows,
            [
                (Some("forbidden"), "m", None),
                (Some("budget"), "m", None),
                (Some("forbidden"), "model-0", Some(1000)),
            ]
        );
        assert!(calls.iter().all(|call| call.state == "refused" && call.dollars == 0.0));
        let report = ledger.usage(nacre_wire::models::UsageBy::Day, 0).await.unwrap();
        assert_eq!(report.total.calls, 0, "none was made");
    }
}
