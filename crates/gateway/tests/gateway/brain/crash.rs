//! The gateway is killed, and is whole again.

use nacre_agent::events::{Ended, Update};
use nacre_wire::conductor::{ConversationMode, ConversationState, CreateConversation};

use super::stage::{Talk, says, word, writes};

#[tokio::test]
async fn a_turn_that_was_killed_is_said_to_be_and_the_next_one_goes_on() {
    let mut talk = Talk::set().await;
    let (info, mut model) = talk.speak(CreateConversation::default()).await;
    model.stream(&word("half an ")).await;
    let mut events = talk.follow(&info.id, 0).await;
    events.until(|update| matches!(update, Update::AgentMessageChunk { .. })).await;
    let before = talk.events(&info.id).await;
    talk.host.kill().await;
    drop(model);
    talk.host.start_again().await;
    let after = talk.events(&info.id).await;
    assert_eq!(after[..before.len()], before[..]);
    let Some(Update::Ended { how: Ended::Interrupted }) = after.last().map(|last| &last.update)
    else {
        panic!("{after:?}")
    };
    assert_eq!(talk.info(&info.id).await.state, ConversationState::Idle);
    talk.client().send_message(&info.id, "go on").await.unwrap();
    let mut model = talk.asked().await;
    assert!(model.body.contains("\"go\"") && model.body.contains("go on"), "{}", model.body);
    model.stream(&says("done")).await;
    drop(model);
    talk.until_idle(&info.id).await;
    let seqs: Vec<u64> = talk.events(&info.id).await.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_question_that_nobody_answered_is_not_answered_by_a_crash() {
    let mut talk = Talk::set().await;
    let ask = CreateConversation { mode: Some(ConversationMode::Ask), ..Default::default() };
    let (info, mut model) = talk.speak(ask).await;
    model.stream(&writes("call-1")).await;
    drop(model);
    talk.until(&info.id, |info| matches!(info.state, ConversationState::Asking { .. })).await;
    talk.host.kill().await;
    talk.host.start_again().await;
    assert!(talk.client().approve(&info.id, "call-1", true).await.is_err());
    talk.client().send_message(&info.id, "and now?").await.unwrap();
    let mut model = talk.asked().await;
    // The service gets an answer to its call, and that says what is not known.
    assert!(model.body.contains("interrupted: it is not known"), "{}", model.body);
    assert!(!model.body.contains("wrote a.txt"), "{}", model.body);
    model.stream(&says("I look first")).await;
    drop(model);
    talk.until_idle(&info.id).await;
}
