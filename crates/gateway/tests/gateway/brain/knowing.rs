//! What the workspace says of itself, and the tools of memory and knowledge, in a turn.

use nacre_agent::events::{Ended, Update};
use nacre_gateway::KnowledgeConfig;
use nacre_wire::conductor::{ConversationState, CreateConversation};
use nacre_wire::knowledge::{EditionList, FactList};
use serde_json::{Value, json};

use super::stage::{Talk, calls, says};
use crate::knowledge::until;
use crate::knowledge::workspace::Workspace;
use crate::models::stage::Arrived;

async fn set(workspace: &Workspace) -> Talk {
    Talk::set_in(workspace.world(), |config| {
        config.knowledge = KnowledgeConfig { index: true, ..KnowledgeConfig::default() };
    })
    .await
}

impl Talk {
    /// The model calls a tool; gives what it is told, when it is asked again.
    async fn calls(&self, mut model: Arrived, name: &str, arguments: Value) -> (Arrived, String) {
        model.stream(&calls(&format!("call-{name}"), name, arguments)).await;
        drop(model);
        let model = self.asked().await;
        let body: Value = serde_json::from_str(&model.body).unwrap();
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["role"], "tool", "{last}");
        let told = last["content"].as_str().unwrap().to_owned();
        (model, told)
    }
}

#[tokio::test]
async fn a_turn_remembers_searches_publishes_and_cites() {
    let workspace = Workspace::new();
    workspace.place("shells.md", "# Growth\n\nA shell grows layer by layer.\n");
    let talk = set(&workspace).await;
    until(&talk.host, "grows", &["live:shells.md:1-3"]).await;
    let (info, model) = talk.speak(CreateConversation::default()).await;

    let fact = json!({ "text": "The owner collects shells." });
    let (model, told) = talk.calls(model, "remember", fact).await;
    assert_eq!(told, "remembered as 1");
    let (model, told) = talk.calls(model, "recall", json!({ "query": "collects" })).await;
    assert!(told.contains(&format!("(conversation {} call call-remember", info.id)), "{told}");
    let (mut model, told) =
        talk.calls(model, "knowledge_search", json!({ "query": "layer" })).await;
    assert!(told.starts_with("shells.md:1-3"), "{told}");

    // What others will see is asked about, in the mode that asks for nothing else.
    let paper = json!({ "path": "shells.md", "title": "On shells" });
    model.stream(&calls("call-publish", "publish", paper)).await;
    drop(model);
    let asks = |info: &nacre_wire::conductor::ConversationInfo| matches!(&info.state, ConversationState::Asking { call, .. } if call == "call-publish");
    talk.until(&info.id, asks).await;
    let editions = "/admin/sandboxes/publications";
    let none: EditionList = talk.host.admin().get_json(editions).await.unwrap();
    assert!(none.editions.is_empty(), "{none:?}");
    talk.client().approve(&info.id, "call-publish", true).await.unwrap();
    let model = talk.asked().await;
    let one: EditionList = talk.host.admin().get_json(editions).await.unwrap();
    let address = one.editions[0].address.clone();
    assert!(model.body.contains(&format!("published: {address}")), "{}", model.body);

    let quote = json!({ "edition": address, "quote": "layer by layer" });
    let (mut model, told) = talk.calls(model, "cite", quote).await;
    assert!(told.contains(&format!("{address}#L3")), "{told}");
    model.stream(&says("done")).await;
    drop(model);
    talk.until_idle(&info.id).await;
    let facts: FactList = talk.host.admin().get_json("/admin/sandboxes/memory").await.unwrap();
    assert_eq!(facts.facts.len(), 1);
    let events = talk.events(&info.id).await;
    let Some(Update::Ended { how: Ended::Done }) = events.last().map(|last| &last.update) else {
        panic!("{events:?}")
    };
}

#[tokio::test]
async fn a_turn_is_told_what_the_workspace_says_of_itself_now() {
    let workspace = Workspace::new();
    workspace.place("AGENTS.md", "Use tabs.\n");
    let skill = "---\nname: Deploy\ndescription: how to put it online\n---\nRun it.\n";
    workspace.place("skills/deploy/SKILL.md", skill);
    let talk = set(&workspace).await;
    let (info, mut model) = talk.speak(CreateConversation::default()).await;
    let system = |model: &Arrived| {
        let body: Value = serde_json::from_str(&model.body).unwrap();
        body["messages"][0]["content"].as_str().unwrap().to_owned()
    };
    let told = system(&model);
    assert!(told.contains("# AGENTS.md of this workspace\n\nUse tabs.\n"), "{told}");
    assert!(told.contains("- Deploy (skills/deploy/SKILL.md): how to put it online\n"), "{told}");
    model.stream(&says("ok")).await;
    drop(model);
    talk.until_idle(&info.id).await;
    workspace.place("AGENTS.md", "Use spaces.\n");
    talk.client().send_message(&info.id, "and now?").await.unwrap();
    let mut model = talk.asked().await;
    let told = system(&model);
    assert!(told.contains("Use spaces.") && !told.contains("Use tabs."), "{told}");
    model.stream(&says("ok")).await;
    drop(model);
    talk.until_idle(&info.id).await;
}
