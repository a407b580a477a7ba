//! A call as it is written: once before it is made, once when it is over.

use rusqlite::{Transaction, params};

use crate::provider::money::{Amount, Dollars};
use crate::provider::usage::Usage;

/// Before the call goes out, with what it may use.
pub(crate) struct Begun {
    pub(crate) at: u64,
    pub(crate) token: String,
    pub(crate) sandbox: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) conversation: Option<String>,
    pub(crate) provider: String,
    pub(crate) model: String,
    pub(crate) path: String,
    pub(crate) most: Usage,
    pub(crate) reserved: Amount,
    pub(crate) request_hash: [u8; 32],
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

pub(crate) struct Ended {
    pub(crate) row: i64,
    pub(crate) outcome: Outcome,
    pub(crate) status: Option<u16>,
    pub(crate) took_ms: u64,
    pub(crate) response_hash: Option<[u8; 32]>,
    /// What was asked and answered, when that is wanted.
    pub(crate) bodies: Option<(Vec<u8>, Vec<u8>)>,
}

impl Begun {
    pub(super) fn insert(&self, transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO calls (at, token, sandbox, run, conversation, provider, model, path, state,
                                input, output, nanodollars, request_hash)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?)",
        )?;
        statement.insert(params![
            sql(self.at),
            self.token,
            self.sandbox,
            self.run,
            self.conversation,
            self.provider,
            self.model,
            self.path,
            sql(self.most.input),
            sql(self.most.output),
            sql(self.reserved.dollars.0),
            self.request_hash,
        ])
    }
}

impl Ended {
    pub(super) fn update(&self, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
        let (state, usage, dollars) = match self.outcome {
            Outcome::Settled(usage, dollars) => ("settled", usage, dollars),
            Outcome::Kept(usage, dollars) => ("kept", usage, dollars),
            Outcome::Failed => ("failed", Usage::default(), Dollars::default()),
        };
        transaction
            .prepare_cached(
                "UPDATE calls SET state = ?, status = ?, took_ms = ?, response_hash = ?,
                    input = ?, cached = ?, cache_write = ?, output = ?, nanodollars = ?
                 WHERE id = ?",
            )?
            .execute(params![
                state,
                self.status,
                sql(self.took_ms),
                self.response_hash,
                sql(usage.input),
                sql(usage.cached),
                sql(usage.cache_write),
                sql(usage.output),
                sql(dollars.0),
                self.row
            ])?;
        if let Some((request, response)) = &self.bodies {
            transaction
                .prepare_cached("INSERT INTO bodies (call, request, response) VALUES (?, ?, ?)")?
                .execute(params![self.row, request, response])?;
        }
        Ok(())
    }
}

fn sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
