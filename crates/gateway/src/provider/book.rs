//! What may still be used, decided in one place: budgets, rates, and what is stopped.
//!
//! A call is opened with a reservation, which counts as used until the call is settled with what it
//! really used. Both happen under one lock that is never held across an await, so of any number of
//! calls at once exactly as many pass as fit.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::format::{Reason, Refusal};
use super::money::{Amount, Limits};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const MINUTE_MS: u64 = 60 * 1000;
/// Calls under way at once, of all sandboxes together.
const MOST_CALLS: usize = 2048;

/// What usage is counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    /// As long as it lives.
    Token(Arc<str>),
    /// These begin again every day.
    Day,
    Provider(Arc<str>),
    Sandbox(Arc<str>),
}

impl Account {
    fn is_daily(&self) -> bool {
        !matches!(self, Self::Token(_))
    }
}

/// A call that wants to be made.
pub(crate) struct Opening<'a> {
    pub(crate) token: &'a Arc<str>,
    pub(crate) token_name: &'a str,
    /// Whether the token is that of a one-shot run.
    pub(crate) of_run: bool,
    /// Cancelled when the token has ended, before its calls are.
    pub(crate) token_ended: &'a CancellationToken,
    pub(crate) provider: &'a Arc<str>,
    pub(crate) accounts: &'a [(Account, Limits)],
    pub(crate) requests_per_minute: Option<u32>,
    pub(crate) reservation: Amount,
    /// Unix milliseconds.
    pub(crate) now: u64,
}

/// A call under way. It has to be settled.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) number: u64,
    /// Cancelled when it has to end.
    pub(crate) end: CancellationToken,
}

struct Call {
    token: Arc<str>,
    provider: Arc<str>,
    accounts: Vec<Account>,
    reserved: Amount,
    day: u64,
    end: CancellationToken,
}

#[derive(Default)]
struct State {
    day: u64,
    used: HashMap<Account, Amount>,
    /// When the minute began, and how many there were.
    rates: HashMap<Arc<str>, (u64, u32)>,
    calls: HashMap<u64, Call>,
    next: u64,
    stopped: HashSet<String>,
    all_stopped: bool,
}

#[derive(Default)]
pub(crate) struct Book(Mutex<State>);

impl Book {
    pub(crate) fn open(&self, wanted: &Opening<'_>) -> Result<Opened, Refusal> {
        let mut state = self.state();
        state.turn_to(wanted.now);
        state.check_stopped(wanted.provider)?;
        if wanted.token_ended.is_cancelled() {
            return Err(Refusal::new(Reason::Unauthorized, "this policy token was revoked"));
        }
        if state.calls.len() >= MOST_CALLS {
            return Err(Refusal::new(
                Reason::Busy,
                format!("{MOST_CALLS} calls are under way already"),
            ));
        }
        for (account, limits) in wanted.accounts {
            state.check_budget(account, *limits, wanted)?;
        }
        state.check_rate(wanted)?;
        let number = state.next;
        state.next += 1;
        let end = CancellationToken::new();
        let accounts: Vec<_> = wanted.accounts.iter().map(|(account, _)| account.clone()).collect();
        for account in &accounts {
            let used = state.used.entry(account.clone()).or_default();
            *used = used.plus(wanted.reservation);
        }
        let call = Call {
            token: wanted.token.clone(),
            provider: wanted.provider.clone(),
            accounts,
            reserved: wanted.reservation,
            day: state.day,
            end: end.clone(),
        };
        state.calls.insert(number, call);
        Ok(Opened { number, end })
    }

    /// Puts what was used in the place of the reservation.
    pub(crate) fn settle(&self, number: u64, used: Amount) {
        let mut state = self.state();
        let Some(call) = state.calls.remove(&number) else { return };
        for account in call.accounts {
            if account.is_daily() && call.day != state.day {
                continue;
            }
            let sum = state.used.entry(account).or_default();
            *sum = sum.minus(call.reserved).plus(used);
        }
    }

    /// What was used before we started.
    pub(crate) fn restore(&self, now: u64, sums: impl IntoIterator<Item = (Account, Amount)>) {
        let mut state = self.state();
        state.turn_to(now);
        state.used.extend(sums);
    }

    pub(crate) fn used(&self, account: &Account, now: u64) -> Amount {
        let mut state = self.state();
        state.turn_to(now);
        state.used.get(account).copied().unwrap_or_default()
    }

    /// What a token has used; `None` while a call of it is under way.
    pub(crate) fn settled(&self, token: &Arc<str>, now: u64) -> Option<Amount> {
        let open = self.state().calls.values().any(|call| call.token == *token);
        (!open).then(|| self.used(&Account::Token(token.clone()), now))
    }

    pub(crate) fn forget(&self, token: &str) {
        let mut state = self.state();
        state.used.remove(&Account::Token(token.into()));
        state.rates.remove(token);
    }

    /// Ends every call of a token that is under way.
    pub(crate) fn end_token(&self, token: &str) -> u64 {
        self.end(|call| &*call.token == token)
    }

    /// Of all providers when none is named. Returns how many calls were ended.
    pub(crate) fn stop(&self, provider: Option<&str>) -> u64 {
        {
            let mut state = self.state();
            match provider {
                Some(name) => drop(state.stopped.insert(name.to_owned())),
                None => state.all_stopped = true,
            }
        }
        self.end(|call| provider.is_none_or(|name| &*call.provider == name))
    }

    pub(crate) fn start(&self, provider: Option<&str>) {
        let mut state = self.state();
        match provider {
            Some(name) => drop(state.stopped.remove(name)),
            None => state.all_stopped = false,
        }
    }

    /// Whether all are stopped, and which are by name.
    pub(crate) fn stopped(&self) -> (bool, HashSet<String>) {
        let state = self.state();
        (state.all_stopped, state.stopped.clone())
    }

    pub(crate) fn under_way(&self, provider: Option<&str>) -> u64 {
        let state = self.state();
        let counted =
            state.calls.values().filter(|call| provider.is_none_or(|name| &*call.provider == name));
        counted.count() as u64
    }

    fn end(&self, which: impl Fn(&Call) -> bool) -> u64 {
        let state = self.state();
        let ending: Vec<_> =
            state.calls.values().filter(|call| which(call)).map(|call| call.end.clone()).collect();
        drop(state);
        // Not under the lock: who waits for it may want to settle at once.
        ending.iter().for_each(CancellationToken::cancel);
        ending.len() as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn turn_to(&mut self, now: u64) {
        let day = now / DAY_MS;
        if day != self.day {
            self.day = day;
            self.used.retain(|account, _| !account.is_daily());
        }
        if self.rates.len() > 1024 {
            self.rates.retain(|_, (began, _)| began.saturating_add(MINUTE_MS) > now);
        }
    }

    fn check_stopped(&self, provider: &str) -> Result<(), Refusal> {
        let what = match (self.all_stopped, self.stopped.contains(provider)) {
            (true, _) => {
                "all model calls are stopped; nacre provider start lets them go on".to_owned()
            }
            (false, true) => {
                format!(
                    "calls to {provider} are stopped; nacre provider start {provider} lets them go on"
                )
            }
            (false, false) => return Ok(()),
        };
        Err(Refusal::new(Reason::Stopped, what))
    }

    fn check_budget(
        &self,
        account: &Account,
        limits: Limits,
        wanted: &Opening<'_>,
    ) -> Result<(), Refusal> {
        let used = self.used.get(account).copied().unwrap_or_default();
        let after = used.plus(wanted.reservation);
        let needs = wanted.reservation;
        let (said, option) = match limits {
            Limits { tokens: Some(most), .. } if after.tokens > most => {
                let said = format!(
                    "{most} tokens: {} are used or reserved, and this call may need {}",
                    used.tokens, needs.tokens
                );
                (said, "--tokens")
            }
            Limits { dollars: Some(most), .. } if after.dollars > most => {
                let said = format!(
                    "{most}: {} is used or reserved, and this call may cost {}",
                    used.dollars, needs.dollars
                );
                (said, "--budget")
            }
            Limits { .. } => return Ok(()),
        };
        let (whose, until) = match account {
            Account::Token(_) if wanted.of_run => (
                "the budget of this run is".to_owned(),
                format!("nacre run {option} allows another more"),
            ),
            Account::Token(_) => (
                format!("the budget of the policy token \"{}\" is", wanted.token_name),
                "it does not grow again; nacre provider token create makes another".to_owned(),
            ),
            Account::Day => ("all model calls of a day have".to_owned(), until_midnight()),
            Account::Provider(name) => {
                (format!("calls to {name} have for a day"), until_midnight())
            }
            Account::Sandbox(_) => ("this sandbox has for a day".to_owned(), until_midnight()),
        };
        let after = account.is_daily().then(|| until_tomorrow(wanted.now));
        Err(Refusal { after, ..Refusal::new(Reason::Budget, format!("{whose} {said}; {until}")) })
    }

    fn check_rate(&mut self, wanted: &Opening<'_>) -> Result<(), Refusal> {
        let Some(most) = wanted.requests_per_minute else { return Ok(()) };
        let (began, count) = self.rates.entry(wanted.token.clone()).or_insert((wanted.now, 0));
        if wanted.now >= began.saturating_add(MINUTE_MS) || wanted.now < *began {
            (*began, *count) = (wanted.now, 0);
        }
        if *count >= most {
            let after = Duration::from_millis(began.saturating_add(MINUTE_MS) - wanted.now);
            let message = format!(
                "the policy token \"{}\" allows {most} requests a minute; the next can be made in {} s",
                wanted.token_name,
                after.as_secs() + 1
            );
            return Err(Refusal { after: Some(after), ..Refusal::new(Reason::Rate, message) });
        }
        *count += 1;
        Ok(())
    }
}

fn until_midnight() -> String {
    "it begins again at 00:00 UTC, and [models] or [provider.NAME] in nacre.toml sets it".to_owned()
}

fn until_tomorrow(now: u64) -> Duration {
    Duration::from_millis(DAY_MS - now % DAY_MS)
}

/// The beginning of the day, as days are counted here.
pub(crate) fn day_began(now: u64) -> u64 {
    now - now % DAY_MS
}

#[cfg(test)]
mod tests;
