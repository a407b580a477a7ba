//! The model knows which role it acts on, also when the roles are swapped.

use nacre_agent::events::{Event, Update};
use nacre_wire::conductor::CreateConversation;
use nacre_wire::roles::SwapRequest;

use super::stage::{Talk, calls, says};

const SWAP: SwapRequest = SwapRequest { rollback: false, force: false };

/// Both with an app, so that they can be swapped.
async fn twins(talk: &Talk) {
    talk.host.put_app("live", "one").await;
    talk.host.make_dev().await;
    talk.host.put_app("dev", "two").await;
}

fn moves(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.update, Update::Moved { .. })).count()
}

#[tokio::test]
async fn a_swap_during_a_turn_is_told_before_the_next_step() {
    let talk = Talk::set().await;
    twins(&talk).await;
    let (info, mut model) = talk.speak(CreateConversation::default()).await;
    assert!(model.body.contains("This turn began on dev"), "{}", model.body);
    talk.host.swap(SWAP).await.unwrap();
    model.stream(&calls("1", "write_todos", serde_json::json!({ "todos": [] }))).await;
    drop(model);
    let mut model = talk.asked().await;
    assert!(
        model.body.contains("From here on you act on live: the same sandbox"),
        "{}",
        model.body
    );
    model.stream(&says("I am careful now")).await;
    drop(model);
    talk.until_steps(&info.id, 2).await;
    assert_eq!(moves(&talk.events(&info.id).await), 1);
    // The next turn is on dev, which is the other sandbox.
    talk.client().send_message(&info.id, "go on").await.unwrap();
    let mut model = talk.asked().await;
    assert!(model.body.contains("This turn began on dev"), "{}", model.body);
    assert!(model.body.contains("From here on you act on dev, which is another"), "{}", model.body);
    model.stream(&says("I look first")).await;
    drop(model);
    talk.until_idle(&info.id).await;
}

#[tokio::test]
async fn a_swap_between_turns_is_told_with_the_next_one() {
    let mut talk = Talk::set().await;
    twins(&talk).await;
    let (info, mut model) = talk.speak(CreateConversation::default()).await;
    model.stream(&says("ok")).await;
    drop(model);
    talk.until_steps(&info.id, 1).await;
    talk.host.swap(SWAP).await.unwrap();
    // What was told is known again after a restart.
    talk.host.stop(false).await;
    talk.host.start_again().await;
    talk.client().send_message(&info.id, "again").await.unwrap();
    let mut model = talk.asked().await;
    assert!(model.body.contains("From here on you act on dev, which is another"), "{}", model.body);
    model.stream(&says("ok")).await;
    drop(model);
    talk.until_steps(&info.id, 2).await;
    talk.client().send_message(&info.id, "and again").await.unwrap();
    let mut model = talk.asked().await;
    assert_eq!(model.body.matches("From here on you act").count(), 1, "{}", model.body);
    model.stream(&says("ok")).await;
    drop(model);
    talk.until_steps(&info.id, 3).await;
    assert_eq!(moves(&talk.events(&info.id).await), 0);
}
