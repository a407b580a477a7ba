//! What happened to the files, and taking it back.

use std::process::{Command, Output};

use crate::computer::TestComputer;
use crate::pty::Pty;

impl TestComputer {
    /// The newest checkpoint.
    fn newest(&self) -> serde_json::Value {
        self.json(&["history", "--json", "--limit", "1"])["checkpoints"][0].clone()
    }

    fn newest_id(&self) -> String {
        format!("@{}", self.newest()["id"])
    }

    fn state_of_live(&self) -> String {
        let status = self.json(&["status", "--json"]);
        status["sandboxes"][0]["state"].as_str().unwrap().to_owned()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const EVERYTHING: &str = "find . -printf '%p %y %m %T@ %l\\n' | sort; \
     find . -type f -exec cksum {} + | sort -k3";

#[test]
fn what_rm_removed_comes_back() {
    let pc = TestComputer::start();
    pc.exec("mkdir -p a/b empty; seq 1000 > a/b/c; ln -s a/b/c link; echo x > .h; chmod 600 .h");
    let before = pc.exec(EVERYTHING);
    pc.exec("rm -rf /workspace/* /workspace/.h");
    assert_eq!(pc.exec("ls -A"), "");

    let said = pc.ok(&["undo"]);
    assert!(said.starts_with("Undone @") && said.contains("6 added"), "{said}");
    assert!(said.ends_with("To get it back: nacre redo\n"), "{said}");
    // The root's own time is when things came back.
    let without_root = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(without_root(&pc.exec(EVERYTHING)), without_root(&before));

    let list = pc.json(&["history", "--json"]);
    let kinds: Vec<_> =
        list["checkpoints"].as_array().unwrap().iter().map(|one| &one["cause"]["kind"]).collect();
    assert_eq!(kinds[..2], ["undo", "change"], "{list}");
    assert_eq!(list["checkpoints"][1]["undone"], true);
    let shown = pc.ok(&["history"]);
    assert!(shown.contains("undo of @") && shown.contains("rm -rf"), "{shown}");
    assert!(!shown.contains('\x1b'), "colour only on a terminal: {shown}");

    assert!(pc.ok(&["redo"]).ends_with("To take it back: nacre undo\n"));
    assert_eq!(pc.exec("ls -A"), "");
}

#[test]
fn what_a_command_did_to_500_files_is_undone_and_later_work_stays() {
    let pc = TestComputer::start();
    pc.exec("mkdir d; for n in $(seq 500); do echo $n > d/$n; done; echo mine > notes");
    let sums = pc.exec("cat d/* | cksum");
    pc.exec("for f in d/*; do echo broken > $f; done; rm d/7");
    let here = tempfile::tempdir().unwrap();
    let later = here.path().join("later");
    std::fs::write(&later, "later\n").unwrap();
    pc.ok(&["cp", later.to_str().unwrap(), ":d/later"]);
    pc.ok(&["cp", later.to_str().unwrap(), ":notes"]);

    let dry = pc.ok(&["undo", "--last-command", "--dry-run"]);
    assert!(dry.contains("1 added, 499 changed") && dry.contains("Nothing was touched"), "{dry}");
    assert_eq!(pc.exec("cat d/1"), "broken\n");
    pc.ok(&["undo", "--last-command"]);
    assert_eq!(
        pc.exec("cat d/later notes; rm d/later; cat d/* | cksum"),
        format!("later\nlater\n{sums}")
    );
}

#[test]
fn a_stopped_sandbox_is_woken_for_it_and_stopped_again() {
    let pc = TestComputer::start();
    pc.exec("echo 1 > a");
    pc.exec("echo 2 > a");
    pc.ok(&["sandbox", "stop", "live"]);
    let undone = pc.run(&["undo"]);
    assert!(undone.status.success(), "{}", stderr(&undone));
    assert_eq!(
        stderr(&undone),
        "nacre: live is stopped; starting it for this\nnacre: live is stopped again\n"
    );
    assert_eq!(pc.state_of_live(), "stopped");

    let refused = pc.run(&["undo", "@999"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("is stopped again\nerror: "), "{}", stderr(&refused));
    assert_eq!(pc.state_of_live(), "stopped");

    assert!(pc.ok(&["history"]).contains("undo of @"));
    assert_eq!(pc.state_of_live(), "stopped");
    pc.ok(&["sandbox", "start", "live"]);
    assert_eq!(pc.exec("cat a"), "1\n");
}

#[test]
fn a_conflict_touches_nothing_until_somebody_decides() {
    let pc = TestComputer::start();
    pc.exec("echo 1 > a; echo 1 > b; echo 1 > c");
    pc.exec("echo 2 > a; echo 2 > b; echo 2 > c");
    let id = pc.newest_id();
    pc.exec("echo 3 > a; echo 3 > c");
    let refused = pc.run(&["undo", &id]);
    assert_eq!(refused.status.code(), Some(3));
    let said = stderr(&refused);
    assert!(said.contains("  a: changed later by @") && said.contains("echo 3 > a"), "{said}");
    assert!(said.contains("--keep") && said.contains("--overwrite"), "{said}");
    assert_eq!(pc.exec("cat a b c"), "3\n2\n3\n");
    let json = pc.run(&["undo", &id, "--json"]);
    assert_eq!(json.status.code(), Some(3));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["conflicts"].as_array().unwrap().len(), 2);

    // One is kept and the other is not.
    let mut terminal = Pty::open(200, 40);
    let mut asked = terminal.start(pc.command(&["undo", &id]));
    terminal.until("(a)bort? ");
    terminal.type_in("what\n");
    terminal.until("(a)bort? ");
    terminal.type_in("k\n");
    terminal.until("  c: changed later");
    terminal.until("(a)bort? ");
    terminal.type_in("o\n");
    terminal.until("nacre redo");
    assert_eq!(asked.wait().unwrap().code(), Some(0));
    assert_eq!(pc.exec("cat a b c"), "3\n1\n1\n");

    pc.ok(&["redo"]);
    pc.ok(&["undo", "--checkpoint", &id, "--keep"]);
    assert_eq!(pc.exec("cat a b c"), "3\n1\n3\n");
}

#[test]
fn a_restore_goes_to_a_time_or_a_checkpoint_and_asks_a_person() {
    let pc = TestComputer::start();
    pc.exec("echo 1 > a; mkdir d; echo 1 > d/b");
    let then = pc.newest();
    let (id, time) = (format!("@{}", then["id"]), then["time"].as_i64().unwrap());
    let time = jiff::Timestamp::from_millisecond(time + 1).unwrap().to_string();
    pc.exec("sleep 0.01; echo 2 > a; rm -r d; echo 2 > new");
    pc.exec("echo 3 > a");

    pc.ok(&["restore", "--at", &time, "d"]);
    assert_eq!(pc.exec("cat a d/b new"), "3\n1\n2\n");
    pc.ok(&["restore", "--at", &time]);
    assert_eq!(pc.exec("cat a d/b; ls"), "1\n1\na\nd\n");
    assert!(pc.ok(&["restore", "--at", &id]).starts_with("Nothing to do"));
    pc.ok(&["undo"]);
    assert_eq!(pc.exec("cat a new"), "3\n2\n");

    let mut terminal = Pty::open(120, 40);
    for (answer, expected, code) in [("n\n", "3\n", 1), ("y\n", "1\n", 0)] {
        let mut asked = terminal.start(pc.command(&["restore", "--at", &id]));
        let preview = terminal.until("Go on? [y/N] ");
        assert!(preview.contains("1 changed, 1 removed"), "{preview}");
        terminal.type_in(answer);
        assert_eq!(asked.wait().unwrap().code(), Some(code));
        assert_eq!(pc.exec("cat a"), expected);
    }
    let early = pc.run(&["restore", "--at", "2020-01-01"]);
    assert_eq!(early.status.code(), Some(1));
    assert!(stderr(&early).contains("does not reach back that far"), "{}", stderr(&early));
}

#[test]
fn the_past_can_be_looked_at() {
    let pc = TestComputer::start();
    pc.exec("echo one > a; printf '\\000\\001' > bin");
    let id = pc.newest_id();
    pc.exec("echo two > a; chmod 755 a; mkdir d");
    let diff = pc.ok(&["diff"]);
    assert!(diff.contains("mode 644 -> 755 of a\n"), "{diff}");
    assert!(diff.contains("\n-one\n+two\n") && diff.contains("new directory d\n"), "{diff}");
    assert_eq!(pc.ok(&["diff", &id, "--stat"]), "~ a  mode 644 -> 755\n+ d/\n");
    assert_eq!(pc.ok(&["diff", &id, "--stat", "d"]), "+ d/\n");
    assert_eq!(pc.ok(&["history", "cat", "a", "--at", &id]), "one\n");
    assert!(pc.ok(&["history", "show", &id, "--diff"]).contains("new file bin (binary)"));

    pc.ok(&["history", "label", &id, "the good one"]);
    let labelled = pc.ok(&["history", "--labelled"]);
    assert!(labelled.contains("\"the good one\"") && labelled.lines().count() == 2, "{labelled}");
    pc.ok(&["history", "label", &id, "--remove"]);
    assert!(pc.ok(&["history", "--labelled"]).starts_with("Nothing"));
    assert!(pc.ok(&["history", "d"]).contains("+1 ~1"), "the one that made d");

    assert!(pc.ok(&["history", "status"]).starts_with("Changes are recorded."));
    assert!(pc.ok(&["history", "du"]).contains("that history may take"));
    assert!(pc.ok(&["history", "verify"]).starts_with("All "));
    pc.ok(&["history", "settings", "--exclude", "cache", "--quota", "1G"]);
    assert_eq!(
        pc.json(&["history", "settings", "--json"]),
        serde_json::json!({ "exclude": ["cache"], "quota_bytes": 1 << 30 })
    );
    pc.exec("mkdir cache; echo x > cache/x; echo y > y");
    assert_eq!(pc.newest()["added"], 1);
    pc.ok(&["history", "settings", "--largest-file", "1K"]);
    pc.exec("head -c 2000 /dev/zero > large");
    assert_eq!(pc.newest()["remarks"][0]["what"], "too_large");
    pc.ok(&["history", "settings", "--reset"]);
    pc.exec("head -c 2001 /dev/zero > large");
    assert_eq!(pc.newest()["remarks"], serde_json::Value::Null, "the limit is gone at once");
    assert_eq!(pc.json(&["history", "settings", "--json"])["exclude"], serde_json::json!([]));
    assert_eq!(pc.run(&["history", "--limit", "3", "status"]).status.code(), Some(1));
}

#[test]
fn damage_is_found_and_named() {
    let pc = TestComputer::start();
    pc.exec("mkdir src; seq 100000 > src/numbers");
    pc.newest();
    pc.ok(&["sandbox", "stop", "live"]);
    let script = "find . -path '*history/packs/*' -type f | head -1 | tr -d '\\n'";
    let pack = Command::new("sh").args(["-c", script]).current_dir(pc.data()).output().unwrap();
    let pack = pc.data().join(String::from_utf8(pack.stdout).unwrap());
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&pack, bytes).unwrap();
    let found = pc.run(&["history", "verify"]);
    assert_eq!(found.status.code(), Some(1), "{}", stderr(&found));
    let said = String::from_utf8(found.stdout).unwrap();
    assert!(said.contains("  src/numbers of @"), "{said}");
}

#[test]
fn every_checkpoint_becomes_a_commit() {
    let pc = TestComputer::start();
    pc.exec("echo 1 > a");
    pc.exec("mkdir d; echo 2 > d/b");
    let here = tempfile::tempdir().unwrap();
    let folder = here.path().join("past");
    let folder = folder.to_str().unwrap();
    let said = pc.ok(&["history", "export", "--git", folder, "--branch", "sand"]);
    assert!(said.contains("commits on branch sand"), "{said}");
    let git = |args: &[&str]| {
        let output = Command::new("git").args(["-C", folder]).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(git(&["log", "--format=%B"]).contains("mkdir d"));
    assert_eq!(git(&["show", "sand:d/b"]), "2\n");
    assert_eq!(git(&["status", "--porcelain"]), "");
    assert_eq!(std::fs::read_to_string(here.path().join("past/a")).unwrap(), "1\n");

    // What came since is added to the same branch.
    pc.exec("echo 3 > a");
    pc.ok(&["history", "export", "--git", folder, "--branch", "sand"]);
    assert_eq!(git(&["show", "sand:a"]), "3\n");
    let nowhere = pc.command(&["history", "export", "--git", folder]).env("PATH", "/").output();
    let complaint = stderr(&nowhere.unwrap());
    assert!(complaint.starts_with("error: git is not installed here\nhint: "), "{complaint}");
}
