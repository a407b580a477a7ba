//! A conversation as a service is told it. Pure.
//!
//! What a service said it is told again in its own words, which hold what it wants to see (signatures of
//! thoughts). To any other service these mean nothing, or are refused: it is told the sense.

use genai::chat::{ChatMessage, MessageContent, ToolCall, ToolResponse};
use serde_json::{Value, json};

use crate::model::{Message, Outcome, Reply, Source};

/// Without `service`, nobody's own words are used.
pub(super) fn told(messages: &[Message], service: Option<&Source>) -> Vec<ChatMessage> {
    let mut all = Vec::with_capacity(messages.len());
    // Whether the calls that are answered next were given names of ours, and which.
    let mut renamed = None;
    for (index, message) in messages.iter().enumerate() {
        match message {
            Message::User { text } | Message::Summary { text } => {
                all.push(ChatMessage::user(text.as_str()));
            }
            Message::Assistant(reply) => {
                let own = own_words(reply, service);
                renamed = own.is_none().then_some(index);
                let content = own.unwrap_or_else(|| sense(reply, index));
                // Nobody takes a message with nothing in it.
                if !content.is_empty() {
                    all.push(ChatMessage::assistant(content));
                }
            }
            Message::Results { results } => all.push(answers(results, renamed)),
        }
    }
    all
}

fn own_words(reply: &Reply, service: Option<&Source>) -> Option<MessageContent> {
    if service.is_none() || reply.source.as_ref() != service {
        return None;
    }
    serde_json::from_value(reply.original.clone()?).ok()
}

fn sense(reply: &Reply, index: usize) -> MessageContent {
    let mut content = MessageContent::default();
    if !reply.text.trim().is_empty() {
        content.push(reply.text.clone());
    }
    for (number, call) in reply.calls.iter().enumerate() {
        content.push(ToolCall {
            call_id: name(index, number),
            fn_name: call.name.clone(),
            fn_arguments: object(&call.arguments),
            thought_signatures: None,
        });
    }
    content
}

/// Each service names calls in a way that others refuse: too long, with other characters, or anew in every
/// reply. Results are in the order of their calls.
fn name(message: usize, number: usize) -> String {
    format!("call_{message}_{number}")
}

fn answers(results: &[Outcome], renamed: Option<usize>) -> ChatMessage {
    let responses = results.iter().enumerate().map(|(number, outcome)| {
        let call = renamed.map_or_else(|| outcome.call.clone(), |index| name(index, number));
        ToolResponse::new(call, &outcome.text).with_fn_name(&outcome.name)
    });
    ChatMessage::tool(MessageContent::from_tool_responses(responses.collect()))
}

/// Not every service takes anything else, and a call that was cut off has only text.
fn object(arguments: &Value) -> Value {
    match arguments {
        Value::Object(_) => arguments.clone(),
        Value::Null => json!({}),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Value::Object(fields),
            Ok(_) | Err(_) => json!({ "unreadable": text }),
        },
        other => json!({ "unreadable": other }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Call, Format};

    fn source(format: Format, model: &str) -> Source {
        let service = "http://nacre/provider/v1/one/".to_owned();
        Source { format, service, model: model.to_owned() }
    }

    fn reply(source: Option<Source>, arguments: Value) -> Reply {
        let id = "call#0#f".to_owned();
        let mut original = MessageContent::default();
        original.push("in its own words".to_owned());
        original.push(ToolCall {
            call_id: id.clone(),
            fn_name: "f".to_owned(),
            fn_arguments: json!({}),
            thought_signatures: Some(vec!["signed".to_owned()]),
        });
        Reply {
            text: "hm".to_owned(),
            calls: vec![Call { id, name: "f".to_owned(), arguments }],
            original: serde_json::to_value(original).ok(),
            source,
            ..Reply::default()
        }
    }

    fn conversation(reply: Reply) -> Vec<Message> {
        let answered = Outcome {
            call: reply.calls[0].id.clone(),
            name: "f".to_owned(),
            text: "ok".to_owned(),
            failed: false,
        };
        vec![
            Message::User { text: "go".to_owned() },
            Message::Assistant(reply),
            Message::Results { results: vec![answered] },
        ]
    }

    fn check(reply: Reply, service: Option<&Source>, text: &str, call: &str, arguments: &Value) {
        let told = told(&conversation(reply), service);
        assert_eq!(told.len(), 3);
        assert_eq!(told[1].content.joined_texts().as_deref(), Some(text));
        let calls = told[1].content.tool_calls();
        assert_eq!((calls[0].call_id.as_str(), &calls[0].fn_arguments), (call, arguments));
        assert_eq!(calls[0].thought_signatures.is_some(), text != "hm");
        assert_eq!(told[2].content.tool_responses()[0].call_id, call);
    }

    #[test]
    fn only_who_said_it_is_told_it_in_its_own_words() {
        let gemini = source(Format::Gemini, "g");
        let own = |source: &Source| reply(Some(source.clone()), json!({}));
        check(own(&gemini), Some(&gemini), "in its own words", "call#0#f", &json!({}));
        let others = [
            source(Format::Messages, "g"),
            source(Format::Gemini, "h"),
            Source { service: "http://nacre/provider/v1/two/".to_owned(), ..gemini.clone() },
        ];
        for other in &others {
            check(own(&gemini), Some(other), "hm", "call_1_0", &json!({}));
        }
        check(own(&gemini), None, "hm", "call_1_0", &json!({}));
        // As journals were written before anybody kept who said it.
        check(reply(None, json!({})), Some(&gemini), "hm", "call_1_0", &json!({}));
    }

    #[test]
    fn what_no_other_service_takes_is_not_told() {
        let check = |arguments, expected| {
            check(reply(None, arguments), None, "hm", "call_1_0", &expected);
        };
        check(json!("{\"a\":1}"), json!({"a": 1}));
        check(json!("{\"a\":"), json!({"unreadable": "{\"a\":"}));
        check(json!(null), json!({}));
        let thought = Reply { text: " \n".to_owned(), ..Reply::default() };
        let messages = [Message::User { text: "go".to_owned() }, Message::Assistant(thought)];
        assert_eq!(told(&messages, None).len(), 1);
    }
}
