//! Models behind the usual services, by way of the `genai` crate, which knows their wire formats.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatStreamEvent, MessageContent, StopReason, StreamEnd,
    ToolCall, ToolResponse,
};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Call, Error, Message, Model, Piece, Pieces, Reply, Request, Result, Stop, Tool, Usage, WINDOW,
};

/// A service that sends nothing for so long has gone away. Some think for minutes.
const SILENCE: Duration = Duration::from_secs(300);
const SHOWN: usize = 400;
/// Said by our own gateway, and by OpenAI.
const SHOULD_RETRY: &str = "x-should-retry";

/// The wire formats there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Chat,
    Responses,
    Messages,
    Gemini,
}

/// Where a model is, and what lets us in there.
#[derive(Clone)]
pub struct Service {
    pub format: Format,
    /// The address that the format's own paths are under, with a slash at its end.
    pub base: String,
    pub token: String,
    pub model: String,
    /// The most it may say at once, when the service's own limit is not wanted.
    pub longest: Option<u32>,
}

pub struct Served {
    client: Client,
    service: Service,
    window: u64,
}

impl Served {
    pub fn new(service: Service) -> Result<Self> {
        Self::with(service, http()?)
    }

    /// Over the gateway's own unix socket, whatever host the address names.
    pub fn over(service: Service, socket: &Path) -> Result<Self> {
        Self::with(service, http()?.unix_socket(socket))
    }

    fn with(service: Service, http: reqwest::ClientBuilder) -> Result<Self> {
        let http = http.build().map_err(|error| Error::Broken(error.to_string()))?;
        let client = Client::builder()
            .with_reqwest(http)
            .build()
            .map_err(|error| Error::Broken(error.to_string()))?;
        Ok(Self { client, service, window: WINDOW })
    }

    /// For a model whose window is known.
    pub fn with_window(self, tokens: Option<u64>) -> Self {
        Self { window: tokens.unwrap_or(self.window), ..self }
    }

    fn target(&self) -> ServiceTarget {
        let kind = match self.service.format {
            Format::Chat => AdapterKind::OpenAI,
            Format::Responses => AdapterKind::OpenAIResp,
            Format::Messages => AdapterKind::Anthropic,
            Format::Gemini => AdapterKind::Gemini,
        };
        ServiceTarget {
            endpoint: Endpoint::from_owned(self.service.base.as_str()),
            auth: AuthData::from_single(self.service.token.as_str()),
            model: ModelIden::new(kind, self.service.model.as_str()),
        }
    }

    fn options(&self) -> ChatOptions {
        let options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true);
        match self.service.longest {
            Some(longest) => options.with_max_tokens(longest),
            None => options,
        }
    }
}

#[async_trait]
impl Model for Served {
    async fn respond(&self, request: &Request<'_>, pieces: &mut Pieces<'_>) -> Result<Reply> {
        let chat = ChatRequest::new(request.messages.iter().map(message).collect())
            .with_system(request.system)
            .with_store(false);
        // An empty list of tools is refused by some.
        let chat = match request.tools {
            [] => chat,
            tools => chat.with_tools(tools.iter().map(tool)),
        };
        let options = self.options();
        let asked = self.client.exec_chat_stream(self.target(), chat, Some(&options)).await;
        let mut stream = asked.map_err(|error| fault(&error))?.stream;
        while let Some(event) = stream.next().await {
            match event.map_err(|error| fault(&error))? {
                ChatStreamEvent::Chunk(chunk) => pieces(Piece::Text(chunk.content)),
                ChatStreamEvent::ReasoningChunk(chunk) => pieces(Piece::Thought(chunk.content)),
                ChatStreamEvent::End(end) => return reply(end),
                ChatStreamEvent::Start
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::ToolCallChunk(_)
                | ChatStreamEvent::Heartbeat => {}
            }
        }
        Err(Error::Broken("the answer broke off".to_owned()))
    }

    fn window(&self) -> u64 {
        self.window
    }
}

fn http() -> Result<reqwest::ClientBuilder> {
    let builder = crate::http::builder().map_err(|error| Error::Broken(error.to_string()))?;
    // What the environment says about proxies is not about the way to our own gateway.
    Ok(builder.no_proxy().read_timeout(SILENCE))
}

fn tool(tool: &Tool) -> genai::chat::Tool {
    genai::chat::Tool::new(tool.name.as_str())
        .with_description(tool.description.as_str())
        .with_schema(tool.schema.clone())
}

fn message(message: &Message) -> ChatMessage {
    match message {
        Message::User { text } | Message::Summary { text } => ChatMessage::user(text.as_str()),
        Message::Assistant(reply) => ChatMessage::assistant(spoken(reply)),
        Message::Results { results } => {
            let responses = results.iter().map(|outcome| {
                ToolResponse::new(&outcome.call, &outcome.text).with_fn_name(&outcome.name)
            });
            ChatMessage::tool(MessageContent::from_tool_responses(responses.collect()))
        }
    }
}

/// As the service said it, if it is known; otherwise (another service said it) the sense of it.
fn spoken(reply: &Reply) -> MessageContent {
    if let Some(original) = &reply.original
        && let Ok(content) = serde_json::from_value(original.clone())
    {
        return content;
    }
    let mut content = MessageContent::default();
    if !reply.text.is_empty() {
        content.push(reply.text.clone());
    }
    for Call { id, name, arguments } in &reply.calls {
        content.push(ToolCall {
            call_id: id.clone(),
            fn_name: name.clone(),
            fn_arguments: arguments.clone(),
            thought_signatures: None,
        });
    }
    content
}

fn reply(end: StreamEnd) -> Result<Reply> {
    let usage = end.captured_usage.as_ref().map(usage).unwrap_or_default();
    let stopped = end.captured_stop_reason;
    let content = end.captured_content.unwrap_or_default();
    let calls: Vec<Call> = content
        .tool_calls()
        .into_iter()
        .map(|call| Call {
            id: call.call_id.clone(),
            name: call.fn_name.clone(),
            arguments: call.fn_arguments.clone(),
        })
        .collect();
    let stop = match stopped {
        _ if !calls.is_empty() => Stop::Calls,
        Some(StopReason::MaxTokens(_)) => Stop::Length,
        Some(StopReason::ContentFilter(_)) => Stop::Filtered,
        Some(
            StopReason::Completed(_)
            | StopReason::ToolCall(_)
            | StopReason::StopSequence(_)
            | StopReason::Other(_),
        ) => Stop::Done,
        // A stream that ends without a word about why has been cut off.
        None if content.is_empty() => {
            return Err(Error::Broken("the answer ended before it began".to_owned()));
        }
        None => Stop::Done,
    };
    let text = content.joined_texts().unwrap_or_default();
    let original = serde_json::to_value(&content).ok();
    Ok(Reply { text, calls, original, usage, stop })
}

fn usage(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let details = usage.prompt_tokens_details.as_ref();
    Usage {
        input: count(usage.prompt_tokens),
        cached: count(details.and_then(|details| details.cached_tokens)),
        output: count(usage.completion_tokens),
    }
}

fn fault(error: &genai::Error) -> Error {
    use genai::Error as Theirs;
    let answered = match error {
        Theirs::HttpError { status, body, headers, .. } => Some((*status, body, headers)),
        Theirs::WebModelCall { webc_error, .. } | Theirs::WebAdapterCall { webc_error, .. } => {
            match webc_error {
                genai::webc::Error::ResponseFailedStatus { status, body, headers } => {
                    Some((*status, body, headers))
                }
                _ => None,
            }
        }
        _ => None,
    };
    if let Some((status, body, headers)) = answered {
        let again = headers.get(http::header::RETRY_AFTER);
        let again = again.and_then(|value| value.to_str().ok()?.parse().ok());
        let is_final = headers.get(SHOULD_RETRY).is_some_and(|value| value == "false");
        return refusal(status, body, again.map(Duration::from_secs), is_final);
    }
    match error {
        Theirs::StreamParse { serde_error, .. } => Error::Garbled(serde_error.to_string()),
        // What a stream was refused with is inside.
        Theirs::WebStream { cause, error, .. } => match error.downcast_ref::<Theirs>() {
            Some(inner) => fault(inner),
            None => Error::Broken(short(cause)),
        },
        Theirs::ChatResponse { body, .. } => said_in_stream(body),
        other => Error::Broken(short(&other.to_string())),
    }
}

/// Our own gateway says 429 when a budget is used up, as OpenAI does, and that asking again is of no use.
fn refusal(status: StatusCode, body: &str, again: Option<Duration>, is_final: bool) -> Error {
    let message = words(body).unwrap_or_else(|| format!("it answered {status}"));
    match status {
        StatusCode::PAYMENT_REQUIRED => Error::Spent(message),
        StatusCode::TOO_MANY_REQUESTS if is_final || body.contains("insufficient_quota") => {
            Error::Spent(message)
        }
        _ if is_final => Error::Refused(message),
        status if status.is_client_error() && is_too_long(body) => Error::TooLong(message),
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
            Error::Busy { message, again }
        }
        status if status.is_server_error() => Error::Busy { message, again },
        _ => Error::Refused(message),
    }
}

/// Every service has its own words for it: OpenAI's code, Anthropic's two sentences, Google's, those of
/// llama.cpp and vLLM.
fn is_too_long(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    [
        "context_length_exceeded",
        "exceed_context_size",
        "prompt is too long",
        "exceed context limit",
        "exceeds the context window",
        "maximum context length",
        "exceeds the maximum number of tokens",
        "request_too_large",
    ]
    .iter()
    .any(|words| body.contains(words))
}

/// All three formats put an object `error` with a `message` there.
fn words(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let message = body.pointer("/error/message").or_else(|| body.pointer("/0/error/message"));
    Some(short(message?.as_str()?))
}

fn said_in_stream(body: &Value) -> Error {
    let message = ["/error/message", "/message", "/response/error/message"]
        .iter()
        .find_map(|place| body.pointer(place)?.as_str())
        .map_or_else(|| short(&body.to_string()), short);
    let kind = body.pointer("/error/type").and_then(Value::as_str).unwrap_or_default();
    match kind {
        _ if is_too_long(&body.to_string()) => Error::TooLong(message),
        "overloaded_error" | "rate_limit_error" | "api_error" => {
            Error::Busy { message, again: None }
        }
        _ => Error::Broken(message),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_service_says_becomes_what_to_do() {
        let check = |status: u16, body: &str, expected: Error| {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(refusal(status, body, None, false), expected);
        };
        let body = r#"{"error":{"message":"slow down","type":"x"}}"#;
        let busy = |message: &str| Error::Busy { message: message.to_owned(), again: None };
        check(429, body, busy("slow down"));
        check(529, "overloaded", busy("it answered 529 <unknown status code>"));
        check(402, body, Error::Spent("slow down".to_owned()));
        check(400, body, Error::Refused("slow down".to_owned()));
        let poor = r#"{"error":{"message":"no more","code":"insufficient_quota"}}"#;
        check(429, poor, Error::Spent("no more".to_owned()));
        let last = |status| refusal(status, body, None, true);
        assert_eq!(last(StatusCode::TOO_MANY_REQUESTS), Error::Spent("slow down".to_owned()));
        assert_eq!(last(StatusCode::SERVICE_UNAVAILABLE), Error::Refused("slow down".to_owned()));
        let too_long = |text: &str| Error::TooLong(text.to_owned());
        let long = r#"{"error":{"message":"too much","code":"context_length_exceeded"}}"#;
        check(400, long, too_long("too much"));
        let long = "prompt is too long: 200001 tokens > 200000 maximum";
        check(400, &json!({"error": {"message": long}}).to_string(), too_long(long));
        let event =
            json!({"response": {"error": {"code": "context_length_exceeded", "message": "no"}}});
        assert_eq!(said_in_stream(&event), too_long("no"));
        let event =
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "later"}});
        assert_eq!(said_in_stream(&event), busy("later"));
    }

    #[test]
    fn a_reply_is_told_again_even_to_another_service() {
        let reply = Reply {
            text: "hm".to_owned(),
            calls: vec![Call { id: "1".to_owned(), name: "f".to_owned(), arguments: json!({}) }],
            ..Reply::default()
        };
        let content = spoken(&reply);
        assert_eq!(content.joined_texts().as_deref(), Some("hm"));
        assert_eq!(content.tool_calls().len(), 1);
        let kept = Reply { original: serde_json::to_value(&content).ok(), ..Reply::default() };
        assert_eq!(spoken(&kept).tool_calls()[0].fn_name, "f");
    }
}
