//! Our own agent's library, in a sandbox, over the way to models that everything there takes.

use std::sync::Arc;

use nacre_agent::mcp::Servers;
use nacre_agent::model::{Message, Model, Request, Served};
use nacre_agent::order::Order;
use nacre_gateway::{Kind, RawModelsConfig, RawProvider};
use nacre_sandbox::fake::Guest;
use nacre_wire::client::Client;
use nacre_wire::models::PROTOCOL;
use nacre_wire::runs::{RunEnd, StartRun};
use serde_json::{Value, json};
use tokio::net::UnixListener;

use super::agent::{ToHost, follow, run, said, stage, task};
use crate::models::stage::{REAL_KEY, Stage};

/// Asks its model twice. Gives what it was told, and what it has.
pub(super) async fn think(guest: &Guest, order: &Value) -> String {
    let order: Order = serde_json::from_value(order.clone()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("models");
    let way = tokio::spawn(carry(UnixListener::bind(&socket).unwrap(), guest.clone()));
    let (window, servers) = (order.service.window, order.mcp);
    let model = Served::over(order.service.into(), &socket).unwrap().with_window(window);
    let messages = [Message::User { text: "go".to_owned() }];
    let request = Request { system: "be brief", messages: &messages, tools: &[] };
    let mut told = Vec::new();
    for _ in 0..2 {
        told.push(match model.respond(&request, &mut |_| ()).await {
            Ok(reply) => reply.text,
            Err(error) => format!("error: {error}"),
        });
    }
    way.abort();
    let servers: Vec<_> = servers.keys().map(String::as_str).collect();
    format!("{}; window {}; servers {}", told.join(", "), model.window(), servers.join(" "))
}

async fn carry(listener: UnixListener, guest: Guest) {
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        let host = Client::new(Arc::new(ToHost(guest.clone())), "");
        tokio::spawn(async move {
            let mut far = host.switch("/host/provider", PROTOCOL).await.unwrap().stream;
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        });
    }
}

/// A reply of Anthropic's that was so dear.
pub(crate) fn anthropic_says(text: &str, input_tokens: u64) -> String {
    let start = json!({"type": "message_start", "message": {"id": "m", "model": "claude",
        "usage": {"input_tokens": input_tokens, "output_tokens": 1}}});
    let block = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": text}});
    let stop = json!({"type": "content_block_stop", "index": 0});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 1}});
    let over = json!({"type": "message_stop"});
    [start, block, delta, stop, end, over]
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

/// The numbers that Anthropic was asked for, when each reply has that many tokens of input.
async fn asked_for(stage: &Stage, input_tokens: u64) -> Vec<u64> {
    let mut asked = Vec::new();
    for _ in 0..2 {
        let mut arrived = stage.arrives().await;
        let body: Value = serde_json::from_str(&arrived.body).unwrap();
        asked.push(body["max_tokens"].as_u64().unwrap());
        arrived.stream(&anthropic_says("yes", input_tokens)).await;
    }
    asked
}

#[tokio::test]
async fn our_own_agent_on_anthropic_fits_the_default_budget() {
    let (stage, _) = stage(|_| ()).await;
    let model = Some("anthropic/claude-sonnet-4-5".to_owned());
    let admin = stage.host.admin();
    let begun = admin.start_run(&StartRun { model, ..task("think") }).await.unwrap();
    // The first costs 36 cents of 50: a reply of a third does not fit any more.
    let (asked, events) = tokio::join!(asked_for(&stage, 120_000), follow(&stage, &begun.id));
    assert_eq!(asked, [11_111, 2777]);
    let told: Vec<_> = events.iter().filter_map(said).collect();
    assert_eq!(told, ["yes, yes; window 100000; servers "]);
    let info = admin.run_info(&begun.id).await.unwrap();
    assert_eq!(info.outcome.unwrap().how, RunEnd::Done);
}

#[tokio::test]
async fn a_run_has_its_window_and_its_servers() {
    let servers: Servers = serde_json::from_value(json!({
        "time": {"command": ["uvx", "mcp-server-time"]},
        "far": {"url": "https://docs.example/mcp"},
    }))
    .unwrap();
    let check = async |windows: &[(&str, u64)], expected: &str| {
        let windows = windows.iter().map(|(name, tokens)| ((*name).to_owned(), *tokens)).collect();
        let provider = RawProvider {
            kind: Some(Kind::Openai),
            // Nobody is there: what matters was said before.
            base_url: Some("http://127.0.0.1:1/v1".to_owned()),
            key_env: Some("KEY".to_owned()),
            windows,
            ..RawProvider::default()
        };
        let provider = provider.resolve("openai", |_| Some(REAL_KEY.to_owned())).unwrap();
        let (stage, _) = stage(|config| {
            config.models = RawModelsConfig::default().resolve(vec![provider]);
            config.runs.window = Some(50_000);
            config.runs = config.runs.clone().with_servers(&servers);
        })
        .await;
        let (_, events) = run(&stage, task("think")).await;
        let told: Vec<_> = events.iter().filter_map(said).collect();
        assert!(told[0].ends_with(expected), "{told:?}");
    };
    check(&[], "; window 50000; servers time").await;
    check(&[("gpt-4*", 128_000)], "; window 128000; servers time").await;
}
