//! How much a model can hear, and how much it may say.

use nacre_agent::events::Update;
use nacre_gateway::{Dollars, Kind, RawAgentConfig, RawConversationsConfig};
use nacre_wire::conductor::CreateConversation;
use serde_json::Value;

use super::stage::{Talk, says};
use crate::runs::own::anthropic_says;

/// Whether a conversation of some length had to be made shorter.
async fn gives_way(talk: &Talk) -> bool {
    let info = talk.begin(CreateConversation::default()).await;
    let mut events = talk.follow(&info.id, 0).await;
    for _ in 0..5 {
        talk.client().send_message(&info.id, &"word ".repeat(3000)).await.unwrap();
        let answering = async {
            loop {
                talk.asked().await.stream(&says("yes")).await;
            }
        };
        tokio::select! {
            () = answering => {}
            _ = events.until_ended() => {}
        }
        talk.until_idle(&info.id).await;
    }
    let compacted = |update: &Update| matches!(update, Update::Compacted { .. });
    talk.events(&info.id).await.iter().any(|event| compacted(&event.update))
}

/// The window of `[agent]`, and the one that the provider names for the model.
async fn talk(agent: Option<u64>, model: Option<u64>) -> Talk {
    let windows = model.map(|tokens| ("m".to_owned(), tokens)).into_iter().collect();
    let provided = |provider: &mut nacre_gateway::RawProvider| provider.windows = windows;
    let raw = RawAgentConfig { model: Some("local/m".to_owned()), window: agent };
    let resolved = RawConversationsConfig::default().resolve(raw);
    Talk::set_by(provided, |config| config.conversations = resolved).await
}

#[tokio::test]
async fn agent_window_reaches_conversations() {
    const SMALL: u64 = 6000;
    assert!(!gives_way(&talk(None, None).await).await);
    assert!(gives_way(&talk(Some(SMALL), None).await).await);
    assert!(gives_way(&talk(None, Some(SMALL)).await).await);
    assert!(!gives_way(&talk(Some(SMALL), Some(200_000)).await).await, "of the model wins");
}

#[tokio::test]
async fn a_conversation_on_anthropic_asks_for_what_its_budget_still_bears() {
    let provided = |provider: &mut nacre_gateway::RawProvider| {
        provider.kind = Some(Kind::Anthropic);
        provider.prices.clear();
    };
    let model = Some("local/claude-sonnet-4-5".to_owned());
    let raw = RawConversationsConfig { dollars: Dollars::new(0.5), ..Default::default() };
    let resolved = raw.resolve(RawAgentConfig { model, window: Some(1_000_000) });
    let talk = Talk::set_by(provided, |config| config.conversations = resolved).await;
    let info = talk.begin(CreateConversation::default()).await;
    let mut asked_for = Vec::new();
    for turn in 1..=2 {
        talk.client().send_message(&info.id, "go").await.unwrap();
        let mut model = talk.asked().await;
        let body: Value = serde_json::from_str(&model.body).unwrap();
        asked_for.push(body["max_tokens"].as_u64().unwrap());
        // 36 of 50 cents.
        model.stream(&anthropic_says("yes", 120_000)).await;
        drop(model);
        talk.until_steps(&info.id, turn).await;
    }
    assert_eq!(asked_for[0], 11_111);
    assert!((3000..3112).contains(&asked_for[1]), "a third of what is left: {asked_for:?}");
}
