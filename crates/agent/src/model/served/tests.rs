//! What is sent to a service that answers what the test wants.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::model::{Message, Outcome};

/// Answers one request after another, and gives what it was asked.
async fn service(answers: Vec<(u16, String)>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            asked.push(request(&mut stream).await);
            let kind = if status == 200 { "text/event-stream" } else { "application/json" };
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        }
        asked
    });
    (base, serving)
}

/// The JSON of one request.
async fn request(stream: &mut TcpStream) -> Value {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).await.unwrap();
        assert!(count > 0, "it hung up");
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.lines().next().unwrap().parse().unwrap();
        if body.len() >= length {
            return serde_json::from_str(body).unwrap();
        }
    }
}

fn served(format: Format, base: &str, model: &str, longest: Option<u32>) -> Served {
    let (base, model) = (base.to_owned(), model.to_owned());
    Served::new(Service { format, base, token: "t".to_owned(), model, longest }).unwrap()
}

async fn ask(served: &Served, messages: &[Message]) -> Result<Reply> {
    let request = Request { system: "be brief", messages, tools: &[] };
    served.respond(&request, &mut |_| ()).await
}

fn user(text: &str) -> Message {
    Message::User { text: text.to_owned() }
}

fn responses_says(text: &str) -> (u16, String) {
    let delta = json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0,
        "content_index": 0, "delta": text});
    let response = json!({"id": "r", "status": "completed", "model": "m", "output": [],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}});
    let end = json!({"type": "response.completed", "response": response});
    (200, format!("data: {delta}\n\ndata: {end}\n\n"))
}

fn gemini_says(text: &str) -> (u16, String) {
    let candidate = json!({"content": {"role": "model", "parts": [{"text": text}]},
        "finishReason": "STOP"});
    (200, format!("data: {}\n\n", json!({"candidates": [candidate]})))
}

fn refuses(message: &str) -> (u16, String) {
    let error = json!({"message": message, "type": "invalid_request_error", "param": "include"});
    (400, json!({ "error": error }).to_string())
}

fn asks_for_thoughts(body: &Value) -> bool {
    let gemini = &body["generationConfig"]["thinkingConfig"]["includeThoughts"];
    assert_eq!(body.get("include").is_some(), body.get("reasoning").is_some(), "{body}");
    body.get("include").is_some() || *gemini == json!(true)
}

#[tokio::test]
async fn responses_ask_for_no_reasoning_of_models_that_have_none() {
    for model in ["gpt-4o-mini", "gpt-4.1-mini", "gpt-4o"] {
        let (base, asked) = service(vec![responses_says("yes")]).await;
        let reply = ask(&served(Format::Responses, &base, model, None), &[user("go")]).await;
        assert_eq!(reply.unwrap().text, "yes", "{model}");
        let body = asked.await.unwrap().remove(0);
        assert_eq!(body["model"], model);
        assert!(!asks_for_thoughts(&body), "{body}");
    }
    let (base, asked) = service(vec![gemini_says("yes")]).await;
    let model = served(Format::Gemini, &base, "gemini-2.0-flash", None);
    assert_eq!(ask(&model, &[user("go")]).await.unwrap().text, "yes");
    assert!(!asks_for_thoughts(&asked.await.unwrap()[0]));
}

#[tokio::test]
async fn a_service_that_refuses_to_tell_its_thoughts_is_asked_without_from_then_on() {
    let check = async |format, model: &str, refusal: &str, says: fn(&str) -> (u16, String)| {
        let answers = vec![refuses(refusal), says("one"), says("two")];
        let (base, asked) = service(answers).await;
        let served = served(format, &base, model, None);
        assert_eq!(ask(&served, &[user("go")]).await.unwrap().text, "one");
        assert_eq!(ask(&served, &[user("go")]).await.unwrap().text, "two");
        let asked: Vec<_> = asked.await.unwrap().iter().map(asks_for_thoughts).collect();
        assert_eq!(asked, [true, false, false], "{refusal}");
    };
    let unverified = "Your organization must be verified to generate reasoning summaries.";
    check(Format::Responses, "o4-mini", unverified, responses_says).await;
    let none = "Encrypted content is not supported with this model.";
    check(Format::Responses, "gpt-5-chat-latest", none, responses_says).await;
    check(Format::Gemini, "gemini-next", "Thinking is not enabled for it", gemini_says).await;
    // Whatever else is refused stays refused.
    let (base, asked) = service(vec![refuses("no such model")]).await;
    let error = ask(&served(Format::Responses, &base, "o9", None), &[user("go")]).await;
    assert_eq!(error.unwrap_err(), Error::Refused("no such model".to_owned()));
    assert_eq!(asked.await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_conversation_changes_its_provider() {
    // One service thinks and calls, with signatures of its own.
    let signed =
        json!({"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"});
    let candidate =
        json!({"content": {"role": "model", "parts": [signed]}, "finishReason": "STOP"});
    let calls = format!("data: {}\n\n", json!({"candidates": [candidate]}));
    let (gemini, asked) = service(vec![(200, calls), gemini_says("done")]).await;
    let first = served(Format::Gemini, &gemini, "gemini-2.5-pro", None);
    let reply = ask(&first, &[user("go")]).await.unwrap();
    let call = reply.calls[0].clone();
    let result = Outcome { call: call.id, name: call.name, text: "ok".to_owned(), failed: false };
    // As from a journal.
    let reply: Reply = serde_json::from_value(serde_json::to_value(&reply).unwrap()).unwrap();
    let told = [user("go"), Message::Assistant(reply), Message::Results { results: vec![result] }];
    ask(&first, &told).await.unwrap();
    let again = asked.await.unwrap().remove(1).to_string();
    assert!(again.contains("c2ln"), "who signed it sees it again: {again}");

    // The next one hears the sense of it, with names that it takes.
    let (openai, asked) = service(vec![responses_says("and on")]).await;
    let second = served(Format::Responses, &openai, "o4-mini", None);
    let reply = ask(&second, &told).await.unwrap();
    assert_eq!(reply.source.unwrap().model, "o4-mini");
    let body = asked.await.unwrap().remove(0);
    assert!(!body.to_string().contains("c2ln"), "{body}");
    let items = body["input"].as_array().unwrap();
    let of = |kind: &str| items.iter().find(|item| item["type"] == kind).unwrap();
    assert_eq!(of("function_call")["call_id"], "call_1_0", "{body}");
    assert_eq!(of("function_call_output")["call_id"], "call_1_0", "{body}");
}

#[tokio::test]
async fn a_service_that_cannot_read_its_own_words_any_more_hears_the_sense() {
    let bad = "The encrypted content gAAA could not be verified.";
    let answers = vec![responses_says("one"), refuses(bad), refuses(bad), responses_says("two")];
    let (base, asked) = service(answers).await;
    let served = served(Format::Responses, &base, "o4-mini", None);
    let reply = ask(&served, &[user("go")]).await.unwrap();
    let told = [user("go"), Message::Assistant(reply), user("on")];
    assert_eq!(ask(&served, &told).await.unwrap().text, "two");
    assert_eq!(asked.await.unwrap().len(), 4);
}

#[tokio::test]
async fn near_the_end_of_a_budget_less_is_asked_for() {
    let spent = json!({"error": {"message": "the budget of this run is used up"}}).to_string();
    let answers = vec![(402, spent.clone()), (402, spent.clone()), (402, spent)];
    let (base, asked) = service(answers).await;
    let served = served(Format::Messages, &base, "claude-sonnet-4-5", Some(11_111));
    let error = ask(&served, &[user("go")]).await.unwrap_err();
    assert!(matches!(error, Error::Spent(_)), "{error}");
    let asked: Vec<_> =
        asked.await.unwrap().iter().map(|body| body["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(asked, [11_111, 2777, 1024]);
}
