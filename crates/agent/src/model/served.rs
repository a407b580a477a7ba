//! Models behind the usual services, by way of the `genai` crate, which knows their wire formats.
//!
//! Services refuse what their kin take for granted. What is asked of one gives way when it does ([`terms`]),
//! and stays so for as long as this lives.

mod faults;
mod messages;
mod terms;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatRequest, ChatStreamEvent, StopReason, StreamEnd};
use genai::resolver::{AuthData, Endpoint};
use genai::{Client, ModelIden, ServiceTarget};
use serde::{Deserialize, Serialize};

use super::{
    Call, Error, Model, Piece, Pieces, Reply, Request, Result, Source, Stop, Tool, Usage, WINDOW,
};
use faults::fault;
use terms::{Terms, Thoughts};

/// A service that sends nothing for so long has gone away. Some think for minutes.
const SILENCE: Duration = Duration::from_secs(300);

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
    source: Source,
    terms: Mutex<Terms>,
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
        let source = Source {
            format: service.format,
            service: service.base.clone(),
            model: service.model.clone(),
        };
        let terms = Mutex::new(Terms::of(&service));
        Ok(Self { client, service, source, terms, window: WINDOW })
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

    async fn ask(
        &self,
        terms: Terms,
        request: &Request<'_>,
        pieces: &mut Pieces<'_>,
    ) -> Result<Reply> {
        let own_words = (terms.thoughts != Thoughts::Untold).then_some(&self.source);
        let chat = ChatRequest::new(messages::told(request.messages, own_words))
            .with_system(request.system)
            .with_store(false);
        // An empty list of tools is refused by some.
        let chat = match request.tools {
            [] => chat,
            tools => chat.with_tools(tools.iter().map(tool)),
        };
        let options = options(self.service.format, terms);
        let asked = self.client.exec_chat_stream(self.target(), chat, Some(&options)).await;
        let mut stream = asked.map_err(|error| fault(&error))?.stream;
        while let Some(event) = stream.next().await {
            match event.map_err(|error| fault(&error))? {
                ChatStreamEvent::Chunk(chunk) => pieces(Piece::Text(chunk.content)),
                ChatStreamEvent::ReasoningChunk(chunk) => pieces(Piece::Thought(chunk.content)),
                ChatStreamEvent::End(end) => {
                    return Ok(Reply { source: Some(self.source.clone()), ..reply(end)? });
                }
                ChatStreamEvent::Start
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::ToolCallChunk(_)
                | ChatStreamEvent::Heartbeat => {}
            }
        }
        Err(Error::Broken("the answer broke off".to_owned()))
    }

    fn terms(&self) -> std::sync::MutexGuard<'_, Terms> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Model for Served {
    async fn respond(&self, request: &Request<'_>, pieces: &mut Pieces<'_>) -> Result<Reply> {
        loop {
            let terms = *self.terms();
            let error = match self.ask(terms, request, pieces).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            match terms.after(self.service.format, &error) {
                Some(less) => *self.terms() = less,
                None => return Err(error),
            }
        }
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

fn options(format: Format, terms: Terms) -> ChatOptions {
    // In two formats this is sent, and refused by models without thoughts. In the others it only keeps what
    // comes by itself.
    let asks = match format {
        Format::Responses | Format::Gemini => terms.thoughts == Thoughts::Asked,
        Format::Chat | Format::Messages => true,
    };
    let options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_content(true)
        .with_capture_tool_calls(true)
        .with_capture_reasoning_content(asks);
    match terms.longest {
        Some(longest) => options.with_max_tokens(longest),
        None => options,
    }
}

fn tool(tool: &Tool) -> genai::chat::Tool {
    genai::chat::Tool::new(tool.name.as_str())
        .with_description(tool.description.as_str())
        .with_schema(tool.schema.clone())
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
    Ok(Reply { text, calls, original, source: None, usage, stop })
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

#[cfg(test)]
mod tests;
