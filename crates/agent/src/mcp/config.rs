//! `[mcp.NAME]` of a configuration.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::body::Program;

/// By name, which is the first part of the names of their tools.
pub type Servers = BTreeMap<String, ServerConfig>;

const LONGEST_NAME: usize = 20;
const TIMEOUT: u64 = 60;
const LONGEST_TIMEOUT: u64 = 3600;

#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// A program in the sandbox, and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Instead of a program, an address that speaks streamable HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Only these of its tools; otherwise all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// For a call, and for the start; 60 when not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Whether the owner is asked before each call. When not said, of an address they are: what is sent
    /// there leaves the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<bool>,
}

/// Values of variables and headers are often keys.
impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .field("url", &self.url)
            .field("headers", &self.headers.keys())
            .field("tools", &self.tools)
            .field("timeout_seconds", &self.timeout_seconds)
            .field("ask", &self.ask)
            .finish()
    }
}

/// Where a server is.
#[derive(Clone)]
pub(super) enum Place {
    Program(Program),
    Address { url: String, headers: HashMap<HeaderName, HeaderValue> },
}

impl ServerConfig {
    /// Where it is, or what is wrong with what was written.
    pub(super) fn place(&self, name: &str) -> Result<Place, String> {
        let wrong = |what: String| Err(format!("[mcp.{name}]: {what}"));
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
            return wrong(format!("a name has 1 to {LONGEST_NAME} letters, digits and hyphens"));
        }
        if !(1..=LONGEST_TIMEOUT).contains(&self.timeout_seconds.unwrap_or(TIMEOUT)) {
            return wrong(format!("timeout_seconds is from 1 to {LONGEST_TIMEOUT}"));
        }
        match (&self.url, self.command.first()) {
            (None, Some(program)) if !program.is_empty() => {
                if !self.headers.is_empty() {
                    return wrong("headers are for a url; a command has env".to_owned());
                }
                let (words, env) = (self.command.clone(), self.env.clone());
                Ok(Place::Program(Program { words, env }))
            }
            (Some(url), None) => {
                if !self.env.is_empty() {
                    return wrong("env is for a command; a url has headers".to_owned());
                }
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    return wrong(format!("{url} is no http address"));
                }
                let headers = self.headers()?;
                Ok(Place::Address { url: url.clone(), headers })
            }
            _ => wrong("it needs either a command or a url".to_owned()),
        }
    }

    fn headers(&self) -> Result<HashMap<HeaderName, HeaderValue>, String> {
        let header = |(name, value): (&String, &String)| {
            // The value is not told: it may be a key.
            let wrong = || format!("the header {name} cannot be sent");
            let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            Ok((HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value))
        };
        self.headers.iter().map(header).collect()
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds.unwrap_or(TIMEOUT))
    }

    pub fn asks(&self) -> bool {
        self.ask.unwrap_or(self.url.is_some())
    }

    pub(super) fn allows(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|name| name == tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: serde_json::Value) -> ServerConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_is_wrong_with_a_server_is_said() {
        let check = |name: &str, value, expected: Option<&str>| {
            let error = read(value).place(name).err();
            match (expected, &error) {
                (None, None) => {}
                (Some(part), Some(error)) => {
                    assert!(error.contains(part), "{error}");
                }
                other => panic!("{other:?}"),
            }
        };
        check("time", json!({"command": ["uvx", "mcp-server-time"]}), None);
        check("docs", json!({"url": "https://docs.example/mcp", "headers": {"X-Key": "k"}}), None);
        check("a_b", json!({"command": ["x"]}), Some("[mcp.a_b]: a name has"));
        check("a", json!({}), Some("either a command or a url"));
        check("a", json!({"command": ["x"], "url": "http://x"}), Some("either"));
        check("a", json!({"command": [""]}), Some("either"));
        check("a", json!({"url": "file:///x"}), Some("no http address"));
        check("a", json!({"url": "http://x", "env": {"A": "b"}}), Some("env is for a command"));
        check("a", json!({"command": ["x"], "headers": {"a": "b"}}), Some("headers are for a url"));
        check("a", json!({"url": "http://x", "headers": {"a b": "c"}}), Some("header a b"));
        check("a", json!({"command": ["x"], "timeout_seconds": 0}), Some("from 1 to 3600"));
        assert!(serde_json::from_value::<ServerConfig>(json!({"comand": ["x"]})).is_err());
    }

    #[test]
    fn keys_are_not_shown_and_what_leaves_is_asked_about() {
        let docs = read(json!({"url": "http://x", "headers": {"X-Key": "hidden"}}));
        assert!(docs.asks() && !format!("{docs:?}").contains("hidden"));
        let quiet = read(json!({"url": "http://x", "ask": false, "tools": ["a"]}));
        assert!(!quiet.asks() && quiet.allows("a") && !quiet.allows("b"));
        assert!(!read(json!({"command": ["x"]})).asks());
    }
}
