//! One call's account, from its reservation to its settlement.
//!
//! It is settled exactly once, at the latest when it is dropped: a client that goes away, a panic
//! and the end of the gateway's runtime all leave the reservation counted.

use std::sync::Arc;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::book::Book;
use super::counters::Counters;
use super::ledger::{Ended, Ledger, Outcome};
use super::money::Amount;
use super::prices::Price;
use super::usage::{Api, Usage, Watch};

/// Of each body, so much is kept where bodies are.
const MOST_OF_A_BODY: usize = 1024 * 1024;

pub(crate) struct Tally {
    pub(crate) book: Arc<Book>,
    pub(crate) ledger: Ledger,
    pub(crate) counters: Arc<Counters>,
    pub(crate) number: u64,
    /// Absent until it is written.
    pub(crate) row: Option<i64>,
    pub(crate) price: Price,
    pub(crate) most: Usage,
    pub(crate) began: Instant,
    pub(crate) state: State,
    pub(crate) bodies: Option<Bodies>,
}

/// How far a call is.
pub(crate) enum State {
    /// The provider has not got it.
    Unsent,
    /// It may have.
    Sent,
    Answering(Box<Answering>),
    Over,
}

/// What is known of an answer so far.
pub(crate) struct Answering {
    status: u16,
    watch: Watch,
    hash: Sha256,
}

/// What was asked and answered, where that is kept.
pub(crate) struct Bodies {
    pub(crate) request: Vec<u8>,
    pub(crate) response: Vec<u8>,
}

impl Bodies {
    pub(crate) fn of(request: &[u8]) -> Self {
        let request = request[..request.len().min(MOST_OF_A_BODY)].to_vec();
        Self { request, response: Vec::new() }
    }
}

impl Tally {
    pub(crate) fn sent(&mut self) {
        self.state = State::Sent;
    }

    /// The provider has refused it, or surely never got it.
    pub(crate) fn unused(&mut self) {
        self.state = State::Unsent;
    }

    pub(crate) fn answered(&mut self, status: u16, api: Api, streamed: bool) {
        let watch = Watch::new(api, streamed);
        self.state = State::Answering(Box::new(Answering { status, watch, hash: Sha256::new() }));
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) {
        if let State::Answering(answering) = &mut self.state {
            answering.watch.read(bytes);
            answering.hash.update(bytes);
        }
        if let Some(bodies) = &mut self.bodies {
            let room = MOST_OF_A_BODY.saturating_sub(bodies.response.len());
            bodies.response.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    /// `whole` says that the answer came to its end.
    pub(crate) fn settle(&mut self, whole: bool) {
        let (outcome, status, hash) = match std::mem::replace(&mut self.state, State::Over) {
            State::Over => return,
            State::Unsent => (Outcome::Failed, None, None),
            State::Sent => (self.kept(Usage::default(), 0), None, None),
            State::Answering(answering) => {
                let Answering { status, watch, hash } = *answering;
                let outcome = match watch.outcome(whole) {
                    // A refusal costs nothing.
                    _ if status >= 400 => Outcome::Failed,
                    Some(usage) => Outcome::Settled(usage, self.price.amount(&usage).dollars),
                    None => self.kept(watch.seen(), watch.pieces()),
                };
                (outcome, Some(status), Some(hash.finalize().into()))
            }
        };
        let used = match outcome {
            Outcome::Settled(usage, dollars) | Outcome::Kept(usage, dollars) => {
                Amount { tokens: usage.tokens(), dollars }
            }
            Outcome::Failed => Amount::default(),
        };
        self.book.settle(self.number, used);
        self.counters.settled(outcome);
        let Some(row) = self.row else { return };
        let took = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let bodies = self.bodies.take().map(|bodies| (bodies.request, bodies.response));
        self.ledger.end(row, Ended::of(outcome, status, took).answered(hash, bodies));
    }

    /// What was put aside counts, and what is known to be more than that.
    fn kept(&self, seen: Usage, pieces: u64) -> Outcome {
        let most = self.most.most(seen);
        let most = Usage { output: most.output.max(pieces), dollars: None, ..most };
        let told = self.price.amount(&most).dollars.max(seen.dollars.unwrap_or_default());
        let dollars = self.price.at_most(&self.most).dollars.max(told);
        Outcome::Kept(most, dollars)
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.settle(false);
    }
}
