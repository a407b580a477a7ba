//! `[conversations]`, and of `[agent]` which model.

use std::time::Duration;

use nacre_agent::mcp::Servers;
use serde::Deserialize;

use crate::provider::Dollars;

const DEFAULT_STEPS: u64 = 100;
const DEFAULT_MINUTES: u64 = 60;
const DEFAULT_BUDGET: Dollars = Dollars(10_000_000_000);

/// The `[agent]` table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawAgentConfig {
    /// `provider/model`, for whoever names none.
    pub model: Option<String>,
    /// How many tokens it can hear and say at once. A guess that most models exceed otherwise.
    pub window: Option<u64>,
}

/// The `[conversations]` table, before defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawConversationsConfig {
    /// How often the model is asked in one turn.
    pub steps_per_turn: Option<u64>,
    pub minutes_per_turn: Option<u64>,
    /// What one conversation may cost; 0 means no limit.
    pub dollars: Option<Dollars>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationsConfig {
    pub(crate) model: Option<String>,
    pub(crate) window: Option<u64>,
    pub(crate) steps: u64,
    pub(crate) time: Duration,
    pub(crate) budget: Option<Dollars>,
    /// Servers whose tools the agent has besides its own.
    pub mcp: Servers,
}

impl Default for ConversationsConfig {
    fn default() -> Self {
        RawConversationsConfig::default().resolve(RawAgentConfig::default())
    }
}

impl RawConversationsConfig {
    pub fn resolve(self, agent: RawAgentConfig) -> ConversationsConfig {
        let minutes = self.minutes_per_turn.unwrap_or(DEFAULT_MINUTES).max(1);
        let budget = self.dollars.unwrap_or(DEFAULT_BUDGET);
        ConversationsConfig {
            model: agent.model.filter(|model| !model.is_empty()),
            window: agent.window,
            steps: self.steps_per_turn.unwrap_or(DEFAULT_STEPS).max(1),
            time: Duration::from_secs(minutes.saturating_mul(60)),
            budget: (budget.0 > 0).then_some(budget),
            mcp: Servers::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_bounded_and_nothing_means_no_budget() {
        let usual = ConversationsConfig::default();
        assert_eq!((usual.model, usual.budget), (None, Dollars::new(10.0)));
        let raw = RawConversationsConfig {
            steps_per_turn: Some(0),
            minutes_per_turn: Some(0),
            dollars: Dollars::new(0.0),
        };
        let resolved =
            raw.resolve(RawAgentConfig { model: Some("openai/gpt-4o".to_owned()), window: None });
        assert_eq!((resolved.steps, resolved.time), (1, Duration::from_secs(60)));
        assert_eq!((resolved.budget, resolved.model.as_deref()), (None, Some("openai/gpt-4o")));
    }
}
