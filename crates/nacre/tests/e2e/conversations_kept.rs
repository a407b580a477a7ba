//! What a conversation has done stays known and can be taken back, whatever becomes of its sandboxes.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::computer::TestComputer;
use crate::script::{Line, Model};

/// Two tools that change a file; one of them says that it does not.
const SERVER: &str = r#"
import json, sys
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
tools = [{"name": "note", "description": "notes", "inputSchema": schema},
         {"name": "look", "description": "looks", "inputSchema": schema, "annotations": {"readOnlyHint": True}}]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "n", "version": "1"}}
    elif asked["method"] == "tools/list":
        result = {"tools": tools}
    else:
        with open("/workspace/notes.txt", "a") as notes:
            notes.write(asked["params"]["arguments"]["text"] + "\n")
        result = {"content": [{"type": "text", "text": "noted"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

fn events(pc: &TestComputer, id: &str) -> Vec<Value> {
    let lines = pc.ok(&["conversations", "show", id, "--json"]);
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["sessionUpdate"] == kind).collect()
}

fn newest(pc: &TestComputer) -> String {
    let list = pc.json(&["conversations", "--json"]);
    list["conversations"][0]["id"].as_str().unwrap().to_owned()
}

/// What is only done once the gateway has got to it.
fn until(what: &str, good: impl Fn() -> bool) {
    let began = Instant::now();
    while !good() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
    }
}

#[test]
fn mcp_of_nacre_toml_in_a_conversation() {
    let model = Model::start(|asked| match asked.results().len() {
        0 => Line::Calls("notes_note", json!({ "text": "one" })),
        1 => Line::Calls("notes_look", json!({ "text": "two" })),
        _ => Line::Says("noted"),
    });
    let pc =
        model.computer_with("[mcp.notes]\ncommand = [\"/usr/bin/python3\", \"/tmp/notes.py\"]\n");
    let copied = pc.pipe(&["exec", "--", "sh", "-c", "cat > /tmp/notes.py"], SERVER.into());
    assert!(copied.status.success());
    assert!(pc.ok(&["chat", "note it"]).contains("noted"));
    let notes = || pc.exec("cat notes.txt 2> /dev/null; true");
    assert_eq!(notes(), "one\ntwo\n");

    let id = newest(&pc);
    let all = events(&pc, &id);
    let calls = of_kind(&all, "tool_call");
    let recorded = of_kind(&all, "checkpoints");
    let tied: Vec<_> = recorded.iter().map(|event| &event["toolCallId"]).collect();
    assert_eq!(tied, calls.iter().map(|call| &call["toolCallId"]).collect::<Vec<_>>(), "{all:?}");
    for (call, left) in [(calls[1], "one\n"), (calls[0], "")] {
        pc.ok(&["conversations", "undo", &id, "--step", &call["seq"].to_string()]);
        assert_eq!(notes(), left);
    }
}

/// The file that the model was told of.
fn whole(text: &str) -> String {
    let path = text.split("the whole is in ").nth(1).expect("it is told of a file");
    path.split(']').next().unwrap().to_owned()
}

#[test]
fn put_aside_text_survives_a_restart_of_the_sandbox() {
    let model = Model::start(|asked| match (asked.said(), asked.results().last()) {
        ("count", None) => Line::Calls("run_command", json!({ "command": "seq 1 20000" })),
        ("look", None) => {
            let line = format!("grep -c . {}", whole(&asked.text()));
            Line::Calls("run_command", json!({ "command": line }))
        }
        ("read", None) => {
            let line = format!("rm -r {}", whole(&asked.text()));
            Line::Calls("run_command", json!({ "command": line }))
        }
        ("read", Some(result)) if result.contains("exit code 0") => {
            let arguments = json!({ "path": whole(&asked.text()), "offset": 9999, "limit": 1 });
            Line::Calls("read_file", arguments)
        }
        _ => Line::Says("done"),
    });
    let pc = model.computer();
    pc.ok(&["chat", "count"]);
    let id = newest(&pc);
    let last = || {
        let all = events(&pc, &id);
        let mut results = all.iter().filter_map(|event| event["rawOutput"]["text"].as_str());
        results.next_back().unwrap().to_owned()
    };
    assert!(last().contains("bytes left out here"), "{}", last());
    pc.ok(&["sandbox", "stop", "live"]);
    pc.ok(&["sandbox", "start", "live"]);
    assert_eq!(pc.exec("ls /tmp/nacre 2> /dev/null; true"), "", "its memory is another");
    pc.ok(&["chat", "-c", &id, "look"]);
    // Every number, and the line that says how it ended.
    assert_eq!(last(), "20001\n[exit code 0]");
    pc.ok(&["chat", "-c", &id, "read"]);
    assert!(last().contains("9999"), "what the sandbox has lost is read from here: {}", last());
    // A role may be another sandbox tomorrow.
    pc.ok(&["dev", "create"]);
    pc.ok(&["chat", "-c", &id, "look"]);
    assert_eq!(last(), "20001\n[exit code 0]");

    // And what is forgotten is forgotten everywhere.
    let kept = pc.data().join("conversations").join(&id);
    assert!(kept.is_dir());
    pc.ok(&["conversations", "rm", &id]);
    assert!(!kept.exists());
    for sandbox in ["live", "dev"] {
        let left = pc.ok(&["exec", "-s", sandbox, "--", "sh", "-c", "ls /tmp/nacre 2>&1; true"]);
        assert!(!left.contains(&id), "{sandbox}: {left}");
    }
}

/// Writes what was said to a file.
fn writer() -> Model {
    Model::start(|asked| match asked.results().len() {
        0 => {
            let said = asked.said();
            Line::Calls("write_file", json!({ "path": format!("{said}.txt"), "content": said }))
        }
        _ => Line::Says("written"),
    })
}

#[test]
fn undo_when_one_sandbox_is_gone() {
    let pc = writer().computer();
    pc.ok(&["dev", "create"]);
    pc.ok(&["chat", "tried"]);
    let id = newest(&pc);
    pc.ok(&["chat", "-c", &id, "--role", "live", "meant"]);
    assert_eq!(pc.exec("ls"), "meant.txt\n");
    pc.ok(&["dev", "delete", "--yes"]);

    let all = events(&pc, &id);
    let first = of_kind(&all, "turn_begins")[0]["seq"].to_string();
    let refused = pc.run(&["conversations", "undo", &id, "--turn", &first]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("is gone (dev, "), "{said}");
    let undone = pc.run(&["conversations", "undo", &id]);
    let said = String::from_utf8(undone.stderr).unwrap();
    assert!(undone.status.success() && said.contains("which was dev then: it is gone"), "{said}");
    assert_eq!(pc.exec("ls"), "");
}

/// As a crash leaves it after the intent was written down.
fn cut_off(pc: &TestComputer, id: &str, parts: &Value) {
    pc.signal_gateway(Signal::KILL);
    let file = pc.data().join("conversations").join(format!("{id}.json"));
    let mut meta: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    meta["undoing"] = json!({ "after": meta["seq"], "how": {}, "parts": parts });
    fs::write(&file, meta.to_string()).unwrap();
    pc.up();
}

#[test]
fn an_undo_that_was_cut_off_is_finished_after_the_start() {
    let pc = writer().computer();
    pc.ok(&["dev", "create"]);
    pc.ok(&["chat", "first"]);
    let id = newest(&pc);
    pc.ok(&["chat", "-c", &id, "--role", "live", "second"]);
    let all = events(&pc, &id);
    let parts = of_kind(&all, "checkpoints").into_iter().map(|event| {
        json!({ "sandbox": event["sandbox"], "checkpoints": event["checkpoints"], "paths": ["known"] })
    });
    let parts = Value::from(parts.collect::<Vec<_>>());
    // Of two sandboxes one was done, and nobody had said so yet.
    pc.ok(&["undo", "-s", "dev"]);
    cut_off(&pc, &id, &parts);
    let ls = |sandbox: &str| pc.ok(&["exec", "-s", sandbox, "--", "ls"]);
    until("the other is done too", || ls("live").is_empty());
    assert_eq!(ls("dev"), "");
    until("both are written down", || of_kind(&events(&pc, &id), "undone").len() == 2);
    let all = events(&pc, &id);
    let undone = of_kind(&all, "undone");
    assert_eq!(
        (&undone[0]["paths"], &undone[1]["paths"]),
        (&json!(["known"]), &json!(["second.txt"]))
    );
    until("it is over", || {
        let file = fs::read(pc.data().join(format!("conversations/{id}.json"))).unwrap();
        !String::from_utf8(file).unwrap().contains("undoing")
    });

    // What somebody has changed since is theirs: it is told, and holds up nothing.
    pc.ok(&["chat", "-c", &id, "third"]);
    let all = events(&pc, &id);
    let last = of_kind(&all, "checkpoints").pop().unwrap().clone();
    pc.ok(&["exec", "-s", "live", "--", "sh", "-c", "echo mine > third.txt"]);
    let part =
        json!([{ "sandbox": last["sandbox"], "checkpoints": last["checkpoints"], "paths": [] }]);
    cut_off(&pc, &id, &part);
    let said = |all: &[Value]| {
        of_kind(all, "notice")
            .iter()
            .any(|notice| notice.to_string().contains("third.txt was changed"))
    };
    until("it is told", || said(&events(&pc, &id)));
    assert_eq!(ls("live"), "third.txt\n");
    assert!(pc.ok(&["chat", "-c", &id, "fourth"]).contains("written"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writer_through_the_sandbox() {
    let pc = tokio::task::spawn_blocking(TestComputer::start).await.unwrap();
    pc.exec("printf '# On shells\\n\\nThey grow layer by layer.\\n' > paper.md");
    let address = pc.ok(&["publish", "paper.md", "--title", "On shells"]);
    let hash = address.trim().strip_prefix("nacre:edition:").unwrap();
    let owner = Browser::of_the_owner(&pc).await;
    let page = owner.get("/writer/", &[("accept", "text/html")]).await;
    assert_eq!(page.status.as_u16(), 200, "{:?}", page.body);
    assert!(String::from_utf8_lossy(&page.body).contains("On shells"), "{:?}", page.body);
    let content = owner.get(&format!("/writer/editions/{hash}/content"), &[]).await;
    assert_eq!(&content.body[..], b"# On shells\n\nThey grow layer by layer.\n");
    let manifest = owner.get(&format!("/writer/editions/{hash}/manifest"), &[]).await;
    assert_eq!(manifest.json()["title"], "On shells");
    // Nothing can be changed there, and nobody else gets in.
    let changed = owner.post(&format!("/writer/editions/{hash}"), "").await;
    assert!(changed.status.is_client_error(), "{}", changed.status);
    let stranger = Browser::stranger(&pc).get("/writer/editions", &[]).await;
    assert_eq!(stranger.status.as_u16(), 401);
    // Whoever asks from inside has no ticket.
    let ask = "import http.client, socket\n\
               class Host(http.client.HTTPConnection):\n\
               \x20   def connect(self):\n\
               \x20       self.sock = socket.socket(socket.AF_UNIX)\n\
               \x20       self.sock.connect('/run/nacre/host/host.sock')\n\
               host = Host('x'); host.request('GET', '/host/writer/editions')\n\
               print(host.getresponse().status)\n";
    let inside = pc.ok(&["exec", "--user", "root", "--", "/usr/bin/python3", "-c", ask]);
    assert_eq!(inside, "403\n");
}
