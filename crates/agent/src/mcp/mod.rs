//! Tools of others: servers that speak the Model Context Protocol, by way of the `rmcp` crate.
//!
//! Each server that the owner named is started when a turn first needs to know what it offers, and again
//! after it has ended. A program runs in the body, like any command of the agent; an address is reached
//! from where the agent runs. Nothing that a server does or leaves undone holds a turn up for longer than
//! its time-out, and a call that the agent gives up is cancelled at the server.

mod config;
mod results;
mod schema;
mod server;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use serde_json::{Map, Value};

use crate::body::Body;
use crate::events::{ToolKind, Update};
use crate::model::{Call, Tool};
use crate::tools::{Answer, Context, Intent, Ready, Toolbox};
use server::{Offered, Server};

pub use config::{ServerConfig, Servers};

/// The tools of all servers, each named `SERVER_tool`.
pub struct Mcp {
    servers: Vec<Arc<Server>>,
}

/// How servers are reached, and where what they give goes.
#[derive(Clone)]
pub struct Ways {
    /// Where programs run.
    pub body: Arc<dyn Body>,
    /// A directory of the body for files.
    pub scratch: String,
    /// A proxy that addresses are reached through, unless they are on loopback.
    pub proxy: Option<String>,
}

impl Mcp {
    /// Starts nothing yet. Addresses are reached directly.
    pub fn new(servers: &Servers, body: &Arc<dyn Body>, scratch: &str) -> Result<Self, String> {
        let (body, scratch) = (body.clone(), scratch.to_owned());
        Self::by(servers, &Ways { body, scratch, proxy: None })
    }

    pub fn by(servers: &Servers, ways: &Ways) -> Result<Self, String> {
        let server = |(name, config): (&String, &ServerConfig)| {
            let place = config.place(name)?;
            Ok(Arc::new(Server::new(name, config, place, ways.clone())))
        };
        Ok(Self { servers: servers.iter().map(server).collect::<Result<_, String>>()? })
    }

    fn find(&self, name: &str) -> Option<(&Arc<Server>, Offered)> {
        self.servers.iter().find_map(|server| {
            let offered = server.offered();
            offered.iter().find(|tool| tool.full == name).map(|tool| (server, tool.clone()))
        })
    }
}

#[async_trait]
impl Toolbox for Mcp {
    async fn refresh(&self) -> Vec<Update> {
        let news = join_all(self.servers.iter().map(|server| server.refresh())).await.concat();
        news.into_iter().map(|message| Update::Notice { message }).collect()
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |tool: &Offered| Tool {
            name: tool.full.clone(),
            description: tool.description.clone(),
            schema: tool.schema.clone(),
        };
        let all = self.servers.iter().map(|server| server.offered());
        all.flat_map(|offered| offered.iter().map(tool).collect::<Vec<_>>()).collect()
    }

    fn prepare(&self, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
        let (server, tool) = self.find(&call.name)?;
        let arguments = arguments(call).and_then(|arguments| {
            let value = Value::Object(arguments);
            schema::check(&tool.schema, &value)
                .map_err(|reason| format!("{} cannot be called like this: {reason}", call.name))?;
            Ok(value)
        });
        let server = server.clone();
        Some(arguments.map(|value| {
            let arguments = value.as_object().cloned().unwrap_or_default();
            Box::new(ServerCall { server, tool, arguments }) as Box<dyn Ready>
        }))
    }
}

fn arguments(call: &Call) -> Result<Map<String, Value>, String> {
    let read = match &call.arguments {
        // Some services give what they could not read as text.
        Value::String(text) => serde_json::from_str(text),
        Value::Null => Ok(Map::new()),
        arguments => serde_json::from_value(arguments.clone()),
    };
    read.map_err(|error| format!("{} cannot be called like this: {error}", call.name))
}

struct ServerCall {
    server: Arc<Server>,
    tool: Offered,
    arguments: Map<String, Value>,
}

#[async_trait]
impl Ready for ServerCall {
    fn intent(&self) -> Intent {
        Intent {
            title: format!("{}: {}", self.server.name, self.tool.name),
            kind: if self.tool.reads { ToolKind::Read } else { ToolKind::Other },
            locations: Vec::new(),
            changes: !self.tool.reads,
            asks: self.server.asks,
        }
    }

    async fn run(self: Box<Self>, _: &mut Context<'_>) -> Answer {
        let Self { server, tool, arguments } = *self;
        match server.call(&tool, arguments).await {
            Ok(result) => server.tell(result).await,
            Err(reason) => Answer::failed(reason),
        }
    }
}

#[cfg(test)]
mod tests;
