//! What a model may call.
//!
//! A call is first read ([`Toolbox::prepare`]): what does not fit the tool's schema is refused with
//! the reason, and nothing happens. What it would do can then be told, kept and asked about before it
//! is done ([`Ready::run`]).

mod adopt;
mod files;
mod plan;
mod shell;

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::body::Body;
use crate::events::{Location, ToolContent, ToolKind, Update};
use crate::model::{Call, Tool};

pub use plan::Planner;

/// Tools that belong together: those of a body, of a plan, of a server.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// Called before each time that the model is asked: what there is to call may have changed. Gives
    /// what is to be kept and known, each thing once. It must not take long, whatever it waits for.
    async fn refresh(&self) -> Vec<Update> {
        Vec::new()
    }

    fn tools(&self) -> Vec<Tool>;

    /// Reads a call of one of its tools; `None` when it is another's.
    fn prepare(&self, call: &Call) -> Option<Result<Box<dyn Ready>, String>>;
}

/// A call that can be made.
#[async_trait]
pub trait Ready: Send {
    fn intent(&self) -> Intent;
    async fn run(self: Box<Self>, context: &mut Context<'_>) -> Answer;
}

/// What a call is about to do, for whoever watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    pub title: String,
    pub kind: ToolKind,
    pub locations: Vec<Location>,
    /// Whether it changes anything, or may.
    pub changes: bool,
    /// Whether it goes beyond the sandbox (the way out, what others will see, what costs money): then
    /// the owner is asked even by an agent that otherwise does as it sees fit.
    pub asks: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// For the model.
    pub text: String,
    pub failed: bool,
    /// Bytes that belong into `text` and were not kept.
    pub lost: u64,
    /// For people.
    pub content: Vec<ToolContent>,
}

impl Answer {
    pub fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), failed: true, ..Self::default() }
    }

    pub fn error(error: &nacre_wire::ApiError) -> Self {
        match &error.hint {
            Some(hint) => Self::failed(format!("{error} ({hint})")),
            None => Self::failed(error.to_string()),
        }
    }
}

/// What a call may use while it runs.
pub struct Context<'a> {
    pub call: &'a str,
    /// Tells those who watch, as it happens.
    pub tell: &'a mut (dyn FnMut(Update) + Send),
}

/// The tools that act on a body, and those that need what is in it.
pub struct BodyTools {
    body: Arc<dyn Body>,
}

impl BodyTools {
    pub fn new(body: Arc<dyn Body>) -> Self {
        Self { body }
    }
}

impl Toolbox for BodyTools {
    fn tools(&self) -> Vec<Tool> {
        files::tools().into_iter().chain(shell::tools()).chain(adopt::tools()).collect()
    }

    fn prepare(&self, call: &Call) -> Option<Result<Box<dyn Ready>, String>> {
        let Self { body } = self;
        files::prepare(body, call)
            .or_else(|| shell::prepare(body, call))
            .or_else(|| adopt::prepare(body, call))
    }
}

/// A tool whose arguments are `T`; what describes them to the model is what they are read by.
pub fn tool<T: JsonSchema>(name: &str, description: &str) -> Tool {
    let settings = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
        schema.remove("title");
        schema.remove("description");
    }
    Tool { name: name.to_owned(), description: description.to_owned(), schema }
}

/// What a call is given, or why it cannot be called like this.
pub fn arguments<T: DeserializeOwned>(call: &Call) -> Result<T, String> {
    // Some services give what they could not read as text.
    let read = match &call.arguments {
        serde_json::Value::String(text) => serde_json::from_str(text),
        serde_json::Value::Null => serde_json::from_str("{}"),
        arguments => serde_json::from_value(arguments.clone()),
    };
    read.map_err(|error| format!("{} cannot be called like this: {error}", call.name))
}

fn at(path: &str) -> Vec<Location> {
    vec![Location { path: path.to_owned(), line: None }]
}
