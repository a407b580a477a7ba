//! A call as it is written: once before it is made, once when it is over.

use nacre_wire::models::PolicyScope;
use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};

use crate::provider::format::Reason;
use crate::provider::money::Dollars;
use crate::provider::usage::Usage;

/// Before the call goes out, with what it may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begun {
    /// Unix milliseconds.
    pub(crate) at: u64,
    pub(crate) token: String,
    pub(crate) sandbox: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) path: String,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) nanodollars: u64,
    pub(crate) request_hash: [u8; 32],
}

/// A call that was not made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) at: u64,
    token: String,
    sandbox: Option<String>,
    run: Option<String>,
    conversation: Option<String>,
    provider: String,
    model: String,
    path: String,
    verdict: String,
    status: u16,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The provider told what was used.
    Settled(Usage, Dollars),
    /// It did not, or nobody stayed to hear it: the reservation counts, or what was seen beyond it.
    Kept(Usage, Dollars),
    /// The provider refused it, or it never got there: nothing was used.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    state: State,
    input: u64,
    cached: u64,
    cache_write: u64,
    output: u64,
    nanodollars: u64,
    status: Option<u16>,
    took_ms: u64,
    response_hash: Option<[u8; 32]>,
    /// What was asked and answered, when that is wanted. Not worth a place in the journal.
    #[serde(skip)]
    bodies: Option<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Settled,
    Kept,
    Failed,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Kept => "kept",
            Self::Failed => "failed",
        }
    }
}

impl Begun {
    /// What is there already stays: it was written before the journal was emptied.
    pub(super) fn insert(&self, id: i64, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO calls (id, at, token, sandbox, run, conversation, provider, model, path, state,
                                input, output, nanodollars, request_hash)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        )?;
        statement.execute(params![
            id,
            sql(self.at),
            self.token,
            self.sandbox,
            self.run,
            self.conversation,
            self.provider,
            self.model,
            self.path,
            sql(self.input),
            sql(self.output),
            sql(self.nanodollars),
            self.request_hash,
        ])?;
        Ok(())
    }
}

impl Refused {
    pub(crate) fn of(
        reason: Reason,
        at: u64,
        token: &str,
        scope: &PolicyScope,
        provider: &str,
        model: &str,
        path: &str,
    ) -> Self {
        Self {
            at,
            token: token.to_owned(),
            sandbox: scope.sandbox.clone(),
            run: scope.run.clone(),
            conversation: scope.conversation.clone(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            path: path.to_owned(),
            verdict: reason.as_str().to_owned(),
            status: reason.status().as_u16(),
        }
    }

    pub(super) fn insert(&self, id: i64, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO calls (id, at, token, sandbox, run, conversation, provider, model, path, state,
                                input, output, nanodollars, request_hash, verdict, status)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'refused', 0, 0, 0, x'', ?, ?) ON CONFLICT (id) DO NOTHING",
        )?;
        statement.execute(params![
            id,
            sql(self.at),
            self.token,
            self.sandbox,
            self.run,
            self.conversation,
            self.provider,
            self.model,
            self.path,
            self.verdict,
            self.status,
        ])?;
        Ok(())
    }
}

/// A refusal that came again: two files of the journal may tell it in the wrong order.
pub(super) fn again(id: i64, times: u64, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut statement =
        transaction.prepare_cached("UPDATE calls SET times = max(times, ?) WHERE id = ?")?;
    statement.execute(params![sql(times), id])?;
    Ok(())
}

impl Ended {
    pub(crate) fn of(outcome: Outcome, status: Option<u16>, took_ms: u64) -> Self {
        let (state, usage, dollars) = match outcome {
            Outcome::Settled(usage, dollars) => (State::Settled, usage, dollars),
            Outcome::Kept(usage, dollars) => (State::Kept, usage, dollars),
            Outcome::Failed => (State::Failed, Usage::default(), Dollars::default()),
        };
        Self {
            state,
            input: usage.input,
            cached: usage.cached,
            cache_write: usage.cache_write,
            output: usage.output,
            nanodollars: dollars.0,
            status,
            took_ms,
            response_hash: None,
            bodies: None,
        }
    }

    pub(crate) fn answered(
        self,
        response_hash: Option<[u8; 32]>,
        bodies: Option<(Vec<u8>, Vec<u8>)>,
    ) -> Self {
        Self { response_hash, bodies, ..self }
    }

    pub(super) fn update(&self, id: i64, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        transaction
            .prepare_cached(
                "UPDATE calls SET state = ?, status = ?, took_ms = ?, response_hash = ?,
                    input = ?, cached = ?, cache_write = ?, output = ?, nanodollars = ?
                 WHERE id = ?",
            )?
            .execute(params![
                self.state.as_str(),
                self.status,
                sql(self.took_ms),
                self.response_hash,
                sql(self.input),
                sql(self.cached),
                sql(self.cache_write),
                sql(self.output),
                sql(self.nanodollars),
                id
            ])?;
        if let Some((request, response)) = &self.bodies {
            transaction
                .prepare_cached(
                    "INSERT OR REPLACE INTO bodies (call, request, response) VALUES (?, ?, ?)",
                )?
                .execute(params![id, request, response])?;
        }
        Ok(())
    }
}

fn sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
