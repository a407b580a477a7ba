//! Vectors by a provider's model.

use std::time::Duration;

use axum::routing::post;
use axum::{Json, Router};
use nacre_gateway::{EmbeddingModel, KnowledgeConfig, RawModelsConfig};
use nacre_wire::knowledge::KnowledgeStatus;
use nacre_wire::models::CallPage;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::workspace::Workspace;
use super::{places, search, status};
use crate::host::Host;
use crate::models::stage;

/// One direction for what has to do with the sea, another for the rest. They come in the wrong order, as
/// they may.
async fn embed(Json(asked): Json<Value>) -> Json<Value> {
    let texts = asked["input"].as_array().unwrap();
    let vector = |text: &Value| {
        let wet = ["clam", "ocean"].iter().any(|word| text.as_str().unwrap().contains(word));
        if wet { json!([1.0, 0.1]) } else { json!([0.0, 1.0]) }
    };
    let one = |(at, text): (usize, &Value)| json!({ "index": at, "embedding": vector(text) });
    let data: Vec<_> = texts.iter().enumerate().map(one).rev().collect();
    let usage = json!({ "prompt_tokens": texts.len(), "total_tokens": texts.len() });
    Json(json!({ "object": "list", "data": data, "model": asked["model"], "usage": usage }))
}

async fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = Router::new().route("/v1/embeddings", post(embed));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn until_ready(host: &Host, documents: u64) -> KnowledgeStatus {
    for _ in 0..3000 {
        let status = status(host).await;
        if status.documents == documents && status.waiting == 0 {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("vectors never came: {:?}", status(host).await);
}

#[tokio::test]
async fn a_providers_model_makes_vectors_and_another_one_makes_them_anew() {
    let workspace = Workspace::new();
    workspace.place("bank.md", "Interest on savings.\n");
    workspace.place("clam.md", "The quahog is a clam.\n");
    let address = serve().await;
    let mut host = Host::start_in_as(workspace.world(), |config| {
        config.models = stage::config(&address, RawModelsConfig::default());
        let model = EmbeddingModel { provider: "openai".into(), model: "embed-1".into() };
        let embeddings = Some(model);
        config.knowledge = KnowledgeConfig { index: true, embeddings, ..Default::default() };
    })
    .await;
    assert_eq!(until_ready(&host, 2).await.model, "openai/embed-1");
    let found = search(&host, "animals in ocean water").await;
    assert_eq!(found.note, None);
    assert_eq!(places(&found)[0], "live:clam.md:1-1");
    assert!(found.hits[0].by_meaning && !found.hits[0].by_word);
    // Paid for and written down like every call.
    let calls: CallPage = host.admin().get_json("/admin/sandboxes/calls").await.unwrap();
    assert!(calls.calls.iter().all(|call| call.model == "embed-1"), "{calls:?}");
    assert!(calls.calls.len() >= 2);

    host.stop(false).await;
    host.config.knowledge.embeddings = None;
    host.start_again().await;
    let status = until_ready(&host, 2).await;
    assert!(status.model.starts_with("builtin/"), "{status:?}");
    let found = search(&host, "money in the bank").await;
    assert_eq!(places(&found)[0], "live:bank.md:1-1");
}
