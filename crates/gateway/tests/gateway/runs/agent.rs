//! Sandboxes in which a task is a script: whatever agent is started does what its first word says.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use nacre_gateway::AgentProgram;
use nacre_sandbox::BoxStream;
use nacre_sandbox::fake::{FakeDriver, Guest};
use nacre_wire::client::{Client, Dial};
use nacre_wire::exec::{ClientControl, ExecRequest, Exit, ServerControl};
use nacre_wire::files::{FileKind, Stat, Unpacked};
use nacre_wire::models::{AskEnvironment, GuestEnvironment, PROTOCOL};
use nacre_wire::runs::{RunEvent, RunInfo, RunUpdate, StartRun};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::models::stage::{Stage, config};
use crate::raw::{Wire, within};

pub(super) const MODEL: &str = "openai/gpt-4o";

type Put = Vec<(String, Vec<u8>)>;

/// What every sandbox shares with the test.
#[derive(Clone)]
pub(super) struct Script {
    /// Agents that are told to wait at the gate pass it one for each permit.
    pub(super) gate: Arc<Semaphore>,
    /// Paths and bytes that were put into sandboxes, and what was started there.
    pub(super) put: Arc<Mutex<Put>>,
    pub(super) started: Arc<Mutex<Vec<ExecRequest>>>,
}

impl Script {
    /// What was put there last.
    pub(super) fn put(&self, path: &str) -> Option<Vec<u8>> {
        let put = self.put.lock().unwrap();
        put.iter().rev().find(|(at, _)| at == path).map(|(_, bytes)| bytes.clone())
    }
}

/// A gateway that knows models, with such sandboxes.
pub(super) async fn stage(
    change: impl FnOnce(&mut nacre_gateway::GatewayConfig),
) -> (Stage, Script) {
    let script =
        Script { gate: Arc::new(Semaphore::new(0)), put: Arc::default(), started: Arc::default() };
    let shared = script.clone();
    let world = FakeDriver::new(Arc::new(move |guest, stream| {
        let router = supervisor(guest, shared.clone());
        Box::pin(async move {
            let service = TowerToHyperService::new(router);
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            let _ = connection.await;
        })
    }));
    let stage = Stage::set_in(world, |config| {
        config.runs.program = AgentProgram(Bytes::from_static(b"the agent itself"));
        config.runs.at_once = 2;
        change(config);
    });
    (stage.await, script)
}

/// The same providers again, for a gateway that starts a second time.
pub(super) fn same_models(stage: &Stage) -> nacre_gateway::ModelsConfig {
    config(&stage.address(), Default::default())
}

pub(super) fn task(spec: &str) -> StartRun {
    StartRun { spec: spec.to_owned(), model: Some(MODEL.to_owned()), ..StartRun::default() }
}

/// Starts it and follows it to its end.
pub(super) async fn run(stage: &Stage, wanted: StartRun) -> (RunInfo, Vec<RunEvent>) {
    let admin = stage.host.admin();
    let begun = admin.start_run(&wanted).await.unwrap();
    let events = follow(stage, &begun.id).await;
    (admin.run_info(&begun.id).await.unwrap(), events)
}

pub(super) async fn follow(stage: &Stage, id: &str) -> Vec<RunEvent> {
    let mut stream = stage.host.admin().follow_run(id).await.unwrap();
    let mut events = Vec::new();
    while let Some(line) = within("an event comes", stream.next()).await.unwrap() {
        events.push(serde_json::from_slice(&line).unwrap());
    }
    events
}

/// Waits until the agent of a run has said this.
pub(super) async fn until_said(events: &mut nacre_wire::client::RunEvents, text: &str) {
    loop {
        let line = within("an event comes", events.next()).await.unwrap().expect("it goes on");
        let event: RunEvent = serde_json::from_slice(&line).unwrap();
        if said(&event).as_deref() == Some(text) {
            return;
        }
    }
}

/// What an agent says, of whichever kind it is.
pub(super) fn said(event: &RunEvent) -> Option<String> {
    match &event.update {
        RunUpdate::Agent { event } if event["sessionUpdate"] == "agent_message_chunk" => {
            event["content"]["text"].as_str().map(str::to_owned)
        }
        RunUpdate::Output { line, .. } => Some(line.clone()),
        _ => None,
    }
}

#[derive(Deserialize)]
struct At {
    path: String,
}

type Known = State<(Guest, Script)>;

fn supervisor(guest: Guest, script: Script) -> Router {
    Router::new()
        .route("/supervisor/files/content", put(write).get(read))
        .route("/supervisor/files/archive", put(unpack))
        .route("/supervisor/history", get(newest))
        .route("/supervisor/history/diff", get(diff))
        .route("/supervisor/exec", get(exec))
        .with_state((guest, script))
}

async fn write(
    State((_, script)): Known,
    Query(At { path }): Query<At>,
    body: Bytes,
) -> Json<Stat> {
    let stat = Stat {
        path: path.as_str().into(),
        kind: FileKind::File,
        size: body.len() as u64,
        mode: 0o644,
        uid: 0,
        gid: 0,
        links: 1,
        modified_ns: 0,
        etag: "1".to_owned(),
        target: None,
    };
    script.put.lock().unwrap().push((path, body.to_vec()));
    Json(stat)
}

async fn read(Query(At { path }): Query<At>) -> String {
    format!("content of {path}\n")
}

async fn unpack(State((_, script)): Known, body: Bytes) -> Json<Unpacked> {
    script.put.lock().unwrap().push(("input".to_owned(), body.to_vec()));
    Json(Unpacked { entries: 1, bytes: body.len() as u64 })
}

async fn newest() -> Json<Value> {
    let cause = json!({"kind": "change"});
    let checkpoint = json!({
        "id": 7, "time": 0, "cause": cause, "authors": [], "added": 1, "changed": 0, "removed": 0
    });
    Json(json!({"checkpoints": [checkpoint]}))
}

#[derive(Deserialize)]
struct Since {
    from: u64,
}

/// One name for each way to change.
async fn diff(Query(Since { from }): Query<Since>) -> Json<Value> {
    let file = |size: u64| json!({"kind": "file", "size": size, "mode": 0o644, "uid": 1, "gid": 1, "mtime": 1000});
    let new = format!("--- /dev/null\n+++ b/from-{from}\n@@ -0,0 +1 @@\n+x\n");
    Json(json!({
        "total": 3,
        "changes": [
            {"path": format!("from-{from}"), "new": file(2), "diff": new},
            {"path": "gone", "old": file(2), "diff": "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
            {"path": "huge", "old": file(2), "new": file(1 << 40), "omitted": "too_large"},
        ]
    }))
}

async fn exec(State((guest, script)): Known, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| act(socket, guest, script)).into_response()
}

/// A command under way.
struct Process {
    socket: WebSocket,
    own: bool,
}

async fn act(socket: WebSocket, guest: Guest, script: Script) {
    let mut process = Process { socket, own: false };
    let Some(ClientControl::Start(request)) = process.control().await else { return };
    process.send(&ServerControl::Started { id: "c1".to_owned(), pid: 1 }).await;
    process.own = request.stdin;
    script.started.lock().unwrap().push((*request).clone());
    let order: Value = match request.stdin {
        true => serde_json::from_slice(&process.input().await).unwrap(),
        false => {
            json!({"task": String::from_utf8(script.put("/run/nacre-run/spec.txt").unwrap()).unwrap()})
        }
    };
    let task = order["task"].as_str().unwrap().to_owned();
    process.play(&task, &order, &guest, &script).await;
}

impl Process {
    async fn play(&mut self, task: &str, order: &Value, guest: &Guest, script: &Script) {
        match task.split_whitespace().next().unwrap() {
            "say" => {
                self.say(task).await;
                self.end("done", 0).await;
            }
            "call" => {
                let answer = call_model(guest, order).await;
                self.say(&answer).await;
                self.end("done", 0).await;
            }
            "think" => {
                let answer = super::own::think(guest, order).await;
                self.say(&answer).await;
                self.end("done", 0).await;
            }
            "look" => {
                let found = look_around(guest, order).await;
                self.say(&found).await;
                self.end("done", 0).await;
            }
            "gate" => {
                self.say("at the gate").await;
                script.gate.acquire().await.unwrap().forget();
                self.end("done", 0).await;
            }
            "wait" => {
                self.say("waiting").await;
                while !matches!(self.control().await, Some(ClientControl::Signal { .. }) | None) {}
                self.end("cancelled", 130).await;
            }
            "stubborn" => {
                self.say("never").await;
                std::future::pending::<()>().await;
            }
            "steps" => {
                self.event(json!({"sessionUpdate": "reply", "reply": {"text": "hm"}})).await;
                self.end("max_steps", 10).await;
            }
            "crash" => {
                self.bytes(2, b"first\nboom\n").await;
                self.exit(3).await;
            }
            other => panic!("no such script: {other}"),
        }
    }

    async fn control(&mut self) -> Option<ClientControl> {
        match self.socket.recv().await? {
            Ok(Message::Text(text)) => serde_json::from_str(&text).ok(),
            _ => None,
        }
    }

    async fn input(&mut self) -> Vec<u8> {
        let mut input = Vec::new();
        while let Some(Ok(message)) = self.socket.recv().await {
            match message {
                Message::Binary(bytes) => input.extend_from_slice(&bytes),
                _ => return input,
            }
        }
        input
    }

    async fn send(&mut self, message: &ServerControl) {
        let text = serde_json::to_string(message).unwrap();
        let _ = self.socket.send(Message::text(text)).await;
    }

    async fn bytes(&mut self, stream: u8, bytes: &[u8]) {
        let framed = [&[stream], bytes].concat();
        let _ = self.socket.send(Message::binary(framed)).await;
    }

    async fn event(&mut self, update: Value) {
        let mut event = json!({"seq": 1, "at": 1});
        event.as_object_mut().unwrap().extend(update.as_object().unwrap().clone());
        self.bytes(1, format!("{event}\n").as_bytes()).await;
    }

    async fn say(&mut self, text: &str) {
        if !self.own {
            return self.bytes(1, format!("{text}\n").as_bytes()).await;
        }
        let content = json!({"type": "text", "text": text});
        self.event(json!({"sessionUpdate": "agent_message_chunk", "content": content})).await;
    }

    async fn end(&mut self, reason: &str, code: i32) {
        if self.own {
            self.event(json!({"sessionUpdate": "ended", "how": {"reason": reason}})).await;
        }
        self.exit(code).await;
    }

    async fn exit(&mut self, code: i32) {
        let exit = Exit { code: Some(code), signal: None, timed_out: false, out_of_memory: false };
        self.send(&ServerControl::Exit(exit)).await;
        // The other side closes.
        let _ = tokio::time::timeout(Duration::from_secs(5), self.socket.recv()).await;
    }
}

pub(super) struct ToHost(pub(super) Guest);

#[async_trait]
impl Dial for ToHost {
    async fn dial(&self) -> io::Result<BoxStream> {
        Ok(Box::new(self.0.dial_host()))
    }
}

/// What commands of the sandbox find in their environment, beside what the order says.
async fn look_around(guest: &Guest, order: &Value) -> String {
    let host = Client::new(Arc::new(ToHost(guest.clone())), "");
    let found: GuestEnvironment =
        host.post_json("/host/environment", &AskEnvironment::default()).await.unwrap();
    let token = order["service"]["token"].as_str();
    let own = found.variables.get("OPENAI_API_KEY").map(String::as_str) == token;
    format!("own token: {own}, others: {}", found.variables.contains_key("ANTHROPIC_API_KEY"))
}

/// As a process in the sandbox does it, with what the order gave it. Returns the first line.
async fn call_model(guest: &Guest, order: &Value) -> String {
    let service = &order["service"];
    let base = service["base"].as_str().unwrap();
    let path = format!("{}responses", base.strip_prefix("http://127.0.0.1:8002").unwrap());
    let body =
        json!({"model": service["model"], "input": "hi", "max_output_tokens": 5}).to_string();
    let host = Client::new(Arc::new(ToHost(guest.clone())), "");
    let mut wire = Wire(host.switch("/host/provider", PROTOCOL).await.unwrap().stream);
    wire.send(format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:8002\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        service["token"].as_str().unwrap(),
        body.len()
    ))
    .await;
    wire.head().await.lines().next().unwrap().to_owned()
}
