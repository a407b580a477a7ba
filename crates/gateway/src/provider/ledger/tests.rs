use super::*;
use crate::provider::book::Account;
use crate::provider::money::{Amount, Dollars};
use crate::provider::usage::Usage;
use nacre_wire::models::UsageBy;

fn begun(token: &str, model: &str, at: u64) -> Begun {
    Begun {
        at,
        token: token.to_owned(),
        sandbox: Some("sb-1".to_owned()),
        run: Some("r1".to_owned()),
        conversation: None,
        provider: "openai".to_owned(),
        model: model.to_owned(),
        path: "chat/completions".to_owned(),
        most: Usage { input: 10, output: 100, ..Usage::default() },
        reserved: Amount { tokens: 110, dollars: Dollars(1000) },
        request_hash: [7; 32],
    }
}

fn ended(row: i64, outcome: Outcome) -> Ended {
    Ended {
        row,
        outcome,
        status: Some(200),
        took_ms: 5,
        response_hash: Some([8; 32]),
        bodies: None,
    }
}

#[tokio::test]
async fn what_is_older_than_a_year_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.db");
    let ledger = Ledger::open(&path).unwrap();
    ledger.begin(begun("t", "a", 5)).await.unwrap();
    assert_eq!(ledger.calls(None, 10).await.unwrap().len(), 1);
    drop(ledger);
    assert_eq!(Ledger::open(&path).unwrap().calls(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn sums_are_of_the_day_and_of_the_life_of_a_token_and_what_was_under_way_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.db");
    let now = crate::clock::now_ms();
    let ledger = Ledger::open(&path).unwrap();
    let settled = ledger.begin(begun("t", "a", now)).await.unwrap();
    let usage = Usage { input: 3, cached: 1, cache_write: 1, output: 5, dollars: None };
    ledger.end(ended(settled, Outcome::Settled(usage, Dollars(40))));
    let failed = ledger.begin(begun("t", "a", now)).await.unwrap();
    ledger.end(ended(failed, Outcome::Failed));
    ledger.begin(begun("t", "b", now)).await.unwrap();
    ledger.begin(begun("t", "b", now - 86_400_000)).await.unwrap();
    ledger.calls(None, 1).await.unwrap();
    drop(ledger);

    let ledger = Ledger::open(&path).unwrap();
    let sums = ledger.sums(now - 1).await.unwrap();
    let of = |account: Account| sums.iter().find(|sum| sum.0 == account).unwrap().1;
    assert_eq!(of(Account::Token("t".into())), Amount { tokens: 230, dollars: Dollars(2040) });
    for daily in [Account::Day, Account::Provider("openai".into()), Account::Sandbox("sb-1".into())]
    {
        assert_eq!(of(daily), Amount { tokens: 120, dollars: Dollars(1040) });
    }
    let report = ledger.usage(UsageBy::Model, 0).await.unwrap();
    let rows: Vec<_> =
        report.rows.iter().map(|row| (row.key.as_str(), row.calls, row.estimated)).collect();
    assert_eq!(rows, [("b", 2, 2), ("a", 1, 0)]);
    assert_eq!((report.total.calls, report.total.input_tokens), (3, 24));
    let calls = ledger.calls(None, 10).await.unwrap();
    let states: Vec<_> = calls.iter().map(|call| call.state.as_str()).collect();
    assert_eq!(states, ["kept", "kept", "failed", "settled"]);
    assert_eq!(calls[3].request_hash, "07".repeat(32));
    assert_eq!(ledger.calls(Some(calls[1].id), 1).await.unwrap(), [calls[2].clone()]);
}
