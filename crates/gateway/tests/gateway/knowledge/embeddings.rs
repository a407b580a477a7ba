//! Vectors by a provider's model.

use std::time::Duration;

use axum::routing::post;
use axum::{Json, Router};
use http::StatusCode;
use nacre_gateway::{EmbeddingModel, KnowledgeConfig, RawModelsConfig};
use nacre_wire::knowledge::{AddFact, FactInfo, KnowledgeStatus};
use nacre_wire::models::CallPage;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::workspace::Workspace;
use super::{places, search, status};
use crate::host::Host;
use crate::models::stage;

/// One direction for what has to do with the sea, another for the rest. They come in the wrong order, as
/// they may.
async fn embed(Json(asked): Json<Value>) -> Result<Json<Value>, StatusCode> {
    let texts = asked["input"].as_array().unwrap();
    // As a model with a small window, and one that is particular.
    let refused = |text: &Value| {
        let text = text.as_str().unwrap();
        text.len() > 2000 || text.contains("unspeakable")
    };
    if texts.iter().any(refused) {
        return Err(StatusCode::BAD_REQUEST);
    }
    let vector = |text: &Value| {
        let wet = ["clam", "ocean"].iter().any(|word| text.as_str().unwrap().contains(word));
        if wet { json!([1.0, 0.1]) } else { json!([0.0, 1.0]) }
    };
    let one = |(at, text): (usize, &Value)| json!({ "index": at, "embedding": vector(text) });
    let data: Vec<_> = texts.iter().enumerate().map(one).rev().collect();
    let usage = json!({ "prompt_tokens": texts.len(), "total_tokens": texts.len() });
    Ok(Json(json!({ "object": "list", "data": data, "model": asked["model"], "usage": usage })))
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

async fn start(workspace: &Workspace) -> Host {
    let address = serve().await;
    Host::start_in_as(workspace.world(), |config| {
        config.models = stage::config(&address, RawModelsConfig::default());
        let model = EmbeddingModel { provider: "openai".into(), model: "embed-1".into() };
        let embeddings = Some(model);
        config.knowledge = KnowledgeConfig { index: true, embeddings, ..Default::default() };
    })
    .await
}

#[tokio::test]
async fn an_embedding_that_is_refused_holds_up_nobody() {
    let workspace = Workspace::new();
    let host = start(&workspace).await;
    // Facts are the first to be asked about, and one that is too long was the end of it.
    for text in ["unspeakable things".to_owned(), format!("The ocean. {}", "wave ".repeat(700))] {
        let told = AddFact { text, tags: Vec::new() };
        let _: FactInfo = host.admin().post_json("/admin/sandboxes/memory", &told).await.unwrap();
    }
    for n in 0..80 {
        workspace.write(&format!("{n}.md"), format!("Interest on savings {n}.\n"));
    }
    workspace.write("odd.md", "An unspeakable quahog.\n");
    workspace.write("clam.md", "The quahog is a clam.\n");
    until_ready(&host, 82).await;
    let found = search(&host, "animals in ocean water").await;
    assert_eq!(places(&found)[0], "live:clam.md:1-1");
    let by_word = search(&host, "unspeakable quahog").await;
    assert!(places(&by_word).contains(&"live:odd.md:1-1".to_owned()), "{by_word:?}");
    // Of what is too long, the beginning says what it is about.
    let recalled: nacre_wire::knowledge::Recall =
        host.admin().get_json("/admin/sandboxes/memory/search?q=clam").await.unwrap();
    assert!(recalled.facts[0].fact.text.starts_with("The ocean."), "{recalled:?}");
}

#[tokio::test]
async fn a_providers_model_makes_vectors_and_another_one_makes_them_anew() {
    let workspace = Workspace::new();
    workspace.place("bank.md", "Interest on savings.\n");
    workspace.place("clam.md", "The quahog is a clam.\n");
    let mut host = start(&workspace).await;
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
