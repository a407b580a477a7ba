//! What a one-shot run is started with: one JSON object on the standard input of `nacre-agent`, so
//! that neither the task nor the token stands in a command line or in the environment.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::mcp::Servers;
use crate::model::{Format, Service};
use crate::{Limits, Mode};

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What is to be done.
    pub task: String,
    pub workspace: PathBuf,
    /// Where long output goes.
    pub scratch: PathBuf,
    pub service: ServiceOrder,
    pub max_steps: u64,
    pub timeout_ms: u64,
    #[serde(default)]
    pub plan_only: bool,
    /// Servers of tools, beside the agent's own.
    #[serde(default, skip_serializing_if = "Servers::is_empty")]
    pub mcp: Servers,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceOrder {
    pub format: Format,
    pub base: String,
    pub token: String,
    pub model: String,
    #[serde(default)]
    pub longest: Option<u32>,
    /// How many tokens the model can hear and say at once, when that is known.
    #[serde(default)]
    pub window: Option<u64>,
}

impl Order {
    pub fn limits(&self) -> Limits {
        Limits { steps: self.max_steps, time: Duration::from_millis(self.timeout_ms) }
    }

    pub fn mode(&self) -> Mode {
        if self.plan_only { Mode::Plan } else { Mode::Auto }
    }
}

impl From<ServiceOrder> for Service {
    fn from(order: ServiceOrder) -> Self {
        let ServiceOrder { format, base, token, model, longest, window: _ } = order;
        Self { format, base, token, model, longest }
    }
}
