//! What was used: for the budgets when the gateway starts, and for people.

use nacre_wire::ApiError;
use nacre_wire::models::{CallInfo, UsageBy, UsageReport, UsageRow};
use rusqlite::{Row, params};

use super::Ledger;
use crate::provider::book::Account;
use crate::provider::money::{Amount, Dollars};
use crate::secret::hex;

/// Sums as numbers with a point: whole ones stop with an error where they become too large.
const SUMS: &str = "count(*), total(state IN ('kept', 'open')), total(input + cache_write),
    total(cached), total(output), total(nanodollars)";

/// A column, the account that its values name, and since when it counts.
type Counted = (&'static str, fn(&str) -> Account, u64);

impl Ledger {
    /// What every account has used: tokens as long as they live, the others since `day`.
    pub(crate) async fn sums(&self, day: u64) -> Result<Vec<(Account, Amount)>, ApiError> {
        self.ask(move |connection| {
            let mut sums = Vec::new();
            let accounts: [Counted; 4] = [
                ("token", |name| Account::Token(name.into()), 0),
                ("''", |_| Account::Day, day),
                ("provider", |name| Account::Provider(name.into()), day),
                ("coalesce(sandbox, '')", |name| Account::Sandbox(name.into()), day),
            ];
            for (column, account, since) in accounts {
                let mut statement = connection.prepare(&format!(
                    "SELECT {column}, total(input + cached + cache_write + output), total(nanodollars)
                     FROM calls WHERE at >= ? GROUP BY 1"
                ))?;
                let mut rows = statement.query([sql(since)])?;
                while let Some(row) = rows.next()? {
                    let amount = Amount { tokens: whole(row, 1)?, dollars: Dollars(whole(row, 2)?) };
                    sums.push((account(&row.get::<_, String>(0)?), amount));
                }
            }
            Ok(sums)
        })
        .await
    }

    pub(crate) async fn usage(&self, by: UsageBy, since: u64) -> Result<UsageReport, ApiError> {
        let key = match by {
            UsageBy::Day => "date(at / 1000, 'unixepoch')",
            UsageBy::Model => "model",
            UsageBy::Run => "coalesce(run, '')",
            UsageBy::Conversation => "coalesce(conversation, '')",
            UsageBy::Sandbox => "coalesce(sandbox, '')",
            UsageBy::Provider => "provider",
            UsageBy::Token => "token",
        };
        let order = if by == UsageBy::Day { "1 DESC" } else { "7 DESC, 1" };
        self.ask(move |connection| {
            let rows = connection
                .prepare(&format!(
                    "SELECT {key}, {SUMS} FROM calls WHERE at >= ? AND state NOT IN ('failed', 'refused')
                     GROUP BY 1 ORDER BY {order} LIMIT 1000"
                ))?
                .query_map([sql(since)], usage_row)?
                .collect::<Result<Vec<_>, _>>()?;
            let total = connection.query_row(
                &format!("SELECT 'total', {SUMS} FROM calls WHERE at >= ? AND state NOT IN ('failed', 'refused')"),
                [sql(since)],
                usage_row,
            )?;
            Ok(UsageReport { by, since, rows, total })
        })
        .await
    }

    /// Of a call whose end nobody saw, the reservation counts.
    pub(crate) async fn cost_of_conversation(&self, id: &str) -> Result<Dollars, ApiError> {
        let id = id.to_owned();
        self.ask(move |connection| {
            let sum =
                "SELECT total(nanodollars) FROM calls WHERE conversation = ? AND state NOT IN ('failed', 'refused')";
            connection.query_row(sum, [id], |row| Ok(Dollars(whole(row, 0)?)))
        })
        .await
    }

    /// Newest first, older than `before`.
    pub(crate) async fn calls(
        &self,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<CallInfo>, ApiError> {
        self.ask(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, at, token, sandbox, run, conversation, provider, model, path, state, status,
                        input + cache_write, cached, output, nanodollars, took_ms, request_hash, response_hash,
                        verdict, times
                 FROM calls WHERE id < ? ORDER BY id DESC LIMIT ?",
            )?;
            let rows = statement.query_map(params![before.unwrap_or(i64::MAX), limit], call_info)?;
            rows.collect()
        })
        .await
    }
}

fn usage_row(row: &Row<'_>) -> rusqlite::Result<UsageRow> {
    Ok(UsageRow {
        key: row.get(0)?,
        calls: whole(row, 1)?,
        estimated: whole(row, 2)?,
        input_tokens: whole(row, 3)?,
        cached_tokens: whole(row, 4)?,
        output_tokens: whole(row, 5)?,
        dollars: Dollars(whole(row, 6)?).as_f64(),
    })
}

fn call_info(row: &Row<'_>) -> rusqlite::Result<CallInfo> {
    let hash = |index| row.get::<_, Option<Vec<u8>>>(index).map(|hash| hash.map(|hash| hex(&hash)));
    Ok(CallInfo {
        id: row.get(0)?,
        at: count(row, 1)?,
        token: row.get(2)?,
        sandbox: row.get(3)?,
        run: row.get(4)?,
        conversation: row.get(5)?,
        provider: row.get(6)?,
        model: row.get(7)?,
        path: row.get(8)?,
        state: row.get(9)?,
        status: row.get(10)?,
        input_tokens: count(row, 11)?,
        cached_tokens: count(row, 12)?,
        output_tokens: count(row, 13)?,
        dollars: Dollars(count(row, 14)?).as_f64(),
        took_ms: row.get::<_, Option<i64>>(15)?.map(|ms| u64::try_from(ms).unwrap_or(0)),
        request_hash: hash(16)?.unwrap_or_default(),
        response_hash: hash(17)?,
        verdict: row.get(18)?,
        times: Some(count(row, 19)?).filter(|times| *times > 1),
    })
}

fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(index)?).unwrap_or(0))
}

/// Of a sum; far beyond what anybody uses it is no longer exact.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a sum of counts")]
fn whole(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, f64>(index)?.max(0.0) as u64)
}

fn sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
