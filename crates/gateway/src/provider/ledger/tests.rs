use super::*;
use crate::provider::book::Account;
use crate::provider::money::{Amount, Dollars};
use crate::provider::usage::Usage;
use nacre_wire::models::UsageBy;

pub(super) fn begun(token: &str, model: &str, at: u64) -> Begun {
    Begun {
        at,
        token: token.to_owned(),
        sandbox: Some("sb-1".to_owned()),
        run: Some("r1".to_owned()),
        conversation: None,
        provider: "openai".to_owned(),
        model: model.to_owned(),
        path: "chat/completions".to_owned(),
        input: 10,
        output: 100,
        nanodollars: 1000,
        request_hash: [7; 32],
    }
}

fn ended(outcome: Outcome) -> Ended {
    Ended::of(outcome, Some(200), 5).answered(Some([8; 32]), None)
}

#[tokio::test]
async fn what_is_older_than_a_year_goes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.db");
    let ledger = Ledger::open(&path).unwrap();
    ledger.begin(begun("t", "a", 5)).unwrap();
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
    let settled = ledger.begin(begun("t", "a", now)).unwrap();
    let usage = Usage { input: 3, cached: 1, cache_write: 1, output: 5, dollars: None };
    ledger.end(settled, ended(Outcome::Settled(usage, Dollars(40))));
    let failed = ledger.begin(begun("t", "a", now)).unwrap();
    ledger.end(failed, ended(Outcome::Failed));
    ledger.begin(begun("t", "b", now)).unwrap();
    ledger.begin(begun("t", "b", now - 86_400_000)).unwrap();
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

/// A gateway that is killed after a call began, and before or after the row was there.
#[tokio::test]
async fn lines_that_were_not_folded_count_and_those_that_were_count_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.db");
    let now = crate::clock::now_ms();
    let states = |calls: Vec<nacre_wire::models::CallInfo>| -> Vec<_> {
        calls.into_iter().map(|call| (call.id, call.state)).collect()
    };
    let ledger = Ledger::open(&path).unwrap();
    let first = ledger.begin(begun("t", "a", now)).unwrap();
    ledger.calls(None, 1).await.unwrap();
    drop(ledger);
    let (mut killed, _) = Journal::open(&path).unwrap();
    for (id, what) in [
        (first, What::Begun(begun("t", "a", now))),
        (first, What::Ended(ended(Outcome::Failed))),
        (first + 1, What::Begun(begun("t", "a", now))),
    ] {
        killed.append(Entry { id, what }).unwrap();
    }
    drop(killed);
    for _ in 0..2 {
        let ledger = Ledger::open(&path).unwrap();
        let found = states(ledger.calls(None, 10).await.unwrap());
        assert_eq!(found, [(first + 1, "kept".to_owned()), (first, "failed".to_owned())]);
    }
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.begin(begun("t", "a", now)).unwrap(), first + 2, "no number comes twice");
}

#[tokio::test]
async fn the_journal_is_empty_soon_after_the_last_call() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.db");
    let ledger = Ledger::open(&path).unwrap();
    for _ in 0..100 {
        let id = ledger.begin(begun("t", "a", crate::clock::now_ms())).unwrap();
        ledger.end(id, ended(Outcome::Failed));
    }
    let size = |half: &str| std::fs::metadata(path.with_extension(half)).unwrap().len();
    let began = std::time::Instant::now();
    while size("0.log") + size("1.log") > 0 {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "it is never folded");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(ledger.calls(None, 1000).await.unwrap().len(), 100);
}

#[test]
fn what_cannot_be_folded_now_is_folded_later_with_what_came_since() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.db");
    let (journal, left) = Journal::open(&path).unwrap();
    let (connection, next) = prepare(&path, &left).unwrap();
    connection.busy_timeout(std::time::Duration::ZERO).unwrap();
    let desk = Arc::new(Desk(Mutex::new(Writing { journal, next })));
    let (thread, _messages) = channel();
    let ledger = Ledger { desk: desk.clone(), thread };
    let mut folding = Folding { connection, desk, left: None };

    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let first = ledger.begin(begun("t", "a", 5)).unwrap();
    assert!(!folding.fold(), "somebody else writes");
    ledger.end(first, ended(Outcome::Failed));
    ledger.begin(begun("t", "a", 6)).unwrap();
    assert!(!folding.fold());
    other.execute_batch("ROLLBACK").unwrap();
    assert!(folding.fold());
    let states: Vec<String> = folding
        .connection
        .prepare("SELECT state FROM calls ORDER BY id")
        .and_then(|mut read| read.query_map([], |row| row.get(0))?.collect())
        .unwrap();
    assert_eq!(states, ["failed", "open"]);
    assert_eq!(Journal::open(&path).unwrap().1, [], "no line is left");
}

/// On a disk that is full: a limit on the size of files does the same, in a process that is not ended by it.
#[test]
fn a_full_disk_refuses_the_call_and_leaves_no_half_line() {
    const INSIDE: &str = "NACRE_TEST_FULL_DISK";
    if std::env::var_os(INSIDE).is_some() {
        return on_a_full_disk();
    }
    let name = "provider::ledger::tests::a_full_disk_refuses_the_call_and_leaves_no_half_line";
    let script = "trap '' XFSZ; exec \"$0\" \"$@\"";
    let ended = std::process::Command::new("/bin/sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("it was full"), "{ended:?}");
}

fn on_a_full_disk() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.db");
    let (journal, left) = Journal::open(&path).unwrap();
    let (connection, next) = prepare(&path, &left).unwrap();
    let desk = Arc::new(Desk(Mutex::new(Writing { journal, next })));
    let (thread, _messages) = channel();
    let ledger = Ledger { desk: desk.clone(), thread };
    let mut folding = Folding { connection, desk, left: None };
    let first = ledger.begin(begun("t", "a", 5)).unwrap();
    let half = path.with_extension("0.log");
    let whole = std::fs::metadata(&half).unwrap().len();
    let usual = getrlimit(Resource::Fsize);
    let room = Rlimit { current: Some(whole + whole / 2), maximum: usual.maximum };
    setrlimit(Resource::Fsize, room).unwrap();
    let refused = ledger.begin(begun("t", "b", 6));
    let left = std::fs::metadata(&half).unwrap().len();
    setrlimit(Resource::Fsize, usual).unwrap();
    assert!(refused.unwrap_err().message.contains("usage.db"));
    assert_eq!(left, whole, "half a line was left");
    let second = ledger.begin(begun("t", "c", 7)).unwrap();
    assert_eq!(second, first + 1, "the number was not used");
    let found: Vec<_> = Journal::open(&path).unwrap().1.iter().map(|entry| entry.id).collect();
    assert_eq!(found, [first, second]);
    assert!(folding.fold());
    println!("it was full");
}

/// Lines wait for others, and who asks does not wait with them.
#[tokio::test]
async fn a_question_does_not_wait_for_the_next_fold() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&dir.path().join("usage.db")).unwrap();
    let began = Instant::now();
    for number in 1..=10 {
        ledger.begin(begun("t", "a", crate::clock::now_ms())).unwrap();
        assert_eq!(ledger.calls(None, 100).await.unwrap().len(), number);
    }
    assert!(began.elapsed() < FOLD * 5, "{:?} for ten questions", began.elapsed());
}

/// Also from a database of before there were such rows.
#[tokio::test]
async fn refusals_push_out_no_calls() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("usage.db");
    let now = crate::clock::now_ms();
    let mut old = Connection::open(&path).unwrap();
    old.execute_batch(SCHEMA).unwrap();
    old.pragma_update(None, "user_version", 1).unwrap();
    let transaction = old.transaction().unwrap();
    begun("t", "before", now).insert(1, &transaction).unwrap();
    transaction.commit().unwrap();
    drop(old);

    let ledger = Ledger::open(&path).unwrap();
    ledger.begin(begun("t", "a", now)).unwrap();
    ledger.calls(None, 1).await.unwrap();
    drop(ledger);
    let mut connection = Connection::open(&path).unwrap();
    let transaction = connection.transaction().unwrap();
    let scope = Default::default();
    let reason = crate::provider::format::Reason::Budget;
    for id in 10..MOST_REFUSED + 20 {
        Refused::of(reason, now, "t", &scope, "p", "m", "x").insert(id, &transaction).unwrap();
    }
    forget_old(&transaction).unwrap();
    let count = |of: &str| -> i64 {
        let count = format!("SELECT count(*) FROM calls WHERE state {of} 'refused'");
        transaction.query_row(&count, [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("="), count("<>")), (MOST_REFUSED, 2));
}
