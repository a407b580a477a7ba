//! Conversations, at `/conductor`.

use utoipa::openapi::{HttpMethod, Required};

use super::call::Call;
use crate::conductor::{
    Approve, ChangeConversation, ConversationInfo, ConversationList, CreateConversation,
    ForkConversation, ModelChoices, PlanList, SaidList, SendMessage, Sent, UndoConversation,
    UndoneList,
};

pub(super) fn calls() -> Vec<Call> {
    let calls = all().into_iter().chain(one()).chain(turns()).chain(choices());
    calls.map(|call| call.tag("conversations")).collect()
}

fn all() -> Vec<Call> {
    let at = "/conductor/conversations";
    vec![
        Call::new(HttpMethod::Get, at, "list_conversations", "Every conversation")
            .gives::<ConversationList>("200", "The one that was used last comes first"),
        Call::new(
            HttpMethod::Get,
            "/conductor/search",
            "search_conversations",
            "What you and the agent said, by words",
        )
        .required::<String>("q", "Words that have to be in one message, all of them")
        .gives::<SaidList>("200", "The last such message of each conversation"),
        Call::new(HttpMethod::Post, at, "create_conversation", "Begin a conversation")
            .takes::<CreateConversation>(Required::False)
            .gives::<ConversationInfo>("201", "It waits for the first message"),
    ]
}

fn one() -> Vec<Call> {
    let at = "/conductor/conversations/{id}";
    vec![
        Call::new(HttpMethod::Get, at, "show_conversation", "What is known of one")
            .gives::<ConversationInfo>("200", "As it is now"),
        Call::new(HttpMethod::Patch, at, "change_conversation", "Its title, role, mode or model")
            .takes::<ChangeConversation>(Required::True)
            .gives::<ConversationInfo>(
                "200",
                "A new mode holds at once, the rest from the next turn",
            ),
        Call::new(HttpMethod::Delete, at, "delete_conversation", "Stop it and remove it")
            .gives_nothing("204", "Gone; what it changed in files stays"),
        Call::new(
            HttpMethod::Post,
            "/conductor/conversations/{id}/fork",
            "fork_conversation",
            "Another with the same events, up to one of them",
        )
        .takes::<ForkConversation>(Required::False)
        .gives::<ConversationInfo>("201", "The fork"),
        Call::new(
            HttpMethod::Get,
            "/conductor/conversations/{id}/events",
            "conversation_events",
            "What happened, then what happens: server-sent events, or a WebSocket",
        )
        .query::<u64>("after", "Only what came after this event")
        .query::<bool>("follow", "Whether to go on with what comes; true unless told")
        .header("last-event-id", "As `after`, which it wins over")
        .gives_bytes("200", "One event of JSON each", "text/event-stream")
        .upgrades("The same, a message each"),
    ]
}

fn turns() -> Vec<Call> {
    vec![
        Call::new(
            HttpMethod::Post,
            "/conductor/conversations/{id}/messages",
            "send_message",
            "Say something; a turn begins",
        )
        .takes::<SendMessage>(Required::True)
        .gives::<Sent>("202", "It is written down, and the turn is under way"),
        Call::new(
            HttpMethod::Post,
            "/conductor/conversations/{id}/stop",
            "stop_turn",
            "End the turn that is under way",
        )
        .gives_nothing("204", "It has ended, or there was none"),
        Call::new(
            HttpMethod::Post,
            "/conductor/conversations/{id}/approve",
            "approve",
            "Answer a request for permission",
        )
        .takes::<Approve>(Required::True)
        .gives_nothing("204", "The turn goes on"),
        Call::new(
            HttpMethod::Post,
            "/conductor/conversations/{id}/undo",
            "undo_conversation",
            "Take back what a step, a turn or all of it changed in files",
        )
        .takes::<UndoConversation>(Required::False)
        .gives::<UndoneList>("200", "What came of it; with conflicts, nothing was touched"),
    ]
}

fn choices() -> Vec<Call> {
    vec![
        Call::new(
            HttpMethod::Get,
            "/conductor/models",
            "conversation_models",
            "The models that a conversation may be told to ask",
        )
        .gives::<ModelChoices>("200", "As the providers are configured"),
        Call::new(
            HttpMethod::Get,
            "/conductor/plans",
            "plan_templates",
            "The plans that the agent can adopt",
        )
        .query::<String>("role", "Whose workspace; where a conversation would act unless told")
        .gives::<PlanList>("200", "Those of the workspace first"),
    ]
}
