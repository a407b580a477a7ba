//! History through the door of a real supervisor.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers here are tests too")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use nacre_agent::body::{Body, Command as BodyCommand, Expected, Remote, Write};
use nacre_wire::client::{Client, ListHistory, WriteOptions};
use nacre_wire::exec::ExecRequest;
use nacre_wire::history::{
    Author, By, Cause, Choice, HistoryState, How, RedoRequest, RestoreRequest, UndoRequest,
};
use nacre_wire::{ErrorKind, WirePath};

struct Computer {
    home: tempfile::TempDir,
    supervisor: Child,
    client: Client,
}

impl Computer {
    async fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        let (supervisor, client) = launch(home.path()).await;
        Self { home, supervisor, client }
    }

    fn kill(&mut self) {
        self.supervisor.kill().unwrap();
        self.supervisor.wait().unwrap();
    }

    async fn restart(&mut self) {
        self.kill();
        (self.supervisor, self.client) = launch(self.home.path()).await;
    }

    fn work(&self, path: &str) -> PathBuf {
        self.home.path().join("work").join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.work(path)).unwrap()
    }

    async fn sh(&self, script: &str) -> String {
        let request = ExecRequest { shell: Some(script.to_owned()), ..ExecRequest::default() };
        let done = self.client.run(request).await.unwrap();
        assert_eq!(done.exit.code, Some(0), "{script}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// The authors of the newest checkpoint, and what it counts.
    async fn newest(&self) -> nacre_wire::history::CheckpointInfo {
        self.client.history(&ListHistory::default()).await.unwrap().checkpoints.remove(0)
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
    }
}

async fn launch(home: &Path) -> (Child, Client) {
    let door = home.join("door.sock");
    let _ = fs::remove_file(&door);
    let mut supervisor = Command::new(env!("CARGO_BIN_EXE_nacre-guest"))
        .arg("serve")
        .arg("--door")
        .arg(&door)
        .arg("--workspace")
        .arg(home.join("work"))
        .arg("--history")
        .arg(home.join("history"))
        .spawn()
        .unwrap();
    let client = Client::unix(door);
    for _ in 0..600 {
        if client.health().await.is_ok() {
            return (supervisor, client);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    supervisor.kill().unwrap();
    panic!("the supervisor does not answer, and ended with {:?}", supervisor.wait());
}

fn last(count: u64) -> UndoRequest {
    UndoRequest { last: Some(count), ..UndoRequest::default() }
}

#[tokio::test]
async fn what_a_command_did_is_its_own_and_can_be_undone() {
    let pc = Computer::start().await;
    pc.sh("mkdir src && echo one > src/a && echo keep > b").await;
    let first = pc.newest().await;
    assert!(
        matches!(&first.authors[..], [Author::Command { line, .. }] if line.contains("mkdir src")),
        "{first:?}"
    );
    assert_eq!((first.added, first.changed, first.removed), (3, 0, 0));
    pc.sh("echo two > src/a").await;
    pc.sh("true").await;
    let by = UndoRequest { by: Some(By::LastCommand), ..UndoRequest::default() };
    let outcome = pc.client.undo(&by).await.unwrap();
    assert_eq!(outcome.conflicts, []);
    assert_eq!(pc.read("src/a"), "one\n");
    assert!(matches!(outcome.checkpoint.unwrap().cause, Cause::Undo { .. }));
    pc.client.redo(&RedoRequest::default()).await.unwrap();
    assert_eq!(pc.read("src/a"), "two\n");
}

#[tokio::test]
async fn a_new_workspace_begins_empty_and_the_first_change_can_be_undone() {
    let pc = Computer::start().await;
    pc.sh("echo 1 > a").await;
    pc.client.undo(&last(1)).await.unwrap();
    assert_eq!(fs::read_dir(pc.work("")).unwrap().count(), 0);
    let nothing = pc.client.undo(&last(1)).await.unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::InvalidRequest, "{nothing}");
}

#[tokio::test]
async fn what_nobody_announced_is_recorded_after_a_quiet_moment() {
    let pc = Computer::start().await;
    pc.sh("echo 1 > a").await;
    let mut events = pc.client.events(None).await.unwrap();
    let before = pc.newest().await.id;
    fs::write(pc.work("by-hand"), "x").unwrap();
    let recorded = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let message = events.next().await.unwrap();
            if let nacre_wire::events::Event::Checkpoint { checkpoint } = message.event
                && checkpoint.id > before
            {
                return checkpoint;
            }
        }
    });
    let recorded = recorded.await.expect("a checkpoint on the socket");
    assert_eq!((recorded.added, recorded.authors), (1, vec![]));
}

#[tokio::test]
async fn a_file_call_is_recorded_with_whom_it_was_for() {
    let pc = Computer::start().await;
    pc.client.write("note.txt", "hello\n", &WriteOptions::default()).await.unwrap();
    let newest = pc.newest().await;
    assert!(
        matches!(&newest.authors[..], [Author::Api { call }] if call == "write note.txt"),
        "{newest:?}"
    );
    let changes = pc.client.checkpoint(newest.id, None, true).await.unwrap();
    assert_eq!(changes.changes.len(), 1);
    assert!(changes.changes[0].diff.as_ref().unwrap().contains("+hello"));
}

#[tokio::test]
async fn rm_rf_everything_and_undo_after_kill_9() {
    let mut pc = Computer::start().await;
    pc.sh("mkdir -p a/b && echo 1 > a/b/c && ln -s a/b/c link && echo x > .hidden").await;
    pc.sh("rm -rf a link .hidden").await;
    // What a client was told is recorded; the list says when that is.
    pc.newest().await;
    pc.restart().await;
    pc.client.undo(&last(1)).await.unwrap();
    assert_eq!(pc.read("a/b/c"), "1\n");
    assert_eq!(pc.read("link"), "1\n");
    assert_eq!(pc.read(".hidden"), "x\n");
}

#[tokio::test]
async fn changes_made_while_nobody_looked_are_found_at_the_start() {
    let mut pc = Computer::start().await;
    pc.sh("echo 1 > a").await;
    pc.newest().await;
    pc.kill();
    fs::write(pc.work("a"), "2").unwrap();
    fs::write(pc.work("b"), "new").unwrap();
    pc.restart().await;
    let newest = pc.newest().await;
    assert_eq!((newest.added, newest.changed), (1, 1));
    pc.client.undo(&last(1)).await.unwrap();
    assert_eq!(pc.read("a"), "1\n");
    assert!(!pc.work("b").exists());
}

#[tokio::test]
async fn a_conflict_is_told_with_who_caused_it() {
    let pc = Computer::start().await;
    pc.sh("echo 1 > a; echo 1 > b").await;
    pc.sh("echo 2 > a; echo 2 > b").await;
    let agent = pc.newest().await.id;
    pc.sh("echo 3 > a").await;
    let request = UndoRequest { checkpoints: vec![agent], ..UndoRequest::default() };
    let outcome = pc.client.undo(&request).await.unwrap();
    assert!(outcome.checkpoint.is_none());
    let [conflict] = &outcome.conflicts[..] else { panic!("{outcome:?}") };
    assert_eq!(
        (conflict.path.clone(), conflict.reason.as_str()),
        (WirePath::from("a"), "changed_later")
    );
    let by = conflict.by.as_ref().unwrap();
    assert!(
        matches!(&by.authors[..], [Author::Command { line, .. }] if line == "echo 3 > a"),
        "{by:?}"
    );
    assert_eq!((pc.read("a"), pc.read("b")), ("3\n".into(), "2\n".into()));
    let how = How { on_conflict: Choice::Keep, ..How::default() };
    let request = UndoRequest { checkpoints: vec![agent], how, ..UndoRequest::default() };
    pc.client.undo(&request).await.unwrap();
    assert_eq!((pc.read("a"), pc.read("b")), ("3\n".into(), "1\n".into()));
}

#[tokio::test]
async fn two_who_undo_at_once_go_one_after_the_other() {
    let pc = Computer::start().await;
    for number in 1..=4 {
        pc.sh(&format!("echo {number} > a")).await;
    }
    let latest = pc.newest().await.id;
    let how = How { expected: Some(latest), ..How::default() };
    let request = UndoRequest { last: Some(1), how, ..UndoRequest::default() };
    let (one, other) = tokio::join!(pc.client.undo(&request), pc.client.undo(&request));
    let refused: Vec<_> = [one, other].into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].kind(), ErrorKind::Conflict);
    assert_eq!(pc.read("a"), "3\n");
}

#[tokio::test]
async fn restore_to_a_time_a_file_from_the_past_and_a_dry_run() {
    let pc = Computer::start().await;
    pc.sh("echo 1 > a; echo 1 > b").await;
    let old = pc.newest().await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    pc.sh("echo 2 > a; rm b; echo 2 > c").await;
    let how = How { dry_run: true, ..How::default() };
    let request = RestoreRequest { time: Some(old.time), how, ..RestoreRequest::default() };
    let planned = pc.client.restore(&request).await.unwrap();
    assert_eq!((planned.changes.total, planned.checkpoint), (3, None));
    assert_eq!(pc.read("a"), "2\n");
    let request = RestoreRequest { how: How::default(), ..request };
    pc.client.restore(&request).await.unwrap();
    assert_eq!((pc.read("a"), pc.read("b")), ("1\n".into(), "1\n".into()));
    assert!(!pc.work("c").exists());
    let diff = pc.client.history_diff(old.id, Some(old.id + 1), None).await.unwrap();
    assert_eq!(diff.total, 3);
}

#[tokio::test]
async fn the_owner_may_leave_names_out_and_nobody_else() {
    let pc = Computer::start().await;
    pc.sh("echo 1 > a").await;
    let mut settings = pc.client.history_settings().await.unwrap();
    settings.exclude = vec!["cache/**".to_owned(), "cache".to_owned()];
    pc.client.set_history_settings(&settings).await.unwrap();
    pc.sh("mkdir cache; echo 1 > cache/x; echo 1 > kept").await;
    let newest = pc.newest().await;
    assert_eq!(newest.added, 1, "{newest:?}");
    pc.client.undo(&last(1)).await.unwrap();
    assert!(pc.work("cache/x").exists() && !pc.work("kept").exists());
}

#[tokio::test]
async fn a_history_that_cannot_be_read_is_set_aside() {
    let mut pc = Computer::start().await;
    pc.sh("echo 1 > a").await;
    pc.newest().await;
    pc.kill();
    let store = pc.home.path().join("history");
    for name in ["log.db", "log.db-wal"] {
        let _ =
            fs::write(store.join(name), b"this is no database, and it is long enough to look at");
    }
    pc.restart().await;
    let status = pc.client.history_status().await.unwrap();
    assert!(status.set_aside.is_some(), "{status:?}");
    assert_eq!(status.state, HistoryState::Recording);
    pc.sh("echo 2 > a").await;
    pc.client.undo(&last(1)).await.unwrap();
    assert_eq!(pc.read("a"), "1\n");
}

#[tokio::test]
async fn a_history_that_cannot_be_opened_says_why_and_records_once_it_can() {
    let mut pc = Computer::start().await;
    pc.kill();
    let store = pc.home.path().join("history");
    let _ = fs::remove_dir_all(&store);
    fs::write(&store, "in the way").unwrap();
    pc.restart().await;
    pc.sh("echo 1 > a").await;
    let status = pc.client.history_status().await.unwrap();
    assert!(
        matches!(&status.state, HistoryState::Refusing { why } if !why.is_empty()),
        "{status:?}"
    );
    fs::remove_file(&store).unwrap();
    pc.newest().await;
    let status = pc.client.history_status().await.unwrap();
    assert_eq!(status.state, HistoryState::Recording);
}

#[tokio::test]
async fn usage_verify_label_and_export_answer() {
    let pc = Computer::start().await;
    pc.sh("echo 1 > a").await;
    let id = pc.newest().await.id;
    pc.client.label_checkpoint(id, Some("good")).await.unwrap();
    let labelled = ListHistory { labelled: true, ..ListHistory::default() };
    let page = pc.client.history(&labelled).await.unwrap();
    assert_eq!(page.checkpoints.len(), 1);
    assert_eq!(page.checkpoints[0].label.as_deref(), Some("good"));
    let usage = pc.client.history_usage().await.unwrap();
    assert!(usage.disk_bytes > 0 && usage.quota_bytes > 0 && usage.present_bytes == 2, "{usage:?}");
    assert_eq!(pc.client.verify_history().await.unwrap().damaged, []);
    let export = pc.client.export_history("nacre").await.unwrap();
    let bytes = http_body_util::BodyExt::collect(export.into_body()).await.unwrap().to_bytes();
    assert!(bytes.ends_with(b"done\n"));
}

#[tokio::test]
async fn what_was_written_in_haste_is_pressed_when_nobody_wants_anything() {
    let pc = Computer::start().await;
    let script = "for i in $(seq 60); do head -c 100000 /dev/urandom | od -An -tx1 > f$i; done";
    pc.sh(script).await;
    let sum = "cat f* | cksum";
    let before = pc.sh(sum).await;
    let packs = pc.home.path().join("history/packs");
    let first = packs.join("00000001.pack");
    assert!(first.exists() && packs.join("00000002.pack").exists());
    let deadline = std::time::Instant::now() + Duration::from_secs(120);
    while first.exists() {
        assert!(std::time::Instant::now() < deadline, "it was not pressed");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    pc.sh("rm f*").await;
    pc.client.undo(&last(1)).await.unwrap();
    assert_eq!(pc.sh(sum).await, before);
    assert_eq!(pc.client.verify_history().await.unwrap().damaged, []);
}

#[tokio::test]
async fn what_a_conversation_changed_is_undone_by_its_name_and_nothing_else() {
    let computer = Computer::start().await;
    computer.sh("echo mine > mine; echo before > both").await;
    let body: &dyn Body = &Remote::new(computer.client.clone(), "c1");
    let write = Write {
        bytes: b"after\n".to_vec(),
        expected: Expected::Anything,
        call: Some("call-1".to_owned()),
    };
    body.write_file("both", &write).await.unwrap();
    let command = BodyCommand {
        line: "echo made > made".to_owned(),
        within: None,
        timeout: Duration::from_secs(60),
        call: Some("call-2".to_owned()),
    };
    body.run(&command, 0).await.unwrap();
    let by = |call: &str| Author::Conversation { id: "c1".to_owned(), call: Some(call.to_owned()) };
    assert!(computer.newest().await.authors.contains(&by("call-2")));
    computer.sh("echo later > later").await;
    let author = Author::Conversation { id: "c1".to_owned(), call: None };
    let undo = UndoRequest { by: Some(By::Author { author }), ..UndoRequest::default() };
    computer.client.undo(&undo).await.unwrap();
    assert_eq!(computer.read("both"), "before\n");
    assert!(!computer.work("made").exists());
    assert_eq!(
        (computer.read("mine"), computer.read("later")),
        ("mine\n".into(), "later\n".into())
    );
}

#[tokio::test]
async fn whoever_attends_is_tied_to_what_others_change() {
    let pc = Computer::start().await;
    pc.sh("echo a > a").await;
    let by = [Author::Conversation { id: "c".to_owned(), call: Some("1.5".to_owned()) }];
    let attended = pc.client.attend(&by).await.unwrap();
    fs::write(pc.work("b"), "b").unwrap();
    let newest = pc.newest().await;
    assert_eq!((newest.added, newest.authors.as_slice()), (1, &by[..]));
    drop(attended);
    // When the supervisor has seen the end of the connection, nobody is at work.
    for n in 0.. {
        fs::write(pc.work("c"), n.to_string()).unwrap();
        if pc.newest().await.authors.is_empty() {
            break;
        }
    }
    let refused = pc.client.attend(&[]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
}
