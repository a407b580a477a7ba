//! Where the gateway's log goes and how it reads.

use std::io::IsTerminal;

use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, Result};

/// The `[log]` table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawLogConfig {
    /// `text` or `json`; text on a terminal, JSON elsewhere when absent.
    format: Option<LogFormat>,
    /// `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `info,nacre_gateway=debug`.
    level: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LogFormat {
    Text,
    Json,
}

impl RawLogConfig {
    /// Standard output stays free for what commands print.
    pub(crate) fn install(&self) -> Result<()> {
        let level = self.level.as_deref().unwrap_or("info");
        let filter = EnvFilter::try_new(level)
            .map_err(|error| Failure::new(format!("[log] level \"{level}\": {error}")))?;
        let terminal = std::io::stderr().is_terminal();
        let format =
            self.format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
        let builder = tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_env_filter(filter)
            .with_ansi(terminal)
            .with_target(false);
        let installed = match format {
            LogFormat::Text => builder.compact().try_init(),
            LogFormat::Json => builder.json().flatten_event(true).try_init(),
        };
        installed.map_err(|error| Failure::new(format!("the log: {error}")))
    }
}
