//! One server: started when it is needed, asked what it offers, called, and started again when it ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig,
    Implementation, PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer,
    RoleClient, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::Ways;
use super::config::{Place, ServerConfig};
use super::results::{self, Files};
use crate::body::{Program, Remarks};
use crate::tools::Answer;

/// A message that is longer is left out, and its call has no answer.
const LONGEST_MESSAGE: usize = 16 << 20;
const MOST_TOOLS: usize = 100;
const MOST_PAGES: usize = 20;
const LONGEST_SCHEMA: usize = 32 * 1024;
/// What services take.
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 1000;
/// A start never holds a turn up for longer, however long calls may take.
const LONGEST_START: Duration = Duration::from_secs(60);
/// After it did not start: so long, doubled each time.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// A server that leaves so many calls in a row without an answer is started anew.
const MOST_SILENCES: u32 = 2;
const LONGEST_ERROR: usize = 4000;
const SHOWN: usize = 300;
const LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// A tool, as it is told to the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offered {
    /// With the server's name.
    pub(super) full: String,
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: Value,
    /// It changes nothing, as the server says.
    pub(super) reads: bool,
}

pub(super) struct Server {
    pub(super) name: String,
    pub(super) asks: bool,
    config: ServerConfig,
    place: Place,
    ways: Ways,
    files: AtomicU64,
    state: Mutex<State>,
    offered: RwLock<Arc<[Offered]>>,
}

#[derive(Default)]
struct State {
    link: Option<Link>,
    /// Starts that failed, in a row.
    failures: u32,
    not_before: Option<Instant>,
    silences: u32,
    told: Option<String>,
}

struct Link {
    service: RunningService<RoleClient, Handler>,
    remarks: Option<Remarks>,
    changed: Arc<AtomicBool>,
}

impl Link {
    fn is_open(&self) -> bool {
        !self.service.peer().is_transport_closed()
    }
}

/// Our side of the protocol: it can do nothing for a server but listen.
struct Handler {
    changed: Arc<AtomicBool>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("nacre", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Relaxed);
    }
}

impl Server {
    pub(super) fn new(name: &str, config: &ServerConfig, place: Place, ways: Ways) -> Self {
        Self {
            name: name.to_owned(),
            asks: config.asks(),
            config: config.clone(),
            place,
            ways,
            files: AtomicU64::new(0),
            state: Mutex::default(),
            offered: RwLock::new(Arc::new([])),
        }
    }

    pub(super) fn offered(&self) -> Arc<[Offered]> {
        self.offered.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts it if it does not run, and asks again what it offers if that has changed. Gives what the
    /// owner should know.
    pub(super) async fn refresh(&self) -> Vec<String> {
        let mut state = self.state.lock().await;
        match &state.link {
            Some(link) if link.is_open() && !link.changed.swap(false, Ordering::Relaxed) => {
                return Vec::new();
            }
            Some(_) => {}
            None if state.not_before.is_some_and(|rest| Instant::now() < rest) => {
                return Vec::new();
            }
            None => {}
        }
        let notices = match self.bring_up(&mut state).await {
            Ok(left_out) => left_out,
            Err(reason) => vec![reason],
        };
        let news = notices.join("; ");
        let known = state.told.replace(news.clone());
        if news.is_empty() || known.as_ref() == Some(&news) { Vec::new() } else { vec![news] }
    }

    /// A link that is open, and the list of what there is. Gives what was left out of it.
    async fn bring_up(&self, state: &mut State) -> Result<Vec<String>, String> {
        if !state.link.as_ref().is_some_and(Link::is_open) {
            state.link = None;
        }
        let within = self.config.timeout().min(LONGEST_START);
        // What it remarks is wanted most when it does not start.
        let mut remarks = None;
        let brought = timeout(within, async {
            let link = match state.link.take() {
                Some(link) => link,
                None => self.start(&mut remarks).await?,
            };
            let listed = self.list(link.service.peer()).await?;
            Ok::<_, String>((link, listed))
        });
        let brought = match brought.await {
            Ok(brought) => brought,
            Err(_) => Err(format!("it was not ready within {} seconds", within.as_secs())),
        };
        match brought {
            Ok((link, (offered, left_out))) => {
                *self.offered.write().unwrap_or_else(PoisonError::into_inner) = offered.into();
                let told = state.told.take();
                *state = State { link: Some(link), told, ..State::default() };
                Ok(left_out)
            }
            Err(reason) => {
                *self.offered.write().unwrap_or_else(PoisonError::into_inner) = Arc::new([]);
                let rest = FIRST_REST * 2u32.saturating_pow(state.failures.min(10));
                state.not_before = Some(Instant::now() + rest.min(LONGEST_REST));
                state.failures += 1;
                let said = said(remarks.as_ref());
                Err(format!("the MCP server \"{}\" does not start: {reason}{said}", self.name))
            }
        }
    }

    /// By the handshake that nearly all servers know; one that refuses it may be of the revision that
    /// has done away with it.
    async fn start(&self, remarks: &mut Option<Remarks>) -> Result<Link, String> {
        let changed = Arc::new(AtomicBool::new(false));
        let first = self.connect(remarks, &changed, ClientLifecycleMode::Initialize).await?;
        let service = match first {
            Err(error) if self.may_be_newer(&error) => {
                let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
                let newer = ClientLifecycleMode::Discover { preferred_versions };
                // If that is refused as well, the first reason is the better one.
                self.connect(remarks, &changed, newer).await?.map_err(|_| error)
            }
            first => first,
        };
        let service = service.map_err(|error| short(&error.to_string()))?;
        Ok(Link { service, remarks: remarks.clone(), changed })
    }

    fn may_be_newer(&self, error: &ClientInitializeError) -> bool {
        match (error, &self.place) {
            (ClientInitializeError::JsonRpcError(_), _) => true,
            (ClientInitializeError::TransportError { .. }, Place::Address { .. }) => true,
            (_, Place::Program(_) | Place::Address { .. }) => false,
        }
    }

    async fn connect(
        &self,
        remarks: &mut Option<Remarks>,
        changed: &Arc<AtomicBool>,
        mode: ClientLifecycleMode,
    ) -> Result<Result<RunningService<RoleClient, Handler>, ClientInitializeError>, String> {
        let handler = Handler { changed: changed.clone() };
        Ok(match &self.place {
            Place::Program(program) => {
                let (transport, heard) = self.open(program).await?;
                *remarks = Some(heard);
                handler.serve_with_lifecycle(transport, mode).await
            }
            Place::Address { url, headers } => {
                let client = client(self.ways.proxy.as_deref())?;
                let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                config.custom_headers = headers.clone();
                config.max_sse_event_size = LONGEST_MESSAGE;
                let transport = StreamableHttpClientTransport::with_client(client, config);
                handler.serve_with_lifecycle(transport, mode).await
            }
        })
    }

    async fn open(&self, program: &Program) -> Result<(Pipe, Remarks), String> {
        let opened = self.ways.body.open(program).await.map_err(|error| error.to_string())?;
        let transport = AsyncRwTransport::new_client(opened.output, opened.input);
        Ok((transport.with_max_line_length(LONGEST_MESSAGE), opened.remarks))
    }

    async fn list(&self, peer: &Peer<RoleClient>) -> Result<(Vec<Offered>, Vec<String>), String> {
        let mut found = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let listed = peer.list_tools(Some(page)).await.map_err(|error| error.to_string())?;
            found.extend(listed.tools.into_iter().filter(|tool| self.config.allows(&tool.name)));
            cursor = listed.next_cursor;
            if cursor.is_none() || found.len() > MOST_TOOLS {
                break;
            }
        }
        Ok(self.select(found))
    }

    /// Those that a model can be told of, and why not the others.
    fn select(&self, found: Vec<rmcp::model::Tool>) -> (Vec<Offered>, Vec<String>) {
        let mut offered: Vec<Offered> = Vec::new();
        let mut left_out = Vec::new();
        for tool in found {
            let tool = offer(&self.name, tool);
            let reason = if offered.len() == MOST_TOOLS {
                format!("it has more than {MOST_TOOLS} tools")
            } else if tool.schema.to_string().len() > LONGEST_SCHEMA {
                format!("the arguments of {} take too long to describe", tool.name)
            } else if offered.iter().any(|other| other.full == tool.full) {
                format!("two of its tools are called {}", tool.full)
            } else {
                offered.push(tool);
                continue;
            };
            left_out.push(format!("of the MCP server \"{}\", {reason}; left out", self.name));
            if offered.len() == MOST_TOOLS {
                break;
            }
        }
        (offered, left_out)
    }

    /// Calls one of its tools. What the caller gives up is cancelled there.
    pub(super) async fn call(
        &self,
        tool: &Offered,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, String> {
        let (peer, remarks) = self.peer().await?;
        let params = CallToolRequestParams::new(tool.name.clone()).with_arguments(arguments);
        let within = self.config.timeout();
        let Ok(answered) = timeout(within, peer.call_tool_once(params)).await else {
            self.count_silence().await;
            return Err(format!(
                "{} did not answer within {} seconds",
                self.name,
                within.as_secs()
            ));
        };
        self.state.lock().await.silences = 0;
        match answered {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(_) => {
                Err(format!("{} wants to ask something back, which nobody answers", tool.full))
            }
            Err(ServiceError::McpError(error)) => {
                Err(error.message.chars().take(LONGEST_ERROR).collect())
            }
            Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => Err(format!(
                "{} ended while it was called; it is not known how far this got{}",
                self.name,
                said(remarks.as_ref())
            )),
            Err(error) => Err(short(&error.to_string())),
        }
    }

    async fn peer(&self) -> Result<(Peer<RoleClient>, Option<Remarks>), String> {
        let mut state = self.state.lock().await;
        if !state.link.as_ref().is_some_and(Link::is_open) {
            self.bring_up(&mut state).await?;
        }
        match &state.link {
            Some(link) => Ok((link.service.peer().clone(), link.remarks.clone())),
            None => Err(format!("the MCP server \"{}\" does not run", self.name)),
        }
    }

    async fn count_silence(&self) {
        let mut state = self.state.lock().await;
        state.silences += 1;
        if state.silences >= MOST_SILENCES {
            state.link = None;
        }
    }

    pub(super) async fn tell(&self, result: CallToolResult) -> Answer {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let prefix = format!("{}/{}-{now}-{number}", self.ways.scratch, self.name);
        results::answer(result, &Files { body: &*self.ways.body, prefix }).await
    }
}

fn client(proxy: Option<&str>) -> Result<reqwest::Client, String> {
    let builder = crate::http::builder().map_err(|error| error.to_string())?;
    // A connection whose answer was not read to its end is not fit to be used again.
    let mut builder = builder.pool_max_idle_per_host(0);
    if let Some(proxy) = proxy {
        let proxy = reqwest::Proxy::all(proxy).map_err(|error| error.to_string())?;
        builder = builder.proxy(proxy.no_proxy(reqwest::NoProxy::from_string(LOOPBACK)));
    }
    builder.build().map_err(|error| error.to_string())
}

type Pipe = AsyncRwTransport<
    RoleClient,
    Box<dyn tokio::io::AsyncRead + Send + Unpin>,
    Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
>;

pub(super) fn offer(server: &str, tool: rmcp::model::Tool) -> Offered {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name = tool.name.into_owned();
    let full = format!("{server}_{name}").chars().map(plain).take(LONGEST_NAME).collect();
    let description = tool.description.unwrap_or_default();
    let description = description.chars().take(LONGEST_DESCRIPTION).collect();
    let mut schema = Value::Object((*tool.input_schema).clone());
    if schema.get("type").is_none() {
        schema["type"] = json!("object");
    }
    // Some services refuse an object without it.
    if schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
    let hints = tool.annotations.unwrap_or_default();
    Offered { full, name, description, schema, reads: hints.read_only_hint == Some(true) }
}

fn said(remarks: Option<&Remarks>) -> String {
    let text = remarks.map(Remarks::text).unwrap_or_default();
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if last.is_empty() { String::new() } else { format!("; it said last: {}", short(last)) }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
