//! `[egress]` in `nacre.toml`: what holds for every sandbox unless it has something of its own.

use std::time::Duration;

use nacre_wire::egress::{EgressEffect, EgressLimits, EgressMode};
use serde::Deserialize;

use super::policy::Policy;
use super::rule::{BadPattern, Rule};
use crate::config::ConfigError;

/// The `[egress]` table, before defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawEgressConfig {
    /// `open`, `allow-list` or `none`.
    pub mode: Option<String>,
    pub allow: Vec<String>,
    /// As `allow`, and these names may lead to addresses that are not public.
    pub allow_private: Vec<String>,
    pub deny: Vec<String>,
    /// Connections that one sandbox may have open.
    pub connections: Option<u64>,
    pub connects_per_second: Option<u64>,
    pub connect_timeout_seconds: Option<u64>,
    /// How many connections are remembered.
    pub log_records: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressConfig {
    pub(crate) policy: Policy,
    pub(crate) limits: EgressLimits,
    pub(crate) connect_timeout: Duration,
    pub(crate) log_records: u64,
}

impl Default for EgressConfig {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            limits: EgressLimits { connections: 2048, connects_per_second: 500 },
            connect_timeout: Duration::from_secs(15),
            log_records: 100_000,
        }
    }
}

impl RawEgressConfig {
    pub fn resolve(self) -> Result<EgressConfig, ConfigError> {
        let usual = EgressConfig::default();
        let mode = match self.mode {
            None => EgressMode::default(),
            Some(text) => EgressMode::parse(&text).ok_or(ConfigError::BadEgressMode(text))?,
        };
        let rules = [
            (EgressEffect::Allow, false, self.allow),
            (EgressEffect::Allow, true, self.allow_private),
            (EgressEffect::Deny, false, self.deny),
        ];
        let rules = rules.into_iter().flat_map(|(effect, private, targets)| {
            targets
                .into_iter()
                .map(move |target| Ok(Rule { effect, private, pattern: target.parse()? }))
        });
        let rules: Result<Vec<_>, BadPattern> = rules.collect();
        let rules = rules.map_err(|BadPattern(text)| ConfigError::BadEgressRule(text))?;
        let limits = EgressLimits {
            connections: self.connections.unwrap_or(usual.limits.connections),
            connects_per_second: self
                .connects_per_second
                .unwrap_or(usual.limits.connects_per_second),
        };
        Ok(EgressConfig {
            policy: Policy { mode, rules },
            limits,
            connect_timeout: self
                .connect_timeout_seconds
                .map_or(usual.connect_timeout, Duration::from_secs),
            log_records: self.log_records.unwrap_or(usual.log_records),
        })
    }
}
