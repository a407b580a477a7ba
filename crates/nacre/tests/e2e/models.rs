//! Models from inside a real sandbox: the variables lead there, the key never enters, and a killed
//! gateway forgets nothing.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::computer::TestComputer;
use crate::isolation::SEARCH;

const REAL_KEY: &str = "sk-real-canary-52b1f0c3a9d84e77";

/// A provider that answers every request, unless it is told to hang.
struct Provider {
    address: String,
    heads: Receiver<String>,
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, heads) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || serve(stream, |head| sender.send(head).unwrap()));
            }
        });
        Self { address, heads }
    }

    fn add_to(&self, computer: &TestComputer) {
        let url = format!("http://{}/v1", self.address);
        let added = computer.pipe(&["provider", "add", "openai", "--url", &url], REAL_KEY.into());
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    }
}

fn serve(mut stream: TcpStream, seen: impl FnOnce(String)) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    let (head, body) = loop {
        let read = stream.read(&mut piece).unwrap();
        request.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .to_lowercase()
            .split("content-length: ")
            .nth(1)
            .map_or(0, |rest| rest.lines().next().unwrap().trim().parse::<usize>().unwrap());
        if body.len() >= length {
            break (head.to_owned(), body.to_owned());
        }
    };
    let hang = body.contains("\"hang\"");
    seen(head);
    if hang {
        // Until the other side has gone.
        let _ = stream.read(&mut piece);
        return;
    }
    let answer = "{\"said\":\"hello\",\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}";
    let length = answer.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let _ = write!(stream, "{head}content-length: {length}\r\n\r\n{answer}");
}

/// A program that knows nothing but the usual variables.
const PROGRAM: &str = r#"
import json, os, sys, urllib.request, urllib.error
body = {"model": "gpt-4o", "max_tokens": 100, "user": sys.argv[1] if len(sys.argv) > 1 else ""}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    data=json.dumps(body).encode(),
    headers={"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"},
)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    print(opener.open(request, timeout=60).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"#;

fn ask(computer: &TestComputer) -> String {
    computer.ok(&["exec", "--", "/usr/bin/python3", "-c", PROGRAM])
}

#[test]
fn the_usual_variables_lead_to_a_model_and_the_key_stays_outside() {
    // The clock of a file's times may be behind a little.
    let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() - 5.0;
    let began = began.to_string();
    let provider = Provider::start();
    let computer = TestComputer::start();
    assert_eq!(computer.exec("env | grep -c OPENAI || true"), "0\n", "there is nothing to name");
    provider.add_to(&computer);
    // The supervisor is told of it; nothing tells us when it has heard.
    while !computer.exec("env").contains("OPENAI_BASE_URL=http://127.0.0.1:8002/provider/v1/openai")
    {
    }
    assert!(ask(&computer).contains("\"said\":\"hello\""));
    let head = provider.heads.recv().unwrap();
    assert!(head.contains(&format!("Bearer {REAL_KEY}")), "{head}");
    assert!(!head.contains("nacre_model_"), "{head}");

    // A sandbox that is made later has them from its first command on, and they are its own.
    computer.ok(&["sandbox", "create", "work", "--start"]);
    let theirs = computer.ok(&["exec", "-s", "work", "--", "sh", "-c", "echo $OPENAI_API_KEY"]);
    assert!(theirs.starts_with("nacre_model_"), "{theirs:?}");
    let swapped = format!("OPENAI_API_KEY={}", theirs.trim());
    let refused =
        computer.ok(&["exec", "--env", &swapped, "--", "/usr/bin/python3", "-c", PROGRAM]);
    assert!(refused.starts_with("401") && refused.contains("its own sandbox"), "{refused}");
    computer.exec("test \"$(OPENAI_API_KEY=mine sh -c 'echo $OPENAI_API_KEY')\" = mine");

    let usage = computer.json(&["usage", "--by", "sandbox", "--json"]);
    assert_eq!(usage["total"]["calls"], 1, "{usage}");
    assert_eq!(usage["total"]["input_tokens"], 10);

    computer.exec("printf planted-to-be-found > /tmp/planted");
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let secrets = format!("key {}\nplanted {}\n", hex(REAL_KEY), hex("planted-to-be-found"));
    for user in ["root", "nacre"] {
        let args = ["exec", "-i", "--user", user, "--", "/usr/bin/python3", "-c", SEARCH, &began];
        let found = computer.pipe(&args, secrets.clone().into());
        let found = String::from_utf8(found.stdout).unwrap();
        assert!(found.contains("found planted /tmp/planted"), "{found}");
        assert!(!found.contains("found key"), "{found}");
    }
    let log = std::fs::read_to_string(computer.data().join("gateway.log")).unwrap();
    assert!(!log.contains(REAL_KEY) && !log.contains("nacre_model_"), "{log}");
    let key = computer.data().join("keys/openai");
    use std::os::unix::fs::MetadataExt;
    assert_eq!(std::fs::metadata(key).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_call_under_way_when_the_gateway_is_killed_counts_and_processes_go_on_after() {
    let provider = Provider::start();
    let computer = TestComputer::switched_off();
    provider.add_to(&computer);
    computer.up();
    // A process that lives through it, with the variables it was started with.
    computer.exec("mkdir -p /tmp/w && mkfifo /tmp/w/again");
    let script = format!(
        "cat > /tmp/w/ask.py <<'E'\n{PROGRAM}\nE\ncat /tmp/w/again; python3 /tmp/w/ask.py > /tmp/w/said"
    );
    computer.ok(&["exec", "--detach", "--", "sh", "-c", &script]);
    let mut hanging = computer
        .command(&["exec", "--", "/usr/bin/python3", "-c", PROGRAM, "hang"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    provider.heads.recv().unwrap();
    computer.signal_gateway(Signal::KILL);
    let _ = hanging.wait();
    computer.up();
    let calls = computer.json(&["usage", "--calls", "--json"])["calls"].clone();
    assert_eq!(
        (&calls[0]["state"], &calls[0]["output_tokens"]),
        (&"kept".into(), &100.into()),
        "{calls}"
    );
    computer.exec(
        "echo go > /tmp/w/again; until grep -q . /tmp/w/said 2>/dev/null; do sleep 0.05; done",
    );
    let said = computer.exec("cat /tmp/w/said");
    assert!(said.contains("\"said\":\"hello\""), "{said}");
}

#[test]
fn the_switch_and_the_words_from_the_command_line() {
    let provider = Provider::start();
    let computer = TestComputer::switched_off();
    provider.add_to(&computer);
    computer.up();
    let list = computer.ok(&["provider", "list"]);
    assert!(
        list.contains("openai") && list.contains("ready") && !list.contains(REAL_KEY),
        "{list}"
    );
    assert!(computer.ok(&["provider", "stop"]).starts_with("Stopped model calls"));
    assert!(ask(&computer).contains("nacre provider start"));
    computer.ok(&["provider", "start"]);
    assert!(ask(&computer).contains("hello"));
    let table = computer.ok(&["usage", "--by", "model"]);
    assert!(table.contains("MODEL") && table.contains("gpt-4o"), "{table}");
    let calls = computer.ok(&["usage", "--calls"]);
    assert!(calls.contains("refused: stopped") && calls.contains("settled"), "{calls}");
    computer.ok(&["provider", "remove", "openai"]);
    assert!(computer.ok(&["provider", "list"]).starts_with("There are no providers"));
    assert!(!computer.data().join("keys/openai").exists());
}
