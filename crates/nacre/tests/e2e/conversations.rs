//! Conversations with real sandboxes: the personal loop, a killed gateway, and a sandbox that would like
//! to speak for its owner.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::browser::{Browser, Socket, next};
use crate::computer::TestComputer;
use crate::script::{Asked, Line, Model};

/// Complains about spaces at the end of a line.
const LINTER: &str = r#"#!/bin/sh
if grep -n ' $' notes.txt; then echo "notes.txt: trailing space"; exit 1; fi
echo clean
"#;

fn project(pc: &TestComputer, sandbox: &str) {
    let script =
        format!("cat > lint <<'E'\n{LINTER}E\nchmod +x lint; printf 'one \\ntwo\\n' > notes.txt");
    pc.ok(&["exec", "-s", sandbox, "--", "sh", "-c", &script]);
}

/// Runs the linter, mends what it complains about, and runs it again.
fn mend(asked: &Asked) -> Line {
    let run = || Line::Calls("run_command", json!({ "command": "./lint" }));
    match asked.results()[..] {
        [] => run(),
        [complaint] => {
            assert!(complaint.contains("trailing space"), "{complaint}");
            let edit =
                json!({ "path": "notes.txt", "old_string": "one \n", "new_string": "one\n" });
            Line::Calls("edit_file", edit)
        }
        [_, _] => run(),
        _ => Line::Says("The linter is content."),
    }
}

fn update(event: &Value) -> &str {
    event["sessionUpdate"].as_str().unwrap_or_default()
}

/// Everything up to the end of a turn, without a gap.
async fn to_the_end(events: &mut Socket) -> Vec<Value> {
    let mut seen: Vec<Value> = Vec::new();
    loop {
        let event = next(events).await;
        if let Some(last) = seen.last() {
            assert_eq!(event["seq"].as_u64(), last["seq"].as_u64().map(|seq| seq + 1));
        }
        let over = update(&event) == "ended";
        seen.push(event);
        if over {
            return seen;
        }
    }
}

fn events(pc: &TestComputer, id: &str) -> Vec<Value> {
    let lines = pc.ok(&["conversations", "show", id, "--json"]);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lint(pc: &TestComputer, sandbox: &str) -> Option<i32> {
    pc.run(&["exec", "-s", sandbox, "--", "./lint"]).status.code()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_the_linter_and_fix_the_errors() {
    let model = Model::start(mend);
    let pc = tokio::task::spawn_blocking(move || model.computer()).await.unwrap();
    project(&pc, "live");
    let browser = Browser::of_the_owner(&pc).await;
    let mut desktop = browser.socket("/ws").await.unwrap();
    assert_eq!(next(&mut desktop).await["type"], "hello");
    while next(&mut desktop).await["type"] != "watching" {}

    let made = browser.post("/conductor/conversations", "{}").await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/conductor/conversations/{id}");
    let mut follows = browser.socket(&format!("{path}/events?after=0")).await.unwrap();
    let say = json!({ "text": "run the linter and fix the errors" }).to_string();
    let sent = browser.post(&format!("{path}/messages"), &say).await;
    assert_eq!(sent.status.as_u16(), 202, "{:?}", sent.body);

    let seen = to_the_end(&mut follows).await;
    let all = Value::Array(seen.clone()).to_string();
    assert_eq!(seen.last().unwrap()["how"]["reason"], "done", "{all}");
    let streamed = |event: &Value| {
        event["status"] == "in_progress" && event.to_string().contains("notes.txt: trailing space")
    };
    assert!(seen.iter().any(streamed), "{all}");
    let patched = |event: &Value| event["content"][0]["newText"] == "one\ntwo\n";
    assert!(seen.iter().any(patched), "{all}");
    let passed = |event: &Value| event["rawOutput"]["text"] == "clean\n[exit code 0]";
    assert!(seen.iter().any(passed), "{all}");
    let recorded: Vec<_> = seen.iter().filter(|event| update(event) == "checkpoints").collect();
    assert_eq!(recorded.len(), 1, "only the edit changed anything: {all}");

    // The web client hears of the file, and of the conversation.
    let (mut of_file, mut of_talk) = (false, false);
    while !(of_file && of_talk) {
        let event = next(&mut desktop).await;
        of_file |= event["type"] == "files" && event.to_string().contains("notes.txt");
        of_talk |= event["type"] == "conversation" && event["id"] == id.as_str();
    }
    assert_eq!(lint(&pc, "live"), Some(0));

    let turn = json!({ "turn": seen[0]["seq"] }).to_string();
    let undone = browser.post(&format!("{path}/undo"), &turn).await;
    assert_eq!(undone.status.as_u16(), 200, "{:?}", undone.body);
    assert_eq!(undone.json()["sandboxes"][0]["outcome"]["of"], recorded[0]["checkpoints"]);
    assert_eq!(lint(&pc, "live"), Some(1), "the errors are back");
    let undone = next(&mut follows).await;
    assert_eq!((update(&undone), &undone["paths"]), ("undone", &json!(["notes.txt"])));
    let again = pc.run(&["conversations", "undo", &id]);
    let complaint = String::from_utf8(again.stderr).unwrap();
    assert!(complaint.contains("nothing of that is left to take back"), "{complaint}");
}

#[test]
fn what_each_step_changed_is_taken_back_by_itself() {
    let model = Model::start(|asked| match (asked.said(), asked.results().len()) {
        (_, 0) => Line::Calls("write_file", json!({ "path": "a.txt", "content": asked.said() })),
        (_, 1) => Line::Calls("run_command", json!({ "command": "echo b >> b.txt" })),
        _ => Line::Says("written"),
    });
    let pc = model.computer();
    pc.ok(&["dev", "create"]);
    let read = |sandbox: &str| {
        let script = "cat a.txt b.txt 2>/dev/null; true";
        pc.ok(&["exec", "-s", sandbox, "--", "sh", "-c", script])
    };
    let said = pc.ok(&["chat", "first"]);
    assert!(said.contains("* write a.txt") && said.contains("+first"), "{said}");
    assert!(said.contains("written\n-- 3 steps, 30 tokens in, 15 out"), "{said}");
    let list = pc.json(&["conversations", "--json"]);
    let id = list["conversations"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(list["conversations"][0]["title"], "first");
    pc.ok(&["chat", "-c", &id, "second"]);
    // On dev, because there is one.
    assert_eq!((read("live").as_str(), read("dev").as_str()), ("", "secondb\nb\n"));

    let all = events(&pc, &id);
    let number = |event: &Value| event["seq"].to_string();
    let calls: Vec<_> = all.iter().filter(|event| update(event) == "tool_call").collect();
    let turns: Vec<_> = all.iter().filter(|event| update(event) == "turn_begins").collect();
    assert_eq!((calls.len(), turns.len()), (4, 2));
    pc.ok(&["conversations", "undo", &id, "--step", &number(calls[3])]);
    assert_eq!(read("dev"), "secondb\n");
    pc.ok(&["conversations", "undo", &id, "--turn", &number(turns[1])]);
    assert_eq!(read("dev"), "firstb\n");
    // Somebody else's work is asked about, and the rest stays as it is.
    pc.ok(&["exec", "-s", "dev", "--", "sh", "-c", "echo mine >> b.txt"]);
    let conflict = pc.run(&["conversations", "undo", &id]);
    assert_eq!(conflict.status.code(), Some(3), "{conflict:?}");
    assert_eq!(read("dev"), "firstb\nmine\n");
    pc.ok(&["conversations", "undo", &id, "--keep"]);
    assert_eq!(read("dev"), "b\nmine\n");

    let fork = pc.ok(&["conversations", "fork", &id, "--at", &number(turns[1])]);
    let shown = pc.ok(&["conversations", "show", fork.trim()]);
    assert!(shown.contains("> first") && !shown.contains("> second"), "{shown}");
    let refused = pc.run(&["conversations", "undo", fork.trim(), "--step", &number(calls[0])]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains(&id));
    pc.ok(&["conversations", "rename", fork.trim(), "the other way"]);
    assert!(pc.ok(&["conversations"]).contains("the other way"));
    // All of it without a sandbox.
    pc.ok(&["sandbox", "stop", "live"]);
    pc.ok(&["sandbox", "stop", "dev"]);
    assert!(pc.ok(&["conversations", "show", &id]).contains("> second"));
    let refused = pc.run(&["chat", "-c", &id, "third"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("nacre sandbox start dev"));
    pc.ok(&["conversations", "rm", &id, fork.trim()]);
    assert!(pc.ok(&["conversations"]).starts_with("There are no conversations"));
}

/// Counts how often it ran, and waits.
const ONCE: &str = "echo ran >> /workspace/count; echo started; exec sleep 600";

#[test]
fn a_killed_gateway_does_nothing_twice() {
    let model = Model::start(|asked| match (asked.said(), asked.results().len()) {
        ("begin", 0) => Line::Calls("run_command", json!({ "command": ONCE })),
        ("begin", _) => Line::Says("it ran to its end"),
        _ if asked.text().contains("interrupted: it is not known how far this got") => {
            Line::Says("I know that it was interrupted")
        }
        _ => Line::Says("I know nothing"),
    });
    let pc = model.computer();
    let mut chat = pc.command(&["chat", "--json", "begin"]);
    chat.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut chat = chat.spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(chat.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("started")), "the command runs");
    let id = pc.json(&["conversations", "--json"])["conversations"][0]["id"].clone();
    let id = id.as_str().unwrap();
    let before = events(&pc, id);
    pc.signal_gateway(Signal::KILL);
    assert!(!chat.wait().unwrap().success());
    pc.up();
    let after = events(&pc, id);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.last().unwrap()["how"]["reason"], "interrupted", "{after:?}");
    // The command ended with the connection that it belonged to.
    pc.exec("while pgrep -x sleep > /dev/null; do :; done");
    assert!(pc.ok(&["chat", "-c", id, "and?"]).contains("I know that it was interrupted"));
    assert_eq!(pc.exec("cat count"), "ran\n");
    // What it had changed by then is its own to take back, though it never said so.
    pc.ok(&["conversations", "undo", id, "--turn", "1"]);
    assert_eq!(pc.exec("ls"), "");
}

/// Asks the host for what only who came through the door may have, as root and as the user.
const INTRUDER: &str = r#"
import http.client, socket
class Host(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect("/run/nacre/host/host.sock")
def ask(connection, method, path, headers={}):
    try:
        connection.request(method, path, None, headers)
        return connection.getresponse().status
    except OSError as error:
        return type(error).__name__
claims = {"x-nacre-user": "owner", "x-nacre-ticket": "99999999999999." + "0" * 64}
for path in ["/host/conductor/conversations", "/conductor/conversations", "/admin/sandboxes/conductor/conversations"]:
    print(ask(Host("x"), "POST", path), ask(Host("x"), "POST", path, claims))
for port in [8001, 8002, 8003, 8080]:
    print(port, ask(http.client.HTTPConnection("127.0.0.1", port, timeout=5), "POST", "/conductor/conversations", claims))
"#;

#[test]
fn nothing_in_a_sandbox_speaks_for_its_owner() {
    let pc = Model::start(|_| Line::Says("hello")).computer();
    for (user, expected) in [("root", "403 403"), ("nacre", "PermissionError PermissionError")] {
        let said = pc.ok(&["exec", "--user", user, "--", "/usr/bin/python3", "-c", INTRUDER]);
        let mut lines = said.lines();
        assert_eq!(lines.next(), Some(expected), "{said}");
        assert!(!said.contains("201"), "{said}");
    }
    let list = pc.json(&["conversations", "--json"]);
    assert_eq!(list["conversations"], json!([]));
}

#[test]
fn a_question_is_answered_from_another_terminal() {
    let model = Model::start(|asked| match asked.results().last() {
        None => Line::Calls("run_command", json!({ "command": "echo yes > answer" })),
        Some(result) if result.contains("exit code 0") => Line::Says("it was allowed"),
        Some(_) => Line::Says("it was denied"),
    });
    let pc = model.computer();
    for (word, said) in [("deny", "it was denied"), ("allow", "it was allowed")] {
        let mut chat = pc.command(&["chat", "--mode", "ask", "do it"]);
        let chat = chat.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let id = loop {
            let list = pc.json(&["conversations", "--json"]);
            let all = list["conversations"].as_array().unwrap();
            let asking = all.iter().find(|info| info["state"] == "asking");
            if let Some(info) = asking {
                break info["id"].as_str().unwrap().to_owned();
            }
        };
        pc.ok(&["conversations", word, &id]);
        let output = chat.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(said), "{text}");
        assert!(text.contains("? echo yes > answer"), "{text}");
    }
    assert_eq!(pc.exec("cat answer"), "yes\n");
}
