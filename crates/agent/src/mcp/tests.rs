//! A server of our own that misbehaves on demand; real ones are in `tests/models`.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::Notify;

use super::*;
use crate::body::{self, Command, Entry, File, Local, Opened, Output, Program, Remarks, Write};

/// A body whose programs are the server below; files are where they always are.
struct Stage {
    files: Local,
    _dir: tempfile::TempDir,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    starts: Mutex<u32>,
    cancelled: Notify,
}

#[async_trait]
impl Body for Stage {
    async fn execute(
        &self,
        _: &Command,
        _: &mut Output<'_>,
    ) -> body::Result<nacre_wire::exec::Exit> {
        unreachable!("servers run no commands")
    }

    async fn read_file(&self, path: &str, at_most: u64) -> body::Result<File> {
        self.files.read_file(path, at_most).await
    }

    async fn write_file(&self, path: &str, write: &Write) -> body::Result<()> {
        self.files.write_file(path, write).await
    }

    async fn list_files(&self, path: &str) -> body::Result<Vec<Entry>> {
        self.files.list_files(path).await
    }

    async fn open(&self, program: &Program) -> body::Result<Opened> {
        let (input, theirs) = tokio::io::duplex(1 << 16);
        let (ours, output) = tokio::io::duplex(1 << 16);
        *self.seen.starts.lock().unwrap() += 1;
        let kind = program.words[0].clone();
        tokio::spawn(serve(kind, theirs, ours, self.seen.clone()));
        let (input, output) = (Box::new(input), Box::new(output));
        Ok(Opened { input, output, remarks: Remarks::default() })
    }
}

fn described(name: &str, reads: bool) -> Value {
    let properties = json!({"text": {"type": "string"}});
    let schema = json!({"type": "object", "properties": properties, "required": ["text"]});
    let hints = json!({"readOnlyHint": reads});
    json!({"name": name, "description": "d", "inputSchema": schema, "annotations": hints})
}

/// Speaks the protocol, one line of JSON a message, until a call tells it otherwise.
async fn serve(kind: String, input: DuplexStream, mut output: DuplexStream, seen: Arc<Seen>) {
    let mut lines = BufReader::new(input).lines();
    let mut tools = vec![described("look", true), described("act.now", false)];
    while let Ok(Some(line)) = lines.next_line().await {
        let asked: Value = serde_json::from_str(&line).unwrap();
        let result = match asked["method"].as_str().unwrap_or_default() {
            "initialize" if kind == "deaf" => continue,
            "initialize" if kind == "dead" => return,
            "initialize" if kind == "newer" => {
                let error = json!({"code": -32601, "message": "there is no initialize"});
                let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "error": error});
                output.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
                continue;
            }
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"
            }),
            "initialize" => json!({
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "stage", "version": "1"}
            }),
            "tools/list" => json!({"tools": tools}),
            "notifications/cancelled" => {
                seen.cancelled.notify_one();
                continue;
            }
            "tools/call" => match asked["params"]["arguments"]["text"].as_str() {
                Some("crash") => return,
                Some("hang") => continue,
                Some("grow") => {
                    tools.push(described("more", true));
                    let news =
                        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                    output.write_all(format!("{news}\n").as_bytes()).await.unwrap();
                    json!({"content": []})
                }
                text => json!({"content": [{"type": "text", "text": format!("heard {text:?}")}]}),
            },
            _ => continue,
        };
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
        if output.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

fn stage(config: Value) -> (Mcp, Arc<Seen>) {
    let dir = tempfile::tempdir().unwrap();
    let seen = Arc::new(Seen::default());
    let files = Local::new(dir.path());
    let body: Arc<dyn Body> = Arc::new(Stage { files, _dir: dir, seen: seen.clone() });
    let servers = serde_json::from_value(json!({"s": config})).unwrap();
    (Mcp::new(&servers, &body, "scratch").unwrap(), seen)
}

fn good() -> (Mcp, Arc<Seen>) {
    stage(json!({"command": ["good"], "timeout_seconds": 5}))
}

fn ready(mcp: &Mcp, name: &str, arguments: Value) -> Result<Box<dyn Ready>, String> {
    let call = Call { id: "1".to_owned(), name: name.to_owned(), arguments };
    mcp.prepare(&call).expect("it is one of its tools")
}

async fn call(mcp: &Mcp, text: &str) -> (String, bool) {
    let ready = ready(mcp, "s_act_now", json!({"text": text})).unwrap();
    let mut context = Context { call: "1", tell: &mut |_| {} };
    let Answer { text, failed, .. } = ready.run(&mut context).await;
    (text, failed)
}

async fn news(mcp: &Mcp) -> Vec<String> {
    let message = |update| match update {
        Update::Notice { message } => message,
        other => panic!("{other:?}"),
    };
    mcp.refresh().await.into_iter().map(message).collect()
}

fn names(mcp: &Mcp) -> Vec<String> {
    mcp.tools().into_iter().map(|tool| tool.name).collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_server_offers_can_be_called_once_it_is_needed() {
    let (mcp, seen) = good();
    assert_eq!((names(&mcp), *seen.starts.lock().unwrap()), (vec![], 0));
    assert_eq!(news(&mcp).await, Vec::<String>::new());
    assert_eq!(names(&mcp), ["s_look", "s_act_now"]);
    assert_eq!(call(&mcp, "hi").await, ("heard Some(\"hi\")".to_owned(), false));
    mcp.refresh().await;
    assert_eq!(*seen.starts.lock().unwrap(), 1);
    let refused = ready(&mcp, "s_look", json!({"text": 1})).err().unwrap();
    assert_eq!(
        refused,
        "s_look cannot be called like this: at \"text\": string is wanted, not number"
    );
    assert!(ready(&mcp, "s_look", json!("{\"text\":")).is_err());
    let intent = |name| ready(&mcp, name, json!({"text": "a"})).unwrap().intent();
    assert_eq!((intent("s_look").changes, intent("s_act_now").changes), (false, true));
    let other = Call { id: "1".to_owned(), name: "s_other".to_owned(), arguments: json!({}) };
    assert!(mcp.prepare(&other).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_done_away_with_the_handshake_is_understood() {
    let (mcp, seen) = stage(json!({"command": ["newer"]}));
    assert_eq!(news(&mcp).await, Vec::<String>::new());
    assert_eq!((names(&mcp).len(), *seen.starts.lock().unwrap()), (2, 2));
    assert_eq!(call(&mcp, "hi").await, ("heard Some(\"hi\")".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn only_what_the_owner_wants_is_offered() {
    let (mcp, _) = stage(json!({"command": ["good"], "tools": ["look"], "ask": true}));
    mcp.refresh().await;
    assert_eq!(names(&mcp), ["s_look"]);
    assert!(ready(&mcp, "s_look", json!({"text": "a"})).unwrap().intent().asks);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_is_started_again_and_its_call_is_not_repeated() {
    let (mcp, seen) = good();
    mcp.refresh().await;
    let (text, failed) = call(&mcp, "crash").await;
    assert!(failed && text.starts_with("s ended while it was called; it is not known"), "{text}");
    mcp.refresh().await;
    assert_eq!((names(&mcp).len(), *seen.starts.lock().unwrap()), (2, 2));
    assert_eq!(call(&mcp, "hi").await, ("heard Some(\"hi\")".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn news_about_its_tools_are_heard() {
    let (mcp, _) = good();
    mcp.refresh().await;
    assert_eq!(call(&mcp, "grow").await, ("(it said nothing)".to_owned(), false));
    // The notification came before the answer, but is dealt with beside it.
    while names(&mcp).len() == 2 {
        tokio::task::yield_now().await;
        mcp.refresh().await;
    }
    assert_eq!(names(&mcp), ["s_look", "s_act_now", "s_more"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_is_cancelled() {
    let (mcp, seen) = good();
    mcp.refresh().await;
    let given_up = tokio::time::timeout(Duration::from_secs(1), call(&mcp, "hang")).await;
    assert!(given_up.is_err());
    seen.cancelled.notified().await;
    // And one that takes longer than it may, by itself; after two of them it is not trusted any more.
    for _ in 0..2 {
        let (text, failed) = call(&mcp, "hang").await;
        assert_eq!((text.as_str(), failed), ("s did not answer within 5 seconds", true));
    }
    mcp.refresh().await;
    assert_eq!(*seen.starts.lock().unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_start_is_told_of_once_and_left_in_peace() {
    for (kind, reason) in
        [("deaf", "it was not ready within 5 seconds"), ("dead", "connection closed")]
    {
        let (mcp, seen) = stage(json!({"command": [kind], "timeout_seconds": 5}));
        let notices = news(&mcp).await;
        let begins = format!("the MCP server \"s\" does not start: {reason}");
        assert!(notices.len() == 1 && notices[0].starts_with(&begins), "{notices:?}");
        assert_eq!((names(&mcp), news(&mcp).await), (vec![], vec![]));
        assert_eq!(*seen.starts.lock().unwrap(), 1, "not at once");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(news(&mcp).await, Vec::<String>::new(), "it is known already");
        assert_eq!(*seen.starts.lock().unwrap(), 2);
    }
}

#[test]
fn names_are_such_as_services_take() {
    let tool = |name: &str| {
        let tool = json!({"name": name, "inputSchema": {}});
        server::offer("srv", serde_json::from_value(tool).unwrap())
    };
    assert_eq!(tool("get.time/zone").full, "srv_get_time_zone");
    assert_eq!(tool(&"x".repeat(100)).full.len(), 64);
    assert_eq!(tool("a").schema, json!({"type": "object", "properties": {}}));
}
