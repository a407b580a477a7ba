//! `[runs]`, as written and as resolved.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use axum::body::Bytes;
use nacre_agent::mcp::Servers;
use nacre_wire::control::Limits;
use serde::Deserialize;

use crate::brain::config::RawAgentConfig;
use crate::provider::Dollars;

const MAX_STEPS: u64 = 5;
const TIMEOUT: Duration = Duration::from_secs(300);
/// Fifty cents.
const BUDGET: Dollars = Dollars(500_000_000);
const MOST_WAITING: usize = 100;
/// Agents wait for their model most of the time.
const RUNS_A_CORE: usize = 2;
const MEMORY_A_RUN: u64 = 768 << 20;

/// The `[runs]` table, before defaults.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct RawRunsConfig {
    /// How many run at the same time.
    pub at_once: Option<usize>,
    /// How many may wait behind them.
    pub most_waiting: Option<usize>,
    pub max_steps: Option<u64>,
    pub timeout_seconds: Option<u64>,
    /// 0 means no limit of its own.
    pub dollars: Option<Dollars>,
    /// 0 means no limit of its own, as does nothing.
    pub tokens: Option<u64>,
    /// What the sandbox of a run may use; 0 means no limit of its own.
    pub memory_bytes: Option<u64>,
    pub pids: Option<u64>,
    /// Where agents are found besides the usual places, in the sandbox.
    pub path: Vec<PathBuf>,
    /// How much is kept of runs that have ended.
    pub keep_runs: Option<usize>,
    pub keep_days: Option<u64>,
    pub keep_bytes: Option<u64>,
    /// The most that a run may begin with, and that is taken out of it.
    pub largest_input_bytes: Option<u64>,
    pub largest_output_bytes: Option<u64>,
}

/// What the machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub cores: usize,
    pub memory_bytes: u64,
}

impl Machine {
    /// Of so many that run at the same time, the part of each; `None` when it is not known how much there is.
    fn memory_of_each(self, at_once: usize) -> Option<u64> {
        let each = self.memory_bytes / u64::try_from(at_once).unwrap_or(u64::MAX).max(1);
        (self.memory_bytes > 0).then_some(each.max(MEMORY_A_RUN))
    }

    fn at_once(self) -> usize {
        let by_memory = usize::try_from(self.memory_bytes / MEMORY_A_RUN).unwrap_or(usize::MAX);
        (self.cores * RUNS_A_CORE).min(by_memory).max(1)
    }
}

/// `nacre-agent`, to be put into sandboxes.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct AgentProgram(pub Bytes);

impl fmt::Debug for AgentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentProgram({} bytes)", self.0.len())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsConfig {
    pub at_once: usize,
    pub most_waiting: usize,
    /// For runs that name none.
    pub model: Option<String>,
    pub window: Option<u64>,
    pub max_steps: u64,
    pub timeout: Duration,
    pub dollars: Option<Dollars>,
    pub tokens: Option<u64>,
    pub limits: Limits,
    /// Servers of tools that our own agent has besides its own. All of them run in the sandbox.
    pub mcp: Servers,
    pub path: Vec<PathBuf>,
    pub keep: Keep,
    pub largest_input: u64,
    pub largest_output: u64,
    pub program: AgentProgram,
}

/// How much is kept of runs that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    pub runs: usize,
    pub bytes: u64,
    pub age: Duration,
}

impl RawRunsConfig {
    pub fn resolve(
        self,
        agent: RawAgentConfig,
        machine: Machine,
        program: AgentProgram,
    ) -> RunsConfig {
        const DAY: u64 = 24 * 60 * 60;
        let dollars = self.dollars.unwrap_or(BUDGET);
        let at_once = self.at_once.unwrap_or_else(|| machine.at_once()).max(1);
        let memory = self.memory_bytes.or_else(|| machine.memory_of_each(at_once));
        RunsConfig {
            at_once,
            most_waiting: self.most_waiting.unwrap_or(MOST_WAITING),
            model: agent.model,
            window: agent.window,
            max_steps: self.max_steps.unwrap_or(MAX_STEPS),
            timeout: self.timeout_seconds.map_or(TIMEOUT, Duration::from_secs),
            dollars: (dollars.0 > 0).then_some(dollars),
            tokens: self.tokens,
            limits: Limits {
                memory_bytes: memory.filter(|bytes| *bytes > 0),
                pids: self.pids,
                ..Limits::default()
            },
            mcp: Servers::new(),
            path: self.path,
            keep: Keep {
                runs: self.keep_runs.unwrap_or(100),
                bytes: self.keep_bytes.unwrap_or(1 << 30),
                age: Duration::from_secs(self.keep_days.unwrap_or(30).saturating_mul(DAY)),
            },
            largest_input: self.largest_input_bytes.unwrap_or(1 << 30),
            largest_output: self.largest_output_bytes.unwrap_or(256 << 20),
            program,
        }
    }
}

impl RunsConfig {
    /// Those of `[mcp]` that a run can use: what is reached from outside of a sandbox would need its keys
    /// inside, and nobody is there to be asked.
    pub fn with_servers(mut self, servers: &Servers) -> Self {
        let usable = servers.iter().filter(|(_, server)| !server.asks() && server.url.is_none());
        self.mcp = usable.map(|(name, server)| (name.clone(), server.clone())).collect();
        self
    }
}

impl Default for RunsConfig {
    fn default() -> Self {
        let machine = Machine { cores: 1, memory_bytes: 0 };
        RawRunsConfig::default().resolve(Default::default(), machine, Default::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_at_once_as_the_machine_can_bear() {
        let at_once = |cores, gib: u64| Machine { cores, memory_bytes: gib << 30 }.at_once();
        assert_eq!(at_once(2, 8), 4);
        assert_eq!(at_once(16, 8), 10);
        assert_eq!(at_once(1, 0), 1);
    }

    #[test]
    fn what_runs_together_has_room_in_the_machine() {
        let gib = |n: u64| n << 30;
        let memory = |raw: RawRunsConfig, cores, memory_bytes| {
            let machine = Machine { cores, memory_bytes };
            raw.resolve(Default::default(), machine, Default::default()).limits.memory_bytes
        };
        let raw = RawRunsConfig::default;
        assert_eq!(memory(raw(), 2, gib(8)), Some(gib(2)));
        assert_eq!(memory(raw(), 16, gib(8)), Some(gib(8) / 10));
        let alone = RawRunsConfig { at_once: Some(1), ..raw() };
        assert_eq!(memory(alone, 2, gib(8)), Some(gib(8)));
        let many = RawRunsConfig { at_once: Some(100), ..raw() };
        assert_eq!(memory(many, 2, gib(8)), Some(MEMORY_A_RUN), "the owner wants it like that");
        let said = |bytes| RawRunsConfig { memory_bytes: Some(bytes), ..raw() };
        assert_eq!(memory(said(gib(3)), 2, gib(8)), Some(gib(3)));
        assert_eq!(memory(said(0), 2, gib(8)), None);
        assert_eq!(memory(raw(), 2, 0), None);
    }

    #[test]
    fn a_run_has_the_servers_that_run_in_its_sandbox_and_ask_nobody() {
        let servers: Servers = serde_json::from_value(serde_json::json!({
            "time": {"command": ["uvx", "mcp-server-time"]},
            "asks": {"command": ["x"], "ask": true},
            "far": {"url": "https://docs.example/mcp", "ask": false, "headers": {"X-Key": "k"}},
        }))
        .unwrap();
        let config = RunsConfig::default().with_servers(&servers);
        assert_eq!(config.mcp.keys().collect::<Vec<_>>(), ["time"]);
    }

    #[test]
    fn nothing_said_means_the_documented_defaults() {
        let config = RunsConfig::default();
        let minutes = config.timeout.as_secs() / 60;
        assert_eq!((config.max_steps, minutes, config.dollars), (5, 5, Dollars::new(0.5)));
        let raw = RawRunsConfig { dollars: Dollars::new(0.0), ..RawRunsConfig::default() };
        let machine = Machine { cores: 1, memory_bytes: 0 };
        let config = raw.resolve(Default::default(), machine, Default::default());
        assert_eq!(config.dollars, None, "0 means no limit");
    }
}
