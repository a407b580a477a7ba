//! Where the gateway's log goes and how it reads.

use std::io::IsTerminal;

use nacre_gateway::{JsonLines, LogGuard, Spool};
use serde::Deserialize;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

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
    /// Standard output stays free for what commands print. Lines are written until the guard is
    /// dropped.
    pub(crate) fn install(&self) -> Result<LogGuard> {
        let terminal = std::io::stderr().is_terminal();
        // On a terminal a line per request would push the sign-in link out of sight.
        let usual = if terminal { "info,access=off" } else { "info" };
        let level = self.level.as_deref().unwrap_or(usual);
        let filter = EnvFilter::try_new(level)
            .map_err(|error| Failure::new(format!("[log] level \"{level}\": {error}")))?;
        let format =
            self.format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json });
        let (spool, guard) =
            Spool::start(std::io::stderr()).map_err(|error| Failure::io("the log", &error))?;
        let registry = tracing_subscriber::registry().with(filter);
        let installed = match format {
            LogFormat::Text => {
                let text = fmt::layer().compact().with_writer(spool).with_ansi(terminal);
                registry.with(text.with_target(false)).try_init()
            }
            LogFormat::Json => registry.with(JsonLines::new(spool)).try_init(),
        };
        installed.map_err(|error| Failure::new(format!("the log: {error}")))?;
        Ok(guard)
    }
}
