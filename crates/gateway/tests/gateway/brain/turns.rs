//! Turns: what is written down, asked, paid for and stopped.

use nacre_agent::events::{Content, Ended, ToolStatus, Update};
use nacre_gateway::{Dollars, RawAgentConfig, RawConversationsConfig};
use nacre_wire::ErrorKind;
use nacre_wire::conductor::{
    ChangeConversation, ConversationMode, ConversationState, CreateConversation, ForkConversation,
};
use nacre_wire::models::{PolicyTokenList, UsageReport};

use super::stage::{Talk, says, word, writes};
use crate::host::mode;
use crate::models::stage::REAL_KEY;

fn new() -> CreateConversation {
    CreateConversation::default()
}

fn asking() -> CreateConversation {
    CreateConversation { mode: Some(ConversationMode::Ask), ..new() }
}

#[tokio::test]
async fn a_turn_is_written_down_and_paid_for_by_its_conversation() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(new()).await;
    assert!(model.head.contains(&format!("bearer {REAL_KEY}")), "{}", model.head);
    assert!(model.body.contains("\"go\"") && model.body.contains("write_todos"), "{}", model.body);
    let mut events = talk.follow(&info.id, 0).await;
    let begins = events.next().await.update;
    let Update::TurnBegins { turn: 1, role, model: name, .. } = begins else {
        panic!("{begins:?}")
    };
    assert_eq!((role.as_str(), name.as_str()), ("live", "local/m"));
    let said = events.next().await.update;
    assert_eq!(said, Update::UserMessageChunk { content: Content::text("go") });
    model.stream(&writes("1")).await;
    drop(model);
    let done = events.until(|update| {
        matches!(update, Update::ToolCallUpdate { status: ToolStatus::Completed, .. })
    });
    done.await;
    let mut model = talk.asked().await;
    assert!(model.body.contains("wrote a.txt"), "{}", model.body);
    model.stream(&says("done")).await;
    drop(model);
    let Update::Ended { how: Ended::Done } = events.until_ended().await.update else { panic!() };

    let after = talk.until_steps(&info.id, 2).await;
    assert_eq!((after.title.as_str(), after.steps, after.input_tokens), ("go", 2, 20));
    assert_eq!(after.seq, events.seen);
    // 20 tokens at 1 and 10 at 2 dollars for a million.
    assert!((after.dollars.unwrap() - 0.000_04).abs() < 1e-9, "{after:?}");
    let told = talk.events(&info.id).await.into_iter().find_map(|event| match event.update {
        Update::CostUpdate { dollars } => Some(dollars),
        _ => None,
    });
    assert!(told.is_some_and(|dollars| dollars > 0.0), "{told:?}");
    let usage: UsageReport =
        talk.host.admin().get_json("/admin/sandboxes/usage?by=conversation").await.unwrap();
    assert_eq!((usage.rows[0].key.as_str(), usage.rows[0].calls), (info.id.as_str(), 2));
    for end in ["json", "jsonl"] {
        let file = talk.host.data.path().join(format!("conversations/{}.{end}", info.id));
        assert_eq!(mode(&file), 0o600);
    }
}

#[tokio::test]
async fn one_turn_at_a_time_and_a_stop_ends_it() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(new()).await;
    model.stream(&word("thinking ")).await;
    let mut events = talk.follow(&info.id, 0).await;
    events.until(|update| matches!(update, Update::AgentMessageChunk { .. })).await;
    assert_eq!(talk.info(&info.id).await.state, ConversationState::Working);
    let refused = talk.client().send_message(&info.id, "more").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
    talk.client().stop_turn(&info.id).await.unwrap();
    let Update::Ended { how: Ended::Cancelled } = events.until_ended().await.update else {
        panic!()
    };
    assert_eq!(talk.info(&info.id).await.state, ConversationState::Idle);
    talk.client().stop_turn(&info.id).await.unwrap();
    talk.client().send_message(&info.id, "again").await.unwrap();
    talk.asked().await.stream(&says("yes")).await;
    let Update::Ended { how: Ended::Done } = events.until_ended().await.update else { panic!() };
}

#[tokio::test]
async fn a_change_waits_for_the_owner_however_they_come_and_go() {
    let talk = Talk::set().await;
    for (allow, expected) in [(true, "wrote a.txt"), (false, "the owner does not want this")] {
        let (info, mut model) = talk.speak(asking()).await;
        model.stream(&writes("call-1")).await;
        drop(model);
        let mut events = talk.follow(&info.id, 0).await;
        events.until(|update| matches!(update, Update::PermissionRequest { .. })).await;
        drop(events);
        let state = talk
            .until(&info.id, |info| matches!(info.state, ConversationState::Asking { .. }))
            .await
            .state;
        let ConversationState::Asking { call, about } = state else { panic!("{state:?}") };
        assert_eq!((call.as_str(), about.as_str()), ("call-1", "write a.txt"));
        let wrong = talk.client().approve(&info.id, "other", true).await.unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::NotFound);
        talk.client().approve(&info.id, &call, allow).await.unwrap();
        let mut model = talk.asked().await;
        assert!(model.body.contains(expected), "{}", model.body);
        model.stream(&says("ok")).await;
        drop(model);
        talk.until_idle(&info.id).await;
    }
}

#[tokio::test]
async fn another_mode_holds_at_once() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(asking()).await;
    model.stream(&writes("1")).await;
    drop(model);
    let asks = |info: &nacre_wire::conductor::ConversationInfo| {
        matches!(info.state, ConversationState::Asking { .. })
    };
    talk.until(&info.id, asks).await;
    let change = |mode| ChangeConversation { mode: Some(mode), ..Default::default() };
    let changed =
        talk.client().change_conversation(&info.id, &change(ConversationMode::Auto)).await.unwrap();
    assert_eq!(changed.mode, ConversationMode::Auto);
    let mut model = talk.asked().await;
    assert!(model.body.contains("wrote a.txt"), "{}", model.body);
    talk.client().change_conversation(&info.id, &change(ConversationMode::Plan)).await.unwrap();
    model.stream(&writes("2")).await;
    drop(model);
    let mut model = talk.asked().await;
    assert!(model.body.contains("nothing may be changed while planning"), "{}", model.body);
    model.stream(&says("ok")).await;
    drop(model);
    talk.until_idle(&info.id).await;
}

#[tokio::test]
async fn a_budget_is_for_the_whole_conversation() {
    let talk = Talk::set_with(|config| {
        let dollars = Dollars::new(0.1);
        let raw = RawConversationsConfig { dollars, ..RawConversationsConfig::default() };
        config.conversations =
            raw.resolve(RawAgentConfig { model: Some("local/m".to_owned()), window: None });
    })
    .await;
    let (info, mut model) = talk.speak(new()).await;
    let dear = says("ok").replace("\"prompt_tokens\":10", "\"prompt_tokens\":95000");
    let dear = dear.replace("\"completion_tokens\":5", "\"completion_tokens\":0");
    assert!(dear.contains("95000"), "{dear}");
    model.stream(&dear).await;
    drop(model);
    let before = talk.until_steps(&info.id, 1).await;
    assert!((before.dollars.unwrap() - 0.095).abs() < 1e-6, "{before:?}");
    // What it may still cost is not enough for what a call reserves, also after a restart.
    let mut talk = talk;
    talk.host.stop(false).await;
    talk.host.start_again().await;
    talk.client().send_message(&info.id, "more").await.unwrap();
    let mut events = talk.follow(&info.id, before.seq).await;
    let ended = events.until_ended().await.update;
    let Update::Ended { how: Ended::Budget(why) } = ended else { panic!("{ended:?}") };
    assert!(why.contains("budget"), "{why}");
}

#[tokio::test]
async fn what_cannot_begin_is_refused_before_anything_is_written() {
    let talk = Talk::set_with(|config| config.conversations.clone_from(&Default::default())).await;
    let check = async |wanted: CreateConversation, kind: ErrorKind, word: &str| {
        let info = talk.begin(wanted).await;
        let error = talk.client().send_message(&info.id, "go").await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(word), "{error}");
        let after = talk.info(&info.id).await;
        assert_eq!((after.seq, after.state), (0, ConversationState::Idle));
    };
    let model = |name: &str| CreateConversation { model: Some(name.to_owned()), ..new() };
    check(new(), ErrorKind::InvalidRequest, "no model is chosen").await;
    check(model("nobody/m"), ErrorKind::NotFound, "no provider \"nobody\"").await;
    let dev = CreateConversation { role: Some("dev".to_owned()), ..model("local/m") };
    check(dev, ErrorKind::Unavailable, "there is no dev sandbox").await;
    talk.host.operate("live", "stop").await.unwrap();
    check(model("local/m"), ErrorKind::Unavailable, "\"live\" is stopped").await;
    for wrong in [model("m"), CreateConversation { role: Some("prod".to_owned()), ..new() }] {
        let error = talk.client().create_conversation(&wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    }
    let empty = talk.begin(model("local/m")).await;
    let error = talk.client().send_message(&empty.id, " \n").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn a_fork_has_the_past_and_a_future_of_its_own() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(asking()).await;
    model.stream(&writes("1")).await;
    drop(model);
    let mut events = talk.follow(&info.id, 0).await;
    let asked = events.until(|update| matches!(update, Update::PermissionRequest { .. })).await;
    // In the middle of a turn, while that goes on.
    let wanted = ForkConversation { at: Some(asked.seq - 1), title: Some("other way".to_owned()) };
    let fork = talk.client().fork_conversation(&info.id, &wanted).await.unwrap();
    assert_eq!(fork.title, "other way");
    assert_eq!(fork.parent.as_ref().unwrap().seq, asked.seq - 1);
    let ours = talk.events(&fork.id).await;
    let theirs = talk.events(&info.id).await;
    let shared = usize::try_from(asked.seq - 1).unwrap();
    assert_eq!(ours[..shared], theirs[..shared]);
    assert_eq!(ours.len(), shared + 1);
    let Update::Ended { how: Ended::Interrupted } = &ours[shared].update else { panic!() };

    talk.client().send_message(&fork.id, "another").await.unwrap();
    let mut model = talk.asked().await;
    assert!(model.body.contains("interrupted: it is not known"), "{}", model.body);
    model.stream(&says("fine")).await;
    drop(model);
    talk.until_idle(&fork.id).await;
    assert_eq!(talk.events(&info.id).await.len(), theirs.len(), "the original waits as it was");
    let far = ForkConversation { at: Some(9999), title: None };
    let error = talk.client().fork_conversation(&info.id, &far).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
}

#[tokio::test]
async fn what_is_removed_is_gone_with_its_turn_its_files_and_its_token() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(new()).await;
    model.stream(&word("on and ")).await;
    let mut events = talk.follow(&info.id, 0).await;
    talk.client().delete_conversation(&info.id).await.unwrap();
    events.until_ended().await;
    events.end().await;
    let error = talk.client().conversation(&info.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let left: Vec<_> =
        std::fs::read_dir(talk.host.data.path().join("conversations")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let tokens: PolicyTokenList =
        talk.host.admin().get_json("/admin/sandboxes/policy-tokens").await.unwrap();
    assert!(tokens.tokens.iter().all(|token| token.scope.conversation.is_none()), "{tokens:?}");
}

#[tokio::test]
async fn what_was_said_is_found_by_its_words_and_nothing_that_was_removed() {
    let talk = Talk::set().await;
    let (info, mut model) = talk.speak(new()).await;
    model.stream(&says("The tide comes in at noon.")).await;
    drop(model);
    talk.until_idle(&info.id).await;
    talk.begin(new()).await;
    let list = talk.client().search_conversations("NOON tide").await.unwrap();
    let found: Vec<_> =
        list.found.iter().map(|said| (said.id.as_str(), said.excerpt.as_str())).collect();
    assert_eq!(found, [(info.id.as_str(), "The tide comes in at noon.")]);
    let event =
        talk.events(&info.id).await.into_iter().find(|event| event.seq == list.found[0].seq);
    assert!(matches!(event.unwrap().update, Update::Reply { .. }));
    assert!(talk.client().search_conversations("write_todos").await.unwrap().found.is_empty());
    assert!(talk.client().search_conversations(" ").await.unwrap().found.is_empty());
    talk.client().delete_conversation(&info.id).await.unwrap();
    assert!(talk.client().search_conversations("tide").await.unwrap().found.is_empty());
}
