use nacre_wire::egress::EgressVerdict;

use super::*;

fn record(host: &str, verdict: EgressVerdict) -> EgressRecord {
    EgressRecord {
        id: 0,
        at: 7,
        sandbox: "live".to_owned(),
        sandbox_id: "sb-1".to_owned(),
        run: None,
        host: host.to_owned(),
        port: 443,
        address: Some("1.1.1.1".to_owned()),
        verdict,
        reason: None,
        sent: 3,
        received: 5,
        duration_ms: 9,
        times: 1,
    }
}

fn of(sandbox_id: &str, host: &str, verdict: EgressVerdict) -> EgressRecord {
    EgressRecord { sandbox_id: sandbox_id.to_owned(), ..record(host, verdict) }
}

fn all(limit: u32) -> Query {
    Query { limit, ..Query::default() }
}

fn verdicts(records: &[EgressRecord]) -> Vec<(EgressVerdict, Option<&str>)> {
    records.iter().map(|record| (record.verdict, record.reason.as_deref())).collect()
}

/// As a gateway finds it that starts after one was killed: whatever was on its way to the file is gone.
fn as_found(path: &Path, to: &Path) {
    for end in ["", "-wal"] {
        let name = |path: &Path| format!("{}{end}", path.display());
        std::fs::copy(name(path), name(to)).unwrap();
    }
}

#[tokio::test]
async fn records_come_back_as_they_went_in_and_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.db");
    let log = Log::open(&path, 100).unwrap();
    let mut follower = log.follow();
    log.ended(None, record("a.example", EgressVerdict::Allowed));
    log.ended(None, record("b.example", EgressVerdict::Refused));
    assert_eq!(follower.recv().await.unwrap().id, 1);
    log.close().await;
    let log = Log::open(&path, 100).unwrap();
    let read = log.read(all(10)).await.unwrap();
    let first = EgressRecord { id: 1, ..record("a.example", EgressVerdict::Allowed) };
    let second = EgressRecord { id: 2, ..record("b.example", EgressVerdict::Refused) };
    assert_eq!(read, [second.clone(), first.clone()]);
    assert_eq!(log.read(Query { before: Some(2), ..all(10) }).await.unwrap(), [first]);
    assert_eq!(log.read(Query { refused: true, ..all(10) }).await.unwrap(), [second]);
    let other = Query { sandbox_id: Some("sb-2".to_owned()), ..all(10) };
    assert_eq!(log.read(other).await.unwrap(), []);
}

#[tokio::test]
async fn only_so_many_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(&dir.path().join("egress.db"), 500).unwrap();
    for _ in 0..3000 {
        log.ended(None, record("a.example", EgressVerdict::Allowed));
    }
    let kept = log.read(all(5000)).await.unwrap();
    assert_eq!(kept.first().map(|record| record.id), Some(3000));
    assert!((500..=500 + 1000).contains(&kept.len()), "{}", kept.len());
    assert_eq!(log.lost(), 0);
}

#[tokio::test]
async fn refusals_do_not_push_out_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(&dir.path().join("egress.db"), 100).unwrap();
    for number in 0..50 {
        log.ended(None, record(&format!("told-{number}.example"), EgressVerdict::Allowed));
        log.ended(None, of("sb-2", &format!("no-{number}.example"), EgressVerdict::Refused));
        log.ended(None, of("sb-3", "a.example", EgressVerdict::Allowed));
    }
    // The same over and over is one row, and others are no more than there is room for.
    for _ in 0..2000 {
        log.ended(None, record("127.0.0.1", EgressVerdict::Refused));
    }
    let same = log.read(all(1)).await.unwrap().remove(0);
    assert_eq!((same.host.as_str(), same.times), ("127.0.0.1", 2000));
    for number in 0..4000 {
        log.ended(None, record(&format!("n-{number}.example"), EgressVerdict::Refused));
    }
    let kept = log.read(all(9000)).await.unwrap();
    let count = |wanted: fn(&EgressRecord) -> bool| kept.iter().filter(|one| wanted(one)).count();
    assert_eq!(count(|one| one.host.starts_with("told-")), 50, "what was done is there");
    assert_eq!(count(|one| one.sandbox_id == "sb-3"), 50);
    assert!(count(|one| one.sandbox_id == "sb-2") >= 12, "the other has its half of what is kept");
    assert!(count(|one| one.verdict == EgressVerdict::Refused) <= 25 + 1000);
    // Connections of one push out nobody else's either.
    for number in 0..4000 {
        log.ended(None, of("sb-3", &format!("n-{number}.example"), EgressVerdict::Allowed));
    }
    let kept = log.read(all(9000)).await.unwrap();
    assert_eq!(kept.iter().filter(|one| one.host.starts_with("told-")).count(), 50);
    assert_eq!(log.lost(), 0);
}

#[tokio::test]
async fn a_refusal_is_a_row_of_its_own_again_after_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(&dir.path().join("egress.db"), 100).unwrap();
    let mut follower = log.follow();
    let refused = |at| EgressRecord { at, ..record("a.example", EgressVerdict::Refused) };
    for at in [1000, 2000, 60_999] {
        log.ended(None, refused(at));
        log.read(all(1)).await.unwrap();
    }
    log.ended(None, refused(61_000));
    log.ended(None, EgressRecord { port: 80, ..refused(61_000) });
    let read = log.read(all(9)).await.unwrap();
    let counted: Vec<_> = read.iter().map(|one| (one.at, one.port, one.times)).collect();
    assert_eq!(counted, [(61_000, 80, 1), (61_000, 443, 1), (1000, 443, 3)]);
    let told = [follower.recv().await.unwrap().id, follower.recv().await.unwrap().id];
    assert_eq!(told, [1, 2], "a follower is told of each row once");
}

#[tokio::test]
async fn a_connection_has_its_row_while_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.db");
    let log = Log::open(&path, 100).unwrap();
    let mut follower = log.follow();
    let passed = Arc::new(Passed::default());
    let entry = log.opened(record("a.example", EgressVerdict::Open), &passed);
    passed.sent.store(70, Ordering::Relaxed);
    let open = log.read(all(9)).await.unwrap().remove(0);
    assert_eq!((open.verdict, open.sent, open.received), (EgressVerdict::Open, 70, 0));
    assert_eq!(log.read(Query { ended: true, ..all(9) }).await.unwrap(), []);
    let killed = dir.path().join("killed.db");
    as_found(&path, &killed);
    let found = Log::open(&killed, 100).unwrap().read(all(9)).await.unwrap();
    assert_eq!(verdicts(&found), [(EgressVerdict::Broken, Some("the gateway was killed"))]);
    log.ended(entry, record("a.example", EgressVerdict::Allowed));
    let ended = EgressRecord { id: 1, ..record("a.example", EgressVerdict::Allowed) };
    assert_eq!(log.read(all(9)).await.unwrap(), std::slice::from_ref(&ended));
    assert_eq!(*follower.recv().await.unwrap(), ended);
    // Another that ends before anybody wrote it down is one row too.
    let entry = log.opened(record("b.example", EgressVerdict::Open), &passed);
    log.ended(entry, record("b.example", EgressVerdict::Allowed));
    log.opened(record("c.example", EgressVerdict::Open), &passed);
    log.close().await;
    let found = Log::open(&path, 100).unwrap().read(all(9)).await.unwrap();
    let stopped = (EgressVerdict::Broken, Some("the gateway stopped"));
    assert_eq!(
        verdicts(&found),
        [stopped, (EgressVerdict::Allowed, None), (EgressVerdict::Allowed, None)]
    );
    assert_eq!(found[0].sent, 70, "as much as had passed");
}

#[tokio::test]
async fn what_the_disk_does_not_take_is_counted_as_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.db");
    let log = Log::open(&path, 100).unwrap();
    let passed = Arc::new(Passed::default());
    let entry = log.opened(record("open.example", EgressVerdict::Open), &passed);
    log.read(all(1)).await.unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    let refuse = "CREATE TRIGGER full BEFORE INSERT ON egress BEGIN SELECT RAISE(FAIL, 'full'); END;
                  CREATE TRIGGER full_too BEFORE UPDATE ON egress BEGIN SELECT RAISE(FAIL, 'full'); END;";
    other.execute_batch(refuse).unwrap();
    log.ended(entry, record("open.example", EgressVerdict::Allowed));
    let begun = log.opened(record("begun.example", EgressVerdict::Open), &passed);
    for _ in 0..3 {
        log.ended(None, record("a.example", EgressVerdict::Allowed));
    }
    log.ended(None, EgressRecord { times: 4, ..record("b.example", EgressVerdict::Refused) });
    log.read(all(9)).await.unwrap();
    assert_eq!(log.lost(), 7);
    other.execute_batch("DROP TRIGGER full; DROP TRIGGER full_too").unwrap();
    // The end of what has a row, and all of what was open meanwhile, are written yet.
    log.ended(begun, record("begun.example", EgressVerdict::Allowed));
    let read = log.read(all(9)).await.unwrap();
    let hosts: Vec<_> = read.iter().map(|one| (one.host.as_str(), one.verdict)).collect();
    assert_eq!(
        hosts,
        [("begun.example", EgressVerdict::Allowed), ("open.example", EgressVerdict::Allowed)]
    );
    assert_eq!(log.lost(), 7);
}

#[tokio::test]
async fn a_record_from_before_is_read_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("egress.db");
    let before = rusqlite::Connection::open(&path).unwrap();
    let old = "CREATE TABLE egress (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
        sandbox TEXT NOT NULL, sandbox_id TEXT NOT NULL, run TEXT, host TEXT NOT NULL,
        port INTEGER NOT NULL, address TEXT, verdict TEXT NOT NULL, reason TEXT,
        sent INTEGER NOT NULL, received INTEGER NOT NULL, duration_ms INTEGER NOT NULL) STRICT;
        INSERT INTO egress VALUES (4, 7, 'live', 'sb-1', NULL, 'a.example', 443, '1.1.1.1',
        'allowed', NULL, 3, 5, 9);";
    before.execute_batch(old).unwrap();
    drop(before);
    let log = Log::open(&path, 100).unwrap();
    let found = log.read(all(9)).await.unwrap();
    assert_eq!(found, [EgressRecord { id: 4, ..record("a.example", EgressVerdict::Allowed) }]);
}

#[test]
fn whoever_adds_never_waits_and_what_is_lost_is_counted() {
    let (queue, _nobody_reads) = mpsc::channel();
    let log = Log::with(queue);
    let passed = Arc::new(Passed::default());
    let entry = log.opened(record("a.example", EgressVerdict::Open), &passed);
    for _ in 0..QUEUE + 2 {
        log.ended(None, record("a.example", EgressVerdict::Allowed));
    }
    assert_eq!(log.lost(), 3);
    assert_eq!(log.opened(record("b.example", EgressVerdict::Open), &passed), None);
    log.ended(entry, record("a.example", EgressVerdict::Allowed));
    assert_eq!(log.lost(), 3, "what has begun can end");
}
