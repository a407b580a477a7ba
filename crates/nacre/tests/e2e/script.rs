//! A model server that says what a test wants, in OpenAI's chat format.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::computer::TestComputer;

/// What it does when it is asked.
pub(crate) enum Line {
    Says(&'static str),
    Calls(&'static str, Value),
}

/// Decides by what the conversation has come to, as a model does.
type Decide = dyn Fn(&Asked) -> Line + Send + Sync;

/// One request.
pub(crate) struct Asked {
    pub(crate) messages: Vec<Value>,
}

impl Asked {
    /// What came of the calls since the owner spoke last, in order.
    pub(crate) fn results(&self) -> Vec<&str> {
        let spoke = self.messages.iter().rposition(|message| message["role"] == "user");
        let since = &self.messages[spoke.map_or(0, |place| place + 1)..];
        let results = since.iter().filter(|message| message["role"] == "tool");
        results.map(|message| message["content"].as_str().unwrap_or_default()).collect()
    }

    pub(crate) fn text(&self) -> String {
        self.messages.iter().map(Value::to_string).collect()
    }

    /// What the owner said last.
    pub(crate) fn said(&self) -> &str {
        let user = self.messages.iter().rfind(|message| message["role"] == "user");
        user.and_then(|message| message["content"].as_str()).unwrap_or_default()
    }
}

pub(crate) struct Model {
    address: String,
}

impl Model {
    pub(crate) fn start(decide: impl Fn(&Asked) -> Line + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let decide: Arc<Decide> = Arc::new(decide);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let decide = decide.clone();
                std::thread::spawn(move || serve(stream, &*decide));
            }
        });
        Self { address }
    }

    /// A computer that uses it, switched on.
    pub(crate) fn computer(&self) -> TestComputer {
        self.computer_with("")
    }

    /// With more in its configuration.
    pub(crate) fn computer_with(&self, more: &str) -> TestComputer {
        let computer = TestComputer::switched_off();
        let config = format!("[agent]\nmodel = \"local/m\"\n{more}");
        std::fs::write(computer.data().join("nacre.toml"), config).unwrap();
        let url = format!("http://{}/v1", self.address);
        let args =
            ["provider", "add", "local", "--kind", "openai-compatible", "--no-key", "--url", &url];
        computer.ok(&args);
        computer.up();
        computer
    }
}

fn serve(mut stream: TcpStream, decide: &Decide) {
    let Some(body) = read(&mut stream) else { return };
    let body: Value = serde_json::from_str(&body).unwrap();
    let asked = Asked { messages: body["messages"].as_array().unwrap().clone() };
    let delta = match decide(&asked) {
        Line::Says(text) => json!({ "role": "assistant", "content": text }),
        Line::Calls(name, arguments) => {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            let id = format!("call-{}", asked.messages.len());
            let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
            json!({ "role": "assistant", "content": null, "tool_calls": [call] })
        }
    };
    let finish = if delta["tool_calls"].is_null() { "stop" } else { "tool_calls" };
    let first = json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] });
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 10, "completion_tokens": 5 } });
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let events = format!("data: {first}\n\ndata: {last}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
    let _ = stream.write_all(format!("{head}{events}").as_bytes());
}

/// The body of a request; `None` when whoever called went away.
fn read(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut piece = [0; 65536];
    loop {
        let read = stream.read(&mut piece).ok().filter(|read| *read > 0)?;
        request.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1)?.lines().next()?;
        if body.len() >= length.trim().parse::<usize>().ok()? {
            return Some(body.to_owned());
        }
    }
}
